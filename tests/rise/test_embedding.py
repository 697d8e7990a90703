"""Programs written in Python are the same terms as programs in text."""

from __future__ import annotations

import operator
import textwrap
from typing import Any

import pytest

import rise
from rise import Definition, ops
from tests.rise.python_cells import GEMM, PREAMBLE, ROOT, cell, defined, run, same

# --- every construct: Python on the left, the text of a program on the right -----------------------------

CONSTRUCTS = {
    "literals": ("lambda x: x * 2 + f16(0.5)", "fun(x => x * 2 + f16(0.5))"),
    "truth": ("lambda x: select(True, x, 1)", "fun(x => select(true, x, 1))"),
    "negative": ("lambda x: x + -1 - -x", "fun(x => x + -1 - -x)"),
    "arithmetic": ("lambda x, y: (x + y) * (x - y) / x % y", "fun(x, y => (x + y) * (x - y) / x % y)"),
    "reflected": ("lambda x: 1 + (2 - (3 * (4 / (5 % x))))", "fun(x => 1 + (2 - (3 * (4 / (5 % x)))))"),
    "power": ("lambda x: x ** 2", "fun(x => x ^ 2)"),
    "abs": ("lambda x: abs(f32(x))", "fun(x => abs(f32(x)))"),
    "comparisons": (
        "lambda x, y: (x < y) & (x <= y) & (x > y) & (x >= y) & (x == y) & (x != y)",
        "fun(x, y => x < y && x <= y && x > y && x >= y && x == y && x != y)",
    ),
    "logic": ("lambda p, q: ~p & q & or_(p, q)", "fun(p, q => !p && q && (p || q))"),
    "casts": ("lambda x: f16(x) + f16(i32(x))", "fun(x => f16(x) + f16(i32(x)))"),
    "pairs": ("lambda p: (p.snd, p.fst)", "fun(p => (snd(p), fst(p)))"),
    "triples": ("lambda x: (x, 1, True)", "fun(x => (x, 1, true))"),
    "pipe": ("lambda xs: xs | map(lambda x: x + 1) | reduce(add, 0)",
             "fun(xs => xs |> map(fun(x => x + 1)) |> reduce(+, 0))"),
    "pipe of a number": ("lambda x: 1 | fun(lambda y: x + y)", "fun(x => 1 |> fun(y => x + y))"),
    "composition": ("split(4) >> map(reduce(add, 0)) >> (lambda ys: ys | map(exp))",
                    "split(4) >> map(reduce(+, 0)) >> fun(ys => ys |> map(exp))"),
    "curried": ("lambda xs: xs | reduceSeq(lambda a, x: a + x * x, 0)",
                "fun(xs => xs |> reduceSeq(fun((a, x) => a + x * x), 0))"),
    "pair-taking": ("lambda xs, ys: zip(xs, ys) | map(lambda x, y: x * y)",
                    "fun(xs, ys => zip(xs, ys) |> map(fun((x, y) => x * y)))"),
    "both": ("lambda xs: xs | reduceSeq(lambda a, p: a + p.fst * p.snd, 0)",
             "fun(xs => xs |> reduceSeq(fun((a, (x, y)) => a + x * y), 0))"),
    "operators of Python": ("lambda xs: xs | reduce(operator.mul, 1)", "fun(xs => xs |> reduce(*, 1))"),
    "sizes as arguments": ("lambda xs: xs | slide(3, 1) | map(take(2))",
                           "fun(xs => xs |> slide(3, 1) |> map(take(2)))"),
    "memories": ("lambda xs: xs | toMem(Shared) | mapSeq(toMem(Local))",
                 "fun(xs => xs |> toMem(Shared) |> mapSeq(toMem(Local)))"),
    "let": ("lambda x: let(x * x, lambda y: y + y)", "fun(x => let y = x * x in y + y)"),
    "let of a pair": ("lambda x: let((x, 1), lambda a, b: a + b)", "fun(x => let (a, b) = (x, 1) in a + b)"),
    "indices": ("lambda xs: generate(lambda i: xs[i])", "fun(xs => generate(fun(i => xs |> idx(i))))"),
    "annotation": ("lambda xs: typed(xs, Array[8, f32])", "fun(xs => (xs: 8.f32))"),
    "parameter types": ("fun(lambda xs, y: xs, xs=Array[2, 3, f32], y=Pair[i8, f64])",
                        "fun((xs: 2.3.f32, y: (i8, f64)) => xs)"),
    "tuple types": ("fun(lambda p: p, p=(f32, i32, bool))", "fun(p: (f32, i32, bool) => p)"),
    "function types": ("fun(lambda g, x: g(x), g=Function[f32, f32])", "fun((g: f32 -> f32, x) => g(x))"),
    "indices in types": ("fun(lambda i: indexToInt(i), i=Idx[5])", "fun(i: Idx[5] => indexToInt(i))"),
    "fragments": ("fun(lambda c: asMatrix(c), c=Fragment[16, 16, 16, f32, Accum])",
                  "fun(c: Fragment[16, 16, 16, f32, Accum] => asMatrix(c))"),
    "dependent functions": ("depFun(lambda l, s: fun(lambda xs: xs, xs=Array[l, s]), s=DataType)",
                            "depFun((l: Nat, s: DataType) => fun(xs: l.s => xs))"),
    "functions on sizes": (
        "fun(lambda xs: xs | reorder(6, natFun(lambda i: 5 - i), natFun(lambda i: 5 - i)), xs=Array[6, f32])",
        "fun(xs: 6.f32 => xs |> reorder(6, natFun(i => 5 - i), natFun(i => 5 - i)))",
    ),
    "iterate": ("fun(lambda xs: xs | iterate(3, depFun(lambda l: split(2) >> map(reduce(add, 0)))), "
                "xs=Array[8, f32])",
                "fun(xs: 8.f32 => xs |> iterate(3, depFun((l: Nat) => split(2) >> map(reduce(+, 0)))))"),
    "families": ("lambda x: makeArray(3)(x)(x + 1)(2)", "fun(x => makeArray(3)(x)(x + 1)(2))"),
    "texts": ("lambda x: foreignFunction('__expf', 1)(exp)(f32(x))",
              'fun(x => foreignFunction("__expf", 1)(exp)(f32(x)))'),
}  # fmt: skip


@pytest.mark.parametrize(("python", "text"), CONSTRUCTS.values(), ids=CONSTRUCTS)
def test_a_construct_is_the_same_in_python_and_in_text(python: str, text: str) -> None:
    assert same(defined(f"f = rise.define({python}, name='f')"), rise.expression(text, "f"))


# --- definitions ------------------------------------------------------------------------------------------

DEFINITIONS = {
    "implicit sizes in the order of first use": (
        """
        def f(A: Array[k, m, f32], x: f32) -> Array[k, f32]:
            return A | map(reduce(add, x))
        """,
        "def f: {k: Nat, m: Nat} -> k.m.f32 -> f32 -> k.f32 = fun(A, x => A |> map(reduce(+, x)))",
    ),
    "types": (
        """
        def f(xs: Array[n, t], g: Function[t, t, t], x: t) -> t:
            return xs | reduce(g, x)
        """,
        "def f: {n: Nat, t: DataType} -> n.t -> (t -> t -> t) -> t -> t = "
        "fun(xs, g, x => xs |> reduce(g, x))",
    ),
    "explicit sizes": (
        """
        @rise.define(sizes=(m, n))
        def f(A: Array[m, n, f32]):
            return transpose(A)
        """,
        "def f = depFun((m: Nat, n: Nat) => fun(A: m.n.f32 => transpose(A)))",
    ),
    "sizes that occur in the body only": (
        """
        def f(xs):
            return typed(xs, Array[2 * n + 1, f32]) | take(n)
        """,
        "def f: {n: Nat} -> (2*n + 1).f32 -> n.f32 = fun(xs => xs |> take(n))",
    ),
    "arithmetic on sizes": (
        """
        def f(xs: Array[(n + 1) * m, f32]) -> Array[n + 1, m, f32]:
            return xs | split(m * (n // 1) // n)
        """,
        "def f: {n: Nat, m: Nat} -> ((n + 1)*m).f32 -> (n + 1).m.f32 = fun(xs => xs |> split(m))",
    ),
    "minimum and rounding up": (
        """
        def f(xs: Array[ceildiv(n, 4) + min(m, 3) + max(m, 2) + m % 5, f32]):
            return xs
        """,
        "def f: {n: Nat, m: Nat} -> (ceildiv(n, 4) + min(m, 3) + max(m, 2) + m % 5).f32 -> "
        "(ceildiv(n, 4) + min(m, 3) + max(m, 2) + m % 5).f32 = fun(xs => xs)",
    ),
    "inferred": (
        """
        def f(xs, ys):
            return zip(xs, ys) | map(lambda x, y: f32(x) * y)
        """,
        "def f = fun(xs, ys => zip(xs, ys) |> map(fun((x, y) => f32(x) * y)))",
    ),
    "a pair taken apart": (
        """
        def f(xs: Array[n, Pair[f32, Pair[i32, bool]]]):
            def second(p):
                a, b, c = p
                return select(c, a, f32(b))
            return xs | map(second)
        """,
        "def f: {n: Nat} -> n.(f32, i32, bool) -> n.f32 = "
        "fun(xs => xs |> map(fun(p => select(snd(snd(p)), fst(p), f32(fst(snd(p)))))))",
    ),
    "a constant": (
        """
        @rise.define(sizes=n)
        def f() -> Array[n, i32]:
            return generate(indexToInt)
        """,
        "def f = depFun((n: Nat) => (generate(indexToInt): n.i32))",
    ),
    "explicit sizes that a definition is given": (
        """
        @rise.define(sizes=(m, n))
        def g(xs: Array[m * n, f32]):
            return xs | split(n)
        def f(ys: Array[6 * k, f32]):
            return g(3 * k, 2)(ys)
        """,
        "def g = depFun((m: Nat, n: Nat) => fun(xs: (m * n).f32 => xs |> split(n)))\n"
        "def f: {k: Nat} -> (6 * k).f32 -> (3 * k).2.f32 = fun(ys => g(3 * k, 2)(ys))",
    ),
    "constraints": (
        """
        def f(xs: Array[n, f32]):
            return xs | split(32) | join
        """,
        "def f: {n: Nat} -> n.f32 -> n.f32 = fun(xs => xs |> split(32) |> join)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("python", "text"), DEFINITIONS.values(), ids=DEFINITIONS)
def test_a_definition_is_the_same_in_python_and_in_text(python: str, text: str) -> None:
    assert same(defined(python), rise.parse(text).f)


@pytest.mark.parametrize("name", ["matmul", "gemm"])
def test_gemm_in_python_is_that_of_the_file(name: str) -> None:
    assert same(run(GEMM)[name], rise.load(ROOT / "examples" / "gemm.rise")[name])


def test_annotations_may_be_texts_that_python_has_not_evaluated() -> None:
    text = """
    def scope():
        p, q = Nat("p q")
        @rise.define
        def f(xs: Array[p, q, f32]) -> Array[q, p, f32]:
            return transpose(xs)
        return f
    f = scope()
    """
    future = "from __future__ import annotations\n"
    code = future + PREAMBLE + textwrap.dedent(text)
    namespace: dict[str, Any] = {}
    exec(compile(code, cell(code), "exec", dont_inherit=True), namespace)
    assert str(namespace["f"].type) == "{p: Nat, q: Nat} -> p.q.f32 -> q.p.f32"


# --- names ------------------------------------------------------------------------------------------------


def test_a_parameter_does_not_capture_one_of_the_same_name_outside() -> None:
    found = defined("""
        def twice(g):
            return fun(lambda x: g(x) + g(x))
        f = rise.define(lambda x: twice(lambda y: x * y)(x + 1), name="f")
    """)
    assert same(found, rise.expression("fun(x => (fun(z => x * z + x * z))(x + 1))", "f"))


def test_a_parameter_that_shadows_another_means_the_inner_one() -> None:
    found = defined("f = rise.define(lambda x: x | (lambda x: x | (lambda x: x * 2)), name='f')")
    assert same(found, rise.expression("fun(x => x |> fun(y => y |> fun(z => z * 2)))", "f"))


def test_a_parameter_may_be_called_like_a_primitive_a_size_or_a_word_of_the_notation() -> None:
    found = defined("""
        @rise.define
        def f(map: Array[n, f32], n_: f32, let: f32, true: f32):
            return map | ops_map(lambda zip: zip * n_ + let + true)
    """.replace("ops_map", "rise.ops.map"))  # fmt: skip
    expected = "def f: {n: Nat} -> n.f32 -> f32 -> f32 -> f32 -> n.f32 = "
    expected += "fun(xs, a, b, c => xs |> map(fun(x => x * a + b + c)))"
    assert same(found, rise.parse(expected).f)
    assert same(rise.parse(found.show()).f, found)


def test_a_function_kept_in_a_loop_has_the_value_of_its_turn() -> None:
    """Python's lambdas look variables up late; `fun` and default values keep those of now."""
    now = defined("""
        steps = [fun(lambda x: x * i) for i in (2, 3, 5)]
        f = rise.define(lambda x: steps[2](steps[1](steps[0](x))), name="f")
    """)
    default = defined("""
        steps = [lambda x, i=i: x * i for i in (2, 3, 5)]
        f = rise.define(lambda x: x | steps[0] | steps[1] | steps[2], name="f")
    """)
    late = defined("""
        steps = [lambda x: x * i for i in (2, 3, 5)]
        f = rise.define(lambda x: x | steps[0] | steps[1] | steps[2], name="f")
    """)
    assert (now(7), default(7), late(7)) == (7 * 30, 7 * 30, 7 * 125)


def test_a_definition_that_a_program_and_python_use_is_shown_once() -> None:
    program = rise.parse("def f = fun(x: f32 => x + 1)  def g = fun(x => f(x) * 3)")
    found = rise.define(lambda x: program.f(program.g(x)), name="h")
    assert list(rise.parse(found.show())) == ["f", "g", "h"]
    again = rise.parse(found.show()).h
    assert again == found and hash(again) == hash(found)


def test_definitions_of_one_name_are_told_apart() -> None:
    found = run("""
        f = rise.define(fun(lambda x: x + 1, x=f32), name="f")
        g = rise.define(lambda x: f(x) * 3, name="g")
        first = f
        f = rise.define(fun(lambda x: x * 2, x=f32), name="f")
        h = rise.define(lambda f_1: f(g(first(f_1))), name="h")
    """)["h"]  # fmt: skip
    assert found(5.0) == 2 * (3 * (5 + 1 + 1))
    text = rise.parse(found.show())
    assert list(text) == ["f", "f_1", "g", "h"]
    assert text.h(5.0) == found(5.0)


@pytest.mark.parametrize("python", [p for p, _ in DEFINITIONS.values()] + [GEMM], ids=[*DEFINITIONS, "gemm"])
def test_shown_and_parsed_again_it_is_the_same(python: str) -> None:
    for found in run(python).values():
        found = rise.define(found) if callable(found) and getattr(found, "__name__", "") == "f" else found
        if isinstance(found, Definition):
            assert same(rise.parse(found.show())[found.name], found)


def test_every_primitive_is_there_by_name() -> None:
    from rise.primitives.declare import REGISTRY

    reserved = {"and": "and_", "or": "or_", "not": "not_"}
    for name in REGISTRY:
        assert f"`{reserved.get(name, name)}`" in f"`{name}_` `{name}`"
        assert getattr(ops, reserved.get(name, name)) is not None
        assert reserved.get(name, name) in dir(ops)
        # no primitive hides a module of the package
        assert not (ROOT / "rise" / f"{name}.py").exists()
        assert not (ROOT / "rise" / name).exists()
    assert not hasattr(ops, "nonsense")
    assert not hasattr(rise, "nonsense")
    assert rise.map is ops.map


def test_operators_of_python_are_those_of_programs() -> None:
    """The table of operators has no gaps: what the notation writes infix, Python can write."""
    from rise.check.scope import INFIX
    from rise.embed.operators import BINARY

    assert set(BINARY.values()) | {"||"} == set(INFIX)
    assert all(hasattr(operator, f"__{name}__") for name in BINARY)
