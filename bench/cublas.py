"""cuBLAS through ctypes: what benchmarks compare with. Row-major matrices, f16 in, sums in f32 or f16.

cuBLAS is column-major: a row-major matrix is its transpose, so D = A · B is taken as Dᵀ = Bᵀ · Aᵀ.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from rise.errors import LaunchError

# cudaDataType_t, cublasComputeType_t, cublasOperation_t, cublasGemmAlgo_t
R_32F, R_16F = 0, 2
COMPUTE_16F, COMPUTE_32F, COMPUTE_32F_PEDANTIC = 64, 68, 69  # the last of these: without tensor cores
NORMAL, TRANSPOSED = 0, 1
DEFAULT_ALGORITHM = -1
STATUS = {
    1: "NOT_INITIALIZED", 3: "ALLOC_FAILED", 7: "INVALID_VALUE", 8: "ARCH_MISMATCH", 11: "MAPPING_ERROR",
    13: "EXECUTION_FAILED", 14: "INTERNAL_ERROR", 15: "NOT_SUPPORTED", 16: "LICENSE_ERROR",
}  # fmt: skip

Pointer, Int, Long, Enum = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong, ctypes.c_int
# a matrix: its address, type, leading dimension; a batch of them: a stride as well
_MATRIX: list[type] = [Pointer, Enum, Int]
_MATRICES = [*_MATRIX, Long]
# handle, transa, transb, m, n, k
_SHAPE: list[type] = [Pointer, Enum, Enum, Int, Int, Int]
SIGNATURES: dict[str, list[type]] = {
    "cublasCreate_v2": [Pointer],
    "cublasDestroy_v2": [Pointer],
    "cublasGetVersion_v2": [Pointer, Pointer],
    "cublasSetStream_v2": [Pointer, Pointer],
    # shape, alpha, A, B, beta, C, (batch,) compute type, algorithm
    "cublasGemmEx": [*_SHAPE, Pointer, *_MATRIX, *_MATRIX, Pointer, *_MATRIX, Enum, Enum],
    "cublasGemmStridedBatchedEx": [
        *_SHAPE, Pointer, *_MATRICES, *_MATRICES, Pointer, *_MATRICES, Int, Enum, Enum,
    ],
}  # fmt: skip


class Cublas:
    """A handle. D = alpha * A * B + beta * D, for f16 A and B and f32 (or f16) D."""

    def __init__(self, library: ctypes.CDLL | None = None) -> None:
        self.library = library or declared(load("cublas"), SIGNATURES)
        self.handle = ctypes.c_void_p()
        self._check(self.library.cublasCreate_v2(ctypes.byref(self.handle)))

    @property
    def version(self) -> int:
        number = ctypes.c_int()
        self._check(self.library.cublasGetVersion_v2(self.handle, ctypes.byref(number)))
        return number.value

    def _check(self, status: int) -> None:
        check(status, "cuBLAS")

    def on(self, stream: int) -> None:
        """Further calls go to that stream."""
        self._check(self.library.cublasSetStream_v2(self.handle, ctypes.c_void_p(stream)))

    def gemm(
        self,
        m: int,
        n: int,
        k: int,
        alpha: float,
        a: int,
        b: int,
        beta: float,
        d: int,
        *,
        a_transposed: bool = False,
        b_transposed: bool = False,
        result: int = R_32F,
        compute: int = COMPUTE_32F,
    ) -> None:
        """Pointers to A (m.k.f16, or k.m.f16), B (k.n.f16, or n.k.f16 if transposed), D on the GPU."""
        scale, offset = factor(alpha, compute), factor(beta, compute)
        of_b, b_leading = (TRANSPOSED, k) if b_transposed else (NORMAL, n)
        of_a, a_leading = (TRANSPOSED, m) if a_transposed else (NORMAL, k)
        status = self.library.cublasGemmEx(
            self.handle, of_b, of_a, n, m, k,
            ctypes.byref(scale), b, R_16F, b_leading, a, R_16F, a_leading,
            ctypes.byref(offset), d, result, n, compute, DEFAULT_ALGORITHM,
        )  # fmt: skip
        self._check(status)

    def batched(
        self,
        batch: int,
        m: int,
        n: int,
        k: int,
        a: int,
        b: int,
        d: int,
        *,
        result: int = R_32F,
        compute: int = COMPUTE_32F,
    ) -> None:
        """D = A * B for each of a batch: pointers to A (batch.m.k), B (batch.k.n), D (batch.m.n)."""
        one, zero = factor(1, compute), factor(0, compute)
        status = self.library.cublasGemmStridedBatchedEx(
            self.handle, NORMAL, NORMAL, n, m, k,
            ctypes.byref(one), b, R_16F, n, k * n, a, R_16F, k, m * k,
            ctypes.byref(zero), d, result, n, m * n, batch, compute, DEFAULT_ALGORITHM,
        )  # fmt: skip
        self._check(status)


def factor(value: float, compute: int) -> Any:
    """alpha or beta, in the type of the sums."""
    if compute == COMPUTE_16F:
        return ctypes.c_uint16(int(np.float16(value).view(np.uint16)))
    return ctypes.c_float(value)


# --- the library ----------------------------------------------------------------------------------------


def check(status: int, library: str) -> None:
    if status:
        name = STATUS.get(status, "unknown")
        raise LaunchError("R0827", f"{library} returned status {status} ({name})")


def declared(library: ctypes.CDLL, signatures: dict[str, list[type]]) -> ctypes.CDLL:
    """The library with the types of its functions' parameters; all return a status."""
    for name, parameters in signatures.items():
        function = getattr(library, name)
        function.argtypes, function.restype = parameters, ctypes.c_int
    return library


def candidates(name: str) -> Iterator[str]:
    """Where a library of the toolkit may be: in the system, in the packages of pip, in the usual place."""
    if found := ctypes.util.find_library(name):
        yield found
    yield from (f"lib{name}.so.13", f"lib{name}.so.12", f"lib{name}.so")
    spec = find_spec("nvidia")
    for location in (spec.submodule_search_locations or []) if spec else []:
        yield from (str(p) for p in sorted(Path(location).glob(f"*/lib/lib{name}.so.*")))
    yield from (str(p) for p in sorted(Path("/usr/local/cuda/lib64").glob(f"lib{name}.so.*")))


def load(name: str) -> ctypes.CDLL:
    for path in candidates(name):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise LaunchError(
        "R0828", f"the library {name} is not installed", hint="it comes with the CUDA toolkit and with torch"
    )
