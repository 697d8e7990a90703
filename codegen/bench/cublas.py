"""cuBLAS through ctypes: the one call that the benchmark compares with."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from rise.errors import LaunchError

# values of cudaDataType_t, cublasComputeType_t and cublasOperation_t
R_16F, R_32F = 2, 0
COMPUTE_32F = 68
NORMAL, TRANSPOSED = 0, 1
DEFAULT_ALGORITHM = -1


def _candidates() -> Iterator[str]:
    if found := ctypes.util.find_library("cublas"):
        yield found
    yield from ("libcublas.so.13", "libcublas.so.12", "libcublas.so")
    spec = find_spec("nvidia")
    for location in (spec.submodule_search_locations or []) if spec else []:
        yield from (str(p) for p in sorted(Path(location).glob("*/lib/libcublas.so.*")))
    yield from (str(p) for p in sorted(Path("/usr/local/cuda/lib64").glob("libcublas.so.*")))


class Cublas:
    """A handle. D = alpha * A * B + beta * D for row-major matrices, f16 in, f32 out, sums in f32."""

    def __init__(self) -> None:
        self.library = _load()
        self.handle = ctypes.c_void_p()
        self._check(self.library.cublasCreate_v2(ctypes.byref(self.handle)))

    @property
    def version(self) -> int:
        number = ctypes.c_int()
        self._check(self.library.cublasGetVersion_v2(self.handle, ctypes.byref(number)))
        return number.value

    def _check(self, status: int) -> None:
        if status:
            raise LaunchError("R0827", f"cuBLAS returned status {status}")

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
        b_transposed: bool = False,
    ) -> None:
        """Pointers to A (m.k.f16), B (k.n.f16, or n.k.f16 if transposed) and D (m.n.f32) on the GPU.

        cuBLAS is column-major: a row-major D is its transpose, so the product is taken as B^T A^T.
        """
        scale, offset = ctypes.c_float(alpha), ctypes.c_float(beta)
        operation, leading = (TRANSPOSED, k) if b_transposed else (NORMAL, n)
        self._check(
            self.library.cublasGemmEx(
                self.handle,
                operation,
                NORMAL,
                n,
                m,
                k,
                ctypes.byref(scale),
                ctypes.c_void_p(b),
                R_16F,
                leading,
                ctypes.c_void_p(a),
                R_16F,
                k,
                ctypes.byref(offset),
                ctypes.c_void_p(d),
                R_32F,
                n,
                COMPUTE_32F,
                DEFAULT_ALGORITHM,
            )  # fmt: skip
        )


def _load() -> ctypes.CDLL:
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise LaunchError(
        "R0828", "cuBLAS is not installed", hint="it comes with the CUDA toolkit and with torch"
    )
