"""The exceptions a user can meet: one small tree, each with a stable code, a place and a hint.

`R0xxx` codes: 00 files and calls, 01 syntax, 02 names and kinds, 03 types, 04 sizes, 05 evaluation,
06 rewriting, 07 translation, 08 compilation and launch, 09 emulation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rise.source import Note, Origin, Span, place


@dataclass(frozen=True)
class Marked:
    """A text, and the ranges of its characters that a message marks."""

    text: str
    ranges: tuple[tuple[int, int], ...] = ()

    @property
    def carets(self) -> str:
        marks = [" "] * len(self.text)
        for start, end in self.ranges:
            marks[start:end] = "^" * (end - start)
        return "".join(marks).rstrip()


@dataclass(frozen=True)
class Difference:
    """What a place wants and what stands there, each with the parts that differ marked."""

    expected: Marked
    found: Marked


# a hint, or how it is found
Hint = str | None | Callable[[], str | None]

# a piece of a line of a message, and what it is: "title", "caret", "mark", "hint", "note" or plain ""
Piece = tuple[str, str]


class RiseError(Exception):
    """A mistake in a program or a call.

    code:       stable identifier, `R0301`
    message:    one sentence
    origin:     where in the source, if anywhere
    hint:       what the programmer may have meant
    difference: what is expected and what was found, where two types or sizes disagree
    notes:      other places that have to do with it
    """

    def __init__(
        self,
        code: str,
        message: str,
        origin: Origin = None,
        hint: Hint = None,
        difference: Difference | None = None,
        notes: tuple[Note, ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.origin = origin
        self._hint = hint
        self.difference = difference
        self.notes = notes

    @property
    def hint(self) -> str | None:
        """Worked out when somebody wants to see it: of many mistakes only the first are shown."""
        if callable(self._hint):
            self._hint = self._hint()
        return self._hint

    @hint.setter
    def hint(self, hint: Hint) -> None:
        self._hint = hint

    def render(self) -> str:
        """Place, code and message on one line, the excerpt, the difference, the notes, the hint."""
        return "\n".join("".join(text for _, text in line) for line in self.lines())

    def lines(self) -> list[list[Piece]]:
        """The lines of `render`, in pieces that a terminal may colour."""
        span = place(self.origin)
        title = f"error {self.code}: {self.message}"
        lines: list[list[Piece]] = [[("title", f"{span}: {title}" if span else title)]]
        lines += _excerpt(span)
        if self.difference:
            lines += _marked("expected", self.difference.expected, self.difference.found)
            lines += _marked("found", self.difference.found)
        for note in self.notes:
            other = place(note.origin)
            if other is None or other == span:
                lines.append([("note", f"note: {note.text}")])
            else:
                lines += [[("note", f"{other}: note: {note.text}")], *_excerpt(other)]
        if self.hint:
            lines.append([("hint", f"hint: {self.hint}")])
        return lines

    def __str__(self) -> str:
        return self.render()


def _excerpt(span: Span | None) -> list[list[Piece]]:
    if span is None:
        return []
    lines = span.excerpt_lines()
    return [[("", gutter), ("caret" if set(text) <= {" ", "^"} else "", text)] for gutter, text in lines]


def _marked(label: str, marked: Marked, following: Marked | None = None) -> list[list[Piece]]:
    """The text behind its label, and carets below; those of two lines that agree are shown once."""
    start = f"{label:<8}  "
    pieces: list[Piece] = [("", start)]
    position = 0
    for first, last in marked.ranges:
        pieces += [("", marked.text[position:first]), ("mark", marked.text[first:last])]
        position = last
    pieces.append(("", marked.text[position:]))
    if not marked.carets or (following and following.carets == marked.carets):
        return [pieces]
    return [pieces, [("", " " * len(start)), ("caret", marked.carets)]]


# so many of the mistakes of a program are shown
MOST_SHOWN = 100


class Mistakes(RiseError):
    """Several mistakes, in the order in which the source has them; code and place are the first one's."""

    def __init__(self, mistakes: Sequence[RiseError]) -> None:
        first = mistakes[0]
        super().__init__(
            first.code, first.message, first.origin, lambda: first.hint, first.difference, first.notes
        )
        self.mistakes = tuple(mistakes)

    def lines(self) -> list[list[Piece]]:
        """Each mistake as if it were alone, with an empty line between two; at the end their number."""
        lines: list[list[Piece]] = []
        for mistake in self.mistakes[:MOST_SHOWN]:
            lines += [*mistake.lines(), []]
        more = len(self.mistakes) - MOST_SHOWN
        summary = self.summary() + (f"; {more} of them are not shown" if more > 0 else "")
        return [*lines, [("note", summary)]]

    def summary(self) -> str:
        """`3 mistakes in 2 files`"""
        places = [place(mistake.origin) for mistake in self.mistakes]
        files = len({span.source.name for span in places if span})
        where = f" in {files} file{'s' if files > 1 else ''}" if files else ""
        return f"{len(self.mistakes)} mistakes{where}"


def together(mistakes: Sequence[RiseError]) -> RiseError:
    """One mistake is itself; several are Mistakes."""
    return mistakes[0] if len(mistakes) == 1 else Mistakes(mistakes)


class UsageError(RiseError):
    """The call is wrong: a missing file, an unknown option value. Exit status 2."""


class ParseError(RiseError):
    """The text is no program."""


class ScopeError(RiseError):
    """A name is unknown, or is of the wrong kind."""


class TypeMismatch(RiseError):
    """Two types, or two sizes, that have to be equal are not."""


class EvaluationError(RiseError):
    """Inputs do not fit the program, or an index is out of range."""


class StrategyError(RiseError):
    """A strategy does not apply to a program."""


class TranslationError(RiseError):
    """A low-level program does not say all that code generation needs, or says something illegal."""


class CompilationError(RiseError):
    """A compiler is missing or rejects a kernel."""


class LaunchError(RiseError):
    """Arguments do not fit a compiled kernel."""


class EmulationError(RiseError):
    """The emulated kernel misbehaved: out of bounds, uninitialised read, race, divergent barrier."""
