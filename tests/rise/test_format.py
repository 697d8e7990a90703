"""Formatting: the same program, the same comments, one layout that stays."""

from __future__ import annotations

import io
import random
from collections import Counter
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rise.cli import main
from rise.errors import Mistakes, ParseError, RiseError
from rise.source import Source
from rise.syntax.comments import comments_of
from rise.syntax.format import format_text
from rise.syntax.highlight import RiseLexer
from rise.syntax.parser import parse_expression, parse_file, parse_type
from rise.syntax.printer import print_expression, print_file, print_type
from rise.syntax.surface import FileSyntax, without_places
from tests.rise.surface_programs import (
    EXPRESSIONS,
    FILES,
    HIGH_LEVEL_GEMM,
    INSIDE,
    LOW_LEVEL_GEMM,
    PLACES,
    TENSOR_PRODUCT,
    TILE_PRODUCT,
    TYPE_PLACES,
    TYPES,
    TYPES_INSIDE,
)

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted([*ROOT.glob("examples/**/*.rise"), *ROOT.glob("rise/library/*.rise")])
WIDTHS = st.sampled_from([1, 30, 100])


def formatted(text: str) -> str:
    return format_text(Source("test", text))


def forms(node: object) -> set[str]:
    """The forms of the grammar that occur in a tree."""
    if isinstance(node, tuple):
        return set().union(*map(forms, node))
    if not is_dataclass(node):
        return set()
    below = (getattr(node, f.name) for f in fields(node) if not f.name.endswith("span"))
    return {type(node).__name__}.union(*map(forms, below))


# --- parsing what is printed --------------------------------------------------------------------

FORMS = """Name Number Text Operator Binary Unary Call Compose Tuple NamePattern PairPattern Function
    DependentFunction NatLambda Let Annotated TypeName TypeNumber TypeOperation TypeArray TypePair
    TypeApplication TypeFunction KindedName TypeDependent""".split()


def test_what_is_printed_parses_back() -> None:
    """Expressions and types of every form, on wide lines and on narrow ones."""
    seen: Counter[str] = Counter()

    @given(EXPRESSIONS, WIDTHS)
    @settings(max_examples=300)
    def expression(node: Any, width: Any) -> None:
        seen.update(forms(node))
        again = parse_expression(Source("t", print_expression(node, width)))
        assert without_places(again) == without_places(node)

    @given(TYPES, WIDTHS)
    @settings(max_examples=120)
    def type_(node: Any, width: Any) -> None:
        seen.update(forms(node))
        assert without_places(parse_type(Source("t", print_type(node, width)))) == without_places(node)

    expression()
    type_()
    rare = {name: seen[name] for name in FORMS if seen[name] < 8}
    assert not rare, f"the generator makes too few of {rare}"


def test_every_form_inside_of_every_other_parses_back() -> None:
    """Parentheses are where the grammar needs them."""
    for place in PLACES:
        for inside in INSIDE:
            node = place(inside)
            text = print_expression(node)
            assert without_places(parse_expression(Source("t", text))) == without_places(node), text


def test_every_type_inside_of_every_other_parses_back() -> None:
    for place in TYPE_PLACES:
        for inside in TYPES_INSIDE:
            node = place(inside)
            text = print_type(node)
            assert without_places(parse_type(Source("t", text))) == without_places(node), text


@given(FILES, WIDTHS)
def test_a_file_parses_back_and_formatting_it_again_changes_nothing(file: FileSyntax, width: int) -> None:
    text = print_file(file, width=width)
    assert without_places(parse_file(Source("t", text))) == without_places(file)
    once = formatted(text)
    assert formatted(once) == once


@pytest.mark.parametrize("text", [HIGH_LEVEL_GEMM, LOW_LEVEL_GEMM, TILE_PRODUCT, TENSOR_PRODUCT])
def test_the_programs_of_the_paper_are_formatted(text: str) -> None:
    program = f"def paper = {text}"
    assert formatted(formatted(program)) == formatted(program)
    assert "Array[" not in text or "Array[" in formatted(program)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.name)
def test_an_example_is_formatted_within_the_width(path: Path) -> None:
    text = formatted(path.read_text())
    assert formatted(text) == text
    long = [line for line in text.splitlines() if len(line) > 100 and not line.lstrip().startswith("//")]
    assert not long


# --- comments -----------------------------------------------------------------------------------


def commented(text: str, seed: int, share: float) -> tuple[str, int]:
    """The program with comments of all sorts between its tokens, and how many."""
    choose = random.Random(seed)
    pieces, count = [], 0
    for _, _, piece in RiseLexer().get_tokens_unprocessed(text):
        pieces.append(piece)
        if choose.random() < share:
            count += 1
            pieces.append(
                choose.choice(
                    [f" // c{count}\n", f"\n// c{count}\n", f" /* c{count} */ ", f"\n\n/* c{count}\n */\n"]
                )
            )
    return "".join(pieces), count


def test_comments_are_kept_wherever_they_stand() -> None:
    """Formatting itself refuses what loses one, changes the program, or does not settle."""
    kept = 0

    @given(st.sampled_from(PROGRAMS), st.integers(0, 2**16), st.sampled_from([0.02, 0.1, 0.4]))
    @settings(max_examples=60)
    def check(path: Any, seed: Any, share: Any) -> None:
        nonlocal kept
        lines = path.read_text().splitlines(keepends=True)
        start = choose_definition(lines, seed)
        text, count = commented("".join(lines[start : start + 12]), seed, share)
        if is_program(text):
            result = formatted(text)
            assert len([*comments_of(result)]) == len([*comments_of(text)]) >= count
            kept += count

    check()
    assert kept > 200


def choose_definition(lines: list[str], seed: int) -> int:
    starts = [i for i, line in enumerate(lines) if line.startswith("def ")]
    return starts[seed % len(starts)]


def is_program(text: str) -> bool:
    try:
        parse_file(Source("t", text))
    except RiseError:
        return False
    return True


COMMENTS = """\
// about f

/* over
   two lines */
def f(xs: n.f32): f32 =  // what comes in
  xs
  // first the squares
  |> map(x =>  // an element
    x * x)  // of each
  /* then */ |> reduce(/* sum */ +, 0)
  |> (r => r * 1e-3)  // at the end

def g = 1.0  // one
def h =
  // why
  2
// last
"""


def test_comments_stay_where_they_are() -> None:
    text = COMMENTS.replace("n.f32", "8.f32")
    assert formatted(text) == text.replace("/* then */ |>", "/* then */ |>")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("def a=1\n\n\n\ndef b=2\ndef c=3", "def a = 1\n\ndef b = 2\ndef c = 3\n"),
        ("def a = (((1)))", "def a = 1\n"),
        ("def a = 1.50e-3 + 1e-3 - 100000000000000000.0", "def a = 1.50e-3 + 1e-3 - 100000000000000000.0\n"),
        ("def a = (x, (y, z))", "def a = (x, (y, z))\n"),
        ("def a = (x, y, z)", "def a = (x, y, z)\n"),
        ("def a = x && y || z", "def a = (x && y) || z\n"),
        ("def a = - 1", "def a = -1\n"),
        ("def a = fun((x)=>x)", "def a(x) = x\n"),
        ("def a = fun(x:f32=>x)", "def a(x: f32) = x\n"),
        (
            "def a = depFun(n:Nat=>fun(x:(n+1).f32=>x))",
            "def a(n: Nat)(x: (n + 1).f32) = x\n",
        ),
        ("def a = f(fun(x, y => x), fun((x, y) => x))", "def a = f(x => y => x, (x, y) => x)\n"),
        ("def a: (s, t) -> u = fun((x, y) => x)", "def a: (s, t) -> u = (x, y) => x\n"),
        ("def a: {n: Nat} -> n.f32 -> f32 = fun(x => x)", "def a{n: Nat}(x: n.f32): f32 = x\n"),
        ("def a: s -> t = fun((x: s) => x)", "def a: s -> t = (x: s) => x\n"),
        ("def a: s -> t -> u = fun(x, (y, z) => x)", "def a(x: s): t -> u = ((y, z)) => x\n"),
        ("def a = fun((x: s) => x: t)", "def a(x: s) = x: t\n"),
        ("def a = fun(x => x: t)", "def a(x): t = x\n"),
        ("def a = x |> fun(y => y) |> fun((y: t) => y)", "def a = x |> (y => y) |> ((y: t) => y)\n"),
        ("def a = f(depFun((n: Nat) => fun((x: n.t) => x)))", "def a = f((n: Nat) => (x: n.t) => x)\n"),
        ("def a(x: s)(y: t): u = x", "def a(x: s, y: t): u = x\n"),
        ("def a: f32 =\n\n  1", "def a: f32 =\n  1\n"),
        ('import   "x.rise"\n\n\n// end', 'import "x.rise"\n\n// end\n'),
        ("", ""),
        ("\n\n// only this", "// only this\n"),
        ("def a = f( // why\n x)", "def a =\n  f(\n    // why\n    x)\n"),
        ("def a = let x = 1 in\nlet y = 2 in x", "def a =\n  let x = 1 in\n  let y = 2 in\n  x\n"),
        ("def a = f(x /* last */)", "def a = f(x /* last */)\n"),
        ("def a = f( /* first */ x)", "def a = f(/* first */ x)\n"),
        ("def a = (x, // one\n y) // two", "def a =\n  (x,  // one\n   y)  // two\n"),
    ],
)
def test_layout(text: str, result: str) -> None:
    assert formatted(text) == result


def test_chains_are_broken_a_step_a_line() -> None:
    steps = " |> map(fun(x => x + 1))" * 6
    assert formatted(f"def a = fun(xs => xs{steps})").splitlines() == [
        "def a(xs) =",
        "  xs",
        *["  |> map(x => x + 1)"] * 6,
    ]
    names = " >> ".join(["aLongNameOfAFunction"] * 6)
    assert len(formatted(f"def a = {names}").splitlines()) == 7


@pytest.mark.parametrize(
    "text",
    [
        "zip2D({0}) |> map2D((x, (r, s)) => x * r + s)",
        "{0} >> map2D((x, (r, s)) => x * r + s)",
        "f({0}, (x, (r, s)) => x * r + s)",
        "{0}(1)(y, (x, (r, s)) => x * r + s)",
        "let y = f({0})((x, (r, s)) => x * r + s) in y",
        "f(a => {0} => (x, (r, s)) => x * r + s)",
    ],
)
def test_a_pattern_stays_on_one_line_with_its_arrow(text: str) -> None:
    """Around every column at which a line may be too long for it."""
    broken = 0
    for length in range(50, 90):
        lines = formatted(f"def f = {text.format('a' * length)}").splitlines()
        assert [line for line in lines if "(x, (r, s)) =>" in line], lines
        assert max(map(len, lines)) <= 100, lines
        broken += not any(f"{'a' * length}" in line and "(x" in line for line in lines)
    assert broken, "the pattern always followed the long name"


def test_a_chain_is_broken_before_the_pattern_of_its_last_step() -> None:
    name = "a" * 80
    assert formatted(f"def f = zip2D({name}) |> map2D((x, r) => f16(g(x) + f32(r)))").splitlines() == [
        "def f =",
        f"  zip2D({name})",
        "  |> map2D((x, r) => f16(g(x) + f32(r)))",
    ]


# --- the command --------------------------------------------------------------------------------


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: Any) -> Any:
        status = main(["fmt", *map(str, arguments)])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return status, captured.out, captured.err

    return run


def test_files_are_formatted_in_place(call: Any, tmp_path: Path) -> None:
    one, two = tmp_path / "one.rise", tmp_path / "two.rise"
    one.write_text("def a=1")
    two.write_text("def b = 2\n")
    assert call("--check", one, two) == (1, f"{one}\n", "")
    assert one.read_text() == "def a=1"
    status, out, _ = call("--diff", one)
    assert (status, "-def a=1\n" in out, "+def a = 1\n" in out) == (0, True, True)
    assert call(one, two) == (0, "", "")
    assert one.read_text() == "def a = 1\n"
    assert call("--check", one, two) == (0, "", "")


def test_standard_input_is_formatted_to_standard_output(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in ([], ["-"]):
        monkeypatch.setattr("sys.stdin", io.StringIO("def a=1 // one"))
        assert call(*arguments) == (0, "def a = 1  // one\n", "")


def test_a_file_that_does_not_parse_is_left_alone(call: Any, tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.rise", tmp_path / "good.rise"
    bad.write_text("def a = (1\n\ndef b = )\ndef c=3")
    good.write_text("def a=1")
    status, _, err = call(bad, good)
    assert status == 1
    assert err.count("error R0101") == 2
    assert bad.read_text().endswith("def c=3")
    assert good.read_text() == "def a = 1\n"
    assert call(tmp_path / "missing.rise")[0] == 2


def test_all_syntax_errors_come_as_one() -> None:
    with pytest.raises(Mistakes) as caught:
        formatted("def a = (1\n\ndef b = )\ndef c=3")
    assert [type(m) for m in caught.value.mistakes] == [ParseError, ParseError]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("def a = 2\n", "changes the program"),
        ("def a = 1\n", "loses a comment"),
        ("def a = (\n", "does not parse"),
    ],
)
def test_a_mistake_of_the_formatter_writes_nothing(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Any, reason: str
) -> None:
    path = tmp_path / "a.rise"
    path.write_text("def a=1 // one")
    monkeypatch.setattr("rise.syntax.format.print_file", lambda *_: wrong)
    status, _, err = call(path)
    assert status == 3
    assert "R0199" in err
    assert reason in err
    assert path.read_text() == "def a=1 // one"
