"""Maps inside each other over rows: as one list of rows, or as one array of matrices."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from rewrites.algorithmic import MAP_FUSION, MAP_IDENTITY
from rewrites.maps import LET_OF_SPLIT, LET_SPLIT, MAP_LAST_FISSION
from rewrites.movement import JOIN_OF_SPLIT, ZIP_MAP_FIRST, ZIP_MAP_SECOND
from rewrites.nests import NEST_AS_LIST
from rewrites.reductions import REDUCE_FLAT_MAP
from rewrites.result import Failure, Result
from rewrites.views import JOIN_MAP, MAP_JOINED, MAP_SPLIT, ROWS_AS_LIST
from rise.expr import Expr, Identifier, Lambda, Primitive, call, subterms
from rise.types import Array, Pair, Scalar, Type, shape
from strategies.core import FunctionStrategy, Strategy, argument, check, choice, normalize, repeat, seq, try_
from strategies.evaluation import bytes_of, has_array, is_expression
from strategies.places import as_one_array, below_shape, mapped

# Measured: rows of up to so many elements are faster if a block has many of them, and threads compute each
SHORT = 512  # where rows are reduced: a warp for each is faster if they are longer
SHORT_WHOLE, LONGEST_HALVES = 64, 128  # where no loop computes an element, of a whole word or of less
WORD, BANKS = 4, 64  # bytes: rows of multiples of BANKS start in few different banks of shared memory


def over_rows(term: Expr) -> Expr | None:
    """f(row) of `xs |> map(row => f(row))`, where a row is an array, or has one; None for other terms.

    It takes no loop to compute xs: a product in it would be stored before.
    """
    match call(term):
        case "map", _, [Lambda(row, body), xs] if has_array(row.type) and is_expression(xs):
            return body
        case _:
            return None


def is_over_rows(term: Expr) -> bool:
    """x => g(x) |> map(row => …): whether what the inner map is over has rows."""
    body = over_rows(term)
    return body is not None and over_rows(body) is not None


def is_over_matrices(term: Expr) -> bool:
    """Whether a map computes matrices, each of an array, or of several."""
    return over_rows(term) is not None and len(shape(term.type)[0]) > 2


def is_deep(term: Expr) -> bool:
    """Whether rows are in arrays in arrays in an array."""
    body = over_rows(term)
    return body is not None and is_over_rows(body)


def is_map_of(function: Lambda) -> bool:
    """Whether a function maps one over its parameter's rows that depends on nothing else of it."""
    match call(function.body):
        case "map", _, [Lambda(row) as inner, Identifier(name)] if has_array(row.type):
            return name == function.parameter.name and name not in inner.free
        case _:
            return False


def are_alone(term: Expr) -> bool:
    """Whether rows of arrays are computed of nothing else of these: a list, of which a block takes any."""
    match call(term):
        case "map", _, [Lambda() as function, _] if is_over_rows(term):
            return is_map_of(function)
        case _:
            return False


def innermost(term: Expr) -> tuple[Identifier, Expr] | None:
    """The row, and what is computed of it, of the innermost of maps over rows; None for other terms."""
    match call(term):
        case "map", _, [Lambda(row, body), _] if over_rows(term) is not None:
            return innermost(body) or (row, body)
        case _:
            return None


def are_short(term: Expr) -> bool:
    """Whether rows are so short that threads of a block compute each, from shared memory."""
    found = innermost(term)
    if found is None:
        return False
    row, body = found
    longest = max(length for length, _ in _rows(row.type))
    if is_expression(body):
        return _computed_from_shared(term, body, longest)
    return longest <= SHORT


def _computed_from_shared(term: Expr, row: Expr, longest: float) -> bool:
    """Whether elements that take no loops are computed faster from what a block brings (measured).

    That is so where they are stored as halves of words; and in short rows that start in different banks.
    """
    sizes, element = shape(term.type)
    if not isinstance(row.type, Array):
        return False
    if len(sizes) > 2 and isinstance(element, Scalar) and element.bytes < WORD:
        return longest <= LONGEST_HALVES
    nested = over_rows(over_rows(term) or term) is not None
    return nested and (bytes_of(row.type) or BANKS) % BANKS != 0 and longest <= SHORT_WHOLE


def _rows(type_: Type) -> Iterator[tuple[float, int]]:
    """Of each array in a type the length, infinite where that is open, and the bytes of elements."""
    match type_:
        case Array(size, element):
            yield inf if size.value is None else size.value, bytes_of(element) or WORD
            yield from _rows(element)
        case Pair(first, second):
            yield from _rows(first)
            yield from _rows(second)
        case _:
            return


# the rows of arrays in arrays as one list, which is split into these
rows_as_list: Strategy = seq(
    check(is_over_rows, "rows_as_list", "no rows are in arrays in an array"),
    NEST_AS_LIST,
    below_shape(try_(FunctionStrategy("rows_as_list", lambda term: rows_as_list(term)))),
)
# the same up to arrays of rows
rows_as_matrices: Strategy = try_(
    seq(
        check(is_deep, "rows_as_matrices", "no rows are in arrays in arrays in an array"),
        NEST_AS_LIST,
        below_shape(FunctionStrategy("rows_as_matrices", lambda term: rows_as_matrices(term))),
    )
)
# what is done with the rows one after the other, and with what is beside them, as one map over rows
in_one_map: Strategy = repeat(choice(MAP_FUSION, ZIP_MAP_FIRST, ZIP_MAP_SECOND))
# rows as one list, also where several maps compute them
listed_rows: Strategy = choice(rows_as_list, seq(mapped(in_one_map), rows_as_list))


def _is_over_computed_matrices(term: Expr) -> bool:
    match call(term):
        case "map", _, [Lambda(), xs]:
            return len(shape(term.type)[0]) > 2 and not is_expression(xs)
        case _:
            return False


# the rows of matrices that loops compute, as one list: what computes them is done with a list, too
chain_as_list: Strategy = seq(
    check(_is_over_computed_matrices, "chain_as_list", "no loop computes matrices whose rows are mapped"),
    ROWS_AS_LIST,
    argument(normalize(choice(JOIN_MAP, MAP_IDENTITY))),
)
of_short_rows: Strategy = seq(
    check(are_short, "of_short_rows", "its rows are long, or elements are computed without loops"),
    rows_as_matrices,
)


def _elements_are_alike(term: Expr) -> bool:
    """Whether no part of a list is told apart, unless the result is split last."""
    return not any(
        isinstance(part, Primitive) and part.name == "split" for part in subterms(as_one_array(term))
    )


def _elements_as_rows(term: Expr) -> Result:
    match call(term):
        case "map", _, [Lambda(matrix, _), _] if isinstance(matrix.type, Array):
            rows = matrix.type.element
            if isinstance(rows, Array):
                lists = seq(MAP_JOINED.with_sizes(n=rows.size), mapped(normalize(choice(*OF_ALL_ELEMENTS))))
                alike = mapped(check(_elements_are_alike, "elements_as_rows", "its rows are told apart"))
                deeper = try_(elements_as_rows)
                return seq(lists, alike, choice(seq(MAP_LAST_FISSION, argument(deeper)), deeper))(term)
    return Failure("elements_as_rows", term, "no matrices are mapped")


# reductions of all elements, and maps of them, whatever rows they are in
OF_ALL_ELEMENTS = (REDUCE_FLAT_MAP, MAP_IDENTITY, JOIN_OF_SPLIT, MAP_SPLIT, LET_SPLIT, LET_OF_SPLIT)
# what is computed of the elements of each matrix, as of rows
#   A |> map(a => e(a |> map(sum) |> sum))  →  A |> map(join) |> map(r => e(r |> sum))
elements_as_rows = FunctionStrategy("elements_as_rows", _elements_as_rows)
# the same of matrices in arrays, which are one list
elements_of_all_as_rows: Strategy = seq(rows_as_list, below_shape(elements_as_rows))
