"""Instances of rules: for the property that every rule has to satisfy, and for the catalogue's examples.

A left side says most of what it takes for a rule to apply: sizes, types and functions are drawn at
random. What it does not say (an operator is associative, a tile has the shape of an instruction) is in
`rewrites.hints`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rewrites.hints import hint
from rewrites.match import Match
from rewrites.result import Result
from rewrites.rule import Rule
from rise.expr import Expr, Primitive, substitute_sizes, subterms
from rise.interpret.evaluate import free_identifiers
from rise.nat import Nat, NatUnknown, NatVariable, constant
from rise.testing.choose import Choose
from rise.testing.data import SCALAR_TYPES, data_type
from rise.testing.operands import SPECIAL
from rise.testing.rules import Hint, Instance, instance, scalar_unknowns
from rise.types import (
    F32,
    I32,
    ROW_MAJOR,
    Argument,
    Array,
    Fragment,
    FragmentKind,
    Function,
    Index,
    Kind,
    Layout,
    Pair,
    Space,
    Type,
    Unknown,
    Vector,
    substitute_argument,
    substitute_type,
    unknowns,
)

SIZES = (1, 2, 3, 4, 6, 2, 3)  # coprime ones, and equal ones by chance
LAYOUTS = (ROW_MAJOR, Layout("padded", constant(3)), Layout("swizzled", constant(64)))
MOST = 400  # scalars in a value, so that the suite stays fast
TRIES = 300

Solution = dict[Any, Argument]


class Drawn(Choose):
    """Decisions from a seed: the same ones each time, without Hypothesis."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound) if bound > 1 else 0


@dataclass(frozen=True)
class Sample:
    """A rule to which sizes, types and orders were given: what `rise.testing.instance` fills with functions.

    needed: values of the parameters that the left side does not determine
    chosen: values of all parameters
    """

    rule: Rule
    lhs: Expr
    rhs: Expr
    needed: Mapping[str, Nat]
    chosen: Mapping[str, Nat]

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def exact(self) -> bool:
        return self.rule.exact

    @property
    def sizes(self) -> Mapping[str, NatUnknown]:
        return {}

    def with_sizes(self, **_: Any) -> Sample:
        return self

    def __call__(self, term: Expr) -> Result:
        """The rule as a user calls it: given what has to be given."""
        return self.rule.with_sizes(**self.needed)(term)


def sampled(rule: Rule, seed: int) -> Instance:
    """The instance of a rule that belongs to the seed."""
    choose, wanted = Drawn(seed), hint(rule.name)
    sample = specialised(rule, choose, wanted)
    return instance(sample, choose, Hint(values=wanted.values, views=wanted.views))


def specialised(rule: Rule, choose: Choose, wanted: Hint) -> Sample:
    """The rule with numbers for its sizes, types for its types, and so on; functions are left open."""
    solution = _types(rule, choose, wanted)
    solution |= _sizes(rule, choose, solution)
    solution |= _orders(rule, choose, solution)
    lhs, rhs = (substitute_sizes(side, solution) for side in (rule.lhs, rule.rhs))
    chosen = {name: solution[u] for name, u in rule.sizes.items() if u in solution}
    needed = {name: chosen[name] for name in parameters(rule) if name in chosen}
    return Sample(rule, lhs, rhs, needed, chosen)  # type: ignore[arg-type]  # values of sizes are sizes


def parameters(rule: Rule) -> list[str]:
    """The sizes that have to be given, since the left side does not determine them.

    A size is determined where a size of the left side has no other unknown in it.
    """
    sizes = [n.unknowns for n in _of(rule).left]
    known: set[NatUnknown] = set()
    needed: list[str] = []
    for name, unknown in rule.sizes.items():
        while found := {u for s in sizes if len(s - known) == 1 for u in s - known}:
            known |= found
        if unknown not in known:
            known.add(unknown)
            needed.append(name)
    return needed


# --- what is to be chosen -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unsolved:
    """What the sides of a rule leave open.

    kinds:   every unknown but sizes, with its kind
    scalars: types that have to be numbers
    sizes:   unknown sizes
    left:    the sizes of the left side
    numbers: what has to be a natural number, over the unknown sizes
    values:  the types of values that are computed
    """

    kinds: Mapping[Unknown, Kind]
    scalars: frozenset[Unknown]
    sizes: tuple[NatUnknown, ...]
    left: frozenset[Nat]
    numbers: tuple[Nat, ...]
    values: tuple[Type, ...]


_UNSOLVED: dict[str, tuple[Rule, Unsolved]] = {}


def _of(rule: Rule) -> Unsolved:
    known = _UNSOLVED.get(rule.name)
    if known is None or known[0] is not rule:
        known = _UNSOLVED[rule.name] = rule, _unsolved(rule)
    return known[1]


def _unsolved(rule: Rule) -> Unsolved:
    parts = [part for side in (rule.lhs, rule.rhs) for part in subterms(side)]
    types = dict.fromkeys(part.type for part in parts)
    kinds = {u: Kind.DATA for t in types for u in unknowns(t) if isinstance(u, Unknown)}
    kinds |= {
        f.kind: Kind.FRAGMENT for t in types for f in _inside(t, Fragment) if isinstance(f.kind, Unknown)
    }
    kinds |= {a: kind for part in parts for a, kind in _arguments(part) if isinstance(a, Unknown)}
    numbers = dict.fromkeys(a for part in parts for a, _ in _arguments(part) if isinstance(a, Nat))
    sizes = {u: None for n in numbers for u in n.unknowns} | {
        u: None for t in types for u in unknowns(t) if isinstance(u, NatUnknown)
    }
    left = {a for part in subterms(rule.lhs) for a, _ in _arguments(part) if isinstance(a, Nat)}
    left |= {size for part in subterms(rule.lhs) for size in _inside(part.type, Nat)}
    return Unsolved(
        dict(sorted(kinds.items(), key=lambda item: item[0].identity)),
        frozenset(scalar_unknowns(rule.lhs) | scalar_unknowns(rule.rhs) | _lanes(types)),
        tuple(sorted(sizes, key=lambda u: u.identity)),
        frozenset(left),
        tuple(numbers),
        tuple(t for t in types if not isinstance(t, Function | Unknown)),
    )


def _arguments(part: Expr) -> Iterator[tuple[Argument, Kind]]:
    if isinstance(part, Primitive):
        parameters = part.declaration.scheme.parameters
        yield from zip(part.arguments, (p.kind for p in parameters), strict=True)


def _lanes(types: Mapping[Type, None]) -> set[Unknown]:
    """The types of the elements of vectors."""
    return {v.element for t in types for v in _inside(t, Vector) if isinstance(v.element, Unknown)}


def _inside(type_: Any, wanted: type) -> Iterator[Any]:
    if isinstance(type_, wanted):
        yield type_
    for name in getattr(type(type_), "__match_args__", ()) if not isinstance(type_, Nat | Unknown) else ():
        yield from _inside(getattr(type_, name), wanted)


# --- choosing -------------------------------------------------------------------------------------------


def _types(rule: Rule, choose: Choose, wanted: Hint) -> Solution:
    """Those that a hint asks for, and others at random: small, numbers where only numbers will do."""
    match, given = Match(), {i.name: i.type for i in free_identifiers(rule.lhs)}
    for name, type_ in wanted.types(choose).items():
        match.type(given[name], type_)
    solution: Solution = dict(match.types)
    open_ = _of(rule)
    allowed = SCALAR_TYPES if rule.exact else (I32, F32)
    for unknown, kind in open_.kinds.items():
        if unknown in solution or kind is Kind.FUNCTION:
            continue
        match kind:
            case Kind.SPACE:
                solution[unknown] = choose.pick(tuple(Space))
            case Kind.LAYOUT:
                solution[unknown] = choose.pick(LAYOUTS)
            case Kind.FRAGMENT:
                solution[unknown] = choose.pick(tuple(FragmentKind))
            case _:
                solution[unknown] = data_type(choose, 0 if unknown in open_.scalars else 2, allowed)
    return solution


def _sizes(rule: Rule, choose: Choose, solution: Solution) -> Solution:
    """Numbers for the sizes, with which every size of the rule is a natural number and no value is large."""
    open_ = _of(rule)
    left_over = [u for u in open_.sizes if u not in solution]
    values = [substitute_type(t, solution) for t in open_.values]
    numbers = [substitute_argument(n, solution) for n in open_.numbers]
    for attempt in range(TRIES):
        pool = SIZES if attempt < TRIES // 2 else SIZES[: 1 + attempt % 2]
        chosen: Solution = {u: constant(choose.pick(pool)) for u in left_over}
        small = all(_natural(substitute_argument(n, chosen)) for n in numbers) and all(
            0 < _elements(substitute_type(t, chosen)) <= MOST for t in values
        )
        if small or not left_over:
            return chosen
    raise ValueError(f"no sizes were found for an instance of `{rule.name}`")


def _natural(size: Argument) -> bool:
    return isinstance(size, Nat) and size.value is not None and size.value >= 0


def _elements(type_: Type) -> int:
    """How many scalars there are in a value; at most 0 where a size is none."""
    match type_:
        case Array(size, element) | Vector(size, element):
            return max(size.value if size.value is not None else -1, 0) * _elements(element)
        case Pair(first, second):
            parts = _elements(first), _elements(second)
            return sum(parts) if all(parts) else 0
        case Index(size):
            return int((size.value or 0) > 0)
        case _:
            return 1


def _orders(rule: Rule, choose: Choose, solution: Solution) -> Solution:
    """Permutations, with their inverses, for the orders that are left open."""
    found: Solution = {}
    for part in (*subterms(rule.lhs), *subterms(rule.rhs)):
        if not isinstance(part, Primitive) or part.name not in SPECIAL:
            continue
        names = SPECIAL[part.name].arguments
        parameters = [p.name for p in part.declaration.scheme.parameters]
        given = dict(zip(parameters, part.arguments, strict=True))
        if not any(isinstance(given[n], Unknown) and given[n] not in found for n in names):
            continue
        size = substitute_argument(given["n"], solution)
        drawn = SPECIAL[part.name].choose(choose, {NatVariable("n"): size})
        found |= {given[n]: drawn[n] for n in names if isinstance(given[n], Unknown)}
    return found
