"""The result of a rule or a strategy: a new program with its steps, or a failure with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from itertools import dropwhile

from rise.data import shown as words
from rise.errors import StrategyError
from rise.expr import Constraint, Expr
from rise.frozen import changed, filled_at_once
from rise.nat import Nat
from rise.source import Note, Origin, place
from rise.user_code import place_of_function

Path = tuple[int, ...]
WIDTH = 92
ELLIPSIS = "(…)"  # the arguments of a strategy that are too long to be shown


class Inapplicable(Exception):
    """Raised while a computed rule looks at a term that it does not apply to. reason: why"""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Combination(str):
    """The title of a strategy that only combines others, by which steps are listed."""


@filled_at_once
@dataclass(frozen=True, slots=True)
class Step:
    """One application of a rule: where, with which parameters, and the subterm before and after.

    by: the strategies that led to it, the outermost first, as they are called
    """

    rule: str
    path: Path
    before: Expr
    after: Expr
    constraints: tuple[Constraint, ...] = ()
    parameters: Mapping[str, Nat] = field(default_factory=dict)
    by: tuple[str, ...] = field(default=(), compare=False)

    def below(self, index: int) -> Step:
        """The step as one of the term whose child it was made in."""
        path = (index, *self.path)
        return Step(self.rule, path, self.before, self.after, self.constraints, self.parameters, self.by)

    def within(self, strategy: str) -> Step:
        """The step as one of a strategy, one of whose parts made it."""
        return changed(self, by=(strategy, *self.by))

    def combined(self, title: Combination) -> Step:
        """The step as one of a combination. How it works inside, by other combinations, is of no interest;
        nor is a combination too long to be shown, where its parts have titles."""
        if title.endswith(ELLIPSIS) and self.by:
            return self
        inner = dropwhile(lambda each: isinstance(each, Combination), self.by)
        return changed(self, by=(title, *inner))


@filled_at_once
@dataclass(frozen=True, slots=True)
class Success:
    """The rewritten term, and the steps that led to it, in order.

    missed: the closest failure among optional strategies that did not apply
    """

    term: Expr
    steps: tuple[Step, ...] = ()
    missed: Failure | None = field(default=None, compare=False, repr=False)

    def _repr_html_(self) -> str:
        """The term, and by which rules it was reached, in a notebook."""
        from rise.notebook import code_html
        from rise.pretty import show

        return code_html(show(self.term)) + escape(", ".join(step.rule for step in self.steps))


@filled_at_once
@dataclass(frozen=True, slots=True)
class Failure:
    """Which rule did not apply, to what term, and why.

    depth:   how much of it did match, by which failures are compared
    path:    where the term is, in the program as it was then
    part:    the part of the term that is at fault
    hint:    what helps
    pattern: what the rule is for, its left side
    after:   how many steps had been taken before
    missed:  what was optional, had been tried before, and came close
    code:    of the error that a failure of a whole strategy becomes
    origin:  where in the source, if another place than that of the part or the term
    """

    rule: str
    term: Expr
    reason: str
    depth: int = 0
    path: Path = ()
    part: Expr | None = None
    hint: str | None = None
    pattern: str = ""
    after: int = 0
    missed: Failure | None = None
    code: str = "R0606"
    origin: Origin = None

    def below(self, index: int) -> Failure:
        """The failure as one of the term whose child it is about."""
        missed = self.missed.below(index) if self.missed else None
        return Failure(
            self.rule, self.term, self.reason, self.depth, (index, *self.path), self.part, self.hint,
            self.pattern, self.after, missed, self.code, self.origin,
        )  # fmt: skip

    def closer(self, other: Failure | None) -> Failure:
        """Of two failures the one that came closest to applying; the first one of equals."""
        return other if other is not None and other.depth > self.depth else self

    def following(self, first: Success) -> Failure:
        """The failure of what follows a success: the one that got further came closer."""
        missed = first.missed.closer(self.missed) if first.missed else self.missed
        count = len(first.steps)
        return changed(self, depth=self.depth + count, after=self.after + count, missed=missed)

    def story(self) -> str:
        """Rule, place in the source and reason, in a line."""
        span = place(self._origin)
        return f"`{self.rule}` does not apply{f' at {span}' if span else ''}: {self.reason}"

    def error(self, strategy: str) -> StrategyError:
        """The failure of a whole strategy as a message: R0606 with place, rule, term and what helps."""
        fails = "" if self.rule == strategy else f"the strategy `{strategy}` fails: "
        message = f"{fails}`{self.rule}` does not apply: {self.reason}"
        return StrategyError(self.code, message, self._origin, self.hint, notes=self._notes())

    @property
    def _origin(self) -> Origin:
        return self.origin if self.origin is not None else self._culprit.origin

    @property
    def _culprit(self) -> Expr:
        part = self.part
        return part if part is not None and place(part.origin) is not None else self.term

    def _notes(self) -> tuple[Note, ...]:
        tells = self.pattern and not self.pattern.isidentifier()  # a variable stands for any term
        notes = [Note(f"it is for terms of the form `{one_line(self.pattern)}`")] if tells else []
        notes.append(Note(f"{self._where()}, the term is `{shown(self.term)}`", self.term.origin))
        if self.part is not None and self.part is not self.term:
            notes.append(Note(f"the part at fault is `{shown(self.part)}`"))
        if self.missed is not None and self.missed.depth > self.depth:
            missed = f"`{self.missed.rule}` did not apply before, and may have been meant to"
            notes.append(Note(f"{missed}: {self.missed.reason}", self.missed._culprit.origin))
        return tuple(notes)

    def _where(self) -> str:
        steps = "before the first step" if self.after == 0 else "after one step"
        if self.after > 1:
            steps = f"after {self.after} steps"
        return f"{steps}, at {show_path(self.path)}"


Result = Success | Failure


def no_result(what: str, found: object, function: Callable[..., object]) -> StrategyError:
    """R0631: a user's rule or strategy returns something that is neither a Success nor a Failure."""
    hint = "a strategy returns what a rule or another strategy gave it, `Success(new)` or `Failure(…)`"
    message = f"{what} returns {words(found)}, which is neither a Success nor a Failure"
    return StrategyError("R0631", message, place_of_function(function), hint)


def show_path(path: Path) -> str:
    """A path of child positions, `0.1.0`: 0 is the function and 1 the argument, 0 the body of a lambda."""
    return ".".join(map(str, path)) or "the top"


def one_line(text: str, width: int = WIDTH) -> str:
    """A text on one line, cut where it gets long."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def shown(term: Expr, width: int = WIDTH) -> str:
    """A term on one line, cut where it gets long."""
    from rise.pretty import show  # late: rules are declared and applied without a printer

    return one_line(show(term), width)
