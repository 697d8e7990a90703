"""Batches of small products through `auto`, beside a copy of as many bytes and torch.bmm, in one process.

    python benchmarks/batched.py [--out FOLDER] [--sizes 1 2 3 …] [--results f32 f16] [--bytes 300000000]

Operands are f16 matrices of n × n; the batch is as long as operands and results together have about the given
bytes, more than the L2 cache holds. Results are compared with products in f64, after the memory for them was
filled with NaN. A time is the median over launches on a warm GPU; the variants take turns, and the best of
three turns counts. `copy_` moves half as many bytes as there are, since it reads and writes each: so a ratio
of 1 is the bandwidth of a copy.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timing import median_ms, write

import codegen
from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.expr import Definition
from rise.normal import data_flow
from strategies.auto import auto

PROGRAMS = check_text("""
def mixedDot{n: Nat}(xs: n.f16, ys: n.f16): f32 =
  zip(xs)(ys) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)
def products(b: Nat, n: Nat)(As: b.n.n.f16, Bs: b.n.n.f16) =
  zip(As)(Bs) |> map((A, B) => A |> map(row => transpose(B) |> map(col => mixedDot(row, col))))
def productsHalf(b: Nat, n: Nat)(As: b.n.n.f16, Bs: b.n.n.f16) =
  zip(As)(Bs) |> map((A, B) => A |> map(row => transpose(B) |> map(col => f16(mixedDot(row, col)))))
def productsChosen(b: Nat, c: Nat, n: Nat)(As: c.n.n.f16, Bs: c.n.n.f16, is: b.Idx[c]) =
  products(b, n)(As |> gather(is), Bs |> gather(is))
def productsHalfChosen(b: Nat, c: Nat, n: Nat)(As: c.n.n.f16, Bs: c.n.n.f16, is: b.Idx[c]) =
  productsHalf(b, n)(As |> gather(is), Bs |> gather(is))
""")
NAMES = {"f32": "products", "f16": "productsHalf"}
WIDTH = {"f32": 4, "tf32": 4, "f16": 2, "bf16": 2}
SIZES = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 64, 80, 100, 128)
TURNS = 3
HEADER = """\
| n | result | batch | ours µs | GB/s | of copy | of torch | kernel |
| ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |"""


@dataclass(frozen=True)
class Line:
    """A row of the table; times in ms by variant. chosen: what `auto` chose."""

    size: int
    result: str
    batch: int
    bytes: int
    times: Mapping[str, float]
    chosen: str

    def over(self, name: str) -> float:
        return self.times[name] / self.times["ours"]

    def __str__(self) -> str:
        ours = self.times["ours"]
        figures = f"{1000 * ours:.1f} | {self.bytes / ours / 1e6:.0f} | {self.over('copy'):.3f}"
        others = f"{self.over('torch'):.2f} | {self.chosen}"
        return f"| {self.size} | {self.result} | {self.batch} | {figures} | {others} |"


def type_of(torch: Any, name: str) -> Any:
    """The type of the tensor of numbers that a program computes with, by its name there."""
    known = {"f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    return known[name]


def largest_error(torch: Any, a: Any, b: Any, result: Any) -> float:
    """In units of what rounding allows: of sums in f32, and of the result."""
    part = max(1, (1 << 24) // a[0].numel())
    rounding = torch.finfo(result.dtype).eps / 2
    worst = 0.0
    for start in range(0, len(a), part):
        x, y = (m[start : start + part].double() for m in (a, b))
        exact, bound = x @ y, x.abs() @ y.abs()
        allowed = exact.abs() * rounding + bound * a.shape[2] * 2.0**-24 + 2.0**-24
        worst = max(worst, float(((result[start : start + part].double() - exact).abs() / allowed).max()))
        if result[start : start + part].isnan().any():
            return math.nan
    return worst


def measured(torch: Any, size: int, result: str, total: int, only: bool) -> Line:
    batch = max(1, total // (size * size * (4 + WIDTH[result])))
    of = (batch, size, size)
    a, b = (torch.randn(of, device="cuda", dtype=torch.float16) for _ in range(2))
    out = torch.full(of, math.nan, device="cuda", dtype=type_of(torch, result))
    program, sizes = PROGRAMS[NAMES[result]], {"b": batch, "n": size}
    ours = codegen.compile(program, sizes=sizes, backend="cuda")
    ours(a, b, out=out)
    error = largest_error(torch, a, b, out)
    if not error <= 1:
        raise SystemExit(f"wrong at n = {size}, {result}: {error} of what rounding allows")
    moved = (a.nbytes + b.nbytes + out.nbytes) // 2 & ~15
    source, target = (torch.zeros(moved, device="cuda", dtype=torch.uint8) for _ in range(2))
    product = torch.empty(of, device="cuda", dtype=torch.float16)
    variants: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours(a, b, out=out),
        "copy": lambda: target.copy_(source),
        "torch": lambda: torch.bmm(a, b, out=product),
    }
    if only:
        times = dict.fromkeys(variants, math.nan)
    else:
        turns = [{name: median_ms(torch, launch) for name, launch in variants.items()} for _ in range(TURNS)]
        times = {name: min(turn[name] for turn in turns) for name in variants}
    return Line(size, result, batch, a.nbytes + b.nbytes + out.nbytes, times, chosen(program, sizes))


def chosen(program: Definition, sizes: Mapping[str, int]) -> str:
    """The strategies that `auto` chooses, without parameters and reasons."""
    plan = auto().choice(data_flow(specialise(program, sizes)))
    return ", ".join(choice.point.strategy for choice in plan.kernels)


def mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="a folder for the table")
    parser.add_argument("--check", action="store_true", help="run only ours, once: for compute-sanitizer")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--results", nargs="+", choices=list(NAMES), default=list(NAMES))
    parser.add_argument("--bytes", type=int, default=300_000_000)
    given = parser.parse_args()
    lines = []
    for result in given.results:
        for size in given.sizes:
            lines.append(measured(torch, size, result, given.bytes, given.check))
            print(lines[-1], flush=True)
    if given.check:
        return
    said = ", ".join(
        f"{mean([line.over(name) for line in lines]):.3f} of {name}"
        f" (least {min(line.over(name) for line in lines):.3f})"
        for name in ("copy", "torch")
    )
    title = f"# Batches of products, f16, {torch.cuda.get_device_name()}"
    table = "\n".join([title, "", f"Geometric means: {said}.", "", HEADER, *map(str, lines), ""])
    write(given.out, "batched.md", table)


if __name__ == "__main__":
    main()
