"""The files for editors: the extension says what the server does, and the settings of others parse."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from rise import __version__
from rise.lsp.lenses import COMMANDS

ROOT = Path(__file__).parents[3]
VSCODE = ROOT / "editors" / "vscode"
MANIFEST = json.loads((VSCODE / "package.json").read_text())
PAGE = (ROOT / "docs" / "editors.md").read_text()


def test_the_extension_has_the_commands_of_the_server() -> None:
    commands = {command["command"] for command in MANIFEST["contributes"]["commands"]}
    assert commands == {*(f"{command}Here" for command in COMMANDS), "rise.restart"}
    source = (VSCODE / "src" / "extension.js").read_text()
    listed = re.search(r"const COMMANDS = (\[.*?\]);", source)
    assert listed and [f"rise.{name}" for name in json.loads(listed[1])] == list(COMMANDS)
    for menu in MANIFEST["contributes"]["menus"].values():
        assert {entry["command"] for entry in menu} <= commands


def test_the_files_that_the_extension_names_are_there() -> None:
    contributes = MANIFEST["contributes"]
    named = [contributes["grammars"][0]["path"], contributes["languages"][0]["configuration"]]
    kept = (VSCODE / ".vscodeignore").read_text()
    for name in named:
        assert (VSCODE / name).exists()
        assert f"!{name.removeprefix('./')}" in kept
    configuration = json.loads((VSCODE / "language-configuration.json").read_text())
    assert configuration["comments"] == {"lineComment": "//", "blockComment": ["/*", "*/"]}
    assert MANIFEST["version"] == __version__


def test_the_settings_of_the_extension_are_those_that_it_reads() -> None:
    source = (VSCODE / "src" / "extension.js").read_text()
    read = set(re.findall(r'\.get\("(\w+)"\)', source))
    assert {f"rise.{name}" for name in read} == set(MANIFEST["contributes"]["configuration"]["properties"])


def test_every_editor_on_the_page_starts_the_server() -> None:
    blocks = dict(re.findall(r"```(lua|toml|elisp)\n(.*?)```", PAGE, re.DOTALL))
    settings = tomllib.loads(blocks["toml"])
    assert settings["language-server"]["rise"] == {"command": "rise", "args": ["lsp"]}
    assert settings["language"][0]["language-servers"] == ["rise"]
    assert '{ "rise", "lsp" }' in blocks["lua"]
    assert '"rise" "lsp"' in blocks["elisp"]


def test_the_page_shows_an_evaluation_as_it_is() -> None:
    from rise.lsp.evaluate import comments, evaluated

    text = next(block for block in re.findall(r"```rise\n(.*?)```", PAGE, re.DOTALL) if ">>>" in block)
    path = ROOT / "examples" / "page.rise"
    [comment] = comments(text)
    [value] = evaluated(path, path.parent, {path: text}, [comment.expression])
    assert text.split("\n")[comment.line] == f"// = {value}"
