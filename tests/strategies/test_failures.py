"""What a user reads where a strategy does not apply: the texts of `golden/failures.txt`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from rewrites.algorithmic import BLOCK_REDUCE, LIFT_REDUCE, MAP_CONSTANT, MAP_FUSION, SPLIT_JOIN
from rewrites.movement import DROP_UNUSED, SPLIT_MAP, TILE, TRANSPOSE_ROWS, TRANSPOSE_TWICE, ZIP_VIEW_FIRST
from rewrites.result import Failure, Success
from rewrites.rule import RULES, rule
from rise.check.program import check_text
from rise.expr import Expr
from rise.normal import data_flow
from strategies.core import (
    Rewrite,
    applies,
    argument_of,
    body,
    check,
    choice,
    fail,
    id_,
    not_,
    outermost,
    position,
    repeat,
    seq,
    skip,
    top_down,
    try_,
)
from strategies.matmul.tensor_core import tensor_core
from strategies.places import mapped
from tests.support.golden import assert_golden

GOLDEN = Path(__file__).parent / "golden" / "failures.txt"

SCALE = "def f = fun(xs: 97.i32 =>\n  xs |> map(fun(x => x * 2))\n     |> map(fun(x => x + 1)))"
GRID = "def f = fun(xss: 6.9.i32 =>\n  xss |> transpose\n      |> map(fun(xs => xs |> reduce(+, 0))))"
PAIRS = """def f = fun((xs: 8.i32, ys: 8.i32) =>
  zip(xs |> map(fun(x => x * x)))(ys)
  |> map(fun((x, y) => x - y)))"""
PRODUCT = """def f = fun((A: {m}.{k}.{t}, B: {k}.{n}.{t}) =>
  A |> map(fun(row => B |> transpose |> map(fun(col =>
    zip(row)(col) |> map(fun((a, b) => a * b)) |> reduce(+, 0))))))"""


def product(m: int, n: int, k: int, element: str = "f16") -> str:
    return PRODUCT.format(m=m, n=n, k=k, t=element)


SMALL = tensor_core((32, 32, 32), (16, 16))
CASES: Mapping[str, tuple[Rewrite, str]] = {
    "a tile that does not divide": (top_down(SPLIT_JOIN.with_sizes(n=32)), SCALE),
    "a parameter that has no value": (top_down(SPLIT_JOIN), SCALE),
    "another primitive inside": (body(TRANSPOSE_TWICE), GRID),
    "another primitive everywhere": (top_down(MAP_FUSION), GRID),
    "an inner term that depends on the outer element": (
        top_down(TRANSPOSE_ROWS),
        "def f = fun(xss: 3.4.i32 =>\n  xss |> map(fun(r => r |> map(fun(x => x + 1)))) |> transpose)",
    ),
    "an element that is used": (top_down(MAP_CONSTANT), SCALE),
    "a condition of a rule": (top_down(ZIP_VIEW_FIRST), PAIRS),
    "a computed rule": (top_down(DROP_UNUSED), PAIRS),
    "the closest of several": (top_down(choice(TRANSPOSE_TWICE, SPLIT_MAP, MAP_FUSION, LIFT_REDUCE)), GRID),
    "what was optional came closer": (
        seq(try_(top_down(BLOCK_REDUCE.with_sizes(n=4))), top_down(TRANSPOSE_TWICE)),
        GRID,
    ),
    "after some steps": (
        seq(
            top_down(MAP_FUSION),
            top_down(SPLIT_JOIN.with_sizes(n=1)),
            top_down(TILE.with_sizes(bm=2, bn=2)),
        ),
        SCALE,
    ),
    "a predicate": (
        outermost(applies("scan"), id_),
        SCALE,
    ),
    "a predicate with a reason": (
        body(check(applies("reduce"), "sums", "the result is not a sum: end the pipe with `reduce`")),
        SCALE,
    ),
    "a strategy that must not apply": (not_(top_down(MAP_FUSION)), SCALE),
    "a place that is not there": (body(body(MAP_FUSION)), SCALE),
    "a place under a map": (body(mapped(mapped(MAP_FUSION))), SCALE),
    "an argument of another primitive": (body(argument_of("reduce", id_)), SCALE),
    "fewer parts than a position": (position(1000, id_), SCALE),
    "fewer matches than are skipped": (skip(3, MAP_FUSION), SCALE),
    "a repetition without end": (repeat(top_down(SPLIT_JOIN.with_sizes(n=1)), limit=20), SCALE),
    "a product with tiles that do not divide": (
        body(body(TILE.with_sizes(bm=32, bn=32))),
        product(64, 48, 64),
    ),
    "a reduction with tiles that do not divide": (
        top_down(BLOCK_REDUCE.with_sizes(n=32)),
        product(64, 64, 48),
    ),
    "a product whose rows cannot be copied": (SMALL, product(64, 43, 64)),
    "a product of other elements": (SMALL, product(64, 64, 64, "f32")),
}


def program(text: str) -> Expr:
    return data_flow(check_text(text, "program.rise")["f"].body)


def message(name: str) -> str:
    made, text = CASES[name]
    result = made(program(text))
    assert isinstance(result, Failure), name
    return result.error("schedule").render()


def texts() -> str:
    return "\n\n".join(f"# {name}\n{message(name)}" for name in CASES) + "\n"


def test_messages_are_those_of_the_golden_file() -> None:
    assert_golden(GOLDEN, texts())


@pytest.mark.parametrize("name", CASES)
def test_a_message_has_place_rule_and_reason(name: str) -> None:
    lines = message(name).splitlines()
    assert lines[0].startswith("program.rise:"), lines[0]
    assert "does not apply: " in lines[0] or "still applicable" in lines[0]
    assert any(set(line) <= set(" |^") and "^" in line for line in lines)
    assert all(len(line) < 240 for line in lines)


def test_a_hint_is_right() -> None:
    """The sizes that are named in place of one that does not divide do apply."""
    term = program(SCALE.replace("97", "48"))
    failed = top_down(SPLIT_JOIN.with_sizes(n=32))(term)
    assert isinstance(failed, Failure)
    assert failed.hint == "take n = 12, 16, 24, 48 in place of 32, or pad the array from 48 to 64"
    for size in (12, 16, 24, 48):
        assert isinstance(top_down(SPLIT_JOIN.with_sizes(n=size))(term), Success)
    padded = program(SCALE.replace("97", "64"))
    assert isinstance(top_down(SPLIT_JOIN.with_sizes(n=32))(padded), Success)


def test_the_closest_miss_survives_try_and_what_was_done_after_it() -> None:
    term = program(GRID)
    near = top_down(BLOCK_REDUCE.with_sizes(n=4))
    result = seq(try_(near), try_(fail), top_down(TRANSPOSE_TWICE))(term)
    assert isinstance(result, Failure)
    assert result.rule == "T >> T"
    assert result.missed is not None
    assert (result.missed.rule, result.missed.reason) == ("blockReduce", "4 does not divide 6")
    alone = near(term)
    assert isinstance(alone, Failure)
    assert result.missed.path == alone.path
    inside = body(seq(try_(near), fail))(term)
    assert isinstance(inside, Failure)
    assert inside.missed is not None
    assert inside.missed.path == alone.path
    assert inside.path == (0,)


def test_what_did_something_is_not_missed() -> None:
    """An alternative that was not needed is no miss."""
    term = program(SCALE)
    result = seq(choice(top_down(BLOCK_REDUCE.with_sizes(n=4)), top_down(MAP_FUSION)), fail)(term)
    assert isinstance(result, Failure)
    assert result.missed is None
    assert result.after == 1


def test_a_rule_without_origin_has_a_message_too() -> None:
    before = dict(RULES)
    made = rule("nowhere", "xs |> map(f)", "xs |> mapSeq(f)")
    RULES.clear()
    RULES.update(before)
    term = made(program(SCALE))
    assert isinstance(term, Failure)
    assert "`nowhere` does not apply" in term.error("s").render()
