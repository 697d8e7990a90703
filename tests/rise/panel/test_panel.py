"""The panel's requests, as an editor makes them: types and sizes at once, the rest from processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pygls.exceptions import JsonRpcException

from rise.lsp.server import PANEL, _plain
from tests.rise.lsp.client import Editor, covered, position

# `𝒳` and `😀` are one character each, and two units of UTF-16
SCALED = """\
import "twice.rise"
// 𝒳 scaled
// and summed
def scaled(n: Nat)(xs: (2 * n).i32) = /* 😀 */ twice(2 * n)(xs) |> split(2) |> map(reduce(+, 0))
def broken(xs: 3.i32) = /* 😀 */ xs + 1
"""
TWICE = "def twice(n: Nat)(xs: n.i32) = /* 😀 */ xs |> map(x => x * 2)\n"
INVALID = -32602


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    made = Editor(tmp_path_factory.mktemp("programs"))
    made.start()
    yield made
    assert made.stop() == 0


@pytest.fixture(scope="module")
def uri(editor: Editor) -> str:
    """A text that imports one; neither is on disk."""
    editor.open(TWICE, "twice.rise")
    return editor.open(SCALED, "scaled.rise")


def ask(editor: Editor, uri: str, mark: str, section: str, text: str = SCALED, **more: Any) -> Any:
    at = position(text, mark)
    where = {"line": at.line, "character": at.character}
    params = {"textDocument": {"uri": uri}, "position": where, "section": section, **more}
    return _plain(editor.ask(PANEL, params))


def test_the_type_is_shown_for_all_sizes_and_at_some(editor: Editor, uri: str) -> None:
    found = ask(editor, uri, "split", "type", sizes="n=3")["result"]
    shown = found["definition"]
    assert shown["type"] == "(n: Nat) -> (2*n).i32 -> n.i32"
    assert (shown["comment"], shown["constraints"]) == ("𝒳 scaled  \nand summed", [])
    assert (shown["sizes"], shown["names"], shown["chosen"]) == ({"n": 3}, ["n"], False)
    assert shown["inputs"] == [{"name": "xs", "type": "(2*n).i32", "at": "6.i32"}]
    assert shown["result"] == {"type": "n.i32", "at": "3.i32"}
    assert found["here"]["text"] == "split"
    assert found["mistakes"] == []


def test_where_no_sizes_are_given_small_ones_fit(editor: Editor) -> None:
    text = "def f{n: Nat}(xs: (32 * n).f32) = xs |> split(64)\n"
    uri = editor.open(text, "fitting.rise")
    shown = ask(editor, uri, "xs |>", "type", text)["result"]["definition"]
    assert shown["chosen"] and shown["sizes"]["n"] % 2 == 0
    assert shown["constraints"]
    wrong = ask(editor, uri, "xs |>", "type", text, sizes="n=3")["result"]["definition"]
    assert (wrong["problem"]["code"], "inputs" in wrong) == ("R0401", False)


@pytest.mark.parametrize("sizes", ["n", "n=", "n=3 n=4", "n=-1", "=3", "n=3;m=4"])
def test_sizes_that_are_none_are_told(editor: Editor, uri: str, sizes: str) -> None:
    shown = ask(editor, uri, "split", "type", sizes=sizes)["result"]["definition"]
    assert shown["problem"]["code"] == "R0005"
    assert shown["type"]
    assert ask(editor, uri, "split", "rules", sizes=sizes)["error"]["code"] == "R0005"


def test_a_broken_definition_shows_its_mistake_where_it_is(editor: Editor, uri: str) -> None:
    found = ask(editor, uri, "xs + 1", "type")["result"]
    assert found["definition"]["name"] == "broken"
    assert "type" not in found["definition"]
    [mistake] = found["mistakes"]
    assert (mistake["code"], mistake["uri"]) == ("R0305", uri)
    assert covered(SCALED, _range(mistake["range"])) == "1"
    error = ask(editor, uri, "xs + 1", "kernel")["error"]
    assert error["mistakes"] == found["mistakes"]


def _range(found: Any) -> Any:
    from lsprotocol import types as t

    return t.Range(t.Position(**found["start"]), t.Position(**found["end"]))


def test_a_text_that_does_not_parse_shows_its_mistake(editor: Editor) -> None:
    text = "def f(xs: 3.f32) = xs |> map(\n"
    uri = editor.open(text, "half.rise")
    for section in ("type", "rules"):
        found = ask(editor, uri, "xs |>", section, text)
        assert "error" not in found
    [mistake] = ask(editor, uri, "xs |>", "type", text)["result"]["mistakes"]
    assert mistake["code"] == "R0102"


def test_rules_and_kernels_come_with_places_in_all_files(editor: Editor, uri: str) -> None:
    found = ask(editor, uri, "split", "rules")["result"]
    assert found["own"] and found["general"]
    assert found["term"]["text"].startswith("xs |> map(x => x * 2) |> split(2)")
    assert covered(SCALED, _range(found["term"]["place"]["range"])) == "twice(2 * n)(xs) |> split(2)"
    after = ask(editor, uri, "split", "rule", rule="*f >> S", path=found["term"]["path"])["result"]
    assert after["before"].startswith("xs |> map(x => x * 2) |> split(2)")
    assert after["after"].startswith("xs |> split(2) |> map(")

    derivation = ask(editor, uri, "split", "derivation", sizes="n=5")["result"]
    assert derivation["plan"] and derivation["steps"]
    step = ask(editor, uri, "split", "step", number=1, sizes="n=5")["result"]
    assert step["rule"]["name"] == derivation["steps"][0]["rule"]
    kernel = ask(editor, uri, "split", "kernel", sizes="n=5", target="sm_80")["result"]
    assert (derivation["target"], kernel["target"]) != ("sm_80", "")
    assert kernel["target"] == "sm_80"
    texts = {uri: SCALED, uri.replace("scaled", "twice"): TWICE}
    covering = [(texts[p["uri"]], p["range"]) for p in kernel["places"] if p.get("uri")]
    assert covering
    for text, where in covering:
        if where["start"]["line"] == where["end"]["line"]:
            assert covered(text, _range(where)).strip()
    assert len(json.dumps(kernel)) > 500


def test_outside_of_definitions_there_is_nothing(editor: Editor, uri: str) -> None:
    assert ask(editor, uri, "import", "type")["result"]["definition"] is None
    assert ask(editor, uri, "import", "rules") == {"result": None}


def test_a_newer_request_takes_the_place_of_an_older_one(editor: Editor, uri: str) -> None:
    import asyncio

    def params(n: int) -> dict[str, Any]:
        at = position(SCALED, "split")
        where = {"line": at.line, "character": at.character}
        return {"textDocument": {"uri": uri}, "position": where, "section": "rules", "sizes": f"n={n}"}

    async def both() -> list[Any]:
        send = editor.client.protocol.send_request_async
        return await asyncio.gather(*(send(PANEL, params(n)) for n in (5, 6, 7)))

    *older, last = map(_plain, editor.wait(both()))
    assert [answer["error"]["code"] for answer in older] == ["superseded", "superseded"]
    assert last["result"]["own"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"section": "drop"}, "no section `drop`"),
        ({"section": 3}, "`section` is 3"),
        ({"position": {"line": -1, "character": 0}}, "`line` is -1"),
        ({"position": None}, "`position` is None"),
        ({"textDocument": {}}, "no `uri`"),
        ({"section": "step"}, "no `number`"),
        ({"section": "rule"}, "no `rule`"),
        ({"sizes": ["n=3"]}, "`sizes` is"),
        ({"section": "kernel", "target": 90}, "`target` is 90"),
        ({"section": "rules", "path": ["a"]}, "should be a list of whole numbers"),
    ],
)
def test_a_malformed_request_is_refused(editor: Editor, uri: str, changed: dict[str, Any], said: str) -> None:
    at = position(SCALED, "split")
    whole = {
        "textDocument": {"uri": uri},
        "position": {"line": at.line, "character": at.character},
        "section": "type",
    }
    with pytest.raises(JsonRpcException, match="R0063") as refused:
        editor.ask(PANEL, {**whole, **changed})
    assert refused.value.code == INVALID
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"section": "rules", "path": [99]}, "no term at [99]"),
        ({"section": "step", "number": 9999}, "none of number 9999"),
        ({"section": "rule", "rule": "zipSwap"}, "no rule `zipSwap`"),
    ],
)
def test_what_the_program_no_longer_has_is_told(
    editor: Editor, uri: str, asked: dict[str, Any], said: str
) -> None:
    """The text may have changed since the panel was drawn."""
    error = ask(editor, uri, "split", **asked)["error"]
    assert (error["code"], said in error["message"]) == ("R0063", True)


@pytest.mark.parametrize("params", [None, [], "text", {}, {"textDocument": {"uri": "untitled:1"}}])
def test_what_is_no_request_at_all_is_refused(editor: Editor, params: Any) -> None:
    with pytest.raises(JsonRpcException) as refused:
        editor.ask(PANEL, params)
    assert refused.value.code == INVALID
