"""Where a program is cut into kernels for other reasons than its products: values that loops compute."""

from __future__ import annotations

from collections.abc import Set
from math import inf, prod

from rewrites.invariants import INVARIANT_FIRST, steps
from rewrites.lets import named_value
from rewrites.maps import LET_IN_LET, MAP_LET
from rewrites.memory import IN_GLOBAL
from rewrites.padding import ROUND_UP_SCAN
from rewrites.reductions import SCAN_IN_BLOCKS
from rewrites.result import Failure, Result, Success
from rewrites.rounding import missing
from rewrites.storing import APPLIED_AS_LET, EACH_STORED, GLOBAL_FIRST, STORED_BEFORE_MAP
from rewrites.typed import array_type
from rewrites.unused import DROP_UNUSED
from rise.expr import Expr, call, closed_parts
from rise.nat import ceiling_quotient, divides
from rise.types import Array, Type, shape
from strategies.core import (
    FunctionStrategy,
    Predicate,
    Strategy,
    argument,
    check,
    choice,
    id_,
    normalize,
    outermost,
    repeat,
    seq,
    try_,
)
from strategies.evaluation import has_array, is_expression
from strategies.loops.nests import nearest
from strategies.matmul.kernels import has_product
from strategies.matmul.products import at_parts, rank
from strategies.matmul.separate import is_one_kernel, is_view_of_data, stored, stored_of_each
from strategies.memory_bound.columns import in_one_reduction
from strategies.memory_bound.family import fitting, is_over_columns
from strategies.memory_bound.rows import at_reductions
from strategies.operands import in_function, nth_operand, operand
from strategies.places import mapped
from strategies.result_views import without_views

BLOCK = 64  # elements that a thread scans, about
LONG = 1024  # elements, above which an array is scanned in blocks
# the most steps for which every thread computes a value itself: in one thread, and in all threads together
STEPS_OF_THREAD, STEPS_OF_ALL = 512, 1 << 24
MOST_ROWS = 8192  # that are scanned in blocks: more keep a GPU busy with a thread each


def _is_cheap(value: Expr, result: Type) -> bool:
    """Whether every thread computes a value itself, since that takes few steps."""
    once, results = steps(value), prod(size.value or inf for size in shape(result)[0])
    return once <= STEPS_OF_THREAD and once * results <= STEPS_OF_ALL


def invariant_first(kernel: Expr) -> Strategy:
    """Moves a value that is the same for all elements of a loop before that loop, where that pays.

    A costly value is stored, or computed once for a row. A value of a row over whose elements the loop is
    moves whatever it costs: schedules of rows reduce these. In a kernel with a product, what depends on a row
    stays: schedules of products reduce rows.
    """
    with_product = has_product(kernel)

    def pays(term: Expr) -> bool:
        named = named_value(term)
        # a pair with an array in it would only be a copy of the value for each element
        if named is None or has_array(shape(term.type)[1]):
            return False
        value, loop = named
        of_rows = value.free - kernel.free
        if of_rows and with_product:
            return False
        if _is_over(loop.body, of_rows):
            return True
        return has_product(loop.body) or not _is_cheap(value, term.type)

    return seq(INVARIANT_FIRST, check(pays, "invariant_first", "the value is cheap, or its place is better"))


def _is_over(loop: Expr, variables: Set[str]) -> bool:
    """Whether a loop is over an array that depends on one of these variables."""
    applied = call(loop)
    return applied is not None and applied[0] != "generate" and not variables.isdisjoint(applied[2][-1].free)


def _value_stored(term: Expr) -> Result:
    """What a name stands for, where it takes loops: else each thread that reads it would compute it."""
    named = named_value(term)
    if named is None or is_expression(named[0]):
        return Failure("value_stored", term, "no value that takes loops has a name")
    if is_one_kernel(term):
        return Failure("value_stored", term, "one kernel computes all of it")
    return seq(try_(APPLIED_AS_LET), nth_operand(0, IN_GLOBAL))(term)


value_stored = FunctionStrategy("value_stored", _value_stored)


def _of_loops(pattern: str) -> Predicate:
    """Whether a term is a `reduce`, or a `scan`, of what takes loops to compute, such as a sum of sums."""

    def holds(term: Expr) -> bool:
        match call(term):
            case name, _, [_, _, xs] if name == pattern:
                return not is_expression(xs)
            case _:
                return False

    return holds


def first_of_each(s: Strategy) -> Strategy:
    """What s stores before all that uses it; of the elements of an array, what it stores of each."""
    return seq(choice(seq(s, GLOBAL_FIRST), stored_of_each(s)), try_(GLOBAL_FIRST))


values_stored = first_of_each(value_stored)
# what the outermost reductions combine: its parts are computed in parallel, before
terms_stored = first_of_each(
    at_parts(_of_loops("reduce"), "terms_stored", "no reduction of what takes loops", operand(IN_GLOBAL))
)


def _columns_reduced(term: Expr) -> Result:
    """The reductions of columns, where each element of a column is computed of them."""
    if not is_over_columns(term) or rank(term) < 2:
        return Failure("columns_reduced", term, "no elements of columns are computed of reductions")
    return seq(in_one_reduction, mapped(at_reductions(IN_GLOBAL)), repeat(EACH_STORED))(term)


columns_reduced = first_of_each(nearest(FunctionStrategy("columns_reduced", _columns_reduced)))


def _is_long_scan(term: Expr) -> bool:
    """A scan of more elements than one thread should go through."""
    match call(term):
        case "scan", _, [_, _, xs]:
            size = array_type(xs).size.value
            return size is not None and size > LONG
        case _:
            return False


def _in_blocks(term: Expr) -> Result:
    """A long scan as scans of blocks: each starts from the total of the blocks before it."""
    size = array_type(term).size
    block = next((b for b in range(2 * BLOCK, BLOCK // 2, -1) if divides(b, size)), BLOCK)
    blocks = SCAN_IN_BLOCKS.with_sizes(n=block, m=ceiling_quotient(size, block))
    starts = outermost(_of_loops("scan"), seq(argument(IN_GLOBAL), IN_GLOBAL))
    whole = seq(blocks, starts, IN_GLOBAL)
    more = missing(size, block)
    rounded = whole if more is None else seq(ROUND_UP_SCAN.with_sizes(p=more), argument(whole))
    # blocks are read twice: for their totals, and for their scans
    stored_first = argument(IN_GLOBAL) if _of_loops("scan")(term) else id_
    return seq(stored_first, rounded)(term)


def _has_few_rows(term: Expr) -> bool:
    return prod(size.value or 1 for size in shape(term.type)[0][:-1]) <= MOST_ROWS


in_blocks = FunctionStrategy("in_blocks", _in_blocks)
scan_in_blocks = seq(
    check(_has_few_rows, "scan_in_blocks", "a thread for each row keeps a GPU busy"),
    first_of_each(at_parts(_is_long_scan, "scan_in_blocks", "no long array is scanned", in_blocks)),
)


def _part_stored(term: Expr) -> Result:
    """The largest part that a schedule takes, where the rest takes loops, too: rows, before their columns."""
    whole = without_views(term)

    def complete(part: Expr) -> bool:
        computed = isinstance(part.type, Array) and not is_view_of_data(part) and not is_expression(part)
        return computed and part is not term and part is not whole and fitting(part) is not None

    part = next(filter(complete, closed_parts(term)), None)
    return Failure("part_stored", term, "no schedule takes a part") if part is None else stored(part)(term)


part_stored = first_of_each(FunctionStrategy("part_stored", _part_stored))


def _last_let(term: Expr) -> Result:
    """All names in the value of the last one: let x = a in let y = b in e → let y = (let x = a in b) in e"""
    named = named_value(term)
    if named is None or named_value(named[1].body) is None:
        return Success(term)
    return seq(nth_operand(1, in_function(last_let)), LET_IN_LET)(term)


last_let = FunctionStrategy("last_let", _last_let)
# x => let y = f(x) in g(y), or in g(x, y): y for all x before g
value_of_all = seq(
    mapped(last_let),
    choice(MAP_LET, seq(mapped(nth_operand(0, IN_GLOBAL)), STORED_BEFORE_MAP)),
    normalize(DROP_UNUSED),
)


def _rows_stored(term: Expr) -> Result:
    """What each row is multiplied as, for all rows before: the program then has a product of matrices."""
    cut = value_of_all(term) if rank(term) > 1 and not has_product(term) else None
    if not isinstance(cut, Success):
        return Failure("rows_stored", term, "no row has a value with a name that is multiplied")
    named = named_value(cut.term)
    if not has_product(cut.term if named is None else named[1].body):
        return Failure("rows_stored", term, "no product of matrices comes of it")
    return cut


rows_stored = FunctionStrategy("rows_stored", _rows_stored)
