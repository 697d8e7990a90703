"""Emulated fragments: right products, and a distribution that nothing may rely on."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.support.emulated import (  # noqa: F401  # a fixture
    EPILOGUE,
    LAYOUTS,
    MIXED,
    SHAPES,
    Array,
    Run,
    directory,
    floats,
    gemm,
    needs_compiler,
    text,
    unset,
)

pytestmark = needs_compiler


CASES = [
    *((SHAPES[0], layouts, np.float16, np.float32) for layouts in LAYOUTS),
    *((shape, ("row", "col"), np.float16, np.float16) for shape in SHAPES),
    *((shape, ("row", "col"), ml_dtypes.bfloat16, np.float32) for shape in SHAPES),
    (SHAPES[1], ("col", "col"), np.float16, np.float32),
    (SHAPES[2], ("row", "row"), np.float16, np.float32),
]


@pytest.mark.parametrize(("shape", "layouts", "of", "into"), CASES)
def test_gemm(shape: tuple[int, int, int], layouts: tuple[str, str], of: type, into: type) -> None:
    """32 x 48 x 64; where a shape does not divide 48 columns, its tiles leave the last out."""
    random = np.random.default_rng(1)
    a, b = random.integers(-3, 4, (32, 64)), random.integers(-3, 4, (64, 48))
    start = random.integers(-3, 4, (32, 48))
    m, n, _ = shape
    out: Array = (start if n > 8 else start.T).astype(into, order="C")
    left = a if layouts[0] == "row" else a.T
    right = b if layouts[1] == "row" else b.T
    blocks = 32 // m * (48 // n)
    source = gemm(shape, layouts, of, into)
    Run(blocks)(source, out, left.astype(of, order="C"), right.astype(of, order="C"), seed=7)
    columns = 48 // n * n
    found = out if n > 8 else out.T
    assert np.array_equal(found[:, :columns].astype(int), (a @ b + start)[:, :columns])


@pytest.mark.parametrize("seed", range(3))
def test_fragments_element_by_element(seed: int) -> None:
    x, out = floats(256).reshape(16, 16), unset(256)
    Run(shared_bytes=1024)(EPILOGUE, out, x, seed=seed)
    assert np.array_equal(out.array.reshape(16, 16), 2 * x + x.T)


PEEK = text(
    "Global<float> out, Global<const float> x",
    """
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> a;
  wmma::load_matrix_sync(a, x, 16, wmma::mem_row_major);
  for (int i = 0; i < 8; i += 1) out[threadIdx.x * 8 + i] = a.x[i];
""",
)


def test_distributions_differ_by_seed_and_not_otherwise() -> None:
    def peek(seed: int) -> list[float]:
        out = unset(256)
        Run()(PEEK, out, floats(256), seed=seed)
        assert sorted(out.array.tolist()) == list(range(256))
        return list(out.array.tolist())

    assert peek(4) == peek(4)
    assert peek(4) != peek(5)


def test_fragments_of_two_types_do_not_correspond() -> None:
    out = unset(256, np.float16)
    Run()(MIXED, out, floats(256))
    assert not np.array_equal(out.array, floats(256))
    assert np.array_equal(np.sort(out.array), floats(256))
