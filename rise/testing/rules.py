"""Rules: instances with random sizes, types and functions, on which both sides have to agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from rise.errors import RiseError
from rise.expr import (
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    children,
    substitute,
    substitute_sizes,
    subterms,
    with_children,
)
from rise.interpret.evaluate import free_identifiers
from rise.nat import Nat, NatUnknown, constant
from rise.normal import data_flow
from rise.pretty import show
from rise.testing.choose import Choose, choices
from rise.testing.compare import assert_equivalent, differ
from rise.testing.data import SCALAR_TYPES, SIZES, data_type, exact_inputs
from rise.testing.shrink import Counterexample
from rise.testing.terms import NAMES, Generator, Scope
from rise.testing.vocabulary import exact, views
from rise.types import (
    F32,
    I32,
    Argument,
    Array,
    Fragment,
    FragmentKind,
    Function,
    Index,
    Pair,
    Scalar,
    Type,
    Unknown,
    is_data,
    substitute_type,
    unknowns,
)
from rise.verify import verify


class RuleLike(Protocol):
    """A rule as data: two sides over free names, and parameters by name."""

    @property
    def name(self) -> str: ...
    @property
    def lhs(self) -> Expr: ...
    @property
    def rhs(self) -> Expr: ...
    @property
    def sizes(self) -> Mapping[str, NatUnknown]: ...
    @property
    def exact(self) -> bool: ...
    def with_sizes(self, **sizes: Any) -> Any: ...


@dataclass(frozen=True)
class Hint:
    """How instances of a rule are to be, that it applies to them at all.

    types:      concrete types for free names of the left side
    values:     terms for free names, given the types of all
    views:      names of functions that must not compute
    """

    types: Callable[[Choose], Mapping[str, Type]] = lambda _: {}
    values: Callable[[Choose, Mapping[str, Type]], Mapping[str, Expr]] = lambda _, __: {}
    views: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Instance:
    """A rule with sizes, types and functions put in: the left side in normal form, the right as it is."""

    rule: Any
    left: Expr
    right: Expr
    seed: int


def instance(rule: RuleLike, choose: Choose, hint: Hint) -> Instance:
    given = {i.name: i.type for i in free_identifiers(rule.lhs)}
    solution = _solution(rule, choose, hint.types(choose), given)
    types = {name: substitute_type(t, solution) for name, t in given.items()}
    values = dict(hint.values(choose, types))
    scope = _surroundings(choose, frozenset(given))
    for name, type_ in types.items():
        if name not in values and not is_data(type_):
            names = views() if name in hint.views else exact()
            values[name] = Generator(choose, names).function(type_, scope, choose.pick((2, 1, 3)))
    left, right = (substitute(substitute_sizes(side, solution), values) for side in (rule.lhs, rule.rhs))
    sizes = {name: solution[unknown] for name, unknown in rule.sizes.items()}
    return Instance(rule.with_sizes(**sizes), data_flow(left), right, choose.below(1000))


def redex(rule: RuleLike, hint: Hint | None = None) -> Callable[[Choose], Expr]:
    """Terms to which a rule applies, to be planted in `programs`."""
    return lambda choose: instance(rule, choose, hint or Hint()).left


def hiding(term: Expr, choose: Choose) -> Expr:
    """The same term with binders from the pool of names, or called like what is free in other parts of it."""
    return _hiding(term, choose, (*NAMES[:3], *sorted(term.free & set(NAMES)) * 3))


def _hiding(term: Expr, choose: Choose, names: tuple[str, ...]) -> Expr:
    if not isinstance(term, Lambda):
        return with_children(term, tuple(_hiding(c, choose, names) for c in children(term)))
    body, parameter = _hiding(term.body, choose, names), term.parameter
    name = choose.pick(names)
    if name in body.free - {parameter.name}:
        return Lambda(parameter, body, term.origin)
    renamed = Identifier(name, parameter.type, parameter.origin)
    return Lambda(renamed, substitute(body, {parameter.name: renamed}), term.origin)


def _surroundings(choose: Choose, taken: frozenset[str]) -> Scope:
    """Names from around the rule: none, or some that a careless rule would capture."""
    names = [n for n in NAMES if n not in taken]
    types: tuple[Type, ...] = (I32, F32, Array(constant(2), I32), Pair(I32, F32))
    return {choose.pick(names[:4]): choose.pick(types) for _ in range(choose.below(3))}


def _solution(
    rule: RuleLike, choose: Choose, wanted: Mapping[str, Type], given: Mapping[str, Type]
) -> dict[Any, Argument]:
    solution: dict[Any, Argument] = {}
    for name, type_ in wanted.items():
        _solve(given[name], type_, solution)
    scalars = scalar_unknowns(rule.lhs) | scalar_unknowns(rule.rhs)
    allowed = SCALAR_TYPES if rule.exact else (I32, F32)
    kinds = _kind_unknowns(rule.lhs) | _kind_unknowns(rule.rhs)
    for unknown in _all_unknowns(rule):
        if unknown in solution:
            continue
        if isinstance(unknown, NatUnknown):
            solution[unknown] = constant(choose.pick(SIZES))
        elif unknown in kinds:
            solution[unknown] = choose.pick(tuple(FragmentKind))
        else:
            solution[unknown] = data_type(choose, 0 if unknown in scalars else 2, allowed)
    return solution


def _solve(pattern: Any, actual: Any, solution: dict[Any, Argument]) -> None:
    """The unknowns of a pattern that stand alone where the actual type has something."""
    if isinstance(pattern, Unknown):
        solution[pattern] = actual
    elif isinstance(pattern, Nat):
        for unknown in pattern.unknowns if len(pattern.terms) == 1 and len(pattern.terms[0][0]) == 1 else ():
            solution[unknown] = actual
    elif type(pattern) is type(actual) and hasattr(pattern, "__match_args__"):
        for name in pattern.__match_args__:
            _solve(getattr(pattern, name), getattr(actual, name), solution)


def _all_unknowns(rule: RuleLike) -> list[NatUnknown | Unknown]:
    found: dict[NatUnknown | Unknown, None] = {}
    for side in (rule.lhs, rule.rhs):
        for part in subterms(side):
            found.update(dict.fromkeys(unknowns(part.type)))
            for argument in getattr(part, "arguments", ()):
                found.update(dict.fromkeys(_leaves(argument)))
    return sorted(found, key=lambda u: u.identity)


def _leaves(argument: Argument) -> Iterator[NatUnknown | Unknown]:
    if isinstance(argument, Nat):
        yield from argument.unknowns
    elif isinstance(argument, Unknown | Scalar | Array | Pair | Index | Fragment):
        yield from unknowns(argument)


ARITHMETIC = "rise.interpret.operations"


def scalar_unknowns(side: Expr) -> set[Unknown]:
    """Unknown types of literals, of operands of arithmetic, and of the elements of fragments."""
    found: set[Unknown] = set()
    for part in subterms(side):
        if isinstance(part, Literal):
            found |= {u for u in (part.type,) if isinstance(u, Unknown)}
        if isinstance(part, Primitive) and part.declaration.denotation.__module__ == ARITHMETIC:
            found |= {a for a in part.arguments if isinstance(a, Unknown)}
        for type_ in _fragments(part.type):
            found |= {u for u in unknowns(type_.element) if isinstance(u, Unknown)}
    return found


def _kind_unknowns(side: Expr) -> set[Unknown]:
    types = (t for part in subterms(side) for t in _fragments(part.type))
    return {t.kind for t in types if isinstance(t.kind, Unknown)}


def _fragments(type_: Any) -> Iterator[Fragment]:
    match type_:
        case Fragment():
            yield type_
        case Array(_, element):
            yield from _fragments(element)
        case Pair(a, b) | Function(a, b):
            yield from _fragments(a)
            yield from _fragments(b)


@dataclass
class Evidence:
    """What a property test of a rule saw: to how many instances it applied, and why not to others."""

    examples: int = 0
    applied: int = 0
    refusals: Counter[str] = field(default_factory=Counter)


def check_instance(made: Instance, evidence: Evidence) -> None:
    """The rule applied to the left side gives a well-typed term that computes what both sides do."""
    evidence.examples += 1
    verify(made.left)
    environment = {**exact_inputs(made.left, made.seed), **exact_inputs(made.right, made.seed)}
    try:
        assert_equivalent(made.left, made.right, environment, seeds=(made.seed,))
        result = made.rule(made.left)
        if not hasattr(result, "steps"):
            evidence.refusals[result.reason] += 1
            return
        evidence.applied += 1
        verify(result.term)
        new = result.term.free - made.left.free
        assert not new, (
            f"`{made.rule.name}` lets {sorted(new)} escape: {show(made.left)} → {show(result.term)}"
        )
        assert_equivalent(made.left, result.term, environment, seeds=(made.seed,))
    except (AssertionError, RiseError) as problem:
        fails = _changes_value(made.rule, made.seed)
        raise Counterexample(str(problem), made.left, fails) from problem


def _changes_value(rule: Any, seed: int) -> Callable[[Expr], bool]:
    """Whether the rule applies to a term and computes something else, or has free names of its own."""

    def fails(term: Expr) -> bool:
        result = rule(term)
        if not hasattr(result, "steps"):
            return False
        try:
            verify(result.term)
        except RiseError:
            return True
        return not result.term.free <= term.free or differ(term, result.term, seeds=(seed,))

    return fails


def assert_sound(
    rule: RuleLike,
    hint: Hint | None = None,
    *,
    share: float = 0.25,
    hide: bool = False,
    evidence: Evidence | None = None,
    **options: Any,
) -> Evidence:
    """On random instances the rule preserves type and value; it applies to at least that share of them.

    `hide` renames the binders of the instances so that they hide each other; `evidence` counts.

    The options are settings of Hypothesis (`max_examples=…`). Raises AssertionError with the instance.
    """
    from hypothesis import HealthCheck, given, settings

    evidence = evidence or Evidence()

    @settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), **options)
    @given(choices())
    def sound(choose: Choose) -> None:
        made = instance(rule, choose, hint or Hint())
        if hide:
            made = replace(made, left=hiding(made.left, choose))
        check_instance(made, evidence)

    sound()
    refusals = ", ".join(f"{reason} ({n})" for reason, n in evidence.refusals.most_common(3))
    message = f"`{rule.name}` applied to {evidence.applied} of {evidence.examples} instances: {refusals}"
    assert evidence.applied >= max(1, share * evidence.examples), message
    return evidence
