"""Sizes that are open until launch: the numbers that a model ranks candidates at, in their place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rise.check.symbolic import RuntimeSize
from rise.expr import Expr, Lambda, Primitive, substitute_sizes, subterms
from rise.nat import Atom, Nat, NatVariable, constant
from rise.types import Array, Index, Pair, Vector

EXPECTED = 2048  # elements, of a size of which nothing is said


@dataclass(frozen=True)
class Expected:
    """How large the open sizes of a program are, about.

    numbers: for the variable of each, what it is expected to be
    names:   what the program's definition calls these sizes, and what each is a multiple of
    """

    numbers: tuple[tuple[str, int], ...] = ()
    names: tuple[tuple[str, tuple[str, int]], ...] = ()

    @classmethod
    def of(cls, sizes: Iterable[RuntimeSize], expected: Mapping[str, int]) -> Expected:
        """Of sizes in elements, by the names of the definition; EXPECTED where nothing is said."""
        given = list(sizes)
        numbers = ((s.number, expected.get(s.name, EXPECTED) // s.unit) for s in given)
        return cls(tuple(numbers), tuple((s.number, (s.name, s.unit)) for s in given))

    def at(self, program: Expr) -> Expr:
        """The program at sizes that are about as large: odd multiples of what is known to divide them.

        So that a model does not count on what holds for the expected size and not for others near it.
        """
        solution: dict[Atom, Nat] = {NatVariable(n): constant(v) for n, v in self._odd(program).items()}
        return substitute_sizes(program, solution) if solution else program

    def said(self, program: Expr) -> str:
        """What is assumed of a program: ` for m = 2047`; nothing where all sizes are known."""
        names = dict(self.names)
        sizes = ((names.get(n, (n, 1)), v) for n, v in self._odd(program).items())
        text = ", ".join(f"{name} = {unit * number}" for (name, unit), number in sizes)
        return f" for {text}" if text else ""

    def _odd(self, program: Expr) -> dict[str, int]:
        known = dict(self.numbers)
        return {name: max(1, (known.get(name, EXPECTED) - 1) | 1) for name in sorted(open_sizes(program))}


def open_sizes(program: Expr) -> frozenset[str]:
    """The variables in the sizes of a closed program: of its inputs, and of what its primitives are given."""
    found: set[str] = set()
    for part in subterms(program):
        if isinstance(part, Lambda):
            found |= _variables(part.parameter.type)
        elif isinstance(part, Primitive):
            found |= {name for n in part.arguments if isinstance(n, Nat) for name in n.variables}
    return frozenset(found)


def _variables(type_: object) -> frozenset[str]:
    match type_:
        case Array(size, element) | Vector(size, element):
            return size.variables | _variables(element)
        case Pair(first, second):
            return _variables(first) | _variables(second)
        case Index(size):
            return size.variables
        case _:
            return frozenset()
