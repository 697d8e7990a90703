"""In which role an expression stands, for messages: worked out only where there is something to say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rise.expr import Apply, DependentApply, Expr, Identifier, Primitive, Reference
from rise.frozen import filled_at_once
from rise.source import Note

# the places that have to do with a mistake, found when there is one
Notes = Callable[[], tuple[Note, ...]]


@filled_at_once
@dataclass(frozen=True, slots=True)
class Context:
    """role: what stands there, "the 2nd argument of `zip`"; notes: the places that decide its type."""

    role: Callable[[], str]
    notes: Notes = tuple


NOWHERE = Context(lambda: "this expression")


def plainly(role: str) -> Context:
    return Context(lambda: role)


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th"""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def callee(function: Expr) -> str:
    """What is applied, in words."""
    while isinstance(function, Apply | DependentApply):
        function = function.function
    match function:
        case Primitive(declaration, _):
            return f"`{declaration.infix or declaration.name}`"
        case Identifier(name, _) | Reference(name=name):
            return f"`{name}`"
        case _:
            return "the function"


def is_operator(function: Expr) -> bool:
    return isinstance(function, Primitive) and function.declaration.infix is not None


def argument_role(function: Expr, number: int, of: int, piped: bool) -> str:
    """Of the argument counted from 0; `of` arguments are given."""
    name = callee(function)
    if is_operator(function) and of == 2:
        return f"the {('left', 'right')[number]} operand of {name}"
    if piped and number == of - 1:
        return f"what is piped into {name}"
    return f"the argument of {name}" if of == 1 else f"the {ordinal(number + 1)} argument of {name}"
