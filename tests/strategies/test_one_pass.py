"""Attention and chains of products in one kernel: derived, checked step by step, run in the emulator."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import assemble
from rewrites.derivation import programs
from rewrites.result import Failure, Success
from rise.check.compare import compare, tolerance
from rise.check.program import check_expression, check_text
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr, Primitive, subterms
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.auto import auto
from strategies.matmul.one_pass import one_pass
from strategies.search.hardware import for_target
from strategies.search.passes import Pass
from tests.support.nightly import every_other
from tests.support.programs import loaded, succeeded

ROOT = Path(__file__).parents[2]
PROGRAMS = loaded(ROOT / "examples" / "attention.rise")
SMALL: dict[str, Any] = {"rows": 64, "columns": 32}
# sizes that tiles divide, and others
VARIANTS = {
    "attention": {"m": 65, "n": 33, "d": 16, "e": 32},
    "causal": {"m": 64, "n": 70, "d": 24, "e": 40},
    "window": {"m": 37, "n": 64, "d": 16, "e": 16},
    "biased": {"m": 50, "n": 47, "d": 16, "e": 16},
    "heads": {"b": 2, "h": 1, "m": 7, "n": 31, "d": 16, "e": 16},
    "causalHeadsByToken": {"b": 1, "h": 2, "m": 67, "n": 40, "d": 16, "e": 16},
}


def program(name: str, **sizes: int) -> Expr:
    return data_flow(specialise(PROGRAMS[name], sizes))


def agrees(term: Expr, low: Expr, seed: int) -> bool:
    inputs = random_inputs(inputs_of(term), seed, exact=False)
    return compare(
        execute(assemble(low, "f"), inputs, "emulate"), call(term, *inputs), tolerance(term)
    ).agrees


@pytest.mark.parametrize("name", every_other(VARIANTS))
def test_attention_agrees_with_the_interpreter(name: str) -> None:
    term = program(name, **VARIANTS[name])
    low = succeeded(one_pass(**SMALL)(term)).term
    used = {part.name for part in subterms(low) if isinstance(part, Primitive)}
    assert {"reduceRows", "asOperands", "reduceRoleSplit", "tensorMatMulAdd"} <= used
    assert "reduce" not in used
    assert agrees(term, low, 11)


def test_every_step_preserves_attention() -> None:
    term = program("causal", m=64, n=40, d=16, e=16)
    made = succeeded(one_pass(**SMALL)(term))
    inputs = random_inputs(inputs_of(term), 3, exact=False)
    wanted, allowed = call(term, *inputs), tolerance(term)
    for step, whole in zip(made.steps, programs(term, made), strict=True):
        assert compare(call(whole, *inputs), wanted, allowed).agrees, step.rule
    assert {"rolling update", "rows on fragments", "fold of maps"} <= {step.rule for step in made.steps}


@pytest.mark.parametrize("scale", [1e4, 1e-4])
def test_large_scores_do_not_overflow(scale: float) -> None:
    term = program("attention", m=64, n=40, d=16, e=16)
    low = succeeded(one_pass(**SMALL)(term)).term
    _, q, k, v = random_inputs(inputs_of(term), 5, exact=False)
    given = [np.float32(scale), q, k, v]
    found = np.asarray(execute(assemble(low, "f"), given, "emulate"), np.float64)
    assert np.isfinite(found).all()
    assert compare(found, np.asarray(call(term, *given), np.float64), tolerance(term)).agrees


# --- what auto does with it -----------------------------------------------------------------------------

DOT = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"


def chain(m: int, n: int, k: int, p: int) -> Expr:
    first = f"(a |> map(fun(row => transpose(b) |> map(fun(col => f16({DOT}))))))"
    return data_flow(
        check_expression(
            f"fun((a: {m}.{k}.f16, b: {k}.{n}.f16, c: {n}.{p}.f16) => {first}"
            f" |> map(fun(row => transpose(c) |> map(fun(col => {DOT})))))"
        )
    )


def strategies_of(term: Expr) -> list[str]:
    return [kernel.point.strategy for kernel in auto().choice(term).kernels]


def test_auto_takes_attention_and_narrow_chains_in_one_pass() -> None:
    assert strategies_of(program("alibi", m=100, n=200, d=64, e=64)) == ["one_pass"]
    assert strategies_of(chain(100, 256, 64, 48)) == ["one_pass"]
    wide = Pass.of(chain(100, 256, 64, 4096))
    assert wide is not None
    assert wide.candidates(for_target("sm_90a")) == []


def test_auto_falls_back_where_one_pass_does_not_fit() -> None:
    """No instruction adds to more than 256 columns."""
    assert "one_pass" not in strategies_of(program("attention", m=20, n=40, d=16, e=264))


def test_a_chain_is_exact() -> None:
    random = Random(3)
    term = chain(random.randrange(17, 90), random.randrange(24, 90, 8), 32, 16)
    low = succeeded(one_pass(**SMALL)(term)).term
    inputs = random_inputs(inputs_of(term), 1, exact=True)
    np.testing.assert_array_equal(execute(assemble(low, "f"), inputs, "emulate"), call(term, *inputs))


def test_candidates_fit_and_begin_with_full_blocks() -> None:
    gpu = for_target("sm_90a")
    made = Pass.of(program("heads", b=4, h=16, m=4096, n=4096, d=128, e=128))
    assert made is not None
    best = made.candidates(gpu)[0]
    assert (best["rows"], best["columns"]) == (128, 128)
    for point in made.candidates(gpu):
        shared = 2 * (point["rows"] * 128 + point["stages"] * point["columns"] * 256)
        assert shared < gpu.limits.shared_bytes


def test_a_plain_product_and_a_softmax_are_not_passes() -> None:
    product = f"fun((a: 8.8.f16, b: 8.8.f16) => a |> map(fun(row => b |> map(fun(col => {DOT})))))"
    rows = "fun(a: 8.8.f32 => a |> map(fun(r => r |> reduce(max, 0) |> fun(m => r |> map(fun(x => x - m))))))"
    assert Pass.of(data_flow(check_expression(product))) is None
    assert Pass.of(data_flow(check_expression(rows))) is None


def test_a_result_that_is_not_a_matrix_is_refused_by_name() -> None:
    result = one_pass()(data_flow(check_expression("fun((a: 8.f32) => a |> map(fun(x => x + 1)))")))
    assert isinstance(result, Failure)
    assert "by rows" in str(result.error("one_pass"))
    assert not isinstance(result, Success)


OF_ATTENTION = {
    "transposed": "of(Q) |> transpose",
    "joined": "of(Q) |> join",
    "added": "zip(of(Q))(R) |> map((o, r) => zip(o)(r) |> map((x, y) => x + y))",
    "bounded": "zip(of(Q))(R) |> map((o, r) => zip(r)(o) |> map((x, y) => max(x * y, 0)))",
    "scaled by rows": "zip(of(Q))(R) |> map((o, r) => o |> map(x => f32(x) * f32(r |> idx(0))))",
}


@pytest.mark.parametrize("result", every_other(OF_ATTENTION))
def test_what_is_done_with_the_result_is_in_the_kernel(result: str) -> None:
    body = OF_ATTENTION[result].replace("of(Q)", "(Q |> map(q => attend((j, s) => s * 0.25, K, V, q)))")
    text = f"""import "prelude.rise"
def f(m: Nat, n: Nat, d: Nat, e: Nat)(Q: m.d.f16, K: n.d.f16, V: n.e.f16, R: m.e.f16) = {body}"""
    term = data_flow(specialise(check_text(text)["f"], {"m": 65, "n": 43, "d": 16, "e": 16}))
    low = succeeded(auto("sm_90a")(term)).term
    assert len(assemble(low, "f").kernels) == 1
    assert agrees(term, low, 17)
