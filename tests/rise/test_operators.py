"""Operators of reductions that break a law are named where a check finds a difference; others are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rise.check.operators import unlawful
from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.source import place
from tests.support.emulated import needs_compiler

LAWFUL = {
    "sum": "fun(xs: 4.f32 => xs |> reduce(+, 0))",
    "maximum": "fun(xs: 4.i32 => xs |> reduce(max, -9))",
    "of pairs": "fun(xs: 4.(f32, f32) => xs"
    " |> reduce(fun((a, b) => (fst(a) + fst(b), max(snd(a), snd(b)))), (0, 0)))",
    "the first of the largest": "fun(xs: 4.(f32, i32) => xs |> reduce(fun((a, b) => select(fst(b) > fst(a)"
    " || fst(b) == fst(a) && snd(b) < snd(a), b, a)), (-infinity, 9)))",
    "of what is around": "fun((xs: 4.f32, s: f32) => xs |> reduce(fun((a, b) => a + s * b), 0))",
}
UNLAWFUL = {
    "difference": ("fun(xs: 4.f32 => xs |> reduce(-, 0))", "commutative"),
    "the first": ("fun(xs: 4.i32 => xs |> reduce(fun((a, b) => a), 0))", "commutative"),
    "one of the largest": (
        "fun(xs: 4.(f32, i32) => xs |> reduce(fun((a, b) => select(fst(b) > fst(a), b, a)), (-infinity, 9)))",
        "commutative",
    ),
    "mean": ("fun(xs: 4.f32 => xs |> reduce(fun((a, b) => (a + b) / 2), 0))", "associative"),
}


@pytest.mark.parametrize("name", LAWFUL)
def test_lawful_operators_are_not_named(name: str) -> None:
    program = specialise(check_text(f"def f = {LAWFUL[name]}")["f"], {})
    assert list(unlawful(program, 0)) == []


@pytest.mark.parametrize("name", UNLAWFUL)
def test_the_law_that_is_broken_is_named_with_its_place(name: str) -> None:
    text, law = UNLAWFUL[name]
    ((origin, found),) = unlawful(specialise(check_text(f"def f = {text}")["f"], {}), 0)
    span = place(origin)
    assert found == law and span is not None and span.text == "reduce"


@needs_compiler
def test_a_wrong_result_comes_with_the_operator(rise: Any, tmp_path: Path) -> None:
    operator = "(a, b) => select(fst(b) > fst(a), b, a)"
    text = f"def f(xs: 5.131.(f32, i32)) = xs |> map(reduce({operator}, (-infinity, 0)))"
    (tmp_path / "p.rise").write_text(text)
    done = rise("run", str(tmp_path / "p.rise"), "f", "--check", "--strategy", "reduction")
    assert done.status == 1 and "WRONG" in done.out
    assert "p.rise:1:41: the operator of this `reduce` is not commutative" in done.err
