"""The printer: what is printed is the same program, and reads like the papers'."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rise.check.program import check_expression, check_text
from rise.document import NOTHING, SPACE, concat, group, indented, join, render
from rise.expr import (
    Apply,
    DependentApply,
    DependentLambda,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    alpha_equal,
    apply,
)
from rise.nat import nat, variable
from rise.pretty import show, show_argument, show_definition, show_nat, show_type
from rise.primitives.declare import primitive
from rise.source import Source
from rise.syntax.parser import parse_expression, parse_type
from rise.syntax.resolve import as_type, resolve_nat, resolve_type
from rise.types import (
    BOOL,
    F16,
    F32,
    I32,
    ROW_MAJOR,
    Dependent,
    Function,
    Index,
    Kind,
    NatFunction,
    Space,
    Variable,
    Vector,
    array,
)

# as printed, hence printed again the same
PROGRAM = """\
def matmul(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16) =
  A |> map(row =>
    B |> transpose |> map(col =>
      zip(row, col) |> map(xy => f32(fst(xy)) * f32(snd(xy))) |> reduce(+, 0.0)))

def dot{n: Nat}(xs: n.f16, ys: n.f16): f32 =
  zip(xs, ys) |> map(xy => f32(fst(xy)) * f32(snd(xy))) |> reduce(+, 0.0)

def gemm(m: Nat, n: Nat, k: Nat)(A: m.k.f32, B: k.n.f32, C: m.n.f32, alpha: f32, beta: f32) =
  zip(A, C) |> map(rowAC =>
    zip(B |> transpose, snd(rowAC)) |> map(colBC =>
      zip(fst(rowAC), fst(colBC))
      |> map(ab => fst(ab) * snd(ab))
      |> reduce(+, 0.0)
      |> (r => alpha * r + beta * snd(colBC))))

def low(m: Nat, n: Nat, k: Nat)(A: m.k.f32, B: k.n.f32, C: m.n.f32, alpha: f32, beta: f32) =
  zip(A, C) |> mapBlock(0)(rowAC =>
    zip(B |> transpose, snd(rowAC)) |> mapThreads(0)(colBC =>
      zip(fst(rowAC), fst(colBC))
      |> reduceSeq(Local)((acc, ab) => acc + fst(ab) * snd(ab), 0.0)
      |> (r => alpha * r + beta * snd(colBC))))

def tiles(aTile: 16.16.f16, bTile: 16.16.f16) =
  tensorMatMulAdd(
    aTile |> asFragment |> toMem(Local),
    bTile |> transpose |> asFragment |> toMem(Local),
    generateFragment(0.0) |> toMem(Local))
  |> toMem(Local)
  |> asMatrix

def tiled{n: Nat}(xs: (32*n).f16): n.32.f16 =
  xs |> split(32) |> mapSeq(x => x |> mapSeq(y => y |> toMem(Global)))

def dots(xs: 8.8.f16, ys: 8.f16) = xs |> map(dot(ys))"""

SCOPE = "def it(x: f32, y: f32, b: bool, c: bool, i: i32, xs: 8.f32, ps: 4.(f32, f32)) ="


def printed(text: str) -> Any:
    """The definition of that text, printed."""
    program = check_text(text)
    return show_definition(program[program.own[-1]])


@pytest.mark.parametrize("name", ["matmul", "dot", "gemm", "low", "tiles", "tiled", "dots"])
def test_a_program_prints_as_itself(name: str) -> None:
    texts = {re.split(r"\W+", text)[1]: text for text in PROGRAM.split("\n\n")}
    assert show_definition(check_text(PROGRAM)[name]) == texts[name]


@pytest.mark.parametrize(
    "text",
    [
        "x + y * x - (y - x)",
        "(x + y) * -x",
        "x / (y / x) / y",
        "x - -1.0",
        "-(1.0)",
        "-(x + y)",
        "-x",
        "--x",
        "b && (c || !b)",
        "!(b && c) || x < y",
        "x < y == y < x",
        "(x == y) == (b == c)",
        "x < y == (x == y) && b",
        "(x, y, (b, c), i)",
        "((x, y), fst((b, c)))",
        "f16(x + y)",
        "f32(3)",
        "f32(3: i8)",
        "f32(1.5: f16)",
        "i32(f64(x))",
        "let z = x + y in z * z",
        "let f = x in (let g = y in f + g) * f",
        "xs |> map(z => z + x)",
        "xs |> reduce(max, -infinity)",
        "xs |> reduce(+, 0.0)",
        "xs |> map(add(x))",
        "xs |> map(f16)",
        "xs |> split(4) |> join",
        "xs |> take(3) |> map(z => let w = z in w)",
        "xs |> padCst(1, 2)(0.0)",
        "zip(xs, xs |> map(z => z)) |> map(p => fst(p) - snd(p))",
        "x + y |> (z => z * z)",
        "(xs |> reduce(+, x)) * y",
        "ps |> map(p => fst(p))",
        "ps |> unzip",
        "select(b, x, y)",
        "generate(j => xs |> idx(j))",
        "true",
        "i % 2 == 0",
        "y |> (z => z + x)",
        "xs |> slide(3, 1)",
        "xs |> toMem(Local)",
        "id(xs)",
    ],
)
def test_an_expression_prints_as_itself(text: str) -> None:
    assert printed(f"{SCOPE} {text}").split(" =", 1)[1].strip() == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(x: f32) => x + x * x", "(x: f32) = x + x * x"),
        ("(xs: 8.f32) => reduce(add)(0)(map(x => x)(xs))", None),
        ("(xs: 8.f32) => xs |> map(x => x) |> reduce(+, 0.0)", None),
        ("(x: f32) => (y: f32) => x", "(x: f32, y: f32) = x"),
        ("(x: f32) => (y: f32) => (a => b => a)(x)(y)", None),
    ],
)
def test_what_is_written_otherwise_prints_the_same(text: str, expected: Any) -> None:
    usual = printed(f"def f = {text}")
    assert printed(usual) == usual
    if expected is not None:
        assert usual == f"def f{expected}"


# --- terms made by hand -------------------------------------------------------------------------

N = variable("n")
X, Y = Identifier("x", F32), Identifier("y", F32)
ADD = Primitive(primitive("add"), (F32,))


def call(name: Any, dependent: Any, *arguments: Any) -> Any:
    return apply(Primitive(primitive(name), dependent), *arguments)


def test_no_binder_hides_a_primitive_that_is_used_below_it() -> None:
    xs = Identifier("map", array(8, F32))
    body = call("map", (nat(8), F32, F32), Lambda(X, X), xs)
    assert show(Lambda(xs, body)) == "map_1 => map_1 |> map(x => x)"
    target = Identifier("f16", F32)
    assert show(Lambda(target, call("cast", (F32, F16), target))) == "f16_1 => f16(f16_1)"


def test_a_name_that_is_taken_below_stays_apart_from_a_renamed_binder() -> None:
    xs, free = Identifier("map", array(8, F32)), Identifier("map_1", F32)
    body = call("map", (nat(8), F32, F32), Lambda(X, free), xs)
    assert show(Lambda(xs, body)) == "map_2 => map_2 |> map(x => map_1)"


def test_parameters_of_one_name_are_told_apart() -> None:
    inner = Identifier("x", F16)
    assert show(Lambda(X, Lambda(inner, inner))) == "(x, x_1) => x_1"


def test_let_whose_function_is_not_written_in_place() -> None:
    function = Identifier("f", Function(F32, F32))
    assert show(call("let", (F32, F32), X, function)) == "let y = x in f(y)"
    assert show(call("let", (F32, F32))) == "x => f => let y = x in f(y)"
    assert show(call("let", (F32, F32), Y)) == "f => let y_1 = y in f(y_1)"


def test_a_cast_to_other_than_a_scalar_shows_its_type() -> None:
    vector = Vector(nat(4), F16)
    source = Identifier("v", Vector(nat(4), F32))
    cast = call("cast", (source.type, vector), source)
    assert show(cast) == "cast(v): Vec[4, f16]"
    memory = (Space.LOCAL, ROW_MAJOR, vector)
    assert show(call("toMem", memory, cast)) == "cast(v): Vec[4, f16] |> toMem(Local)"
    assert show(call("pair", (vector, F32), cast, X)) == "(cast(v): Vec[4, f16], x)"
    assert show(call("cast", (source.type, vector))) == "cast: Vec[4, f32] -> Vec[4, f16]"


def test_operators_are_bare_as_arguments_only() -> None:
    assert show(ADD) == "add"
    assert show(Apply(ADD, X)) == "add(x)"
    assert show(Lambda(X, ADD)) == "x => add"
    fold = call("reduce", (nat(8), F32), ADD, Literal(0.0, F32))
    assert show(fold) == "reduce(+, 0.0)"


def test_dependent_functions_and_their_application() -> None:
    identity = DependentLambda("n", Kind.NAT, Lambda(Identifier("xs", array(N, F32)), X))
    assert show(identity) == "(n: Nat) => xs => x"
    assert show(identity, annotate=True) == "(n: Nat) => (xs: n.f32) => x"
    assert show(DependentApply(identity, N + 1)) == "((n: Nat) => xs => x)(n + 1)"
    function = Identifier("f", Dependent("t", Kind.DATA, Function(Variable("t"), F32)))
    assert show(DependentApply(function, array(N, F16))) == "f(Array[n, f16])"
    assert show(apply(DependentApply(function, F32), X)) == "f(f32)(x)"


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (0, F32, "0.0"),
        (0.0, I32, "0"),
        (-1.5, F32, "-1.5"),
        (-0.0, F32, "-0.0"),
        (1e-7, F32, "1e-07"),
        (1e20, F16, "1e+20"),
        (math.inf, F32, "infinity"),
        (-math.inf, F32, "-infinity"),
        (math.nan, F32, "infinity - infinity"),
        (3, Index(nat(8)), "3"),
        (True, BOOL, "true"),
    ],
)
def test_literals(value: Any, type_: Any, text: str) -> None:
    assert show(Literal(value, type_)) == text


def test_a_definition_of_a_value_shows_its_type() -> None:
    assert printed("def half: f16 = 0.5") == "def half: f16 = 0.5"
    assert printed("def f: f32 -> f32 -> f32 = add") == "def f: f32 -> f32 -> f32 = add"


def test_what_is_inferred_is_written_where_it_has_to_be() -> None:
    expected = "def first{t: DataType, t1: DataType}(p: (t, t1)): t = fst(p)"
    assert printed("def first(p) = fst(p)") == expected
    assert printed(expected) == expected


# --- types and sizes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "m.n.f32",
        "(n + 1).16.f16",
        "(2*n).(f32, Idx[n - 1])",
        "(n / 2).Vec[4, f16]",
        "Fragment[16, n, 8, f16, AMatrix]",
        "{n1: Nat, t: DataType} -> (k: Nat) -> (t -> t) -> n1.t -> k.t",
        "((l: Nat) -> l.f32) -> (f32 -> f32) -> f32",
        "(m^2).f32",
        "(min(m, n)).f32",
        "(2*m - n - 1).f32",
        "(m + (n + 1) % 4).f32",
        "(f32, (f16, bool))",
    ],
)
def test_a_type_prints_as_itself(text: str) -> None:
    kinds = dict.fromkeys("mn", Kind.NAT)
    assert show_type(resolve_type(parse_type(Source("test", text)), kinds)) == text


SIZES = st.recursive(
    st.sampled_from(["m", "n", "1", "2", "3", "8"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(inner, st.sampled_from("/%"), st.sampled_from("238n")).map(
            lambda p: f"({p[0]} {p[1]} {p[2]})"
        ),
        st.tuples(inner, inner).map(lambda p: f"min({p[0]}, {p[1]})"),
    ),
    max_leaves=6,
)


@given(SIZES)
def test_a_size_prints_as_itself(text: str) -> None:
    kinds = dict.fromkeys("mn", Kind.NAT)
    size = resolve_nat(parse_type(Source("test", text)), kinds)
    shown = show_nat(size)
    assert resolve_nat(parse_type(Source("test", shown)), kinds) == size
    assert resolve_nat(as_type(parse_expression(Source("test", shown))), kinds) == size


def test_a_function_on_sizes() -> None:
    assert show_argument(NatFunction("i", N - 1 - variable("i"))) == "natFun(i => n - i - 1)"


# --- scalars of any form ------------------------------------------------------------------------

A, B = Identifier("a", BOOL), Identifier("b", BOOL)
LEAVES = [X, Y, Literal(1.0, F32), Literal(-2.5, F32), Literal(1e-9, F32)]


def operation(name: Any, dependent: Any) -> Any:
    return lambda operands: call(name, dependent, *operands)


def binary(names: Any, dependent: Any, operands: Any) -> Any:
    return st.one_of(*(st.tuples(operands, operands).map(operation(name, dependent)) for name in names))


NUMBERS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        binary(["add", "sub", "mul", "div", "min"], (F32,), inner),
        st.tuples(inner).map(operation("neg", (F32,))),
    ),
    max_leaves=8,
)
TRUTHS = st.recursive(
    st.one_of(st.sampled_from([A, B]), binary(["lt", "ge", "eq"], (F32,), NUMBERS)),
    lambda inner: st.one_of(
        binary(["and", "or"], (), inner),
        binary(["eq", "ne"], (BOOL,), inner),
        st.tuples(inner).map(operation("not", ())),
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=60)
@given(st.one_of(NUMBERS, TRUTHS), st.sampled_from([20, 100]))
def test_arithmetic_parses_back_to_itself(expr: Any, width: int) -> None:
    function = expr
    for parameter in (X, Y, A, B):
        function = Lambda(parameter, function)
    assert alpha_equal(check_expression(show(function, width, annotate=True)), function)


# --- layout -------------------------------------------------------------------------------------


def test_a_group_is_on_one_line_where_it_fits() -> None:
    document = group("f(", indented(NOTHING, join(concat(",", SPACE), ["aaa", "bbb"])), ")")
    assert render(document, 12) == "f(aaa, bbb)"
    assert render(document, 10) == "f(\n  aaa,\n  bbb)"


def test_what_follows_a_group_up_to_the_next_break_has_to_fit_too() -> None:
    assert render(concat(group("a", SPACE, "b"), ")))"), 5) == "a\nb)))"
    assert render(group(group("a", SPACE, "b"), SPACE, "cccc"), 5) == "a b\ncccc"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_lines_keep_to_the_width(width: int) -> None:
    for name in ("matmul", "gemm", "low", "tiles"):
        text = show_definition(check_text(PROGRAM)[name], width)
        assert max(len(line) for line in text.splitlines()) <= width
        again = check_text(text)
        assert show_definition(again[name]) == show_definition(check_text(PROGRAM)[name])


# --- copies, fragments --------------------------------------------------------------------------


COPIES = ("toMem(Shared)", "copyThreads", "copyThreads(padded(4))", "copyAsync", "bulkCopy", "bulkStore")


@pytest.mark.parametrize("copy", COPIES)
def test_a_value_flows_through_a_copy(copy: Any) -> None:
    text = f"xs => xs |> {copy} |> map(x => x)"
    term = check_expression(f"fun(xs: 8.f32 => xs |> {copy} |> map(fun(x => x)))")
    assert show(term) == text


FRAGMENTS = [
    "(xs: 16.16.f32) => asMatrix(asFragment(xs): Fragment[16, 16, 8, f32, Accum])",
    "fun(xs: 16.16.f32 => asMatrix(mapFragment(fun(x => x + 1))(asFragment(xs)"
    " : Fragment[16, 16, 8, f32, Accum])))",
    "fun(xs: 5.16.16.f32 => xs |> map(asFragment) |> map(fun(f: Fragment[16, 16, 4, f32, Accum] =>"
    " asMatrix(f))))",
    "fun(xs: 5.16.16.f32 => xs |> map(fun(x =>"
    " (asMatrix(asFragment(x) : Fragment[16, 16, 4, f32, Accum]),"
    " asMatrix(asFragment(x) : Fragment[16, 16, 8, f32, Accum])))))",
    "asMatrix(generateFragment(0.0) : Fragment[16, 16, 8, f32, Accum])",
]


@pytest.mark.parametrize("text", FRAGMENTS)
@pytest.mark.parametrize("width", [40, 100])
def test_the_third_size_of_a_fragment_is_shown_where_nothing_tells_it(text: str, width: int) -> None:
    term = check_expression(text)
    assert alpha_equal(check_expression(show(term, width, annotate=True)), term)


def test_terms_are_equal_up_to_the_names_of_indices() -> None:
    """A function that says which element is where binds a name, too."""

    def order(index: str, places: str) -> Expr:
        function = f"natFun({index} => {places})"
        return check_expression(f"fun(xs: 4.f32 => xs |> reorder(4, {function}, {function}))")

    assert alpha_equal(order("i", "3 - i"), order("j", "3 - j"))
    assert not alpha_equal(order("i", "3 - i"), order("i", "i"))
