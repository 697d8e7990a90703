"""Types that the text leaves out: of parameters and names, and what a definition returns and asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lsprotocol.types import InlayHint, InlayHintKind

from rise.expr import Definition
from rise.lsp.documents import Analysis
from rise.lsp.names import name_span
from rise.lsp.positions import Place, Positions, end, offset, place_at, start
from rise.lsp.texts import without_comments
from rise.lsp.typed import pattern_types, result_of
from rise.pretty import show_type
from rise.source import Source
from rise.syntax.definitions import header_of
from rise.syntax.surface import DefinitionSyntax, NamePattern
from rise.types import Dependent, Type, unknowns

EQUALS = re.compile(r"\s*=(?![=>])")


def inlays(analysis: Analysis, first: int, last: int, positions: Positions) -> list[InlayHint]:
    """Those of the definitions that are on the lines from `first` to `last`."""
    found = []
    for syntax in analysis.syntax.definitions:
        if syntax.span.line <= last and syntax.span.end_line >= first:
            found += [
                InlayHint(positions.position(*place), text, InlayHintKind.Type)
                for place, text in _of(syntax, analysis)
            ]
    return found


def _of(syntax: DefinitionSyntax, analysis: Analysis) -> Iterator[tuple[Place, str]]:
    annotated = _annotated(syntax)
    for name, type_ in pattern_types(syntax, analysis.typed(syntax)):
        behind = name_span(name.name, name.span)
        if name.annotation is None and start(name.span) not in annotated and not any(unknowns(type_)):
            yield end(behind), f": {show_type(type_)}"
    definition = analysis.checked.definitions.get(syntax.name)
    if definition is not None and definition.origin == syntax.name_span:
        yield from _of_header(syntax, definition, analysis.source)


def _annotated(syntax: DefinitionSyntax) -> set[Place]:
    """The parameters of a definition's header that show their types: these are parts of its annotation."""
    binders = header_of(syntax).binders
    return {start(b.span) for b in binders if isinstance(b, NamePattern) and b.annotation is not None}


def _of_header(
    syntax: DefinitionSyntax, definition: Definition, source: Source
) -> Iterator[tuple[Place, str]]:
    """In front of the `=`: the type of the result, if it is not written, and the constraints."""
    header = header_of(syntax)
    name_end = offset(source, end(syntax.name_span))
    equals = EQUALS.search(without_comments(source.text), name_end)
    if equals is None:
        return
    place = place_at(source, equals.start())
    values = [binder for binder in header.binders if not isinstance(binder, tuple)]
    type_: Type = definition.body.type
    while isinstance(type_, Dependent):
        type_ = type_.result
    result = f": {show_type(result_of(type_, len(values)))}" if header.result is None else ""
    asked = f" where {', '.join(map(str, definition.constraints))}" if definition.constraints else ""
    if result or asked:
        yield place, result + asked
