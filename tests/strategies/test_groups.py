"""Products whose second matrix is chosen by data: index arrays, and groups of rows of uneven sizes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from codegen.execute import available_backend, execute
from codegen.host.program import HostProgram, alone
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.errors import StrategyError
from rise.expr import Expr
from rise.interpret import call
from rise.normal import data_flow
from strategies.auto import auto
from strategies.registry import find
from tests.support.examples import EXAMPLES
from tests.support.nightly import every_other, in_turn
from tests.support.programs import loaded, succeeded

pytestmark = pytest.mark.skipif(available_backend() is None, reason="there is no C++ compiler")
GROUPS = loaded(EXAMPLES / "groups.rise")
WARPS = {"block": "32,32,32", "warp": "16,16", "fragment": "16,8,16", "stages": "2", "epilogue": "direct"}
WARPGROUPS = {
    "block": "64,64,64", "warp": "64,64", "fragment": "64,64,16", "stages": "2", "epilogue": "bulk",
    "warp_specialised": "true",
}  # fmt: skip
PERSISTENT = {**WARPGROUPS, "raster_group": "1", "persistent_blocks": "3"}
# groups whose last tile is any part of one of two warpgroups
PARTS = np.cumsum([0, 0, 1, 63, 64, 65, 127, 128, 129], dtype=np.int32)
OFFSETS = np.array([0, 0, 70, 71, 71, 135, 135], np.int32)  # none, 70, one, none, a tile, none


def program(name: str, **sizes: int) -> Expr:
    return data_flow(specialise(GROUPS[name], sizes))


def whole(seed: int, *shape: int) -> NDArray[np.generic]:
    """Whole numbers whose sums of 128 products are such of bf16: nothing is rounded."""
    import ml_dtypes

    found = np.random.default_rng(seed).integers(-1, 2, shape).astype(np.float32)
    return found.astype(ml_dtypes.bfloat16)


def numbers(array: NDArray[np.generic]) -> NDArray[np.float64]:
    return np.asarray(array).astype(np.float64)


@pytest.mark.parametrize(("settings", "m"), [(WARPS, 33), (WARPGROUPS, 64)], ids=["warps", "warpgroups"])
def test_operands_that_indices_choose_are_multiplied(settings: dict[str, str], m: int) -> None:
    sizes = {"b": 4, "c": 3, "d": 2, "m": m, "n": 72, "k": 64}
    term = succeeded(find("tensor_core").make(settings)(program("chosenProducts", **sizes))).term
    (kernel,) = assemble(term, "chosen").kernels
    copied = "bulk_load" if settings is WARPGROUPS else "copy_async_or_zero<8>"
    assert copied in kernel.source
    first, second = whole(1, 3, m, 64), whole(2, 2, 72, 64)
    firsts, seconds = np.array([2, 0, 2, 1], np.int32), np.array([1, 1, 0, 1], np.int32)
    found = execute(assemble(term, "chosen"), [first, second, firsts, seconds], "emulate")
    expected = numbers(first)[firsts] @ numbers(second)[seconds].swapaxes(1, 2)
    np.testing.assert_array_equal(numbers(found), expected)


def of_groups(
    offsets: NDArray[np.int32], x: NDArray[np.generic], w: NDArray[np.generic]
) -> NDArray[np.float64]:
    """Group by group."""
    rows = zip(offsets, offsets[1:], w, strict=False)
    return np.concatenate([numbers(x)[start:end] @ numbers(matrix).T for start, end, matrix in rows])


def tables_of(sizes: dict[str, int], offsets: NDArray[np.int32], b: int = 2) -> tuple[Any, Any, Any]:
    """The columns, the first row and the rows of each tile, the number of tiles, the owner of each row."""
    found: Any = call(program("tables", **sizes, b=b), offsets)
    (tiles, count), owners = found
    return as_given(tiles), as_given(count), as_given(owners)


def as_given(table: Any) -> Any:
    """As a kernel takes it."""
    return tuple(map(as_given, table)) if isinstance(table, tuple) else np.asarray(table, np.int32)


def sizes_of(offsets: NDArray[np.int32], h: int, c: int = 1) -> dict[str, int]:
    """Of tiles of h rows, each with c blocks of columns."""
    rows, groups = int(offsets[-1]), len(offsets) - 1
    return {"t": -(-rows // h) + groups, "h": h, "c": c, "r": rows, "g": groups}


SIXTY_FOUR = np.cumsum([0, *(np.random.default_rng(5).integers(0, 4, 64))], dtype=np.int32)
# by what is special: where groups of rows start, and how many rows there are
UNEVEN = {
    "none, 70, one, none, a tile, none": OFFSETS,
    "one row": np.array([0, 1], np.int32),
    "one row, in the last of three": np.array([0, 0, 0, 1], np.int32),
    "a tile, one less, one more": np.array([0, 64, 127, 192], np.int32),
    "all in the first": np.array([0, 129, 129, 129, 129], np.int32),
    "sixty-four groups of few rows": SIXTY_FOUR,
}


def test_tables_say_which_tiles_and_rows_groups_have() -> None:
    sizes = sizes_of(OFFSETS, 64)
    (groups, (starts, rows)), count, owners = tables_of(sizes, OFFSETS)
    assert int(count[0]) == 4
    tiles = list(zip(groups[:4], starts[:4], rows[:4], strict=True))
    assert tiles == [(1, 0, 64), (1, 64, 6), (2, 70, 1), (4, 71, 64)]
    assert set(starts[4:]) == {135} and not any(rows[4:])  # behind all rows
    assert [int(owners[row]) for row in (0, 63, 64, 69, 70, 71, 134)] == [0, 63, 64, 69, 128, 192, 255]


def test_one_kernel_computes_the_tables() -> None:
    sizes = sizes_of(PARTS, 128, 2)
    kernels = assemble(succeeded(auto("sm_90a")(program("tables", **sizes, b=2))).term, "tables")
    assert len(kernels.kernels) == 1
    (tiles, count), owners = execute(kernels, [PARTS], "emulate")
    wanted = tables_of(sizes, PARTS)
    for one, other in zip(leaves((tiles, count, owners)), leaves(wanted), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("h", "c", "w", "k"), [(128, 2, 256, 72), (64, 1, 24, 40), (5, 3, 7, 9)])
def test_one_program_computes_tables_and_products(h: int, c: int, w: int, k: int) -> None:
    """For warpgroups, for warps, and for threads. Who owns a place is what an earlier kernel has stored."""
    sizes = sizes_of(OFFSETS, h, c)
    x, matrices = whole(21, sizes["r"], k), whole(22, sizes["g"], c * w, k)
    term = program("productsOfGroups", **sizes, w=w, k=k, b=2)
    kernels = assemble(succeeded(auto("sm_90a")(term)).term, "groups")
    assert len(kernels.kernels) == 4
    found = execute(kernels, [x, matrices, OFFSETS], "emulate")
    np.testing.assert_array_equal(numbers(found), of_groups(OFFSETS, x, matrices))


def leaves(table: Any) -> list[Any]:
    return [leaf for part in table for leaf in leaves(part)] if isinstance(table, tuple) else [table]


@pytest.mark.parametrize(("groups", "epilogue"), in_turn(UNEVEN, ["direct", "rows"]))
def test_rows_of_uneven_groups_are_multiplied_by_the_matrix_of_their_group(
    groups: str, epilogue: str
) -> None:
    """One kernel; tiles that reach into the next group, or behind the last row, or that no group has."""
    offsets = UNEVEN[groups]
    sizes = sizes_of(offsets, 64)
    tiles, count, owners = tables_of(sizes, offsets)
    x, w = whole(3, sizes["r"], 64), whole(4, sizes["g"], 128, 64)
    settings = {**PERSISTENT, "epilogue": epilogue}
    term = program("groupedProducts", **sizes, w=128, k=64)
    kernels = assemble(succeeded(find("tensor_core").make(settings)(term)).term, "groups")
    assert [k.launch.grid for k in kernels.kernels] == [(min(3, 2 * sizes["t"]), 1, 1)]
    found = execute(kernels, [x, w, tiles, count, owners], "emulate")
    np.testing.assert_array_equal(numbers(found), of_groups(offsets, x, w))


# in which order blocks of columns are computed
HALVES = {**PERSISTENT, "block": "128,64,64", "persistent_blocks": "6", "epilogue": "rows"}
ORDERS = {
    "in bands": ({"c": 2, "w": 64}, 2, {}),
    "in clusters": ({"c": 3, "w": 128}, 1, {"cluster": "2"}),
}


@pytest.mark.parametrize(("columns", "band", "settings"), ORDERS.values(), ids=ORDERS)
def test_warpgroups_without_rows_multiply_nothing(
    columns: dict[str, int], band: int, settings: dict[str, str]
) -> None:
    """Their condition is around products and epilogue; slots are still released, by all of them."""
    sizes = sizes_of(PARTS, 128, columns["c"])
    tiles, count, owners = tables_of(sizes, PARTS, band)
    x, w = whole(17, sizes["r"], 192), whole(18, sizes["g"], columns["c"] * columns["w"], 192)
    term = program("groupedProducts", **sizes, w=columns["w"], k=192)
    kernels = assemble(succeeded(find("tensor_core").make({**HALVES, **settings})(term)).term, "groups")
    (source,) = (kernel.source.split("__global__")[1] for kernel in kernels.kernels)
    before, products, epilogue = source.split("if (warpgroup * 64 < ")
    assert "wgmma<" not in before and "wgmma<" in products and "&output[" in epilogue
    assert "barrier_arrive" in products.split("named_barrier")[1]
    found = execute(kernels, [x, w, tiles, count, owners], "emulate")
    np.testing.assert_array_equal(numbers(found), of_groups(PARTS, x, w))


def test_warpgroups_that_take_turns_multiply_the_rows_of_two_fragments() -> None:
    """Each has a tile of its own, of which any part is missing."""
    sizes = sizes_of(PARTS, 128, 2)
    tiles, count, owners = tables_of(sizes, PARTS)
    x, w = whole(19, sizes["r"], 192), whole(20, sizes["g"], 128, 192)
    settings = {**HALVES, "warp": "128,64", "ping_pong": "2", "stages": "3"}
    made = find("tensor_core").make(settings)(program("groupedProducts", **sizes, w=64, k=192))
    found = execute(assemble(succeeded(made).term, "groups"), [x, w, tiles, count, owners], "emulate")
    np.testing.assert_array_equal(numbers(found), of_groups(PARTS, x, w))


SHORT = {
    "in turn": {"warp": "128,64", "ping_pong": "2", "stages": "3"},
    "two warpgroups share a tile": {},
    "in clusters": {"warp": "128,64", "ping_pong": "2", "stages": "3", "cluster": "2"},
    "without roles": {"warp_specialised": "false"},
    "tiles of 256 rows": {"block": "256,64,64", "warp": "128,64"},
}


@pytest.mark.parametrize("settings", every_other(SHORT.values()), ids=every_other(SHORT))
def test_half_a_tile_is_loaded_where_no_more_rows_are_needed(settings: dict[str, str]) -> None:
    """The emulator fills the other half with NaN, so no result depends on it."""
    height = int({**HALVES, **settings}["block"].split(",")[0])
    kernels, inputs, expected = of_parts(settings, height)
    (kernel,) = kernels.kernels
    whole_box, half_box = sorted(
        (m.map.box for m in kernel.function.maps if m.buffer == "X"), key=lambda box: -box[1]
    )
    assert whole_box[0] == half_box[0] and whole_box[1] == 2 * half_box[1]
    assert "leave_undefined(" in kernel.source
    np.testing.assert_array_equal(numbers(execute(kernels, inputs, "emulate")), expected)


def test_short_tiles_are_found_behind_a_function_of_the_rows() -> None:
    """relu(rows) is computed from the fragments that warpgroups read, of the half that is loaded."""
    text = (EXAMPLES / "groups.rise").read_text(encoding="utf-8")
    text = text.replace("linear(rows, weights)", "linear(rows |> map(map(x => max(x, 0))), weights)")
    sizes = sizes_of(PARTS, 128)
    tiles, count, owners = tables_of(sizes, PARTS)
    x, w = whole(25, sizes["r"], 64), whole(26, sizes["g"], 64, 64)
    term = data_flow(specialise(check_text(text)["groupedProducts"], {**sizes, "w": 64, "k": 64}))
    made = find("tensor_core").make({**HALVES, "warp": "128,64", "ping_pong": "2", "short_tiles": "true"})
    kernels = assemble(succeeded(made(term)).term, "groups")
    assert "leave_undefined(" in kernels.kernels[0].source
    found = execute(kernels, [x, w, tiles, count, owners], "emulate")
    np.testing.assert_array_equal(numbers(found), of_groups(PARTS, np.maximum(x, 0), w))


def of_parts(settings: dict[str, str], height: int) -> tuple[HostProgram, list[Any], NDArray[np.float64]]:
    """Groups whose last tile is any part of two halves: with short tiles."""
    sizes = sizes_of(PARTS, height, 2)
    tiles, count, owners = tables_of(sizes, PARTS)
    x, w = whole(23, sizes["r"], 192), whole(24, sizes["g"], 256, 192)
    made = find("tensor_core").make({**HALVES, **settings, "short_tiles": "true"})
    kernels = assemble(succeeded(made(program("groupedProducts", **sizes, w=128, k=192))).term, "groups")
    return kernels, [x, w, tiles, count, owners], of_groups(PARTS, x, w)


def test_a_needed_row_that_is_left_out_is_noticed() -> None:
    """Where the half is loaded for a row more than it has, the result of that row is NaN."""
    kernels, inputs, expected = of_parts(SHORT["in turn"], 128)
    (kernel,) = kernels.kernels
    wrong = re.sub(r"if \(64 < (index_\d+)\)", r"if (65 < \1)", kernel.source)
    wrong = re.sub(r"if \((index_\d+) < 65\)", r"if (\1 < 66)", wrong)
    assert wrong != kernel.source
    found = numbers(execute(alone(replace(kernel, source=wrong)), inputs, "emulate"))
    different = np.flatnonzero((found != expected).any(axis=1))
    group = next(i for i, rows in enumerate(np.diff(PARTS)) if rows == 65)
    assert list(different) == [PARTS[group] + 64]
    assert np.isnan(found[different]).all()


def test_tiles_in_panels_are_loaded_whole() -> None:
    """Each panel is a box of its own."""
    sizes = sizes_of(PARTS, 128, 2)
    settings = {**HALVES, "block": "128,64,128", "short_tiles": "true"}
    term = program("groupedProducts", **sizes, w=128, k=256)
    (kernel,) = assemble(succeeded(find("tensor_core").make(settings)(term)).term, "groups").kernels
    assert "leave_undefined" not in kernel.source


def test_tiles_without_halves_are_refused() -> None:
    with pytest.raises(StrategyError, match="fewer rows than a warpgroup multiplies") as refused:
        find("tensor_core").make({**HALVES, "block": "64,64,64", "short_tiles": "true"})
    assert refused.value.code == "R0609"


def test_short_tiles_need_numbers_of_rows() -> None:
    term = program("chosenProducts", b=4, c=3, d=2, m=128, n=64, k=64)
    failure = find("tensor_core").make({**HALVES, "short_tiles": "true"})(term)
    assert isinstance(failure, Failure)
    assert "no `prefixes` says how many rows" in str(failure.error("tensor_core"))


def test_auto_loads_short_tiles_where_memory_takes_longest() -> None:
    """Of 64 groups half of the last tiles have at most half of the rows; of 8 there are few last tiles."""
    for groups, short in ((64, True), (8, False)):
        term = program("groupedProducts", t=64 + groups, h=128, c=28, w=256, r=8192, k=2048, g=groups)
        (chosen,) = auto("sm_90a").choice(term).kernels
        assert chosen.point.schedule.short_tiles == short, groups


SCHEDULES = {
    "warps": WARPS,
    "warps, through shared memory": {**WARPS, "epilogue": "shared"},
    "a block for each tile": {**WARPGROUPS, "epilogue": "rows"},
    "no roles": {**WARPGROUPS, "epilogue": "rows", "warp_specialised": "false"},
    "turns": {**PERSISTENT, "epilogue": "rows", "ping_pong": "2"},
    "clusters": {**PERSISTENT, "epilogue": "rows", "persistent_blocks": "4", "cluster": "2"},
    "two fragments in a row": {**PERSISTENT, "block": "64,96,64", "warp": "64,96", "fragment": "64,48,16",
                               "epilogue": "rows"},
}  # fmt: skip


@pytest.mark.parametrize("settings", every_other(SCHEDULES.values()), ids=every_other(SCHEDULES))
def test_any_schedule_takes_groups(settings: dict[str, str]) -> None:
    sizes = sizes_of(OFFSETS, 64)
    tiles, count, owners = tables_of(sizes, OFFSETS)
    x, w = whole(5, sizes["r"], 128), whole(6, sizes["g"], 192, 128)
    term = program("groupedProducts", **sizes, w=192, k=128)
    kernels = assemble(succeeded(find("tensor_core").make(settings)(term)).term, "groups")
    found = execute(kernels, [x, w, tiles, count, owners], "emulate")
    np.testing.assert_array_equal(numbers(found), of_groups(OFFSETS, x, w))


def test_operands_are_brought_into_the_cache_as_the_schedule_says() -> None:
    term = program("groupedProducts", **sizes_of(OFFSETS, 64), w=128, k=64)
    made = find("tensor_core").make({**PERSISTENT, "epilogue": "rows", "promoted": "256"})(term)
    (kernel,) = assemble(succeeded(made).term, "groups").kernels
    assert [parameter.map.promoted for parameter in kernel.function.maps] == [256, 256]


# of tiles of 64 rows: how many are in the first kernel, and what the tiles behind them are; OFFSETS make 4
RESTS = {
    "all but one, in turns": {"rest": "1,64,32", "ping_pong": "2"},
    "two of four": {"rest": "2,64,64"},
    "three of four, in clusters": {"rest": "3,64,48", "persistent_blocks": "4", "cluster": "2"},
    "none of four": {"rest": "4,64,32"},
    "fewer than none": {"rest": "8,64,32"},
    "by a block for each tile": {"rest": "2,64,32", "persistent_blocks": "0"},
    "the first in raster order": {"rest": "6,64,32", "raster_matrices": "3"},
}


@pytest.mark.parametrize("settings", every_other(RESTS.values()), ids=every_other(RESTS))
def test_the_last_tiles_are_finer_ones_of_a_second_kernel(settings: dict[str, str]) -> None:
    """Whatever data say of how many tiles there are: also none for the second kernel."""
    sizes = sizes_of(OFFSETS, 64)
    tiles, count, owners = tables_of(sizes, OFFSETS)
    x, w = whole(13, sizes["r"], 72), whole(14, sizes["g"], 136, 72)
    made = find("tensor_core").make({**PERSISTENT, "epilogue": "rows", **settings})
    kernels = assemble(succeeded(made(program("groupedProducts", **sizes, w=136, k=72))).term, "groups")
    first, second = kernels.kernels
    # the condition is around all that a block does for a tile, but for those that are not in order
    for kernel in (first, second) if "raster_matrices" not in settings else (second,):
        assert kernel.source.index("< count") < kernel.source.index("bulk_load(")
    found = execute(kernels, [x, w, tiles, count, owners], "emulate")
    np.testing.assert_array_equal(numbers(found), of_groups(OFFSETS, x, w))


@pytest.mark.parametrize("cluster", [1, 2])
def test_tiles_of_several_groups_are_taken_column_by_column(cluster: int) -> None:
    """Three rows of tiles at a time, of nine, some of which no group has."""
    sizes = sizes_of(OFFSETS, 64)
    tiles, count, owners = tables_of(sizes, OFFSETS)
    x, w = whole(15, sizes["r"], 72), whole(16, sizes["g"], 200, 72)
    settings = {**PERSISTENT, "epilogue": "rows", "cluster": str(cluster), "persistent_blocks": "4"}
    term = program("groupedProducts", **sizes, w=200, k=72)
    term_of = succeeded(find("tensor_core").make({**settings, "raster_matrices": "3"})(term)).term
    (kernel,) = assemble(term_of, "groups").kernels
    index = "cluster_x" if cluster > 1 else "block_x"
    assert f"tiles_snd_fst_[({index} / {12 // cluster}) * 3 + {index} % 3]" in kernel.source
    found = execute(assemble(term_of, "groups"), [x, w, tiles, count, owners], "emulate")
    np.testing.assert_array_equal(numbers(found), of_groups(OFFSETS, x, w))
    assert isinstance(find("tensor_core").make({**settings, "raster_matrices": "2"})(term), Failure)


def test_a_rest_needs_an_array_of_matrices_that_is_longer() -> None:
    made = find("tensor_core").make({**PERSISTENT, "epilogue": "rows", "rest": "9,64,32"})
    term = program("groupedProducts", **sizes_of(OFFSETS, 64), w=128, k=64)  # 9 tiles
    refused = made(term)
    assert isinstance(refused, Failure)
    assert "no matrices are behind the first 9" in refused.reason


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"rest": "0,64,32"}, "one matrix or more"), ({"rest": "2,32,32"}, "64 rows for each"),
        ({"rest": "2,64,12"}, "columns"), ({"rest": "2,64,264"}, "columns"),
        ({"rest": "2,64,32", "swap_operands": "true", "epilogue": "bulk"}, "as they are stored"),
    ],
)  # fmt: skip
def test_a_rest_that_makes_no_sense_is_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(StrategyError, match=said) as refused:
        find("tensor_core").make({**PERSISTENT, "epilogue": "rows", **settings})
    assert refused.value.code == "R0609" and refused.value.hint


@pytest.mark.parametrize("n", [100, 257])
def test_rows_need_not_be_whole_chunks(n: int) -> None:
    """Threads write as many elements at once as divide a row; tiles of columns stick out."""
    sizes = sizes_of(OFFSETS, 64)
    tiles, count, owners = tables_of(sizes, OFFSETS)
    x, w = whole(9, sizes["r"], 72), whole(10, sizes["g"], n, 72)
    term = program("groupedProducts", **sizes, w=n, k=72)
    settings = {**PERSISTENT, "epilogue": "rows"}
    kernels = assemble(succeeded(find("tensor_core").make(settings)(term)).term, "groups")
    found = execute(kernels, [x, w, tiles, count, owners], "emulate")
    np.testing.assert_array_equal(numbers(found), of_groups(OFFSETS, x, w))


@pytest.mark.parametrize("h", every_other([1, 48, 63, 65]))
def test_threads_bring_tiles_that_are_no_boxes(h: int) -> None:
    """Zeros behind a window are inside of X, so `auto` takes instructions of warps."""
    sizes = sizes_of(OFFSETS, h)
    tiles, count, owners = tables_of(sizes, OFFSETS)
    x, w = whole(11, sizes["r"], 40), whole(12, sizes["g"], 24, 40)
    term = program("groupedProducts", **sizes, w=24, k=40)
    kernels = assemble(succeeded(auto("sm_90a")(term)).term, "groups")
    assert len(kernels.kernels) == 1
    found = execute(kernels, [x, w, tiles, count, owners], "emulate")
    np.testing.assert_array_equal(numbers(found), of_groups(OFFSETS, x, w))


@pytest.mark.parametrize("seed", range(3))
def test_tables_that_contradict_each_other_make_no_races(seed: int) -> None:
    """Any numbers for tiles and owners: what a row owns is written, where it belongs, and nothing else."""
    sizes = {"t": 5, "h": 64, "c": 1, "r": 100, "g": 3}
    draw = np.random.default_rng(seed)
    groups, starts, there = (draw.integers(0, most, 5).astype(np.int32) for most in (3, 101, 65))
    tiles = groups, (starts, there)
    owners, count = draw.integers(0, 320, 100).astype(np.int32), np.array([3], np.int32)
    for row in range(0, 100, 3):  # some of them are right
        tile = draw.integers(0, 5)
        owners[row] = 64 * tile + np.clip(row - starts[tile], 0, 63)
    x, w = whole(7, 100, 64), whole(8, 3, 64, 64)
    term = program("groupedProducts", **sizes, w=64, k=64)
    settings = {**PERSISTENT, "epilogue": "rows"}
    kernels = assemble(succeeded(find("tensor_core").make(settings)(term)).term, "groups")
    found = numbers(execute(kernels, [x, w, tiles, count, owners], "emulate"))
    rows = np.concatenate([numbers(x), np.zeros((64, 64))])
    for row in range(100):
        owner, inside = divmod(int(owners[row]), 64)
        belongs = min(starts[owner] + inside, 99) == row
        undefined = inside >= there[owner] and np.isnan(found[row]).all()  # nobody has to compute it
        if owner < 3 and belongs and not undefined:
            expected = rows[starts[owner] + inside] @ numbers(w)[groups[owner]].T
            np.testing.assert_array_equal(found[row], expected)
        else:
            assert np.isnan(found[row]).all()


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_auto_makes_one_kernel_of_groups(target: str) -> None:
    term = program("groupedProducts", t=72, h=128, c=1, w=512, r=8192, k=7168, g=8)
    (chosen,) = auto(target).choice(term).kernels
    assert chosen.point.strategy == "tensor_core"
    schedule = chosen.point.schedule
    assert schedule.uses_wgmma == (target == "sm_90a")
    if schedule.uses_wgmma:
        assert schedule.persistent_blocks == 132 and schedule.epilogue == "rows"


@pytest.mark.parametrize("cluster", [1, 2])
def test_persistent_blocks_take_the_tiles_of_all_matrices(cluster: int) -> None:
    """Also in clusters, which matrices in a dimension of the grid would not have."""
    settings = {**PERSISTENT, "persistent_blocks": "4", "cluster": str(cluster)}
    sizes = {"b": 5, "c": 3, "d": 2, "m": 64, "n": 128, "k": 128}
    term = succeeded(find("tensor_core").make(settings)(program("chosenProducts", **sizes))).term
    (kernel,) = assemble(term, "chosen").kernels
    assert kernel.launch.grid == (4, 1, 1)
    first, second = whole(1, 3, 64, 128), whole(2, 2, 128, 128)
    firsts, seconds = np.array([2, 0, 2, 1, 1], np.int32), np.array([1, 1, 0, 1, 0], np.int32)
    found = execute(assemble(term, "chosen"), [first, second, firsts, seconds], "emulate")
    expected = numbers(first)[firsts] @ numbers(second)[seconds].swapaxes(1, 2)
    np.testing.assert_array_equal(numbers(found), expected)


def test_tiles_joined_to_rows_are_one_kernel() -> None:
    term = program("tiledGroups", t=5, h=128, n=256, k=512, g=3)
    assert len(auto("sm_90a").choice(term).kernels) == 1


def test_an_index_that_varies_within_a_tile_is_no_box() -> None:
    """Rows chosen one by one cannot be copied in bulk."""
    text = """
def f(X: 64.64.bf16, W: 64.64.bf16, rows: 64.Idx[64]): 64.64.f32 =
  X |> gather(rows) |> map(row => W |> map(col =>
    zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)))
"""
    term = data_flow(specialise(check_text(text)["f"], {}))
    refused = find("tensor_core").make(WARPGROUPS)(term)
    assert isinstance(refused, Failure)
    assert "rearranged by `gather`" in refused.reason
