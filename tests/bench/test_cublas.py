"""Row-major products through column-major libraries: against NumPy, by libraries that work on host memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from bench import cublas, cublaslt
from bench.cublas import Cublas
from bench.cublaslt import (
    EPILOGUE_BIAS,
    EPILOGUE_RELU,
    EPILOGUE_RELU_BIAS,
    Algorithm,
    HeuristicResult,
    Lt,
    Problem,
)
from rise.errors import LaunchError
from tests.bench.host_blas import HostCublas, HostLt

SHAPES = [(1, 1, 1), (7, 5, 3), (16, 32, 8)]


def whole(*shape: int, dtype: str = "f2", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).integers(-4, 5, shape).astype(dtype)


def at(array: np.ndarray) -> int:
    return int(array.ctypes.data)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


# --- as the headers have it -----------------------------------------------------------------------------


def test_structures_have_the_sizes_and_places_of_the_header() -> None:
    assert ctypes.sizeof(Algorithm) == 64
    assert ctypes.sizeof(HeuristicResult) == 96
    offsets = [getattr(HeuristicResult, name).offset for name, *_ in HeuristicResult._fields_]
    assert offsets == [0, 64, 72, 76, 80]


@pytest.mark.parametrize(
    ("module", "name", "count"),
    [
        (cublas, "cublasGemmEx", 19),
        (cublas, "cublasGemmStridedBatchedEx", 23),
        (cublaslt, "cublasLtMatmul", 16),
        (cublaslt, "cublasLtMatmulAlgoGetHeuristic", 10),
        (cublaslt, "cublasLtMatrixLayoutCreate", 5),
        (cublaslt, "cublasLtMatmulDescSetAttribute", 4),
    ],
)
def test_functions_have_as_many_parameters_as_in_the_header(module: object, name: str, count: int) -> None:
    assert len(module.SIGNATURES[name]) == count  # type: ignore[attr-defined]


def checked_by_ctypes(library: object, signatures: dict[str, list[type]]) -> object:
    """The library behind ctypes' own checks of number and types of arguments."""

    class Checked:
        def __getattr__(self, name: str) -> Callable[..., int]:
            inner: Callable[..., int] = getattr(library, name)
            parameters = signatures[name]

            def call(*arguments: object) -> int:
                assert len(arguments) == len(parameters), name
                for parameter, argument in zip(parameters, arguments, strict=True):
                    parameter.from_param(argument)  # type: ignore[attr-defined]
                return inner(*arguments)

            return call

    return Checked()


@pytest.fixture
def blas() -> Cublas:
    return Cublas(checked_by_ctypes(HostCublas(), cublas.SIGNATURES))  # type: ignore[arg-type]


WORKSPACE = np.zeros(16, np.uint8)


@pytest.fixture
def lt() -> Lt:
    return Lt(at(WORKSPACE), checked_by_ctypes(HostLt(), cublaslt.SIGNATURES))  # type: ignore[arg-type]


# --- cublasGemmEx -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("a_transposed", [False, True])
@pytest.mark.parametrize("kind", ["f4", "f2"])
def test_gemm(blas: Cublas, m: int, n: int, k: int, transposed: bool, a_transposed: bool, kind: str) -> None:
    a, b, d = whole(m, k), whole(k, n, seed=1), whole(m, n, dtype=kind, seed=2)
    wanted = 1.5 * product(a, b) + 0.5 * d
    given = np.ascontiguousarray(b.T) if transposed else b
    left = np.ascontiguousarray(a.T) if a_transposed else a
    result = {"f4": cublas.R_32F, "f2": cublas.R_16F}[kind]
    blas.on(77)
    layouts = {"a_transposed": a_transposed, "b_transposed": transposed}
    blas.gemm(m, n, k, 1.5, at(left), at(given), 0.5, at(d), **layouts, result=result)
    assert np.array_equal(d, wanted)
    assert blas.version == 130100


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_batched(blas: Cublas, m: int, n: int, k: int) -> None:
    a, b, d = whole(3, m, k), whole(3, k, n, seed=1), np.full((3, m, n), np.nan, np.float32)
    blas.batched(3, m, n, k, at(a), at(b), at(d))
    assert np.array_equal(d, product(a, b))


def test_a_status_is_an_error_with_its_name() -> None:
    with pytest.raises(LaunchError, match=r"R0827.*15 \(NOT_SUPPORTED\)"):
        cublas.check(15, "cuBLAS")


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublas, "candidates", lambda name: iter([f"lib{name}.so.none"]))
    with pytest.raises(LaunchError, match="R0828.*cublasLt"):
        cublas.load("cublasLt")


# --- cublasLt ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("a_transposed", [False, True])
def test_every_algorithm_that_works_multiplies(
    lt: Lt, m: int, n: int, k: int, transposed: bool, a_transposed: bool
) -> None:
    a, b, c = whole(m, k), whole(k, n, seed=1), whole(m, n, dtype="f4", seed=2)
    given = np.ascontiguousarray(b.T) if transposed else b
    left = np.ascontiguousarray(a.T) if a_transposed else a
    wanted = Problem(m, n, k, 1.5, 0.5, b_transposed=transposed, a_transposed=a_transposed)
    products = lt.products(wanted)
    assert [p.algorithm.data[0] for p in products] == [70, 72]
    for each in products:
        d = np.full((m, n), np.nan, np.float32)
        each.run(at(left), at(given), at(c), at(d), 5)
        assert np.array_equal(d, 1.5 * product(a, b) + 0.5 * c)


def test_sums_in_half_precision_take_factors_in_half_precision(lt: Lt) -> None:
    a, b, c = whole(7, 3), whole(3, 5, seed=1), whole(7, 5, seed=2)
    wanted = Problem(7, 5, 3, 1.5, 0.5, result=cublas.R_16F, compute=cublas.COMPUTE_16F)
    d = np.full((7, 5), np.nan, np.float16)
    lt.products(wanted)[0].run(at(a), at(b), at(c), at(d), 5)
    assert np.array_equal(d, 1.5 * product(a, b) + 0.5 * c)


@pytest.mark.parametrize("epilogue", [EPILOGUE_BIAS, EPILOGUE_RELU, EPILOGUE_RELU_BIAS])
def test_epilogues(lt: Lt, epilogue: int) -> None:
    m, n, k = 7, 5, 3
    a, b, bias, other = whole(m, k), whole(k, n, seed=1), whole(n, dtype="f4"), whole(n, dtype="f4", seed=9)
    each = lt.products(Problem(m, n, k, epilogue=epilogue), at(other))[0]
    d = np.full((m, n), np.nan, np.float32)
    each.run(at(a), at(b), at(d), at(d), 5, at(bias))
    wanted = product(a, b) + (bias if epilogue & EPILOGUE_BIAS else 0)
    assert np.array_equal(d, np.maximum(wanted, 0) if epilogue & EPILOGUE_RELU else wanted)


def test_batches(lt: Lt) -> None:
    a, b, d = whole(3, 7, 4), whole(3, 4, 5, seed=1), np.full((3, 7, 5), np.nan, np.float32)
    lt.products(Problem(7, 5, 4, batch=3))[0].run(at(a), at(b), at(d), at(d), 5)
    assert np.array_equal(d, product(a, b))


def test_a_product_for_which_there_is_no_algorithm_is_named() -> None:
    lt = Lt(at(WORKSPACE), HostLt(algorithms=0))  # type: ignore[arg-type]
    with pytest.raises(LaunchError, match="R0863.*m=7"):
        lt.products(Problem(7, 5, 3))


def test_an_attribute_of_another_size_is_refused(lt: Lt) -> None:
    """As the library does it: so sizes of attributes are tested by all tests above."""
    with pytest.raises(LaunchError, match="INVALID_VALUE"):
        lt.set("cublasLtMatmulDescSetAttribute", lt._operation(Problem(1, 1, 1), 0), 7, ctypes.c_uint64(1))
