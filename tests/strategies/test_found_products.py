"""Products that `auto` finds in programs as users write them: behind names, in windows, beside norms."""

from __future__ import annotations

import pytest

from strategies.auto import auto
from tests.support.batches import exact, program
from tests.support.nightly import every_other
from tests.support.programs import succeeded


def dot(xs: str, ys: str) -> str:
    return f"(zip({xs})({ys}) |> map((p, q) => f32(p) * f32(q)) |> reduce(+, 0))"


PROGRAMS = {
    "a low-rank update": (
        f"X: 67.64.f16, W: 96.64.f16, P: 8.64.f16, Q: 96.8.f16) ="
        f" let T = X |> map(x => P |> map(p => f16({dot('x', 'p')}))) in zip(X)(T) |> map((x, t) =>"
        f" zip(W)(Q) |> map((w, q) => {dot('x', 'w')} + {dot('t', 'q')}))",
        ["tensor_core"] * 2,
    ),
    "two layers with a residual": (
        f"X: 67.64.f16, U: 96.64.f16, V: 64.96.f16) ="
        f" let H = X |> map(x => U |> map(u => f16(max({dot('x', 'u')}, 0)))) in"
        f" zip(X)(H) |> map((x, h) => zip(x)(V) |> map((y, v) => f32(y) + {dot('h', 'v')}))",
        ["tensor_core"] * 2,
    ),
    "windows of rows": (
        "X: 133.16.f16, W: 24.3.16.f16) = X |> slide(3)(1) |> map(w => W |> map(f =>"
        f" {dot('w |> join', 'f |> join')}))",
        ["tensor_core"],
    ),
    # norms are computed once, although both operands have them
    "correlations of columns": (
        "X: 65.72.f16) = let cs = transpose(X) in cs |> map(c => cs |> map(d =>"
        f" {dot('c', 'd')} - {dot('c', 'c')} * {dot('d', 'd')}))",
        ["columns", "tensor_core"],
    ),
    "the mean of many products": (
        "X: 7.33.29.f16) = X |> map(A => A |> map(a => A |> map(b =>"
        f" {dot('a', 'b')}))) |> transpose |> map(rows => transpose(rows) |> map(c => c |> reduce(+, 0)))",
        ["tensor_core", "batch"],
    ),
}


@pytest.mark.parametrize("name", every_other(PROGRAMS))
def test_products_are_multiplied_by_tensor_cores(name: str) -> None:
    text, wanted = PROGRAMS[name]
    strategy, term = auto(), program(f"def f({text}")
    low = succeeded(strategy(term)).term
    assert [kernel.point.strategy for kernel in strategy.choice(term).kernels] == wanted
    assert exact(term, low)
