"""Sizes as numbers: the oracle against which every simplification is tested."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from rise.nat.limits import check_power
from rise.nat.normal_form import Atom, Nat, NatVariable, Operation


def evaluate(value: Nat, sizes: Mapping[str, int]) -> Fraction:
    """The number for given variables; TooLarge where it has too many digits."""
    total = Fraction(0)
    for monomial, coefficient in value.terms:
        product = Fraction(coefficient)
        for base, exponent in monomial:
            product *= _raised(_evaluate_atom(base, sizes), exponent)
        total += product
    return total


def _raised(base: Fraction, exponent: int) -> Fraction:
    check_power(base, exponent)
    return base**exponent


def _evaluate_atom(base: Atom, sizes: Mapping[str, int]) -> Fraction:
    match base:
        case NatVariable(name):
            return Fraction(sizes[name])
        case Operation(operator, left, right):
            a, b = evaluate(left, sizes), evaluate(right, sizes)
            match operator:
                case "quotient":
                    return Fraction(a // b)
                case "remainder":
                    return a % b
                case "min":
                    return min(a, b)
                case "max":
                    return max(a, b)
                case _:
                    return _raised(a, int(b))
        case _:
            raise KeyError(str(base))
