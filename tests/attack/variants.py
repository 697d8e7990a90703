"""Variants: proved rules at random places of a program give equal programs, which have to become kernels.

`variants(seed)` draws trials without end: a program, and how many rules are applied to it. High-level ones
go through `default` afterwards; low-level ones are what a schedule makes, and are changed as they are. The
kernels of each are emulated, and compared with what the interpreter says of the program before any rule.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from codegen.execute import execute
from codegen.pipeline import assemble
from rewrites.hints import hint
from rewrites.library import rules
from rewrites.proofs.marks import Mark, mark
from rewrites.result import Failure, Success
from rewrites.result import Path as Place
from rewrites.rule import Rule
from rise.canonical import canonical
from rise.check.compare import compare, tolerance
from rise.check.program import load
from rise.check.specialise import inputs_of, specialise
from rise.errors import RiseError
from rise.expr import Expr, Primitive, call, children, subterms
from rise.interpret import call as interpret
from rise.interpret import random_inputs
from rise.normal import data_flow
from rise.pretty import show
from rise.testing.choose import Drawn
from rise.testing.programs import parameters_of, program
from rise.testing.rewriting import replaced
from rise.testing.rules import redex
from rise.testing.vocabulary import exact
from strategies.default import default
from strategies.registry import find
from tests.attack.outcome import Outcome, Verdict, is_internal, refused

ROOT = Path(__file__).parents[2]
TARGET = "sm_90a"
UNDEFINED = frozenset({"padEmpty", "scatter"})  # some elements of what they give may be anything
DEFINED = exact() - UNDEFINED
MOST = 5  # rules of a variant
TRIED = 60  # rules, until one applies
SIZES = (1, 2, 3, 4, 8)  # of what a rule leaves open

# definitions with sizes, and schedules that make low-level programs of them
SCHEDULED: tuple[tuple[str, str, dict[str, int], str, dict[str, Any]], ...] = (
    ("tests/attack/programs.rise", "product", {"m": 16, "n": 16, "k": 32}, "tensor_core", {
        "block": (16, 16, 16), "warp": (16, 16), "fragment": (16, 8, 16), "stages": 2}),
    ("tests/attack/programs.rise", "rowBias", {"m": 32, "n": 16, "k": 32}, "tensor_core", {
        "block": (16, 16, 16), "warp": (16, 16), "fragment": (16, 16, 16), "stages": 2}),
    ("tests/attack/programs.rise", "residual", {"m": 64, "n": 16, "k": 32}, "tensor_core", {
        "block": (64, 16, 16), "warp": (64, 16), "fragment": (64, 16, 16), "stages": 2, "epilogue": "bulk",
        "warp_specialised": True}),
    ("tests/attack/programs.rise", "sum", {"m": 7, "n": 12}, "elementwise", {"threads": 32}),
    ("tests/attack/programs.rise", "transposed", {"m": 9, "n": 10}, "transposition", {"tile": 16}),
    ("tests/attack/programs.rise", "sums", {"m": 5, "n": 40}, "rows", {"threads": 32}),
    ("tests/attack/programs.rise", "vector", {"m": 6, "k": 10}, "default", {}),
)  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """A random program by its seed, or a scheduled one by its number; the rules are drawn by the seed."""

    seed: int
    scheduled: int | None = None

    @property
    def program(self) -> Expr:
        """Before any rule: high-level, and what the results of all variants are compared with."""
        if self.scheduled is not None:
            return base(self.scheduled)[0]
        choose = Drawn(self.seed)
        name = choose.pick(sorted(proved()))
        return program(choose, primitives=DEFINED, planted=redex(proved()[name], hint(name))(choose))

    def __str__(self) -> str:
        kind = "random program" if self.scheduled is None else " ".join(map(str, SCHEDULED[self.scheduled]))
        return f"{kind}, seed {self.seed}: {show(data_flow(self.program))}"


def variants(seed: int) -> Iterator[Variant]:
    """Every second one of a low-level program."""
    choose = random.Random(seed)
    number = seed * 1_000_000
    while True:
        yield Variant(number)
        yield Variant(number + 1, choose.randrange(len(SCHEDULED)))
        number += 2


@cache
def base(number: int) -> tuple[Expr, Expr]:
    """A scheduled program, and the low-level program that its schedule makes."""
    file, name, sizes, strategy, parameters = SCHEDULED[number]
    term = specialise(load(ROOT / file)[name], sizes)
    result = find(strategy).factory(**parameters)(data_flow(term))
    if isinstance(result, Failure):
        raise result.error(strategy)
    return term, result.term


# --- rules ------------------------------------------------------------------------------------------------


@cache
def proved() -> dict[str, Rule]:
    """Proved rules that bring in nothing low-level that was not there: who computes what stays as it is."""
    found = {name: rule for name, rule in rules().items() if isinstance(rule, Rule)}
    known = {name: rule for name, rule in found.items() if mark(rule) is not Mark.TESTED}
    defined = {name: rule for name, rule in known.items() if not _names(rule.lhs) & UNDEFINED}
    return {name: rule for name, rule in defined.items() if _names(rule.rhs) <= DEFINED | _names(rule.lhs)}


def _names(side: Expr) -> frozenset[str]:
    return frozenset(part.name for part in subterms(side) if isinstance(part, Primitive))


def executable(rule: Rule) -> bool:
    """Whether low-level programs stay low-level: what the right side adds are views and operations."""
    there = _names(rule.lhs)
    added = (part for part in subterms(rule.rhs) if isinstance(part, Primitive) and part.name not in there)
    return all(part.declaration.view or part.declaration.elementwise for part in added)


@dataclass(frozen=True)
class Made:
    """A variant of a term, and the rules that led to it."""

    term: Expr
    rules: tuple[str, ...]


def varied(term: Expr, seed: int, low_level: bool) -> Made:
    """Up to MOST rules, each at a random place to which it applies; none twice with the same result.

    In a low-level program a step is taken only if the code generator takes what comes of it: it refuses what
    a rule leaves without a level or a place in memory.
    """
    choose = random.Random(seed)
    names = sorted(name for name, rule in proved().items() if not low_level or executable(rule))
    known, applied = {canonical(term)}, []
    for _ in range(choose.randint(1, MOST)):
        for name in choose.sample(names, min(TRIED, len(names))):
            new = _once(term, proved()[name], choose)
            if new is None or (key := canonical(new)) in known:
                continue
            known.add(key)
            if low_level and _refused(new) is not None:
                continue
            term = new
            applied.append(name)
            break
    return Made(term, tuple(applied))


def _refused(low_level: Expr) -> RiseError | None:
    """Why a program does not become kernels; mistakes of the compiler are raised."""
    try:
        assemble(low_level, "variant")
    except RiseError as error:
        if is_internal(error.code):
            raise
        return error
    return None


def _once(term: Expr, rule: Rule, choose: random.Random) -> Expr | None:
    if rule.sizes:
        rule = rule.with_sizes(**{name: choose.choice(SIZES) for name in rule.sizes})
    found = list(places(term, rule))
    choose.shuffle(found)
    for place, part in found:
        result = rule.attempt(part)
        if isinstance(result, Success):
            return replaced(term, place, result.term)
    return None


def places(term: Expr, rule: Rule, place: Place = ()) -> Iterator[tuple[Place, Expr]]:
    """The parts that apply the primitive that the rule is about."""
    head = rule.head
    if head is None or _applies(term, *head):
        yield place, term
    for number, child in enumerate(children(term)):
        yield from places(child, rule, (*place, number))


def _applies(term: Expr, name: str, count: int) -> bool:
    found = call(term)
    return found is not None and found[0] == name and len(found[2]) == count


# --- outcomes ---------------------------------------------------------------------------------------------


def outcome(trial: Variant) -> Outcome:
    """REFUSED: the code generator does not take the variant, by an error of its own."""
    low_level = trial.scheduled is not None
    high = trial.program
    if not parameters_of(high):
        return Outcome(Verdict.REFUSED, detail="it has no inputs")
    start = base(trial.scheduled)[1] if trial.scheduled is not None else data_flow(high)
    made = varied(start, trial.seed, low_level)
    if not made.rules:
        return Outcome(Verdict.REFUSED, detail="no rule applies")
    return compared(trial, high, made)


def compared(trial: Variant, high: Expr, made: Made) -> Outcome:
    """The variant's kernels in the emulator, beside the interpreter's result of the program."""
    term, said = made.term, " > ".join(made.rules)
    try:
        if trial.scheduled is None:
            result = default()(term)
            if isinstance(result, Failure):
                return Outcome(Verdict.UNBUILT, "R0606", f"{said}: {result.story()}")
            term = result.term
        kernel = assemble(term, "variant")
    except RiseError as error:
        return refused(error)
    inputs = random_inputs(inputs_of(high), trial.seed, exact=True)
    wanted = interpret(high, *inputs)
    try:
        found = execute(kernel, inputs, "emulate", TARGET, trial.seed)
    except RiseError as error:
        return Outcome(Verdict.WRONG, error.code, f"{said}: {error.message}")
    verdict = compare(found, wanted, tolerance(high))
    if verdict.agrees:
        return Outcome(Verdict.RIGHT, detail=said)
    return Outcome(Verdict.WRONG, detail=f"{said}: {verdict}")
