"""How views turn paths into paths: the registry that `codegen/primitives/` fills.

A path selects an element: indices, and members of pairs, outermost first. Reading, a view turns a path
into its result into one into an operand; writing, a path into the acceptor of an operand into one into
that of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from codegen import imperative as i
from rise.expr import Apply, Expr, Identifier, Primitive, spine
from rise.nat import Facts, Nat
from rise.types import Argument, NatFunction

Member = str
Path = tuple[Nat | Member, ...]


@dataclass(frozen=True)
class Sizes:
    """The dependent arguments of a view by name, and what is known of the indices.

    operands: how many the view has
    element:  the index that an operand, by number, holds at a path, as one that paths may contain
    clamped:  an index moved up to 0 or down below a size
    only:     what is written is written only where an index is below a size
    """

    arguments: Mapping[str, Argument]
    facts: Facts
    operands: int
    element: Callable[[int, Path], Nat]
    clamped: Callable[[Nat, Nat], Nat]
    only: Callable[[Nat, Nat], None]

    def __getitem__(self, name: str) -> Nat:
        value = self.arguments[name]
        if not isinstance(value, Nat):
            raise KeyError(name)
        return value

    def function(self, name: str) -> NatFunction:
        value = self.arguments[name]
        if not isinstance(value, NatFunction):
            raise KeyError(name)
        return value


@dataclass(frozen=True)
class Choice:
    """A path into one operand if value < bound, into another one otherwise."""

    value: Nat
    bound: Nat
    first: Reading
    second: Reading


# into which operand, and where in it
Reading = tuple[int, Path] | Choice
READING: dict[str, Callable[[Sizes, Path], Reading]] = {}
WRITING: dict[str, Callable[[Sizes, Path, int], Path]] = {}
T = TypeVar("T", bound=Callable[..., object])


def reading(*names: str) -> Callable[[T], T]:
    """Registers how views turn a path into their result into one into an operand."""

    def register(function: T) -> T:
        for name in names:
            READING[name] = function  # type: ignore[assignment]
        return function

    return register


def writing(*names: str) -> Callable[[T], T]:
    """Registers how the acceptor of an operand turns its path into one of the result's acceptor."""

    def register(function: T) -> T:
        for name in names:
            WRITING[name] = function  # type: ignore[assignment]
        return function

    return register


def zip_path(path: Path) -> tuple[int, Path]:
    """i :: fst :: p is i :: p of the first operand."""
    index, member, *rest = path
    return (0 if member == "fst" else 1), (index, *rest)


# --- functions that only rearrange ----------------------------------------------------------------------


def fed(body: Expr, parameter: str, target: i.Acceptor) -> i.Acceptor:
    """The acceptor of the parameter, where the body rearranges it into the target."""
    if isinstance(body, Identifier) and body.name == parameter:
        return target
    head, applications = spine(body)
    if isinstance(head, Primitive) and head.name == "map" and len(applications) == 2:
        function, xs = applications[0].argument, applications[1].argument
        inner = i.AcceptMap(function.parameter.name, function.body, target, xs.type)  # type: ignore[union-attr, arg-type]
        return fed(xs, parameter, inner)
    operand = applications[-1].argument
    view = i.AcceptView(head.name, head.arguments, target, operand.type)  # type: ignore[union-attr, arg-type]
    return fed(operand, parameter, view)


def rearranges(body: Expr, parameter: str) -> bool:
    """Whether a function's body is its parameter seen through views that can be written through."""
    if isinstance(body, Identifier):
        return body.name == parameter
    head, applications = spine(body)
    if not isinstance(head, Primitive) or not applications:
        return False
    if head.name == "map" and len(applications) == 2:
        function = applications[0].argument
        inside = not isinstance(function, Apply) and hasattr(function, "parameter")
        return (
            inside
            and rearranges(function.body, function.parameter.name)  # type: ignore[union-attr]
            and rearranges(applications[1].argument, parameter)
        )
    return head.name in WRITING and len(applications) == 1 and rearranges(applications[0].argument, parameter)
