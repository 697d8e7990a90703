"""Scores that are modified: few instructions for each, the same results, and parameters that fit masks."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import generate
from rise.check.compare import compare, tolerance
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr, Primitive, subterms
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.matmul.one_pass import one_pass
from strategies.search.hardware import for_target
from strategies.search.masks import Mask
from strategies.search.passes import Pass
from tests.support.nightly import every_other
from tests.support.programs import loaded, succeeded

PROGRAMS = loaded(Path(__file__).parents[2] / "examples" / "attention.rise")
SEED = 20261125
SCORES = {
    "capped": "3.0 * tanh(s * 0.25 / 3.0)",
    "sloped": "s * 0.25 + 0.5 * f32(j - i)",
    "distant": "s * 0.25 - 0.5 * abs(f32(i - j))",
    "causal": "select(j <= i, 2.0 * tanh(s * 0.5) + 0.125 * f32(j - i), -infinity)",
    "near": "select(j <= i && i - j < 21, s * 0.25, -infinity)",
}


def term_of(score: str, sizes: dict[str, int], attend: str = "attend") -> Expr:
    text = (
        'import "prelude.rise"\n'
        "def f(m: Nat, n: Nat, d: Nat, e: Nat)(Q: m.d.f16, K: n.d.f16, V: n.e.f16) =\n"
        f"  Q |> numbered |> map((q, i) => {attend}((j, s) => {score}, K, V, q))"
    )
    return data_flow(specialise(check_text(text)["f"], sizes))


BY: dict[str, dict[str, Any]] = {
    "warpgroups": {"rows": 64, "columns": 32},
    "warps": {"rows": 32, "columns": 32, "fragment": 16},
}


@pytest.mark.parametrize(
    ("name", "by"),
    every_other([
        ("capped", "warpgroups"), ("sloped", "warps"), ("distant", "warps"), ("near", "warps"),
        ("causal", "warpgroups"),
    ]),
)  # fmt: skip
def test_modified_scores_agree_with_the_interpreter(name: str, by: str) -> None:
    random = Random(f"{SEED} {name} {by}")
    sizes = {"m": random.choice((1, 7, 63, 65)), "n": random.choice((1, 31, 64, 65)), "d": 16, "e": 16}
    term = term_of(SCORES[name], sizes)
    low = succeeded(one_pass(**BY[by])(term)).term
    used = {part.name for part in subterms(low) if isinstance(part, Primitive)}
    assert "tanh" not in used
    inputs = random_inputs(inputs_of(term), SEED, exact=False)
    with np.errstate(all="ignore"):
        wanted = call(term, *inputs)
    found = execute(generate(low, "f"), inputs, "emulate")
    assert compare(found, wanted, tolerance(term)).agrees, sizes


def test_maxima_of_bounded_scores_are_taken_of_the_products() -> None:
    """Behind the last key there is none, and -∞ is no bounded score: there maxima stay what they are."""
    early = one_pass(rows=64, columns=32, early_maxima=True)
    for n, applies in ((33, False), (64, True)):
        term = term_of(SCORES["capped"], {"m": 63, "n": n, "d": 16, "e": 16})
        made = succeeded(early(term))
        assert ("maximum of a monotone function" in {step.rule for step in made.steps}) is applies
    inputs = random_inputs(inputs_of(term), SEED, exact=False)
    found = execute(generate(made.term, "f"), inputs, "emulate")
    assert compare(found, call(term, *inputs), tolerance(term)).agrees


def test_results_of_32_bits_keep_the_hyperbolic_tangent() -> None:
    """Close to 0 it is more exact than what stands for it."""
    term = term_of(SCORES["capped"], {"m": 64, "n": 32, "d": 16, "e": 16}, "attendWithLogSumExp")
    low = succeeded(one_pass(rows=64, columns=32, bulk_stores=False)(term)).term
    assert "tanh" in {part.name for part in subterms(low) if isinstance(part, Primitive)}


# --- what a mask leaves -----------------------------------------------------------------------------------


def passes(name: str, **sizes: int) -> Pass:
    found = Pass.of(data_flow(specialise(PROGRAMS[name], sizes)))
    assert found is not None
    return found


def mask_of(score: str, size: int) -> Mask:
    found = Pass.of(term_of(score, {"m": size, "n": size, "d": 16, "e": 16}))
    assert found is not None and found.mask is not None
    return found.mask


@pytest.mark.parametrize(
    ("score", "there"),
    [
        ("causal", lambda i, j: j <= i),
        ("near", lambda i, j: (j <= i) & (i - j < 21)),
    ],
)
def test_blocks_that_a_mask_leaves_are_counted(score: str, there: Any) -> None:
    size, rows, columns = 96, 16, 8
    i, j = np.indices((size, size))
    blocks = there(i, j).reshape(size // rows, rows, size // columns, columns)
    some, every = blocks.any(axis=(1, 3)), blocks.all(axis=(1, 3))
    found = mask_of(SCORES[score], size).blocks(rows, columns, size, size)
    assert found == (some.sum(1).mean(), (some & ~every).sum(1).mean())


def test_masks_of_other_numbers_are_not_known() -> None:
    assert passes("window", m=64, n=64, d=16, e=16).mask is None  # its width is an input
    assert passes("attention", m=64, n=64, d=16, e=16).mask is None
    assert passes("causal", m=64, n=64, d=16, e=16).mask is not None


def test_turns_are_tried_first_where_they_were_faster() -> None:
    def first(name: str, length: int, dim: int) -> dict[str, Any]:
        of_heads = {"b": 16384 // length, "h": 2048 // dim, "m": length, "n": length, "d": dim, "e": dim}
        return passes(name, **of_heads).candidates(for_target("sm_90a"))[0]

    def first_of_score(score: str) -> dict[str, Any]:
        text = f"""import "prelude.rise"
def f(b: Nat, m: Nat, n: Nat, d: Nat, e: Nat)(Q: b.m.d.f16, K: b.n.d.f16, V: b.n.e.f16) =
  zip(Q)(zip(K)(V)) |> map((Q, (K, V)) =>
    Q |> numbered |> map((q, i) => attend((j, s) => {score}, K, V, q)))"""
        sizes = {"b": 64, "m": 8192, "n": 8192, "d": 64, "e": 64}
        found = Pass.of(data_flow(specialise(check_text(text)["f"], sizes)))
        assert found is not None
        return found.candidates(for_target("sm_90a"))[0]

    sloped = first_of_score(SCORES["sloped"])
    assert (sloped["rows"], sloped["turns"], sloped["skewed"]) == (192, True, False)
    assert not first_of_score(SCORES["capped"])["turns"]
    assert first("causalHeads", 2048, 64)["turns"]
    assert not first("causalHeads", 2048, 128)["turns"]
    assert not first("heads", 2048, 64)["turns"]
