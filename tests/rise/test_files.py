"""Files are written whole or not at all, appended to in whole lines, and read up to a bound."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rise import files
from rise.errors import UsageError

ROOT = Path(__file__).parents[2]


def only(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- writing --------------------------------------------------------------------------------------------


def test_a_new_file_has_the_mode_that_new_files_get(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        files.write(tmp_path / "new", "→")
    finally:
        os.umask(old)
    assert (tmp_path / "new").read_text(encoding="utf-8") == "→"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_text("old")
    path.chmod(0o751)
    files.write(path, b"new")
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == 0o751


def test_a_link_stays_and_what_it_names_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("old")
    (tmp_path / "link").symlink_to(Path("there") / "file")
    (tmp_path / "dangling").symlink_to("absent")
    for name in ("link", "dangling"):
        files.write(tmp_path / name, "new")
        assert (tmp_path / name).is_symlink() and (tmp_path / name).read_text() == "new"
    assert only(tmp_path) == ["absent", "dangling", "link", "there"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError, KeyboardInterrupt])
def test_what_fails_half_way_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: Exception) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises((UsageError, ValueError, KeyboardInterrupt)), files.replacing(path) as file:
        file.write(b"new" * 10_000)
        raise error
    assert path.read_text() == "old" and only(tmp_path) == ["file"]


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left") as refused:
        files.write(tmp_path / "file", "new")
    assert refused.value.code == "R0004" and only(tmp_path) == []


@pytest.mark.parametrize("place", ["absent/file", "folder", "file/below"])
def test_where_no_file_can_be_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    for action in (files.write, files.append):
        if action is files.append and place == "absent/file":
            continue  # which makes the folder
        with pytest.raises(UsageError) as refused:
            action(tmp_path / place, "new")
        assert refused.value.code == "R0004"
    assert only(tmp_path) == ["file", "folder"]


def test_pipes_and_devices_are_written_to(tmp_path: Path) -> None:
    files.write(Path(os.devnull), "away")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    text = "from pathlib import Path; from rise import files; files.write(Path('/dev/stdout'), 'through')"
    through = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True)
    assert through.stdout == "through"
    with (tmp_path / "out").open("w") as out:  # as `command > out`
        out.write("before ")
        out.flush()
        subprocess.run([sys.executable, "-c", text], cwd=ROOT, stdout=out)
    assert (tmp_path / "out").read_text() == "before through"
    reader, writer = os.pipe()
    files.write(Path(f"/dev/fd/{writer}"), "piped")
    assert os.read(reader, 100) == b"piped"
    os.close(reader)
    os.close(writer)


# --- appending ------------------------------------------------------------------------------------------


def test_a_header_stands_above_a_new_file_only(tmp_path: Path) -> None:
    for line in ("one\n", "two\n"):
        files.append(tmp_path / "new" / "file", line, "header\n")
    assert (tmp_path / "new" / "file").read_text() == "header\none\ntwo\n"


def test_a_line_that_was_left_unfinished_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("one\nhal")
    files.append(path, "two\n")
    assert path.read_text() == "one\nhal\ntwo\n"


def test_an_append_that_does_not_fit_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = tmp_path / "file", os.write
    path.write_text("one\n")
    monkeypatch.setattr(os, "write", lambda handle, content: write(handle, content[:3]))
    with pytest.raises(UsageError, match="R0004"):
        files.append(path, "two and more\n")
    assert path.read_text() == "one\n"


# --- reading --------------------------------------------------------------------------------------------


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").open("wb").truncate(3 * 2**30)  # of which nothing is on the disk
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name, code in {
        "pipe": "R0015", "/dev/zero": "R0015", "/dev/null": "R0015", "large": "R0015", "binary": "R0002",
        "absent": "R0001", ".": "R0001", "a\0b": "R0001", "x" * 300: "R0001",
    }.items():  # fmt: skip
        with pytest.raises(UsageError) as refused:
            files.read_text(tmp_path / name)
        assert refused.value.code == code, name


def test_lines_end_as_they_do_everywhere(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\r\nb\rc\n")
    assert files.read_text(tmp_path / "file") == "a\nb\nc\n"


def test_the_shells_pipes_are_read() -> None:
    text = "from pathlib import Path; from rise import files; print(files.read_text(Path('/dev/stdin')))"
    through = subprocess.run(
        [sys.executable, "-c", text], cwd=ROOT, input="in", capture_output=True, text=True
    )
    assert through.stdout == "in\n"
