"""Functions on sizes, evaluated at many indices at once."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from rise.interpret.instance import number
from rise.interpret.lazily import np
from rise.interpret.value import Numbers
from rise.nat import Atom, Nat, NatVariable, Operation, atom
from rise.types import NatFunction


def on_indices(function: NatFunction, indices: Numbers) -> Numbers:
    """The function at each of the indices, as i64. R0506 where another variable is left in it."""
    return _value(function.body, NatVariable(function.parameter), indices)


def _value(size: Nat, parameter: NatVariable, indices: Numbers) -> Numbers:
    """An exact quotient is a multiple by a fraction: all terms over one denominator, divided at last."""
    denominator = lcm(*(Fraction(c).denominator for _, c in size.terms))
    total = np.zeros(indices.shape, np.int64)
    for monomial, coefficient in size.terms:
        product = np.full(indices.shape, int(coefficient * denominator), np.int64)
        for base, exponent in monomial:
            product = product * _atom(base, parameter, indices) ** exponent
        total = total + product
    return total // denominator


def _atom(base: Atom, parameter: NatVariable, indices: Numbers) -> Numbers:
    if base == parameter:
        return indices
    if not isinstance(base, Operation):
        return np.int64(number(atom(base)))
    left, right = (_value(side, parameter, indices) for side in (base.left, base.right))
    match base.operator:
        case "quotient":
            return left // right
        case "remainder":
            return left % right
        case "min":
            return np.minimum(left, right)
        case "max":
            return np.maximum(left, right)
        case _:
            return left**right
