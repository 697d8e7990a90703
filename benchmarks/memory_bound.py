"""Memory-bound programs, as derived, against a copy: `python benchmarks/memory_bound.py`, with a GPU.

Every program is derived with several parameters and compiled in other processes first. Inputs repeat a few
million numbers with a period that is prime, so the device fills gigabytes by itself and the host knows each
element. Results are checked: sums of whole numbers exactly, the others in samples against f64. The last
thing printed is a table: bytes that have to be moved, over time, as a fraction of the faster of the driver's
copy and our copy kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np

from codegen import runtime
from codegen.host.program import Launching
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.normal import data_flow
from strategies.registry import find

TARGET = "sm_90a"
PERIOD = 4194301  # the largest prime below 2^22
COUNT, SIDE, ROWS, COLUMNS = 1 << 30, 16384, 16384, 4096
WARM_UP, RUNS = 3, 15
FIVE = "(w |> idx2D(0, 1)) + (w |> idx2D(1, 0)) + (w |> idx2D(1, 2)) + (w |> idx2D(2, 1))"
F16, F32 = np.dtype(np.float16), np.dtype(np.float32)


# --- what is measured -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Input:
    """An array that repeats the numbers of a seed; `whole`: small whole numbers, few of them not 0."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any] = F32
    seed: int = 0
    whole: bool = False

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.itemsize

    def numbers(self) -> Any:
        return _numbers(min(PERIOD, self.size), self.dtype, self.seed, self.whole)

    def at(self, *indices: Any) -> Any:
        """Elements in f64, at indices that broadcast."""
        numbers = self.numbers()
        place: Any = np.int64(0)
        for size, index in zip(self.shape, indices, strict=True):
            place = place * size + np.asarray(index, np.int64)
        return numbers[place % len(numbers)].astype(np.float64)


@cache
def _numbers(count: int, dtype: np.dtype[Any], seed: int, whole: bool) -> Any:
    random = np.random.default_rng(seed)
    if whole:
        return (random.random(count) < 2**22 / COUNT).astype(dtype)
    return random.standard_normal(count, np.float32).astype(dtype)


# reads elements of the result on the device
Read = Callable[[int, int], Any]


@dataclass(frozen=True)
class Case:
    """A program, what it is given, and the parameters of the strategies that derive it.

    scalars: numbers given before the arrays
    result:  elements of the result, and their type
    check:   the largest error against f64 over what is allowed, at most 1
    """

    text: str
    inputs: tuple[Input, ...]
    result: tuple[int, np.dtype[Any]]
    check: Callable[[Case, Read], float]
    strategies: tuple[tuple[str, Mapping[str, Any]], ...]
    scalars: tuple[float, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(i.bytes for i in self.inputs) + self.result[0] * self.result[1].itemsize


def _rows_sampled(count: int) -> list[int]:
    return sorted({0, 1, count // 2 + 3, count - 2, count - 1})


def _error(found: Any, wanted: Any, tolerance: float) -> float:
    scale = max(float(np.abs(wanted).max()), 1e-30)
    worst = float(np.abs(found.astype(np.float64) - wanted).max()) / scale
    return (
        np.inf if not np.isfinite(worst) else worst / tolerance if tolerance else (np.inf if worst else 0.0)
    )


def check_rows(expected: Callable[[Case, int], Any], width: int, rows: int, tolerance: float) -> Any:
    """Whole rows of the result against what is expected of each."""

    def check(case: Case, read: Read) -> float:
        return max(
            _error(read(row * width, width), expected(case, row), tolerance) for row in _rows_sampled(rows)
        )

    return check


def _row(which: Input, row: int) -> Any:
    return which.at(row, np.arange(which.shape[1]))


def _softmax(case: Case, row: int) -> Any:
    x = _row(case.inputs[0], row)
    e = np.exp(x - x.max())
    return e / e.sum()


def _layernorm(case: Case, row: int) -> Any:
    gamma, beta, xss = case.inputs
    x, columns = _row(xss, row), np.arange(xss.shape[1])
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5) * gamma.at(columns) + beta.at(columns)


def _five_point(case: Case, row: int) -> Any:
    (xss,) = case.inputs
    height, width = xss.shape
    zeros = np.zeros(width)
    above, below = (_row(xss, r) if 0 <= r < height else zeros for r in (row - 1, row + 1))
    here = np.concatenate([[0.0], _row(xss, row), [0.0]])
    return 0.25 * (above + here[:-2] + here[2:] + below)


def _transposed(case: Case, row: int) -> Any:
    return case.inputs[0].at(np.arange(case.inputs[0].shape[0]), row)


def _matvec(case: Case, read: Read) -> float:
    matrix, x = case.inputs
    wanted = np.array([_row(matrix, row) @ x.at(np.arange(x.size)) for row in _rows_sampled(ROWS)])
    found = np.array([read(row, 1)[0] for row in _rows_sampled(ROWS)])
    return _error(found, wanted, 1e-4)


def _sum(case: Case, read: Read) -> float:
    numbers = case.inputs[0].numbers().astype(np.float64)
    whole, rest = divmod(case.inputs[0].size, len(numbers))
    return _error(read(0, 1), np.array([whole * numbers.sum() + numbers[:rest].sum()]), 0.0)


def _saxpy(case: Case, row: int) -> Any:
    places = row * SIDE + np.arange(SIDE)
    return 2.0 * case.inputs[0].at(places) + case.inputs[1].at(places)


def _each(name: str, *settings: Mapping[str, Any]) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    return tuple((name, values) for values in settings)


FLAT, SQUARE, WIDE = Input((SIDE * SIDE,)), Input((SIDE, SIDE)), Input((ROWS, COLUMNS))
ELEMENTWISE = _each("elementwise", {}, {"each": 2}, {"each": 4}, {"threads": 512, "each": 2})
TILES: tuple[Mapping[str, Any], ...] = (
    {},
    {"tile": 32, "threads": 256},
    {"tile": 64, "threads": 512},
    {"tile": 32, "threads": 64},
)
HALVES: tuple[Mapping[str, Any], ...] = (
    {"vector": 8},
    {"vector": 8, "padding": 2},
    {"vector": 4, "padding": 2},
    {"tile": 128, "vector": 8},
)
BY_ROWS = _each("rows", {}, {"threads": 512}, {"threads": 128}, {"fan": 16}, {"keep": False})
CASES: Mapping[str, Case] = {
    "copy": Case(
        f"fun(xs: {SIDE * SIDE}.f32 => xs)",
        (FLAT,),
        (SIDE * SIDE, F32),
        check_rows(lambda case, row: case.inputs[0].at(row * SIDE + np.arange(SIDE)), SIDE, SIDE, 0.0),
        ELEMENTWISE,
    ),
    "saxpy": Case(
        f"fun((a: f32, xs: {SIDE * SIDE}.f32, ys: {SIDE * SIDE}.f32) =>"
        " zip(xs)(ys) |> map(fun((x, y) => a * x + y)))",
        (FLAT, Input((SIDE * SIDE,), seed=1)),
        (SIDE * SIDE, F32),
        check_rows(_saxpy, SIDE, SIDE, 1e-6),
        ELEMENTWISE,
        (2.0,),
    ),
    "sum of 2^30": Case(
        f"fun(xs: {COUNT}.f32 => sum(xs))",
        (Input((COUNT,), whole=True),),
        (1, F32),
        _sum,
        _each(
            "reduction",
            {"vector": 4, "loads": 4, "fan": 8, "part": 1 << 18},
            {"vector": 4, "loads": 8, "fan": 8, "part": 1 << 18},
            {"vector": 4, "loads": 4, "fan": 8, "part": 1 << 16},
            {"threads": 512, "vector": 4, "loads": 4, "fan": 8, "part": 1 << 17},
        ),
    ),
    "transpose, f32": Case(
        f"fun(xss: {SIDE}.{SIDE}.f32 => transpose(xss))",
        (SQUARE,),
        (SIDE * SIDE, F32),
        check_rows(_transposed, SIDE, SIDE, 0.0),
        _each("transposition", *TILES),
    ),
    "transpose, f16": Case(
        f"fun(xss: {SIDE}.{SIDE}.f16 => transpose(xss))",
        (Input((SIDE, SIDE), F16),),
        (SIDE * SIDE, F16),
        check_rows(_transposed, SIDE, SIDE, 0.0),
        _each("transposition", *HALVES),
    ),
    "five points": Case(
        f"fun(xss: {SIDE}.{SIDE}.f32 => xss |> padCst2D(1, 1)(0) |> slide2D(3, 1)"
        f" |> map2D(fun(w => 0.25 * ({FIVE}))))",
        (SQUARE,),
        (SIDE * SIDE, F32),
        check_rows(_five_point, SIDE, SIDE, 1e-6),
        (
            *_each("stencil", {}, {"rows": 2}, {"rows": 8}, {"threads": (4, 64)}, {"rows": 8, "vector": 1}),
            *_each("elementwise", {}),
        ),
    ),
    "softmax": Case(
        f"fun(xss: {ROWS}.{COLUMNS}.f32 => xss |> map(softmax))",
        (WIDE,),
        (ROWS * COLUMNS, F32),
        check_rows(_softmax, COLUMNS, ROWS, 2e-5),
        BY_ROWS,
    ),
    "layernorm": Case(
        f"fun((g: {COLUMNS}.f32, b: {COLUMNS}.f32, xss: {ROWS}.{COLUMNS}.f32) =>"
        " xss |> map(layernorm(1e-5)(g)(b)))",
        (Input((COLUMNS,), seed=1), Input((COLUMNS,), seed=2), WIDE),
        (ROWS * COLUMNS, F32),
        check_rows(_layernorm, COLUMNS, ROWS, 2e-5),
        BY_ROWS[:3],
    ),
    "matrix times vector": Case(
        f"fun((A: {ROWS}.{COLUMNS}.f32, x: {COLUMNS}.f32) => matvec(A)(x))",
        (WIDE, Input((COLUMNS,), seed=1)),
        (ROWS, F32),
        _matvec,
        BY_ROWS[:3],
    ),
}


# --- compiling, without a GPU -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Compiled:
    """A kernel as it is launched, and its arguments by name."""

    name: str
    cubin: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Host:
    """The kernels in order; the names of the result and the inputs, the bytes of each temporary."""

    kernels: tuple[Compiled, ...]
    names: tuple[str, ...]
    temporaries: Mapping[str, int]


def compiled(case: str, number: int) -> Host:
    """The kernels of a case with one of its strategies."""
    made = CASES[case]
    strategy, settings = made.strategies[number]
    text = f'import "prelude.rise"\ndef program = {made.text}'
    derived = find(strategy).factory(**settings)(data_flow(specialise(check_text(text)["program"], {})))
    if isinstance(derived, Failure):
        raise derived.error(strategy)
    program = assemble(derived.term, "program").at({})
    return Host(
        tuple(map(_kernel, program.launches)),
        tuple(v.name for v in (*program.outputs, *program.parameters)),
        {placed.name: placed.bytes.end - placed.bytes.start for placed in program.temporaries},
    )


def _kernel(made: Launching) -> Compiled:
    return Compiled(
        made.kernel.name,
        str(runtime.compile_cubin(made.kernel.source, TARGET)),
        made.grid,
        made.launch.block,
        made.launch.shared_bytes,
        tuple(argument.name for argument in made.arguments),
    )


def compile_all(names: Sequence[str]) -> Mapping[tuple[str, int], Host]:
    """All of them, in processes of their own, before the GPU is used."""
    wanted = [(name, number) for name in names for number in range(len(CASES[name].strategies))]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        made = pool.map(compiled, *zip(*wanted, strict=True))
        return dict(zip(wanted, made, strict=True))


# --- running ----------------------------------------------------------------------------------------------


@dataclass
class Device:
    """The driver, and timing by its events."""

    cuda: Any

    def filled(self, given: Input) -> Any:
        """An array in device memory: its numbers, and copies of them by doubling."""
        memory, numbers = self.cuda.mem_alloc(given.bytes), given.numbers()
        self.cuda.memcpy_htod(memory, numbers)
        done = numbers.nbytes
        while done < given.bytes:
            more = min(done, given.bytes - done)
            self.cuda.memcpy_dtod(int(memory) + done, memory, more)
            done += more
        return memory

    def seconds(self, work: Callable[[], None]) -> float:
        """The median of several runs."""
        for _ in range(WARM_UP):
            work()
        times = []
        for _ in range(RUNS):
            start, end = self.cuda.Event(), self.cuda.Event()
            start.record()
            work()
            end.record()
            end.synchronize()
            times.append(start.time_till(end) / 1e3)
        return float(median(times))

    def launcher(self, host: Host, case: Case, inputs: Sequence[Any], result: Any) -> Callable[[], None]:
        """All kernels one after the other; each takes what it uses."""
        given = dict(zip(host.names, (result, *case.scalars, *inputs), strict=True))
        given |= {name: self.cuda.mem_alloc(size) for name, size in host.temporaries.items()}
        functions = []
        for kernel in host.kernels:
            function = self.cuda.module_from_file(kernel.cubin).get_function(kernel.name)
            arguments = [given[name] for name in kernel.arguments]
            function.prepare("".join("f" if isinstance(a, float) else "P" for a in arguments))
            functions.append((function, kernel, arguments))

        def run() -> None:
            for function, kernel, arguments in functions:
                function.prepared_call(kernel.grid, kernel.block, *arguments, shared_size=kernel.shared)

        return run


@dataclass(frozen=True)
class Row:
    case: str
    parameters: str
    seconds: float
    bandwidth: float
    error: float


def measured(device: Device, name: str, hosts: Mapping[tuple[str, int], Host]) -> list[Row]:
    case = CASES[name]
    inputs = [device.filled(given) for given in case.inputs]
    count, dtype = case.result
    result = device.cuda.mem_alloc(count * dtype.itemsize)
    rows = []

    def read(start: int, length: int) -> Any:
        found = np.empty(length, dtype)
        device.cuda.memcpy_dtoh(found, int(result) + start * dtype.itemsize)
        return found

    for number, (strategy, settings) in enumerate(case.strategies):
        device.cuda.memset_d8(result, 0xFF, count * dtype.itemsize)  # NaN, so that a gap shows
        run = device.launcher(hosts[name, number], case, inputs, result)
        seconds = device.seconds(run)
        shown = ", ".join(f"{k}={v}" for k, v in settings.items()) or "as it is"
        error = case.check(case, read)
        rows.append(Row(name, f"{strategy}: {shown}", seconds, case.bytes / seconds, error))
    for memory in (*inputs, result):
        memory.free()
    return rows


def driver_copy(device: Device) -> float:
    """Bytes a second, read and written, of a copy by the driver."""
    size = FLAT.bytes
    source, target = device.cuda.mem_alloc(size), device.cuda.mem_alloc(size)
    seconds = device.seconds(lambda: device.cuda.memcpy_dtod_async(target, source, size))
    source.free()
    target.free()
    return 2 * size / seconds


def main(names: Sequence[str]) -> int:
    chosen = names or list(CASES)
    hosts = compile_all(chosen)
    import pycuda.autoinit  # noqa: F401  # late: it takes the GPU
    import pycuda.driver as cuda

    device = Device(cuda)
    copied = driver_copy(device)
    rows = [row for name in chosen for row in measured(device, name, hosts)]
    ours = max((row.bandwidth for row in rows if row.case == "copy"), default=0.0)
    reference = max(copied, ours)
    print(f"{cuda.Device(0).name()}; copy: driver {copied / 1e9:.0f} GB/s, ours {ours / 1e9:.0f} GB/s")
    print(f"{'program':20} {'parameters':58} {'ms':>8} {'GB/s':>6} {'of copy':>8}  result")
    for row in rows:
        verdict = "right" if row.error <= 1 else f"WRONG ({row.error:.3g} of what is allowed)"
        print(
            f"{row.case:20} {row.parameters:58} {row.seconds * 1e3:8.3f} {row.bandwidth / 1e9:6.0f}"
            f" {row.bandwidth / reference:8.3f}  {verdict}"
        )
    return 0 if all(row.error <= 1 for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
