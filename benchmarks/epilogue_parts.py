"""What the parts of an epilogue cost, by schedule, in a graph, on cold operands, in turns.

    python benchmarks/epilogue_parts.py [--out FOLDER] [--jobs 12] [--check] [--sizes M,N,K …] FILE

A line of FILE is a schedule: `auto`, or `tensor_core block=…`. Of gelu(A·B + bias) + R, each computes the
product alone, the product and R, gelu of the product and bias, all of it, and the product in f32. Results are
compared with f64.
With `--check` kernels are compiled, for `sm_90a`, and nothing runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from boundary import CALLS, OPERANDS, graph_of, times
from timing import write
from variants import compiled

import codegen
from codegen.host.program import HostProgram
from rise.check.program import check_text

TEXT = """
def mixedDot{k: Nat}(xs: k.f16, ys: k.f16): f32 =
  zip(xs)(ys) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)

def multiplied{m: Nat, n: Nat, k: Nat}(A: m.k.f16, B: k.n.f16): m.n.f32 =
  A |> map(row => transpose(B) |> map(col => mixedDot(row, col)))

def geluTanh(x: f32): f32 = 0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

def alone(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16, bias: n.f16, R: m.n.f16): m.n.f16 =
  multiplied(A, B) |> map(map(x => f16(x)))

def wide(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16, bias: n.f16, R: m.n.f16): m.n.f32 =
  multiplied(A, B)

def residual(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16, bias: n.f16, R: m.n.f16): m.n.f16 =
  zip(multiplied(A, B))(R) |> map((row, added) => zip(row)(added) |> map((x, r) => f16(x + f32(r))))

def gelu(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16, bias: n.f16, R: m.n.f16): m.n.f16 =
  multiplied(A, B) |> map(row => zip(row)(bias) |> map((x, b) => f16(geluTanh(x + f32(b)))))

def both(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16, bias: n.f16, R: m.n.f16): m.n.f16 =
  zip(multiplied(A, B))(R) |> map((row, added) =>
    zip(row)(zip(bias)(added)) |> map((x, (b, r)) => f16(geluTanh(x + f32(b)) + f32(r))))
"""
PARTS = ("alone", "residual", "gelu", "both", "wide")
WIDEST = 2e-2  # of the largest element: results are rounded to f16


def built(schedule: str, name: str, at: tuple[int, ...]) -> HostProgram | str:
    """What is derived, its machine code in the cache; or why there is none."""
    return compiled(schedule, check_text(TEXT)[name], dict(zip("mnk", at, strict=True)))


def formula(torch: Any, name: str, given: Sequence[Any]) -> Any:
    """The result in f64."""
    a, b, bias, added = (each.double() for each in given)
    found = a @ b
    if name in ("gelu", "both"):
        found = torch.nn.functional.gelu(found + bias, approximate="tanh")
    return found + added if name in ("residual", "both") else found


def run(kernel: Callable[..., Any], operands: Sequence[Sequence[Any]], out: Any, number: int) -> None:
    kernel(*operands[number % len(operands)], out=out)


def measured(torch: Any, at: tuple[int, ...], kernels: dict[tuple[str, str], HostProgram | str]) -> list[str]:
    m, n, k = at

    def matrix(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda").mul_(0.5).half()

    sets = max(2, min(CALLS, int(OPERANDS / (2 * (m * k + k * n + m * n)))))
    operands = [(matrix(m, k), matrix(k, n), matrix(n), matrix(m, n)) for _ in range(sets)]
    results = {False: torch.float16, True: torch.float32}
    outs = {wide: torch.empty(m, n, device="cuda", dtype=dtype) for wide, dtype in results.items()}
    graphs, alive = {}, []  # a graph that is replayed calls kernels, which must not be collected
    for (schedule, name), program in kernels.items():
        if isinstance(program, str):
            print(f"refused: {name} by {schedule}: {program}")
            continue
        kernel, out = codegen.compile(program, backend="cuda"), outs[name == "wide"]
        out.fill_(float("nan"))
        kernel(*operands[0], out=out)
        wanted = formula(torch, name, operands[0])
        error = ((out.double() - wanted).abs().max() / wanted.abs().max()).item()
        if not error < WIDEST:
            raise SystemExit(f"{name} by {schedule} is wrong at {at}: {error}")
        alive.append(kernel)
        graphs[f"{schedule}|{name}"] = graph_of(torch, partial(run, kernel, operands, out))
    found = times(torch, graphs)
    lines = [
        "",
        f"## {m} {n} {k}, µs",
        "",
        f"| {' | '.join(PARTS)} | schedule |",
        "| ---: " * len(PARTS) + "| --- |",
    ]
    for schedule in dict.fromkeys(schedule for schedule, _ in kernels):
        cells = [found.get(f"{schedule}|{name}") for name in PARTS]
        shown = " | ".join("–" if cell is None else f"{cell:.2f}" for cell in cells)
        lines.append(f"| {shown} | {schedule} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="schedules, a line each")
    parser.add_argument("--out", type=Path, help="a folder for the table")
    parser.add_argument("--jobs", type=int, default=12, help="processes that compile")
    parser.add_argument("--check", action="store_true", help="compile, and run nothing")
    parser.add_argument("--sizes", nargs="+", default=["2048,4096,1024"])
    given = parser.parse_args()
    lines = [line.split("#")[0].strip() for line in given.file.read_text(encoding="utf-8").splitlines()]
    sizes = [tuple(map(int, size.split(","))) for size in given.sizes]
    cases = [(s, name, at) for at, s, name in product(sizes, filter(None, lines), PARTS)]
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        made = dict(zip(cases, pool.map(built, *zip(*cases, strict=True)), strict=True))
    if given.check:
        for (schedule, name, at), program in made.items():
            print(*at, name, "|", schedule, "|", program if isinstance(program, str) else "compiled")
        return
    import torch

    found = [f"# Parts of an epilogue, {torch.cuda.get_device_name()}"]
    for at in sizes:
        found += measured(
            torch, at, {(s, name): made[s, name, where] for s, name, where in made if where == at}
        )
        torch.cuda.empty_cache()
    write(given.out, "epilogue-parts.md", "\n".join([*found, ""]))


if __name__ == "__main__":
    main()
