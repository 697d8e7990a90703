"""Rows of products that are only reduced, beside torch: in a graph, on cold operands, in turns.

    python benchmarks/reduced_rows.py [--out FOLDER] [--sizes M,N,K …] [--programs NAME …] [--compiled]

The programs of examples/reduced_rows.rise through `auto`; the same in torch, as one would write it, eagerly
and with `--compiled` by torch.compile; and `torch.mm` alone, with results in f16. Products are of f16, sums
and exponentials in f32, also in torch. Results are compared with f64 in memory that was filled with NaN:
numbers with numbers, an index by the score that it chooses.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from boundary import CALLS, OPERANDS, graph_of, times
from timing import write

import codegen
import rise
from rise.shipped import shipped

PROGRAMS = ("logSumExps", "linearCrossEntropy", "scoresAndLogSumExps", "best", "nearest")
# heads of language models, contrastive losses, clusters, and sizes that nothing divides
SIZES = (
    "4096,50257,768", "8192,32000,4096", "2048,128256,4096", "16384,16384,64", "16384,16384,256",
    "8192,8192,1024", "100000,1024,128", "1000,3001,777",
)  # fmt: skip
WIDEST = 1e-3  # of the largest number, or of the spread of a row's scores
ROWS = 1024  # that are compared at a time
HEADER = "| m n k | kernels | ours µs | torch | compiled | torch.mm | of torch | of torch.mm |"


def inputs(torch: Any, name: str, m: int, n: int, k: int) -> list[Any]:
    """Random operands, whose scores are about 1 in size, in the order of a program's parameters."""
    first, second = (torch.randn(rows, k, device="cuda").mul_(k**-0.25).half() for rows in (m, n))
    match name:
        case "linearCrossEntropy":
            return [first, second, torch.randint(0, n, (m,), device="cuda", dtype=torch.int32)]
        case "nearest":
            return [first, second, second.float().square().sum(1)]
    return [first, second]


def formula(torch: Any, name: str) -> Callable[..., Any]:
    """The program in torch."""

    def scores(x: Any, y: Any) -> Any:
        return torch.mm(x, y.t()).float()

    formulas: Mapping[str, Callable[..., Any]] = {
        "logSumExps": lambda x, y: torch.logsumexp(scores(x, y), 1),
        "linearCrossEntropy": lambda x, y, classes: torch.nn.functional.cross_entropy(
            scores(x, y), classes.long(), reduction="none"
        ),
        "scoresAndLogSumExps": lambda x, y: (p := torch.mm(x, y.t()), torch.logsumexp(p.float(), 1)),
        "best": lambda x, y: torch.mm(x, y.t()).argmax(1),
        "nearest": lambda x, y, norms: (norms - 2 * scores(x, y)).argmin(1),
    }
    return formulas[name]


def error(torch: Any, name: str, given: Sequence[Any], found: Any) -> float:
    """The largest, in f64: of numbers relative to the largest one, of an index by what its score lacks."""
    x, y, *others = given
    largest = 0.0
    for start in range(0, len(x), ROWS):
        rows = slice(start, start + ROWS)
        scores = x[rows].double() @ y.double().t()
        match name:
            case "best" | "nearest":
                scores = scores if name == "best" else 2 * scores - others[0].double()
                chosen = scores.gather(1, found[rows, None].long())[:, 0]
                wrong = (scores.amax(1) - chosen) / (scores.amax(1) - scores.amin(1))
            case _:
                wanted = torch.logsumexp(scores, 1)
                if name == "linearCrossEntropy":
                    wanted -= scores.gather(1, others[0][rows, None].long())[:, 0]
                numbers = found[1] if name == "scoresAndLogSumExps" else found
                wrong = (numbers[rows].double() - wanted).abs() / wanted.abs().max()
        worst = wrong.max().item()
        largest = worst if not worst <= largest else largest
    return largest


def outputs(torch: Any, name: str, m: int, n: int) -> Any:
    """Where results go: nothing that is right."""
    if name in ("best", "nearest"):
        return torch.full((m,), n - 1, device="cuda", dtype=torch.int32)
    numbers = torch.full((m,), float("nan"), device="cuda")
    if name == "scoresAndLogSumExps":
        return torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16), numbers
    return numbers


def run(function: Callable[..., Any], operands: Sequence[Sequence[Any]], number: int, **more: Any) -> None:
    function(*operands[number % len(operands)], **more)


def measured(torch: Any, name: str, at: Sequence[int], compiled: bool) -> str:
    m, n, k = at
    each = inputs(torch, name, m, n, k)
    sets = max(2, min(CALLS, int(OPERANDS / sum(x.nbytes for x in each))))
    operands = [each, *(inputs(torch, name, m, n, k) for _ in range(sets - 1))]
    program = rise.load(shipped("examples/reduced_rows.rise"))[name]
    kernel = codegen.compile(program, sizes={"m": m, "n": n, "k": k}, backend="cuda")
    out = outputs(torch, name, m, n)
    kernel(*each, out=out)
    wrong = error(torch, name, each, out)
    if not wrong < WIDEST:
        raise SystemExit(f"{name} is wrong at {at}: {wrong}")
    product = torch.empty(m, n, device="cuda", dtype=torch.float16)
    alone = [(x[0], x[1].t()) for x in operands]
    functions = {"torch": formula(torch, name)}
    if compiled:
        functions["compiled"] = torch.compile(formula(torch, name), dynamic=False)
    graphs = {
        "ours": graph_of(torch, partial(run, kernel, operands, out=out)),
        **{w: graph_of(torch, partial(run, function, operands)) for w, function in functions.items()},
        "mm": graph_of(torch, partial(run, torch.mm, alone, out=product)),
    }
    found = times(torch, graphs)
    cells = " | ".join(f"{found[w]:.1f}" if w in found else "" for w in ("ours", "torch", "compiled", "mm"))
    ratios = f"{found['torch'] / found['ours']:.2f} | {found['mm'] / found['ours']:.2f}"
    return f"| {m} {n} {k} | {len(kernel.program.kernels)} | {cells} | {ratios} |"


def main(arguments: Sequence[str] | None = None) -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--programs", nargs="+", default=PROGRAMS, choices=PROGRAMS)
    parser.add_argument("--compiled", action="store_true")
    given = parser.parse_args(arguments)
    lines = [f"# Rows of products that are only reduced, {torch.cuda.get_device_name()}"]
    for name in given.programs:
        lines += ["", f"## {name}", "", HEADER, "| --- |" + " ---: |" * 7]
        for at in given.sizes:
            lines.append(measured(torch, name, [int(size) for size in at.split(",")], given.compiled))
            print(lines[-1], flush=True)
            torch.cuda.empty_cache()
    write(given.out, "reduced-rows.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
