"""Which step of a derivation made a term of its result."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from rewrites.result import Success
from rise.expr import Apply, Expr, Lambda, Literal, Primitive, spine, subterms


@dataclass(frozen=True)
class Makers:
    """The first step with each kind of node at each origin. Rules give what they make origins of its own, or
    the origin of what it replaces; all others keep the origins of nodes."""

    steps: dict[Hashable, int]

    def step_of(self, term: Expr) -> int:
        """The number of the step that made a node of the result; 0 where it is a part of the program."""
        return self.steps.get(_mark(term), 0)

    def is_same(self, one: Expr, other: Expr) -> bool:
        """Whether two nodes, of programs before and after steps, are one: only what is in them differs."""
        return _mark(one) == _mark(other)


def makers(start: Expr, success: Success) -> Makers:
    """What is known of the nodes of a derivation, whose steps are counted from 1."""
    steps: dict[Hashable, int] = {_mark(term): 0 for term in subterms(start)}
    for number, step in enumerate(success.steps, 1):
        for term in subterms(step.after):
            steps.setdefault(_mark(term), number)
    return Makers(steps)


def _mark(term: Expr) -> Hashable:
    """The origin, by identity, and what stands there: an application is named after what it applies."""
    head = spine(term)[0] if isinstance(term, Apply) else term
    match head:
        case Primitive():
            name = head.name
        case Literal(value):
            name = str(value)
        case Lambda() if head is not term:
            name = "=>"
        case _:
            name = ""
    return id(term.origin) if term.origin is not None else name, type(term), name
