"""Degrees and bounds of programs of sums and products, and the draws that follow from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codegen.execute import execute
from codegen.host.text import edited
from codegen.pipeline import assemble
from rise.check.compare import Tolerance, compare, tolerance
from rise.check.polynomial import Bounds, bounds, draws
from rise.check.program import check_expression, load
from rise.check.specialise import specialise
from rise.cli.comparing import in_field
from rise.errors import UsageError
from rise.expr import Expr
from rise.interpret import call
from rise.normal import data_flow
from rise.testing.choose import Drawn
from rise.testing.programs import parameters_of, program
from rise.types import F16, F32, I32
from strategies.default import default
from tests.support.programs import succeeded

SUMS = frozenset({
    "add", "sub", "mul", "neg", "fma", "cast", "map", "reduce", "scan", "zip", "fst", "snd", "pair", "let",
    "generate", "idx", "join", "split", "transpose", "take", "drop", "slide", "concat", "padCst",
    "indexToInt",
})  # fmt: skip


def product(k: int) -> Expr:
    definition = load(Path(__file__).parents[2] / "examples" / "gemm.rise")["matmul"]
    return specialise(definition, {"m": 3, "n": 5, "k": k})


@pytest.mark.parametrize(("text", "expected"), [
    ("fun((x: f32) => x * x * x + 2 * x)", Bounds(3, 1020)),
    ("fun((x: f32, y: f32) => (x + y) * (x - y))", Bounds(2, 400)),
    ("fun(xs: 7.f32 => xs |> map(fun(x => x * x)) |> reduce(+, 0))", Bounds(2, 700)),
    ("fun(xs: 1000.f32 => xs |> reduce(+, 3))", Bounds(1, 10003)),
    ("fun(xs: 3.f32 => xs |> reduce(fun((p, x) => p * x), 1))", Bounds(3, 1000)),
    ("fun(xs: 4.f32 => generate(fun((i: Idx[4]) => (xs |> idx(i)) * f32(indexToInt(i)))))", Bounds(1, 40)),
    ("fun(xs: 4.f32 => generate(fun((i: Idx[4]) => select(indexToInt(i) < 2)(xs |> idx(i))(0))))",
     Bounds(1, 10)),
    ("fun(xs: 6.f16 => xs |> slide(2, 1) |> map(map(fun(x => f32(x) * 0.5 * 2))))", None),
])  # fmt: skip
def test_degrees_and_bounds(text: str, expected: Bounds | None) -> None:
    term = check_expression(text)
    if expected is None:
        with pytest.raises(UsageError, match="0.5 is not a whole number") as refused:
            bounds(term, 10)
        assert refused.value.code == "R0020" and refused.value.origin is not None
    else:
        assert bounds(term, 10) == expected


def test_no_value_is_beyond_its_bound_and_none_is_rounded() -> None:
    """Of random programs, on the numbers that are drawn: their results are those of exact arithmetic."""
    seen = 0
    for seed in range(400):
        term = program(Drawn(seed), primitives=SUMS, scalars=(F32, F16, I32))
        if not parameters_of(term):
            continue
        try:
            plan = draws(term)
            found = bounds(term, plan.largest)
        except UsageError as refused:
            assert refused.code in ("R0020", "R0021"), seed
            continue
        for number in range(2):
            result = call(term, *plan.inputs(term, number, seed))
            for array, bound in zip(_arrays(result), _flat(found), strict=True):
                whole = np.asarray(array).astype(np.float64)
                assert np.all(whole == np.round(whole)), f"seed {seed}"
                assert np.all(np.abs(whole) <= bound.largest), f"seed {seed}"
        seen += plan.degree > 0
    assert seen > 100, "too few programs are polynomials"


def _arrays(result: object) -> list[object]:
    return [x for part in result for x in _arrays(part)] if isinstance(result, tuple) else [result]


def _flat(value: object) -> list[Bounds]:
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in _flat(part)]
    assert isinstance(value, Bounds)
    return [value]


def test_longer_sums_leave_smaller_numbers_and_take_more_draws() -> None:
    plans = [draws(product(k)) for k in (1, 16, 64, 1000)]
    assert [plan.degree for plan in plans] == [2] * 4
    assert [plan.largest for plan in plans] == [2048, 1024, 512, 129]
    assert all(plan.missed >= 60 for plan in plans)
    assert [plan.count for plan in plans] == sorted(plan.count for plan in plans)
    assert draws(product(64)) == draws(product(64))
    one, other = (plans[2].inputs(product(64), 0, seed) for seed in (1, 2))
    assert not np.array_equal(one[0], other[0])


@pytest.mark.parametrize(("text", "said"), [
    ("fun((x: f32) => x / 2)", "`div` is not made"), ("fun((x: f32) => max(x, 0))", "`max` is not made"),
    ("fun((x: f32) => select(x < 1)(x)(0))", "is not made"), ("fun((x: f32) => exp(x))", "`exp` is not made"),
])  # fmt: skip
def test_what_is_no_polynomial_is_refused_by_its_place(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        draws(check_expression(text))
    assert refused.value.code == "R0020" and refused.value.origin is not None


def test_where_nothing_has_room_it_is_said() -> None:
    with pytest.raises(UsageError, match="`f16` does not have all whole numbers up to 3000") as refused:
        draws(check_expression("fun(xs: 3000.f16 => xs |> reduce(+, 0))"))
    assert refused.value.code == "R0021"


def test_a_difference_within_rounding_is_found() -> None:
    """A kernel that adds a thousandth to each sum: rounding bounds allow that at these sizes."""
    term = product(64)
    made = assemble(succeeded(default()(data_flow(term))).term, "kernel")
    (kernel,) = made.kernels
    changed = kernel.source.replace("output[", "output[", 1)
    line = next(x for x in changed.splitlines() if x.strip().startswith("output["))
    changed = changed.replace(line, line[:-1] + " + 0.001f;")
    wrong = edited(made, changed)

    class Ran:
        def __init__(self, result: object) -> None:
            self.result, self.seconds = result, 0.0

    _, verdict = in_field(term, lambda inputs: Ran(execute(wrong, inputs, "emulate")), 0)
    assert not verdict.comparison.agrees and verdict.draws == 1
    _, verdict = in_field(term, lambda inputs: Ran(execute(made, inputs, "emulate")), 0)
    assert verdict.comparison.agrees and verdict.missed is not None and verdict.missed >= 60
    inputs = draws(term).inputs(term, 0, 0)
    assert compare(execute(wrong, inputs, "emulate"), call(term, *inputs), tolerance(term)).agrees
    assert not compare(execute(wrong, inputs, "emulate"), call(term, *inputs), Tolerance()).agrees
