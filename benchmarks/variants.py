"""Several schedules of one product each, beside what users would call, in one process.

    python benchmarks/variants.py [--out FOLDER] [--jobs 12] [--check] FILE

A line of the file is what is computed, and with which schedule:

    groups 8 4096 7168 128 512 8 [8192] | tensor_core block=…  g, n, k in bf16. Of a tile the rows and
                                                               columns, tiles of a band; rows in all
    tiled 8 4096 7168 128 | auto                               of groups of as many whole tiles
    batch 128 f16 | batch rows=32                              n, the type of results; 300 MB in all
    products 97 31 120 AT bf16 f32 C relu | auto               m, n, k; whether operands are stored as they
                                                               are (A) or transposed (T); types of operands
                                                               (f16, bf16, tf32, f32) and results; what is
                                                               around them (around.py); 300 MB
    resident 128 f16 | batch rows=32                           the same, of 128 matrices that stay in the L2
                                                               cache: what a GPU with faster memory may take
    accumulated 8192 | tensor_core block=128,128,32 …          AB + C, sums and C in f32, m = n = k
    matmulHalfAt 4096 2048 512 | auto                          a product of benchmarks/tables/layouts.rise;
                                                               m, n, k, which accumulated takes, too
    … | auto                                                   what is chosen without a schedule

Other processes derive and compile all of them before the first is timed. Each result is compared with
products in f64, in memory that was filled with NaN; a wrong one is named, and not timed, and the exit status
is 1. The schedules of one product take turns with the others, in a new order each round: medians count. With
`--check` kernels are compiled, for `sm_90a`, and nothing runs.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import around
import batched
import grouped
from timing import rotated_ms, write

import codegen
import rise
from codegen.host.program import HostProgram
from rise.check.program import check_text
from rise.errors import RiseError
from rise.shipped import shipped
from strategies.registry import find

ROWS, BYTES = 8192, 300_000_000
RESIDENT = 128  # matrices, each of which so many blocks multiply that memory has little to do with it
# of single products how operands are stored, T where transposed; and the factors after C, None without it
LAYOUTS: Mapping[str, tuple[str, tuple[float, ...] | None]] = {
    "matmulHalf": ("AA", None), "matmulHalfBt": ("AT", None), "matmulHalfAt": ("TA", None),
    "matmulHalfAtBt": ("TT", None), "gemmBt": ("AT", (1.0, 1.0)), "accumulated": ("AA", ()),
}  # fmt: skip
Case = tuple[str, ...]
Lines = Sequence[tuple[Case, str]]
Launch = Callable[[], Any]


def read(text: str) -> list[tuple[Case, str]]:
    """Cases and schedules, without empty lines and comments."""
    lines = (line.split("#")[0].split("|") for line in text.splitlines())
    return [(tuple(line[0].split()), line[1].strip()) for line in lines if len(line) == 2]


# --- kernels --------------------------------------------------------------------------------------------


def built(case: Case, schedule: str) -> HostProgram | str:
    """What is derived, its machine code in the cache; or why there is none."""
    return compiled(schedule, definition(case), sizes_of(case))


def compiled(schedule: str, program: Any, sizes: Mapping[str, int]) -> HostProgram | str:
    """The same of a definition. schedule: a strategy and its parameters, as a line of a file says them"""
    name, *settings = schedule.split()
    given = dict(setting.split("=", 1) for setting in settings)
    try:
        made = find(name).make(given) if name != "auto" else None
        return codegen.compile(program, made, sizes=sizes, target="sm_90a").program
    except RiseError as error:
        return f"{error.code} {error.message}"


def tables_of(case: Case) -> HostProgram | None:
    """The tables of groups, in an order of tiles."""
    if case[0] != "groups":
        return None
    program = rise.load(shipped("examples/groups.rise"))
    sizes = {name: size for name, size in sizes_of(case).items() if name in "thcrg"}
    sizes |= {"b": int(case[6])}
    return codegen.compile(program.tables, sizes=sizes, target="sm_90a").program


def definition(case: Case) -> Any:
    match case:
        case "products", _, _, _, layouts, operand, result, *words:
            return check_text(around.program(layouts, operand, result, words))["products"]
        case "groups", *_:
            return rise.load(shipped("examples/groups.rise")).groupedProducts
        case "tiled", *_:
            return rise.load(shipped("examples/groups.rise")).tiledGroups
        case "batch", _, result:
            return batched.PROGRAMS[batched.NAMES[result]]
        case "resident", _, result:
            return batched.PROGRAMS[f"{batched.NAMES[result]}Chosen"]
        case "accumulated", *_:
            return rise.load(shipped("benchmarks/tables/papers/programs.rise")).accumulated
        case name, *_:
            return getattr(rise.load(shipped("benchmarks/tables/layouts.rise")), name)


def as_stored(shapes: Sequence[tuple[int, int]], ways: str) -> list[tuple[int, int]]:
    """The shapes of operands in memory. ways: of each, T where it is stored transposed"""
    return [(n, m) if way == "T" else (m, n) for (m, n), way in zip(shapes, ways, strict=True)]


def sizes_of(case: Case) -> dict[str, int]:
    match case:
        case "products", m, n, k, _, operand, result, *words:
            sizes = {"m": int(m), "n": int(n), "k": int(k)}
            batch = max(1, BYTES // around.bytes_of_matrix(int(m), int(n), int(k), operand, result, words))
            return {"b": batch, **sizes, **({"p": -(-batch // 2)} if "chosen" in words else {})}
        case "groups", g, n, k, h, w, _, *rows:
            there = int(rows[0]) if rows else ROWS
            return {**grouped.tiles(there, int(g), int(h), int(n) // int(w)), "w": int(w), "k": int(k)}
        case "tiled", g, n, k, h:
            return {"t": ROWS // int(h), "h": int(h), "n": int(n), "k": int(k), "g": int(g)}
        case "batch", n, result:
            return {"b": BYTES // (int(n) ** 2 * (4 + batched.WIDTH[result])), "n": int(n)}
        case "resident", *rest:
            return {**sizes_of(("batch", *rest)), "c": RESIDENT}
        case _, m, n, k:
            return dict(zip("mnk", map(int, (m, n, k)), strict=True))
        case _:
            return dict.fromkeys("mnk", int(case[1]))


# --- what they are compared with ------------------------------------------------------------------------


def is_exact(error: Callable[[], float]) -> Launch:
    """A check that the largest error, in units of what rounding allows, is at most one."""

    def check() -> None:
        found = error()
        if not found <= 1:
            raise SystemExit(f"wrong: {found} of what rounding allows")

    return check


def copy_of(torch: Any, bytes_: int) -> Launch:
    """A launch that reads half of so many bytes, and writes the other half."""
    source, target = (torch.zeros(bytes_ // 2 & ~15, device="cuda", dtype=torch.uint8) for _ in range(2))
    return lambda: target.copy_(source)


class Setting:
    """Operands of a case on the GPU, what else computes it, and a check of what a kernel has written.

    moved: in ms by the name of another launch, the factor that makes of it what is compared
    """

    def __init__(self, torch: Any, case: Case, tables: Any) -> None:
        self.torch, self.sizes, self.tables = torch, sizes_of(case), tables
        self.others: dict[str, Launch] = {}
        self.factor: dict[str, float] = {}
        if case[0] in LAYOUTS:
            self.single(*LAYOUTS[case[0]])
        else:
            getattr(self, case[0])(*case[1:])

    def groups(self, *case: str) -> None:
        torch, n = self.torch, int(case[1])
        r, g, k = (self.sizes[name] for name in "rgk")
        offsets = grouped.drawn(r, g, 0)
        x = torch.randn((r, k), device="cuda", dtype=torch.bfloat16)
        w = torch.randn((g, n, k), device="cuda", dtype=torch.bfloat16)
        where = torch.as_tensor(offsets, device="cuda")
        (tiles, count), owners = codegen.compile(self.tables, backend="cuda")(where)
        self.inputs: tuple[Any, ...] = (x, w, tiles, count, owners)
        self.of_rows(x, w, where)

    def tiled(self, *_: str) -> None:
        torch, (t, h, n, k, g) = self.torch, self.sizes.values()
        x = torch.randn((t * h, k), device="cuda", dtype=torch.bfloat16)
        w = torch.randn((g, n, k), device="cuda", dtype=torch.bfloat16)
        groups = torch.arange(t, device="cuda", dtype=torch.int32) * g // t
        self.inputs = (x, w, groups)
        self.of_rows(x, w, torch.arange(g + 1, device="cuda", dtype=torch.int32) * (t * h // g))

    def of_rows(self, x: Any, w: Any, where: Any) -> None:
        torch = self.torch
        self.out = torch.empty((len(x), w.shape[1]), device="cuda", dtype=torch.bfloat16)
        self.check: Launch = lambda: grouped.check(torch, x, w, where.tolist(), self.out)
        one, copy = torch.empty_like(self.out), torch.empty_like(w)
        transposed, behind = w.transpose(1, 2), where[1:].contiguous()
        self.others["grouped"] = lambda: torch._grouped_mm(x, transposed, offs=behind)
        self.others["one"] = lambda: torch.mm(x, w[0].t(), out=one)
        self.others["memory"] = lambda: copy.copy_(w)
        self.factor["memory"] = (x.numel() + w.numel() + self.out.numel()) / (2 * w.numel())

    def products(
        self, _m: str, _n: str, _k: str, layouts: str, operand: str, result: str, *words: str
    ) -> None:
        torch, (b, m, n, k) = self.torch, (self.sizes[name] for name in "bmnk")
        torch.backends.cuda.matmul.allow_tf32 = operand == "tf32"
        drawn = around.Drawn(torch, self.sizes, layouts, operand, result, words)
        self.inputs, self.out = drawn.inputs, drawn.out
        self.check = is_exact(drawn.largest_error)
        self.others["copy"] = copy_of(torch, b * around.bytes_of_matrix(m, n, k, operand, result, words))
        self.others["bmm"] = drawn.product()

    def batch(self, _: str, result: str) -> None:
        torch, (b, n) = self.torch, self.sizes.values()
        x, y = (torch.randn((b, n, n), device="cuda", dtype=torch.float16) for _ in range(2))
        self.inputs = (x, y)
        self.of_batch(x, y, result)

    def resident(self, _: str, result: str) -> None:
        torch, (b, n, c) = self.torch, self.sizes.values()
        few = [torch.randn((c, n, n), device="cuda", dtype=torch.float16) for _ in range(2)]
        chosen = torch.arange(b, device="cuda", dtype=torch.int32) % c
        self.inputs = (*few, chosen)
        self.of_batch(few[0][chosen], few[1][chosen], result)

    def of_batch(self, x: Any, y: Any, result: str) -> None:
        torch = self.torch
        shape = (*x.shape[:2], y.shape[2])
        self.out = torch.empty(shape, device="cuda", dtype=batched.type_of(torch, result))
        self.check = is_exact(lambda: batched.largest_error(torch, x, y, self.out))
        self.others["copy"] = copy_of(torch, x.nbytes + y.nbytes + self.out.nbytes)
        product = torch.empty(shape, device="cuda", dtype=x.dtype)
        self.others["bmm"] = lambda: torch.bmm(x, y, out=product)

    def single(self, ways: str, factors: tuple[float, ...] | None) -> None:
        torch, (m, n, k) = self.torch, self.sizes.values()
        shapes = as_stored([(m, k), (k, n)], ways)
        stored = [torch.randn(shape, device="cuda", dtype=torch.float16) for shape in shapes]
        x, y = (d.t() if way == "T" else d for d, way in zip(stored, ways, strict=True))
        c = None if factors is None else torch.randn((m, n), device="cuda")
        self.inputs = tuple(stored) if factors is None else (*stored, c, *factors)
        result = torch.float16 if c is None else torch.float32
        self.out = torch.empty((m, n), device="cuda", dtype=result)
        rows = torch.arange(0, m, max(1, m // 61), device="cuda")
        exact = x[rows].double() @ y.double()
        rounded = 2.0**-11 if c is None else 2.0**-22
        bound = (x[rows].double().abs() @ y.double().abs()) * k * 2.0**-24 + exact.abs() * rounded

        def check() -> None:
            found = self.out[rows].double() - (0 if c is None else c[rows].double())
            error = ((found - exact).abs() / (bound + 2.0**-20)).max()
            if not float(error) <= 1:
                raise SystemExit(f"wrong: {float(error)} of what rounding allows")

        self.check = check


def measured(
    torch: Any,
    case: Case,
    tables: HostProgram | None,
    kernels: Mapping[str, HostProgram | str],
    wrong: list[str],
) -> list[str]:
    """The lines of a case: each schedule's time, and that of the others over it.

    wrong: a list to which schedules with incorrect results are added
    """
    setting = Setting(torch, case, tables)
    launches: dict[str, Launch] = {}
    for schedule, kernel in kernels.items():
        if isinstance(kernel, str):
            print(f"refused: {' '.join(case)} | {schedule}: {kernel}", flush=True)
            continue
        ours = codegen.compile(kernel, backend="cuda")
        setting.out.fill_(math.nan)
        ours(*setting.inputs, out=setting.out)
        try:
            setting.check()
        except SystemExit as error:
            wrong.append(f"{' '.join(case)} | {schedule}: {error}")
            print(wrong[-1], flush=True)
            continue
        launches[schedule] = lambda ours=ours: ours(*setting.inputs, out=setting.out)  # type: ignore[misc]
    every = {**setting.others, **launches}
    times = {
        name: ms * setting.factor.get(name, 1.0) for name, ms in rotated_ms(torch, every).items()
    }  # fmt: skip
    over = [f"of {name}" for name in setting.others]
    lines = ["", f"## {' '.join(case)}", "", f"| µs | {' | '.join([*over, 'schedule'])} |"]
    lines.append(f"| ---: | {'---: | ' * len(over)}--- |")
    for schedule in sorted(launches, key=lambda name: times[name]):
        ratios = "".join(f"{times[name] / times[schedule]:.3f} | " for name in setting.others)
        lines.append(f"| {1000 * times[schedule]:.1f} | {ratios}{schedule} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="what is measured, a line each")
    parser.add_argument("--out", type=Path, help="a folder for the tables")
    parser.add_argument("--jobs", type=int, default=12, help="processes that compile")
    parser.add_argument("--check", action="store_true", help="compile, and run nothing")
    given = parser.parse_args()
    lines = read(given.file.read_text(encoding="utf-8"))
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        made = pool.map(built, *zip(*lines, strict=True))
        cases = list(dict.fromkeys(case for case, _ in lines))
        tables = dict(zip(cases, pool.map(tables_of, cases), strict=True))
        kernels = dict(zip(lines, made, strict=True))
    if given.check:
        for (case, schedule), kernel in kernels.items():
            print(" ".join(case), "|", schedule, "|", kernel if isinstance(kernel, str) else "compiled")
        return
    import torch

    found, wrong = [f"# Variants, {torch.cuda.get_device_name()}"], list[str]()
    for case, each in groupby(lines, key=lambda line: line[0]):
        mine = {schedule: kernels[case, schedule] for _, schedule in each}
        found += measured(torch, case, tables[case], mine, wrong)
        torch.cuda.empty_cache()
    write(given.out, "variants.md", "\n".join([*found, ""]))
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
