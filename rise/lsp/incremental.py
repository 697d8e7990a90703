"""Checking a file anew after a change: texts come from the editor, and what did not change is known.

A definition is known if the same text stands on the same lines and every name in it means the same object
as before: its type, and the places in it, are then the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rise.check.program import Loader, real_path
from rise.check.recursion import mentioned
from rise.expr import Definition
from rise.source import Source, without_mark
from rise.syntax.parser import Part, parse_part
from rise.syntax.recover import Recovered, by_parts
from rise.syntax.surface import DefinitionSyntax, FileSyntax, ImportSyntax

# the name of a file, the line and the text of a part, and the keyword behind it
PartKey = tuple[str, int, str, str]


@dataclass(frozen=True)
class Known:
    """A definition as it was checked, and what the names in it meant; `syntax` is compared by identity."""

    syntax: DefinitionSyntax
    meant: Mapping[str, Definition | None]
    definition: Definition


@dataclass
class Memory:
    """What one check found out, for the next one. `known` is by the identity of the syntax."""

    parts: dict[PartKey, FileSyntax] = field(default_factory=dict)
    known: dict[int, Known] = field(default_factory=dict)


class Incremental(Loader):
    """A loader for one check.

    texts:  what stands for files that are open, by their real paths
    before: what the last check of the same file found out
    now:    what this one does
    files:  all files that were read, by their real paths
    found:  where imports lead to, by the name of the importing file and the text of the import
    syntax: what parses of each file, by its name
    """

    def __init__(self, texts: Mapping[Path, str], before: Memory | None = None) -> None:
        super().__init__()
        self.texts = texts
        self.before = before or Memory()
        self.now = Memory()
        self.files: set[Path] = set()
        self.found: dict[tuple[str, str], Path] = {}
        self.syntax: dict[str, FileSyntax] = {}

    def read(self, path: Path) -> Source:
        key = real_path(path)
        self.files.add(key)
        text = self.texts.get(key)
        return super().read(path) if text is None else Source(str(path), without_mark(text))

    def is_file(self, path: Path) -> bool:
        return real_path(path) in self.texts or super().is_file(path)

    def find(self, imported: ImportSyntax, folder: Path) -> Path:
        path = super().find(imported, folder)
        self.found[imported.span.source.name, imported.path] = path
        return path

    def recover(self, source: Source) -> Recovered:
        found = by_parts(source, self._parse)
        self.syntax[source.name] = found.file
        return found

    def _parse(self, source: Source, part: Part) -> FileSyntax:
        key = source.name, part.line, source.text[part.start : part.end], part.follows
        file = self.before.parts.get(key) or parse_part(source, part)
        self.now.parts[key] = file
        return file

    def define(self, syntax: DefinitionSyntax, definitions: Mapping[str, Definition]) -> Definition:
        meant = {node.name: definitions.get(node.name) for node in mentioned(syntax)}
        known = self.before.known.get(id(syntax))
        if known is None or known.syntax is not syntax or not _same(known.meant, meant):
            known = Known(syntax, meant, super().define(syntax, definitions))
        self.now.known[id(syntax)] = known
        return known.definition


def _same(before: Mapping[str, Definition | None], now: Mapping[str, Definition | None]) -> bool:
    return all(now[name] is definition for name, definition in before.items())
