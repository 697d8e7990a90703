"""Tiles that are inside have no conditions for their elements, where others stick out."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.nightly import every_other
from tests.support.warpgroups import DOT, ROLES, agrees, derived

TILE = {**ROLES, "block": (64, 32, 64), "warp": (64, 32), "fragment": (64, 32, 16)}


def added(m: int, n: int, result: str = "f32") -> str:
    """A·B + C, of 72 products each."""
    return (
        f"fun((A: {m}.72.f16, B: {n}.72.f16, C: {m}.{n}.{result}) => zip(A)(C) |> map(fun((row, cs) =>"
        f" zip(B)(cs) |> map(fun((col, c) => {result}(f32(c) + ({DOT})))))))"
    )


def versions(source: str) -> tuple[str, str]:
    """What is done with elements inside, and at the ends."""
    inside, at_ends = source.split("(0 < inside)")[1].split("(inside < 1)")
    return inside, at_ends


@pytest.mark.parametrize(
    ("m", "n", "result"), every_other([(130, 72, "f32"), (64, 40, "f16"), (129, 64, "f16"), (65, 33, "f32")])
)
def test_tiles_inside_have_no_conditions(m: int, n: int, result: str) -> None:
    text = added(m, n, result)
    made = derived(text, **TILE)
    inside, at_ends = versions(made.source)
    assert "if (" not in inside and "?" not in inside
    assert "if (" in at_ends
    assert agrees(text, made)


@pytest.mark.parametrize(("m", "n"), [(128, 64), (63, 31)])
def test_one_version_where_all_tiles_are_inside_or_none(m: int, n: int) -> None:
    text = added(m, n)
    made = derived(text, **TILE)
    assert "inside" not in made.source
    assert agrees(text, made)


def test_random_sizes() -> None:
    random = Random(seed := 2311)
    found = 0
    for _ in range(2):
        m, n, result = random.randint(1, 200), random.randint(1, 100), random.choice(["f16", "f32"])
        text = added(m, n, result)
        made = derived(text, **TILE)
        found += "inside" in made.source
        assert agrees(text, made), (seed, m, n, result)
    assert found
