"""Products of groups of rows drawn at random, emulated, and compared with products group by group.

Drawn are how many rows each group has, none too; rows and columns of tiles, the order of tiles, the type of
numbers, what is done with sums, and the schedule: `auto`, or parameters of `tensor_core` for warpgroups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from random import Random
from typing import Any

import numpy as np

from codegen.execute import execute
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.depth import deep
from rise.errors import RiseError
from rise.expr import Expr
from rise.interpret import call
from rise.normal import data_flow
from strategies.auto import auto
from strategies.registry import find
from tests.attack.outcome import Outcome, Verdict, refused
from tests.support.programs import ROOT

TEXT = (ROOT / "examples" / "groups.rise").read_text(encoding="utf-8")
WORK = 3_000_000  # products of numbers, at most: the emulator is slow
GROUPS = (1, 2, 3, 5, 8)
HEIGHTS = (64, 64, 128, 128, 48)
STEPS = (8, 40, 64, 72, 136)
# of a sum s of numbers of type t
EPILOGUES = ("t(s)", "t(s)", "t(max(s, 0))", "t(s + s)")


def rows_of(random: Random, h: int) -> list[int]:
    """Of each group: none, one, about half of a tile, a tile, or any number."""
    near = [0, 0, 1, h // 2 - 1, h // 2, h // 2 + 1, h - 1, h, h + 1, 2 * h, random.randint(0, 3 * h)]
    return [random.choice(near) for _ in range(random.choice(GROUPS))]


@dataclass(frozen=True)
class Groups:
    """Groups, an order of tiles, and a schedule, by their seed. work: products of numbers, at most"""

    seed: int
    work: int = WORK

    @cached_property
    def drawn(self) -> tuple[str, list[int], dict[str, int], int, dict[str, str]]:
        """The text; the rows of each group; the sizes of the product; tiles of a band; the parameters."""
        random = Random(self.seed)
        type_ = random.choice(("bf16", "f16"))
        epilogue = random.choice(EPILOGUES).replace("t(", f"{type_}(").replace("s", "bf16Dot(row, weights)")
        text = TEXT.replace("bf16(bf16Dot(row, weights))", epilogue).replace("bf16Dot", "dotOf")
        text = text.replace("bf16", type_)
        while True:
            h, n = random.choice(HEIGHTS), random.choice((32, 64, 96))
            rows, c = rows_of(random, h), random.choice((1, 1, 2, 3))
            # where there are other columns behind those of a block, the copying unit puts no zeros there
            w = 8 * random.randint(1, 33) if c == 1 else n * random.randint(1, 3)
            sizes = {"h": h, "c": c, "w": w, "r": sum(rows), "k": random.choice(STEPS), "g": len(rows)}
            sizes["t"] = -(-sum(rows) // h) + len(rows)
            if 0 < sizes["t"] * h * sizes["c"] * sizes["w"] * sizes["k"] <= self.work and any(rows):
                break
        return text, rows, sizes, random.choice((1, 2, 3)), self._schedule(random, sizes, n)

    def _schedule(self, random: Random, sizes: dict[str, int], n: int) -> dict[str, str]:
        """None is `auto`."""
        h = sizes["h"]
        if h % 64 or random.random() < 0.2:
            return {}
        turns = random.choice((1, 1, 2))
        cluster = random.choice((1, 1, 2)) if turns == 1 and sizes["w"] % (2 * n) == 0 else 1
        made = {
            "block": f"{h},{n},{random.choice((32, 64))}", "warp": f"{h if turns == 2 else 64},{n}",
            "fragment": f"64,{n},16",
            "stages": str(random.choice((2, 3))), "raster_group": "1", "warp_specialised": "true",
            "epilogue": random.choice(("rows", "rows", "direct")), "ping_pong": str(turns),
            "cluster": str(cluster), "persistent_blocks": str(cluster * random.choice((1, 2, 3))),
        }  # fmt: skip
        if h % 128 == 0 and random.random() < 0.7:
            made["short_tiles"] = "true"
        tiles = sizes["t"] * sizes["c"]
        if random.random() < 0.3 and tiles > 1:
            made["rest"] = f"{random.randint(1, tiles - 1)},64,32"
        return made

    def __str__(self) -> str:
        _, *described = self.drawn
        return f"groups {self.seed}: {' '.join(map(str, described))}"


def groups(seed: int) -> Iterator[Groups]:
    return (Groups(seed * 1_000_000 + number) for number in count())


def expected(text: str, offsets: Any, x: Any, w: Any) -> Any:
    """Group by group."""
    parts = [x[start:end] @ columns.T for start, end, columns in zip(offsets, offsets[1:], w, strict=False)]
    sums = np.concatenate(parts)
    return np.maximum(sums, 0) if "max(dotOf" in text else sums * (2 if "+ dotOf" in text else 1)


@deep
def outcome(trial: Groups) -> Outcome:
    import ml_dtypes

    text, rows, sizes, band, settings = trial.drawn
    offsets = np.cumsum([0, *rows], dtype=np.int32)
    draw = np.random.default_rng(trial.seed)
    x, w = (
        draw.integers(-1, 2, shape).astype(np.float32)
        for shape in ((sizes["r"], sizes["k"]), (sizes["g"], sizes["c"] * sizes["w"], sizes["k"]))
    )
    type_ = np.float16 if "X: r.k.f16" in text else ml_dtypes.bfloat16
    try:
        program = check_text(text)
        known = {name: sizes[name] for name in "thcrg"}
        tables: Any = call(term_of(program["tables"], {**known, "b": band}), offsets)
        (tiles, number), owners = tables
        term = term_of(program["groupedProducts"], sizes)
        made = (find("tensor_core").make(settings) if settings else auto("sm_90a"))(term)
        if isinstance(made, Failure):
            return Outcome(Verdict.REFUSED, "R0606", made.reason[:300])
        inputs = [x.astype(type_), w.astype(type_), tiles, number, owners]
        found = np.asarray(execute(assemble(made.term, "groups"), inputs, "emulate")).astype(np.float32)
    except RiseError as error:
        return refused(error)
    said = " ".join(f"{name}={value}" for name, value in settings.items()) or "auto"
    right = np.array_equal(found, expected(text, offsets, x, w))
    return Outcome(Verdict.RIGHT if right else Verdict.WRONG, "", said, said)


def term_of(definition: Any, sizes: dict[str, int]) -> Expr:
    return data_flow(specialise(definition, sizes))
