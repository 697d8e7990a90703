"""Sizes that are known when a kernel is launched, and not before: which there are, and what they must be."""

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
# a loop goes on by as much as a block or a grid has workers, once beyond its end
LARGEST_COUNT = LARGEST_INT - 2**16


def sizes_of(term: Expr) -> frozenset[str]:
    """The variables among the sizes of a term that it does not bind itself."""
    bound = {part.name for part in subterms(term) if isinstance(part, DependentLambda)}
    return frozenset(name for size, _ in _sizes(term) for name in size.variables) - bound


def _sizes(term: Expr) -> Iterator[tuple[Nat, Expr]]:
    """Those that its primitives are given, and those of its inputs."""
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
    """The same with numbers that have names which C++ allows."""
    taken = {part.name for part in subterms(program.program) if isinstance(part, DependentLambda)} | RESERVED
    renamed: dict[str, str] = {}
    for size in program.sizes:
        renamed[size.number] = unused(of_user(size.number), {*taken, *renamed.values()})
    solution = {NatVariable(old): variable(new) for old, new in renamed.items() if old != new}
    sizes = tuple(replace(s, number=renamed[s.number]) for s in program.sizes)
    return OpenProgram(substitute_sizes(program.program, solution), sizes, program.constraints)


def in_units(program: OpenProgram, constraints: Sequence[Constraint]) -> OpenProgram:
    """The same with every size written as a multiple of all that divides it."""
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


# --- what has to hold ---------------------------------------------------------------------------------


def constraints_of(program: OpenProgram) -> list[Constraint]:
    """What a program asks of its sizes, in their terms: what the definition does, and each size in it."""
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
    """What the constraints say, and nothing more, in terms of the numbers."""
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
    """i32, or i64 where an array has more elements than that counts, or a size is a fraction of a product."""
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
    """How many elements the arrays in global memory have."""
    for buffer in (*function.outputs, *function.inputs):
        if isinstance(buffer.type, Array):
            yield buffer.name, prod(dimensions(buffer.type), start=constant(1))


def counts(function: i.Function, indices: Scalar) -> Iterator[tuple[str, Nat]]:
    """The numbers of elements and of iterations that a kernel's indices have to count, and of the values of
    indices in memory, which are of 32 bits."""
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
