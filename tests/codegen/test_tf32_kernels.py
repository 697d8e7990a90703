"""tf32 in kernels: rounded as the interpreter does, taken from outside as it is, and multiplied exactly."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from codegen import runtime
from codegen.execute import available_backend, execute
from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from rise.check.program import check_expression
from rise.errors import LaunchError
from rise.interpret import call
from rise.normal import data_flow
from strategies.matmul.tensor_core import tensor_core
from tests.support.programs import succeeded

emulated = pytest.mark.skipif(available_backend() is None, reason="there is no C++ compiler")
compiled = pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")

COUNT = 4096
FROM = ("f16", "bf16", "f32", "f64", "i32", "i64", "u8", "bool")
CONVERT = (
    f"fun((xs: {COUNT}.f32, one: tf32) => xs |> mapGlobal(fun(x => (tf32(x), f32(tf32(x)) * f32(one)))))"
)
# through tf32 and back, with values of each type that are made of whole numbers
OTHERS = "fun((xs: 97.i32) => xs |> mapGlobal(fun(i => {})))"


def numbers() -> np.ndarray:
    """Halfway, just below and just above it, at exponents of all kinds; infinities and NaN; random bits."""
    exponents = np.array([0, 1, 2, 100, 127, 128, 253, 254, 255, 256, 300, 510, 511], np.uint32) << 23
    fractions = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x7FEFFF, 0x7FF000], np.uint32)
    chosen = np.add.outer(exponents, fractions).ravel()
    random = np.random.default_rng(3).integers(0, 2**32, COUNT - len(chosen), np.uint32)
    return np.concatenate([chosen, random]).view(np.float32)


def kernel(text: str, name: str = "kernel") -> Kernel:
    return generate(data_flow(check_expression(text)), name)


@emulated
def test_the_emulator_rounds_as_the_interpreter_bit_by_bit() -> None:
    found, expected = (
        execute(kernel(CONVERT), [numbers(), 1.0], "emulate"),
        call(check_expression(CONVERT), numbers(), 1.0),
    )
    assert np.array_equal(found[0].view(np.uint32), expected[0].view(np.uint32))
    assert np.array_equal(found[1], expected[1], equal_nan=True)
    assert np.isnan(found[0]).any() and np.isinf(found[0]).any()


@emulated
def test_the_emulator_converts_between_tf32_and_every_kind_of_number() -> None:
    there_and_back = " + ".join(f"f32({name}(tf32({name}(i % 2))))" for name in FROM)
    text = OTHERS.format(f"f64(tf32(i * 16777)) + f64({there_and_back})")
    given = np.arange(97, dtype=np.int32)
    found = execute(kernel(text), [given], "emulate")
    assert np.array_equal(found, call(check_expression(text), given))
    assert not np.array_equal(found, given * 16777 + given % 2 * len(FROM))  # it has rounded


@compiled
@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a"])
def test_conversions_compile(target: str) -> None:
    source = kernel(CONVERT).source
    assert "Global<tf32>" in source and runtime.compile_cubin(source, target).stat().st_size > 0


MOVED = {
    "padding": "fun(xs: 13.tf32 => xs |> padCst(1)(3)(tf32(0.5)) |> mapGlobal(fun(x => x)))",
    "choice": "fun(xs: 13.tf32 => xs |> mapGlobal(fun(x => select(f32(x) < 1.0)(x)(tf32(2)))))",
    "vectors": "fun(xs: 12.f32 => xs |> asVectorAligned(4)"
    " |> mapGlobal(fun(v => v |> mapVec(fun(x => tf32(x))))) |> asScalar)",
    "Shared, pairs": "fun(xs: 5.7.f32 => xs |> mapBlock(fun(r => r |> mapThreads(fun(x => tf32(x)))"
    " |> toMem(Shared) |> mapThreads(fun(x => (x, i32(x)))))))",
}


@emulated
@pytest.mark.parametrize("what", MOVED)
def test_it_moves_through_memory_as_any_data(what: str) -> None:
    term = check_expression(MOVED[what])
    given = np.arange(-6, 5.5, 0.5, dtype=np.float32)
    made, shape = kernel(MOVED[what]), {"Shared, pairs": (5, 7), "vectors": (12,)}.get(what, (13,))
    xs = np.resize(given, shape)
    found, expected = execute(made, [xs], "emulate"), call(term, xs)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    assert "tf32" in made.source and all(np.array_equal(a, b) for a, b in pairs)


@emulated
def test_a_kernel_takes_no_number_with_more_digits() -> None:
    text = "fun((xs: 3.5.tf32, y: tf32) => xs |> mapGlobal(fun(r => r |> mapSeq(fun(x => f32(x) + f32(y))))))"
    made, good = kernel(text), np.ones((3, 5), np.float32)
    assert (execute(made, [good, 0.5], "emulate") == 1.5).all()
    bad = good.copy()
    bad[2, 3] = 1 + 2**-11
    for inputs, name in (
        ((bad, 0.5), "`xs[2, 3]` = 1.00048"),
        ((good, 0.1), "`y` = 0.1"),
        ((good, np.float32(0.1)), "`y`"),
    ):
        with pytest.raises(LaunchError) as caught:
            execute(made, inputs, "emulate")
        assert caught.value.code == "R0842" and name in caught.value.message


# --- products of f32 numbers, rounded -------------------------------------------------------------------

PRODUCT = (
    "fun((A: 64.96.f32, B: 96.48.f32) => A |> map(fun(r => transpose(B) |> map(fun(c => "
    "zip(r)(c) |> map(fun((x, y) => f32(tf32(x)) * f32(tf32(y)))) |> reduce(+, 0))))))"
)
SCHEDULES: dict[str, dict[str, Any]] = {
    "prefetched": {},
    "synchronous": {"cp_async": False, "stages": 1},
    "swizzled": {"swizzled": True, "fragment": (16, 24, 8)},
}


@cache
def derived(schedule: str) -> Kernel:
    given: dict[str, Any] = {
        "block": (32, 48, 32),
        "warp": (32, 24),
        "fragment": (16, 8, 8),
        **SCHEDULES[schedule],
    }
    return generate(succeeded(tensor_core(**given)(data_flow(check_expression(PRODUCT)))).term, "product")


@emulated
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_product_rounds_its_operands_and_nothing_else(schedule: str) -> None:
    """A's elements lie halfway between two numbers of tf32; those of B are small: all sums are exact."""
    random = np.random.default_rng(7)
    a = (2 * random.integers(1024, 2048, (64, 96)) + 1).astype(np.float32)
    b = random.integers(-3, 4, (96, 48)).astype(np.float32)
    found = execute(derived(schedule), [a, b], "emulate")
    assert np.array_equal(found, (a + 1) @ b)  # away from zero
    assert np.array_equal(found, call(check_expression(PRODUCT), a, b))


@compiled
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_product_that_rounds_compiles(schedule: str) -> None:
    source = derived(schedule).source
    assert "mma::fragment<mma::matrix_a, 16," in source and "to_tf32(" in source
    for target in ("sm_80", "sm_90a"):
        assert runtime.compile_cubin(source, target).stat().st_size > 0
