"""Operators whose sums may be reordered: those of arithmetic, and those that `reduce` is given.

`reduce` asks that its operator is associative and commutative and has a neutral element. Where the elements
are arrays, as in `reduce(zip(a)(b) |> map(op))`, the operator on their elements has the same properties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from rise.symbolic.evaluate import Evaluator
from rise.symbolic.values import (
    FALSE,
    TRUE,
    Applied,
    Contract,
    Element,
    Member,
    Path,
    Sequence,
    Unmodelled,
    Value,
    Whole,
    at,
)

# by the name of the primitive; maxima and minima of nothing have no value
ARITHMETIC: Mapping[str, Element | None] = {
    "add": Applied("0"),
    "mul": Applied("1"),
    "min": None,
    "max": None,
    "and": TRUE,
    "or": FALSE,
}
Operators = Mapping[str, Element | None]


def operators(
    contracts: Iterable[Contract], evaluator: Evaluator, index: Callable[[Whole], Whole]
) -> Operators:
    """The operators that reductions are given, on single elements, with what is neutral.

    index: some index below a size
    """
    found: dict[str, Element | None] = {}
    for contract in contracts:
        found.update(contract_operators(evaluator, contract, index))
    return found


def contract_operators(
    evaluator: Evaluator, contract: Contract, index: Callable[[Whole], Whole]
) -> Iterator[tuple[str, Element | None]]:
    """Those of one reduction, a pair for each element of its accumulator."""
    names = evaluator.world.name("a"), evaluator.world.name("b")
    first, second = (evaluator.opaque(name, contract.type) for name in names)
    combined = contract.operator(first)(second)
    for path in _paths(combined, index):
        result, neutral = at(combined, path), at(contract.neutral, path)
        match result:
            case Applied(symbol, (Applied() as left, Applied() as right)):
                operands = {left.symbol.split(".")[0], right.symbol.split(".")[0]}
                if operands == set(names) and left.arguments == right.arguments == _indices(path):
                    yield symbol, neutral


def _indices(path: Path) -> tuple[Whole, ...]:
    return tuple(place for place in path if isinstance(place, int) or hasattr(place, "get_id"))


def _paths(value: Value, index: Callable[[Whole], Whole]) -> Iterator[Path]:
    """A path to one element of each kind."""
    match value:
        case Sequence(size):
            try:
                place = index(size)
                yield from ((place, *path) for path in _paths(value.at(place), index))
            except (IndexError, Unmodelled):
                return
        case tuple():
            for place, part in enumerate(value):
                yield from ((Member(place), *path) for path in _paths(part, index))
        case _:
            yield ()


def neutral_of(symbol: str, given: Operators) -> Element | None:
    return given.get(symbol, ARITHMETIC.get(symbol.split(":", maxsplit=1)[0]))


def is_operator(symbol: str, given: Operators) -> bool:
    return symbol in given or symbol.split(":", maxsplit=1)[0] in ARITHMETIC
