"""Helpers: kernels written by hand, and how they are emulated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from codegen.emulation.compiling import compiler
from codegen.emulation.emulator import Argument, Buffer, Emulation, emulate

Array = NDArray[Any]

needs_compiler = pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler")


@pytest.fixture(autouse=True, scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of this run's own: what is tested is compiled. Modules share the emulator itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RISE_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "emulated"))
        yield


def text(parameters: str, body: str) -> str:
    """A kernel `k`. Its body starts on line 4."""
    head = f'#include "rise.cuh"\n\nextern "C" __global__ void k({parameters}) {{\n'
    return f"{head}{body.strip(chr(10))}\n}}\n"


@dataclass(frozen=True)
class Run:
    """How to launch a kernel: a few threads of one block, if nothing else is said."""

    blocks: int = 1
    threads: int = 32
    shared_bytes: int = 0

    def __call__(self, source: str, *arguments: Argument, seed: int = 0) -> Emulation:
        grid, block = (self.blocks, 1, 1), (self.threads, 1, 1)
        return emulate(source, "k", grid, block, arguments, self.shared_bytes, seed)


def floats(count: int) -> Array:
    return np.arange(count, dtype=np.float32)


def unset(count: int = 64, kind: type[np.generic] = np.float32) -> Buffer:
    return Buffer("out", np.zeros(count, kind), initialised=False)


ADD = text(
    "Global<float> out, Global<const float> x, Global<const float> y, float alpha, int n",
    """
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = alpha * x[i] + y[i];
""",
)


CONVERT = text(
    "Global<float> wide, Global<unsigned short> halves, Global<unsigned short> bfloats,"
    " Global<const half> h, Global<const float> x",
    """
  for (int i = threadIdx.x; i < 65536; i += blockDim.x) {
    wide[i] = __half2float(h[i]);
    halves[i] = __half_as_ushort(__float2half(x[i]));
    bfloats[i] = __bfloat16_as_ushort(__float2bfloat16(x[i]));
  }
""",
)

EXPRESSIONS = text(
    "Global<float> out, Global<const int> at, Global<const float> x, Global<const half> h",
    """
  const int i = threadIdx.x;
  Shared<float> tile = shared_memory<float>(128);
  Local<float, 4> row = {1.0f, 2.0f};
  Local<Local<int, 2>, 3> table;
  table[2][1] = at[i];
  row[3] = fmaxf(x[at[i]], 0.5f) + min(at[i], 3) + (at[i] > 7 ? x[i] : 0.0f);
  row[2] = row[3];
  row[2] *= 2;
  tile[i] = row[2] + expf(-x[i] * 0.0f) + table[2][1];
  __syncthreads();
  float reversed = tile[31 - i];
  reversed += __half2float(h[i]);
  Global<const float> later = x + 1;
  later += at[i];
  out[i] = reversed + *later + row[0] + __half2float(h[i]) + sqrtf(x[i] * x[i]);
""",
)

REUSE = text(
    "Global<float> out, Global<const half> x, int n",
    """
  Shared<half> tile = shared_memory<half>(0);
  Shared<float> sums = shared_memory<float>(0);
  const int t = threadIdx.y * blockDim.x + threadIdx.x;
  const int threads = blockDim.x * blockDim.y;
  float sum = 0.0f;
  tile[t] = x[t];
  for (int i = 0; i < n; i += 1) {
    __syncthreads();
    if (i + 1 < n) tile[(i + 1) % 2 * threads + t] = x[(i + 1) * threads + t];
    sum += __half2float(tile[i % 2 * threads + (t + 33) % threads]);
  }
  __syncthreads();
  sums[t] = sum;
  __syncthreads();
  for (int step = threads / 2; step > 0; step /= 2) {
    if (t < step) sums[t] += sums[t + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.y * gridDim.x + blockIdx.x] = sums[0];
""",
)


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
