"""Barriers: where threads wait for each other, and nowhere else; of a warp where no other is concerned."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.ir import imperative as i
from codegen.ir.imperative import Level, Scope
from codegen.ir.kernel import Kernel
from codegen.ir.launch import Launch
from codegen.passes.allocate import Region, regions
from codegen.passes.analysis.dependences import Loop, Use
from codegen.passes.analysis.dependences import sync_scope as meeting
from codegen.passes.barriers import insert_barriers
from rise.errors import TranslationError
from rise.nat import Nat, constant, evaluate, quotient, remainder, variable
from rise.types import Array, Scalar, Space
from tests.support.kernels import agrees, kernel
from tests.support.nightly import every_other
from tests.support.products import derive, matrices
from tests.support.programs import program

COPY = "mapThreads(fun(x => x))"
SHARED = f"{COPY} |> toMem(Shared)"
SHIFTED = "slide(3, 1) |> mapThreads(fun(w => w |> reduceSeq(Local)(fun((s, t) => s + t), 0)))"
BACKWARDS = "reorder(64, natFun(i => 63 - i), natFun(i => 63 - i))"
ROWS_BACKWARDS = "reorder(4, natFun(i => 3 - i), natFun(i => 3 - i))"
SQUARE = "mapThreads(1)(mapThreads(0)(fun(x => x)))"
WARPS = "mapWarp(mapLane(fun(x => x)))"
ROWS_OF_WARPS = f"mapWarp(fun(w => w |> {BACKWARDS} |> mapLane(fun(x => x))))"

# elements of a block, what it does with them; barriers of the block, and of warps
BLOCKS = {
    "no shared memory": ("64.f32", f"r |> {COPY}", 0, 0),
    "read by who wrote it": ("64.f32", f"r |> {SHARED} |> mapThreads(fun(x => x + 1))", 0, 0),
    "windows": ("66.f32", f"r |> {SHARED} |> {SHIFTED}", 1, 0),
    "two copies, reversed": (
        *("64.f32", f"zip(r |> {SHARED} |> {BACKWARDS})(r |> {SHARED} |> {BACKWARDS})"),
        *(1, 0),
    ),
    "written and read backwards": (
        *("64.f32", f"r |> {COPY} |> {BACKWARDS} |> toMem(Shared) |> {BACKWARDS} |> {COPY}"),
        *(0, 0),
    ),
    "a square, read as written": ("8.8.f32", f"r |> {SQUARE} |> toMem(Shared) |> {SQUARE}", 0, 0),
    "a square, transposed": ("8.8.f32", f"r |> {SQUARE} |> toMem(Shared) |> transpose |> {SQUARE}", 1, 0),
    "split into the same parts": (
        *("64.f32", f"r |> {COPY} |> split(8) |> toMem(Shared) |> join |> {COPY}"),
        *(0, 0),
    ),
    "split, and read by columns": (
        *("64.f32", f"r |> {COPY} |> split(8) |> toMem(Shared) |> transpose |> join |> {COPY}"),
        *(1, 0),
    ),
    "a few elements of each thread": (
        "70.5.f32",
        "r |> mapThreads(mapSeq(fun(x => x))) |> toMem(Shared) |> mapThreads(mapSeq(fun(x => x + 1)))",
        *(0, 0),
    ),
    "rows of warps, read by the same lanes": ("4.70.f32", f"r |> {WARPS} |> toMem(Shared) |> {WARPS}", 0, 0),
    "rows of warps, read by other lanes": (
        *("4.64.f32", f"r |> {WARPS} |> toMem(Shared) |> {ROWS_OF_WARPS}"),
        *(0, 1),
    ),
    "rows of other warps": (
        *("4.64.f32", f"r |> {WARPS} |> toMem(Shared) |> {ROWS_BACKWARDS} |> {WARPS}"),
        *(1, 0),
    ),
    "by other lanes, later by other warps": (
        "4.64.f32",
        f"r |> {WARPS} |> toMem(Shared) |> fun(t => zip(t |> {ROWS_OF_WARPS} |> toMem(Shared))"
        f"(t |> {ROWS_BACKWARDS}) |> mapWarp(fun((u, v) => zip(u)(v) |> mapLane(fun((x, y) => x + y)))))",
        *(1, 1),
    ),
    "a block of one warp": ("30.f32", f"r |> {SHARED} |> {SHIFTED}", 0, 1),
    "an accumulator that its threads keep in shared memory": (
        "5.64.f32",
        "r |> reduceSeq(Shared)(fun((acc, row) => zip(acc)(row) |> mapThreads(fun((a, x) => a + x))),"
        f" generate(fun(i => f32(0))) |> mapThreads(fun(x => x))) |> {COPY}",
        *(0, 0),
    ),
}


def of_scope(command: i.Command, scope: Scope) -> int:
    return sum(c == i.Barrier(scope) for c in i.commands(command))


@pytest.mark.parametrize("case", BLOCKS)
def test_case_14_no_barrier_but_those_that_are_needed(case: str) -> None:
    type_, body, of_block, of_warp = BLOCKS[case]
    if case == "two copies, reversed":
        body += " |> mapThreads(fun((x, y) => x + y))"
    text = f"fun((xs: 3.{type_}) => xs |> mapBlock(fun(r => {body})))"
    made = kernel(text)
    found = made.function.body
    assert (of_scope(found, Scope.BLOCK), of_scope(found, Scope.WARP)) == (of_block, of_warp)
    assert all(agrees(made, program(text), seed) for seed in (0, 1))


def again(made: Kernel, grid: int) -> i.Command:
    """The kernel's body with barriers for a grid of other blocks."""
    placed = dict(made.stages)["place shared"]
    launch = Launch((grid, 1, 1), made.launch.block, made.launch.shared_bytes)
    return insert_barriers(placed, regions(placed, launch), launch).body


def test_case_14_a_block_that_uses_its_memory_again_waits_twice() -> None:
    made = kernel(f"fun((xs: 3.66.f32) => xs |> mapBlock(fun(r => r |> {SHARED} |> {SHIFTED})))")
    assert of_scope(again(made, 3), Scope.BLOCK) == 1
    assert of_scope(again(made, 2), Scope.BLOCK) == 2
    loop = kernel(f"fun((xs: 3.66.f32) => xs |> mapSeq(fun(r => r |> {SHARED} |> {SHIFTED})))")
    assert of_scope(loop.function.body, Scope.BLOCK) == 2


# --- stages of a product --------------------------------------------------------------------------------

# barriers for each tile of k: what is written by hand has no fewer
STAGES: dict[str, tuple[dict[str, Any], int]] = {
    "simple, through registers": ({"stages": 1, "cp_async": False}, 2),
    "simple, asynchronous": ({"stages": 1}, 2),
    "double buffered, prefetched into registers": ({"stages": 2, "cp_async": False}, 1),
    "a ring of three, through registers": ({"stages": 3, "cp_async": False}, 1),
    "a ring of two": ({"stages": 2}, 1),
    "a ring of three": ({"stages": 3}, 1),
    "a ring of five": ({"stages": 5}, 1),
}


@pytest.mark.parametrize("stages", every_other(STAGES))
def test_a_product_has_no_more_barriers_than_one_by_hand(stages: str) -> None:
    parameters, wanted = STAGES[stages]
    _, made = derive("columns", matrices(64, 64, 256), **parameters)
    (loop,) = (
        c for c in i.commands(made.function.body) if isinstance(c, i.For) and c.role is i.Role.PIPELINE
    )
    assert of_scope(loop, Scope.BLOCK) == wanted
    assert of_scope(made.function.body, Scope.BLOCK) == wanted, "and none before or behind the loop"


# --- warps do not wait for each other -------------------------------------------------------------------

F32 = Scalar("f32")


def written(target: str, *indices: Nat) -> i.Command:
    return i.Assign(i.Access(target, indices, F32), i.Number(1.0, F32))


def read(source: str, *indices: Nat) -> i.Command:
    return i.Assign(i.Access("own", (), F32), i.Access(source, indices, F32))


def lanes(name: str, body: i.Command) -> i.Command:
    return i.ParallelFor(Level.LANE, 0, name, constant(32), body)


def inserted(body: i.Command, launch: Launch) -> i.Command:
    """A body with barriers, around which a block has 4·64 numbers in `tile`; warps may have `mine`."""
    type_ = Array(constant(4), Array(constant(64), F32))
    function = i.Function("f", (), (), i.New(Space.SHARED, "tile", type_, body))
    regions_ = {"tile": Region(0, 1024), "mine": Region(1024, 2048)}
    return insert_barriers(function, regions_, launch).body


@pytest.mark.parametrize(("slots", "ahead"), [(2, 1), (4, 2)])
def test_a_ring_does_not_keep_warps_apart(slots: int, ahead: int) -> None:
    """Slots k and k + 2 of four differ in an iteration, and from the next; but warps are further apart.

    That the lanes of a warp wait for each other in every iteration does not help.
    """
    k, a, b = variable("k"), variable("a"), variable("b")
    exchange = [lanes("c", written("mine", variable("c"))), lanes("d", read("mine", -1 * variable("d") + 31))]
    step = i.sequence(
        *exchange,
        lanes("a", written("tile", remainder(k, slots), a)),
        lanes("b", read("tile", remainder(k + ahead, slots), b)),
    )
    inner = i.New(Space.SHARED, "mine", Array(constant(32), F32), i.For("k", constant(8), step))
    with pytest.raises(TranslationError) as refused:
        inserted(i.ParallelFor(Level.WARP, 0, "w", constant(2), inner), Launch(block=(64, 1, 1)))
    assert refused.value.code == "R0718"
    assert refused.value.message == "warps would have to synchronise inside mapWarp because of `tile`"
    alone = i.ParallelFor(Level.WARP, 0, "w", constant(1), inner)
    assert of_scope(inserted(alone, Launch(block=(32, 1, 1))), Scope.BLOCK) == 0


def test_rows_of_a_tile_are_all_of_its_rows() -> None:
    """Row 17 is in the tile that starts in row 16."""
    row, column = variable("row"), variable("column")
    extents = (("row", constant(16)), ("column", constant(16)))
    k = variable("k")
    tile = i.Tile("tile", k * 16 * 64, constant(64), True, F32, (k * 16 + row, column), extents)
    stored = i.StoreFragment(None, tile, i.Access("own", (), F32))  # type: ignore[arg-type]  # of no interest
    warp = i.ParallelFor(Level.WARP, 0, "w", constant(1), stored)
    others = i.ParallelFor(Level.THREAD, 0, "t", constant(64), read("tile", k * 16 + 1, variable("t")))
    for part, wanted in ((others, 1), (i.Skip(), 0)):
        body = inserted(i.For("k", constant(1), i.sequence(warp, part)), Launch(block=(64, 1, 1)))
        assert of_scope(body, Scope.BLOCK) == wanted


# --- who meets ------------------------------------------------------------------------------------------

THREADS, INNER = 64, 4
T, J = variable("t"), variable("j")
DIGITS = st.sampled_from(
    [T, quotient(T, 4), remainder(T, 4), quotient(T, 32), remainder(T, 32), J, T * 4 + J]
)
TERMS = st.tuples(DIGITS, st.sampled_from([1, 1, 2, 4, 8, 32, -1]))
INDEX = st.tuples(st.lists(TERMS, min_size=1, max_size=2), st.sampled_from([0, 0, 1, 64])).map(
    lambda drawn: sum((digit * factor for digit, factor in drawn[0]), constant(drawn[1]))
)
INDICES = st.lists(INDEX, min_size=1, max_size=2)
OPTIONS = st.tuples(INDICES, st.booleans(), INDICES)


def use(indices: list[Nat], written_: bool) -> Use:
    around = (Loop("t", constant(THREADS), (Level.THREAD, 0)), Loop("j", constant(INNER)))
    return Use("tile", tuple(indices), around, written_)


def places(indices: list[Nat]) -> dict[tuple[Any, ...], set[int]]:
    """By place: the threads that come there."""
    found: dict[tuple[Any, ...], set[int]] = defaultdict(set)
    for t in range(THREADS):
        for j in range(INNER):
            found[tuple(evaluate(n, {"t": t, "j": j}) for n in indices)].add(t)
    return found


def meets(first: list[Nat], second: list[Nat]) -> bool:
    """Whether a thread writes a place that another one reads, by trying all of them."""
    writers, readers = places(first), places(second)
    return any(w != r for place in writers for w in writers[place] for r in readers.get(place, ()))


def waits(first: list[Nat], second: list[Nat]) -> bool:
    """Whether threads wait for each other between writing and reading, according to the analysis."""
    scope = meeting(use(first, True), use(second, False), False, Launch(block=(THREADS, 1, 1)))
    assert scope in (None, Scope.BLOCK)
    return scope is not None


def test_no_barrier_is_left_out_where_threads_meet() -> None:
    """Any indices; that nobody waits has to be the answer often, too."""
    answers: Counter[str] = Counter()

    @settings(max_examples=150)
    @given(OPTIONS)
    def check(drawn: tuple[list[Nat], bool, list[Nat]]) -> None:
        first, same, other = drawn
        second = first if same else other[: len(first)]
        first = first[: len(second)]
        waiting = waits(first, second)
        answers["somebody waits" if waiting else "nobody waits"] += 1
        assert waiting or not meets(first, second)

    check()
    assert answers["nobody waits"] > 20 and answers["somebody waits"] > 20, answers


# parts of a thread's number and a loop in it, each with how many values it has
PARTS = (
    ((T, THREADS), (J, INNER)),
    ((quotient(T, 4), 16), (remainder(T, 4), 4), (J, INNER)),
    ((quotient(T, 32), 2), (remainder(T, 32), 32), (J, INNER)),
)


@st.composite
def layouts(draw: st.DrawFn) -> list[Nat]:
    """An array that threads share out: parts in any order, in one dimension or several, rows padded.

    A row is a whole number of what it consists of.
    """
    parts = draw(st.permutations(draw(st.sampled_from(PARTS))))
    indices, stride = [constant(0)], 1
    for part, count in parts:
        indices[-1] += part * stride
        stride *= count + draw(st.sampled_from([0, 0, 1, 2]))
        if part is not parts[-1][0] and draw(st.booleans()):
            indices.append(constant(0))
            stride = 1
    return indices


DISTANCES = st.sampled_from([0, 0, 1, 4, 32, 4096])


def test_threads_wait_exactly_where_they_meet() -> None:
    """Each reads what it wrote itself, or elements at a distance, which others wrote or nobody did."""
    answers: Counter[str] = Counter()

    @settings(max_examples=100)
    @given(layouts(), DISTANCES, st.integers(0, 2))
    def check(written_: list[Nat], distance: int, dimension: int) -> None:
        read_ = [*written_]
        read_[dimension % len(read_)] += distance
        waiting = waits(written_, read_)
        assert waiting is waits(read_, written_) is meets(written_, read_)
        answers["its own" if not distance else "somebody waits" if waiting else "nobody waits"] += 1

    check()
    assert min(answers[answer] for answer in ("its own", "somebody waits", "nobody waits")) > 15, answers
