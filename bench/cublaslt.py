"""cublasLt through ctypes: all algorithms that its heuristics propose for a product, with fused epilogues.

Constants and layouts as in cublasLt.h of CUDA 12 and 13. Row-major matrices are passed as their transposes,
as in `cublas`: Dᵀ = Bᵀ · Aᵀ, where a bias for each column of D is one for each row of Dᵀ, as cublasLt has it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

from bench.cublas import (
    COMPUTE_16F,
    COMPUTE_32F,
    NORMAL,
    R_16F,
    R_32F,
    TRANSPOSED,
    check,
    declared,
    factor,
    load,
)
from rise.errors import LaunchError

# cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t, cublasLtMatmulPreferenceAttributes_t
DESC_TRANSA, DESC_TRANSB, DESC_EPILOGUE, DESC_BIAS_POINTER, DESC_BIAS_DATA_TYPE = 3, 4, 7, 8, 26
LAYOUT_BATCH_COUNT, LAYOUT_STRIDED_BATCH_OFFSET = 5, 6
PREF_MAX_WORKSPACE_BYTES = 1
# cublasLtEpilogue_t
EPILOGUE_DEFAULT, EPILOGUE_RELU, EPILOGUE_BIAS = 1, 2, 4
EPILOGUE_RELU_BIAS = EPILOGUE_RELU | EPILOGUE_BIAS

HEURISTICS = 16
WORKSPACE = 32 * 2**20  # bytes

Pointer, Enum = ctypes.c_void_p, ctypes.c_int
Value = ctypes.c_int32 | ctypes.c_uint32 | ctypes.c_int64 | ctypes.c_uint64 | ctypes.c_void_p


class Algorithm(ctypes.Structure):
    """cublasLtMatmulAlgo_t: 64 bytes that only the library reads."""

    _fields_ = [("data", ctypes.c_uint64 * 8)]


class HeuristicResult(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t: 96 bytes."""

    _fields_ = [
        ("algorithm", Algorithm),
        ("workspace_size", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves_count", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    ]


SIGNATURES: dict[str, list[type]] = {
    "cublasLtCreate": [Pointer],
    "cublasLtMatmulDescCreate": [Pointer, Enum, Enum],
    "cublasLtMatmulDescDestroy": [Pointer],
    "cublasLtMatmulDescSetAttribute": [Pointer, Enum, Pointer, ctypes.c_size_t],
    "cublasLtMatrixLayoutCreate": [Pointer, Enum, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64],
    "cublasLtMatrixLayoutDestroy": [Pointer],
    "cublasLtMatrixLayoutSetAttribute": [Pointer, Enum, Pointer, ctypes.c_size_t],
    "cublasLtMatmulPreferenceCreate": [Pointer],
    "cublasLtMatmulPreferenceDestroy": [Pointer],
    "cublasLtMatmulPreferenceSetAttribute": [Pointer, Enum, Pointer, ctypes.c_size_t],
    # handle, operation, layouts of A B C D, preference, how many are wanted, results, how many there are
    "cublasLtMatmulAlgoGetHeuristic": [Pointer] * 7 + [ctypes.c_int, Pointer, Pointer],
    # handle, operation, alpha, A, layout, B, layout, beta, C, layout, D, layout, algorithm, workspace, its
    # size, stream
    "cublasLtMatmul": [Pointer] * 14 + [ctypes.c_size_t, Pointer],
}


@dataclass(frozen=True)
class Problem:
    """D = epilogue(alpha * A * B + beta * C): m.k.f16, k.n.f16 (k.m, n.k if transposed), m.n of `result`."""

    m: int
    n: int
    k: int
    alpha: float = 1.0
    beta: float = 0.0
    batch: int = 1
    b_transposed: bool = False
    epilogue: int = EPILOGUE_DEFAULT
    result: int = R_32F
    a_transposed: bool = False
    compute: int = COMPUTE_32F


class Lt:
    """A handle and its workspace, given by its address, of WORKSPACE bytes."""

    def __init__(self, workspace: int, library: ctypes.CDLL | None = None) -> None:
        self.library = library or declared(load("cublasLt"), SIGNATURES)
        self.workspace = workspace
        self.handle = self.created("cublasLtCreate")

    def call(self, name: str, *arguments: object) -> None:
        check(getattr(self.library, name)(*arguments), f"cublasLt ({name})")

    def created(self, name: str, *arguments: object) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self.call(name, ctypes.byref(made), *arguments)
        return made

    def set(self, name: str, owner: ctypes.c_void_p, attribute: int, value: Value) -> None:
        self.call(name, owner, attribute, ctypes.byref(value), ctypes.sizeof(value))

    def products(self, problem: Problem, bias: int = 0) -> list[Product]:
        """The product by each algorithm that the heuristics propose, the one they think best first.

        bias: its address, of the type of D, one for each column of D, where the epilogue adds one
        LaunchError R0863 where they propose none.
        """
        operation = self._operation(problem, bias)
        left, right, result = self._layouts(problem)
        preference = self.created("cublasLtMatmulPreferenceCreate")
        setting = "cublasLtMatmulPreferenceSetAttribute"
        self.set(setting, preference, PREF_MAX_WORKSPACE_BYTES, ctypes.c_uint64(WORKSPACE))
        results, count = (HeuristicResult * HEURISTICS)(), ctypes.c_int()
        try:
            self.call(
                "cublasLtMatmulAlgoGetHeuristic", self.handle, operation, left, right, result, result,
                preference, HEURISTICS, results, ctypes.byref(count),
            )  # fmt: skip
        finally:
            self.call("cublasLtMatmulPreferenceDestroy", preference)
        found = [r.algorithm for r in results[: count.value] if r.state == 0]
        if not found:
            raise LaunchError("R0863", f"cublasLt has no algorithm for {problem}")
        return [Product(self, problem, operation, (left, right, result), algorithm) for algorithm in found]

    def _operation(self, problem: Problem, bias: int) -> ctypes.c_void_p:
        factors = R_16F if problem.compute == COMPUTE_16F else R_32F
        made = self.created("cublasLtMatmulDescCreate", problem.compute, factors)
        set_ = self._setter("cublasLtMatmulDescSetAttribute", made)
        set_(DESC_TRANSA, ctypes.c_int32(TRANSPOSED if problem.b_transposed else NORMAL))
        set_(DESC_TRANSB, ctypes.c_int32(TRANSPOSED if problem.a_transposed else NORMAL))
        set_(DESC_EPILOGUE, ctypes.c_uint32(problem.epilogue))
        if problem.epilogue & EPILOGUE_BIAS:
            set_(DESC_BIAS_DATA_TYPE, ctypes.c_int32(problem.result))
            set_(DESC_BIAS_POINTER, ctypes.c_void_p(bias))
        return made

    def _layouts(self, p: Problem) -> tuple[ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]:
        """Of Bᵀ, Aᵀ and Dᵀ: rows, columns, leading dimension, all column-major."""
        right = (p.k, p.n, p.k) if p.b_transposed else (p.n, p.k, p.n)
        left = (p.m, p.k, p.m) if p.a_transposed else (p.k, p.m, p.k)
        return (
            self._layout(R_16F, *right, p.batch),
            self._layout(R_16F, *left, p.batch),
            self._layout(p.result, p.n, p.m, p.n, p.batch),
        )

    def _layout(self, kind: int, rows: int, columns: int, leading: int, batch: int) -> ctypes.c_void_p:
        made = self.created("cublasLtMatrixLayoutCreate", kind, rows, columns, leading)
        if batch > 1:
            set_ = self._setter("cublasLtMatrixLayoutSetAttribute", made)
            set_(LAYOUT_BATCH_COUNT, ctypes.c_int32(batch))
            set_(LAYOUT_STRIDED_BATCH_OFFSET, ctypes.c_int64(rows * columns))
        return made

    def _setter(self, name: str, owner: ctypes.c_void_p) -> Callable[[int, Value], None]:
        return lambda attribute, value: self.set(name, owner, attribute, value)


@dataclass(frozen=True)
class Product:
    """One algorithm for a problem."""

    lt: Lt
    problem: Problem
    operation: ctypes.c_void_p
    layouts: tuple[ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    algorithm: Algorithm

    def run(self, a: int, b: int, c: int, d: int, stream: int, bias: int = 0) -> None:
        """Addresses of A, B, C and D (which may be C) on the GPU, and of the bias where there is one."""
        if self.problem.epilogue & EPILOGUE_BIAS:
            address = ctypes.c_void_p(bias)
            self.lt.set("cublasLtMatmulDescSetAttribute", self.operation, DESC_BIAS_POINTER, address)
        left, right, result = self.layouts
        alpha, beta = (factor(x, self.problem.compute) for x in (self.problem.alpha, self.problem.beta))
        self.lt.call(
            "cublasLtMatmul", self.lt.handle, self.operation, ctypes.byref(alpha), b, left, a, right,
            ctypes.byref(beta), c, result, d, result, ctypes.byref(self.algorithm),
            self.lt.workspace, WORKSPACE, stream,
        )  # fmt: skip
