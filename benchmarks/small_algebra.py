"""Linear algebra of many small matrices besides products, through `auto`, beside torch and a copy.

    python benchmarks/small_algebra.py [--out FOLDER] [--jobs 12] [--check] FILE
    python benchmarks/small_algebra.py --draw SEED COUNT [KIND …] > FILE

A line of the file is what is computed of each element of a batch (KINDS), m and n, the type of operands (f16,
bf16, f32) and of results, and, behind `|`, a schedule if it is not `auto`. Operands and results are about
300 MB. Other processes compile all of them before the first is timed. Each result is compared with one in
f64, in memory that was filled with NaN; a wrong one is named, and the exit status is 1. The schedules of a
line take turns with a copy of as many bytes, and with what torch has. With `--check` kernels are compiled,
for `sm_90a`, and nothing runs.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import prod
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from batched import WIDTH, chosen, mean, type_of
from timing import rotated_ms, write
from variants import compiled, copy_of

import codegen
from codegen.host.program import HostProgram
from rise.check.program import check_text

BYTES = 300_000_000
ALPHA, BETA = 0.5, 2.0
DOT = "(zip({})({}) |> map((p, q) => f32(p) * f32(q)) |> reduce(+, 0))"


@dataclass(frozen=True)
class Kind:
    """What is computed of each element of a batch.

    arrays: names of operands with their shapes in it; in parentheses where all elements share one operand
    body:   the element of the result, whose type is {o}
    einsum: the same in torch, of operands in this order; empty where OTHERS has it
    result: the shape of the element
    """

    arrays: Mapping[str, str]
    body: str
    einsum: str
    result: str

    def program(self, operand: str, result: str) -> str:
        """The text of a definition `f`. operand, result: types of numbers"""
        given = ", ".join(f"{name}s: {_array(shape)}{operand}" for name, shape in self.arrays.items())
        each = [name for name, shape in self.arrays.items() if not is_shared(shape)]
        zipped, names = f"{each[-1]}s", each[-1]
        for name in reversed(each[:-1]):
            zipped, names = f"zip({name}s)({zipped})", f"({name}, {names})"
        body = self.body.replace("{o}", result)
        return f"def f(b: Nat, m: Nat, n: Nat)({given}) = {zipped} |> map({names} => {body})"

    def bytes_of(self, m: int, n: int, operand: str, result: str) -> int:
        """What an element reads and writes, but for what all share."""
        size = {"m": m, "n": n}
        read = sum(
            prod(map(size.__getitem__, shape)) for shape in self.arrays.values() if not is_shared(shape)
        )
        return read * WIDTH[operand] + prod(map(size.__getitem__, self.result)) * WIDTH[result]


def is_shared(shape: str) -> bool:
    """Whether all elements of a batch have an operand in common."""
    return shape.startswith("(")


def _array(shape: str) -> str:
    """The sizes of an operand, as a type says them."""
    return "".join(f"{size}." for size in ("" if is_shared(shape) else "b") + shape.strip("()"))


KINDS = {
    "times_vector": Kind(
        {"A": "mn", "x": "n"}, f"A |> map(r => {{o}}{DOT.format('r', 'x')})", "bmn,bn->bm", "m"
    ),
    "transposed_times_vector": Kind(
        {"A": "nm", "x": "n"}, f"transpose(A) |> map(r => {{o}}{DOT.format('r', 'x')})", "bnm,bn->bm", "m"
    ),
    "times_one_vector": Kind(
        {"A": "mn", "x": "(n)"}, f"A |> map(r => {{o}}{DOT.format('r', 'xs')})", "bmn,n->bm", "m"
    ),
    "gemv": Kind(
        {"A": "mn", "x": "n", "y": "m"},
        f"zip(A)(y) |> map((r, v) => {{o}}({ALPHA} * {DOT.format('r', 'x')} + {BETA} * f32(v)))",
        "", "m",
    ),
    "gram": Kind(
        {"A": "mn"}, f"A |> map(r => A |> map(s => {{o}}{DOT.format('r', 's')}))", "bmn,bpn->bmp", "mm"
    ),
    "gram_of_columns": Kind(
        {"A": "nm"},
        f"transpose(A) |> map(r => transpose(A) |> map(s => {{o}}{DOT.format('r', 's')}))",
        "bnm,bnp->bmp", "mm",
    ),
    "outer": Kind(
        {"x": "m", "y": "n"}, "x |> map(p => y |> map(q => {o}(f32(p) * f32(q))))", "bm,bn->bmn", "mn"
    ),
    "update": Kind(
        {"A": "mn", "x": "m", "y": "n"},
        "zip(A)(x) |> map((r, p) => zip(r)(y) |> map((a, q) =>"
        f" {{o}}(f32(a) + {ALPHA} * (f32(p) * f32(q)))))",
        "", "mn",
    ),
    "dots": Kind({"x": "n", "y": "n"}, f"{{o}}{DOT.format('x', 'y')}", "bn,bn->b", ""),
    "form": Kind(
        {"A": "mn", "x": "m", "y": "n"},
        f"{{o}}(zip(A)(x) |> map((r, p) => f32(p) * {DOT.format('r', 'y')}) |> reduce(+, 0))",
        "bmn,bm,bn->b", "",
    ),
    "residual": Kind(
        {"A": "mn", "x": "n", "y": "m"},
        f"{{o}}(zip(A)(y) |> map((r, v) => f32(v) - {DOT.format('r', 'x')})"
        " |> map(e => e * e) |> reduce(+, 0))",
        "", "",
    ),
    "scaled": Kind(
        {"A": "mn", "x": "m", "y": "n"},
        "zip(A)(x) |> map((r, p) => zip(r)(y) |> map((a, q) => {o}(f32(p) * f32(a) * f32(q))))",
        "bmn,bm,bn->bmn", "mn",
    ),
    "trace": Kind(
        {"A": "mn", "B": "nm"},
        f"{{o}}(zip(A)(transpose(B)) |> map((r, c) => {DOT.format('r', 'c')}) |> reduce(+, 0))",
        "bmn,bnm->b", "",
    ),
    "two_matrices": Kind(
        {"A": "mn", "B": "nm", "x": "m"},
        f"let y = B |> map(r => {DOT.format('r', 'x')}) in A |> map(r => {{o}}{DOT.format('r', 'y')})",
        "bmn,bnp,bp->bm", "m",
    ),
    "weighted_gram": Kind(
        {"A": "mn", "w": "n"},
        "A |> map(r => A |> map(s => {o}(zip(w)(zip(r)(s))"
        " |> map((v, (p, q)) => f32(v) * (f32(p) * f32(q))) |> reduce(+, 0))))",
        "bmn,bn,bpn->bmp", "mm",
    ),
    "weighted_first": Kind(
        {"A": "mn", "w": "n"},
        "A |> map(r => A |> map(s => {o}(zip(w)(zip(r)(s))"
        " |> map((v, (p, q)) => f32(v) * f32(p) * f32(q)) |> reduce(+, 0))))",
        "bmn,bn,bpn->bmp", "mm",
    ),
    "sums_of_columns": Kind(
        {"A": "mn"}, "transpose(A) |> map(c => {o}(c |> map(f32) |> reduce(+, 0)))", "bmn->bn", "n"
    ),
    "of_length_one": Kind(
        {"x": "n"},
        "let s = x |> map(a => f32(a) * f32(a)) |> reduce(+, 0) in"
        " x |> map(a => {o}(f32(a) / sqrt(s + 1.0)))",
        "", "n",
    ),
    "softmax": Kind(
        {"x": "n"},
        "let s = x |> map(a => exp(f32(a))) |> reduce(+, 0) in x |> map(a => {o}(exp(f32(a)) / s))",
        "", "n",
    ),
    "rows_of_length_one": Kind(
        {"A": "mn"},
        "A |> map(r => let s = r |> map(a => f32(a) * f32(a)) |> reduce(+, 0) in"
        " r |> map(a => {o}(f32(a) / sqrt(s + 1.0))))",
        "", "mn",
    ),
}  # fmt: skip
# what `einsum` cannot express, for operands in f64
OTHERS: Mapping[str, Callable[..., Any]] = {
    "gemv": lambda a, x, y: ALPHA * (a @ x[..., None])[..., 0] + BETA * y,
    "update": lambda a, x, y: a + ALPHA * x[..., None] * y[:, None, :],
    "residual": lambda a, x, y: (y - (a @ x[..., None])[..., 0]).square().sum(1),
    "of_length_one": lambda x: x / (x.square().sum(1, keepdim=True) + 1).sqrt(),
    "softmax": lambda x: x.softmax(1),
    "rows_of_length_one": lambda a: a / (a.square().sum(2, keepdim=True) + 1).sqrt(),
}
Case = tuple[str, int, int, str, str]
Built = tuple[HostProgram | str, str]
Times = Mapping[str, float]
HEADER = (
    "| of each | m | n | operands | results | µs | of copy | of torch | kernels |",
    "| --- | ---: | ---: | --- | --- | ---: | ---: | ---: | --- |",
)


def drawn(seed: int, count: int, kinds: Sequence[str]) -> list[str]:
    """Lines of random cases, as many of each kind."""
    source = random.Random(seed)

    def side() -> int:
        return source.choice([source.randint(1, 8), source.randint(9, 32), *[source.randint(33, 128)] * 2])

    def line(kind: str) -> str:
        operand = source.choice(["f16", "bf16", "f32"])
        result = "f32" if operand == "f32" else source.choice(["f32", operand])
        return f"{kind} {side()} {side()} {operand} {result}"

    return [line(kind) for _ in range(count) for kind in kinds]


def read(text: str) -> list[tuple[Case, str]]:
    """Cases and schedules, `auto` where a line says none."""
    lines = (line.split("#")[0].partition("|") for line in text.splitlines())
    words = [(case.split(), schedule.strip()) for case, _, schedule in lines if case.strip()]
    return [((kind, int(m), int(n), t, o), schedule or "auto") for (kind, m, n, t, o), schedule in words]


def sizes_of(case: Case, only: int = 0) -> dict[str, int]:
    """only: how many elements there are; 0: as many as are about BYTES"""
    kind, m, n, operand, result = case
    return {"b": only or max(1, BYTES // KINDS[kind].bytes_of(m, n, operand, result)), "m": m, "n": n}


def built(case: Case, schedule: str, only: int = 0) -> Built:
    """What is derived, its machine code in the cache, or why there is none; and the strategies."""
    definition, sizes = check_text(KINDS[case[0]].program(*case[3:]))["f"], sizes_of(case, only)
    program = compiled(schedule, definition, sizes)
    found = schedule == "auto" and not isinstance(program, str)
    return program, chosen(definition, sizes) if found else schedule


class Setting:
    """Operands of a case on the GPU."""

    def __init__(self, torch: Any, case: Case, only: int) -> None:
        self.torch, self.case = torch, case
        self.kind, self.sizes = KINDS[case[0]], sizes_of(case, only)
        stored = type_of(torch, case[3])
        self.inputs = [
            torch.randn(self.shape(shape), device="cuda").half().to(stored)
            for shape in self.kind.arrays.values()
        ]
        self.out = torch.empty(self.shape(self.kind.result), device="cuda", dtype=type_of(torch, case[4]))

    def shape(self, shape: str) -> list[int]:
        sizes = [self.sizes[s] for s in shape.strip("()")]
        return sizes if is_shared(shape) else [self.sizes["b"], *sizes]

    def value(self, inputs: list[Any]) -> Any:
        if self.case[0] in OTHERS:
            return OTHERS[self.case[0]](*inputs)
        text = self.kind.einsum
        # where operands occur once more, the first does
        return self.torch.einsum(text, *inputs, *[inputs[0]] * (text.count(",") + 1 - len(inputs)))

    def largest_error(self) -> float:
        """In units of what rounding allows: of sums in f32, and of the result."""
        torch, b = self.torch, self.sizes["b"]
        if self.out.isnan().any():
            return float("nan")
        each = max(t[0].numel() for t in (*self.inputs, self.out))
        part, worst = max(1, (1 << 24) // each), 0.0
        for start in range(0, b, part):
            of = [
                (t if is_shared(shape) else t[start : start + part]).double()
                for t, shape in zip(self.inputs, self.kind.arrays.values(), strict=True)
            ]
            exact, size = self.value(of), self.value([t.abs() for t in of])
            if self.case[0] == "residual":
                size = OTHERS["residual"](*(-of[0].abs(), of[1].abs(), of[2].abs()))
            terms = 4 + self.sizes["m"] + self.sizes["n"]
            allowed = (
                size.abs() * terms * 2.0**-23 + exact.abs() * torch.finfo(self.out.dtype).eps / 2 + 2.0**-24
            )
            worst = max(
                worst, float(((self.out[start : start + part].double() - exact).abs() / allowed).max())
            )
        return worst


def measured(torch: Any, case: Case, kernels: Mapping[str, Built], only: int) -> tuple[Times, list[str]]:
    """Times in ms by the name of a launch, none where a kernel runs only once, and what is wrong.

    kernels: by their schedules
    """
    setting, launches = Setting(torch, case, only), dict[str, Callable[[], Any]]()
    wrong = [f"{name}: {kernel}" for name, (kernel, _) in kernels.items() if isinstance(kernel, str)]
    for schedule, (kernel, _) in kernels.items():
        if isinstance(kernel, str):
            continue
        ours = codegen.compile(kernel, backend="cuda")
        setting.out.fill_(float("nan"))
        ours(*setting.inputs, out=setting.out)
        error = setting.largest_error()
        if not error <= 1:
            wrong.append(f"{schedule}: wrong: {error} of what rounding allows")
            continue
        launches[schedule] = lambda ours=ours: ours(*setting.inputs, out=setting.out)  # type: ignore[misc]  # by value
    if only:
        return {}, wrong
    total = sum(t.nbytes for t in (*setting.inputs, setting.out))
    launches |= {"copy": copy_of(torch, total), "torch": lambda: setting.value(setting.inputs)}
    return rotated_ms(torch, launches), wrong


def table_of(torch: Any, every: Mapping[Case, Mapping[str, Built]], only: int) -> tuple[list[str], bool]:
    """The lines of the table, and whether all that was computed is right; what is not is printed."""
    rows, right = list[str](), True
    ratios: dict[str, list[float]] = {"copy": [], "torch": []}
    for case, kernels in every.items():
        times, wrong = measured(torch, case, kernels, only)
        right = right and not wrong
        for each in wrong:
            print(*case, "|", each, flush=True)
        for name in kernels.keys() & times.keys():
            over = {other: times[other] / times[name] for other in ratios}
            for other, ratio in over.items():
                ratios[other].append(ratio)
            figures = f"{1000 * times[name]:.1f} | {over['copy']:.3f} | {over['torch']:.2f}"
            rows.append(f"| {' | '.join(map(str, case))} | {figures} | {kernels[name][1]} |")
        torch.cuda.empty_cache()
    means = [f"{mean(each):.3f} of {name} (least {min(each):.3f})" for name, each in ratios.items() if each]
    return [f"Geometric means: {', '.join(means)}.", "", *HEADER, *rows], right


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", help="what is measured, a line each")
    parser.add_argument("--out", type=Path, help="a folder for the table")
    parser.add_argument("--jobs", type=int, default=12, help="processes that compile")
    parser.add_argument("--check", action="store_true", help="compile, and run nothing")
    parser.add_argument(
        "--only", type=int, default=0, help="run each once, on so many: for compute-sanitizer"
    )
    parser.add_argument("--draw", nargs="+", help="a seed, how many of each kind, and the kinds")
    given = parser.parse_args()
    if given.draw:
        seed, count, *kinds = given.draw
        print("\n".join(drawn(int(seed), int(count), kinds or list(KINDS))))
        return
    lines = read(given.file.read_text(encoding="utf-8"))
    cases, schedules = zip(*lines, strict=True)
    if given.only:
        made = [built(case, schedule, given.only) for case, schedule in lines]
    else:
        with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
            made = list(pool.map(built, cases, schedules))
    every: dict[Case, dict[str, Built]] = {}
    for (case, schedule), found in zip(lines, made, strict=True):
        every.setdefault(case, {})[schedule] = found
    if given.check:
        for case, kernels in every.items():
            for schedule, (kernel, strategies) in kernels.items():
                print(*case, "|", schedule, "|", kernel if isinstance(kernel, str) else strategies)
        return
    import torch

    table, right = table_of(torch, every, given.only)
    title = f"# Small linear algebra, {torch.cuda.get_device_name()}"
    write(given.out, "small_algebra.md", "\n".join([title, "", *table, ""]))
    if not right:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
