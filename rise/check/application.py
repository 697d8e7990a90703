"""Applications: arguments checked in an order in which each tells most about the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rise.check.context import Context, argument_role, callee, counted
from rise.check.dependent_arguments import Head, dependent_argument, primitive, reference
from rise.check.difference import shown
from rise.check.inference import Inference
from rise.check.repair import improve
from rise.check.scope import Scope
from rise.errors import TypeMismatch
from rise.expr import Apply, DependentApply, Expr, Primitive, map_types
from rise.nat import TooLarge
from rise.primitives.declare import lookup
from rise.source import Note, Span
from rise.syntax import surface as s
from rise.types import Array, Dependent, Function, Type, Unknown, arguments, leaves


def call(e: Inference, node: s.Call, scope: Scope) -> Expr:
    """`f(a)(b, c)` at once, so that leading arguments may be sizes; `x |> f(a)` likewise."""
    head: s.Surface = node.function
    given = node.arguments
    while isinstance(head, s.Call):
        given = head.arguments + given
        head = head.function
    try:
        function, rest = _head(e, head, given, scope)
        return apply(e, function, rest, scope, node.span, node.piped)
    except TypeMismatch as error:
        improve(e, error, head, given, scope)
        raise
    except TooLarge as error:
        raise error.at(node.span) from None


def _head(e: Inference, node: s.Surface, given: tuple[s.Surface, ...], scope: Scope) -> Head:
    if isinstance(node, s.Name) and node.name not in scope.values:
        if node.name in scope.definitions:
            return reference(e, scope.definitions[node.name], given, scope, node.span)
        if lookup(node.name) is not None:
            return primitive(e, node.name, given, scope, node.span)
    if isinstance(node, s.Function) and given:
        return _applied_function(e, node, given, scope)
    return e.infer(node, scope), given


def _applied_function(e: Inference, node: s.Function, given: tuple[s.Surface, ...], scope: Scope) -> Head:
    """`x |> fun(y => e)`: the argument first, since its type says what the parameter is.

    A list of parameters takes a pair apart only where there are fewer arguments than parameters.
    """
    argument = e.infer(given[0], scope)
    result: Type = e.unifier.type()
    if len(given) >= len(node.parameters) > 1:
        result = Function(e.unifier.type(), result)
    function = e.check(node, Function(argument.type, result), scope)
    return Apply(function, argument, node.span), given[1:]


def apply(
    e: Inference,
    function: Expr,
    given: tuple[s.Surface, ...],
    scope: Scope,
    span: Span,
    piped: bool = False,
) -> Expr:
    """Arguments that are functions written in place are checked last: then their parameter is known."""
    type_ = e.unifier.shallow(function.type)
    while given and isinstance(type_, Dependent):
        argument = dependent_argument(e, given[0], type_.kind, scope)
        # a size can be put only where it is written, not into what stands for an unknown type
        function = DependentApply(_resolved(e, function), argument, span)
        given, type_ = given[1:], e.unifier.shallow(function.type)
    arguments = _Arguments(e, function, given, _parameters(e, function, given, span), piped)
    checked: dict[int, Expr] = {}
    for late in (False, True):
        for i, (node, parameter) in enumerate(zip(given, arguments.parameters, strict=True)):
            if isinstance(node, s.Function | s.Operator) == late:
                checked[i] = e.check(node, parameter, scope, arguments.context(i, checked))
    _check_start(e, function, given, checked)
    if given:
        # what was an unknown type is a function's by now: applications read their type off it
        function = _resolved(e, function)
    for i in range(len(given)):
        function = Apply(function, checked[i], span)
    return function


def _check_start(
    e: Inference, function: Expr, given: tuple[s.Surface, ...], checked: dict[int, Expr]
) -> None:
    """R0308 for `xs |> reduce(+)`: the array is taken for the value that the fold starts from."""
    if not (isinstance(function, Primitive) and len(given) == 2 and isinstance(given[0], s.Operator)):
        return
    name, parameters = function.name, arguments(function.type)[0]
    if len(parameters) != 3 or not isinstance(parameters[0], Function):
        return
    start = e.unifier.shallow(checked[1].type)
    if isinstance(start, Array):
        operator = given[0].operator
        raise TypeMismatch(
            "R0308",
            f"`{name}` starts from a value, which is missing: `{operator}` is not for `{shown(start)}`",
            given[0].span,
            f"write `{name}({operator}, {1 if operator == '*' else 0})`",
        )


def _resolved(e: Inference, expr: Expr) -> Expr:
    """The term with all that is known of its types filled in."""
    return map_types(expr, e.unifier.resolve, e.unifier.resolve_argument)


def _parameters(e: Inference, function: Expr, given: tuple[s.Surface, ...], span: Span) -> list[Type]:
    """The type of the parameter for each argument. R0304 where there are too many."""
    type_ = e.unifier.shallow(function.type)
    parameters: list[Type] = []
    for node in given:
        if isinstance(type_, Unknown) and type_ not in e.unifier.data_only:
            made = Function(e.unifier.type(), e.unifier.type())
            e.unifier.unify(type_, made, span)
            type_ = made
        if not isinstance(type_, Function):
            raise _no_function(e, function, type_, len(parameters), node)
        parameters.append(type_.parameter)
        type_ = e.unifier.shallow(type_.result)
    return parameters


def _no_function(e: Inference, function: Expr, type_: Type, taken: int, node: s.Surface) -> TypeMismatch:
    name, text = callee(function), shown(e.unifier.resolve(type_))
    if isinstance(type_, Dependent):
        message = f"{name} takes a {type_.kind.value} here"
    elif taken:
        message = f"{name} takes {counted(taken, 'argument')}: this is one too many"
    else:
        message = f"{name} is no function: its type is `{text}`"
    hint = f"its result is `{text}`" if taken and not isinstance(type_, Unknown) else None
    return TypeMismatch("R0304", message, node.span, hint)


@dataclass(frozen=True)
class _Arguments:
    """What each argument is, for messages."""

    e: Inference
    function: Expr
    given: tuple[s.Surface, ...]
    parameters: list[Type]
    piped: bool

    def context(self, number: int, checked: dict[int, Expr]) -> Context:
        return Context(lambda: self.role(number), lambda: tuple(self.decided_by(number, checked)))

    def role(self, number: int) -> str:
        return argument_role(self.function, number, len(self.given), self.piped)

    def decided_by(self, number: int, checked: dict[int, Expr]) -> Iterator[Note]:
        """The argument before, if there is one with a size or a type in common."""
        mine = set(leaves(self.parameters[number]))
        for other, expr in checked.items():
            if other != number and mine & set(leaves(self.parameters[other])):
                type_ = shown(self.e.unifier.resolve(expr.type))
                yield Note(f"{self.role(other)} is `{type_}`", self.given[other].span)
                return
