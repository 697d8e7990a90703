"""How much work the interpreter may do, in calls of functions: some times what it does.

Seconds depend on the machine; calls do not. What takes a step for each of a million elements shows.
"""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings

from rise.check.program import Loader, check_expression, load
from rise.check.specialise import specialise
from rise.expr import Expr, size
from rise.interpret import call
from rise.testing import programs
from tests.support.counting import counting
from tests.support.nightly import every_other

EXAMPLES = Path(__file__).parents[2] / "examples"
MILLION = 1_000_000
USUAL = 600_000  # calls for a program of a million elements: fewer than one for each
NUMBERS = np.random.default_rng(0).integers(-4, 5, MILLION).astype(np.float32)


@contextmanager
def within(calls: int, megabytes: float | None = None) -> Iterator[None]:
    """Calls of functions of Python and C; memory is that of arrays and objects."""
    if megabytes is not None:
        tracemalloc.start()
    with counting() as count:
        yield
    if megabytes is not None:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < megabytes * 1e6
    print(f"{count.calls} calls, {calls} allowed")
    assert count.calls < calls


def run(text: str, *inputs: Any) -> Any:
    return call(check_expression(text), *inputs)


def test_a_product_of_512() -> None:
    n = 512
    function = specialise(load(EXAMPLES / "gemm.rise")["matmul"], {"m": n, "n": n, "k": n})
    a, b = (NUMBERS[i : i + n * n].reshape(n, n).astype(np.float16) for i in (0, 7))
    with within(USUAL, megabytes=32):
        found = call(function, a, b)
    np.testing.assert_array_equal(found, a.astype(np.float32) @ b.astype(np.float32))


STENCIL = """fun((a: 1024.1024.f32) => a |> map(padClamp(1, 1)) |> padClamp(1, 1) |> slide(3, 1)
  |> map(map(slide(3, 1)) >> transpose >> map(fun(w => SUM))))"""
FIVE_POINTS = " + ".join(f"idx({i})(idx({j})(w))" for i, j in ((1, 0), (0, 1), (1, 1), (2, 1), (1, 2)))


@pytest.mark.parametrize("total", [FIVE_POINTS, "w |> join |> reduce(+, 0)"], ids=["five points", "nine"])
def test_a_stencil(total: str) -> None:
    a = NUMBERS[: 1 << 19].repeat(2).reshape(1024, 1024)
    with within(USUAL):
        found = run(STENCIL.replace("SUM", total), a)
    padded = np.pad(a, 1, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]]) if "idx" in total else np.ones((3, 3))
    np.testing.assert_array_equal(found, (windows * cross).sum((2, 3)))


REDUCTIONS: dict[str, Callable[[np.ndarray], Any]] = {
    "reduce(+, 0)": lambda xs: xs.sum(),
    "map(fun(x => x * x)) |> reduce(+, 0)": lambda xs: (xs * xs).sum(),
    "reduceSeq(fun((a, x) => a + x * x), 0)": lambda xs: (xs * xs).sum(),
    "reduceSeq(fun((a, x) => select(x > a)(x)(a * 1)), 0)": lambda xs: xs.max(),
    "reduceSeq(fun(((s, l), x) => (s + x, max(l)(x))), (0, -9)) |> fst": lambda xs: xs.sum(),
    "map(fun(x => (x, x))) |> reduce(fun((p, q) => select(fst(p) > fst(q))(p)(q)), (-9, 0)) |> snd": (
        lambda xs: xs.max()
    ),
    "map(fun(x => i32(x))) |> reduceSeq(fun((a, x) => (a % 5 + x) / 2), 0)": lambda xs: halved(xs),
    "split(250000) |> map(reduceSeq(fun((a, x) => x - a), 0)) |> reduce(+, 0)": lambda xs: (
        xs * np.resize([-1, 1], xs.size)
    ).sum(),
}


STEP_BY_STEP = tuple(r for r in REDUCTIONS if "%" in r)  # two calls of Python for each element


def halved(xs: Any) -> int:
    """In Python, whose remainder and quotient of negative numbers are not C's."""
    result = 0
    for x in xs.astype(int).tolist():
        result = int((math.fmod(result, 5) + x) / 2)
    return result


@pytest.mark.parametrize("reduction", every_other(REDUCTIONS))
def test_a_reduction_of_a_million(reduction: str) -> None:
    with within(USUAL if reduction not in STEP_BY_STEP else 3 * MILLION):
        found = run(f"fun((xs: {MILLION}.f32) => xs |> {reduction})", NUMBERS)
    assert found == REDUCTIONS[reduction](NUMBERS)


def test_a_reduction_of_a_million_in_f16_rounds_each_step() -> None:
    with within(USUAL):
        ones = np.ones(MILLION, np.float16)
        assert run(f"fun((xs: {MILLION}.f16) => xs |> reduceSeq(fun((a, x) => x + a * 1), 0))", ones) == 2048


@pytest.mark.parametrize(
    "scan", ["scan(+, 0)", "scanSeq(fun((x, a) => a + x), 0)", "scanSeq(fun((x, a) => a * 1 + x), 0)"]
)
def test_a_scan_of_a_million(scan: str) -> None:
    with within(USUAL if "a * 1" not in scan else 3 * MILLION):
        found = run(f"fun((xs: {MILLION}.f32) => xs |> {scan})", NUMBERS)
    np.testing.assert_array_equal(found, np.cumsum(NUMBERS, dtype=np.float64))


def test_iterate_under_a_map_is_one_batch() -> None:
    halve = "depFun((l: Nat) => fun(ys => ys |> split(2) |> map(reduce(+, 0))))"
    rows = NUMBERS[: 1 << 19].reshape(512, 1024)
    with within(USUAL):
        found = run(f"fun((xss: 512.1024.f32) => xss |> map(iterate(10)({halve})))", rows)
    np.testing.assert_array_equal(found[:, 0], rows.sum(1))


def test_indices_of_a_million() -> None:
    turned = f"natFun(i => {MILLION - 1} - i)"
    with within(USUAL):
        found = run(f"fun((xs: {MILLION}.f32) => xs |> reorder({MILLION}, {turned}, {turned}))", NUMBERS)
        text = f"""fun((xs: {MILLION}.f32) => xs |> scatter(generate(fun((i: Idx[{MILLION}]) =>
          natAsIndex({MILLION})({MILLION - 1} - indexToInt(i))))))"""
        np.testing.assert_array_equal(run(text, NUMBERS), found)
    np.testing.assert_array_equal(found, NUMBERS[::-1])


def test_programs_are_generated_fast() -> None:
    """Two hundred, of 21 nodes each: some ten thousand calls for each."""
    found: list[Expr] = []

    @settings(max_examples=200, derandomize=True, database=None, phases=[Phase.generate])
    @given(programs())
    def draw(program: Expr) -> None:
        found.append(program)

    with within(4 * MILLION):
        draw()
    assert len(found) == 200
    assert sum(map(size, found)) > 10 * 200


def test_all_examples_are_checked_with_few_calls() -> None:
    """Fewer the second time: by then modules are imported, and the prelude's declarations read."""
    files = sorted(EXAMPLES.glob("*.rise"))
    for limit in (12 * MILLION, 8 * MILLION):
        loader, names = Loader(), 0
        with within(limit):
            for file in files:
                names += len(loader.load(file).own)
    assert names >= 200
