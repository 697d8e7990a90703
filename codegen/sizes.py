"""Sizes and indices as C expressions."""

from __future__ import annotations

from fractions import Fraction

from rise.errors import TranslationError
from rise.nat import Atom, Coefficient, Monomial, Nat, NatVariable, Operation


def nat_text(value: Nat) -> str:
    """A size as a C expression: what is subtracted last, of the others the largest steps first."""
    if not value.is_whole:  # its fractions are whole together, not each by itself
        above, below = value.fraction
        return f"{_grouped(above)} / {_grouped(below)}"
    text = ""
    for monomial, coefficient in sorted(value.terms, key=_order):
        part = _monomial(monomial, abs(int(coefficient)))
        sign = "-" if coefficient < 0 else "+"
        text += f" {sign} {part}" if text else (f"-{part}" if coefficient < 0 else part)
    return text or "0"


def _order(term: tuple[Monomial, Coefficient]) -> tuple[bool, bool, int, Fraction]:
    monomial, coefficient = term
    degree = sum(exponent for _, exponent in monomial)
    return coefficient < 0, not monomial, -degree, -abs(Fraction(coefficient))


def _monomial(monomial: Monomial, size: int) -> str:
    match monomial:
        case ((base, 1),) if size == 1:
            return _atom(base)
    factors = [_factor(a) for a, e in monomial for _ in range(e)]
    return " * ".join(factors if factors and size == 1 else [*factors, str(size)])


def _factor(base: Atom) -> str:
    text = _atom(base)
    return f"({text})" if isinstance(base, Operation) and base.operator in ("quotient", "remainder") else text


def _atom(base_: Atom) -> str:
    match base_:
        case NatVariable(name):
            return name
        case Operation("quotient", left, right):
            return f"{_grouped(left)} / {_grouped(right)}"
        case Operation("remainder", left, right):
            return f"{_grouped(left)} % {_grouped(right)}"
        case Operation("min" | "max" as name, left, right):
            if left.value is not None:  # what is bounded stands in front of the bound
                left, right = right, left
            return f"{name}({nat_text(left)}, {nat_text(right)})"
        case _:
            raise TranslationError("R0713", f"the size {base_} cannot be computed in a kernel")


def _grouped(value: Nat) -> str:
    text = nat_text(value)
    return f"({text})" if " " in text else text
