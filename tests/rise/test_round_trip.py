"""Typed programs that are printed, parsed and checked again are the same programs, types included."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rise.check.program import Loader, check_text
from rise.errors import RiseError
from rise.expr import Definition, Expr, Primitive, alpha_equal, subterms
from rise.pretty import show_definition
from rise.primitives.declare import REGISTRY
from rise.source import Source
from rise.syntax.format import format_text
from rise.testing import programs
from tests.rise.paper_notation import in_paper_notation
from tests.support.nightly import every_other

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "rise" / "library" / "prelude.rise"
FILES = [LIBRARY, *sorted(ROOT.glob("examples/*.rise"))]
WIDTHS = st.sampled_from([40, 100])

LOADER = Loader()


def same(left: Definition, right: Definition) -> bool:
    return left.parameters == right.parameters and alpha_equal(left.body, right.body)


def again(definition: Definition, width: int = 100) -> Definition:
    return check_text(show_definition(definition, width))[definition.name]


def test_random_programs() -> None:
    printed: Counter[str] = Counter()

    @given(programs(), WIDTHS)
    @settings(max_examples=80)
    def check(term: Expr, width: int) -> None:
        definition = Definition("it", (), term)
        printed.update(t.name for t in subterms(term) if isinstance(t, Primitive))
        assert same(again(definition, width), definition), show_definition(definition)

    check()
    assert len(printed) > 15
    assert printed.total() > 150


@pytest.mark.parametrize("name", [n for n, d in sorted(REGISTRY.items()) if d.example])
def test_the_example_of_a_primitive(name: str) -> None:
    definition = check_text(f"def it = {REGISTRY[name].example[0]}")["it"]
    assert same(again(definition), definition)


@pytest.mark.parametrize("path", every_other(FILES, step=4), ids=lambda p: p.name)
def test_the_definitions_of_an_example(path: Path) -> None:
    """All that the file uses, and it, as one text."""
    checked = LOADER.load(path)
    if checked.mistakes:
        pytest.skip("does not check")
    program = checked.program
    texts = {name: shown(d) for name, d in program.definitions.items()}
    copies = check_text("\n\n".join(texts.values()))
    for name in program.own:
        assert same(copies[name], program[name]), texts[name]


@cache
def shown(definition: Definition) -> str:
    """The loader gives out a definition of the library once, whichever file imports it."""
    return show_definition(definition)


PROGRAMS = {
    "definitions": """
        def square = fun(x => x * x)
        def sumOfSquares: {n: Nat, t: DataType} -> n.t -> t = fun(xs => xs |> map(square) |> reduce(+, 0))
        def it = fun((xs: 7.f32, ys: 5.i16) => (sumOfSquares(xs), sumOfSquares(ys)))""",
    "explicit parameters": """
        def tiles: {m: Nat, t: DataType} -> (n: Nat) -> (m*n).t -> m.n.t = depFun((n: Nat) => split(n))
        def it = fun(xs: 12.f32 => xs |> tiles(3) |> map(tiles(1)))""",
    "dependent functions": """
        def it = depFun((n: Nat, t: DataType) => fun((xs: n.t, f: t -> f32) => xs |> map(f)))""",
    "a dependent function as argument": """
        def it = fun(xs: 8.f32 =>
          xs |> iterate(3)(depFun((l: Nat) => fun(ys: (l*2).f32 => ys |> split(2) |> map(reduce(+, 0))))))""",
    "let": "def it = fun((x: f32) => let y = x + 1 in let (a, b) = (y, y * 2) in a - b)",
    "pairs": "def it = fun((p: (f32, (i32, bool))) => (snd(snd(p)), fst(p), fst(snd(p))))",
    "natFun": """
        def it = depFun((n: Nat) => fun(xs: n.f32 =>
          xs |> reorder(n)(natFun(i => n - 1 - i))(natFun(i => n - 1 - i))))""",
    "scan": "def it = fun(xs: 11.i32 => xs |> scan(+, 0) |> scanSeq(fun(x, y => x - y), 1))",
    "makeArray": "def it = fun((x: f32, y: f32) => makeArray(3)(x)(y)(x * y))",
    "layouts": """
        def it = fun((xs: 32.32.f16) => xs |> toMem(Shared, padded(8)) |> toMem(Shared) |>
          toMem(Shared, swizzled(128)))""",
    "foreign functions": 'def it = fun(xs: 5.f32 => xs |> map(foreignFunction("f", 1)(fun(x => exp(x)))))',
    "an index whose size nothing else says": "def it = generate(fun(i: Idx[7] => indexToInt(i)))",
    "a literal whose type nothing else says": "def it = (1: i8, 2.5: f16, 3)",
    "a fragment": "def it = asMatrix(generateFragment(0.0): Fragment[16, 16, 8, f32, Accum])",
    "names that hide primitives": "def it = fun((map: f32, f32: i32) => fun(x => (map, f32, x)))",
    "an inferred data type": "def it = fun(p => (snd(p), fst(p)))",
    "infinity": "def it = (infinity: f32, (-infinity): f64)",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("width", [20, 100])
def test_every_construct(text: str, width: int) -> None:
    program = check_text(text)
    shown = "\n\n".join(show_definition(d, width) for d in program.definitions.values())
    assert same(check_text(shown)["it"], program["it"]), shown


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_formatting_keeps_the_typed_program(text: str) -> None:
    assert same(check_text(format_text(Source("t", text)))["it"], check_text(text)["it"])


# --- both notations -----------------------------------------------------------------------------


def test_random_programs_in_both_notations_are_the_same() -> None:
    seen: Counter[str] = Counter()

    @given(programs(), WIDTHS)
    @settings(max_examples=120)
    def check(term: Expr, width: int) -> None:
        definition = Definition("it", (), term)
        short = format_text(Source("t", show_definition(definition, width)))
        paper = in_paper_notation(short, width)
        seen.update(word for word in ("=>", "fun((", "fun(") if word in paper)
        assert same(check_text(paper)["it"], check_text(short)["it"]), paper
        assert same(check_text(short)["it"], definition), short
        assert same(check_text(format_text(Source("t", paper)))["it"], definition), paper

    check()
    assert min(seen["=>"], seen["fun("]) > 60 and seen["fun(("] > 0, seen


@pytest.mark.parametrize("path", [LIBRARY, ROOT / "examples" / "gemm.rise"], ids=lambda p: p.name)
def test_the_definitions_of_an_example_in_both_notations_are_the_same(path: Path) -> None:
    program = check_text(path.read_text(), import_path=(path.parent,))
    paper = check_text(in_paper_notation(path.read_text()), import_path=(path.parent,))
    for name in program.own:
        assert paper[name].parameters == program[name].parameters
        assert show_definition(paper[name]) == show_definition(program[name])


SHORT_FORMS = {
    "sizes, then values": (
        "def it(m: Nat, n: Nat)(A: m.n.f32, x: n.f32): m.f32 = "
        "A |> map(row => zip(row, x) |> map((a, b) => a * b) |> reduce(+, 0))",
        "def it: (m: Nat, n: Nat) -> m.n.f32 -> n.f32 -> m.f32 = depFun((m: Nat, n: Nat) => fun(A, x => "
        "A |> map(fun(row => zip(row, x) |> map(fun((a, b) => a * b)) |> reduce(+, 0)))))",
    ),
    "inferred": (
        "def it{n: Nat, s: DataType, t: DataType}(f: s -> t, xs: n.s): n.t = xs |> map(f)",
        "def it: {n: Nat, s: DataType, t: DataType} -> (s -> t) -> n.s -> n.t = fun((f, xs) => xs |> map(f))",
    ),
    "inferred, no result": (
        "def it{n: Nat}(xs: n.f32) = xs |> map(x => x + 1)",
        "def it: {n: Nat} -> n.f32 -> n.f32 = fun(xs => xs |> map(fun(x => x + 1)))",
    ),
    "no types at all": ("def it(f, x, y) = f(x) + y", "def it = fun(f, x, y => f(x) + y)"),
    "a pair": ("def it((a: f32, (b, c: i32))): i32 = c", "def it = fun(((a: f32, (b, c: i32))) => c)"),
    "an address space": (
        "def it{t: DataType}(a: AddressSpace)(x: t): t = x |> toMem(a)",
        "def it: {t: DataType} -> (a: AddressSpace) -> t -> t = "
        "depFun((a: AddressSpace) => fun(x => x |> toMem(a)))",
    ),
    "a function on sizes": (
        "def it(n: Nat, f: Nat2Nat, g: Nat2Nat, xs: n.f32) = xs |> reorder(n)(f)(g)",
        "def it = depFun((n: Nat, f: Nat2Nat, g: Nat2Nat) => fun(xs: n.f32 => xs |> reorder(n)(f)(g)))",
    ),
    "sizes among values": (
        "def it(x: f32)(n: Nat)(xs: n.f32) = xs |> map(y => x * y)",
        "def it = fun(x: f32 => depFun((n: Nat) => fun(xs: n.f32 => xs |> map(fun(y => x * y)))))",
    ),
    "a size function": (
        "def it(xs: 8.f32) = "
        "xs |> iterate(3)((l: Nat) => (ys: (l*2).f32) => ys |> split(2) |> map(reduce(+, 0)))",
        "def it = fun((xs: 8.f32) => xs |> iterate(3)("
        "depFun((l: Nat) => fun((ys: (l*2).f32) => ys |> split(2) |> map(reduce(+, 0))))))",
    ),
    "what is asked of a size": (
        "def it(n: Nat)(xs: n.f32) = xs |> split(32)",
        "def it = depFun((n: Nat) => fun((xs: n.f32) => xs |> split(32)))",
    ),
    "a composition": (
        "def it(xs: 4.f32) = xs |> (map(x => x + 1) >> map((x: f32) => x * x))",
        "def it = fun((xs: 4.f32) => xs |> map(fun(x => x + 1)) >> map(fun((x: f32) => x * x)))",
    ),
    "a function applied in place": (
        "def it(x: f32) = x |> (y => y * y) |> ((z: f32) => z + x)",
        "def it = fun((x: f32) => x |> fun(y => y * y) |> fun((z: f32) => z + x))",
    ),
}


@pytest.mark.parametrize(("short", "paper"), SHORT_FORMS.values(), ids=SHORT_FORMS)
def test_a_short_form_is_the_program_of_the_paper(short: str, paper: str) -> None:
    one, other = check_text(short)["it"], check_text(paper)["it"]
    assert same(one, other)
    assert one.constraints == other.constraints
    assert in_paper_notation(format_text(Source("t", short))).count("=>") >= paper.count("=>")


def test_types_are_shown_only_where_they_are_needed() -> None:
    shown = show_definition(check_text(PROGRAMS["an index whose size nothing else says"])["it"])
    assert shown == "def it: 7.i32 = generate(i => indexToInt(i))"
    text = "def it(xs: 4.f32) = generate((i: Idx[4]) => xs |> idx(i))"
    assert show_definition(check_text(text)["it"]) == text.replace("(i: Idx[4])", "i")
    fragment = check_text(PROGRAMS["a fragment"])["it"]
    assert "Fragment[16, 16, 8, f32, Accum]" in show_definition(fragment)


def test_what_does_not_check_again_is_printed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise RiseError("R0699", "no")

    definition = check_text(PROGRAMS["let"])["it"]
    shown = show_definition(definition)
    monkeypatch.setattr("rise.check.program.check_definition", refuse)
    assert show_definition(definition) == shown
