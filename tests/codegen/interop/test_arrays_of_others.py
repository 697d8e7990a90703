"""Arrays of other libraries go to kernels as they are, and what does not fit is refused by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import codegen
from codegen.compiled import Compiled
from codegen.emulation.compiling import compiler
from codegen.host.program import HostProgram
from rise.check.program import check_text
from rise.errors import LaunchError, RiseError
from strategies.default import default
from tests.codegen.interop.fake_arrays import DLPack, Interface, cupy_like, pycuda_like, torch_like
from tests.codegen.interop.fake_gpu import OTHER, OWN, Gpu

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C++ compiler")

PROGRAMS = """
def axpy: {n: Nat} -> n.f32 -> n.f32 -> f32 -> n.f32 =
  fun((xs, ys, a) => zip(xs)(ys) |> map(fun((x, y) => a * x + y)))
def half = fun((xs: 17.f16, a: f16) => xs |> map(fun(x => x * a)))
def brain = fun((xs: 17.bf16, a: bf16) => xs |> map(fun(x => x * a)))
def pairs: {n: Nat} -> n.(f32, i32) -> n.(i32, f32) = fun(xs => xs |> map(fun((x, y) => (y, x))))
def at = fun((xs: 7.f32, indices: 5.Idx[7]) => gather(indices)(xs) |> map(fun(x => x)))
def total: {n: Nat} -> n.i32 -> i32 = fun(xs => xs |> reduce(+, 0))
"""
VECTORS = "def vectors = fun(xs: 24.f32 => xs |> asVectorAligned(4) |> mapGlobal(fun(v => v)) |> asScalar)"
Place = Callable[..., Any]


@cache
def program(name: str, n: int | None = None) -> HostProgram:
    """One of the programs; with n, for this size only."""
    if name == "vectors":
        return codegen.compile(check_text(VECTORS)[name], backend="emulate").program
    definition = check_text(PROGRAMS)[name]
    open_ = [p.name for p in definition.parameters] if n is None else []
    fixed = {} if n is None else {"n": n}
    return codegen.compile(definition, default(), sizes=fixed, runtime=open_, backend="emulate").program


class Family:
    """How one library puts an array on the GPU; whether new ones of it can be made."""

    def __init__(self, name: str, gpu: Gpu, patch: pytest.MonkeyPatch, stream: int = 0) -> None:
        self.makes = name in ("torch", "cupy", "pycuda")
        self.class_: Any = None
        place: Place
        if name == "torch":
            self.module = torch_like(gpu, stream)
            patch.setitem(sys.modules, "torch", self.module)
            place, self.class_ = self.module.on, self.module.Tensor
        elif name == "cupy":
            self.module = cupy_like(gpu, stream)
            patch.setitem(sys.modules, "cupy", self.module)
            place, self.class_ = self.module.on, self.module.on
        elif name == "pycuda":
            place = self.class_ = pycuda_like(gpu)
        elif name.startswith("interface"):
            version = int(name[-1])
            place = lambda memory: Interface(memory, version=version)  # noqa: E731
        else:
            version_ = 1 if name == "dlpack 1" else None
            place = lambda memory: DLPack(memory, version=version_)  # noqa: E731
        self.gpu, self._place = gpu, place

    def put(self, values: Any, **how: Any) -> Any:
        return self._place(self.gpu.array(values, **how))


FAMILIES = ("torch", "cupy", "pycuda", "interface 2", "interface 3", "dlpack 0", "dlpack 1")


def on_gpu(made: HostProgram, gpu: Gpu) -> Compiled:
    compiled = Compiled(made, "cuda", "sm_80")
    compiled.__dict__["loaded"] = gpu.load()
    return compiled


# --- what goes through --------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_results_are_exact_and_of_the_family_of_the_inputs(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Gpu(program("axpy"))
    f, arrays = on_gpu(gpu.program, gpu), Family(family, gpu, monkeypatch)
    for n in (1, 31, 97, 128, 129):
        xs, ys = np.arange(n, dtype=np.float32), np.arange(n, dtype=np.float32)[::-1].copy()
        given = [arrays.put(xs), arrays.put(ys), 3.0]
        if arrays.makes:
            result = f(*given)
            assert type(result) is arrays.class_
        else:
            result = arrays.put(np.full(n, np.nan, np.float32))
            assert f(*given, out=result) is result
        assert np.array_equal(result.memory, 3 * xs + ys)


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_copied(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(program("axpy", 9))
    f, arrays = on_gpu(gpu.program, gpu), Family(family, gpu, monkeypatch)
    xs, ys, out = (arrays.put(np.ones(9, np.float32)) for _ in range(3))
    f(xs, ys, 1.0, out=out)
    (launch,) = (entry for entry in gpu.log if entry[0] == "launch")
    assert launch[4][:3] == [a.memory.ctypes.data for a in (out, xs, ys)]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("name", "dtype"), [("half", np.float16), ("brain", ml_dtypes.bfloat16)])
def test_sixteen_bits(family: str, name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(program(name))
    f, arrays = on_gpu(gpu.program, gpu), Family(family, gpu, monkeypatch)
    xs = np.arange(17).astype(dtype)
    for a in (0.5, dtype(-3)):
        out = arrays.put(np.zeros(17, dtype))
        f(arrays.put(xs), a, out=out)
        assert np.array_equal(out.memory, xs * dtype(a))


@pytest.mark.parametrize("family", ["torch", "pycuda", "cupy"])
def test_pairs_are_tuples(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(program("pairs"))
    f, arrays = on_gpu(gpu.program, gpu), Family(family, gpu, monkeypatch)
    xs, ys = np.arange(5, dtype=np.float32), np.arange(5, dtype=np.int32)
    first, second = f((arrays.put(xs), arrays.put(ys + 7)))
    assert np.array_equal(first.memory, ys + 7)
    assert np.array_equal(second.memory, xs)
    with pytest.raises(LaunchError) as refused:
        f(arrays.put(xs))
    assert refused.value.code == "R0806"


def test_a_number_as_a_result_stays_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(program("total"))
    f, arrays = on_gpu(gpu.program, gpu), Family("torch", gpu, monkeypatch)
    result = f(arrays.put(np.arange(11, dtype=np.int32)))
    assert (result.shape, result.memory.item()) == ((), 55)


def test_indices_are_ints_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(program("at"))
    f, arrays = on_gpu(gpu.program, gpu), Family("pycuda", gpu, monkeypatch)
    xs, indices = np.arange(7, dtype=np.float32), np.array([6, 0, 3, 3, 1])
    result = f(arrays.put(xs), arrays.put(indices.astype(np.int32)))
    assert np.array_equal(result.memory, xs[indices])
    with pytest.raises(LaunchError, match="`indices` has elements of type int64"):
        f(arrays.put(xs), arrays.put(indices))


# --- streams ------------------------------------------------------------------------------------------


class Handle:
    def __init__(self, name: str, handle: int) -> None:
        setattr(self, name, handle)


@pytest.mark.parametrize("stream", [5, Handle("handle", 5), Handle("cuda_stream", 5), Handle("ptr", 5)])
def test_a_stream_of_anyone(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(program("axpy", 9))
    f, arrays = on_gpu(gpu.program, gpu), Family("torch", gpu, monkeypatch, stream=3)
    xs, ys = (arrays.put(np.ones(9, np.float32)) for _ in range(2))
    f(xs, ys, 1.0)
    f(xs, ys, 1.0, stream=stream)
    assert gpu.streams == [3, 5]
    # memory for a result belongs to the stream that uses it
    assert arrays.module.entered == [5]


def test_what_is_no_stream_is_refused() -> None:
    gpu = Gpu(program("axpy", 9))
    with pytest.raises(LaunchError) as refused:
        on_gpu(gpu.program, gpu)(Interface(gpu.array(np.ones(9, np.float32))), 0, 0, stream="five", out=0)
    assert refused.value.code == "R0837"


def test_work_on_the_stream_of_an_interface_is_waited_for() -> None:
    gpu = Gpu(program("axpy", 9))
    f = on_gpu(gpu.program, gpu)
    memory = [gpu.array(np.ones(9, np.float32)) for _ in range(3)]
    xs, ys, out = Interface(memory[0], stream=8), Interface(memory[1], stream=9), Interface(memory[2])
    f(xs, ys, 1.0, out=out)  # on 0, the stream of `out`, which comes first
    assert [e for e in gpu.log if e[0] != "ask"][:4] == [
        ("record", 8),
        ("wait", 0),
        ("record", 9),
        ("wait", 0),
    ]
    gpu.log.clear()
    f(xs, ys, 1.0, out=out, stream=9)
    waited = [e for e in gpu.log if e[0] in ("record", "wait")]
    assert waited == [("record", 8), ("wait", 9)], "not for the stream itself"


def test_an_array_makes_itself_ready_on_the_stream() -> None:
    gpu = Gpu(program("axpy", 9))
    given = [DLPack(gpu.array(np.ones(9, np.float32))) for _ in range(3)]
    on_gpu(gpu.program, gpu)(given[0], given[1], 1.0, out=given[2], stream=6)
    assert all(set(array.streams) <= {1, 6} and array.streams[0] == 6 for array in given)
    assert [array.exported for array in given] == [0, 0, 0], "every capsule is given back"


# --- what is refused ----------------------------------------------------------------------------------


def refused(gpu: Gpu, *arguments: Any, **named: Any) -> RiseError:
    with pytest.raises(RiseError) as error:
        on_gpu(gpu.program, gpu)(*arguments, **named)
    assert not gpu.streams, "nothing is launched"
    return error.value


def nine(gpu: Gpu, **how: Any) -> Any:
    return gpu.array(np.ones(9, np.float32), **how)


WRONG: dict[str, tuple[str, str, Callable[[Gpu], Any]]] = {
    "type": ("R0803", "float64", lambda g: Interface(g.array(np.ones(9)))),
    "type of a capsule": ("R0803", "int32", lambda g: DLPack(g.array(np.ones(9, np.int32)))),
    "foreign byte order": ("R0803", "foreign byte order", lambda g: Interface(nine(g), typestr=">f4")),
    "shape": ("R0804", "(10,)", lambda g: Interface(g.array(np.ones(10, np.float32)))),
    "rank": ("R0804", "(3, 3)", lambda g: DLPack(g.array(np.ones((3, 3), np.float32)))),
    "strides": ("R0805", "(8,)", lambda g: Interface(nine(g), strides=(8,))),
    "strides of a capsule": ("R0805", "(8,)", lambda g: DLPack(nine(g), strides=(2,))),
    "a list": ("R0806", "list", lambda g: [1.0] * 9),
    "another GPU": ("R0834", "GPU 1", lambda g: Interface(nine(g, device=OTHER))),
    "another GPU's capsule": ("R0834", "GPU 1", lambda g: DLPack(nine(g), device=(2, 1))),
    "a capsule of the host": ("R0834", "host", lambda g: DLPack(nine(g), device=(1, 0))),
    "memory of the host": ("R0834", "not in memory", lambda g: Interface(np.ones(9, np.float32))),
    "NumPy": ("R0834", "NumPy", lambda g: np.ones(9, np.float32)),
    "alignment": ("R0835", "4 bytes", lambda g: Interface(nine(g, shift=2))),
    "a mask": ("R0837", "mask", lambda g: Interface(nine(g), mask=object())),
    "stream 0": ("R0837", "stream 0", lambda g: Interface(nine(g), stream=0)),
    "another DLPack": ("R0837", "DLPack 2", lambda g: DLPack(nine(g), version=2)),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused_by_name(case: str) -> None:
    code, text, make = WRONG[case]
    gpu = Gpu(program("axpy", 9))
    good = Interface(nine(gpu))
    error = refused(gpu, good, make(gpu), 1.0, out=Interface(nine(gpu)))
    assert (error.code, text in error.message) == (code, True), error.message
    # the protocols' own mistakes are found before it is known which argument has them
    assert "`ys`" in error.message or case in ("stream 0", "another DLPack")


@pytest.mark.parametrize(
    ("tensor", "code", "text"),
    [
        ({"device": -1}, "R0834", "host"),
        ({"device": 1}, "R0834", "GPU 1"),
        ({"requires_grad": True}, "R0837", "gradient"),
        ({"stride": (2,)}, "R0805", "(8,)"),
    ],
)
def test_tensors_that_do_not_fit(
    tensor: dict[str, Any], code: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Gpu(program("axpy", 9))
    torch = torch_like(gpu)
    monkeypatch.setitem(sys.modules, "torch", torch)
    error = refused(gpu, torch.on(nine(gpu)), torch.on(nine(gpu), **tensor), 1.0)
    assert (error.code, "`ys`" in error.message, text in error.message) == (code, True, True)


def test_what_was_fine_once_is_checked_again_where_it_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a call that fits, arguments that differ from it in one thing each."""
    gpu = Gpu(program("axpy", 9))
    torch = torch_like(gpu)
    monkeypatch.setitem(sys.modules, "torch", torch)
    f = on_gpu(gpu.program, gpu)
    memory = [nine(gpu) for _ in range(3)]
    families: tuple[tuple[Callable[..., Any], list[dict[str, Any]]], ...] = (
        (torch.on, [{"requires_grad": True}, {"device": 1}, {"device": -1}, {"stride": (2,)}]),
        (Interface, [{"strides": (8,)}, {"typestr": "<i4"}, {"shape": (3, 3)}, {"mask": 1}, {"stream": 0}]),
        (DLPack, [{"device": (2, 1)}, {"device": (1, 0)}, {"strides": (2,)}, {"read_only": True}]),
    )
    for place, changes in families:
        f(place(memory[0]), place(memory[1]), 1.0, out=place(memory[2]))
        for change in changes:
            with pytest.raises(LaunchError):
                f(place(memory[0]), place(memory[1]), 1.0, out=place(memory[2], **change))
    assert len(gpu.streams) == 3


def test_a_capsule_may_start_behind_its_address() -> None:
    gpu = Gpu(program("axpy", 9))
    xs, ys, out = (DLPack(nine(gpu), offset=offset) for offset in (64, 0, 128))
    on_gpu(gpu.program, gpu)(xs, ys, 1.0, out=out)
    assert np.array_equal(out.memory, xs.memory + ys.memory)


@pytest.mark.parametrize("write", [Interface, DLPack])
def test_a_result_is_written(write: Any) -> None:
    gpu = Gpu(program("axpy", 9))
    memory = nine(gpu)
    out = (
        DLPack(memory, read_only=True)
        if write is DLPack
        else Interface(memory, data=(memory.ctypes.data, True))
    )
    error = refused(gpu, Interface(nine(gpu)), Interface(nine(gpu)), 1.0, out=out)
    assert (error.code, "`out`" in error.message) == ("R0837", True)
    on_gpu(gpu.program, gpu)(out, out, 1.0, out=Interface(nine(gpu)))  # reading it is fine


@pytest.mark.parametrize("by", [0, 4, 32])
def test_a_result_overlaps_nothing(by: int) -> None:
    gpu = Gpu(program("axpy", 9))
    both = gpu.array(np.ones(40, np.float32))

    def part(start: int) -> Interface:
        memory = both[start : start + 9]
        gpu.memory[memory.ctypes.data], gpu.devices[memory.ctypes.data] = memory, OWN
        return Interface(memory)

    xs = part(0)
    error = refused(gpu, xs, Interface(nine(gpu)), 1.0, out=part(by // 4))
    assert (error.code, "`out` overlaps `xs`" in error.message) == ("R0836", True)
    for given, result in ((xs, part(9)), (part(9), xs)):  # side by side is apart; inputs may be one
        on_gpu(gpu.program, gpu)(given, given, 1.0, out=result)


@pytest.mark.parametrize(("shift", "fits"), [(0, True), (16, True), (8, False), (4, False)])
def test_vectors_ask_for_their_alignment(shift: int, fits: bool) -> None:
    """Four f32 are moved at once, so 16 bytes; the test above is of a kernel that moves one."""
    gpu = Gpu(program("vectors"))
    xs = np.arange(24, dtype=np.float32)
    given, out = Interface(gpu.array(xs, shift=shift)), Interface(gpu.array(0 * xs))
    if fits:
        on_gpu(gpu.program, gpu)(given, out=out)
        assert np.array_equal(out.memory, xs)
    else:
        error = refused(gpu, given, out=out)
        assert (error.code, "`xs`" in error.message, "16 bytes" in error.message) == ("R0835", True, True)


def test_a_dimension_of_one_may_have_any_stride() -> None:
    gpu = Gpu(program("axpy", 1))
    xs, ys, out = (Interface(gpu.array(np.ones(1, np.float32)), strides=(400,)) for _ in range(3))
    on_gpu(gpu.program, gpu)(xs, ys, 2.0, out=out)
    assert out.memory.item() == 3


@pytest.mark.parametrize("family", ["interface 3", "dlpack 1"])
def test_without_a_way_to_make_a_result_one_has_to_be_given(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Gpu(program("axpy", 9))
    arrays = Family(family, gpu, monkeypatch)
    error = refused(gpu, arrays.put(np.ones(9, np.float32)), arrays.put(np.ones(9, np.float32)), 1.0)
    assert (error.code, error.hint) == ("R0838", "pass one with `out=`")


def test_the_emulator_takes_no_array_of_a_gpu() -> None:
    gpu = Gpu(program("axpy", 9))
    with pytest.raises(LaunchError) as error:
        Compiled(gpu.program, "emulate", None)(Interface(nine(gpu)), Interface(nine(gpu)), 1.0)
    assert error.value.code == "R0834"


@pytest.mark.parametrize(
    ("arguments", "named", "code", "text"),
    [
        ((1,), {}, "R0808", "3 inputs (`xs`, `ys`, `a`), found 1"),
        ((0, 0, 0, 0), {}, "R0808", "found 4"),
        ((0, 0, 0), {"b": 1}, "R0808", "`b`"),
        ((0, 0), {"xs": 1}, "R0808", "`xs`"),
    ],
)
def test_the_number_of_inputs(arguments: Any, named: Any, code: str, text: str) -> None:
    error = refused(Gpu(program("axpy", 9)), *arguments, **named)
    assert (error.code, text in error.message) == (code, True)


@pytest.mark.parametrize("number", [np.float64(1), "1", True, np.ones(2, np.float32)])
def test_numbers_are_not_converted(number: Any) -> None:
    gpu = Gpu(program("axpy", 9))
    error = refused(gpu, Interface(nine(gpu)), Interface(nine(gpu)), number, out=Interface(nine(gpu)))
    assert (error.code in ("R0803", "R0806"), "`a`" in error.message) == (True, True)


def test_sizes_that_do_not_fit_together() -> None:
    gpu = Gpu(program("axpy"))
    error = refused(
        gpu, Interface(nine(gpu)), Interface(gpu.array(np.ones(8, np.float32))), 1.0, out=Interface(nine(gpu))
    )
    assert (error.code, "n = 9" in error.message) == ("R0409", True)
