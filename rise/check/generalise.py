"""What inference found, put into a definition: unknowns that are left become its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from rise.check.obligations import Asked, membership
from rise.check.unify import Unifier
from rise.expr import (
    Definition,
    DependentApply,
    DependentLambda,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    Reference,
    children,
    map_types,
    subterms,
    with_children,
)
from rise.nat import Nat, NatUnknown, variable
from rise.numbers import literal
from rise.syntax import surface as s
from rise.types import (
    Argument,
    Kind,
    Layout,
    NatFunction,
    Parameter,
    Scalar,
    Type,
    Unknown,
    Variable,
    Vector,
    as_data,
    leaves,
)


def generalise(
    name: str,
    body: Expr,
    leading: tuple[Parameter, ...],
    unifier: Unifier,
    syntax: s.DefinitionSyntax,
) -> Definition:
    """Fills in what was inferred; unknowns that are left become implicit parameters."""
    unifier.finish()
    body = fill(body, unifier)
    added = parameters_for(body, {p.name for p in leading}, unifier)
    if added:
        body = fill(body, unifier)
    unifier.constraints = unifier.checked_constraints()
    check_elements(body)
    return Definition(name, leading + added, body, tuple(unifier.constraints), syntax.name_span)


def fill(body: Expr, unifier: Unifier) -> Expr:
    """Replaces unknowns by what they were found to be, and gives literals the value of their type."""
    return _convert_literals(map_types(body, unifier.resolve, unifier.resolve_argument))


def _convert_literals(body: Expr) -> Expr:
    if isinstance(body, Literal):
        element = body.type.element if isinstance(body.type, Vector) else body.type
        if isinstance(element, Scalar) and element.is_float:
            return Literal(literal(body.value, element), body.type, body.origin)
        return body
    return with_children(body, tuple(_convert_literals(c) for c in children(body)))


def parameters_for(body: Expr, taken: set[str], unifier: Unifier) -> tuple[Parameter, ...]:
    """Solves every unknown that is left by a new rigid variable; returns them as parameters."""
    taken = taken | _rigid_names(body)
    parameters: list[Parameter] = []
    for unknown in _unknowns(body):
        if unknown in unifier.solution:
            continue
        sizes = isinstance(unknown, NatUnknown)
        name = _new_name("n" if sizes else "t", taken)
        taken.add(name)
        value: Argument = variable(name) if sizes else Variable(name)
        unifier.solution[unknown] = value
        kind = Kind.NAT if sizes else Kind.DATA
        if isinstance(unknown, Unknown) and unknown not in unifier.data_only:
            kind = Kind.FRAGMENT if _is_fragment_kind(body, unknown) else Kind.DATA
        parameters.append(Parameter(name, kind, True))
    return tuple(parameters)


def _is_fragment_kind(body: Expr, unknown: Unknown) -> bool:
    for term in subterms(body):
        if isinstance(term, Primitive):
            for parameter, argument in zip(term.declaration.scheme.parameters, term.arguments, strict=True):
                if argument == unknown and parameter.kind is Kind.FRAGMENT:
                    return True
    return False


def _new_name(stem: str, taken: set[str]) -> str:
    number = 0
    while (name := f"{stem}{number or ''}") in taken:
        number += 1
    return name


def _types(body: Expr) -> Iterator[Argument | Type]:
    """The type of the whole, then what the types of all its parts are made of."""
    yield body.type
    for term in subterms(body):
        match term:
            case Primitive(_, given) | Reference(_, given):
                yield from given
            case DependentApply(_, argument):
                yield argument
            case Lambda(parameter):
                yield parameter.type
            case Identifier() | Literal():
                yield term.type


def _unknowns(body: Expr) -> Iterator[NatUnknown | Unknown]:
    seen: set[NatUnknown | Unknown] = set()
    for type_ in _types(body):
        for leaf in _leaves(type_):
            if isinstance(leaf, NatUnknown | Unknown) and leaf not in seen:
                seen.add(leaf)
                yield leaf


def _leaves(part: Argument | Type) -> Iterable[object]:
    if isinstance(part, Nat):
        return part.atoms
    # address spaces, layouts and functions on sizes are written, not inferred
    return () if isinstance(part, Enum | Layout | NatFunction) else leaves(part)


def _rigid_names(body: Expr) -> set[str]:
    return {t.name for t in subterms(body) if isinstance(t, DependentLambda)}


def check_elements(body: Expr) -> None:
    """Raises R0308 where arithmetic is not on numbers: of two arrays, `map` says how it is meant."""
    for term in subterms(body):
        if isinstance(term, Primitive) and term.declaration.elementwise:
            for argument in term.arguments:
                asked = Asked(f"`{term.declaration.infix or term.name}`", term.origin)
                list(membership(as_data(argument), term.declaration.operands, asked))
