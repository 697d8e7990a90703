"""One inference: its state, and what the parts of the elaborator ask of it for terms inside of others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from rise.check.context import NOWHERE, Context
from rise.check.scope import Scope
from rise.check.unify import Unifier
from rise.errors import RiseError
from rise.expr import Expr, Identifier
from rise.syntax import surface as s
from rise.types import Kind, Type


@dataclass
class Inference(ABC):
    """`pattern_variables` collects free names where they are allowed (sides of rules).

    trial:     whether this is an attempt at repairing a program, for a hint
    examined:  the errors for which such attempts were made
    outermost: whether nothing but functions of sizes is around the place
    """

    unifier: Unifier = field(default_factory=Unifier)
    pattern_variables: dict[str, Identifier] | None = None
    size_variables: dict[str, Kind] | None = None
    trial: bool = False
    examined: list[RiseError] = field(default_factory=list)
    outermost: bool = True

    def for_trial(self) -> Inference:
        return type(self)(self.unifier.copy(), self.pattern_variables, self.size_variables, trial=True)

    @abstractmethod
    def check(self, node: s.Surface, expected: Type, scope: Scope, context: Context = NOWHERE) -> Expr:
        """The term, whose type is the expected one."""

    @abstractmethod
    def infer(self, node: s.Surface, scope: Scope) -> Expr:
        """The term, whose type says what is known of it."""
