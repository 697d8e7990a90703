"""What the norms of rows cost in front of a product: kernels alone and together, in a graph, in turns.

    python benchmarks/norms_in_front.py [--out FOLDER] [--sizes M,N,K …] [--rounds N]

Rows of X·W scaled by the norms of X's rows. For several tiles: the product alone; behind a kernel of as many
blocks as rows; beside one of few blocks, which leaves multiprocessors room. The latter also launched before
all in front of it has ended, and with the numbers of rows read after the wait for all products. Each result
is compared with the formula in f64 before it is timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from boundary import CALLS, OPERANDS, graph_of, times
from timing import write

import codegen
from codegen import pipeline
from codegen.ir import imperative as i
from codegen.passes import overlap
from codegen.passes.overlap import overlapping
from rise.check.program import check_text
from rise.errors import RiseError
from strategies.matmul.kernels import each_product_kernel
from strategies.matmul.tensor_core import tensor_core
from strategies.memory_bound.rows import rows
from strategies.places import in_inputs

TEXT = """
def dot{k: Nat}(xs: k.f16, ys: k.f16): f32 = zip(xs)(ys) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)

def scale{k: Nat}(row: k.f16): f32 =
  rsqrt((row |> map(x => f32(x) * f32(x)) |> reduce(+, 0)) * 0.000244140625 + 1e-5)

def product(m: Nat, n: Nat, k: Nat)(X: m.k.f16, W: k.n.f16): m.n.f16 =
  X |> map(row => W |> transpose |> map(col => f16(dot(row)(col))))

def scales(m: Nat, n: Nat, k: Nat)(X: m.k.f16): m.f32 = X |> map(scale)

def scaled(m: Nat, n: Nat, k: Nat)(X: m.k.f16, W: k.n.f16): m.n.f16 =
  zip(X |> map(scale) |> toMem(Global))(X |> map(row => W |> transpose |> map(dot(row))))
  |> map((s, sums) => sums |> map(y => f16(y * s)))

def norms(m: Nat, n: Nat, k: Nat)(X: m.k.f16, W: k.n.f16): m.n.f16 =
  X
  |> map(row => let s = scale(row) in row |> map(x => f16(f32(x) * s)))
  |> map(row => W |> transpose |> map(col => f16(dot(row)(col))))
"""
SIZES = ["4096,4096,4096", "2048,12288,4096", "4096,14336,4096", "8192,1024,4096"]
TILES: dict[str, dict[str, Any]] = {
    "128×256": {"block": (128, 256, 64), "warp": (64, 256), "fragment": (64, 256, 16), "stages": 3,
                "raster_group": 16},
    "128×128 in turn": {"block": (128, 128, 64), "warp": (128, 128), "fragment": (64, 128, 16), "stages": 5,
                        "raster_group": 8, "ping_pong": 2},
    "256×192": {"block": (256, 192, 64), "warp": (128, 192), "fragment": (64, 192, 16), "stages": 3,
                "raster_group": 1},
}  # fmt: skip
FEW = 132  # blocks, one to a multiprocessor
WIDEST = 2e-2  # of the largest element: results are rounded to f16, and rows scaled before


def variants(sizes: dict[str, int]) -> dict[str, tuple[str, Callable[..., Any]]]:
    """Definitions and functions of (X, W, out) by name; those that are refused are left out."""
    program = check_text(TEXT)
    found: dict[str, tuple[str, Callable[..., Any]]] = {}

    def made(name: str, definition: str, strategy: Any = None) -> None:
        try:
            found[name] = definition, codegen.compile(program[definition], strategy, sizes=sizes)
        except RiseError as error:
            print(f"{name}: {error}")

    made("product, auto", "product")
    made("norms, auto", "norms")
    made("scales, a block for a row", "scales", rows())
    made("scales, few blocks", "scales", rows(few_blocks=FEW))
    for tile, given in TILES.items():
        s = tensor_core(**given, epilogue="bulk", warp_specialised=True, persistent_blocks=132, cluster=2)
        made(f"{tile}: product", "product", s)
        made(f"{tile}: behind a block for a row", "scaled", in_inputs(each_product_kernel(s, rows())))
        beside = in_inputs(each_product_kernel(s, rows(few_blocks=FEW)))
        made(f"{tile}: beside few blocks", "scaled", beside)
        changes: dict[str, Any] = {
            "launched early": patch.object(pipeline, "overlapping", launched_early),
            "numbers read late": patch.object(overlap, "reads_first", lambda command, _: command),
        }
        for change, patched in changes.items():
            pipeline._LATEST.clear()
            with patched:
                made(f"{tile}: beside few blocks, {change}", "scaled", beside)
        pipeline._LATEST.clear()
    return found


def launched_early(functions: Sequence[i.Function]) -> tuple[i.Function, ...]:
    """Kernels, of which the first is launched before those in front of it have ended, and waits for them."""
    first, *others = overlapping(functions)
    return replace(first, body=i.sequence(i.AwaitPreviousGrid(), first.body)), *others


def formula(torch: Any, definition: str, given: Sequence[Any]) -> Any:
    """The result in f64."""
    rows, *others = (each.double() for each in given)
    scale = torch.rsqrt(rows.square().sum(1, keepdim=True) / 4096 + 1e-5)
    match definition, others:
        case "product", [columns]:
            return rows @ columns
        case _, [columns]:
            return (rows @ columns) * scale
    return scale.squeeze(1)


def checked_graph(
    torch: Any, name: str, definition: str, kernel: Callable[..., Any], operands: Any, out: Any
) -> Any:
    """A graph of calls. The first call, and the last one of the graph, have given the right result."""
    graph = None
    for number in (0, CALLS - 1):
        out.fill_(float("nan"))
        if graph is None:
            kernel(*operands[0], out=out)
        else:
            graph.replay()
        check(torch, name, definition, operands[number % len(operands)], out)
        graph = graph or graph_of(torch, partial(_run, kernel, operands, out))
    return graph


def check(torch: Any, name: str, definition: str, given: Any, out: Any) -> None:
    wanted = formula(torch, definition, given)
    error = ((out.double() - wanted).abs().max() / wanted.abs().max()).item()
    if not error < WIDEST:
        raise SystemExit(f"{name} is wrong at {tuple(out.shape)}: {error}")


def measured(torch: Any, m: int, n: int, k: int, rounds: int) -> list[str]:
    def matrix(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda").mul_(0.5).half()

    sets = max(2, min(CALLS, int(OPERANDS / (2 * k * (m + n)))))
    operands = [(matrix(m, k), matrix(k, n)) for _ in range(sets)]
    result, numbers = matrix(m, n), torch.empty(m, device="cuda", dtype=torch.float32)
    graphs = {}
    for name, (definition, kernel) in variants({"m": m, "n": n, "k": k}).items():
        alone = definition == "scales"
        out = numbers if alone else result
        given = [pair[:1] if alone else pair for pair in operands]
        graphs[name] = checked_graph(torch, name, definition, kernel, given, out)
    found = times(torch, graphs, rounds)
    product = found["product, auto"]
    return [f"| {name} | {time:.2f} | {time / product:.3f} |" for name, time in found.items()]


def _run(kernel: Callable[..., Any], operands: Sequence[Sequence[Any]], out: Any, number: int) -> None:
    kernel(*operands[number % len(operands)], out=out)


def main(arguments: Sequence[str] | None = None) -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=31)
    given = parser.parse_args(arguments)
    lines = [f"# Norms of rows in front of a product, µs, {torch.cuda.get_device_name()}"]
    for at in given.sizes:
        m, n, k = map(int, at.split(","))
        lines += ["", f"| m n k: {m} {n} {k} | µs | of the product |", "| --- | ---: | ---: |"]
        lines += measured(torch, m, n, k, given.rounds)
    write(given.out, "norms-in-front.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
