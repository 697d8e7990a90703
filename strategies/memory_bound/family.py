"""Which of the memory-bound strategies fits a program, by its structure: what its loops are over, and how.

It is asked for programs of one kernel. The strategy may still fail, by name, where a part of the program is
beyond it; `default` takes any program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewrites.result import Result, Success
from rise.expr import Apply, Expr, Lambda, Primitive, application, call, children, subterms
from rise.types import Array, Index, Pair, Scalar, Type, shape
from strategies.contiguity import Contiguity, Known, contiguity_of
from strategies.core import FunctionStrategy, Strategy
from strategies.evaluation import has_levels, is_expression
from strategies.loops.nests import nearest
from strategies.memory_bound.blocks import MATRIX, reduced_length
from strategies.memory_bound.columns import columns, has_long_columns
from strategies.memory_bound.elementwise import elementwise
from strategies.memory_bound.reduction import reduction
from strategies.memory_bound.rows import rows
from strategies.memory_bound.stencil import stencil
from strategies.memory_bound.transposition import TILE, transposition
from strategies.nests import is_map_of
from strategies.result_views import gives_parts

# rows whose parts are used are read again: a thread needs what others would keep
KEPT_OR_READ_AGAIN: tuple[Mapping[str, Any], ...] = ({}, {"keep": False})
# a thread that computes fewer elements at once needs fewer registers
WIDE_OR_NARROW: tuple[Mapping[str, Any], ...] = ({}, {"vector": 4}, {"vector": 2}, {"vector": 1})


@dataclass(frozen=True)
class Fitting:
    """A strategy, and in a line why it fits. parameters: those to try, in this order"""

    strategy: Strategy
    reason: str
    parameters: tuple[Mapping[str, Any], ...] = ({},)

    def __str__(self) -> str:
        return f"{self.strategy.name}: {self.reason}"


def fitting(term: Expr) -> Fitting | None:
    """The strategy for a program, under the lambdas of its inputs; None where no memory-bound one fits."""
    while isinstance(term, Lambda):
        term = term.body
    while gives_parts(term):
        term = application(term)[2][-1]
    if has_levels(term):
        return None
    if is_expression(term):
        return _of_elements(term)
    if isinstance(term.type, Array):
        loop = _loop_of(term)
        return _of_rows(loop) if loop is not None else None
    if isinstance(term.type, Scalar | Index) and _is_rowwise(term):
        return Fitting(reduction(), "one number is computed of reductions")
    return None


def _of_elements(term: Expr) -> Fitting | None:
    """For a program whose elements are computed without a loop."""
    sizes, element = shape(term.type)
    if not sizes:
        return None
    by_elements = Fitting(elementwise(), "each element is computed by itself", WIDE_OR_NARROW)
    if not isinstance(element, Scalar):
        return by_elements
    if len(sizes) == MATRIX and _columns_are_contiguous(term):
        return Fitting(transposition(), "columns of the result are contiguous in what is read")
    if (
        len(sizes) == MATRIX + 1
        and _columns_are_contiguous(term, 1)
        and all((n.value or TILE) >= TILE for n in sizes[1:])
    ):
        return Fitting(transposition(), "columns of each matrix are contiguous in what is read")
    if len(sizes) == MATRIX and any(isinstance(p, Primitive) and p.name == "slide" for p in subterms(term)):
        return Fitting(stencil(), "elements of a matrix are computed of windows, which neighbours share")
    return by_elements


def _of_rows(loop: Expr) -> Fitting | None:
    """For a map over the rows of an array, or a nest of maps over rows of rows."""
    applied = call(loop)
    if applied is None or applied[0] != "map":
        return None
    function, array = applied[2]
    if not isinstance(function, Lambda) or not _has_array(function.parameter.type):
        return None
    if is_map_of(function):
        return _of_rows(function.body)
    if not is_expression(array):
        return None  # rows take loops to compute
    if not _is_rowwise(function.body) or len(shape(function.body.type)[0]) > 1:
        return None
    if is_over_columns(loop):
        is_long = not _has_array(function.body.type) and has_long_columns(loop)
        return Fitting(columns(), "each column is reduced by itself") if is_long else None
    if _reduces(function.body):
        return Fitting(reduction(), "each row is reduced to one number")
    return Fitting(rows(), "each row is computed by itself, with reductions of it", KEPT_OR_READ_AGAIN)


def _is_rowwise(term: Expr) -> bool:
    """Whether all that takes loops in a row's function is reductions, none of them once for each element."""
    if is_expression(term):
        return True
    if isinstance(term, Lambda | Primitive):
        return False
    if _reduces(term):
        return all(map(is_expression, application(term)[2]))
    if isinstance(term, Apply) and isinstance(term.function, Lambda):
        return _is_rowwise(term.function.body) and _is_rowwise(term.argument)
    applied = call(term)
    if applied is not None and applied[0] == "let" and isinstance(applied[2][1], Lambda):
        return _is_rowwise(applied[2][0]) and _is_rowwise(applied[2][1].body)
    return all(map(_is_rowwise, children(term)))


def _has_array(type_: Type) -> bool:
    match type_:
        case Pair(first, second):
            return _has_array(first) or _has_array(second)
        case _:
            return isinstance(type_, Array)


def _reduces(term: Expr) -> bool:
    return reduced_length(term) is not None


def _columns_are_contiguous(term: Expr, arrays: int = 0) -> bool:
    """Of a matrix; or of each of the matrices in arrays, of so many dimensions."""
    known = contiguity_of(term, {})
    return isinstance(known, Contiguity) and known.dimensions == (*(False,) * arrays, True, False)


def is_over_columns(loop: Expr) -> bool:
    """Whether a map's rows are columns in memory: neighbours have neighbouring elements."""
    applied = call(loop)
    known = _parts(contiguity_of(applied[2][1], {})) if applied is not None and applied[0] == "map" else []
    matrices = [each.dimensions for each in known if len(each.dimensions) == MATRIX]
    return bool(matrices) and all(dimensions == (True, False) for dimensions in matrices)


def _parts(known: Known) -> list[Contiguity]:
    """What is known of each member of tuples."""
    match known:
        case Contiguity():
            return [known]
        case (first, second):
            return _parts(first) + _parts(second)
        case _:
            return []


def _loop_of(term: Expr) -> Expr | None:
    """The loop that makes a term's value, below views of it."""
    found: list[Expr] = []

    def note(loop: Expr) -> Result:
        found.append(loop)
        return Success(loop)

    nearest(FunctionStrategy("note", note))(term)
    return found[0] if found else None
