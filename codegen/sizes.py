"""Sizes and indices as C expressions."""

from __future__ import annotations

from fractions import Fraction

from rise.errors import TranslationError
from rise.nat import Atom, Nat, NatVariable, Operation


def nat_text(value: Nat) -> str:
    """A size as a C expression over int."""
    text = ""
    for monomial, coefficient in value.terms:
        fraction = Fraction(coefficient)
        part = _monomial(monomial, abs(fraction))
        sign = "-" if fraction < 0 else "+"
        text += f" {sign} {part}" if text else (f"-{part}" if fraction < 0 else part)
    return text or "0"


def _monomial(monomial: tuple[tuple[Atom, int], ...], size: Fraction) -> str:
    above = [_atom(a) for a, e in monomial for _ in range(e)]
    below = [_atom(a) for a, e in monomial for _ in range(-e)]
    if size.denominator != 1:
        below.append(str(size.denominator))
    if size.numerator != 1 or not above:
        above.append(str(size.numerator))
    text = " * ".join(above)
    return f"({text}) / ({' * '.join(below)})" if below else text


def _atom(base_: Atom) -> str:
    match base_:
        case NatVariable(name):
            return name
        case Operation("quotient", left, right):
            return f"({_grouped(left)} / {_grouped(right)})"
        case Operation("remainder", left, right):
            return f"({_grouped(left)} % {_grouped(right)})"
        case Operation("min" | "max" as name, left, right):
            return f"{name}({nat_text(left)}, {nat_text(right)})"
        case _:
            raise TranslationError("R0713", f"the size {base_} cannot be computed in a kernel")


def _grouped(value: Nat) -> str:
    text = nat_text(value)
    return f"({text})" if " " in text else text
