"""The notation: what means the same, what is a mistake and how it is told."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from rise.errors import ParseError, RiseError, ScopeError
from rise.source import Source
from rise.syntax import parser
from rise.syntax.parser import parse_expression, parse_file, parse_scheme, parse_type
from rise.syntax.resolve import as_type, resolve_argument, resolve_nat_function, resolve_type
from rise.syntax.surface import (
    Annotated,
    Call,
    DependentFunction,
    Function,
    NamePattern,
    NatLambda,
    PairPattern,
)
from rise.types import Kind, Space
from tests.rise.surface_programs import HIGH_LEVEL_GEMM, LOW_LEVEL_GEMM, TENSOR_PRODUCT, TILE_PRODUCT


def expression(text: str) -> Any:
    return parse_expression(Source("test", text))


def meaning(node: Any) -> Any:
    """A node without its places, and without whether a call was piped."""
    if isinstance(node, tuple):
        return tuple(meaning(part) for part in node)
    if not is_dataclass(node):
        return ("float" if isinstance(node, float) else type(node).__name__, node)
    kept = [f.name for f in fields(node) if f.name not in ("span", "name_span", "piped")]
    return (type(node).__name__, *(meaning(getattr(node, name)) for name in kept))


def names(function: Function) -> list[str]:
    """Of parameters, none of which is a pair."""
    return [p.name if isinstance(p, NamePattern) else "a pair" for p in function.parameters]


# --- programs of the paper ----------------------------------------------------------------------


def test_high_level_gemm_parses_as_printed() -> None:
    program = expression(HIGH_LEVEL_GEMM)
    assert isinstance(program, DependentFunction)
    assert [p.name for p in program.parameters] == ["m", "n", "k"]
    assert isinstance(program.body, Function)
    assert names(program.body) == ["A", "B", "C", "alpha", "beta"]


def test_low_level_gemm_parses_as_printed() -> None:
    program = expression(LOW_LEVEL_GEMM)
    assert isinstance(program, DependentFunction)
    function = program.body
    for name in ("A", "B", "C", "alpha", "beta"):
        assert isinstance(function, Function)
        assert names(function) == [name]
        function = function.body


def test_the_tile_product_parses_as_printed() -> None:
    program = expression(TILE_PRODUCT)
    assert isinstance(program, Call)
    assert program.piped
    assert isinstance(program.arguments[0], Annotated)


def test_the_tensor_product_parses_as_printed() -> None:
    program = expression(TENSOR_PRODUCT)
    assert isinstance(program, Call)
    assert meaning(program.function) == meaning(expression("asMatrix"))
    (summed,) = program.arguments
    assert isinstance(summed, Call)
    product = summed.arguments[0]
    tiles = [argument for call in applications(product) for argument in call.arguments]
    assert meaning(tiles[0]) == meaning(
        expression("toMem(Local)(asFragment(aTile: Array[16, Array[16, f16]]))")
    )
    assert len(tiles) == 3


def applications(node: Any) -> Any:
    """The calls of `f(a)(b)`, the innermost first."""
    return [*applications(node.function), node] if isinstance(node, Call) else []


# --- what means the same ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("x |> f(a)", "f(a)(x)"),
        ("x |> f |> g", "g(f(x))"),
        ("x |> f >> g", "x |> (f >> g)"),
        ("f >> g >> h", "(f >> g) >> h"),
        ("a + b |> f", "(a + b) |> f"),
        ("f >> g || h", "f >> (g || h)"),
        ("a || b && c", "a || (b && c)"),
        ("a && b == c", "a && (b == c)"),
        ("a == b < c", "a == (b < c)"),
        ("a < b + c", "a < (b + c)"),
        ("a + b * c - d", "(a + (b * c)) - d"),
        ("a / b * c % d", "((a / b) * c) % d"),
        ("-a * b", "(-a) * b"),
        ("!a && b", "(!a) && b"),
        ("-f(x)", "-(f(x))"),
        ("a - -1", "a - (-1)"),
        ("2 * n ^ k", "2 * (n ^ k)"),
        ("reduce(+, 0)", "reduce((+), 0)"),
        ("(a, b, c)", "(a, (b, c))"),
        ("fun((x) => x)", "fun(x => x)"),
        ("fun((x: f32) => x)", "fun(x: f32 => x)"),
        ("fun((a, b, c), d => a)", "fun((a, (b, c)), d => a)"),
        ("depFun(n: Nat => n)", "depFun((n: Nat) => n)"),
        ("x => x", "fun(x => x)"),
        ("(x) => x", "fun(x => x)"),
        ("((x)) => x", "fun(x => x)"),
        ("(x: n.f32) => x", "fun(x: n.f32 => x)"),
        ("(x, y) => x", "fun((x, y) => x)"),
        ("x => y => x", "fun(x, y => x)"),
        ("x => y => x", "fun(x => fun(y => x))"),
        ("((x, y)) => x", "fun(((x, y)) => x)"),
        ("((x, y), z) => x", "fun(((x, y), z) => x)"),
        ("((x, y)) => z => x", "fun((x, y), z => x)"),
        ("(x: f32, (y: i32, z)) => x", "fun((x: f32, (y: i32, z)) => x)"),
        ("(f: f32 -> f32) => f", "fun((f: f32 -> f32) => f)"),
        ("(n: Nat, t: DataType) => n", "depFun((n: Nat, t: DataType) => n)"),
        ("(n: Nat, x, y) => x", "depFun((n: Nat) => fun((x, y) => x))"),
        ("(x, y, n: Nat, z) => x", "fun((x, y) => depFun((n: Nat) => fun(z => x)))"),
        ("xs |> map(x => x |> f) |> g", "xs |> map(fun(x => x |> f)) |> g"),
        ("x => let y = x in y |> f", "fun(x => let y = x in (y |> f))"),
        ("let x = a in y => x", "let x = a in fun(y => x)"),
        ("reduce((a, b) => a + b, 0)", "reduce(fun((a, b) => a + b), 0)"),
        ("x |> (y => y + 1)", "x |> fun(y => y + 1)"),
        ("(x => x)(1)", "fun(x => x)(1)"),
        ("(x => x) >> f", "fun(x => x) >> f"),
        ("(x => x, y => y)", "(fun(x => x), fun(y => y))"),
        ("a => b >> c", "fun(a => b >> c)"),
        ("let x = a in x |> f", "let x = a in (x |> f)"),
        ("a /* one\ntwo */ + // three\n b", "a+b"),
        ("x: f32 |> f", "(x: f32) |> f"),
        ("f\n(x)\n(y)", "f(x)(y)"),
        ("fun(x => x): f32 -> f32 |> f", "(fun(x => x): (f32 -> f32)) |> f"),
    ],
)
def test_means_the_same(left: str, right: str) -> None:
    assert meaning(expression(left)) == meaning(expression(right))


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("(x) = x", "= fun(x => x)"),
        ("(x, y) = x", "= fun(x, y => x)"),
        ("(x)(y) = x", "= fun(x, y => x)"),
        ("(x)(y) = x", "= fun((x, y) => x)"),
        (" = x => y => x", "= fun((x, y) => x)"),
        (" = (x, y) => x", "= fun((x, y) => x)"),
        ("((x, y)) = x", "= fun(((x, y)) => x)"),
        ("((x, y), z) = x", "= fun(((x, y), z) => x)"),
        ("(x: s, y: t) = x", "= fun((x: s, y: t) => x)"),
        ("(x: s, y: t): u = x", ": s -> t -> u = fun((x, y) => x)"),
        ("(x: s): t -> u = f", ": s -> t -> u = fun(x => f)"),
        ("(x: s): t -> u -> v = (y, z) => x", ": s -> t -> u -> v = fun((x, y, z) => x)"),
        ("(x: s): t -> u = (y, z) => x", ": s -> t -> u = fun(x => fun((y, z) => x))"),
        ("(x, y: t): u = x", "= fun(x, y: t => (x): u)"),
        ("((x: s, y: t)): u = x", "= fun(((x: s, y: t)) => (x): u)"),
        ("(n: Nat) = n", "= depFun((n: Nat) => n)"),
        (
            "(n: Nat, t: DataType)(x: n.t): t = x",
            ": (n: Nat, t: DataType) -> n.t -> t = depFun((n: Nat, t: DataType) => fun(x => x))",
        ),
        ("(n: Nat, x: n.f32): f32 = x", ": (n: Nat) -> n.f32 -> f32 = depFun((n: Nat) => fun(x => x))"),
        ("(f: s -> t)(n: Nat): u = f", ": (s -> t) -> (n: Nat) -> u = fun(f => depFun((n: Nat) => f))"),
        ("{n: Nat}: n.f32 = f", ": {n: Nat} -> n.f32 = f"),
        ("{n: Nat, t: DataType}(xs: n.t): t = f", ": {n: Nat} -> {t: DataType} -> n.t -> t = fun(xs => f)"),
        (
            "{n: Nat}(m: Nat)(xs: n.f32): m.f32 = f",
            ": {n: Nat} -> (m: Nat) -> n.f32 -> m.f32 = depFun((m: Nat) => fun(xs => f))",
        ),
        (
            "{k: FragmKind, a: AddressSpace}(x: t): t = x",
            ": {k: FragmKind, a: AddressSpace} -> t -> t = fun(x => x)",
        ),
        (
            "(g: Nat2Nat, l: Layout): t = x",
            ": (g: Nat2Nat, l: Layout) -> t = depFun((g: Nat2Nat, l: Layout) => x)",
        ),
    ],
)
def test_a_definition_with_parameters_means_the_same_as_one_of_a_function(short: str, long: str) -> None:
    left, right = (parse_file(Source("test", f"def f{rest}")).definitions[0] for rest in (short, f" {long}"))
    assert meaning(left) == meaning(right)


def test_a_pair_that_the_type_asks_for_is_no_list_of_parameters() -> None:
    (definition,) = parse_file(Source("test", "def f: (s, t) -> u = (x, y) => x")).definitions
    assert isinstance(definition.body, Function)
    assert len(definition.body.parameters) == 2


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("m.n.f32", "Array[m, Array[n, f32]]"),
        ("16.16.f16", "Array[16, Array[16, f16]]"),
        ("(n + 1).f32", "n + 1.f32"),
        ("2*n.t", "(2*n).t"),
        ("s -> t -> u", "s -> (t -> u)"),
        ("(f32, f32, f16)", "(f32, (f32, f16))"),
        ("2^m^n.f32", "(2^(m^n)).f32"),
        ("{m: Nat, n: Nat} -> m.n.f32", "{m: Nat} -> {n: Nat} -> m.n.f32"),
        ("(n: Nat) -> n.f32 -> f32", "(n: Nat) -> (n.f32 -> f32)"),
        ("(s -> t) -> n.s", "(s -> t) -> (n.s)"),
        ("(-i + n).f32", "(n - i).f32"),
        ("ceildiv(n, 4).f32", "((n + 3) / 4).f32"),
        ("min(3, 4).f32", "3.f32"),
        ("(4*n / 2).f32", "(2*n).f32"),
        ("(n % 1).f32", "(n - n).f32"),
    ],
)
def test_is_the_same_type(left: str, right: str) -> None:
    kinds = dict.fromkeys("mni", Kind.NAT) | dict.fromkeys("stu", Kind.DATA)
    if "Nat" in left:
        kinds = {}
    types = [resolve_type(parse_type(Source("test", text)), kinds) for text in (left, right)]
    assert types[0] == types[1]


def test_a_division_that_is_not_certain_rounds_down() -> None:
    assert str(resolve_type(parse_type(Source("test", "(n/2).f32")), {"n": Kind.NAT})).count("n / 2")


def test_a_minus_and_digits_are_a_literal_a_minus_and_parentheses_a_negation() -> None:
    assert meaning(expression("-1")) == ("Number", ("int", -1))
    assert meaning(expression("-(1)"))[0] == "Unary"


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("1.5", 1.5), ("1e-3", 1e-3), ("2.5E+2", 250.0), ("true", True), ("false", False)],
)
def test_numbers(text: str, value: Any) -> None:
    assert meaning(expression(text)) == ("Number", (type(value).__name__, value))


def test_a_list_without_parentheses_is_curried() -> None:
    assert len(expression("fun(x, y => x)").parameters) == 1
    assert len(expression("fun((x, y) => x)").parameters) == 2


def test_patterns_nest() -> None:
    function = expression("fun((a, (b, c: f32)) => b)")
    assert isinstance(function.parameters[1], PairPattern)


def test_keywords_may_begin_a_name() -> None:
    assert meaning(expression("funny(letter, index, define, truest)"))[0] == "Call"


def test_a_file_has_imports_and_definitions() -> None:
    file = parse_file(Source("test", 'import "prelude.rise"\n// one\ndef a: f32 = 1.0\n/* two */ def b = a'))
    assert [i.path for i in file.imports] == ["prelude.rise"]
    assert [d.name for d in file.definitions] == ["a", "b"]
    assert str(file.definitions[1].name_span) == "test:4:15"
    assert parse_file(Source("test", "  // nothing\n")).definitions == ()


def test_a_span_covers_its_text_parentheses_of_operands_included() -> None:
    span = expression("f(x,\n  (a + b) * c)").arguments[1].span
    assert (span.line, span.column, span.end_line, span.end_column) == (2, 3, 2, 14)


def test_a_long_program_needs_no_deep_stack() -> None:
    assert isinstance(expression("x" + " |> f" * 5000), Call)
    assert isinstance(expression("(" * 5000 + "f(x)" + ")" * 5000), Call)


# --- signatures and arguments -------------------------------------------------------------------


def test_leading_dependent_parameters_belong_to_the_scheme() -> None:
    scheme = parse_scheme("(n: Nat) -> {m: Nat, t: DataType} -> (m*n).t -> m.n.t", {})
    assert [(p.name, p.kind, p.implicit) for p in scheme.parameters] == [
        ("n", Kind.NAT, False),
        ("m", Kind.NAT, True),
        ("t", Kind.DATA, True),
    ]
    assert str(scheme.type) == "(m*n).t -> m.n.t"


def test_a_parameter_takes_its_default_by_name() -> None:
    scheme = parse_scheme("(a: AddressSpace) -> {t: DataType} -> t -> t", {"a": Space.LOCAL})
    assert [p.default for p in scheme.parameters] == [Space.LOCAL, None]


def test_a_dependent_argument_stays_in_the_type() -> None:
    scheme = parse_scheme("(k: Nat) -> {t: DataType} -> ((l: Nat) -> (l*k).t -> l.t) -> k.t", {})
    assert [p.name for p in scheme.parameters] == ["k", "t"]
    assert str(scheme.type) == "((l: Nat) -> (k*l).t -> l.t) -> k.t"


def test_an_argument_written_like_a_value_is_read_as_its_kind_asks() -> None:
    kinds = {"n": Kind.NAT}

    def argument(text: str, kind: Any) -> Any:
        return str(resolve_argument(as_type(expression(text)), kind, kinds))

    assert argument("min(n, 2*n) + 2^3", Kind.NAT) == "n + 8"
    assert argument("-n + 3", Kind.NAT) == "-n + 3"
    assert argument("Local", Kind.SPACE) == "Local"
    assert argument("AMatrix", Kind.FRAGMENT) == "AMatrix"
    assert argument("(f16, Array[n, f32])", Kind.DATA) == "(f16, n.f32)"


def test_a_function_on_sizes() -> None:
    written = expression("natFun(i => n - 1 - i)")
    assert isinstance(written, NatLambda)
    function = resolve_nat_function(written, {"n": Kind.NAT})
    assert str(function.body) == "-i + n - 1"


# --- mistakes -----------------------------------------------------------------------------------

MISTAKES = [
    (
        "def f = map(fun(x => x)\n\ndef g = 1",
        """m.rise:3:1: error R0101: found `def`, expected `)` or `,`
3 | def g = 1
  | ^^^
hint: the `(` at line 1, column 12 is not closed""",
    ),
    (
        "def f = map(fun(x => x)  // identity\n",
        """m.rise:1:24: error R0102: the text ends here, expected `)` or `,`
1 | def f = map(fun(x => x)  // identity
  |                        ^
hint: the `(` at line 1, column 12 is not closed""",
    ),
    (
        "def f = g(a]",
        """m.rise:1:12: error R0101: found `]`, expected an operator, `)` or `,`
1 | def f = g(a]
  |            ^
hint: the `(` at line 1, column 10 is not closed""",
    ),
    (
        "def f = )",
        """m.rise:1:9: error R0101: found `)`, expected an expression
1 | def f = )
  |         ^
hint: no bracket is open that this `)` could close""",
    ),
    (
        "def f = fun(x => x = 1)",
        """m.rise:1:20: error R0101: found `=`, expected an operator or `)`
1 | def f = fun(x => x = 1)
  |                    ^
hint: equality is written `==`""",
    ),
    (
        "def f = fun(x -> x)",
        """m.rise:1:15: error R0101: found `->`, expected `,`, `:` or `=>`
1 | def f = fun(x -> x)
  |               ^^
hint: a function is written `x => …`; `->` is for types""",
    ),
    (
        "def f = fun(x) => x",
        """m.rise:1:14: error R0101: found `)`, expected `,` or `=>`
1 | def f = fun(x) => x
  |              ^
hint: a function is written `x => …`; the body of a `fun` stands inside its parentheses""",
    ),
    (
        "def f = lambda x: x",
        """m.rise:1:16: error R0101: found `x`, expected an operator, a definition or the end
1 | def f = lambda x: x
  |                ^
hint: a function is written `x => …`""",
    ),
    (
        "def f = \\x. x",
        """m.rise:1:9: error R0103: the character `\\` has no meaning here
1 | def f = \\x. x
  |         ^
hint: a function is written `x => …`""",
    ),
    (
        "def f(x: f32) -> f32 = x",
        """m.rise:1:15: error R0101: found `->`, expected `(`, `:` or `=`
1 | def f(x: f32) -> f32 = x
  |               ^^
hint: the type of the result stands behind a colon: `def f(x: f32): f32 = …`""",
    ),
    (
        "def f = 1.0f",
        """m.rise:1:12: error R0101: found `f`, expected an operator, a definition or the end
1 | def f = 1.0f
  |            ^
hint: a number has no suffix: its type comes from where it stands, or write `f32(1.5)`""",
    ),
    (
        "def in = 3",
        """m.rise:1:5: error R0101: found `in`, expected a name
1 | def in = 3
  |     ^^
hint: `in` is a keyword and cannot be a name""",
    ),
    *(
        (f"def f = {text}", message)
        for text, message in (
            (
                "x > 0 ? x : 0",
                """m.rise:1:15: error R0103: the character `?` has no meaning here
1 | def f = x > 0 ? x : 0
  |               ^
hint: `select(condition)(then)(otherwise)` chooses between values""",
            ),
            (
                "x − 2",
                """m.rise:1:11: error R0103: the character `−` has no meaning here
1 | def f = x − 2
  |           ^
hint: write `-`""",
            ),  # noqa: RUF001
            (
                "[1, 2]",
                """m.rise:1:9: error R0101: found `[`, expected an expression
1 | def f = [1, 2]
  |         ^
hint: `makeArray(2)(1.0, 2.0)` and `generate(i => …)` make arrays; `map` makes one of another""",
            ),
            (
                "{ x }",
                """m.rise:1:9: error R0101: found `{`, expected an expression
1 | def f = { x }
  |         ^
hint: a body stands in no braces: these are for inferred parameters""",
            ),
            (
                'x + "a"',
                """m.rise:1:13: error R0101: found `"a"`, expected an expression
1 | def f = x + "a"
  |             ^^^
hint: there are no values of text: it names files and foreign functions""",
            ),
            (
                "x, y",
                """m.rise:1:10: error R0101: found `,`, expected a definition or the end
1 | def f = x, y
  |          ^
hint: a pair stands in parentheses: `(a, b)`""",
            ),
        )
    ),  # fmt: skip
    (
        "import gemm",
        """m.rise:1:8: error R0101: found `gemm`, expected a file name in quotes
1 | import gemm
  |        ^^^^
hint: a file is imported by its name: `import "file.rise"`""",
    ),
    (
        "def f: n. = 3",
        """m.rise:1:11: error R0101: found `=`, expected a type
1 | def f: n. = 3
  |           ^""",
    ),
    (
        "def f = a & b",
        """m.rise:1:11: error R0103: the character `&` has no meaning here
1 | def f = a & b
  |           ^
hint: write `&&`""",
    ),
    (
        "def f = 1\n/* hello",
        """m.rise:2:1: error R0104: this comment is not closed
2 | /* hello
  | ^^
hint: close it with `*/`""",
    ),
    (
        'import "prelude',
        """m.rise:1:8: error R0104: this string is not closed
1 | import "prelude
  |        ^
hint: close it with `"`""",
    ),
    (
        "def f = a < b < c",
        """m.rise:1:15: error R0101: found `<`, expected a definition or the end
1 | def f = a < b < c
  |               ^
hint: comparisons do not chain: write `a < b && b < c`""",
    ),
    (
        "f(x)",
        """m.rise:1:1: error R0101: found `f`, expected a definition or the end
1 | f(x)
  | ^
hint: an expression stands in a definition: `def name = …`""",
    ),
]


@pytest.mark.parametrize(("text", "told"), MISTAKES, ids=[text for text, _ in MISTAKES])
def test_a_mistake_is_told(text: str, told: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_file(Source("m.rise", text))
    assert str(caught.value) == told


SHORT_FORMS = [
    ("def f(x: f32) => x", "`=` stands in front of the body; the type of a function is written `a -> b`"),
    (
        "def f(x: f32): f32 => x",
        "`=` stands in front of the body; the type of a function is written `a -> b`",
    ),
    ("def f(x: f32 = x", "the `(` at line 1, column 6 is not closed"),
    ("def f(x: f32, y: f32: f32 = x", "the `(` at line 1, column 6 is not closed"),
    ("def f(f32 x) = x", "the type of a parameter stands behind a colon: `x: f32`"),
    ("def f(n: Nat){m: Nat} = x", "inferred parameters come first: `def f{n: Nat}(xs: n.f32): f32 = …`"),
    ("def f[n: Nat](x) = x", "inferred parameters stand in braces: `def f{n: Nat}(xs: n.f32): f32 = …`"),
    ("def f<n>(x) = x", "inferred parameters stand in braces: `def f{n: Nat}(xs: n.f32): f32 = …`"),
    ("def f{n}(x) = x", "each name in braces has a kind: `{n: Nat}`"),
    ("def f x = x", "parameters stand in parentheses: `def f(x) = …`"),
    ("def f(x) x", "a definition is written `def f = …`: its `=` is missing"),
    ("def f: f32(x) = x", "parameters stand in front of the type: `def f{n: Nat}(xs: n.f32): f32 = …`"),
    ("def f = map(x -> x)", "a function is written `x => …`; `->` is for types"),
    ("def f = (x, y) -> x", "a function is written `x => …`; `->` is for types"),
    ("def f = x: f32 => x", "a parameter with a type stands in parentheses: `(x: f32) => …`"),
    ("def f = x |> y => y", "behind `|>` a function stands in parentheses: `|> (x => …)`"),
    ("def f = map((a, b) a + b)", "a function is written `(x, y) => …`"),
    ("def f = map((a, b) = a + b)", "a function is written `(x, y) => …`"),
    ("def f = (a + b) => a", "a function is written `x => …`"),
    ("def f = f(x) => x", "a function is written `x => …`"),
    ("def f = x => => x", "a function is written `x => …`"),
    ("def f = map(x => x\n\ndef g = 1", "the `(` at line 1, column 12 is not closed"),
    ("def f = map(x => x))", "no bracket is open that this `)` could close"),
]


@pytest.mark.parametrize(("text", "hint"), SHORT_FORMS, ids=[text for text, _ in SHORT_FORMS])
def test_a_mistake_in_a_short_form_has_a_hint(text: str, hint: str) -> None:
    with pytest.raises(RiseError) as caught:
        parse_file(Source("m.rise", text))
    first, *_ = getattr(caught.value, "mistakes", [caught.value])
    assert first.hint == hint


def test_brackets_in_comments_count_for_nothing() -> None:
    with pytest.raises(ParseError, match="line 1, column 2 is not closed"):
        expression("f( /* ( */ x // (\n")


SCOPE = {"n": Kind.NAT, "elem": Kind.DATA, "a": Kind.SPACE}


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        ("n.F32", "R0202", "there is no data type `F32`", "did you mean `f32`?"),
        ("n.elm", "R0202", "there is no data type `elm`", "did you mean `elem`?"),
        (
            "k.f32",
            "R0202",
            "there is no size `k`",
            "declare it: `def f(k: Nat)(…) = …`, or `def f{k: Nat}(…) = …` where it is inferred",
        ),
        ("Arry[n, f32]", "R0202", "there is no type `Arry[…]`", "did you mean `Array`?"),
        ("{k: nat} -> f32", "R0202", "there is no kind `nat`", "did you mean `Nat`?"),
        ("n.n", "R0203", "the size `n` stands where a data type is needed", None),
        ("elem.f32", "R0203", "the data type `elem` stands where a size is needed", None),
        ("n.(f32 -> f32)", "R0203", "a function type stands where a data type is needed", None),
        ("3", "R0203", "the size `3` stands where a data type is needed", None),
        (
            "Fragment[n, n, n, f16, Local]",
            "R0203",
            "the address space `Local` stands where a kind of fragment is needed",
            None,
        ),
        (
            "Array[n]",
            "R0204",
            "`Array` takes 2 arguments, 1 given",
            "write `Array[size, data type]`",
        ),
        (
            "{n: Nat} -> f32",
            "R0205",
            "the parameter `n` shadows another of that name",
            "give one of them another name",
        ),
        ("(n / 0).f32", "R0214", "a size is divided by zero", None),
    ],
)
def test_a_wrong_type_is_told(text: str, code: str, message: str, hint: str) -> None:
    with pytest.raises(ScopeError) as caught:
        resolve_type(parse_type(Source("test", text)), SCOPE)
    assert (caught.value.code, caught.value.message, caught.value.hint) == (code, message, hint)


def test_a_value_is_no_size() -> None:
    with pytest.raises(ScopeError, match="R0203: a value stands where a size or a type is needed"):
        as_type(expression("fun(x => x)"))


# --- starting up --------------------------------------------------------------------------------


def test_importing_the_parser_does_not_import_lark() -> None:
    check = "import sys, rise.syntax.parser; sys.exit('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder for the parser's tables, none being there or in memory at first."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    parser._lark.cache_clear()
    yield lambda: [*tmp_path.rglob("*.tables")]
    parser._lark.cache_clear()


def mistake() -> Any:
    with pytest.raises(ParseError) as caught:
        parse_file(Source("m.rise", MISTAKES[0][0]))
    return str(caught.value)


def test_tables_that_were_kept_tell_mistakes_alike(tables: Any) -> None:
    made = mistake()
    parser._lark.cache_clear()
    assert mistake() == made == MISTAKES[0][1]
    assert len(tables()) == 1


def test_damaged_tables_are_made_again(tables: Any) -> None:
    mistake()
    tables()[0].write_bytes(b"damaged")
    parser._lark.cache_clear()
    assert mistake() == MISTAKES[0][1]
    assert tables()[0].read_bytes() != b"damaged"
