"""Launches: what is packed, how quickly, on which stream, with which temporaries; NumPy there and back."""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import codegen
from codegen.compiled import Compiled
from codegen.emulation.compiling import compiler
from codegen.host.program import HostProgram
from codegen.runtime import loading
from codegen.runtime.arguments import Plan, plan
from codegen.runtime.libcuda import Driver
from codegen.runtime.loading import Loaded
from codegen.runtime.packing import POINTER, Field, natural_offsets, packer
from rise.check.program import check_text
from rise.errors import LaunchError
from strategies.default import default
from tests.codegen.interop.fake_arrays import Interface, torch_like
from tests.codegen.interop.fake_gpu import Gpu
from tests.support.counting import counting

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C++ compiler")

AXPY = """def axpy: {n: Nat} -> n.f32 -> n.f32 -> f32 -> n.f32 =
  fun((xs, ys, a) => zip(xs)(ys) |> map(fun((x, y) => a * x + y)))"""
# squares, then what lies the other way round: no block of the second kernel may run before the first ends
TWICE = """def twice = fun(xs: 9.f32 => xs |>
  mapGlobal(fun(x => x * x)) |> toMem(Global) |> reorder(9)(natFun(i => 8 - i))(natFun(i => 8 - i)) |>
  mapGlobal(fun(x => x + 1)))"""


@cache
def axpy(n: int | None = None) -> HostProgram:
    definition = check_text(AXPY)["axpy"]
    sizes, left = ({}, ["n"]) if n is None else ({"n": n}, [])
    return codegen.compile(definition, default(), sizes=sizes, runtime=left, backend="emulate").program


@cache
def twice() -> HostProgram:
    return codegen.compile(check_text(TWICE)["twice"], backend="emulate").program


def on_gpu(gpu: Gpu, n: int) -> list[Interface]:
    return [Interface(gpu.array(np.arange(n, dtype=np.float32) + i)) for i in range(3)]


# --- the parameter buffer -----------------------------------------------------------------------------


def test_numbers_are_aligned_to_their_size_and_tensor_maps_to_64_bytes() -> None:
    tensor_map = Field.of("128s", alignment=64)
    fields = [Field.of("?"), POINTER, Field.of("H"), Field.of("f"), tensor_map, Field.of("b")]
    offsets = natural_offsets(fields)
    assert offsets == [0, 8, 16, 20, 64, 192]
    layout, image = packer(fields, offsets), bytes(range(128))
    packed = layout.pack(True, 2**40 + 1, 0x3C00, 1.5, image, -1)
    assert len(packed) == 193
    found = [struct.unpack_from(f"<{f.code}", packed, o)[0] for f, o in zip(fields, offsets, strict=True)]
    assert found == [True, 2**40 + 1, 0x3C00, 1.5, image, -1]


def test_offsets_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlaps"):
        packer([POINTER, POINTER], [0, 4])


@pytest.mark.parametrize("offsets", [None, [0, 8, 16, 24], [112, 128, 136, 256]])
def test_values_lie_where_the_driver_says(offsets: list[int] | None) -> None:
    """A driver from before 12.4 does not say; then each lies at the next aligned place."""
    gpu = Gpu(axpy(33), offsets)
    loaded = gpu.load()
    out, xs, ys = on_gpu(gpu, 33)
    loaded(out, xs, ys, 2.0)
    assert np.array_equal(out.memory, 2 * xs.memory + ys.memory)


# --- the way of a call --------------------------------------------------------------------------------


def test_arguments_are_checked_once_for_each_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []

    def noted(*given: Any) -> Plan:
        checked.append(1)
        return plan(*given)

    monkeypatch.setattr(loading, "plan", noted)
    gpu = Gpu(axpy())
    loaded = gpu.load()
    for n in (9, 9, 10, 9, 10):
        loaded(*on_gpu(gpu, n), 1.0)
        loaded(*on_gpu(gpu, n), np.float32(1.0))
    assert len(checked) == 4


def test_a_signature_that_was_fine_does_not_let_addresses_pass() -> None:
    gpu = Gpu(axpy(9))
    loaded = gpu.load()
    out, xs, ys = on_gpu(gpu, 9)
    loaded(out, xs, ys, 1.0)
    for wrong in ((xs, xs, ys), (out, Interface(gpu.array(np.ones(9, np.float32), shift=2)), ys)):
        with pytest.raises(LaunchError):
            loaded(*wrong, 1.0)
    with pytest.raises(LaunchError, match="not in memory"):
        loaded(out, Interface(np.ones(9, np.float32)), ys, 1.0)
    assert len(gpu.streams) == 1


def test_a_thread_without_a_context_is_given_one() -> None:
    gpu = Gpu(axpy(9))
    loaded = gpu.load()
    gpu.context = False
    out, xs, ys = on_gpu(gpu, 9)
    loaded(out, xs, ys, 1.0)
    assert gpu.context
    assert np.array_equal(out.memory, xs.memory + ys.memory)


def test_what_the_driver_refuses_is_said_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(axpy(9))
    gpu.cuLaunchKernel.does = lambda *_: 719  # type: ignore[attr-defined]
    with pytest.raises(LaunchError) as refused:
        gpu.load()(*on_gpu(gpu, 9), 1.0)
    assert (refused.value.code, "cuLaunchKernel: CUDA_ERROR_719" in refused.value.message) == ("R0833", True)


def test_threads_do_not_mix_their_parameters() -> None:
    gpu = Gpu(axpy(129))
    loaded = gpu.load()
    given = [on_gpu(gpu, 129) for _ in range(4)]

    def five_times(arrays: list[Interface], factor: float) -> None:
        for _ in range(5):
            loaded(*arrays, factor)

    threads = [Thread(target=five_times, args=(a, float(i))) for i, a in enumerate(given)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, (out, xs, ys) in enumerate(given):
        assert np.array_equal(out.memory, i * xs.memory + ys.memory)


def test_a_call_costs_little() -> None:
    """Three tensors and a number, with a driver that does nothing, in calls of functions.

    `benchmarks/launch_overhead.py` measures the time: ten microseconds, of which a call here takes 0.1.
    """
    gpu = Gpu(axpy(9))
    torch = torch_like(gpu)
    gpu.cuLaunchKernel = ctypes.CDLL(None).getpid  # type: ignore[attr-defined]  # a C function, which takes anything
    calls = {}
    driver = Driver(gpu, 1, 0)
    driver._launch.restype = None
    loaded = Loaded(axpy(9), driver, [b"axpy_kernel"])
    out, xs, ys = (torch.on(gpu.array(np.ones(9, np.float32))) for _ in range(3))
    calls["torch"] = _calls(lambda: loaded(out, xs, ys, 1.0, stream=0))
    through = [Interface(gpu.array(np.ones(9, np.float32))) for _ in range(3)]
    calls["interface"] = _calls(lambda: loaded(*through, 1.0, stream=0))
    assert max(calls.values()) < 100, calls


def _calls(call: Any) -> int:
    """Of a call that is not the first one."""
    call()
    with counting() as count:
        call()
    return count.calls


# --- several kernels ----------------------------------------------------------------------------------


class Memory:
    """pycuda's driver module, as far as the runtime uses it."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu, self.allocated = gpu, list[int]()
        self.Context = SimpleNamespace(synchronize=lambda: None)

    def mem_alloc(self, size: int) -> int:
        assert self.gpu.allocates, "cuMemAlloc failed: operation not permitted when stream is capturing"
        self.allocated.append(size)
        return int(self.gpu.array(np.zeros(size, np.uint8)).ctypes.data)

    def to_device(self, host: Any) -> int:
        return int(self.gpu.array(host).ctypes.data)

    def memcpy_dtoh(self, host: Any, address: int) -> None:
        host[...] = self.gpu.memory[address].view(np.uint8).reshape(-1)


def test_several_kernels_are_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(twice())
    memory = Memory(gpu)
    monkeypatch.setattr(loading, "driver", lambda: memory)
    loaded = gpu.load()
    xs, out = np.arange(9, dtype=np.float32), Interface(gpu.array(np.zeros(9, np.float32)))
    for stream in (0, 0, 4, 4):
        loaded(out, Interface(gpu.array(xs)), stream=stream)
        assert np.array_equal(out.memory, xs[::-1] ** 2 + 1)
    assert gpu.streams == [0] * 4 + [4] * 4, "two kernels a call"
    assert len(memory.allocated) == 2, "temporaries are allocated once for each stream"


def test_a_graph_shares_its_temporaries_with_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs later, on any stream: beside calls on the stream it was recorded on and other graphs."""
    gpu = Gpu(twice())
    memory = Memory(gpu)
    monkeypatch.setattr(loading, "driver", lambda: memory)
    loaded = gpu.load()
    xs, out = Interface(gpu.array(np.ones(9, np.float32))), Interface(gpu.array(np.zeros(9, np.float32)))

    def temporary(stream: int) -> int:
        """Where a call on a stream keeps it: the first kernel's result."""
        loaded(out, xs, stream=stream)
        launches = [entry for entry in gpu.log if entry[0] == "launch"]
        first, second = launches[-2:]
        (found,) = set(first[4]) & set(second[4])
        return int(found)

    before = temporary(stream=4)
    gpu.recordings = {7: 1}  # no call was on this stream before
    first = [temporary(stream=7), temporary(stream=7)]
    beside = temporary(stream=4), temporary(stream=5)
    gpu.recordings = {7: 2}
    second = temporary(stream=7)
    gpu.recordings = {4: 3, 6: 3}  # one recording, of two streams that overlap in time
    third = temporary(stream=4), temporary(stream=6)
    gpu.recordings = {}
    after = temporary(stream=7)
    assert first[0] == first[1] and beside[0] == before
    assert len({before, first[0], beside[1], second, *third, after}) == 7 == len(memory.allocated)
    assert not gpu.relaxed, "what others may do while a graph is recorded is as before"


def test_the_first_call_may_be_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(twice())
    memory = Memory(gpu)
    monkeypatch.setattr(loading, "driver", lambda: memory)
    load = gpu.cuModuleLoadData.does  # type: ignore[attr-defined]  # as `Gpu` makes it
    loads: list[bool] = []

    def noted(*given: Any) -> Any:
        loads.append(gpu.allocates)
        return load(*given)

    gpu.cuModuleLoadData.does = noted  # type: ignore[attr-defined]
    gpu.recordings = {3: 1}
    xs, out = np.arange(9, dtype=np.float32), Interface(gpu.array(np.zeros(9, np.float32)))
    gpu.load()(out, Interface(gpu.array(xs)), stream=3)
    assert np.array_equal(out.memory, xs[::-1] ** 2 + 1)
    assert loads == [True, True]


@pytest.mark.parametrize("backend", ["cuda", "emulate"])
def test_numpy_in_and_out(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for made, inputs, wanted in (
        (axpy(), (np.arange(31, dtype=np.float32), np.ones(31, np.float32), 2), 2 * np.arange(31) + 1),
        (twice(), (np.arange(9, dtype=np.float32),), np.arange(9)[::-1] ** 2 + 1),
    ):
        gpu = Gpu(made)
        memory = Memory(gpu)
        monkeypatch.setattr(loading, "driver", lambda memory=memory: memory)
        f = Compiled(made, backend, "sm_80")
        f.__dict__["loaded"] = gpu.load()
        result = f(*inputs)
        assert type(result) is np.ndarray
        assert np.array_equal(result, wanted)
        out = np.zeros_like(result)
        assert f(*inputs, out=out) is out
        assert np.array_equal(out, wanted)
        for wrong in (np.zeros(8, np.float32), np.zeros((31, 2), np.float32)[:, 0], [0.0], np.zeros(31)):
            with pytest.raises(LaunchError):
                f(*inputs, out=wrong)


def test_a_kernel_that_waits_itself_may_start_early() -> None:
    """The attribute of the launch is programmatic stream serialization; all else is as always."""
    gpu = Gpu(axpy(9))
    seen: list[tuple[Any, ...]] = []

    def launched(config: Any, function: Any, parameters: Any, extra: Any) -> int:
        given = config._obj
        grid = (given.grid_x, given.grid_y, given.grid_z)
        block = (given.block_x, given.block_y, given.block_z)
        attribute = given.attributes[0]
        seen.append((grid, block, given.shared, given.stream, given.count, attribute.id, attribute.value[0]))
        return 0

    gpu.cuLaunchKernelEx = launched  # type: ignore[attr-defined]  # as the driver has it
    buffer = ctypes.create_string_buffer(8)
    Driver(gpu, 1, 0).launcher(101, 4096, buffer, early=True)((132, 1, 1), (384, 1, 1), 7)
    assert seen == [((132, 1, 1), (384, 1, 1), 4096, 7, 1, 6, 1)]
    assert not gpu.streams
