"""Rings of bulk copies in loops, rings of one slot, and tiles that an instruction cannot move."""

from __future__ import annotations

import pytest

from codegen.pipeline import generate
from rewrites.result import Failure, Success
from rise.check.program import check_expression
from rise.errors import TranslationError
from rise.normal import data_flow
from rise.pretty import show
from strategies.matmul.tensor_core import tensor_core
from tests.support.warpgroups import agrees, derived, product

SMALL = {"block": (64, 8, 16), "warp": (64, 8), "fragment": (64, 8, 16), "raster_group": 1}


@pytest.mark.parametrize(
    ("stages", "depth", "more"),
    [
        (2, 48, {}),
        (3, 16, {"epilogue": "shared"}),
        (4, 48, {"epilogue": "bulk"}),
        (3, 80, {"cluster": 2, "persistent_blocks": 2}),
    ],
)
def test_a_ring_goes_on_from_tile_to_tile(stages: int, depth: int, more: dict[str, object]) -> None:
    """Four tiles by one block, or by the two of a cluster; with fewer steps than slots, or more.

    Through shared memory the sums lie where tiles come to: the copying unit is told what threads wrote there.
    """
    text = product(64, 32, depth)
    made = derived(text, stages, **{**SMALL, "persistent_blocks": 1, **more})
    before, _, after = made.source.partition("barrier_init")
    assert "for (" not in before.split("__global__")[1].rsplit("for (int s", 1)[0]
    assert "barrier_init" not in after.split("\n", 1)[1].replace("fence_barrier_init", "")
    assert ("fence_async_shared" in made.source) == ("epilogue" in more)
    for seed in range(2):
        assert agrees(text, made, seed)


def test_what_is_executed_once_initialises_its_mbarriers_where_it_stands() -> None:
    assert "turn" not in derived(product(64, 8, 48), 2, **{**SMALL, "persistent_blocks": 0}).source


def refused(text: str) -> TranslationError:
    with pytest.raises(TranslationError) as caught:
        generate(data_flow(check_expression(text)), "refused")
    return caught.value


def lowered(text: str, **parameters: object) -> str:
    result = tensor_core(**parameters)(data_flow(check_expression(text)))  # type: ignore[arg-type]
    return show(result.term, annotate=True)


def test_a_pipeline_with_roles_has_two_slots() -> None:
    text = lowered(product(64, 8, 48), **SMALL, stages=2, warp_specialised=True, epilogue="direct")
    assert "reduceRoleSplit(2, 1, 1)" in text
    error = refused(text.replace("reduceRoleSplit(2, 1, 1)", "reduceRoleSplit(1, 1, 1)"))
    assert error.code == "R0736" and "one slot" in error.message


@pytest.mark.parametrize(
    ("columns", "offset", "code", "said"),
    [
        (40, 8, "R0737", "is not aligned: it starts at element"),
        (36, 16, "R0606", "the first operand has rows of 36 elements, 72 bytes"),
        (40, 4, "R0606", "rows that start at multiples of 4 elements, 8 bytes"),
        (40, 16, "", ""),
    ],
)
def test_tiles_of_wmma_are_aligned(columns: int, offset: int, code: str, said: str) -> None:
    """Of a matrix of so many columns, those from `offset` on, as a fragment, and into the result."""
    text = (
        f"fun((A: 16.{columns}.f16, B: 16.16.f16) => A |> map(drop({offset})) |> map(take(16)) |>"
        " map(fun(row => B |> map(fun(col => zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y)))"
        " |> reduce(+, 0.0))))))"
    )
    sizes = {"block": (16, 16, 16), "warp": (16, 16), "fragment": (16, 16, 16)}
    result = tensor_core(**sizes, stages=0, epilogue="direct")(data_flow(check_expression(text)))  # type: ignore[arg-type]
    if said:
        assert isinstance(result, Failure)
        assert result.code == code and said in result.reason
    else:
        assert isinstance(result, Success)
