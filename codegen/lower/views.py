"""How views transform paths: the registry that the modules of `codegen/lower/primitives/` fill.

A path selects an element by indices and members of pairs, outermost first. For reading, a view turns a path
into its result into a path into an operand; for writing, it turns a path into the acceptor of an operand into
a path into the acceptor of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from codegen.ir import imperative as i
from codegen.ir.data import data
from rise.errors import TranslationError
from rise.expr import Apply, Expr, Identifier, Lambda, Primitive, spine
from rise.frozen import filled_at_once
from rise.nat import Facts, Nat, quotient, remainder
from rise.types import Argument, NatFunction, Pair

Member = str
Path = tuple[Nat | Member, ...]


@filled_at_once
@dataclass(frozen=True, slots=True)
class Sizes:
    """The dependent arguments of a view by name, and the operations that it may use.

    operands: the number of operands of the view
    element:  the index that operand `number` holds at a path, in a form that paths can contain
    clamped:  an index clamped to 0 … size - 1
    existing: an index where it is below a size, else any that is
    only:     restricts the current write to an index below a size
    same:     restricts the current write to an index that equals another
    defined:  says that what is read is undefined if an index is not below a number
    """

    arguments: Mapping[str, Argument]
    facts: Facts
    operands: int
    element: Callable[[int, Path], Nat]
    clamped: Callable[[Nat, Nat], Nat]
    existing: Callable[[Nat, Nat], Nat]
    only: Callable[[Nat, Nat], None]
    same: Callable[[Nat, Nat], None]
    defined: Callable[[Nat, Callable[[], Nat]], None]

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


@filled_at_once
@dataclass(frozen=True, slots=True)
class Choice:
    """A path into one operand if value < bound, into another one otherwise."""

    value: Nat
    bound: Nat
    first: Reading
    second: Reading


# the number of the operand, and the path into it
Reading = tuple[int, Path] | Choice
Reader = Callable[[Sizes, Path], Reading]
Writer = Callable[[Sizes, Path, int], Path]
READING: dict[str, Reader] = {}
WRITING: dict[str, Writer] = {}


def reading(*names: str) -> Callable[[Reader], Reader]:
    """Registers how views turn a path into their result into a path into an operand.

    The function that is decorated takes the sizes of the primitive and a path, a sequence of indices with the
    outermost one first, and returns the position of the operand and the path into it.
    """

    def register(function: Reader) -> Reader:
        for name in names:
            READING[name] = function
        return function

    return register


def writing(*names: str) -> Callable[[Writer], Writer]:
    """Registers how views turn a path into the acceptor of an operand into one of the result's acceptor."""

    def register(function: Writer) -> Writer:
        for name in names:
            WRITING[name] = function
        return function

    return register


def index_of(part: Nat | Member) -> Nat:
    """A part of a path into an array, which is an index because the program is well typed."""
    if isinstance(part, Member):
        raise TypeError(part)
    return part


def flattened(width: Nat, path: Path) -> Path:
    """i :: j :: p as width*i + j :: p"""
    row, column, *rest = path
    return (width * index_of(row) + index_of(column), *rest)


def divided(width: Nat, path: Path, facts: Facts) -> Path:
    """i :: p as i/width :: i%width :: p"""
    part, *rest = path
    index = index_of(part)
    return (quotient(index, width, facts), remainder(index, width, facts), *rest)


def zip_path(path: Path) -> tuple[int, Path]:
    """i :: fst :: p is i :: p of the first operand."""
    index, member, *rest = path
    return (0 if member == "fst" else 1), (index, *rest)


# --- functions that only rearrange ----------------------------------------------------------------------


def fed(body: Expr, parameter: str, target: i.Acceptor) -> i.Acceptor:
    """The acceptor of the parameter, if the body rearranges it into the target."""
    if isinstance(body, Identifier) and body.name == parameter:
        return target
    head, applications = spine(body)
    if not isinstance(head, Primitive):
        raise TranslationError("R0799", "internal: a function does more than rearrange", body.origin)
    operand = applications[-1].argument
    match applications:
        case (Apply(argument=Lambda() as function), _) if head.name == "map":
            inner: i.Acceptor = i.AcceptMap(function.parameter.name, function.body, target, data(operand))
        case (Apply(argument=Lambda() as function), _) if isinstance(type_ := data(operand), Pair):
            member = int(head.name == "mapSnd")
            inner = i.AcceptMember(function.parameter.name, function.body, member, target, type_)
        case _:
            inner = i.AcceptView(head.name, head.arguments, target, data(operand))
    return fed(operand, parameter, inner)


def rearranges(body: Expr, parameter: str) -> bool:
    """Whether a function's body is its parameter under views that can be written through."""
    if isinstance(body, Identifier):
        return body.name == parameter
    head, applications = spine(body)
    if not isinstance(head, Primitive) or not applications:
        return False
    if head.name in ("map", "mapFst", "mapSnd") and len(applications) == 2:
        function = applications[0].argument
        return (
            isinstance(function, Lambda)
            and rearranges(function.body, function.parameter.name)
            and rearranges(applications[1].argument, parameter)
        )
    return head.name in WRITING and len(applications) == 1 and rearranges(applications[0].argument, parameter)
