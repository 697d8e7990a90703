"""docs/extending.md, followed word for word: the files it shows, the commands, what they print."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
# what is declared in one process stays declared, so each run is one of its own
RUNNER = "import sys; from rise.cli import main; sys.path.insert(0, ''); sys.exit(main(sys.argv[1:]))"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Beside the program, the Python file made of all blocks but the last, and the tests."""
    made = tmp_path_factory.mktemp("extending")
    *parts, tests = blocks("python")
    (made / "rotation.py").write_text("\n\n".join(parts), encoding="utf-8")
    (made / "test_rotation.py").write_text(tests, encoding="utf-8")
    (made / "rotations.rise").write_text(blocks("rise")[0], encoding="utf-8")
    return made


def run(folder: Path, *arguments: str) -> str:
    called = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert called.returncode == 0, called.stdout + called.stderr
    return called.stdout


COMMANDS = re.findall(r"^\$ rise (.*)\n((?:(?!\$ ).*\n)*)", blocks("console")[0], re.MULTILINE)


@pytest.mark.parametrize(("command", "expected"), COMMANDS)
def test_a_command_prints_what_the_page_says(folder: Path, command: str, expected: str) -> None:
    printed = run(folder, "-c", RUNNER, *command.split())
    pattern = r"(?:.*\n)*?".join(re.escape(part) for part in expected.split("…\n"))
    assert re.search(pattern, printed), printed


def test_the_tests_of_the_page_pass(folder: Path) -> None:
    assert "2 passed" in run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_rotation.py")


def test_every_part_is_needed() -> None:
    assert len(COMMANDS) == 3
    assert len(blocks("python")) == 6
