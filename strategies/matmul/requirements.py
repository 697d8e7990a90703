"""What instructions and copies require of operands and results, checked before anything is derived.

Where `constraints` knows parameters only, this looks at the products: the layout of operands, the
types of elements, the epilogue. It also refuses programs that are more than products of matrices: chains of
products, and operands that are sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rewrites.result import Failure, Result, Success
from rewrites.typed import array_type
from rise.expr import Apply, Expr, Lambda, alpha_equal, application, call, substitute, subterms
from rise.instructions import Family, family
from rise.nat import Nat, divides
from rise.types import Array, Scalar, shape
from strategies.abstraction import outermost_parts
from strategies.contiguity import Contiguity, Known, contiguity_of
from strategies.core import FunctionStrategy, Strategy, prints_as_call
from strategies.matmul import constraints
from strategies.matmul.columns import columns_of, reduced_matrix
from strategies.matmul.products import Product, is_product, operands
from strategies.matmul.rounding import row_of
from strategies.matmul.schedule import Schedule
from strategies.matmul.staging import WIDEST, TileCopy, tiles_copied
from strategies.places import outermost_part

ORDINAL = ("first", "second")
WMMA_START, WMMA_ROWS = 32, 16  # bytes that tiles start at, and that their rows are apart, multiples of
AT_ONCE = (4, 8, 16)  # bytes that an asynchronous copy moves
LARGEST_BOX = 256  # rows that the copying unit brings at once
# views through which a tile is not a box of an array
SCATTERED = frozenset({"slide", "gather", "reorder", "padClamp", "makeArray", "scatter"})


@dataclass(frozen=True)
class Refusal:
    """Why a schedule does not fit a program, what helps, and which part of the program it is."""

    reason: str
    hint: str | None
    part: Expr


Check = Callable[["Subject"], Iterator[Refusal]]


@dataclass(frozen=True)
class Subject:
    """A matrix around products, outlined."""

    term: Expr
    schedule: Schedule

    @property
    def copies(self) -> TileCopy | None:
        """Of tiles of operands, if they go through shared memory."""
        return tiles_copied(self.schedule)

    @property
    def products(self) -> list[Expr]:
        return outermost_parts(self.term, is_product)

    @property
    def sides(self) -> Iterator[tuple[Expr, int]]:
        """Every operand of a product, and whether it is the first or the second one."""
        for both in operands(self.term):
            yield from zip(both, (0, 1), strict=True)

    @property
    def of_wmma(self) -> bool:
        return family(self.schedule.fragment) is Family.WMMA


@prints_as_call
def fulfils(schedule: Schedule, checks: tuple[Check, ...]) -> Strategy:
    """id where the program fulfils all requirements; else a failure with the first that it violates."""

    def run(term: Expr) -> Result:
        subject = Subject(term, schedule)
        for check in checks:
            for found in check(subject):
                return Failure("tensor_core", term, found.reason, part=found.part, hint=found.hint)
        return Success(term)

    return FunctionStrategy("requirements", run)


# --- which programs ---------------------------------------------------------------------------------------


def sums(s: Subject) -> Iterator[Refusal]:
    """What is under two maps is a sum."""
    for product in s.products:
        found = Product.of(product)
        operator = found.operator
        while isinstance(operator, Lambda):
            operator = operator.body
        applied = call(operator)
        if applied is not None and applied[0] != "add":
            yield Refusal(
                f"a reduction by `{applied[0]}` is not a product of matrices: instructions add",
                "use another schedule, `rise strategies`, or `default`",
                found.each,
            )


def single_products(s: Subject) -> Iterator[Refusal]:
    """No product is an operand of another one, and no operand is a sum."""
    named = {
        part.function.parameter.name: part.argument
        for part in subterms(s.term)
        if isinstance(part, Apply) and isinstance(part.function, Lambda)
    }
    for matrix, side in s.sides:
        matrix = substitute(matrix, {name: named[name] for name in matrix.free & named.keys()})
        inner = outermost_part(matrix, is_product)
        if inner is not None:
            yield Refusal(
                f"a chain of two products: the result of one is the {ORDINAL[side]} operand of the other, and"
                " a block needs more of it than it computes",
                "store it between them with `toMem(Global)`, or compute them one after the other",
                inner,
            )
        inner = outermost_part(matrix, _is_reduction)
        if inner is not None:
            yield Refusal(
                f"the {ORDINAL[side]} operand of a product is computed by a reduction, which is not a"
                " product",
                "store the operand with `toMem(Global)`, or compute it before",
                inner,
            )


def only_products(s: Subject) -> Iterator[Refusal]:
    """Every sum is a product's, or reduces the rows that all products have as their first operands."""
    firsts = [Product.of(product).rows for product in s.products]
    columns = columns_of(s.term)
    beside = {id(part) for part in (*s.products, *columns) for part in subterms(part)}
    for part in outermost_parts(s.term, _is_reduction):
        if id(part) not in beside:
            yield Refusal(
                "a reduction that is not a product of matrices is not lowered: no level computes it",
                "reduce the stored result of the product by another program",
                part,
            )
    for column in columns:
        if not all(alpha_equal(first, reduced_matrix(column)) for first in firsts):
            yield Refusal(
                "rows are reduced that are not those of the products' first operand, as it is in memory",
                "store what they are reduced to with `toMem(Global)`: another kernel computes it",
                column,
            )
        for holds, why, hint in _rows_in_registers(s.schedule, shape(reduced_matrix(column).type)[0][1]):
            if not holds:
                yield Refusal(
                    f"the rows of an operand are reduced beside its product, and {why}", hint, column
                )


def _rows_in_registers(s: Schedule, k: Nat) -> Iterator[tuple[bool, str, str]]:
    """What has to hold where rows are reduced by the workers that hold them: why else not, and what helps."""
    n = s.block[1]
    of_quads = family(s.fragment) in (Family.MMA, Family.WGMMA)
    yield of_quads, "nobody knows which threads hold a row of these fragments", "use `fragment=16,8,16`"
    yield s.warp[1] == n, f"several workers have parts of the {n} columns", f"use warps of {n} columns"
    yield not s.swap_operands, "the transposed result has them as columns", "use `swap_operands=false`"
    whole = s.split_k == s.split_cluster == s.slice_k == 1
    yield whole, "a worker has only a part of k", "use `split_k=1 split_cluster=1 slice_k=1`"
    shared = s.epilogue != "shared"
    yield shared, "the results are in its registers", "use `epilogue=direct`"
    steps = divides(s.block[2], k)
    yield steps, f"{s.block[2]} does not divide {k}, how long they are", "use a `block` whose depth does"


def _is_reduction(term: Expr) -> bool:
    applied = call(term)
    return applied is not None and applied[0] in ("reduce", "scan") and isinstance(term.type, Array | Scalar)


# --- fragments --------------------------------------------------------------------------------------------


def tiles_aligned(s: Subject) -> Iterator[Refusal]:
    """WMMA moves tiles as a whole: they start at multiples of 32 bytes, in rows of multiples of 16."""
    if not s.of_wmma:
        return
    for matrix, side in s.sides:
        known, size = contiguity_of(matrix, {}), _bytes(matrix)
        outer = s.schedule.fragment[side]
        if _across(known) and outer * size % WMMA_START and _several(s, matrix, side):
            yield _narrow(
                f"the {ORDINAL[side]} operand, which is contiguous along {'mn'[side]},", outer, size, matrix
            )
    columns = s.schedule.fragment[1]
    for size in sorted(_finished(s)):
        if columns * size % WMMA_START and _several_columns(s):
            yield _narrow("the result", columns, size, s.term)


def _several(s: Subject, matrix: Expr, side: int) -> bool:
    """Whether there is more than one fragment side by side: in a tile, or in the whole matrix."""
    whole = s.schedule.block[side]
    if s.copies is None:
        whole = max(whole, shape(matrix.type)[0][0].value or whole)
    return whole > s.schedule.fragment[side]


def _several_columns(s: Subject) -> bool:
    columns = s.schedule.block[1]
    if s.schedule.epilogue == "direct":
        columns = max(columns, shape(s.term.type)[0][1].value or columns)
    return columns > s.schedule.fragment[1]


def _finished(s: Subject) -> set[int]:
    """Bytes of elements of fragments that are stored: what has another type goes through shared memory."""
    return {_bytes(product) for product in s.products}


def _narrow(what: str, width: int, size: int, part: Expr) -> Refusal:
    return Refusal(
        f"fragment: {what} would be moved by tiles {width} elements of {size} bytes wide, which start at no"
        f" multiples of {WMMA_START} bytes",
        "use `fragment=16,16,16`, or `fragment=16,8,16`, whose tiles are moved by lanes",
        part,
    )


def whole_tiles(s: Subject) -> Iterator[Refusal]:
    """WMMA stores and loads whole tiles, of memory: none that stick out, and none that are computed."""
    if not s.of_wmma:
        return
    sizes = _sizes(s.term)
    whole = s.schedule.whole_of(sizes[0].value)
    stick_out = any(not divides(tile, size) for size, tile in zip(sizes, whole, strict=False))
    if s.schedule.epilogue == "direct" and stick_out and s.schedule.split_k == 1:
        yield Refusal(
            "epilogue is `direct`: tiles stick out of the result, and these fragments are stored as a whole",
            "use `epilogue=shared`, or `fragment=16,8,16`",
            s.term,
        )
    if s.copies is not None:
        return
    for product in s.products:
        k = Product.of(product).length
        if stick_out or k is None or not divides(s.schedule.block[2] * s.schedule.split_k, k):
            yield Refusal(
                "stages is 0: tiles stick out of the operands, and these fragments are loaded as a whole",
                "use `stages=1` or more, or `fragment=16,8,16`",
                product,
            )
    for matrix, side in s.sides:
        row = row_of(matrix)
        between = row.misaligned(WMMA_ROWS) if row is not None else None
        if row is not None and between is not None:
            yield Refusal(
                f"stages is 0: the {ORDINAL[side]} operand has {row.said(between)}, and these fragments are"
                f" loaded from rows of multiples of {WMMA_ROWS} bytes",
                "use `stages=1` or more, or `fragment=16,8,16`",
                matrix,
            )


# --- copies -----------------------------------------------------------------------------------------------


def vectors(s: Subject) -> Iterator[Refusal]:
    """A vector that a thread copies is within a row of a tile, and has a size that instructions move."""
    if s.copies is None or s.copies.bulk:
        return
    for matrix, side in s.sides:
        known, size = contiguity_of(matrix, {}), _bytes(matrix)
        vector = min(s.copies.vector, WIDEST // size)
        row = s.schedule.block[side if _across(known) else 2]
        if row % vector:
            yield Refusal(
                f"vector is {s.copies.vector}: {vector} elements at once do not divide {row}, the rows of"
                f" tiles of the {ORDINAL[side]} operand",
                "use a smaller `vector`",
                matrix,
            )
        asynchronous = s.copies.primitive(known) == "copyAsync"
        if asynchronous and vector * size not in AT_ONCE:
            yield Refusal(
                f"vector is {s.copies.vector}: asynchronous copies move 4, 8 or 16 bytes, and {vector}"
                f" elements of the {ORDINAL[side]} operand have {vector * size}",
                "use `cp_async=false`, or another `vector`",
                matrix,
            )


def scattered_part(matrix: Expr, extents: tuple[int, int]) -> Expr | None:
    """The part of a matrix because of which its boxes are not boxes of an array.

    extents: numbers in a row of a box, and rows
    """
    return next((part for part in subterms(matrix) if _scatters(part, extents)), None)


def _scatters(term: Expr, extents: tuple[int, int]) -> bool:
    match call(term):
        case "concat", _, [first, _]:
            known = array_type(first)
            size = known.size.value
            return size is None or size % extents[isinstance(known.element, Array)] != 0
        case name, _, _:
            return name in SCATTERED
        case _:
            return False


def boxes(s: Subject) -> Iterator[Refusal]:
    """Tiles of operands as the copying unit brings them, and as warpgroups read them."""
    if s.copies is None or not s.copies.bulk:
        return
    for matrix, side in s.sides:
        known, outer = contiguity_of(matrix, {}), "mn"[side]
        across = _across(known)
        extents = s.schedule.block[2], s.schedule.block[side]
        found = scattered_part(matrix, extents)
        if found is not None:
            yield Refusal(
                f"the {ORDINAL[side]} operand is rearranged by `{application(found)[0]}`: the copying"
                " unit brings boxes of an array",
                "use fragments of warps, 16×8×16, whose operands threads copy",
                found,
            )
        rows = s.schedule.block[2 if across else side]
        if rows > LARGEST_BOX:
            name = "k" if across else outer
            yield Refusal(
                f"block {name} is {rows}: the copying unit brings boxes of up to {LARGEST_BOX} rows",
                f"use a smaller `block`, of {LARGEST_BOX} at most there",
                matrix,
            )
        if across:
            width = constraints.panel(s.schedule.block[side], _bytes(matrix))
            for what, size in (("block", s.schedule.block[side]), ("fragment", s.schedule.fragment[side])):
                if size % width:
                    yield Refusal(
                        f"{what} {outer}: {width} does not divide {size}: rows of the {ORDINAL[side]} operand"
                        f" are contiguous along {outer}, not along k, and are copied in panels of {width}",
                        None,
                        matrix,
                    )


PROGRAMS: tuple[Check, ...] = (sums, single_products, only_products)
TILES: tuple[Check, ...] = (tiles_aligned, whole_tiles, vectors, boxes)


def _sizes(term: Expr) -> tuple[Nat, ...]:
    return tuple(shape(term.type)[0])


def _bytes(matrix: Expr) -> int:
    """The bytes of an element; 1 where it is not a number."""
    _, element = shape(matrix.type)
    return element.bytes if isinstance(element, Scalar) else 1


def _across(known: Known) -> bool:
    """Whether an operand is contiguous across k."""
    return isinstance(known, Contiguity) and known.dimensions == (True, False)
