"""Guided search as a strategy: from sketch to sketch, by named sets of rules (Koehler et al., POPL 2024).

A guide is a sketch with the rules that lead to it. The search goes from guide to guide; what it returns are
the steps of an ordinary derivation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rewrites.result import Failure, Result, Success
from rise.errors import StrategyError
from rise.expr import Expr, Lambda, subterms
from rise.nat import NatLike
from rise.progress import progress
from rise.suggest import suggestion
from strategies.core import FunctionStrategy, Strategy, prints_as_call
from strategies.guided.engine import Beam, Engine, Found
from strategies.guided.rules import Rules, rule_set
from strategies.guided.sketch import Sketch, explained
from strategies.guided.text import sketch as parsed
from strategies.loops.nests import show_nest
from strategies.places import in_inputs

MakeEngine = Callable[[Found, Rules, Sketch, int], Engine]


@dataclass(frozen=True)
class Guide:
    """A sketch, and the rules that lead to it.

    written: the sketch before its sizes became numbers
    """

    sketch: Sketch
    rules: Rules
    written: Sketch

    def __repr__(self) -> str:
        return f"Guide.of({str(self.sketch)!r}, {self.rules.name!r})"

    @staticmethod
    def of(sketch: Sketch | str, rules: Rules | str, sizes: Mapping[str, NatLike] | None = None) -> Guide:
        """A guide from texts, at numbers for the sizes that it names. R0640, R0641 where a text is wrong."""
        wanted = parsed(sketch) if isinstance(sketch, str) else sketch
        chosen = rule_set(rules, wanted) if isinstance(rules, str) else rules
        return Guide(wanted.at(sizes or {}), chosen, wanted)


@dataclass(frozen=True)
class Reached:
    """How far a search came with one guide."""

    guide: Guide
    program: Found
    satisfied: bool
    visited: int
    rounds: int


@dataclass(frozen=True)
class Search:
    """How programs are searched.

    steps:  how many rules may be applied for one guide
    beam:   how many programs are kept after each
    engine: what keeps the programs
    """

    steps: int = 12
    beam: int = 8
    engine: MakeEngine = Beam

    def reached(self, term: Expr, guides: Iterable[Guide]) -> tuple[Reached, ...]:
        """The guides one after the other, up to the first that is not reached; below the inputs."""
        if isinstance(term, Lambda):
            return self.reached(term.body, guides)
        found, reached = Found(term), []
        for guide in guides:
            check_sizes(guide.sketch, term)
            reached.append(self.towards(guide, found))
            found = reached[-1].program
            if not reached[-1].satisfied:
                break
        return tuple(reached)

    def towards(self, guide: Guide, start: Found) -> Reached:
        """From one program towards one guide."""
        begun = guide.rules.start.attempt(start.term)
        if begun is not None and begun.steps:
            start = start.after(guide.rules.start, begun)
        engine = self.engine(start, guide.rules, guide.sketch, self.beam)
        rounds = 0
        with progress(f"searching `{guide.written}`") as advance:
            while rounds < self.steps and not engine.satisfies(guide.sketch) and engine.grow():
                rounds += 1
                advance(rounds, self.steps)  # at most
        best = engine.extract(guide.sketch)
        return Reached(guide, best, guide.sketch.satisfied(best.term), engine.visited, rounds)


@prints_as_call
def guided(*guides: Guide, steps: int = 12, beam: int = 8) -> Strategy:
    """The steps that a search finds from guide to guide; fails with the program nearest to a sketch.

    steps: how many rules may be applied for one guide
    beam:  how many programs are kept after each
    """
    for name, value in (("steps", steps), ("beam", beam)):
        if value < 1:
            raise StrategyError("R0609", f"guided: {name} = {value} must be at least 1")
    if not guides:
        raise StrategyError("R0641", "guided: no sketch is given")

    def run(term: Expr) -> Result:
        return result(Search(steps, beam).reached(term, guides))

    return FunctionStrategy("guided", in_inputs(run))


def result(reached: tuple[Reached, ...]) -> Result:
    """The program with the steps to it; a failure that says what the nearest program lacks."""
    last = reached[-1]
    if last.satisfied:
        return Success(last.program.term, last.program.steps)
    nearest = last.program
    wanting = "; ".join(explained(last.guide.sketch, nearest.term))
    count = f" (sketch {len(reached)})" if len(reached) > 1 else ""
    reason = (
        f"`{last.guide.written}`{count} is not reached in {last.rounds} rounds:"
        f" of the nearest of {last.visited} programs, {wanting}"
    )
    loops = ", ".join(line.strip() for line in show_nest(nearest.term).splitlines())
    hint = f"its loops are {loops or 'none'}; a sketch in between, more rules or a wider beam may help"
    return Failure("guided", nearest.term, reason, len(nearest.steps), hint=hint, after=len(nearest.steps))


def check_sizes(sketch: Sketch, term: Expr) -> None:
    """R0640 where a sketch names a size that the program does not have."""
    if not sketch.names:
        return
    known = sizes_of(term)
    for name in sorted(sketch.names - known):
        hint = (
            suggestion(name, known)
            or f"it has {', '.join(f'`{n}`' for n in sorted(known)) or 'only numbers'}"
        )
        raise StrategyError("R0640", f"the program has no size `{name}`, which the sketch names", None, hint)


def sizes_of(term: Expr) -> frozenset[str]:
    """The size variables in the types of a term."""
    return frozenset(name for part in subterms(term) for name in _variables(part.type))


def _variables(type_: object) -> frozenset[str]:
    return frozenset(str(leaf) for leaf in getattr(type_, "leaves", ()))
