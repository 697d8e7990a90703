"""Two programs at small sizes: everything is written out, so that a difference is a counterexample."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rise.constraint import Constraint
from rise.expr import Expr, Identifier
from rise.interpret.evaluate import free_identifiers
from rise.nat import Atom
from rise.symbolic.evaluate import Evaluator
from rise.symbolic.interpretation import Interpretation, Undefined, Word, concatenated
from rise.symbolic.monoids import operators
from rise.symbolic.sizes import assignments
from rise.symbolic.values import Applied, Element, Unmodelled, Value, dimensions, shown
from rise.symbolic.worlds import Numbers, Outside
from rise.types import Function, Pair, Type

ASSIGNMENTS = 12  # sizes at which programs are compared
COMPARED = 600  # elements of each


@dataclass(frozen=True)
class Difference:
    """Where two programs differ: at which sizes, in which element, and what it is in both.

    drawn: primitives, as exp, whose laws the comparison does not know
    """

    sizes: Mapping[Atom, int]
    place: str
    left: str
    right: str
    drawn: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Compared:
    """At how many assignments of sizes two programs were compared, and in how many elements."""

    assignments: int = 0
    elements: int = 0
    difference: Difference | None = None


def compare(left: Expr, right: Expr, asks: Several[Constraint], count: int = ASSIGNMENTS) -> Compared:
    """The first difference at small sizes at which both have a value. Raises Unmodelled."""
    done = elements = 0
    for sizes in islice(assignments(left, right, asks), count):
        for seed in (0, 1):
            try:
                found, seen = _at(left, right, sizes, seed)
            except (Outside, IndexError):
                continue
            elements += seen
            done += seed == 0
            if found is not None:
                return Compared(done, elements, found)
    return Compared(done, elements)


def _at(left: Expr, right: Expr, sizes: Mapping[Atom, int], seed: int) -> tuple[Difference | None, int]:
    evaluator = Evaluator(Numbers(sizes, seed))
    environment = {i.name: evaluator.opaque(i.name, i.type) for i in free_identifiers_of(left, right)}
    first = evaluator.value(left, environment)
    compared = list(islice(_elements(evaluator, left.type, first, ()), COMPARED))
    interpretation = _interpretation(evaluator, seed)
    second = evaluator.value(right, environment)
    seen = 0
    for path, given, element in compared:
        try:
            wanted = interpretation.number(element)
        except Undefined:
            continue
        other = _reached(second, path, given)
        seen += 1
        try:
            agrees = interpretation.number(other) == wanted
        except Undefined:
            agrees = False
        if not agrees:
            place = "".join(str(p) for p in path)
            drawn = frozenset(interpretation.drawn)
            return Difference(sizes, place, shown(element), shown(other), drawn), seen
    return None, seen


def free_identifiers_of(*terms: Expr) -> list[Identifier]:
    """Of several terms, each name once."""
    return list({i.name: i for term in terms for i in free_identifiers(term)}.values())


def _elements(
    evaluator: Evaluator, type_: Type, value: Value, path: tuple[str, ...], given: tuple[Value, ...] = ()
) -> Iterator[tuple[tuple[str, ...], tuple[Value, ...], Element]]:
    """Each element of a value, with its place as text and as what leads to it."""
    indexed = dimensions(type_)
    if indexed is not None:
        for i in range(value.size):
            yield from _elements(evaluator, indexed[1], value.at(i), (*path, f"[{i}]"), (*given, i))
    elif isinstance(type_, Pair):
        for i, part in enumerate((type_.first, type_.second)):
            yield from _elements(evaluator, part, value[i], (*path, f".{i + 1}"), (*given, i))
    elif isinstance(type_, Function):
        argument = evaluator.argument(len(given) + 1, type_.parameter)
        yield from _elements(evaluator, type_.result, value(argument), path, (*given, argument))
    else:
        yield path, given, value


def _reached(value: Value, path: tuple[str, ...], given: tuple[Value, ...]) -> Value:
    for step in given:
        if callable(value):
            value = value(step)
        elif isinstance(value, tuple):
            value = value[step]
        else:
            value = value.at(step)
    return value


def _interpretation(evaluator: Evaluator, seed: int) -> Interpretation:
    meanings: dict[str, Callable[..., Any]] = {}
    neutral: dict[str, Any] = {}

    def first(size: int) -> int:
        if not size:
            raise IndexError
        return 0

    commutative = operators([c for c in evaluator.contracts if c.commutative], evaluator, first)
    for symbol, element in operators(evaluator.contracts, evaluator, first).items():
        if ":" in symbol:
            continue
        match element:
            case Applied("1", ()):
                meanings[symbol] = operator.mul
            case Applied("0", ()):
                meanings[symbol] = operator.add
            case Applied(name):
                meanings[symbol] = operator.add if symbol in commutative else concatenated
                neutral[name] = 0 if symbol in commutative else Word()
            case _:
                raise Unmodelled("a neutral element that is computed")
    return Interpretation(meanings, neutral, seed)
