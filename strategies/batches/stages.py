"""What takes loops for each element of the arrays of a block, in stages: later ones read earlier results."""

from __future__ import annotations

from collections.abc import Iterator

from rewrites.algorithmic import SPLIT_JOIN
from rewrites.lets import named_value
from rewrites.maps import MAP_LAST_FISSION
from rewrites.memory import IN_SHARED
from rewrites.padding import ROUND_UP_MAP
from rewrites.prologue import INLINE
from rewrites.reductions import REDUCE_TREE
from rewrites.result import Success
from rewrites.rounding import missing
from rewrites.storing import EACH_IN_SHARED
from rewrites.views import INTERCHANGE_NEST
from rise.expr import Expr, Lambda, application, call, closed_parts
from rise.types import Array, shape
from strategies.batches.threads import rows_of_matrices
from strategies.core import (
    Rewrite,
    Strategy,
    argument,
    choice,
    depending,
    id_,
    normalize,
    prints_as_call,
    seq,
)
from strategies.evaluation import bytes_of, is_expression
from strategies.matmul.products import at_parts
from strategies.memory_bound.blocks import reduced_length, with_neutral
from strategies.memory_bound.rows import at_reductions
from strategies.normal_forms import view_inlined
from strategies.operands import nth_operand
from strategies.places import arguments, mapped

NUMBER = 4  # bytes


def values_before(function: Expr) -> Iterator[Expr]:
    """What takes loops to compute and is read as a whole: it has a name, or a reduction combines it."""
    for part in closed_parts(function):
        match call(part):
            case "reduce", _, [_, _, xs] if not is_expression(xs):
                yield xs
            case _ if (named := named_value(part)) is not None:
                if not is_expression(named[0]):
                    yield named[0]
            case _:
                pass


def _rows_of(function: Expr) -> tuple[int, Expr] | None:
    """How many rows a function gives, and what each is; None where it gives numbers, or only one."""
    match call(function):
        case "map", _, [Lambda(_, row), _] if isinstance(row.type, Array):
            sizes, _ = shape(function.type)
            return sizes[0].value or 1, row
        case _:
            return None


def bytes_between(function: Expr) -> int:
    """Of all that later stages read, for an element of the batch."""
    rows = _rows_of(function)
    of_rows = rows[0] * bytes_between(rows[1]) if rows is not None else 0
    each = sum((bytes_of(value.type) or NUMBER) + bytes_between(value) for value in values_before(function))
    return each + of_rows


def most_rows(function: Expr) -> int:
    """The rows of the longest array that takes loops to compute, of an element of the batch."""
    sizes = shape(function.type)[0][:1]
    return max([1, *(size.value or 1 for size in sizes), *map(most_rows, values_before(function))])


# --- strategies -------------------------------------------------------------------------------------------


@prints_as_call
def in_stages(s: Rewrite) -> Strategy:
    """s for a map over arrays, and before it for the maps of what it reads as a whole.

    before: xs |> map(x => e(h(x), x)), where e reads all of h(x), which takes loops
    after:  s(zip(s(xs |> map(h)) |> toMem(Shared))(xs) |> map((y, x) => e(y, x)))
    """

    def chosen(term: Expr) -> Rewrite:
        applied = call(term)
        function = applied[2][0] if applied is not None and applied[0] == "map" else None
        value = next(values_before(function.body), None) if isinstance(function, Lambda) else None
        if value is None:
            return s
        here = at_parts(lambda part: part is value, "in_stages", "another part", IN_SHARED)
        apart = seq(mapped(here), EACH_IN_SHARED, mapped(normalize(choice(INLINE, view_inlined))))(term)
        if not isinstance(apart, Success):
            return s
        before = argument(nth_operand(0, argument(in_stages(s))))
        return seq(lambda _: apart, before, in_stages(s))

    return depending(chosen)


@prints_as_call
def by_rows(s: Rewrite, matrices: bool, split: int = 1, dealt: int = 1) -> Strategy:
    """s for a map over arrays, in stages: for maps over their rows, or over parts of these.

    matrices: whether the arrays have rows, and are not rows themselves
    split:    how many parts of a row are reduced before their results are
    dealt:    to how many threads the elements of a row are dealt, once all that they read is computed
    """
    of_rows = _of_rows(s, split, dealt)
    if not matrices:
        return seq(of_rows)
    return in_stages(depending(lambda term: rows_of_matrices(of_rows) if _is_nested(term) else s))


def _of_rows(s: Rewrite, split: int, dealt: int) -> Rewrite:
    """s for a list of rows."""

    def last(term: Expr) -> Rewrite:
        if not _is_nested(term):
            return s
        return elements_dealt(dealt, s) if is_expression(_function(term)) else rows_of_matrices(s)

    return s if split == dealt == 1 else seq(mapped(reduced_in_parts(split)), in_stages(depending(last)))


@prints_as_call
def elements_dealt(count: int, s: Rewrite) -> Strategy:
    """s for every count-th element of rows each, so that neighbours use adjacent banks.

    before: xs |> map(row => row |> map(f))
    after:  s(xs |> map(row => row |> split(count) |> transpose) |> join |> map(part => part |> map(f))) |> …
    """

    def chosen(term: Expr) -> Rewrite:
        size = shape(term.type)[0][1]
        more = missing(size, count)
        columns = seq(SPLIT_JOIN.with_sizes(n=count), argument(INTERCHANGE_NEST))
        each = columns if more is None else seq(ROUND_UP_MAP.with_sizes(p=more), argument(columns))
        views = 2 if more is None else 3
        back = [arguments(n, MAP_LAST_FISSION) for n in range(views)]
        return seq(mapped(each), *back, arguments(views, rows_of_matrices(s)))

    return depending(chosen if count > 1 else lambda _: s)


@prints_as_call
def reduced_in_parts(count: int) -> Strategy:
    """Reductions of a row as those of so many parts of it, and of their results.

    Parts have an odd number of elements, so that threads that each reduce one read from different banks.
    before: e(xs |> reduce(op, z))
    after:  e(xs |> split(n) |> map(part => part |> reduce(op, z)) |> reduce(op, z))
    """

    def chosen(term: Expr) -> Rewrite:
        size = reduced_length(term)
        length = size.value if size is not None else None
        part = -(-(length or 1) // count) | 1
        if size is None or length is None or part >= length or not is_expression(application(term)[2][-1]):
            return id_
        return seq(with_neutral(size, part), REDUCE_TREE.with_sizes(n=part))

    return at_reductions(depending(chosen))


def _is_nested(term: Expr) -> bool:
    return len(shape(term.type)[0]) > 1


def _function(term: Expr) -> Expr:
    """The body of a map's function."""
    applied = call(term)
    function = applied[2][0] if applied is not None and applied[2] else term
    return function.body if isinstance(function, Lambda) else function
