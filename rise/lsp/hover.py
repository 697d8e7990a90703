"""What stands at a place: the type of a term, a definition with what it asks of its sizes, a primitive."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol.types import Hover, MarkupContent, MarkupKind

from rise.errors import RiseError
from rise.expr import Definition
from rise.lsp.documents import Analysis
from rise.lsp.names import Binding, Occurrence, Sort
from rise.lsp.positions import Place, Positions
from rise.lsp.typed import Typed, pattern_types
from rise.notation import show_scheme
from rise.pretty import full_type, show_type
from rise.primitives.declare import lookup
from rise.source import Span, place
from rise.types import Type

LONGEST = 60  # characters of a program that a hover repeats


def hover(analysis: Analysis, at: Place, positions: Positions) -> Hover | None:
    """Of the name at a place, else of the smallest term that holds it; nothing in comments and blanks."""
    name = analysis.name_at(at)
    if name is not None:
        code, prose = _name(analysis, name)
        return _shown(code, prose, name.span, positions)
    syntax = analysis.definition_at(at)
    if syntax is None or not analysis.source.line(at[0])[at[1] - 1 : at[1]].strip():
        return None
    found = analysis.typed(syntax).at(*at)
    return found and _shown(f"{brief(found[0])} : {show_type(found[1])}", (), found[0], positions)


def _shown(code: str, prose: tuple[str, ...], span: Span, positions: Positions) -> Hover:
    text = "\n\n".join([f"```rise\n{code}\n```", *prose])
    return Hover(MarkupContent(MarkupKind.Markdown, text), positions.range(span))


def _name(analysis: Analysis, found: Occurrence) -> tuple[str, tuple[str, ...]]:
    """What is shown of a name as code, and what below it."""
    binding = found.binding
    type_ = _type_here(analysis, found)
    here = f"{binding.name} : {show_type(type_)}" if type_ else binding.name
    match binding.sort:
        case Sort.DEFINITION:
            definition = analysis.checked.definitions.get(binding.name)
            if definition is None:
                return binding.name, ("This definition has a mistake.",)
            code = signature(definition)
            used = () if found.binds or type_ is None else (f"here `{show_type(type_)}`",)
            return code, (*comment_above(definition), *used)
        case Sort.PRIMITIVE:
            return here, tuple(_primitive(binding))
        case Sort.SIZE:
            return f"{binding.name} : {_kind(binding)}", ()
        case _:
            return here, ()


def _type_here(analysis: Analysis, found: Occurrence) -> Type | None:
    line, column = found.span.line, found.span.column
    syntax = analysis.definition_at((line, column))
    if syntax is None or (found.binds and found.binding.sort is Sort.DEFINITION):
        return None
    types = analysis.typed(syntax)
    return _bound(analysis, found, types) if found.binds else types.of(found.span)


def _bound(analysis: Analysis, found: Occurrence, types: Typed) -> Type | None:
    syntax = analysis.definition_at((found.span.line, found.span.column))
    bound = pattern_types(syntax, types) if syntax else ()
    start = found.span.line, found.span.column
    return next((type_ for name, type_ in bound if (name.span.line, name.span.column) == start), None)


def signature(definition: Definition) -> str:
    """`name : type`, and what the definition asks of its sizes and types."""
    asked = ", ".join(map(str, definition.constraints))
    return f"{definition.name} : {full_type(definition)}" + (f"\n  where {asked}" if asked else "")


def comment_above(definition: Definition) -> tuple[str, ...]:
    """The comment lines right above a definition, as prose."""
    span = place(definition.origin)
    if span is None:
        return ()
    lines: list[str] = []
    number = span.line - 1
    while (text := span.source.line(number).strip()).startswith("//"):
        lines.insert(0, text.lstrip("/").strip())
        number -= 1
    return ("  \n".join(lines),) if lines else ()


def _primitive(binding: Binding) -> Iterator[str]:
    declaration = lookup(binding.name)
    if declaration is None:
        return
    yield declaration.meaning
    if not declaration.host:
        try:
            yield f"`{binding.name} : {show_scheme(declaration.scheme)}`"
        except RiseError:
            return
    program, value = declaration.example
    yield f"`{program}` is `{value}`"


def _kind(binding: Binding) -> str:
    """The kind that stands behind the name where it is bound: `n: Nat`."""
    if binding.span is None:
        return "Nat"
    behind = binding.span.source.line(binding.span.end_line)[binding.span.end_column - 1 :]
    word = "".join(c if c.isalnum() else " " for c in behind).split()
    return word[0] if behind.lstrip().startswith(":") and word else "Nat"


def brief(span: Span) -> str:
    """The text of a place, if it is short."""
    text = span.text
    return text if len(text) <= LONGEST and "\n" not in text else "…"
