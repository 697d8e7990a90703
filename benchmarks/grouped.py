"""Products of groups of rows through `auto`, beside torch, in one process.

    python benchmarks/grouped.py [--out FOLDER] [--rows 8192] [--groups 8 64] [--seed 0] [--tile H W B]
    python benchmarks/grouped.py --draw 12 [--seed 0]
    python benchmarks/grouped.py --set block=128,256,64 warp=64,256 fragment=64,256,16 epilogue=rows …
    python benchmarks/grouped.py --check

The rows of a mixture of experts, sorted by expert: each row times the matrix of its group, bf16. Groups have
uneven sizes, drawn once for each number of groups. Compared are

    ours     the tables of tiles and rows, and the products: two kernels
    products the products alone
    grouped  torch._grouped_mm, where torch has it
    loop     torch.mm for each group that has rows
    one      torch.mm of as many rows with one matrix: what no grouped product is faster than by much
    memory   both operands and the result through memory once, at the bandwidth of a copy of the matrices;
             not a graph

Results are compared with products in f64, after the memory for them was filled with NaN. The variants take
turns as CUDA graphs, in a new order each round; a time is the median over the rounds.

With `--set` the products are those of `tensor_core` with these parameters, not of `auto`.

With `--draw` so many numbers of rows and groups and so many n and k are drawn.

With `--check` nothing is timed: whole numbers, whose results have to be exact, in groups of many kinds; and
tables that contradict each other, with which every row is right or not written.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from timing import rotated_ms, write

import codegen
import rise
from rise.shipped import shipped
from strategies.registry import find

SIZES = ((4096, 7168), (7168, 2048))  # n, k
CHECKED = ((512, 1024), (520, 200))
HEIGHT, WIDTH, BAND = 128, 256, 8  # of tiles
LONG_GROUPS, LONG_BAND = 512, 11  # rows, and tiles of a band
NAMES = ("ours", "products", "grouped", "loop", "one", "memory")
HEADER = (
    "| rows | groups | n | k | tiles | ours µs | TFLOP/s | products | of _grouped_mm | of a loop | of one |"
    f" of memory |\n|{' ---: |' * 12}"
)

Settings = Mapping[str, str]
NONE: Settings = {}
Tile = tuple[int, int, int]  # rows and columns, how many are a band
Offsets = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True)
class Line:
    """A row of the table; times in ms by variant, NaN of what is not there."""

    rows: int
    groups: int
    n: int
    k: int
    tiles: int
    times: Mapping[str, float]

    def over(self, name: str) -> float:
        """The time of a variant over ours: above 1, ours is faster."""
        return self.times[name] / self.times["ours"]

    def __str__(self) -> str:
        ours = self.times["ours"]
        speed = 2e-9 * self.rows * self.n * self.k / ours
        figures = f"{self.tiles} | {1000 * ours:.1f} | {speed:.0f} | {1000 * self.times['products']:.1f} µs"
        others = " | ".join(f"{self.over(name):.3f}" for name in NAMES[2:])
        return f"| {self.rows} | {self.groups} | {self.n} | {self.k} | {figures} | {others} |"


@dataclass(frozen=True)
class Grouped:
    """The kernels for so many rows in so many groups."""

    sizes: Mapping[str, int]
    tables: Callable[..., Any]
    products: Callable[..., Any]

    @classmethod
    def of(cls, rows: int, groups: int, n: int, k: int, tile: Tile, settings: Settings = NONE) -> Grouped:
        height, width = tile[0], tile[1] if n % tile[1] == 0 else n
        sizes = tiles(rows, groups, height, n // width)
        program = rise.load(shipped("examples/groups.rise"))
        tables = codegen.compile(program.tables, sizes={**sizes, "b": tile[2]}, backend="cuda")
        sizes = {**sizes, "w": width, "k": k}
        chosen = (find("tensor_core").make(settings),) if settings else ()
        products = codegen.compile(program.groupedProducts, *chosen, sizes=sizes, backend="cuda")
        return cls(sizes, tables, products)

    def __call__(self, x: Any, w: Any, offsets: Any, out: Any) -> None:
        (tiles, count), owners = self.tables(offsets)
        self.products(x, w, tiles, count, owners, out=out)


def tile_of(rows: int, groups: int) -> Tile:
    return HEIGHT, WIDTH, LONG_BAND if rows >= groups * LONG_GROUPS else BAND


def tiles(rows: int, groups: int, height: int, columns: int) -> dict[str, int]:
    """The sizes of tables: tiles of so many rows, each with so many blocks of columns."""
    return {"t": -(-rows // height) + groups, "h": height, "c": columns, "r": rows, "g": groups}


def drawn(rows: int, groups: int, seed: int) -> Offsets:
    """Where groups start, and the number of rows: shares as a router gives them, some close to none."""
    generator = np.random.default_rng(seed)
    return starts(generator.multinomial(rows, generator.dirichlet(np.full(groups, 2.0))))


def cases(count: int, seed: int) -> Iterator[tuple[int, int, int, int]]:
    """So many rows, groups, n and k, of matrices that take up to 4 GB; torch takes multiples of 8."""
    generator = np.random.default_rng(seed)
    while count:
        rows, groups = (int(2 ** generator.uniform(*ends)) for ends in ((5, 15), (1, 8)))
        n, k = (8 * int(2 ** generator.uniform(5, 10)) for _ in range(2))
        if groups * n * k <= 2 * 10**9:
            count -= 1
            yield rows, groups, n, k


def starts(sizes: Any) -> Offsets:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


# --- results --------------------------------------------------------------------------------------------


def check(torch: Any, x: Any, w: Any, offsets: Sequence[int], result: Any) -> None:
    """Refuses a result that is further from products in f64 than rounding allows."""
    for group, (start, end) in enumerate(pairwise(offsets)):
        if start == end:
            continue
        a, b = x[start:end].double(), w[group].double().t()
        exact, bound = a @ b, a.abs() @ b.abs()
        allowed = exact.abs() * 2.0**-8 + bound * x.shape[1] * 2.0**-24 + 2.0**-24
        error = float(((result[start:end].double() - exact).abs() / allowed).max())
        if not error <= 1:
            raise SystemExit(f"wrong in group {group}: {error} of what rounding allows")


def check_exactly(torch: Any, tile: Tile, seed: int, settings: Settings = NONE) -> None:
    """Groups of many kinds, with whole numbers: the sums are exact, and rounded once."""
    h = tile[0]
    many = [0, 1, h - 1, h, h + 1, 0, 2 * h + 7, 3, h // 2, h // 2 + 1]
    kinds = [[1], [0, 0, 1], [h], [h - 1, h + 1], many, [*range(64)], [1000, 0, 0, 0], [65 * h, 1, 1, 1, h]]
    for sizes in kinds:
        for n, k in CHECKED:
            offsets = starts(sizes)
            grouped = Grouped.of(int(offsets[-1]), len(sizes), n, k, tile, settings)
            x, w = whole(torch, (int(offsets[-1]), k), seed), whole(torch, (len(sizes), n, k), seed + 1)
            out = torch.full((len(x), n), math.nan, device="cuda", dtype=torch.bfloat16)
            grouped(x, w, torch.as_tensor(offsets, device="cuda"), out)
            groups = enumerate(pairwise(offsets.tolist()))
            parts = [x[start:end].double() @ w[group].double().t() for group, (start, end) in groups]
            if not torch.equal(out, torch.cat(parts).to(torch.bfloat16)):
                raise SystemExit(f"wrong: groups of {sizes} rows, n={n}, k={k}")
            contradict(torch, grouped, x, w, out, seed)
    print(f"{2 * len(kinds) * len(CHECKED)} results are exact")


def contradict(torch: Any, grouped: Grouped, x: Any, w: Any, out: Any, seed: int) -> None:
    """Any numbers as tables: a row is that of the tile that owns it, if it belongs there, or not written.

    What is written of a row behind the group's may be anything.
    """
    t, h, c, r, g = (grouped.sizes[name] for name in "thcrg")
    draw, there = np.random.default_rng(seed), t * c
    blocks, first, count = (
        draw.integers(0, g * c, there),
        draw.integers(0, r + 1, there),
        int(draw.integers(there + 1)),
    )
    rows, owners = draw.integers(0, h + 1, there), draw.integers(0, there * h, r * c)
    owners[::2] = right(draw, first, np.arange(0, r * c, 2) % r, h)
    tiles = (on_gpu(torch, blocks), (on_gpu(torch, first), on_gpu(torch, rows)))
    out.fill_(math.nan)
    grouped.products(x, w, tiles, on_gpu(torch, np.array([count])), on_gpu(torch, owners), out=out)
    tile, inside = owners // h, owners % h
    place = blocks[tile] % c * r + np.minimum(first[tile] + inside, r - 1)
    owned = (tile < count) & (place == np.arange(r * c))
    written, undefined = owned & (inside < rows[tile]), owned & (inside >= rows[tile])
    of_x = torch.cat([x, torch.zeros_like(x[:1]).expand(h, -1)])[first[tile] + inside]
    expected = torch.full_like(out, math.nan).reshape(r * c, -1)
    for block, columns in enumerate(w.reshape(g * c, -1, w.shape[2])):
        mine = torch.as_tensor(written & (blocks[tile] == block), device="cuda")
        expected[mine] = (of_x[mine].double() @ columns.double().t()).to(torch.bfloat16)
    found = out.reshape(r, c, -1).swapaxes(0, 1).reshape(r * c, -1).clone()
    found[torch.as_tensor(undefined, device="cuda")] = math.nan
    if not torch.equal(torch.nan_to_num(found, nan=12345.0), torch.nan_to_num(expected, nan=12345.0)):
        raise SystemExit(f"wrong: tables that contradict each other, {dict(grouped.sizes)}")


def right(draw: np.random.Generator, first: Any, rows: Any, h: int) -> Any:
    """For rows an owner that may be theirs."""
    tile = draw.integers(0, len(first), len(rows))
    return tile * h + np.clip(rows - first[tile], 0, h - 1)


def on_gpu(torch: Any, numbers: Any) -> Any:
    return torch.as_tensor(numbers.astype(np.int32), device="cuda")


def whole(torch: Any, shape: tuple[int, ...], seed: int) -> Any:
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randint(-1, 2, shape, device="cuda", generator=generator).to(torch.bfloat16)


# --- times ----------------------------------------------------------------------------------------------


def measured(
    torch: Any, rows: int, groups: int, n: int, k: int, tile: Tile | None, seed: int, settings: Settings
) -> Line:
    offsets = drawn(rows, groups, seed)
    ends = offsets.tolist()
    tile = tile or tile_of(rows, groups)
    grouped = Grouped.of(rows, groups, n, k, tile, settings)
    x = torch.randn((rows, k), device="cuda", dtype=torch.bfloat16)
    w = torch.randn((groups, n, k), device="cuda", dtype=torch.bfloat16)
    out = torch.full((rows, n), math.nan, device="cuda", dtype=torch.bfloat16)
    where = torch.as_tensor(offsets, device="cuda")
    (tiles, count), owners = grouped.tables(where)
    copy = torch.empty_like(w)

    def loop() -> None:
        for group, (start, end) in enumerate(pairwise(ends)):
            if start < end:
                torch.mm(x[start:end], w[group].t(), out=out[start:end])

    variants: dict[str, Callable[[], Any]] = {
        "ours": lambda: grouped(x, w, where, out),
        "products": lambda: grouped.products(x, w, tiles, count, owners, out=out),
        "loop": loop,
        "one": lambda: torch.mm(x, w[0].t(), out=out),
        "memory": lambda: copy.copy_(w),
    }
    if hasattr(torch, "_grouped_mm"):
        transposed, behind = w.transpose(1, 2), where[1:].contiguous()
        variants["grouped"] = lambda: torch._grouped_mm(x, transposed, offs=behind)
    variants["ours"]()
    check(torch, x, w, ends, out)
    # a copy in a graph is slower than one by itself
    graphs = {name: replayed(torch, launch) for name, launch in variants.items() if name != "memory"}
    launches = {**graphs, "memory": variants["memory"]}
    times = {**dict.fromkeys(NAMES, math.nan), **rotated_ms(torch, launches)}
    times["memory"] *= (x.numel() + w.numel() + out.numel()) / (2 * w.numel())
    return Line(rows, groups, n, k, int((-(-np.diff(offsets) // tile[0])).sum()), times)


def replayed(torch: Any, launch: Callable[[], Any]) -> Callable[[], Any]:
    """The same work as a CUDA graph: products of few rows take less time than Python takes to launch them."""
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    return graph.replay  # type: ignore[no-any-return]


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="a folder for the table")
    parser.add_argument("--check", action="store_true", help="time nothing: exact results, for many groups")
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--groups", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--draw", type=int, default=0, metavar="COUNT", help="sizes that are drawn")
    parser.add_argument(
        "--tile", type=int, nargs=3, metavar=("H", "W", "B"),
        help="rows and columns of a tile, and how many are a band",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="of `tensor_core`")
    given = parser.parse_args()
    settings: Settings = dict(setting.split("=", 1) for setting in given.set)
    tile: Tile | None = tuple(given.tile) if given.tile else None
    if given.check:
        check_exactly(torch, tile or (HEIGHT, WIDTH, BAND), given.seed, settings)
        return
    lines = []
    stated = [(given.rows, groups, n, k) for groups in given.groups for n, k in SIZES]
    for rows, groups, n, k in cases(given.draw, given.seed) if given.draw else stated:
        lines.append(measured(torch, rows, groups, n, k, tile, given.seed, settings))
        print(lines[-1], flush=True)
    gpu = torch.cuda.get_device_name()
    title = f"# Products of groups of rows, bf16, seed {given.seed}, {gpu}"
    table = "\n".join([title, "", HEADER, *map(str, lines), ""])
    write(given.out, "grouped.md", table)


if __name__ == "__main__":
    main()
