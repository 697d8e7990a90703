"""What the type variables of a scheme have to be, that a type of it is the type wanted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

from rise.nat import Nat, NatVariable, constant
from rise.types import Argument, Array, Fragment, Function, Index, Pair, Type, Variable, Vector

Solution = dict[Any, Any]  # by NatVariable or Variable: an argument of its kind
Equation = tuple[Nat, Nat]
LARGEST = 24  # of the sizes that are tried


def match(pattern: Type, actual: Type, known: Mapping[Any, Argument]) -> list[Solution]:
    """All extensions of what is known that make the pattern the actual type; sizes are numbers."""
    solution, equations = dict(known), list[Equation]()
    if not _structure(pattern, actual, solution, equations):
        return []
    found = [solution]
    for left, right in equations:
        found = [{**s, **new} for s in found for new in _sizes(left, right, s)]
    return found


def has_structure(pattern: Type, actual: Type) -> bool:
    """Whether sizes decide if the pattern can become the type."""
    return _structure(pattern, actual, {}, [])


def _structure(pattern: Any, actual: Any, solution: Solution, equations: list[Equation]) -> bool:
    """Solves variables for types and kinds; equations between sizes are left."""
    match pattern:
        case Nat():
            equations.append((pattern, actual))
            return True
        case Variable():
            return bool(solution.setdefault(pattern, actual) == actual)
        case Array() | Vector() | Index() | Pair() | Fragment() | Function():
            return type(pattern) is type(actual) and all(
                _structure(getattr(pattern, name), getattr(actual, name), solution, equations)
                for name in type(pattern).__match_args__
            )
        case _:
            return bool(pattern == actual)


def _sizes(pattern: Nat, actual: Nat, solution: Solution) -> tuple[Solution, ...]:
    known = tuple((a, solution[a].value) for a in variables(pattern) if a in solution)
    return _solved(pattern, actual.value or 0, known)


@lru_cache(maxsize=4096)
def _solved(pattern: Nat, wanted: int, known: tuple[tuple[NatVariable, int], ...]) -> tuple[Solution, ...]:
    """Numbers for the variables of a sum of monomials that make it the number wanted."""
    given = dict(known)
    free = [a for a in variables(pattern) if a not in given]
    found: list[Solution] = []
    for numbers in product(range(min(wanted, LARGEST) + 1), repeat=len(free)):
        values = {**given, **dict(zip(free, numbers, strict=True))}
        if number(pattern, values) == wanted:
            found.append({a: constant(values[a]) for a in free})
    return tuple(found)


def number(pattern: Nat, values: Mapping[Any, int]) -> int:
    """The value of a sum of monomials over variables."""
    return int(sum(c * prod(values[a] ** e for a, e in monomial) for monomial, c in pattern.terms))


@lru_cache(maxsize=1024)
def variables(pattern: Nat) -> tuple[NatVariable, ...]:
    """Its variables in an order that does not depend on the run."""
    return tuple(sorted((a for a in pattern.atoms if isinstance(a, NatVariable)), key=lambda a: a.name))


def solvable(pattern: Nat) -> bool:
    """A sum of monomials over variables only: no division, no function of sizes."""
    return all(isinstance(a, NatVariable) for a in pattern.atoms)
