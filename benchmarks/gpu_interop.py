"""On a machine with a GPU: arrays of pycuda, torch, DLPack and NumPy through one kernel; a short table.

python benchmarks/gpu_interop.py

Every line is a claim, `ok` or what is wrong; results are compared bit by bit. Exit status 1 if one fails.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import ml_dtypes
import numpy as np

import codegen
from codegen import runtime
from codegen.compiled import Compiled
from rise.check.program import check_text
from rise.errors import RiseError
from strategies.default import default

PROGRAMS = """
def axpy: {n: Nat} -> n.f32 -> n.f32 -> f32 -> n.f32 =
  fun((xs, ys, a) => zip(xs)(ys) |> map(fun((x, y) => a * x + y)))
def half: {n: Nat} -> n.f16 -> f16 -> n.f16 = fun((xs, a) => xs |> map(fun(x => x * a)))
def brain: {n: Nat} -> n.bf16 -> bf16 -> n.bf16 = fun((xs, a) => xs |> map(fun(x => x * a)))
def pairs: {n: Nat} -> n.(f32, i32) -> n.(i32, f32) = fun(xs => xs |> map(fun((x, y) => (y, x))))
def vectors = fun(xs: 1024.f32 => xs |> asVectorAligned(4) |> mapGlobal(fun(v => v)) |> asScalar)
def twice = fun(xs: 1000.f32 => xs |> mapGlobal(fun(x => x * x)) |> toMem(Global) |>
  reorder(1000)(natFun(i => 999 - i))(natFun(i => 999 - i)) |> mapGlobal(fun(x => x + 1)))
"""
SIZES = (1, 127, 128, 129, 10007)
Claim = Callable[[], None]


def compiled(name: str) -> Compiled:
    definition = check_text(PROGRAMS)[name]
    low_level = name in ("vectors", "twice")
    open_ = [p.name for p in definition.parameters]
    return codegen.compile(definition, None if low_level else default(), runtime=open_, backend="cuda")


def check(holds: bool, what: str = "the result differs") -> None:
    if not holds:
        raise ValueError(what)


def refused(code: str, call: Callable[[], Any]) -> None:
    try:
        call()
    except RiseError as error:
        check(error.code == code, f"refused by {error.code}, not {code}: {error.message}")
        return
    raise ValueError(f"is not refused by {code}")


def inputs(n: int) -> tuple[Any, Any]:
    random = np.random.default_rng(n)
    return tuple(random.integers(-9, 10, n).astype(np.float32) for _ in range(2))  # type: ignore[return-value]


def host_claims() -> dict[str, Claim]:
    axpy, half, brain, pairs, twice = map(compiled, ("axpy", "half", "brain", "pairs", "twice"))

    def numpy_in_and_out() -> None:
        for n in SIZES:
            xs, ys = inputs(n)
            check(np.array_equal(axpy(xs, ys, 3.0), 3 * xs + ys))

    def sixteen_bits() -> None:
        for f, dtype in ((half, np.float16), (brain, ml_dtypes.bfloat16)):
            xs = np.arange(100).astype(dtype)
            check(np.array_equal(f(xs, 0.5), xs * dtype(0.5)))

    def tuples() -> None:
        xs, ys = inputs(99)[0], np.arange(99, dtype=np.int32)
        first, second = pairs((xs, ys))
        check(np.array_equal(first, ys) and np.array_equal(second, xs))

    def several_kernels() -> None:
        xs = inputs(1000)[0]
        for _ in range(3):
            check(np.array_equal(twice(xs), xs[::-1] ** 2 + 1))

    return {
        "NumPy in, NumPy out": numpy_in_and_out,
        "f16 and bf16 numbers": sixteen_bits,
        "pairs": tuples,
        "two kernels, one call": several_kernels,
    }


def pycuda_claims() -> dict[str, Claim]:
    cuda = runtime.driver()
    from pycuda import gpuarray

    axpy, vectors, brain = map(compiled, ("axpy", "vectors", "brain"))
    there = gpuarray.to_gpu

    def arrays() -> None:
        for n in SIZES:
            xs, ys = inputs(n)
            result = axpy(there(xs), there(ys), 2.0)
            check(isinstance(result, gpuarray.GPUArray), f"the result is a {type(result).__name__}")
            check(np.array_equal(result.get(), 2 * xs + ys))

    def streams() -> None:
        xs, ys = inputs(10007)
        given, out, stream = [there(xs), there(ys)], there(0 * xs), cuda.Stream()
        axpy(*given, 2.0, out=out, stream=stream)
        stream.synchronize()
        check(np.array_equal(out.get(), 2 * xs + ys))

    def another_thread() -> None:
        xs, ys = inputs(129)
        given, out, failed = [there(xs), there(ys)], there(0 * xs), list[BaseException]()

        def work() -> None:
            try:
                axpy(*given, 2.0, out=out)
            except BaseException as error:  # noqa: BLE001  # shown by the thread that waits
                failed.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        check(not failed, str(failed))
        check(np.array_equal(out.get(), 2 * xs + ys))

    def alignment() -> None:
        xs = np.arange(1028, dtype=np.float32)
        base = there(xs)
        check(np.array_equal(vectors(base[4:1028]).get(), xs[4:]))
        refused("R0835", lambda: vectors(base[1:1025]))

    def overlap() -> None:
        base = there(np.ones(300, np.float32))
        refused("R0836", lambda: axpy(base[:100], base[200:], 1.0, out=base[50:150]))

    def mixed() -> None:
        xs, ys = inputs(9)
        refused("R0834", lambda: axpy(there(xs), ys, 1.0))

    def bf16() -> None:
        xs = np.arange(100).astype(ml_dtypes.bfloat16)
        memory, out = cuda.to_device(xs.view(np.uint16)), cuda.mem_alloc(200)
        arrays = [_Interface(int(m), (100,), "<V2") for m in (out, memory)]
        brain(arrays[1], 2, out=arrays[0])
        back = np.empty(100, np.uint16)
        cuda.Context.synchronize()
        cuda.memcpy_dtoh(back, out)
        check(np.array_equal(back.view(ml_dtypes.bfloat16), xs + xs))

    def where_parameters_lie() -> None:
        offsets = axpy.loaded.driver.parameter_offsets(next(iter(axpy.loaded.functions.values())), 5)
        check(offsets in ([0, 8, 16, 24, 28], None), f"the driver says {offsets}")

    return {
        "pycuda in, pycuda out": arrays,
        "pycuda stream": streams,
        "another thread": another_thread,
        "alignment of vectors": alignment,
        "overlap refused": overlap,
        "NumPy among GPU arrays refused": mixed,
        "bf16 by __cuda_array_interface__": bf16,
        "offsets of parameters": where_parameters_lie,
    }


class _Interface:
    def __init__(self, address: int, shape: tuple[int, ...], typestr: str, stream: int | None = None) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (address, False),
            "strides": None,
            "stream": stream,
            "version": 3,
        }


class _Exported:
    """Of a tensor only DLPack."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **how: Any) -> Any:
        return self.tensor.__dlpack__(**how)


class _Older(_Exported):
    """From before version 1."""

    def __dlpack__(self, stream: Any = None) -> Any:  # type: ignore[override]
        return self.tensor.__dlpack__(stream=stream)


def torch_claims() -> dict[str, Claim]:
    import torch

    axpy, half, brain, pairs = map(compiled, ("axpy", "half", "brain", "pairs"))

    def there(host: Any) -> Any:
        return torch.from_numpy(host).cuda()

    def same(result: Any, wanted: Any) -> None:
        check(isinstance(result, torch.Tensor), f"the result is a {type(result).__name__}")
        check(np.array_equal(result.cpu().numpy(), wanted))

    def tensors() -> None:
        for n in SIZES:
            xs, ys = inputs(n)
            same(axpy(there(xs), there(ys), 2.0), 2 * xs + ys)

    def on_torchs_stream() -> None:
        xs, ys = inputs(10007)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            busy = torch.ones(2**26, device="cuda").cumsum(0)  # what comes late is seen to be waited for
            a = there(xs) + (busy[:10007] * 0)
            result = axpy(a, there(ys), 2.0)
            result = result + 1
        stream.synchronize()
        same(result, 2 * xs + ys + 1)

    def on_a_given_stream() -> None:
        xs, ys = inputs(10007)
        stream, given = torch.cuda.Stream(), [there(xs), there(ys)]
        stream.wait_stream(torch.cuda.current_stream())
        result = axpy(*given, 2.0, stream=stream)
        stream.synchronize()
        same(result, 2 * xs + ys)

    def dlpack() -> None:
        xs, ys = inputs(10007)
        for form in (_Exported, _Older):
            out = torch.empty(10007, device="cuda")
            axpy(form(there(xs)), form(there(ys)), 2.0, out=form(out))
            torch.cuda.synchronize()
            same(out, 2 * xs + ys)

    def producers_stream() -> None:
        xs, ys = inputs(10007)
        side = torch.cuda.Stream()
        b, out = there(ys), torch.empty(10007, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            busy = torch.ones(2**26, device="cuda").cumsum(0)
            a = there(xs) + (busy[:10007] * 0)
        given = _Interface(a.data_ptr(), (10007,), "<f4", side.cuda_stream)
        axpy(given, b, 2.0, out=out)
        torch.cuda.synchronize()
        same(out, 2 * xs + ys)

    def sixteen_bits() -> None:
        for f, dtype in ((half, torch.float16), (brain, torch.bfloat16)):
            xs = torch.arange(100, device="cuda").to(dtype)
            check(bool(torch.equal(f(xs, 0.5), xs * 0.5)))

    def tuples() -> None:
        xs, ys = inputs(99)[0], np.arange(99, dtype=np.int32)
        first, second = pairs((there(xs), there(ys)))
        same(first, ys)
        same(second, xs)

    def refusals() -> None:
        xs, ys = map(there, inputs(100))
        refused("R0834", lambda: axpy(xs.cpu(), ys, 1.0))
        refused("R0837", lambda: axpy(xs.clone().requires_grad_(), ys, 1.0))
        refused("R0805", lambda: axpy(there(inputs(200)[0])[::2], ys, 1.0))
        refused("R0803", lambda: axpy(xs.double(), ys, 1.0))
        refused("R0409", lambda: axpy(xs, ys[None], 1.0))

    def recorded() -> None:
        xs, ys = inputs(10007)
        a, b, out = there(xs), there(ys), torch.zeros(10007, device="cuda")
        axpy(a, b, 2.0, out=out)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            axpy(a, b, 2.0, out=out)
        out.zero_()
        graph.replay()
        torch.cuda.synchronize()
        same(out, 2 * xs + ys)

    def recorded_with_temporaries() -> None:
        """Two graphs of one program, recorded on streams without a call before, replayed side by side."""
        squares = "xs |> map(fun(x => x * x)) |> toMem(Global)"
        text = f"def f = fun(xs: 10007.f32 => {squares} |> map(fun(x => x + 1)))"
        f = codegen.compile(check_text(text)["f"], default(), backend="cuda")
        given = [there(np.full(10007, value, np.float32)) for value in (2, 3)]
        outs = [torch.zeros(10007, device="cuda") for _ in given]
        graphs = [torch.cuda.CUDAGraph() for _ in given]
        for graph, xs, out in zip(graphs, given, outs, strict=True):
            with torch.cuda.graph(graph):
                f(xs, out=out)
        streams = [torch.cuda.Stream() for _ in given]
        torch.cuda.synchronize()
        for _ in range(100):
            for graph, stream in zip(graphs, streams, strict=True):
                with torch.cuda.stream(stream):
                    graph.replay()
        torch.cuda.synchronize()
        same(outs[0], np.full(10007, 5, np.float32))
        same(outs[1], np.full(10007, 10, np.float32))

    return {
        "torch in, torch out": tensors,
        "torch's current stream": on_torchs_stream,
        "a stream that is given": on_a_given_stream,
        "DLPack, versions 1 and before": dlpack,
        "the stream of an interface": producers_stream,
        "torch f16, bf16": sixteen_bits,
        "torch pairs": tuples,
        "torch refusals": refusals,
        "recorded in a CUDA graph": recorded,
        "recorded with temporaries": recorded_with_temporaries,
    }


def main() -> int:
    groups: list[Callable[[], dict[str, Claim]]] = [host_claims, pycuda_claims]
    if find_spec("torch") is not None:
        groups.append(torch_claims)
    else:
        print("torch is not installed: its lines are left out")
    wrong = 0
    for group in groups:
        for name, claim in group().items():
            try:
                claim()
                print(f"{name:36} ok", flush=True)
            except Exception:  # noqa: BLE001  # one claim says nothing about the next
                wrong += 1
                print(f"{name:36} WRONG\n{traceback.format_exc(limit=-3)}", flush=True)
    print("all hold" if not wrong else f"{wrong} do not hold")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
