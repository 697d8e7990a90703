"""Operands with rows that the copying unit does not take: longer copies of them, made by kernels before.

A bulk copy takes rows that start at multiples of 16 bytes, and puts zeros only behind the end of an array.
Where the rows of an operand start elsewhere, or other numbers are behind the last term of a sum, a kernel
copies it to rows as long as whole tiles, with zeros behind their ends, and the product reads the copy.
Along k, zeros add nothing to sums; the rows or columns of the result that zeros along m or n add are dropped.
A sum of products becomes one product: a copy holds all first operands one behind the other, another one all
second operands. An operand that is computed element by element is computed where it is copied.
"""

from __future__ import annotations

from collections.abc import Iterator

from rewrites.elements import NotPointwise, transposed
from rewrites.memory import NOT_STORED
from rewrites.pointwise import pointwise
from rewrites.result import Failure
from rewrites.rounding import EMPTY_AS_ZEROS, ROUND_UP, ROUND_UP_COLUMNS, missing
from rewrites.storing import EACH_STORED, is_global
from rewrites.typed import array_type
from rise.expr import Expr, Identifier, Lambda, Primitive, call, children, subterms
from rise.nat import Nat, divides
from rise.types import Scalar, shape
from strategies.abstraction import outermost_parts
from strategies.contiguity import Contiguity, contiguity_of
from strategies.core import (
    Rewrite,
    Strategy,
    check,
    choice,
    depending,
    id_,
    normalize,
    prints_as_call,
    seq,
    try_,
)
from strategies.default import lowered
from strategies.matmul.products import Product, at_products, is_product, outline, rank, separate_prologue
from strategies.matmul.rounding import Row, longer_inward, longer_operands, row_of
from strategies.matmul.separate import stored, stored_turned
from strategies.matmul.staging import WIDEST
from strategies.matmul.sums import in_one_sum
from strategies.matmul.tiling import MATRIX
from strategies.memory_bound.elementwise import elementwise
from strategies.normal_forms import view_inward
from strategies.places import arguments, computes

NAME = "aligned_operands"
ALIGNED = "the copying unit takes the rows of all operands"
ROWS, COLUMNS = 0, 1  # of the result: along the first operand, and along the second one


@prints_as_call
def aligned_operands(block: tuple[int, int, int]) -> Strategy:
    """Misaligned operands of products copied to rows that are multiples of a block's tile.

    Fails where no operand is misaligned.
    """

    def make(term: Expr) -> Rewrite:
        if not any(misaligned(part, block[2]) for part in outermost_parts(term, is_product)):
            return lambda part: Failure(NAME, part, ALIGNED)
        # sums of products as one: the copies put matrices behind each other
        return seq(
            in_one_sum(block[2], copied=True), at_products(try_(depending(lambda one: _aligned(one, block))))
        )

    return seq(view_inward, outline, separate_prologue, depending(make), normalize(EACH_STORED))


def misaligned(product: Expr, depth: int) -> dict[int, bool]:
    """For each operand that is to be copied, by its number, whether its rows lie along k. depth: of a tile"""
    of = Product.of(product)
    longer = missing(of.length, depth) is not None
    cut = [longer and _is_cut(matrix) for matrix in of.operands]
    sides = enumerate(map(copied_along_k, of.operands, cut))
    return {side: along_k for side, along_k in sides if along_k is not None}


def _is_cut(matrix: Expr, k: int = 1) -> bool:
    """Whether the array that a matrix is part of may go on behind the end of the k-th dimension."""
    match call(matrix):
        case "take", _, [xs]:
            return k == 0 or _is_cut(xs, k)
        case "transpose", _, [xs]:
            return _is_cut(xs, (1, 0)[k] if k < 2 else k)
        case "join", _, [xs]:
            return _is_cut(xs, k + 1) or (k == 0 and _is_cut(xs, 0))
        case "split", _, [xs]:
            return k != 1 and _is_cut(xs, max(0, k - 1))
        case "idx", _, [_, xs]:
            of_parts = (parts := call(xs)) is not None and parts[0] == "split"
            return (of_parts and k == 0) or _is_cut(xs, k + 1)
        case "map", _, [Lambda(_, body), xs]:
            return _is_cut(xs, k) or (k > 0 and _is_cut(body, k - 1))
        case "drop" | "padCst" | "padEmpty", _, [*_, xs]:
            return _is_cut(xs, k)
        case _:
            return False


def _leaves_a_rest(matrix: Expr) -> bool:
    """Whether rows are parts of a list, and its length, or where they start, is not a multiple of theirs."""
    parts = [applied for part in subterms(matrix) if (applied := call(part)) is not None]
    return any(
        not divides(length, distance)
        for name, head, arguments_ in parts
        if name == "split" and arguments_ and isinstance(length := head.arguments[0], Nat)
        for distance in _distances(arguments_[-1])
    )


def _distances(xs: Expr) -> Iterator[Nat]:
    """The length of the list that these elements are part of, and the numbers of elements before them."""
    match call(xs):
        case "drop" | "padCst", head, [*_, ys] if isinstance(start := head.arguments[0], Nat):
            yield start
            yield from _distances(ys)
        case "take" | "padEmpty", _, [ys]:
            yield from _distances(ys)
        case _:
            yield array_type(xs).size


def copied_along_k(matrix: Expr, is_cut: bool = False) -> bool | None:
    """Of an operand with such rows, whether these lie along k; None where the copying unit takes its rows."""
    row = _row(_unpadded(matrix))
    if row is None:
        return None
    taken = row.misaligned(WIDEST) is None and not _of_misaligned(matrix) and not _leaves_a_rest(matrix)
    if taken and not is_cut:
        return None
    return row.contiguity.dimensions[-1]


def _row(matrix: Expr) -> Row | None:
    """The rows of an operand; of one that is computed, those of the largest matrix that is read for it."""
    row = row_of(matrix)
    if row is not None or not computes(matrix):
        return row
    try:
        read = pointwise(matrix)
    except NotPointwise:
        return None
    known = (contiguity_of(read.leaves[leaf], {}) for leaf in read.leaves if all(read.depends(leaf)))
    orders = {each.dimensions for each in known if isinstance(each, Contiguity) and sum(each.dimensions) == 1}
    sizes, element = shape(matrix.type)
    if len(orders) != 1 or not isinstance(element, Scalar):
        return None
    (order,) = orders
    size = sizes[order.index(True)]
    return Row(size, element, Contiguity(order, (size,), computed=True))


def _of_misaligned(matrix: Expr) -> bool:
    """Whether a matrix consists of others behind each other, of which one has such rows."""
    parts = list(subterms(matrix))
    if not any(isinstance(part, Primitive) and part.name == "concat" for part in parts):
        return False
    rows = [row_of(part) for part in parts if isinstance(part, Identifier) and rank(part) == MATRIX]
    return any(row is not None and row.misaligned(WIDEST) is not None for row in rows)


def _unpadded(matrix: Expr) -> Expr:
    """A matrix without what is put behind its ends where it is copied."""
    match call(matrix):
        case "transpose", _, [rows]:
            return transposed(_unpadded(rows))
        case "padCst", _, [_, rows]:
            return _unpadded(rows)
        case "map", _, [Lambda(row, body), rows] if (inner := call(body)) is not None:
            return _unpadded(rows) if inner[0] == "padCst" and inner[2][-1] == row else matrix
        case _:
            return matrix


def _aligned(product: Expr, block: tuple[int, int, int]) -> Rewrite:
    sides = misaligned(product, block[2])
    if not sides:
        return lambda term: Failure(NAME, term, ALIGNED)
    rows, columns = (missing(size, tile) for size, tile in zip(shape(product.type)[0], block, strict=False))
    longer = []
    if sides.get(ROWS) is False and rows is not None:
        longer.append(ROUND_UP.with_sizes(p=rows))
    if sides.get(COLUMNS) is False and columns is not None:
        longer.append(ROUND_UP_COLUMNS.with_sizes(p=columns))
    inward = seq(longer_inward, normalize(EMPTY_AS_ZEROS), depending(lambda inner: _copied(inner, sides)))
    return seq(
        longer_operands(block[2]) if any(sides.values()) else id_,
        *(arguments(number, rule) for number, rule in enumerate(longer)),
        arguments(len(longer), inward),
    )


def _copied(product: Expr, sides: dict[int, bool]) -> Rewrite:
    operands = Product.of(product).operands
    return seq(*(_in_rows(operands[side], along_k) for side, along_k in sides.items()))


def _in_rows(matrix: Expr, along_k: bool) -> Strategy:
    """An operand stored in the order in which it is read, of which it may be the transposed one."""
    applied = call(matrix)
    if along_k:
        return stored(matrix)
    if applied is not None and applied[0] == "transpose":
        return stored(applied[2][0])
    return stored_turned(matrix)


def _is_copied_again(term: Expr) -> bool:
    return is_global(term) and copied_along_k(children(term)[-1]) is not None


# operands that are stored, and would be copied: they are computed where they are copied
computed_in_copies: Strategy = normalize(
    seq(check(_is_copied_again, "computed_in_copies", "it is not a matrix that is copied again"), NOT_STORED)
)
# the kernel that copies an operand
copied = choice(elementwise(), lowered)
