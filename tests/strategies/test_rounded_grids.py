"""Groups of raster order and clusters that tiles of a result do not fill: what is added changes nothing."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import codegen
from rise.check.program import check_text
from strategies.matmul.tensor_core import tensor_core
from tests.support.nightly import every_other

PRODUCT = check_text("""
def product{m: Nat, n: Nat, k: Nat}(A: m.k.f16, B: k.n.f16): m.n.f16 =
  A |> map(row => transpose(B) |> map(col =>
    f16(zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0))))
""")["product"]
SEED = 14


def compiled(
    sizes: dict[str, int], group: int, cluster: int, persistent: int = 0, swapped: bool = False
) -> codegen.Compiled:
    schedule = tensor_core(
        (64, 64, 64), (64, 64), (64, 64, 16), 2, epilogue="bulk", warp_specialised=True,
        raster_group=group, cluster=cluster, persistent_blocks=persistent, swap_operands=swapped,
    )  # fmt: skip
    return codegen.compile(PRODUCT, schedule, sizes=sizes, backend="emulate", target="sm_90a")


@pytest.mark.parametrize("case", every_other(range(4)))
def test_any_group_and_any_cluster_give_the_product(case: int) -> None:
    """Sizes, groups, clusters and persistent blocks at random, every other one with operands swapped."""
    rng = random.Random(SEED + case)
    sizes = {name: 8 * rng.randrange(1, 40) for name in "mnk"}
    group, cluster = rng.choice([(1, 2), (1, 4), (3, 3), (2, 4), (5, 1), (4, 2)])
    persistent = rng.choice([0, 2 * cluster])
    compiled_ = compiled(sizes, group, cluster, persistent, swapped=case % 2 == 1)
    numbers = np.random.default_rng(SEED + case)
    A, B = (numbers.integers(-3, 4, (sizes[r], sizes[c])).astype(np.float16) for r, c in ("mk", "kn"))
    said = f"{sizes}, group {group}, cluster {cluster}, persistent {persistent}, seed {SEED}"
    assert np.array_equal(compiled_(A, B), (A.astype(np.float64) @ B).astype(np.float16)), said


@pytest.mark.parametrize(
    ("rows", "group", "cluster", "persistent"), [(7, 3, 1, 0), (5, 16, 1, 2), (9, 4, 2, 4)]
)
def test_the_last_group_of_raster_order_has_the_rows_that_are_left(
    rows: int, group: int, cluster: int, persistent: int
) -> None:
    """No tile is behind the end, but for one that completes a cluster, and blocks of a cluster share B."""
    m, n = 64 * rows - 3, 136
    compiled_ = compiled({"m": m, "n": n, "k": 40}, group, cluster, persistent)
    numbers = np.random.default_rng(SEED)
    A, B = (numbers.integers(-3, 4, shape).astype(np.float16) for shape in ((m, 40), (40, n)))
    assert np.array_equal(compiled_(A, B), (A.astype(np.float64) @ B).astype(np.float16))
    tiles = -(-rows // cluster) * 3
    loop, grid = f"_x < {tiles};", compiled_.program.kernels[0].launch.grid[0]
    assert loop in compiled_.source if persistent else grid == tiles
    assert ("B_map_part" in compiled_.source) == (cluster > 1)


@pytest.mark.parametrize(("group", "shared"), [(1, "A"), (2, "B")])
def test_the_operand_that_blocks_share_is_sent_to_both(group: int, shared: str) -> None:
    """Neighbours in a row of tiles have rows of A in common, those in a column have columns of B."""
    text = compiled({"m": 192, "n": 136, "k": 72}, group, 2).source
    multicast = {name[0].upper() for name in re.findall(r"(\w+?)_part", text)}
    assert multicast == {shared}


def test_swapped_operands_are_what_is_shared_along_the_other_dimension() -> None:
    """Groups of one row are neighbours in a row of the transposed result, and have columns of B in common."""
    text = compiled({"m": 136, "n": 192, "k": 72}, 1, 2, swapped=True).source
    assert {name[0].upper() for name in re.findall(r"(\w+?)_part", text)} == {"B"}
    assert "store_matrices_transposed" in text
