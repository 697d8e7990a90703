"""Texts with places where a line may break (Wadler, "A prettier printer").

A group is set on one line if it fits there, otherwise all its own breaks become line ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Break:
    """A line end, or what stands for it where the line is not ended: a space, or nothing."""

    flat: str = " "


@dataclass(frozen=True)
class Nest:
    """What is inside is indented further."""

    indent: int
    inside: Document


@dataclass(frozen=True)
class Group:
    inside: Document


@dataclass(frozen=True)
class Concat:
    parts: tuple[Document, ...]


Document = str | Break | Nest | Group | Concat

SPACE, NOTHING = Break(), Break("")

# what is left to set: indentation, whether breaks are flat, the document
_Item = tuple[int, bool, Document]


def concat(*parts: Document) -> Document:
    return Concat(parts)


def join(separator: Document, parts: Iterable[Document]) -> Document:
    joined: list[Document] = []
    for part in parts:
        joined += [separator, part] if joined else [part]
    return Concat(tuple(joined))


def indented(*parts: Document, by: int = 2) -> Document:
    return Nest(by, Concat(parts))


def group(*parts: Document) -> Document:
    return Group(Concat(parts))


def render(document: Document, width: int) -> str:
    """The text, with lines of at most `width` characters where the breaks allow it."""
    text: list[str] = []
    column = 0
    rest: list[_Item] = [(0, False, document)]
    while rest:
        indent, flat, item = rest.pop()
        match item:
            case str():
                text.append(item)
                column += len(item)
            case Break(space) if flat:
                text.append(space)
                column += len(space)
            case Break():
                text.append("\n" + " " * indent)
                column = indent
            case Group(inside):
                fits = flat or _fits(rest, (indent, True, inside), width - column)
                rest.append((indent, fits, inside))
            case _:
                rest += _opened(indent, flat, item)
    return "".join(text)


def _opened(indent: int, flat: bool, item: Nest | Concat) -> list[_Item]:
    """The parts of a document, the first one last, as a stack wants them."""
    if isinstance(item, Nest):
        return [(indent + item.indent, flat, item.inside)]
    return [(indent, flat, part) for part in reversed(item.parts)]


def _fits(rest: list[_Item], first: _Item, room: int) -> bool:
    """Whether everything up to the next line end has room, with `first` set on one line."""
    stack, behind = [first], len(rest)
    while room >= 0:
        if not stack:
            if not behind:
                return True
            behind -= 1
            stack.append(rest[behind])
        indent, flat, item = stack.pop()
        match item:
            case str():
                room -= len(item)
            case Break(space):
                if not flat:
                    return True
                room -= len(space)
            case Group(inside):
                stack.append((indent, flat, inside))
            case _:
                stack += _opened(indent, flat, item)
    return False
