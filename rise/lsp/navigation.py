"""Where names are defined and used, new names for them, and the outline of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lsprotocol.types import DocumentSymbol, Location, SymbolKind, TextEdit

from rise.check.program import real_path
from rise.errors import RiseError, UsageError
from rise.lsp.diagnostics import location
from rise.lsp.documents import Analysis, Documents
from rise.lsp.hover import signature
from rise.lsp.names import Binding, Occurrence, Sort
from rise.lsp.positions import Place, Positions, contains, offset, span_of
from rise.lsp.texts import without_comments
from rise.lsp.uris import uri_of
from rise.source import Source, Span
from rise.syntax.mistakes import KEYWORDS
from rise.syntax.recover import DEFINED, parts

MOST_FILES = 1000  # of a folder, that are searched for uses
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def definition(analysis: Analysis, at: Place, positions: Positions) -> Location | None:
    """Where a name is bound; of an import the file."""
    for imported in analysis.syntax.imports:
        if contains(imported.span, at) and imported.path in analysis.imports:
            path = analysis.imports[imported.path]
            return location(Span(Source(str(path), ""), 1, 1, 1, 1), positions)
    found = analysis.name_at(at)
    span = found.binding.span if found else None
    return location(span, positions) if span else None


# --- uses -----------------------------------------------------------------------------------------------


def uses(documents: Documents, analysis: Analysis, binding: Binding) -> Iterator[Occurrence]:
    """Every occurrence of a name in this file; of a definition also in those that import it."""
    if binding.span is None:
        return
    files = [analysis]
    if binding.sort is Sort.DEFINITION:
        files = list(_files_with(documents, analysis, binding))
    for file in files:
        yield from (found for found in file.names if same(found.binding, binding))


def same(one: Binding, other: Binding) -> bool:
    """Whether two names are bound at one place; files may have been read more than once."""
    return one.name == other.name and _where(one.span) == _where(other.span)


def _where(span: Span | None) -> tuple[Path, int, int] | None:
    return (real_path(Path(span.source.name)), span.line, span.column) if span else None


def _files_with(documents: Documents, analysis: Analysis, binding: Binding) -> Iterator[Analysis]:
    """The files around that have a name in their text: those that are open, and those on disk beside them."""
    span = binding.span
    home = Path(span.source.name) if span else analysis.path
    paths = {real_path(path): path for path in (analysis.path, home, *documents.texts)}
    for folder in {real_path(analysis.path).parent, real_path(home).parent}:
        found = sorted(folder.rglob("*.rise"))[:MOST_FILES] if folder.is_dir() else []
        paths |= {real_path(path): path for path in found if real_path(path) not in paths}
    for key, path in paths.items():
        if _mentions(documents.texts.get(key), path, binding.name):
            yield analysis if key == real_path(analysis.path) else documents.analysis(path)


def _mentions(text: str | None, path: Path, name: str) -> bool:
    if text is None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return False
    return re.search(rf"\b{name}\b", text) is not None


def references(
    documents: Documents, analysis: Analysis, at: Place, positions: Positions, declaration: bool
) -> list[Location]:
    found = analysis.name_at(at)
    if found is None:
        return []
    all_uses = uses(documents, analysis, found.binding)
    return [location(use.span, positions) for use in all_uses if declaration or not use.binds]


# --- renaming -------------------------------------------------------------------------------------------


def renamable(analysis: Analysis, at: Place) -> Occurrence | None:
    """The name at a place, if a program gives it: not the language, and not its library."""
    found = analysis.name_at(at)
    span = found.binding.span if found else None
    return found if span is not None and not _is_library(Path(span.source.name)) else None


def _is_library(path: Path) -> bool:
    return real_path(path).is_relative_to(real_path(Path(__file__).parents[1] / "library"))


def rename(
    documents: Documents, analysis: Analysis, at: Place, new: str, positions: Positions
) -> dict[str, list[TextEdit]]:
    """The edits of each file. UsageError R0040 where the new name would mean something else somewhere."""
    found = renamable(analysis, at)
    if found is None:
        raise UsageError("R0040", "no name of a program stands here that could be changed")
    if not NAME.fullmatch(new) or new in KEYWORDS:
        hint = "a name consists of the letters a to z and A to Z, of digits and `_`"
        raise UsageError("R0040", f"`{new}` cannot be a name", None, hint)
    edits: dict[str, list[TextEdit]] = {}
    by_file: dict[str, list[Span]] = {}
    for use in uses(documents, analysis, found.binding):
        by_file.setdefault(use.span.source.name, []).append(use.span)
    texts = {name: _replaced(_text(documents, name), spans, new) for name, spans in by_file.items()}
    _check_meanings(documents, by_file, texts, new)
    for name, spans in by_file.items():
        edits[uri_of(name)] = [TextEdit(location(span, positions).range, new) for span in spans]
    return edits


def _text(documents: Documents, name: str) -> Source:
    return documents.analysis(Path(name)).source


def _replaced(source: Source, spans: Iterable[Span], new: str) -> str:
    text = source.text
    for span in sorted(spans, key=lambda s: (s.line, s.column), reverse=True):
        first = offset(source, (span.line, span.column))
        text = text[:first] + new + text[offset(source, (span.end_line, span.end_column)) :]
    return text


def _check_meanings(
    documents: Documents, spans: Mapping[str, Sequence[Span]], texts: Mapping[str, str], new: str
) -> None:
    """Every name has to be bound where it was bound before: the new one hides none, and none hides it."""
    trial = Documents()
    trial.texts = {**documents.texts, **{real_path(Path(name)): text for name, text in texts.items()}}
    for name in texts:
        before, after = documents.analysis(Path(name)), trial.analysis(Path(name))
        if list(_meanings(before)) != list(_meanings(after)):
            message = f"`{new}` would mean something else in {Path(name).name}, or hide what is called so"
            raise UsageError("R0040", message, spans[name][0], "choose a name that is not in use there")


def _meanings(analysis: Analysis) -> Iterator[object]:
    """For each name, the number of the name that binds it, or where or what it is if this file does not."""
    numbers = {(o.span.line, o.span.column): number for number, o in enumerate(analysis.names)}
    for occurrence in analysis.names:
        span = occurrence.binding.span
        if span is None:
            yield occurrence.binding.name
        elif span.source.name == analysis.source.name:
            yield numbers.get((span.line, span.column))
        else:
            yield span.source.name, span.line


# --- the outline ----------------------------------------------------------------------------------------


def symbols(analysis: Analysis, positions: Positions) -> list[DocumentSymbol]:
    """The definitions of a file with their types; those that do not parse, too."""
    return [_symbol(analysis, name, whole, positions) for name, whole in _defined(analysis)]


def _defined(analysis: Analysis) -> Iterator[tuple[Span, Span]]:
    """The name of each definition, and all of it."""
    parsed = {(d.name_span.line, d.name_span.column): d for d in analysis.syntax.definitions}
    source = analysis.source
    for part in parts(source.text):
        text = without_comments(source.text[part.start : part.end])
        end = part.start + len(text.rstrip())
        for found in DEFINED.finditer(text):
            name = span_of(source, part.start + found.start(1), part.start + found.end(1))
            whole = span_of(source, part.start + found.start(), end)
            known = parsed.get((name.line, name.column))
            yield name, replace(known.span, source=source) if known else whole


def _symbol(analysis: Analysis, name: Span, whole: Span, positions: Positions) -> DocumentSymbol:
    known = analysis.checked.definitions.get(name.text)
    detail = "has a mistake"
    if known is not None and known.name in analysis.checked.own:
        try:
            detail = signature(known).partition(" : ")[2]
        except RiseError:
            detail = ""
    return DocumentSymbol(
        name.text, SymbolKind.Function, positions.range(whole), positions.range(name), detail
    )
