"""Sizes and indices as terms of z3, and the facts that define what is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from math import prod
from typing import Any

from rise.errors import UsageError
from rise.nat import Atom, Nat, NatVariable, Operation
from rise.symbolic.values import Condition, Sequence, Unmodelled, Whole
from rise.symbolic.worlds import Bound
from rise.types import Argument, NatFunction


def solver_library() -> Any:
    """z3. UsageError R0517 where it is not installed."""
    try:
        import z3
    except ImportError:
        hint = "install it: pip install 'rise-lang[proofs]'"
        raise UsageError("R0517", "proofs need z3, which is not installed", hint=hint) from None
    return z3


class Unknowns:
    """Sizes and indices are integers that nothing is known of but the facts.

    facts: what defines a quotient, bounds an index, or holds since each size of a program is a natural number
    permutations: those that programs use, with their inverses and how many they permute
    quotients: by the name of the integer that is one: that, its dividend and its divisor
    """

    writes_out_loops = False

    def __init__(self) -> None:
        self.z3 = solver_library()
        # of its own, so that no proof depends on those before it
        self.terms = self.z3.Context()
        self.facts: list[Condition] = []
        self.permutations: list[tuple[Argument, Argument, Whole]] = []
        self.quotients: dict[str, tuple[Whole, Whole, Whole]] = {}
        self._made: dict[Any, Any] = {}
        self._names: dict[int, tuple[Any, frozenset[str]]] = {}
        self._number = count()

    def name(self, stem: str) -> str:
        return f"{stem}!{next(self._number)}"

    def fresh(self, stem: str) -> Whole:
        return self.integer(self.name(stem))

    def integer(self, name: str) -> Whole:
        return self.z3.Int(name, self.terms)

    def number(self, value: int) -> Whole:
        """A number as a term."""
        return self.z3.IntVal(value, self.terms)

    def function(self, name: str, arity: int = 1, truth: bool = False) -> Any:
        """An unknown function of integers."""
        whole = self.z3.IntSort(self.terms)
        return self.z3.Function(name, *[whole] * arity, self.z3.BoolSort(self.terms) if truth else whole)

    def size(self, size: Nat, bound: Bound = {}) -> Whole:  # noqa: B006  # never changed
        dividend, divisor = size.fraction
        above, below = self._polynomial(dividend, bound), self._polynomial(divisor, bound)
        if isinstance(below, int) and below == 1:
            return above
        key = ("exact", str(above), str(below))
        if key not in self._made:
            exact = self.fresh("exact")
            self.facts += [below > 0, exact * below == above, exact >= 0]
            self._made[key] = exact
        return self._made[key]

    def _polynomial(self, size: Nat, bound: Bound) -> Whole:
        total: Whole = 0
        for monomial, coefficient in size.terms:
            product: Whole = int(coefficient)
            for base, exponent in monomial:
                for _ in range(exponent):
                    product = product * self._atom(base, bound)
            total = total + product
        return total if isinstance(total, int) else self.z3.simplify(total)

    def _atom(self, base: Atom, bound: Bound) -> Whole:
        if isinstance(base, NatVariable) and base.name in bound:
            return bound[base.name]
        if not isinstance(base, Operation):
            if base not in self._made:
                self._made[base] = self.integer(str(base))
                self.facts.append(self._made[base] >= 0)
            return self._made[base]
        left, right = self.size(base.left, bound), self.size(base.right, bound)
        match base.operator:
            case "quotient":
                return self.quotient(left, right)
            case "remainder":
                return self.remainder(left, right)
            case "min":
                return self.either(left <= right, left, right)
            case "max":
                return self.either(left >= right, left, right)
            case _:
                raise Unmodelled(f"the size {base}")

    def quotient(self, value: Whole, divisor: Whole) -> Whole:
        """Rounded down. Multiples of the divisor are taken out; a quotient of a quotient is one."""
        if isinstance(value, int) and isinstance(divisor, int):
            if divisor <= 0:
                raise Unmodelled("a division by zero")
            return value // divisor
        whole, rest = self._separated(value, divisor)
        inner, others = self._quotient_in(rest)
        if inner is not None:
            return self._sum(whole, self.quotient(inner[0] + inner[1] * others, inner[1] * divisor))
        return whole if isinstance(rest, int) and rest == 0 else self._sum(whole, self._floor(rest, divisor))

    def remainder(self, value: Whole, divisor: Whole) -> Whole:
        return self.polynomial(value - divisor * self.quotient(value, divisor))

    def polynomial(self, value: Whole) -> Whole:
        """A term as a sum of products."""
        if isinstance(value, int):
            return value
        simple = self.z3.simplify(value, som=True)
        return simple.as_long() if self.z3.is_int_value(simple) else simple

    def _sum(self, left: Whole, right: Whole) -> Whole:
        return self.polynomial(left + right)

    def _floor(self, value: Whole, divisor: Whole) -> Whole:
        """An integer that is the quotient, by the facts."""
        value, divisor = self.polynomial(value), self.polynomial(divisor)
        key = ("quotient", str(value), str(divisor))
        if key not in self._made:
            z3, q = self.z3, self.fresh("q")
            rest = value - q * divisor
            within = z3.And(value >= 0, divisor > 0)
            # the last two follow from the first, but by products of unknowns
            self.facts += [
                z3.Implies(divisor > 0, z3.And(rest >= 0, rest < divisor)),
                z3.Implies(within, q >= 0),
                z3.Implies(z3.And(within, value < divisor), q == 0),
            ]
            self._made[key] = q
            self.quotients[str(q)] = (q, value, divisor)
            self.facts += self._by_factors(q, value, divisor)
        return self._made[key]

    def bounds(self, ranges: Iterable[tuple[Whole, Whole]]) -> Iterator[Condition]:
        """i / n is below m where i is below m*n: this follows from the facts, but by products of unknowns."""
        for index, size in ranges:
            for q, value, divisor in list(self.quotients.values()):
                if isinstance(value, int) or not value.eq(index):
                    continue
                multiple, rest = self._separated(size, divisor)
                if isinstance(rest, int) and rest == 0:
                    yield self.z3.Implies(self.z3.And(index >= 0, index < size, divisor > 0), q < multiple)

    def _by_factors(self, q: Whole, value: Whole, divisor: Whole) -> Iterator[Condition]:
        """(a*f + r) / (f*g) is a / g where r is below f."""
        products = self._products(divisor)
        factors = products[0][1] if len(products) == 1 and products[0][0] == 1 else []
        for factor in factors if len(factors) > 1 else ():
            multiple, rest = self._separated(value, factor)
            if not isinstance(multiple, int):
                others = _product(1, _without(factors, [factor]) or [])
                within = self.z3.And(rest >= 0, rest < factor, divisor > 0)
                yield self.z3.Implies(within, q == self.quotient(multiple, others))

    def _separated(self, value: Whole, divisor: Whole) -> tuple[Whole, Whole]:
        """value = divisor * first + second, with as many products as possible in the first."""
        below = self._products(divisor)
        if len(below) != 1:
            return 0, value
        [(scale, by)] = below
        whole: Whole = 0
        rest: Whole = 0
        for coefficient, factors in self._products(value):
            left = _without(factors, by)
            if left is None or (scale != 1 and factors and coefficient % scale and by):
                rest = rest + _product(coefficient, factors)
            elif scale == 1:
                whole = whole + _product(coefficient, left)
            else:
                whole = whole + _product(coefficient // scale, left)
                rest = rest + _product(coefficient % scale, factors)
        return self.polynomial(whole), self.polynomial(rest)

    def _products(self, value: Whole) -> list[tuple[int, list[Any]]]:
        """The products of a sum: their coefficients, and their factors."""
        z3, value = self.z3, self.polynomial(value)
        if isinstance(value, int):
            return [(value, [])] if value else []
        found = []
        for term in value.children() if z3.is_add(value) else [value]:
            factors = list(_factors(z3, term))
            numbers = [f.as_long() for f in factors if z3.is_int_value(f)]
            found.append((prod(numbers), [f for f in factors if not z3.is_int_value(f)]))
        return found

    def _quotient_in(self, value: Whole) -> tuple[tuple[Whole, Whole] | None, Whole]:
        """Dividend and divisor of a quotient that is a summand of a value, and the other summands."""
        products = self._products(value)
        for position, (coefficient, factors) in enumerate(products):
            if coefficient == 1 and len(factors) == 1 and str(factors[0]) in self.quotients:
                _, dividend, divisor = self.quotients[str(factors[0])]
                others = products[:position] + products[position + 1 :]
                return (dividend, divisor), sum((_product(c, f) for c, f in others), 0)
        return None, 0

    def replacing(self, values: Iterable[tuple[Whole, Whole]]) -> list[tuple[Whole, Whole]]:
        """What to replace for indices to become values: these, and the quotients that depend on them.

        The facts hold for any integers: those about what is replaced are also said of what comes instead.
        """
        pairs = [(i, self.number(value) if isinstance(value, int) else value) for i, value in values]
        for q, dividend, divisor in list(self.quotients.values()):
            olds = {str(old) for old, _ in pairs}
            if not olds.isdisjoint(self.names_in(dividend) | self.names_in(divisor)):
                new = self.quotient(self.replaced(dividend, pairs), self.replaced(divisor, pairs))
                pairs.append((q, self.number(new) if isinstance(new, int) else new))
        olds = {str(old) for old, _ in pairs}
        for fact in list(self.facts):
            if not olds.isdisjoint(self.names_in(fact)):
                self.facts.append(self.z3.substitute(fact, *pairs))
        return pairs

    def replaced(self, term: Whole, pairs: list[tuple[Whole, Whole]]) -> Whole:
        return term if isinstance(term, int) else self.z3.substitute(term, *pairs)

    def names_in(self, term: Any) -> frozenset[str]:
        """The names of the unknown integers and functions in a term."""
        if isinstance(term, bool | int):
            return frozenset()
        key = term.get_id()
        if key not in self._names or not self._names[key][0].eq(term):
            self._names[key] = (term, frozenset(_names(term)))
        return self._names[key][1]

    def either(self, condition: Condition, then: Whole, otherwise: Whole) -> Whole:
        if isinstance(condition, bool):
            return then if condition else otherwise
        return self.z3.If(condition, then, otherwise)

    def both(self, *conditions: Condition) -> Condition:
        return self.z3.And(*conditions) if conditions else True

    def index(self, name: str, arguments: tuple[Any, ...], below: Whole, given: Condition) -> Whole:
        z3 = self.z3
        if not all(isinstance(a, int) or z3.is_int(a) for a in arguments):
            raise Unmodelled("an index that depends on elements")
        if arguments:
            made = self.function(f"index {name}", len(arguments))(*arguments)
        else:
            made = self.integer(f"index {name}")
        key = ("index", str(made))
        if key not in self._made:
            self._made[key] = made
            self.facts.append(z3.Implies(given, z3.And(made >= 0, made < below)))
        return made

    def permuted(self, function: Argument, inverse: Argument, index: Whole, below: Whole) -> Whole:
        if not any(f == function and g == inverse for f, g, _ in self.permutations):
            self.permutations.append((function, inverse, below))
        if isinstance(function, NatFunction):
            return self.size(function.body, {function.parameter: index})
        z3 = self.z3
        there, back = (self.function(f"order {f}") for f in (function, inverse))
        made = there(index)
        within = z3.And(index >= 0, index < below)
        permutes = [made >= 0, made < below, back(made) == index, there(back(index)) == index]
        self.facts.append(z3.Implies(within, z3.And(*permutes, back(index) >= 0, back(index) < below)))
        return made

    def origin(self, places: Sequence, index: Whole) -> tuple[Condition, Whole]:
        z3 = self.z3
        general = self.integer("place")
        pattern = places.at(general)
        # the array may depend on indices: so do the functions
        around = [self.integer(name) for name in sorted(self.names_in(pattern)) if "!" in name]
        named = [(old, self.integer(f"around {i}")) for i, old in enumerate(around)]
        text, arity = str(z3.substitute(pattern, *named)), len(around) + 1
        there = self.function(f"is in {text}", arity, truth=True)(*around, index)
        where = self.function(f"origin in {text}", arity)(*around, index)
        back = z3.substitute(pattern, (general, where))
        self.facts.append(z3.Implies(there, z3.And(where >= 0, where < places.size, back == index)))
        known = _argument(z3, pattern, index, general)
        if known is not None:
            within = z3.And(known >= 0, known < places.size)
            self.facts.append(z3.Implies(within, z3.And(there, where == known)))
        return there, where


def _argument(z3: Any, pattern: Any, term: Any, hole: Any) -> Any:
    """What stands in a term where the pattern has the hole; None where it is no such term."""
    if pattern.eq(hole):
        return term
    if pattern.decl() != term.decl() or pattern.num_args() != term.num_args():
        return None
    found = [
        _argument(z3, p, t, hole)
        for p, t in zip(pattern.children(), term.children(), strict=True)
        if not p.eq(t)
    ]
    return found[0] if len(found) == 1 else None


def _factors(z3: Any, term: Any) -> Iterator[Any]:
    if z3.is_mul(term):
        for child in term.children():
            yield from _factors(z3, child)
    else:
        yield term


def _without(factors: list[Any], others: list[Any]) -> list[Any] | None:
    """The factors but for others; None where one of these is missing."""
    left = list(factors)
    for other in others:
        position = next((i for i, factor in enumerate(left) if factor.eq(other)), None)
        if position is None:
            return None
        del left[position]
    return left


def _product(coefficient: int, factors: list[Any]) -> Whole:
    product: Whole = coefficient
    for factor in factors:
        product = product * factor
    return product


def _names(term: Any) -> Iterator[str]:
    unknown = solver_library().Z3_OP_UNINTERPRETED
    waiting, seen = [term], set()
    while waiting:
        part = waiting.pop()
        if part.get_id() not in seen:
            seen.add(part.get_id())
            if part.decl().kind() == unknown:
                yield part.decl().name()
            waiting += part.children()
