"""Rules for a block's work on one array, whose elements are distributed cyclically over its threads.

Thread i of t has the elements i, t + i, 2*t + i, …, or vectors of v elements in that order: neighbours
read neighbours, and each thread has several reads under way.
"""

from __future__ import annotations

from rewrites.conditions import elements_are_numbers, numbers
from rewrites.rule import Rule
from rewrites.rule import library_rule as rule


def _cyclic(name: str, level: str, stored: str, meaning: str) -> tuple[Rule, Rule]:
    """An array through the workers of a level, element by element and by vectors."""
    each = f"{level}(fun(c => c |> mapSeqUnroll(fun(x => x)))){stored}"
    dealt, back = f"split(t) |> transpose |> {each}", "transpose |> join"
    return (
        rule(name, "xs", f"xs |> {dealt} |> {back}", sizes=("t",), meaning=meaning),
        rule(
            f"{name}, as vectors",
            "xs",
            f"xs |> asVector(v) |> {dealt} |> {back} |> asScalar",
            sizes=("v", "t"),
            conditions=(numbers("xs"),),
            meaning=meaning,
        ),
    )


CYCLIC_OVER_THREADS, CYCLIC_OVER_THREADS_VECTORS = _cyclic(
    "cyclic over threads",
    "mapThreads(0)",
    "",
    "The threads of a block write an array, whose elements are distributed cyclically.",
)
KEEP_CYCLIC, KEEP_CYCLIC_VECTORS = _cyclic(
    "cyclic in registers",
    "mapThreads(0)",
    " |> toMem(Local)",
    "An array is spread over the registers of the threads of a block.",
)
CYCLIC_OVER_LANES, CYCLIC_OVER_LANES_VECTORS = _cyclic(
    "cyclic over lanes",
    "mapLane",
    "",
    "The lanes of a warp write an array, whose elements are distributed cyclically.",
)
KEEP_CYCLIC_LANES, KEEP_CYCLIC_LANES_VECTORS = _cyclic(
    "cyclic in registers of lanes",
    "mapLane",
    " |> toMem(Local)",
    "An array is spread over the registers of the lanes of a warp.",
)
# --- reductions -------------------------------------------------------------------------------------------

REDUCE_CYCLIC_VECTORS = rule(
    "reduceTree, strided vectors",
    "xs |> reduce(op, z)",
    "xs |> asVector(v) |> split(t) |> transpose |> map(fun(c => c |> asScalar |> reduce(op, z)))"
    " |> reduce(op, z)",
    sizes=("v", "t"),
    exact=False,
    conditions=(numbers("xs"),),
    meaning="Two levels, every t-th vector in one part: adjacent threads read adjacent vectors (coalesced).",
)
LOADED = "mapSeqUnroll(fun(x => x)) |> toMem(Local)"
REDUCE_LOADED = rule(
    "reduce, loaded",
    "xs |> reduce(op, z)",
    f"xs |> split(u) |> reduceSeq(Local)(fun(acc, b => b |> {LOADED} |> reduceSeqUnroll(Local)(op, acc)), z)",
    sizes=("u",),
    exact=False,
    meaning="u loads are in flight before the first of their elements is used.",
)
REDUCE_LOADED_VECTORS = rule(
    "reduce, loaded as vectors",
    "xs |> asScalar |> reduce(op, z)",
    f"xs |> split(u) |> reduceSeq(Local)(fun(acc, b => b |> {LOADED}"
    " |> asScalar |> reduceSeqUnroll(Local)(op, acc)), z)",
    sizes=("u",),
    exact=False,
    meaning="u loads of vectors are in flight before the first of their elements is used.",
)
REDUCE_COLUMNS = rule(
    "reduce of columns, loaded as vectors",
    "xs |> map(fun(c => h(c) |> reduce(op, z)))",
    "xs |> map(h) |> transpose |> split(u) |> reduceSeq(Local)(fun(accs, rows =>"
    " rows |> mapSeqUnroll(fun(row => row |> asVector(v) |> mapSeqUnroll(fun(x => x)) |> asScalar))"
    " |> toMem(Local) |> reduceSeqUnroll(Local)("
    "fun(as, row => zip(as)(row) |> mapSeqUnroll(fun((a, x) => op(a, x)))), accs)),"
    " generate(fun(i => z))) |> mapSeqUnroll(fun(x => x))",
    sizes=("u", "v"),
    exact=False,
    meaning="Columns by one thread, which loads u vectors of their elements before it uses the first.",
)
REDUCE_AS_ROW = rule(
    "reduce, as a row",
    "xs |> reduce(op, z)",
    "xs |> split(n) |> map(fun(r => r |> reduce(op, z))) |> idx((0 : Idx[1]))",
    sizes=("n",),
    meaning="One reduction as a map over one row, so that a level can execute it.",
)
ONE_ROW = rule(
    "as one row",
    "x",
    "generate(fun((i: Idx[1]) => i)) |> map(fun(i => x)) |> idx((0 : Idx[1]))",
    meaning="A number as a map over one row, all of whose work is done by one worker of a level.",
)
BY_ONE = rule(
    "by one of them",
    "x",
    "let y = x in generate(fun((i: Idx[1]) => y)) |> map(fun(e => e)) |> idx(0)",
    meaning="A number as an array of one element, which one of many workers writes.",
)

# --- tiles ------------------------------------------------------------------------------------------------


TILES = rule(
    "tiles, introduced",
    "xss",
    "xss |> split(m) |> map(fun(rows => rows |> transpose |> split(n)"
    " |> map(fun(columns => columns |> transpose |> transpose)) |> join |> transpose)) |> join",
    sizes=("m", "n"),
    meaning="A matrix in tiles of m × n, and the matrix of these tiles.",
)
TILE_BY_THREADS = rule(
    "a tile by threads",
    "xss",
    "xss |> join |> asVector(v) |> split(t) |> mapSeqUnroll(fun(c => c |> mapThreads(0)(fun(x => x))))"
    " |> join |> asScalar |> split(n)",
    sizes=("v", "t", "n"),
    conditions=(elements_are_numbers("xss"),),
    meaning="A tile row by row: t vectors of v adjacent elements at once, one for each thread.",
)
TILE_BY_THREAD_ROWS = rule(
    "a tile by rows of threads",
    "xss",
    "xss |> split(r) |> mapThreads(1)(fun(rows => rows |> mapSeqUnroll(fun(row => row |> asVector(v)"
    " |> mapThreads(0)(fun(x => x)) |> asScalar)))) |> join",
    sizes=("v", "r"),
    conditions=(elements_are_numbers("xss"),),
    meaning="A tile by threads in two dimensions, each r vectors below each other: neighbours share rows.",
)
TRANSPOSED_IN_SHARED = rule(
    "transpose, in Shared",
    "xss",
    "xss |> transpose |> toMem(Shared, padded(p)) |> transpose",
    sizes=("p",),
    meaning="A matrix is stored by its columns, and read by its rows.",
)
STORED_NAMED = rule(
    "toMem >> reduce, named",
    "xs |> toMem(a) |> reduce(op, z)",
    "let ys = xs |> toMem(a) in ys |> reduce(op, z)",
    meaning="The reduced array is stored first, under a name at which a program is split into kernels.",
)
