"""Products whose second matrix is chosen by data: index arrays, and groups of rows of uneven sizes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from codegen.execute import available_backend, execute
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.program import Loader, check_text
from rise.check.specialise import specialise
from rise.expr import Expr
from rise.normal import data_flow
from strategies.auto import auto
from strategies.registry import find
from tests.support.examples import EXAMPLES
from tests.support.programs import succeeded

pytestmark = pytest.mark.skipif(available_backend() is None, reason="there is no C++ compiler")
GROUPS = Loader().load(EXAMPLES / "groups.rise").program
WARPS = {"block": "32,32,32", "warp": "16,16", "fragment": "16,8,16", "stages": "2", "epilogue": "direct"}
WARPGROUPS = {
    "block": "64,64,64", "warp": "64,64", "fragment": "64,64,16", "stages": "2", "epilogue": "bulk",
    "warp_specialised": "true",
}  # fmt: skip
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


def of_groups(x: NDArray[np.generic], w: NDArray[np.generic]) -> NDArray[np.float64]:
    """Group by group."""
    rows = zip(OFFSETS, OFFSETS[1:], w, strict=False)
    return np.concatenate([numbers(x)[start:end] @ numbers(matrix).T for start, end, matrix in rows])


@pytest.mark.parametrize("settings", [WARPS, WARPGROUPS], ids=["warps", "warpgroups"])
def test_rows_of_uneven_groups_are_multiplied_by_the_matrix_of_their_group(settings: dict[str, str]) -> None:
    """Tiles that reach into the next group, and behind the last row, and tiles that no group has."""
    rows, groups = int(OFFSETS[-1]), len(OFFSETS) - 1
    sizes = {"t": 7, "h": 64, "r": rows, "g": groups}
    tables = assemble(succeeded(auto("sm_90a")(program("tables", **sizes))).term, "tables")
    tiles, places = execute(tables, [OFFSETS], "emulate")
    assert list(tiles[1]) == [0, 64, 70, 71, 135, 135, 135]
    x, w = whole(3, rows, 64), whole(4, groups, 64, 64)
    term = program("productsOfTiles", **sizes, n=64, k=64)
    kernels = assemble(succeeded(find("tensor_core").make(settings)(term)).term, "groups")
    found = np.concatenate(numbers(execute(kernels, [x, w, tiles], "emulate")))
    np.testing.assert_array_equal(found[places], of_groups(x, w))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_auto_multiplies_tiles_on_tensor_cores_and_takes_their_rows_afterwards(target: str) -> None:
    term = program("groupedProducts", t=72, h=128, r=8192, n=512, k=7168, g=8)
    chosen = auto(target).choice(term).kernels
    assert [choice.point.strategy for choice in chosen] == ["tensor_core", "elementwise"]
    uses = chosen[0].point.schedule.uses_wgmma
    assert uses == (target == "sm_90a")


@pytest.mark.parametrize("cluster", [1, 2])
def test_persistent_blocks_take_the_tiles_of_all_matrices(cluster: int) -> None:
    """Also in clusters, which matrices in a dimension of the grid would not have."""
    settings = {**WARPGROUPS, "raster_group": "1", "persistent_blocks": "4", "cluster": str(cluster)}
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
