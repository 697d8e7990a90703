"""Folds and scans that are taken apart give the bits of those that go step by step."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rise.check.program import check_expression
from rise.errors import EvaluationError
from rise.interpret import call, dtype_of, folds
from rise.types import SCALARS

AWKWARD: dict[str, list[float]] = {
    "f": [0.0, -0.0, 1.0, -1.5, 3.0, 0.1, 1e-7, 60000.0, np.inf, -np.inf, np.nan, 2049.0],
    "i": [0, 1, -1, 2, 3, 5, 100, 127, -128],
    "u": [0, 1, 2, 3, 5, 100, 127, 255],
}
NEVER = 1 << 62


def same_bits(found: Any, expected: Any) -> bool:
    """NaN is NaN, whatever its bits; zeros differ by their sign."""
    if isinstance(expected, tuple):
        return all(same_bits(f, e) for f, e in zip(found, expected, strict=True))
    f, e = np.atleast_1d(found), np.atleast_1d(expected)
    if f.dtype != e.dtype or f.shape != e.shape:
        return False
    if f.dtype.kind in "iub":
        return bool((f == e).all())
    f, e = f.astype(np.float64), e.astype(np.float64)  # bf16 too
    return bool(((np.isnan(f) & np.isnan(e)) | ((f == e) & (np.signbit(f) == np.signbit(e)))).all())


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a fold was run in which way."""
    counter: Counter[str] = Counter()

    def counted(name: str) -> Any:
        original = getattr(folds, name)

        def run(*arguments: Any) -> Any:
            counter[name] += 1
            return original(*arguments)

        return run

    for name in ("_accumulated", "_looped", "_step_by_step"):
        monkeypatch.setattr(folds, name, counted(name))
    return counter


def in_every_way(text: str, *inputs: Any) -> None:
    """Step by step, all at once, and a few elements at a time."""
    term = check_expression(text)
    short, small = folds.SHORT, folds.SMALL
    found = []
    try:
        for folds.SHORT, folds.SMALL in ((NEVER, small), (1, small), (1, 7)):
            found.append(call(term, *inputs))
    finally:
        folds.SHORT, folds.SMALL = short, small
    assert all(same_bits(f, found[0]) for f in found[1:]), f"{text} on {inputs}: {found}"


# --- random steps -----------------------------------------------------------------------------------

OPERATIONS = ("({} + {})", "({} - {})", "({} * {})", "min({})({})", "max({})({})", "select({} < {})(x)(a)")


def steps(leaves: tuple[str, ...]) -> st.SearchStrategy[str]:
    def grown(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.builds(str.format, st.sampled_from(OPERATIONS), parts, parts),
            st.builds("select({} <= {})({})({})".format, parts, parts, parts, parts),
            st.builds("(let y = {} in y - {} * y)".format, parts, parts),
            parts.map("neg({})".format),
        )

    return st.recursive(st.sampled_from(leaves), grown, max_leaves=5)


def numbers(kind: str, count: int) -> st.SearchStrategy[list[float]]:
    """Often without those that all later results would be NaN for."""
    tame = st.lists(st.sampled_from(AWKWARD[kind][:6]), min_size=count, max_size=count)
    return st.one_of(tame, tame, st.lists(st.sampled_from(AWKWARD[kind]), min_size=count, max_size=count))


FUNCTIONS = (
    "exp({})", "log({})", "sqrt({})", "rsqrt({})", "tanh({})", "sin({})", "cos({})",
    "floor({})", "ceil({})", "round({})", "({0} / {0})", "(x / {})", "({} % x)",
    "(neg({}) % x)", "pow({})(x)", "fma({})(x)(a)",
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("scalar", ["f16", "bf16", "f32", "f64"])
def test_functions_of_the_accumulator(function: str, scalar: str, ways: Counter[str]) -> None:
    """Each result is the next accumulator: of numbers that get rounded, then of odd ones."""
    tame = np.random.default_rng(11).uniform(0.3, 3, 61)
    xs = np.array([*tame, *AWKWARD["f"]]).astype(dtype_of(SCALARS[scalar]))
    for step in (function.format("a"), f"abs({function.format('a')}) * x", f"x - {function.format('a * x')}"):
        in_every_way(f"fun((xs: {xs.size}.{scalar}) => xs |> scanSeq(fun((x, a) => {step}), 2))", xs)
    assert ways["_looped"] > 0 or (scalar == "f64" and "fma" in function)


@settings(max_examples=2 * settings().max_examples)
@given(
    steps(("a", "x", "c", "a", "2")),
    st.sampled_from(("f32", "f32", "f16", "bf16", "f64", "i32", "i8", "u8")),
    st.sampled_from(("reduceSeq(fun((a, x) => {}), c)", "scanSeq(fun((x, a) => {}), c)")),
    st.data(),
)
def test_random_steps(step: str, scalar: str, pattern: str, data: st.DataObject) -> None:
    """Rows of 13 elements, each with its own first accumulator, which is also a constant of the step."""
    dtype, turns = dtype_of(SCALARS[scalar]), 3
    kind = scalar.lstrip("b")[0]
    values = data.draw(numbers(kind, 13 * turns))
    firsts = data.draw(numbers(kind, turns))
    xs, cs = (np.array(v).astype(dtype) for v in (values, firsts))
    body = f"zip(xs)(cs) |> map(fun((row, c) => row |> {pattern.format(step)}))"
    text = f"fun((xs: {turns}.13.{scalar}, cs: {turns}.{scalar}) => {body})"
    in_every_way(text, xs.reshape(turns, 13), cs)


@pytest.mark.parametrize("scalar", ["f16", "bf16", "f32"])
def test_a_fused_product_next_to_halfway_is_rounded_once(scalar: str, ways: Counter[str]) -> None:
    """(1 + u)(1 - u) - 1 + 1: what two roundings lose decides."""
    unit = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23}[scalar]
    tiny = {"f16": 2.0**-24, "bf16": 2.0**-60, "f32": 2.0**-80}[scalar]
    factors = [(1 + unit * i) * s for i in (1, 2, 3, 5, 8, 16, 32) for s in (1, -1)]
    xs = np.array([f * 2.0**-j for f in factors for j in (0, 1, 4, 5)]).astype(dtype_of(SCALARS[scalar]))
    for c in (1.0, -1.0, tiny, -tiny):
        text = f"zip(xs)(xs) |> scanSeq(fun(((x, y), (a, b)) => (x, fma(a)(y)({c}))), (1, 1))"
        in_every_way(f"fun((xs: {xs.size}.{scalar}) => {text})", xs)
    assert ways["_looped"] > 0


@pytest.mark.parametrize(
    "step", ["a / {x}", "{x} / (a % 8 + 9)", "a % {x}", "fma(a)({x})(a)", "a / 3 % {x} - x"]
)
@pytest.mark.parametrize("scalar", ["i8", "i32", "i64", "u8", "u32"])
def test_whole_numbers_are_divided_as_in_c(step: str, scalar: str, ways: Counter[str]) -> None:
    xs = np.array(AWKWARD[scalar[0]] * 9, np.int64).astype(dtype_of(SCALARS[scalar]))
    text = step.format(x="select(x == 0)(5)(x)")
    in_every_way(f"fun((xs: {xs.size}.{scalar}) => xs |> scanSeq(fun((x, a) => {text}), 100))", xs)
    assert ways["_looped"] > 0


@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "f64", "i32", "u8", "i64", "bool"])
@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "f64", "i8", "i32", "u32", "i64", "bool"])
def test_conversions_of_the_accumulator(source: str, target: str, ways: Counter[str]) -> None:
    """The accumulator is the last element, and the one before it converted."""
    kind = {"b": "u"}.get(source[0], source[0]) if source != "bf16" else "f"
    xs = np.array(AWKWARD[kind] * 4).astype(dtype_of(SCALARS[source]))
    if source in ("f64", "i32", "i64"):
        xs = np.concatenate([xs, np.array([2**30 - 2**21 - 1, 2**30 - 2**21 + 1] * 4).astype(xs.dtype)])
    text = f"xs |> scanSeq(fun((x, a) => (x, {target}(fst(a)))), (z, t))"
    zero = np.zeros((), dtype_of(SCALARS[target]))[()]
    in_every_way(f"fun((xs: {xs.size}.{source}, z: {source}, t: {target}) => {text})", xs, xs[0], zero)
    assert ways["_looped"] > 0


# --- each way is taken ------------------------------------------------------------------------------

ROW = np.array([0.0, -0.0, 1.0, -1.5, 3.0, 0.1, 1e-7, 600.0] * 30, np.float32)
TAKEN = {
    "reduce(+, 0)": "_accumulated",
    "reduceSeq(max, 0)": "_accumulated",
    "reduceSeq(-, 0)": "_accumulated",
    "reduceSeq(fun((a, x) => a + x * x), 0)": "_accumulated",
    "reduceSeq(fun((a, x) => x * x + a), 0)": "_accumulated",
    "reduceSeq(fun((a, x) => a - exp(x)), 0)": "_accumulated",
    "reduceSeq(fun((a, x) => let y = x * x in a + y * y), 0)": "_looped",
    "scan(+, 0)": "_accumulated",
    "scanSeq(+, 0)": "_accumulated",
    "scanSeq(fun((x, a) => max(a)(x)), 0)": "_accumulated",
    "reduceSeq(fun((a, x) => x - a), 0)": "_looped",
    "scanSeq(fun((x, a) => max(x)(a)), 0)": "_accumulated",
    "reduceSeq(fun((a, x) => a * 0.5 + x), 0)": "_looped",
    "reduceSeq(fun((a, x) => a / x), 1)": "_looped",
    "reduceSeq(fun((a, x) => select(x > a || a == 1)(x)(a)), 0)": "_looped",
    "reduceSeq(fun(((s, l), x) => (s + x, max(l)(x))), (0, -9))": "_looped",
    "reduceSeq(fun((a, x) => a + f64(x)), 0.0)": "_accumulated",
    "reduceSeq(fun((a, x) => f16(f32(a) + x)), 0.0)": "_looped",
    "reduceSeq(fun((a, x) => a + 1), 0)": "_looped",
    "reduceSeq(fun((a, x) => a * 2 + 1), 0)": "_looped",
    "map(fun(x => (x, x))) >> reduceSeq(fun((a, (x, y)) => a * x + y), 0)": "_looped",
    "reducePipelined(2)(fun(x => x * x), +, 0)": "_accumulated",
    "reduceSeq(fun((a, x) => sqrt(a) + x), 0)": "_looped",
    "reduceSeq(fun((a, x) => bf16(f32(a) + x)), 0.0)": "_looped",
    "reduceSeq(fun((a, x) => fma(a)(x)(x)), 0)": "_looped",
    "reduceSeq(fun((a, x) => fma(a)(f64(x))(1)), 0)": "_step_by_step",
    "reduceSeq(fun((a, x) => a % 7 + i32(x)), 0)": "_looped",
    "map(fun(x => (x, x))) >> reduceSeq(fun((a, b) => select(fst(a) > fst(b))(a)(b)), (0, 1))": "_looped",
    "reduceSeq(fun((i, x) => natAsIndex(5)((indexToInt(i) * 2 + 1) % 5)), natAsIndex(5)(0))": "_looped",
}


@pytest.mark.parametrize("pattern", TAKEN)
def test_it_goes_the_way_that_is_fast(pattern: str, ways: Counter[str]) -> None:
    if ">>" in pattern:
        first, second = pattern.split(" >> ")
        pattern = f"{first} |> {second}"
    text = f"fun((xs: {ROW.size}.f32) => xs |> {pattern})"
    call(check_expression(text), ROW)
    expected = TAKEN.get(pattern, "_looped")
    assert set(ways) == {expected}
    in_every_way(text, ROW)


@pytest.mark.parametrize("function", ["min", "max"])
@pytest.mark.parametrize("operands", ["(a * 1)(x)", "(x)(a * 1)"])
def test_ties_of_minima(function: str, operands: str, ways: Counter[str]) -> None:
    """Of a number and NaN the number; -0 is below 0."""
    xs = np.array([np.nan, 2, np.nan, 0.0, -0.0, 0.0, -0.0, np.nan] * 5, np.float32)
    for first in (1.0, -0.0, np.nan):
        text = f"fun((xs: 40.f32, z: f32) => xs |> scanSeq(fun((x, a) => {function}{operands}), z))"
        in_every_way(text, xs, np.float32(first))
    assert ways["_looped"] > 0


def test_a_few_turns_loop_and_many_go_together(ways: Counter[str]) -> None:
    text = "fun((xss: {0}.64.f32) => xss |> map(reduceSeq(fun((a, x) => a * 0.5 + x), 0)))"
    for turns, way in ((5, "_looped"), (folds.FEW + 1, "_step_by_step")):
        ways.clear()
        xss = np.resize(ROW, (turns, 64))
        call(check_expression(text.format(turns)), xss)
        assert set(ways) == {way}
        in_every_way(text.format(turns), xss)


def test_vectors_are_accumulated_too(ways: Counter[str]) -> None:
    text = "fun((vs: 60.Vec[4, f32]) => vs |> reduceSeq(fun((r, v) => r + v * v), 0))"
    call(check_expression(text), ROW.reshape(60, 4))
    assert set(ways) == {"_accumulated"}
    in_every_way(text, ROW.reshape(60, 4))


def test_a_long_scan_goes_in_pieces(ways: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folds, "SMALL", 100)
    xs = np.arange(1001, dtype=np.int32)
    found = call(check_expression("fun((xs: 1001.i32) => xs |> scan(+, 5))"), xs)
    np.testing.assert_array_equal(found, 5 + np.cumsum(xs))
    assert ways == {"_accumulated": 11}


@pytest.mark.parametrize("size", [0, 1])
def test_a_scan_of_pairs_in_which_pairs_are_chosen(size: int) -> None:
    """Also of no elements, in no way that is fast; also under a map."""
    step = "fun((p, q) => select(fst(p) == fst(q))((fst(p), snd(q) + 1))(p))"
    rows = f"xss |> map(fun(xs => xs |> map(fun(x => (x, f32(1)))) |> scanSeq({step}, (7, 1.0))))"
    first, second = call(
        check_expression(f"fun(xss: 2.{size}.i32 => {rows})"), np.full((2, size), 7, np.int32)
    )
    assert (first.shape, first.dtype, second.shape, second.dtype) == ((2, size), "i4", (2, size), "f4")
    assert (second == 2).all()


# --- no mistake is brought about, and none is lost -----------------------------------------------------

NUMBERS = np.arange(40, dtype=np.int32) % 5


@pytest.mark.parametrize(
    "step",
    [
        "select(x == 0)(a)(a + 12 / x)",
        "select(x > 0 && 12 / x > 3)(a + x)(a)",
        "a + select(x == 0)(1)(6 % x)",
    ],
)
def test_what_is_not_chosen_is_no_mistake(step: str) -> None:
    in_every_way(f"fun((xs: 40.i32) => xs |> reduceSeq(fun((a, x) => {step}), 0))", NUMBERS)


def test_a_mistake_of_a_step_is_one() -> None:
    term = check_expression("fun((xs: 40.i32) => xs |> reduceSeq(fun((a, x) => a + 12 / x), 0))")
    with pytest.raises(EvaluationError, match="R0504"):
        call(term, NUMBERS)
    assert call(term, NUMBERS + 1) == 8 * (12 + 6 + 4 + 3 + 2)


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("a + 12 / (a - x)", "R0504"),
        ("(x + 7) % a", "R0504"),
        ("indexToInt(natAsIndex(3)(a)) + 1", "R0503"),
    ],
)
def test_a_mistake_of_an_accumulator_is_one(step: str, code: str) -> None:
    """The loop leaves it to the evaluator, which knows the place."""
    term = check_expression(f"fun((xs: 40.i32) => xs |> reduceSeq(fun((a, x) => {step}), 0))")
    with pytest.raises(EvaluationError) as caught:
        call(term, NUMBERS)
    assert caught.value.code == code
    assert caught.value.origin is not None


def test_names_that_hide_each_other() -> None:
    for step in ("fun(a => fun(x => (fun(a => a + a))(x)))", "fun((a, x) => (fun(a => a + x))(a * 2))"):
        in_every_way(f"fun((xs: 40.f32) => xs |> reduceSeq({step}, 0))", ROW[:40])


def test_pairs_of_which_one_part_is_used() -> None:
    text = """fun((xs: 40.f32) => zip(xs)(generate(fun((i: Idx[40]) => indexToInt(i))))
      |> reduceSeq(fun(((m, j), (x, i)) => select(x > m)((x, i))((m, j))), (-9, 0)))"""
    in_every_way(text, ROW[:40])
