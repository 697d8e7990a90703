"""What may stand at a place: the names in scope; behind `|>` only those that take what flows into them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lsprotocol.types import CompletionItem, CompletionItemKind, InsertTextFormat

from rise.check.obligations import Asked, membership
from rise.check.program import LIBRARY
from rise.check.scope import Scope
from rise.check.unify import Unifier
from rise.declaration import Declaration
from rise.errors import ParseError, RiseError
from rise.expr import Definition
from rise.lsp.documents import Analysis
from rise.lsp.hover import comment_above
from rise.lsp.names import Sort, occurrences
from rise.lsp.positions import Place, offset
from rise.lsp.texts import completed, inside_comment, without_comments
from rise.lsp.typed import Observer, observe
from rise.pretty import show_type
from rise.primitives.declare import REGISTRY
from rise.source import Source
from rise.syntax.parser import Part, parse_part
from rise.syntax.surface import FileSyntax
from rise.syntax.words import DECLARATIONS, KEYWORDS, VALUES, words
from rise.types import (
    ROW_MAJOR,
    SCALARS,
    Argument,
    Dependent,
    Function,
    Kind,
    Parameter,
    Scalar,
    Scheme,
    Space,
    Type,
    Unknown,
    substitute_type,
)

HOLE = "what_is_typed_here"
WORD = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
IMPORT = re.compile(r'\bimport\s+"([^"\n]*)\Z')
LOW_LEVEL = frozenset(("levels", "memory", "tensor", "vectors", "foreign"))  # groups of primitives
# how near a name is, which orders what is offered
LOCAL, OWN, IMPORTED, PRIMITIVE, LOWERED, WORDS = range(6)


@dataclass(frozen=True)
class Candidate:
    """A name that may be meant.

    given:  placeholders for the arguments in front of the one that flows in
    type:   as it is shown
    """

    name: str
    nearness: int
    kind: CompletionItemKind
    type: str = ""
    meaning: str = ""
    given: tuple[str, ...] = ()

    def item(self, snippets: bool) -> CompletionItem:
        call = self.given and snippets
        places = ", ".join(f"${{{i}:{name}}}" for i, name in enumerate(self.given, 1))
        return CompletionItem(
            self.name,
            kind=self.kind,
            detail=self.type or None,
            documentation=self.meaning or None,
            sort_text=f"{self.nearness}{self.name}",
            insert_text=f"{self.name}({places})" if call else f"{self.name}(" if self.given else self.name,
            insert_text_format=InsertTextFormat.Snippet if call else InsertTextFormat.PlainText,
        )


def completions(analysis: Analysis, at: Place) -> list[Candidate]:
    """What may stand where a cursor is, instead of the word that it is in."""
    source, cursor = analysis.source, offset(analysis.source, at)
    part = analysis.part_at(at)
    before = source.text[part.start : cursor]
    if (imported := IMPORT.search(before)) is not None:
        return list(_files(analysis.path.parent, imported[1]))
    if inside_comment(before):
        return []
    if word := WORD.search(before):
        before = before[: word.start()]
    behind = re.sub(r"\A\w+", "", source.text[cursor : part.end])
    if not without_comments(before).strip():
        return [Candidate(name, WORDS, CompletionItemKind.Keyword) for name in DECLARATIONS]
    file = _parsed(before, behind)
    if file is None:
        return list(_anything(analysis))
    found = _observed(analysis, file)
    if found is None:
        return list(_of_types(file))
    observer, scope, wanted = found
    return list(_fitting(analysis, observer.unifier, scope, wanted, _ends_in_pipe(before)))


def flows_into(analysis: Analysis, at: Place) -> bool:
    """Whether a place is behind a pipe."""
    return _ends_in_pipe(analysis.source.text[: offset(analysis.source, at)])


def _ends_in_pipe(text: str) -> bool:
    return without_comments(text).rstrip().endswith(("|>", ">>"))


def _parsed(before: str, behind: str) -> FileSyntax | None:
    """The part of the program with a name where the cursor is: as it goes on, or closed right behind it."""
    closed = completed(before)
    for rest in (behind, closed, f"{closed} = 0", f"{closed} => 0"):
        text = f"{before}{HOLE}{rest}"
        with suppress(ParseError):
            return parse_part(Source("<completion>", text), Part(1, 0, len(text)))
    return None


def _observed(analysis: Analysis, file: FileSyntax) -> tuple[Observer, Scope, Type] | None:
    """The scope at the cursor, and what is known of the type there; None where no value stands."""
    for syntax in file.definitions:
        observer = Observer(HOLE)
        others = {n: d for n, d in analysis.checked.definitions.items() if n != syntax.name}
        observe(observer, syntax, others)
        if observer.found is not None:
            scope, type_ = observer.found
            return observer, scope, observer.unifier.resolve(type_)
    return None


# --- names of values ------------------------------------------------------------------------------------


def _fitting(
    analysis: Analysis, unifier: Unifier, scope: Scope, wanted: Type, piped: bool
) -> Iterator[Candidate]:
    """Behind a pipe what can take the value; elsewhere all that is in scope."""
    given = wanted.parameter if isinstance(wanted, Function) else wanted
    by_type = piped and not isinstance(given, Unknown)
    for name, value in scope.values.items():
        if not by_type or _fits(unifier, Scheme((), unifier.resolve(value.type)), wanted) is not None:
            yield Candidate(name, LOCAL, CompletionItemKind.Variable, show_type(unifier.resolve(value.type)))
    for definition in scope.definitions.values():
        fitting = _fits(unifier, definition.scheme, wanted) if by_type else ()
        if fitting is not None:
            yield _definition(definition, analysis, fitting)
    for declaration in REGISTRY.values():
        fitting = _primitive_fits(unifier, declaration, wanted) if by_type else ()
        if fitting is not None:
            yield _primitive(declaration, fitting)
    if not by_type or isinstance(given, Scalar):
        yield from (Candidate(name, PRIMITIVE, CompletionItemKind.TypeParameter) for name in SCALARS)
    if not piped:
        yield from _keywords()
        sizes = (name for name, kind in scope.kinds.items() if kind is Kind.NAT)
        yield from (Candidate(name, LOCAL, CompletionItemKind.TypeParameter, "Nat") for name in sizes)


def _definition(definition: Definition, analysis: Analysis, given: tuple[str, ...]) -> Candidate:
    nearness = OWN if definition.name in analysis.checked.own else IMPORTED
    type_ = show_type(definition.body.type)
    meaning = "\n".join(comment_above(definition))
    return Candidate(definition.name, nearness, CompletionItemKind.Function, type_, meaning, given)


def _primitive(declaration: Declaration, given: tuple[str, ...]) -> Candidate:
    nearness = LOWERED if declaration.lowers or declaration.group in LOW_LEVEL else PRIMITIVE
    kind = CompletionItemKind.Function
    return Candidate(declaration.name, nearness, kind, declaration.signature, declaration.meaning, given)


def _primitive_fits(unifier: Unifier, declaration: Declaration, wanted: Type) -> tuple[str, ...] | None:
    """The same for a primitive; arithmetic takes no arrays."""
    if declaration.host:
        return None
    given = wanted.parameter if isinstance(wanted, Function) else wanted
    if declaration.elementwise and not isinstance(given, Unknown):
        asked = Asked(f"`{declaration.name}`", None)
        try:
            list(membership(given, declaration.operands, asked))
        except RiseError:
            return None
    return _fits(unifier, declaration.scheme, wanted)


def _fits(unifier: Unifier, scheme: Scheme, wanted: Type) -> tuple[str, ...] | None:
    """The arguments to give first, so that what is left takes the value; None where nothing does."""
    trial = unifier.copy()
    given: list[str] = []
    solution = {}
    for parameter in scheme.parameters:
        argument = _open(trial, parameter)
        if argument is None:
            return None
        solution[parameter.key] = argument
        if not parameter.implicit and parameter.default is None:
            given.append(parameter.name)
    type_ = substitute_type(scheme.type, solution)
    while isinstance(type_, Dependent):
        bound = Parameter(type_.name, type_.kind, type_.implicit)
        argument = _open(trial, bound)
        if argument is None:
            return None
        given.append(type_.name)
        type_ = substitute_type(type_.result, {bound.key: argument})
    while isinstance(type_, Function) and isinstance(type_.result, Function):
        given.append("f" if isinstance(type_.parameter, Function) else "x")
        type_ = type_.result
    try:
        trial.unify(wanted, type_, None)
        trial.retry()
    except (RiseError, RecursionError):
        return None
    return tuple(given)


def _open(unifier: Unifier, parameter: Parameter) -> Argument | None:
    """An argument that is to be found; of what is written and not inferred, any one."""
    if parameter.default is not None:
        return parameter.default
    known: dict[Kind, Argument] = {Kind.SPACE: Space.GLOBAL, Kind.LAYOUT: ROW_MAJOR}
    if parameter.kind is Kind.FUNCTION:
        return None
    return known.get(parameter.kind) or unifier.argument(parameter.kind)


# --- other names ----------------------------------------------------------------------------------------


def _anything(analysis: Analysis) -> Iterator[Candidate]:
    """All names that are known at the top, where what is around the cursor does not parse."""
    yield from (_definition(d, analysis, ()) for d in analysis.checked.definitions.values())
    yield from (_primitive(declaration, ()) for declaration in REGISTRY.values())
    yield from _keywords()
    yield from _types()


def _keywords() -> Iterable[Candidate]:
    return [Candidate(word, WORDS, CompletionItemKind.Keyword) for word in (*KEYWORDS, *VALUES)]


@cache
def _types() -> tuple[Candidate, ...]:
    sorts = {
        "type": CompletionItemKind.Struct,
        "constructor": CompletionItemKind.Class,
        "kind": CompletionItemKind.Interface,
        "constant": CompletionItemKind.Constant,
    }
    return tuple(Candidate(word, PRIMITIVE, kind) for sort, kind in sorts.items() for word in words()[sort])


def _of_types(file: FileSyntax) -> Iterator[Candidate]:
    """Where a type stands: the sizes of the definition, and the words for types."""
    sizes = {o.binding.name for o in occurrences(file, {}) if o.binding.sort is Sort.SIZE and o.binds}
    yield from (Candidate(name, LOCAL, CompletionItemKind.TypeParameter) for name in sorted(sizes))
    yield from _types()


def _files(folder: Path, typed: str) -> Iterator[Candidate]:
    """Programs that can be imported: those below the folder, and the library."""
    inside = folder / Path(typed).parent
    with suppress(OSError):
        for path in sorted(inside.iterdir()):
            if path.suffix == ".rise":
                yield Candidate(path.name, OWN, CompletionItemKind.File)
            elif path.is_dir() and not path.name.startswith("."):
                yield Candidate(f"{path.name}/", IMPORTED, CompletionItemKind.Folder)
    if "/" not in typed:
        yield from (Candidate(p.name, PRIMITIVE, CompletionItemKind.File) for p in LIBRARY.glob("*.rise"))
