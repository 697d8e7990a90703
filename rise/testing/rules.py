"""Rules: instances with random sizes, types and functions, on which both sides have to agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rise.errors import RiseError
from rise.expr import Expr, Identifier, Lambda, children, substitute, subterms, with_children
from rise.nat import constant
from rise.normal import data_flow, simplify
from rise.pretty import show
from rise.testing.choose import Choose, choices
from rise.testing.compare import assert_equivalent, differ
from rise.testing.data import exact_inputs
from rise.testing.samples import Hint, Sample, sample
from rise.testing.shrink import Counterexample
from rise.testing.terms import NAMES, Generator, Scope
from rise.testing.unsolved import RuleLike
from rise.testing.vocabulary import exact, views
from rise.types import F32, I32, Array, Function, Pair, Type, arguments, is_data
from rise.verify import verify


@dataclass(frozen=True)
class Instance:
    """A rule with sizes, types and functions put in: what it is applied to is in normal form.

    rule: how it is applied
    """

    rule: Callable[[Expr], Any]
    left: Expr
    sample: Sample
    values: Mapping[str, Expr]
    seed: int

    @property
    def name(self) -> str:
        return str(self.sample.rule.name)

    @property
    def right(self) -> Expr:
        """The right side, as it is."""
        return substitute(self.sample.rhs, self.values)


def instance(rule: RuleLike, choose: Choose, hint: Hint) -> Instance:
    """Terms, sizes and types for the free names of a rule, drawn by `choose`, as the hint asks for them."""
    made = sample(rule, choose, hint)
    values = dict(hint.values(choose, made.types))
    scope = _surroundings(choose, made.types, rule.rhs)
    for name, type_ in made.types.items():
        if name not in values and not is_data(type_):
            names = views() if name in hint.views else exact()
            function = Generator(choose, names).function(type_, scope, choose.pick((2, 1, 3)))
            values[name] = data_flow(function)
    # the rule's sides and the values are in normal form, so that only their composition has to be simplified
    return Instance(made.apply, simplify(substitute(made.lhs, values)), made, values, choose.below(1000))


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


def _surroundings(choose: Choose, taken: Mapping[str, Type], right: Expr) -> Scope:
    """Names from around the rule: none, or some that a careless rule would capture.

    Half of them are names of the right side's binders, if it has any. Half have the type of a parameter or
    result of the rule's functions, which thus use them.
    """
    names = [n for n in NAMES if n not in taken][:4]
    bound = [t.parameter.name for t in subterms(right) if isinstance(t, Lambda)] or names
    functions = [arguments(t) for t in taken.values() if isinstance(t, Function)]
    used = [t for parameters, result in functions for t in (*parameters, result)]
    types: tuple[Type, ...] = (I32, F32, Array(constant(2), I32), Pair(I32, F32))
    return {
        choose.pick(bound if choose.one_in(2) else names): choose.pick(
            used if used and choose.one_in(2) else types
        )
        for _ in range(choose.below(3))
    }


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
        rounding = made.sample.rule.rounds
        assert_equivalent(made.left, made.right, environment, seeds=(made.seed,), rounding=rounding)
        result = made.rule(made.left)
        if not hasattr(result, "steps"):
            evidence.refusals[result.reason] += 1
            return
        evidence.applied += 1
        verify(result.term)
        new = result.term.free - made.left.free
        assert not new, f"`{made.name}` lets {sorted(new)} escape: {show(made.left)} → {show(result.term)}"
        assert_equivalent(made.left, result.term, environment, seeds=(made.seed,), rounding=rounding)
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
