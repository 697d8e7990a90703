"""Names that take sizes and types: primitives and definitions with all their dependent arguments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rise.check.inference import Inference
from rise.check.scope import CONSTANTS, Scope
from rise.constraint import Constraint
from rise.errors import ScopeError, TypeMismatch
from rise.expr import Definition, DependentApply, Expr, Primitive, Reference
from rise.nat import Nat
from rise.primitives.declare import REGISTRY
from rise.primitives.declare import primitive as declared
from rise.source import Note, Span
from rise.syntax import surface as s
from rise.syntax.families import resolve_member
from rise.syntax.resolve import (
    LAYOUTS,
    NOUNS,
    SIZE_OPERATIONS,
    as_type,
    resolve_argument,
    resolve_nat_function,
)
from rise.types import (
    SCALARS,
    Argument,
    Dependent,
    Kind,
    Layout,
    Parameter,
    Solution,
    Space,
    Type,
    as_data,
    substitute_argument,
)

Head = tuple[Expr, tuple[s.Surface, ...]]


def primitive(
    e: Inference,
    name: str,
    given: tuple[s.Surface, ...],
    scope: Scope,
    span: Span,
    whole: Span | None = None,
) -> tuple[Primitive, tuple[s.Surface, ...]]:
    """A primitive, and the arguments that are left. `whole` is the operation that it is an operator of."""
    declaration, given = resolve_member(declared(name), given, span)
    parameters = declaration.scheme.parameters
    chosen, rest = dependent_arguments(e, parameters, name, given, scope, span)
    if declaration.elementwise:
        for parameter, argument in zip(parameters, chosen, strict=True):
            if parameter.kind is Kind.DATA:
                shown = f"`{declaration.infix or name}`"
                e.unifier.obligations.member(as_data(argument), declaration.operands, shown, whole or span)
    return Primitive(declaration, chosen, span), rest


def reference(
    e: Inference, definition: Definition, given: tuple[s.Surface, ...], scope: Scope, span: Span
) -> Head:
    """A definition, its sizes given or to be found; what it asks of them is asked here."""
    parameters = definition.scheme.parameters
    chosen, rest = dependent_arguments(e, parameters, definition.name, given, scope, span)
    solution = {p.key: a for p, a in zip(parameters, chosen, strict=True)}
    function: Expr = Reference(definition, chosen, span)
    while rest and isinstance(function.type, Dependent):
        bound = Parameter(function.type.name, function.type.kind, False)
        if is_value(rest[0], scope):
            raise _missing(_bound(function.type), bound, definition.name, span)
        argument = dependent_argument(e, rest[0], bound.kind, scope)
        solution[bound.key] = argument
        function, rest = DependentApply(function, argument, span), rest[1:]
    left_open = {p.name for p in _bound(function.type)}
    for constraint in definition.constraints:
        if isinstance(constraint.value, Nat) and constraint.value.variables & left_open:
            raise TypeMismatch(
                "R0401" if constraint.divisor is not None else "R0404",
                f"`{definition.name}` needs {constraint}, so its sizes have to be given here",
                span,
                f"write `{definition.name}({', '.join(sorted(left_open))})`",
                notes=tuple(_inwards(constraint)),
            )
        _ask(e, definition, constraint, solution, span)
    return function, rest


def _bound(type_: Type) -> tuple[Parameter, ...]:
    """The parameters that a function of sizes and types has left."""
    parameters = []
    while isinstance(type_, Dependent):
        parameters.append(Parameter(type_.name, type_.kind, False))
        type_ = type_.result
    return tuple(parameters)


def _ask(
    e: Inference,
    definition: Definition,
    constraint: Constraint,
    solution: Solution,
    span: Span,
) -> None:
    asker, notes = f"`{definition.name}`", tuple(_inwards(constraint))
    value = substitute_argument(constraint.value, solution)
    if not isinstance(value, Nat):
        e.unifier.obligations.member(as_data(value), constraint.wanted, asker, span, notes)
        return
    divisor = constraint.divisor and substitute_argument(constraint.divisor, solution)
    e.unifier.require(
        replace(constraint, value=value, divisor=divisor, origin=span, asker=asker, notes=notes)
    )


def _inwards(constraint: Constraint) -> Iterator[Note]:
    asker = constraint.asker or "this"
    needs = (
        f"needs {constraint}" if isinstance(constraint.value, Nat) else f"is for {constraint.wanted.members}"
    )
    yield Note(f"{asker} {needs}", constraint.origin)
    yield from constraint.notes


# --- dependent arguments ----------------------------------------------------------------------------


def dependent_arguments(
    e: Inference,
    parameters: tuple[Parameter, ...],
    name: str,
    given: tuple[s.Surface, ...],
    scope: Scope,
    span: Span,
) -> tuple[tuple[Argument, ...], tuple[s.Surface, ...]]:
    """Fresh unknowns for implicit parameters; explicit ones from what is given, or their default."""
    explicit: list[Argument] = []
    rest = list(given)
    for parameter in parameters:
        if parameter.implicit:
            continue
        if rest and _is_meant(rest[0], parameter, scope):
            explicit.append(dependent_argument(e, rest.pop(0), parameter.kind, scope))
        elif parameter.default is not None:
            explicit.append(parameter.default)
        else:
            raise _missing(parameters, parameter, name, span)
    asker = f"`{name}({', '.join(map(str, explicit))})`" if explicit else f"`{name}`"
    written = iter(explicit)
    chosen = tuple(
        e.unifier.argument(p.kind, asker, span) if p.implicit else next(written) for p in parameters
    )
    return chosen, tuple(rest)


EXAMPLES = {Kind.NAT: "32", Kind.DATA: "f32", Kind.SPACE: "Shared", Kind.LAYOUT: "padded(8)"}


def _missing(parameters: tuple[Parameter, ...], missing: Parameter, name: str, span: Span) -> ScopeError:
    noun = f"{'an' if NOUNS[missing.kind][0] in 'aeiou' else 'a'} {NOUNS[missing.kind]}"
    explicit = [p for p in parameters if not p.implicit and p.default is None]
    form = ", ".join(p.name for p in explicit)
    example = ", ".join(EXAMPLES.get(p.kind, "natFun(i => i)") for p in explicit)
    return ScopeError(
        "R0206",
        f"`{name}` needs its argument `{missing.name}`, {noun}",
        span,
        f"write `{name}({form})`, for example `{name}({example})`",
    )


def _is_meant(node: s.Surface, parameter: Parameter, scope: Scope) -> bool:
    """Whether what is given next is for this parameter. Where it is a value, the parameter's is missing."""
    if parameter.default is not None:
        return _fits(node, parameter.kind, scope)
    return not is_value(node, scope)


def is_value(node: s.Surface, scope: Scope) -> bool:
    """Whether what is written can be no size and no type."""
    match node:
        case s.Name(name):
            return name not in scope.kinds and (name in scope.values or name in scope.definitions)
        case s.Call(s.Name(name), _):
            known = name in scope.values or name in scope.definitions or name in REGISTRY
            return known and name not in SIZE_OPERATIONS and name not in LAYOUTS
        case s.Function() | s.Compose() | s.Operator() | s.Annotated() | s.Let():
            return True
        case s.Call(function, _):
            return is_value(function, scope)
        case s.Number(value):
            return isinstance(value, float)
        case _:
            return False


def _fits(node: s.Surface, kind: Kind, scope: Scope) -> bool:
    """Whether an argument can be meant for a dependent parameter that has a default."""
    match node:
        case s.Name(name):
            constants = {Kind.SPACE: Space, Kind.LAYOUT: Layout}.get(kind)
            is_constant = constants is not None and isinstance(CONSTANTS.get(name), constants)
            return scope.kinds.get(name) is kind or (is_constant and name not in scope.values)
        case s.Call(s.Name(name), _) if kind is Kind.LAYOUT:
            return name in LAYOUTS and name not in scope.values
        case s.Number(value):
            return kind is Kind.NAT and isinstance(value, int) and not isinstance(value, bool)
        case s.Binary(_, left, right):
            return _fits(left, kind, scope) and _fits(right, kind, scope)
        case _:
            return False


def dependent_argument(e: Inference, node: s.Surface, kind: Kind, scope: Scope) -> Argument:
    """What is written, read as a size, a type or another argument of the kind."""
    if isinstance(node, s.NatLambda):
        if kind is not Kind.FUNCTION:
            raise ScopeError(
                "R0203", f"a function on sizes stands where a {NOUNS[kind]} is needed", node.span
            )
        return resolve_nat_function(node, scope.kinds)
    written = as_type(node)
    kinds = dict(scope.kinds)
    if e.size_variables is not None:
        for name in _type_names(written):
            if name not in kinds and name not in CONSTANTS and name not in SCALARS:
                kinds[name] = e.size_variables.setdefault(name, kind)
    argument = resolve_argument(written, kind, kinds)
    if isinstance(argument, Nat):
        e.unifier.obligations.written(argument, "this size", node.span)
    return argument


def _type_names(written: s.SurfaceType) -> list[str]:
    match written:
        case s.TypeName(name):
            return [name]
        case s.TypeOperation(_, left, right):
            return _type_names(left) + _type_names(right)
        case _:
            return []
