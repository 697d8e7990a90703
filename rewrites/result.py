"""What applying a rule or a strategy gives: a new program with its steps, or a failure with its story."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rise.expr import Constraint, Expr
from rise.source import place

Path = tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """One application of a rule: where, and the subterm before and after."""

    rule: str
    path: Path
    before: Expr
    after: Expr
    constraints: tuple[Constraint, ...] = ()

    def below(self, index: int) -> Step:
        return replace(self, path=(index, *self.path))


@dataclass(frozen=True)
class Success:
    """The rewritten term, and the steps that led to it, in order."""

    term: Expr
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Failure:
    """Which rule did not apply, to what term, and why; `depth` is how far matching got."""

    rule: str
    term: Expr
    reason: str
    depth: int = 0
    path: Path = ()

    def below(self, index: int) -> Failure:
        return replace(self, path=(index, *self.path))

    def closer(self, other: Failure) -> Failure:
        """Of two failures the one that came closest to applying; the first one of equals."""
        return other if other.depth > self.depth else self

    def story(self) -> str:
        """Rule, reason, and the place in the source that the term comes from."""
        span = place(getattr(self.term, "origin", None))
        where = f" at {span}" if span else ""
        return f"`{self.rule}` does not apply{where}: {self.reason}"


Result = Success | Failure
