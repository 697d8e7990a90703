"""The chapters in docs/tutorials, followed word for word: their files, their commands, what they print.

Everything happens in the order of the page, so that a file may be changed later. The notebooks in
examples/notebooks run, and show what is stored in them.
"""

from __future__ import annotations

import io
import json
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from codegen.emulation.compiling import compiler
from tests.support.pages import Command, File, assert_printed, in_order

ROOT = Path(__file__).parent.parent
TUTORIALS = ROOT / "docs" / "tutorials"
CHAPTERS = sorted(path.stem for path in TUTORIALS.glob("*.md") if path.stem != "index")
# what a command prints that is meant to fail
FAILS = re.compile(r"error R\d{4}|CHANGES THE RESULT|` differ at ")


def python(file: str) -> str:
    """What a program prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        runpy.run_path(file)
    return printed.getvalue()


def run_tests_of(file: str) -> str:
    """Runs the tests of a file, as pytest would, and says how many there are."""
    with redirect_stdout(io.StringIO()):
        functions = [value for name, value in runpy.run_path(file).items() if name.startswith("test_")]
        for function in functions:
            function()
    return f".\n{len(functions)} passed\n"


def follow(command: Command, rise: Any) -> None:
    """Runs a command, and compares what it prints, and whether it fails."""
    program, *arguments = shlex.split(command.text)
    match program:
        case "python":
            assert_printed(command.expected, python(*arguments))
        case "pytest":
            assert_printed(command.expected, run_tests_of(*arguments))
        case _:
            assert program == "rise"
            called, fails = rise(*arguments), bool(FAILS.search(command.expected))
            assert (called.status != 0) == fails, called.err + called.out
            printed = called.out if called.out or not fails else called.err
            if command.expected:
                assert_printed(command.expected, printed if printed.endswith("\n") else printed + "\n")


@pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler")
@pytest.mark.usefixtures("own_rules")
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_works_as_written(
    chapter: str, rise: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    try:
        ran = walk(chapter, rise, tmp_path)
    finally:
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
                del sys.modules[name]  # files of chapters have equal names
    assert ran >= 5


def walk(chapter: str, rise: Any, folder: Path) -> int:
    """Writes the files and runs the commands; returns the number of commands."""
    ran = 0
    for part in in_order(TUTORIALS / f"{chapter}.md"):
        match part:
            case File(name, content):
                (folder / name).write_text(content, encoding="utf-8")
            case Command():
                follow(part, rise)
                ran += 1
    return ran


def test_every_chapter_is_listed_and_has_exercises() -> None:
    listed = re.findall(r"^\d\. \[.*\]\(([\w-]+)\.md\)", (TUTORIALS / "index.md").read_text("utf-8"), re.M)
    assert sorted(listed) == CHAPTERS
    for number, chapter in enumerate(listed, 1):
        text = (TUTORIALS / f"{chapter}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {number}. ")
        assert "## Exercises" in text
        assert "<summary>Solutions</summary>" in text


# --- notebooks --------------------------------------------------------------------------------------

NOTEBOOKS = ROOT / "examples" / "notebooks"
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script that runs notebooks, which is in no package."""
    pytest.importorskip("IPython")
    monkeypatch.syspath_prepend(NOTEBOOKS)
    yield __import__("run")
    del sys.modules["run"]


def shown(notebook: dict[str, Any]) -> list[Any]:
    """The texts that cells show; of what has HTML too, that there is some."""
    return [
        ["".join(o.get("text", "")), "".join(data.get("text/plain", "")), bool(data.get("text/html"))]
        for cell in notebook["cells"]
        for o in cell.get("outputs", [])
        for data in [o.get("data", {})]
    ]


@pytest.mark.usefixtures("own_rules")
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_what_is_stored_in_it(name: str, runner: Any) -> None:
    stored = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    found = shown(runner.executed(stored))
    assert len(found) >= 5
    assert found == shown(stored), "python examples/notebooks/run.py writes it"
