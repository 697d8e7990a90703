"""Sizes with variables, drawn."""

from __future__ import annotations

import z3

from rise.nat import (
    Nat,
    NatUnknown,
    NatVariable,
    Operation,
)


def symbolic(value: Nat) -> z3.ArithRef:
    """The normal form as a term; fractional coefficients do not occur here."""
    total: z3.ArithRef = z3.IntVal(0)
    for monomial, coefficient in value.terms:
        assert isinstance(coefficient, int)
        part: z3.ArithRef = z3.IntVal(coefficient)
        for base, exponent in monomial:
            assert exponent > 0
            for _ in range(exponent):
                part = part * symbolic_atom(base)
        total = total + part
    return total


def symbolic_atom(base: NatVariable | NatUnknown | Operation) -> z3.ArithRef:
    if isinstance(base, NatVariable):
        return z3.Int(base.name)
    assert isinstance(base, Operation)
    a, b = symbolic(base.left), symbolic(base.right)
    match base.operator:
        case "quotient":
            return a / b
        case "remainder":
            return a % b
        case "min":
            return z3.If(a <= b, a, b)
        case _:
            return z3.If(a >= b, a, b)
