"""A definition of which some sizes stay open: what a kernel is made from that is compiled once for many.

That 32 divides n is no fact beside the program but how n is written in it: as 32 * n_32. So nothing is
assumed that was not asked for, and no rule, strategy or pass has to know of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import gcd, lcm

from rise.check.specialise import check_constraint, check_names, instantiated, size_names
from rise.constraint import Constraint
from rise.errors import UsageError
from rise.expr import Definition, Expr, Lambda
from rise.nat import Atom, Nat, NatVariable, constant, variable
from rise.types import Array, Data, Pair, Scalar, Type, shape


@dataclass(frozen=True)
class RuntimeSize:
    """A size that is known when a kernel is launched: `unit` times the number that the kernel is given.

    name:   what the definition calls it
    number: the variable in the kernel; n_32 of n, if n is a multiple of 32
    """

    name: str
    number: str
    unit: int = 1

    @property
    def size(self) -> Nat:
        """In terms of the number."""
        return self.unit * variable(self.number)

    @property
    def quotient(self) -> Nat:
        """The number in terms of the size."""
        quotient = variable(self.name).exact_quotient(self.unit)
        return constant(0) if quotient is None else quotient


@dataclass(frozen=True)
class OpenProgram:
    """A program over the numbers of its run-time sizes, and what it asks of those, in its own terms."""

    program: Expr
    sizes: tuple[RuntimeSize, ...]
    constraints: tuple[Constraint, ...]


def opened(definition: Definition, sizes: Mapping[str, int], runtime: Mapping[str, int]) -> OpenProgram:
    """The function of the inputs, at the sizes that are given.

    runtime: the sizes that stay open, and what each is a multiple of
    Raises UsageError for a size that is missing, unknown or given twice, TypeMismatch where the definition
    asks something of the sizes given that does not hold.
    """
    names = size_names(definition)
    known = tuple(name for name in names if name not in runtime)
    check_names(definition, known, {**sizes, **runtime}, names)
    for name, unit in runtime.items():
        if name in sizes or not unit:
            wrong = "both given as a number and left open" if name in sizes else "no multiple of 0"
            raise UsageError("R0410", f"the size `{name}` is {wrong}")
    solution: dict[Atom, Nat] = {NatVariable(name): constant(sizes[name]) for name in known}
    left: list[Constraint] = []
    for constraint in definition.constraints:
        if _mentions(constraint, runtime):
            left.append(_substituted(constraint, solution))
        else:
            check_constraint(definition.name, constraint, sizes)
    made = tuple(_runtime_size(name, runtime[name], left, names) for name in names if name in runtime)
    numbers: dict[Atom, Nat] = {NatVariable(size.name): size.size for size in made}
    given = (Constraint(variable(size.name), constant(size.unit)) for size in made if size.unit > 1)
    return OpenProgram(
        instantiated(definition, solution | numbers), made, tuple(dict.fromkeys([*left, *given]))
    )


CHUNK = 16  # bytes that are moved at once


def units_of_whole_rows(program: OpenProgram) -> dict[str, int]:
    """What sizes are multiples of, by name, where rows of all matrices are whole chunks of 16 bytes.

    Then each row starts where vectors and bulk copies do. Rows count whose length is a multiple of one size.
    """
    units = {size.name: size.unit for size in program.sizes}
    body = program.program
    types: list[Type] = []
    while isinstance(body, Lambda):
        types.append(body.parameter.type)
        body = body.body
    for length, bytes_ in (row for type_ in (*types, body.type) for row in _rows(type_)):
        for size in program.sizes:
            if length == length.factor * variable(size.number):
                chunk = CHUNK // gcd(CHUNK, bytes_ * length.factor)
                units[size.name] = lcm(units[size.name], chunk * size.unit)
    return units


def _rows(type_: Type) -> Iterator[tuple[Nat, int]]:
    """The lengths of the rows of matrices, and the bytes of an element."""
    match type_:
        case Pair(first, second):
            yield from (*_rows(first), *_rows(second))
        case Array():
            sizes, element = shape(type_)
            if isinstance(element, Pair):
                yield from _rows(with_element(sizes, element.first))
                yield from _rows(with_element(sizes, element.second))
            elif len(sizes) > 1 and isinstance(element, Scalar):
                yield sizes[-1], element.bytes


def with_element(sizes: Iterable[Nat], element: Data) -> Data:
    """An array of the sizes, outermost first."""
    for size in reversed(tuple(sizes)):
        element = Array(size, element)
    return element


def _mentions(constraint: Constraint, names: Iterable[str]) -> bool:
    parts = (constraint.value, constraint.divisor)
    return any(isinstance(part, Nat) and not part.variables.isdisjoint(names) for part in parts)


def _substituted(constraint: Constraint, solution: Mapping[Atom, Nat]) -> Constraint:
    value, divisor = constraint.value, constraint.divisor
    return replace(
        constraint,
        value=value.substitute(solution) if isinstance(value, Nat) else value,
        divisor=None if divisor is None else divisor.substitute(solution),
    )


def _runtime_size(
    name: str, unit: int, constraints: Iterable[Constraint], taken: Iterable[str]
) -> RuntimeSize:
    """A multiple of all that the definition says divides it."""
    divisors = [c.divisor.value for c in constraints if c.divisor is not None and c.value == variable(name)]
    unit = lcm(unit, *(d for d in divisors if d))
    number = name if unit == 1 else f"{name}_{unit}"
    while unit > 1 and number in taken:
        number += "_"
    return RuntimeSize(name, number, unit)
