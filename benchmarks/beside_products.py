"""What fused programs cost beside the product alone: in a graph, on cold operands, in turns.

    python benchmarks/beside_products.py [--out FOLDER]

gelu(A·B + bias) + R and rms_norm(X)·W beside A·B; silu(X·W)·(X·V) beside X·[W V]. All through `auto`. Every
result is compared with the same formula in f64.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from boundary import CALLS, OPERANDS, graph_of, times
from timing import write

import codegen
from rise.check.program import Program, load

TABLES = Path(__file__).parent / "tables"
# a program, its formula, how many columns the product alone has for each of its own, and sizes m, n, k
CASES: Sequence[tuple[str, str, int, Sequence[tuple[int, int, int]]]] = (
    ("gelu + R", "geluResidual", 1,
     ((2048, 4096, 1024), (4096, 4096, 4096), (8192, 3584, 3584), (8192, 1024, 4096))),
    ("gate", "gated", 2,
     ((2048, 4096, 1024), (4096, 14336, 4096), (512, 14336, 4096), (8192, 3584, 3584))),
    ("rms_norm", "rmsProduct", 1, ((4096, 4096, 4096), (2048, 12288, 4096))),
)  # fmt: skip
WIDEST = 2e-2  # of the largest element: results are rounded to f16, and rows scaled before


def inputs(torch: Any, name: str, m: int, n: int, k: int) -> list[Any]:
    """Random operands of a program, in the order of its parameters."""

    def matrix(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda").mul_(0.5).half()

    further: dict[str, list[tuple[int, ...]]]
    further = {"geluResidual": [(n,), (m, n)], "gated": [(k, n)], "rmsProduct": []}
    return [matrix(m, k), matrix(k, n), *(matrix(*shape) for shape in further[name])]


def formula(torch: Any, name: str, given: Sequence[Any]) -> Any:
    """The result in f64."""
    first, second, *others = (each.double() for each in given)
    product = first @ second
    match name, others:
        case "geluResidual", [bias, added]:
            return torch.nn.functional.gelu(product + bias, approximate="tanh") + added
        case "gated", [other]:
            return torch.nn.functional.silu(product) * (first @ other)
        case "rmsProduct", []:
            return product * torch.rsqrt(first.square().mean(1, keepdim=True) + 1e-5)
    return product


def run(kernel: Callable[..., Any], operands: Sequence[Sequence[Any]], out: Any, number: int) -> None:
    kernel(*operands[number % len(operands)], out=out)


def graph(torch: Any, kernel: Callable[..., Any], name: str, operands: Sequence[Any], out: Any) -> Any:
    """A graph of calls of a kernel whose result is right. It does not keep operands and result alive."""
    out.fill_(float("nan"))
    kernel(*operands[0], out=out)
    wanted = formula(torch, name, operands[0])
    error = ((out.double() - wanted).abs().max() / wanted.abs().max()).item()
    if not error < WIDEST:
        raise SystemExit(f"{name} is wrong at {tuple(out.shape)}: {error}")
    return graph_of(torch, partial(run, kernel, operands, out))


def measured(torch: Any, fused: Program, plain: Program, name: str, wide: int, at: Sequence[int]) -> str:
    m, n, k = at
    each = inputs(torch, name, m, n, k)
    sets = max(2, min(CALLS, int(OPERANDS / sum(x.nbytes for x in each))))
    operands = [each, *(inputs(torch, name, m, n, k) for _ in range(sets - 1))]
    alone = [(x[0], torch.cat([x[1]] * wide, 1)) for x in operands]
    sizes = {"m": m, "n": n, "k": k}
    kernel = codegen.compile(fused[name], sizes=sizes)
    product = codegen.compile(plain["matmulHalf"], sizes={**sizes, "n": wide * n})
    out, columns = (torch.empty(m, size, device="cuda", dtype=torch.float16) for size in (n, wide * n))
    graphs = {
        "fused": graph(torch, kernel, name, operands, out),
        "product": graph(torch, product, "product", alone, columns),
        "torch": graph(torch, torch.mm, "product", alone, columns),
    }
    found = times(torch, graphs)
    cells = " | ".join(f"{found[which]:.2f}" for which in graphs)
    return f"| {m} {n} {k} | {cells} | {found['fused'] / found['product']:.3f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    fused, plain = load(TABLES / "fused.rise"), load(TABLES / "layouts.rise")
    lines = [f"# Fused programs beside the product alone, µs, {torch.cuda.get_device_name()}"]
    for title, name, wide, sizes in CASES:
        lines += ["", f"| {title}, m n k | fused | product alone | torch.mm | of the product |"]
        lines += ["| --- |" + " ---: |" * 4]
        lines += [measured(torch, fused, plain, name, wide, at) for at in sizes]
    write(given.out, "beside-products.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
