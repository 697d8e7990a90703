"""What the parser returns: programs as written, before names, kinds and types are known.

In the surface a size, a type and a value look alike (`split(n/2)`, `toMem(Local)`): which of them an
argument is, the checker decides from what is applied.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from rise.frozen import filled_at_once
from rise.source import Span

# --- types and sizes: one grammar, told apart by kind later ----------------------------------------


@filled_at_once
@dataclass(frozen=True, slots=True)
class TypeName:
    """A variable, a scalar type, or a constant such as `Local`, `AMatrix`."""

    name: str
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class TypeNumber:
    value: int
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class TypeOperation:
    """`+ - * / % ^`, or the names `ceildiv min max`."""

    operator: str
    left: SurfaceType
    right: SurfaceType
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class TypeArray:
    """`size.element`"""

    size: SurfaceType
    element: SurfaceType
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class TypePair:
    first: SurfaceType
    second: SurfaceType
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class TypeApplication:
    """`Array[n, t]`, `Idx[n]`, `Vec[n, t]`, `Fragment[m, n, k, t, kind]`"""

    name: str
    arguments: tuple[SurfaceType, ...]
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class TypeFunction:
    parameter: SurfaceType
    result: SurfaceType
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class KindedName:
    """`name: kind`; the kind as written, `Nat`, `DataType`, …"""

    name: str
    kind: str
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class TypeDependent:
    """`{n: Nat, t: DataType} -> result` (implicit) or `(n: Nat) -> result`"""

    parameters: tuple[KindedName, ...]
    implicit: bool
    result: SurfaceType
    span: Span


SurfaceType = (
    TypeName
    | TypeNumber
    | TypeOperation
    | TypeArray
    | TypePair
    | TypeApplication
    | TypeFunction
    | TypeDependent
)

# --- expressions ------------------------------------------------------------------------------------


@filled_at_once
@dataclass(frozen=True, slots=True)
class Name:
    name: str
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class Number:
    """An integer or floating-point literal (value is int or float), or `true` / `false` (bool)."""

    value: int | float | bool
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class Text:
    """`"…"`, where a primitive takes a text: the name or the body of a foreign function."""

    value: str
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class Operator:
    """A bare operator where an argument is expected: `reduce(+, 0)`."""

    operator: str
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Surface
    right: Surface
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class Unary:
    """`-e` or `!e`"""

    operator: str
    operand: Surface
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class Call:
    """`function(a, b)`. `x |> f` is Call(f, (x,)); its span is the whole, `piped` tells the printer."""

    function: Surface
    arguments: tuple[Surface, ...]
    span: Span
    piped: bool = False


@filled_at_once
@dataclass(frozen=True, slots=True)
class Compose:
    """`f >> g`: g after f."""

    first: Surface
    second: Surface
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class Tuple:
    """`(a, b)`; more than two components nest to the right."""

    first: Surface
    second: Surface
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class NamePattern:
    name: str
    annotation: SurfaceType | None
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class PairPattern:
    """Takes a pair apart; more than two components nest to the right."""

    first: Pattern
    second: Pattern
    span: Span


Pattern = NamePattern | PairPattern


@filled_at_once
@dataclass(frozen=True, slots=True)
class Function:
    """`p => e`, or `(p, q) => e`, which is curried or takes a pair apart, as the expected type says.

    `fun(p, q => e)`, which is always curried, is `p => q => e`.
    """

    parameters: tuple[Pattern, ...]
    body: Surface
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class DependentFunction:
    """`(n: Nat, t: DataType) => e`, or `depFun((n: Nat, t: DataType) => e)`"""

    parameters: tuple[KindedName, ...]
    body: Surface
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class NatLambda:
    """`natFun(i => size)`; the body is a size."""

    parameter: str
    body: SurfaceType
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class Let:
    """`let p = value in body`"""

    pattern: Pattern
    value: Surface
    body: Surface
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class Annotated:
    """`e : type`"""

    expression: Surface
    type: SurfaceType
    span: Span


Surface = (
    Name
    | Number
    | Text
    | Operator
    | Binary
    | Unary
    | Call
    | Compose
    | Tuple
    | Function
    | DependentFunction
    | NatLambda
    | Let
    | Annotated
    | TypeApplication  # a type given as an argument: `f(Array[n, f32])`
)

# --- files --------------------------------------------------------------------------------------------


@filled_at_once
@dataclass(frozen=True, slots=True)
class DefinitionSyntax:
    """`def name{n: Nat}: type = expression`: `implicit` parameters, which the type may mention.

    Parameters are those of the body, and types of parameters are parts of the annotation: see
    `rise.syntax.definitions`.
    """

    name: str
    implicit: tuple[KindedName, ...]
    annotation: SurfaceType | None
    body: Surface
    span: Span
    name_span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class ImportSyntax:
    """`import "path"`, relative to the importing file; `prelude.rise` is also looked up in the library."""

    path: str
    span: Span


@filled_at_once
@dataclass(frozen=True, slots=True)
class FileSyntax:
    imports: tuple[ImportSyntax, ...]
    definitions: tuple[DefinitionSyntax, ...]


# --- comparing ------------------------------------------------------------------------------------------


def without_places(node: Any) -> Any:
    """A node as nested tuples without its spans: equal for texts that differ in layout only.

    Numbers are told apart by type and sign, `0.0` from `-0.0` and from `0`.
    """
    if isinstance(node, tuple):
        return tuple(without_places(part) for part in node)
    if not is_dataclass(node):
        return ("float" if isinstance(node, float) else type(node).__name__, repr(node))
    kept = (f.name for f in fields(node) if f.name not in ("span", "name_span"))
    return (type(node).__name__, *(without_places(getattr(node, name)) for name in kept))
