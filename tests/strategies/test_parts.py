"""Attention with the keys in parts: a kernel for the parts and one that combines them, in the emulator."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from codegen import runtime
from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.pipeline import assemble
from codegen.runtime.compiling import compiler_report
from rewrites.derivation import programs
from rewrites.result import Failure
from rise.check.compare import compare, tolerance
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.errors import StrategyError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.auto import auto
from strategies.matmul.one_pass import one_pass
from strategies.search.hardware import for_target
from strategies.search.passes import Pass
from tests.support.attention import near, of_numpy
from tests.support.nightly import every_other, in_turn
from tests.support.programs import ROOT, loaded, succeeded

PROGRAMS = loaded(ROOT / "examples" / "attention.rise")
Settings = dict[str, Any]
BY: dict[str, Settings] = {
    "warpgroups": {"rows": 64, "columns": 16, "bulk_stores": False},
    "warps": {"rows": 16, "columns": 32, "fragment": 16},
}
# a row sees the keys before its own, so that the first one sees none, and others none of a part
MASKED = """import "prelude.rise"
def f(m: Nat, n: Nat, d: Nat)(scale: f32, Q: m.d.f16, K: n.d.f16, V: n.d.f16): m.d.f16 =
  Q |> numbered |> map((q, i) => attend((j, s) => select(j < i, s * scale, -infinity), K, V, q))"""


def program(name: str, **sizes: int) -> Expr:
    return data_flow(specialise(PROGRAMS[name], sizes))


@cache
def in_parts(text: str, by: str, parts: int, **sizes: int) -> tuple[Expr, HostProgram]:
    """A program, of the file or with that text, and its kernels."""
    definition = PROGRAMS[text] if text in PROGRAMS.own else check_text(text)["f"]
    term = data_flow(specialise(definition, sizes))
    return term, assemble(succeeded(one_pass(**BY[by], parts=parts)(term)).term, "f")


def emulated(term: Expr, low: Expr, given: list[Any], kernels: int = 2) -> Any:
    """The results of so many kernels, which agree with the interpreter."""
    made = assemble(low, "f")
    assert len(made.kernels) == kernels
    found = execute(made, given, "emulate")
    assert compare(found, call(term, *given), tolerance(term)).agrees
    return found


def beside_sums(found: Any, given: list[Any], seen: Any = True) -> None:
    """The first of both results is that of f64."""
    wanted = of_numpy(given, seen)
    near((found, wanted[1]), wanted)


@pytest.mark.parametrize(
    ("length", "parts", "by"),
    [(*sizes, by) for sizes, by in in_turn([(33, 2), (63, 2), (65, 3), (1000, 7)], BY)],
)
def test_parts_are_together_what_f64_gives(length: int, parts: int, by: str) -> None:
    """Also where the last part has fewer keys than the others, and one key."""
    term = program("attention", m=3, n=length, d=16, e=24)
    low = succeeded(one_pass(**BY[by], parts=parts)(term)).term
    given = list(random_inputs(inputs_of(term), length, exact=False))
    beside_sums(emulated(term, low, given), given)


@pytest.mark.parametrize("length", [1, 7])
def test_keys_that_one_block_has_are_refused(length: int) -> None:
    result = one_pass(**BY["warps"], parts=2)(program("attention", m=3, n=length, d=16, e=16))
    assert isinstance(result, Failure)
    assert "one part has all elements" in str(result.error("one_pass"))


def test_no_parts_are_refused() -> None:
    with pytest.raises(StrategyError) as refused:
        one_pass(parts=0)
    assert refused.value.code == "R0609"


@pytest.mark.parametrize("by", every_other(BY, 1))
def test_parts_that_are_masked_as_a_whole_add_nothing(by: str) -> None:
    term = data_flow(specialise(check_text(MASKED)["f"], {"m": 65, "n": 65, "d": 16}))
    low = succeeded(one_pass(**BY[by], parts=4)(term)).term
    given = list(random_inputs(inputs_of(term), 2, exact=False))
    found = emulated(term, low, given)
    assert np.isnan(found[0]).all()
    beside_sums(found, given, np.arange(65) < np.arange(65)[:, None])


# keys behind a length that is an input are not there yet
FILLED = """import "prelude.rise"
def f(m: Nat, n: Nat, d: Nat)(filled: i32, scale: f32, Q: m.d.f16, K: n.d.f16, V: n.d.f16): m.d.f16 =
  Q |> map(attend((j, s) => select(j < filled, s * scale, -infinity), K, V))"""


@pytest.mark.parametrize(("filled", "by"), in_turn([1, 31, 32, 65, 100], BY))
def test_what_a_mask_excludes_is_not_read_in_any_part(filled: int, by: str) -> None:
    """NaN in other keys and values would make the sums NaN, also with weights of 0."""
    term, kernels = in_parts(FILLED, by, 3, m=3, n=100, d=16)
    given: list[Any] = [np.array(x) for x in random_inputs(inputs_of(term), 6, exact=False)]
    given[0] = np.int32(filled)
    wanted = call(term, *given)
    whole_blocks = -(-filled // BY[by]["columns"]) * BY[by]["columns"]
    for array in given[-2:]:
        array[whole_blocks:] = np.nan
    found = execute(kernels, given, "emulate")
    assert compare(found, wanted, tolerance(term)).agrees


@pytest.mark.parametrize(("scale", "by"), in_turn([1e4, -1e4, 1e-4], BY))
def test_large_scores_do_not_overflow(scale: float, by: str) -> None:
    """The maxima of parts differ by more than an exponential can tell."""
    term, kernels = in_parts("attention", by, 3, m=5, n=70, d=16, e=16)
    given = [np.float32(scale), *list(random_inputs(inputs_of(term), 5, exact=False))[1:]]
    found = execute(kernels, given, "emulate")
    assert compare(found, call(term, *given), tolerance(term)).agrees
    assert np.isfinite(np.asarray(found, np.float64)).all()


@pytest.mark.parametrize("by", every_other(BY, 0))
def test_parts_of_grouped_heads(by: str) -> None:
    term = program("grouped", b=2, h=2, g=3, m=1, n=100, d=16, e=16)
    low = succeeded(one_pass(**BY[by], parts=3)(term)).term
    given = list(random_inputs(inputs_of(term), 5, exact=False))
    found = emulated(term, low, given)
    beside_sums(found, [0.25, given[0].reshape(2, 2, 3, 16), *given[1:]])


@pytest.mark.parametrize("by", every_other(BY, 1))
def test_both_results_of_causal_heads_in_parts(by: str) -> None:
    """A third kernel combines the sums."""
    term = program("causalHeadsWithLogSumExp", b=2, h=2, m=7, n=50, d=16, e=16)
    low = succeeded(one_pass(**BY[by], parts=2)(term)).term
    given = list(random_inputs(inputs_of(term), 5, exact=False))
    found = emulated(term, low, given, kernels=3)
    near(found, of_numpy([0.25, *given], np.arange(50) <= np.arange(7)[:, None]))


@pytest.mark.parametrize("name", every_other(["window", "biased", "headsByToken"]))
def test_parts_of_other_programs(name: str) -> None:
    heads = {"b": 1, "h": 2} if name == "headsByToken" else {}
    term = program(name, **heads, m=19, n=41, d=16, e=16)
    low = succeeded(one_pass(**BY["warps"], parts=2)(term)).term
    emulated(term, low, list(random_inputs(inputs_of(term), 8, exact=False)))


def test_every_step_preserves_attention_in_parts() -> None:
    term = program("heads", b=1, h=2, m=3, n=50, d=16, e=16)
    made = succeeded(one_pass(**BY["warps"], parts=2)(term))
    inputs = random_inputs(inputs_of(term), 3, exact=False)
    wanted, allowed = call(term, *inputs), tolerance(term)
    for step, whole in zip(made.steps, programs(term, made), strict=True):
        assert compare(call(whole, *inputs), wanted, allowed).agrees, step.rule
    assert {"reductions in parts", "rolling update"} <= {step.rule for step in made.steps}


# --- what auto does with it -----------------------------------------------------------------------------


def of_auto(target: str, **sizes: int) -> dict[str, Any]:
    """The parameters that are tried first."""
    made = Pass.of(program("heads", **sizes, d=128, e=128))
    assert made is not None
    return made.candidates(for_target(target))[0]


def test_few_tiles_are_computed_in_parts() -> None:
    """132 multiprocessors: 32 heads in four parts each are a round, 128 heads are one without."""
    assert of_auto("sm_90a", b=1, h=32, m=1, n=8192)["parts"] == 4
    assert of_auto("sm_80", b=1, h=32, m=1, n=8192)["parts"] > 1
    for sizes in ({"b": 4, "h": 32, "m": 1}, {"b": 16, "h": 32, "m": 1}, {"b": 1, "h": 32, "m": 4096}):
        for target in ("sm_90a", "sm_80"):
            assert "parts" not in of_auto(target, **sizes, n=8192)


def test_short_rows_are_not_computed_in_parts() -> None:
    for length in (1, 7, 63, 65, 256):
        assert "parts" not in of_auto("sm_90a", b=1, h=32, m=1, n=length)


@pytest.mark.parametrize(
    ("length", "target"),
    every_other(
        [(1, "sm_90a"), (7, "sm_80"), (65, "sm_80"), (63, "sm_90a"), (1000, "sm_90a"), (1000, "sm_80")]
    ),
)
def test_one_query_a_head_through_auto(length: int, target: str) -> None:
    term = program("heads", b=1, h=3, m=1, n=length, d=16, e=16)
    low = succeeded(auto(target)(term)).term
    given = list(random_inputs(inputs_of(term), length, exact=False))
    beside_sums(emulated(term, low, given, kernels=2 if length == 1000 else 1), [0.25, *given])


def test_one_without_parts_is_tried_too() -> None:
    for target in ("sm_90a", "sm_80"):
        made = Pass.of(program("heads", b=1, h=32, m=1, n=8192, d=128, e=128))
        assert made is not None
        assert any("parts" not in point for point in made.candidates(for_target(target))[:3])


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
@pytest.mark.parametrize("target", every_other(["sm_90a", "sm_80"]))
def test_auto_makes_two_kernels_that_spill_nothing(target: str) -> None:
    term = program("heads", b=1, h=32, m=1, n=8192, d=128, e=128)
    made = assemble(succeeded(auto(target)(term)).term, "f")
    assert len(made.kernels) == 2
    for kernel in made.kernels:
        assert "0 bytes stack frame, 0 bytes spill stores" in compiler_report(kernel.source, target)
