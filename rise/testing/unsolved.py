"""What the sides of a rule leave open: sizes, types, functions. It is read once for each rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rise.expr import Expr, Literal, Primitive, subterms
from rise.interpret.evaluate import free_identifiers
from rise.nat import Nat, NatUnknown, NatVariable, Operation, atom, constant
from rise.testing.operands import SPECIAL
from rise.testing.sizes import Sizes, largest
from rise.types import (
    Argument,
    Array,
    Fragment,
    Function,
    Index,
    Kind,
    NatFunction,
    Pair,
    Type,
    Unknown,
    Vector,
    unknowns,
)


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
    @property
    def rounds(self) -> bool: ...
    def with_sizes(self, **sizes: Any) -> Any: ...


@dataclass(frozen=True)
class Unsolved:
    """What the sides of a rule leave open.

    given:   the types of the free names of the left side
    kinds:   every unknown but sizes, with its kind
    scalars: types that have to be numbers
    sizes:   the unknown sizes, and what is asked of them
    orders:  calls with arguments that are chosen together, as an order and its inverse
    needed:  the parameters that the left side does not determine
    """

    given: Mapping[str, Type]
    kinds: Mapping[Unknown, Kind]
    scalars: frozenset[Unknown]
    sizes: Sizes
    orders: tuple[Primitive, ...]
    needed: tuple[str, ...]


_READ: dict[str, tuple[Expr, Unsolved]] = {}


def unsolved(rule: RuleLike) -> Unsolved:
    known = _READ.get(rule.name)
    if known is None or known[0] is not rule.lhs:
        known = _READ[rule.name] = rule.lhs, _unsolved(rule)
    return known[1]


def _unsolved(rule: RuleLike) -> Unsolved:
    parts = [part for side in (rule.lhs, rule.rhs) for part in subterms(side)]
    types = dict.fromkeys(part.type for part in parts)
    given = [(argument, kind) for part in parts for argument, kind in _arguments(part)]
    kinds = {u: Kind.DATA for t in types for u in unknowns(t) if isinstance(u, Unknown)}
    kinds |= {
        f.kind: Kind.FRAGMENT for t in types for f in _inside(t, Fragment) if isinstance(f.kind, Unknown)
    }
    kinds |= {a: kind for a, kind in given if isinstance(a, Unknown)}
    return Unsolved(
        {i.name: i.type for i in free_identifiers(rule.lhs)},
        dict(sorted(kinds.items(), key=lambda item: item[0].identity)),
        frozenset(_scalars(parts)),
        _sizes(
            [*types],
            [a for a, _ in given if isinstance(a, Nat)],
            [a.body for a, _ in given if isinstance(a, NatFunction)],
        ),
        tuple(part for part in parts if isinstance(part, Primitive) and _is_order(part)),
        tuple(_needed(rule)),
    )


def _arguments(part: Expr) -> Iterator[tuple[Argument, Kind]]:
    if isinstance(part, Primitive):
        parameters = part.declaration.scheme.parameters
        yield from zip(part.arguments, (p.kind for p in parameters), strict=True)


def _inside(type_: Any, wanted: type) -> Iterator[Any]:
    if isinstance(type_, wanted):
        yield type_
    for name in getattr(type(type_), "__match_args__", ()) if not isinstance(type_, Nat | Unknown) else ():
        yield from _inside(getattr(type_, name), wanted)


def _is_order(part: Primitive) -> bool:
    return part.name in SPECIAL and any(
        isinstance(a, Unknown) for a in named(part, SPECIAL[part.name].arguments)
    )


def named(part: Primitive, names: tuple[str, ...]) -> list[Argument]:
    """The dependent arguments of those names."""
    parameters = [p.name for p in part.declaration.scheme.parameters]
    return [part.arguments[parameters.index(name)] for name in names]


# --- types ----------------------------------------------------------------------------------------------

ARITHMETIC = "rise.interpret.operations"


def _scalars(parts: list[Expr]) -> Iterator[Unknown]:
    """Unknown types of literals, of operands of arithmetic, of the elements of vectors and fragments."""
    for part in parts:
        found: list[Any] = [part.type] if isinstance(part, Literal) else []
        if isinstance(part, Primitive) and part.declaration.denotation.__module__ == ARITHMETIC:
            found += part.arguments
        found += [v.element for v in _inside(part.type, Vector)]
        found += [u for f in _inside(part.type, Fragment) for u in unknowns(f.element)]
        yield from (u for u in found if isinstance(u, Unknown))


# --- sizes ----------------------------------------------------------------------------------------------


def _sizes(types: list[Type], numbers: list[Nat], functions: list[Nat]) -> Sizes:
    """What is asked of sizes. functions: bodies of functions of indices, which divide by numbers above 0."""
    values = [t for t in types if not isinstance(t, Function | Unknown)]
    within = {u for t in types for u in unknowns(t)}
    sizes = {u for u in within if isinstance(u, NatUnknown)}.union(*(n.unknowns for n in numbers))
    others = {standing(u) for u in within if isinstance(u, Unknown)}
    sizes |= {u for n in functions for u in n.unknowns}
    positive = dict.fromkeys([*(s for t in values for s in _lengths(t)), *_divisors(functions)])
    return Sizes(
        (*sorted(sizes, key=lambda u: u.identity), *sorted(others, key=lambda v: v.name)),
        len(sizes),
        tuple(n for n in dict.fromkeys(numbers) if n not in positive),
        tuple(positive),
        largest(map(_extent, values)),
    )


def _divisors(numbers: list[Nat]) -> Iterator[Nat]:
    """The sizes that quotients and remainders have as divisors, at any depth."""
    for number in numbers:
        for base in (base for monomial, _ in number.terms for base, _ in monomial):
            if isinstance(base, Operation):
                if base.operator in ("quotient", "remainder") and not base.right.variables:
                    yield base.right
                yield from _divisors([base.left, base.right])


def standing(unknown: Unknown) -> NatVariable:
    """What stands for the number of scalars in data of an unknown type."""
    return NatVariable(str(unknown))


def _lengths(type_: Type) -> Iterator[Nat]:
    """The sizes of the arrays, vectors and fragments in data, and of the ranges of indices."""
    for part in (Array, Vector, Index):
        yield from (found.size for found in _inside(type_, part))
    for fragment in _inside(type_, Fragment):
        yield from (fragment.rows, fragment.columns, fragment.other)


def _extent(type_: Type) -> Nat:
    """How many scalars there are in a value."""
    match type_:
        case Array(size, element) | Vector(size, element):
            return size * _extent(element)
        case Fragment(rows, columns, _, element, _):
            return rows * columns * _extent(element)
        case Pair(first, second):
            return _extent(first) + _extent(second)
        case Unknown():
            return atom(standing(type_))
        case _:
            return constant(1)


def _needed(rule: RuleLike) -> Iterator[str]:
    """The sizes that have to be given, since the left side does not determine them.

    A size is determined where a size of the left side has no other unknown in it.
    """
    parts = [*subterms(rule.lhs)]
    left = {a for part in parts for a, _ in _arguments(part) if isinstance(a, Nat)}
    left |= {size for part in parts for size in _inside(part.type, Nat)}
    known: set[NatUnknown] = set()
    for name, unknown in rule.sizes.items():
        while found := {u for s in left if len(s.unknowns - known) == 1 for u in s.unknowns - known}:
            known |= found
        if unknown not in known:
            known.add(unknown)
            yield name
