"""The wheel, unpacked and used in an empty folder: every command runs, with no source tree around it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BUILD = """
import sys
from setuptools import build_meta
[target] = sys.argv[1:]
build_meta.build_wheel(target)
build_meta.build_sdist(target)
"""
# each line of the input is a call; printed is one line for each: status, length of the output, messages
CALLS = """
import contextlib, io, json, sys
from rise.cli import main
for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(json.loads(line))
    print(json.dumps([status, out.getvalue(), err.getvalue()]), flush=True)
"""
PAGE = ROOT / "docs" / "fifteen-minutes.md"
PROGRAM = "def double: {n: Nat} -> n.f32 -> n.f32 = fun(xs => xs |> map(fun(x => x + x)))\n"
GEMM = ("GEMM", "matmul", "--size", "m=64", "n=64", "k=64", "--strategy", "tensor_core", "--set",
        "block=32,32,16", "warp=16,16")  # fmt: skip
COMMANDS = [
    ("demo", "--size", "m=128", "n=128", "k=128"), ("bench",), ("check", "GEMM"), ("fmt", "--check", "GEMM"),
    ("run", "double.rise", "double", "--size", "n=7", "--check"), ("primitives",), ("strategies",),
    ("rules", "mapFusion"), ("explain", "R0401"), ("compile", *GEMM), ("derive", *GEMM),
]  # fmt: skip


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:  # an unpacked source distribution
        skipped = (".venv", "build", "dist")
        paths = (p.relative_to(ROOT) for p in ROOT.rglob("*") if p.is_file())
        return [str(p) for p in paths if p.parts[0] not in skipped and "__pycache__" not in p.parts]
    return listed.stdout.splitlines()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel and a source distribution, built from a copy of the tracked files."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for name in tracked():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([sys.executable, "-c", BUILD, str(target)], cwd=source, check=True, capture_output=True)
    return target


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel: it comes before everything else on the path of Python."""
    place = tmp_path_factory.mktemp("installed")
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(place)
    return place


def test_every_command_runs_without_the_source_tree_and_without_a_compiler(
    installed: Path, tmp_path: Path
) -> None:
    """In one process: importing all rules takes longer than the rest."""
    (tmp_path / "double.rise").write_text(PROGRAM)
    gemm = str(installed / "rise" / "share" / "examples" / "gemm.rise")
    calls = [[gemm if word == "GEMM" else word for word in command] for command in COMMANDS]
    ran = subprocess.run(
        [sys.executable, "-P", "-c", CALLS], cwd=tmp_path, capture_output=True, text=True, check=False,
        input="\n".join(map(json.dumps, calls)),
        env={"PYTHONPATH": str(installed), "PATH": "", "HOME": str(tmp_path)},
    )  # fmt: skip
    results = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(results) == len(calls), ran.stderr
    for command, (status, out, err) in zip(calls, results, strict=True):
        assert status == 0, f"{command}\n{out}\n{err}"
        assert out.strip() or command[0] == "fmt", command
        assert command[0] != "bench" or "rise_gemm" in out


@pytest.mark.parametrize("name", ["codegen", "bench"])
def test_another_package_of_our_name_is_refused(installed: Path, tmp_path: Path, name: str) -> None:
    other = tmp_path / "other"
    (other / name).mkdir(parents=True)
    (other / name / "__init__.py").write_text("")
    script = f"import sys; sys.path.insert(0, {str(other)!r}); from rise.cli import main; sys.exit(main())"
    command = [sys.executable, "-P", "-c", script, "check", "x.rise"]
    environment = {"PYTHONPATH": str(installed)}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 2
    assert "R0050" in ran.stderr and str(other / name) in ran.stderr


def test_the_source_distribution_holds_everything_that_is_tracked(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    assert not [name for name in tracked() if (ROOT / name).is_file() and name not in inside]


# --- the page for new users, command by command -----------------------------------------------------------


def as_pattern(shown: str) -> re.Pattern[str]:
    """What a page shows of an output, where … stands for what is left out."""
    return re.compile(".*".join(map(re.escape, shown.strip().split("…"))), re.DOTALL)


def followed(page: str, folder: Path, run: Callable[[list[str]], tuple[int, str]]) -> list[str]:
    """Writes each file that the page shows and runs each command, in their order; gives the commands."""
    ran, names = [], ""
    for before, kind, block in re.findall(r"(.*?)^```(\w*)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        if kind == "console":
            command, _, shown = block.removeprefix("$ ").partition("\n")
            status, output = run(shlex.split(command))
            assert as_pattern(shown).fullmatch(output.strip()), f"{command}\n{output}"
            assert bool(status) == (": error " in shown), f"{command}: status {status}"
            ran.append(command)
        else:
            (*_, names) = re.findall(r"`(\w+\.(?:rise|py))`", before) or [names]
            (folder / names).write_text(block)
    return ran


def test_the_page_for_new_users_is_followed(installed: Path, tmp_path: Path) -> None:
    """Nothing but the installed package is there; the last file, which asks for a GPU, is written only."""
    environment = {"PYTHONPATH": str(installed), "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    folder = tmp_path / "first"
    folder.mkdir()
    session = subprocess.Popen(
        [sys.executable, "-P", "-c", CALLS], cwd=folder, env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    stdin, stdout = session.stdin, session.stdout
    assert stdin is not None and stdout is not None

    def run(command: list[str]) -> tuple[int, str]:
        if command[0] != "rise":
            words = command[1:] if command[0] == "python" else ["-m", *command]
            ran = subprocess.run(
                [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False,
                env={**environment, "PYTHONPATH": f"{installed}{os.pathsep}{folder}"},
            )  # fmt: skip
            return ran.returncode, ran.stdout + ran.stderr
        stdin.write(json.dumps(command[1:]) + "\n")
        stdin.flush()
        status, out, err = json.loads(stdout.readline())
        return status, err + out

    page = PAGE.read_text(encoding="utf-8")
    with session:
        commands = followed(page, folder, run)
        stdin.close()
    assert len(commands) == page.count("\n$ ") > 9
    assert (folder / "on_a_gpu.py").is_file() and (folder / "blend.html").is_file()


@pytest.mark.parametrize(("shown", "output", "same"), [
    ("a … c\n…\nd", "a b c\nx\ny\nd", True), ("a.c", "abc", False), ("a", "a b", False),
])  # fmt: skip
def test_what_a_page_shows_is_compared(shown: str, output: str, same: bool) -> None:
    assert bool(as_pattern(shown).fullmatch(output)) == same
