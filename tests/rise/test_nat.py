"""Sizes: the normal form and every simplification against evaluation, and against z3."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from math import prod
from random import Random

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from rise.nat import (
    NOTHING,
    Facts,
    Nat,
    NatUnknown,
    NatVariable,
    Operation,
    at_least,
    atom,
    ceiling_quotient,
    constant,
    divides,
    evaluate,
    less_than,
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
from rise.notation import show_nat, show_type
from rise.solve import solve
from rise.source import Source
from rise.syntax.parser import parse_expression
from rise.syntax.resolve import as_type, resolve_argument
from rise.types import F32, Array, Kind, NatFunction
from tests.rise.sizes import symbolic

VARIABLES = ("i", "j", "n")
# a plain description of an expression, evaluated with Python's numbers: the oracle
Tree = int | str | tuple[str, "Tree", "Tree"]

LEAVES = st.one_of(st.integers(0, 9), st.sampled_from(VARIABLES))
DIVISORS = st.sampled_from((1, 2, 3, 4, 6, 8))


def grown(trees: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.one_of(
        st.tuples(st.sampled_from(("+", "*", "min", "max")), trees, trees),
        st.tuples(st.sampled_from(("/", "%")), trees, DIVISORS),
    )


# no `-`: sizes and indices are natural numbers, and so is every part of them
TREES = st.recursive(LEAVES, grown, max_leaves=8)
SIGNED = st.recursive(LEAVES, lambda t: st.tuples(st.sampled_from(("+", "-", "*")), t, t), max_leaves=8)


def number(tree: Tree, sizes: dict[str, int]) -> int:
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return sizes[tree]
    operator, left, right = tree
    a, b = number(left, sizes), number(right, sizes)
    results = {"+": a + b, "-": a - b, "*": a * b, "min": min(a, b), "max": max(a, b)}
    if operator in results:
        return results[operator]
    return a // b if operator == "/" else a % b


def built(tree: Tree, facts: Facts = NOTHING) -> Nat:
    if isinstance(tree, int):
        return constant(tree)
    if isinstance(tree, str):
        return variable(tree)
    operator, left, right = tree
    a, b = built(left, facts), built(right, facts)
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "min":
            return minimum(a, b, facts)
        case "max":
            return maximum(a, b, facts)
        case "/":
            return quotient(a, b, facts)
        case _:
            return remainder(a, b, facts)


def raw(tree: Tree) -> Nat:
    """The same with every operation left as it is."""
    if not isinstance(tree, tuple):
        return built(tree)
    operator, left, right = tree
    names = {"/": "quotient", "%": "remainder", "min": "min", "max": "max"}
    if operator in names:
        return atom(Operation(names[operator], raw(left), raw(right)))
    a, b = raw(left), raw(right)
    return a + b if operator == "+" else a * b


RANGES = st.fixed_dictionaries({name: st.tuples(st.integers(0, 3), st.integers(1, 6)) for name in VARIABLES})
Ranges = dict[str, tuple[int, int]]


def facts_of(ranges: Ranges) -> Facts:
    facts = NOTHING
    for name, (lower, extent) in ranges.items():
        facts = facts.with_range(name, lower, lower + extent)
    return facts


def assignments(ranges: Ranges) -> list[dict[str, int]]:
    values = [range(lower, lower + extent) for lower, extent in ranges.values()]
    return [dict(zip(ranges, chosen, strict=True)) for chosen in product(*values)][::3]


SIZES = [dict(zip(VARIABLES, v, strict=True)) for v in product((0, 1, 2, 3, 7), repeat=3)]


MANY = settings(max_examples=4 * settings().max_examples)


# --- against evaluation -----------------------------------------------------------------------------


@given(SIGNED, SIGNED)
def test_polynomials_have_one_normal_form(a: Tree, b: Tree) -> None:
    left, right = built(a), built(b)
    for sizes in SIZES:
        assert evaluate(left, sizes) == number(a, sizes)
    assert left + right == right + left
    assert left * right == right * left
    assert (left + right) * right == left * right + right * right
    assert left - left == constant(0)
    assert left.is_whole


@MANY
@given(TREES)
def test_operations_on_sizes_agree_with_numbers(tree: Tree) -> None:
    """Without facts: all variables are sizes, which may be 0."""
    value = built(tree)
    for sizes in SIZES:
        assert evaluate(value, sizes) == number(tree, sizes)


@MANY
@given(TREES, RANGES)
def test_operations_under_ranges_agree_with_numbers(tree: Tree, ranges: Ranges) -> None:
    facts = facts_of(ranges)
    value, simplified = built(tree, facts), simplify(raw(tree), facts)
    for sizes in assignments(ranges):
        expected = number(tree, sizes)
        assert evaluate(value, sizes) == expected
        assert evaluate(simplified, sizes) == expected


@given(TREES, RANGES)
def test_simplifying_twice_changes_no_value(tree: Tree, ranges: Ranges) -> None:
    facts = facts_of(ranges)
    once = simplify(raw(tree), facts)
    twice = simplify(once, facts)
    for sizes in assignments(ranges):
        assert evaluate(twice, sizes) == evaluate(once, sizes)


@MANY
@given(SIGNED, SIGNED, RANGES)
def test_what_is_certain_holds(a: Tree, b: Tree, ranges: Ranges) -> None:
    facts, left, right = facts_of(ranges), built(a), built(b)
    above, below = at_least(left, right, facts), less_than(left, right, facts)
    highest, lowest = upper_bound(left, facts), lower_bound(left, facts)
    for sizes in assignments(ranges):
        value, other = number(a, sizes), number(b, sizes)
        assert not above or value >= other
        assert not below or value < other
        assert highest is None or evaluate(highest, sizes) >= value
        assert lowest is None or evaluate(lowest, sizes) <= value


@MANY
@given(SIGNED, SIGNED)
def test_certain_without_facts_holds_for_all_sizes(a: Tree, b: Tree) -> None:
    left, right = built(a), built(b)
    above, below, exact = at_least(left, right), less_than(left, right), divides(right, left)
    for sizes in SIZES:
        value, other = number(a, sizes), number(b, sizes)
        assert not above or value >= other
        assert not below or value < other
        assert not (exact and other) or value % other == 0


@given(TREES, st.integers(1, 9))
def test_a_ceiling_quotient_is_one(tree: Tree, divisor: int) -> None:
    value = ceiling_quotient(built(tree), divisor)
    for sizes in SIZES[::5]:
        assert evaluate(value, sizes) == -(-number(tree, sizes) // divisor)


N, M = variable("n"), variable("m")


@given(SIGNED, st.fixed_dictionaries(dict.fromkeys(VARIABLES, TREES)))
def test_substitution_is_evaluation(tree: Tree, values: dict[str, Tree]) -> None:
    given_ = {NatVariable(name): built(value) for name, value in values.items()}
    result = built(tree).substitute(given_)
    for sizes in SIZES[::5]:
        inner = {name: number(value, sizes) for name, value in values.items()}
        assert evaluate(result, sizes) == number(tree, inner)


@given(TREES)
def test_substitution_inside_operations(tree: Tree) -> None:
    for sizes in SIZES[::25]:
        numbers = {NatVariable(name): constant(value) for name, value in sizes.items()}
        assert built(tree).substitute(numbers).value == number(tree, sizes)


# --- divided by sums --------------------------------------------------------------------------------

POLYNOMIALS = st.recursive(LEAVES, lambda t: st.tuples(st.sampled_from(("+", "-", "*")), t, t), max_leaves=4)
SUMS = st.builds(lambda a, b, c: ("+", ("*", a, b), c), LEAVES, LEAVES, st.integers(1, 5))


@given(POLYNOMIALS, SUMS, st.integers(0, 1))
def test_a_product_is_divided_by_its_factors(one: Tree, other: Tree, more: int) -> None:
    factor, divisor = built(one), built(other)
    product_ = factor * divisor
    assert product_.exact_quotient(divisor) == factor
    assert divides(divisor, product_)
    assert quotient(product_, divisor) == factor
    assert remainder(product_, divisor) == constant(0)
    if len(divisor.terms) > 1 and more:
        assert (product_ + 1).exact_quotient(divisor) is None


@MANY
@given(POLYNOMIALS, SUMS, SUMS)
def test_what_is_divided_by_may_become_a_sum(one: Tree, other: Tree, rest: Tree) -> None:
    """The exact quotients of a size are whole together: then it is the number that it should be."""
    dividend, k = built(("+", one, rest)), variable("k")
    size = variable("m").exact_quotient(k)
    assert size is not None
    halves = [variable("m").exact_quotient(divisor) or size for divisor in (2, 2 * k)]
    for value in (size, 2 * size + k, *(size + half for half in halves)):
        found = value.substitute({NatVariable("m"): dividend, NatVariable("k"): built(other)})
        for sizes in SIZES[::7]:
            numbers = {"m": number(("+", one, rest), sizes), "k": number(other, sizes)}
            wanted = evaluate(value, numbers)
            if wanted.denominator == 1:
                assert evaluate(found, sizes) == wanted


def test_fractions_are_divided_by_sums_of_fractions() -> None:
    total = N + M
    half, share = total.exact_quotient(2), total.exact_quotient(N * M)
    assert half is not None
    assert share is not None
    assert half.exact_quotient(total) == constant(1).exact_quotient(2)
    assert total.exact_quotient(half) == constant(2)
    assert total.exact_quotient(share) == N * M
    assert share.exact_quotient(half) == constant(2).exact_quotient(N * M)


def test_a_divisor_that_becomes_zero_leaves_a_division() -> None:
    size = N.exact_quotient(M)
    assert size is not None
    found = size.substitute({NatVariable("m"): constant(0)})
    with pytest.raises(ZeroDivisionError):
        evaluate(found, {"n": 6})


# --- divisibility ----------------------------------------------------------------------------------


def test_an_exact_quotient_multiplies_back() -> None:
    for divisor in (constant(128), M, 4 * M, N * M):
        quotient_ = N.exact_quotient(divisor)
        assert quotient_ is not None
        assert quotient_ * divisor == N


def test_what_divides() -> None:
    assert divides(4, 8 * N)
    assert divides(N, 3 * N * M)
    assert divides(2 * N, 4 * N)
    assert not divides(4, N)
    assert not divides(N, M)
    assert divides(16, N * M, Facts(divisible=frozenset({(constant(16), N)})))
    assert divides(8, N, Facts(divisible=frozenset({(constant(16), N)})))
    assert not divides(32, N, Facts(divisible=frozenset({(constant(16), N)})))


def test_indices_of_split_arrays_simplify() -> None:
    i, j, width = variable("i"), variable("j"), constant(32)
    facts = Facts({"i": (constant(0), N), "j": (constant(0), width)})
    flat = 32 * i + j
    assert quotient(flat, 32, facts) == i
    assert remainder(flat, 32, facts) == j
    row, column = (atom(Operation(name, i, width)) for name in ("quotient", "remainder"))
    assert simplify(32 * row + column, NOTHING) == i


def test_powers() -> None:
    assert power(N + 1, 2) == N * N + 2 * N + 1
    assert power(2, 20) == constant(2**20)
    assert power(N, 0) == constant(1)


# --- against z3 ------------------------------------------------------------------------------------

COUNTS: Counter[str] = Counter()


@settings(max_examples=60)
@given(TREES, RANGES)
def test_a_simplification_holds_for_all_numbers(tree: Tree, ranges: Ranges) -> None:
    facts = facts_of(ranges)
    before, after = raw(tree), simplify(raw(tree), facts)
    solver = z3.Solver()
    solver.set("timeout", 200)
    for name, (lower, extent) in ranges.items():
        solver.add(z3.Int(name) >= lower, z3.Int(name) < lower + extent)
    solver.add(symbolic(before) != symbolic(after))
    verdict = str(solver.check())
    COUNTS[verdict] += 1
    assert verdict != "sat", solver.model()


def test_most_simplifications_are_proved() -> None:
    """Timeouts are no proof; they have to be the exception."""
    if COUNTS:
        print(dict(COUNTS))
        assert COUNTS["unsat"] >= 0.7 * COUNTS.total()


# --- solving ---------------------------------------------------------------------------------------

FACTORS = st.integers(1, 12)


@given(FACTORS, FACTORS, SIGNED)
def test_a_solution_solves(factor: int, other: int, tree: Tree) -> None:
    unknown = NatUnknown(0)
    left = factor * atom(unknown) + other
    right = built(tree)
    solved = solve(left, right)
    assert solved is not None
    found, value = solved
    assert found == unknown
    assert left.substitute({unknown: value}) == right


@given(st.sampled_from((constant(6), N, N * M, N + M)), SIGNED)
def test_a_factor_may_be_a_variable(factor: Nat, tree: Tree) -> None:
    unknown = NatUnknown(0)
    left, right = factor * atom(unknown), built(tree)
    solved = solve(left, right)
    if solved is not None:
        assert left.substitute({unknown: solved[1]}) == right
    else:
        assert len(factor.terms) > 1


def test_what_is_not_solved() -> None:
    unknown, another = atom(NatUnknown(0)), atom(NatUnknown(1))
    assert solve(unknown * unknown, N) is None
    assert solve(unknown * another, N) is None
    assert solve(N, M) is None
    assert solve(atom(Operation("quotient", unknown, constant(2))), N) is None


def test_a_whole_solution_is_preferred() -> None:
    two_sizes = solve(32 * atom(NatUnknown(1)), atom(NatUnknown(0)))
    assert two_sizes == (NatUnknown(0), 32 * atom(NatUnknown(1)))


def test_a_fractional_solution_is_a_multiple() -> None:
    solved = solve(32 * atom(NatUnknown(0)), N)
    assert solved is not None
    assert not solved[1].is_whole
    assert evaluate(solved[1], {"n": 48}) == Fraction(3, 2)


# --- printing --------------------------------------------------------------------------------------


def parsed(text: str) -> Nat:
    written = as_type(parse_expression(Source("size", text)))
    assert written is not None, text
    kinds = dict.fromkeys((*VARIABLES, "m"), Kind.NAT)
    result = resolve_argument(written, Kind.NAT, kinds)
    assert isinstance(result, Nat)
    return result


@given(st.one_of(TREES, SIGNED))
def test_a_printed_size_parses_back(tree: Tree) -> None:
    value = built(tree)
    if value.terms and value.terms[0][1] > 0:
        assert parsed(str(value)) == value, str(value)


@pytest.mark.parametrize("text", ["n", "2*n + 1", "n*n", "min(m, n)", "(n + 1) / 2", "i % 4", "n / 32", "0"])
def test_sizes_as_programs_write_them(text: str) -> None:
    value = parsed(text)
    assert parsed(str(value)) == value


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (quotient(N, 2), "n / 2"),
        (quotient(remainder(N, 6), 4), "(n % 6) / 4"),
        (remainder(N, 6) + quotient(N, 4), "n % 6 + n / 4"),
        (M - quotient(N, 2), "m - n / 2"),
        (2 * quotient(N, 2), "2*(n / 2)"),
        (M * remainder(N, 6), "m*(n % 6)"),
    ],
)
def test_an_operation_has_parentheses_where_it_is_a_part_only(size: Nat, text: str) -> None:
    """As text, as programs write it, and as the size of an array."""
    assert str(size) == show_nat(size) == text
    assert str(Array(size, F32)) == show_type(Array(size, F32)) == f"({text}).f32"
    assert "((" not in str(NatFunction("i", size))


# --- as C computes ----------------------------------------------------------------------------------------


def in_c(size: Nat, values: dict[str, int]) -> int:
    """The value as C has it, which rounds quotients to zero."""

    def of(base: object) -> int:
        if not isinstance(base, Operation):
            return values[base.name]  # type: ignore[attr-defined]
        left, right = in_c(base.left, values), in_c(base.right, values)
        rounded = int(Fraction(left, right))
        return {"quotient": rounded, "remainder": left - right * rounded}[base.operator]

    parts = (Fraction(c) * prod(of(base) ** times for base, times in m) for m, c in size.terms)
    return int(sum(parts, Fraction(0)))


def test_a_quotient_of_a_natural_number_is_the_same_in_c() -> None:
    """No part of it is the quotient of a negative number, which C would round up."""
    random, negative = Random(20261127), 0
    x, y = variable("x"), variable("y")
    for _ in range(400):
        a, b, c = random.randint(-9, 9) * random.choice((1, 8)), random.randint(-9, 9), random.randint(0, 300)
        divisor = random.choice((2, 3, 4, 8, 12, 64, 128))
        size = x * a + y * b * random.choice((1, 8, 64)) + c
        made = quotient(size, divisor) if random.random() < 0.7 else quotient(quotient(size, 2), divisor)
        for values in ({"x": i, "y": j} for i in (0, 1, 2, 5, 31) for j in (0, 1, 3, 7)):
            whole = size.substitute({NatVariable(n): constant(v) for n, v in values.items()}).value or 0
            if whole >= 0:
                exact = made.substitute({NatVariable(n): constant(v) for n, v in values.items()}).value
                assert in_c(made, values) == exact, (size, divisor, made, values)
                negative += min(a, b) < 0
    assert negative > 500


def test_what_follows_from_some_facts_is_not_taken_for_others() -> None:
    """Results are remembered: of equal facts, in whatever order they are known, and of these alone."""
    i, j = variable("i"), variable("j")
    few = Facts().with_range("j", 0, 2).with_range("i", 0, 4)
    many = Facts().with_range("i", 0, 9).with_range("j", 0, 2)
    same = Facts().with_range("i", 0, 4).with_range("j", 0, 2)
    assert few == same != many and hash(few) == hash(same)
    for facts, inside in ((few, True), (many, False), (same, True), (NOTHING, False), (few, True)):
        assert (quotient(i + 4 * j, 4, facts) == j) is inside
        assert (remainder(i + 4 * j, 4, facts) == i) is inside
        assert (simplify(quotient(i + 4 * j, 4), facts) == j) is inside
        assert (upper_bound(i, facts) == constant(3)) is inside
        assert lower_bound(i + 1, facts) == (i + 1 if facts is NOTHING else constant(1))
