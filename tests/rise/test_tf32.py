"""tf32: how it rounds, what it takes from outside, and that nothing is computed in it."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import rise
from rise.check.program import check_expression
from rise.errors import EvaluationError, TypeMismatch
from rise.expr import Primitive, subterms
from rise.interpret import call, random_inputs
from rise.interpret.tf32 import rounded, unrounded
from rise.pretty import show
from rise.testing.choose import Drawn
from rise.testing.data import awkward_numbers
from rise.testing.naive import assert_evaluators_agree, disagreement
from rise.testing.programs import program
from rise.testing.vocabulary import exact
from rise.types import F32, SCALARS, TF32, array


def nearest(x: np.float32) -> float:
    """The nearest number of 11 significant digits, the larger one of two: by arithmetic, not by bits."""
    if not math.isfinite(x):
        return float(x)
    _, exponent = math.frexp(float(x))
    last = 2.0 ** max(exponent - 11, -136)  # below 2^-126 digits get fewer
    found = math.floor(abs(float(x)) / last + 0.5) * last
    return math.copysign(found if found < 2.0**128 else math.inf, x)


def every_kind_of_number() -> np.ndarray:
    """All exponents and signs, with fractions around halfway between two numbers, and random ones."""
    fractions = [0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x2000, 0x3000, 0x7FF000, 0x7FEFFF, 0x7FFFFF]
    exponents = np.arange(512, dtype=np.uint32) << 23  # with the sign
    chosen = np.add.outer(exponents, np.array(fractions, np.uint32)).ravel()
    return np.concatenate([chosen, np.random.default_rng(1).integers(0, 2**32, 4000, np.uint32)]).view(
        np.float32
    )


NUMBERS = every_kind_of_number()
ROUND = check_expression("fun(x: f32 => tf32(x))")


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """As numbers, with the sign of zeros."""
    return bool(
        np.array_equal(a, b, equal_nan=True) and (np.isnan(a) | (np.signbit(a) == np.signbit(b))).all()
    )


# --- rounding -------------------------------------------------------------------------------------------


def test_a_conversion_rounds_to_the_nearest_and_halfway_away_from_zero() -> None:
    expected = np.array([nearest(x) for x in NUMBERS], np.float32)
    program = check_expression(f"fun(xs: {len(NUMBERS)}.f32 => xs |> map(tf32))")
    found = call(program, NUMBERS)
    assert found.dtype == np.float32 and same(found, expected)
    assert not unrounded(found).any() and same(rounded(found), found)
    # the data tells the ways to round apart, and has what overflows
    bits = NUMBERS.view(np.uint32)
    halfway = np.isfinite(NUMBERS) & (bits & 0x1FFF == 0x1000)
    assert (halfway & (bits & 0x2000 == 0)).sum() > 500 and (np.isfinite(NUMBERS) & np.isinf(found)).any()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1 + 2**-10, 1 + 2**-10),
        (1 + 2**-11, 1 + 2**-10),  # ties to even would give 1
        (-1 - 2**-11, -1 - 2**-10),
        (1 + 2**-11 - 2**-23, 1.0),
        (2.0 - 2**-23, 2.0),
        (float(np.finfo(np.float32).max), math.inf),
        (-math.inf, -math.inf),
        (2.0**-137, 2.0**-136),
        (2.0**-138, 0.0),
        (2.0**-126 - 2.0**-149, 2.0**-126),
    ],
)
def test_some_numbers_by_hand(given: float, expected: float) -> None:
    assert call(ROUND, np.float32(given)) == expected


def test_nan_stays_nan() -> None:
    for bits in (0x7F800001, 0xFF800001, 0x7FC00000, 0xFFFFFFFF):
        found = call(ROUND, np.uint32(bits).view(np.float32))
        assert np.isnan(found) and not unrounded(found)


@pytest.mark.parametrize("name", sorted(SCALARS))
def test_from_and_to_other_types_it_converts_as_f32(name: str) -> None:
    """So from f64 and large integers it is rounded twice, as the documentation says."""
    numbers = awkward_numbers(SCALARS[name])
    there = check_expression(f"fun(xs: {len(numbers)}.{name} => xs |> map(tf32))")
    through = check_expression(f"fun(xs: {len(numbers)}.{name} => xs |> map(fun(x => tf32(f32(x)))))")
    found = call(there, numbers)
    assert same(found, call(through, numbers))
    back = check_expression(f"fun(xs: {len(found)}.tf32 => xs |> map({name}))")
    from_f32 = check_expression(f"fun(xs: {len(found)}.f32 => xs |> map({name}))")
    expected = rounded(found) if name == "tf32" else call(from_f32, found)
    assert np.array_equal(call(back, found), expected, equal_nan=name[0] not in "iu" and name != "bool")


def test_a_fold_that_rounds_in_each_step_rounds_in_each_step() -> None:
    """Such a fold is run as a loop over scalars of NumPy."""
    xs = np.random.default_rng(2).uniform(0, 1, 200).astype(np.float32)
    program = check_expression("fun(xs: 200.f32 => xs |> reduceSeq(fun((a, x) => f32(tf32(a + x))), 0.0))")
    total = np.float32(0)
    for x in xs:
        total = np.float32(nearest(total + x))
    assert call(program, xs) == total != np.float32(nearest(xs.sum()))


# --- what comes from outside ----------------------------------------------------------------------------

GIVEN = check_expression("fun((xs: 2.3.tf32, p: (tf32, f32)) => xs |> map(map(f32)))")
GOOD, PAIR = np.ones((2, 3), np.float32), (np.float32(0.5), np.float32(0.1))


def test_inputs_with_more_digits_are_refused_by_name_and_place() -> None:
    assert call(GIVEN, GOOD, PAIR).tolist() == GOOD.tolist()
    bad = GOOD.copy()
    bad[1, 2] = 0.1
    for name, inputs in (("xs[1, 2]", (bad, PAIR)), ("p.0", (GOOD, (np.float32(0.1), PAIR[0])))):
        with pytest.raises(EvaluationError) as caught:
            call(GIVEN, *inputs)
        assert caught.value.code == "R0511" and f"`{name}` = 0.1" in caught.value.message
        assert "tf32(x)" in (caught.value.hint or "")
    with pytest.raises(EvaluationError) as caught:
        call(check_expression("fun(x: tf32 => f32(x))"), 0.1)
    assert caught.value.code == "R0511"


@pytest.mark.parametrize("exact", [True, False])
def test_random_inputs_are_numbers_of_the_type(exact: bool) -> None:
    values = random_inputs([("a", array(50, TF32))], 0, exact)[0]
    assert values.dtype == np.float32 and not unrounded(values).any() and len(set(values.tolist())) > 5


def test_an_array_of_float32_is_f32_unless_the_program_says_otherwise() -> None:
    program = rise.parse("def f: {n: Nat, t: DataType} -> n.t -> n.t = fun(xs => xs)").f
    assert (program(np.full(3, 0.1, np.float32)) == np.float32(0.1)).all()  # of tf32 it would be refused


def test_the_slow_evaluator_rounds_alike() -> None:
    some = NUMBERS[::7]
    program = check_expression(f"fun(xs: {len(some)}.f32 => xs |> map(tf32))")
    assert disagreement(program, [some]) is None


def test_programs_that_are_generated_use_it_and_mean_what_the_slow_evaluator_says() -> None:
    found: Counter[str] = Counter()
    for seed in range(600):
        made = program(Drawn(seed), fuel=4, primitives=exact() | {"cast"}, scalars=(F32, TF32))
        conversions = {
            tuple(p.arguments) for p in subterms(made) if isinstance(p, Primitive) and p.name == "cast"
        }
        found["from"] += any(source == TF32 for source, _ in conversions)
        found["to"] += any(target == TF32 for _, target in conversions)
        if "tf32" in show(made) and found["compared"] < 15:
            found["compared"] += 1
            assert_evaluators_agree(made)
    assert found["from"] > 3 and found["to"] > 20 and found["compared"] == 15, found


# --- what is no arithmetic ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "x + x",
        "x * x",
        "neg(x)",
        "fma(x)(x)(x)",
        "exp(x)",
        "x < x",
        "x == x",
        "max(x)(x)",
        "fun(t => t + t)(x)",
    ],
)
def test_nothing_is_computed_in_tf32(body: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        check_expression(f"fun(x: tf32 => {body})")
    assert caught.value.code == "R0308" and "f32(x)" in (caught.value.hint or "")


def test_a_type_variable_with_arithmetic_is_not_for_tf32() -> None:
    text = "def twice: {t: DataType} -> t -> t = fun(x => x + x)\ndef f = fun(x: tf32 => twice(x))"
    with pytest.raises(TypeMismatch) as caught:
        rise.parse(text)
    assert caught.value.code == "R0308"


@pytest.mark.parametrize("number", ["1", "0.5"])
def test_a_number_of_a_program_is_rounded_by_what_the_program_says(number: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        check_expression(f"({number}: tf32)")
    assert caught.value.code == "R0305" and "`tf32(…)`" in (caught.value.hint or "")
    assert call(check_expression(f"tf32({number})")) == float(number)


def test_tf32_moves_through_patterns_as_any_data() -> None:
    chosen = "map(fun(x => select(f32(x) < 2.0)(x)(tf32(2))))"
    program = check_expression(f"fun(xs: 6.tf32 => xs |> split(2) |> transpose |> join |> {chosen})")
    assert call(program, np.arange(6, dtype=np.float32)).tolist() == [0, 2, 2, 1, 2, 2]
