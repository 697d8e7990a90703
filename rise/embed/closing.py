"""From traced values to definitions: names made final, sizes generalised, types checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, overload

from rise.check.elaborate import Elaborator, Scope
from rise.check.program import generalise
from rise.embed import errors
from rise.embed.entities import Symbol
from rise.embed.errors import TracingError, short_traceback
from rise.embed.functions import abstraction, python_function
from rise.embed.naming import finish
from rise.embed.places import here
from rise.embed.traced import Traced, lift, uses_of
from rise.expr import Definition
from rise.source import Span
from rise.syntax import surface as s
from rise.types import Parameter

Sizes = Traced | Iterable[Traced]


Program = Callable[..., Any] | Traced | Definition


@overload
def define(program: Program, /, *, name: str | None = None, sizes: Sizes = ()) -> Definition: ...
@overload
def define(*, name: str | None = None, sizes: Sizes = ()) -> Callable[[Callable[..., Any]], Definition]: ...
def define(
    program: Program | None = None,
    /,
    *,
    name: str | None = None,
    sizes: Sizes = (),
) -> Definition | Callable[[Callable[..., Any]], Definition]:
    """The definition that a Python function, called once with traced parameters, describes.

    Annotations are types, `Array[n, f32]`; where there is none, the type is inferred. Sizes and types
    that occur in it, `n = Nat("n")`, become implicit parameters in the order of their first use; those
    in `sizes` become explicit ones, which callers within programs give: `f(n)(xs)`.

    A decorator, with or without arguments; also for functions without parameters of their own,
    `define(map(f) >> join, name="flat")`. Raises a RiseError that points into the Python text.
    """
    if program is None:
        return lambda function: _define(function, name, sizes)
    return _define(program, name, sizes)


def _define(program: Any, name: str | None, sizes: Sizes) -> Definition:
    with short_traceback():
        place = here()
        if isinstance(program, Traced | Definition):
            value, found, span = lift(program, place.operand(0)), "it", place.span
        else:
            if not callable(program):
                lift(program, place.operand(0))
                message = "a number is no program"
                raise TracingError(errors.DEFINED, message, place.span, "`define` takes a Python function")
            python = python_function(program, place.operand(0), constant=True)
            value, found, span = abstraction(python, {}, grouped=False), python.name, python.place.span
        return close(value, name or ("it" if found == "<lambda>" else found), span, sizes)


def close(value: Traced, name: str, span: Span, sizes: Sizes = ()) -> Definition:
    """The definition of a traced value that is complete."""
    if not name.isidentifier():
        raise TracingError(errors.DEFINED, f"`{name}` is no name of a definition", span)
    explicit = [_explicit(size, span) for size in ([sizes] if isinstance(sizes, Traced) else sizes)]
    named = finish(value.expression, uses_of(value))
    _check_names((*explicit, *named.symbols), span)
    syntax = named.syntax
    if explicit:
        kinded = tuple(s.KindedName(x.name, x.kind.value, span) for x in explicit)
        syntax = s.DependentFunction(kinded, syntax, span)
    leading = tuple(Parameter(x.name, x.kind, True) for x in named.symbols if x not in explicit)
    return checked(name, syntax, leading, named.definitions, span)


def checked(
    name: str,
    syntax: s.Surface,
    leading: tuple[Parameter, ...],
    definitions: Mapping[str, Definition],
    span: Span,
) -> Definition:
    """Infers and generalises; `leading` are the implicit parameters that have names already."""
    elaborator = Elaborator()
    scope = Scope(definitions=definitions)
    for parameter in leading:
        scope = scope.with_kind(parameter.name, parameter.kind)
    body = elaborator.infer(syntax, scope)
    whole = s.DefinitionSyntax(name, (), None, syntax, span, span)
    return generalise(name, body, leading, elaborator.unifier, whole)


def _explicit(size: Any, span: Span) -> Symbol:
    entities = list(size._uses.values()) if isinstance(size, Traced) else []
    if len(entities) != 1 or not isinstance(entities[0], Symbol) or not isinstance(size.expression, s.Name):
        message = "`sizes` lists the parameters that callers give"
        raise TracingError(errors.DEFINED, message, span, 'write `sizes=(m, n)`, with `m, n = Nat("m n")`')
    return entities[0]


def _check_names(symbols: tuple[Symbol, ...], span: Span) -> None:
    kinds: dict[str, Symbol] = {}
    for each in symbols:
        other = kinds.setdefault(each.name, each)
        if other != each:
            message = f"`{each.name}` is a {other.kind.value} and a {each.kind.value}"
            raise TracingError(errors.DEFINED, message, span, "give one of them another name")
