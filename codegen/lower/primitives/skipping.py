"""Folds that skip elements: of a step `select(p, new, state)`, only the elements where p holds are visited.

    for k < n. if p(k) then acc := f acc X[k]   =   for k < b - a. acc := f acc X[a + k]

where p(k) holds exactly for a ≤ k < b: comparisons of numbers that are linear in k. What the step does not
visit, a pipeline does not load either. A step with another p is translated as any select is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codegen.ir import imperative as i
from codegen.lower.paths import Resolver
from codegen.lower.primitives.levels import Element
from codegen.lower.translate import Continuation, Environment, Translator
from rise.expr import Expr, Lambda, call, substitute
from rise.nat import Facts, Nat, NatVariable, constant, maximum, minimum, nat, quotient, variable
from rise.normal import simplify
from rise.types import I32


@dataclass(frozen=True)
class Visited:
    """The elements that a fold visits, by their number among these.

    varies: whether how many they are may differ from one execution of the fold to the next
    """

    step: Expr
    element: Element
    count: Nat
    varies: bool = False


def visited(
    translator: Translator, step: Expr, load: Lambda | None, whole: Visited, environment: Environment
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
    given = x if load is None else load.parameter
    if load is not None:
        guard = simplify(substitute(guard, {x.name: load.body}))
    k = translator.name("k")
    found: list[i.Expression] = []

    def evaluate(value: i.Expression) -> i.Command:
        found.append(translator.pure(guard, {**environment, given.name: value}, guard.origin))
        return i.Skip()

    whole.element(variable(k), evaluate)
    bounds = _bounds(Resolver().read(found[0], (), Facts()), k, whole.count) if found else None
    if bounds is None:
        return whole
    first, end = bounds

    def element(index: str | Nat, use: Continuation) -> i.Command:
        return whole.element(first + (variable(index) if isinstance(index, str) else index), use)

    count = end - first if first == constant(0) else maximum(end, first) - first
    return Visited(Lambda(state, Lambda(x, new), step.origin), element, count, count.value is None)


def _bounds(condition: i.Expression, k: str, count: Nat) -> tuple[Nat, Nat] | None:
    """(a, b) if the condition holds exactly for a ≤ k < b, of all k < count."""
    first, end = constant(0), count
    for part in _conjuncts(condition):
        value = _not_negative(part)
        coefficient = None if value is None else _coefficient(value, k)
        if value is None or coefficient is None:
            return None
        rest = value.substitute({NatVariable(k): constant(0)})
        if coefficient > 0:
            first = maximum(first, quotient(maximum(coefficient - 1 - rest, 0), coefficient))
        else:
            end = minimum(end, quotient(maximum(rest - coefficient, 0), -coefficient))
    return first, end


def _conjuncts(condition: i.Expression) -> Iterator[i.Expression]:
    match condition:
        case i.Operator("and", (left, right)):
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case _:
            yield condition


def _not_negative(comparison: i.Expression) -> Nat | None:
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
    return high - low - (1 if name in ("lt", "gt") else 0)


def _number(value: i.Expression) -> Nat | None:
    match value:
        case i.Natural(known, _):
            return known
        case i.Number(int() as number, _):
            return nat(number)
        case i.Access(name, (), type_) if type_ == I32:
            return variable(name)
        case i.Operator("indexToInt", (index,)):
            return _number(index)
        case i.Operator("add" | "sub" | "mul" as name, (left, right)):
            a, b = _number(left), _number(right)
            if a is None or b is None:
                return None
            return a + b if name == "add" else a - b if name == "sub" else a * b
        case _:
            return None


def _coefficient(value: Nat, k: str) -> int | None:
    """The coefficient of k; None if k does not occur, or not only as a whole multiple."""
    found = None
    for monomial, coefficient in value.terms:
        if monomial == ((NatVariable(k), 1),) and isinstance(coefficient, int):
            found = coefficient
        elif k in Nat.build({monomial: 1}).variables:
            return None
    return found
