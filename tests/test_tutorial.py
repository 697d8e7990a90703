"""docs/tutorial.md, followed word for word: its files, its commands in their order, what they print."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codegen.emulation.compiling import compiler
from tests.support.pages import assert_printed, calls, files

PAGE = Path(__file__).parent.parent / "docs" / "tutorial.md"
FAILS = ("forgetFactor", "R0904")  # what the commands print that are meant to fail


@pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler")
@pytest.mark.usefixtures("own_rules")
def test_the_tutorial_works_as_written(rise: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in files(PAGE):
        (tmp_path / name).write_text(content, encoding="utf-8")
    ran = 0
    for command, expected in calls(PAGE, program=""):
        name, *arguments = shlex.split(command)
        if name != "rise":
            subprocess.run([name, *arguments], check=True)
            continue
        called = rise(*arguments)
        printed = called.out if not any(word in called.err for word in FAILS) else called.err
        if expected:
            assert_printed(expected, printed if printed.endswith("\n") else printed + "\n")
        assert called.status == (1 if any(word in expected for word in FAILS) else 0), called.err
        ran += 1
    assert ran >= 11
