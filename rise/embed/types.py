"""Types in Python: `Array[n, f32]`, `Pair[f32, i32]`, `Function[f32, f32]`, and what they abstract over."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rise.embed import errors
from rise.embed.entities import Symbol
from rise.embed.errors import TracingError
from rise.embed.places import Callable_, Place, PythonFile, caller, here
from rise.embed.traced import Traced, lift, symbol, uses_of
from rise.source import Span
from rise.suggest import suggestion
from rise.syntax import surface as s
from rise.types import SCALARS, Kind

# --- kinds ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KindConstructor:
    """`Nat("n")` is a size that a definition abstracts over, `m, k = Nat("m k")` are two."""

    kind: Kind

    def __call__(self, names: str) -> Any:
        symbols = tuple(symbol(name, self.kind) for name in names.replace(",", " ").split())
        for each in symbols:
            self._check(each)
        return symbols[0] if len(symbols) == 1 else symbols

    def _check(self, made: Traced) -> None:
        [entity] = made._uses.values()
        name = entity.name if isinstance(entity, Symbol) else ""
        if not name.isidentifier():
            message = f"`{name}` is no name"
            raise TracingError(
                errors.DEFINED, message, made.expression.span, "names are letters, digits, `_`"
            )

    def __repr__(self) -> str:
        return self.kind.value


# --- types ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TypeConstructor:
    """`Idx[n]`, `Vec[n, t]`, `Fragment[m, n, k, t, AMatrix]`."""

    name: str

    def __getitem__(self, arguments: Any) -> Traced:
        place = here()
        given = arguments if isinstance(arguments, tuple) else (arguments,)
        return self.build([lift(a, place.operand(i)) for i, a in enumerate(given)], place.span)

    def build(self, arguments: list[Traced], span: Span) -> Traced:
        written = tuple(a.type_node for a in arguments)
        return Traced(s.TypeApplication(self.name, written, span), uses_of(*arguments))

    def __repr__(self) -> str:
        return self.name


class ArrayConstructor(TypeConstructor):
    """`Array[n, t]`; `Array[m, n, t]` is `Array[m, Array[n, t]]`."""

    def build(self, arguments: list[Traced], span: Span) -> Traced:
        if len(arguments) > 2:
            arguments = [arguments[0], self.build(arguments[1:], span)]
        return super().build(arguments, span)


class PairConstructor(TypeConstructor):
    """`Pair[s, t]`; of more, the last has the rest. A tuple of types means the same."""

    def build(self, arguments: list[Traced], span: Span) -> Traced:
        if len(arguments) < 2:
            message = "a pair has two types"
            raise TracingError(errors.DEFINED, message, span, "write `Pair[f32, i32]`")
        second = arguments[1] if len(arguments) == 2 else self.build(arguments[1:], span)
        node = s.Tuple(arguments[0].expression, second.expression, span)
        return Traced(node, uses_of(arguments[0], second))


class FunctionConstructor(TypeConstructor):
    """`Function[s, t]` takes s and gives t; `Function[r, s, t]` takes r, then s."""

    def build(self, arguments: list[Traced], span: Span) -> Traced:
        if len(arguments) < 2:
            message = "the type of a function has a parameter and a result"
            raise TracingError(errors.DEFINED, message, span, "write `Function[f32, f32]`")
        result = arguments[1] if len(arguments) == 2 else self.build(arguments[1:], span)
        node = s.TypeFunction(arguments[0].type_node, result.type_node, span)
        return Traced(node, uses_of(arguments[0], result))


def constructor(name: str) -> TypeConstructor:
    known = {"Array": ArrayConstructor, "Pair": PairConstructor, "Function": FunctionConstructor}
    return known.get(name, TypeConstructor)(name)


# --- annotations ------------------------------------------------------------------------------------


def written_types(
    function: Callable[..., Any], node: Callable_ | None, file: PythonFile
) -> dict[str, Traced]:
    """The annotations of a function's parameters, and of its result as `return`."""
    written = getattr(function, "__annotations__", {})
    if not written:
        return {}
    nodes = dict(_annotation_nodes(node)) if isinstance(node, ast.FunctionDef) else {}
    found: dict[str, Traced] = {}
    for name, value in written.items():
        place = _place(nodes.get(name), file, function)
        if isinstance(value, str):  # `from __future__ import annotations`
            value = _evaluated(value, nodes.get(name), function, place)
        found[name] = _type(name, value, place)
    return found


def _annotation_nodes(node: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    for argument in (*node.args.posonlyargs, *node.args.args):
        if argument.annotation is not None:
            yield argument.arg, argument.annotation
    if node.returns is not None:
        yield "return", node.returns


def _place(node: ast.expr | None, file: PythonFile, function: Callable[..., Any]) -> Place:
    if node is not None:
        return Place(file, file.line(node.lineno)).at(node)
    code = getattr(function, "__code__", None)
    return Place(file, file.line(code.co_firstlineno)) if code is not None else here()


def _evaluated(text: str, node: ast.expr | None, function: Callable[..., Any], place: Place) -> Any:
    """The annotation's value, computed from its place in the file, so that errors in it point there."""
    known = {**caller().f_locals, **inspect.getclosurevars(function).nonlocals}
    source: ast.Expression | str = ast.Expression(node) if node is not None else text
    try:
        return eval(compile(source, place.file.name, "eval"), function.__globals__, known)
    except NameError as error:
        hint = suggestion(error.name or "", [*known, *function.__globals__])
        raise TracingError(errors.DEFINED, f"{error} in an annotation", place.span, hint) from None


def _type(name: str, value: Any, place: Place) -> Traced:
    if isinstance(value, Traced | tuple):
        return lift(value, place)
    shown = getattr(value, "__name__", repr(value))
    what = "result" if name == "return" else f"parameter `{name}`"
    hint = "write `Array[n, f32]`, `f32`, `Pair[f32, i32]`; or nothing: types are inferred"
    if value in (int, float, bool):
        hint = "choose its width: " + ", ".join(f"`{n}`" for n in SCALARS if n.startswith(shown[0]))
    message = f"the annotation of the {what} is no type of a program: `{shown}`"
    raise TracingError(errors.DEFINED, message, place.span, hint)
