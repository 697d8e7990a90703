"""Every simplification of sizes, one by one: it fires, and z3 proves it for all numbers.

`test_nat.py` has the properties of random sizes; here a rule that no longer fires, or fires wrongly, is
named. Powers, which z3 does not decide, are evaluated at many numbers instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from rise.nat import (
    NOTHING,
    Facts,
    Nat,
    NatUnknown,
    Operation,
    at_least,
    atom,
    ceiling_quotient,
    constant,
    divides,
    evaluate,
    lower_bound,
    maximum,
    minimum,
    power,
    quotient,
    remainder,
    simplify,
    upper_bound,
    variable,
)
from rise.solve import solve
from tests.rise.sizes import symbolic

i, j, k, m, n = (variable(name) for name in "ijkmn")


def between(**ranges: tuple[int | Nat, int | Nat]) -> Facts:
    facts = NOTHING
    for name, (lower, upper) in ranges.items():
        facts = facts.with_range(name, lower, upper)
    return facts


def raw(operator: str, left: Nat | int, right: Nat | int) -> Nat:
    """The operation, left as it is."""
    left, right = (constant(x) if isinstance(x, int) else x for x in (left, right))
    return atom(Operation(operator, left, right))


@dataclass(frozen=True)
class Rule:
    """`before`, with its operations as they are, simplifies to `after` under the facts."""

    before: Nat
    after: Nat
    facts: Facts = NOTHING


SMALL_I = between(i=(0, 8), j=(0, 4))

RULES = {
    # quotients
    "terms that are multiples move out": Rule(raw("quotient", 8 * n + 4 * m, 4), 2 * n + m),
    "multiples of a variable move out": Rule(raw("quotient", n * m + 0, m), n),
    "of a constant the multiple moves out": Rule(raw("quotient", i + 9, 4), raw("quotient", i + 1, 4) + 2),
    "a rest below the divisor is 0": Rule(raw("quotient", 8 * n + i, 8), n, SMALL_I),
    "a rest below a divisor that is a variable is 0": Rule(
        raw("quotient", n * m + i, m), n, between(i=(0, m))
    ),
    "a small negative rest is -1": Rule(raw("quotient", n * m + m - 1, m), n),
    "a negative constant is -1": Rule(raw("quotient", 4 * n - 1, 4), n - 1),
    "common factors cancel": Rule(raw("quotient", 6 * n, 4), raw("quotient", 3 * n, 2)),
    "a digit of several": Rule(raw("quotient", 4 * i + j, 8), raw("quotient", i, 2), SMALL_I),
    "of a quotient": Rule(raw("quotient", raw("quotient", n, 3), 5), raw("quotient", n, 15)),
    "of a quotient and a number": Rule(
        raw("quotient", raw("quotient", n, 3) + 7, 5), raw("quotient", n + 6, 15) + 1
    ),
    "of a remainder": Rule(
        raw("quotient", raw("remainder", n, 12), 4), raw("remainder", raw("quotient", n, 4), 3)
    ),
    "rounded up twice": Rule(
        raw("quotient", raw("quotient", n + 2, 3) + 4, 5), raw("quotient", n + 14, 15)
    ),
    "of a quotient and a product": Rule(
        raw("quotient", raw("quotient", n, 3) + 7 * m, 5), raw("quotient", n + 21 * m, 15)
    ),
    "of numbers": Rule(raw("quotient", 17, 5), constant(3)),
    # remainders
    "multiples vanish": Rule(raw("remainder", 8 * n + i, 8), i, SMALL_I),
    "multiples of a variable vanish": Rule(raw("remainder", n * m + i, m), i, between(i=(0, m))),
    "of a negative rest": Rule(raw("remainder", n * m - 1, m), m - 1),
    "common factors move out": Rule(raw("remainder", 6 * n, 4), 2 * raw("remainder", 3 * n, 2)),
    "digits of several": Rule(
        raw("remainder", 4 * i + j, 8), 4 * raw("remainder", i, 2) + j, SMALL_I
    ),
    "of a remainder by a multiple": Rule(
        raw("remainder", raw("remainder", n, 12), 4), raw("remainder", n, 4)
    ),
    "of remainders in a sum": Rule(
        raw("remainder", 3 * raw("remainder", n, 8) + raw("remainder", m, 12), 6),
        raw("remainder", 3 * n + m, 6),
    ),
    "of 1 is 0": Rule(raw("remainder", n, 1), constant(0)),
    "of remainders of numbers": Rule(raw("remainder", 17, 5), constant(2)),
    # both together
    "quotient and remainder": Rule(7 * raw("quotient", n, 7) + raw("remainder", n, 7), n),
    "digits join": Rule(
        3 * raw("remainder", raw("quotient", n, 3), 5) + raw("remainder", n, 3), raw("remainder", n, 15)
    ),
    "three digits": Rule(
        12 * raw("quotient", n, 12)
        + 4 * raw("quotient", raw("remainder", n, 12), 4)
        + raw("remainder", n, 4),
        n,
    ),
    # minima and maxima
    "the smaller is known": Rule(raw("min", n, n + m), n),
    "the smaller is known by ranges": Rule(raw("min", i, 8), i, SMALL_I),
    "the larger is known": Rule(raw("max", n, n + m), n + m),
    "nested minima": Rule(raw("min", raw("min", n, m), n), raw("min", m, n)),
    "nested minima in one order": Rule(
        raw("min", raw("min", n, k), m), raw("min", k, raw("min", m, n))
    ),
    "a nested one is decided": Rule(raw("max", raw("max", n, m), n + 1), raw("max", m, n + 1)),
    "what both have stands in front": Rule(raw("min", n + 2 * k, m + 2 * k), raw("min", m, n) + 2 * k),
    "nested maxima": Rule(raw("max", raw("max", n, m), m), raw("max", m, n)),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_a_rule_fires(name: str) -> None:
    rule = RULES[name]
    assert rule.before != rule.after
    assert simplify(rule.before, rule.facts) == rule.after


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_proved(name: str) -> None:
    rule = RULES[name]
    solver = z3.Solver()
    solver.set("timeout", 10_000)
    for variable_ in rule.before.variables | rule.after.variables:
        if variable_ in rule.facts.ranges:
            lower, upper = (symbolic(bound) for bound in rule.facts.ranges[variable_])
            solver.add(z3.Int(variable_) >= lower, z3.Int(variable_) < upper)
        else:
            solver.add(z3.Int(variable_) >= (1 if variable_ in divisors(rule.before) else 0))
    solver.add(symbolic(rule.before) != symbolic(rule.after))
    verdict = str(solver.check())
    assert verdict != "sat", solver.model()
    if verdict == "unknown":
        assert "variable" in name or "negative rest" in name
        assert_by_numbers(rule)


def divisors(value: Nat) -> frozenset[str]:
    """The variables that something is divided by: these are not 0."""
    found = (
        x.right for x in value.atoms if isinstance(x, Operation) and x.operator in ("quotient", "remainder")
    )
    return frozenset(name for size in found for name in size.variables)


def assert_by_numbers(rule: Rule) -> None:
    """Where a divisor is a variable z3 may not decide; every small number is tried."""
    names = sorted(rule.before.variables | rule.after.variables)
    for values in product(range(9), repeat=len(names)):
        sizes = dict(zip(names, values, strict=True))
        if all(_allowed(rule, name, sizes) for name in names):
            assert evaluate(rule.before, sizes) == evaluate(rule.after, sizes)


def _allowed(rule: Rule, name: str, sizes: dict[str, int]) -> bool:
    if name not in rule.facts.ranges:
        return sizes[name] > 0 or name not in divisors(rule.before)
    lower, upper = rule.facts.ranges[name]
    return evaluate(lower, sizes) <= sizes[name] < evaluate(upper, sizes)


# --- which sizes are not 0 ----------------------------------------------------------------------------


def test_where_a_variable_has_a_value_its_range_is_not_empty() -> None:
    assert not at_least(n, 1)
    assert at_least(n, 1, between(i=(0, n)))
    assert at_least(n * m, 1, between(i=(2, n * m)))
    assert not at_least(n * k, 1, between(i=(0, n * m)))
    assert not at_least(n, 1, between(i=(0, n + 1)))
    assert not at_least(n, 1, between(i=(-3, n)))


def test_a_divisor_is_not_0_in_its_division_only() -> None:
    assert quotient(n * m + m - 1, m) == n
    assert remainder(m - 1, m) == m - 1
    assert not at_least(m, 1)
    assert maximum(m, 1) == raw("max", 1, m)
    assert quotient(maximum(m, 1) * n, m) != n


# --- what must not be simplified ----------------------------------------------------------------------


def test_a_remainder_of_what_may_be_negative_is_bounded_by_its_divisor() -> None:
    facts = between(i=(0, 3))
    below = raw("remainder", i - 5, 4)
    assert upper_bound(below, facts) == constant(3)
    assert {evaluate(below, {"i": value}) for value in range(3)} == {3, 0, 1}


def test_a_quotient_of_what_may_be_negative_may_be() -> None:
    facts = between(i=(0, 3), j=(0, 9))
    assert lower_bound(raw("quotient", i - 5, 4), facts) == constant(-2)
    assert not at_least(raw("quotient", n - m, 4), 0)
    assert not at_least(raw("min", n, n - m), 0)
    assert at_least(raw("max", n, n - m), 0)
    assert not at_least(raw("quotient", j - 5, 4) * n + 1, 0, facts)


def test_minima_of_what_may_be_negative() -> None:
    value = minimum(n, n - m + k)
    for sizes in ({"n": 1, "m": 3, "k": 1}, {"n": 5, "m": 1, "k": 3}):
        assert evaluate(value, sizes) == min(sizes["n"], sizes["n"] - sizes["m"] + sizes["k"])


# --- rounding up ------------------------------------------------------------------------------------

CEILINGS: dict[str, tuple[Nat, Nat]] = {
    "a multiple": (ceiling_quotient(32 * n, 32), n),
    "a multiple of a variable": (ceiling_quotient(n * m, m), n),
    "by one": (ceiling_quotient(n, 1), n),
    "of one more": (ceiling_quotient(n * m + 1, m), n + 1),
    "twice": (ceiling_quotient(ceiling_quotient(n, 4), 8), ceiling_quotient(n, 32)),
}


@pytest.mark.parametrize("name", CEILINGS)
def test_ceilings(name: str) -> None:
    found, expected = CEILINGS[name]
    assert found == expected


# --- powers -----------------------------------------------------------------------------------------

HALF = n.exact_quotient(2) or n

POWERS: dict[str, tuple[Nat, Nat]] = {
    "of a product": (power(m * n, k), power(m, k) * power(n, k)),
    "of a sum of exponents": (power(n, k + j), power(n, k) * power(n, j)),
    "one more": (power(2, k + 1), 2 * power(2, k)),
    "one more of a variable": (power(n, k + 1), n * power(n, k)),
    "of a power": (power(power(n, k), j), power(n, k * j)),
    "a multiple in the exponent": (power(n, 3 * k), power(n, k) * power(n, k) * power(n, k)),
    "of a number that is a power": (power(8, k), power(2, k) * power(2, k) * power(2, k)),
    "of a number with two primes": (power(6, k), power(2, k) * power(3, k)),
    "of an exact quotient": (power(HALF, k) * power(2, k), power(n, k)),
    "squared in the base": (power(n * n, k), power(n, 2 * k)),
    "of one": (power(1, k), constant(1)),
    "to nothing": (power(n + 1, 0), constant(1)),
    "of a sum": (power(n + m, k + 1), (n + m) * power(n + m, k)),
    "large": (power(n, 20) * power(n, 2), power(n, 22)),
    "numbers": (power(3, 5), constant(243)),
}


@pytest.mark.parametrize("name", POWERS)
def test_powers_have_one_form(name: str) -> None:
    found, expected = POWERS[name]
    assert found == expected


def test_what_iterate_needs_of_powers() -> None:
    """(l*n)*n^k has the size of l*n^(k + 1); what is left after k halvings is m again."""
    assert 2 * n * power(2, k) == n * power(2, k + 1)
    assert (n * power(2, k)).exact_quotient(power(2, k)) == n
    assert divides(power(2, k), n * power(2, k + 1))
    assert at_least(power(2, k), 1)
    assert not at_least(n * power(2, k), 1)
    assert power(n, k).substitute({next(iter(k.atoms)): constant(3)}) == n * n * n
    unknown = atom(NatUnknown(0))
    assert solve(unknown * power(2, k), n * power(2, k)) == (NatUnknown(0), n)


EXPONENTS = st.recursive(
    st.one_of(st.integers(0, 3), st.sampled_from("ij")),
    lambda t: st.tuples(st.just("+"), t, t),
    max_leaves=3,
)
BASES = st.recursive(
    st.one_of(st.integers(1, 12), st.sampled_from("mn")),
    lambda t: st.tuples(st.sampled_from("+*^"), t, t),
    max_leaves=3,
)


@settings(max_examples=2 * settings().max_examples)
@given(BASES, EXPONENTS, EXPONENTS)
def test_powers_agree_with_numbers(base: object, one: object, other: object) -> None:
    """Sizes are at least one; exponents may be zero."""
    b, x, y = (_built(t) for t in (base, one, other))
    value, facts = power(b, x) * power(b, y), between(i=(0, 3), j=(0, 3))
    assert power(b, x + y) == value
    lowest = lower_bound(value, facts)
    for numbers in product((0, 1, 2), (0, 2), (1, 3), (1, 2)):
        sizes = dict(zip("ijmn", numbers, strict=True))
        expected = _number(base, sizes) ** (_number(one, sizes) + _number(other, sizes))
        assert evaluate(value, sizes) == expected
        assert lowest is None or evaluate(lowest, sizes) <= expected
        assert evaluate(simplify(value, facts), sizes) == expected


def _built(tree: object) -> Nat:
    match tree:
        case int():
            return constant(tree)
        case str():
            return variable(tree)
        case (str(operator), left, right):
            return BUILD[operator](_built(left), _built(right))
    raise TypeError(tree)


def _number(tree: object, sizes: dict[str, int]) -> int:
    match tree:
        case int():
            return tree
        case str():
            return sizes[tree]
        case (str(operator), left, right):
            a, b = _number(left, sizes), _number(right, sizes)
            return a + b if operator == "+" else a * b if operator == "*" else a**b
    raise TypeError(tree)


BUILD: dict[str, Callable[[Nat, Nat], Nat]] = {"+": Nat.__add__, "*": Nat.__mul__, "^": power}


# --- dividends that may be negative -------------------------------------------------------------------

INDICES = st.lists(st.tuples(st.integers(-9, 9), st.sampled_from("ij")), min_size=1, max_size=3)


@settings(max_examples=4 * settings().max_examples)
@given(INDICES, st.integers(-9, 9), st.integers(1, 12), st.integers(1, 12))
def test_differences_of_indices(parts: list[tuple[int, str]], more: int, divisor: int, second: int) -> None:
    facts = between(i=(0, 5), j=(1, 4))
    value = constant(more)
    for times, name in parts:
        value = value + times * variable(name)
    results = {
        "/": quotient(value, divisor, facts),
        "%": remainder(value, divisor, facts),
        "//": quotient(quotient(value, divisor, facts) + more, second, facts),
        "min": minimum(value, divisor, facts),
        "max": maximum(value, quotient(value, divisor, facts), facts),
        "*": quotient(value, divisor, facts) * variable("i"),
    }
    bounds = {name: (lower_bound(r, facts), upper_bound(r, facts)) for name, r in results.items()}
    for a, b in product(range(5), range(1, 4)):
        sizes = {"i": a, "j": b}
        x = int(evaluate(value, sizes))
        expected = {
            "/": x // divisor,
            "%": x % divisor,
            "//": (x // divisor + more) // second,
            "min": min(x, divisor),
            "max": max(x, x // divisor),
            "*": x // divisor * a,
        }
        for name, number in expected.items():
            lowest, highest = bounds[name]
            assert evaluate(results[name], sizes) == number, name
            assert lowest is None or evaluate(lowest, sizes) <= number, name
            assert highest is None or evaluate(highest, sizes) >= number, name
