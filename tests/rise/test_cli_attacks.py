"""Calls that nobody means, and machines that are not as they should be: each ends in a message of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import codegen
from rise.errors import RiseError, UsageError
from rise.files import read_text
from tests.support.emulated import needs_compiler

PROGRAM = """
def f{n: Nat}(xs: n.f32) = xs |> map(x => x * 2)
def g(xs: 8.f16) = xs |> map(x => x + 1)
"""
DERIVATION = '{"format": "rise derivation", "version": 1, "program": "3", "steps": 7}'
ONE = ("--size", "n=8")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ok.rise").write_text(PROGRAM)
    (tmp_path / "saved.json").write_text(DERIVATION)
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "it.rise").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code", "texts"),
    [
        (["run", "ok.rise", "f", *ONE, "--seed", "-1"], "R0003", ["--seed", "-1 is not a natural number"]),
        (["run", "ok.rise", "f", *ONE, "--expect", "n=9"], "R0005", ["--expect n", "`--runtime n`"]),
        (["run", "ok.rise", "f", "--runtime", "n", "--expect", "n=-9"], "R0407", ["n=-9", "`n=128`"]),
        (["run", "ok.rise", "f", "--size", "n=1099511627777"], "R0407", ["2^40"]),
        (["run", "ok.rise", "f", "--size", "n=1e3"], "R0407", ["n=1e3"]),
        (["run", "ok.rise", "f", *ONE, "--import-path", "nowhere"], "R0003", ["no folder nowhere"]),
        (["run", "ok.rise", "f", *ONE, "--load", "folder"], "R0010", ["folder is a folder"]),
        (["run", "ok.rise", "f", *ONE, "--load", "nothing.py"], "R0010", ["nothing.py", "file of Python"]),
        (["run", "ok.rise", "f", "--inputs", "folder"], "R0001", ["it is a folder", "folder/it.rise"]),
        (["run", "ko.rise", "f"], "R0001", ["did you mean `ok.rise`?"]),
        (["run", "nowhere/ok.rise", "f"], "R0001", ["there is no folder `nowhere`"]),
        (["run", "ok.rise/f", "f"], "R0001", ["`ok.rise` is a file"]),
        (["run", "xyz", "f"], "R0001", ["the working directory is"]),
        (["compile", "ok.rise", "f", *ONE, "--pass", "roles"], "R0003", ["`--stage imperative`"]),
        (["compile", "ok.rise", "f", *ONE, "--stage", "low", "--lines"], "R0003", ["`--stage cuda`"]),
        (["compile", "ok.rise", "g", "--out", "nowhere/k.cu"], "R0004", ["no folder `nowhere`"]),
        (["compile", "ok.rise", "g", "--out", "folder"], "R0004", ["name a file in it"]),
        (["derive", "ok.rise", "g", "--replay", "saved.json"], "R0608", ["`steps` is 7"]),
        (["view", "saved.json"], "R0608", ["`steps` is 7"]),
        (["export", "ok.rise", "g", "--out", "ok.rise"], "R0004", ["`ok.rise` is a file"]),
        (["completion", "tcsh"], "R0003", ["no such value", "`fish`"]),
        (["nothing"], "R0003", ["no such command"]),
    ],
)
def test_a_wrong_call_is_refused_with_a_hint(
    rise: Any, folder: Path, command: list[str], code: str, texts: list[str]
) -> None:
    called = rise(*command)
    assert called.status == 2 and f"error {code}: " in called.err, called.err
    assert "hint: " in called.err or command == ["nothing"]
    for text in texts:
        assert text in called.err


def test_a_size_that_is_expected_and_does_not_stay_open_is_refused_in_python(folder: Path) -> None:
    from rise import load

    program = load("ok.rise")
    with pytest.raises(UsageError, match="does not stay open") as caught:
        codegen.compile(program.f, sizes={"n": 8}, expected={"n": 9}, backend="emulate")
    assert caught.value.hint == "`runtime=['n']` leaves it open"


def test_what_may_have_been_meant_is_looked_for_only_when_a_hint_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looked: list[Path] = []

    def listed(self: Path) -> Iterator[Path]:
        looked.append(self)
        return iter(())

    monkeypatch.setattr(Path, "iterdir", listed)
    with pytest.raises(RiseError) as caught:
        read_text(tmp_path / "nothing")
    assert not looked
    assert "nothing" in caught.value.render() and looked == [tmp_path]


# --- the machine ------------------------------------------------------------------------------------------


def called(
    *command: str, closed: int | None = None, gone: Path | None = None, **how: Any
) -> subprocess.CompletedProcess[str]:
    """The command line as a process.

    closed: a descriptor that it does not have; gone: a folder that is removed once it is there
    """

    def before() -> None:
        if closed is not None:
            os.close(closed)
        if gone is not None:
            os.chdir(gone)
            gone.rmdir()

    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    how["env"] = {**os.environ, "PYTHONPATH": str(ROOT), **how.get("env", {})}
    words = [sys.executable, "-c", "from rise.cli import main; raise SystemExit(main())", *command]
    return subprocess.run(words, text=True, check=False, preexec_fn=before, **how)  # noqa: PLW1509  # one thread


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_is_no_mistake_of_the_compiler() -> None:
    with open("/dev/full", "w") as full:
        done = called("explain", "R0401", stdout=full)
    assert done.returncode == 2
    assert done.stderr == "error R0004: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_closed_streams_change_nothing_but_what_is_read_and_shown(closed: int) -> None:
    done = called("explain", "R0401", closed=closed)
    assert done.returncode == 0 and not done.stderr
    assert ("R0401" in done.stdout) == (closed != 1)


def test_a_mistake_counts_also_where_it_cannot_be_shown() -> None:
    assert called("explain", "nothing", closed=2).returncode == 2


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = called("check", "x.rise", gone=tmp_path / "gone")
    assert done.returncode == 2
    assert "error R0001: the working directory does not exist any more" in done.stderr


ASCII: Mapping[str, str] = {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def test_characters_that_the_locale_lacks_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "u.rise").write_text("// ×\ndef f(xs: 4.f32) = xs |> größe\n", encoding="utf-8")
    done = called("check", str(tmp_path / "u.rise"), env=ASCII)
    assert done.returncode == 1 and "the character `\\xf6` has no meaning here" in done.stderr


@needs_compiler
def test_a_compiler_that_fails_without_a_word(
    rise: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "false")
    done = rise("run", "ok.rise", "g", "--strategy", "default", "--backend", "emulate")
    assert done.status == 1 and "ends with 1, and does not say why" in done.err
