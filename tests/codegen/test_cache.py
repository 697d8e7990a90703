"""The cache: one build per key, whatever processes do to each other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codegen.cache import cache_directory, cached, digest, fallback_directory
from rise.errors import CompilationError
from tests.support.counting import counting

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RISE_CACHE_DIR", str(tmp_path / "cache"))
    fallback_directory.cache_clear()  # each test begins without one
    return tmp_path / "cache"


def writer(text: str) -> Callable[[Path], None]:
    def build(path: Path) -> None:
        path.write_text(text)

    return build


def never(path: Path) -> None:
    raise AssertionError(f"built again: {path}")


def contents(directory: Path) -> list[str]:
    """Of the entries, without their checksums."""
    return [path.read_text() for path in directory.glob("[!.]*") if path.suffix != ".sha256"]


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
    assert contents(directory) == ["content"]


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
    assert contents(directory) == ["whole"]


# --- entries that are damaged, or that others can have written ------------------------------------------


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    first, *rest = path.read_bytes()
    path.write_bytes(bytes([first ^ 1, *rest]))


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("of somebody")


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def unreadable(path: Path) -> None:
    path.chmod(0)
    if os.geteuid() == 0:  # whom modes do not stop
        empty(path)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def writable(path: Path) -> None:
    path.chmod(0o777)


def missing(path: Path) -> None:
    path.unlink()


DAMAGES = (truncate, flip, lengthen, empty, folder, link, unreadable, pipe, writable, missing)


@pytest.mark.parametrize("part", ["content", "checksum"])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_entry_is_built_again(directory: Path, damage: Callable[[Path], None], part: str) -> None:
    built = []

    def build(path: Path) -> None:
        built.append(path)
        path.write_text("content")

    first = cached(["a"], ".txt", build)
    damage(first if part == "content" else directory / f"{digest(['a'])}.txt.sha256")
    for _ in range(2):
        again = cached(["a"], ".txt", build)
        assert again.read_text() == "content" and again.is_file() and not again.is_symlink()
        assert again.stat().st_mode & 0o022 == 0
    assert len(built) == 2
    assert not list(directory.glob(".partial-*"))


def test_an_entry_of_another_key_is_not_taken(directory: Path) -> None:
    first, second = cached(["a"], ".txt", writer("one")), cached(["b"], ".txt", writer("two"))
    first.write_bytes(second.read_bytes())
    assert cached(["a"], ".txt", writer("one")).read_text() == "one"


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives files away")
@pytest.mark.parametrize("part", ["content", "checksum", "folder"])
def test_what_somebody_else_owns_is_not_loaded(directory: Path, part: str) -> None:
    first = cached(["a"], ".txt", writer("content"))
    owned = {"content": first, "checksum": directory / f"{digest(['a'])}.txt.sha256", "folder": directory}
    os.chown(owned[part], 65534, 65534)
    again = cached(["a"], ".txt", writer("mine"))
    assert again.read_text() == "mine"
    assert (again.parent == directory) == (part != "folder")


def test_a_folder_that_others_may_write_to_is_left_alone(directory: Path) -> None:
    first = cached(["a"], ".txt", writer("theirs"))
    directory.chmod(0o777)
    again = cached(["a"], ".txt", writer("mine"))
    assert again.read_text() == "mine" and again.parent.stat().st_mode & 0o077 == 0
    assert cached(["a"], ".txt", never) == again
    assert first.read_text() == "theirs" and len(list(directory.iterdir())) == 2


def test_a_new_folder_is_private(directory: Path) -> None:
    old = os.umask(0)
    try:
        entry = cached(["a"], ".txt", writer("content"))
    finally:
        os.umask(old)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert entry.stat().st_mode & 0o022 == 0
    assert cached(["a"], ".txt", never) == entry


@pytest.mark.parametrize("build", [lambda path: None, lambda path: path.write_text(""), Path.unlink])
def test_what_makes_nothing_is_refused_and_not_stored(directory: Path, build: Callable[[Path], None]) -> None:
    with pytest.raises(CompilationError) as refused:
        cached(["a"], ".so", build)
    assert refused.value.code == "R0810" and list(directory.iterdir()) == []


def test_a_disk_that_is_full_is_no_mistake(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path) -> None:
        path.write_text("half")
        if path.parent == directory:
            raise OSError(28, "No space left on device")
        path.write_text("whole")

    assert cached(["a"], ".txt", full).read_text() == "whole"
    assert list(directory.iterdir()) == []


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


def test_looking_up_takes_few_calls() -> None:
    cached(["a"], ".txt", writer("content"))
    with counting() as count:
        cached(["a"], ".txt", never)
    assert count.calls < 500, count
