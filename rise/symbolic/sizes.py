"""The sizes of programs: which there are, and small numbers for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from random import Random

from rise.constraint import Constraint
from rise.expr import Expr, Identifier, Lambda, Literal, Primitive, subterms
from rise.nat import Atom, Nat, NatUnknown, NatVariable, Operation, constant
from rise.types import Argument, FragmentKind, Function, Layout, NatFunction, Space, leaves

SMALL = (2, 3, 1, 4, 0, 6)
DRAWN = 3000  # assignments that are looked at


def sizes_of(left: Expr, right: Expr, asks: Sequence[Constraint] = ()) -> list[Atom]:
    """The unknown sizes of two programs and of what they ask for, in order of their names."""
    found = {atom for term in (left, right) for part in subterms(term) for atom in _of_term(part)}
    for ask in asks:
        found |= {atom for part in (ask.value, ask.divisor) if isinstance(part, Nat) for atom in part.atoms}
    return sorted((atom for atom in found if not isinstance(atom, Operation)), key=str)


def _of_term(term: Expr) -> Iterator[Atom]:
    match term:
        case Primitive(_, arguments):
            for argument in arguments:
                yield from _of_argument(argument)
        case Identifier(_, type_) | Literal(_, type_) | Lambda(Identifier(_, type_), _):
            yield from _of_argument(type_)  # type: ignore[arg-type]  # a function type has leaves, too


def _of_argument(argument: Argument | Function) -> Iterable[Atom]:
    match argument:
        case Nat():
            return argument.atoms
        case NatFunction(parameter, body):
            return body.atoms - {NatVariable(parameter)}
        case Layout(_, Nat() as amount):
            return amount.atoms
        case Space() | FragmentKind() | Layout():
            return ()
        case _:
            sizes = NatUnknown | NatVariable | Operation
            return [leaf for leaf in leaves(argument) if isinstance(leaf, sizes)]


def assignments(left: Expr, right: Expr, asks: Sequence[Constraint]) -> Iterator[dict[Atom, int]]:
    """Small numbers for all sizes, such that what is asked for holds; different ones first, each once."""
    atoms = sizes_of(left, right, asks)
    random, seen = Random(len(atoms)), set()
    rotated = (tuple(SMALL[(i + k) % 4] for i in range(len(atoms))) for k in range(4))
    every = product(SMALL[:4], repeat=len(atoms)) if len(atoms) <= 4 else iter(())
    drawn = (tuple(random.choice(SMALL) for _ in atoms) for _ in range(DRAWN))
    for source in (rotated, every, drawn):
        for numbers in source:
            sizes = dict(zip(atoms, numbers, strict=True))
            if numbers not in seen and all(holds(ask, sizes) for ask in asks):
                yield sizes
            seen.add(numbers)


def holds(ask: Constraint, sizes: Mapping[Atom, int]) -> bool:
    """Whether a constraint on sizes does; one on types is taken to."""
    if not isinstance(ask.value, Nat):
        return True
    solution = {atom: constant(number) for atom, number in sizes.items()}
    try:
        value = ask.value.substitute(solution).value
        below = None if ask.divisor is None else ask.divisor.substitute(solution).value
    except (ZeroDivisionError, ValueError):
        return False
    if value is None or (ask.divisor is not None and not below):
        return False
    return value >= 0 if below is None else value % below == 0
