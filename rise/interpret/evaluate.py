"""The evaluator: a term becomes Python closures once, and these run, in batches, on NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from rise.bounds import check_term
from rise.declaration import Declaration
from rise.errors import EvaluationError
from rise.expr import (
    Apply,
    DependentApply,
    DependentLambda,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    Reference,
    inline,
    spine,
    substitute_sizes,
)
from rise.interpret.inputs import Block, Plain, checked_input, layout, literal_number, plain
from rise.interpret.instance import Call, Instance, number
from rise.interpret.lazily import np
from rise.interpret.steps import StepTerm, operator_step
from rise.interpret.value import Function, Leaf, Scope, closed, forced, opened
from rise.nat import Nat, NatVariable, constant
from rise.types import (
    Argument,
    Array,
    Dependent,
    Index,
    Kind,
    Scalar,
    Type,
    Variable,
    Vector,
    arguments,
    as_data,
    is_data,
)
from rise.types import Function as FunctionType

Environment = Mapping[str, Any]
Code = Callable[[Environment, Scope], Any]
OUTSIDE = Scope()


# --- what users call ------------------------------------------------------------------------------


class Closure:
    """A function that a term denotes; callable with NumPy inputs, and a value in an environment."""

    def __init__(self, type_: Type, function: Function) -> None:
        self.type = type_
        self.function = function

    def __call__(self, *inputs: Plain) -> Plain:
        parameters, result = arguments(self.type)
        named = [(f"argument {i + 1}", t) for i, t in enumerate(parameters)]
        return _applied(self.function, named, result, inputs)


def evaluate(expr: Expr, environment: Environment | None = None) -> Plain | Closure:
    """What a typed term denotes: arrays and scalars of NumPy, tuples for pairs, or a `Closure`.

    The environment gives NumPy inputs (or closures) for the free identifiers.
    """
    check_term(expr.extent, expr)
    term = inline(expr)
    given = environment or {}
    values = {i.name: _lifted(i, given) for i in free_identifiers(term)}
    with np.errstate(all="ignore"):
        return _lowered(term.type, compiled(term)(values, OUTSIDE))


def call(expr: Expr, *inputs: Plain) -> Plain:
    """Applies a closed function, sizes already given, to NumPy inputs.

    Inputs are arrays of the shapes and element types of the function's parameters, numbers, and tuples for
    pairs; so is the result. Raises EvaluationError R0501 to R0508 where they do not fit, where a size is
    missing, and where an index is out of range.
    """
    check_term(expr.extent, expr)
    term = inline(expr)
    if isinstance(term.type, Dependent):
        message = f"no number is given for `{term.type.name}`"
        raise EvaluationError("R0506", message, expr.origin, "apply the program to its sizes first")
    parameters, result = arguments(term.type)
    with np.errstate(all="ignore"):
        function = compiled(term)({}, OUTSIDE)
    return _applied(function, _named(term, parameters), result, inputs)


def call_many(expr: Expr, inputs: Sequence[Plain], count: int) -> Plain:
    """Applies a closed function to several sets of inputs at once, as a map over them would.

    inputs: for each parameter the values of all sets, one after the other along a first axis
    Returns the results in the same form. What is refused for one of the sets is refused for all.
    """
    term = inline(expr)
    parameters, result = arguments(term.type)
    scope, many = Scope((count,)), constant(count)
    with np.errstate(all="ignore"):
        function = compiled(term)({}, scope)
        for (name, type_), value in zip(_named(term, parameters), inputs, strict=True):
            given = checked_input(name, Array(many, as_data(type_)), value)
            function = function(scope, opened(given, 0))
        return _lowered(Array(many, as_data(result)), closed(function, 0, count))


def _applied(
    function: Any, parameters: list[tuple[str, Type]], result: Type, inputs: tuple[Plain, ...]
) -> Plain:
    if len(inputs) != len(parameters):
        names = ", ".join(f"`{n}`" for n, _ in parameters) or "none"
        message = f"expected {len(parameters)} inputs ({names}), found {len(inputs)}"
        raise EvaluationError("R0505", message)
    with np.errstate(all="ignore"):
        for (name, type_), value in zip(parameters, inputs, strict=True):
            function = function(OUTSIDE, checked_input(name, type_, value))
        return _lowered(result, function)


def _named(term: Expr, parameters: list[Type]) -> list[tuple[str, Type]]:
    """Each parameter with the name the program gives it."""
    named: list[tuple[str, Type]] = []
    for position, type_ in enumerate(parameters, 1):
        name = f"argument {position}"
        if isinstance(term, Lambda):
            name, term = term.parameter.name, term.body
        named.append((name, type_))
    return named


def free_identifiers(expr: Expr) -> list[Identifier]:
    """The free identifiers of a term with their types, each name once."""
    found: dict[str, Identifier] = {}
    _find_free(expr, frozenset(), found)
    return list(found.values())


def _find_free(expr: Expr, bound: frozenset[str], found: dict[str, Identifier]) -> None:
    if expr.free <= bound:
        return
    match expr:
        case Identifier(name):
            found.setdefault(name, expr)
        case Lambda(parameter, body):
            _find_free(body, bound | {parameter.name}, found)
        case Apply(function, argument):
            _find_free(function, bound, found)
            _find_free(argument, bound, found)
        case DependentLambda(_, _, body) | DependentApply(body, _):
            _find_free(body, bound, found)


def _lifted(identifier: Identifier, environment: Environment) -> Any:
    if identifier.name not in environment:
        message = f"no value is given for `{identifier.name}`"
        raise EvaluationError("R0508", message, identifier.origin)
    value = environment[identifier.name]
    if isinstance(value, Closure):
        return value.function
    return checked_input(identifier.name, identifier.type, value)


def _lowered(type_: Type, value: Any) -> Plain | Closure:
    return plain(forced(value)) if is_data(type_) else Closure(type_, value)


# --- terms to closures ----------------------------------------------------------------------------


def compiled(expr: Expr) -> Code:
    """The term as a function of the values of its identifiers and the place of evaluation.

    What two programs share, as one and the next of a derivation, is compiled once.
    """
    found = _COMPILED.get(id(expr))
    if found is None:
        if len(_COMPILED) >= REMEMBERED:
            _COMPILED.clear()
        found = _COMPILED[id(expr)] = (_compiled(expr), expr)
    return found[0]


# by identity, since equal terms may have other origins; a term that is kept keeps its identity
_COMPILED: dict[int, tuple[Code, Expr]] = {}
REMEMBERED = 1 << 14


def _compiled(expr: Expr) -> Code:
    match expr:
        case Identifier(name):
            return lambda values, scope: values[name]
        case Literal():
            written = _literal(expr)
            return lambda values, scope: written
        case Lambda():
            return _compiled_lambda(expr)
        case Primitive():
            function = _curried(_saturated(expr), arity(expr.declaration))
            if hasattr(expr.declaration.denotation, "accumulate"):
                function.step = operator_step(expr.declaration.denotation)  # type: ignore[attr-defined]
            return lambda values, scope: function
        case Apply():
            return _compiled_application(expr)
        case DependentApply():
            return _compiled_dependent_application(expr)
        case DependentLambda(name, kind, body):
            return lambda values, scope: (
                lambda argument: compiled(_instantiated(name, kind, body, argument))(values, scope)
            )
        case Reference():
            return compiled(inline(expr))


def _literal(literal: Literal) -> Leaf:
    """A number; of a vector type, in every element."""
    block = layout(literal.type)
    if not isinstance(block, Block) or not isinstance(literal.type, Scalar | Index | Vector):
        message = f"a literal of type {literal.type}"
        raise EvaluationError("R0506", message, literal.origin)
    element = block.element if isinstance(block.element, Scalar) else Scalar("i64")
    return Leaf(np.broadcast_to(literal_number(literal.value, element), block.shape), 0)


def _compiled_lambda(expr: Lambda) -> Code:
    name, body = expr.parameter.name, compiled(expr.body)
    step = StepTerm(expr, compiled) if isinstance(expr.body, Lambda) else None

    def run(values: Environment, scope: Scope) -> Function:
        def function(inner: Scope, value: Any) -> Any:
            return body({**values, name: value}, inner)

        if step is not None:
            function.step = step.bound(values)  # type: ignore[attr-defined]  # read by folds
        return function

    return run


def _compiled_dependent_application(expr: DependentApply) -> Code:
    if isinstance(expr.function, DependentLambda):
        inner = expr.function
        return compiled(_instantiated(inner.name, inner.kind, inner.body, expr.argument))
    function, argument = compiled(expr.function), expr.argument
    return lambda values, scope: function(values, scope)(argument)


def _instantiated(name: str, kind: Kind, body: Expr, argument: Argument) -> Expr:
    key = NatVariable(name) if kind is Kind.NAT else Variable(name)
    return substitute_sizes(body, {key: argument})


# --- application ----------------------------------------------------------------------------------


def _compiled_application(expr: Apply) -> Code:
    head, applications = spine(expr)
    if isinstance(head, Primitive) and len(applications) == arity(head.declaration):
        return _compiled_call(head, [compiled(a.argument) for a in applications])
    function, argument = compiled(expr.function), compiled(expr.argument)
    return lambda values, scope: function(values, scope)(scope, argument(values, scope))


def _compiled_call(primitive: Primitive, operands: list[Code]) -> Code:
    denotation, instance = primitive.declaration.denotation, instance_of(primitive)
    lazy: tuple[int, ...] = getattr(denotation, "lazy", ())

    def operand(code: Code, position: int, values: Environment, scope: Scope) -> Any:
        if position in lazy:
            return lambda inner: code(values, inner)
        return code(values, scope)

    def run(values: Environment, scope: Scope) -> Any:
        given = [operand(code, i, values, scope) for i, code in enumerate(operands)]
        return denotation(Call(instance, scope), *given)

    return run


def _saturated(primitive: Primitive) -> Callable[[Scope, list[Any]], Any]:
    """The denotation as a function of all its values, already evaluated."""
    denotation, instance = primitive.declaration.denotation, instance_of(primitive)
    lazy: tuple[int, ...] = getattr(denotation, "lazy", ())

    def run(scope: Scope, given: list[Any]) -> Any:
        operands = [(lambda _, v=v: v) if i in lazy else v for i, v in enumerate(given)]
        return denotation(Call(instance, scope), *operands)

    return run


def _curried(function: Callable[[Scope, list[Any]], Any], missing: int) -> Function:
    def step(scope: Scope, value: Any) -> Any:
        if missing == 1:
            return function(scope, [value])
        return _curried(lambda inner, rest: function(inner, [value, *rest]), missing - 1)

    return step


def instance_of(primitive: Primitive) -> Instance:
    parameters = primitive.declaration.scheme.parameters
    given = {p.name: a for p, a in zip(parameters, primitive.arguments, strict=True)}
    sizes = {n: number(a, primitive.origin) for n, a in given.items() if isinstance(a, Nat)}
    return Instance(primitive.name, sizes, given, primitive.origin)


@cache
def arity(declaration: Declaration) -> int:
    """How many values a primitive takes: its type variables stand for data, so the scheme tells."""
    count, type_ = 0, declaration.scheme.type
    while isinstance(type_, FunctionType):
        count, type_ = count + 1, type_.result
    return count
