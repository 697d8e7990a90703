"""Complex products, differences of products and the softmax of a product through `auto`, beside torch.

    python benchmarks/complex_products.py [--out FOLDER]

Operands and results in f16, sums in f32. Results are compared with those in f64. A time is the median over
launches on a warm GPU; the variants take turns, and the best of three turns counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from timing import median_ms, write

import codegen
import rise

PROGRAMS = rise.parse("""
def dot{k: Nat}(xs: k.f16, ys: k.f16): f32 =
  zip(xs)(ys) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)
def mm{m: Nat, n: Nat, k: Nat}(A: m.k.f16, B: k.n.f16): m.n.f32 =
  A |> map(row => transpose(B) |> map(col => dot(row, col)))
def each{m: Nat, n: Nat}(f: f32 -> f32 -> f32, A: m.n.f32, B: m.n.f32): m.n.f16 =
  zip(A)(B) |> map((a, b) => zip(a)(b) |> map((x, y) => f16(f(x)(y))))
def plain(m: Nat, n: Nat, k: Nat)(X: m.k.f16, W: k.n.f16) = mm(X, W) |> map(map(x => f16(x)))
def difference(m: Nat, n: Nat, k: Nat)(X: m.k.f16, Y: m.k.f16, W: k.n.f16, V: k.n.f16) =
  each(-, mm(X, W), mm(Y, V))
def complexProduct(m: Nat, n: Nat, k: Nat)(X: m.k.f16, Y: m.k.f16, W: k.n.f16, V: k.n.f16) =
  (each(-, mm(X, W), mm(Y, V)), each(+, mm(X, V), mm(Y, W)))
def softmaxProduct(m: Nat, n: Nat, k: Nat)(X: m.k.f16, W: k.n.f16) =
  mm(X, W) |> map(row =>
    let top = row |> reduce(max, -3.4e38) in
    let powers = row |> map(x => exp(x - top)) in
    let total = powers |> reduce(+, 0) in
    powers |> map(p => f16(p / total)))
""")
SIZES = ((4096, 4096, 4096), (2048, 4096, 1024), (1000, 3001, 777))
TURNS = 3
HEADER = (
    "| program | m n k | ours µs | torch | torch.compile | of as many plain products |\n" + "| --- " * 6 + "|"
)


def of_torch(torch: Any) -> Mapping[str, Callable[..., Any]]:
    mm = torch.mm
    return {
        "plain": mm,
        "difference": lambda x, y, w, v: mm(x, w) - mm(y, v),
        "complexProduct": lambda x, y, w, v: (mm(x, w) - mm(y, v), mm(x, v) + mm(y, w)),
        "softmaxProduct": lambda x, w: torch.softmax(mm(x, w), 1),
    }


def inputs(torch: Any, name: str, m: int, n: int, k: int) -> list[Any]:
    torch.manual_seed(m + n + k)
    shapes = [(m, k), (k, n)] if name in ("plain", "softmaxProduct") else [(m, k)] * 2 + [(k, n)] * 2
    return [torch.randn(shape, device="cuda", dtype=torch.float16) for shape in shapes]


def check(torch: Any, name: str, given: list[Any], found: Any) -> None:
    """Refuses a result that is further from that in f64 than roundings explain."""
    wanted = of_torch(torch)[name](*(x.double() for x in given))
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for ours, exact in pairs:
        error = float((ours.double() - exact).abs().max())
        if not error <= 2e-3 * float(exact.abs().max()):
            raise SystemExit(f"wrong: {name} {[tuple(x.shape) for x in given]}, by {error}")


def main() -> None:
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = [HEADER]
    for m, n, k in SIZES:
        alone = 0.0
        for name, products in (("plain", 1), ("difference", 2), ("complexProduct", 4), ("softmaxProduct", 1)):
            ours = codegen.compile(getattr(PROGRAMS, name), sizes={"m": m, "n": n, "k": k}, backend="cuda")
            given = inputs(torch, name, m, n, k)
            eager = of_torch(torch)[name]
            compiled = torch.compile(eager)
            check(torch, name, given, ours(*given))
            variants = [partial(f, *given) for f in (ours, eager, compiled)]
            turns = [[median_ms(torch, launch) for launch in variants] for _ in range(TURNS)]
            mine, one, two = (min(times) for times in zip(*turns, strict=True))
            alone = alone or mine
            rows.append(
                f"| {name} | {m} {n} {k} | {1000 * mine:.1f} | {one / mine:.3f} | {two / mine:.3f} |"
                f" {mine / alone / products:.3f} |"
            )
    write(arguments.out, "complex_products.md", "\n".join(rows))


if __name__ == "__main__":
    main()
