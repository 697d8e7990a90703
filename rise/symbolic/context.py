"""What is known at a place of a proof, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rise.symbolic.unknowns import Unknowns
from rise.symbolic.values import FALSE, TRUE, Condition, Element, Whole

# so much work of z3 may a question take: the same on every machine, unlike seconds
EFFORT = 1_000_000


@dataclass(frozen=True)
class Context:
    """conditions: on sizes and indices, that hold here
    ranges:     the indices that were introduced, which may be any number below their size
    choices:    truth values of elements that are assumed here
    """

    world: Unknowns
    conditions: tuple[Condition, ...] = ()
    ranges: tuple[tuple[Whole, Whole], ...] = ()
    choices: tuple[tuple[Element, bool], ...] = ()
    asked: list[int] = field(default_factory=lambda: [0])

    def index(self, size: Whole, name: str = "i") -> tuple[Whole, Context]:
        """An index below a size, and the context in which it is one."""
        made = self.world.fresh(name)
        return made, replace(self, ranges=(*self.ranges, (made, size)))

    def given(self, condition: Condition) -> Context:
        return replace(self, conditions=(*self.conditions, condition))

    def choosing(self, element: Element, truth: bool) -> Context:
        return replace(self, choices=(*self.choices, (element, truth)))

    def for_all(self, indices: list[Whole]) -> Context:
        """Without what is known of these indices but that they are below their sizes."""
        names = {str(i) for i in indices}
        kept = [c for c in self.conditions if names.isdisjoint(self.world.names_in(c))]
        return replace(self, conditions=tuple(kept), choices=() if indices else self.choices)

    def range_of(self, index: Whole) -> Whole | None:
        """The size below which an index that was introduced is; None for others."""
        return next((size for i, size in self.ranges if not isinstance(index, int) and i.eq(index)), None)

    def holds(self, condition: Condition) -> bool:
        """Whether a condition is certain: z3 finds no integers for which it fails."""
        z3 = self.world.z3
        if isinstance(condition, bool):
            return condition
        simple = z3.simplify(condition, som=True)
        if z3.is_true(simple) or z3.is_false(simple):
            return bool(z3.is_true(simple)) or self.is_impossible()
        return bool(self._check(z3.Not(simple)) == z3.unsat)

    def is_impossible(self) -> bool:
        return bool(self._check() == self.world.z3.unsat)

    def _check(self, *more: Condition) -> Any:
        """Where z3 gives up, each case of a choice between numbers is a question of its own."""
        z3 = self.world.z3
        answer = self._asked(*more)
        condition = chosen_by(z3, more) if answer == z3.unknown else None
        if condition is None:
            return answer
        refuted = all(
            self._check(*(self._where(part, condition, truth) for part in more), given) == z3.unsat
            for given, truth in ((condition, True), (z3.Not(condition), False))
        )
        return z3.unsat if refuted else answer

    def _where(self, part: Condition, condition: Condition, truth: bool) -> Condition:
        """A part of a question without the choices that a condition makes."""
        z3 = self.world.z3
        return z3.simplify(z3.substitute(part, (condition, z3.BoolVal(truth, ctx=self.world.terms))))

    def _asked(self, *more: Condition) -> Any:
        z3 = self.world.z3
        solver = z3.Solver(ctx=self.world.terms)
        solver.set("rlimit", EFFORT)
        ranges = [z3.And(i >= 0, i < size) for i, size in self.ranges]
        goal = [*self.conditions, *ranges, *more]
        facts = [*self.world.facts, *self.world.bounds(self.ranges)]
        solver.add(*relevant(self.world, facts, goal), *goal)
        self.asked[0] += 1
        return solver.check()

    def equal(self, left: Whole, right: Whole) -> bool:
        if isinstance(left, int) and isinstance(right, int):
            return left == right
        if self.world.z3.is_int_value(same := self.world.z3.simplify(left - right, som=True)):
            return same.as_long() == 0 or self.is_impossible()
        return self.holds(left == right)

    def assumed(self, condition: Element) -> bool | None:
        """The truth value of an element, where it is that of an assumption."""
        if condition is TRUE or condition is FALSE:
            return condition is TRUE
        return next((truth for element, truth in self.choices if element is condition), None)


def chosen_by(z3: Any, terms: Sequence[Condition]) -> Any:
    """The condition of a choice between numbers in these terms; None where there is none."""
    for term in filter(z3.is_app, terms):
        found = term.arg(0) if z3.is_app_of(term, z3.Z3_OP_ITE) else chosen_by(z3, term.children())
        if found is not None:
            return found
    return None


def relevant(world: Unknowns, facts: list[Condition], goal: list[Condition]) -> list[Condition]:
    """The facts about what the goal mentions, or about what such facts mention."""
    names = frozenset[str]().union(*map(world.names_in, goal))
    rest = [(fact, world.names_in(fact)) for fact in facts]
    kept: list[Condition] = []
    while True:
        near = [(fact, of) for fact, of in rest if not names.isdisjoint(of)]
        if not near:
            return kept
        kept += [fact for fact, _ in near]
        rest = [(fact, of) for fact, of in rest if names.isdisjoint(of)]
        names = names.union(*(of for _, of in near))
