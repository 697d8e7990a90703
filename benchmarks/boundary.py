"""What the boundary between two kernels of a program costs: in a graph, on cold operands, in turns.

    python benchmarks/boundary.py [--out FOLDER] [--sizes M,N,K …]

max(A, 0)·B as two kernels, launched early (as they are by `auto`) and one after the other; by one kernel of
warps; the product alone; and as torch computes it. Every result is compared with the same formula in f64.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from timing import write

import codegen
from codegen import pipeline
from rise.check.program import check_text
from rise.errors import RiseError
from strategies.matmul.tensor_core import tensor_core

TEXT = """
def dot{k: Nat}(xs: k.f16, ys: k.f16): f32 = zip(xs)(ys) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)

def product(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16): m.n.f16 =
  A |> map(row => B |> transpose |> map(col => f16(dot(row)(col))))

def stored(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16): m.n.f16 =
  let P = A |> map(map(x => max(x, 0))) |> toMem(Global) in
  P |> map(row => B |> transpose |> map(col => f16(dot(row)(col))))

def rectified(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16): m.n.f16 =
  A |> map(row => B |> transpose |> map(col => f16(dot(row |> map(x => max(x, 0)))(col))))
"""
SIZES = ["896,2048,128", "896,2176,2560", "384,1792,2176", "512,2048,4096", "2560,384,256", "2048,256,384"]
OPERANDS, CALLS, ROUNDS = 150e6, 24, 15  # bytes, so that the cache does not keep them; in a graph; of a turn
WARPS = tensor_core(
    (128, 128, 64), (32, 32), (16, 8, 16), stages=5, swizzled=True, prefetch_fragments=True, raster_group=0,
    epilogue="direct",
)  # fmt: skip


def variants(sizes: dict[str, int]) -> dict[str, Callable[..., Any]]:
    """Functions of (A, B, out) by name; those that are refused are left out."""
    program = check_text(TEXT)
    found: dict[str, Callable[..., Any]] = {}

    def made(name: str, definition: str, strategy: Any = None) -> None:
        try:
            found[name] = codegen.compile(program[definition], strategy, sizes=sizes)
        except RiseError as error:
            print(f"{name}: {error}")

    made("early", "stored")
    with patch.object(pipeline, "overlapping", tuple):
        pipeline._LATEST.clear()
        made("apart", "stored")
    made("one kernel", "rectified", WARPS)
    made("auto", "rectified")
    made("product", "product")
    return found


def graph_of(torch: Any, call: Callable[[int], Any]) -> Any:
    """A graph of calls, each on the next set of operands."""
    for number in range(CALLS):
        call(number)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(CALLS):
            call(number)
    return graph


def called(kernel: Callable[..., Any], operands: Sequence[tuple[Any, Any]], out: Any, number: int) -> None:
    kernel(*operands[number % len(operands)], out=out)


def times(torch: Any, graphs: dict[str, Any], rounds: int = ROUNDS) -> dict[str, float]:
    """Microseconds of a call, the median over rounds in which the variants take turns."""
    seen: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(rounds):
        for name, graph in graphs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            graph.replay()
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            seen[name].append(start.elapsed_time(end) * 1000 / CALLS)
    return {name: median(values) for name, values in seen.items()}


def measured(torch: Any, m: int, n: int, k: int) -> dict[str, float]:
    sets = max(2, min(CALLS, int(OPERANDS / (2 * (m * k + k * n + m * n)))))
    operands = [
        (torch.randn(m, k, device="cuda").half(), torch.randn(k, n, device="cuda").half())
        for _ in range(sets)
    ]
    out = torch.empty(m, n, device="cuda", dtype=torch.float16)
    graphs: dict[str, Any] = {}
    for name, kernel in variants({"m": m, "n": n, "k": k}).items():
        for first, second in operands:  # behind each other, without a wait of the host
            out.fill_(float("nan"))
            kernel(first, second, out=out)
            wanted = (first if name == "product" else first.relu()).double() @ second.double()
            error = (out.double() - wanted).abs().max().item() / wanted.abs().max().item()
            if not error < 1e-3:
                raise SystemExit(f"{name} is wrong at {m} {n} {k}: {error}")
        graphs[name] = graph_of(torch, partial(called, kernel, operands, out))

    def theirs(first: Any, second: Any, out: Any) -> None:
        torch.mm(first.relu(), second, out=out)

    graphs["torch"] = graph_of(torch, partial(called, theirs, operands, out))
    return times(torch, graphs)


def main(arguments: Sequence[str] | None = None) -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    given = parser.parse_args(arguments)
    columns = ["early", "apart", "one kernel", "auto", "product", "torch"]
    lines = [f"# The boundary between two kernels, µs, {torch.cuda.get_device_name()}", ""]
    lines += ["| m n k | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for size in given.sizes:
        m, n, k = map(int, size.split(","))
        found = measured(torch, m, n, k)
        cells = " | ".join(f"{found[name]:.2f}" if name in found else "–" for name in columns)
        lines.append(f"| {m} {n} {k} | {cells} |")
    write(given.out, "boundary.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
