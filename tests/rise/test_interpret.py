"""The interpreter: rounding, C's integers, what is not computed, inputs and their errors, speed."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rise.check.program import check_expression, check_text
from rise.errors import EvaluationError
from rise.expr import DependentApply, Identifier, apply
from rise.interpret import call, dtype_of, evaluate, random_inputs, shape_of
from rise.interpret.value import Delayed, Leaf, forced
from rise.nat import constant
from rise.types import F16, F32, I32, SCALARS, Array, Function, Index, Pair, Scalar, array

bf16 = ml_dtypes.bfloat16


def run(text: str, *inputs: Any) -> Any:
    return call(check_expression(text), *inputs)


def error(code: str, text: str, *inputs: Any) -> EvaluationError:
    with pytest.raises(EvaluationError) as caught:
        run(text, *inputs)
    assert caught.value.code == code
    return caught.value


# --- rounding -------------------------------------------------------------------------------------

SUMS = ["reduce(+, 0)", "reduceSeq(+)(0)", "reduceSeq(fun((a, x) => a + x))(0)"]


@pytest.mark.parametrize("reduction", SUMS)
@pytest.mark.parametrize(("scalar", "stuck"), [("f16", 2048), ("bf16", 256)])
def test_accumulation_rounds_each_step(reduction: str, scalar: str, stuck: int) -> None:
    ones = np.ones(3000, dtype_of(SCALARS[scalar]))
    assert run(f"fun(xs: 3000.{scalar} => {reduction}(xs))", ones) == stuck


def test_f16_products_accumulated_in_f32_do_not_round() -> None:
    xs = np.full(3000, 3, np.float16)
    text = "fun(xs: 3000.f16 => xs |> map(fun(x => f32(x) * f32(x))) |> reduce(+, 0))"
    assert run(text, xs) == 27000


def test_an_operation_rounds_to_its_type() -> None:
    assert run("fun((x: f16, y: f16) => x + y)", np.float16(2048), np.float16(1)) == 2048
    assert run("fun((x: bf16, y: bf16) => x * y)", bf16(257), bf16(1)) == 256
    assert run("fun(x: bf16 => exp(x))", bf16(1)).dtype == bf16


def test_fma_rounds_once() -> None:
    x = np.float32(1 + 2**-12)
    text = "fun((x: f32) => fma(x)(x)(neg(x * x)))"
    assert run(text, x) == np.float32(np.float64(x) ** 2 - np.float64(np.float32(x * x))) != 0


def test_fma_is_correctly_rounded() -> None:
    """The square is a tie in f32, which the third operand breaks from below the last bit of f64."""
    x, low = np.float32(1 + 2**-12), np.float32(2**-60)
    text = "fun((a: f32, b: f32, c: f32) => fma(a)(b)(c))"
    assert run(text, x, x, low) == 1 + 2**-11 + 2**-23
    assert run(text, x, x, -low) == 1 + 2**-11
    assert run(text, -x, x, -low) == -(1 + 2**-11 + 2**-23)
    assert run(text, x, np.float32(np.inf), low) == np.inf


def test_fma_of_doubles_keeps_the_product() -> None:
    x = 1 + 2**-30
    assert run("fun(x: f64 => fma(x)(x)(neg(x * x)))", x) == 2**-60


def test_tensor_product_with_f16_accumulator_rounds_at_the_end() -> None:
    a = np.full((2, 4), 512, np.float16)
    b, c = np.ones((4, 2), np.float16), np.ones((2, 2), np.float16)
    text = "fun((a: 2.4.f16, b: 4.2.f16, c: 2.2.f16) => asMatrix(tensorMatMulAdd(asFragment(a))"
    result = run(text + "(asFragment(b))(asFragment(c))))", a, b, c)
    assert result.dtype == np.float16 and (result == 2048).all()


# --- integers as in C -----------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "y"), [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, -3)])
def test_division_truncates(x: int, y: int) -> None:
    quotient = run("fun((x: i32, y: i32) => x / y)", x, y)
    rest = run("fun((x: i32, y: i32) => x % y)", x, y)
    assert quotient == int(x / y) and quotient * y + rest == x


def test_integers_wrap() -> None:
    assert run("fun(x: i8 => x + 1)", np.int8(127)) == -128
    sums = run("fun(x: 3.i8 => reduce(+, 0)(x))", np.full(3, 100, np.int8))
    assert sums == 44 and sums.dtype == np.int8
    assert run("fun(x: u8 => x - 1)", np.uint8(0)) == 255
    assert run("fun(x: i32 => x / -1)", np.int32(-(2**31))) == -(2**31)
    assert run("fun(x: i32 => x % -1)", np.int32(-(2**31))) == 0


@pytest.mark.parametrize("operator", ["/", "%"])
def test_dividing_by_zero_is_an_error(operator: str) -> None:
    xs = np.array([1, 0, 2], np.int32)
    assert "zero" in error("R0504", f"fun(xs: 3.i32 => map(fun(x => 1 {operator} x))(xs))", xs).message


def test_integer_powers() -> None:
    power = "fun((x: i32, y: i32) => pow(x)(y))"
    assert [run(power, x, y) for x, y in [(3, 4), (2, -1), (-1, -3), (1, -2), (5, 0)]] == [*(81, 0, -1, 1, 1)]
    error("R0504", power, 0, -1)


def test_floats_divide_by_zero() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run("fun((x: f32, y: f32) => x / y)", 1.0, 0.0) == np.inf
        assert np.isnan(run("fun(x: f32 => log(x))", -1.0))
        assert run("fun(x: f32 => f16(x))", 1e9) == np.inf


def test_conversion_to_integers_saturates() -> None:
    to_int = "fun(x: f32 => i32(x))"
    found = [run(to_int, x) for x in (-2.9, np.nan, np.inf, -np.inf, 3e9)]
    assert found == [-2, 0, 2**31 - 1, -(2**31), 2**31 - 1]
    assert run("fun(x: f32 => u8(x))", 256.0) == 255 and run("fun(x: f32 => i64(x))", 1e30) == 2**63 - 1


def test_min_of_a_number_and_nan_is_the_number() -> None:
    assert run("fun((x: f32, y: f32) => min(x)(y))", np.nan, 1.0) == 1


@pytest.mark.parametrize("scalar", ["f16", "bf16", "f32", "f64"])
def test_zeros_have_an_order(scalar: str) -> None:
    """As on the GPU, whatever NumPy does: its vector instructions take the one or the other."""
    dtype = dtype_of(SCALARS[scalar])
    zeros = np.array([0.0, -0.0] * 20).astype(dtype)
    for name, sign in (("min", True), ("max", False)):
        text = f"fun((xs: 40.{scalar}, ys: 40.{scalar}) => zip(xs)(ys) |> map(fun((x, y) => {name}(x)(y))))"
        assert (np.signbit(run(text, zeros, zeros[::-1])) == sign).all()
        assert np.signbit(run(f"fun((xs: 40.{scalar}) => xs |> reduce({name}, 0))", zeros)) == sign
        found = run(f"fun((xs: 40.{scalar}) => xs |> scan({name}, -0.0))", zeros)
        assert np.signbit(found).tolist() == ([True] * 40 if sign else [False] * 40)


# --- what is not wanted is no mistake -------------------------------------------------------------


def test_only_the_branch_taken_counts() -> None:
    xs = np.array([4, 0, 2], np.int32)
    safe = "select(x == 0)(-1)(8 / x)"
    np.testing.assert_array_equal(run(f"fun(xs: 3.i32 => map(fun(x => {safe}))(xs))", xs), [2, -1, 4])
    short = "map(fun(x => x != 0 && 8 / x > 2))"
    np.testing.assert_array_equal(run(f"fun(xs: 3.i32 => {short}(xs))", xs), [False, False, True])
    either = "map(fun(x => x == 0 || 8 / x > 2))"
    np.testing.assert_array_equal(run(f"fun(xs: 3.i32 => {either}(xs))", xs), [False, True, True])


def test_a_guard_reaches_into_deeper_maps() -> None:
    text = "fun((xs: 2.i32, ys: 3.i32) => map(fun(x => select(x == 0)(ys)(map(fun(y => y / x))(ys))))"
    text += "(xs))"
    found = run(text, np.array([0, 2], np.int32), np.array([2, 4, 6], np.int32))
    np.testing.assert_array_equal(found, [[2, 4, 6], [1, 2, 3]])


def test_guards_nest() -> None:
    inner = "select(x < 8)(8 / x)(x / (x - 9))"
    text = f"fun(xs: 4.i32 => map(fun(x => select(x == 0 || x == 9)(-1)({inner})))(xs))"
    found = run(text, np.array([0, 2, 9, 12], np.int32))
    np.testing.assert_array_equal(found, [-1, 4, -1, 4])


def test_a_guard_does_not_hide_the_mistakes_of_others() -> None:
    text = "fun(xs: 2.i32 => map(fun(x => select(x == 0)(1 / x)(8 / x)))(xs))"
    error("R0504", text, np.array([0, 2], np.int32))


def test_an_index_counts_where_it_is_wanted() -> None:
    text = "fun((c: 2.bool, i: 2.Idx[3], xs: 3.f32) => map(fun((c, i) => {}))(zip(c)(i)))"
    inputs = np.array([True, False]), np.array([2, 7]), np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(run(text.format("select(c)(idx(i)(xs))(-1)"), *inputs), [2, -1])
    assert error("R0503", text.format("idx(i)(xs)"), *inputs).message == (
        "index 7 is out of range of an array of 3"
    )


def test_gather_out_of_range() -> None:
    text = "fun((i: 2.Idx[3], xs: 3.f32) => gather(i)(xs))"
    found = error("R0503", text, np.array([0, -1]), np.zeros(3, np.float32))
    assert "index -1" in found.message and "3" in found.message and found.origin is not None


# --- batches --------------------------------------------------------------------------------------


def test_a_value_from_outside_is_not_copied() -> None:
    """What does not vary with a map is computed once and broadcast."""
    seen = []
    leaf = Leaf(np.arange(3), 0)

    def body(value: Any) -> Leaf:
        seen.append(value)
        return leaf

    delayed = Delayed(4, 1, lambda start, stop: body(leaf), lambda _: leaf)
    assert forced(delayed).array.shape == (1, 4, 3)  # type: ignore[union-attr]
    assert forced(delayed).array.strides[1] == 0  # type: ignore[union-attr]
    assert len(seen) == 1


def test_a_delayed_array_from_outside_is_mapped_over() -> None:
    text = """fun((xs: 2.f32, ys: 3.f32) => let zs = map(fun(y => y * y))(ys) in
      map(fun(x => map(fun(z => x + z))(zs)))(xs))"""
    xs, ys = np.arange(2, dtype=np.float32), np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(run(text, xs, ys), xs[:, None] + ys * ys)


def test_elements_taken_twice_are_stored() -> None:
    computed = []
    delayed = Delayed(
        3,
        0,
        lambda start, stop: Leaf(np.arange(start, stop), 1),
        lambda i: computed.append(i) or Leaf(np.array(i), 0),  # type: ignore[func-returns-value]
    )
    for _ in range(3):
        assert [int(delayed.picked(i).array) for i in range(3)] == [0, 1, 2]  # type: ignore[union-attr]
    assert computed == [0, 1, 2]


def test_the_result_does_not_depend_on_how_it_is_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Element by element, all at once, or inside NumPy."""
    text = """fun((a: 5.7.f32, b: 3.7.f32) => map(fun(r => map(fun(c =>
      zip(r)(c) |> map(fun((x, y) => x * y)) |> reduce({}, 0)))(b)))(a))"""
    inputs = random_inputs([("a", array(5, 7, F32)), ("b", array(3, 7, F32))], 1, exact=False)
    found = []
    for small in (0, 1 << 20):
        monkeypatch.setattr("rise.interpret.folds.SMALL", small)
        found += [run(text.format(op), *inputs) for op in ("+", "fun((a, x) => a + x)")]
    assert all((f == found[0]).all() for f in found)


def test_a_function_may_be_partial() -> None:
    text = "fun((xs: 3.f32, y: f32) => map(max(y))(xs))"
    assert list(run(text, np.arange(3, dtype=np.float32), 1.0)) == [1, 1, 2]


# --- the interface --------------------------------------------------------------------------------


def test_definitions_and_sizes() -> None:
    program = check_text(
        "def dot: {n: Nat} -> n.f32 -> n.f32 -> f32 = fun((x, y) => zip(x)(y) |>"
        " map(fun((a, b) => a * b)) |> reduce(+, 0))\n"
        "def mv = depFun((m: Nat, n: Nat) => fun((A: m.n.f32, x: n.f32) => map(dot(x))(A)))"
    )
    body = DependentApply(DependentApply(program["mv"].body, constant(2)), constant(3))
    a, x = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)
    np.testing.assert_array_equal(call(body, a, x), a @ x)
    with pytest.raises(EvaluationError, match=r"R0506.*`m`"):
        call(program["mv"].body, a, x)


def test_an_open_term_takes_an_environment() -> None:
    f = Identifier("f", Function(F32, F32))
    term = apply(f, Identifier("x", F32))
    environment = {"f": evaluate(check_expression("fun(x: f32 => x + 1)")), "x": 2.0}
    assert evaluate(term, environment) == 3
    with pytest.raises(EvaluationError, match=r"R0508.*`x`"):
        evaluate(term, {"f": environment["f"]})


def test_evaluating_a_function_gives_one() -> None:
    function = evaluate(check_expression("fun((x: f32, y: f32) => x - y)"))
    assert function(3.0, 1.0) == 2


def test_a_constant_needs_no_inputs() -> None:
    assert run("1 + i32(2)") == 3


def test_pairs_go_in_and_out_as_tuples() -> None:
    xs = np.arange(3, dtype=np.float32), np.ones(3, np.int32)
    first, second = run("fun(xs: 3.(f32, i32) => map(fun((x, y) => (y, x)))(xs))", xs)
    assert first.dtype == np.int32 and (second == xs[0]).all()


def test_any_memory_order_will_do() -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    for strange in (np.asfortranarray(a), np.repeat(a, 2, 1)[:, ::2], a[::-1][::-1]):
        np.testing.assert_array_equal(run("fun(a: 3.4.f32 => map(map(fun(x => x)))(a))", strange), a)


def test_a_result_is_not_an_input() -> None:
    a = np.zeros(3, np.float32)
    run("fun(a: 3.f32 => a)", a)[0] = 1
    assert a[0] == 0


def test_wrong_inputs() -> None:
    text, good = "fun(rows: 2.3.f32 => rows)", np.zeros((2, 3), np.float32)
    shape = error("R0501", text, good.T)
    assert all(part in shape.message for part in ("`rows`", "(2, 3)", "(3, 2)"))
    dtype = error("R0502", text, good.astype(np.float64))
    assert all(part in dtype.message for part in ("`rows`", "f32", "float64"))
    assert "`rows`" in error("R0505", text).message
    error("R0505", text, good, good)
    assert "list" in error("R0507", text, good.tolist()).message
    error("R0507", "fun(p: (f32, f32) => p)", 1.0)
    error("R0501", "fun(x: f32 => x)", np.zeros(1, np.float32))
    error("R0501", "fun(x: 2.f32 => x)", 1.0)


@pytest.mark.parametrize(
    ("scalar", "number"), [("i32", 1.5), ("f32", True), ("bool", 1), ("u8", -1), ("i8", 128)]
)
def test_numbers_that_are_not_of_the_type(scalar: str, number: Any) -> None:
    error("R0502", f"fun(x: {scalar} => x)", number)


def test_a_size_without_a_number() -> None:
    found = error("R0506", "depFun((n: Nat) => fun(xs: n.f32 => xs))", np.zeros(3, np.float32))
    assert "`n`" in found.message


def test_random_inputs_are_reproducible() -> None:
    types = [
        ("a", array(4, F16)),
        ("i", Array(constant(50), Index(constant(3)))),
        ("p", Pair(F32, I32)),
    ]
    first, again = random_inputs(types, 7, True), random_inputs(types, 7, True)
    assert (first[0] == again[0]).all() and first[0].dtype == np.float16
    assert set(first[1].tolist()) == {0, 1, 2} and isinstance(first[2], tuple)
    assert random_inputs([("a", array(99, F32))], 1, False)[0].std() == pytest.approx(1, abs=0.3)
    assert np.abs(random_inputs([("a", array(99, F32))], 1, True)[0]).max() == 4


@pytest.mark.parametrize("scalar", SCALARS.values(), ids=str)
def test_every_scalar_has_inputs(scalar: Scalar) -> None:
    values = random_inputs([("a", array(3, 5, scalar))], 0, True)[0]
    assert values.dtype == dtype_of(scalar) and values.shape == shape_of(array(3, 5, scalar))
    assert (run(f"fun(a: 3.5.{scalar} => map(map(fun(x => x)))(a))", values) == values).all()


def test_the_catalogue_of_primitives_loads_without_numpy() -> None:
    program = "import sys, rise.interpret; from rise.primitives.declare import lookup; lookup('map')"
    subprocess.run([sys.executable, "-c", program + "; assert 'numpy' not in sys.modules"], check=True)
