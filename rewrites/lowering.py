"""Rules that choose how a map or a reduction is executed."""

from __future__ import annotations

from rewrites.conditions import computing
from rewrites.rule import computed
from rewrites.rule import library_rule as rule
from rise.expr import Apply, DependentApply, DependentLambda, Expr, call, substitute_sizes
from rise.nat import Nat, NatVariable
from rise.normal import simplify

# --- levels of the GPU ----------------------------------------------------------------------------------

MAP_BLOCK = rule(
    "map → mapBlock",
    "xs |> map(f)",
    "xs |> mapBlock(d)(f)",
    sizes=("d",),
    meaning="Over the blocks of dimension d.",
)
MAP_CLUSTER = rule(
    "map → mapCluster",
    "xs |> map(f)",
    "xs |> mapCluster(d)(f)",
    sizes=("d",),
    meaning="Over the clusters of blocks of dimension d.",
)
BLOCKS_IN_CLUSTERS = rule(
    "mapBlock → mapCluster",
    "xs |> mapBlock(d)(f)",
    "xs |> split(c) |> mapCluster(d)(fun(ys => ys |> mapBlock(d)(f))) |> join",
    sizes=("d", "c"),
    meaning="Blocks in clusters of c, which reach other's shared memory.",
)
BLOCKS_PERSIST = rule(
    "mapBlock → mapBlockPersistent",
    "xs |> mapBlock(d)(f)",
    "xs |> mapBlockPersistent(d, p)(f)",
    sizes=("d", "p"),
    meaning="p persistent blocks, each of which computes several elements, one after the other.",
)
WARPGROUPS_PING_PONG = rule(
    "mapBlock → pingPong",
    "xs |> mapBlock(d)(f)",
    "xs |> mapBlock(d)(fun(x => pingPong(w)(f(x))))",
    sizes=("d", "w"),
    meaning="The warpgroups of a block compute its elements alternately (ping-pong).",
)
CLUSTERS_PERSIST = rule(
    "mapCluster → mapClusterPersistent",
    "xs |> mapCluster(d)(f)",
    "xs |> mapClusterPersistent(d, p)(f)",
    sizes=("d", "p"),
    meaning="p persistent clusters, each of which computes several elements, one after the other.",
)
BLOCKS_OF_ARRAYS = rule(
    "arrays of mapBlockPersistent",
    "xs |> map(fun(x => f(x) |> mapBlockPersistent(d, p)(g)))",
    "xs |> map(f) |> join |> mapBlockPersistent(d, p)(g) |> split(m)",
    sizes=("d", "p", "m"),
    meaning="Persistent blocks compute the elements of all arrays as one list.",
)
CLUSTERS_OF_ARRAYS = rule(
    "arrays of mapClusterPersistent",
    "xs |> map(fun(x => f(x) |> mapClusterPersistent(d, p)(g)))",
    "xs |> map(f) |> join |> mapClusterPersistent(d, p)(g) |> split(m)",
    sizes=("d", "p", "m"),
    meaning="The same of persistent clusters.",
)
MAP_WARP_GROUP = rule(
    "map → mapWarpGroup", "xs |> map(f)", "xs |> mapWarpGroup(f)", meaning="Over the warpgroups of a block."
)
MAP_WARP = rule("map → mapWarp", "xs |> map(f)", "xs |> mapWarp(f)", meaning="Over the warps of a block.")
MAP_LANE = rule("map → mapLane", "xs |> map(f)", "xs |> mapLane(f)", meaning="Over the lanes of a warp.")
MAP_THREADS = rule(
    "map → mapThreads",
    "xs |> map(f)",
    "xs |> mapThreads(d)(f)",
    sizes=("d",),
    meaning="Over the threads of a block, in dimension d.",
)
MAP_GLOBAL = rule(
    "map → mapGlobal",
    "xs |> map(f)",
    "xs |> mapGlobal(d)(f)",
    sizes=("d",),
    meaning="Over all threads of the grid, in dimension d.",
)

# --- loops ----------------------------------------------------------------------------------------------

MAP_SEQ = rule("map → mapSeq", "xs |> map(f)", "xs |> mapSeq(f)", meaning="As a loop.")
MAP_SEQ_COMPUTE = rule(
    "map → mapSeq, computing",
    "xs |> map(f)",
    "xs |> mapSeq(f)",
    conditions=(computing("f"),),
    meaning="As a loop, where there is something to execute.",
)
MAP_SEQ_UNROLL = rule(
    "map → mapSeqUnroll", "xs |> map(f)", "xs |> mapSeqUnroll(f)", meaning="As an unrolled loop."
)
UNROLL_MAP = rule(
    "mapSeq → mapSeqUnroll", "xs |> mapSeq(f)", "xs |> mapSeqUnroll(f)", meaning="A loop, unrolled."
)
REDUCE_SEQ = rule(
    "reduce → reduceSeq",
    "xs |> reduce(op, z)",
    "xs |> reduceSeq(Local)(op, z)",
    meaning="A left fold.",
)
REDUCE_SEQ_UNROLL = rule(
    "reduceSeq → reduceSeqUnroll",
    "xs |> reduceSeq(Local)(f, z)",
    "xs |> reduceSeqUnroll(Local)(f, z)",
    meaning="A fold, unrolled.",
)
REDUCE_UNROLL = rule(
    "reduce → reduceSeqUnroll",
    "xs |> reduce(op, z)",
    "xs |> reduceSeqUnroll(Local)(op, z)",
    meaning="An unrolled left fold.",
)
WARP_SPECIALISE = rule(
    "reducePipelined → reduceRoleSplit",
    "xs |> reducePipelined(s)(f)(fun(acc, y => g(acc, y)), z)",
    "xs |> reduceRoleSplit(s, p, c)(f)(fun(acc, y => g(acc, y)), z)",
    sizes=("s", "p", "c"),
    meaning="p warpgroups only load, c only compute.",
)
SKEW = (
    rule(
        "skewed step, where there is one",
        "xs |> reduceRoleSplit(s, p, c)(f)(fun(acc, y => select(q(y), g(acc, y), acc)), z)",
        "xs |> reduceRoleSplit(s, p, c)(f)(fun(acc, y => select(q(y), skewed(g(acc, y)), acc)), z)",
        meaning="Of steps that compute anything, the last products are put off behind the next one's first.",
    ),
    rule(
        "skewed step",
        "xs |> reduceRoleSplit(s, p, c)(f)(fun(acc, y => g(acc, y)), z)",
        "xs |> reduceRoleSplit(s, p, c)(f)(fun(acc, y => skewed(g(acc, y))), z)",
        meaning="The last products of a step are put off behind the first products of the next one.",
    ),
)
IN_TURN = rule(
    "skewed step, in turn",
    "skewed(x)",
    "skewed(inTurn(x))",
    meaning="Warpgroups start the products of a skewed step one after the other.",
)
STEP_IN_TURN = (
    rule(
        "step in turn, where there is one",
        "xs |> reduceRoleSplit(s, p, c)(f)(fun(acc, y => select(q(y), g(acc, y), acc)), z)",
        "xs |> reduceRoleSplit(s, p, c)(f)(fun(acc, y => select(q(y), inTurn(g(acc, y)), acc)), z)",
        meaning="Of steps that compute anything, warpgroups start the products one after the other.",
    ),
    rule(
        "step in turn",
        "xs |> reduceRoleSplit(s, p, c)(f)(fun(acc, y => g(acc, y)), z)",
        "xs |> reduceRoleSplit(s, p, c)(f)(fun(acc, y => inTurn(g(acc, y))), z)",
        meaning="Warpgroups start the last products of a step and the first of the next one in turns.",
    ),
)
SCAN_SEQ = rule(
    "scan → scanSeq",
    "xs |> scan(op, z)",
    "xs |> scanSeq(fun(x, acc => op(acc, x)), z)",
    meaning="As a loop.",
)
AS_VECTOR_ALIGNED = rule(
    "asVector → asVectorAligned",
    "xs |> asVector(n)",
    "xs |> asVectorAligned(n)",
    meaning="For an array that starts at a multiple of a vector's size.",
)

# --- parallel reductions --------------------------------------------------------------------------------

TREE_OF_THREADS = rule(
    "reduce → threads",
    "xs |> reduce(op, z)",
    "xs |> split(n) |> mapThreads(0)(fun(b => b |> reduceSeq(Local)(op, z))) |> toMem(Shared)"
    " |> reduceSeq(Local)(op, z)",
    sizes=("n",),
    exact=False,
    meaning="Each thread of a block reduces n elements, one after the other; then one reduces the results.",
)
TREE_OF_LANES = rule(
    "reduce → lanes",
    "xs |> reduce(op, z)",
    "xs |> split(n) |> transpose |> mapLane(fun(b => b |> reduceSeq(Local)(op, z))) |> toMem(Shared)"
    " |> reduceSeq(Local)(op, z)",
    sizes=("n",),
    exact=False,
    meaning="Each lane of a warp reduces every n-th element, so that neighbours read neighbours.",
)

# --- iterate ----------------------------------------------------------------------------------------------


# the most iterations that are unrolled
MOST_ITERATIONS = 1000


@computed(
    "iterate, unrolled",
    "iterate(k)(f)(xs) → xs |> f(n^(k-1) * m) |> … |> f(m), k a number",
    (
        "fun(xs: 8.i32 => xs"
        " |> iterate(3)(depFun((l: Nat) => fun(ys: (2*l).i32 => ys |> split(2) |> map(reduce(+, 0))))))",
        "fun(xs: 3.f32 => xs |> iterate(0)(depFun((l: Nat) => fun(ys: (3*l).f32 => ys |> take(l)))))",
        "fun(xs: 6.i32 => xs |> iterate(1)(depFun((l: Nat) => fun(ys: (3*l).i32 => ys |> drop(2*l)))))",
    ),
    "An iteration, unrolled.",
)
def UNROLL_ITERATE(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    applied = call(term)
    if applied is None or applied[0] != "iterate" or len(applied[2]) != 2:
        return "expected `iterate`"
    _, head, (function, array) = applied
    shorter, length, times = (size for size in head.arguments if isinstance(size, Nat))
    if times.value is None:
        return f"the number of iterations is not known: {times}"
    if times.value > MOST_ITERATIONS:
        return f"{times} iterations are too many to unroll, more than {MOST_ITERATIONS}"
    for turn in reversed(range(times.value)):
        size = length
        for _ in range(turn):
            size = size * shorter
        array = Apply(_at(function, size, term), array, term.origin)
    return simplify(array)


def _at(function: Expr, size: Nat, term: Expr) -> Expr:
    """The function for one size."""
    if isinstance(function, DependentLambda):
        return substitute_sizes(function.body, {NatVariable(function.name): size})
    return DependentApply(function, size, term.origin)
