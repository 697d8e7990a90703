"""What is known about variables, and what follows: bounds, comparisons, divisibility."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from rise.frozen import Remembers, filled_at_once, hashed_once
from rise.nat.normal_form import (
    Atom,
    Coefficient,
    Monomial,
    Nat,
    NatLike,
    NatVariable,
    Operation,
    atom,
    constant,
    nat,
    raised,
)

# how many results of each function are kept: passes ask the same of the same indices, kernel after kernel
KEPT = 1 << 13


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class Facts(Remembers):
    """What may be assumed: ranges `lower <= v < upper` of variables, and divisibilities `d | n`.

    nonzero: atoms that are at least 1. Others may be 0, as sizes may.
    """

    ranges: Mapping[str, tuple[Nat, Nat]] = field(default_factory=dict)
    divisible: frozenset[tuple[Nat, Nat]] = frozenset()
    nonzero: frozenset[Atom] = frozenset()

    def __hash__(self) -> int:
        return hash((frozenset(self.ranges.items()), self.divisible, self.nonzero))

    def with_range(self, name: str, lower: NatLike, upper: NatLike) -> Facts:
        """With a range, which is not empty: where it starts at 0 or above, its end is at least 1."""
        return _with_range(self, name, nat(lower), nat(upper))

    def with_ranges(self, ranges: Iterable[tuple[str, NatLike, NatLike]]) -> Facts:
        """With several, none of which is empty."""
        known, nonzero = dict(self.ranges), set(self.nonzero)
        for name, lower, upper in ranges:
            start, end = nat(lower), nat(upper)
            known[name] = start, end
            if start.value is not None and start.value >= 0:
                nonzero |= _factors(end)
        return Facts(known, self.divisible, frozenset(nonzero))

    def with_divisor(self, divisor: Nat) -> Facts:
        """A divisor is at least 1."""
        factors = _factors(divisor) - self.nonzero
        return replace(self, nonzero=self.nonzero | factors) if factors else self


@lru_cache(maxsize=KEPT)
def _with_range(facts: Facts, name: str, lower: Nat, upper: Nat) -> Facts:
    return facts.with_ranges([(name, lower, upper)])


def _factors(positive: Nat) -> set[Atom]:
    """The atoms that are at least 1 where a product is."""
    if len(positive.terms) != 1:
        return set()
    [(monomial, _)] = positive.terms
    if len(monomial) > 1 and any(isinstance(base, Operation) for base, _ in monomial):
        return set()  # two of them may be negative
    return {base for base, _ in monomial}


NOTHING = Facts()


def _extreme(value: Nat, facts: Facts, largest: bool) -> Nat | None:
    """A bound of value in which no ranged variable is left; None where none is found."""
    if not facts.ranges and not value.has_operations:
        return value
    return _bound(value, facts, largest)


@lru_cache(maxsize=KEPT)
def _bound(value: Nat, facts: Facts, largest: bool) -> Nat | None:
    for _ in range(64):
        total, changed = constant(0), False
        for monomial, coefficient in value.terms:
            bounded = _bound_monomial(monomial, facts, largest == (coefficient > 0))
            if bounded is None:
                return None
            total = total + bounded[0].scaled(coefficient)
            changed = changed or bounded[1]
        if not changed:
            return total
        value = total
    return None


def _bound_monomial(monomial: Monomial, facts: Facts, largest: bool) -> tuple[Nat, bool] | None:
    """The product of the bounds, which bounds the product where no factor is negative."""
    product, changed = constant(1), False
    for base, exponent in monomial:
        bound = _bound_atom(base, facts, largest)
        if bound is None or (exponent < 0 and bound != atom(base)):
            return None
        if monomial != ((base, 1),) and not _is_natural(base, facts):
            return None
        changed = changed or bound != atom(base)
        product = product * (raised(bound, exponent) if exponent > 0 else Nat.build({((base, exponent),): 1}))
    return product, changed


def _is_natural(base: Atom, facts: Facts) -> bool:
    lowest = _bound_atom(base, facts, largest=False)
    return lowest is not None and at_least(lowest, 0, facts)


def _bound_atom(base: Atom, facts: Facts, largest: bool) -> Nat | None:
    match base:
        case NatVariable(name) if name in facts.ranges:
            lower, upper = facts.ranges[name]
            return upper - 1 if largest else lower
        case Operation():
            return _largest(base, facts) if largest else _smallest(base, facts)
        case _:
            return atom(base)


def _number(value: Nat, facts: Facts, largest: bool) -> int | None:
    bound = _extreme(value, facts, largest)
    return None if bound is None else bound.value


def _largest(operation: Operation, facts: Facts) -> Nat | None:
    left, right = operation.left, operation.right
    match operation.operator:
        case "remainder":
            above = _number(left, facts, True) if right.value else None
            if above is None or not right.value or not at_least(left, 0, facts):
                return right - 1
            return constant(min(above, right.value - 1))
        case "quotient":
            above = _number(left, facts, True) if right.value else None
            return constant(above // right.value) if above is not None and right.value else None
        case "min":
            numbers = [x for x in (_number(side, facts, True) for side in (left, right)) if x is not None]
            return constant(min(numbers)) if numbers else _extreme(left, facts, True)
        case "max":
            a, b = (_number(side, facts, True) for side in (left, right))
            return None if a is None or b is None else constant(max(a, b))
        case _:
            return None


def _smallest(operation: Operation, facts: Facts) -> Nat | None:
    """A number, where one is known; else 0 for what is certainly a natural number."""
    left, right = operation.left, operation.right
    match operation.operator:
        case "remainder":
            return constant(0)
        case "quotient":
            lowest = _number(left, facts, False) if right.value else None
            if lowest is not None and right.value:
                return constant(lowest // right.value)
        case "min" | "max" as operator:
            numbers = [x for x in (_number(side, facts, False) for side in (left, right)) if x is not None]
            if len(numbers) == 2 or (numbers and operator == "max"):
                return constant(min(numbers) if operator == "min" else max(numbers))
            natural = (at_least(side, 0, facts) for side in (left, right))
            return constant(0) if (all if operator == "min" else any)(natural) else None
        case _:
            if at_least(left, 1, facts):
                return constant(1)
    return constant(0) if at_least(left, 0, facts) else None


def upper_bound(value: Nat, facts: Facts) -> Nat | None:
    """The largest value under the facts, inclusive."""
    return _extreme(value, facts, True)


def lower_bound(value: Nat, facts: Facts) -> Nat | None:
    """The smallest value under the facts."""
    return _extreme(value, facts, False)


def at_least(value: Nat, bound: NatLike, facts: Facts = NOTHING) -> bool:
    """Whether value >= bound is certain, whatever natural numbers the sizes are."""
    lowest = lower_bound(value - bound, facts)
    if lowest is None:
        return False
    # of a sum of products without a minus, those are at least 1 of which no factor is 0
    least = sum(c for m, c in lowest.terms if all(e > 0 and a in facts.nonzero for a, e in m))
    return least >= 0 and all(c > 0 for m, c in lowest.terms if m)


def less_than(value: Nat, bound: NatLike, facts: Facts = NOTHING) -> bool:
    """Whether value < bound is certain."""
    return at_least(nat(bound) - 1, value, facts) if not facts.ranges else below(value, nat(bound), facts)


def below(value: Nat, bound: Nat, facts: Facts) -> bool:
    highest = upper_bound(value, facts)
    return highest is not None and at_least(bound - 1 - highest, 0, facts)


def divides(divisor: NatLike, value: NatLike, facts: Facts = NOTHING) -> bool:
    """Whether divisor | value is certain."""
    below, above = nat(divisor), nat(value)
    if (below, above) in facts.divisible:
        return True
    if above.value is not None and below.value:
        return above.value % below.value == 0
    quotient = above.exact_quotient(below)
    if quotient is None:
        return False
    return all(term_is_whole(m, c, facts) for m, c in quotient.terms)


def term_is_whole(monomial: Monomial, coefficient: Coefficient, facts: Facts) -> bool:
    term = Nat.build({monomial: coefficient})
    if term.is_whole:
        return True
    for below, above in facts.divisible:
        known = above.exact_quotient(below)
        rest = term.exact_quotient(known) if known is not None and known.terms else None
        if rest is not None and rest.is_whole:
            return True
    return False
