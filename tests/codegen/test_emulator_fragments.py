"""Emulated fragments: right products, and a distribution that nothing may rely on."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.support.emulated import Array, Run, directory, floats, needs_compiler, text, unset  # noqa: F401  # a fixture

pytestmark = needs_compiler

SHAPES = [(16, 16, 16), (32, 8, 16), (8, 32, 16)]
LAYOUTS = [("row", "row"), ("row", "col"), ("col", "row"), ("col", "col")]
NAMES = {np.float16: "half", ml_dtypes.bfloat16: "bfloat16", np.float32: "float"}


def gemm(shape: tuple[int, int, int], layouts: tuple[str, str], of: type, into: type) -> str:
    """A warp a tile: out += A B for A of 32 x 64 and B of 64 x 48, of any two layouts.

    A tile that is 8 elements wide has to be contiguous the other way to be aligned.
    """
    m, n, k = shape
    a, b = layouts
    size = f"{m}, {n}, {k}"
    a_offset = "row * 64 + k" if a == "row" else "k * 32 + row"
    b_offset = "k * 48 + column" if b == "row" else "column * 64 + k"
    out_offset = "row * 48 + column" if n > 8 else "column * 32 + row"
    order = "48, wmma::mem_row_major" if n > 8 else "32, wmma::mem_col_major"
    return text(
        f"Global<{NAMES[into]}> out, Global<const {NAMES[of]}> A, Global<const {NAMES[of]}> B",
        f"""
  const int row = blockIdx.x / {48 // n} * {m};
  const int column = blockIdx.x % {48 // n} * {n};
  wmma::fragment<wmma::matrix_a, {size}, {NAMES[of]}, wmma::{a}_major> a;
  wmma::fragment<wmma::matrix_b, {size}, {NAMES[of]}, wmma::{b}_major> b;
  wmma::fragment<wmma::accumulator, {size}, {NAMES[into]}> sum;
  wmma::load_matrix_sync(sum, out + ({out_offset}), {order});
  for (int k = 0; k < 64; k += 16) {{
    wmma::load_matrix_sync(a, A + ({a_offset}), {64 if a == "row" else 32});
    wmma::load_matrix_sync(b, B + ({b_offset}), {48 if b == "row" else 64});
    wmma::mma_sync(sum, a, b, sum);
  }}
  wmma::store_matrix_sync(out + ({out_offset}), sum, {order});
""",
    )


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


EPILOGUE = text(
    "Global<float> out, Global<const float> x",
    """
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> a;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> b;
  Shared<float> tile = shared_memory<float>(0);
  for (int i = threadIdx.x; i < 256; i += 32) tile[i] = x[i];
  __syncwarp();
  wmma::load_matrix_sync(a, tile, 16, wmma::mem_row_major);
  wmma::load_matrix_sync(b, x, 16, wmma::mem_col_major);
  for (int i = 0; i < a.num_elements; i += 1) a.x[i] = 2.0f * a.x[i] + b.x[i];
  wmma::store_matrix_sync(out, a, 16, wmma::mem_row_major);
""",
)


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


MIXED = text(
    "Global<half> out, Global<const float> x",
    """
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> wide;
  wmma::fragment<wmma::accumulator, 16, 16, 16, half> narrow;
  wmma::load_matrix_sync(wide, x, 16, wmma::mem_row_major);
  for (int i = 0; i < wide.num_elements; i += 1) narrow.x[i] = __float2half(wide.x[i]);
  wmma::store_matrix_sync(out, narrow, 16, wmma::mem_row_major);
""",
)


def test_fragments_of_two_types_do_not_correspond() -> None:
    out = unset(256, np.float16)
    Run()(MIXED, out, floats(256))
    assert not np.array_equal(out.array, floats(256))
    assert np.array_equal(np.sort(out.array), floats(256))
