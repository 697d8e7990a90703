"""What a mask leaves of the scores: how many blocks of columns a tile of rows visits, and how many it cuts.

Conditions on the numbers of rows and columns are evaluated at some rows and columns of each block.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from rewrites.folds import System, is_lowest, operator_name
from rise.expr import Expr, Identifier, Literal, call

TILES, POINTS = 16, 4  # tiles of rows that are looked at; rows of a tile, and columns of a block
OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "and": np.logical_and, "or": np.logical_or, "not": np.logical_not,
}  # fmt: skip


@dataclass(frozen=True)
class Mask:
    """A condition under which there is a score for a row and a column, by their names."""

    condition: Expr
    row: str
    column: str

    @cache  # noqa: B019  # as many as programs
    def blocks(self, rows: int, columns: int, height: int, width: int) -> tuple[float, float]:
        """How many of the blocks of so many columns a tile of so many rows visits, and partly, on average.

        height, width: rows and columns that there are
        """
        tiles, count = -(-height // rows), -(-width // columns)
        starts = np.unique(np.linspace(0, tiles - 1, min(tiles, TILES)).astype(int)) * rows
        i, j = _points(starts, rows, height), _points(np.arange(count) * columns, columns, width)
        numbers = {self.row: i[:, None, :, None], self.column: j[None, :, None, :]}
        shape = (len(starts), count, i.shape[1], j.shape[1])
        there = np.broadcast_to(_value(self.condition, numbers), shape)
        some, every = there.any(axis=(2, 3)), there.all(axis=(2, 3))
        return float(some.sum(1).mean()), float((some & ~every).sum(1).mean())


def _points(starts: Any, size: int, end: int) -> Any:
    offsets = np.unique(np.linspace(0, size - 1, POINTS).astype(int))
    return np.minimum(starts[:, None] + offsets[None, :], end - 1)


def mask_of(found: System) -> Mask | None:
    """The mask of the scores of which there is a maximum; None without one, or if it uses other numbers."""
    for fold in found.folds:
        match call(fold.body) if operator_name(fold.operator) == "max" else None:
            case "select", _, [condition, _, lowest] if is_lowest(lowest) and _is_known(condition):
                return Mask(condition, found.row.name, fold.index.name)
    return None


def _is_known(condition: Expr) -> bool:
    try:
        _value(condition, dict.fromkeys(condition.free, np.zeros(1, int)))
    except _Unknown:
        return False
    return True


class _Unknown(Exception):
    """A part of a condition that is not computed from numbers of rows and columns."""


def _value(term: Expr, numbers: Mapping[str, Any]) -> Any:
    match term, call(term):
        case Literal(int() as value), _:
            return value
        case _, ("indexToInt", _, [Identifier(name)]) if name in numbers:
            return numbers[name]
        case _, (name, _, operands) if name in OPERATIONS:
            return OPERATIONS[name](*(_value(part, numbers) for part in operands))
        case _:
            raise _Unknown
