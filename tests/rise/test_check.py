"""Inference: types that programs have, and what is said of programs that have none."""

from __future__ import annotations

import pytest

from rise.check.program import check_expression, check_text
from rise.errors import RiseError, TypeMismatch
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
    "fun((p: (f32, i32), y: i32) => (fun((q: (f32, i32), z: i32) => snd(q) * z))(p)(y))":
        "(f32, i32) -> i32 -> i32",
    "fun((p: (f32, i32), y: i32) => (fun((q, z) => snd(q) * z))(p, y))": "(f32, i32) -> i32 -> i32",
    "fun((p: (f32, i32)) => (fun((x, i) => x))(p))": "(f32, i32) -> f32",
    "fun(xs: 8.f32 => (depFun((l: Nat) => fun(ys: l.f32 => ys)))(8)(xs))": "8.f32 -> 8.f32",
    "fun(x: f32 => (depFun((t: DataType) => fun(y: t => (y, y))))(f32)(x))": "f32 -> (f32, f32)",
    "true == false": "bool",
    "i32(true) + i32(bool(2))": "i32",
    "fun((v: Vec[2, f32]) => v * 0.5)": "Vec[2, f32] -> Vec[2, f32]",
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
    assert constraints == ["n >= 3"]


def test_a_definition_asks_its_user_for_what_it_needs() -> None:
    text = "def f: {n: Nat} -> n.f32 -> n.f32 = fun(xs => xs |> split(32) |> join)\n"
    assert definition(text + "def g = fun(xs: 64.f32 => f(xs))", "g")[1] == []
    assert definition(text + "def g: {m: Nat} -> m.f32 -> m.f32 = fun(xs => f(xs))", "g")[1] == ["32 | m"]
    assert error(text + "def g = fun(xs: 48.f32 => f(xs))") == (
        "R0401",
        "32 does not divide 48, as `f` needs",
    )


def test_a_multiple_needs_no_constraint() -> None:
    text = "def f: {n: Nat} -> (32*n).f32 -> n.32.f32 = fun(xs => xs |> split(32))"
    assert definition(text) == ("{n: Nat} -> (32*n).f32 -> n.32.f32", [])


def test_definitions_are_used_at_several_types() -> None:
    text = "def twice = fun(x => (x, x))\ndef f = fun((x: f32, y: 3.i32) => (twice(x), twice(y)))"
    assert definition(text)[0] == "f32 -> 3.i32 -> ((f32, f32), (3.i32, 3.i32))"


# --- hard programs ----------------------------------------------------------------------------------

HARD = {
    "def f = depFun((n: Nat, t: DataType) => fun(xs: n.t => xs |> map(fun(x => (x, x)))))":
        "(n: Nat) -> (t: DataType) -> n.t -> n.(t, t)",
    "def f = map(map(id)) >> transpose >> join":
        "{n: Nat} -> {n1: Nat} -> {t: DataType} -> n.n1.t -> (n*n1).t",
    "def f = fun(xs: 4.f32 => xs |> map(add(1)) |> map((*)(2)))": "4.f32 -> 4.f32",
    "def half = depFun((l: Nat) => fun(xs: (2*l).f32 => xs |> split(2) |> map(reduce(+, 0))))\n"
    "def f = fun(xs => xs |> iterate(3)(half))": "{n: Nat} -> (8*n).f32 -> n.f32",
    "def f: {l: Nat} -> (8*l).l.f32 -> l.l.f32 = fun(xs => xs |> iterate(3)(depFun((h: Nat) =>"
    " fun(ys => ys |> split(2) |> map(fun(p => p |> transpose |> map(reduce(+, 0))))))))":
        "{l: Nat} -> (8*l).l.f32 -> l.l.f32",
    "def f = depFun((n: Nat) => fun(xs => xs |> reorder(n)(natFun(i => n - 1 - i))(natFun(i => n - 1 - i))))":
        "{t: DataType} -> (n: Nat) -> n.t -> n.t",
    "def f: {m: Nat, n: Nat, k: Nat, f: FragmKind} -> m.n.f16 -> Fragment[m, n, k, f16, f] ="
    " fun(x => asFragment(x))":
        "{m: Nat} -> {n: Nat} -> {k: Nat} -> {f: FragmKind} -> m.n.f16 -> Fragment[m, n, k, f16, f]",
    "def sum = depFun((n: Nat) => fun(xs: n.f32 => xs |> reduce(+, 0)))\n"
    "def use: ((m: Nat) -> m.f32 -> f32) -> f32 = fun(g => g(4)(generate(fun(i => 1.0))))\n"
    "def f = use(sum)": "f32",
    "def f: {n: Nat} -> n.f32 -> (n/2).2.f32 = fun(xs => split(2)(xs))": "{n: Nat} -> n.f32 -> (n/2).2.f32",
    "def plus = fun((x, y) => x + y)\ndef f = fun(xs: 4.f32 => xs |> reduce(plus, 0))": "4.f32 -> f32",
    "def f = depFun((n: Nat, k: Nat) => fun((A: n.k.f16, x: k.f16) => A |> map(fun(row =>"
    " zip(row)(x) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0)))))":
        "(n: Nat) -> (k: Nat) -> n.k.f16 -> k.f16 -> n.f32",
}  # fmt: skip


@pytest.mark.parametrize(("text", "scheme"), HARD.items())
def test_hard_programs_have_their_types(text: str, scheme: str) -> None:
    assert definition(text)[0] == scheme


def test_an_annotation_may_be_less_general_than_its_definition() -> None:
    assert definition("def f: 3.f32 -> 3.f32 = fun(xs => xs)")[0] == "3.f32 -> 3.f32"
    assert definition("def f: {n: Nat} -> n.f32 -> n.f32 = map(id)")[0] == "{n: Nat} -> n.f32 -> n.f32"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("def f: {n: Nat} -> n.f32 -> 4.f32 = fun(xs => xs)", "1:47"),
        ("def f: {n: Nat, m: Nat} -> n.f32 -> m.f32 = fun(xs => xs)", "1:55"),
        ("def f: {t: DataType} -> t -> t = fun(x => x + (1 : f32))", "1:48"),
        ("def f: {t: DataType, s: DataType} -> t -> s = fun(x => x)", "1:56"),
    ],
)
def test_an_annotation_that_is_more_general_than_its_definition_is_a_mistake(text: str, place: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        check_text(text, "p")
    assert str(caught.value.origin) == f"p:{place}"


def test_a_size_stays_in_the_function_that_binds_it() -> None:
    """The type of the elements would be another one in each step of the iteration."""
    text = "fun(xs => xs |> iterate(2)(depFun((l: Nat) => fun(ys: (2*l).{}.f32 => ys |> take(l)))))"
    assert str(check_expression(text.format(3)).type) == "(4*n).3.f32 -> n.3.f32"
    with pytest.raises(TypeMismatch, match="depends on its `l`"):
        check_expression(text.format("l"))
    step = "def step = depFun((l: Nat) => fun(ys: (2*l).l.f32 => ys |> take(l)))\n"
    with pytest.raises(TypeMismatch, match="depends on its `l`"):
        check_text(step + "def f = fun(xs => xs |> iterate(2)(step))")


# --- mistakes: the whole texts are in test_mistakes.py ---------------------------------------------


def error(text: str) -> tuple[str, str]:
    with pytest.raises(RiseError) as caught:
        check_text(text) if text.startswith("def") else check_expression(text)
    assert caught.value.origin is not None
    return caught.value.code, caught.value.message


@pytest.mark.parametrize(
    ("text", "expected", "found"),
    [
        ("fun((x: f32, y: i32) => x + y)", "f32 ^^^", "i32 ^^^"),
        ("fun((xs: 64.8.f32, ys: 32.8.f32) => zip(xs)(ys))", "64.a ^^", "32.8.f32 ^^"),
        ("fun((f: (f32, i32) -> f32, p: (f32, f32)) => f(p))",
         "(f32, i32)       ^^^", "(f32, f32)       ^^^"),
        ("fun((f: Idx[4] -> f32, i: Idx[16]) => f(i))", "Idx[4]     ^", "Idx[16]     ^^"),
        ("fun((f: 9.Vec[4, f16] -> f32, x: 9.Vec[4, f32]) => f(x))",
         "9.Vec[4, f16]          ^^^", "9.Vec[4, f32]          ^^^"),
        ("fun((f: (f32 -> f32) -> f32, g: f32 -> i32) => f(g))",
         "f32 -> f32        ^^^", "f32 -> i32        ^^^"),
    ],
)  # fmt: skip
def test_the_parts_that_differ_are_marked(text: str, expected: str, found: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        check_expression(text)
    shown = caught.value.difference
    assert shown is not None
    assert f"{shown.expected.text} {shown.expected.carets}" == expected
    assert f"{shown.found.text} {shown.found.carets}" == found


def test_equal_parts_of_long_types_are_left_out() -> None:
    long = "(f32, (i32, (f16, (u8, (i64, (bf16, (f64, 2.i16)))))))"
    text = "fun((f: (8.({0}, {0}), 3.f32) -> f32, x: (8.({0}, {0}), 4.f32)) => f(x))"
    with pytest.raises(TypeMismatch) as caught:
        check_expression(text.format(long))
    assert caught.value.difference is not None
    assert caught.value.difference.found.text == "(…, 4.f32)"
    assert caught.value.difference.found.carets == "    ^"


def test_unknown_types_have_letters_that_the_program_does_not_use() -> None:
    text = (
        "def f: {a: DataType, p: Nat} -> p.a -> a = fun(xs => xs |> map(fun(x => x)) |> fun(y => y |> snd))"
    )
    with pytest.raises(TypeMismatch) as caught:
        check_text(text)
    assert caught.value.difference is not None
    assert (caught.value.difference.expected.text, caught.value.difference.found.text) == ("(b, c)", "p.a")


@pytest.mark.parametrize(
    ("left", "right", "hint"),
    [
        ("n", "2*m", "equal only if n = 2*m"),
        ("2*n", "4*m", "equal only if n = 2*m"),
        ("n + m", "3", "equal only if m + n = 3"),
        ("4", "n", "equal only if n = 4"),
        ("n + 1", "n", "the two are never equal"),
        ("3", "4", None),
    ],
)
def test_two_sizes_are_told_what_would_make_them_equal(left: str, right: str, hint: str | None) -> None:
    text = f"depFun((n: Nat, m: Nat) => fun((xs: ({left}).f32, ys: ({right}).f32) => zip(xs)(ys)))"
    with pytest.raises(TypeMismatch) as caught:
        check_expression(text)
    assert (caught.value.code, caught.value.hint) == ("R0402", hint)


REPAIRS = {
    "fun(xs: 4.f32 => map(xs)(fun(x => x + 1)))": "did you mean `map(x => …, xs)`?",
    "fun((f: f32 -> f32, xs: 4.f32) => f(xs))": "did you mean `map(f)(xs)`?",
    "fun((f: f32 -> f32, xs: 4.f32) => xs |> f)": "did you mean `map(f)(xs)`?",
    "fun((f: (f32, i32) -> f32, x: f32, y: i32) => f(x, y))": "did you mean `f((x, y))`?",
    "fun((f: f32 -> i32 -> f32, x: f32, y: i32) => f((x, y)))": "did you mean `f(x, y)`?",
    "fun((f: f32 -> i32 -> f32, x: f32, y: i32) => f(y, x))": "did you mean `f(x, y)`?",
    "fun((f: f32 -> f32, x: i32) => f(x))": "convert it with `f32(…)`",
    "fun((x: f16, y: f32) => x * y)": "convert the other with `f32(…)`, or this with `f16(…)`, which rounds",
    "fun((x: bool, y: f32) => y * x)": "a truth value is no number: `select(c)(1)(0)` makes one of it",
}


@pytest.mark.parametrize(("text", "hint"), REPAIRS.items())
def test_a_hint_is_a_change_that_fits(text: str, hint: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        check_expression(text)
    assert caught.value.hint == hint


def test_an_error_shows_its_place() -> None:
    with pytest.raises(RiseError) as caught:
        check_text("def f = fun(x: f32 =>\n  x + wrong)", "program.rise")
    lines = caught.value.render().splitlines()
    assert lines[0].startswith("program.rise:2:7: error R0201: unknown name `wrong`")
    assert lines[1].endswith("  x + wrong)")
    assert lines[2].count("^") == len("wrong")


# --- classes of types -------------------------------------------------------------------------------

VECTORS = "fun((v: Vec[2, f32], w: Vec[2, f32]) => v {} w)"
MISFITS = {
    VECTORS.format("<"): "`<` is for scalar numbers, not for `Vec[2, f32]`",
    VECTORS.format("=="): "`==` is for scalars, not for `Vec[2, f32]`",
    "true + true": "`+` is for numbers, not for `bool`",
    "-true": "`neg` is for numbers, not for `bool`",
    "true < false": "`<` is for scalar numbers, not for `bool`",
    "fun(v: Vec[3, bool] => v * v)": "`*` is for numbers, not for `Vec[3, bool]`",
    "fun(v: Vec[3, i32] => v * 0.5)": "the number 0.5 is no whole number of type `i32`",
    "fun(v: Vec[3, u8] => v + 256)": "the number 256 does not fit in `u8`",
    "fun(p: (f32, f32) => i32(p))": "`cast` is for scalars and vectors, not for `(f32, f32)`",
}


@pytest.mark.parametrize(("text", "message"), MISFITS.items())
def test_an_operation_is_for_a_class_of_types(text: str, message: str) -> None:
    assert error(text)[1] == message


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("fun(x => x * 0.5)", ["t is a float"]),
        ("fun(x => x * 2)", ["t is a number"]),
        ("fun(x => x * 2 < x)", ["t is a scalar number"]),
        ("fun(x => x == x)", ["t is a scalar"]),
        ("fun(x => f32(x))", ["t is a scalar or a vector"]),
        ("fun(x => f32(x) + f32(exp(x) * 0.5))", ["t is a float"]),
        ("fun(x => (x, x))", []),
    ],
)
def test_what_is_asked_of_a_type_is_the_strongest(body: str, asked: list[str]) -> None:
    definition = check_text(f"def h = depFun((t: DataType) => fun(y: t => ({body})(y)))")["h"]
    assert [str(c) for c in definition.constraints] == asked


HALF = "def half: {t: DataType} -> t -> t = fun(x => x * 0.5)\n"


def test_a_fraction_asks_for_a_float_at_each_use() -> None:
    assert check_text(HALF + "def f = fun(x: bf16 => half(x))")["f"].constraints == ()
    vectors = check_text(HALF + "def f = fun(v: Vec[4, f16] => half(v))")["f"]
    assert str(vectors.body.type).endswith("Vec[4, f16]")
    assert str(check_text(HALF + "def f = half(8)")["f"].body.type) == "f32"
    with pytest.raises(TypeMismatch) as caught:
        check_text(HALF + "def f = fun(x: i32 => half(x))", "p.rise")
    assert caught.value.message == "`half` is for floats, not for `i32`"
    assert [(n.text, str(n.origin)) for n in caught.value.notes] == [
        ("the number 0.5 is for floats", "p.rise:1:50")
    ]


def test_the_type_of_a_definition_has_the_hints_of_other_types() -> None:
    for text, hint in (
        ("def f: Array[f32, 3] -> f32 = fun(xs => 1.0)", "the size comes first: `Array[n, t]`"),
        ("def f = fun(x: f32 => x)\ndef g: f -> f32 = fun(x => 1.0)", "`f` is a value, not a type"),
    ):
        with pytest.raises(RiseError) as caught:
            check_text(text)
        assert caught.value.hint == hint
