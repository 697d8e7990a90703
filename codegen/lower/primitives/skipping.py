"""Folds that skip elements: of a step `select(p, new, state)`, only the elements where p holds are visited.

    for k < n. if p(k) then acc := f acc X[k]   =   for k < b - a. acc := f acc X[a + k]

where p(k) holds exactly for a ≤ k < b: comparisons of numbers that are linear in k. Where p is that one of
two such conditions holds, the elements of the first are visited, and then what the second has before and
behind them. What the step does not visit, a pipeline does not load either. A step with another p is
translated as any select is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from codegen.ir import imperative as i
from codegen.ir.scalar_temporaries import INT
from codegen.lower.paths import Resolver
from codegen.lower.primitives.levels import Element
from codegen.lower.translate import Continuation, Environment, Translator
from rise.expr import Expr, Lambda, call, substitute
from rise.nat import Facts, Nat, NatVariable, constant, maximum, minimum, nat, quotient, variable
from rise.normal import simplify
from rise.types import BOOL, I32, Index, Space


@dataclass(frozen=True)
class Visited:
    """The elements that a fold visits, by their number among these.

    bounds: numbers that say which they are, in order, and their values, known only when the kernel runs
    """

    step: Expr
    element: Element
    count: Nat
    bounds: tuple[tuple[i.Variable, i.Expression], ...] = ()

    def around(self, loop: i.Command) -> i.Command:
        """The loop, behind the computation of its bounds."""
        for name, value in reversed(self.bounds):
            assigned = i.Assign(i.AcceptVariable(name.name, name.type), value)
            loop = i.New(Space.LOCAL, name.name, name.type, i.sequence(assigned, loop))
        return loop


def visited(
    translator: Translator, step: Expr, load: Lambda, whole: Visited, environment: Environment
) -> Visited:
    """What a fold with this step visits of all elements. load: what a pipeline makes of an element"""
    match step:
        case Lambda(state, Lambda(x, body)):
            pass
        case _:
            return whole
    match call(body):
        case "select", _, [guard, new, old] if old == state and state.name not in guard.free:
            pass
        case _:
            return whole
    guard = simplify(substitute(guard, {x.name: load.body}))
    k = translator.name("k")
    found: list[i.Expression] = []

    def evaluate(value: i.Expression) -> i.Command:
        found.append(translator.pure(guard, {**environment, load.parameter.name: value}, guard.origin))
        return i.Skip()

    whole.element(variable(k), evaluate)
    condition = Resolver().read(found[0], (), Facts()) if found else None
    alternatives = [] if condition is None else list(_alternatives(condition))
    ranges = [_Range(translator, k, whole.count) for _ in alternatives]
    if not all(r.restrict(parts) for r, parts in zip(ranges, alternatives, strict=True)):
        return whole
    new_step = Lambda(state, Lambda(x, new), step.origin)
    match ranges:
        case [one]:
            return _of_range(new_step, whole, one)
        case [one, other]:
            return _of_ranges(new_step, whole, one, other)
        case _:
            return whole


def _of_range(step: Expr, whole: Visited, range_: _Range) -> Visited:
    first, end = range_.first, range_.end

    def element(index: str | Nat, use: Continuation) -> i.Command:
        return whole.element(first + (variable(index) if isinstance(index, str) else index), use)

    count = end - first if first == constant(0) else maximum(end, first) - first
    return Visited(step, element, count, tuple(range_.bounds))


def _of_ranges(step: Expr, whole: Visited, one: _Range, other: _Range) -> Visited:
    """The elements of one range, then those of the other before it, then those behind it."""
    known = [*one.bounds, *other.bounds]

    def named(stem: str, value: Nat) -> Nat:
        if value.value is not None:
            return value
        name = i.Variable(one.translator.name(stem), Index(whole.count + 1))
        known.append((name, _integer(value)))
        return variable(name.name)

    first, end = one.first, named("end", maximum(one.end, one.first))
    start = named("start", maximum(other.first, end))
    parts = [
        (first, end - first),
        (other.first, maximum(minimum(other.end, first), other.first) - other.first),
        (start, maximum(other.end, start) - start),
    ]
    starts: list[tuple[Nat, Nat]] = []  # of the parts, and how many elements are visited before them
    total = constant(0)
    for begin, count in parts:
        if count != constant(0):
            starts.append((begin, total))
            total = named("visited", total + count)

    def element(index: str | Nat, use: Continuation) -> i.Command:
        k = i.Variable(one.translator.name("k"), Index(whole.count))
        number = variable(index) if isinstance(index, str) else index
        *others, (begin, before) = starts
        value = _integer(begin + number - before)
        for begin, earlier in reversed(others):
            is_earlier = i.Operator("lt", (_integer(number), _integer(before)), BOOL)
            value = _operator("select", is_earlier, _integer(begin + number - earlier), value)
            before = earlier
        assigned = i.Assign(i.AcceptVariable(k.name, k.type), value)
        inner = whole.element(variable(k.name), use)
        return i.New(Space.LOCAL, k.name, k.type, i.sequence(assigned, inner))

    return Visited(step, element, total, tuple(known))


@dataclass
class _Range:
    """The elements k of so many for which conditions hold: first ≤ k < end."""

    translator: Translator
    k: str
    count: Nat
    first: Nat = constant(0)
    bounds: list[tuple[i.Variable, i.Expression]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.end = self.count

    def restrict(self, conditions: Sequence[i.Expression]) -> bool:
        """Whether all conditions hold for a range of elements; if so, the range is restricted to it."""
        return all(self._restrict_by(part) for part in conditions)

    def _restrict_by(self, comparison: i.Expression) -> bool:
        value = _not_negative(comparison)
        coefficient = None if value is None else value.coefficient(self.k)
        if value is None or coefficient is None:
            return False
        rest = value.without(self.k)
        if coefficient > 0:
            # the first k with coefficient * k + rest >= 0
            self.first = maximum(self.first, self._quotient(rest.negated(coefficient - 1), coefficient))
        else:
            self.end = minimum(self.end, self._quotient(rest.plus(-coefficient), -coefficient))
        return True

    def _quotient(self, value: _Linear, divisor: int) -> Nat:
        """max(value, 0) / divisor, and at most the number of elements."""
        if not value.scalars:
            return minimum(quotient(maximum(value.indices, 0), divisor), self.count)
        natural = _operator("max", value.expression(), i.Number(0, INT))
        most = _integer(self.count)
        bound = _operator("min", _operator("div", natural, i.Number(divisor, INT)), most)
        name = i.Variable(self.translator.name("bound"), Index(self.count + 1))
        self.bounds.append((name, bound))
        return variable(name.name)


@dataclass(frozen=True)
class _Linear:
    """A sum of indices, and of scalars with coefficients, which may be negative where indices are not."""

    indices: Nat
    scalars: tuple[tuple[i.Access, int], ...] = ()

    def scaled(self, factor: int) -> _Linear:
        return _Linear(self.indices * factor, tuple((x, c * factor) for x, c in self.scalars))

    def plus(self, number: int) -> _Linear:
        return _Linear(self.indices + number, self.scalars)

    def negated(self, number: int) -> _Linear:
        """number - self"""
        return self.scaled(-1).plus(number)

    def added(self, other: _Linear) -> _Linear:
        return _Linear(self.indices + other.indices, self.scalars + other.scalars)

    def without(self, k: str) -> _Linear:
        return _Linear(self.indices.substitute({NatVariable(k): constant(0)}), self.scalars)

    def coefficient(self, k: str) -> int | None:
        """The coefficient of an index; None if it does not occur, or not only as a whole multiple."""
        found = None
        for monomial, coefficient in self.indices.terms:
            if monomial == ((NatVariable(k), 1),) and isinstance(coefficient, int):
                found = coefficient
            elif k in Nat.build({monomial: 1}).variables:
                return None
        return found

    def expression(self) -> i.Expression:
        positive = Nat.build({m: c for m, c in self.indices.terms if c > 0})
        sum_: i.Expression = _operator("sub", _integer(positive), _integer(positive - self.indices))
        for scalar, coefficient in self.scalars:
            sum_ = _operator("add", sum_, _operator("mul", scalar, i.Number(coefficient, INT)))
        return sum_


def _integer(value: Nat) -> i.Expression:
    return _operator("indexToInt", i.Natural(value, INT))


def _operator(name: str, *operands: i.Expression) -> i.Expression:
    return i.Operator(name, operands, INT)


def _alternatives(condition: i.Expression) -> Iterator[list[i.Expression]]:
    """The conditions of which one holds, each as several that hold together."""
    match condition:
        case i.Operator("and", (left, right)):
            for a, b in product(_alternatives(left), list(_alternatives(right))):
                yield [*a, *b]
        case i.Operator("or", (left, right)):
            yield from _alternatives(left)
            yield from _alternatives(right)
        case _:
            yield [condition]


def _not_negative(comparison: i.Expression) -> _Linear | None:
    """The number that is not negative where a comparison holds."""
    match comparison:
        case i.Operator("lt" | "le" as name, (smaller, larger)):
            pass
        case i.Operator("gt" | "ge" as name, (larger, smaller)):
            pass
        case _:
            return None
    low, high = _number(smaller), _number(larger)
    if low is None or high is None:
        return None
    return high.added(low.negated(-1 if name in ("lt", "gt") else 0))


def _number(value: i.Expression) -> _Linear | None:
    match value:
        case i.Natural(known, _):
            return _Linear(known)
        case i.Number(int() as number, _):
            return _Linear(nat(number))
        case i.Access(_, (), type_) if type_ == I32:
            return _Linear(constant(0), ((value, 1),))
        case i.Operator("indexToInt", (index,)):
            return _number(index)
        case i.Operator("neg", (operand,)):
            inner = _number(operand)
            return None if inner is None else inner.negated(0)
        case i.Operator("add" | "sub" as name, (left, right)):
            a, b = _number(left), _number(right)
            if a is None or b is None:
                return None
            return a.added(b if name == "add" else b.negated(0))
        case i.Operator("mul", (left, right)):
            a, b = _number(left), _number(right)
            if a is None or b is None:
                return None
            a, b = (b, a) if b.indices.value is None or b.scalars else (a, b)
            factor = b.indices.value
            return None if factor is None or b.scalars else a.scaled(factor)
        case _:
            return None
