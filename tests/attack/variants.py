"""Variants: programs rewritten by proved rules at random places, emulated, and compared with the original.

The rules are known to be right, so a difference is a mistake of the code generator, or of a strategy (Zhou et
al., PolyJuice, OOPSLA 2024, section 3, look for mistakes of tensor compilers in this way). Four kinds of
programs are rewritten, in turn:

    text       a chain of views, maps and sums
    planted    a random program with a term to which a proved rule applies; each of these rules has its turn
    example    a definition of the examples, at small sizes
    scheduled  what a strategy makes of an example: a low-level program

The first three are lowered by `default` after they are rewritten; the last one, where the rules left a part
of it without a level.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.pipeline import assemble
from rewrites.hints import hint
from rewrites.instances import parameters
from rewrites.library import rules
from rewrites.proofs import Mark, mark
from rewrites.result import Failure, Success
from rewrites.rule import Rule
from rise.check.compare import compare, tolerance
from rise.check.program import Program, load
from rise.check.specialise import inputs_of, size_names, specialise
from rise.errors import EvaluationError, RiseError
from rise.expr import Apply, Definition, Expr, Literal, Primitive, children, inline, subterms
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.pretty import show
from rise.testing.choose import Drawn
from rise.testing.compare import difference
from rise.testing.programs import program
from rise.testing.rewriting import replaced
from rise.testing.rules import redex
from rise.testing.vocabulary import INEXACT, UNDEFINED, exact, high_level
from rise.types import Array, Pair, Type
from strategies.default import default
from strategies.registry import find
from tests.attack.outcome import Outcome, Verdict, refused
from tests.rewrites.soundness import where_defined
from tests.support.programs import at_sizes
from tests.support.texts import high

EXAMPLES = Path(__file__).parents[2] / "examples"
KINDS = ("text", "planted", "example", "scheduled")
STEPS = 4  # the most rules that are applied to one program
TRIED = 12  # places of a program at which a rule is tried
LEAVING = UNDEFINED | {"prefix", "prefixes"}  # elements undefined, which kernels may write or not
BEYOND = "R0914"  # what the emulator does not count so far
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12)
# sizes that schedules divide, that they round up, and small ones
SCHEDULED_SIZES = ((32, 16, 32, 32), (64, 64, 64, 64), (33, 18, 35, 5), (5, 7, 3, 2))
SMALL_TILES = {"block": "32,32,16", "warp": "16,16", "fragment": "16,8,16"}
SCHEDULES: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("default", {}),
    ("elementwise", {}),
    ("rows", {}),
    ("reduction", {}),
    ("transposition", {}),
    ("stencil", {}),
    ("batch", {}),
    ("tvm_gemm", {"version": "par", "tile": "4,6", "block_k": "3", "vector": "3"}),
    ("tensor_core", {**SMALL_TILES, "stages": "2"}),
    ("tensor_core", {**SMALL_TILES, "fragment": "16,16,16", "stages": "0", "epilogue": "direct"}),
)


# --- rules ------------------------------------------------------------------------------------------------


@cache
def proved() -> tuple[Rule, ...]:
    """The proved rules whose right sides need no level, memory or instruction that the left sides have not.

    The others ask for a place in the hierarchy of a GPU, so most places are refused; a program that has their
    primitives is rewritten like any other one.
    """
    every = (rule for rule in rules().values() if isinstance(rule, Rule) and mark(rule) is not Mark.TESTED)
    return tuple(rule for rule in every if not low_level(rule.rhs) - low_level(rule.lhs))


def low_level(term: Expr) -> frozenset[str]:
    """The low-level primitives of a term but for loops, which may stand everywhere."""
    return names(term) - high_level() - UNDEFINED - {"mapSeq", "reduceSeq", "scanSeq"}


def names(term: Expr) -> frozenset[str]:
    """The primitives of a term."""
    return frozenset(part.declaration.written for part in subterms(term) if isinstance(part, Primitive))


@dataclass(frozen=True)
class Rewritten:
    """A program, and the rules that were applied, each with its place."""

    term: Expr
    steps: tuple[tuple[Rule, tuple[int, ...]], ...] = ()

    def __str__(self) -> str:
        return ", ".join(
            f"`{rule.name}` at {'.'.join(map(str, path)) or 'the top'}" for rule, path in self.steps
        )

    @property
    def reordered(self) -> bool:
        """Whether sums may be rounded differently."""
        return any(mark(rule) is Mark.REORDERED for rule, _ in self.steps)


def rewritten(term: Expr, choose: random.Random, first: Sequence[Rule] = ()) -> Rewritten:
    """At most `STEPS` rules applied at random places; `first` before any others."""
    made = Rewritten(term)
    for number in range(choose.randint(1, STEPS)):
        candidates = choose.sample(proved(), len(proved()))
        made = applied(made, (*first, *candidates) if number == 0 else candidates, choose)
    return made


def applied(before: Rewritten, candidates: Sequence[Rule], choose: random.Random) -> Rewritten:
    """The first rule that changes the program somewhere, applied there."""
    every = list(places(before.term))
    by_head: dict[object, list[tuple[tuple[int, ...], Expr]]] = {None: every}
    for path, part in every:
        if isinstance(part, Apply) and part.head is not None:
            by_head.setdefault(part.head, []).append((path, part))
    for rule in candidates:
        found = by_head.get(rule.head, [])
        for path, part in choose.sample(found, min(TRIED, len(found))):
            given = rule.with_sizes(**{name: choose.choice(_divisors(part)) for name in parameters(rule)})
            result = given.attempt(part)
            if result is not None and result.term != part and not _asks(result):
                term = data_flow(replaced(before.term, path, result.term))
                return Rewritten(term, (*before.steps, (given, path)))
    return before


def _asks(result: Success) -> bool:
    """Whether a step is right for some values only of a size that is not known, such as an iteration's."""
    return any(step.constraints for step in result.steps)


def places(term: Expr, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Expr]]:
    yield path, term
    for number, child in enumerate(children(term)):
        yield from places(child, (*path, number))


def _divisors(part: Expr) -> list[int]:
    """The divisors of the sizes of a term and its operands, and small numbers that divide none."""
    sizes = {size for each in (part, *children(part)) for size in _sizes(each.type)}
    return sorted({1, 2, 3} | {n for size in sizes for n in range(1, size + 1) if size % n == 0})


def _sizes(type_: Type) -> Iterator[int]:
    match type_:
        case Array(size, element):
            yield size.value or 1
            yield from _sizes(element)
        case Pair(first, second):
            yield from (*_sizes(first), *_sizes(second))


# --- programs ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Original:
    """A program, what it is rewritten from (itself, or a low-level program), and words for it."""

    meaning: Expr
    term: Expr
    words: str
    first: tuple[Rule, ...] = ()


def original(seed: int) -> Original:
    """The program of a seed."""
    kind, choose = KINDS[seed % len(KINDS)], random.Random(seed)
    if kind == "text":
        text = high(seed)
        return _plain(at_sizes(text), text)
    if kind == "planted":
        rule = plantable()[seed // len(KINDS) % len(plantable())]
        return planted(rule, Drawn(seed))
    return scheduled(choose) if kind == "scheduled" else example(choose)


def _plain(term: Expr, words: str, *first: Rule) -> Original:
    return Original(term, term, words, first)


@cache
def plantable() -> tuple[Rule, ...]:
    """The rules that apply to exact high-level terms whose elements are all defined."""
    return tuple(rule for rule in proved() if not low_level(rule.lhs) and not names(rule.lhs) & _NEVER)


_NEVER = INEXACT | UNDEFINED | {"exp2", "scatter", "scatterBy"}


def planted(rule: Rule, choose: Drawn) -> Original:
    """A random program with a term to which the rule applies."""
    made = redex(rule, hint(rule.name))
    while True:
        term = data_flow(program(choose, primitives=exact(), planted=made(choose)))
        if inputs_of(term) and _is_exact(term):
            return _plain(term, show(term), rule)


def example(choose: random.Random) -> Original:
    """An example at small sizes."""
    while True:
        file, name = choose.choice(examples())
        definition = _program(file)[name]
        sizes = {size: choose.choice(SIZES) for size in size_names(definition)}
        term = _at(definition, sizes)
        if term is not None:
            return _plain(term, f"{file} {name} {sizes}")


def scheduled(choose: random.Random) -> Original:
    """An example as a strategy lowers it."""
    while True:
        file, name = choose.choice(examples())
        found = _scheduled(
            file, name, choose.randrange(len(SCHEDULED_SIZES)), choose.randrange(len(SCHEDULES))
        )
        if found is not None:
            return found


@cache
def _scheduled(file: str, name: str, sizes: int, schedule: int) -> Original | None:
    """None where the strategy refuses the example."""
    definition, (strategy, settings) = _program(file)[name], SCHEDULES[schedule]
    given = dict(zip(size_names(definition), SCHEDULED_SIZES[sizes], strict=False))
    term = _at(definition, given)
    if term is None:
        return None
    try:
        result = find(strategy).make(settings)(term)
        if isinstance(result, Failure):
            return None
        assemble(result.term, "original")
    except RiseError:
        return None
    return Original(term, result.term, f"{file} {name} {given} by {strategy} {settings}")


def _at(definition: Definition, sizes: Mapping[str, int]) -> Expr | None:
    """A definition at sizes; None where it is not for them, or too many."""
    if len(sizes) < len(size_names(definition)):
        return None
    try:
        return data_flow(inline(specialise(definition, sizes)))
    except RiseError:
        return None


@cache
def _program(file: str) -> Program:
    return load(EXAMPLES / file)


@cache
def examples() -> tuple[tuple[str, str], ...]:
    """The definitions of the examples that are exact on whole numbers, with their files."""
    files = sorted(path.name for path in EXAMPLES.glob("*.rise"))
    return tuple((f, name) for f in files for name in _program(f).own if _is_usable(f, name))


def _is_usable(file: str, name: str) -> bool:
    definition = _program(file)[name]
    found = (
        _at(definition, dict(zip(size_names(definition), sizes, strict=False))) for sizes in SCHEDULED_SIZES
    )
    term = next((term for term in found if term is not None), None)
    return term is not None and bool(inputs_of(term)) and _is_exact(term)


def _is_exact(term: Expr) -> bool:
    """Whether whole numbers become multiples of small powers of two, all of them defined."""
    literals = (part.value for part in subterms(term) if isinstance(part, Literal))
    plain = all(abs(value) < 2**20 and value * 8 == int(value * 8) for value in literals)
    return plain and not names(term) & (_NEVER | {"foreignFunction"})


# --- trials -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """A rewritten program, by its seed."""

    seed: int

    def made(self) -> tuple[Original, Rewritten]:
        start = original(self.seed)
        return start, rewritten(start.term, random.Random(self.seed), start.first)

    def __str__(self) -> str:
        start, variant = self.made()
        return f"variant {self.seed}: {start.words}\n    rewritten by {variant}\n    {show(variant.term)}"


def variants(seed: int) -> Iterator[Variant]:
    """Without end, the kinds in turn."""
    return (Variant(seed * 1_000_000 + number) for number in count())


def outcome(trial: Variant) -> Outcome:
    """Compiles and runs a variant on whole numbers; what it has to compute, the interpreter says."""
    start, variant = trial.made()
    if not variant.steps:
        return Outcome(Verdict.REFUSED, detail="no rule applies")
    try:
        kernels = lowered(variant.term, start.term is not start.meaning)
    except RiseError as error:
        return refused(error)
    inputs = random_inputs(inputs_of(start.meaning), trial.seed, exact=True)
    try:
        wanted = call(start.meaning, *inputs)
    except EvaluationError as error:
        return refused(error)
    try:
        found = execute(kernels, inputs, "emulate", seed=trial.seed)
    except RiseError as error:
        return refused(error) if error.code == BEYOND else Outcome(Verdict.WRONG, error.code, str(error))
    if any(isinstance(part, Primitive) and part.name in LEAVING for part in subterms(start.meaning)):
        found = where_defined(wanted, found)
    differs = difference(found, wanted)
    if differs is not None and not _is_rounding(variant, found, inputs, wanted):
        return Outcome(Verdict.WRONG, detail=differs)
    return Outcome(Verdict.RIGHT, detail="rounded" if differs else "", kernel=_digest(kernels))


def lowered(term: Expr, has_schedule: bool) -> HostProgram:
    """The kernels of a variant. RiseError where it is refused."""
    if has_schedule:
        try:
            return assemble(term, "variant")
        except RiseError as error:
            if refused(error).verdict is Verdict.INTERNAL:
                raise
    result = default()(term)
    if isinstance(result, Failure):
        raise RiseError(result.code, result.reason)
    return assemble(result.term, "variant")


def _is_rounding(variant: Rewritten, found: Any, inputs: Sequence[Any], wanted: Any) -> bool:
    """Whether the kernel computes bit by bit what the variant means, which rounds sums in another order."""
    meant = call(variant.term, *inputs)
    same = difference(found, meant) is None
    return variant.reordered and same and compare(found, wanted, tolerance(variant.term)).agrees


def _digest(kernels: HostProgram) -> str:
    """The same for equal texts."""
    return sha256("".join(made.source for made in kernels.kernels).encode()).hexdigest()[:16]
