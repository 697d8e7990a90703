"""The prelude: each definition against NumPy at awkward sizes, and the laws that connect them."""

# ruff: noqa: N803  # matrices are called A, B, C

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rise.check import program
from rise.check.program import LIBRARY, check_expression, check_text, load
from rise.interpret import call, evaluate
from rise.library.reference import comments_of, examples_page, library_page
from rise.source import Source
from rise.syntax.recover import Recovered, recover

ROOT = Path(__file__).parent.parent.parent
PRELUDE = load(LIBRARY / "prelude.rise").definitions
GENERATOR = np.random.default_rng(0)

SIZES = [(1, 1), (1, 7), (5, 1), (7, 3), (11, 13)]


def run(text: str, *inputs: Any) -> Any:
    """A closed expression that may use the prelude; applied to inputs, if there are any."""
    expression = check_expression(text, PRELUDE)
    return call(expression, *inputs) if inputs else evaluate(expression)


def whole(*shape: int) -> Any:
    """Small whole numbers in f32: sums and products of them are exact."""
    return GENERATOR.integers(-4, 5, shape).astype(np.float32)


def integers(*shape: int) -> Any:
    return GENERATOR.integers(-4, 5, shape).astype(np.int32)


def real(*shape: int) -> Any:
    return GENERATOR.standard_normal(shape).astype(np.float32)


def same(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found, expected)


def close(found: Any, expected: Any, roundings: int) -> None:
    """So many roundings in f32, of numbers as large as the largest or as 1."""
    allowed = roundings * np.finfo(np.float32).eps * max(1.0, np.abs(expected).max(initial=0.0))
    assert found.dtype == np.float32
    assert np.shape(found) == np.shape(expected)
    assert np.abs(found - expected).max(initial=0.0) <= allowed


# --- the page ---------------------------------------------------------------------------------------


def test_every_definition_has_a_comment_and_a_section() -> None:
    comments = comments_of((LIBRARY / "prelude.rise").read_text(encoding="utf-8"))
    assert comments.opening
    assert list(comments.of_definitions) == list(PRELUDE)
    for section in comments.sections:
        assert section.title
        for name, comment in section.comments.items():
            assert comment, name


def test_the_pages_are_up_to_date() -> None:
    """`python -m rise.library.reference .` writes them."""
    assert (ROOT / "docs" / "library.md").read_text(encoding="utf-8") == library_page()
    assert (ROOT / "docs" / "examples.md").read_text(encoding="utf-8") == examples_page(ROOT / "examples")


def test_comments_are_those_right_before() -> None:
    about = "// About.\n//\n//   more\n\n"
    comments = comments_of(f"{about}// ---- One ----\n\n// lost\n\n// Two\n// lines.\ndef f = 1\ndef g = 2\n")
    assert comments.opening == ("About.", "", "  more")
    assert comments.of_definitions == {"f": "Two lines.", "g": ""}
    assert [s.title for s in comments.sections] == ["One"]


# --- every definition is tested ---------------------------------------------------------------------

# the name, an expression with the types of its inputs left open, inputs for a size, and the meaning
Case = tuple[str, Callable[[int, int], tuple[Any, ...]], Callable[..., Any]]

MATRIX = "A: {m}.{n}.f32"
VECTOR = "xs: {n}.f32"

EXACT: dict[str, Case] = {
    "map2D": (f"fun(({MATRIX}) => map2D(fun(x => x + 1))(A))", lambda m, n: (whole(m, n),), lambda A: A + 1),
    "map3D": (
        "fun((A: 2.{m}.{n}.f32) => map3D(fun(x => x + 1))(A))",
        lambda m, n: (whole(2, m, n),),
        lambda A: A + 1,
    ),
    "numbered": (
        "fun(A: {m}.{n}.f32 => numbered(A |> map(fun(r => r |> idx(0)))) |> map(fun((x, i) => x + f32(i))))",
        lambda m, n: (whole(m, n),),
        lambda A: A[:, 0] + np.arange(len(A), dtype=np.float32),
    ),
    "zip2D": (
        "fun((A: {m}.{n}.f32, B: {m}.{n}.f32) => zip2D(A)(B) |> map2D(fun((a, b) => a - b)))",
        lambda m, n: (whole(m, n), whole(m, n)),
        lambda A, B: A - B,
    ),
    "zip3D": (
        "fun((A: 2.{m}.{n}.f32, B: 2.{m}.{n}.f32) => zip3D(A)(B) |> map3D(fun((a, b) => a - b)))",
        lambda m, n: (whole(2, m, n), whole(2, m, n)),
        lambda A, B: A - B,
    ),
    "generate2D": (
        f"fun(({MATRIX}) => generate2D(fun(i, j => A |> idx(j) |> idx(i))) : {{n}}.{{m}}.f32)",
        lambda m, n: (whole(m, n),),
        lambda A: A.T,
    ),
    "transpose2D": (f"fun(({MATRIX}) => transpose2D(A))", lambda m, n: (whole(m, n),), lambda A: A.T),
    "idx2D": (f"fun(({MATRIX}) => idx2D(0)(0)(A))", lambda m, n: (whole(m, n),), lambda A: A[0, 0]),
    "idx3D": (
        "fun((A: 2.{m}.{n}.f32) => idx3D(1)(0)(0)(A))",
        lambda m, n: (whole(2, m, n),),
        lambda A: A[1, 0, 0],
    ),
    "indices": (
        f"fun(({VECTOR}) => zip(indices)(xs) |> map(fst))",
        lambda m, n: (whole(n),),
        lambda xs: np.arange(len(xs)),
    ),
    "repeat": (
        f"fun(({VECTOR}) => repeat({{m}})(map(fun(x => x + 2)))(xs))",
        lambda m, n: (whole(n), m),
        lambda xs, m: xs + 2 * m,
    ),
    "oneHot": (
        "fun((is: {m}.Idx[{n}]) => map(oneHot)(is) : {m}.{n}.f32)",
        lambda m, n: (np.arange(m) % n, n),
        lambda indices, n: np.eye(n)[indices],
    ),
    "reverse": (f"fun(({VECTOR}) => reverse(xs))", lambda m, n: (whole(n),), np.flip),
    "tile2D": (
        "fun((A: (2*{m}).(3*{n}).f32) => tile2D(2, 3)(A))",
        lambda m, n: (whole(2 * m, 3 * n),),
        lambda A: A.reshape(len(A) // 2, 2, -1, 3).swapaxes(1, 2),
    ),
    "untile2D": (
        "fun((T: {m}.{n}.2.3.f32) => untile2D(T))",
        lambda m, n: (whole(m, n, 2, 3),),
        lambda T: np.block([list(row) for row in T]),
    ),
    "slide2D": (
        "fun((A: (2*{m} + 3).(2*{n} + 3).f32) => slide2D(3, 2)(A))",
        lambda m, n: (whole(2 * m + 3, 2 * n + 3),),
        lambda A: windows(A, 3, 3)[::2, ::2],
    ),
    "slide3D": (
        "fun((A: 3.({m} + 1).({n} + 1).f32) => slide3D(2, 1)(A))",
        lambda m, n: (whole(3, m + 1, n + 1),),
        lambda A: windows(A, 2, 2, 2),
    ),
    "padClamp2D": (
        f"fun(({MATRIX}) => padClamp2D(2, 1)(A))",
        lambda m, n: (whole(m, n),),
        lambda A: np.pad(A, (2, 1), "edge"),
    ),
    "padWrap": (
        f"fun(({VECTOR}) => padWrap(1, 1)(xs))",
        lambda m, n: (whole(n),),
        lambda xs: np.pad(xs, 1, "wrap"),
    ),
    "padWrap2D": (
        f"fun(({MATRIX}) => padWrap2D(1, 0)(A))",
        lambda m, n: (whole(m, n),),
        lambda A: np.pad(A, (1, 0), "wrap"),
    ),
    "padCst2D": (
        f"fun(({MATRIX}) => padCst2D(2, 1)(5)(A))",
        lambda m, n: (whole(m, n),),
        lambda A: np.pad(A, (2, 1), constant_values=5),
    ),
    "padClamp3D": (
        "fun((A: 2.{m}.{n}.f32) => padClamp3D(2, 1)(A))",
        lambda m, n: (whole(2, m, n),),
        lambda A: np.pad(A, (2, 1), "edge"),
    ),
    "padCst3D": (
        "fun((A: 2.{m}.{n}.f32) => padCst3D(2, 1)(5)(A))",
        lambda m, n: (whole(2, m, n),),
        lambda A: np.pad(A, (2, 1), constant_values=5),
    ),
    "sum": (f"fun(({MATRIX}) => map(sum)(A))", lambda m, n: (whole(m, n),), lambda A: A.sum(1)),
    "product": (f"fun(({VECTOR}) => product(xs))", lambda m, n: (whole(n),), np.prod),
    "maximum": (f"fun(({VECTOR}) => maximum(xs))", lambda m, n: (whole(n) - 9,), np.max),
    "minimum": (f"fun(({VECTOR}) => minimum(xs))", lambda m, n: (whole(n) + 9,), np.min),
    "argmax": (f"fun(({MATRIX}) => map(argmax)(A))", lambda m, n: (whole(m, n),), lambda A: A.argmax(1)),
    "argmin": (f"fun(({MATRIX}) => map(argmin)(A))", lambda m, n: (whole(m, n),), lambda A: A.argmin(1)),
    "any": ("fun((xs: {m}.{n}.bool) => map(any)(xs))", lambda m, n: (whole(m, n) > 2,), lambda A: A.any(1)),
    "all": ("fun((xs: {m}.{n}.bool) => map(all)(xs))", lambda m, n: (whole(m, n) > -3,), lambda A: A.all(1)),
    "scal": (
        f"fun((a: f32, {VECTOR}) => scal(a)(xs))",
        lambda m, n: (np.float32(3), whole(n)),
        lambda a, xs: a * xs,
    ),
    "axpy": (
        f"fun((a: f32, {VECTOR}, ys: {{n}}.f32) => axpy(a)(xs)(ys))",
        lambda m, n: (np.float32(3), whole(n), whole(n)),
        lambda a, xs, ys: a * xs + ys,
    ),
    "dot": (
        f"fun(({VECTOR}, ys: {{n}}.f32) => dot(xs)(ys))",
        lambda m, n: (whole(n), whole(n)),
        np.dot,
    ),
    "asum": (f"fun(({VECTOR}) => asum(xs))", lambda m, n: (whole(n),), lambda xs: np.abs(xs).sum()),
    "outer": (
        f"fun((ys: {{m}}.f32, {VECTOR}) => outer(ys)(xs))",
        lambda m, n: (whole(m), whole(n)),
        np.outer,
    ),
    "matvec": (
        f"fun(({MATRIX}, {VECTOR}) => matvec(A)(xs))",
        lambda m, n: (whole(m, n), whole(n)),
        lambda A, x: A @ x,
    ),
    "matmul": (
        f"fun(({MATRIX}, B: {{n}}.5.f32) => matmul(A)(B))",
        lambda m, n: (whole(m, n), whole(n, 5)),
        lambda A, B: A @ B,
    ),
    "batchedMatmul": (
        "fun((A: 3.{m}.{n}.f32, B: 3.{n}.2.f32) => batchedMatmul(A)(B))",
        lambda m, n: (whole(3, m, n), whole(3, n, 2)),
        lambda A, B: A @ B,
    ),
    "length": (f"fun(({MATRIX}) => length(A))", lambda m, n: (whole(m, n),), len),
    "relu": (f"fun(({VECTOR}) => map(relu)(xs))", lambda m, n: (whole(n),), lambda xs: np.maximum(xs, 0)),
    "conv1D": (
        "fun((w: {m}.f32, xs: ({n} + {m} - 1).f32) => conv1D(w)(xs))",
        lambda m, n: (whole(m), whole(n + m - 1)),
        lambda w, xs: np.correlate(xs, w, "valid"),
    ),
    "windows2D": (
        "fun((A: ({m} + 1).({n} + 2).f32) => windows2D(2, 3)(A))",
        lambda m, n: (whole(m + 1, n + 2),),
        lambda A: windows(A, 2, 3),
    ),
    "conv2D": (
        "fun((w: 2.3.f32, A: ({m} + 1).({n} + 2).f32) => conv2D(w)(A))",
        lambda m, n: (whole(2, 3), whole(m + 1, n + 2)),
        lambda w, A: (windows(A, 2, 3) * w).sum((2, 3)),
    ),
    "im2col": (
        "fun((A: 2.({m} + 1).({n} + 2).f32) => im2col(2, 3)(A))",
        lambda m, n: (whole(2, m + 1, n + 2),),
        lambda A: np.array([A[:, i : i + 2, j : j + 3].ravel() for i, j in places(A[0], 2, 3)]),
    ),
    "convLayer": (
        "fun((w: 4.2.2.3.f32, A: 2.({m} + 1).({n} + 2).f32) => convLayer(w)(A))",
        lambda m, n: (whole(4, 2, 2, 3), whole(2, m + 1, n + 2)),
        lambda w, A: np.einsum("ocpq,cmnpq->omn", w, windows(A, 1, 2, 3)[:, :, :, 0]),
    ),
}

# with the number of roundings of one result, besides one for each of the n terms of its sums
ROUNDED: dict[str, tuple[str, Callable[..., Any], int]] = {
    "nrm2": ("nrm2(xs)", np.linalg.norm, 4),
    "mean": ("mean(xs)", np.mean, 4),
    "variance": ("variance(xs)", np.var, 8),
    "gelu": (
        "map(gelu)(xs)",
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        16,
    ),
    "sigmoid": ("map(sigmoid)(xs)", lambda x: 1 / (1 + np.exp(-x)), 8),
    "logSumExp": ("logSumExp(xs)", lambda x: np.log(np.exp(x).sum()), 8),
    "softmax": ("softmax(xs)", lambda x: np.exp(x) / np.exp(x).sum(), 8),
    "weightedRows": (
        "weightedRows(xs)(xs |> map(fun(x => makeArray(2)(x, x + 1))))",
        lambda x: np.stack([x @ x, x @ (x + 1)]),
        16,
    ),
    "attend": (
        "attend(fun((j, s) => s + f32(j)))(xs |> map(fun(x => makeArray(1)(x))))"
        "(xs |> map(fun(x => makeArray(1)(x))))(makeArray(1)(0.5))",
        lambda x: np.atleast_1d(
            np.exp(x / 2 + np.arange(x.size)) @ x / np.exp(x / 2 + np.arange(x.size)).sum()
        ),
        64,
    ),
    "modifiedScores": (
        "modifiedScores(fun((j, s) => s + f32(j)))(xs |> map(fun(x => makeArray(1)(x))))(makeArray(1)(0.5))",
        lambda x: x / 2 + np.arange(x.size),
        2,
    ),
    "attendWithSink": (
        "attendWithSink(fun((j, s) => s + f32(j)))(0.5)(xs |> map(fun(x => makeArray(1)(x))))"
        "(xs |> map(fun(x => makeArray(1)(x))))(makeArray(1)(0.5))",
        lambda x: np.atleast_1d(
            np.exp(x / 2 + np.arange(x.size)) @ x / (np.exp(x / 2 + np.arange(x.size)).sum() + np.exp(0.5))
        ),
        64,
    ),
    "attendBeside": (
        "attendBeside(fun((b, s) => s + b * 2))(xs)(xs |> map(fun(x => makeArray(1)(x))))"
        "(xs |> map(fun(x => makeArray(1)(x))))(makeArray(1)(0.5))",
        lambda x: np.atleast_1d(np.exp(x * 2.5) @ x / np.exp(x * 2.5).sum()),
        64,
    ),
    "attendWithLogSumExp": (
        "attendWithLogSumExp(fun((j, s) => s + f32(j)))(xs |> map(fun(x => makeArray(1)(x))))"
        "(xs |> map(fun(x => makeArray(1)(x))))(makeArray(1)(0.5))"
        " |> fun((o, s) => o |> map(fun(x => x * s)))",
        lambda x: np.atleast_1d(
            np.exp(x / 2 + np.arange(x.size))
            @ x
            / np.exp(x / 2 + np.arange(x.size)).sum()
            * np.log(np.exp(x / 2 + np.arange(x.size)).sum())
        ),
        128,
    ),
    "layernorm": (
        "layernorm(0.5)(xs)(map(fun(x => x + 1))(xs))(xs)",
        lambda x: (x - x.mean()) / np.sqrt(x.var() + 0.5) * x + (x + 1),
        16,
    ),
}


def windows(array: Any, *shape: int) -> Any:
    return np.lib.stride_tricks.sliding_window_view(array, shape)


def places(image: Any, p: int, q: int) -> list[tuple[int, int]]:
    """Where windows of p by q begin."""
    rows, columns = image.shape
    return [(i, j) for i in range(rows - p + 1) for j in range(columns - q + 1)]


def test_no_definition_is_left_out() -> None:
    assert set(EXACT) | set(ROUNDED) == set(PRELUDE)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(("m", "n"), SIZES)
def test_exactly_what_numpy_computes(name: str, m: int, n: int) -> None:
    text, make, meaning = EXACT[name]
    inputs = make(m, n)
    arrays = [value for value in inputs if not isinstance(value, int)]
    same(run(text.format(m=m, n=n), *arrays), meaning(*inputs))


@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.parametrize("n", [1, 7, 101])
def test_what_numpy_computes_but_for_roundings(name: str, n: int) -> None:
    text, meaning, roundings = ROUNDED[name]
    xs = real(n)
    close(run(f"fun((xs: {n}.f32) => {text})", xs), meaning(xs.astype(np.float64)), roundings + n)


def test_definitions_are_for_every_type_of_number() -> None:
    A, B = integers(3, 5), integers(5, 2)
    same(run("fun((A: 3.5.i32, B: 5.2.i32) => matmul(A)(B))", A, B), A @ B)
    same(run("fun(A: 3.5.i32 => map(maximum)(A))", A), A.max(1))
    same(run("fun(A: 3.5.i32 => map(mean)(A))", A), np.trunc(A.sum(1) / 5))
    same(run("fun(xs: 5.u8 => sum(xs))", np.full(5, 100, np.uint8)), 500 % 256)


def test_softmax_does_not_overflow() -> None:
    found = run("fun(xs: 3.f32 => softmax(xs))", np.array([1e30, 1e30, -1e30], np.float32))
    same(found, [0.5, 0.5, 0.0])


def test_the_sum_of_exponentials_does_not_overflow() -> None:
    assert run("fun(xs: 2.f32 => logSumExp(xs))", np.array([1e4, 1e4], np.float32)) == np.float32(
        1e4 + np.log(2)
    )
    assert run("fun(xs: 2.f32 => logSumExp(xs))", np.full(2, -np.inf, np.float32)) == -np.inf


def test_the_mean_of_many_halves_counts_all() -> None:
    """Counting in f16 would stop at 2048."""
    xs = np.zeros(4096, np.float16)
    xs[:2048] = 0.5
    assert run("fun(xs: 4096.f16 => mean(xs))", xs) == np.float16(0.25)


def test_argmax_of_equals_is_the_first() -> None:
    xs = np.array([1, 3, 3, 2, 3], np.float32)
    assert run("fun(xs: 5.f32 => argmax(xs))", xs) == 1
    assert run("fun(xs: 5.f32 => argmin(map(neg)(xs)))", xs) == 1


# --- laws -------------------------------------------------------------------------------------------

SMALL = st.integers(1, 4)
FEWER = settings(max_examples=settings().max_examples // 4)  # each checks and runs two programs


@FEWER
@given(m=SMALL, n=SMALL, p=SMALL, q=SMALL)
def test_untile_undoes_tile(m: int, n: int, p: int, q: int) -> None:
    A = integers(m * p, n * q)
    same(run(f"fun(A: {m * p}.{n * q}.i32 => A |> tile2D({p}, {q}) |> untile2D)", A), A)
    T = integers(m, n, p, q)
    same(run(f"fun(T: {m}.{n}.{p}.{q}.i32 => T |> untile2D |> tile2D({p}, {q}))", T), T)


@FEWER
@given(m=SMALL, n=SMALL)
def test_transposing_twice_is_nothing(m: int, n: int) -> None:
    A = integers(m, n)
    same(run(f"fun(A: {m}.{n}.i32 => A |> transpose2D |> transpose2D)", A), A)
    same(run(f"fun(A: {m}.{n}.i32 => A |> reverse |> reverse)", A), A)


@FEWER
@given(c=SMALL, o=SMALL, m=SMALL, n=SMALL, p=SMALL, q=SMALL)
def test_a_convolution_is_a_product_of_matrices(c: int, o: int, m: int, n: int, p: int, q: int) -> None:
    weights, channels = integers(o, c, p, q), integers(c, m + p - 1, n + q - 1)
    parameters = f"w: {o}.{c}.{p}.{q}.i32, x: {c}.{m + p - 1}.{n + q - 1}.i32"
    product = "matmul(w |> map(join >> join))(x |> im2col({p}, {q}) |> transpose) |> map(split({n}))"
    found = run(f"fun(({parameters}) => {product.format(p=p, q=q, n=n)})", weights, channels)
    same(found, run(f"fun(({parameters}) => convLayer(w)(x))", weights, channels))


@FEWER
@given(m=SMALL, n=SMALL, p=SMALL, q=SMALL)
def test_a_layer_of_one_channel_is_conv2D(m: int, n: int, p: int, q: int) -> None:
    weights, image = integers(p, q), integers(m + p - 1, n + q - 1)
    parameters = f"w: {p}.{q}.i32, x: {m + p - 1}.{n + q - 1}.i32"
    one_channel = "convLayer(makeArray(1)(makeArray(1)(w)))(makeArray(1)(x))"
    layer = run(f"fun(({parameters}) => {one_channel})", weights, image)
    same(layer[0], run(f"fun(({parameters}) => conv2D(w)(x))", weights, image))


@FEWER
@given(m=SMALL, n=SMALL, k=SMALL)
def test_the_transpose_of_a_product(m: int, n: int, k: int) -> None:
    A, B = integers(m, k), integers(k, n)
    parameters = f"A: {m}.{k}.i32, B: {k}.{n}.i32"
    found = run(f"fun(({parameters}) => matmul(A)(B) |> transpose)", A, B)
    same(found, run(f"fun(({parameters}) => matmul(B |> transpose)(A |> transpose))", A, B))


@FEWER
@given(n=st.integers(1, 9), k=st.integers(0, 5))
def test_repeating_adds_up(n: int, k: int) -> None:
    xs = integers(n)
    same(run(f"fun(xs: {n}.i32 => xs |> repeat({k})(map(fun(x => 2 * x))))", xs), xs * 2**k)


def test_a_text_of_the_library_is_checked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever imports it; another text in its place is checked anew."""
    checked: list[str] = []

    def counted(source: Source) -> Recovered:
        checked.append(source.name)
        return recover(source)

    monkeypatch.setattr(program, "recover", counted)
    monkeypatch.setattr(program, "OF_LIBRARY", {})
    monkeypatch.setattr(program, "LIBRARY", tmp_path)
    library = tmp_path / "prelude.rise"
    for text, count in (("def f = fun(x: f32 => x)", 1), ("def f = fun(x: i32 => x)", 2)):
        library.write_text(text)
        for _ in range(3):
            made = check_text('import "prelude.rise"\ndef g = f')
            assert made["g"].scheme == made["f"].scheme
        assert checked.count(str(library)) == count
