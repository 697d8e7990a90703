"""Kernels whose indices are worth a look: of views, by the default strategy, and of schedules."""

from __future__ import annotations

from functools import cache

from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from strategies.matmul.tensor_core import tensor_core
from tests.support.kernels import lowered
from tests.support.programs import matrix_program, succeeded

PLUS = "reduce(+, 0)"

PRODUCT = "fun((A, B) => A |> map(fun(r => B |> transpose |> map(fun(c => zip(r)(c)" + (
    " |> map(fun((a, b) => a * b)) |> reduce(+, 0))))))"
)


def stencil(dimensions_: int, pad: str) -> str:
    names = {1: "slide(3, 1)", 2: "slide2D(3, 1)", 3: "slide3D(3, 1)"}
    flat = " |> join" * (dimensions_ - 1)
    shape = {1: "17", 2: "7.11", 3: "5.4.7"}[dimensions_]
    windows = f"fun(w => w{flat} |> {PLUS})"
    for _ in range(dimensions_):
        windows = f"map({windows})"
    return f"fun(xs: {shape}.f32 => xs |> {pad} |> {names[dimensions_]} |> {windows})"


TEXTS = {
    "matmul": f"fun((A: 7.5.f32, B: 5.11.f32) => ({PRODUCT})(A)(B))",
    "batched": f"fun((A: 3.7.5.f32, B: 3.5.11.f32) => zip(A)(B) |> map(fun((a, b) => ({PRODUCT})(a)(b))))",
    "transposition": "fun(A: 37.19.f32 => A |> transpose |> map(map(fun(x => x))))",
    "flat transposition": "fun(A: 37.19.f32 => A |> transpose |> join |> map(fun(x => x)))",
    "stencil 1D": stencil(1, "padClamp(1, 1)"),
    "stencil 2D": stencil(2, "padClamp2D(1, 1)"),
    "stencil 2D, zeros": stencil(2, "padCst2D(1, 1)(0)"),
    "stencil 3D": stencil(3, "padClamp3D(1, 1)"),
    "stencil 3D, zeros": stencil(3, "padCst3D(1, 1)(0)"),
    "convolution": "fun((w: 3.5.f32, xs: 9.12.f32) => conv2D(w)(xs))",
    "wrapping": "fun(xs: 13.f32 => xs |> padWrap(2, 3) |> slide(6, 1) |> map(reduce(+, 0)))",
}

TENSOR_CORE: dict[str, dict[str, object]] = {
    "direct": {"stages": 0, "epilogue": "direct"},
    "staged": {"stages": 1},
    "pipelined": {"stages": 3},
    "grouped": {"stages": 3, "raster_group": 3},
    "prefetched": {"stages": 2, "cp_async": False},
    "split-K": {"stages": 3, "slice_k": 2},
}


@cache
def of_text(name: str) -> Kernel:
    return generate(lowered(TEXTS[name], prelude=True), "f")


@cache
def of_schedule(name: str) -> Kernel:
    settings_ = {"block": (64, 32, 32), "warp": (32, 16), **TENSOR_CORE[name]}
    return generate(succeeded(tensor_core(**settings_)(matrix_program("gemm", (192, 160, 160)))).term, "gemm")  # type: ignore[arg-type]
