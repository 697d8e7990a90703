"""Sizes that are known only when a kernel is launched: which there are, and their constraints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import lcm, prod

from codegen.ir import imperative as i
from codegen.ir.buffers import dimensions, inner_element, members
from codegen.ir.identifiers import RESERVED, derived, of_user, shown
from rise.check.symbolic import OpenProgram, RuntimeSize
from rise.constraint import Constraint, divisibility, natural, strongest
from rise.errors import TranslationError
from rise.expr import DependentLambda, Expr, Lambda, Primitive, substitute_sizes, subterms
from rise.nat import Atom, Facts, Nat, NatVariable, constant, variable
from rise.types import I32, Array, Data, Index, Scalar, is_data

LARGEST_INT = 2**31 - 1
# a loop index advances by the number of workers of a block or grid, once beyond its end
LARGEST_COUNT = LARGEST_INT - 2**16


def sizes_of(term: Expr) -> frozenset[str]:
    """The free variables among the sizes of a term."""
    bound = {part.name for part in subterms(term) if isinstance(part, DependentLambda)}
    return frozenset(name for size, _ in _sizes(term) for name in size.variables) - bound


def _sizes(term: Expr) -> Iterator[tuple[Nat, Expr]]:
    """The sizes that its primitives are given, and those of its inputs."""
    for part in subterms(term):
        if isinstance(part, Primitive):
            yield from ((argument, part) for argument in part.arguments if isinstance(argument, Nat))
        elif isinstance(part, Lambda) and is_data(part.parameter.type):
            for _, type_ in members("", part.parameter.type):
                yield from ((size, part) for size in dimensions(type_))


def open_program(term: Expr) -> OpenProgram:
    """A term whose free sizes are known at launch."""
    return OpenProgram(term, tuple(RuntimeSize(n, n) for n in sorted(sizes_of(term))), ())


def named_for_c(program: OpenProgram) -> OpenProgram:
    """The same program, with names for its sizes that are legal in C++."""
    taken = {part.name for part in subterms(program.program) if isinstance(part, DependentLambda)} | RESERVED
    renamed: dict[str, str] = {}
    for size in program.sizes:
        renamed[size.number] = unused(of_user(size.number), {*taken, *renamed.values()})
    solution = {NatVariable(old): variable(new) for old, new in renamed.items() if old != new}
    sizes = tuple(replace(s, number=renamed[s.number]) for s in program.sizes)
    return OpenProgram(substitute_sizes(program.program, solution), sizes, program.constraints)


def in_units(program: OpenProgram, constraints: Sequence[Constraint]) -> OpenProgram:
    """The same program, with every size written as a multiple of all its divisors."""
    solution: dict[Atom, Nat] = {}
    sizes: list[RuntimeSize] = []
    taken = {size.number for size in program.sizes} | sizes_of(program.program)
    for size in program.sizes:
        divisors = [
            c.divisor for c in constraints if c.divisor is not None and c.value == variable(size.name)
        ]
        unit = lcm(size.unit, *(d.value for d in divisors if d.value))
        new = size
        if unit != size.unit:
            new = RuntimeSize(size.name, unused(derived(of_user(size.name), unit), taken), unit)
            solution[NatVariable(size.number)] = unit // size.unit * variable(new.number)
        sizes.append(new)
    return OpenProgram(substitute_sizes(program.program, solution), tuple(sizes), program.constraints)


def unused(name: str, taken: Collection[str]) -> str:
    number, found = 0, name
    while found in taken:
        number += 1
        found = derived(name, number)
    return found


# --- constraints --------------------------------------------------------------------------------------


def constraints_of(program: OpenProgram) -> list[Constraint]:
    """What a program requires of its sizes: the definition's constraints, and those of each size in it."""
    if not program.sizes:
        return []
    back: dict[Atom, Nat] = {NatVariable(s.number): s.quotient for s in program.sizes}
    own = sizes_of(program.program)
    asked: list[Constraint] = []
    for size, part in dict.fromkeys(_sizes(program.program)):
        for constraint in natural(size):
            if not _variables(constraint) <= own:
                raise TranslationError(
                    "R0728", f"the size {size} needs {constraint}, which is not certain", part.origin
                )
            asked.append(replace(_in(constraint, back), origin=part.origin, asker="the kernel"))
    return strongest([*program.constraints, *asked])


def _in(constraint: Constraint, terms: Mapping[Atom, Nat]) -> Constraint:
    value, divisor = constraint.value, constraint.divisor
    return replace(
        constraint,
        value=value.substitute(terms) if isinstance(value, Nat) else value,
        divisor=None if divisor is None else divisor.substitute(terms),
    )


def _variables(constraint: Constraint) -> frozenset[str]:
    parts = (constraint.value, constraint.divisor)
    return frozenset[str]().union(*(part.variables for part in parts if isinstance(part, Nat)))


def facts_of(sizes: Sequence[RuntimeSize], constraints: Sequence[Constraint]) -> Facts:
    """What the constraints imply, in terms of the sizes that the kernel takes."""
    numbers: dict[Atom, Nat] = {NatVariable(s.name): s.size for s in sizes}
    divisible: set[tuple[Nat, Nat]] = set()
    for constraint in constraints:
        value, divisor = constraint.value, constraint.divisor
        if isinstance(value, Nat) and divisor is not None:
            for left in divisibility(value.substitute(numbers), divisor.substitute(numbers)):
                divisible.add((left.divisor, left.value))  # type: ignore[arg-type]  # both are sizes
    return Facts(divisible=frozenset(divisible))


# --- the type of indices --------------------------------------------------------------------------------


def index_type(function: i.Function) -> Scalar:
    """i32; i64 if that cannot count an array's elements, or if a size is a fraction of a product."""
    fractions = False

    def see(size: Nat) -> Nat:
        nonlocal fractions
        fractions = fractions or not size.is_whole
        return size

    i.rebuild(function.body, Nat, see)
    for type_ in _types(function):
        for size in dimensions(type_):
            see(size)
    known = (total.value for _, total in totals(function) if total.value is not None)
    return Scalar("i64" if fractions or any(value > LARGEST_INT for value in known) else "i32")


def _types(function: i.Function) -> Iterator[Data]:
    yield from (v.type for v in (*function.outputs, *function.inputs))
    yield from (c.type for c in i.commands(function.body) if isinstance(c, i.New))


def totals(function: i.Function) -> Iterator[tuple[str, Nat]]:
    """The numbers of elements of the arrays in global memory."""
    for buffer in (*function.outputs, *function.inputs):
        if isinstance(buffer.type, Array):
            yield buffer.name, prod(dimensions(buffer.type), start=constant(1))


def counts(function: i.Function, indices: Scalar) -> Iterator[tuple[str, Nat]]:
    """The counts that a kernel's indices must be able to represent (elements and iterations), and the values
    of indices stored in memory, which have 32 bits."""
    for type_ in _types(function):
        element = inner_element(type_)
        if isinstance(element, Index):
            yield "indices up to {} are stored", element.size
    if indices != I32:
        return
    yield from ((f"`{shown(name)}` has {{}} elements", total) for name, total in totals(function))
    for command in i.commands(function.body):
        if isinstance(command, i.For | i.ParallelFor):
            yield "a loop has {} iterations", command.count
