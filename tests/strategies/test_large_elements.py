"""What is computed of each matrix of an array, where no block has room for one: kernels, and no loops."""

from __future__ import annotations

import pytest

from rewrites.result import Failure
from rise.expr import Expr, Lambda
from strategies.auto import auto
from strategies.forms import members_apart
from tests.support.batches import exact, program
from tests.support.programs import succeeded

AUTO = auto()
DOT = "(zip(p)({}) |> map((a, b) => a * b) |> reduce(+, 0))"
TOTAL = "(A |> join |> reduce(+, 0))"
SUMS = "let s = transpose(A) |> map(c => c |> reduce(+, 0)) in"
Z = "let z = y |> reduce(max, -64) in"
# of matrices A and of B, of the other shape, with vectors x and y: the schedules of the kernels
ELEMENTS = {
    f"({TOTAL}, x |> reduce(max, -64))": ["reduction", "reduction", "elementwise"],
    f"({TOTAL}, (x |> reduce(+, 0), y |> reduce(+, 0)))": ["reduction"] * 3 + ["elementwise"] * 2,
    f"({TOTAL}, A |> map(p => p |> reduce(max, -64)) |> reduce(+, 0))": ["reduction"] * 3 + ["elementwise"],
    f"{SUMS} A |> map(p => zip(p)(s) |> map((a, b) => a - b))": ["columns", "elementwise"],
    f"let y = A |> map(p => {DOT.format('x')}) in B |> map(p => {DOT.format('y')})": [
        "reduction",
        "reduction",
    ],
    f"{Z} A |> map(p => {DOT.format('x')} + z)": ["reduction", "rows"],
}
LISTED = ["", "2."]  # what is around the array of matrices


def of_each(body: str, around: str, m: int, n: int) -> Expr:
    shapes = {"A": f"{m}.{n}", "B": f"{n}.{m}", "x": f"{n}", "y": f"{m}"}
    inputs = ", ".join(f"{name}s: {around}3.{shape}.f32" for name, shape in shapes.items())
    each = f"map((A, (B, (x, y))) => {body})"
    zipped = "zip(As)(zip(Bs)(zip(xs)(ys)))"
    if around:
        each = f"map((As, (Bs, (xs, ys))) => {zipped} |> {each})"
    return program(f'import "prelude.rise" def f({inputs}) = {zipped} |> {each}')


@pytest.mark.parametrize("around", LISTED)
@pytest.mark.parametrize("body", ELEMENTS)
def test_large_elements_are_kernels_also_in_arrays(body: str, around: str) -> None:
    kernels = AUTO.choice(of_each(body, around, 513, 400)).kernels
    found = [kernel.point.strategy for kernel in kernels]
    assert "default" not in found, found
    assert around or found == ELEMENTS[body]


@pytest.mark.parametrize("body", ELEMENTS)
def test_their_kernels_are_exact(body: str) -> None:
    """Matrices of 131 × 230 have no room for a second one."""
    term = of_each(body, "2.", 131, 230)
    assert exact(term, succeeded(AUTO(term)).term)


def test_pairs_that_take_no_loop_stay_together() -> None:
    pairs = program("def f(xs: 9.f32) = xs |> map(x => (x + 1, x * x))")
    assert isinstance(pairs, Lambda) and isinstance(members_apart(pairs.body), Failure)
