"""Declarations: examples, families, layouts, what the catalogue and the reference page say."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from rise.check.program import check_expression, check_text
from rise.check.specialise import specialise
from rise.cli.main import main
from rise.declaration import Declaration
from rise.errors import EvaluationError, RiseError
from rise.expr import DependentLambda, Identifier, Primitive, alpha_equal, substitute_sizes, subterms
from rise.interpret import call, evaluate
from rise.interpret.notation import notation
from rise.nat import NatVariable, constant, variable
from rise.pretty import show
from rise.primitives.declare import REGISTRY, declare, primitive
from rise.primitives.reference import markdown
from rise.types import F32, Dependent, Kind, Layout, array, is_data, substitute_type
from rise.verify import verify

DOCUMENT = Path(__file__).parents[2] / "docs" / "primitives.md"

each = pytest.mark.parametrize("declaration", REGISTRY.values(), ids=lambda d: d.name)


# --- declarations -----------------------------------------------------------------------------------


@each
def test_an_example_has_its_value(declaration: Declaration) -> None:
    text, value = declaration.example
    term = check_expression(text)
    assert declaration.name in {p.name for p in subterms(term) if isinstance(p, Primitive)}
    assert is_data(term.type)
    assert notation(term.type, evaluate(term)) == value


@each
def test_a_declaration_says_what_it_means(declaration: Declaration) -> None:
    assert declaration.meaning.endswith(".")
    assert declaration.group
    assert declaration.lowers is None or declaration.lowers in REGISTRY
    if not declaration.is_family:
        names = {p.name for p in declaration.scheme.parameters}
        assert {name for name, _ in declaration.defaults} <= names


@each
def test_an_example_prints_and_parses_back(declaration: Declaration) -> None:
    if declaration.group == "tensor":
        pytest.skip("the third size of a fragment stands in annotations only, which are not printed")
    term = check_expression(declaration.example[0])
    again = check_expression(f"({show(term)}) : {term.type}")
    assert notation(again.type, evaluate(again)) == declaration.example[1]


def test_a_name_is_declared_once() -> None:
    with pytest.raises(RiseError, match="R0207"):
        declare("map", "{t: DataType} -> t -> t", "Again.", lambda c, x: x, example=("", ""), group="arrays")


SCHEMES = {
    "scan": "{n: Nat, t: DataType} -> (t -> t -> t) -> t -> n.t -> n.t",
    "scanSeq": "{n: Nat, s: DataType, t: DataType} -> (s -> t -> t) -> t -> n.s -> n.t",
    "scatter": "{n: Nat, m: Nat, t: DataType} -> n.Idx[m] -> n.t -> m.t",
    "scatterBy": "{n: Nat, m: Nat, t: DataType} -> m.Idx[n] -> n.Idx[m] -> n.t -> m.t",
    "prefix": "{n: Nat, t: DataType} -> Idx[n + 1] -> n.t -> n.t",
    "promoted": "(bytes: Nat) -> {t: DataType} -> t -> t",
    "prefixes": "{n: Nat, m: Nat, t: DataType} -> n.Idx[m + 1] -> n.m.t -> n.m.t",
    "padEmpty": "(r: Nat) -> {n: Nat, t: DataType} -> n.t -> (n + r).t",
    "asVector": "(n: Nat) -> {m: Nat, t: DataType} -> (m*n).t -> m.Vec[n, t]",
    "asScalar": "{n: Nat, m: Nat, t: DataType} -> m.Vec[n, t] -> (m*n).t",
    "iterate": "{n: Nat, m: Nat} -> (k: Nat) -> {t: DataType} -> ((l: Nat) -> (l*n).t -> l.t)"
    " -> (m*n^k).t -> m.t",
}


@pytest.mark.parametrize("name", SCHEMES)
def test_schemes_are_those_of_the_language(name: str) -> None:
    assert primitive(name).signature == SCHEMES[name]


# --- inference through the new schemes ----------------------------------------------------------------

TYPES = {
    "fun((xs: 8.f32) => xs |> scan(+, 0))": "8.f32 -> 8.f32",
    "fun((xs: 8.f16) => xs |> scanSeq(fun((x, a) => a + f32(x)), 0))": "8.f16 -> 8.f32",
    "fun((xs: 12.f32) => xs |> asVector(4))": "12.f32 -> 3.Vec[4, f32]",
    "fun((xs: 12.f32) => xs |> asVector(4) |> asScalar)": "12.f32 -> 12.f32",
    "fun((xs: 7.f32) => xs |> reorder(7, natFun(i => 6 - i), natFun(i => 6 - i)))": "7.f32 -> 7.f32",
    "fun((xs: 7.f32) => xs |> padEmpty(2))": "7.f32 -> 9.f32",
    "fun((i: 4.Idx[9], xs: 4.f32) => xs |> scatter(i))": "4.Idx[9] -> 4.f32 -> 9.f32",
    "fun((o: 9.Idx[4], i: 4.Idx[9], xs: 4.f32) => xs |> scatterBy(o)(i))": (
        "9.Idx[4] -> 4.Idx[9] -> 4.f32 -> 9.f32"
    ),
    "fun((c: Idx[8], xs: 7.f32) => xs |> prefix(c))": "Idx[8] -> 7.f32 -> 7.f32",
    "fun((c: 3.Idx[8], xs: 3.7.f32) => xs |> prefixes(c))": "3.Idx[8] -> 3.7.f32 -> 3.7.f32",
    "fun((x: f32) => makeArray(2)(x, x))": "f32 -> 2.f32",
    "makeArray(2)": "{t: DataType} -> t -> t -> 2.t",
    "fun((x: f32) => makeArray(2)(x))": "f32 -> f32 -> 2.f32",
    'foreignFunction("rsqrtf", 1)(fun((x: f32) => rsqrt(x)))': "f32 -> f32",
    'foreignFunction("fmaf", 3)(fun((x: f32) => fma(x)))': "f32 -> f32 -> f32 -> f32",
    "fun((xs: 8.f32) => xs |> reducePipelined(2)(fun(x => f16(x)), fun((a, y) => a + f64(y)), 0.0))": (
        "8.f32 -> f64"
    ),
    "fun((x: 3.f32) => toMem(Shared)(x))": "3.f32 -> 3.f32",
}


@pytest.mark.parametrize("text", TYPES)
def test_types_are_inferred(text: str) -> None:
    definition = check_text(f"def it = {text}")["it"]
    assert str(definition.scheme) == TYPES[text]


HALVES = "depFun((j: Nat) => fun(ys => ys |> split(2) |> map(reduce(+, 0))))"


@pytest.mark.parametrize(
    ("size", "times", "result"),
    [("8", "3", "1.f32"), ("40", "3", "5.f32"), ("n", "3", "(n/8).f32"), ("7*2^k", "k", "7.f32")],
)
def test_iterate_finds_its_sizes(size: str, times: str, result: str) -> None:
    text = f"depFun((n: Nat, k: Nat) => fun((xs: ({size}).f32) => xs |> iterate({times})({HALVES})))"
    definition = check_text(f"def it = {text}")["it"]
    assert str(definition.scheme).endswith(f" -> {result}")
    assert [str(c) for c in definition.constraints] == (["8 | n"] if size == "n" else [])


def test_the_name_that_iterate_binds_captures_none() -> None:
    """The rows have the size l, which is also the name in the scheme of iterate."""
    rows = "split(2) |> map(fun(p => p |> idx(0)))"
    halve = f"depFun((j: Nat) => fun(y => y |> {rows}))"
    text = f"depFun((l: Nat) => fun((xs: 4.l.f32) => xs |> iterate(2)({halve})))"
    assert str(check_text(f"def it = {text}")["it"].scheme) == "(l: Nat) -> 4.l.f32 -> 1.l.f32"


SUMS = """
def halves: {n: Nat, t: DataType} -> (t -> t -> t) -> (4*n).t -> n.t =
  fun((op, xs) => xs |> iterate(2)(depFun((l: Nat) => fun(ys => ys |> split(2) |> map(fun(p =>
    op(p |> idx(0), p |> idx(1))))))))
def rows = depFun((l: Nat) => fun((xss: 4.l.i32) =>
  xss |> halves(fun((a, b) => zip(a)(b) |> map(fun((x, y) => x + y))))))
def long = depFun((l: Nat) => fun((xs: (4*l).i32) => xs |> halves(+)))
"""


@pytest.mark.parametrize(("name", "shape"), [("rows", (4, 3)), ("long", (12,))])
def test_a_definition_with_iterate_is_used_at_sizes_of_the_same_name(
    name: str, shape: tuple[int, ...]
) -> None:
    """What iterate binds in `halves` is called l, and so is the size that is given to it."""
    program = specialise(check_text(SUMS)[name], {"l": 3})
    verify(program)
    xs = np.arange(12, dtype=np.int32).reshape(shape)
    sums = {"rows": xs.sum(0, keepdims=True), "long": xs.reshape(-1, 4).sum(-1) if len(shape) == 1 else xs}
    np.testing.assert_array_equal(call(program, xs), sums[name])


def test_types_that_differ_in_a_bound_name_are_equal() -> None:
    one, same, other, free = (
        Dependent(name, Kind.NAT, array(size, F32))
        for name, size in (
            ("l", variable("l")),
            ("j", variable("j")),
            ("j", 2 * variable("j")),
            ("j", variable("l")),
        )
    )
    assert one == same and hash(one) == hash(same)
    assert one != other and one != free and free != one


def test_substitution_renames_what_would_capture() -> None:
    """n becomes l, under a function of another l."""
    size, replaced = variable("n"), {NatVariable("n"): variable("l")}
    type_ = Dependent("l", Kind.NAT, array(variable("l") + size, F32))
    expected = Dependent("j", Kind.NAT, array(variable("j") + variable("l"), F32))
    assert substitute_type(type_, replaced) == expected
    term = DependentLambda("l", Kind.NAT, Identifier("x", array(variable("l") + size, F32)))
    assert substitute_sizes(term, replaced).type == expected


# --- families -----------------------------------------------------------------------------------------


def test_a_member_is_one_object() -> None:
    array = primitive("makeArray")
    assert array.is_family and not array.member(3).is_family
    assert array.member(3) is array.member(3) is not array.member(2)
    assert array.member(3).written == "makeArray(3)"
    first, again, other = (
        check_expression(f'foreignFunction("{name}", 1)(fun((x: f32) => x))') for name in ("f", "f", "g")
    )
    assert alpha_equal(first, again) and not alpha_equal(first, other)


@pytest.mark.parametrize(
    "text",
    [
        "x => makeArray(3)(x, x, 1)",
        'x => foreignFunction("f", 1)(y => y + 1.0, x)',
        'x => foreignFunction("f", 2, "return x1 * x2;")((y, z) => y * z, x, 1.0)',
        "x => x |> toMem(Shared, padded(8))",
        "x => x |> toMem(Shared)",
        "x => x |> copyAsync(swizzled(128))",
        "x => x |> copyAsync",
        "(p: Nat) => x => x |> toMem(Shared, padded(2*p))",
        "(l: Layout) => x => x |> toMem(Shared, l)",
        "(a: AddressSpace) => x => x |> reduceSeq(a)(+, 0)",
    ],
)
def test_it_prints_as_it_is_written(text: str) -> None:
    assert show(check_expression(text)) == text


MISTAKES = {
    "makeArray": "R0206",
    "fun((n: i32) => makeArray(n))": "R0206",
    "makeArray(0)": "R0204",
    "makeArray(100000)": "R0204",
    "makeArray(1.5)": "R0206",
    "foreignFunction(1)": "R0206",
    'foreignFunction("f")': "R0206",
    'foreignFunction("f g", 1)': "R0204",
    'foreignFunction("f", 0)': "R0204",
    'toMem("Shared")': "R0203",
    "fun(x => toMem(Shared, swizzled(12))(x))": "R0204",
    "fun(x => toMem(Shared, padded(1, 2))(x))": "R0204",
    "depFun((n: Nat) => fun(x => toMem(n)(x)))": "R0203",
    "fun((xs: 4.f32) => split(padded(2))(xs))": "R0203",
    "fun((xs: 4.f32) => cast(xs) : padded[2])": "R0203",
    "fun((xs: 3.f32) => makeArray(2)(xs, 1))": "R0305",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_has_a_place(text: str) -> None:
    with pytest.raises(RiseError) as caught:
        check_expression(text)
    assert caught.value.code == MISTAKES[text]
    assert caught.value.origin is not None


# --- layouts ------------------------------------------------------------------------------------------


def test_layouts() -> None:
    term = check_expression("fun((x: f32) => toMem(Shared, padded(8))(x))")
    found = [p.arguments[1] for p in subterms(term) if isinstance(p, Primitive)]
    assert found == [Layout("padded", constant(8))]
    assert [p.kind for p in primitive("toMem").scheme.parameters] == [Kind.SPACE, Kind.LAYOUT, Kind.DATA]


def test_a_variable_may_be_called_like_a_layout() -> None:
    term = check_expression("fun((rowMajor: f32) => toMem(Shared)(rowMajor))")
    assert str(term.type) == "f32 -> f32"
    assert evaluate(check_expression("(fun((rowMajor: f32) => toMem(Shared)(rowMajor)))(2.0)")) == 2


# --- what is an error when it is evaluated ------------------------------------------------------------

TWO = "makeArray(2)(5, 6)"

ERRORS = {
    "scatter(makeArray(2)(1, 1))(makeArray(2)(5, 6)) : 3.i32": ("R0510", "index 1"),
    f"map(fun(i => scatter(i)({TWO}) : 3.i32))(makeArray(2)(makeArray(2)(0, 1), makeArray(2)(2, 2)))": (
        "R0510",
        "index 2",
    ),
    "scatter(generate(fun((i: Idx[2]) => natAsIndex(3)(indexToInt(i) + 2))))(makeArray(2)(5, 6))": (
        "R0503",
        "index 3",
    ),
    f"scatterBy(generate(fun((i: Idx[3]) => natAsIndex(2)(indexToInt(i)))))(makeArray(2)(0, 1))({TWO})": (
        "R0503",
        "index 2",
    ),
    f"prefix(natAsIndex(3)(2 + 1))({TWO})": ("R0503", "index 3"),
    f"prefixes(makeArray(1)(natAsIndex(3)(2 + 1)))(makeArray(1)({TWO}))": ("R0503", "index 3"),
    "natAsIndex(3)(0 - 1)": ("R0503", "index -1"),
    "reorder(3, natFun(i => 2 - i), natFun(i => i))(makeArray(3)(1, 2, 3))": ("R0510", "f(0) is 2"),
    "reorder(3, natFun(i => i / 2), natFun(i => 2 * i))(makeArray(3)(1, 2, 3))": ("R0503", "index 4"),
    "reorder(3, natFun(i => i + 1), natFun(i => i))(makeArray(3)(1, 2, 3))": ("R0503", "index 3"),
}


@pytest.mark.parametrize("text", ERRORS)
def test_errors_of_evaluation(text: str) -> None:
    code, part = ERRORS[text]
    with pytest.raises(EvaluationError) as caught:
        evaluate(check_expression(text))
    assert caught.value.code == code
    assert part in caught.value.message
    assert caught.value.origin is not None


def test_an_element_that_is_not_wanted_may_have_no_place() -> None:
    """Under a select, only the turns that it takes count."""
    text = f"map(fun(i => select(i < 2)(idx(natAsIndex(2)(i))({TWO}))(-1)))(makeArray(3)(0, 1, 2))"
    assert np.asarray(evaluate(check_expression(text))).tolist() == [5, 6, -1]


def test_an_index_beyond_i32_is_no_i32() -> None:
    term = check_expression("fun((i: Idx[3000000000]) => indexToInt(i))")
    assert call(term, np.int64(2**31 - 1)) == 2**31 - 1
    with pytest.raises(EvaluationError, match="R0504"):
        call(term, np.int64(2**31))


def test_whoever_reads_the_undefined_tail_notices() -> None:
    total = evaluate(check_expression("padEmpty(1)(makeArray(2)(1.0, 2.0)) |> reduce(+, 0)"))
    assert str(total) == "nan"
    assert evaluate(check_expression("padEmpty(1)(makeArray(2)(1, 2)) |> drop(2) |> idx(0)")) == -(2**31)


# --- the catalogue ------------------------------------------------------------------------------------


def test_the_reference_page_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == markdown(), (
        "rise primitives --markdown > docs/primitives.md"
    )


def test_the_reference_page_has_every_primitive() -> None:
    assert set(re.findall(r"^### (\S+)$", markdown(), re.M)) == set(REGISTRY)


def test_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["primitives"]) == 0
    listed = capsys.readouterr().out
    assert "memory: Where values are stored" in listed
    assert all(f"    {name}" in listed for name in REGISTRY)
    assert main(["primitives", "toMem"]) == 0
    shown = capsys.readouterr().out
    assert "Without l, it is `rowMajor`." in shown and "= [1, 2]" in shown
    assert main(["primitives", "mapBlock"]) == 0
    assert "A way to execute `map`." in capsys.readouterr().out
    assert main(["primitives", "--markdown"]) == 0
    assert capsys.readouterr().out == markdown()
