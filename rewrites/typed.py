"""Primitives and arrays in computed rules, with types that the rule has checked before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rise.declaration import Declaration
from rise.errors import RiseError
from rise.expr import Expr, Lambda, Primitive, apply
from rise.primitives.declare import primitive
from rise.source import Origin
from rise.types import Argument, Array, Dependent, Function, Type


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
