"""The files for editors: the extension says what the server does, and the settings of others parse."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from rise import __version__
from rise.lsp import panel
from rise.lsp.lenses import COMMANDS
from rise.lsp.server import PANEL
from tests.support.node import NODE, REASON

ROOT = Path(__file__).parents[3]
VSCODE = ROOT / "editors" / "vscode"
MANIFEST = json.loads((VSCODE / "package.json").read_text())
SOURCES = {path.name: path.read_text() for path in sorted((VSCODE / "src").glob("*.js"))}
PAGE = (ROOT / "docs" / "editors.md").read_text()


def test_the_extension_has_the_commands_of_the_server() -> None:
    commands = {command["command"] for command in MANIFEST["contributes"]["commands"]}
    assert commands == {*(f"{command}Here" for command in COMMANDS), "rise.showPanel", "rise.restart"}
    listed = re.search(r"const COMMANDS = (\[.*?\]);", SOURCES["extension.js"])
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


def test_continuous_integration_builds_what_can_be_installed() -> None:
    jobs = (ROOT / ".github" / "workflows" / "ci.yml").read_text().split("\n  editor:\n")
    run = re.findall(r"- run: npm (?:run )?(\w+)", jobs[1])
    assert run == ["install", "test", "package"] and set(run[1:]) <= MANIFEST["scripts"].keys()
    (made,) = re.findall(r"--out (\S+\.vsix)", MANIFEST["scripts"]["package"])
    assert f"path: editors/vscode/{made}\n" in jobs[1] and "- run: make docs\n" in jobs[0]


def test_the_panel_asks_for_the_sections_of_the_server() -> None:
    assert f'sendRequest("{PANEL}", ' in SOURCES["extension.js"]
    listed = re.findall(r'^  \["(\w+)", "', SOURCES["page.js"], re.MULTILINE)
    details = re.findall(r'this\.detail\("(\w+)"', SOURCES["panel.js"])
    assert {panel.TYPE, *listed, *details} == {panel.TYPE, *panel.RULES, *panel.KERNELS}


def test_the_panel_marks_rules_as_the_list_of_rules_does() -> None:
    from rewrites.proofs.marks import Mark
    from rise.cli.rules import SYMBOLS

    [marks] = re.findall(r"const MARKS = \{(.*)\};", (VSCODE / "media" / "render.js").read_text())
    shown = dict(re.findall(r'"([^"]*)": "(.)"', marks))
    assert {mark.value: shown.get(mark.value, "·") for mark in Mark} == {m.value: SYMBOLS[m] for m in Mark}


def test_what_the_panel_loads_is_shipped_and_has_the_colours_of_the_editor() -> None:
    loaded = set(re.findall(r'address\("([\w.]+)"\)', SOURCES["panel.js"]))
    assert loaded == {path.name for path in (VSCODE / "media").iterdir()}
    assert "!media/**" in (VSCODE / ".vscodeignore").read_text()
    style = (VSCODE / "media" / "panel.css").read_text()
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b|rgb|hsl|url\(|@import", style) == []
    named = re.findall(r"var\(([^),]*)", style)
    assert len(named) > 20
    assert all(name.startswith("--vscode-") for name in named)


@pytest.mark.skipif(NODE is None, reason=REASON)
@pytest.mark.parametrize("name", ["extension", "panel"])
def test_its_scripts_do_what_they_should(name: str) -> None:
    """In an editor of paper; what these tests need is in node itself."""
    assert NODE is not None
    command = [NODE, "--test", "--test-reporter=tap", f"test/{name}.test.js"]
    done = subprocess.run(command, cwd=VSCODE, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"^# pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed and int(passed[1]) > 5


def test_the_settings_of_the_extension_are_those_that_it_reads() -> None:
    read = {name for source in SOURCES.values() for name in re.findall(r'\.get\("(\w+)"\)', source)}
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
