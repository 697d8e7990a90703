"""The language server as an editor sees it: a client that talks to `rise lsp` while a text is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lsprotocol import types as t
from pygls.exceptions import JsonRpcException

from rise.lsp.lenses import COMMANDS, EVALUATE
from rise.lsp.tokens import LEGEND
from tests.rise.lsp.client import Editor, covered, position

# `𝒳` and `😀` are one character each, and two units of UTF-16
DOT = """\
// 𝒳 the scalar product
def dot{n: Nat}(xs: n.f32, ys: n.f32): f32 = zip(xs)(ys) |> map((x, y) => x * y) |> reduce(+, 0)
"""


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    made = Editor(tmp_path_factory.mktemp("programs"))
    made.start()
    yield made
    assert made.stop() == 0


def applied(text: str, edits: list[t.TextEdit]) -> str:
    """A text after edits, as an editor applies them: columns are units of UTF-16."""
    lines = text.split("\n")

    def offset(place: t.Position) -> int:
        before = lines[place.line].encode("utf-16-le")[: 2 * place.character].decode("utf-16-le")
        return sum(len(line) + 1 for line in lines[: place.line]) + len(before)

    for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


def hover(editor: Editor, uri: str, text: str, mark: str) -> str:
    found = editor.at(t.TEXT_DOCUMENT_HOVER, uri, position(text, mark))
    return found.contents.value.split("```")[1].removeprefix("rise\n").strip() if found else ""


def labels(editor: Editor, uri: str, text: str, mark: str) -> set[str]:
    """What is offered behind a mark."""
    found = editor.at(t.TEXT_DOCUMENT_COMPLETION, uri, position(text, mark, behind=True))
    return {item.label for item in found}


def test_mistakes_come_and_go_while_a_text_is_written(editor: Editor) -> None:
    """Broken and repaired again; each answer is for the text as it is then."""
    uri = editor.open(DOT, "written.rise")
    assert editor.diagnostics(uri) == []
    for broken, code, marked in [
        (DOT.replace("reduce(", "reduc("), "R0201", "reduc"),
        (DOT.replace("+, 0)", "+, 0"), "R0102", ""),
        (DOT.replace("x * y", "x * xs"), "R0301", "xs"),
        (DOT.replace("(x, y)", "/* 😀 */ (x, y, z)"), "R0310", None),
    ]:
        editor.change(uri, broken)
        [found] = editor.diagnostics(uri)
        assert found.code == code
        if marked is not None:
            assert covered(broken, found.range) == marked
        editor.change(uri, DOT)
        assert editor.diagnostics(uri) == []


def test_a_mistake_names_the_other_places(editor: Editor) -> None:
    text = "// 😀\ndef f(x: f32) = x\n/* 😀 */ def f(x: f32) = x\n"
    uri = editor.open(text, "twice.rise")
    [found] = editor.diagnostics(uri)
    [other] = found.related_information or []
    assert (covered(text, found.range), found.range.start.line) == ("f", 2)
    assert (covered(text, other.location.range), other.location.range.start.line) == ("f", 1)
    assert "hint: " in found.message


def test_columns_are_counted_as_the_editor_counts_them(editor: Editor) -> None:
    text = "def f(a: i32): i32 = /* 𝒳𝒳𝒳 */ (let bound = a + 1 in /* 😀 */ bound * bound)\n"
    uri = editor.open(text, "astral.rise")
    assert hover(editor, uri, text, "bound * ") == "bound : i32"
    assert hover(editor, uri, text, "a + 1") == "a : i32"
    document = t.TextDocumentIdentifier(uri)
    edit = editor.ask(t.TEXT_DOCUMENT_RENAME, t.RenameParams(document, position(text, "bound *"), "renamed"))
    assert applied(text, edit.changes[uri]) == text.replace("bound", "renamed")
    tokens = editor.ask(t.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, t.SemanticTokensParams(document)).data
    assert coloured(text, tokens)[-1] == ("bound", "variable")


def coloured(text: str, data: list[int]) -> list[tuple[str, str]]:
    line = column = 0
    found = []
    for down, right, length, sort, _ in zip(*(iter(data),) * 5, strict=True):
        line, column = line + down, right + (0 if down else column)
        where = t.Range(t.Position(line, column), t.Position(line, column + length))
        found.append((covered(text, where), LEGEND.token_types[sort]))
    return found


def test_a_text_that_does_not_parse_is_answered_as_far_as_it_does(editor: Editor) -> None:
    text = DOT + "def broken(k: Nat)(zs: k.f32) = zs |> map(\ndef norm(xs: 8.f32) = sqrt(dot(xs, xs))\n"
    uri = editor.open(text, "broken.rise")
    assert {d.code for d in editor.diagnostics(uri)} == {"R0101"}
    document = t.TextDocumentIdentifier(uri)
    symbols = editor.ask(t.TEXT_DOCUMENT_DOCUMENT_SYMBOL, t.DocumentSymbolParams(document))
    assert [(s.name, s.detail) for s in symbols] == [
        ("dot", "{n: Nat} -> n.f32 -> n.f32 -> f32"), ("broken", "has a mistake"), ("norm", "8.f32 -> f32"),
    ]  # fmt: skip
    assert hover(editor, uri, text, "dot(xs, xs)").startswith("dot : ")
    assert hover(editor, uri, text, "sqrt") == "sqrt : f32 -> f32"
    assert {"zs", "k", "dot", "map"} <= labels(editor, uri, text, "zs |> map(")


def test_a_definition_with_a_wrong_type_is_typed_around_its_mistake(editor: Editor) -> None:
    text = "def f(xs: 8.i32) = xs |> map(x => x + 1.5) |> map(y => y * unknown) |> reduce(+, 0)\n"
    uri = editor.open(text, "wrong.rise")
    assert editor.diagnostics(uri)
    assert hover(editor, uri, text, "x + 1.5") == "x : i32"
    assert hover(editor, uri, text, "reduce").endswith("-> 8.i32 -> i32")
    text = "def f(xs: 8.i32): f32 = xs |> map(y => y + 1) |> reduce(+, 0)\n"  # the whole is wrong
    editor.change(uri, text)
    assert editor.diagnostics(uri)
    assert hover(editor, uri, text, "y + 1") == "y : i32"


def test_behind_a_pipe_only_what_takes_the_value_is_offered(editor: Editor) -> None:
    text = DOT + "def f(m: Nat)(A: m.4.f32, v: m.f32) =\n  /* 😀 */ A |> transpose |> \n"
    uri = editor.open(text, "piped.rise")
    offered = labels(editor, uri, text, "transpose |> ")
    assert {"map", "transpose", "join", "split", "zip"} <= offered
    assert not {"sqrt", "fst", "add", "dot", "A", "let", "f32", "asScalar"} & offered
    # `dot` takes a vector: it is offered where one flows
    vector = text.replace("A |> transpose |> ", "v |> ")
    editor.change(uri, vector)
    offered = labels(editor, uri, vector, "v |> ")
    assert {"map", "dot", "split"} <= offered
    assert not {"transpose", "join"} & offered


def test_types_and_imports_are_completed_where_they_stand(editor: Editor) -> None:
    text = 'import "p"\ndef f(size: Nat)(x: si, y: f32) = x\n'
    uri = editor.open(text, "types.rise")
    assert "prelude.rise" in labels(editor, uri, text, '"p')
    offered = labels(editor, uri, text, "x: si")
    assert {"size", "f32", "Array"} <= offered
    assert not {"map", "let"} & offered


def test_a_file_that_is_only_in_the_editor_is_imported_and_its_changes_show(editor: Editor) -> None:
    library = editor.open(DOT, "library.rise")
    text = 'import "library.rise"\ndef norm(xs: 8.f32) = sqrt(dot(xs, xs))\n'
    uri = editor.open(text, "user.rise")
    assert editor.diagnostics(uri) == []
    target = editor.at(t.TEXT_DOCUMENT_DEFINITION, uri, position(text, "dot"))
    assert (target.uri, covered(DOT, target.range)) == (library, "dot")
    target = editor.at(t.TEXT_DOCUMENT_DEFINITION, uri, position(text, "library"))
    assert target.uri == library

    editor.mistakes.pop(uri)
    editor.change(library, DOT.replace("ys: n.f32", "ys: n.i32"))
    [found] = editor.diagnostics(uri)  # of the importing file, which did not change
    there, *_ = found.related_information or []
    assert covered(text, found.range) == 'import "library.rise"'
    assert (there.location.uri, there.message) == (library, found.message.partition("\n")[0])
    editor.mistakes.pop(uri)
    editor.change(library, DOT)
    assert editor.diagnostics(uri) == []

    places = editor.ask(
        t.TEXT_DOCUMENT_REFERENCES,
        t.ReferenceParams(t.ReferenceContext(True), t.TextDocumentIdentifier(library), position(DOT, "dot{")),
    )
    assert {place.uri for place in places} == {library, uri}
    document = t.TextDocumentIdentifier(uri)
    edit = editor.ask(t.TEXT_DOCUMENT_RENAME, t.RenameParams(document, position(text, "dot"), "product"))
    assert applied(DOT, edit.changes[library]) == DOT.replace("dot", "product")
    assert applied(text, edit.changes[uri]) == text.replace("dot", "product")
    for opened in (uri, library):
        editor.close(opened)


def test_a_new_name_that_would_mean_something_else_is_refused(editor: Editor) -> None:
    text = "def f(x: f32) = x\ndef g(y: f32) = (z => f(y) + z)(y)\n"
    uri = editor.open(text, "names.rise")
    document = t.TextDocumentIdentifier(uri)
    for mark, new in [("y: f32", "z"), ("z =>", "y"), ("z =>", "f"), ("y: f32", "let"), ("f(x", "2f")]:
        with pytest.raises(JsonRpcException, match="R0040"):
            editor.ask(t.TEXT_DOCUMENT_RENAME, t.RenameParams(document, position(text, mark), new))
    assert editor.at(t.TEXT_DOCUMENT_PREPARE_RENAME, uri, position(text, "f32")) is None


def test_the_types_that_a_text_leaves_out_are_shown_in_it(editor: Editor) -> None:
    text = "def f(n: Nat)(xs: n.f32) /* 😀 */ = xs |> split(4) |> map(row => row |> reduce(+, 0))\n"
    uri = editor.open(text, "inlays.rise")
    lines = t.Range(t.Position(0, 0), t.Position(1, 0))
    found = editor.ask(t.TEXT_DOCUMENT_INLAY_HINT, t.InlayHintParams(t.TextDocumentIdentifier(uri), lines))
    shown = applied(text, [t.TextEdit(t.Range(h.position, h.position), str(h.label)) for h in found])
    assert "map(row: 4.f32 =>" in shown
    assert "(xs: n.f32): (n/4).f32 where 4 | n /* 😀 */ =" in shown


def test_a_text_is_formatted_and_one_that_does_not_parse_is_left_alone(editor: Editor) -> None:
    text = "// 😀\ndef   f(x: f32)  =  x   +   1\n"
    uri = editor.open(text, "format.rise")
    asked = t.DocumentFormattingParams(t.TextDocumentIdentifier(uri), t.FormattingOptions(2, True))
    assert applied(text, editor.ask(t.TEXT_DOCUMENT_FORMATTING, asked)) == "// 😀\ndef f(x: f32) = x + 1\n"
    editor.change(uri, "def f(x: f32) = x +\n")
    assert editor.ask(t.TEXT_DOCUMENT_FORMATTING, asked) is None


@pytest.mark.parametrize(
    ("wrong", "mark", "right"),
    [
        ("def f(xs: 4.f32) = /* 😀 */ xs |> mapp(x => x)\n", "mapp", "xs |> map(x"),
        ("def f(xs: 4.f32) = xs |> map(x => x\n", "x\n", "map(x => x)"),
        ("def f(x: f32) = norm2(x)\ndef g(xs: 4.f32) = sum(xs)\n", "sum", 'import "prelude.rise"\n'),
        ("def f(x: f32, y: f16) = x + y\n", "y\n", "f32(y)"),
        ("# 😀\ndef f(x: f32) = x\n", "#", "// 😀"),
        ("def f(x: f32) = x > 0 & x < 1\n", "&", "&& x"),
    ],
)
def test_what_a_hint_proposes_can_be_done_at_once(editor: Editor, wrong: str, mark: str, right: str) -> None:
    uri = editor.open(wrong, "hints.rise")
    before = len(editor.diagnostics(uri))
    where = position(wrong, mark)
    asked = t.CodeActionParams(t.TextDocumentIdentifier(uri), t.Range(where, where), t.CodeActionContext([]))
    offered = editor.ask(t.TEXT_DOCUMENT_CODE_ACTION, asked)
    results = [applied(wrong, action.edit.changes[uri]) for action in offered]
    assert [result for result in results if right in result], results
    for result in results:
        editor.change(uri, result)
        assert len(editor.diagnostics(uri)) < before
    editor.close(uri)


def test_a_comment_is_evaluated_below_itself(editor: Editor) -> None:
    text = DOT + "// 😀\n  // >>> dot(makeArray(2)(1.0, 2.0), makeArray(2)(3.0, 4.5))\n  // = old\n// end"
    uri = editor.open(text, "evaluated.rise")
    document = t.TextDocumentIdentifier(uri)
    lenses = editor.ask(t.TEXT_DOCUMENT_CODE_LENS, t.CodeLensParams(document))
    [command] = [lens.command for lens in lenses if lens.command.command == EVALUATE]
    value = editor.ask(t.WORKSPACE_EXECUTE_COMMAND, t.ExecuteCommandParams(EVALUATE, list(command.arguments)))
    assert value == "12.0 : f32"
    [edit] = editor.edits
    assert applied(text, list((edit.changes or {})[uri])) == text.replace("// = old", "// = 12.0 : f32")


def test_a_definition_runs_as_it_is_in_the_editor(editor: Editor) -> None:
    text = DOT + "def main(n: Nat)(xs: (3*n).i32) = xs |> split(3) |> map(reduce(+, 0))\n"
    uri = editor.open(text, "run.rise")  # it was never saved
    lenses = editor.ask(t.TEXT_DOCUMENT_CODE_LENS, t.CodeLensParams(t.TextDocumentIdentifier(uri)))
    offered = [(lens.command.title, lens.command.arguments[1]) for lens in lenses]
    assert offered == [(title, name) for name in ("dot", "main") for title, _ in COMMANDS.values()]
    editor.messages.clear()
    done = editor.ask(t.WORKSPACE_EXECUTE_COMMAND, t.ExecuteCommandParams("rise.run", [uri, "main", "n=5"]))
    assert done["status"] == 0
    assert done["command"] == "rise run --backend interpret run.rise main --size n=5"
    assert "result : int32[5]" in done["output"]
    assert editor.messages == ["\n".join([done["command"], done["output"]])]
    with pytest.raises(JsonRpcException, match="R0209"):
        editor.ask(t.WORKSPACE_EXECUTE_COMMAND, t.ExecuteCommandParams("rise.run", [uri, "gone"]))


OWN = """
import numpy as np

from rise.interpret.value import Leaf, each
from rise.primitives.declare import declare

declare(
    "backwards", "{n: Nat, t: DataType} -> n.t -> n.t", "The other way round.",
    lambda call, xs: each(lambda leaf: Leaf(np.flip(leaf.array, leaf.depth), leaf.depth), xs),
    group="own", example=("backwards(makeArray(2)(1, 2))", "[2, 1]"),
)
"""


def test_primitives_of_a_loaded_module_are_known_to_it_and_to_the_processes_it_starts(
    tmp_path: Path,
) -> None:
    (tmp_path / "own_for_editors.py").write_text(OWN)
    editor = Editor(tmp_path)
    editor.start("--load", str(tmp_path / "own_for_editors.py"))
    text = "def turned(xs: 8.f32) = xs |> backwards\n// >>> backwards(makeArray(2)(1.0, 2.0))\n"
    uri = editor.open(text, "own.rise")
    assert editor.diagnostics(uri) == []
    assert "backwards" in labels(editor, uri, text, "|> ")
    perform = t.WORKSPACE_EXECUTE_COMMAND
    assert editor.ask(perform, t.ExecuteCommandParams(EVALUATE, [uri, 1])) == "[2.0, 1.0] : 2.f32"
    done = editor.ask(perform, t.ExecuteCommandParams("rise.run", [uri, "turned"]))
    assert done["status"] == 0 and "result : float32[8]" in done["output"], done["errors"]
    asked = {"section": "rules", "textDocument": {"uri": uri}, "position": {"line": 0, "character": 25}}
    assert editor.ask("rise/panel", asked).result.term.type == "8.f32"
    assert editor.stop() == 0


def test_a_text_that_has_no_file_is_served(editor: Editor) -> None:
    uri = "untitled:Untitled-1"
    editor.versions[uri] = 1
    text = 'import "prelude.rise"\ndef f(xs: 4.f32) = sum(xs)\n'
    document = t.TextDocumentItem(uri, "rise", 1, text)
    editor.client.text_document_did_open(t.DidOpenTextDocumentParams(document))
    assert editor.diagnostics(uri) == []
    target = editor.at(t.TEXT_DOCUMENT_DEFINITION, uri, position(text, "f(xs"))
    assert target.uri == uri


def test_many_changes_at_once_are_checked_once(editor: Editor) -> None:
    uri = editor.open(DOT, "burst.rise")
    assert editor.diagnostics(uri) == []
    versions = []
    published = editor._published

    def count(found: t.PublishDiagnosticsParams) -> None:
        versions.append(found.version)
        published(found)

    editor._published = count  # type: ignore[method-assign]
    for length in range(1, 40):
        editor.change(uri, DOT + "// a comment"[:length])
    assert editor.diagnostics(uri) == []
    assert versions[-1] == editor.versions[uri] == 40
    assert len(versions) <= 4


def test_all_features_are_announced(editor: Editor) -> None:
    offers = editor.offers
    assert offers.position_encoding in (None, "utf-16")
    assert offers.execute_command_provider is not None
    assert set(offers.execute_command_provider.commands) == {*COMMANDS, EVALUATE}
    for name in ("hover", "definition", "references", "rename", "document_symbol", "completion", "code_lens",
                 "inlay_hint", "semantic_tokens", "document_formatting", "code_action"):  # fmt: skip
        assert getattr(offers, f"{name}_provider"), name
