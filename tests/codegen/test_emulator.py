"""The emulator: right kernels give right numbers for every seed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

from codegen.emulation.emulator import Buffer, Scalar, emulate
from tests.support.emulated import ADD, Array, Run, directory, floats, needs_compiler, text, unset  # noqa: F401  # a fixture

pytestmark = needs_compiler


@pytest.mark.parametrize("seed", [0, 1, 2**63 + 5])
def test_vector_add(seed: int) -> None:
    out = unset(100)
    Run(blocks=4)(ADD, out, floats(100), floats(100), 2, Scalar("n", np.int32(100)), seed=seed)
    assert np.array_equal(out.array, 3 * np.arange(100))


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


@pytest.mark.parametrize("scale", [0, -30, -14, 14])
def test_conversions_agree_with_numpy(scale: int) -> None:
    """All halves; floats of random bits, and of sizes where halves are subnormal or overflow."""
    random = np.random.default_rng(2)
    x = random.integers(0, 2**32, 65536, dtype=np.uint32).view(np.float32)
    if scale:
        x = (random.standard_normal(65536) * 2.0**scale).astype(np.float32)
        x[:2048] = (np.arange(2048) + 0.5) * np.float32(2.0**-24)  # ties
    h = np.arange(65536, dtype=np.uint16).view(np.float16)
    wide = np.zeros(65536, np.float32)
    halves, bfloats = np.zeros(65536, np.uint16), np.zeros(65536, np.uint16)
    Run()(CONVERT, wide, halves, bfloats, h, x)
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.array_equal(wide, h.astype(np.float32), equal_nan=True)
        assert same_bits(halves.view(np.float16), x.astype(np.float16))
        assert same_bits(bfloats.view(ml_dtypes.bfloat16), x.astype(ml_dtypes.bfloat16))


def same_bits(left: Array, right: Array) -> bool:
    """Equal, with the sign of zeros; all NaNs are one."""
    equal = left.view(np.uint16) == right.view(np.uint16)
    return bool(np.all(equal | (np.isnan(left) & np.isnan(right))))


ARITHMETIC = text(
    "Global<half> out, Global<const half> x, Global<const half> y",
    """
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
    half sum = x[i] + y[i];
    half product = x[i] * y[i];
    sum += product;
    out[i] = sum / y[i] - __hfma(x[i], y[i], x[i]);
  }
""",
)


def test_half_arithmetic_rounds_each_operation() -> None:
    random = np.random.default_rng(3)
    x, y = (random.standard_normal(1024).astype(np.float16) for _ in range(2))
    out = np.zeros(1024, np.float16)
    Run()(ARITHMETIC, out, x, y)
    fused = (x.astype(float) * y.astype(float) + x.astype(float)).astype(np.float16)
    assert np.array_equal(out, ((x + y) + x * y) / y - fused)


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


def test_elements_in_expressions() -> None:
    at, x, h = np.arange(32, dtype=np.int32)[::-1].copy(), floats(40), np.ones(32, np.float16)
    out = unset(32)
    Run(shared_bytes=256)(EXPRESSIONS, out, at, x, h)
    top = np.maximum(at, 0.5) + np.minimum(at, 3) + np.where(at > 7, x[:32], 0)
    tile = 2 * top + 1 + at
    assert np.array_equal(out.array, tile[::-1] + 1 + (at + 1) + 1 + 1 + x[:32])


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


def test_shared_memory_is_reused_between_barriers() -> None:
    """Two buffers in turn, then numbers of another type in their place; no false alarm."""
    x = (np.arange(256 * 5) % 7).astype(np.float16)
    out = unset(6)
    emulate(REUSE, "k", (3, 2, 1), (32, 8, 1), [out, x, 5], shared_bytes=1024, seed=11)
    assert np.all(out.array == x.astype(np.float32).sum())


def test_launches_from_two_threads() -> None:
    buffers = [unset(100) for _ in range(4)]

    def launch(out: Buffer) -> None:
        Run(blocks=4)(ADD, out, floats(100), floats(100), 2, 100)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(launch, buffers))
    assert all(np.array_equal(out.array, 3 * np.arange(100)) for out in buffers)
