"""Products of groups of rows through `auto`, beside torch, in one process.

    python benchmarks/grouped.py [--out FOLDER] [--rows 8192] [--groups 8 64] [--seed 0] [--check]

The rows of a mixture of experts, sorted by expert: each row times the matrix of its group, bf16. Groups have
uneven sizes, drawn once for each number of groups. Compared are

    ours     the tables of tiles and rows, the products of tiles, and their rows in order: all kernels
    products the products of tiles alone, into an array with rows between groups
    grouped  torch._grouped_mm, where torch has it
    loop     torch.mm for each group that has rows
    one      torch.mm of as many rows with one matrix: what no grouped product is faster than by much

Results are compared with products in f64, after the memory for them was filled with NaN. A time is the median
over launches on a warm GPU; the variants take turns, and the best of three turns counts.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from timing import median_ms, write

import codegen
import rise
from rise.shipped import shipped

SIZES = ((4096, 7168), (7168, 2048))  # n, k
TILE = 128
TURNS = 3
NAMES = ("ours", "products", "grouped", "loop", "one")
HEADER = """\
| groups | n | k | tiles | ours µs | TFLOP/s | products alone | of _grouped_mm | of a loop | of one product |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


@dataclass(frozen=True)
class Line:
    """A row of the table; times in ms by variant, NaN of what is not there."""

    groups: int
    n: int
    k: int
    rows: int
    tiles: int
    times: Mapping[str, float]

    def over(self, name: str) -> float:
        """The time of a variant over ours: above 1, ours is faster."""
        return self.times[name] / self.times["ours"]

    def __str__(self) -> str:
        ours = self.times["ours"]
        speed = 2e-9 * self.rows * self.n * self.k / ours
        figures = f"{self.tiles} | {1000 * ours:.1f} | {speed:.0f} | {1000 * self.times['products']:.1f} µs"
        others = " | ".join(f"{self.over(name):.3f}" for name in ("grouped", "loop", "one"))
        return f"| {self.groups} | {self.n} | {self.k} | {figures} | {others} |"


def offsets(rows: int, groups: int, seed: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Where groups start, and the number of rows: shares as a router gives them, some close to none."""
    generator = np.random.default_rng(seed)
    sizes = generator.multinomial(rows, generator.dirichlet(np.full(groups, 2.0)))
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


def check(torch: Any, x: Any, w: Any, starts: Sequence[int], result: Any) -> None:
    """Refuses a result that is further from products in f64 than rounding allows."""
    for group, (start, end) in enumerate(zip(starts, starts[1:], strict=False)):
        if start == end:
            continue
        a, b = x[start:end].double(), w[group].double().t()
        exact, bound = a @ b, a.abs() @ b.abs()
        allowed = exact.abs() * 2.0**-8 + bound * x.shape[1] * 2.0**-24 + 2.0**-24
        error = float(((result[start:end].double() - exact).abs() / allowed).max())
        if not error <= 1:
            raise SystemExit(f"wrong in group {group}: {error} of what rounding allows")


def measured(torch: Any, rows: int, groups: int, n: int, k: int, seed: int, only: bool) -> Line:
    starts = offsets(rows, groups, seed)
    sizes = {"t": -(-rows // TILE) + groups, "h": TILE, "r": rows, "g": groups}
    program = rise.load(shipped("examples/groups.rise"))
    tables = codegen.compile(program.tables, sizes=sizes, backend="cuda")
    grouped = codegen.compile(program.groupedProducts, sizes={**sizes, "n": n, "k": k}, backend="cuda")
    of_tiles = codegen.compile(program.productsOfTiles, sizes={**sizes, "n": n, "k": k}, backend="cuda")
    x = torch.randn((rows, k), device="cuda", dtype=torch.bfloat16)
    w = torch.randn((groups, n, k), device="cuda", dtype=torch.bfloat16)
    out = torch.full((rows, n), math.nan, device="cuda", dtype=torch.bfloat16)
    where = torch.as_tensor(starts, device="cuda")
    tiles, places = tables(where)

    def ours() -> None:
        tiles, places = tables(where)
        grouped(x, w, tiles, places, out=out)

    def loop() -> None:
        for group in range(groups):
            start, end = int(starts[group]), int(starts[group + 1])
            if start < end:
                torch.mm(x[start:end], w[group].t(), out=out[start:end])

    variants: dict[str, Callable[[], Any]] = {
        "ours": ours,
        "products": lambda: of_tiles(x, w, tiles),
        "loop": loop,
        "one": lambda: torch.mm(x, w[0].t(), out=out),
    }
    if hasattr(torch, "_grouped_mm"):
        transposed, ends = w.transpose(1, 2), where[1:].contiguous()
        variants["grouped"] = lambda: torch._grouped_mm(x, transposed, offs=ends)
    ours()
    check(torch, x, w, starts.tolist(), out)
    times = dict.fromkeys(NAMES, math.nan)
    if not only:
        turns = [{name: median_ms(torch, launch) for name, launch in variants.items()} for _ in range(TURNS)]
        times |= {name: min(turn[name] for turn in turns) for name in variants}
    return Line(groups, n, k, rows, int((-(-np.diff(starts) // TILE)).sum()), times)


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="a folder for the table")
    parser.add_argument("--check", action="store_true", help="run only ours, once: for compute-sanitizer")
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--groups", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    lines = []
    for groups in given.groups:
        for n, k in SIZES:
            lines.append(measured(torch, given.rows, groups, n, k, given.seed, given.check))
            print(lines[-1], flush=True)
    gpu = torch.cuda.get_device_name()
    title = f"# Products of groups of {given.rows} rows, bf16, seed {given.seed}, {gpu}"
    table = "\n".join([title, "", HEADER, *map(str, lines), ""])
    write(given.out, "grouped.md", table)


if __name__ == "__main__":
    main()
