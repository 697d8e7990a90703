"""The cache: one build per key, whatever processes do to each other."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codegen.cache import cache_directory, cached, digest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RISE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def writer(text: str) -> Callable[[Path], None]:
    def build(path: Path) -> None:
        path.write_text(text)

    return build


def never(path: Path) -> None:
    raise AssertionError(f"built again: {path}")


def start(program: str) -> subprocess.Popen[str]:
    """Another process, with the same cache."""
    command = [
        sys.executable,
        "-c",
        "import sys, time\nfrom codegen.cache import cached\n" + program,
    ]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_builds_once() -> None:
    first = cached(["a"], ".txt", writer("content"))
    assert cached(["a"], ".txt", never) == first
    assert first.read_text() == "content"


def test_keeps_parts_apart() -> None:
    assert len({digest(key) for key in (["ab", "c"], ["a", "bc"], ["abc"], [b"abc"], [])}) == 5


def test_keeps_suffixes_apart() -> None:
    assert cached(["a"], ".x", writer("x")) != cached(["a"], ".y", writer("y"))


def test_failed_build_leaves_nothing(directory: Path) -> None:
    with pytest.raises(AssertionError):
        cached(["a"], ".txt", never)
    assert list(directory.iterdir()) == []
    assert cached(["a"], ".txt", writer("content")).read_text() == "content"


def test_two_processes_at_once(directory: Path) -> None:
    build = "lambda path: (time.sleep(0.3), path.write_text('content'))"
    processes = [start(f"print(cached(['a'], '.txt', {build}).read_text())") for _ in range(2)]
    assert [process.communicate()[0] for process in processes] == ["content\n", "content\n"]
    assert [path.read_text() for path in directory.iterdir()] == ["content"]


def test_killed_builder(directory: Path) -> None:
    build = "lambda path: (path.write_text('half'), print('wrote', flush=True), time.sleep(60))"
    process = start(f"cached(['a'], '.txt', {build})")
    assert process.stdout is not None
    assert process.stdout.readline() == "wrote\n"
    process.kill()
    process.wait()
    process.stdout.close()
    assert cached(["a"], ".txt", writer("whole")).read_text() == "whole"
    assert cached(["a"], ".txt", never).read_text() == "whole"
    assert len(list(directory.glob("[!.]*"))) == 1


def test_unwritable_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("no directory")
    monkeypatch.setenv("RISE_CACHE_DIR", str(occupied / "cache"))
    first = cached(["a"], ".txt", writer("content"))
    assert first.read_text() == "content"
    assert cached(["a"], ".txt", never) == first


def test_directory_follows_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RISE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", os.sep + "somewhere")
    assert cache_directory() == Path(os.sep, "somewhere", "rise-lang")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_directory() == Path.home() / ".cache" / "rise-lang"


def test_looking_up_is_quick() -> None:
    cached(["a"], ".txt", writer("content"))
    before = time.perf_counter()
    for _ in range(100):
        cached(["a"], ".txt", never)
    assert time.perf_counter() - before < 1
