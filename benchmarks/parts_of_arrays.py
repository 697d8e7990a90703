"""Products and attention of parts of arrays: beside the same of whole arrays, and beside torch, in turns.

    python benchmarks/parts_of_arrays.py [--out FOLDER] [--size N] [--rounds N]

A part is a view: rows or columns of a matrix, a matrix in a list of numbers, queries, keys and values in one
array, the first keys of a cache. torch gets the same views. Warps whose threads bring one element at once
take any part; `auto` took them for most of these before the copying unit read parts, or kernels copied them.
Each result is compared with one in f64 before.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from timing import median_ms, write

import codegen
from rise.check.program import check_text
from strategies.matmul.tensor_core import tensor_core

PRODUCT = """
def sums(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: n.k.f16): m.n.f32 =
  A |> map(row => B |> map(col => zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)))
def product(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: n.k.f16): m.n.f16 =
  sums(m, n, k)(A, B) |> map(map(x => f16(x)))
"""
HEADS = """
def heads{h: Nat, m: Nat, n: Nat, d: Nat}(Q: h.m.d.f16, K: h.n.d.f16, V: h.n.d.f16): h.m.d.f16 =
  zip(Q)(zip(K)(V)) |> map((Q, (K, V)) =>
    Q |> map(q => attend((j, s) => s * rsqrt(cast(length(q))), K, V, q)))
"""
WARPS = tensor_core(
    block=(128, 128, 32),
    warp=(64, 64),
    fragment=(16, 8, 16),
    stages=3,
    vector=1,
    cp_async=False,
    epilogue="direct",
)
WIDEST = 4e-3  # of the largest element: results are rounded to f16
FOLLOWING = 96  # keys


@dataclass(frozen=True)
class Case:
    """A program, its inputs, and the same with torch. by_warps: whether warps compute it, for comparison"""

    name: str
    text: str
    inputs: list[Any]
    torch: Callable[..., Any]
    by_warps: bool = False


def products(torch: Any, n: int) -> list[Case]:
    """A part of n × k, times the transposition of an n × k matrix."""

    def matrix(*sizes: int) -> Any:
        return torch.randn(*sizes, device="cuda").mul_(0.5).half()

    def case(name: str, array: tuple[int, ...], part: str, view: Callable[[Any], Any], k: int = n) -> Case:
        sizes = ".".join(map(str, array))
        text = f"def f(A: {sizes}.f16, B: {n}.{k}.f16): {n}.{n}.f16 = product({n}, {n}, {k})({part}, B)"
        given = [matrix(*array), matrix(n, k)]
        return Case(name, PRODUCT + text, given, lambda a, b: view(a) @ b.T, part != "A")

    return [
        case("a whole matrix", (n, n), "A", lambda a: a),
        case("rows from row 5", (n + 40, n), f"A |> drop(5) |> take({n})", lambda a: a[5 : n + 5]),
        case("columns from 8", (n, n + 8), "A |> map(drop(8))", lambda a: a[:, 8:]),
        case("columns from 3", (n, n + 8), f"A |> map(drop(3)) |> map(take({n}))", lambda a: a[:, 3 : n + 3]),
        case("columns from 3, odd rows", (n, n + 3), "A |> map(drop(3))", lambda a: a[:, 3:]),
        case("columns before others", (n, n), f"A |> map(take({n - 96}))", lambda a: a[:, : n - 96], n - 96),
        case("a list", (n * n,), f"A |> split({n})", lambda a: a.view(n, n)),
        case("a list from 4", (n * n + 4,), f"A |> drop(4) |> split({n})", lambda a: a[4:].view(n, n)),
    ]


def gates(torch: Any, n: int) -> list[Case]:
    """max(X·W, 0)·(X·V), with W and V apart, and as the halves of one matrix."""

    def matrix(*sizes: int) -> Any:
        return torch.randn(*sizes, device="cuda").mul_(0.1).half()

    def gated(p: Any, q: Any) -> Any:
        return torch.relu(p) * q

    gate = "map((a, b) => f16(max(a, 0) * b))"
    one = f"sums({n}, {n}, {n})"
    apart = f"zip({one}(X, W))({one}(X, V)) |> map((p, q) => zip(p)(q) |> {gate})"
    packed = f"sums({n}, {2 * n}, {n})(X, W) |> map(p => zip(p |> take({n}))(p |> drop({n})) |> {gate})"
    return [
        Case("weights apart", f"{PRODUCT}def f(X: {n}.{n}.f16, W: {n}.{n}.f16, V: {n}.{n}.f16) = {apart}",
             [matrix(n, n) for _ in range(3)], lambda x, w, v: gated(x @ w.T, x @ v.T)),
        Case("weights packed", f"{PRODUCT}def f(X: {n}.{n}.f16, W: {2 * n}.{n}.f16) = {packed}",
             [matrix(n, n), matrix(2 * n, n)], lambda x, w: gated(*(x @ w.T).chunk(2, 1))),
    ]  # fmt: skip


def attentions(torch: Any, n: int) -> list[Case]:
    """32 heads of n queries and keys, of dimension 128."""
    h, d, attended = 32, 128, torch.nn.functional.scaled_dot_product_attention

    def array(*sizes: int) -> Any:
        return torch.randn(*sizes, device="cuda").half()

    def heads(*matrices: Any) -> Any:
        return attended(*(each[None] for each in matrices))[0]

    def packed(projections: Any) -> Any:
        return heads(*projections.permute(1, 2, 0, 3)).transpose(0, 1)

    def cached(queries: Any, *others: Any) -> Any:
        return heads(queries, *(each[:, : n - FOLLOWING] for each in others))

    whole = f"Q: {h}.{n}.{d}.f16, K: {h}.{n}.{d}.f16, V: {h}.{n}.{d}.f16"
    first = f"map(take({n - FOLLOWING}))"
    part = "QKV |> map(r => r |> idx(natAsIndex(3)($))) |> transpose"
    q, k, v = (part.replace("$", str(number)) for number in range(3))
    head = 'import "prelude.rise"' + HEADS
    return [
        Case("whole arrays", f"{head}def f({whole}) = heads(Q, K, V)",
             [array(h, n, d) for _ in range(3)], heads),
        Case("packed by token", f"{head}def f(QKV: {n}.3.{h}.{d}.f16) = heads({q}, {k}, {v}) |> transpose",
             [array(n, 3, h, d)], packed),
        Case("first keys", f"{head}def f({whole}) = heads(Q, K |> {first}, V |> {first})",
             [array(h, n, d) for _ in range(3)], cached),
    ]  # fmt: skip


def table(torch: Any, cases: Sequence[Case], rounds: int) -> list[str]:
    """A row for each case: times, and their ratios to the whole arrays' and to torch's."""
    kernels: dict[tuple[str, str], Callable[[], Any]] = {}
    for case in cases:
        made = {"ours": codegen.compile(check_text(case.text)["f"])}
        if case.by_warps:
            made["warps"] = codegen.compile(check_text(case.text)["f"], WARPS)
        for name, kernel in made.items():
            check(torch, f"{case.name}, {name}", kernel(*case.inputs), case)
            kernels[case.name, name] = partial(kernel, *case.inputs)
        kernels[case.name, "torch"] = partial(case.torch, *case.inputs)
    found: dict[tuple[str, str], list[float]] = {key: [] for key in kernels}
    for _ in range(rounds):
        for key, launch in kernels.items():
            found[key].append(1000 * median_ms(torch, launch))
    times = {key: median(each) for key, each in found.items()}
    whole = times[cases[0].name, "ours"]
    lines = ["| part | µs | of the whole | of torch | of warps |", "| --- | ---: | ---: | ---: | ---: |"]
    for case in cases:
        ours, others = (
            times[case.name, "ours"],
            [times.get((case.name, name)) for name in ("torch", "warps")],
        )
        ratios = [f"{other / ours:.3f}" if other else "" for other in (whole, *others)]
        lines.append(f"| {case.name} | {ours:.1f} | {' | '.join(ratios)} |")
    return lines


def check(torch: Any, name: str, result: Any, case: Case) -> None:
    wanted = case.torch(*(each.double() for each in case.inputs))
    error = ((result.double() - wanted).abs().max() / wanted.abs().max()).item()
    if not error < WIDEST:
        raise SystemExit(f"{name} is wrong: {error}")


def main(arguments: Sequence[str] | None = None) -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--size", type=int, default=3840)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    lines = [f"# Parts of arrays, {torch.cuda.get_device_name()}", ""]
    lines += [f"Products of n × n matrices, n = {given.size}, f16; speed as a multiple of others':", ""]
    lines += table(torch, products(torch, given.size), given.rounds)
    lines += ["", f"Two products of n × n matrices, n = {given.size}, one of them a gate, f16:", ""]
    lines += table(torch, gates(torch, given.size), given.rounds)
    lines += ["", f"Attention, 32 heads, {given.size} queries and keys, d = 128, f16:", ""]
    lines += table(torch, attentions(torch, given.size), given.rounds)
    write(given.out, "parts-of-arrays.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
