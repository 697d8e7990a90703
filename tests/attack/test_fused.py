"""A few of the fused programs that the attack draws, what was mended of them, and a fault that it notices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from random import Random
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.depth import deep
from rise.normal import data_flow
from tests.attack import fused, through_auto
from tests.attack.fused import TARGET, Fused, outcome
from tests.attack.outcome import Verdict
from tests.support.nightly import every_other

SEED = 20261125
LEAST = 4_000  # products of numbers, at most
PROGRAMS = """import "prelude.rise"
def dot16{k: Nat}(xs: k.f16, ys: k.f16): f32 =
  zip(xs)(ys) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)
def mul{m: Nat, n: Nat, k: Nat}(A: m.k.f16, B: k.n.f16): m.n.f32 =
  A |> map(row => transpose(B) |> map(col => dot16(row, col)))

// the function and the cast of a layer stand behind a name
def layers(m: Nat, n: Nat, k: Nat, h: Nat)(X: m.k.f16, U: k.h.f16, b: h.f32, V: h.n.f16, R: m.n.f16) =
  let H = mul(X, U) |> map(row => zip(row)(b) |> map((x, y) => x + y)) in
  zip2D(mul(H |> map2D(x => f16(max(x, 0))), V), R) |> map2D((x, r) => f16(x + f32(r)))

// of two products, one has rows that are copied
def sums(m: Nat, n: Nat, k: Nat, h: Nat)(A: m.k.f16, B: k.n.f16, C: m.h.f16, D: n.h.f16) =
  zip2D(mul(A, B), mul(C, D |> transpose)) |> map2D((x, y) => f16(x + y))

// columns of a result whose rows bulk stores do not take
def columns(m: Nat, n: Nat, k: Nat, h: Nat)(A: m.k.f16, B: k.n.f16) =
  let D = mul(A, B) in (D |> map2D(x => f16(x)), D |> transpose |> map(sum))

// an operand scaled along k, of two results
def scaled(m: Nat, n: Nat, k: Nat, h: Nat)(A: m.k.f16, g: k.f16, B: k.n.f16) =
  let D = mul(A |> map(row => zip(row)(g) |> map((x, s) => x * s)), B) in
  (D |> map2D(x => f16(x)), D |> map2D(x => f16(max(x, 0))))

// operands of an array of matrices, each computed from its own
def batch(m: Nat, n: Nat, k: Nat, h: Nat)(As: 3.m.k.f32, Bs: 3.k.n.f16) =
  zip(As)(Bs) |> map((A, B) => mul(A |> map2D(x => f16(x)), B) |> map2D(x => f16(x)))
"""


def drawn(work: int = LEAST) -> Iterator[Fused]:
    random = Random(SEED)
    return (Fused(random.randrange(1 << 32), work) for _ in count())


def test_fused_programs_compute_what_they_mean() -> None:
    """Of three kinds of cores, each with another kind of result; in CI of two of them."""
    trials: dict[str, Fused] = {}
    for trial in islice(drawn(), 40):
        others = {other.drawn.result for other in trials.values()}
        if trial.drawn.core not in trials and trial.drawn.result not in others:
            trials[trial.drawn.core] = trial
        if len(trials) == 3:
            break
    assert len(trials) == 3
    for trial in every_other(trials.values()):
        found = outcome(trial)
        assert found.verdict is Verdict.RIGHT, f"{found}\n{trial}"


def test_all_kinds_are_drawn_and_type_check() -> None:
    trials = list(islice(drawn(0), 120))
    assert {trial.drawn.core for trial in trials} == set(fused.CORES)
    assert {trial.drawn.result for trial in trials} == set(fused.RESULTS)
    assert {trial.drawn.element for trial in trials} == set(fused.SUMS)
    for trial in trials[:12]:
        assert trial.term.type


def test_a_wrong_result_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = next(t for t in drawn() if (t.drawn.core, t.drawn.result) == ("one", "matrix"))

    def wrong(*given: Any) -> Any:
        return np.asarray(execute(*given)) + np.float32(1)

    monkeypatch.setattr(through_auto, "execute", wrong)
    assert outcome(trial).verdict is Verdict.WRONG


@deep
def ways(definition: str, sizes: dict[str, int]) -> list[str]:
    term = data_flow(specialise(check_text(PROGRAMS)[definition], sizes))
    found = through_auto.chosen(term, TARGET)
    assert isinstance(found, through_auto.Chosen), found
    return found.ways.split()


@pytest.mark.parametrize(
    ("name", "others"),
    every_other(
        [
            ("layers", []),
            ("sums", []),
            ("scaled", ["elementwise"]),
            ("columns", []),
            ("batch", ["elementwise"]),
        ]
    ),
)
def test_ragged_programs_are_multiplied_by_warpgroups(name: str, others: list[str]) -> None:
    """At sizes of which tiles divide none; besides products, there are only kernels that compute operands."""
    found = ways(name, {"m": 1000, "n": 503, "k": 776, "h": 1031})
    assert [each for each in found if each != "wgmma"] == others and "wgmma" in found
    assert found.count("wgmma") == (2 if name == "layers" else 1)
