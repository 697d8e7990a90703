"""All mistakes of a program at once, each with its place, each once, and none that only follows from one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rise.check.program import Loader, check_text, load
from rise.cli import main
from rise.errors import Mistakes, ParseError, RiseError
from rise.source import Source, Span, place
from rise.syntax.recover import parts, recover
from rise.syntax.surface import Function


def where(error: RiseError) -> Span:
    found = place(error.origin)
    assert found is not None
    return found


def mistakes(text: str) -> list[tuple[str, int]]:
    """Code and line of each mistake, in the order told."""
    try:
        check_text(text)
    except Mistakes as error:
        return [(m.code, where(m).line) for m in error.mistakes]
    except RiseError as error:
        return [(error.code, where(error).line)]
    return []


# --- going on after a syntax error --------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def a = 1\ndef b = 2", []),
        ("def a = )\ndef b = (1\ndef c = ]", [("R0101", 1), ("R0101", 3), ("R0101", 3)]),
        ("def a = (1\n\ndef b = q\n", [("R0101", 3), ("R0201", 3)]),
        ("def a = f(\n  1 +\n\n\ndef b = 2 2", [("R0101", 5), ("R0101", 5)]),
        ("def a = $\ndef b = #", [("R0103", 1), ("R0103", 2)]),
        ("def a = q\ndef b = (", [("R0201", 1), ("R0102", 2)]),
        ("import 3\ndef a = fun(x: f32 => x + true)", [("R0101", 1), ("R0301", 2)]),
        ("def a = 1 +\n  /*\ndef b = )\n*/ def c = )", [("R0101", 4)]),
        ("def a = )\n/* open\ndef b = )", [("R0104", 2)]),
        ('def a = "x\ndef b = )', [("R0104", 1), ("R0101", 2)]),
        ("// def a = )\ndef b = )", [("R0101", 2)]),
    ],
)
def test_parsing_goes_on_at_the_next_definition(text: str, expected: Any) -> None:
    assert mistakes(text) == expected


def test_the_parts_of_a_text_are_all_of_it() -> None:
    text = '// one\nimport "a" /* \ndef no */\ndef a = 1\n  + 2\ndef\nb = "def"\n define = 3\ndefine = 4'
    pieces = [text[p.start : p.end] for p in parts(text)]
    assert "".join(pieces) == text
    assert [p.line for p in parts(text)] == [1, 2, 4, 6]
    assert [p.follows for p in parts(text)] == ["import", "def", "def", ""]


def test_a_hint_about_brackets_looks_at_its_own_definition() -> None:
    with pytest.raises(Mistakes) as caught:
        check_text("def a = (1\n\ndef b = f(2]\n")
    first, second = caught.value.mistakes
    assert first.hint == "the `(` at line 1, column 9 is not closed"
    assert second.hint == "the `(` at line 3, column 10 is not closed"


def test_places_are_those_of_the_whole_text() -> None:
    source = Source("t", "def a = )\n\n\ndef b = fun(x =>\n  x)")
    found = recover(source)
    function = found.file.definitions[0].body
    assert isinstance(function, Function)
    assert str(function.body.span) == "t:5:3"
    assert found.file.definitions[0].span.source is source
    assert where(found.mistakes[0]).source is source
    assert found.failed == {"a"}


def test_one_mistake_is_raised_as_it_is() -> None:
    with pytest.raises(ParseError):
        check_text("def a = )")
    with pytest.raises(Mistakes, match="R0101.*\n(.*\n)*.*R0103") as caught:
        check_text("def a = )\ndef b = $")
    assert str(caught.value).endswith("\n\n2 mistakes in 1 file")
    assert caught.value.code == "R0101"


# --- no mistake that only follows from another ----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def a = q\ndef b = a + 1\ndef c = b(2)\ndef d = e", [("R0201", 1), ("R0201", 4)]),
        ("def a = (1\ndef b = a\ndef c = fun(a => a + q)", [("R0101", 2), ("R0201", 3)]),
        ("def a = fun(x: f32 => q)\ndef b = fun(a => a + r)", [("R0201", 1), ("R0201", 2)]),
        ("def = 3\ndef b = something", [("R0101", 1)]),
        ("def a = 1\ndef a = 2\ndef b = a + q", [("R0211", 2), ("R0201", 3)]),
        ("def a = q\ndef a = 2", [("R0201", 1), ("R0211", 2)]),
        # what uses a name of the prelude that is defined again is not checked with the prelude's
        (
            'import "prelude.rise"\ndef dot(x: f32) = x\ndef b = dot(1.0)\ndef c = q',
            [("R0211", 2), ("R0201", 4)],
        ),
    ],
)
def test_what_uses_a_wrong_definition_is_no_further_mistake(text: str, expected: Any) -> None:
    assert mistakes(text) == expected


# --- recursion ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place_", "message"),
    [
        ("def f = fun(x => f(x))", "1:18", "`f` refers to itself"),
        ("def f: f32 -> f32 = fun(x => x + f(x))", "1:34", "`f` refers to itself"),
        ("def map = fun(f => map(f))", "1:20", "`map` refers to itself"),
        ("def f = fun(x => x |> g)\n\ndef g = fun(x => x)", "1:23", "`g` is defined later, at line 3"),
        ("def f: f32 = g\ndef g: f32 = 1", "1:14", "`g` is defined later, at line 2"),
        ("def f = g\ndef g = f", "1:9", "`f` and `g` refer to each other"),
        ("def f = g\ndef g = h\ndef h = f", "1:9", "`f` and `g` refer to each other"),
    ],
)
def test_recursion_is_rejected_with_a_reason(text: str, place_: Any, message: str) -> None:
    with pytest.raises(RiseError) as caught:
        check_text(text)
    assert not isinstance(caught.value, Mistakes) or {m.code for m in caught.value.mistakes} == {"R0213"}
    assert (caught.value.code, caught.value.message) == ("R0213", message)
    assert str(place(caught.value.origin)) == f"<text>:{place_}"


@pytest.mark.parametrize(
    "text",
    [
        "def f = fun(f => f + 1.0)",
        "def f = fun((f, g) => f(g) + 1.0)",
        "def f = let f = 1.0 in f",
        "def f = depFun((f: Nat) => fun(xs: f.f32 => xs |> take(f)))",
        "def f: {g: Nat} -> g.f32 -> g.f32 = take(g)\ndef g = 1",
        "def f = fun(xs: 3.f32 => xs |> map(neg))\ndef map = 1",
    ],
)
def test_a_bound_name_or_a_primitive_is_no_later_definition(text: str) -> None:
    assert mistakes(text) == []


# --- files --------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> Any:
    def write(**texts: Any) -> Any:
        for name, text in texts.items():
            (tmp_path / f"{name}.rise").write_text(text)
        return tmp_path

    return write


def test_a_circle_of_imports_is_told_whole(files: Any) -> None:
    folder = files(
        a='import "b.rise"\ndef x = 1', b='\nimport "c.rise"\ndef y = 1', c='import "a.rise"\ndef z = 1'
    )
    with pytest.raises(RiseError) as caught:
        load(folder / "a.rise")
    error = caught.value
    assert error.code == "R0210"
    assert error.message.endswith("a.rise -> b.rise -> c.rise -> a.rise")
    assert str(place(error.origin)) == f"{folder / 'c.rise'}:1:1"
    assert [str(place(n.origin)) for n in error.notes] == [
        f"{folder / 'b.rise'}:2:1",
        f"{folder / 'a.rise'}:1:1",
    ]


def test_a_file_that_imports_itself(files: Any) -> None:
    with pytest.raises(RiseError, match="a.rise -> a.rise"):
        load(files(a='import "a.rise"') / "a.rise")


def test_a_mistake_in_an_imported_file_is_shown_at_its_place(files: Any) -> None:
    folder = files(a='// first\nimport "b.rise"\ndef f = g + h', b="def g = 1\ndef h = q")
    with pytest.raises(RiseError) as caught:
        load(folder / "a.rise")
    shown = str(caught.value)
    assert shown.startswith(f"{folder / 'b.rise'}:2:9: error R0201")
    assert f"{folder / 'a.rise'}:2:1: note: imported here" in shown
    assert "\n\n" not in shown


def test_each_mistake_is_told_once(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    folder = files(
        a='import "c.rise"\ndef f = q',
        b='import "c.rise"\nimport "a.rise"\ndef g = f\ndef ok = 1.5',
        c="def x = )\ndef y: f32 = 2",
    )
    names = [str(folder / f"{name}.rise") for name in "bac"]
    assert main(["check", *names]) == 1
    told = capsys.readouterr()
    assert told.err.count("error R") == 2
    assert told.err.endswith("2 mistakes in 2 files\n")
    assert "ok : f32" in told.out


def test_two_imports_of_one_file_are_no_conflict_but_two_definitions_are(files: Any) -> None:
    folder = files(
        a='import "b.rise"\nimport "c.rise"\ndef f = x + 1',
        b='import "d.rise"',
        c='import "d.rise"',
        d="def x = 1.0",
        e='import "d.rise"\nimport "g.rise"',
        g="def x = 2.0",
    )
    assert load(folder / "a.rise").own == ("f",)
    with pytest.raises(RiseError, match="R0211: `x` is defined twice") as caught:
        load(folder / "e.rise")
    assert "d.rise:1:5: note: it is defined here" in str(caught.value)


def test_names_of_an_import_that_is_missing_are_not_told(files: Any) -> None:
    folder = files(a='import "nowhere.rise"\ndef f = something\ndef g = fun(x: f32 => x + true)')
    with pytest.raises(Mistakes) as caught:
        load(folder / "a.rise")
    assert [m.code for m in caught.value.mistakes] == ["R0212", "R0301"]


def test_mistakes_are_in_the_order_of_the_text(files: Any) -> None:
    folder = files(
        a='import "b.rise"\ndef f = q\ndef g = )\nimport "c.rise"\ndef h = q', b="def x = r", c="def y = s"
    )
    with pytest.raises(Mistakes) as caught:
        load(folder / "a.rise")
    places = [str(place(m.origin)).rsplit("/", 1)[1] for m in caught.value.mistakes]
    assert places == ["b.rise:1:9", "a.rise:2:9", "a.rise:3:9", "c.rise:1:9", "a.rise:5:9"]


def test_a_loader_reads_a_file_once(files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = files(a='import "c.rise"', b='import "c.rise"', c="def x = 1.0")
    read: list[str] = []

    def noted(path: Path) -> Source:
        read.append(path.name)
        return Source(str(path), path.read_text())

    monkeypatch.setattr("rise.check.program.read", noted)
    loader = Loader()
    definitions = [loader.load(folder / name).definitions["x"] for name in ("a.rise", "b.rise", "c.rise")]
    assert read == ["a.rise", "c.rise", "b.rise"]
    assert definitions[0] is definitions[1] is definitions[2]


def test_other_commands_tell_all_mistakes_too(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    folder = files(a="def f = q\ndef g = r")
    assert main(["run", str(folder / "a.rise"), "f"]) == 1
    assert capsys.readouterr().err.count("error R0201") == 2
