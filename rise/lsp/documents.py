"""The open files, and what is known of each: found out when asked for, and kept until a text changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rise.check.program import Checked, read, real_path
from rise.depth import too_deep
from rise.errors import UsageError
from rise.lsp.incremental import Incremental, Memory
from rise.lsp.names import Occurrence, occurrences
from rise.lsp.positions import Place, contains
from rise.lsp.typed import Observer, Typed, observe, typed
from rise.lsp.uris import folder_of
from rise.source import Source, place, without_mark
from rise.syntax.parser import Part
from rise.syntax.recover import parts
from rise.syntax.surface import DefinitionSyntax, FileSyntax


@dataclass(frozen=True)
class Analysis:
    """What is known of one text.

    checked: its definitions, those it imports, and all mistakes
    syntax:  what parses
    imports: where imports lead to, by their texts
    files:   the imported files, by their real paths
    """

    path: Path
    source: Source
    checked: Checked
    syntax: FileSyntax
    imports: Mapping[str, Path]
    files: frozenset[Path]

    @cached_property
    def names(self) -> list[Occurrence]:
        own = {definition.name for definition in self.syntax.definitions}
        imported = {n: d for n, d in self.checked.definitions.items() if n not in own}
        return occurrences(self.syntax, {name: place(d.origin) for name, d in imported.items()})

    def name_at(self, at: Place) -> Occurrence | None:
        """The name at a cursor, which may stand behind its last character."""
        return next((found for found in self.names if contains(found.span, at)), None)

    def definition_at(self, at: Place) -> DefinitionSyntax | None:
        return next((d for d in self.syntax.definitions if contains(d.span, at)), None)

    def part_at(self, at: Place) -> Part:
        """The lines from one `def` or `import` to the next that a place is in."""
        found = [part for part in parts(self.source.text) if part.line <= at[0]]
        return found[-1]

    def typed(self, syntax: DefinitionSyntax) -> Typed:
        """The types in a definition, which may be wrong."""
        definition = self.checked.definitions.get(syntax.name)
        if definition is not None and definition.origin == syntax.name_span:
            return typed(definition)
        observer = Observer()
        observe(observer, syntax, self.checked.definitions)
        return observer.typed()


class Documents:
    """The texts that an editor has open, by their paths; they stand for the files that are on disk."""

    def __init__(self) -> None:
        self.texts: dict[Path, str] = {}
        self._known: dict[Path, Analysis] = {}
        self._memories: dict[Path, Memory] = {}

    def put(self, path: Path, text: str) -> None:
        """A text that was opened, or changed."""
        is_new = real_path(path) not in self.texts
        self.texts[real_path(path)] = text
        self.forget(None if is_new else path)

    def close(self, path: Path) -> None:
        self.texts.pop(real_path(path), None)
        self._memories.pop(real_path(path), None)
        self.forget()

    def forget(self, path: Path | None = None) -> None:
        """That a file changed; without one that any may have, or that there is a new one."""
        key = None if path is None else real_path(path)
        for known in list(self._known):
            if key is None or key == known or key in self._known[known].files:
                del self._known[known]

    def importing(self, path: Path) -> list[Path]:
        """The open files that import a file, directly or not."""
        key = real_path(path)
        return [other for other in self.texts if other != key and key in self.analysis(other).files]

    def analysis(self, path: Path) -> Analysis:
        """Of an open file, or of one on disk. UsageError where that cannot be read."""
        key = real_path(path)
        if key not in self._known:
            self._known[key] = self._analysed(key, path)
        return self._known[key]

    def _analysed(self, key: Path, path: Path) -> Analysis:
        loader = Incremental(self.texts, self._memories.get(key))
        text = self.texts.get(key)
        source = loader.read(path) if text is None else Source(str(path), without_mark(text))
        try:
            checked = loader.check(source, folder_of(path))
        except RecursionError:
            checked = Checked(mistakes=[too_deep()])
        self._memories[key] = loader.now
        syntax = loader.syntax.get(source.name, FileSyntax((), ()))
        imports = {text: to for (name, text), to in loader.found.items() if name == source.name}
        return Analysis(path, source, checked, syntax, imports, frozenset(loader.files - {key}))

    def mistakes_with(self, path: Path, text: str) -> int:
        """How many mistakes a file would have with another text."""
        loader = Incremental(self.texts, self._memories.get(real_path(path)))
        try:
            return len(loader.check(Source(str(path), text), folder_of(path)).mistakes)
        except RecursionError:
            return 1 + len(self.analysis(path).checked.mistakes)

    def differs_from_disk(self, path: Path) -> bool:
        """Whether a file is open with a text that was not saved."""
        text = self.texts.get(real_path(path))
        try:
            return text is not None and read(path).text != without_mark(text)
        except UsageError:
            return True
