"""Rules as data: two sides in RISE notation, type-checked when declared.

A rule is applied modulo the normal form of `rise.normal`: its right side is instantiated and
simplified, and functions are matched as lambdas. A rule that has to compute its right side does so in
Python (`computed`), and gives an instance on which the property test can start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from threading import RLock

from rewrites import checked
from rewrites.ancestry import Path, ancestors, part_of, with_origin
from rewrites.constants import constant_of
from rewrites.match import Match, Mismatch, Test, certain, describe, form
from rewrites.result import Failure, Inapplicable, Result, Step, Success
from rewrites.strategy import Head, Strategy
from rewrites.typed import zero_of
from rise.check.elaborate import Elaborator, Scope
from rise.check.program import check_elements, fill
from rise.check.unify import resolve_constraint
from rise.data import shown
from rise.errors import RiseError, StrategyError, TypeMismatch
from rise.expr import (
    Apply,
    Constraint,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    distinct_binders,
    fresh_name,
    substitute_sizes,
    subterms,
    with_children,
)
from rise.frozen import Remembers, cached_property, filled_at_once
from rise.nat import Atom, Nat, NatUnknown, NatVariable, atom, nat
from rise.normal import data_flow, simplify
from rise.notebook import code_html
from rise.pretty import show_type
from rise.source import Derived, Source
from rise.source import place as source_place
from rise.syntax.parser import parse_expression
from rise.types import Argument, Array, Kind, Pair, Unknown, Variable, substitution
from rise.user_code import place_of_function

Condition = Callable[[Match], str | None]
IDENTIFIER = re.compile(r"\w+")


@filled_at_once
@dataclass(frozen=True, slots=True)
class Sides(Remembers):
    """What the checker makes of the texts of a rule.

    sizes: the unknown sizes that are its parameters, by name
    asks:  what its types ask of its sizes
    open:  the unknown sizes and types of the right side
    """

    lhs: Expr
    rhs: Expr
    sizes: Mapping[str, NatUnknown]
    asks: tuple[Constraint, ...]
    open: frozenset[NatUnknown | Unknown]

    @cached_property
    def head(self) -> Head:
        """The primitive that a term has to apply, and to how many arguments; None where any term will do."""
        return self.lhs.head if isinstance(self.lhs, Apply) else None

    @cached_property
    def form(self) -> Test | None:
        return form(self.lhs)

    @cached_property
    def parameters(self) -> Mapping[NatUnknown, str]:
        return {unknown: name for name, unknown in self.sizes.items()}

    @cached_property
    def ancestors(self) -> Mapping[int, Path]:
        return ancestors(self.lhs, self.rhs)


class Declared:
    """The sides of a rule, which are checked when they are first needed, by one thread."""

    def __init__(self, check: Callable[[], Sides]) -> None:
        self._check = check
        self._lock = RLock()
        self._sides: Sides | None = None

    @property
    def checked(self) -> bool:
        return self._sides is not None

    def sides(self) -> Sides:
        if self._sides is None:
            with self._lock:
                self._sides = self._sides or self._check()
        return self._sides


@filled_at_once
@dataclass(frozen=True, repr=False, slots=True)
class Rule(Strategy):
    """lhs → rhs, for any terms, sizes and types in place of the free names; `sizes` are its parameters.

    conditions: functions of a match that return a reason where the rule must not apply
    exact:      false where the rule reorders sums, so that floating-point results may differ
    rounds:     whether results differ by roundings also where sums are exact
    given:      values of the parameters
    """

    name: str
    left: str
    right: str
    declared: Declared = field(repr=False)
    conditions: tuple[Condition, ...] = field(default=(), repr=False)
    exact: bool = True
    meaning: str = ""
    given: Mapping[str, Nat] = field(default_factory=dict)
    rounds: bool = False

    @cached_property
    def sides(self) -> Sides:
        sides = self.declared.sides()
        self._refuse_unknown(self.given, sides.sizes)
        return sides

    @property
    def lhs(self) -> Expr:
        return self.sides.lhs

    @property
    def rhs(self) -> Expr:
        return self.sides.rhs

    @property
    def sizes(self) -> Mapping[str, NatUnknown]:
        return self.sides.sizes

    @property
    def head(self) -> Head:
        return self.sides.head

    def __call__(self, term: Expr) -> Result:
        return self.apply(term)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={value}" for name, value in self.given.items())
        return constant_of(self.name) + (f".with_sizes({sizes})" if sizes else "")

    def _repr_html_(self) -> str:
        return code_html(f"{self.left}\n→ {self.right}") + escape(self.meaning)

    def with_sizes(self, /, **sizes: int | Nat) -> Rule:
        """The rule with values for its parameters, `split_join.with_sizes(n=32)`.

        A rule that has not been checked yet stays so, if its text has these names.
        """
        names = (
            self.sizes.keys()
            if self.declared.checked
            else set(IDENTIFIER.findall(f"{self.left} {self.right}"))
        )
        self._refuse_unknown(sizes, names)
        return replace(self, given={**self.given, **{n: nat(v) for n, v in sizes.items()}})

    def _refuse_unknown(self, given: Iterable[str], names: Container[str]) -> None:
        unknown = sorted(name for name in given if name not in names)
        if unknown:
            raise StrategyError("R0603", f"the rule `{self.name}` has no parameter `{unknown[0]}`")

    def _asked(self, constraint: Constraint, match: Match) -> Constraint | None:
        """A constraint of a rule's types on its sizes, for the sizes that were matched."""
        solution: dict[Atom, Nat] = {NatVariable(n): atom(u) for n, u in self.sizes.items()}
        solution.update(
            {a: v for a, v in match.types.items() if isinstance(v, Nat) and isinstance(a, NatUnknown)}
        )
        return resolve_constraint(constraint, lambda n: n.substitute(solution).substitute(solution))

    def attempt(self, term: Expr) -> Success | None:
        test = self.sides.form
        return Strategy.attempt(self, term) if test is None or test(term, frozenset()) else None

    def apply(self, term: Expr) -> Result:
        if self.head is not None and not (isinstance(term, Apply) and term.head == self.head):
            # most attempts end here, so nothing is matched for them
            depth = 0 if isinstance(term, Apply) else -1
            reason = f"expected `{self.head[0]}`, found {describe(term)}"
            return Failure(self.name, term, reason, depth, pattern=self.left)
        match = Match(self.sides.parameters)
        for name, value in self.given.items():
            match.types[self.sizes[name]] = value
        try:
            match.against(self.lhs, term)
        except Mismatch as mismatch:
            return self._failure(term, match, mismatch.reason, mismatch.part, mismatch.hint)
        for condition in self.conditions:
            objection = condition(match)
            if objection is not None:
                return self._failure(term, match, _reason(self.name, objection, condition))
        return self._applied(term, match)

    def _applied(self, term: Expr, match: Match) -> Result:
        """The right side for what the left side matched; a failure where its sizes are not right."""
        try:
            asked = [self._asked(constraint, match) for constraint in self.sides.asks]
        except TypeMismatch as refused:
            return self._failure(term, match, refused.message, None, refused.hint)
        for unknown in self.sides.open - match.types.keys():
            name = self.sides.parameters.get(unknown)  # type: ignore[arg-type]  # unknown types have no names
            if name is None:
                return self._failure(term, match, "a size of the right side is not determined")
            hint = f"give the rule a value: `with_sizes({name}=…)`"
            return self._failure(term, match, f"its parameter `{name}` has no value", None, hint)
        after = simplify(_instantiate(self.sides, match, Origins(self.name, term, self.sides.ancestors)))
        constraints = tuple(c for c in match.constraints if not certain(c))
        constraints += tuple(c for c in asked if c is not None)
        return Success(after, (Step(self.name, (), term, after, constraints, self.given),))

    def _failure(
        self, term: Expr, match: Match, reason: str, part: Expr | None = None, hint: str | None = None
    ) -> Failure:
        return Failure(self.name, term, reason, match.matched + 1, (), part, hint, self.left)


def _reason(name: str, objection: object, condition: Condition) -> str:
    """What a condition says. R0631 where it says something else than a text."""
    if isinstance(objection, str):
        return objection
    hint = "a condition returns the reason why the rule must not apply, or None"
    message = f"a condition of the rule `{name}` returns {shown(objection)}, which is not a text"
    raise StrategyError("R0631", message, place_of_function(condition), hint)


def _unknowns(term: Expr) -> set[NatUnknown | Unknown]:
    found: set[NatUnknown | Unknown] = set()
    for part in subterms(term):
        if isinstance(part, Primitive):
            for argument in part.arguments:
                if isinstance(argument, Nat):
                    found |= argument.unknowns
                elif isinstance(argument, Unknown):
                    found.add(argument)
    return found


# --- declaring ----------------------------------------------------------------------------------------

RULES: dict[str, Rule] = {}


def rule(
    name: str,
    left: str,
    right: str,
    *,
    meaning: str = "",
    exact: bool = True,
    conditions: tuple[Condition, ...] = (),
    sizes: tuple[str, ...] = (),
    layouts: tuple[str, ...] = (),
    deferred: bool = False,
    rounds: bool = False,
) -> Rule:
    """Declares left → right, programs with free names for terms, sizes and types (ELEVATE, section 3).

    Raises R0601 where a side is ill-typed or the two types differ, R0602 for a free name that only the right
    side has, R0610 for the name of another rule.

    meaning:    a sentence that says what the rule does
    exact:      false where it reorders sums, so that floating-point results may differ
    conditions: functions of a `Match` that return a reason where the rule must not apply, else None
    sizes:      names of sizes that could also be taken for values (`mapBlock(d)(f)`)
    layouts:    names of layouts, likewise
    deferred:   whether the rule is checked when it is first used
    rounds:     whether results differ by roundings also where sums are exact
    """
    kinds = dict.fromkeys(sizes, Kind.NAT) | dict.fromkeys(layouts, Kind.LAYOUT)
    check = partial(_checked, name, left, right, kinds)
    declared = Declared(partial(checked.once, name, (left, right, kinds), check) if deferred else check)
    if not deferred:
        declared.sides()
    _new(name)
    RULES[name] = Rule(name, left, right, declared, conditions, exact, meaning, rounds=rounds)
    return RULES[name]


# a program meets few of our rules, and tests meet all of them
library_rule = partial(rule, deferred=True)


def _checked(name: str, left: str, right: str, kinds: Mapping[str, Kind]) -> Sides:
    elaborator = Elaborator(pattern_variables={}, size_variables=dict(kinds))
    sides = []
    with _declared(f"a side of `{name}` has no type"):
        for text in (left, right):
            syntax = parse_expression(Source(f"rule {name}", text))
            sides.append(elaborator.infer(syntax, Scope(kinds=kinds)))
    lhs, rhs = sides
    with _declared(f"the sides of `{name}` differ in type"):
        elaborator.unifier.unify(lhs.type, rhs.type, rhs.origin)
    with _declared(f"`{name}` is ill-typed"):
        return _finish(name, elaborator, lhs, rhs)


@contextmanager
def _declared(wrong: str) -> Iterator[None]:
    """R0601 with the place in the rule's text in place of what the checker says of programs."""
    try:
        yield
    except TypeMismatch as error:
        message = f"{wrong}: {error.message}"
        raise TypeMismatch(
            "R0601", message, error.origin, error.hint, error.difference, error.notes
        ) from None


def _new(name: str) -> None:
    if name in RULES or name in COMPUTED:
        raise StrategyError("R0610", f"the rule `{name}` is declared twice", hint="give one another name")


def _finish(name: str, elaborator: Elaborator, lhs: Expr, rhs: Expr) -> Sides:
    """Solves what is known, opens the named sizes for matching, and brings both sides to normal form."""
    unifier = elaborator.unifier
    _leave_literals_open(elaborator)
    unifier.finish()
    lhs, rhs = fill(lhs, unifier), fill(rhs, unifier)
    check_elements(lhs)
    check_elements(rhs)
    sizes: dict[str, NatUnknown] = {}
    solution: dict[NatVariable | Variable, Argument] = {}
    for size, kind in (elaborator.size_variables or {}).items():
        if kind is Kind.NAT:
            fresh = unifier.size()
            (sizes[size],) = fresh.unknowns
            solution[NatVariable(size)] = fresh
        else:
            solution[Variable(size)] = unifier.type()
    lhs, rhs = (substitute_sizes(side, solution) for side in (lhs, rhs))
    new = rhs.free - lhs.free
    if new:
        raise StrategyError("R0602", f"`{sorted(new)[0]}` occurs on the right of `{name}` only")
    # matching keeps bound variables by the name of the pattern's binder
    lhs, rhs = (distinct_binders(data_flow(side)) for side in (lhs, rhs))
    asks, open_ = tuple(unifier.constraints), frozenset(_unknowns(rhs))
    return Sides(lhs, rhs, sizes, asks, open_)


def _leave_literals_open(elaborator: Elaborator) -> None:
    """A literal of a rule has the type its context has, whatever that is: no default."""
    unifier = elaborator.unifier
    for unknown in list(unifier.literals):
        if isinstance(unifier.shallow(unknown), Unknown):
            del unifier.literals[unknown]


# --- instantiating ------------------------------------------------------------------------------------


class Origins:
    """The origins of what one application of a rule makes, one for each part that something goes back to."""

    def __init__(self, rule: str, term: Expr, paths: Mapping[int, Path]) -> None:
        self.rule = rule
        self.term = term
        self.paths = paths
        self.known: dict[Path, Derived] = {}
        self.whole = self.at(())

    def of(self, part: Expr, around: Derived) -> Derived:
        """Of a part of the right side: that of the part around it where nothing better is known."""
        path = self.paths.get(id(part))
        return around if path is None else self.at(path)

    def at(self, path: Path) -> Derived:
        if path not in self.known:
            origin = part_of(self.term, path).origin
            if source_place(origin) is None:
                origin = self.term.origin
            self.known[path] = Derived(self.rule, origin)
        return self.known[path]


def _instantiate(sides: Sides, match: Match, origins: Origins) -> Expr:
    """The right side with the matched terms, sizes and types; no binder captures a variable of them."""
    taken = set().union(*(t.free for t in match.terms.values())) if match.terms else set()
    return _Instantiation(match, origins, taken).go(sides.rhs, {}, origins.whole)


@dataclass
class _Instantiation:
    match: Match
    origins: Origins
    taken: set[str]

    def __post_init__(self) -> None:
        self.type, self.argument = substitution(self.match.types)

    def go(self, term: Expr, bound: Mapping[str, Identifier], origin: Derived) -> Expr:
        match term:
            case Apply(function, argument):
                origin = self.origins.of(term, origin)
                return Apply(self.go(function, bound, origin), self.go(argument, bound, origin), origin)
            case Identifier(name):
                return bound[name] if name in bound else self.match.terms[name]
            case Lambda(parameter, body):
                origin = self.origins.of(term, origin)
                wanted = self.match.names.get(parameter.name, parameter.name)
                inner = {i.name for i in bound.values()}
                name = fresh_name(wanted, self.taken | inner)
                identifier = Identifier(name, self.type(parameter.type), origin)
                return Lambda(
                    identifier, self.go(body, {**bound, parameter.name: identifier}, origin), origin
                )
            case Literal(value, type_):
                return _literal(Literal(value, self.type(type_), origin))
            case Primitive(declaration, given):
                return Primitive(declaration, tuple(map(self.argument, given)), origin)
            case _:
                return with_children(term, tuple(self.go(c, bound, origin) for c in (term.function,)))  # type: ignore[union-attr]


def _literal(literal: Literal) -> Expr:
    """A literal of a rule: 0 stands for the zeros of arrays and pairs, too."""
    if isinstance(literal.type, Array | Pair) and literal.value == 0:
        zeros = zero_of(literal.type, literal)
        return literal if isinstance(zeros, str) else zeros
    return literal


# --- rules that compute their right side ----------------------------------------------------------------


@filled_at_once
@dataclass(frozen=True, repr=False, slots=True)
class Computed(Strategy):
    """A rule whose right side is computed. `rewrite` returns the new term, or returns or raises why not.

    head:  the primitive that a term has to apply, and to how many arguments; None where any term will do
    given: values of its parameters, which `rewrite` takes by name
    """

    name: str
    equation: str
    rewrite: Callable[..., Expr | str] = field(repr=False)
    instances: tuple[str, ...] = ()
    meaning: str = ""
    exact: bool = True
    head: Head = None
    given: Mapping[str, Nat] = field(default_factory=dict)

    def with_sizes(self, /, **sizes: int | Nat) -> Computed:
        """The rule with other values for its parameters."""
        if unknown := sorted(sizes.keys() - self.given.keys()):
            raise StrategyError("R0603", f"the rule `{self.name}` has no parameter `{unknown[0]}`")
        return replace(self, given={**self.given, **{n: nat(v) for n, v in sizes.items()}})

    def __call__(self, term: Expr) -> Result:
        after = self._after(term)
        return Failure(self.name, term, after) if isinstance(after, str) else self._result(term, after)

    def attempt(self, term: Expr) -> Success | None:
        after = self._after(term)
        return None if isinstance(after, str) else self._result(term, after)

    def _after(self, term: Expr) -> Expr | str:
        try:
            return self.rewrite(term, **self.given)
        except Inapplicable as refused:
            return refused.reason

    def _result(self, term: Expr, after: Expr) -> Success:
        if not hasattr(after, "type"):
            message = f"the rule `{self.name}` returns {shown(after)}, which is neither a term nor a reason"
            raise StrategyError("R0631", message, place_of_function(self.rewrite))
        if after.type != term.type:
            place = place_of_function(self.rewrite)
            if place is None:
                raise RiseError("R0699", f"internal: `{self.name}` changed the type of a term", term.origin)
            types = f"`{show_type(term.type)}` to `{show_type(after.type)}`"
            raise StrategyError("R0632", f"the rule `{self.name}` changes the type of a term, {types}", place)
        after = with_origin(after, term, Derived(self.name, term.origin))
        return Success(after, (Step(self.name, (), term, after, (), self.given),))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={value}" for name, value in self.given.items())
        return constant_of(self.name) + (f".with_sizes({sizes})" if sizes else "")


COMPUTED: dict[str, Computed] = {}


def computed(
    name: str,
    equation: str,
    instances: tuple[str, ...],
    meaning: str = "",
    exact: bool = True,
    head: Head = None,
    sizes: Mapping[str, int] | None = None,
) -> Callable[[Callable[..., Expr | str]], Computed]:
    """Declares a computed rule; `instances` are programs to which it applies, for the property test.

    sizes: its parameters, with the values that they have there
    """

    def declare(rewrite: Callable[..., Expr | str]) -> Computed:
        given = {n: nat(v) for n, v in (sizes or {}).items()}
        made = Computed(name, equation, rewrite, instances, meaning, exact, head, given)
        _new(name)
        COMPUTED[name] = made
        return made

    return declare
