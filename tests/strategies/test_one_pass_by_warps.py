"""Attention and chains of products in one kernel by warps, with `mma.sync`: in the emulator, and compiled."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from codegen import runtime
from codegen.execute import execute
from codegen.pipeline import assemble
from codegen.runtime.compiling import compiler_report
from rise.check.compare import compare, tolerance
from rise.check.program import check_expression, check_text
from rise.check.specialise import inputs_of, specialise
from rise.errors import StrategyError
from rise.expr import Expr, Primitive, subterms
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.auto import auto
from strategies.matmul.one_pass import one_pass
from strategies.search.hardware import for_target
from strategies.search.passes import Pass
from tests.support.nightly import every_other
from tests.support.programs import ROOT, loaded, succeeded

PROGRAMS = loaded(ROOT / "examples" / "attention.rise")
Sizes = dict[str, int]
# queries and keys around tiles of 64 and blocks of 32; rows that fragments divide, and others
VARIANTS: list[tuple[str, Sizes, Sizes]] = [
    ("attention", {"m": 1, "n": 1, "d": 21, "e": 13}, {"rows": 16, "fragment": 16, "vector": 1}),
    ("attention", {"m": 63, "n": 200, "d": 128, "e": 128}, {"columns": 64, "fragment": 16}),
    ("causal", {"m": 200, "n": 65, "d": 48, "e": 80}, {"fragment": 32}),
    (
        "window",
        {"m": 65, "n": 64, "d": 20, "e": 12},
        {"rows": 32, "columns": 48, "fragment": 16, "vector": 4},
    ),
    ("biased", {"m": 7, "n": 47, "d": 18, "e": 6}, {"fragment": 16, "vector": 2}),
    ("grouped", {"b": 2, "h": 1, "g": 2, "m": 64, "n": 31, "d": 16, "e": 16}, {"fragment": 32}),
]


def program(name: str, **sizes: int) -> Expr:
    return data_flow(specialise(PROGRAMS[name], sizes))


def agrees(term: Expr, low: Expr, seed: int) -> bool:
    inputs = random_inputs(inputs_of(term), seed, exact=False)
    found = execute(assemble(low, "f"), inputs, "emulate")
    return compare(found, call(term, *inputs), tolerance(term)).agrees


@pytest.mark.parametrize(
    ("name", "sizes", "settings"), every_other(VARIANTS), ids=lambda x: x if x is str(x) else ""
)
def test_attention_by_warps_agrees(name: str, sizes: Sizes, settings: dict[str, Any]) -> None:
    term = program(name, **sizes)
    low = succeeded(one_pass(**{"rows": 64, "columns": 32, **settings})(term)).term
    used = {part.name for part in subterms(low) if isinstance(part, Primitive)}
    copies = "copyThreads" if settings.get("vector") == 1 else "copyAsync"
    assert {"reduceRows", "asOperands", "mapWarp", "tensorMatMulAdd", copies} <= used
    assert used.isdisjoint({"reduce", "mapWarpGroup", "bulkCopy"})
    assert agrees(term, low, 11)


def test_bfloat16_is_taken_too() -> None:
    text = """import "prelude.rise"
def f(m: Nat, n: Nat, d: Nat)(Q: m.d.bf16, K: n.d.bf16, V: n.d.bf16): m.d.bf16 =
  Q |> map(attend((j, s) => s * 0.25, K, V))"""
    term = data_flow(specialise(check_text(text)["f"], {"m": 33, "n": 50, "d": 32}))
    assert agrees(term, succeeded(auto("sm_80")(term)).term, 5)


def chain(m: int, n: int, k: int, p: int) -> Expr:
    dot = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
    first = f"(a |> map(fun(row => transpose(b) |> map(fun(col => f16({dot}))))))"
    return data_flow(
        check_expression(
            f"fun((a: {m}.{k}.f16, b: {k}.{n}.f16, c: {n}.{p}.f16) => {first}"
            f" |> map(fun(row => transpose(c) |> map(fun(col => {dot})))))"
        )
    )


@pytest.mark.parametrize("fragment", [16, 32])
def test_a_chain_is_exact(fragment: int) -> None:
    """Whole numbers, so an element that another lane should hold is a difference."""
    random = Random(fragment)
    term = chain(random.randrange(17, 90), random.randrange(24, 90, 8), 32, 24)
    low = succeeded(one_pass(rows=64, columns=32, fragment=fragment)(term)).term
    inputs = random_inputs(inputs_of(term), 1, exact=True)
    np.testing.assert_array_equal(execute(assemble(low, "f"), inputs, "emulate"), call(term, *inputs))


def test_what_a_mask_excludes_is_not_read() -> None:
    """NaN in the values of other keys would make the sums NaN, also with weights of 0."""
    term = program("causal", m=128, n=128, d=16, e=24)
    low = succeeded(one_pass(rows=64, columns=32, fragment=16)(term)).term
    inputs: list[Any] = [np.array(x) for x in random_inputs(inputs_of(term), 5, exact=False)]
    wanted = np.asarray(call(term, *inputs))[:64]
    for array in inputs[-2:]:
        array[64:] = np.nan
    found = np.asarray(execute(assemble(low, "f"), inputs, "emulate"))[:64]
    assert np.allclose(found.astype(float), wanted.astype(float), atol=4e-3)


# --- what auto does with it -----------------------------------------------------------------------------


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
@pytest.mark.parametrize(("name", "d"), [("causal", 64), ("attention", 128)])
def test_what_auto_takes_is_one_kernel_that_spills_nothing(name: str, d: int) -> None:
    made = assemble(succeeded(auto("sm_80")(program(name, m=20001, n=9001, d=d, e=d))).term, "f")
    (kernel,) = made.kernels
    assert "mma_sync" in kernel.source
    assert kernel.source.count("copy_async") >= 6  # queries, then keys and values before and in the loop
    assert "0 bytes stack frame, 0 bytes spill stores" in compiler_report(kernel.source, "sm_80")


def test_the_copying_unit_takes_queries_of_several_heads_as_a_list() -> None:
    """Of two queries for each of three heads, six rows, behind which zeros follow."""
    term = program("grouped", b=1, h=2, g=3, m=2, n=40, d=16, e=16)
    (kernel,) = auto("sm_90a").choice(term).kernels
    assert kernel.point.strategy == "one_pass"
    assert "fragment" not in kernel.point.settings
    assert agrees(term, succeeded(auto("sm_90a")(term)).term, 3)


def test_candidates_are_for_the_instructions_of_the_gpu() -> None:
    made = Pass.of(program("heads", b=4, h=16, m=4096, n=4096, d=128, e=128))
    one = Pass.of(program("heads", b=4, h=64, m=1, n=4096, d=128, e=42))
    assert made is not None
    assert one is not None
    assert all("fragment" not in point for point in made.candidates(for_target("sm_90a")))
    for target in ("sm_80", "sm_90"):
        best = made.candidates(for_target(target))[0]
        assert best == {"rows": 128, "columns": 32, "fragment": 32, "vector": 8}
    # bulk copies do not take rows of 84 bytes, and one query does not fill a tile of 64 rows
    best = one.candidates(for_target("sm_90a"))[0]
    assert (best["rows"], best["vector"]) == (16, 2)
    assert made.candidates(for_target("sm_75")) == []


@pytest.mark.parametrize(("settings", "code"), [({"fragment": 48}, "R0605"), ({"rows": 40}, "R0604")])
def test_rows_that_no_worker_has_are_refused(settings: dict[str, Any], code: str) -> None:
    with pytest.raises(StrategyError) as refused:
        one_pass(**{"fragment": 16, **settings})
    assert refused.value.code == code
