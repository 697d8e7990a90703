"""Files and definitions: imports followed, definitions checked in order and generalised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rise.check.elaborate import Elaborator, Scope, to_kind
from rise.check.unify import Unifier
from rise.errors import ScopeError, TypeMismatch, UsageError
from rise.expr import Definition, Expr, Literal, Primitive, map_types, subterms
from rise.nat import Nat, NatUnknown, variable
from rise.source import Source
from rise.syntax import surface as s
from rise.syntax.parser import parse_expression, parse_file
from rise.syntax.resolve import resolve_type
from rise.types import (
    Argument,
    Index,
    Kind,
    Parameter,
    Scalar,
    Type,
    Unknown,
    Variable,
    Vector,
    leaves,
)

LIBRARY = Path(__file__).parent.parent / "library"


@dataclass(frozen=True)
class Program:
    """The definitions of a file, those it imports included, in the order of definition."""

    definitions: Mapping[str, Definition]
    own: tuple[str, ...]

    def __getitem__(self, name: str) -> Definition:
        if name not in self.definitions:
            known = ", ".join(f"`{n}`" for n in self.own)
            raise ScopeError("R0209", f"there is no definition `{name}`", hint=f"the file defines {known}")
        return self.definitions[name]


def load(path: Path | str) -> Program:
    """Reads and checks a file. A file that is missing or no text is a UsageError."""
    return _load(Path(path), ())


def read(path: Path) -> Source:
    try:
        return Source.read(path)
    except OSError as error:
        raise UsageError("R0001", f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError("R0002", f"{path} is no UTF-8 text") from None


def check_text(text: str, name: str = "<text>") -> Program:
    """Checks a program given as text."""
    return _check_file(parse_file(Source(name, text)), Path(), ())


def _load(path: Path, loading: tuple[Path, ...]) -> Program:
    if path.resolve() in loading:
        raise ScopeError("R0210", f"{path} imports itself")
    return _check_file(parse_file(read(path)), path.parent, (*loading, path.resolve()))


def _check_file(file: s.FileSyntax, folder: Path, loading: tuple[Path, ...]) -> Program:
    definitions: dict[str, Definition] = {}
    for imported in file.imports:
        definitions.update(_import(imported, folder, loading).definitions)
    for syntax in file.definitions:
        if syntax.name in definitions:
            raise ScopeError("R0211", f"`{syntax.name}` is defined twice", syntax.name_span)
        definitions[syntax.name] = check_definition(syntax, definitions)
    return Program(definitions, tuple(d.name for d in file.definitions))


def _import(imported: s.ImportSyntax, folder: Path, loading: tuple[Path, ...]) -> Program:
    for candidate in (folder / imported.path, LIBRARY / imported.path):
        if candidate.is_file():
            if candidate.resolve() in loading:
                raise ScopeError("R0210", f"`{imported.path}` is imported in a circle", imported.span)
            return _load(candidate, loading)
    raise ScopeError("R0212", f"there is no file `{imported.path}` to import", imported.span)


def check_definition(syntax: s.DefinitionSyntax, definitions: Mapping[str, Definition]) -> Definition:
    elaborator = Elaborator()
    scope = Scope(definitions=definitions)
    leading: list[Parameter] = []
    if syntax.annotation is None:
        if any(name == syntax.name for name in _mentioned(syntax.body)) and syntax.name not in definitions:
            raise ScopeError(
                "R0213",
                f"`{syntax.name}` refers to itself",
                syntax.name_span,
                "programs have no recursion",
            )
        body = elaborator.infer(syntax.body, scope)
    else:
        annotation = syntax.annotation
        while isinstance(annotation, s.TypeDependent) and annotation.implicit:
            for parameter in annotation.parameters:
                leading.append(Parameter(parameter.name, to_kind(parameter), True))
                scope = scope.with_kind(parameter.name, to_kind(parameter))
            annotation = annotation.result
        body = elaborator.check(syntax.body, resolve_type(annotation, scope.kinds), scope)
    return generalise(syntax.name, body, tuple(leading), elaborator.unifier, syntax)


def _mentioned(node: object) -> Iterator[str]:
    """Every name in a surface term."""
    if isinstance(node, s.Name):
        yield node.name
    elif isinstance(node, tuple):
        for part in node:
            yield from _mentioned(part)
    elif hasattr(node, "__dataclass_fields__"):
        for name in node.__dataclass_fields__:
            if name != "span":
                yield from _mentioned(getattr(node, name))


def generalise(
    name: str,
    body: Expr,
    leading: tuple[Parameter, ...],
    unifier: Unifier,
    syntax: s.DefinitionSyntax,
) -> Definition:
    """Fills in what was inferred; unknowns that are left become implicit parameters."""
    unifier.finish()
    body = fill(body, unifier)
    added = parameters_for(body, {p.name for p in leading}, unifier)
    body = fill(body, unifier)
    unifier.constraints = unifier.checked_constraints()
    check_elements(body)
    return Definition(name, leading + added, body, tuple(unifier.constraints), syntax.name_span)


def fill(body: Expr, unifier: Unifier) -> Expr:
    """Replaces unknowns by what they were found to be, and gives literals the value of their type."""
    return _convert_literals(map_types(body, unifier.resolve, unifier.resolve_argument))


def _convert_literals(body: Expr) -> Expr:
    from rise.expr import children, with_children

    if isinstance(body, Literal) and isinstance(body.type, Scalar) and body.type.is_float:
        return Literal(float(body.value), body.type, body.origin)
    return with_children(body, tuple(_convert_literals(c) for c in children(body)))


def parameters_for(body: Expr, taken: set[str], unifier: Unifier) -> tuple[Parameter, ...]:
    """Solves every unknown that is left by a new rigid variable; returns them as parameters."""
    taken = taken | _rigid_names(body)
    parameters: list[Parameter] = []
    for unknown in _unknowns(body):
        if unknown in unifier.solution:
            continue
        sizes = isinstance(unknown, NatUnknown)
        name = _new_name("n" if sizes else "t", taken)
        taken.add(name)
        value: Argument = variable(name) if sizes else Variable(name)
        unifier.solution[unknown] = value
        kind = Kind.NAT if sizes else Kind.DATA
        if isinstance(unknown, Unknown) and unknown not in unifier.data_only:
            kind = Kind.FRAGMENT if _is_fragment_kind(body, unknown) else Kind.DATA
        parameters.append(Parameter(name, kind, True))
    return tuple(parameters)


def _is_fragment_kind(body: Expr, unknown: Unknown) -> bool:
    for term in subterms(body):
        if isinstance(term, Primitive):
            for parameter, argument in zip(term.declaration.scheme.parameters, term.arguments, strict=True):
                if argument == unknown and parameter.kind is Kind.FRAGMENT:
                    return True
    return False


def _new_name(stem: str, taken: set[str]) -> str:
    number = 0
    while (name := f"{stem}{number or ''}") in taken:
        number += 1
    return name


def _types(body: Expr) -> Iterator[Type | Nat]:
    for term in subterms(body):
        if isinstance(term, Primitive):
            yield from (a for a in term.arguments if not isinstance(a, str))  # type: ignore[misc]
        yield term.type


def _unknowns(body: Expr) -> Iterator[NatUnknown | Unknown]:
    seen: set[NatUnknown | Unknown] = set()
    for type_ in _types(body):
        found = (
            type_.atoms
            if isinstance(type_, Nat)
            else leaves(type_)
            if hasattr(type_, "__match_args__")
            else ()
        )
        for leaf in found:
            if isinstance(leaf, NatUnknown | Unknown) and leaf not in seen:
                seen.add(leaf)
                yield leaf


def _rigid_names(body: Expr) -> set[str]:
    from rise.expr import DependentLambda

    return {t.name for t in subterms(body) if isinstance(t, DependentLambda)}


def check_elements(body: Expr) -> None:
    """Arithmetic is on numbers: `+` of two arrays is a mistake, `map` says how it is meant."""
    for term in subterms(body):
        if isinstance(term, Primitive) and term.declaration.elementwise:
            for argument in term.arguments:
                if not isinstance(argument, Scalar | Vector | Variable | Unknown | Index):
                    raise TypeMismatch(
                        "R0308",
                        f"`{term.declaration.infix or term.name}` is for numbers, not for `{argument}`",
                        term.origin,
                        "apply it with `map`",
                    )


def check_expression(text: str, definitions: Mapping[str, Definition] | None = None) -> Expr:
    """The typed term of a closed expression; for tests and interactive use."""
    source = Source("<expression>", text)
    syntax = parse_expression(source)
    elaborator = Elaborator()
    body = elaborator.infer(syntax, Scope(definitions=definitions or {}))
    definition = generalise(
        "it",
        body,
        (),
        elaborator.unifier,
        s.DefinitionSyntax("it", None, syntax, syntax.span, syntax.span),
    )
    return definition.body
