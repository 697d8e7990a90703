"""Several matrices as one run of numbers, which a block copies to shared memory, and results from there."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import views
from rewrites.memory import BULK_STORE, COPIES, IN_GLOBAL, IN_SHARED, LAYOUT_CHANGED
from rewrites.padding import EMPTY_ZIP, MAP_EMPTY, TAKE_EMPTY
from rewrites.rounding import EMPTY_AS_ZEROS, ROUND_UP, missing
from rewrites.runs import ARRAY_NAMED, BY_MEMBERS, arrays_read
from rewrites.staging import PAIRS_IN_PANELS
from rise.expr import Expr, Identifier, call
from rise.types import Array, Data, Pair, Scalar, Type, shape
from strategies.core import (
    Rewrite,
    Strategy,
    argument,
    body,
    choice,
    depending,
    id_,
    normalize,
    prints_as_call,
    seq,
)
from strategies.matmul.staging import ASYNCHRONOUS
from strategies.matmul.tiling import MATRIX
from strategies.memory_bound.blocks import MOST_LOADS, WARP, WIDEST, Block, in_groups, refuse
from strategies.nests import BANKS
from strategies.operands import nth_operand
from strategies.places import mapped

LONG = 128  # bytes of rows that may start in no bank twice: loads and stores of fragments take long
PART = 16  # bytes of a row that lanes load at once, of which eight rows are in different banks
PADDING = 8  # elements: rows and columns of fragments are then in different banks
_, COPY_ASYNC, BULK_COPY = COPIES
PADDED, SWIZZLED = LAYOUT_CHANGED


@prints_as_call
def several(count: int, s: Rewrite, zeros: bool = True) -> Strategy:
    """s for so many elements of a map at a time, each time by a block; behind the last element are zeros.

    before: xs |> map(f)
    after:  xs |> split(count) |> mapBlock(0)(t => s(t |> map(f))) |> join
    zeros:  false where what is behind the last element may be anything, as the copying unit leaves it
    """
    operands = seq(longer, normalize(EMPTY_AS_ZEROS)) if zeros else longer

    def chosen(term: Expr) -> Rewrite:
        more = missing(shape(term.type)[0][0], count)
        block = seq(mapped(s), low.MAP_BLOCK.with_sizes(d=0))
        whole = seq(a.SPLIT_JOIN.with_sizes(n=count), argument(block))
        return whole if more is None else seq(ROUND_UP.with_sizes(p=more), argument(seq(operands, whole)))

    return depending(chosen)


# a longer batch from longer arrays of operands
longer: Strategy = normalize(choice(MAP_EMPTY, EMPTY_ZIP, TAKE_EMPTY))


@prints_as_call
def as_run(s: Rewrite) -> Strategy:
    """s for an array of arrays as one array of numbers.

    before: xss
    after:  s(xss |> join) |> split(n)
    """

    def chosen(term: Expr) -> Rewrite:
        sizes, _ = shape(term.type)
        if len(sizes) == 1:
            return s
        return seq(views.JOIN_SPLIT_PAIR.with_sizes(n=sizes[1]), argument(as_run(s)))

    return depending(chosen)


# --- copies -----------------------------------------------------------------------------------------------


@prints_as_call
def staged(
    threads: int, vectors: Sequence[int] = (), by_warps: bool = False, longer: int | None = None
) -> Strategy:
    """Arrays of arrays, zipped or not, in shared memory, each copied as one run by all threads of a block.

    vectors:  how many elements of each array a thread copies at once, at most; 0, or no vectors: as many as
              divide the run
    by_warps: whether a warp copies each matrix, where threads copy single elements
    longer:   how many elements rows are padded by; else chosen
    """

    def chosen(term: Expr) -> Rewrite:
        runs = list(arrays_of(term.type))
        if not all(isinstance(shape(run)[1], Scalar) for run in runs):
            return refuse("staged", f"`{term.type}` is not made of arrays of numbers")
        most = vectors or (0,) * len(runs)
        wide = [vector_of(run, vector) * width_of(run) for run, vector in zip(runs, most, strict=True)]
        padded = padding_of(runs) if longer is None else longer
        layout = PADDED.with_sizes(p=padded) if padded else id_
        copy = COPY_ASYNC if min(wide) >= ASYNCHRONOUS else id_
        return seq(IN_SHARED, layout, copy, argument(each_part(*map(move, most))))

    def move(vector: int) -> Strategy:
        return each_moved(threads // WARP) if by_warps and vector == 1 else as_run(moved(threads, vector))

    return depending(chosen)


@prints_as_call
def staged_apart(threads: int, vectors: Sequence[int]) -> Strategy:
    """The same, each array by itself: those are padded whose rows threads would read from the same banks."""

    def chosen(term: Expr) -> Rewrite:
        runs = arrays_of(term.type)
        longer = [PART // width_of(run) if are_read_at_once(run) else 0 for run in runs]
        each = zip(vectors or (0,) * len(runs), longer, strict=True)
        return each_part(*(staged(threads, (most,), longer=more) for most, more in each))

    return depending(chosen)


@prints_as_call
def staged_in_bulk(pattern: int = 0) -> Strategy:
    """The same by the copying unit: one thread starts the copies, and all threads wait for them once.

    before: xs
    after:  xs |> bulkCopy
    pattern: the bytes of a row within which chunks are swizzled, so that columns are in different banks
    """

    def chosen(term: Expr) -> Rewrite:
        if not pattern:
            return seq(IN_SHARED, BULK_COPY)
        runs = arrays_of(term.type)
        width = pattern // max(map(width_of, runs))
        panels = id_ if set(map(row_bytes, runs)) == {pattern} else PAIRS_IN_PANELS.with_sizes(w=width)
        return seq(IN_SHARED, SWIZZLED.with_sizes(b=pattern), BULK_COPY, panels)

    return depending(chosen)


@prints_as_call
def with_shared(threads: int, s: Rewrite) -> Strategy:
    """s, with the matrices that all elements read in shared memory, copied there by all threads of a block.

    before: xs |> map(x => f(x, ys))
    after:  let y = ys |> toMem(Shared) in s(xs |> map(x => f(x, y)))
    """

    def copied(stored: Expr) -> Rewrite:
        wide = vector_of(stored.type) * width_of(stored.type) >= ASYNCHRONOUS
        return seq(IN_SHARED, COPY_ASYNC if wide else id_, argument(as_run(moved(threads))))

    def chosen(term: Expr) -> Rewrite:
        applied = call(term)
        shared = matrices_read(applied[2][0]) if applied is not None else []
        return in_shared(shared, depending(copied), s)

    return depending(chosen)


@prints_as_call
def in_shared(arrays: Sequence[Identifier], copied: Rewrite, s: Rewrite) -> Strategy:
    """s, with these arrays in shared memory.

    before: e(xs)
    after:  let y = copied(xs) in s(e(y))
    """

    def chosen(term: Expr) -> Rewrite:
        made = s
        for number, array in enumerate(arrays_read(term)):
            if array in arrays:
                named = seq(nth_operand(0, copied), nth_operand(1, body(made)))
                made = seq(ARRAY_NAMED.with_sizes(i=number), named)
        return made

    return depending(chosen)


def matrices_read(function: Expr) -> list[Identifier]:
    """The matrices that a function reads besides its argument."""
    return [array for array in arrays_read(function) if len(shape(array.type)[0]) == MATRIX]


@prints_as_call
def each_part(*parts: Rewrite) -> Strategy:
    """Each array of an array of tuples by its own strategy, in order; an array of numbers by the only one.

    before: xs
    after:  zip(s(xs |> map(fst)))(t(xs |> map(snd)))
    """

    def chosen(term: Expr) -> Rewrite:
        match term.type:
            case Array(size, Pair(first, _)):
                front = len(arrays_of(Array(size, first)))
                firsts, seconds = each_part(*parts[:front]), each_part(*parts[front:])
                return seq(BY_MEMBERS, nth_operand(0, firsts), nth_operand(1, seconds))
            case _:
                return parts[0]

    return depending(chosen)


@prints_as_call
def moved(threads: int, vector: int = 0) -> Strategy:
    """A run through all threads of a block, by the widest vectors that divide it, or narrower ones."""
    return depending(lambda run: Block(threads, vector_of(run.type, vector), strategy="batch").write)


@prints_as_call
def each_moved(warps: int) -> Strategy:
    """Arrays through the lanes of a warp each, as runs, in turns.

    before: xss
    after:  xss |> split(warps) |> mapSeq(mapWarp(xs => xs |> … mapLane(…))) |> join
    """

    def chosen(xss: Expr) -> Rewrite:
        count, *sizes = (size.value or 1 for size in shape(xss.type)[0])
        lanes = Block(WARP, strategy="batch").of_lanes(prod(sizes))
        loads = -(-count // warps) * lanes.each(prod(sizes))
        turns = low.MAP_SEQ_UNROLL if loads <= 2 * MOST_LOADS else low.MAP_SEQ
        each = seq(mapped(as_run(lanes.write)), low.MAP_WARP)
        return seq(a.MAP_NOTHING, in_groups(warps, seq(mapped(each), turns)))

    return depending(chosen)


@prints_as_call
def through_shared(threads: int, s: Rewrite) -> Strategy:
    """Results of s in shared memory, and from there as one run by all threads of a block.

    before: e
    after:  s(e) |> toMem(Shared) |> join |> … mapThreads(0) … |> split(n)
    """

    def chosen(term: Expr) -> Rewrite:
        padded = padding_of([term.type], stored_part(term.type))
        layout = PADDED.with_sizes(p=padded) if padded else id_
        return seq(IN_SHARED, layout, argument(s), as_run(moved(threads)))

    return depending(chosen)


@prints_as_call
def stored_in_bulk(s: Rewrite) -> Strategy:
    """Results of s in shared memory, and from there as one run by the copying unit.

    before: e
    after:  s(e) |> toMem(Shared) |> bulkStore
    """

    def chosen(term: Expr) -> Rewrite:
        if not isinstance(shape(term.type)[1], Scalar):
            return refuse("stored_in_bulk", "results are pairs, which threads store")
        return seq(IN_SHARED, argument(s), IN_GLOBAL, BULK_STORE)

    return depending(chosen)


# --- what is known of runs --------------------------------------------------------------------------------


def arrays_of(type_: Type) -> list[Data]:
    """The arrays that an array of tuples is, or an array of arrays of them."""
    return [Array(type_.size, part) for part in _parts(type_.element)] if isinstance(type_, Array) else []


def _parts(type_: Data) -> list[Data]:
    match type_:
        case Pair(first, second):
            return [*_parts(first), *_parts(second)]
        case Array(size, element):
            return [Array(size, part) for part in _parts(element)]
        case _:
            return [type_]


def width_of(run: Type) -> int:
    """Of its elements, in bytes."""
    element = shape(run)[1]
    return element.bytes if isinstance(element, Scalar) else WIDEST


def row_bytes(run: Type) -> int:
    """The bytes of each of its rows; 0 if that is not known."""
    return (shape(run)[0][-1].value or 0) * width_of(run)


def vector_of(run: Type, most: int = 0) -> int:
    """How many elements of a run a thread moves at once: as many as divide it, 16 bytes at most."""
    elements = 1
    for size in shape(run)[0]:
        elements *= size.value or 1
    return gcd(elements, WIDEST // width_of(run), most)


def are_read_at_once(run: Type) -> bool:
    """Whether threads that each read a row use the same few banks."""
    return len(shape(run)[0]) > 1 and row_bytes(run) % BANKS == 0


def stored_part(run: Type) -> int:
    """The bytes of a row of a fragment, which four lanes store at once."""
    return PART // 2 * width_of(run)


def padding_of(runs: Sequence[Type], part: int = PART) -> int:
    """Elements added to rows of matrices, of which too many would start in the same bank; 0 if none are.

    part: bytes of a row that lanes load or store at once
    """
    rows = [row_bytes(run) for run in runs if len(shape(run)[0]) > 2]
    whole = all(row % WIDEST == 0 for row in rows) and len(rows) == len(runs)
    crowded = any(row % (BANKS if row < LONG else 2 * part) == 0 for row in rows)
    return PADDING if whole and crowded else 0


def added_by_padding(runs: Sequence[Type], part: int = PART) -> int:
    """How many bytes of shared memory that takes for an element of each of these arrays."""
    sizes = [(width_of(run), [size.value or 1 for size in shape(run)[0][1:-1]]) for run in runs]
    return padding_of(runs, part) * sum(width * prod(rows) for width, rows in sizes)
