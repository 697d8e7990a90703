"""Natural numbers in types and indices: one normal form, so that equal sizes are equal objects.

A `Nat` is a sum of monomials with rational coefficients over atoms: variables, and the quotients,
remainders, minima, maxima and powers that do not simplify. An exact quotient (`m/128` where 128
divides m) is the rational multiple of m, hence `128 * (m/128) = m` holds by normalisation; that 128
does divide m is an obligation which whoever divides records (`rise.constraints`). A floor quotient
stays an atom until `Facts` show more about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import gcd

Coefficient = int | Fraction


@dataclass(frozen=True)
class NatVariable:
    """A rigid variable: a size that a program abstracts over, or the index of a loop."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class NatUnknown:
    """A variable that inference or matching still has to solve."""

    identity: int

    def __str__(self) -> str:
        return f"?{self.identity}"


@dataclass(frozen=True)
class Operation:
    """An operation that does not simplify: `quotient`, `remainder`, `min`, `max` or `power`."""

    operator: str
    left: Nat
    right: Nat

    def __str__(self) -> str:
        if self.operator in ("min", "max"):
            return f"{self.operator}({self.left}, {self.right})"
        sign = {"quotient": "/", "remainder": "%", "power": "^"}[self.operator]
        return f"{_factor(self.left)} {sign} {_factor(self.right)}"


Atom = NatVariable | NatUnknown | Operation
Monomial = tuple[tuple[Atom, int], ...]


def _simple(number: Coefficient) -> Coefficient:
    return number.numerator if isinstance(number, Fraction) and number.denominator == 1 else number


def _atom_key(atom: Atom) -> tuple[int, str]:
    rank = 0 if isinstance(atom, NatVariable) else 1 if isinstance(atom, Operation) else 2
    return rank, str(atom)


def _monomial_key(monomial: Monomial) -> tuple[int, tuple[tuple[tuple[int, str], int], ...]]:
    """Higher degree first, constants last."""
    return -sum(e for _, e in monomial), tuple((_atom_key(a), -e) for a, e in monomial)


@dataclass(frozen=True)
class Nat:
    """A normal form; built with `constant`, `variable` and the operators below, never by hand."""

    terms: tuple[tuple[Monomial, Coefficient], ...]

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    def __hash__(self) -> int:
        return self._hash

    @staticmethod
    def build(terms: Mapping[Monomial, Coefficient]) -> Nat:
        kept = [(m, _simple(c)) for m, c in terms.items() if c != 0]
        if len(kept) < 2:
            return Nat(tuple(kept))
        return Nat(tuple(sorted(kept, key=lambda term: _monomial_key(term[0]))))

    @cached_property
    def value(self) -> int | None:
        """The number, if there are no variables and it is whole."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and self.terms[0][0] == ():
            number = self.terms[0][1]
            return number if isinstance(number, int) else None
        return None

    @cached_property
    def atoms(self) -> frozenset[Atom]:
        """All atoms, those inside operations included."""
        found: set[Atom] = set()
        for monomial, _ in self.terms:
            for atom, _ in monomial:
                found.add(atom)
                if isinstance(atom, Operation):
                    found |= atom.left.atoms | atom.right.atoms
        return frozenset(found)

    @cached_property
    def variables(self) -> frozenset[str]:
        return frozenset(a.name for a in self.atoms if isinstance(a, NatVariable))

    @cached_property
    def unknowns(self) -> frozenset[NatUnknown]:
        return frozenset(a for a in self.atoms if isinstance(a, NatUnknown))

    def __add__(self, other: NatLike) -> Nat:
        if isinstance(other, Nat) and not other.terms:
            return self
        if not self.terms:
            return nat(other)
        sum_ = dict(self.terms)
        for monomial, coefficient in nat(other).terms:
            sum_[monomial] = sum_.get(monomial, 0) + coefficient
        return Nat.build(sum_)

    def __mul__(self, other: NatLike) -> Nat:
        if isinstance(other, Nat) and other.value == 1:
            return self
        if self.value == 1:
            return nat(other)
        product: dict[Monomial, Coefficient] = {}
        for left, a in self.terms:
            for right, b in nat(other).terms:
                monomial = _multiply(left, right)
                product[monomial] = product.get(monomial, 0) + a * b
        return Nat.build(product)

    def __sub__(self, other: NatLike) -> Nat:
        return self + nat(other) * -1

    def __radd__(self, other: int) -> Nat:
        return self + other

    def __rmul__(self, other: int) -> Nat:
        return self * other

    def __rsub__(self, other: int) -> Nat:
        return nat(other) - self

    def exact_quotient(self, divisor: NatLike) -> Nat | None:
        """self / divisor as a rational multiple, for a divisor of one monomial; None for others.

        Meaningful only where the divisor divides: `divides` says whether that is certain.
        """
        below = nat(divisor)
        if len(below.terms) != 1:
            return constant(1) if below == self and below.terms else None
        monomial, coefficient = below.terms[0]
        inverse = tuple((atom, -exponent) for atom, exponent in monomial)
        return self * Nat.build({inverse: Fraction(1, 1) / coefficient})

    @property
    def is_whole(self) -> bool:
        """No fractional coefficient and no negative exponent: a whole number whatever the variables are."""
        return all(isinstance(c, int) and all(e > 0 for _, e in m) for m, c in self.terms)

    def substitute(self, solution: Mapping[Atom, Nat]) -> Nat:
        """Replaces atoms, simplifying the operations that contain them."""
        if not solution or self.atoms.isdisjoint(solution):
            return self
        total = constant(0)
        for monomial, coefficient in self.terms:
            product = Nat.build({(): coefficient})
            for atom, exponent in monomial:
                product = product * _raise(_replace(atom, solution), exponent)
            total = total + product
        return total

    def __str__(self) -> str:
        return _show(self)

    def __repr__(self) -> str:
        return f"Nat({self})"


NatLike = Nat | int


def nat(value: NatLike) -> Nat:
    return value if isinstance(value, Nat) else constant(value)


def constant(value: int) -> Nat:
    return Nat((((), value),)) if value else Nat(())


def variable(name: str) -> Nat:
    return atom(NatVariable(name))


def atom(base: Atom) -> Nat:
    return Nat(((((base, 1),), 1),))


def _multiply(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for base, exponent in right:
        powers[base] = powers.get(base, 0) + exponent
    kept = [(b, e) for b, e in powers.items() if e]
    return tuple(sorted(kept, key=lambda power: _atom_key(power[0])))


def _raise(base: Nat, exponent: int) -> Nat:
    if exponent < 0:
        inverse = constant(1).exact_quotient(_raise(base, -exponent))
        if inverse is None:
            raise ArithmeticError(f"no exact inverse of {base}")
        return inverse
    result = constant(1)
    for _ in range(exponent):
        result = result * base
    return result


def _replace(base: Atom, solution: Mapping[Atom, Nat]) -> Nat:
    if base in solution:
        return solution[base]
    if isinstance(base, Operation):
        left, right = base.left.substitute(solution), base.right.substitute(solution)
        return OPERATIONS[base.operator](left, right)
    return atom(base)


# --- what is known about variables ---------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """What may be assumed: ranges `lower <= v < upper` of variables, and divisibilities `d | n`."""

    ranges: Mapping[str, tuple[Nat, Nat]] = field(default_factory=dict)
    divisible: frozenset[tuple[Nat, Nat]] = frozenset()

    def with_range(self, name: str, lower: NatLike, upper: NatLike) -> Facts:
        return Facts({**self.ranges, name: (nat(lower), nat(upper))}, self.divisible)


NOTHING = Facts()


def _extreme(value: Nat, facts: Facts, largest: bool) -> Nat | None:
    """A bound of value in which no ranged variable is left; None where none is found."""
    for _ in range(64):
        total, changed = constant(0), False
        for monomial, coefficient in value.terms:
            bounded = _bound_monomial(monomial, facts, largest == (coefficient > 0))
            if bounded is None:
                return None
            total = total + bounded[0] * Nat.build({(): coefficient})
            changed = changed or bounded[1]
        if not changed:
            return total
        value = total
    return None


def _bound_monomial(monomial: Monomial, facts: Facts, largest: bool) -> tuple[Nat, bool] | None:
    product, changed = constant(1), False
    for base, exponent in monomial:
        bound = _bound_atom(base, facts, largest)
        if bound is None or (exponent < 0 and bound != atom(base)):
            return None
        changed = changed or bound != atom(base)
        product = product * (_raise(bound, exponent) if exponent > 0 else Nat.build({((base, exponent),): 1}))
    return product, changed


def _bound_atom(base: Atom, facts: Facts, largest: bool) -> Nat | None:
    match base:
        case NatVariable(name) if name in facts.ranges:
            lower, upper = facts.ranges[name]
            return upper - 1 if largest else lower
        case Operation("remainder", left, right):
            if not largest:
                return constant(0)
            whole = _extreme(left, facts, True)
            if whole is not None and right.value and whole.value is not None:
                return constant(min(whole.value, right.value - 1))
            return right - 1
        case Operation("quotient", left, right):
            whole = _extreme(left, facts, largest)
            if whole is None or whole.value is None or not right.value:
                return None if largest else constant(0)
            return constant(whole.value // right.value)
        case Operation("min", left, right) if largest:
            a, b = _extreme(left, facts, True), _extreme(right, facts, True)
            known = [x.value for x in (a, b) if x is not None and x.value is not None]
            return constant(min(known)) if known else a
        case Operation(_, _, _):
            return constant(0) if not largest else None
        case _:
            return atom(base)


def upper_bound(value: Nat, facts: Facts) -> Nat | None:
    """The largest value under the facts, inclusive."""
    return _extreme(value, facts, True)


def lower_bound(value: Nat, facts: Facts) -> Nat | None:
    """The smallest value under the facts."""
    return _extreme(value, facts, False)


def at_least(value: Nat, bound: NatLike, facts: Facts = NOTHING) -> bool:
    """Whether value >= bound is certain, sizes being at least one."""
    lowest = lower_bound(value - bound, facts)
    if lowest is None:
        return False
    # a sum of sizes, each >= 1, is at least the sum of its coefficients if none is negative
    constant_part = sum(c for m, c in lowest.terms if m == ())
    others = [c for m, c in lowest.terms if m != ()]
    return all(c > 0 for c in others) and constant_part + sum(others) >= 0


def less_than(value: Nat, bound: NatLike, facts: Facts = NOTHING) -> bool:
    """Whether value < bound is certain."""
    return at_least(nat(bound) - 1, value, facts) if not facts.ranges else _below(value, nat(bound), facts)


def _below(value: Nat, bound: Nat, facts: Facts) -> bool:
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
    return all(_term_is_whole(m, c, facts) for m, c in quotient.terms)


def _term_is_whole(monomial: Monomial, coefficient: Coefficient, facts: Facts) -> bool:
    term = Nat.build({monomial: coefficient})
    if term.is_whole:
        return True
    for below, above in facts.divisible:
        known = above.exact_quotient(below)
        rest = term.exact_quotient(known) if known is not None and known.terms else None
        if rest is not None and rest.is_whole:
            return True
    return False


# --- operations that may stay atoms --------------------------------------------------------------


def _separate(value: Nat, divisor: Nat, facts: Facts) -> tuple[Nat, Nat]:
    """value = divisor * first + second, with as many terms as possible in the first."""
    quotient, rest = constant(0), constant(0)
    for monomial, coefficient in value.terms:
        term = Nat.build({monomial: coefficient})
        part = term.exact_quotient(divisor)
        if part is not None and all(_term_is_whole(m, c, facts) for m, c in part.terms):
            quotient = quotient + part
        elif divisor.value and not monomial and isinstance(coefficient, int):
            quotient = quotient + coefficient // divisor.value
            rest = rest + coefficient % divisor.value
        else:
            rest = rest + term
    return quotient, rest


def _common_factor(value: Nat, divisor: Nat) -> int:
    factor = divisor.value or 1
    for _, coefficient in value.terms:
        factor = gcd(factor, coefficient) if isinstance(coefficient, int) else 1
    return factor


def quotient(value: NatLike, divisor: NatLike, facts: Facts = NOTHING) -> Nat:
    """floor(value / divisor), simplified as far as the facts allow."""
    above, below = nat(value), nat(divisor)
    if above.value is not None and below.value:
        return constant(above.value // below.value)
    whole, rest = _separate(above, below, facts)
    if _in_range(rest, below, facts):
        return whole
    if (factor := _common_factor(rest, below)) > 1:
        reduced = rest.exact_quotient(factor)
        if reduced is not None and below.value:
            return whole + quotient(reduced, below.value // factor, facts)
    if (grouped := _group(rest, below, facts)) is not None:
        multiple, _, group = grouped
        return whole + quotient(multiple, below.exact_quotient(group) or below, facts)
    if len(rest.terms) == 1 and rest.terms[0][1] == 1 and len(rest.terms[0][0]) == 1:
        ((inner, exponent),) = rest.terms[0][0]
        if isinstance(inner, Operation) and inner.operator == "quotient" and exponent == 1:
            return whole + quotient(inner.left, inner.right * below, facts)
    if whole.terms and not at_least(rest, 0, facts):
        return atom(Operation("quotient", above, below))
    return whole + atom(Operation("quotient", rest, below))


def remainder(value: NatLike, divisor: NatLike, facts: Facts = NOTHING) -> Nat:
    """value mod divisor, simplified as far as the facts allow."""
    above, below = nat(value), nat(divisor)
    if above.value is not None and below.value:
        return constant(above.value % below.value)
    _, rest = _separate(above, below, facts)
    if _in_range(rest, below, facts):
        return rest
    if (factor := _common_factor(rest, below)) > 1:
        reduced = rest.exact_quotient(factor)
        if reduced is not None and below.value:
            return factor * remainder(reduced, below.value // factor, facts)
    if (grouped := _group(rest, below, facts)) is not None:
        multiple, inner_rest, group = grouped
        return group * remainder(multiple, below.exact_quotient(group) or below, facts) + inner_rest
    if not at_least(rest, 0, facts):
        rest = above
    return atom(Operation("remainder", rest, below))


def _group(value: Nat, below: Nat, facts: Facts) -> tuple[Nat, Nat, int] | None:
    """value = group * first + second with 0 <= second < group, where group properly divides below."""
    if not below.value:
        return None
    sizes = {abs(c) for _, c in value.terms if isinstance(c, int)}
    for group in sorted(sizes, reverse=True):
        if group > 1 and below.value % group == 0 and group < below.value:
            multiple, rest = _separate(value, constant(group), facts)
            if multiple.terms and _in_range(rest, constant(group), facts):
                return multiple, rest, group
    return None


def _in_range(rest: Nat, below: Nat, facts: Facts) -> bool:
    return at_least(rest, 0, facts) and _below(rest, below, facts)


def minimum(left: NatLike, right: NatLike, facts: Facts = NOTHING) -> Nat:
    a, b = nat(left), nat(right)
    if at_least(b, a, facts):
        return a
    return b if at_least(a, b, facts) else atom(Operation("min", *_sorted(a, b)))


def maximum(left: NatLike, right: NatLike, facts: Facts = NOTHING) -> Nat:
    a, b = nat(left), nat(right)
    if at_least(a, b, facts):
        return a
    return b if at_least(b, a, facts) else atom(Operation("max", *_sorted(a, b)))


def _sorted(a: Nat, b: Nat) -> tuple[Nat, Nat]:
    return (a, b) if str(a) <= str(b) else (b, a)


def power(base: NatLike, exponent: NatLike) -> Nat:
    b, e = nat(base), nat(exponent)
    if e.value is not None and 0 <= e.value <= 16:
        return _raise(b, e.value)
    if b.value is not None and e.value is not None and e.value >= 0:
        return constant(b.value**e.value)
    return atom(Operation("power", b, e))


def ceiling_quotient(value: NatLike, divisor: NatLike, facts: Facts = NOTHING) -> Nat:
    return quotient(nat(value) + divisor - 1, divisor, facts)


OPERATIONS: dict[str, Callable[[Nat, Nat], Nat]] = {
    "quotient": quotient,
    "remainder": remainder,
    "min": minimum,
    "max": maximum,
    "power": power,
}


def simplify(value: Nat, facts: Facts) -> Nat:
    """Rebuilds every operation under the facts."""
    total = constant(0)
    for monomial, coefficient in value.terms:
        product = Nat.build({(): coefficient})
        for base, exponent in monomial:
            product = product * _raise(_simplify_atom(base, facts), exponent)
        total = total + product
    return _recombine(total)


def _recombine(value: Nat) -> Nat:
    """b * (a / b) + a % b is a; b * (a / b % c) + a % b is a % (b * c)."""
    for monomial, coefficient in value.terms:
        for base, exponent in monomial:
            if not (isinstance(base, Operation) and base.operator == "remainder" and exponent == 1):
                continue
            others = tuple((a, e) for a, e in monomial if a != base)
            factor = Nat.build({others: coefficient})
            whole = factor * base.right * atom(Operation("quotient", base.left, base.right))
            if set(whole.terms) <= set(value.terms):
                return _recombine(value - whole - factor * atom(base) + factor * base.left)
            quotient_ = atom(Operation("quotient", base.left, base.right))
            for outer in value.atoms:
                if isinstance(outer, Operation) and outer.operator == "remainder" and outer.left == quotient_:
                    digits = factor * base.right * atom(outer)
                    if set(digits.terms) <= set(value.terms):
                        joined = atom(Operation("remainder", base.left, base.right * outer.right))
                        return _recombine(value - digits - factor * atom(base) + factor * joined)
    return value


def _simplify_atom(base: Atom, facts: Facts) -> Nat:
    if not isinstance(base, Operation):
        return atom(base)
    left, right = simplify(base.left, facts), simplify(base.right, facts)
    if base.operator == "power":
        return power(left, right)
    with_facts = {"quotient": quotient, "remainder": remainder, "min": minimum, "max": maximum}
    return with_facts[base.operator](left, right, facts)


def evaluate(value: Nat, sizes: Mapping[str, int]) -> Fraction:
    """The number for given variables; the oracle against which simplification is tested."""
    total = Fraction(0)
    for monomial, coefficient in value.terms:
        product = Fraction(coefficient)
        for base, exponent in monomial:
            product *= _evaluate_atom(base, sizes) ** exponent
        total += product
    return total


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
                    return a ** int(b)
        case _:
            raise KeyError(str(base))


# --- printing -------------------------------------------------------------------------------------


def _factor(value: Nat) -> str:
    text = _show(value)
    single = len(value.terms) <= 1 and not any(sign in text for sign in " *-/")
    return text if single else f"({text})"


def _show_monomial(monomial: Monomial, coefficient: Coefficient) -> str:
    above = [_show_power(a, e) for a, e in monomial if e > 0]
    below = [_show_power(a, -e) for a, e in monomial if e < 0]
    size = abs(Fraction(coefficient))
    if size.numerator != 1 or not above:
        above.insert(0, str(size.numerator))
    if size.denominator != 1:
        below.insert(0, str(size.denominator))
    text = "*".join(above)
    for part in below:
        text += f"/{part}"
    return text


def _show_power(base: Atom, exponent: int) -> str:
    text = f"({base})" if isinstance(base, Operation) and base.operator not in ("min", "max") else str(base)
    return text if exponent == 1 else f"{text}^{exponent}"


def _show(value: Nat) -> str:
    if not value.terms:
        return "0"
    parts: Iterator[tuple[str, str]] = (("-" if c < 0 else "+", _show_monomial(m, c)) for m, c in value.terms)
    text = ""
    for sign, part in parts:
        text += (f" {sign} " if text else ("-" if sign == "-" else "")) + part
    return text
