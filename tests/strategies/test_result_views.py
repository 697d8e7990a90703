"""Matrices that a program computes and puts elsewhere: heads beside each other, rows of all of a batch."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.specialise import inputs_of
from rise.expr import Expr
from rise.interpret import call, random_inputs
from strategies.auto import auto
from strategies.batches.batch import batch
from tests.support.batches import exact, program
from tests.support.nightly import every_other
from tests.support.programs import succeeded

AUTO = auto()  # what is derived for one test is there for the others

DOT = "zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)"
PRODUCT = f"A |> map(row => B |> map(col => bf16({DOT})))"
OF_EACH = f"zip(As)(Bs) |> map((A, B) => {PRODUCT})"
LAYER = f"A |> map(row => W |> map(col => bf16({DOT})))"

# a batch of b products of m·k and k·n; where their elements are put
PUT = {
    "rows of all matrices beside each other": f"{OF_EACH} |> transpose",
    "heads beside each other": f"{OF_EACH} |> transpose |> map(join)",
    "columns first": f"{OF_EACH} |> map(transpose) |> transpose",
    "all columns in one list": f"{OF_EACH} |> map(transpose) |> join",
    "parts of rows": f"{OF_EACH} |> map(map(split(2)))",
    "parts of rows, part by part": f"{OF_EACH} |> map(map(split(2))) |> map(transpose)",
}
SMALL, LARGE = {"b": 47, "m": 17, "n": 10, "k": 9}, {"b": 3, "m": 72, "n": 136, "k": 64}


def put(where: str, sizes: dict[str, int]) -> Expr:
    given = "As: {b}.{m}.{k}.bf16, Bs: {b}.{n}.{k}.bf16".format(**sizes)
    return program(f"def f({given}) = {PUT[where]}")


def strategies(term: Expr) -> list[str]:
    return [kernel.point.strategy for kernel in AUTO.choice(term).kernels]


def is_exact(term: Expr) -> bool:
    return exact(term, succeeded(AUTO(term)).term)


# --- products ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", every_other(PUT))
def test_small_matrices_are_a_batch_wherever_they_are_put(where: str) -> None:
    term = put(where, SMALL)
    assert strategies(term) == ["batch"]
    assert is_exact(term)


@pytest.mark.parametrize("where", ["heads beside each other", "parts of rows, part by part"])
def test_larger_ones_are_tiles(where: str) -> None:
    term = put(where, LARGE)
    assert strategies(term) == ["tensor_core"]
    assert is_exact(term)


def test_drawn_places_are_exact() -> None:
    """Two views after each other, at sizes of one and of primes."""
    seed = 20261127
    random = Random(seed)
    for number in range(4):
        b, m, n, k = (random.choice(c) for c in [(1, 2, 7), (2, 8, 34), (2, 6, 34), (1, 5, 16)])
        views = " |> ".join(
            random.choice(["map(map(split(2)))", "map(transpose)", "map(map(map(x => x)))"]) for _ in "12"
        )
        text = f"def f(As: {b}.{m}.{k}.f16, Bs: {b}.{n}.{k}.f16) = {OF_EACH} |> {views} |> transpose"
        text = text.replace("bf16", "f16")
        assert is_exact(program(text)), f"seed {seed}, number {number}: {text}"


IN_PARTS = f"A |> map(row => W |> map(col => bf16({DOT})) |> split(16))"
LAYERS = {
    "rows in parts": f"A: 65.64.bf16, W: 48.64.bf16) = {IN_PARTS}",
    "heads of a sequence": f"A: 65.64.bf16, W: 48.64.bf16) = {IN_PARTS} |> transpose",
    "heads of sequences": f"As: 3.65.64.bf16, W: 48.64.bf16) = As |> map(A => {IN_PARTS} |> transpose)",
    "heads of sequences as rows": (
        f"Ps: 2.3.65.64.bf16, Vs: 2.3.32.64.bf16) = zip(Ps)(Vs) |> map((As, Bs) => {OF_EACH}"
        " |> transpose |> map(join))"
    ),
    "queries, keys and values": (
        f"As: 2.65.64.bf16, W: 144.64.bf16) = As |> map(A => {LAYER} |> map(row => row |> split(48)"
        " |> map(split(16)))) |> map(x => x |> transpose |> map(transpose)) |> transpose"
    ),
}


@pytest.mark.parametrize("name", every_other(LAYERS))
def test_a_layer_may_cut_its_rows_into_heads(name: str) -> None:
    term = program(f"def f({LAYERS[name]}")
    assert strategies(term) == ["tensor_core"]
    assert is_exact(term)


def test_results_elsewhere_are_no_run() -> None:
    result = batch(epilogue="shared")(put("heads beside each other", SMALL))
    assert isinstance(result, Failure)
    assert "epilogue=direct" in str(result)


# --- one pass ---------------------------------------------------------------------------------------------

ATTEND = "attend(fun(_ => fun(x => x)), fst(kv), snd(kv), row)"
ATTENTION = f"zip(q)(zip(k)(v)) |> map((q, kv) => q |> map(row => {ATTEND}))"
CONCATENATED = f"{ATTENTION} |> transpose |> map(join)"
HEADS = {
    "of one sequence": f"q: 3.65.64.bf16, k: 3.40.64.bf16, v: 3.40.64.bf16) = {CONCATENATED}",
    "of several": (
        "qs: 2.3.65.64.bf16, ks: 2.3.40.64.bf16, vs: 2.3.40.64.bf16) = zip(qs)(zip(ks)(vs)) |> map((q, kv) =>"
        f" let k = fst(kv) in let v = snd(kv) in {CONCATENATED})"
    ),
}


@pytest.mark.parametrize("name", every_other(HEADS))
def test_attention_puts_its_heads_beside_each_other(name: str) -> None:
    """One kernel: no other copies its results."""
    term = program(f'import "prelude.rise" def f({HEADS[name]}')
    assert strategies(term) == ["one_pass"]
    inputs = random_inputs(inputs_of(term), 3, exact=False)
    found = execute(assemble(succeeded(AUTO(term)).term, "f"), inputs, "emulate")
    wanted = np.asarray(call(term, *inputs), np.float64)
    np.testing.assert_allclose(np.asarray(found, np.float64), wanted, rtol=0.05, atol=0.05)


# --- several results --------------------------------------------------------------------------------------

GIVEN = "As: 47.33.31.f16, Bs: 47.29.31.f16"
GRAM = f"As |> map(A => A |> map(row => A |> map(col => {DOT})))"
SEVERAL = {
    "two products": (f"({OF_EACH}, {GRAM})", ["batch", "batch"]),
    "a product and sums": (
        f"({OF_EACH}, As |> map(map(row => row |> map(x => f32(x)) |> reduce(+, 0))))",
        ["batch", "batch"],
    ),
}


@pytest.mark.parametrize("name", every_other(SEVERAL))
def test_each_of_several_results_gets_its_kernel(name: str) -> None:
    body, wanted = SEVERAL[name]
    term = program(f"def f({GIVEN}) = {body.replace('bf16', 'f16')}")
    assert strategies(term) == wanted
    inputs = random_inputs(inputs_of(term), 5, exact=True)
    found = execute(assemble(succeeded(AUTO(term)).term, "f"), inputs, "emulate")
    for one, other in zip(found, call(term, *inputs), strict=True):
        assert np.array_equal(np.asarray(one, np.float64), np.asarray(other, np.float64))
