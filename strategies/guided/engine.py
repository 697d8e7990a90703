"""Engines of a guided search: what grows the programs that are known, and finds those of a sketch in them.

A beam search keeps whole programs. Another engine, such as an e-graph, has the same three methods.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from rewrites.result import Step, Success
from rise.canonical import canonical
from rise.expr import Expr
from strategies.core import Strategy, seq
from strategies.guided.rules import Rules
from strategies.guided.sketch import Sketch
from strategies.places import in_inputs


@dataclass(frozen=True)
class Found:
    """A program, the strategies that lead to it, and the steps that these take."""

    term: Expr
    moves: tuple[Strategy, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def schedule(self) -> Strategy:
        """The strategies as one for whole definitions, which repeats the steps without searching."""
        return in_inputs(seq(*self.moves))

    def after(self, move: Strategy, result: Success) -> Found:
        """What a strategy makes of the program."""
        return Found(result.term, (*self.moves, move), (*self.steps, *result.steps))


class Engine(Protocol):
    """What a guided search asks of an engine."""

    def grow(self) -> bool:
        """Applies the rules to what is known. False where nothing new comes of it."""

    def satisfies(self, sketch: Sketch) -> bool:
        """Whether a known program satisfies a sketch."""

    def extract(self, sketch: Sketch) -> Found:
        """The known program nearest to a sketch: one that satisfies it where there is one."""

    @property
    def visited(self) -> int:
        """How many different programs there are."""


class Beam:
    """In each round the rules are applied to the programs of the last one; the nearest `width` are kept.

    Of two programs that are equally near, the smaller one counts as nearer, then the one found first. A
    round ends with the first program that satisfies the sketch.
    """

    def __init__(self, start: Found, rules: Rules, sketch: Sketch, width: int) -> None:
        self.rules, self.sketch, self.width = rules, sketch, width
        self.front = [start]
        self.best, self.distance = start, sketch.distance(start.term)
        self.known: set[str] = {canonical(start.term)}

    def grow(self) -> bool:
        found: list[tuple[int, Found]] = []
        for distance, program in self._successors():
            found.append((distance, program))
            if distance == 0:
                break
        found.sort(key=lambda each: (each[0], each[1].term.extent))
        self.front = [program for _, program in found[: self.width]]
        if found and found[0][0] < self.distance:
            self.distance, self.best = found[0]
        return bool(found)

    def _successors(self) -> Iterator[tuple[int, Found]]:
        """What the rules make of the programs at the front, unless it is known, with its distance."""
        for program in self.front:
            for move in self.rules.moves(program.term):
                result = move.attempt(program.term)
                if result is None:
                    continue
                key = canonical(result.term)
                if key in self.known:
                    continue
                self.known.add(key)
                yield self.sketch.distance(result.term), program.after(move, result)

    def satisfies(self, sketch: Sketch) -> bool:
        return sketch.satisfied(self.best.term)

    def extract(self, sketch: Sketch) -> Found:
        return min((self.best, *self.front), key=lambda program: sketch.distance(program.term))

    @property
    def visited(self) -> int:
        return len(self.known)
