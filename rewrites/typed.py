"""Primitives and arrays in computed rules, with types that the rule has checked before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rise.declaration import Declaration
from rise.errors import RiseError
from rise.expr import Apply, Expr, Identifier, Lambda, Literal, Primitive, apply
from rise.primitives.declare import primitive
from rise.source import Origin
from rise.types import Argument, Array, Data, Dependent, Function, Index, Pair, Scalar, Type


def instance(
    declaration: str | Declaration, arguments: Sequence[Argument | Type | None], origin: Origin
) -> Primitive:
    """A primitive with its sizes and types. RiseError R0699 where one of them is a function's."""
    known = primitive(declaration) if isinstance(declaration, str) else declaration
    return Primitive(known, tuple(_arguments(arguments, origin)), origin)


def named(name: str, given: Mapping[str, Argument | Type], like: Expr) -> Primitive:
    """A primitive with its arguments by the names of its parameters."""
    parameters = primitive(name).scheme.parameters
    return instance(name, tuple(given.get(parameter.name) for parameter in parameters), like.origin)


def mapped(function: Lambda, xs: Expr, origin: Origin = None) -> Expr:
    """xs |> map(function)

    origin: of the map; by default the map has the place of its function
    """
    types = (array_type(xs).size, function.parameter.type, function.body.type)
    return apply(instance("map", types, origin or function.origin), function, xs, origin=origin)


def _arguments(arguments: Sequence[Argument | Type | None], origin: Origin) -> Iterator[Argument]:
    for argument in arguments:
        if argument is None or isinstance(argument, Function | Dependent):
            raise RiseError("R0699", f"internal: a primitive has no instance for `{argument}`", origin)
        yield argument


def array_type(term: Expr) -> Array:
    """The type of a term that is an array. RiseError R0699 for others."""
    if isinstance(term.type, Array):
        return term.type
    raise RiseError("R0699", f"internal: expected an array, found `{term.type}`", term.origin)


def zero_of(type_: Data, like: Expr) -> Expr | str:
    """The value of a type that consists of zeros, or a reason why it has none."""
    match type_:
        case Scalar():
            return Literal(
                False if type_.name == "bool" else 0.0 if type_.is_float else 0, type_, like.origin
            )
        case Array(size, element):
            inner = zero_of(element, like)
            if isinstance(inner, str):
                return inner
            rows = Lambda(Identifier("i", Index(size)), inner, like.origin)
            return Apply(Primitive(primitive("generate"), (size, element), like.origin), rows, like.origin)
        case Pair(first, second):
            parts = [zero_of(part, like) for part in (first, second)]
            refused = next((part for part in parts if isinstance(part, str)), None)
            pair = Primitive(primitive("pair"), (first, second), like.origin)
            return refused or apply(pair, *parts, origin=like.origin)  # type: ignore[arg-type]
        case _:
            return f"there is no zero of type `{type_}`"
