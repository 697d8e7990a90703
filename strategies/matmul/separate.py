"""Where a program around products is cut into kernels: values that must be complete are stored globally.

A block computes a tile of a product. What needs more than a tile (a row of a softmax, the operand of another
product) reads the product from global memory, so a kernel ends there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from rewrites.algorithmic import GENERATE_MAP, MAP_CONSTANT, MAP_FUSION, MAP_IDENTITY
from rewrites.beside import beside
from rewrites.memory import IN_GLOBAL
from rewrites.movement import CONSTANT_ROWS, ZIP_CONSTANT_FIRST, ZIP_CONSTANT_SECOND
from rewrites.pointwise import POINTWISE_EACH
from rewrites.result import Failure, Result, Success
from rewrites.storing import EACH_STORED, GLOBAL_FIRST, is_global
from rewrites.sums import DIFFERENCE_AS_SUM
from rewrites.views import TRANSPOSE_PAIR
from rise.expr import (
    Expr,
    Lambda,
    Primitive,
    alpha_equal,
    application,
    call,
    children,
    closed_parts,
    subterms,
)
from rise.normal import is_view
from rise.types import Array, Pair, Scalar, shape
from strategies.abstraction import outermost_parts
from strategies.contiguity import Contiguity, contiguity_of
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    check,
    choice,
    depending,
    normalize,
    prints_as_call,
    seq,
    top_down,
    try_,
)
from strategies.evaluation import closed_in, is_expression
from strategies.matmul.kernels import has_product
from strategies.matmul.products import (
    Product,
    at_parts,
    contains,
    in_one_matrix,
    is_product,
    operands,
    outline,
    rank,
    reads_a_result,
    separate_prologue,
)
from strategies.matmul.requirements import scattered_part
from strategies.matmul.staging import WIDEST
from strategies.matmul.tiling import MATRIX
from strategies.normal_forms import view_inward
from strategies.places import arguments, as_one_array, computes, mapped
from strategies.result_views import computed_in

NAME = "separate_kernels"
ACROSS = 2  # bytes of numbers that warpgroups read across k, too
COLUMNS = (True, False)  # are contiguous, and rows are not
BOX = (64, 128)  # numbers in a row of a tile, and rows: of most


@prints_as_call
def stored(part: Expr) -> Strategy:
    """This part of a term in global memory, once for all places that compute the same."""

    def everywhere(term: Expr) -> Strategy:
        same = [each for each in closed_parts(term) if each is part or alpha_equal(each, part)]
        return at_parts(lambda each: any(each is one for one in same), "stored", "another part", IN_GLOBAL)

    return depending(everywhere)


@prints_as_call
def stored_turned(part: Expr) -> Strategy:
    """The same, transposed: what a matrix is computed from is read and written row by row."""
    return _at(part, seq(TRANSPOSE_PAIR, argument(seq(view_inward, IN_GLOBAL))))


def _at(part: Expr, s: Rewrite) -> Strategy:
    return top_down(seq(check(lambda term: term is part, "stored", "another part"), s))


def _result(term: Expr) -> Result:
    """The largest part that one kernel computes, where the rest takes loops."""

    def complete(part: Expr) -> bool:
        inside = part is not term and isinstance(part.type, Array) and not is_zip(part)
        return inside and not is_view_of_data(part) and is_one_kernel(part)

    part = None if is_one_kernel(term) else next(filter(complete, closed_parts(term)), None)
    return _stored(term, part, "one kernel computes all of it, or there is no product")


def _reduction(term: Expr) -> Result:
    """An array that takes loops to compute and no product: the norms of rows beside a product of them."""

    def complete(part: Expr) -> bool:
        inside = part is not term and isinstance(part.type, Array) and not is_zip(part)
        takes_loops = inside and not is_view_of_data(part) and not is_expression(part)
        return takes_loops and not has_product(part) and not is_longer(part)

    beside = isinstance(term.type, Array) and not is_one_kernel(term) and has_product(term)
    part = next(filter(complete, closed_parts(term)), None) if beside else None
    return _stored(term, part, "no loops are beside a product")


def is_longer(term: Expr) -> bool:
    """Whether a term makes a row of each element without loops: then the elements are what is stored."""
    match call(term):
        case "map", _, [Lambda(_, body), _]:
            return isinstance(body.type, Array) and is_expression(body)
        case _:
            return False


def is_zip(term: Expr) -> bool:
    """Whether a term is arrays beside each other, each of which is stored by itself."""
    applied = call(term)
    return applied is not None and applied[0] == "zip"


@lru_cache(maxsize=128)  # each way to cut a program asks it of the same parts
def is_one_kernel(term: Expr) -> bool:
    """Whether all loops of a term are products, once these are matrices, or reduce the rows of such."""
    if not is_array_of_sums(term) or reads_a_result(term):
        return False
    if beside(term) is not None:
        return True
    inner = computed_in(term)
    if inner is not None and inner is not term:
        return is_one_kernel(inner)
    listed = POINTWISE_EACH(term) if rank(term) > MATRIX + 1 else None
    if isinstance(listed, Success):
        return is_one_kernel(as_one_array(listed.term))
    outlined = seq(view_inward, outline)(term)
    if not isinstance(outlined, Success) or not contains(is_product)(outlined.term):
        return False
    return pointwise(outlined.term) and (rank(term) != 2 or in_one_matrix(outlined.term))


def is_array_of_sums(term: Expr) -> bool:
    """Whether a term may be computed from products: a cheap check."""
    return any(isinstance(part, Primitive) and part.name == "reduce" for part in subterms(term))


def _operand(term: Expr) -> Result:
    """An operand that takes loops to compute: the result of another product, or of a reduction."""
    closed = closed_in(term)
    for product in outermost_parts(term, is_product):
        for matrix in Product.of(product).operands:
            if not is_expression(matrix) and closed(matrix):
                return _stored(term, without_views(matrix), "")
    return Failure(NAME, term, "every operand is in memory, or computed point by point")


def _computed(term: Expr) -> Result:
    """An operand that is computed point by point, or one that warpgroups do not read as it lies."""
    closed = closed_in(term)
    for matrix in (matrix for both in operands(term) for matrix in both if closed(matrix)):
        across = not all(contiguous(matrix)[-1:])
        if (across and not read_across(matrix)) or not in_boxes(matrix):
            return _stored(term, matrix, "")
        if computes(matrix):
            part = without_views(matrix)
            return (stored_turned if contiguous(part) == COLUMNS else stored)(part)(term)
    return Failure(NAME, term, "every operand is in memory, as instructions read it")


def in_boxes(matrix: Expr) -> bool:
    """Whether tiles of an operand are boxes of an array, or of a copy that is made in any case."""
    sizes, element = shape(matrix.type)
    if len(sizes) != MATRIX:
        return True  # rows that are arrays themselves are no operand of instructions
    if (adjacent := contiguous(matrix)) and not any(adjacent):
        return False  # one of the numbers of each element, whose neighbours are elsewhere
    length = sizes[-1]
    size = element.bytes if isinstance(element, Scalar) else 1
    copied = length.value is None or length.value * size % WIDEST != 0
    return copied or scattered_part(matrix, BOX) is None


def contiguous(matrix: Expr) -> tuple[bool, ...]:
    """Whether an operand's columns, and whether its rows, are contiguous in what it is computed from."""
    known = contiguity_of(matrix, {})
    return known.dimensions if isinstance(known, Contiguity) else ()


def read_across(matrix: Expr) -> bool:
    """Whether warpgroups read such numbers across k."""
    _, element = shape(matrix.type)
    return not isinstance(element, Scalar) or element.bytes == ACROSS


def _mapped_product(term: Expr) -> Result:
    """A product each of whose rows a function takes as a whole, also beside other arrays."""
    match call(term):
        case "map", _, [_, xs]:
            part = next(filter(is_product, _zipped(xs)), None)
            return _stored(term, part, "no rows of a product are mapped")
        case _:
            return Failure(NAME, term, "expected a map")


def _zipped(xs: Expr) -> Iterator[Expr]:
    """The arrays that are beside each other."""
    if is_zip(xs):
        for part in application(xs)[2]:
            yield from _zipped(part)
    else:
        yield xs


def _is_product_of_data(term: Expr) -> bool:
    """Whether a term is a product, and not reductions of the rows of others, which have the same form."""
    return is_product(term) and not any(is_product(part) for part in subterms(term) if part is not term)


def _first_product(term: Expr) -> Result:
    inside = (part for part in outermost_parts(term, _is_product_of_data) if part is not term)
    part = next(filter(closed_in(term), inside), None)
    return _stored(term, part, "no product stands beside something else")


def _stored(term: Expr, part: Expr | None, reason: str) -> Result:
    return stored(part)(term) if part is not None else Failure(NAME, term, reason)


@prints_as_call
def of_each(s: Strategy) -> Strategy:
    """s; where it fails, s for the elements of an array: `stored_of_each`."""
    return choice(s, stored_of_each(s))


@prints_as_call
def stored_of_each(s: Strategy) -> Strategy:
    """s for the elements of an array, and what it stores of one is stored of all.

    before: xs |> map(x => A·B)
    after:  zip(xs |> map(x => A) |> toMem(Global))(xs) |> map((A, x) => A·B), where s stores A
    """
    first = check(lambda term: isinstance(GLOBAL_FIRST(term), Success), "of_each", "it is not stored before")
    return seq(view_inward, mapped(s), normalize(EACH_STORED), first)


def repeats_loops(term: Expr) -> bool:
    """Whether the elements of a generated row would each be computed by the same loops."""
    match call(term):
        case "map", _, [Lambda(_, body), _]:
            row = call(body)
            return row is not None and row[0] == "generate" and not is_expression(row[2][0])
        case _:
            return False


# the element of a row of equal ones that take loops: computed once, then repeated
computed_once = seq(check(repeats_loops, "computed_once", "no row takes loops"), CONSTANT_ROWS)
# products outlined, and what is the same for each element of an array computed once for all of them
SAME = (MAP_IDENTITY, MAP_CONSTANT, GENERATE_MAP, ZIP_CONSTANT_FIRST, ZIP_CONSTANT_SECOND)
outlined = seq(view_inward, outline, normalize(choice(*SAME, computed_once)))
# the reductions of an operand's rows that scale rows of the product
rows_stored = seq(
    outlined,
    FunctionStrategy("_reduction", _reduction),
    top_down(seq(check(is_global, "stored", "it is not stored"), argument(try_(MAP_FUSION)))),
)
# what no block can compute on the way is computed before: results that are read as a whole, then operands
separate_kernels = choice(
    seq(view_inward, FunctionStrategy("_reduction", _reduction)),
    rows_stored,
    seq(view_inward, FunctionStrategy("_result", _result)),
    seq(
        check(has_product, NAME, "there is no product"),
        stored_of_each(seq(view_inward, FunctionStrategy("_result", _result))),
    ),
    seq(view_inward, FunctionStrategy("_operand", _operand)),
    seq(outlined, FunctionStrategy("_operand", _operand)),
    FunctionStrategy("_result", _result),  # which views that move inward may take apart
)
# the operands that are computed point by point, or turned, each by a kernel before
operands_stored = of_each(
    seq(view_inward, outline, separate_prologue, FunctionStrategy("_computed", _computed))
)
# products that are taken off others are added, with operands that kernels before negate
differences_stored = seq(
    view_inward,
    outline,
    depending(
        lambda term: arguments(2, DIFFERENCE_AS_SUM) if isinstance(term.type, Pair) else DIFFERENCE_AS_SUM
    ),
)
# the first product alone, where no schedule takes it together with what is done with it: the one whose rows
# are mapped, or any in it
product_stored = choice(
    of_each(FunctionStrategy("_mapped_product", _mapped_product)),
    of_each(seq(view_inward, outline, FunctionStrategy("_first_product", _first_product))),
)


def pointwise(term: Expr) -> bool:
    """Whether a term computes nothing but its products by loops."""
    return is_product(term) and all(map(is_expression, Product.of(term).operands)) or _pointwise(term)


def _pointwise(term: Expr) -> bool:
    if isinstance(term, Primitive):
        return is_expression(term)
    return all(map(pointwise, children(term)))


def without_views(term: Expr) -> Expr:
    """What is rearranged: the data under views."""
    while is_view_of_data(term):
        term = application(term)[2][-1]
    return term


def is_view_of_data(term: Expr) -> bool:
    """Whether a term only rearranges one array."""
    applied = call(term)
    if applied is None or not applied[2] or not applied[1].declaration.view:
        return False
    *others, _ = applied[2]
    return all(is_view(other) for other in others) and applied[0] not in ("zip", "pair", "generate", "concat")
