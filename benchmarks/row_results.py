"""Rows that give an array and numbers: beside copies of as many bytes, `default` and torch.compile, in turns.

    python benchmarks/row_results.py [--out FOLDER] [--rows M] [--columns N] [--rounds N]

`default` is what `auto` took before a block computed such rows. Each result is compared with torch's
in f64 before it is timed. `copy_` reads and writes half of the bytes that a program moves.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from timing import median_ms, write

import codegen
from rise.check.program import check_text
from strategies.default import default

TEXT = """import "prelude.rise"
def norm{b: Nat, n: Nat}(xs: b.n.f32): (b.n.f32, b.(f32, f32)) =
  xs
  |> map(x =>
    let m = mean(x) in
    let s = rsqrt(variance(x) + 1e-5) in
    (x |> map(y => (y - m) * s), (m, s)))
  |> unzip
def quantised{b: Nat, n: Nat}(xs: b.n.f32): (b.n.i8, b.f32) =
  xs
  |> map(x =>
    let scale = max(x |> map(abs) |> reduce(max, 0), 1e-30) / 127 in
    (x |> map(y => i8(round(y / scale))), scale))
  |> unzip
def softmaxes{b: Nat, n: Nat}(xs: b.n.f32): (b.n.f32, b.f32) =
  xs
  |> map(x =>
    let top = x |> reduce(max, -infinity) in
    let total = x |> map(y => exp(y - top)) |> sum in
    (x |> map(y => exp(y - top) / total), top + log(total)))
  |> unzip
"""


def norm(torch: Any, xs: Any) -> tuple[Any, ...]:
    mean, scale = xs.mean(1), torch.rsqrt(xs.var(1, correction=0) + 1e-5)
    return (xs - mean[:, None]) * scale[:, None], mean, scale


def quantised(torch: Any, xs: Any) -> tuple[Any, ...]:
    scale = xs.abs().amax(1).clamp(min=1e-30) / 127
    return (xs / scale[:, None]).round().to(torch.int8), scale


def softmaxes(torch: Any, xs: Any) -> tuple[Any, ...]:
    total = torch.logsumexp(xs, 1)
    return torch.exp(xs - total[:, None]), total


REFERENCES: dict[str, Callable[..., tuple[Any, ...]]] = {
    "norm": norm,
    "quantised": quantised,
    "softmaxes": softmaxes,
}


def arrays(result: Any) -> list[Any]:
    """The arrays in a result of pairs."""
    return [each for part in result for each in arrays(part)] if isinstance(result, tuple) else [result]


def check(torch: Any, name: str, result: Any, xs: Any) -> None:
    """A rounding to eight bits may go either way."""
    for found, wanted in zip(arrays(result), REFERENCES[name](torch, xs.double()), strict=True):
        error = (found.double() - wanted.double()).abs().max().item()
        if not error <= (1 if found.dtype == torch.int8 else 1e-4):
            raise SystemExit(f"{name} is wrong: {error}")


def measured(torch: Any, name: str, rows: int, columns: int, rounds: int) -> str:
    """A line of the table."""
    xs = torch.randn(rows, columns, device="cuda")
    program, sizes = check_text(TEXT)[name], {"b": rows, "n": columns}
    kernels = [codegen.compile(program, strategy, sizes=sizes) for strategy in (None, default())]
    for kernel in kernels:
        check(torch, name, kernel(xs), xs)
    compiled = torch.compile(partial(REFERENCES[name], torch))
    result = arrays(kernels[0](xs))
    moved = xs.nbytes + sum(each.nbytes for each in result)
    source = torch.empty(moved // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    launches: list[Callable[[], Any]] = [
        *(partial(kernel, xs) for kernel in kernels),
        partial(compiled, xs),
        partial(target.copy_, source),
    ]
    times: list[list[float]] = [[] for _ in launches]
    for _ in range(rounds):
        for launch, found in zip(launches, times, strict=True):
            found.append(1000 * median_ms(torch, launch))
    ours, before, torchs, copy = map(median, times)
    return f"| {name} | {ours:.1f} | {copy / ours:.3f} | {torchs / ours:.3f} | {before / ours:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--columns", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    lines = [f"# Rows of {given.columns} that give an array and numbers, {torch.cuda.get_device_name()}", ""]
    lines += [f"{given.rows} rows; speed as a multiple of others'.", ""]
    lines += ["| | µs | of a copy | of torch.compile | of `default` |", "| --- | ---: | ---: | ---: | ---: |"]
    lines += [measured(torch, name, given.rows, given.columns, given.rounds) for name in REFERENCES]
    write(given.out, "row-results.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
