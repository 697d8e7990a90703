"""cuBLAS and cublasLt as the documentation has them, on host memory: column-major, f16 in, sums in f64.

What is called wrongly gives wrong numbers here, or an assertion that says what is wrong.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

TYPES: dict[int, np.dtype[Any]] = {0: np.dtype(np.float32), 2: np.dtype(np.float16)}


def pointed(reference: Any) -> Any:
    """What ctypes.byref was applied to."""
    return reference._obj


def address(pointer: Any) -> int:
    return int(pointer.value or 0) if isinstance(pointer, ctypes.c_void_p) else int(pointer or 0)


def number(reference: Any, compute: int) -> float:
    """alpha or beta: in f16 where sums are, else in f32."""
    value = pointed(reference).value
    return float(np.uint16(value).view(np.float16)) if compute == 64 else float(value)


def matrix(pointer: Any, kind: int, rows: int, columns: int, leading: int) -> np.ndarray:
    """A column-major matrix at an address; what is written to it is written to memory."""
    assert leading >= rows
    dtype = TYPES[kind]
    size = (leading * (columns - 1) + rows) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(address(pointer))
    flat = np.frombuffer(memoryview(memory), dtype)
    return np.lib.stride_tricks.as_strided(
        flat, (rows, columns), (dtype.itemsize, leading * dtype.itemsize), writeable=True
    )


def multiply(
    transposed: tuple[int, int], m: int, n: int, k: int, alpha: float, a: Any, b: Any, beta: float, c: Any,
    d: Any,
) -> np.ndarray:  # fmt: skip
    """m.n = op(a) (m.k) times op(b) (k.n), plus c, with types and leading dimensions: (pointer, type, ld)."""
    left = matrix(a[0], a[1], *((k, m) if transposed[0] else (m, k)), a[2])
    left = left.T if transposed[0] else left
    right = matrix(b[0], b[1], *((n, k) if transposed[1] else (k, n)), b[2])
    right = right.T if transposed[1] else right
    product = alpha * (left.astype(np.float64) @ right.astype(np.float64))
    if beta:
        product = product + beta * matrix(c[0], c[1], m, n, c[2]).astype(np.float64)
    return product


class HostCublas:
    """The functions of libcublas that are used."""

    def __init__(self, called: Callable[[], None] = lambda: None) -> None:
        self.stream: Any = None
        self.called = called

    def cublasCreate_v2(self, handle: Any) -> int:
        pointed(handle).value = 1234
        return 0

    def cublasGetVersion_v2(self, handle: Any, version: Any) -> int:
        pointed(version).value = 130100
        return 0

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:
        assert handle.value == 1234
        self.stream = address(stream)
        return 0

    def cublasGemmEx(self, handle: Any, transa: int, transb: int, m: int, n: int, k: int, *rest: Any) -> int:
        self.called()
        alpha, a, ta, lda, b, tb, ldb, beta, c, tc, ldc, compute, algorithm = rest
        assert compute in (64, 68, 69)
        assert algorithm == -1
        scale, offset = number(alpha, compute), number(beta, compute)
        there = (c, tc, ldc)
        sides = (a, ta, lda), (b, tb, ldb)
        result = multiply((transa, transb), m, n, k, scale, *sides, offset, there, there)
        matrix(c, tc, m, n, ldc)[:] = result
        return 0

    def cublasGemmStridedBatchedEx(
        self, handle: Any, transa: int, transb: int, m: int, n: int, k: int, *rest: Any
    ) -> int:
        alpha, a, ta, lda, sa, b, tb, ldb, sb, beta, c, tc, ldc, sc, batch, compute, algorithm = rest
        assert (transa, transb, compute, algorithm) == (0, 0, compute, -1)
        assert (compute, number(alpha, compute), number(beta, compute)) in ((64, 1, 0), (68, 1, 0))
        for i in range(batch):
            each = [
                (address(p) + i * stride * TYPES[kind].itemsize, kind, leading)
                for p, stride, kind, leading in ((a, sa, ta, lda), (b, sb, tb, ldb), (c, sc, tc, ldc))
            ]
            result = multiply((0, 0), m, n, k, 1.0, each[0], each[1], 0.0, None, None)
            matrix(*each[2][:2], m, n, ldc)[:] = result
        return 0


@dataclass
class HostLt:
    """The functions of libcublasLt that are used; objects have numbers, attributes are bytes."""

    objects: dict[int, dict[str, Any]] = field(default_factory=dict)
    algorithms: int = 3
    workspace: int = 32 * 2**20

    def _new(self, pointer: Any, kind: str, **content: Any) -> int:
        number = 1000 + len(self.objects)
        self.objects[number] = {"kind": kind, "set": {}, **content}
        pointed(pointer).value = number
        return 0

    def _set(
        self, owner: Any, kind: str, sizes: dict[int, int], attribute: int, value: Any, size: int
    ) -> int:
        found = self.objects[owner.value]
        assert found["kind"] == kind
        if sizes.get(attribute) != size:
            return 7
        raw = ctypes.string_at(ctypes.addressof(pointed(value)), size)
        found["set"][attribute] = int.from_bytes(raw, "little", signed=True)
        return 0

    def cublasLtCreate(self, handle: Any) -> int:
        return self._new(handle, "handle")

    def cublasLtMatmulDescCreate(self, pointer: Any, compute: int, scale: int) -> int:
        assert (compute, scale) in ((68, 0), (64, 2))
        return self._new(pointer, "operation", compute=compute)

    def cublasLtMatmulDescSetAttribute(self, owner: Any, attribute: int, value: Any, size: int) -> int:
        return self._set(owner, "operation", {3: 4, 4: 4, 7: 4, 8: 8, 26: 4}, attribute, value, size)

    def cublasLtMatrixLayoutCreate(
        self, pointer: Any, kind: int, rows: int, columns: int, leading: int
    ) -> int:
        return self._new(pointer, "layout", type=kind, rows=rows, columns=columns, leading=leading)

    def cublasLtMatrixLayoutSetAttribute(self, owner: Any, attribute: int, value: Any, size: int) -> int:
        return self._set(owner, "layout", {5: 4, 6: 8}, attribute, value, size)

    def cublasLtMatmulPreferenceCreate(self, pointer: Any) -> int:
        return self._new(pointer, "preference")

    def cublasLtMatmulPreferenceSetAttribute(self, owner: Any, attribute: int, value: Any, size: int) -> int:
        return self._set(owner, "preference", {1: 8}, attribute, value, size)

    def cublasLtMatmulPreferenceDestroy(self, preference: Any) -> int:
        assert self.objects[preference.value]["kind"] == "preference"
        return 0

    def cublasLtMatmulAlgoGetHeuristic(
        self, handle: Any, operation: Any, a: Any, b: Any, c: Any, d: Any, preference: Any, *rest: Any
    ) -> int:
        wanted, results, count = rest
        self._kinds(handle, operation, a, b, c, d)
        assert self.objects[preference.value]["set"] == {1: self.workspace}
        given = min(wanted, self.algorithms)
        for i in range(given):
            results[i].algorithm.data[0] = 70 + i
            results[i].workspace_size = 0
            results[i].state = 15 if i == 1 else 0  # the second is said not to work
        pointed(count).value = given
        return 0

    def _kinds(self, handle: Any, operation: Any, *layouts: Any) -> None:
        assert self.objects[handle.value]["kind"] == "handle"
        assert self.objects[operation.value]["kind"] == "operation"
        assert all(self.objects[layout.value]["kind"] == "layout" for layout in layouts)

    def cublasLtMatmul(self, handle: Any, operation: Any, alpha: Any, a: Any, la: Any, *rest: Any) -> int:
        b, lb, beta, c, lc, d, ld, algorithm, workspace, size, stream = rest
        self._kinds(handle, operation, la, lb, lc, ld)
        assert pointed(algorithm).data[0] in range(70, 70 + self.algorithms)
        assert (bool(workspace), size, isinstance(stream, int)) == (True, self.workspace, True)
        options = self.objects[operation.value]["set"]
        left, right, result = (self.objects[layout.value] for layout in (la, lb, ld))
        transposed, epilogue = (options[3], options[4]), options.get(7, 1)
        m, n, k = result["rows"], result["columns"], right["columns" if transposed[1] else "rows"]
        assert left["rows" if transposed[0] else "columns"] == k
        assert left["columns" if transposed[0] else "rows"] == m
        assert right["rows" if transposed[1] else "columns"] == n
        for i in range(result["set"].get(5, 1)):
            places = [
                (address(p) + i * layout["set"].get(6, 0) * TYPES[layout["type"]].itemsize, layout)
                for p, layout in ((a, left), (b, right), (c, result), (d, result))
            ]
            each = [(place, layout["type"], layout["leading"]) for place, layout in places]
            compute = self.objects[operation.value]["compute"]
            scale, offset = number(alpha, compute), number(beta, compute)
            found = multiply(transposed, m, n, k, scale, each[0], each[1], offset, each[2], each[3])
            if epilogue & 4:
                assert options[26] == 0
                found = found + matrix(options[8], 0, m, 1, m)
            if epilogue & 2:
                found = np.maximum(found, 0)
            matrix(*each[3][:2], m, n, each[3][2])[:] = found
        return 0
