"""What the server finds out, without a server: incremental checks, names, types, completion, positions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol.types import CompletionItemKind, Position, PositionEncodingKind

from rise.check import program
from rise.check.program import Loader, check_text
from rise.cli.mistakes import EXAMPLES
from rise.errors import RiseError, UsageError
from rise.lsp import evaluate
from rise.lsp.actions import applied, fixes
from rise.lsp.completion import completions
from rise.lsp.documents import Analysis, Documents
from rise.lsp.hover import hover, signature
from rise.lsp.inlays import inlays
from rise.lsp.lenses import fitting_sizes, runnable
from rise.lsp.names import Sort
from rise.lsp.navigation import references, rename, symbols
from rise.lsp.positions import Positions, offset, place_at, span_of
from rise.lsp.texts import completed
from rise.lsp.tokens import semantic_tokens
from rise.lsp.typed import Observer, extent, observe, typed
from rise.source import Source, place
from rise.syntax.mistakes import CLOSING

ROOT = Path(__file__).parents[3]
EXAMPLE_FILES = sorted(ROOT.glob("examples/*.rise"))
SMALL = [path for path in EXAMPLE_FILES if len(path.read_text()) < 2500]


def opened(path: Path, text: str | None = None) -> tuple[Documents, Analysis]:
    documents = Documents()
    documents.put(path, path.read_text() if text is None else text)
    return documents, documents.analysis(path)


def analysed(text: str) -> Analysis:
    return opened(ROOT / "examples" / "new.rise", text)[1]


# --- incremental checks -------------------------------------------------------------------------------


def test_only_what_changed_and_what_uses_it_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are counted, not seconds: a change within a line of a program of 20 definitions."""
    lines = ["def f0(x: f32) = x + 1.0", *(f"def f{n}(x: f32) = f{n // 7}(x) * {n}.0" for n in range(1, 20))]
    path = ROOT / "examples" / "many.rise"
    documents, _ = opened(path, "\n".join(lines))
    checked: list[str] = []
    check = program.check_definition

    def count(syntax, definitions):  # type: ignore[no-untyped-def]
        checked.append(syntax.name)
        return check(syntax, definitions)

    monkeypatch.setattr(program, "check_definition", count)
    for number, expected in [(15, ["f15"]), (2, ["f2", *(f"f{n}" for n in range(14, 20))])]:
        checked.clear()
        lines[number] += " + 1.0"
        documents.put(path, "\n".join(lines))
        documents.analysis(path)
        assert checked == expected
    checked.clear()
    documents.analysis(path)
    assert checked == []


def test_mistakes_keep_their_order_and_move_with_their_lines() -> None:
    path = ROOT / "examples" / "moving.rise"
    wrong = ["def f(x: f32) = x + 1", "def g(x: f32) = x + true", "def h(x: i32): f32 = x"]
    documents, analysis = opened(path, "\n".join(wrong))
    assert [place(m.origin).line for m in analysis.checked.mistakes] == [2, 3]  # type: ignore[union-attr]
    for text, lines in [
        ("\n".join(["def f(x: f32) = x +", *wrong[1:]]), [2, 2, 3]),  # the end of `f` is the next `def`
        ("\n".join(wrong), [2, 3]),
        ("\n\n" + "\n".join(wrong), [4, 5]),
        ("// 𝒳\n" + "\n".join(wrong), [3, 4]),
    ]:
        documents.put(path, text)
        analysis = documents.analysis(path)
        assert [place(m.origin).line for m in analysis.checked.mistakes] == lines, text  # type: ignore[union-attr]
        fresh = opened(path, text)[1].names
        assert [extent(o.span) for o in analysis.names] == [extent(o.span) for o in fresh]
        assert all(o.span.text == o.binding.name for o in analysis.names)


def damaged(text: str, chance: random.Random) -> str:
    """A text with a part missing, something inserted, or its end not written yet."""
    at = chance.randrange(len(text))
    pieces = [
        "|> ",
        "(",
        ")",
        "𝒳",
        '"',
        "/*",
        "let x = ",
        " in ",
        "def ",
        "\n",
        "x => ",
        "[",
        "{",
        ".",
        " : ",
    ]
    return chance.choice(
        [
            text[:at] + text[at + chance.randint(1, 6) :],
            text[:at] + chance.choice(pieces) + text[at:],
            text[:at] + "\n" + text[at:],
            text[:at],
        ]
    )


def told(mistakes: list[RiseError]) -> list[tuple[str, str, str]]:
    return [(m.code, m.message, str(place(m.origin))) for m in mistakes]


@pytest.mark.parametrize("seed", range(2))
def test_after_any_change_the_mistakes_are_those_of_the_whole_text(seed: int) -> None:
    """And every question is answered, whatever the text looks like."""
    chance = random.Random(seed)
    broken = 0
    for path in chance.sample(SMALL, 3):
        text = path.read_text()
        documents, _ = opened(path)
        for _ in range(4):
            text = damaged(text, chance) or "\n"
            documents.put(path, text)
            analysis = documents.analysis(path)
            whole = Loader().check(Source(str(path), text), path.parent)
            assert told(analysis.checked.mistakes) == told(whole.mistakes), (seed, path.name, text)
            assert analysis.checked.own == whole.own
            broken += bool(whole.mistakes)
            ask_everything(documents, analysis, place_at(analysis.source, chance.randrange(len(text) + 1)))
    assert broken > 3


def ask_everything(documents: Documents, analysis: Analysis, at: tuple[int, int]) -> None:
    positions = Positions(analysis.source)
    hover(analysis, at, positions)
    completions(analysis, at)
    references(documents, analysis, at, positions, declaration=True)
    symbols(analysis, positions)
    inlays(analysis, 1, 10**6, positions)
    semantic_tokens(analysis, positions)


# --- names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SMALL[::6], ids=lambda path: path.name)
def test_a_renamed_program_has_the_same_types(path: Path) -> None:
    """Each of some names gets a new one everywhere it is meant, and nowhere else."""
    documents, analysis = opened(path)
    positions = Positions(analysis.source)
    bound = [found for found in analysis.names if found.binds]
    for found in random.Random(path.name).sample(bound, min(3, len(bound))):
        at = found.span.line, found.span.column
        [(_, edits)] = rename(documents, analysis, at, "quite_new", positions).items()
        text = path.read_text()
        for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
            first, last = (
                offset(analysis.source, positions.place(p)) for p in (edit.range.start, edit.range.end)
            )
            text = text[:first] + "quite_new" + text[last:]
        checked = Loader().check(Source(str(path), text), path.parent)
        assert told(checked.mistakes) == [], found
        assert len(checked.own) == len(analysis.checked.own)
        for one, other in zip(analysis.checked.own, checked.own, strict=True):
            before, after = analysis.checked.definitions[one], checked.definitions[other]
            # alike up to the names
            assert len(before.constraints) == len(after.constraints)
            assert str(after.scheme).replace("quite_new", "a").count("->") == str(before.scheme).count("->")


@pytest.mark.parametrize("path", SMALL[1::6], ids=lambda path: path.name)
def test_every_name_of_a_right_program_means_something(path: Path) -> None:
    _, analysis = opened(path)
    known = {extent(found.span) for found in analysis.names}
    bodies = [(d.name, analysis.typed(d)) for d in analysis.syntax.definitions]
    seen = 0
    for _, types in bodies:
        for span, _ in types.parts:
            if span.text.isidentifier():
                seen += 1
                assert extent(span) in known, span
    assert seen > 10


def test_names_are_those_of_the_innermost_binder() -> None:
    text = "def f(n: Nat)(x: n.f32) = (n => let x = n in x)(x)\ndef g(x: f32) = f"
    found = {(o.span.line, o.span.column): o for o in analysed(text).names}
    columns = {column: found[1, column].binding for column in (7, 15, 18, 28, 37, 41, 46, 49)}
    assert columns[18] == columns[7] and columns[7].sort is Sort.SIZE
    assert columns[49] == columns[15] and columns[15].sort is Sort.PARAMETER
    assert columns[41] == columns[28] and columns[28].sort is Sort.PARAMETER
    assert columns[46] == columns[37] and columns[37].sort is Sort.VARIABLE
    assert found[2, 17].binding == found[1, 5].binding


def test_a_name_of_the_library_keeps_it() -> None:
    documents, analysis = opened(ROOT / "examples" / "new.rise", 'import "prelude.rise"\ndef f = sum')
    with pytest.raises(UsageError) as caught:
        rename(documents, analysis, (2, 9), "total", Positions(analysis.source))
    assert caught.value.code == "R0040"


# --- types --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SMALL[::6], ids=lambda path: path.name)
def test_inference_that_goes_on_behind_mistakes_finds_the_types_of_right_programs(path: Path) -> None:
    _, analysis = opened(path)
    compared = 0
    for syntax in analysis.syntax.definitions:
        observer = Observer()
        observe(observer, syntax, analysis.checked.definitions)
        definition = analysis.checked.definitions[syntax.name]
        expected = {extent(span): type_ for span, type_ in reversed(typed(definition).parts)}
        if definition.parameters and not syntax.implicit:
            continue  # what was left open has become a parameter of the definition
        for span, type_ in observer.typed().parts:
            if extent(span) in expected and span.text.isidentifier():
                compared += 1
                assert str(type_) == str(expected[extent(span)]), span
    assert compared > 10


def test_a_signature_says_what_a_definition_asks_for() -> None:
    definition = check_text("def f(n: Nat)(xs: n.f32) = xs |> split(32) |> map(reduce(+, 0))")["f"]
    assert signature(definition) == "f : (n: Nat) -> n.f32 -> (n/32).f32\n  where 32 | n"


# --- completion ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["xs |> split(2)", "y", "(xs, y > 0.0)"])
def test_behind_a_pipe_exactly_what_type_checks_is_offered(value: str) -> None:
    """Names that need no further argument: each is tried, those that are not offered too."""
    text = f"def f(xs: 8.f32, y: f32) = {value} |> "
    offered = completions(analysed(text), (1, len(text) + 1))
    alone = {c.name for c in offered if not c.given}
    everything = completions(analysed("def f = "), (1, 9))
    names = [c.name for c in everything if c.kind is not CompletionItemKind.Keyword]
    assert len(names) > 50
    checks = {name for name in names if alone_checks(text, name)}
    needs_more = {c.name for c in offered if c.given}
    assert alone - checks <= OPEN
    assert checks - alone - needs_more <= OPEN | FUNCTIONS_LEFT


# what may be given a size or a type that nothing here determines
OPEN = {"cast", "id", "toMem"}
FUNCTIONS_LEFT: set[str] = set()


def alone_checks(text: str, name: str) -> bool:
    checked = Loader().check(Source("<text>", text + name), ROOT)
    return not checked.mistakes


def test_a_hole_in_the_middle_of_a_text_is_completed_too() -> None:
    text = "def f(xs: 8.f32) = (let ys = xs |> in zip(ys)(xs) |> map((a, b) => a + b))"
    at = text.index("|> in") + 3
    assert {"map", "scan"} <= {c.name for c in completions(analysed(text), (1, at + 1))}
    text = text.replace("|> in", "|> id in")
    at = text.index("a + b") + 1
    assert {"a", "b", "ys", "xs"} <= {c.name for c in completions(analysed(text), (1, at + 1))}


@settings(max_examples=50)
@given(st.text(alphabet="()[]{} x/*\n", max_size=30))
def test_what_is_open_gets_closed(text: str) -> None:
    rest = completed(text)
    assert set(rest) <= set(CLOSING.values())
    assert completed(text + "\n" + rest) == "" or "/*" in text or "//" in text


# --- hints --------------------------------------------------------------------------------------------


def test_hints_become_changes_that_mend() -> None:
    """Of all mistakes that `rise explain` shows: those whose hint quotes the cure."""
    mended = {code for code, example in EXAMPLES.items() if list(offered_for(example.wrong))}
    assert {"R0103", "R0201", "R0202", "R0208", "R0301"} <= mended, sorted(mended)


def offered_for(text: str) -> Iterator[str]:
    documents, analysis = opened(ROOT / "examples" / "new.rise", text)
    for fix in fixes(documents, analysis, 1, 100):
        result = applied(analysis.source, fix.span, fix.text)
        mistakes = Loader().check(Source(analysis.source.name, result), ROOT / "examples").mistakes
        assert len(mistakes) < len(analysis.checked.mistakes)
        yield result


# --- lenses -------------------------------------------------------------------------------------------


def test_the_sizes_that_a_lens_chooses_fit() -> None:
    text = """
def f(m: Nat, n: Nat)(A: m.n.f32) = A |> map(xs => xs |> split(96) |> map(reduce(+, 0))) |> drop(7)
def g{t: DataType}(x: t) = x
def h(f: f32 -> f32, x: f32) = f(x)
"""
    checked = check_text(text).definitions
    assert [name for name in "fgh" if runnable(checked[name])] == ["f"]
    sizes = fitting_sizes(checked["f"])
    assert sizes is None or (sizes["n"] % 96 == 0 and sizes["m"] >= 7)


def test_comments_are_evaluated() -> None:
    text = "def twice(x: i32) = 2 * x\n// >>> twice(4)\n// = 8 : i32\n// = old\n"
    assert evaluate.comments(text) == [evaluate.Comment(2, "", "twice(4)", 2)]
    path = ROOT / "examples" / "new.rise"
    expressions = ["twice(21)", "makeArray(2)((1, true), (2, false))", "twice", "twice(true)"]
    found = evaluate.evaluated(path, path.parent, {path: text}, expressions)
    assert found[:3] == ["42 : i32", "[(1, true), (2, false)] : 2.(i32, bool)", "a function : i32 -> i32"]
    assert found[3].startswith("error R0301: ")


# --- positions ----------------------------------------------------------------------------------------

TEXTS = st.text(st.sampled_from("a𝒳é\u2028\t\x0c\n😀"), max_size=40)


@given(
    TEXTS,
    st.sampled_from([PositionEncodingKind.Utf8, PositionEncodingKind.Utf16, PositionEncodingKind.Utf32]),
)
def test_every_place_has_a_position_and_the_other_way_round(
    text: str, encoding: PositionEncodingKind
) -> None:
    source = Source("<text>", text)
    positions = Positions(source, encoding)
    codec = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[encoding.value]
    width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding.value]
    for at in range(len(text) + 1):
        line, column = place_at(source, at)
        position = positions.position(line, column)
        before = text[:at].rpartition("\n")[2]
        assert position == Position(text[:at].count("\n"), len(before.encode(codec)) // width)
        assert positions.place(position) == (line, column)
        assert offset(source, (line, column)) == at
        assert span_of(source, 0, at).text == text[:at]
