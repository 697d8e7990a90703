"""Drawn programs on a GPU, through `auto`, compared with the interpreter.

    python benchmarks/gpu_drawn.py [--seed N] [--seconds S] [--processes P]

Products, attention, rows, columns and elements, of drawn sizes and of drawn parts of arrays. Each process
prints the programs that do not agree; a fault of the GPU ends it.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random

from codegen.execute import execute
from codegen.pipeline import assemble
from rewrites.result import Success
from rise.check.compare import compare, tolerance
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.errors import RiseError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.auto import auto

DOT = "zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)"
SUM = "let s = r |> reduce(+, 0) in"
SIZES, KEYS, QUERIES, DEPTHS = (
    (40, 64, 65, 96, 128, 130, 200, 257, 320),
    (33, 64, 100, 200),
    (1, 17, 65, 130),
    (16, 32, 64),
)
ROWS, COLUMNS = (1, 7, 33, 64, 130), (1, 3, 8, 31, 64, 100, 257, 1030)
LEFT, BEHIND = (0, 1, 2, 3, 4, 5, 8, 13, 16), (0, 1, 3, 4, 8, 11, 16)
# of two matrices a and b of as many rows r and columns
OF_ROWS = [
    "$a |> map(r => r |> map(x => x * 2 + 1))",
    "zip($a)($b) |> map((r, t) => zip(r)(t) |> map((x, y) => x + y))",
    "$a |> map(r => r |> reduce(+, 0))",
    "$a |> transpose",
    "$a |> transpose |> map(c => c |> reduce(+, 0))",
    f"$a |> map(r => {SUM} (r |> map(x => x - s), s)) |> unzip",
    f"$a |> map(r => {SUM} (s, r |> reduce(max, s))) |> unzip",
    "$a |> map(r => r |> scan(+, 0))",
    "$a |> map(r => r |> map(x => (x * 2, x)) |> unzip) |> unzip",
    f"zip($a)($b) |> map((r, t) => {SUM} (zip(r)(t) |> map((x, y) => x * y - s), t)) |> unzip",
]


def part(random: Random, name: str, rows: int, columns: int, element: str) -> tuple[str, str]:
    """An array with a name, and a matrix that is part of it."""
    left, behind, above, below = (
        random.choice(each) for each in (LEFT, BEHIND, (0, 0, 1, 3, 8), (0, 0, 2, 8))
    )
    cut = f"map(r => r |> drop({left}) |> take({columns}))"
    array, matrix = random.choice(
        [
            (f"{rows}.{columns}", "$"),
            (
                f"{rows + above + below}.{columns + left + behind}",
                f"($ |> drop({above}) |> take({rows}) |> {cut})",
            ),
            (
                f"{columns + left}.{rows + above}",
                f"transpose($ |> drop({left}) |> map(r => r |> drop({above})))",
            ),
            (f"{rows * columns + left}", f"($ |> drop({left}) |> split({columns}))"),
            (
                f"{rows}.2.{columns}",
                f"($ |> map(r => r |> join |> drop({min(left, columns)}) |> take({columns})))",
            ),
            (f"{rows}.{2 * columns}", f"($ |> join |> split({columns}) |> drop({above}) |> take({rows}))"),
            (f"{rows}.3.{columns + left}", f"($ |> map(r => r |> idx(natAsIndex(3)(1)) |> drop({left})))"),
            (f"{rows}.{columns}.2", "($ |> map(r => transpose(r) |> idx(natAsIndex(2)(1))))"),
        ]
    )
    return f"{name}: {array}.{element}", matrix.replace("$", name)


def drawn(random: Random) -> str:
    """The text of a program."""
    kind = random.choice(["product", "product", "attention", "rows"])
    if kind == "product":
        m, n, k = (random.choice(SIZES) for _ in range(3))
        element, turned = random.choice(["f16", "f16", "bf16", "f32"]), random.random() < 0.5
        first = part(random, "A", m, k, element)
        second = part(random, "B", *((k, n) if turned else (n, k)), element)
        columns = f"transpose({second[1]})" if turned else second[1]
        body = f"{first[1]} |> map(row => {columns} |> map(col => {random.choice([DOT, f'f16({DOT})'])}))"
        return f"def f({first[0]}, {second[0]}) = {body}"
    if kind == "attention":
        n, m, d = (random.choice(each) for each in (KEYS, QUERIES, DEPTHS))
        parts = [part(random, name, size, d, "f16") for name, size in (("Q", m), ("K", n), ("V", n))]
        q, k_, v = (matrix for _, matrix in parts)
        given = ", ".join(array for array, _ in parts)
        return f"def f({given}) = {q} |> map(attend((j, s) => s * 0.125, {k_}, {v}))"
    m, n, element = random.choice(ROWS), random.choice(COLUMNS), random.choice(["f32", "f32", "f16", "i32"])
    a, b = (part(random, name, m, n, element) for name in "AB")
    return f"def f({a[0]}, {b[0]}) = {random.choice(OF_ROWS).replace('$a', a[1]).replace('$b', b[1])}"


def agrees(term: Expr, seed: int) -> bool:
    low = auto()(term)
    inputs = random_inputs(inputs_of(term), seed, exact=True)
    if not isinstance(low, Success):
        return False
    found = execute(assemble(low.term, "f"), inputs, "cuda")
    return compare(found, call(term, *inputs), tolerance(term)).agrees


def run(seed: int, seconds: float) -> Counter[str]:
    """How many programs agreed, and how many did not, in so many seconds."""
    random, counts, end = Random(seed), Counter[str](), time.monotonic() + seconds
    while time.monotonic() < end:
        text = drawn(random)
        try:
            term = data_flow(specialise(check_text(f'import "prelude.rise"\n{text}')["f"], {}))
            outcome = "agree" if agrees(term, seed) else "differ"
        except RiseError as error:
            outcome = f"refused, {error.code}"
        counts[outcome] += 1
        if outcome != "agree":
            print(f"{outcome}: {text}", flush=True)
    return counts


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--processes", type=int, default=8)
    given = parser.parse_args(arguments)
    total = Counter[str]()
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        seeds = range(given.seed, given.seed + given.processes)
        for counts in pool.map(run, seeds, [given.seconds] * given.processes):
            total += counts
    print(f"drawn programs: {dict(total)}")


if __name__ == "__main__":
    main()
