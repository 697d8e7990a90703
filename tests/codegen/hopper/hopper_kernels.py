"""Kernels for the Hopper machine, written by hand, with their inputs and exact results.

The tests run them in the emulator; benchmarks/gpu_hopper_machine.py runs them on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes  # noqa: F401  # gives NumPy its names
import numpy as np
from numpy.typing import NDArray

from codegen.cuda.wgmma import OPERANDS, Wgmma, print_wgmma
from codegen.emulation.emulator import Buffer, Scalar, emulate
from codegen.ir.tensor_maps import TensorBuffer, map_of

Array = NDArray[Any]
Given = TensorBuffer | Buffer | Scalar


@dataclass(frozen=True)
class Problem:
    """A kernel `k`, how it is launched, its arguments, and what they hold after it, by position."""

    name: str
    source: str
    arguments: tuple[Given, ...]
    wanted: dict[int, Array]
    threads: int
    shared_bytes: int
    grid: tuple[int, int, int] = (1, 1, 1)
    cluster: tuple[int, int, int] = (1, 1, 1)

    def run(self, seed: int = 0) -> bool:
        """Whether the emulated kernel gives what is wanted."""
        for argument in self.arguments:
            if not isinstance(argument, Scalar) and not argument.initialised:
                argument.array[...] = 0
        block = (self.threads, 1, 1)
        emulate(self.source, "k", self.grid, block, self.arguments, self.shared_bytes, seed, self.cluster)
        return all(
            np.array_equal(self.result(i).reshape(-1), self.wanted[i].reshape(-1)) for i in self.wanted
        )

    def result(self, position: int) -> Array:
        argument = self.arguments[position]
        assert not isinstance(argument, Scalar)
        return argument.array


def combined(problems: Sequence[Problem]) -> list[Problem]:
    """The same with one text, for the emulator: a kernel that is each of them, by its last argument.

    Compiling is what takes time. All have the same parameters.
    """
    parts = [
        p.source.replace('extern "C" __global__', "static").replace(" k(", f" k{i}(")
        for i, p in enumerate(problems)
    ]
    parameters = problems[0].source.split(" k(")[1].split(") {")[0]
    names = ", ".join(parameter.split(" ")[-1] for parameter in parameters.split(", "))
    calls = "".join(f"  if (which == {i}) k{i}({names});\n" for i in range(len(problems)))
    source = "".join(parts) + f'extern "C" __global__ void k({parameters}, int which) {{\n{calls}}}\n'
    return [
        replace(p, source=source, arguments=(*p.arguments, Scalar("which", i)))
        for i, p in enumerate(problems)
    ]


@dataclass(frozen=True)
class Fault:
    """One statement or expression of a text that is wrong, and what the emulator says of it.

    code:    of its error; "wrong" if only the result is
    message: a regular expression
    """

    name: str
    right: str
    wrong: str
    code: str
    message: str = ""


def with_faults(problem: Problem, faults: Sequence[Fault]) -> Problem:
    """A text that has all the faults, one at a time: fault n if its last argument is n; 0 for none."""
    head, rest = problem.source.split(" k(", 1)
    parameters, body = rest.split(") {", 1)
    for right in dict.fromkeys(fault.right for fault in faults):
        if body.count(right) != 1:
            raise ValueError(f"{right} is there {body.count(right)} times")
        there = [(number, fault.wrong) for number, fault in enumerate(faults, 1) if fault.right == right]
        if right.endswith((";", "}")):
            choices = "".join(f"if (fault == {number}) {{ {wrong} }} else " for number, wrong in there)
            body = body.replace(right, f"{choices}{{ {right} }}")
        else:
            choices = "".join(f"fault == {number} ? {wrong} : " for number, wrong in there)
            body = body.replace(right, f"({choices}{right})")
    return replace(problem, source=f"{head} k({parameters}, int fault) {{{body}")


def seeded(problem: Problem, fault: int) -> Problem:
    return replace(problem, arguments=(*problem.arguments, Scalar("fault", fault)))


def text(
    parameters: str, body: str, threads: int, instructions: tuple[Wgmma, ...] = (), cluster: int = 1
) -> str:
    dims = f"__cluster_dims__({cluster}, 1, 1) " if cluster > 1 else ""
    head = f'#include "hopper.cuh"\n\n{print_wgmma(instructions) if instructions else ""}'
    bounds = f"__launch_bounds__({threads}, 1)"
    return (
        f'{head}\nextern "C" __global__ void {dims}{bounds} k({parameters}) {{\n{body.strip(chr(10))}\n}}\n'
    )


def maps(*names: str) -> str:
    return ", ".join(f"const __grid_constant__ TensorMap {name}" for name in names)


def integers(shape: tuple[int, ...], element: str, seed: int = 1, bound: int = 3) -> Array:
    """Whole numbers, of which all sums here are exact in every type."""
    random = np.random.default_rng(seed)
    return random.integers(-bound, bound + 1, shape).astype(np.dtype(element))


def unset(name: str, shape: tuple[int, ...], element: str) -> Buffer:
    return Buffer(name, np.zeros(shape, element), initialised=False)


# --- bulk copies --------------------------------------------------------------------------------------


def dump(swizzle: int) -> Problem:
    """How a box lies in shared memory, beyond the edges of its tensor too: copied out as it lies."""
    width = swizzle or 48
    rows, box = 13, (16, width)
    count = box[0] * width
    tensor = (np.arange(rows * 2 * width) % 251 + 1).reshape(rows, 2 * width).astype("uint8")
    body = """
  Shared<unsigned char> tile = shared_memory<unsigned char>(0);
  Shared<Barrier> full = shared_memory<Barrier>(4096);
  if (threadIdx.x == 0) {
    prefetch_map(in);
    barrier_init(full, 1);
    fence_barrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    barrier_expect(full, count);
    bulk_load(tile, in, full, x, -2);
  }
  barrier_wait(full, 0);
  for (int i = threadIdx.x; i < count; i += 64) out[i] = tile[i];
"""
    seen = np.zeros(box, "uint8")
    # a box starts at a multiple of 16 bytes
    start = 32
    inside = tensor[:, start : start + width]
    seen[2:15, : inside.shape[1]] = inside
    chunks = seen.reshape(-1, 16)
    order = np.arange(len(chunks))
    wanted = chunks[order ^ (order >> 3 & (swizzle // 16 - 1))] if swizzle else chunks
    buffer = TensorBuffer("in", tensor, map_of(tensor.shape, "uint8", box, swizzle))
    return Problem(
        f"a box as it lies, swizzle {swizzle}",
        text(f"{maps('in')}, Global<unsigned char> out, int count, int x", body, 64),
        (buffer, unset("out", (count,), "uint8"), Scalar("count", count), Scalar("x", start)),
        {1: wanted.reshape(-1)},
        64,
        4096 + 64,
    )


def copy(shape: tuple[int, int, int] = (3, 23, 72), box: tuple[int, int, int] = (2, 8, 16)) -> Problem:
    """out = in + 1 in three dimensions, by boxes in and out, which stick out at the edges."""
    tensor = integers(shape, "float32")
    out = np.zeros(shape, "float32")
    count = int(np.prod(box))
    body = f"""
  Shared<float> tile = shared_memory<float>(0);
  Shared<Barrier> full = shared_memory<Barrier>({4 * count});
  const int x = blockIdx.x * {box[2]};
  const int y = blockIdx.y * {box[1]};
  const int z = blockIdx.z * {box[0]};
  if (threadIdx.x == 0) {{
    barrier_init(full, 1);
    fence_barrier_init();
  }}
  __syncthreads();
  if (threadIdx.x == 0) {{
    barrier_expect(full, {4 * count});
    bulk_load(tile, in, full, x, y, z);
  }}
  barrier_wait(full, 0);
  for (int i = threadIdx.x; i < {count}; i += 64) tile[i] = tile[i] + 1;
  fence_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) {{
    bulk_store(out, tile, x, y, z);
    bulk_commit();
    bulk_wait_read<0>();
  }}
"""
    described = map_of(shape, "float32", box)
    grid = tuple(-(-size // step) for size, step in zip(shape[::-1], box[::-1], strict=True))
    return Problem(
        "copy in three dimensions",
        text(maps("in", "out"), body, 64),
        (TensorBuffer("in", tensor, described), TensorBuffer("out", out, described, initialised=False)),
        {1: tensor + 1},
        64,
        4 * count + 64,
        (grid[0], grid[1], grid[2]),
    )


# --- one tile of a product ----------------------------------------------------------------------------

STORED = {
    "half": ("half", "float16"),
    "bfloat16": ("bfloat16", "bfloat16"),
    "tf32": ("float", "float32"),
    "e4m3": ("unsigned char", "float8_e4m3fn"),
    "signed char": ("signed char", "int8"),
}
SWIZZLES = {0: "None", 32: "B32", 64: "B64", 128: "B128"}
OUTPUTS = {"float": "float32", "half": "float16", "int": "int32"}


@dataclass(frozen=True)
class Side:
    """How an operand of `rows` × `k` lies in shared memory: boxes, then what a descriptor says."""

    name: str
    rows: int
    k: int
    size: int  # of an element
    major: str
    swizzle: int

    @property
    def width(self) -> int:
        """Elements of a box's row."""
        return (self.swizzle or 16) // self.size

    @property
    def box(self) -> tuple[int, int]:
        return (self.rows, self.width) if self.major == "K" else (self.k, self.width)

    @property
    def boxes(self) -> int:
        return (self.k if self.major == "K" else self.rows) // self.width

    @property
    def box_bytes(self) -> int:
        return self.box[0] * self.width * self.size

    @property
    def strides(self) -> tuple[int, int]:
        """Leading and stride of the descriptor."""
        group = 8 * (self.swizzle or 16)
        if self.swizzle:
            return (16 if self.major == "K" else self.box_bytes), group
        return (self.box_bytes, 128) if self.major == "K" else (128, self.box_bytes)

    @property
    def step(self) -> str:
        """Where an instruction's k starts, in the units of 16 bytes of a descriptor."""
        if self.major == "MN":
            return f"step * {self.swizzle or 16}"
        if not self.swizzle:
            return f"step * {2 * self.box_bytes // 16}"
        steps = self.swizzle // 32  # within a box
        return f"(step % {steps} * 2 + step / {steps} * {self.box_bytes // 16})"

    def stored(self, matrix: Array) -> Array:
        return np.ascontiguousarray(matrix if self.major == "K" else matrix.T)

    def descriptor(self) -> str:
        name, (leading, stride) = self.name.lower(), self.strides
        made = f"shared_descriptor({name}, {leading}, {stride}, Swizzle::{SWIZZLES[self.swizzle]})"
        return f"  const Descriptor {name}_tile = {made};\n"

    def loads(self) -> str:
        x = f"i * {self.width}"
        return f"""    for (int i = 0; i < {self.boxes}; i++)
      bulk_load({self.name.lower()} + i * {self.box[0] * self.width}, {self.name}, full, {x}, 0);
"""


def product(
    n: int,
    operand: str = "half",
    sums: str = "float",
    majors: tuple[str, str] = ("K", "K"),
    swizzle: int = 128,
    in_registers: bool = False,
) -> Problem:
    """out = A B for A of 64 × k and B of k × n, by one warpgroup."""
    wgmma = Wgmma(n, operand, sums, *majors, a_in_registers=in_registers)
    stored, element = STORED[operand]
    size = OPERANDS[operand].bytes
    k = max(swizzle // size, wgmma.k) if "MN" not in majors else 64
    left = Side("A", 64, k, size, majors[0], swizzle)
    right = Side("B", n, k, size, majors[1], swizzle)
    a, b = integers((64, k), element, 1), integers((n, k), element, 2)
    b_start = -(-left.boxes * left.box_bytes // 1024) * 1024
    barrier = b_start + right.boxes * right.box_bytes
    loaded = right.boxes * right.box_bytes + (0 if in_registers else left.boxes * left.box_bytes)
    each = 16 // size
    flags = f"{n}, {operand}, " + ("" if in_registers else f"Major::{majors[0]}, ") + f"Major::{majors[1]}"
    registers = f"""  Local<{stored}, {each}> registers;
  for (int i = 0; i < {each}; i++) {{
    const int v = i / {4 // size};
    registers[i] = A[(lane / 4 + 16 * warp + v % 2 * 8) * {k} + step * {wgmma.k} +
                     lane % 4 * {4 // size} + i % {4 // size} + v / 2 * {16 // size}];
  }}
"""
    a_descriptor = "" if in_registers else left.descriptor()
    used = "d, registers" if in_registers else "d"
    a_operand = "registers" if in_registers else f"a_tile + {left.step}"
    body = f"""
  Shared<{stored}> a = shared_memory<{stored}>(0);
  Shared<{stored}> b = shared_memory<{stored}>({b_start});
  Shared<Barrier> full = shared_memory<Barrier>({barrier});
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {{
    barrier_init(full, 1);
    fence_barrier_init();
  }}
  __syncthreads();
  if (threadIdx.x == 0) {{
    barrier_expect(full, {loaded});
{"" if in_registers else left.loads()}{right.loads()}  }}
  barrier_wait(full, 0);
{a_descriptor}{right.descriptor()}  Local<{sums}, {n // 2}> d;
  for (int step = 0; step < {k // wgmma.k}; step++) {{
{registers if in_registers else ""}    wgmma_fence({used});
    wgmma<{flags}>(d, {a_operand}, b_tile + {right.step}, step > 0);
    wgmma_commit();
    wgmma_wait<0>({used});
  }}
  for (int i = 0; i < {n // 2}; i++) {{
    const int row = warp * 16 + lane / 4 + i / 2 % 2 * 8;
    const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    out[row * {n} + column] = d[i];
  }}
"""
    a_given: Given
    a_parameter = f"Global<const {stored}> A" if in_registers else maps("A")
    if in_registers:
        a_given = Buffer("A", a.view(np.uint8) if operand == "e4m3" else a)
    else:
        a_given = TensorBuffer("A", left.stored(a), map_of(left.stored(a).shape, element, left.box, swizzle))
    b_given = TensorBuffer("B", right.stored(b), map_of(right.stored(b).shape, element, right.box, swizzle))
    wanted = (a.astype("float64") @ b.astype("float64").T).astype(OUTPUTS[sums])
    where = "A in registers" if in_registers else f"A {majors[0]}-major"
    return Problem(
        f"{operand} 64x{n}x{k} {sums}, {where}, B {majors[1]}-major, swizzle {swizzle}",
        text(f"Global<{sums}> out, {a_parameter}, {maps('B')}", body, 128, (wgmma,)),
        (unset("out", (64, n), OUTPUTS[sums]), a_given, b_given),
        {0: wanted},
        128,
        barrier + 64,
    )


# --- a ring -------------------------------------------------------------------------------------------


def ring(
    k: int,
    n: int = 64,
    stages: int = 3,
    consumers: int = 1,
    cluster: int = 1,
    deep: bool = False,
    tiles: int = 1,
) -> Problem:
    """out = A B of f16: a warpgroup that loads, and `consumers` that multiply 64 rows each.

    cluster: blocks that share their tile of B: each loads a part of it for all
    deep:    each product is waited for after the next one is issued
    """
    rows = 64 * consumers
    height, width = rows * cluster * tiles, n * tiles
    a, b = integers((height, k), "float16", 3, 2), integers((width, k), "float16", 4, 2)
    out = np.zeros((height, width), "float16")
    a_size, b_size = rows * 64, n * 64
    staging = 2 * stages * (a_size + b_size)
    full = staging + 2 * rows * n
    empty = full + 8 * stages
    threads = 128 * (1 + consumers)
    low, high = {1: (40, 248), 2: (24, 240)}[consumers]
    part = n // cluster
    load_b = (
        f"bulk_load(b + s * {b_size}, B, full + s, i * 64, column);"
        if cluster == 1
        else f"bulk_load_multicast(b + s * {b_size} + cluster_rank() * {part * 64}, B, full + s, "
        f"{2**cluster - 1}, i * 64, column + cluster_rank() * {part});"
    )
    arrive = (
        "barrier_arrive(empty + {0});"
        if cluster == 1
        else f"for (int rank = 0; rank < {cluster}; rank++) barrier_arrive_remote(empty + {{0}}, rank);"
    )
    sync = "__syncthreads();" if cluster == 1 else "// all barriers are there\n  cluster_sync();"
    leave = "" if cluster == 1 else "  // nobody arrives here any more\n  cluster_sync();\n"
    if deep:
        release = f"""      if (i == 0) continue;
      wgmma_wait<1>();
      if (threadIdx.x % 128 == 0) {{ {arrive.format(f"(i - 1) % {stages}")} }}
"""
        last = f"""    wgmma_wait<0>(acc);
    if (threadIdx.x % 128 == 0) {{ {arrive.format(f"(k_tiles - 1) % {stages}")} }}
"""
    else:
        release = f"""      wgmma_wait<0>(acc);
      if (threadIdx.x % 128 == 0) {{ {arrive.format("s")} }}
"""
        last = ""
    body = f"""
  Shared<half> a = shared_memory<half>(0);
  Shared<half> b = shared_memory<half>({2 * stages * a_size});
  Shared<half> staging = shared_memory<half>({staging});
  Shared<Barrier> full = shared_memory<Barrier>({full});
  Shared<Barrier> empty = shared_memory<Barrier>({empty});
  const int row = blockIdx.x * {rows};
  const int column = blockIdx.y * {n};
  if (threadIdx.x == 0) {{
    for (int s = 0; s < {stages}; s++) {{
      barrier_init(full + s, 1);
      barrier_init(empty + s, {consumers * cluster});
    }}
    fence_barrier_init();
  }}
  {sync}
  if (threadIdx.x / 128 == 0) {{
    registers_decrease<{low}>();
    if (threadIdx.x < 32 && elect_one()) {{
      for (int i = 0; i < k_tiles; i++) {{
        const int s = i % {stages};
        barrier_wait(empty + s, (i / {stages} + 1) % 2);
        barrier_expect(full + s, {2 * (a_size + b_size)});
        bulk_load(a + s * {a_size}, A, full + s, i * 64, row);
        {load_b}
      }}
    }}
  }} else {{
    registers_increase<{high}>();
    const int group = threadIdx.x / 128 - 1;
    const int warp = threadIdx.x % 128 / 32;
    const int lane = threadIdx.x % 32;
    Local<float, {n // 2}> acc;
    wgmma_fence(acc);
    for (int i = 0; i < k_tiles; i++) {{
      const int s = i % {stages};
      barrier_wait(full + s, i / {stages} % 2);
      const Descriptor a_tile = shared_descriptor(a + s * {a_size} + group * 4096, 16, 1024, Swizzle::B128);
      const Descriptor b_tile = shared_descriptor(b + s * {b_size}, 16, 1024, Swizzle::B128);
      wgmma_fence();
      for (int step = 0; step < 4; step++)
        wgmma<{n}, half>(acc, a_tile + 2 * step, b_tile + 2 * step, i + step > 0);
      wgmma_commit();
{release}    }}
{last}    Shared<half> mine = staging + group * {64 * n};
    for (int j = 0; j < {n // 16}; j++) {{
      Local<half, 8> packed;
      for (int e = 0; e < 8; e++) packed[e] = half(acc[8 * j + e]);
      const int line = lane % 16 + 16 * warp;
      const int chunk = (j % 4 * 2 + lane / 16) ^ (line % 8);
      store_matrices<4>(mine + j / 4 * 4096 + line * 64 + chunk * 8, &packed[0]);
    }}
    fence_async_shared();
    named_barrier(1 + group, 128);
    if (threadIdx.x % 128 == 0) {{
      for (int j = 0; j < {n // 64}; j++)
        bulk_store(Out, mine + j * 4096, column + j * 64, row + group * 64);
      bulk_commit();
      bulk_wait_read<0>();
    }}
  }}
{leave}"""
    wanted = (a.astype("float32") @ b.astype("float32").T).astype("float16")
    given = (
        TensorBuffer("A", a, map_of(a.shape, "float16", (rows, 64), 128)),
        TensorBuffer("B", b, map_of(b.shape, "float16", (part, 64), 128)),
        TensorBuffer("Out", out, map_of(out.shape, "float16", (64, 64), 128), initialised=False),
        Scalar("k_tiles", -(-k // 64)),
    )
    return Problem(
        f"ring {height}x{width}x{k}, {stages} stages, {consumers} consumers, cluster {cluster}"
        + (", one product ahead" if deep else ""),
        text(f"{maps('A', 'B', 'Out')}, int k_tiles", body, threads, (Wgmma(n),), cluster),
        given,
        {2: wanted},
        threads,
        empty + 8 * stages,
        (cluster * tiles, tiles, 1),
        (cluster, 1, 1),
    )


def transposed() -> Problem:
    """stmatrix with and without exchange, of 1, 2 and 4 matrices."""
    body = """
  Shared<half> tile = shared_memory<half>(0);
  Local<half, 8> mine;
  for (int i = 0; i < 8; i++) mine[i] = in[threadIdx.x * 8 + i];
  store_matrices<4>(tile + threadIdx.x * 8, &mine[0]);
  store_matrices_transposed<4>(tile + 256 + threadIdx.x * 8, &mine[0]);
  store_matrices<2>(tile + 512 + threadIdx.x % 16 * 8, &mine[0]);
  store_matrices_transposed<1>(tile + 640 + threadIdx.x % 8 * 8, &mine[4]);
  __syncwarp();
  for (int i = threadIdx.x; i < 704; i += 32) out[i] = tile[i];
"""
    given = np.arange(256).astype("float16")
    # lane, matrix, two elements → matrix, row, column
    matrices = given.reshape(8, 4, 4, 2).transpose(2, 0, 1, 3).reshape(4, 8, 8)
    parts = (matrices, matrices.transpose(0, 2, 1), matrices[:2], matrices[2].T)
    wanted = np.concatenate([np.ascontiguousarray(part).reshape(-1) for part in parts])
    return Problem(
        "stores of matrices",
        text("Global<half> out, Global<const half> in", body, 32),
        (unset("out", (704,), "float16"), Buffer("in", given)),
        {0: wanted},
        32,
        1408,
    )


# --- which ones ---------------------------------------------------------------------------------------


def copies() -> list[Problem]:
    return [
        *(dump(swizzle) for swizzle in (0, 32, 64, 128)),
        copy(),
        transposed(),
    ]


def products() -> list[Problem]:
    half = [
        product(64, majors=majors, swizzle=swizzle)
        for swizzle in (128, 64, 32, 0)
        for majors in (("K", "K"), ("MN", "K"), ("K", "MN"), ("MN", "MN"))
    ]
    return [
        *half,
        product(8),
        product(256),
        product(128, majors=("MN", "MN")),
        product(72, sums="half"),
        product(40, "bfloat16"),
        product(24, "tf32"),
        product(16, "tf32", swizzle=32),
        product(24, "e4m3"),
        product(24, "e4m3", "half"),
        product(32, "signed char", "int"),
        product(48, "signed char", "int", swizzle=64),
        product(64, in_registers=True),
        product(64, majors=("K", "MN"), in_registers=True),
        product(16, "bfloat16", in_registers=True),
        product(16, "tf32", in_registers=True),
        product(16, "e4m3", in_registers=True),
        product(16, "signed char", "int", in_registers=True),
    ]


def rings() -> list[Problem]:
    return [
        *(ring(k) for k in (64, 128, 192, 256, 448)),
        ring(72),
        ring(320, deep=True),
        ring(256, n=128, stages=2, consumers=2),
        ring(320, stages=2, cluster=2, deep=True),
        ring(200, n=128, cluster=2, consumers=2, tiles=2),
    ]
