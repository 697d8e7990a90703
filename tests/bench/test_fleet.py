"""Several GPUs share a table: processes with fake devices, one of which may die."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest

import bench.fleet
import bench.session
from bench.board import Board
from bench.build import Builds, code
from bench.campaign import Campaign
from bench.cluster import in_parts
from bench.fleet import VISIBLE, Gpus, by_candidate, feed, merge_folders, see_only
from bench.journal import Journal
from bench.results import read_attempts, read_rows
from bench.session import Session
from rise.cli.main import main
from rise.errors import UsageError
from tests.bench.fakes import (
    MACHINE,
    FakeClock,
    FakeDevice,
    Immediately,
    Killed,
    Never,
    Recorder,
    derive,
    table,
)

GPUS = ("0", "1")
TIMES: dict[str, Any] = {"good": 10.0, "better": 9.0, "slow": 20.0, "best": 8.0, "cublas": 8.5}


def fake_measure(session: Session, seconds: float) -> int:
    """As `bench.session.measure`, on a device of its own. `broken` in the folder names GPUs that always die.

    The candidate `kills` ends its process, the first time that it runs.
    """
    assert session.gpu is not None and session.board is not None
    root = session.folder.parent
    broken, killed = root / "broken", root / "killed"
    with (root / "started").open("a") as file:
        file.write(f"{session.gpu} {os.environ.get(VISIBLE)}\n")
    while len((root / "started").read_text().splitlines()) < 2:
        time.sleep(0.01)  # both take cases
    if broken.exists() and session.gpu in broken.read_text().split():
        while session.board.take() is None:
            time.sleep(0.01)
        raise SystemExit(9)
    session.path("machine.json").write_text(json.dumps(MACHINE))
    clock = FakeClock()
    device = FakeDevice(TIMES | {"kills": 30.0 if killed.exists() else "kills"}, clock)
    campaign = Campaign(
        session.table, session.folder, device,
        Builds(Never(), derive, "sm_90a"), clock, Recorder(), code(),
        finalists=session.finalists, beside=root,
    )  # fmt: skip
    try:
        campaign.serve(session.board)
    except Killed:
        killed.touch()
        raise SystemExit(7) from None
    OPENED.append(len(device.runners))
    return 0


OPENED: list[int] = []  # how often each process of a session that ended prepared operands


def in_a_process(session: Session, seconds: float) -> int:
    assert session.gpu is not None
    see_only(session.gpu)
    return fake_measure(session, seconds)


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Immediately:
    """Everything is built at once, by the process that posts it."""
    executor = Immediately()
    monkeypatch.setenv("RISE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(bench.fleet, "processes", lambda count, seconds: nullcontext(executor))
    monkeypatch.setattr("bench.derive.derive", derive)
    OPENED.clear()
    return executor


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads in place of processes, which take a second each."""

    def alone(action: Any, *arguments: Any, stop: Any) -> Any:
        try:
            return action(*arguments)
        except SystemExit as leaving:
            return leaving.code

    monkeypatch.setattr(bench.session, "alone", alone)


def session(folder: Path, *strategies: str, sizes: tuple[int, ...], **options: Any) -> Session:
    of = table(folder, *strategies, sizes=sizes, **options)
    return Session(of, folder / "out", target="sm_90a", fleet=Gpus(GPUS), measure=fake_measure)


def test_every_case_is_measured_once_and_results_are_in_one_folder(tmp_path: Path) -> None:
    sizes = (16, 32, 48, 64, 80)
    made = session(tmp_path, "good", "kills", "better", sizes=sizes, baselines=["cublas"])
    assert replace(made, measure=in_a_process).run(60) == 0
    expected = Counter(f"f m={n} n={n} k={n}" for n in sizes)
    assert Counter(row.case for row in made.rows() if row.kind == "rise") == expected
    assert {row.name for row in made.rows() if row.kind == "rise"} == {"better"}
    crashed = [(a.kind, a.name) for a in made.attempts() if a.status == "crashed"]
    assert set(crashed) == {("rise", "kills")}, "the kernel that ended its process is named"
    started = (made.folder / "started").read_text().splitlines()
    assert set(started) == {"0 0", "1 1"}, "each process sees its own GPU"
    assert len(started) == 2 + len(crashed), "it is started again, without that kernel"
    parts = [read_rows(made.folder / f"gpu-{gpu}" / "some.csv") for gpu in GPUS]
    assert {row for part in parts for row in part} == set(made.rows())
    assert not made.path("board").exists()


@pytest.mark.usefixtures("here")
def test_others_take_the_cases_of_a_gpu_that_is_lost(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = session(tmp_path, "good", sizes=(16, 32, 48))
    made.folder.mkdir()
    (made.folder / "broken").write_text("1")
    assert made.run(60) == 0
    assert len(made.rows()) == 3
    assert "GPU 1: its process failed" in capfd.readouterr().err
    (made.folder / "broken").write_text("0 1")
    again = replace(made, table=table(tmp_path, "good", sizes=(96, 112)))
    assert again.run(60) == 9


def test_others_take_what_a_gpu_has_begun_whatever_ends_it(tmp_path: Path) -> None:
    """An error in what watches over its process ends the measurement, and keeps nobody waiting."""

    @dataclass
    class Failing:
        board: Board
        gpu: str = "1"

        def run(self, seconds: float, stop: Event) -> int:
            assert self.board.take() is not None
            raise UsageError("R0864", "a file has another format")

    case = table(tmp_path, "good", sizes=(16,)).cases[0]
    mine, others = Board(tmp_path, "1", 2), Board(tmp_path, "0", 2)
    mine.last(0, case, [])
    with pytest.raises(UsageError, match="R0864"):
        bench.fleet._run(cast(Session, Failing(mine)), 60.0, Event())
    assert others.take() is not None


@pytest.mark.usefixtures("here")
def test_a_single_case_is_shared_by_candidates_and_decided_on_one_gpu(tmp_path: Path) -> None:
    made = session(tmp_path, "good", "better", "slow", "best", sizes=(128,), baselines=["cublas"])
    assert made.run(60) == 0
    started = [line.split()[0] for line in (made.folder / "started").read_text().splitlines()]
    assert sorted(started) == ["0", "1"], "the last round is in a process that is there already"
    assert all(opened <= 1 for opened in OPENED), "operands stay from one part to the next"
    (ours,) = (row for row in made.rows() if row.kind == "rise")
    assert ours.name == "best"
    coarse = Counter(a.name for a in made.attempts() if a.status in ("timed", "slow") and a.kind == "rise")
    assert coarse.keys() == {"good", "better", "slow", "best"}
    parts = [read_attempts(made.folder / f"gpu-{gpu}" / "some.attempts.csv") for gpu in GPUS]
    assert sum(any(a.status == "finalist" for a in part) for part in parts) == 1, "it is on one GPU"


def test_what_is_stopped_has_not_crashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C: the process is ended while a kernel runs, which is not at fault."""
    made = replace(session(tmp_path, "good", sizes=(16,)), fleet=None, gpu="0")

    def ended(action: Any, *arguments: Any, stop: Event) -> int:
        Journal(made.path("running.json")).note("f m=16 n=16 k=16", "rise", "good")
        stop.set()
        return 0

    monkeypatch.setattr(bench.session, "alone", ended)
    made.run(60, Event())
    assert made.attempts() == [] and not made.path("running.json").exists()


def test_parts_have_all_candidates_once(tmp_path: Path) -> None:
    of = table(tmp_path, *"abcdefg", baselines=["cublas"], sizes=[128])
    for count in (1, 2, 3, 7, 12):
        subjects = in_parts(of, count).subjects
        assert [str(c) for s in subjects for c in s.candidates] == [*"abcdefg"]
        assert len(subjects) <= count and not any(s.baselines for s in subjects)
    (case,) = of.cases
    assert [str(*part.subject.candidates) for part in by_candidate(case)] == [*"abcdefg"]


@pytest.mark.usefixtures("here")
def test_results_are_merged_once(tmp_path: Path) -> None:
    made = session(tmp_path, "good", sizes=(16, 32))
    assert made.run(60) == 0
    before = made.rows(), made.attempts()
    merge_folders(made, [replace(made, folder=made.folder / f"gpu-{gpu}") for gpu in GPUS])
    assert (made.rows(), made.attempts()) == before


@pytest.mark.parametrize("wrong", ["0,0", "", "0,", "first"])
def test_gpus_that_are_none_are_refused(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "square", "--gpus", wrong]) == 2
    assert "no list of different GPUs" in capsys.readouterr().err


def test_the_longest_cases_are_posted_first_and_few_by_candidate(tmp_path: Path) -> None:
    for sizes, gpus, posted in [
        ((16, 96, 32), 2, ["f m=96 n=96 k=96 a b", "f m=32 n=32 k=32 a b", "f m=16 n=16 k=16 a b"]),
        ((32,), 2, ["f m=32 n=32 k=32 a", "f m=32 n=32 k=32 b", "f m=32 n=32 k=32 a b"]),
    ]:
        made, board = session(tmp_path, "a", "b", sizes=sizes), Board(tmp_path / str(len(sizes)), "0", 9)
        board.folder.mkdir()
        feed(made, gpus, lambda: False, board)
        taken = []
        while (task := board.take()) is not None:
            taken.append(" ".join([task.case.key, *(str(each.candidate) for each in task.builds)]))
            board.finish(task)
        assert taken == posted
