"""Batches of small products drawn at random, through `auto`, emulated, and compared with the interpreter.

A program has a number of matrices, sizes, a type of operands, how each operand lies, whether there is one
for all matrices or data choose it, what is done with operands before and with sums after; each is drawn by
itself. It is a defect, too, if `auto` leaves a batch to loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from random import Random

import numpy as np

from rise.check.specialise import inputs_of
from rise.depth import deep
from rise.errors import RiseError
from rise.interpret import random_inputs
from tests.attack.outcome import Outcome, Verdict, refused
from tests.attack.through_auto import chosen, definition

TARGETS = ("sm_80", "sm_90a")
BATCHES = (1, 2, 3, 7, 13, 31, 101)
LARGEST = 128
LONGEST, LONG = 700, 0.3  # of a side beyond which tiles may be faster; how often there is one
AWKWARD = (1, 2, 3, 5, 7, 8, 13, 15, 16, 17, 31, 32, 33, 64, 65, 127, 128)
WORK = 500_000  # products of numbers, at most: the emulator is slow
SMALL = 20_000
# by the type of operands: what multiplies two numbers
TIMES = {
    "f16": "f32(x) * f32(y)",
    "bf16": "f32(x) * f32(y)",
    "f32": "x * y",
    "tf32": "f32(tf32(x)) * f32(tf32(y))",
}
# %s is A or B, a matrix of %t
PROLOGUES = (
    "%s", "%s", "%s", "%s |> map(map(x => max(x, 0)))", "%s |> map(map(x => x + x))",
    "%s |> map(map(x => %t(f32(x) * a)))",
)  # fmt: skip
# of a sum s, an element c of C, r of a row for all matrices, d of a number for each row of this one
EPILOGUES = (
    "s", "s", "%t(s)", "a * s", "a * s + b * c", "%t(a * s + b * c)", "%t(max(s + c, 0))",
    "max(s + r, 0) + c", "%t(s * d + r)",
)  # fmt: skip
WHERE = ("each", "each", "each", "one", "chosen")


@dataclass(frozen=True)
class Batch:
    """A program, its sizes, inputs and target, by their seed. work: products of numbers, at most"""

    seed: int
    work: int = WORK

    @cached_property
    def drawn(self) -> tuple[str, dict[str, int], str]:
        """The text, the sizes, the target."""
        random = Random(self.seed)
        kind = random.choice(tuple(TIMES))
        type_ = "f32" if kind == "tf32" else kind
        turned = random.choice((False, True)), random.choice((False, True))
        where = random.choice(WHERE), random.choice(WHERE)
        if where == ("one", "one"):
            where = ("each", "one")
        shapes = ("k.m" if turned[0] else "m.k", "n.k" if turned[1] else "k.n")
        arrays = (_array(name, shape, type_, w) for name, shape, w in zip("AB", shapes, where, strict=True))
        (first, firsts), (second, seconds) = arrays
        prologues = (random.choice(PROLOGUES).replace("%s", m).replace("%t", type_) for m in "AB")
        left, right = prologues
        left = f"transpose({left})" if turned[0] else f"({left})"
        columns = f"({right})" if turned[1] else f"transpose({right})"
        dot = f"zip(row)(col) |> map((x, y) => {TIMES[kind]}) |> reduce(+, 0)"
        body = random.choice(EPILOGUES).replace("%t", type_)
        result = (
            f"zip({left})(zip(C)(D)) |> map((row, (cs, d)) => zip({columns})(zip(cs)(R))"
            f" |> map((col, (c, r)) => let s = {dot} in {body}))"
        )
        result += random.choice(("", "", " |> transpose"))
        text = f"""
def f(t: Nat, m: Nat, n: Nat, k: Nat)
    (a: f32, b: f32, i: t.Idx[5], j: t.Idx[5],
     As: {first}, Bs: {second}, Cs: t.m.n.f32, Ds: t.m.f32, R: n.f32) =
  zip({firsts})(zip({seconds})(zip(Cs)(Ds))) |> map((A, (B, (C, D))) => {result})"""
        return text, self._sizes(random), random.choice(TARGETS)

    def _sizes(self, random: Random) -> dict[str, int]:
        while True:
            sizes = [random.choice((random.choice(AWKWARD), random.randint(1, LARGEST))) for _ in "mnk"]
            if random.random() < LONG:
                sizes[random.randrange(3)] = random.randint(LARGEST + 1, LONGEST)
            batch = random.choice(BATCHES)
            if batch * int(np.prod(sizes)) <= self.work:
                return {"t": batch, **dict(zip("mnk", sizes, strict=True))}

    def __str__(self) -> str:
        text, sizes, target = self.drawn
        return f"batch {self.seed}: {sizes} for {target}{text}"


def _array(name: str, shape: str, type_: str, where: str) -> tuple[str, str]:
    """The type of an input, and the operands that are taken of it."""
    match where:
        case "each":
            return f"t.{shape}.{type_}", f"{name}s"
        case "one":
            return f"{shape}.{type_}", f"generate((q: Idx[t]) => {name}s)"
        case _:
            return f"5.{shape}.{type_}", f"({name}s |> gather({'i' if name == 'A' else 'j'}))"


def batches(seed: int) -> Iterator[Batch]:
    return (Batch(seed * 1_000_000 + number) for number in count())


@deep
def outcome(trial: Batch) -> Outcome:
    text, sizes, target = trial.drawn
    try:
        program = chosen(definition(text, sizes), target)
        if isinstance(program, Outcome):
            return program
        inputs = random_inputs(inputs_of(program.term), trial.seed, exact=True)
        found = program.agrees(inputs, target)
    except RiseError as error:
        return refused(error)
    looped = found.verdict is Verdict.RIGHT and "default" in program.ways
    return replace(found, verdict=Verdict.MISSED) if looped else found
