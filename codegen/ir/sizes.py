"""Sizes and indices as C expressions: trees with C's operator precedence, and their text."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from rise.errors import TranslationError
from rise.frozen import filled_at_once
from rise.nat import Atom, Coefficient, Monomial, Nat, NatVariable, Operation


@filled_at_once
@dataclass(frozen=True, slots=True)
class Name:
    """A variable, or a register such as `threadIdx.x`. `cast` is the type to which it is first converted."""

    name: str
    cast: str = ""


@filled_at_once
@dataclass(frozen=True, slots=True)
class Literal:
    value: int


@filled_at_once
@dataclass(frozen=True, slots=True)
class Binary:
    """An operator `+ - * / %`, or the function `min` or `max`."""

    operator: str
    left: Tree
    right: Tree


@filled_at_once
@dataclass(frozen=True, slots=True)
class Negative:
    inner: Tree


@filled_at_once
@dataclass(frozen=True, slots=True)
class Grouped:
    """A parenthesised expression."""

    inner: Tree


Tree = Name | Literal | Binary | Negative | Grouped


def nat_text(value: Nat) -> str:
    """A size as a C expression: terms with the largest strides first, subtracted ones last."""
    return spelled(tree(value))


def spelled(expression: Tree) -> str:
    match expression:
        case Name(name, cast):
            return f"({cast}){name}" if cast else name
        case Literal(value):
            return str(value)
        case Binary("min" | "max" as name, left, right):
            return f"{name}({spelled(left)}, {spelled(right)})"
        case Binary(operator, left, right):
            return f"{spelled(left)} {operator} {spelled(right)}"
        case Negative(inner):
            return f"-{spelled(inner)}"
        case Grouped(inner):
            return f"({spelled(inner)})"


@lru_cache(maxsize=1 << 14)
def tree(value: Nat) -> Tree:
    if not value.is_whole:  # only the sum of its fractions is whole
        above, below = value.fraction
        return Binary("/", _grouped(above), _grouped(below))
    total: Tree | None = None
    for monomial, coefficient in sorted(value.terms, key=_order):
        part = _monomial(monomial, abs(int(coefficient)))
        if total is None:
            total = Negative(part) if coefficient < 0 else part
        else:
            total = Binary("-" if coefficient < 0 else "+", total, part)
    return total or Literal(0)


def _order(term: tuple[Monomial, Coefficient]) -> tuple[bool, bool, int, Fraction]:
    monomial, coefficient = term
    degree = sum(exponent for _, exponent in monomial)
    return coefficient < 0, not monomial, -degree, -abs(Fraction(coefficient))


def _monomial(monomial: Monomial, size: int) -> Tree:
    match monomial:
        case ():
            return Literal(size)
        case ((base, 1),) if size == 1:
            return _atom(base)
    factors = [_factor(a) for a, e in monomial for _ in range(e)]
    product = factors[0]
    for factor in [*factors[1:], *([] if size == 1 else [Literal(size)])]:
        product = Binary("*", product, factor)
    return product


def _factor(base: Atom) -> Tree:
    made = _atom(base)
    divides = isinstance(base, Operation) and base.operator in ("quotient", "remainder")
    return Grouped(made) if divides else made


def _atom(base_: Atom) -> Tree:
    match base_:
        case NatVariable(name):
            return Name(name)
        case Operation("quotient", left, right):
            return Binary("/", _grouped(left), _grouped(right))
        case Operation("remainder", left, right):
            return Binary("%", _grouped(left), _grouped(right))
        case Operation("min" | "max" as name, left, right):
            if left.value is not None:  # the bounded value precedes the bound
                left, right = right, left
            return Binary(name, tree(left), tree(right))
        case _:
            raise TranslationError("R0713", f"the size {base_} cannot be computed in a kernel")


def _grouped(value: Nat) -> Tree:
    made = tree(value)
    return Grouped(made) if " " in spelled(made) else made
