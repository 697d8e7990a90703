"""A definition on NumPy inputs: sizes and types found from them, then the interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rise.check.obligations import Asked, membership
from rise.check.specialise import inputs_of, leaves_of, size_names, sizes_from_inputs, specialise, undepended
from rise.constraint import Constraint
from rise.embed.errors import short_traceback
from rise.embed.traced import Traced
from rise.errors import EvaluationError, UsageError
from rise.expr import Definition, DependentLambda, Expr, Identifier, Lambda, Literal, substitute_sizes
from rise.interpret import call, dtype_of
from rise.nat import Nat, constant
from rise.syntax.resolve import resolve_data
from rise.types import (
    I32,
    SCALARS,
    TF32,
    Argument,
    Array,
    Data,
    Kind,
    Scalar,
    Type,
    Variable,
    arguments,
    substitute_type,
)

if TYPE_CHECKING:
    import numpy


def evaluate(definition: Definition, inputs: tuple[Any, ...], given: Mapping[str, Any]) -> Any:
    """The result on NumPy arrays and numbers; see `Definition.evaluate`."""
    with short_traceback():
        inputs, given = _in_order(definition, inputs, given)
        arrays = _arrays(definition, inputs)
        fixed = _with_types(definition, arrays, {n: v for n, v in given.items() if _is_type(v)})
        numbers = {n: v for n, v in given.items() if not _is_type(v)}
        shapes = {name: array.shape for name, array, _ in _arrays(fixed, inputs)}
        try:
            program = specialise(fixed, sizes_from_inputs(_over_leaves(fixed), shapes, numbers))
        except UsageError as error:
            raise _advised(error, fixed) from None
        return call(program, *inputs)


def _advised(error: UsageError, definition: Definition) -> UsageError:
    """The checker's hints are for the command line: in Python, sizes and types are given by name."""
    if error.code == "R0405":
        missing = [f"{n}=128" for n in size_names(definition) if f"`{n}`" in error.message]
    elif error.code == "R0408":
        missing = [f"{p.name}=f32" for p in definition.parameters if p.kind is Kind.DATA]
    else:
        missing = []
    if not missing:
        return error
    given = ", ".join(["…"] * bool(parameters_of(definition)) + missing)
    hint = f"give it by name, `{definition.name}({given})`, or by inputs that show it"
    return UsageError(error.code, error.message, error.origin, hint)


# --- inputs -----------------------------------------------------------------------------------------


def parameters_of(definition: Definition) -> list[tuple[str, Type]]:
    """Name and type of each input; those that the program gives no name are `argument 1` …"""
    body = undepended(definition.body)
    types, _ = arguments(body.type)
    named = inputs_of(body)
    return named + [(f"argument {i + 1}", t) for i, t in enumerate(types) if i >= len(named)]


def _in_order(
    definition: Definition, inputs: tuple[Any, ...], given: Mapping[str, Any]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """The inputs in order, those given by name among them; and what else is given by name.

    A name that is a size's too means the size. R0505 where an input is given twice, or not at all.
    """
    sizes = {p.name for p in definition.parameters} | {name for name, _ in _dependent(definition.body)}
    names = [name for name, _ in parameters_of(definition)]
    named = {n: given[n] for n in names if n in given and n not in sizes}
    if not named:
        return inputs, given
    for i, name in enumerate(names):
        if (i < len(inputs)) == (name in named):
            what = "two values" if name in named else "no value"
            raise EvaluationError("R0505", f"`{definition.name}` is given {what} for its input `{name}`")
    rest = {name: value for name, value in given.items() if name not in named}
    return (*inputs, *named.values()), rest


def _arrays(
    definition: Definition, inputs: tuple[Any, ...]
) -> list[tuple[str, numpy.ndarray[Any, Any], Type]]:
    """The arrays that inputs consist of, with name and type."""
    parameters = parameters_of(definition)
    if len(inputs) != len(parameters):
        names = ", ".join(f"`{name}`" for name, _ in parameters) or "none"
        message = f"`{definition.name}` takes {len(parameters)} (inputs: {names}), {len(inputs)} given"
        raise EvaluationError("R0505", message)
    found: list[tuple[str, numpy.ndarray[Any, Any], Type]] = []
    for (name, type_), value in zip(parameters, inputs, strict=True):
        found += _leaves(name, type_, value)
    return found


def _leaves(name: str, type_: Type, value: Any) -> Iterator[tuple[str, numpy.ndarray[Any, Any], Type]]:
    import numpy as np

    if isinstance(value, tuple):
        parts = leaves_of(name, type_)
        flat = list(_flat(value))
        for (part, part_type), each in zip(parts, flat, strict=False):
            yield from _leaves(part, part_type, each)
    elif isinstance(value, np.ndarray | np.generic):
        yield name, np.asarray(value), type_
    elif isinstance(value, bool | int | float):  # as a literal that nothing else determines
        literal = {bool: "bool", int: "int32", float: "float32"}[type(value)]
        yield name, np.zeros((), literal), type_
    else:
        message = f"`{name}` is to be a NumPy array or a number; found a {type(value).__name__}"
        raise EvaluationError("R0507", message, hint="numpy.asarray makes an array of a sequence")


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _flat(part)
    else:
        yield value


def _over_leaves(definition: Definition) -> Definition:
    """The definition with a parameter for each array, so that those of a pair show their sizes too."""
    leaves = [leaf for name, type_ in parameters_of(definition) for leaf in leaves_of(name, type_)]
    body: Expr = Literal(0, I32)
    for name, type_ in reversed(leaves):
        body = Lambda(Identifier(name, type_), body)
    for name, kind in reversed(_dependent(definition.body)):
        body = DependentLambda(name, kind, body)
    return replace(definition, body=body)


def _dependent(body: Expr) -> list[tuple[str, Kind]]:
    found: list[tuple[str, Kind]] = []
    while isinstance(body, DependentLambda):
        found.append((body.name, body.kind))
        body = body.body
    return found


# --- types ------------------------------------------------------------------------------------------


def _is_type(value: Any) -> bool:
    return isinstance(value, Traced | Scalar) or (isinstance(value, str) and value in SCALARS)


def _with_types(
    definition: Definition,
    arrays: list[tuple[str, numpy.ndarray[Any, Any], Type]],
    given: Mapping[str, Any],
) -> Definition:
    """The definition at the types of its inputs: `{t: DataType}` is the type of the elements of one."""
    names = [p.name for p in definition.parameters if p.kind is Kind.DATA]
    names += [name for name, kind in _dependent(definition.body) if kind is Kind.DATA]
    if not names:
        return definition
    solution: dict[Any, Argument] = {Variable(n): _given_type(given[n]) for n in names if n in given}
    # a number of Python has no type of its own: arrays come first
    for name, array, type_ in sorted(arrays, key=lambda leaf: -leaf[1].ndim):
        found = _variable_type(name, type_, array)
        if found is not None:
            solution.setdefault(*found)
    known = {key.name for key in solution}
    left = tuple(p for p in definition.parameters if p.name not in known)
    body = substitute_sizes(_without(definition.body, known), solution)
    return replace(definition, parameters=left, body=body, constraints=_asked_of(definition, solution))


def _asked_of(definition: Definition, types: Mapping[Any, Argument]) -> tuple[Constraint, ...]:
    """What is left to ask; R0308 where a type is not in the class that it has to be in."""
    asked: list[Constraint] = []
    for constraint in definition.constraints:
        if isinstance(constraint.value, Nat):
            asked.append(constraint)
        else:
            type_ = substitute_type(constraint.value, types)
            asker = Asked(constraint.asker, constraint.origin, constraint.notes)
            asked += membership(type_, constraint.wanted, asker)
    return tuple(asked)


def _without(body: Expr, known: set[str]) -> Expr:
    """The body without the explicit parameters that are known."""
    if not isinstance(body, DependentLambda):
        return body
    inner = _without(body.body, known)
    return inner if body.name in known else replace(body, body=inner)


def _given_type(value: Any) -> Data:
    if isinstance(value, Traced):
        return resolve_data(value.type_node, {})
    return value if isinstance(value, Scalar) else SCALARS[value]


def _variable_type(name: str, type_: Type, array: numpy.ndarray[Any, Any]) -> tuple[Variable, Data] | None:
    """What the type variable in `m.n.t` stands for, given an array: its element, or rows of these."""
    outer = 0
    while isinstance(type_, Array):
        type_, outer = type_.element, outer + 1
    if not isinstance(type_, Variable) or array.ndim < outer:
        return None
    element: Data = _scalar(name, array)
    for extent in reversed(array.shape[outer:]):
        element = Array(constant(extent), element)
    return type_, element


def _scalar(name: str, array: numpy.ndarray[Any, Any]) -> Scalar:
    """The scalar type that NumPy's type of elements is: of f32 and tf32, which are stored alike, f32."""
    for scalar in SCALARS.values():
        if scalar != TF32 and dtype_of(scalar) == array.dtype:
            return scalar
    message = f"`{name}` has elements of NumPy's type {array.dtype}, which programs do not have"
    raise EvaluationError("R0502", message, hint=f"`{name}.astype('float32')` converts it")
