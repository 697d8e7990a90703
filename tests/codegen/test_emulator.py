"""The emulator: right kernels give right numbers for every seed."""

from __future__ import annotations

import os
import signal
from _thread import start_new_thread
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Event, Thread
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from codegen.emulation import emulator
from codegen.emulation.emulator import Buffer, Scalar, emulate
from rise.errors import EmulationError
from tests.support.emulated import (  # noqa: F401  # a fixture
    ADD,
    CONVERT,
    EXPRESSIONS,
    REUSE,
    Array,
    Run,
    directory,
    floats,
    needs_compiler,
    text,
    unset,
)

pytestmark = needs_compiler


@pytest.mark.parametrize("seed", [0, 1, 2**63 + 5])
def test_vector_add(seed: int) -> None:
    out = unset(100)
    Run(blocks=4)(ADD, out, floats(100), floats(100), 2, Scalar("n", np.int32(100)), seed=seed)
    assert np.array_equal(out.array, 3 * np.arange(100))


def test_it_counts_the_threads_that_have_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, Callable[[], int]]] = []

    def counted(what: str, of: int, done: Callable[[], int]) -> Any:
        asked.append((of, done))
        return nullcontext()

    monkeypatch.setattr(emulator, "counted", counted)
    Run(blocks=4, threads=32)(ADD, unset(100), floats(100), floats(100), 2, Scalar("n", np.int32(100)))
    ((of, done),) = asked
    assert of == done() == 128


ENDLESS = text("Global<int> out", "for (;;) { if (threadIdx.x == 0) out[0] += 1; __syncthreads(); }")


def test_an_interrupt_ends_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that it would go on for 2^60 steps."""
    monkeypatch.setenv(emulator.STEPS, str(2**60))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    out = np.zeros(1, np.int32)

    def interrupt() -> None:
        while not out[0]:
            Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    other = Thread(target=interrupt, daemon=True)
    other.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            Run()(ENDLESS, out)
        assert out[0] > 0
    finally:
        other.join()
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_the_kernel_starts_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that went on would write to arrays that are gone."""
    monkeypatch.setenv(emulator.STEPS, str(2**60))
    out = np.zeros(1, np.int32)

    def interrupted(run: Callable[[], None], given: tuple[()]) -> None:
        start_new_thread(run, given)
        while not out[0]:
            Event().wait(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(emulator, "start_new_thread", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Run()(ENDLESS, out)
    after = int(out[0])
    Event().wait(0.05)
    assert out[0] == after > 0


@pytest.mark.parametrize("scale", [0, -30, -14, 14])
def test_conversions_agree_with_numpy(scale: int) -> None:
    """All halves; floats of random bits, and of sizes where halves are subnormal or overflow."""
    random = np.random.default_rng(2)
    x = random.integers(0, 2**32, 65536, dtype=np.uint32).view(np.float32)
    if scale:
        x = (random.standard_normal(65536) * 2.0**scale).astype(np.float32)
        x[:2048] = (np.arange(2048) + 0.5) * np.float32(2.0**-24)  # ties
    h = np.arange(65536, dtype=np.uint16).view(np.float16)
    wide = np.zeros(65536, np.float32)
    halves, bfloats = np.zeros(65536, np.uint16), np.zeros(65536, np.uint16)
    Run()(CONVERT, wide, halves, bfloats, h, x)
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.array_equal(wide, h.astype(np.float32), equal_nan=True)
        assert same_bits(halves.view(np.float16), x.astype(np.float16))
        assert same_bits(bfloats.view(ml_dtypes.bfloat16), x.astype(ml_dtypes.bfloat16))


def same_bits(left: Array, right: Array) -> bool:
    """Equal, with the sign of zeros; all NaNs are one."""
    equal = left.view(np.uint16) == right.view(np.uint16)
    return bool(np.all(equal | (np.isnan(left) & np.isnan(right))))


ARITHMETIC = text(
    "Global<half> out, Global<const half> x, Global<const half> y",
    """
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
    half sum = x[i] + y[i];
    half product = x[i] * y[i];
    sum += product;
    out[i] = sum / y[i] - __hfma(x[i], y[i], x[i]);
  }
""",
)


def test_half_arithmetic_rounds_each_operation() -> None:
    random = np.random.default_rng(3)
    x, y = (random.standard_normal(1024).astype(np.float16) for _ in range(2))
    out = np.zeros(1024, np.float16)
    Run()(ARITHMETIC, out, x, y)
    fused = (x.astype(float) * y.astype(float) + x.astype(float)).astype(np.float16)
    assert np.array_equal(out, ((x + y) + x * y) / y - fused)


def test_elements_in_expressions() -> None:
    at, x, h = np.arange(32, dtype=np.int32)[::-1].copy(), floats(40), np.ones(32, np.float16)
    out = unset(32)
    Run(shared_bytes=256)(EXPRESSIONS, out, at, x, h)
    top = np.maximum(at, 0.5) + np.minimum(at, 3) + np.where(at > 7, x[:32], 0)
    tile = 2 * top + 1 + at
    assert np.array_equal(out.array, tile[::-1] + 1 + (at + 1) + 1 + 1 + x[:32])


def test_shared_memory_is_reused_between_barriers() -> None:
    """Two buffers in turn, then numbers of another type in their place; no false alarm."""
    x = (np.arange(256 * 5) % 7).astype(np.float16)
    out = unset(6)
    emulate(REUSE, "k", (3, 2, 1), (32, 8, 1), [out, x, 5], shared_bytes=1024, seed=11)
    assert np.all(out.array == x.astype(np.float32).sum())


COPIED = text(
    "Global<float> out, Global<const float> x, int fails",
    """
  Shared<float> tile = shared_memory<float>(0);
  if (fails) {
    copy_async<4>(&tile[4 * threadIdx.x], &x[4 * threadIdx.x]);
    commit_copies();
    out[threadIdx.x + 1000] = 0;
  }
  wait_copies<0>();
  out[threadIdx.x] = tile[4 * threadIdx.x];
""",
)


def test_copies_that_a_fault_leaves_under_way_are_of_that_launch() -> None:
    """Else the next launch would find in shared memory what it has not copied."""
    run = Run(threads=1, shared_bytes=16)
    for fails, fault in ((1, "outside its 8 elements"), (0, "before it is written")):
        with pytest.raises(EmulationError, match=fault):
            run(COPIED, unset(8), floats(4), Scalar("fails", np.int32(fails)))


def test_launches_from_two_threads() -> None:
    buffers = [unset(100) for _ in range(4)]

    def launch(out: Buffer) -> None:
        Run(blocks=4)(ADD, out, floats(100), floats(100), 2, 100)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(launch, buffers))
    assert all(np.array_equal(out.array, 3 * np.arange(100)) for out in buffers)
