"""What names mean at a place, and what is said where a name means nothing there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path

from rise.errors import ScopeError
from rise.expr import Definition, Expr, Identifier, fresh_name
from rise.frozen import filled_at_once
from rise.primitives.declare import REGISTRY
from rise.source import Span
from rise.suggest import nearest, suggestion
from rise.syntax import surface as s
from rise.syntax.foreign_idioms import name_hint
from rise.syntax.resolve import APPLICATIONS, KINDS, LAYOUTS, NOUNS, resolve_type
from rise.types import ROW_MAJOR, SCALARS, Argument, FragmentKind, Kind, Space, Type

INFIX = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "<": "lt", "<=": "le", ">": "gt",
    ">=": "ge", "==": "eq", "!=": "ne", "&&": "and", "||": "or", "^": "pow",
}  # fmt: skip
UNARY = {"-": "neg", "!": "not"}
CONSTANTS: Mapping[str, Argument] = {
    **{c.value: c for c in (*Space, *FragmentKind)},
    ROW_MAJOR.name: ROW_MAJOR,
}


@filled_at_once
@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean at a place: values (an identifier, or a projection from one), definitions, kinds."""

    values: Mapping[str, Expr] = field(default_factory=dict)
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    def bind(self, name: str, type_: Type, span: Span) -> tuple[Identifier, Scope]:
        """A new identifier for a name; renamed where the name is in use, so that no binder shadows."""
        used = {free for value in self.values.values() for free in value.free}
        identifier = Identifier(fresh_name(name, used), type_, span)
        return identifier, replace(self, values={**self.values, name: identifier})

    def with_value(self, name: str, value: Expr) -> Scope:
        return replace(self, values={**self.values, name: value})

    def with_kind(self, name: str, kind: Kind) -> Scope:
        return replace(self, kinds={**self.kinds, name: kind})


PRELUDE = Path(__file__).parents[1] / "library" / "prelude.rise"


@cache
def prelude_names() -> frozenset[str]:
    """What the prelude defines; its text is read when somebody looks for a name in vain."""
    return frozenset(re.findall(r"^def (\w+)", PRELUDE.read_text(encoding="utf-8"), re.MULTILINE))


# --- unknown names ----------------------------------------------------------------------------------


def unknown_value(node: s.Name, scope: Scope) -> ScopeError:
    """R0203 where the name is of another sort than a value, else R0201."""
    if node.name in scope.kinds:
        noun = NOUNS[scope.kinds[node.name]]
        hint = f"it is used in types and in places such as `split({node.name})`" if noun == "size" else None
        if hint:
            hint += '; `length(xs)` of `import "prelude.rise"` is the size of an array as a value'
        return ScopeError("R0203", f"`{node.name}` is a {noun}, not a value", node.span, hint)
    if node.name in CONSTANTS or node.name in LAYOUTS:
        return ScopeError(
            "R0203", f"`{node.name}` is a constant, not a value", node.span, "`toMem(Shared)` takes one"
        )
    if node.name in KINDS or node.name in APPLICATIONS:
        noun = "kind" if node.name in KINDS else "type"
        return ScopeError("R0203", f"`{node.name}` is a {noun}, not a value", node.span)
    if node.name in prelude_names():
        hint = f'the prelude defines it: `import "{PRELUDE.name}"`'
        return ScopeError("R0201", f"unknown name `{node.name}`", node.span, hint)
    if (habit := name_hint(node.name)) and node.name not in REGISTRY:
        return ScopeError("R0201", f"unknown name `{node.name}`", node.span, habit)
    earlier = len(scope.definitions)  # a name that is defined further down cannot be meant

    def hint_by_name() -> str | None:
        known = [*scope.values, *islice(scope.definitions, earlier), *REGISTRY, *SCALARS]
        return _nearest(node.name, known, scope)

    return ScopeError("R0201", f"unknown name `{node.name}`", node.span, hint_by_name)


def _nearest(name: str, values: list[str], scope: Scope) -> str | None:
    """A value of a similar name; or something else of a similar name, and what it is."""
    hint = suggestion(name, values)
    if hint is None and (size := nearest(name, scope.kinds)):
        return f"there is the {NOUNS[scope.kinds[size]]} `{size}`, which is no value"
    return hint


def to_kind(parameter: s.KindedName) -> Kind:
    kind = KINDS.get(parameter.kind)
    if kind is not None:
        return kind
    hint = suggestion(parameter.kind, KINDS) or f"kinds are {', '.join(KINDS)}"
    if parameter.kind in SCALARS:
        hint = f"`({parameter.name}: {parameter.kind}) => …` takes a value"
    raise ScopeError("R0208", f"there is no kind `{parameter.kind}`", parameter.span, hint)


def bind_kind(parameter: s.KindedName, scope: Scope) -> Scope:
    """The scope with a size, type … ; R0205 where its name is taken."""
    if parameter.name in scope.kinds:
        message = f"`{parameter.name}` is already a parameter here"
        raise ScopeError("R0205", message, parameter.span, "give one of them another name")
    return scope.with_kind(parameter.name, to_kind(parameter))


# --- types as written -------------------------------------------------------------------------------


def annotation(written: s.SurfaceType, scope: Scope) -> Type:
    """The type written, with a hint where it is not one."""
    try:
        return resolve_type(written, scope.kinds)
    except ScopeError as error:
        error.hint = _type_hint(written, error, scope) or error.hint
        raise


def _type_hint(written: s.SurfaceType, error: ScopeError, scope: Scope) -> str | None:
    name = error.origin.text if isinstance(error.origin, Span) else ""
    if error.code == "R0202" and (name in scope.definitions or name in scope.values or name in REGISTRY):
        return f"`{name}` is a value, not a type"
    for node in _types(written):
        match node:
            case s.TypeApplication("Array" | "Vec" as constructor, (size, _)) if size.span == error.origin:
                return f"the size comes first: `{constructor}[n, t]`"
            case s.TypeArray(size, _) if size.span == error.origin and error.code == "R0203":
                return "the size comes first: `n.t`"
    return None


def _types(written: s.SurfaceType) -> list[s.SurfaceType]:
    """Every part of a type."""
    match written:
        case s.TypeApplication(_, arguments):
            parts = arguments
        case s.TypeArray(a, b) | s.TypePair(a, b) | s.TypeFunction(a, b) | s.TypeOperation(_, a, b):
            parts = (a, b)
        case s.TypeDependent(_, _, result):
            parts = (result,)
        case _:
            parts = ()
    return [written, *(inner for part in parts for inner in _types(part))]
