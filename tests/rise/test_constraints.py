"""What a definition asks of its sizes is all that it needs: nothing is assumed silently."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.constraint import Constraint, at_least_zero, divisibility, natural, strongest
from rise.errors import RiseError, TypeMismatch
from rise.expr import Definition
from rise.interpret import call
from rise.nat import Nat, constant, evaluate, minimum, power, quotient, remainder, variable
from rise.types import Array, Function
from rise.verify import verify

# --- random programs over symbolic sizes ------------------------------------------------------------

# steps on an array of numbers, each giving an array of numbers; {0} is a size, {1} one that is not zero
STEPS = [
    "split({1}) |> join",
    "split({1}) |> transpose |> join",
    "split({1}) |> map(reduce(+, 0))",
    "take({0})",
    "drop({0})",
    "slide({0}, {1}) |> map(reduce(+, 0))",
    "slide({0}, {1}) |> join",
    "padCst({0}, {0})(0)",
    "map(fun(x => x + 1))",
]
SIZES = ["1", "2", "3", "5", "n", "m", "2*m", "n - 2", "n/2", "m + 1", "n - m", "n % 3", "ceildiv(n, 2)"]
DIVISORS = ["1", "2", "3", "4", "6", "m + 1", "2*m + 1", "n + 2", "ceildiv(n + 1, 2)"]
INPUTS = ["n", "m", "n*m", "n + m", "2*n", "n - 3", "n/2", "6*m", "12"]


@dataclass(frozen=True)
class Drawn:
    text: str

    def at(self, n: int, m: int) -> str:
        """The same program with numbers for its sizes."""
        body = self.text.replace("depFun((n: Nat, m: Nat) => ", "").removesuffix(")")
        return re.sub(r"\bm\b", str(m), re.sub(r"\bn\b", str(n), body))


@st.composite
def programs(draw: st.DrawFn) -> Drawn:
    steps = [
        draw(st.sampled_from(STEPS)).format(draw(st.sampled_from(SIZES)), draw(st.sampled_from(DIVISORS)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    size = draw(st.sampled_from(INPUTS))
    return Drawn(f"def f = depFun((n: Nat, m: Nat) => fun(xs: ({size}).i32 => xs |> {' |> '.join(steps)}))")


def accepts(text: str) -> bool:
    """Whether the checker takes it and finds every size: rows of no elements could be any number."""
    try:
        return not check_text(text)["f"].parameters
    except RiseError as error:
        assert error.code in ("R0401", "R0402", "R0403", "R0404", "R0214"), error.render()
        return False


def asks_nothing_wrong(definition: Definition, n: int, m: int) -> bool:
    try:
        specialise(definition, {"n": n, "m": m})
    except TypeMismatch as error:
        assert error.code in ("R0401", "R0404")
        assert error.origin is not None
        return False
    return True


FIRED: Counter[str] = Counter()


@settings(max_examples=150)
@given(programs(), st.data())
def check_no_silent_assumption(program: Drawn, data: st.DataObject) -> None:
    FIRED["drawn"] += 1
    try:
        definition = check_text(program.text)["f"]
    except RiseError:
        return
    FIRED["accepted"] += 1
    for n, m in data.draw(st.lists(st.tuples(st.integers(0, 13), st.integers(0, 7)), min_size=4, max_size=4)):
        holds = asks_nothing_wrong(definition, n, m)
        assert holds == accepts(program.at(n, m)), (
            program.text,
            n,
            m,
            [str(c) for c in definition.constraints],
        )
        FIRED["holds" if holds else "refused"] += 1
        if holds:
            evaluated(definition, n, m)


def evaluated(definition: Definition, n: int, m: int) -> None:
    """The specialised program is well typed, and its result has the shape that its type says."""
    term = specialise(definition, {"n": n, "m": m})
    verify(term)
    assert isinstance(term.type, Function)
    parameter, result = term.type.parameter, term.type.result
    assert isinstance(parameter, Array) and isinstance(result, Array)
    assert parameter.size.value is not None
    xs = np.arange(parameter.size.value, dtype=np.int32)
    assert np.shape(call(term, xs)) == (result.size.value,)


def test_a_program_runs_at_the_sizes_for_which_its_constraints_hold_and_at_no_others() -> None:
    """Inference commutes with instantiation: constraints at numbers say what inference on numbers says."""
    FIRED.clear()
    check_no_silent_assumption()
    assert FIRED["accepted"] >= FIRED["drawn"] // 3, FIRED
    assert FIRED["holds"] >= 50, FIRED
    assert FIRED["refused"] >= 50, FIRED


# --- what is recorded, and how it reads -------------------------------------------------------------

n, m, k = (variable(name) for name in "nmk")
VALUES = list(product(range(7), repeat=3))


def holds(constraint: Constraint, sizes: dict[str, int]) -> bool:
    assert isinstance(constraint.value, Nat)
    value = evaluate(constraint.value, sizes)
    if constraint.divisor is None:
        return value >= 0
    divisor = evaluate(constraint.divisor, sizes)
    return divisor != 0 and (value / divisor).denominator == 1


EXPRESSIONS = [
    n - 5, n - m, 2 * n - 10, n * m - 3, quotient(n - 3, constant(2)), n.exact_quotient(4),
    (6 * n + 9).exact_quotient(12), (n + m).exact_quotient(2), n - minimum(n, m),
    n - quotient(n, constant(3)),
    remainder(n, constant(4)) - 1, 4 - remainder(n, constant(4)), n.exact_quotient(k), n + 3 - m,
    2 * n - 3, 2 * power(constant(2), n) - 1, 1 - power(constant(2), n), (n - 1).exact_quotient(4),
    quotient(n, k), power(constant(2), n - 1), n - minimum(constant(4), n),
]  # fmt: skip


@pytest.mark.parametrize("size", EXPRESSIONS, ids=str)
def test_the_constraints_of_a_size_hold_exactly_where_it_is_a_natural_number(size: Nat) -> None:
    asked = list(natural(size))
    for values in VALUES:
        sizes = dict(zip("nmk", values, strict=True))
        try:
            number = evaluate(size, sizes)
        except ZeroDivisionError:
            number = Fraction(-1)
        is_natural = number >= 0 and number.denominator == 1
        assert is_natural == all(holds(c, sizes) for c in asked), (str(size), sizes, [str(c) for c in asked])


@pytest.mark.parametrize(
    ("value", "divisor", "text"),
    [
        (n, 32, "32 | n"), (6 * n, 4, "2 | n"), (n + 32, 32, "32 | n"), (n + 3, 4, "4 | n - 1"),
        (3 * n, 4, "4 | n"), (8 * n + 16, 8, ""), (6 * n + 4 * m, 4, "2 | n"), (n * m, 8, "8 | m*n"),
    ],
)  # fmt: skip
def test_divisibility_is_simplified(value: Nat, divisor: int, text: str) -> None:
    asked = list(divisibility(value, constant(divisor)))
    assert " ".join(map(str, asked)) == text
    for values in VALUES:
        sizes = dict(zip("nmk", values, strict=True))
        assert holds(Constraint(value, constant(divisor)), sizes) == all(holds(c, sizes) for c in asked)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (n - 5, "n >= 5"),
        (2 * n - 10, "n >= 5"),
        (n - m - 2, "n >= m + 2"),
        (n + m, ""),
        (2 * n - 3, "n >= 2"),
        (2 * power(constant(2), n) - 1, ""),
        (n - 2 * m, "n >= 2*m"),
    ],
)
def test_an_inequality_is_readable(value: Nat, text: str) -> None:
    assert " ".join(str(c) for c in at_least_zero(value)) == text


def test_what_others_imply_is_left_out() -> None:
    asked = [
        Constraint(n - 3), Constraint(n, constant(8)), Constraint(n - 5), Constraint(n, constant(32)),
        Constraint(m - 1), Constraint(n - 5),
    ]  # fmt: skip
    assert [str(c) for c in strongest(asked)] == ["n >= 5", "32 | n", "m >= 1"]


CONSTRAINTS = {
    "fun(xs: n.i32 => xs |> slide(5, 4))": "4 | n - 1, n >= 5",
    "fun(xs: n.i32 => xs |> split(8) |> join |> split(32))": "32 | n",
    "fun(xs: n.i32 => xs |> drop(1) |> take(2))": "n >= 3",
    "fun((xs: n.i32, ys: m.i32) => ys |> drop(n))": "m >= n",
    "fun(xs: (n - 3).i32 => xs)": "n >= 3",
    "fun(xs: (n/m).i32 => xs)": "m >= 1",
    "fun(p: (Idx[n - 1], 4.(m - 2).f16) => p)": "n >= 1, m >= 2",
    "fun(f: (n - 1).f32 -> f32 => f)": "n >= 1",
    "fun(xs: n.i32 => (split(2)(xs) : (n/2).2.i32))": "2 | n",
    "fun(xs: (n + m).i32 => (split(2)(xs) : (n/2 + m/2).2.i32))": "2 | m + n, 2 | m, 2 | n",
    "fun(xs: n.i32 => xs |> split(m))": "m | n",
    "fun(xs: n.i32 => xs |> idx(2))": "n >= 3",
    "fun(xs: n.i32 => xs |> take(n/2))": "",
    "fun(xs: (4*n).i32 => xs |> split(4))": "",
}


@pytest.mark.parametrize(("body", "text"), CONSTRAINTS.items())
def test_a_definition_records_what_it_asks(body: str, text: str) -> None:
    definition = check_text(f"def f = depFun((n: Nat, m: Nat) => {body})")["f"]
    assert ", ".join(map(str, definition.constraints)) == text


def refused(text: str) -> RiseError:
    with pytest.raises(RiseError) as caught:
        check_text(text, "p.rise")
    return caught.value


def test_a_use_tells_its_place_and_where_each_definition_asks() -> None:
    error = refused(
        "def rows = depFun((n: Nat) => fun(xs: n.f32 => xs |> split(32)))\n"
        "def twice = depFun((m: Nat) => fun(xs: (2*m).f32 => rows(2*m)(xs)))\n"
        "def f = fun(xs: 20.f32 => twice(10)(xs))"
    )
    assert (error.code, str(error.origin)) == ("R0401", "p.rise:3:27")
    assert [(note.text, str(note.origin)) for note in error.notes] == [
        ("`rows` needs 16 | m", "p.rise:2:53"),
        ("`split(32)` needs 32 | n", "p.rise:1:54"),
    ]


def test_explicit_sizes_are_put_into_what_a_definition_asks() -> None:
    text = (
        "def rows = depFun((n: Nat) => fun(xs: n.f32 => xs |> split(4)))\n"
        "def f = depFun((n: Nat) => fun((a: n.f32, xs: (2*n).f32) => rows(2*n)(xs)))"
    )
    assert [str(c) for c in check_text(text)["f"].constraints] == ["2 | n"]


def test_a_definition_that_asks_something_is_no_function_of_all_sizes() -> None:
    text = (
        "def three = depFun((l: Nat) => fun(xs: (2*l).f32 => xs |> split(3) |> join |> take(l)))\n"
        "def f = fun(xs: 12.f32 => xs |> iterate(1)(three))"
    )
    assert refused(text).code == "R0401"


def test_a_number_is_asked_of_a_type() -> None:
    text = "def double = fun(x => x + x)\n"
    assert [str(c) for c in check_text(text)["double"].constraints] == ["t is a number"]
    assert check_text(text + "def f = fun(x: f32 => double(x))")["f"].constraints == ()
    error = refused(text + "def f = fun(x: 3.f32 => double(x))")
    assert (error.code, [note.text for note in error.notes]) == ("R0308", ["`+` is for numbers"])


def test_a_constraint_of_one_definition_is_not_another_ones() -> None:
    """Sizes of two definitions have one name by chance only."""
    text = (
        "def rows = depFun((n: Nat) => fun(xs: n.f32 => xs |> split(4)))\n"
        "def f = depFun((n: Nat) => fun((a: n.f32, xs: 8.f32) => rows(8)(xs)))"
    )
    assert check_text(text)["f"].constraints == ()


# --- sizes may be zero ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["max(n, 1)", "min(n, 1)", "n + 1 - min(n, 1)", "max(2*n, n + 1)"])
def test_a_size_is_not_taken_to_be_at_least_one(size: str) -> None:
    error = refused(f"def f: {{n: Nat}} -> n.f32 -> ({size}).f32 = fun(xs => xs)")
    assert error.code == "R0402"


def test_a_border_is_repeated_of_an_array_that_has_one() -> None:
    clamped = check_text("def f: {m: Nat} -> m.f32 -> (m + 3).f32 = padClamp(1, 2)")["f"]
    assert [str(c) for c in clamped.constraints] == ["m >= 1"]
    assert check_text("def f = fun(xs: 1.f32 => xs |> padClamp(3, 0))")["f"].constraints == ()
    assert refused("def f = fun(xs: 0.f32 => xs |> padClamp(1, 1))").code == "R0404"


def test_the_windows_of_a_stencil_ask_nothing() -> None:
    windows = check_text("def f: {n: Nat} -> (n + 2).f32 -> n.f32 = slide(3, 1) >> map(reduce(+, 0))")["f"]
    assert [str(c) for c in windows.constraints] == ["n >= 1"]
    more = check_text("def f: {n: Nat} -> (n + 3).f32 -> (n + 1).f32 = slide(3, 1) >> map(reduce(+, 0))")["f"]
    assert more.constraints == ()


DIVIDED = "def g = depFun((n: Nat, k: Nat) => fun(xs: n.f32 => xs |> split(k)))\n"


@pytest.mark.parametrize(
    ("size", "rows", "shown", "asked"),
    [
        ("3*(a + b)", "a + b", "3.(a + b).f32", []),
        ("(a + b)*(a + 2*b)", "a + b", "(a + 2*b).(a + b).f32", []),
        ("a", "a + b", "(a / (a + b)).(a + b).f32", ["a + b | a"]),
        ("6", "2", "3.2.f32", []),
    ],
)
def test_a_divisor_may_become_a_sum(size: str, rows: str, shown: str, asked: list[str]) -> None:
    use = f"def f = depFun((a: Nat, b: Nat) => fun(xs: ({size}).f32 => g({size}, {rows})(xs)))"
    found = check_text(DIVIDED + use)["f"]
    assert str(found.body.type).endswith(f" -> {shown}")
    assert [str(c) for c in found.constraints] == asked


def test_a_divisor_that_becomes_zero_is_refused() -> None:
    assert refused(DIVIDED + "def f = fun(xs: 6.f32 => g(6, 0)(xs))").code == "R0401"
