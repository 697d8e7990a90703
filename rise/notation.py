"""Types, sizes and dependent arguments as programs write them: what is printed parses back."""

from __future__ import annotations

from collections.abc import Iterable

from rise.nat import Nat
from rise.types import (
    Argument,
    Array,
    Composite,
    Dependent,
    Fragment,
    Function,
    Index,
    NatFunction,
    Pair,
    Parameter,
    Scheme,
    Type,
    Vector,
    is_data,
    shortened,
)


def show_type(type_: Type) -> str:
    """A type as it is written, `m.n.f32` for arrays; of one that is too large, the outer levels."""
    match shortened(type_):
        case Array(size, element):
            return f"{_factor(size)}.{show_type(element)}"
        case Pair(first, second):
            return f"({show_type(first)}, {show_type(second)})"
        case Index(size):
            return f"Idx[{show_nat(size)}]"
        case Vector(size, element):
            return f"Vec[{show_nat(size)}, {show_type(element)}]"
        case Fragment(rows, columns, other, element, kind):
            sizes = ", ".join(show_nat(n) for n in (rows, columns, other))
            return f"Fragment[{sizes}, {show_type(element)}, {kind}]"
        case Function(parameter, result):
            left = show_type(parameter)
            return f"{left if is_data(parameter) else f'({left})'} -> {show_type(result)}"
        case Dependent() as dependent:
            return _dependent_type(dependent)
        case other:
            return str(other)


def _dependent_type(type_: Dependent) -> str:
    """Neighbouring parameters of one sort share their parentheses."""
    parameters: list[Parameter] = []
    rest: Type = type_
    while isinstance(rest, Dependent) and rest.implicit == type_.implicit:
        parameters.append(Parameter(rest.name, rest.kind, rest.implicit))
        rest = rest.result
    return f"{_binders(parameters)}{show_type(rest)}"


def show_scheme(scheme: Scheme) -> str:
    """The type behind its dependent parameters."""
    return "".join(_binders(run) for run in _sorts(scheme.parameters)) + show_type(scheme.type)


def _sorts(parameters: Iterable[Parameter]) -> list[list[Parameter]]:
    """Neighbouring implicit, and neighbouring explicit, parameters together."""
    runs: list[list[Parameter]] = []
    for parameter in parameters:
        if runs and runs[-1][-1].implicit == parameter.implicit:
            runs[-1].append(parameter)
        else:
            runs.append([parameter])
    return runs


def _binders(parameters: list[Parameter]) -> str:
    inside = ", ".join(f"{p.name}: {p.kind.value}" for p in parameters)
    return f"{{{inside}}} -> " if parameters[0].implicit else f"({inside}) -> "


def show_nat(size: Nat) -> str:
    """A size as it is written: no minus in front, for `0 - i` is hard to read."""
    if not size.terms:
        return "0"
    positive = [term for term in size.terms if term[1] > 0]
    first = positive[0] if positive else None
    text = str(Nat((first,))) if first else "0"
    for term in size.terms:
        if term is not first:
            sign = "+" if term[1] > 0 else "-"
            text += f" {sign} {Nat((term,)) * (1 if term[1] > 0 else -1)}"
    return text


def _factor(size: Nat) -> str:
    text = show_nat(size)
    return text if text.isalnum() or text.isidentifier() else f"({text})"


def show_argument(argument: Argument) -> str:
    """A dependent argument as it is written in an application."""
    match shortened(argument) if isinstance(argument, Composite) else argument:
        case Nat() as size:
            return show_nat(size)
        case NatFunction(parameter, body):
            return f"natFun({parameter} => {show_nat(body)})"
        case Array(size, element):
            return f"Array[{show_nat(size)}, {show_argument(element)}]"
        case Pair(first, second):
            return f"({show_argument(first)}, {show_argument(second)})"
        case Index() | Vector() | Fragment() as data:
            return show_type(data)
        case other:
            return str(other)
