"""docs/hopper-machine.md: its table says by which rules the parameters of `tensor_core` change a program."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rewrites.library import rules
from rise.check.program import check_expression
from rise.normal import data_flow
from strategies.matmul.schedule import Schedule
from strategies.matmul.tensor_core import tensor_core
from tests.support.nightly import every_other
from tests.support.programs import succeeded

PAGE = Path(__file__).parents[2] / "docs" / "hopper-machine.md"
DOT = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
SMALL: dict[str, Any] = {
    "block": (128, 128, 64), "warp": (64, 128), "fragment": (64, 128, 16), "stages": 2, "raster_group": 1,
    "warp_specialised": True, "persistent_blocks": 2, "cluster": 2, "epilogue": "bulk",
}  # fmt: skip
TILE = {"persistent_blocks": 0, "cluster": 1, "epilogue": "shared"}
# parameters with which the rules of one are applied, and others with which they are not
OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "warp_specialised": ({}, {"warp_specialised": False}),
    "raster_group": (
        {"persistent_blocks": 0, "cluster": 1},
        {"raster_group": 0, "persistent_blocks": 0, "cluster": 1},
    ),
    "persistent_blocks": ({"cluster": 1}, {"persistent_blocks": 0, "cluster": 1}),
    "cluster": ({}, {"cluster": 1}),
    "ping_pong": ({"block": (64, 128, 64), "ping_pong": 2}, {"block": (64, 128, 64)}),
    "epilogue": ({}, {"epilogue": "direct"}),
    "split_k": ({"split_k": 2, "cluster": 1}, {"cluster": 1}),
    "split_cluster": ({**TILE, "split_cluster": 2}, TILE),
}


def table() -> dict[str, tuple[str, ...]]:
    """The rules of each parameter."""
    rows = re.findall(r"^\| (`\w+=.*?) \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.findall(r"\w+", parameter)[0]: tuple(re.findall(r"`([^`]+)`", by)) for parameter, by in rows}


@cache
def derivation(given: tuple[tuple[str, Any], ...]) -> set[str]:
    """The names of the rules that take a product to warpgroups."""
    text = f"fun((A: 256.256.f16, B: 256.256.f16) => A |> map(fun(row => B |> map(fun(col => f16({DOT}))))))"
    result = succeeded(tensor_core(**{**SMALL, **dict(given)})(data_flow(check_expression(text))))
    return {step.rule for step in result.steps}


def test_it_names_parameters_and_rules_that_there_are() -> None:
    assert set(OTHERS) < set(table()) < {field.name for field in fields(Schedule)}
    named = {name for by in table().values() for name in by}
    assert not named - set(rules()) - set(OTHERS)


@pytest.mark.parametrize("parameter", every_other(OTHERS))
def test_a_parameter_is_done_by_its_rules(parameter: str) -> None:
    """They are in a derivation with the parameter, and in none without it."""
    with_it, without = (derivation(tuple(given.items())) for given in OTHERS[parameter])
    by = set(table()[parameter]) & set(rules())
    assert by and by <= with_it and not by & without
