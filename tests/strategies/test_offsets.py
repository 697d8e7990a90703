"""Products of bytes with zero points, and of unsigned bytes, are exact as products of signed bytes."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from codegen.execute import execute
from codegen.pipeline import assemble
from rise.check.specialise import inputs_of
from rise.expr import Expr, Lambda, application, subterms
from rise.expr import call as called
from rise.interpret import call, random_inputs
from rise.types import SCALARS
from strategies.auto import auto, split
from strategies.matmul.offsets import multiplied_bytes, offsets_outside, pairs_of_bytes
from strategies.search.identity import identity
from strategies.search.store import Record, append
from tests.support.batches import program
from tests.support.nightly import every_other
from tests.support.programs import succeeded

HEAD = (
    "def f(A: {m}.{k}.{s}, B: {n}.{k}.{t}, u: {m}.i32, v: {n}.i32) = zip(A)(u) |> map((row, p) => zip(B)(v)"
)
SUM = HEAD + " |> map((col, q) => zip(row)(col) |> map((x, y) => {}) |> reduce(+, 0)))"
# what is summed, and the types of operands
SUMS = {
    "zero points of rows": ("(i32(x) - p) * i32(y)", "i8", "i8"),
    "zero points of columns": ("i32(x) * (i32(y) - q)", "i8", "i8"),
    "zero points of both": ("(i32(x) - p) * (i32(y) - q)", "u8", "i8"),
    "offsets added": ("(i32(x) + p) * (i32(y) + 3)", "i8", "u8"),
    "both unsigned": ("i32(x) * i32(y)", "u8", "u8"),
    "one unsigned": ("i32(x) * i32(y)", "i8", "u8"),
}


def of(name: str, m: int, n: int, k: int) -> Expr:
    text, s, t = SUMS[name]
    return program(SUM.replace("{}", text).format(m=m, n=n, k=k, s=s, t=t))


def any_bytes(term: Expr, seed: int) -> list[NDArray[Any]]:
    """Inputs from the whole range of their types; zero points from that of a byte."""
    random = np.random.default_rng(seed)
    given = random_inputs(inputs_of(term), seed, exact=True)
    low = {np.dtype(np.int8): -128, np.dtype(np.uint8): 0, np.dtype(np.int32): -128}
    return [random.integers(low[x.dtype], low[x.dtype] + 256, x.shape).astype(x.dtype) for x in given]


def is_product_of_signed_bytes(term: Expr) -> bool:
    """Whether all sums over pairs of bytes are of products of these, converted from `i8` and not changed."""
    reduced = [part for part in subterms(term) if pairs_of_bytes(part) is not None]
    return bool(reduced) and all(map(multiplies_signed_bytes, reduced))


def multiplies_signed_bytes(reduced: Expr) -> bool:
    (function, _) = application(application(reduced)[2][2])[2]
    assert isinstance(function, Lambda)
    match called(function.body):
        case "mul", _, factors:
            converted = [called(factor) for factor in factors]
            return all(c is not None and c[0] == "cast" and c[2][0].type == SCALARS["i8"] for c in converted)
        case _:
            return False


@pytest.mark.parametrize("name", SUMS)
def test_offsets_stand_beside_sums_and_change_no_result(name: str) -> None:
    random = Random(name)
    term = of(name, *(random.randint(1, 9) for _ in range(3)))
    assert not is_product_of_signed_bytes(term)
    made = succeeded(offsets_outside(term)).term
    assert is_product_of_signed_bytes(made)
    for seed in range(3):
        inputs = any_bytes(term, seed)
        np.testing.assert_array_equal(call(made, *inputs), call(term, *inputs))


@pytest.mark.parametrize("name", every_other(SUMS))
def test_large_ones_are_multiplied_by_tensor_cores(name: str) -> None:
    strategy = auto("sm_90a")
    chosen = [choice.point.strategy for choice in strategy.choice(of(name, 512, 640, 768)).kernels]
    assert chosen.count("tensor_core") == 1 and not {"cuda_core", "default"} & set(chosen)


@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
def test_their_kernels_are_exact(target: str) -> None:
    """Of sizes that the emulator has time for, after the rules that `auto` applies to larger ones."""
    term = succeeded(offsets_outside(of("zero points of both", 67, 45, 80))).term
    made = succeeded(auto(target)(term)).term
    inputs = any_bytes(term, 3)
    kernels = assemble(made, "f")
    assert any("mma" in kernel.source for kernel in kernels.kernels)
    np.testing.assert_array_equal(execute(kernels, inputs, "emulate"), call(term, *inputs))


def test_small_ones_and_floats_stay_as_they_are() -> None:
    small = of("both unsigned", 64, 64, 64)
    assert multiplied_bytes(split(small)[1]) == 64**3
    chosen = [choice.point.strategy for choice in auto("sm_90a").choice(small).kernels]
    assert "tensor_core" not in chosen
    floats = program("def f(xs: 9.i8, ys: 9.i8, z: f32) ="
                     " zip(xs)(ys) |> map((x, y) => (f32(x) - z) * f32(y)) |> reduce(+, 0)")  # fmt: skip
    assert not succeeded(offsets_outside(floats)).steps


def test_what_is_remembered_of_the_program_comes_first(tmp_path: Path) -> None:
    """`rise tune` measured it as it is written."""
    term = program(
        "def f(A: 512.768.u8, B: 640.768.u8) = A |> map(row => B |> map(col =>"
        " zip(row)(col) |> map((x, y) => i32(x) * i32(y)) |> reduce(+, 0)))"
    )
    tile = {"block": "64,64,16", "warp": "32,16", "thread": "4,4"}
    measured = Record(
        identity(term), "f", {}, "sm_90a", "NVIDIA H100", "cuda_core", tile, 3.25, 0.01, "abc",
        "2026-01-02T00:00:00+00:00",
    )  # fmt: skip
    append(tmp_path / "store.jsonl", measured)
    (choice,) = auto("sm_90a", store=str(tmp_path / "store.jsonl")).choice(term).kernels
    assert choice.point.strategy == "cuda_core" and "remembered" in choice.reason


def test_a_gpu_without_such_instructions_multiplies_by_threads() -> None:
    chosen = [
        choice.point.strategy for choice in auto("sm_75").choice(of("both unsigned", 512, 640, 768)).kernels
    ]
    assert chosen == ["cuda_core"]
