"""Python functions as functions of a program: each is called once, with traced parameters."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from rise.embed import errors
from rise.embed.entities import Binder
from rise.embed.errors import TracingError
from rise.embed.operators import BINARY
from rise.embed.places import Callable_, Place, extent_of, here, python_file
from rise.embed.traced import Traced, bound, lift, uses_of
from rise.embed.types import written_types
from rise.primitives.declare import lookup
from rise.source import Span
from rise.suggest import suggestion
from rise.syntax import surface as s
from rise.types import Kind

# how many functions are being traced, one within the other
_depth: ContextVar[int] = ContextVar("depth", default=0)


def is_tracing() -> bool:
    """Whether a Python function is being read as a program now."""
    return _depth.get() > 0


@contextmanager
def _traced() -> Iterator[None]:
    token = _depth.set(_depth.get() + 1)
    try:
        yield
    finally:
        _depth.reset(token)


@dataclass(frozen=True, eq=False)
class PythonFunction:
    """A Python function, and where its parts stand."""

    function: Callable[..., Any]
    parameters: tuple[str, ...]
    place: Place
    node: Callable_ | None

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", "it"))

    def parameter(self, number: int) -> Span:
        """Where a parameter stands; the whole function where that is not known."""
        if self.node is None:
            return self.place.span
        arguments = [*self.node.args.posonlyargs, *self.node.args.args]
        return self.place.file.span(extent_of(arguments[number]))

    @property
    def result(self) -> Place:
        """Where the result is computed, if that is one place."""
        match self.node:
            case ast.Lambda(_, body):
                return self.place.at(body)
            case ast.FunctionDef():
                returned = [n.value for n in ast.walk(self.node) if isinstance(n, ast.Return)]
                if len(returned) == 1 and returned[0] is not None:
                    return self.place.at(returned[0])
        return self.place

    def call(self, arguments: Sequence[Traced]) -> Traced:
        """The body over traced parameters."""
        with _traced():
            value = self.function(*arguments)
        if value is None:
            message = f"{self.described} returns nothing"
            raise TracingError(errors.RESULT, message, self.place.span, "`return` the result")
        return lift(value, self.result)

    @property
    def described(self) -> str:
        return "the function" if self.name == "<lambda>" else f"`{self.name}`"


def python_function(function: Callable[..., Any], place: Place, constant: bool = False) -> PythonFunction:
    """A Python function that stands, or is used, at a place; `constant` says that it may have no parameter.

    Its parameters without a default are those of the program: `lambda x, i=i: …` keeps an `i` of now.
    Raises R0156 where it has none, or a list of any length.
    """
    place, node = _extent(function, place)
    return PythonFunction(function, _parameters(function, place, constant), place, node)


def _extent(function: Callable[..., Any], place: Place) -> tuple[Place, Callable_ | None]:
    """Where the function is written, if that is known: in place, or in the line that its code starts at."""
    code = getattr(function, "__code__", None)
    if isinstance(place.node, ast.Lambda) or code is None:
        return place, place.node if isinstance(place.node, ast.Lambda) else None
    file = python_file(code.co_filename, getattr(function, "__globals__", None))
    found = file.callables(code.co_firstlineno, code.co_varnames[: code.co_argcount])
    node = found[0] if len(found) == 1 else None
    if isinstance(node, ast.Lambda):
        return Place(file, file.span(extent_of(node)), node), node
    return Place(file, file.line(node.lineno if node is not None else code.co_firstlineno)), node


def _parameters(function: Callable[..., Any], place: Place, constant: bool) -> tuple[str, ...]:
    name = getattr(function, "__name__", "it")
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise _python_function(function, name, place) from None
    required = [p for p in found if p.default is p.empty]
    unfit = next((p for p in required if p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)), None)
    if unfit is not None or not (required or constant):
        shown = f"`*{unfit.name}`" if unfit is not None else "no parameter"
        message = f"a function of a program has a fixed list of parameters, this one has {shown}"
        raise TracingError(errors.PARAMETERS, message, place.span, "write `lambda x: …` or `lambda x, y: …`")
    return tuple(p.name for p in required)


def _python_function(function: object, name: str, place: Place) -> TracingError:
    """A class, or a function of C: `map(max)` with Python's own `max`."""
    message = f"Python's own `{name}` is no function of a program"
    hint = f"use `rise.ops.{name}`" if lookup(name) else "write a `lambda`"
    return TracingError(errors.PARAMETERS, message, place.span, hint)


# --- functions on values ----------------------------------------------------------------------------


def traced_function(
    function: Callable[..., Any], place: Place, types: Mapping[str, Traced] | None = None
) -> Traced:
    """The function as a node. Several parameters are curried, or take a pair apart: the context decides."""
    sign = BINARY.get(getattr(function, "__name__", "").rstrip("_"))
    if sign is not None and getattr(function, "__module__", "") == "_operator":
        return Traced(s.Operator(sign, place.span))
    return abstraction(python_function(function, place), types or {}, grouped=True)


def abstraction(python: PythonFunction, types: Mapping[str, Traced], grouped: bool) -> Traced:
    """`(a, b) => body`, with the types that annotations give."""
    patterns: list[s.Pattern] = []
    arguments: list[Traced] = []
    annotations = {**written_types(python.function, python.node, python.place.file), **types}
    for number, parameter in enumerate(python.parameters):
        span = python.parameter(number)
        name, value = bound(Binder(parameter, None, span))
        annotation = annotations.get(parameter)
        patterns.append(s.NamePattern(name, annotation.type_node if annotation is not None else None, span))
        arguments.append(value)
    body = python.call(arguments)
    result = annotations.get("return")
    node = body.expression
    if result is not None:
        node = s.Annotated(node, result.type_node, node.span)
    lists = [tuple(patterns)] if grouped else [(pattern,) for pattern in patterns]
    for parameters in reversed(lists):
        if parameters:
            node = s.Function(parameters, node, python.place.span)
    used = [annotations[p] for p in (*python.parameters, "return") if p in annotations]
    return Traced(node, uses_of(*used, *arguments, body))


def fun(function: Callable[..., Any], **types: Any) -> Traced:
    """A function of a program, made now: `fun(lambda x: x + i)` keeps the `i` that there is now.

    types: the types of parameters, by name: `fun(lambda xs: …, xs=Array[n, f32])`
    """
    place = here()
    python = python_function(function, place.operand(0))
    for name in types:
        if name not in python.parameters:
            hint = suggestion(name, python.parameters)
            raise TracingError(errors.PARAMETERS, f"there is no parameter `{name}`", place.span, hint)
    return abstraction(python, {n: lift(t, place) for n, t in types.items()}, grouped=True)


def typed(value: Any, type_: Any) -> Traced:
    """`value : type`: both are made equal, nothing is converted."""
    place = here()
    expression, written = lift(value, place.operand(0)), lift(type_, place.operand(1))
    node = s.Annotated(expression.expression, written.type_node, place.span)
    return Traced(node, uses_of(expression, written))


# --- functions on sizes and types -------------------------------------------------------------------


def depfun(function: Callable[..., Any], **kinds: Any) -> Traced:
    """`depFun((n: Nat) => …)`: a function of sizes, or of what else `kinds` says: `t=DataType`."""
    place = here()
    python = python_function(function, place.operand(0))
    chosen = [getattr(kinds.get(name), "kind", Kind.NAT) for name in python.parameters]
    names, arguments = _bound_all(python, chosen)
    spans = [python.parameter(i) for i in range(len(names))]
    parameters = tuple(
        s.KindedName(name, kind.value, span) for name, kind, span in zip(names, chosen, spans, strict=True)
    )
    body = python.call(arguments)
    return Traced(
        s.DependentFunction(parameters, body.expression, python.place.span), uses_of(*arguments, body)
    )


def natfun(function: Callable[..., Any]) -> Traced:
    """`natFun(i => …)`: a function from a size to a size, as `reorder` takes it."""
    python = python_function(function, here().operand(0))
    if len(python.parameters) != 1:
        message = "a function on sizes has one parameter"
        raise TracingError(errors.PARAMETERS, message, python.place.span, "write `natFun(lambda i: …)`")
    [name], arguments = _bound_all(python, [Kind.NAT])
    body = python.call(arguments)
    return Traced(s.NatLambda(name, body.type_node, python.place.span), uses_of(*arguments, body))


def _bound_all(python: PythonFunction, kinds: Sequence[Kind]) -> tuple[list[str], list[Traced]]:
    pairs = [
        bound(Binder(name, kind, python.parameter(i)))
        for i, (name, kind) in enumerate(zip(python.parameters, kinds, strict=True))
    ]
    return [name for name, _ in pairs], [value for _, value in pairs]
