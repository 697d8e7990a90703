"""Attention with the log-sum-exp of each row: two results of one kernel, by warpgroups and by warps."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from codegen import runtime
from codegen.execute import execute
from codegen.pipeline import assemble
from codegen.runtime.compiling import compiler_report
from rewrites.derivation import programs
from rewrites.folds import FACTORS
from rewrites.result import Failure
from rewrites.rolling import ROLLING
from rise.check.compare import compare, tolerance
from rise.check.program import check_expression, check_text
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr, Primitive, subterms
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.testing import assert_equivalent
from strategies.auto import auto
from strategies.core import seq, try_
from strategies.matmul.one_pass import one_pass
from strategies.places import in_inputs
from tests.support.attention import near, of_numpy
from tests.support.nightly import every_other, in_turn
from tests.support.programs import ROOT, loaded, succeeded
from tests.support.rows import term_of, without_repair

PROGRAMS = loaded(ROOT / "examples" / "attention.rise")
Settings = dict[str, Any]
BY: dict[str, Settings] = {
    "warpgroups": {"rows": 64, "columns": 32},
    "warpgroups, stored from registers": {"rows": 64, "columns": 32, "bulk_stores": False},
    "warps": {"rows": 64, "columns": 32, "fragment": 16},
}
LENGTHS = (1, 7, 63, 65, 1000)
# a row sees the keys before its own, so that the first one sees none
MASKED = """import "prelude.rise"
def f(m: Nat, n: Nat, d: Nat)(scale: f32, Q: m.d.f16, K: n.d.f16, V: n.d.f16): (m.d.f16, m.f32) =
  Q |> numbered |> map((q, i) =>
    attendWithLogSumExp((j, s) => select(j < i, s * scale, -infinity), K, V, q)) |> unzip"""


def program(name: str, **sizes: int) -> Expr:
    return data_flow(specialise(PROGRAMS[name], sizes))


def masked(**sizes: int) -> Expr:
    return data_flow(specialise(check_text(MASKED)["f"], sizes))


def emulated(term: Expr, low: Expr, given: list[Any]) -> tuple[Any, Any]:
    """Both results, which agree with the interpreter."""
    o, sums = execute(assemble(low, "f"), given, "emulate")
    assert compare((o, sums), call(term, *given), tolerance(term)).agrees
    return o, sums


@pytest.mark.parametrize(("length", "by"), in_turn(LENGTHS, BY))
def test_both_results_are_those_of_f64(length: int, by: str) -> None:
    term = program("attentionWithLogSumExp", m=67, n=length, d=16, e=24)
    low = succeeded(one_pass(**BY[by])(term)).term
    given = list(random_inputs(inputs_of(term), length, exact=False))
    near(emulated(term, low, given), of_numpy(given))


@pytest.mark.parametrize(("queries", "by"), in_turn((1, 7, 63, 65), BY))
def test_a_row_without_keys_has_minus_infinity(queries: int, by: str) -> None:
    """Its weights are no numbers, as the program says."""
    term = masked(m=queries, n=65, d=16)
    low = succeeded(one_pass(**BY[by])(term)).term
    given = list(random_inputs(inputs_of(term), queries, exact=False))
    found = emulated(term, low, given)
    near(found, of_numpy(given, np.arange(65) < np.arange(queries)[:, None]))
    assert found[1][0] == -np.inf
    assert np.isnan(found[0][0]).all()
    assert np.isfinite(found[1][1:]).all()


@cache
def with_sums(by: str) -> tuple[Expr, Expr]:
    """A program with its scale as an input, and the kernel that is derived from it."""
    term = program("attentionWithLogSumExp", m=64, n=40, d=16, e=16)
    return term, succeeded(one_pass(**BY[by])(term)).term


@pytest.mark.parametrize(("scale", "by"), in_turn([1e4, -1e4, 1e-4], ["warpgroups", "warps"]))
def test_large_scores_overflow_in_neither_result(scale: float, by: str) -> None:
    term, low = with_sums(by)
    given = [np.float32(scale), *list(random_inputs(inputs_of(term), 5, exact=False))[1:]]
    found = emulated(term, low, given)
    assert all(np.isfinite(np.asarray(x, np.float64)).all() for x in found)
    np.testing.assert_allclose(found[1], of_numpy(given)[1], rtol=1e-6, atol=4e-6)


@pytest.mark.parametrize("by", ["warpgroups", "warps"])
def test_causal_heads_have_both_results(by: str) -> None:
    term = program("causalHeadsWithLogSumExp", b=2, h=2, m=65, n=70, d=16, e=24)
    low = succeeded(one_pass(**BY[by])(term)).term
    given = list(random_inputs(inputs_of(term), 3, exact=False))
    near(emulated(term, low, given), of_numpy([0.25, *given], np.arange(70) <= np.arange(65)[:, None]))


def test_rows_that_fragments_do_not_divide_are_written_through_their_members() -> None:
    """e = 21 is computed as 24 columns, of which 21 are stored, beside numbers that are all stored."""
    term = program("attentionWithLogSumExp", m=5, n=9, d=18, e=21)
    low = succeeded(one_pass(**BY["warps"], vector=1)(term)).term
    assert any(isinstance(part, Primitive) and part.name == "mapFst" for part in subterms(low))
    given = list(random_inputs(inputs_of(term), 3, exact=False))
    near(emulated(term, low, given), of_numpy(given))


def test_the_number_may_stand_first_and_rows_may_have_several() -> None:
    text = """import "prelude.rise"
def f(m: Nat, n: Nat, d: Nat)(Q: m.d.f16, K: n.d.f16, V: n.d.f16): m.(f32, (d.f16, f32)) =
  Q |> map(q => modifiedScores((j, s) => s * 0.5, K, q) |> (scores =>
    let top = maximum(scores) in
    (top, (weightedRows(softmax(scores))(V), scores |> map(s => exp(s - top)) |> sum))))"""
    term = data_flow(specialise(check_text(text)["f"], {"m": 7, "n": 33, "d": 12}))
    low = succeeded(one_pass(**BY["warps"], vector=4)(term)).term
    given = random_inputs(inputs_of(term), 4, exact=False)
    assert compare(execute(assemble(low, "f"), given, "emulate"), call(term, *given), tolerance(term)).agrees


OTHER = {
    "two maps": "(Q |> map(attend((j, s) => s * 0.5, K, V)), Q |> map(q => logSumExp(scores(K, q))))",
    "no sum": "Q |> map(q => scores(K, q) |> (s => let top = maximum(s) in"
    " (weightedRows(s |> map(x => exp(x - top)))(V), top))) |> unzip",
}


@pytest.mark.parametrize(("result", "by"), in_turn(OTHER, ["warpgroups", "warps"]))
def test_other_forms_of_two_results(result: str, by: str) -> None:
    """Two maps over the queries become one; with one sum alone, nothing but it needs the old maximum."""
    text = f"""import "prelude.rise"
def scores{{n: Nat, d: Nat}}(K: n.d.f16, q: d.f16) = modifiedScores((j, s) => s * 0.5, K, q)
def f(m: Nat, n: Nat, d: Nat)(Q: m.d.f16, K: n.d.f16, V: n.d.f16): (m.d.f16, m.f32) = {OTHER[result]}"""
    term = data_flow(specialise(check_text(text)["f"], {"m": 65, "n": 70, "d": 16}))
    target = "sm_90a" if by == "warpgroups" else "sm_80"
    assert [kernel.point.strategy for kernel in auto(target).choice(term).kernels] == ["one_pass"]
    emulated(
        term, succeeded(one_pass(**BY[by])(term)).term, list(random_inputs(inputs_of(term), 9, exact=False))
    )


def test_heads_of_two_results_by_two_maps_are_one_kernel() -> None:
    text = """import "prelude.rise"
def f(h: Nat, m: Nat, n: Nat, d: Nat)(Q: h.m.d.f16, K: h.n.d.f16, V: h.n.d.f16): (h.m.d.f16, h.m.f32) =
  (zip(Q)(zip(K)(V)) |> map((Q, (K, V)) => Q |> map(attend((j, s) => s * 0.5, K, V))),
   zip(Q)(zip(K)(V)) |> map((Q, (K, V)) =>
     Q |> map(q => logSumExp(modifiedScores((j, s) => s * 0.5, K, q)))))"""
    term = data_flow(specialise(check_text(text)["f"], {"h": 2, "m": 7, "n": 40, "d": 16}))
    low = succeeded(one_pass(**BY["warps"])(term)).term
    assert len(assemble(low, "f").kernels) == 1
    emulated(term, low, list(random_inputs(inputs_of(term), 9, exact=False)))


@pytest.mark.parametrize(
    "result",
    ["(Q, Q |> map(reduce(+, 0)))", "Q |> map(q => (q |> reduce(+, 0), q |> reduce(max, 0.0))) |> unzip"],
)
def test_other_pairs_are_refused_by_name(result: str) -> None:
    failure = one_pass()(data_flow(check_expression(f"fun((Q: 8.8.f32) => {result})")))
    assert isinstance(failure, Failure)
    assert failure.error("one_pass").code == "R0606"


def test_every_step_preserves_both_results() -> None:
    term = program("causalHeadsWithLogSumExp", b=1, h=2, m=64, n=40, d=16, e=16)
    made = succeeded(one_pass(**BY["warpgroups"])(term))
    inputs = random_inputs(inputs_of(term), 3, exact=False)
    wanted, allowed = call(term, *inputs), tolerance(term)
    for step, whole in zip(made.steps, programs(term, made), strict=True):
        assert compare(call(whole, *inputs), wanted, allowed).agrees, step.rule


# --- the rule -------------------------------------------------------------------------------------------

EXACT = (
    "fun((a: 3.4.f32, b: 7.4.f32, v: 7.2.f32) => a |> map(fun(q => b |> map(fun(k => zip(q)(k)"
    " |> map(fun((x, y) => x * y)) |> reduce(+, 0) |> fun(x => max(min(x, 4), -4)))) |> fun(s => s"
    " |> reduce(max, -1000.0) |> fun(m => s |> map(fun(x => exp2(x - m))) |> fun(e => (transpose(v)"
    " |> map(fun(c => zip(e)(c) |> map(fun((x, y) => x * y)) |> reduce(+, 0))), (m, e |> reduce(+, 0))"
)


def test_several_members_of_a_row_are_one_pass_and_exact() -> None:
    term = term_of(EXACT)
    for block in (1, 2, 3, 8):
        made = succeeded(in_inputs(seq(try_(FACTORS), ROLLING.with_sizes(n=block)))(term)).term
        assert_equivalent(term, made, seeds=(block,))


def test_a_missing_repair_is_noticed_in_each_member() -> None:
    term = term_of(EXACT)
    made = succeeded(in_inputs(ROLLING.with_sizes(n=2))(term)).term
    with pytest.raises(AssertionError):
        assert_equivalent(term, without_repair(made), seeds=tuple(range(8)))


def test_arrays_of_different_lengths_in_a_row_are_refused() -> None:
    text = "fun((a: 3.4.f32, b: 2.f32) => a |> map(fun(r => (r |> map(fun(x => x + 1)), b))))"
    result = in_inputs(ROLLING.with_sizes(n=2))(check_expression(text))
    assert isinstance(result, Failure)
    assert "expected a matrix of numbers" in result.reason


# --- what auto does with it -----------------------------------------------------------------------------


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
@pytest.mark.parametrize(
    ("target", "d"), every_other([("sm_90a", 64), ("sm_90a", 128), ("sm_80", 128)], 0, 3)
)
def test_auto_makes_one_kernel_that_spills_nothing(target: str, d: int) -> None:
    term = program("causalHeadsWithLogSumExp", b=2, h=16, m=4096, n=4096, d=d, e=d)
    assert [kernel.point.strategy for kernel in auto(target).choice(term).kernels] == ["one_pass"]
    (kernel,) = assemble(succeeded(auto(target)(term)).term, "f").kernels
    assert ("wgmma" if target == "sm_90a" else "mma_sync") in kernel.source
    assert "0 bytes stack frame, 0 bytes spill stores" in compiler_report(kernel.source, target)
