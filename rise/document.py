"""Texts with places where a line may break (Wadler, "A prettier printer").

A group is set on one line if it fits there, otherwise all its own breaks become line ends. What
contains a forced line end, or a suffix, is never set on one line. Of two layouts the second is taken
where the first line of the first one is too long.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rise.frozen import filled_at_once


@filled_at_once
@dataclass(frozen=True, slots=True)
class Break:
    """A line end, or what stands for it where the line is not ended; None: it always is."""

    flat: str | None = " "


@filled_at_once
@dataclass(frozen=True, slots=True)
class Suffix:
    """A text that is set at the end of its line, behind all that follows on it: a line comment."""

    text: str


@filled_at_once
@dataclass(frozen=True, slots=True)
class Nest:
    """What is inside is indented further."""

    indent: int
    inside: Document


@filled_at_once
@dataclass(frozen=True, slots=True)
class Align:
    """What is inside is indented to the column where it starts."""

    inside: Document


@filled_at_once
@dataclass(frozen=True, slots=True)
class Group:
    """solid: a line on which it begins has room only if all of it fits there."""

    inside: Document
    solid: bool = False


@filled_at_once
@dataclass(frozen=True, slots=True)
class Concat:
    parts: tuple[Document, ...]


@filled_at_once
@dataclass(frozen=True, slots=True)
class Either:
    """`first` where its first line has room, else `otherwise`, whose first line ends sooner."""

    first: Document
    otherwise: Document


@filled_at_once
@dataclass(frozen=True, eq=False, slots=True)
class Mark:
    """What is inside, of which it is of interest where in the text it is set."""

    of: object
    inside: Document


@filled_at_once
@dataclass(frozen=True, eq=False, slots=True)
class _End:
    """Where a mark ends that was set from a place on."""

    of: object
    start: Place


Document = str | Break | Suffix | Nest | Align | Group | Concat | Either | Mark | _End

# a line, counted from 0, and a column
Place = tuple[int, int]


@filled_at_once
@dataclass(frozen=True, slots=True)
class Occurrence:
    """What a mark is of, and the characters that it covers: from its start up to, not including, its end."""

    of: object
    start: Place
    end: Place


SPACE, NOTHING, LINE_END = Break(), Break(""), Break(None)

# what is left to set: indentation, whether breaks are flat, the document
_Item = tuple[int, bool, Document]


def concat(*parts: Document) -> Document:
    return Concat(parts)


def join(separator: Document, parts: Iterable[Document]) -> Document:
    joined: list[Document] = []
    for part in parts:
        joined += [separator, part] if joined else [part]
    return Concat(tuple(joined))


def fill(separator: str, parts: Iterable[Document]) -> Document:
    """As many parts on a line as fit there."""
    first, *rest = parts
    return concat(first, *(concat(separator, group(SPACE, part)) for part in rest))


def indented(*parts: Document, by: int = 2) -> Document:
    return Nest(by, Concat(parts))


def group(*parts: Document) -> Document:
    return Group(Concat(parts))


def solid(*parts: Document) -> Document:
    return Group(Concat(parts), solid=True)


def render(document: Document, width: int, marked: list[Occurrence] | None = None) -> str:
    """The text, with lines of at most `width` characters where the breaks allow it.

    marked: where the marks are is added there, the inner ones first
    """
    page = _Page()
    rest: list[_Item] = [(0, False, document)]
    while rest:
        indent, flat, item = rest.pop()
        if isinstance(item, Concat):  # first: most are
            rest += [(indent, flat, part) for part in reversed(item.parts)]
            continue
        match item:
            case str():
                page.write(item)
            case Suffix(text):
                page.suffixes.append(text)
            case Break(str(space)) if flat:
                page.write(space)
            case Break():
                page.end_line(indent)
            case Align(inside):
                rest.append((page.column, flat, inside))
            case Mark(of, inside):
                rest += [(indent, flat, _End(of, page.place)), (indent, flat, inside)]
            case _End(of, start):
                if marked is not None:
                    marked.append(Occurrence(of, start, page.place))
            case Group(inside):
                fits = flat or _fits(rest, (indent, True, inside), width - page.column)
                rest.append((indent, fits, inside))
            case Either(first, otherwise):
                fits = flat or _fits(rest, (indent, False, first), width - page.column)
                rest.append((indent, flat, first if fits else otherwise))
            case _:
                rest += _opened(indent, flat, item)
    return page.text()


@dataclass
class _Page:
    """The text so far. The last line's indentation is set with its first character, if it gets one."""

    lines: list[str] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    column: int = 0
    suffixes: list[str] = field(default_factory=list)

    @property
    def place(self) -> Place:
        return len(self.lines), self.column

    def write(self, text: str) -> None:
        if not text:
            return
        if not self.line and self.column:
            self.line.append(" " * self.column)
        self.line.append(text)
        *_, last = text.rsplit("\n", 1)
        self.column = len(last) + (self.column if len(last) == len(text) else 0)

    def end_line(self, indent: int) -> None:
        line = "".join(self.line).rstrip()
        # a line comment cannot follow another one: it is set below
        first, *more = self.suffixes or [""]
        if first:
            line = f"{line}  {first}" if line else " " * self.column + first
        self.lines += [line, *(" " * indent + text for text in more)]
        self.line, self.suffixes, self.column = [], [], indent

    def text(self) -> str:
        self.end_line(0)
        return "\n".join(self.lines)


def _opened(indent: int, flat: bool, item: Nest | Align | Mark | _End) -> list[_Item]:
    """What is in a part of a document, as a stack wants it."""
    match item:
        case Nest(by, inside):
            return [(indent + by, flat, inside)]
        case Align(inside) | Mark(_, inside):
            return [(indent, flat, inside)]
        case _End():
            return []


def _fits(rest: list[_Item], first: _Item, room: int) -> bool:
    """Whether everything up to the next line end has room: all of `first`, if that is flat."""
    stack, behind = [first], len(rest)
    while room >= 0:
        if not stack:
            if not behind:
                return True
            behind -= 1
            stack.append(rest[behind])
        indent, flat, item = stack.pop()
        if isinstance(item, Concat):
            stack += [(indent, flat, part) for part in reversed(item.parts)]
            continue
        match item:
            case str():
                line, *more = item.split("\n", 1)
                if more:
                    return not flat and len(line) <= room
                room -= len(line)
            case Suffix() | Break(None) if flat:
                return False
            case Suffix():
                pass
            case Break(str(space)) if flat:
                room -= len(space)
            case Break():
                return True
            case Group(inside, solid):
                stack.append((indent, flat or solid, inside))
            case Either(preferred, _):
                stack.append((indent, flat, preferred))
            case _:
                stack += _opened(indent, flat, item)
    return False
