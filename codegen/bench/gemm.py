"""GEMM against cuBLAS: one process, interleaved, random normal data, the result checked in the same run."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from codegen import runtime
from codegen.bench.cublas import Cublas
from codegen.bench.graphs import Graph
from codegen.pipeline import Kernel
from rise.errors import LaunchError

ROUNDS = 15
# launches in a graph: at least CALLS, more where one is short, up to WORK operations in all
CALLS, MOST_CALLS, WORK = 10, 200, 1e12
PROGRAM = """
def gemm = depFun((m: Nat, n: Nat, k: Nat) =>
  fun((A: m.k.f16, B: k.n.f16, C: m.n.f32, alpha: f32, beta: f32) =>
    zip(A)(C) |> map(fun((row, cs) =>
      zip(transpose(B))(cs) |> map(fun((column, c) =>
        zip(row)(column) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0) |>
          fun(r => (alpha * r) + (beta * c))))))))
"""
ALPHA, BETA = 1.5, 0.5


@dataclass(frozen=True)
class Row:
    """One size: median microseconds of both, the spread (interquartile range over median), the ratio."""

    date: str
    device: str
    driver: str
    cublas: int
    m: int
    n: int
    k: int
    ours_us: float
    ours_spread: float
    cublas_us: float
    cublas_spread: float
    ratio: float
    tflops: float
    error: float
    bound: float
    schedule: str


def measure(kernel: Kernel, m: int, n: int, k: int, schedule: str, seed: int = 0) -> Row:
    """Times D = αAB + βC with f16 A (m.k) and B (k.n), f32 C and D (m.n); raises where D is wrong."""
    import numpy as np

    cuda = runtime.driver()
    random = np.random.default_rng(seed)
    a = random.standard_normal((m, k)).astype(np.float16)
    b = random.standard_normal((k, n)).astype(np.float16)
    c = random.standard_normal((m, n)).astype(np.float32)
    device = [_Device(cuda, x) for x in (a, b, c, np.full((m, n), np.nan, np.float32), c)]
    on_a, on_b, on_c, on_d, on_e = device
    loaded, blas = runtime.load(kernel), Cublas()

    def ours(stream: Any) -> None:
        loaded(on_d, on_a, on_b, on_c, ALPHA, BETA, stream=stream)

    def theirs(stream: Any) -> None:
        blas.on(stream.handle)
        blas.gemm(m, n, k, ALPHA, on_a.pointer, on_b.pointer, BETA, on_e.pointer)

    calls = max(CALLS, min(MOST_CALLS, int(WORK / (2 * m * n * k))))
    graphs = [Graph(cuda, work, calls) for work in (ours, theirs)]
    error, bound = _error(on_d.host(), a, b, c, random)
    times = interleaved(cuda, graphs)
    (ours_us, ours_spread), (cublas_us, cublas_spread) = (_summary(t) for t in times)
    major, minor = divmod(cuda.get_driver_version(), 1000)
    return Row(
        datetime.now(UTC).isoformat(timespec="seconds"), cuda.Device(0).name(), f"{major}.{minor // 10}",
        blas.version, m, n, k, ours_us, ours_spread, cublas_us, cublas_spread, cublas_us / ours_us,
        2 * m * n * k / ours_us / 1e6, error, bound, schedule,
    )  # fmt: skip


class _Device:
    """An array on the GPU that the runtime takes without a copy."""

    def __init__(self, cuda: Any, array: Any) -> None:
        self.cuda, self.shape, self.dtype = cuda, array.shape, array.dtype
        self.allocation = cuda.to_device(array)
        self.pointer = int(self.allocation)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": None,
            "version": 3,
        }

    def host(self) -> Any:
        return self.cuda.from_device(self.allocation, self.shape, self.dtype)


def _error(result: Any, a: Any, b: Any, c: Any, random: Any) -> tuple[float, float]:
    """The largest error of sampled rows against f64, and the bound it must not pass."""
    import numpy as np

    if np.isnan(result).any():
        raise LaunchError("R0829", "elements of the result were never written")
    rows = random.choice(a.shape[0], size=min(16, a.shape[0]), replace=False)
    left, right = a[rows].astype(np.float64), b.astype(np.float64)
    wanted = ALPHA * (left @ right) + BETA * c[rows]
    # sums of k products in f32, in any order: k partial sums no larger than Σ|a||b|, each off by at most
    # one unit in the last place (tensor cores truncate)
    magnitude = ALPHA * (np.abs(left) @ np.abs(right)) + BETA * np.abs(c[rows])
    bound = (a.shape[1] + 4) * 2.0**-23 * magnitude
    error = np.abs(result[rows] - wanted)
    if (error > bound).any():
        raise LaunchError("R0830", f"the result is wrong: error {error.max()} beyond {bound.max()}")
    return float(error.max()), float(bound.max())


def interleaved(cuda: Any, graphs: Sequence[Graph]) -> list[list[float]]:
    """Microseconds of a call in each graph, ROUNDS times, taking turns."""
    times: list[list[float]] = [[] for _ in graphs]
    for turn in range(ROUNDS + 2):
        for graph, measured in zip(graphs, times, strict=True):
            start, end = cuda.Event(), cuda.Event()
            start.record(graph.stream)
            graph.replay()
            end.record(graph.stream)
            end.synchronize()
            if turn >= 2:
                measured.append(start.time_till(end) * 1000 / graph.times)
    return times


def _summary(times: list[float]) -> tuple[float, float]:
    quarters = statistics.quantiles(times, n=4)
    median = statistics.median(times)
    return median, (quarters[2] - quarters[0]) / median


def append(rows: Sequence[Row], path: Path) -> None:
    """Adds rows to a CSV file, which gets a header if it is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(asdict(rows[0])))
        if new:
            writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def table(rows: Sequence[Row]) -> str:
    """A short table for people."""
    lines = ["     m      n      k     ours µs (±)   cuBLAS µs (±)   ratio  TFLOP/s  error / bound"]
    for r in rows:
        lines.append(
            f"{r.m:6} {r.n:6} {r.k:6} {r.ours_us:9.1f} {r.ours_spread:5.1%} {r.cublas_us:9.1f} "
            f"{r.cublas_spread:5.1%} {r.ratio:7.3f} {r.tflops:8.1f}  {r.error:.2e} / {r.bound:.2e}"
        )
    return "\n".join(lines)
