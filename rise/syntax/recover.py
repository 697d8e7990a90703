"""All syntax errors of a file, and what parses in spite of them.

After a mistake, parsing goes on at the next `def` or `import` that begins a line. These are keywords,
which no expression contains: so it goes on there even if a bracket is still open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from rise.errors import ParseError
from rise.source import Source, Span
from rise.syntax.parser import Part, parse_part
from rise.syntax.surface import DefinitionSyntax, FileSyntax, ImportSyntax

# comments hide keywords, also one that is not closed
STARTS = re.compile(
    r'//[^\n]*|/\*.*?(?:\*/|\Z)|"[^"\n]*"|^(?P<keyword>def|import)\b', re.DOTALL | re.MULTILINE
)
DEFINED = re.compile(r"\bdef\s+([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Recovered:
    """`failed` names definitions that do not parse; `complete`: nothing else is missing from `file`."""

    file: FileSyntax
    mistakes: tuple[ParseError, ...] = ()
    failed: frozenset[str] = frozenset()
    complete: bool = True


def recover(source: Source) -> Recovered:
    """The whole text at once if it parses, else each part by itself."""
    whole = Part(1, 0, len(source.text))
    try:
        return Recovered(parse_part(source, whole))
    except ParseError:
        return by_parts(source, parse_part)


def by_parts(source: Source, parse: Callable[[Source, Part], FileSyntax]) -> Recovered:
    """Each part by itself; for an editor, `parse` knows those that did not change."""
    imports: list[ImportSyntax] = []
    definitions: list[DefinitionSyntax] = []
    mistakes: list[ParseError] = []
    failed: set[str] = set()
    complete = True
    for part in parts(source.text):
        try:
            file = parse(source, part)
        except ParseError as error:
            if isinstance(error.origin, Span):
                error.origin = replace(error.origin, source=source)
            mistakes.append(error)
            names = DEFINED.findall(source.text[part.start : part.end])
            failed.update(names)
            complete = complete and bool(names)
        else:
            imports += file.imports
            definitions += file.definitions
    file = FileSyntax(tuple(imports), tuple(definitions))
    return Recovered(file, tuple(mistakes), frozenset(failed), complete)


def parts(text: str) -> Iterator[Part]:
    """The text cut in front of each `def` and `import` that begins a line."""
    line, start = 1, 0
    for found in STARTS.finditer(text):
        if found["keyword"] and found.start() > 0:
            yield Part(line, start, found.start(), found["keyword"])
            line += text.count("\n", start, found.start())
            start = found.start()
    yield Part(line, start, len(text))
