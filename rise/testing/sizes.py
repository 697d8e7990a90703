"""Numbers for the unknown sizes of a rule.

The search is complete: where numbers of the pool make every size what it has to be, some are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from rise.nat import Nat, NatUnknown, constant
from rise.testing.choose import Choose

POOL = (1, 2, 3, 4, 2, 3, 1, 5, 0, 2, 3, 6, 7)  # coprime ones, and equal ones by chance
MOST = 400  # scalars in a value, so that evaluation stays fast

Values = list[int]
Check = Callable[[Values], bool]


@dataclass(frozen=True, eq=False)
class Sizes:
    """What is asked of the unknown sizes of a rule.

    unknowns: the sizes to be found, then what stands for the elements of unknown types, by position
    open:     how many of them are to be found
    naturals: each has to be a natural number
    positive: each has to be a number above 0
    extents:  how many scalars there are in each value
    """

    unknowns: tuple[Any, ...]
    open: int
    naturals: tuple[Nat, ...]
    positive: tuple[Nat, ...]
    extents: tuple[Nat, ...]

    def found(
        self, choose: Choose, fixed: Mapping[NatUnknown, int], extents: Mapping[Any, int]
    ) -> dict[NatUnknown, Nat] | None:
        """Numbers for the unknown sizes; None where there are none. What is fixed may be large."""
        values = [fixed.get(u, extents.get(u, 1)) for u in self.unknowns]
        if len(fixed) < self.open:
            steps = _steps(self, choose.below(self.open))
            if not _search(steps, 0, values, choose, {self.unknowns.index(u) for u in fixed}):
                return None
        return {u: _numbers(values[i]) for i, u in enumerate(self.unknowns[: self.open])}


_numbers = cache(constant)


@dataclass(frozen=True)
class Step:
    """A number is chosen for the unknown at a position; the checks say whether it may be that one."""

    position: int
    checks: tuple[Check, ...]


def _search(steps: tuple[Step, ...], done: int, values: Values, choose: Choose, fixed: set[int]) -> bool:
    """Numbers for the variables left, from the pool in random order; 1 for those not yet chosen."""
    if done == len(steps):
        return True
    step = steps[done]
    pool = [values[step.position]] if step.position in fixed else [*POOL]
    while pool:
        number = values[step.position] = choose.pick(pool)
        if all(check(values) for check in step.checks) and _search(steps, done + 1, values, choose, fixed):
            return True
        pool = [n for n in pool if n != number]
    values[step.position] = 1
    return False


@cache
def _steps(sizes: Sizes, first: int) -> tuple[Step, ...]:
    """All unknown sizes, in turn from the first: so that each has its turn to be chosen freely."""
    order = [*range(first, sizes.open), *range(first)]
    checks: dict[int, list[Check]] = {position: [] for position in order}
    places = {unknown: position for position, unknown in enumerate(sizes.unknowns)}
    for needs, least, most in (
        (sizes.naturals, 0, None), (sizes.positive, 1, None), (sizes.extents, 1, MOST),
    ):  # fmt: skip
        for size in needs:
            held = [p for p in order if sizes.unknowns[p] in size.atoms]
            value = _valuation(size, places)
            for position in held[-1:]:
                checks[position].append(_within(value, least, most))
            if most is not None and _grows(size):
                for position in held[:-1]:
                    checks[position].append(_within(value, 1, most))
    return tuple(Step(position, tuple(checks[position])) for position in order)


def _within(value: Callable[[Values], int | None], least: int, most: int | None) -> Check:
    def check(values: Values) -> bool:
        number = value(values)
        return number is not None and number >= least and (most is None or number <= most)

    return check


def _valuation(size: Nat, places: Mapping[Any, int]) -> Callable[[Values], int | None]:
    """The size as a function of the values of its atoms; None where it is no whole number."""
    if not (size.is_whole and all(atom in places for atom in size.atoms)):
        held = [atom for atom in size.atoms if atom in places]
        return lambda values: size.substitute({atom: _numbers(values[places[atom]]) for atom in held}).value
    terms = [
        (int(coefficient), [places[atom] for atom, exponent in monomial for _ in range(exponent)])
        for monomial, coefficient in size.terms
    ]

    def value(values: Values) -> int:
        total = 0
        for product, factors in terms:
            for place in factors:
                product *= values[place]
            total += product
        return total

    return value


def _grows(size: Nat) -> bool:
    """Whether it is the larger the larger its atoms are, so that it is at least what it is at 1."""
    return size.is_whole and all(coefficient > 0 for _, coefficient in size.terms)


def largest(sizes: Iterable[Nat]) -> tuple[Nat, ...]:
    """Without those that another one exceeds in every term."""
    found = [*dict.fromkeys(sizes)]
    return tuple(s for s in found if not any(s is not other and _exceeds(other, s) for other in found))


def _exceeds(larger: Nat, smaller: Nat) -> bool:
    terms = dict(larger.terms)
    return all(0 < c <= terms.get(m, 0) for m, c in smaller.terms) and _grows(larger)
