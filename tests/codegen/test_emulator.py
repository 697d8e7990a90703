"""The emulator: right kernels give right numbers for every seed, wrong ones are found out."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from codegen.emulator import Argument, Buffer, Scalar, compile_kernel, compiler, emulate
from rise.errors import CompilationError, EmulationError
from rise.source import place

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler")

Array = NDArray[Any]

DEVICE_HEADERS = Path(__file__).parents[2] / "codegen" / "device"


@pytest.fixture(autouse=True, scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RISE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
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

    def __call__(self, source: str, *arguments: Argument, seed: int = 0) -> None:
        grid, block = (self.blocks, 1, 1), (self.threads, 1, 1)
        emulate(source, "k", grid, block, arguments, self.shared_bytes, seed)


def floats(count: int) -> Array:
    return np.arange(count, dtype=np.float32)


def unset(count: int = 64, kind: type[np.generic] = np.float32) -> Buffer:
    return Buffer("out", np.zeros(count, kind), initialised=False)


# Right kernels

ADD = text(
    "Global<float> out, Global<const float> x, Global<const float> y, float alpha, int n",
    """
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = alpha * x[i] + y[i];
""",
)


@pytest.mark.parametrize("seed", [0, 1, 2**63 + 5])
def test_vector_add(seed: int) -> None:
    out = unset(100)
    Run(blocks=4)(ADD, out, floats(100), floats(100), 2, Scalar("n", np.int32(100)), seed=seed)
    assert np.array_equal(out.array, 3 * np.arange(100))


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


# Wrong kernels

ACCUMULATOR = "wmma::fragment<wmma::accumulator, 16, 16, 16, float> a;"
OUT_X = "Global<float> out, Global<const float> x"


@dataclass(frozen=True)
class Fault:
    """A kernel of `out` (64 elements, unset) and `x` (1024), and what is to be said of it."""

    name: str
    code: str
    line: int
    message: str
    body: str
    run: Run = Run(shared_bytes=4096)


FAULTS = [
    Fault("read outside", "R0902", 4, "x[1024]", "out[threadIdx.x] = x[threadIdx.x + 993];"),
    Fault("read before", "R0902", 5, "x[-1]", "const int i = threadIdx.x;\nout[i] = x[i - 1];"),
    Fault("write outside", "R0903", 4, "out[64], outside its 64", "out[threadIdx.x + 33] = 1;"),
    Fault(
        "tile outside",
        "R0902",
        5,
        "x[1024]",
        f"{ACCUMULATOR}\nwmma::load_matrix_sync(a, x + 800, 16, wmma::mem_row_major);",
    ),
    Fault(
        "shared outside",
        "R0903",
        5,
        "shared memory [1000] from byte 96",
        "Shared<float> s = shared_memory<float>(96);\nif (threadIdx.x == 7) s[1000] = 1;",
    ),
    Fault("global not written", "R0904", 4, "out[", "float y = out[threadIdx.x];\nout[0] = y;"),
    Fault(
        "shared not written",
        "R0904",
        6,
        "shared memory [5]",
        """Shared<float> s = shared_memory<float>(0);
if (threadIdx.x != 5) s[threadIdx.x] = 1;
out[threadIdx.x] = s[threadIdx.x];""",
    ),
    Fault(
        "local not written",
        "R0905",
        6,
        "element 3 of a local array of 4",
        "Local<float, 4> row;\nfor (int i = 0; i < 3; i += 1) row[i] = 1;\nout[0] = row[3];",
    ),
    Fault(
        "local outside",
        "R0903",
        5,
        "element 4",
        "Local<float, 4> row;\nfor (int i = 0; i < 5; i += 1) row[i] = x[i];\nout[0] = row[0];",
    ),
    Fault(
        "fragment not written",
        "R0906",
        5,
        "store_matrix_sync",
        f"{ACCUMULATOR}\nwmma::store_matrix_sync(out, a, 16, wmma::mem_row_major);",
    ),
    Fault(
        "fragment not written by a lane",
        "R0906",
        9,
        "thread (9, 0, 0)",
        f"""{ACCUMULATOR}
wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> l;
wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> r;
wmma::fill_fragment(l, 0.0f); wmma::fill_fragment(r, 0.0f);
if (threadIdx.x != 9) wmma::fill_fragment(a, 0.0f);
wmma::mma_sync(a, l, r, a);""",
    ),
    Fault("fragment element not written", "R0906", 5, "fragment", f"{ACCUMULATOR}\nout[0] = a.x[0];"),
    Fault(
        "missing __syncthreads",
        "R0907",
        6,
        "with no __syncthreads between",
        """Shared<float> s = shared_memory<float>(0);
s[threadIdx.x] = 0; __syncthreads();
s[threadIdx.x] = x[threadIdx.x]; out[threadIdx.x] = s[63 - threadIdx.x];""",
        Run(threads=64, shared_bytes=256),
    ),
    Fault(
        "missing second __syncthreads",
        "R0907",
        0,
        "with no __syncthreads between",
        """Shared<float> s = shared_memory<float>(0); float sum = 0;
for (int i = 0; i < 2; i += 1) {
if (threadIdx.x == i) s[0] = x[i];
__syncthreads();
sum += s[0];
}
out[threadIdx.x] = sum;""",
        Run(threads=64, shared_bytes=4),
    ),
    Fault(
        "missing __syncwarp",
        "R0907",
        8,
        "with no __syncwarp between",
        f"""{ACCUMULATOR}
Shared<float> s = shared_memory<float>(0);
wmma::fill_fragment(a, 1.0f);
wmma::store_matrix_sync(s, a, 16, wmma::mem_row_major);
out[threadIdx.x] = s[threadIdx.x];""",
    ),
    Fault("threads write one", "R0907", 4, "writes out[0], which", "out[0] = 1;"),
    Fault(
        "blocks write one",
        "R0908",
        4,
        "race between blocks",
        "if (threadIdx.x == 3) out[0] = 1;",
        Run(blocks=2),
    ),
    Fault(
        "block reads another's",
        "R0908",
        5,
        "of block",
        """const int i = threadIdx.x;
if (blockIdx.x == 0) { out[i] = 1; } else { if (i == 0) out[32] = out[5]; }""",
        Run(blocks=2),
    ),
    Fault(
        "divergent __syncthreads",
        "R0909",
        4,
        "divergent barrier",
        "if (threadIdx.x < 32) __syncthreads();",
        Run(threads=64),
    ),
    Fault(
        "two __syncthreads",
        "R0909",
        0,
        "at the one of line",
        "if (threadIdx.x < 32) {\n__syncthreads();\n} else {\n__syncthreads();\n}",
        Run(threads=64),
    ),
    Fault(
        "divergent collective",
        "R0910",
        6,
        "has returned",
        f"{ACCUMULATOR} if (threadIdx.x == 4) return;\nwmma::fill_fragment(a, 0.0f);\n"
        "wmma::store_matrix_sync(out, a, 16, wmma::mem_row_major);",
    ),
    Fault(
        "two collectives",
        "R0910",
        0,
        "__syncwarp (line",
        "if (threadIdx.x < 16) __syncwarp();\nelse __syncwarp();",
    ),
    Fault(
        "collective and barrier",
        "R0910",
        4,
        "at __syncthreads",
        "if (threadIdx.x < 16) __syncwarp();\nelse __syncthreads();",
    ),
    Fault(
        "part of a warp",
        "R0910",
        5,
        "only 16 threads",
        f"{ACCUMULATOR}\nwmma::load_matrix_sync(a, x, 16, wmma::mem_row_major);",
        Run(threads=16),
    ),
    Fault(
        "different pointers",
        "R0910",
        5,
        "another pointer",
        f"{ACCUMULATOR}\nwmma::load_matrix_sync(a, x + threadIdx.x / 16 * 256, 16, wmma::mem_row_major);",
    ),
    Fault(
        "different fragments",
        "R0910",
        5,
        "another fragment",
        f"{ACCUMULATOR[:-1]}[2];\nwmma::load_matrix_sync(a[threadIdx.x / 16], x, 16, wmma::mem_row_major);",
    ),
    Fault(
        "leading dimension",
        "R0911",
        5,
        "leading dimension 18",
        f"{ACCUMULATOR}\nwmma::load_matrix_sync(a, x, 18, wmma::mem_row_major);",
    ),
    Fault(
        "misaligned tile",
        "R0912",
        5,
        "x[4], not aligned",
        f"{ACCUMULATOR}\nwmma::load_matrix_sync(a, x + 4, 16, wmma::mem_row_major);",
    ),
    Fault(
        "local array of fragments",
        "R0903",
        5,
        "element 2",
        "Local<wmma::fragment<wmma::accumulator, 16, 16, 16, float>, 2> a;\n"
        "for (int i = 0; i < 3; i += 1) wmma::fill_fragment(a[i], 0.0f);",
    ),
    Fault("misaligned array", "R0912", 4, "byte 6", "Shared<float> s = shared_memory<float>(6);"),
    Fault("division", "R0915", 4, "by zero", "out[threadIdx.x] = 7 / (int)x[0];"),
    Fault("overflow", "R0915", 4, "overflow", "out[threadIdx.x] = 2147483647 + (int)x[1];"),
    Fault(
        "array of fragments",
        "R0915",
        5,
        "index outside",
        f"{ACCUMULATOR[:-1]}[2];\nwmma::load_matrix_sync(a[(int)x[3]], x, 16, wmma::mem_row_major);",
    ),
]


def caught(fault: Fault, seed: int = 0) -> EmulationError:
    with pytest.raises(EmulationError) as raised:
        fault.run(text(OUT_X, fault.body), unset(), Buffer("x", floats(1024)), seed=seed)
    return raised.value


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault(fault: Fault) -> None:
    for seed in range(3):
        error = caught(fault, seed)
        span = place(error.origin)
        assert error.code == fault.code, error
        assert span is not None
        assert fault.line in (span.line, 0), error
        assert fault.message in error.message
        assert f"k.cu:{span.line}:" in str(error)


def test_reports_are_the_same_for_the_same_seed() -> None:
    race = next(fault for fault in FAULTS if fault.name == "threads write one")
    messages = [caught(race, seed).message for seed in (0, 1, 2, 3, 0, 1, 2, 3)]
    assert messages[:4] == messages[4:]
    assert len(set(messages)) > 1


def test_endless_thread() -> None:
    endless = Fault("", "R0913", 4, "", "while (x[1] > 0.0f) {}")
    assert caught(endless).code == "R0913"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "5 parameters, 0 arguments"),
        ([unset(), floats(64).astype(np.float64), floats(64), 1, 64], "of type float64"),
        ([unset(), floats(64), 1, 1, 64], "is a number"),
        ([unset(), floats(64), floats(64), floats(1), 64], "is an array"),
        ([unset(), floats(64), floats(64), 1, 2**40], "cannot hold"),
        ([unset(), floats(64), floats(64), 1, 0.5], "is a fraction"),
        ([unset(), floats(64)[::2], floats(64), 1, 64], "C-contiguous"),
        ([unset(), np.zeros(64, complex), floats(64), 1, 64], "complex128"),
    ],
)
def test_arguments_that_do_not_fit(arguments: list[Argument], message: str) -> None:
    with pytest.raises(EmulationError, match=message) as raised:
        Run()(ADD, *arguments)
    assert raised.value.code == "R0901"


def test_overlapping_arguments() -> None:
    x = floats(64)
    with pytest.raises(EmulationError, match="overlaps"):
        Run()(ADD, x, x[32:], floats(64), 1, 32)
    Run()(ADD, unset(), x, x, 1, 32)


def test_read_only_argument() -> None:
    x = floats(64)
    x.flags.writeable = False
    with pytest.raises(EmulationError, match="read-only"):
        Run()(ADD, x, floats(64), floats(64), 1, 32)


@pytest.mark.parametrize("run", [Run(threads=1025), Run(blocks=0), Run(shared_bytes=300_000)])
def test_launches_beyond_the_hardware(run: Run) -> None:
    with pytest.raises(EmulationError) as raised:
        run(ADD, unset(), floats(64), floats(64), 1, 32)
    assert raised.value.code == "R0914"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("out[0] = 1;\nout[1] = undeclared;", 5),
        ("float y;\nout[threadIdx.x] = y;", 5),
        ("x[0] = 1;", 4),
        ("Local<float, 100000> row;\nrow[0] = 1;\nout[0] = row[threadIdx.x];", 7),
    ],
)
def test_text_that_does_not_compile(body: str, line: int) -> None:
    with pytest.raises(CompilationError) as raised:
        Run()(text(OUT_X, body), unset(), floats(1024))
    span = place(raised.value.origin)
    assert raised.value.code == "R0802"
    assert span is not None
    assert span.line == line


def test_missing_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert compiler() is None
    with pytest.raises(CompilationError) as raised:
        compile_kernel(ADD, "k")
    assert raised.value.code == "R0801"
    assert raised.value.hint


# The same text on the device


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a"])
def test_text_compiles_for_the_device(target: str, tmp_path: Path) -> None:
    of = np.float16 if target == "sm_75" else ml_dtypes.bfloat16
    kernels = [
        gemm(SHAPES[1], LAYOUTS[1], of, np.float32),
        EXPRESSIONS,
        EPILOGUE,
        MIXED,
        REUSE,
        CONVERT,
    ]
    bodies = [kernel.replace("void k(", f"void k{i}(") for i, kernel in enumerate(kernels)]
    source = tmp_path / "k.cu"
    source.write_text("".join(bodies))
    command = ["nvcc", f"-arch={target}", "-cubin", "-I", str(DEVICE_HEADERS), str(source)]
    finished = subprocess.run(
        [*command, "-o", str(tmp_path / "k.cubin")], check=False, capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
