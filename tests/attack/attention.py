"""Programs of attention drawn at random, through `auto`, emulated, and compared with the interpreter.

A program has a layout of its arrays, a function that modifies scores, a mask, a type of operands, results and
sizes; each is drawn by itself, and so is the GPU that it is for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from random import Random

import numpy as np

from rise.check.specialise import inputs_of
from rise.depth import deep
from rise.errors import RiseError
from rise.interpret import random_inputs
from tests.attack.outcome import Outcome, refused
from tests.attack.through_auto import chosen, definition

TARGETS = ("sm_80", "sm_90a")
LENGTHS = (1, 7, 63, 64, 65, 128, 130, 257)
LONG = 1000  # keys, of few queries
DIMENSIONS = (16, 24, 32, 40, 64, 80, 96, 128, 192, 256)
ODD = (18, 21, 36)  # which the copying unit does not take
WORK = 2_000_000  # products of numbers, at most: the emulator is slow
SMALL = 50_000
# of a score s and the numbers i and j of its query and key
SCORES = (
    "s * scale",
    "8.0 * tanh(s * scale / 8.0)",
    "s * scale - 0.0625 * abs(f32(i - j))",
    "s * scale + 0.5 * f32(j - i)",
)
MASKS = (
    "",
    "",
    "j <= i",
    "j < i",
    "j <= i && i - j < w",
    "j <= i && (j < 3 || i - j < w)",
    "j < w || j <= i",
    "j < w",
    "i - j < w && j - i < w",
    "j <= 2 * i + 1",
)
BESIDE = ("select(b == i, {}, -infinity)", "{} + 0.25 * f32(b)", "select(b < i, {}, -infinity)")
SCALES = (0.25, 1.0, 1e4, -1e4, 1e-4)


@dataclass(frozen=True)
class Layout:
    """How arrays of heads lie: parameters, with %t for the type of operands, and the program of `rows`."""

    dimensions: tuple[str, ...]
    arrays: tuple[str, str, str]
    text: str


LAYOUTS = (
    Layout((), ("m.d.%t", "n.d.%t", "n.e.%t"), "rows(scale, w, K, V, Q)"),
    Layout(
        ("h",),
        ("h.m.d.%t", "h.n.d.%t", "h.n.e.%t"),
        "zip(Q)(zip(K)(V)) |> map((Q, (K, V)) => rows(scale, w, K, V, Q))",
    ),
    Layout(
        ("h", "g"),
        ("h.g.m.d.%t", "h.n.d.%t", "h.n.e.%t"),
        "zip(Q)(zip(K)(V)) |> map((Q, (K, V)) => Q |> map(Q => rows(scale, w, K, V, Q)))",
    ),
    Layout(
        ("h", "g"),
        ("h.g.m.d.%t", "h.n.d.%t", "h.n.e.%t"),
        "zip(Q)(zip(K)(V)) |> map((Q, (K, V)) => rows(scale, w, K, V, Q |> join))",
    ),
    Layout(
        ("b", "h"),
        ("b.m.h.d.%t", "b.n.h.d.%t", "b.n.h.e.%t"),
        "zip(Q)(zip(K)(V)) |> map((Q, (K, V)) =>"
        " zip(Q |> transpose)(zip(K |> transpose)(V |> transpose))"
        " |> map((Q, (K, V)) => rows(scale, w, K, V, Q)))",
    ),
)


@dataclass(frozen=True)
class Attention:
    """A program, its sizes, inputs and target, by their seed. work: products of numbers, at most"""

    seed: int
    work: int = WORK

    @cached_property
    def drawn(self) -> tuple[str, dict[str, int], str, float, int]:
        """The text, the sizes, the target, the scale, and the number that masks use."""
        random = Random(self.seed)
        layout, operand = random.choice(LAYOUTS), random.choice(("f16", "bf16"))
        score, mask = random.choice(SCORES), random.choice(MASKS)
        modified = f"select({mask}, {score}, -infinity)" if mask else score
        result = random.choice(("attend", "attend", "attendWithLogSumExp", "sink", "sums", "beside"))
        of_row = {
            "attend": f"attend((j, s) => {modified}, K, V, q)",
            "attendWithLogSumExp": f"attendWithLogSumExp((j, s) => {modified}, K, V, q)",
            "sink": f"attendWithSink((j, s) => {modified}, 0.5, K, V, q)",
            "sums": f"modifiedScores((j, s) => {modified}, K, q) |> logSumExp",
            "beside": "attendBeside((b, s) => "
            + random.choice(BESIDE).format("s * scale")
            + ", generate(j => indexToInt(j)), K, V, q)",
        }[result]
        of_kinds = f"""def rows{{m: Nat, n: Nat, d: Nat, e: Nat}}
    (scale: f32, w: i32, K: n.d.{operand}, V: n.e.{operand}, Q: m.d.{operand}) =
  Q |> numbered |> map((q, i) => {of_row})"""
        names = [*layout.dimensions, "m", "n", "d", "e"]
        q, k, v = (array.replace("%t", operand) for array in layout.arrays)
        text = f"""import "prelude.rise"
{of_kinds}
def f({", ".join(f"{name}: Nat" for name in names)})
    (scale: f32, w: i32, Q: {q}, K: {k}, V: {v}) =
  {layout.text}"""
        sizes = self._sizes(random, layout)
        return text, sizes, random.choice(TARGETS), random.choice(SCALES), random.choice((1, 5, 40, 100))

    def _sizes(self, random: Random, layout: Layout) -> dict[str, int]:
        while True:
            found = {name: random.choice((1, 2, 3)) for name in layout.dimensions}
            found["m"], found["n"] = random.choice(LENGTHS), random.choice((*LENGTHS, LONG))
            found["d"] = random.choice((*DIMENSIONS, random.choice(ODD)))
            found["e"] = random.choice((found["d"], random.choice(DIMENSIONS), random.choice(ODD)))
            outer = int(np.prod([found[name] for name in layout.dimensions]))
            if outer * found["m"] * found["n"] * (found["d"] + found["e"]) <= self.work:
                return found

    def __str__(self) -> str:
        text, sizes, target, scale, w = self.drawn
        return f"attention {self.seed}: {sizes} for {target}, scale {scale}, w = {w}\n{text}"


def attentions(seed: int) -> Iterator[Attention]:
    return (Attention(seed * 1_000_000 + number) for number in count())


@deep
def outcome(trial: Attention) -> Outcome:
    text, sizes, target, scale, w = trial.drawn
    try:
        program = chosen(definition(text, sizes), target)
        if isinstance(program, Outcome):
            return program
        inputs = random_inputs(inputs_of(program.term), trial.seed, exact=False)
        return program.agrees([np.float32(scale), np.int32(w), *inputs[2:]], target)
    except RiseError as error:
        return refused(error)
