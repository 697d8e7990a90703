"""One rounding where the types say one: `fma` in 16 bits, and conversions from wider types."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from codegen.execute import available_backend, execute
from codegen.pipeline import generate
from codegen.runtime import compile_cubin
from rise.check.program import check_expression
from rise.interpret import call, dtype_of
from rise.types import Scalar

DIGITS = {"f16": 11, "bf16": 8}
DRAWS = 100


def nearest(exact: Fraction, digits: int) -> float:
    """The number of so many digits that is nearest, ties to even; none here is subnormal or too large."""
    if exact == 0:
        return 0.0
    exponent = 0
    while abs(exact) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(exact) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (exponent - digits + 1)
    return float(round(exact / unit) * unit)  # Python rounds a fraction to even


# factors whose product is halfway between two numbers, summands too small for two roundings to see
HALFWAY = {"f16": (1 + 2**-5, 1 + 2**-6), "bf16": (1 + 2**-4, 1 + 2**-4)}
TINY = {"f16": (2.0**-24, 2.0**-23), "bf16": (2.0**-26, 2.0**-40, 2.0**-70)}


def results(text: str, *inputs: Any) -> dict[str, Any]:
    """By the interpreter, and by the kernel in the emulator; the kernel compiles for the oldest target."""
    program = check_expression(text)
    made = generate(program, "rounded")
    compile_cubin(made.source, "sm_75")
    found = {"interpreter": call(program, *inputs)}
    if available_backend() is not None:
        found["emulator"] = execute(made, list(inputs), "emulate")
    return found


@pytest.mark.parametrize("name", DIGITS)
def test_fma_rounds_once(name: str) -> None:
    signs = [(s, t) for s in (1, -1) for t in (1, -1)]
    cases = [(s * HALFWAY[name][0], HALFWAY[name][1], t * tiny) for tiny in TINY[name] for s, t in signs]
    number = dtype_of(Scalar(name)).type
    expected = [nearest(Fraction(a) * Fraction(b) + Fraction(c), DIGITS[name]) for a, b, c in cases]
    twice = [float(number(np.float32(a * b + c))) for a, b, c in cases]
    assert sum(x != y for x, y in zip(expected, twice, strict=True)) >= 2
    array = f"{len(cases)}.{name}"
    text = f"""fun((a: {array}, b: {array}, c: {array}) =>
      zip(a)(zip(b)(c)) |> mapSeq(fun((x, (y, z)) => fma(x)(y)(z))))"""
    inputs = [np.array(column).astype(number) for column in zip(*cases, strict=True)]
    for judge, found in results(text, *inputs).items():
        np.testing.assert_array_equal(found.astype(np.float64), expected, judge)


@pytest.mark.parametrize(
    ("source", "target"), [("f64", "f16"), ("f64", "bf16"), ("i32", "bf16"), ("u32", "bf16"), ("i64", "bf16")]
)
def test_a_conversion_rounds_once(source: str, target: str) -> None:
    digits, generator = DIGITS[target], np.random.default_rng(2)
    whole = generator.integers(2**29, 2**30, DRAWS)
    middle = (whole >> (30 - digits) << (30 - digits)) + (1 << (29 - digits))  # between two numbers
    numbers = middle + generator.integers(-1, 2, DRAWS)
    inputs = numbers / 2.0**29 if source == "f64" else numbers.astype(dtype_of(Scalar(source)))
    expected = np.array([nearest(Fraction(x.item()), digits) for x in inputs])
    in_f32 = inputs.astype(np.float32).astype(dtype_of(Scalar(target))).astype(np.float64)
    assert (in_f32 != expected).sum() > 10
    text = f"fun(xs: {DRAWS}.{source} => xs |> mapSeq(fun(x => {target}(x))))"
    for judge, found in results(text, inputs).items():
        np.testing.assert_array_equal(found.astype(np.float64), expected, judge)
