"""Rules that stage operands in shared memory, by copies that run ahead of the computation."""

from __future__ import annotations

from rewrites.match import Match
from rewrites.rule import Rule
from rewrites.rule import library_rule as rule
from rise.expr import Expr, Primitive, subterms
from rise.types import shape

COPIED = "asVectorAligned(v) |> split(t) |> mapSeqUnroll(fun(c => c |> mapThreads(0)(fun(e => e)))) |> join"

LOADED = "mapSeqUnroll(fun(x => x)) |> toMem(Local) |> mapSeqUnroll(fun(x => x))"
BATCHED = (
    "asVector(v) |> split(t) |> transpose |> mapThreads(0)(fun(c => c |> split(u)"
    f" |> mapSeqUnroll(fun(b => b |> {LOADED})) |> join)) |> transpose |> join"
)


def is_copied(term: Expr) -> bool:
    return any(isinstance(part, Primitive) and part.name == "mapThreads" for part in subterms(term))


def not_yet_copied(match: Match) -> str | None:
    """x is not distributed over threads: copying it once is enough."""
    return "it is copied already" if is_copied(match.terms["x"]) else None


# into shared memory: by the threads of a block, asynchronously or through registers, or by bulk copies
PRIMITIVES = ("copyAsync", "copyThreads", "bulkCopy")
STAGE = {
    copy: rule(
        f"stage by {copy}",
        "xs |> reduceSeq(Local)(f, z)",
        f"xs |> map(fun(x => x |> {copy}(padded(p)))) |> reduceSeq(Local)(f, z)",
        sizes=("p",),
        meaning="The operands of a step are copied into shared memory first.",
    )
    for copy in PRIMITIVES
}
COPY_MEMBERS = {
    copy: rule(
        f"{copy} of a pair",
        f"x |> {copy}(l)",
        f"(fst(x) |> {copy}(l), snd(x) |> {copy}(l))",
        layouts=("l",),
        meaning="A copy of a pair is a pair of copies.",
    )
    for copy in PRIMITIVES
}
THROUGH_REGISTERS = rule(
    "copyAsync → copyThreads",
    "x |> copyAsync(l)",
    "x |> copyThreads(l)",
    layouts=("l",),
    meaning="What is computed on the way goes through the registers of threads.",
)
NOT_COPIED = {
    copy: rule(
        f"{copy}, removed",
        f"x |> {copy}(l)",
        "x",
        layouts=("l",),
        meaning="What is not a matrix is read where it is.",
    )
    for copy in PRIMITIVES
}
PIPELINE = rule(
    "pipeline",
    "xs |> map(f) |> reduceSeq(Local)(g, z)",
    "xs |> reducePipelined(s)(f)(g, z)",
    sizes=("s",),
    meaning="The loads of the next steps are in flight while a step is computed.",
)


def _copy(
    primitive: str,
    along: str,
    view: str,
    meaning: str,
    copied: str = COPIED,
    sizes: tuple[str, ...] = ("v", "t", "m"),
) -> Rule:
    """`view` makes the contiguous dimension of a tile its rows, and back."""
    return rule(
        f"{primitive}, {along}",
        f"x |> {primitive}(l)",
        f"x{view} |> join |> {copied} |> asScalar |> split(m) |> {primitive}(l){view}",
        sizes=sizes,
        layouts=("l",),
        conditions=(not_yet_copied,),
        meaning=meaning,
    )


BY_ALL_THREADS = "A tile is copied by all threads of a block, v elements at once, along its rows."
# copies by threads
COPIES = PRIMITIVES[:2]
# by primitive, then along rows and along columns
COPY = {
    primitive: (
        _copy(primitive, "rows", "", BY_ALL_THREADS),
        _copy(primitive, "columns", " |> transpose", "The same along its columns."),
    )
    for primitive in COPIES
}
# u vectors for each thread are under way before the first of them is stored: along rows and along columns
COPY_IN_BATCHES = tuple(
    _copy(
        "copyThreads",
        f"{along} in batches",
        view,
        f"Each thread has u loads under way, along {along}.",
        BATCHED,
        ("v", "t", "u", "m"),
    )
    for along, view in (("rows", ""), ("columns", " |> transpose"))
)

# longer rows, or columns, along which a tile is copied
COPY_LONGER = tuple(
    rule(
        f"copyThreads, longer {along}",
        "x |> copyThreads(l)",
        f"x |> {more} |> copyThreads(l) |> {fewer}",
        sizes=("p", "n"),
        layouts=("l",),
        conditions=(not_yet_copied,),
        meaning=f"Each thread can then copy the same part of all {along}.",
    )
    for along, more, fewer in (
        ("rows", "map(fun(row => row |> padEmpty(p)))", "map(fun(row => row |> take(n)))"),
        ("columns", "padEmpty(p)", "take(n)"),
    )
)

# by primitive
COPY_TURNED = {
    primitive: rule(
        f"{primitive}, rows as columns",
        f"x |> {primitive}(l)",
        "x |> join |> split(t) |> mapSeqUnroll(fun(c => c |> mapThreads(0)(fun(e => e)))) |> join |> split(m)"
        f" |> transpose |> {primitive}(l) |> transpose",
        sizes=("t", "m"),
        layouts=("l",),
        conditions=(not_yet_copied,),
        meaning="Threads read a tile along its rows, and store its columns as rows.",
    )
    for primitive in COPIES
}
SWIZZLE = {
    primitive: rule(
        f"{primitive}, swizzled",
        f"x |> {primitive}(l)",
        f"x |> {primitive}(swizzled(b))",
        sizes=("b",),
        layouts=("l",),
        meaning="Each row permutes its chunks of 16 bytes, so that columns are in different banks.",
    )
    for primitive in PRIMITIVES
}


def is_matrix(match: Match) -> str | None:
    """x is a matrix: in panels it has three dimensions."""
    return None if len(shape(match.terms["x"].type)[0]) == 2 else "it is not a matrix"


IN_BULK = rule(
    "in bulk",
    "x",
    "x |> bulkCopy(swizzled(b))",
    sizes=("b",),
    meaning="A matrix is copied to shared memory by the copying unit, and read from there on.",
)
FIRST_IN_BULK = rule(
    "first in bulk",
    "xs",
    "zip(xs |> map(fun(x => fst(x))) |> bulkCopy(swizzled(b)))(xs |> map(fun(x => snd(x))))",
    sizes=("b",),
    meaning="Of pairs, the first members.",
)
BESIDE_IN_BULK = rule(
    "beside products in bulk",
    "x",
    "x |> bulkCopy",
    meaning="A matrix is copied to shared memory by the copying unit, in whatever rows.",
)
COPY_PROMOTED = rule(
    "bulkCopy, promoted",
    "x |> bulkCopy(l)",
    "x |> promoted(b) |> bulkCopy(l)",
    sizes=("b",),
    layouts=("l",),
    meaning="What is copied is brought into the L2 cache b bytes at once.",
)
COPY_AHEAD = rule(
    "bulkCopy → bulkCopyRoleSplit",
    "x |> bulkCopy(l)",
    "x |> bulkCopyRoleSplit(s, p, c, l)",
    sizes=("s", "p", "c"),
    layouts=("l",),
    meaning="p warpgroups only load, into one of s slots, ahead of the c that compute.",
)
# by primitive, then of a matrix, and of pairs with one
IN_SHARED = {
    copy: (
        rule(
            f"in shared memory by {copy}",
            "x",
            f"x |> {copy}(padded(p))",
            sizes=("p",),
            meaning="A matrix is copied to shared memory by the threads of a block, and read from there on.",
        ),
        rule(
            f"first in shared memory by {copy}",
            "xs",
            f"zip(xs |> map(fun(x => fst(x))) |> {copy}(padded(p)))(xs |> map(fun(x => snd(x))))",
            sizes=("p",),
            meaning="Of pairs, the first members.",
        ),
    )
    for copy in COPIES
}
_PANELS, _WHOLE = "map(fun(r => r |> split(w))) |> transpose", "transpose |> map(fun(r => r |> join))"
PAIRS_IN_PANELS = rule(
    "bulkCopy of pairs, in panels of columns",
    "xs |> bulkCopy(l)",
    f"xs |> map(fun((x, y) => (x |> {_PANELS}, y |> {_PANELS}))) |> bulkCopy(l)"
    f" |> map(fun((x, y) => (x |> {_WHOLE}, y |> {_WHOLE})))",
    sizes=("w",),
    layouts=("l",),
    meaning="Two matrices whose rows are longer than those of a swizzling pattern, w columns at a time.",
)
PANELS = (
    rule(
        "bulkCopy, in panels of columns",
        "x |> bulkCopy(l)",
        "x |> map(fun(r => r |> split(w))) |> transpose |> bulkCopy(l)"
        " |> transpose |> map(fun(r => r |> join))",
        sizes=("w",),
        layouts=("l",),
        conditions=(is_matrix,),
        meaning="A tile whose rows are longer than those of a swizzling pattern, w columns at a time.",
    ),
    rule(
        "bulkCopy, in panels of rows",
        "x |> bulkCopy(l)",
        "x |> transpose |> map(fun(r => r |> split(w))) |> transpose |> bulkCopy(l)"
        " |> transpose |> map(fun(r => r |> join)) |> transpose",
        sizes=("w",),
        layouts=("l",),
        conditions=(is_matrix,),
        meaning="The same for a tile whose columns are contiguous in memory.",
    ),
)
STORE_IN_BULK = rule(
    "asMatrix → bulkStore",
    "f |> asMatrix",
    "f |> asMatrix |> toMem(Shared) |> bulkStore",
    meaning="A fragment's tile is stored through shared memory, from where a bulk copy writes it.",
)
STORE_TURNED_IN_BULK = rule(
    "asMatrix → bulkStore, transposed",
    "f |> asMatrix",
    "f |> asMatrix |> transpose |> toMem(Shared) |> bulkStore |> transpose",
    meaning="The same of a result that is stored transposed: a bulk copy writes what are columns here.",
)
STORE_PANELS = rule(
    "bulkStore, in panels of columns",
    "x |> toMem(Shared, l) |> bulkStore",
    "x |> map(fun(r => r |> split(w))) |> transpose |> toMem(Shared, l) |> bulkStore"
    " |> transpose |> map(fun(r => r |> join))",
    sizes=("w",),
    layouts=("l",),
    conditions=(is_matrix,),
    meaning="A tile whose rows are longer than those of a swizzling pattern, w columns at a time.",
)
STORE_IN_ROWS = rule(
    "asMatrix → rows by threads",
    "f |> asMatrix",
    "f |> asMatrix |> toMem(Shared, padded(p)) |> join |> asVectorAligned(v) |> split(t)"
    " |> mapSeqUnroll(fun(c => c |> mapWarpGroupThreads(fun(e => e)))) |> join |> asScalar |> split(m)",
    sizes=("p", "v", "t", "m"),
    meaning="A fragment's tile is stored through shared memory, from where the threads of a warpgroup write"
    " its rows, each v adjacent elements at once.",
)
KEEP_SHARED = rule(
    "keep in Shared",
    "x",
    "x |> toMem(Shared, padded(p))",
    sizes=("p",),
    meaning="A result is kept in shared memory, for all threads of the block.",
)
KEEP_DISTRIBUTED = rule(
    "keep in Distributed",
    "x",
    "x |> toMem(Distributed, padded(p))",
    sizes=("p",),
    meaning="What each block of a cluster computes is kept in its shared memory, for all of them.",
)
ROWS_BY_BLOCKS = rule(
    "rows by blocks",
    "xs",
    "xs |> split(r) |> mapBlock(d)(fun(rows => rows)) |> join",
    sizes=("r", "d"),
    meaning="An array, of which each block evaluates r rows.",
)


def _by_threads(name: str, copied: str, meaning: str) -> Rule:
    return rule(
        name,
        "xss",
        f"xss |> join |> {copied} |> asScalar |> split(m)",
        sizes=("v", "t", "m"),
        meaning=meaning,
    )


BY_THREADS = _by_threads(
    "by threads", COPIED, "All threads of a block evaluate a matrix, each v adjacent elements at once."
)
BY_THREADS_UNALIGNED = _by_threads(
    "by threads, unaligned",
    COPIED.replace("asVectorAligned", "asVector"),
    "The same where what the elements are computed from is not adjacent, or is not in memory.",
)
