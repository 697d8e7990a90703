"""Schedules at random: every parameter of a strategy, legal and illegal, on products and on other programs.

`schedules(seed)` draws trials without end, each of which a command line repeats; `outcome` says what became
of one. Parameters are read from the strategy, so a new one is drawn, too. A Success that is not emulated has
to become kernels all the same.
"""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.compare import compare, tolerance
from rise.check.program import Program, load
from rise.check.specialise import inputs_of, specialise
from rise.errors import RiseError
from rise.expr import Expr
from rise.instructions import family
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.registry import Setting, find, show_value
from tests.attack.outcome import Outcome, Verdict, refused

ROOT = Path(__file__).parents[2]
FILES = ("examples/gemm.rise", "examples/products.rise", "tests/attack/programs.rise")
TARGETS = ("sm_70", "sm_80", "sm_90a")


@dataclass(frozen=True)
class Trial:
    """A definition at sizes, a strategy with parameters; emulate: run what is printed."""

    file: str
    name: str
    sizes: Mapping[str, int]
    strategy: str
    parameters: Mapping[str, Any]
    target: str
    seed: int
    emulate: bool

    def __str__(self) -> str:
        return self.command()

    def command(self) -> str:
        """The command line that repeats it."""
        sizes = [f"{name}={size}" for name, size in self.sizes.items()]
        words = ["rise", "run", self.file, self.name, "--size", *sizes, "--strategy", self.strategy]
        words += ["--set", *(f"{name}={show_value(value)}" for name, value in self.parameters.items())]
        words += ["--target", self.target, "--backend", "emulate", "--seed", str(self.seed), "--check"]
        return shlex.join(words)


def schedules(seed: int, strategy: str = "tensor_core", emulated: float = 0.1) -> Iterator[Trial]:
    """Trials without end. emulated: which share of them is run where kernels come of them."""
    choose = random.Random(seed)
    settings = find(strategy).settings
    while True:
        file, name = choose.choice(programs())
        parameters = drawn(settings, words_of(strategy), choose)
        sizes = {size: _size(size, parameters, choose) for size in sizes_of(file, name)}
        target, emulate = choose.choice(TARGETS), choose.random() < emulated
        yield Trial(file, name, sizes, strategy, parameters, target, choose.randint(0, 9), emulate)


@cache
def program_of(file: str) -> Program:
    return load(ROOT / file)


@cache
def programs() -> tuple[tuple[str, str], ...]:
    """Every definition that is a function of sizes and arrays, with its file."""
    return tuple((file, name) for file in FILES for name in program_of(file).own if sizes_of(file, name))


@cache
def sizes_of(file: str, name: str) -> tuple[str, ...]:
    """The sizes that a definition is given; those that are inferred make it no program of its own."""
    found = re.match(r"(\(\w+: Nat\) -> )+", str(program_of(file)[name].scheme))
    return tuple(re.findall(r"\((\w+): Nat\)", found[0])) if found else ()


# --- parameters -------------------------------------------------------------------------------------------

NUMBERS = (0, 1, 2, 3, 4, 8, -1)
USUAL: Mapping[str, tuple[int, ...]] = {
    "stages": (0, 1, 2, 2, 3, 4, 5),
    "padding": (0, 8, 16, 4),
    "vector": (1, 2, 4, 8, 16, 3),
    "raster_group": (0, 1, 1, 1, 2, 3),
    "slice_k": (1, 2, 4),
    "split_k": (1, 2, 3),
    "persistent_blocks": (0, 1, 2, 4),
    "cluster": (1, 2, 4),
    "ping_pong": (1, 2, 3),
    "split_cluster": (1, 1, 2),
    "promoted": (64, 128, 256, 96),
    "raster_matrices": (1, 1, 1, 2, 3, 0),
    "ahead": (0, 0, 1, 2),
}
WORDS: Mapping[str, tuple[str, ...]] = {"epilogue": ("direct", "shared", "bulk", "rows", "default")}
# what only warpgroups have, whose fragments have 64 rows
OF_WARPGROUPS = (
    "warp_specialised", "persistent_blocks", "cluster", "ping_pong", "split_cluster", "ahead", "promoted",
    "raster_matrices", "rest", "swap_operands",
)  # fmt: skip
TILES = ("block", "warp", "fragment")


@cache
def words_of(strategy: str) -> tuple[str, ...]:
    """The words that the strategy's description names, of which some are values of its parameters."""
    return tuple(sorted(set(re.findall(r"`(\w+)`", find(strategy).factory.__doc__ or ""))))


def drawn(settings: tuple[Setting, ...], words: tuple[str, ...], choose: random.Random) -> dict[str, Any]:
    """A value for each parameter that is not left at its default; more often than not they go together."""
    made = tiles(choose) if set(TILES) <= {setting.name for setting in settings} else {}
    for setting in settings:
        if setting.name not in made and choose.random() < 0.3:
            made[setting.name] = value(setting, words, choose)
    return likely(made) if choose.random() < 0.8 else made


def value(setting: Setting, words: tuple[str, ...], choose: random.Random) -> Any:
    """One of a parameter's type."""
    if setting.accepts is bool:
        return choose.random() < 0.5
    if setting.accepts is int:
        return choose.choice((setting.default, *USUAL.get(setting.name, NUMBERS)))
    if setting.accepts is str:
        return choose.choice((setting.default, *WORDS.get(setting.name, words)))
    return tuple(choose.choice((8, 16, 32, 64)) for _ in setting.default)


@cache
def fragments() -> tuple[tuple[int, int, int], ...]:
    """Every shape that some instruction has."""
    sizes = (8, 16, 24, 32, 40, 48, 64, 72, 80, 96, 128)
    depths = (4, 8, 16, 32)
    every = ((m, n, k) for m in sizes for n in sizes for k in depths)
    return tuple(shape for shape in every if family(shape) is not None)


def tiles(choose: random.Random) -> dict[str, Any]:
    """Fragment, warp and block, one some of the other; now and then one that is not."""
    m, n, k = choose.choice(fragments())
    of_warp, of_block, of_depth = (1, 1, 2), (1, 1, 2, 2, 3), (1, 2, 4)
    warp = (m * choose.choice(of_warp), n * choose.choice(of_warp))
    block = (
        warp[0] * choose.choice(of_block),
        warp[1] * choose.choice(of_block),
        k * choose.choice(of_depth),
    )
    if choose.random() < 0.05:
        block = (block[0] + choose.choice((-8, 0, 8)), block[1] // 2, block[2])
    return {"block": block, "warp": warp, "fragment": (m, n, k)}


def likely(made: dict[str, Any]) -> dict[str, Any]:
    """The same where what a parameter needs beside it is given, too."""
    made = {name: given for name, given in made.items() if name != "rest"}
    if made.get("fragment", (0,))[0] != 64:
        made = {name: given for name, given in made.items() if name not in OF_WARPGROUPS}
    if made.get("ping_pong", 1) > 1:
        made |= {
            "warp_specialised": True,
            "warp": made["block"][:2],
            "persistent_blocks": made.get("persistent_blocks") or made["ping_pong"],
        }
    if made.get("persistent_blocks") or made.get("cluster", 1) > 1:
        made["raster_group"] = made.get("raster_group") or 1
    if made.get("slice_k", 1) > 1:
        made["epilogue"] = "shared"
    if made.get("fragment", (0,))[0] == 64 and made.get("epilogue", "shared") == "shared":
        made["epilogue"] = "direct"
    return made


def _size(name: str, parameters: Mapping[str, Any], choose: random.Random) -> int:
    """A few tiles; a little more or less; small and odd ones."""
    tile: int = dict(zip("mnk", parameters.get("block", (64, 64, 32)), strict=True)).get(name, 2)
    short, odd = (-8, 8, -16), (1, 7, 17, 31, 40, 56)
    whole = tile * choose.choice((1, 1, 2, 2, 3, 4) if name == "k" else (1, 1, 2, 3))
    if name not in "mnk":
        return choose.choice((1, 2, 3)) if name == "b" else whole * 8
    kind = choose.random()
    if kind < 0.7:
        return whole
    return max(0, whole + choose.choice(short)) if kind < 0.9 else choose.choice(odd)


# --- what becomes of them ---------------------------------------------------------------------------------


def outcome(trial: Trial) -> Outcome:
    """Derives, prints and, if the trial says so, runs it."""
    program = specialised(trial)
    if isinstance(program, RiseError):
        return refused(program)
    try:
        result = find(trial.strategy).factory(**trial.parameters)(data_flow(program))
    except RiseError as error:
        by_the_strategy = error.code.startswith("R06")
        return refused(error) if by_the_strategy else Outcome(Verdict.INTERNAL, error.code, error.message)
    if isinstance(result, Failure):
        return Outcome(Verdict.REFUSED, result.code, result.story())
    try:
        made = assemble(result.term, "attacked")
    except RiseError as error:
        return Outcome(Verdict.UNBUILT, error.code, error.message)
    return _run(trial, program, made) if trial.emulate else Outcome(Verdict.RIGHT, detail="printed")


def _run(trial: Trial, program: Expr, made: HostProgram) -> Outcome:
    inputs = random_inputs(inputs_of(program), trial.seed, exact=True)
    try:
        found = execute(made, inputs, "emulate", trial.target, trial.seed)
    except RiseError as error:
        return Outcome(Verdict.WRONG, error.code, error.message)
    verdict = compare(found, call(program, *inputs), tolerance(program))
    return Outcome(Verdict.RIGHT if verdict.agrees else Verdict.WRONG, detail=f"exact: {verdict}")


def specialised(trial: Trial) -> Expr | RiseError:
    """The program at its sizes, or why there is none."""
    try:
        return specialise(program_of(trial.file)[trial.name], trial.sizes)
    except RiseError as error:
        return error
