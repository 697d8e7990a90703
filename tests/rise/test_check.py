"""Inference: types that programs have, and what is said of programs that have none."""

from __future__ import annotations

import re

import pytest

from rise.check.program import check_expression, check_text
from rise.errors import RiseError
from rise.expr import Expr, Lambda, Literal, subterms
from rise.types import SCALARS

# --- types of closed expressions --------------------------------------------------------------------

TYPES = {
    "fun(x: f32 => x + 1)": "f32 -> f32",
    "fun(x: i8 => x * 2 - x)": "i8 -> i8",
    "fun((x: i32, y: i32) => x < y)": "i32 -> i32 -> bool",
    "fun(xs: 4.f32 => xs |> map(fun(x => x * x)))": "4.f32 -> 4.f32",
    "fun(xs: 4.f16 => xs |> map(fun(x => f32(x))))": "4.f16 -> 4.f32",
    "fun(xs: 4.f32 => xs |> reduce(+, 0))": "4.f32 -> f32",
    "fun(xs: 12.f32 => xs |> split(4))": "12.f32 -> 3.4.f32",
    "fun(xs: 12.f32 => xs |> split(4) |> transpose)": "12.f32 -> 4.3.f32",
    "fun(xs: 3.4.f32 => xs |> join)": "3.4.f32 -> 12.f32",
    "fun(xs: 3.4.f32 => xs |> join |> split(6))": "3.4.f32 -> 2.6.f32",
    "fun((xs: 3.f32, ys: 3.i32) => zip(xs)(ys))": "3.f32 -> 3.i32 -> 3.(f32, i32)",
    "fun(xs: 3.(f32, i32) => unzip(xs))": "3.(f32, i32) -> (3.f32, 3.i32)",
    "fun(xs: 8.f32 => xs |> take(3))": "8.f32 -> 3.f32",
    "fun(xs: 8.f32 => xs |> drop(3))": "8.f32 -> 5.f32",
    "fun((xs: 8.f32, ys: 2.f32) => concat(xs)(ys))": "8.f32 -> 2.f32 -> 10.f32",
    "fun(xs: 8.f32 => xs |> slide(3, 1))": "8.f32 -> 6.3.f32",
    "fun(xs: 8.f32 => xs |> padCst(1, 2)(0))": "8.f32 -> 11.f32",
    "fun(p: (f32, i32) => (snd(p), fst(p)))": "(f32, i32) -> (i32, f32)",
    "fun(x: f32 => let y = x * x in y + y)": "f32 -> f32",
    "fun(xs: 4.f32 => generate(fun(i => xs |> idx(i))))": "4.f32 -> 4.f32",
    "depFun((n: Nat) => fun(xs: n.f32 => xs |> map(fun(x => x))))": "(n: Nat) -> n.f32 -> n.f32",
    "depFun((n: Nat, m: Nat) => fun(xs: n.m.f32 => xs |> transpose))":
        "(n: Nat) -> (m: Nat) -> n.m.f32 -> m.n.f32",
    "depFun((t: DataType) => fun(x: t => (x, x)))": "(t: DataType) -> t -> (t, t)",
    "fun(xs: 16.16.f16 => (asFragment(xs): Fragment[16, 16, 16, f16, AMatrix]))":
        "16.16.f16 -> Fragment[16, 16, 16, f16, AMatrix]",
    "fun(x: f32 => x) >> fun(y => y < 1)": "f32 -> bool",
    "(fun((x: f32, y: f32) => x - y))(1)": "f32 -> f32",
}  # fmt: skip


@pytest.mark.parametrize(("text", "type_"), TYPES.items())
def test_type(text: str, type_: str) -> None:
    assert str(check_expression(text).type) == type_


# --- functions of two arguments, or of a pair -------------------------------------------------------


def lambdas(text: str) -> list[str]:
    return [str(t.type) for t in subterms(check_expression(text)) if isinstance(t, Lambda)]


def test_two_parameters_are_curried_where_two_are_wanted() -> None:
    text = "fun(xs: 4.f32 => xs |> reduceSeq(fun((acc, x) => acc + x))(0))"
    assert "f32 -> f32 -> f32" in lambdas(text)


def test_two_parameters_take_a_pair_apart_where_one_is_wanted() -> None:
    text = "fun(xs: 4.(f32, f32) => xs |> map(fun((x, y) => x + y)))"
    assert "(f32, f32) -> f32" in lambdas(text)


def test_both_in_one_function() -> None:
    text = "fun(xs: 4.(f32, i32) => xs |> reduceSeq(fun((acc, (x, y)) => acc + x))(0))"
    assert "f32 -> (f32, i32) -> f32" in lambdas(text)


def test_a_function_by_itself_is_curried() -> None:
    assert lambdas("fun((x: f32, y: i32) => x)")[0] == "f32 -> i32 -> f32"


# --- literals ---------------------------------------------------------------------------------------


def literals(term: Expr) -> list[tuple[object, str]]:
    return [(t.value, str(t.type)) for t in subterms(term) if isinstance(t, Literal)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", [(3, "i32")]),
        ("2.5", [(2.5, "f32")]),
        ("1 + 2.5", [(1.0, "f32"), (2.5, "f32")]),
        ("true", [(True, "bool")]),
        ("fun(x: f16 => x + 1)", [(1.0, "f16")]),
        ("fun(x: u8 => x + 255)", [(255, "u8")]),
        ("f16(3)", [(3, "i32")]),
    ],
)
def test_a_literal_has_the_type_its_place_wants(text: str, expected: list[tuple[object, str]]) -> None:
    assert literals(check_expression(text)) == expected
    assert [type(v) for v, _ in literals(check_expression(text))] == [type(v) for v, _ in expected]


@pytest.mark.parametrize("name", sorted(SCALARS))
def test_every_scalar_can_be_cast_to(name: str) -> None:
    assert str(check_expression(f"fun(x: i32 => {name}(x))").type) == f"i32 -> {name}"


# --- definitions ------------------------------------------------------------------------------------


def definition(text: str, name: str = "f") -> tuple[str, list[str]]:
    found = check_text(text)[name]
    return str(found.scheme), [str(c) for c in found.constraints]


def test_what_is_left_open_becomes_a_parameter() -> None:
    assert definition("def f = fun(xs => xs |> transpose |> transpose)") == (
        "{n: Nat} -> {n1: Nat} -> {t: DataType} -> n.n1.t -> n.n1.t", [],
    )  # fmt: skip


def test_a_split_of_an_unknown_size_records_what_it_needs() -> None:
    scheme, constraints = definition("def f: {n: Nat} -> n.f32 -> n.f32 = fun(xs => xs |> split(32) |> join)")
    assert scheme == "{n: Nat} -> n.f32 -> n.f32"
    assert constraints == ["32 | n"]


def test_a_take_of_an_unknown_size_records_what_it_needs() -> None:
    _, constraints = definition("def f: {n: Nat} -> n.f32 -> 3.f32 = fun(xs => xs |> take(3))")
    assert constraints == ["n - 3 >= 0"]


def test_a_definition_asks_its_user_for_what_it_needs() -> None:
    text = "def f: {n: Nat} -> n.f32 -> n.f32 = fun(xs => xs |> split(32) |> join)\n"
    assert definition(text + "def g = fun(xs: 64.f32 => f(xs))", "g")[1] == []
    assert definition(text + "def g: {m: Nat} -> m.f32 -> m.f32 = fun(xs => f(xs))", "g")[1] == ["32 | m"]
    assert error(text + "def g = fun(xs: 48.f32 => f(xs))") == ("R0401", "32 does not divide 48")


def test_a_multiple_needs_no_constraint() -> None:
    text = "def f: {n: Nat} -> (32*n).f32 -> n.32.f32 = fun(xs => xs |> split(32))"
    assert definition(text) == ("{n: Nat} -> (32*n).f32 -> n.32.f32", [])


def test_definitions_are_used_at_several_types() -> None:
    text = "def twice = fun(x => (x, x))\ndef f = fun((x: f32, y: 3.i32) => (twice(x), twice(y)))"
    assert definition(text)[0] == "f32 -> 3.i32 -> ((f32, f32), (3.i32, 3.i32))"


# --- mistakes ---------------------------------------------------------------------------------------


def error(text: str) -> tuple[str, str]:
    with pytest.raises(RiseError) as caught:
        check_text(text) if text.startswith("def") else check_expression(text)
    assert caught.value.origin is not None
    return caught.value.code, anonymous(caught.value.message)


def anonymous(message: str) -> str:
    """Without the numbers of what is unknown."""
    return re.sub(r"\?\d+", "?", message)


ERRORS = {
    "fun(x: f32 => x + y)": ("R0201", "unknown name `y`"),
    "fun(xs: 4.f32 => xs |> mpa(fun(x => x)))": ("R0201", "unknown name `mpa`"),
    "fun((x: f32, y: i32) => x + y)": ("R0301", "expected `f32`, found `i32`"),
    "fun(x: f32 => x |> map(fun(y => y)))": ("R0301", "expected `?.?`, found `f32`"),
    "fun(f => f(f))": ("R0302", "the type `? -> ?` would contain itself"),
    "fun(x: f32 => (x, fun(y => y)))": ("R0303", "expected data, found the function type `? -> ?`"),
    "fun(x: f32 => x(1))": ("R0304", "`f32` is no function: it takes no argument"),
    "fun(xs: 4.f32 => concat(xs)(1))": ("R0305", "the number 1 is no `?.f32`"),
    "fun(x: i32 => x + 1.5)": ("R0306", "the number 1.5 is no whole number of type `i32`"),
    "fun(x: i8 => x + 300)": ("R0307", "the number 300 does not fit in `i8`"),
    "fun(x: u8 => x + 256)": ("R0307", "the number 256 does not fit in `u8`"),
    "fun((xs: 3.f32, ys: 3.f32) => xs + ys)": ("R0308", "`+` is for numbers, not for `3.f32`"),
    "fun((x: (f32, f32), y: (f32, f32)) => x * y)": ("R0308", "`*` is for numbers, not for `(f32, f32)`"),
    "fun(xs: 10.f32 => xs |> split(4))": ("R0401", "4 does not divide 10"),
    "fun(xs: 48.f32 => xs |> split(32))": ("R0401", "32 does not divide 48"),
    "fun((xs: 3.f32, ys: 4.f32) => zip(xs)(ys))": (
        "R0402", "the sizes `3` and `4` differ: expected `3.?`, found `4.f32`",
    ),
    "fun(xs: 3.f32 => xs |> take(4))": ("R0404", "a size would be negative: -1"),
    "fun(xs: 3.f32 => split)": ("R0206", "`split` needs its argument `n: Nat`"),
    "depFun((n: Nat) => fun(x: f32 => n))": ("R0203", "`n` is a Nat, not a value"),
    "fun(x: f32 => toMem(Shared)(Local))": ("R0203", "`Local` is a constant, not a value"),
    "depFun((n: Size) => fun(x: f32 => x))": ("R0208", "unknown kind `Size`"),
    "depFun((n: Nat, n: Nat) => fun(x: n.f32 => x))": ("R0205", "`n` is already a parameter here"),
    "def f = fun(x => f(x))": ("R0213", "`f` refers to itself"),
    "def f = 1\ndef f = 2": ("R0211", "`f` is defined twice"),
    "def f: f32 -> i32 = fun(x => x)": ("R0301", "expected `i32`, found `f32`"),
    "def f: (n: Nat) -> n.f32 -> f32 = depFun((t: DataType) => fun(x: t => x))": (
        "R0301", "expected `(n: Nat) -> n.f32 -> f32`, found a function of a DataType",
    ),
    "import \"nowhere.rise\"\ndef f = 1": ("R0212", "there is no file `nowhere.rise` to import"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ERRORS.items())
def test_mistake(text: str, expected: tuple[str, str]) -> None:
    if text.startswith("import"):
        with pytest.raises(RiseError) as caught:
            check_text(text)
        assert (caught.value.code, caught.value.message) == expected
        return
    assert error(text) == expected


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("fun(xs: 4.f32 => xs |> mapp(fun(x => x)))", "did you mean `map`?"),
        ("fun((x: f32, y: i32) => x + y)", "convert with `f32(…)`"),
        ("fun((xs: 3.f32, ys: 3.f32) => xs + ys)", "apply it with `map`"),
        ("fun(xs: 3.f32 => split)", "write `split(…)` with a Nat"),
    ],
)
def test_hint(text: str, hint: str) -> None:
    with pytest.raises(RiseError) as caught:
        check_expression(text)
    assert caught.value.hint == hint


def test_an_error_shows_its_place() -> None:
    with pytest.raises(RiseError) as caught:
        check_text("def f = fun(x: f32 =>\n  x + wrong)", "program.rise")
    lines = caught.value.render().splitlines()
    assert lines[0].startswith("program.rise:2:7: error R0201: unknown name `wrong`")
    assert lines[1].endswith("  x + wrong)")
    assert lines[2].count("^") == len("wrong")
