"""Several matrices as one run of numbers: a block copies them to shared memory, and their results from there."""

from __future__ import annotations

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import views
from rewrites.memory import COPIES, IN_SHARED
from rewrites.padding import EMPTY_ZIP, MAP_EMPTY, TAKE_EMPTY
from rewrites.rounding import EMPTY_AS_ZEROS, ROUND_UP
from rewrites.runs import BY_MEMBERS
from rise.expr import Expr
from rise.types import Array, Pair, Scalar, shape
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
from strategies.memory_bound.blocks import Block, refuse
from strategies.operands import each_operand
from strategies.places import arguments, mapped

WIDEST = 16  # bytes that a thread moves at once
COPY_ASYNC = COPIES[1]


@prints_as_call
def several(count: int, s: Rewrite) -> Strategy:
    """s for so many elements of a map at a time, each time by a block; what is too much are zeros.

    before: xs |> map(f)
    after:  xs |> split(count) |> mapBlock(0)(t => s(t |> map(f))) |> join
    """

    def chosen(term: Expr) -> Rewrite:
        size = shape(term.type)[0][0].value
        if size is None:
            return refuse("several", "the size of the batch is not known")
        whole = seq(
            a.SPLIT_JOIN.with_sizes(n=count),
            argument(seq(mapped(s), low.MAP_BLOCK.with_sizes(d=0))),
        )
        more = -size % count
        longer = normalize(choice(MAP_EMPTY, EMPTY_ZIP, TAKE_EMPTY))
        zeros = seq(longer, normalize(EMPTY_AS_ZEROS))
        return seq(ROUND_UP.with_sizes(p=more), argument(seq(zeros, whole))) if more else whole

    return depending(chosen)


@prints_as_call
def as_run(s: Rewrite) -> Strategy:
    """s for an array of arrays as one array of numbers.

    before: xss
    after:  s(xss |> join) |> split(n)
    """

    def chosen(term: Expr) -> Rewrite:
        sizes, element = shape(term.type)
        if not sizes or not isinstance(element, Scalar):
            return refuse("as_run", f"expected an array of numbers, found `{term.type}`")
        if len(sizes) == 1:
            return s
        return seq(views.JOIN_SPLIT_PAIR.with_sizes(n=sizes[1]), argument(as_run(s)))

    return depending(chosen)


@prints_as_call
def staged(threads: int) -> Strategy:
    """Arrays of arrays, zipped or not, in shared memory, each copied as one run by all threads of a block."""
    return seq(IN_SHARED, COPY_ASYNC, argument(_copied(threads)))


def _copied(threads: int) -> Strategy:
    def chosen(term: Expr) -> Rewrite:
        match term.type:
            case Array(_, Pair()):
                return seq(BY_MEMBERS, each_operand(_copied(threads)))
            case _:
                return as_run(moved(threads))

    return depending(chosen)


@prints_as_call
def moved(threads: int) -> Strategy:
    """A run through all threads of a block, by the widest vectors that divide it."""

    def chosen(term: Expr) -> Rewrite:
        (size,), element = shape(term.type)
        vector = max(1, WIDEST // element.bytes) if isinstance(element, Scalar) else 1
        while (size.value or 0) % vector:
            vector //= 2
        return Block(threads, vector, strategy="batch").write

    return depending(chosen)


@prints_as_call
def through_shared(threads: int, s: Rewrite) -> Strategy:
    """Results of s in shared memory, and from there as one run by all threads of a block."""
    result = as_run(moved(threads))

    def chosen(term: Expr) -> Rewrite:
        depth = len(shape(term.type)[0]) - 1
        del depth
        return seq(IN_SHARED, argument(s), result)

    return depending(chosen)


_ = (arguments, id_)
