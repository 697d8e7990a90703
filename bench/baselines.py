"""The baselines: libraries, and libraries with the separate kernels that they need.

A baseline of an operation is a function that makes its variants: a name, and the work that it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from bench import columns, cublas, cublaslt, fused, nested, pairs, torch_baselines
from bench.cublaslt import EPILOGUE_DEFAULT, EPILOGUE_RELU_BIAS, Problem
from bench.evaluations import LAYOUTS, Layout
from bench.memory import DeviceArray, Probe
from bench.table import Case
from bench.work import Operands, Work
from rise.errors import LaunchError, UsageError
from rise.suggest import suggestion

Make = Callable[["Libraries", Case, Sequence[Operands]], Iterator[tuple[str, Work]]]
RESULTS = {np.dtype(np.float32): cublas.R_32F, np.dtype(np.float16): cublas.R_16F}


@dataclass
class Libraries:
    """The libraries of a GPU, each opened when it is first needed."""

    cuda: Any
    probe: Probe

    @cached_property
    def cublas(self) -> cublas.Cublas:
        return cublas.Cublas()

    @cached_property
    def cublaslt(self) -> cublaslt.Lt:
        self._workspace = self.cuda.mem_alloc(cublaslt.WORKSPACE)
        return cublaslt.Lt(int(self._workspace))

    def versions(self) -> dict[str, str]:
        """Nothing for a library that is not there."""
        try:
            return {"cuBLAS": str(self.cublas.version)}
        except LaunchError:
            return {}


def find(name: str, operation: str) -> Make:
    """UsageError R0861 where the operation has no such baseline."""
    known = BASELINES.get(operation, {})
    if name not in known:
        listed = ", ".join(f"`{n}`" for n in known) or "none"
        hint = suggestion(name, known) or f"it has {listed}"
        raise UsageError("R0861", f"`{operation}` has no baseline `{name}`", None, hint)
    return known[name]


# --- cublasGemmEx -------------------------------------------------------------------------------------------


def _product(
    libraries: Libraries,
    case: Case,
    operands: Operands,
    stream: Any,
    left: int = 0,
    right: int = 1,
    alpha: float = 1.0,
    beta: float = 0.0,
    inner: str = "k",
    transposed: bool = False,
    a_transposed: bool = False,
    of: DeviceArray | None = None,
    into: DeviceArray | None = None,
    compute: int = cublas.COMPUTE_32F,
) -> None:
    """The result, or `into`, becomes alpha * (input `left`, or `of`) * (input `right`) + beta * itself."""
    sizes, output = case.sizes, into or operands.output
    blas = libraries.cublas
    blas.on(stream.handle)
    blas.gemm(
        sizes["m"], sizes["n"], sizes[inner], alpha,
        (of or operands.inputs[left]).pointer, operands.inputs[right].pointer, beta, output.pointer,
        a_transposed=a_transposed, b_transposed=transposed, result=RESULTS[output.dtype],
        compute=compute,
    )  # fmt: skip


def gemm(
    libraries: Libraries,
    case: Case,
    sets: Sequence[Operands],
    transposed: bool = False,
    compute: int = cublas.COMPUTE_32F,
) -> Iterator[tuple[str, Work]]:
    """C is updated in place, as cuBLAS does; only to be checked, D is C first. Without factors they are 1."""

    def call(stream: Any, operands: Operands) -> None:
        alpha, beta = operands.inputs[3:] or (1.0, 1.0)
        _product(
            libraries, case, operands, stream,
            alpha=alpha, beta=beta, transposed=transposed, compute=compute,
        )  # fmt: skip

    def check(stream: Any, operands: Operands) -> None:
        given, output = operands.inputs[2], operands.output
        libraries.cuda.memcpy_dtod_async(output.allocation, given.allocation, output.bytes, stream)
        call(stream, operands)

    yield "cublasGemmEx", Work(call, check)


def matmul(
    libraries: Libraries,
    case: Case,
    sets: Sequence[Operands],
    transposed: bool = False,
    a_transposed: bool = False,
) -> Iterator[tuple[str, Work]]:
    """transposed: B is stored as n.k; a_transposed: A as k.m."""

    def call(stream: Any, operands: Operands) -> None:
        _product(libraries, case, operands, stream, transposed=transposed, a_transposed=a_transposed)

    yield "cublasGemmEx", Work(call)


def batched(libraries: Libraries, case: Case, sets: Sequence[Operands]) -> Iterator[tuple[str, Work]]:
    def call(stream: Any, operands: Operands) -> None:
        b, m, n, k = (case.sizes[name] for name in "bmnk")
        x, y = operands.inputs
        blas, output = libraries.cublas, operands.output
        blas.on(stream.handle)
        blas.batched(b, m, n, k, x.pointer, y.pointer, output.pointer, result=RESULTS[output.dtype])

    yield "cublasGemmStridedBatchedEx", Work(call)


def batched_half(libraries: Libraries, case: Case, sets: Sequence[Operands]) -> Iterator[tuple[str, Work]]:
    """Results in f16; sums in f32, or in f16 as well, as in cublasHgemm."""
    for compute, how in ((cublas.COMPUTE_32F, "f32"), (cublas.COMPUTE_16F, "f16")):

        def call(stream: Any, operands: Operands, compute: int = compute) -> None:
            b, m, n, k = (case.sizes[name] for name in "bmnk")
            x, y, output = *operands.inputs, operands.output
            blas = libraries.cublas
            blas.on(stream.handle)
            blas.batched(
                b, m, n, k, x.pointer, y.pointer, output.pointer,
                result=RESULTS[output.dtype], compute=compute,
            )  # fmt: skip

        yield f"cublasGemmStridedBatchedEx, sums in {how}", Work(call)


# --- cublasGemmEx and kernels of one's own ------------------------------------------------------------------


def bias_relu_apart(libraries: Libraries, case: Case, sets: Sequence[Operands]) -> Iterator[tuple[str, Work]]:
    """The product, then the bias, then the maximum with zero: three kernels."""
    _vectors(case, "n", 4)

    def call(stream: Any, operands: Operands) -> None:
        output, bias = operands.output, operands.inputs[2]
        vectors = output.size // 4
        _product(libraries, case, operands, stream)
        columns = np.uint64(case.sizes["n"] // 4)
        libraries.probe.call("add_bias", vectors, stream, output, bias, columns, np.uint64(vectors))
        libraries.probe.call("relu_f32", vectors, stream, output, np.uint64(vectors))

    yield "product, bias, relu", Work(call)


def relu_product_apart(
    libraries: Libraries, case: Case, sets: Sequence[Operands], layout: Layout = LAYOUTS[""]
) -> Iterator[tuple[str, Work]]:
    """The maximum with zero, into an array of its own, then the product: two kernels."""
    _vectors(case, "k", 8)
    first = sets[0].inputs[0]
    kept = DeviceArray.empty(libraries.cuda, first.shape, first.dtype)

    def call(stream: Any, operands: Operands) -> None:
        vectors = kept.size // 8
        libraries.probe.call("relu_f16", vectors, stream, kept, operands.inputs[0], np.uint64(vectors))
        _product(libraries, case, operands, stream, of=kept, **_stored(layout))

    yield "relu, product", Work(call)


def _stored(layout: Layout) -> dict[str, Any]:
    return {"a_transposed": layout.a_transposed, "transposed": layout.b_transposed}


def bias_matrix_relu_apart(
    libraries: Libraries, case: Case, sets: Sequence[Operands], layout: Layout
) -> Iterator[tuple[str, Work]]:
    """The product, then a matrix added to it, then the maximum with zero: three kernels."""
    _vectors(case, "n", 8)

    def call(stream: Any, operands: Operands) -> None:
        output, vectors = operands.output, operands.output.size // 8
        _product(libraries, case, operands, stream, **_stored(layout))
        libraries.probe.call("add_f16", vectors, stream, output, operands.inputs[2], np.uint64(vectors))
        libraries.probe.call("relu_f16", vectors, stream, output, output, np.uint64(vectors))

    yield "product, bias, relu", Work(call)


def two_products_apart(
    libraries: Libraries, case: Case, sets: Sequence[Operands], layout: Layout
) -> Iterator[tuple[str, Work]]:
    """Two products and their sum: three kernels; or the second added to the first (beta = 1): two."""
    _vectors(case, "n", 8)
    first = sets[0].output
    kept = DeviceArray.empty(libraries.cuda, first.shape, first.dtype)

    def summed(stream: Any, operands: Operands) -> None:
        vectors = kept.size // 8
        _product(libraries, case, operands, stream, **_stored(layout))
        _product(libraries, case, operands, stream, 2, 3, into=kept, **_stored(layout))
        libraries.probe.call("add_f16", vectors, stream, operands.output, kept, np.uint64(vectors))

    def accumulated(stream: Any, operands: Operands) -> None:
        _product(libraries, case, operands, stream, **_stored(layout))
        _product(libraries, case, operands, stream, 2, 3, beta=1.0, **_stored(layout))

    yield "product, product, sum", Work(summed)
    yield "product, product with beta = 1", Work(accumulated)


def two_products(libraries: Libraries, case: Case, sets: Sequence[Operands]) -> Iterator[tuple[str, Work]]:
    """The second product is added to the first (beta = 1): two kernels."""

    def call(stream: Any, operands: Operands) -> None:
        _product(libraries, case, operands, stream)
        _product(libraries, case, operands, stream, 2, 3, beta=1.0, inner="l", transposed=True)

    yield "product, product with beta = 1", Work(call)


def _vectors(case: Case, size: str, of: int) -> None:
    if case.sizes[size] % of:
        raise LaunchError(
            "R0866", f"the separate kernels take {of} elements at once; {size} is not a multiple of that"
        )


# --- cublasLt -----------------------------------------------------------------------------------------------


def _lt(
    epilogue: int = EPILOGUE_DEFAULT,
    bias: int | None = None,
    added: bool = False,
    transposed: bool = False,
    a_transposed: bool = False,
    compute: int = cublas.COMPUTE_32F,
) -> Make:
    """Every algorithm of the heuristics. bias: which input it is; added: C and factors (or 1) are inputs."""

    def make(libraries: Libraries, case: Case, sets: Sequence[Operands]) -> Iterator[tuple[str, Work]]:
        first, sizes = sets[0], case.sizes
        alpha, beta = (first.inputs[3:] or (1.0, 1.0)) if added else (1.0, 0.0)
        problem = Problem(
            sizes["m"], sizes["n"], sizes["k"], alpha, beta, sizes.get("b", 1),
            transposed, epilogue, RESULTS[first.output.dtype], a_transposed, compute,
        )  # fmt: skip
        address = 0 if bias is None else first.inputs[bias].pointer
        for number, product in enumerate(libraries.cublaslt.products(problem, address)):
            yield f"heuristic {number}", Work(call_of(product))

    def call_of(product: cublaslt.Product) -> Callable[[Any, Operands], None]:
        def call(stream: Any, operands: Operands) -> None:
            a, b = (x.pointer for x in operands.inputs[:2])
            d = operands.output.pointer
            c = operands.inputs[2].pointer if added else d
            product.run(a, b, c, d, stream.handle, 0 if bias is None else operands.inputs[bias].pointer)

        return call

    return make


# --- the driver ---------------------------------------------------------------------------------------------


def memcpy(libraries: Libraries, case: Case, sets: Sequence[Operands]) -> Iterator[tuple[str, Work]]:
    def call(stream: Any, operands: Operands) -> None:
        source, target = operands.inputs[0], operands.output
        libraries.cuda.memcpy_dtod_async(target.allocation, source.allocation, target.bytes, stream)

    yield "cuMemcpyDtoDAsync", Work(call)


def memcpy_as_much(libraries: Libraries, case: Case, sets: Sequence[Operands]) -> Iterator[tuple[str, Work]]:
    """A copy that reads and writes as many bytes together as the operation, between arrays of its own."""
    copies = {id(operands): _halves(libraries.cuda, operands) for operands in sets}

    def call(stream: Any, operands: Operands) -> None:
        source, target = copies[id(operands)]
        libraries.cuda.memcpy_dtod_async(target.allocation, source.allocation, target.bytes, stream)

    yield "cuMemcpyDtoDAsync, as many bytes", Work(call, computes=False)


def _halves(cuda: Any, operands: Operands) -> tuple[DeviceArray, DeviceArray]:
    arrays = [x for x in (*operands.inputs, operands.output) if isinstance(x, DeviceArray)]
    half = (sum(array.bytes for array in arrays) // 2,)
    source, target = (DeviceArray.empty(cuda, half, np.dtype(np.uint8)) for _ in range(2))
    return source, target


def empty_launch(libraries: Libraries, case: Case, sets: Sequence[Operands]) -> Iterator[tuple[str, Work]]:
    """The least cost of a launch: an empty kernel, prepared, through pycuda. It is not checked."""
    function = libraries.probe.function("nothing").prepare("")

    def call(stream: Any, operands: Operands) -> None:
        function.prepared_async_call((1, 1), (32, 1, 1), stream)

    def check(stream: Any, operands: Operands) -> None:
        call(stream, operands)
        libraries.cuda.memcpy_dtod_async(
            operands.output.allocation, operands.inputs[0].allocation, operands.output.bytes, stream
        )

    yield "pycuda, an empty kernel", Work(call, check)


# --- which operation has which ------------------------------------------------------------------------------


def _torch(operation: str) -> Mapping[str, Make]:
    def of(mode: str | None) -> Make:
        return lambda _, case, sets: torch_baselines.variants(operation, mode, sets)

    return {
        "torch": of(None),
        "torch.compile": of("default"),
        "torch.compile max": of("max-autotune-no-cudagraphs"),
    }


def _layouts(operation: str, transposed: bool = False, a_transposed: bool = False) -> Mapping[str, Make]:
    """Of a product with operands that are stored transposed."""
    return {
        "cublas": partial(matmul, transposed=transposed, a_transposed=a_transposed),
        "cublasLt": _lt(transposed=transposed, a_transposed=a_transposed),
        **_torch(operation),
    }


def _evaluated(
    name: str, separate: Callable[..., Iterator[tuple[str, Work]]]
) -> dict[str, Mapping[str, Make]]:
    """Of an operation in all layouts."""
    return {
        name + suffix: {"separate": partial(separate, layout=layout), **_torch(name + suffix)}
        for suffix, layout in LAYOUTS.items()
    }


BASELINES: Mapping[str, Mapping[str, Make]] = {
    "gemm": {"cublas": gemm, "cublasLt": _lt(added=True), **_torch("gemm")},
    "matmul": {"cublas": matmul, "cublasLt": _lt(), **_torch("matmul")},
    "gemmBt": {
        "cublas": partial(gemm, transposed=True),
        "cublasLt": _lt(added=True, transposed=True),
        "cublas without tensor cores": partial(gemm, transposed=True, compute=cublas.COMPUTE_32F_PEDANTIC),
        **_torch("gemmBt"),
    },
    "matmulBt": _layouts("matmulBt", transposed=True),
    "matmulAt": _layouts("matmulAt", a_transposed=True),
    "matmulAtBt": _layouts("matmulAtBt", transposed=True, a_transposed=True),
    "biasRelu": {
        "separate": bias_relu_apart,
        "cublasLt": _lt(EPILOGUE_RELU_BIAS, bias=2),
        **_torch("biasRelu"),
    },
    "reluProduct": {"separate": relu_product_apart, **_torch("reluProduct")},
    "sumOfProducts": {"separate": two_products, **_torch("sumOfProducts")},
    "batchedProducts": {"cublas": batched, "cublasLt": _lt(), **_torch("batchedProducts")},
    "batchedHalf": {"cublas": batched_half, "cublasLt": _lt(), **_torch("batchedHalf")},
    "accumulated": {"cublas": gemm, "cublasLt": _lt(added=True), **_torch("accumulated")},
    "accumulatedHalf": {
        "cublas": partial(gemm, compute=cublas.COMPUTE_16F),
        "cublasLt": _lt(added=True, compute=cublas.COMPUTE_16F),
        **_torch("accumulatedHalf"),
    },
    **_evaluated("reluHalf", relu_product_apart),
    **_evaluated("biasMatrixRelu", bias_matrix_relu_apart),
    **_evaluated("twoProducts", two_products_apart),
    "copy": {"memcpy": memcpy, "empty": empty_launch, **_torch("copy")},
    "axpy": {"memcpy": memcpy_as_much, **_torch("axpy")},
    "transposition": {"memcpy": memcpy_as_much, **_torch("transposition")},
    "sum": {"memcpy": memcpy_as_much, **_torch("sum")},
    "fivePoint": {"memcpy": memcpy_as_much, **_torch("fivePoint")},
    "softmax": {"memcpy": memcpy_as_much, **_torch("softmax")},
    **{
        name: _torch(name)
        for name in (*fused.OPERATIONS, *nested.OPERATIONS, *columns.OPERATIONS, *pairs.OPERATIONS)
    },
    "biasReluHalf": {"cublasLt": _lt(EPILOGUE_RELU_BIAS, bias=2), **_torch("biasReluHalf")},
}
