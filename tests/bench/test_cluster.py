"""A cluster shares work: local workers of Dask, which are killed while they work, or fail."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import pytest

import bench.cluster
import bench.session
import tests.attack.runner
from bench.build import Builds, code
from bench.campaign import Campaign
from bench.cluster import DIED, NONE_LEFT, Cluster, Desk, connected
from bench.session import Session
from rise.cli.main import main
from rise.errors import UsageError
from tests.attack.outcome import Verdict
from tests.attack.runner import Attack, run_on
from tests.bench.cluster_tasks import CRASHING, KILLING, Deed, do, killing, right, trials
from tests.bench.fakes import MACHINE, FakeClock, FakeDevice, Immediately, Recorder, derive, table

distributed = pytest.importorskip("distributed")
WORKERS = 2


def workers(processes: bool) -> Iterator[str]:
    with distributed.LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, processes=processes, dashboard_address=":0", silence_logs=100
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of processes: those that are killed are started again, under another address."""
    yield from workers(True)


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Workers in this process, which start no others."""

    def alone(action: Any, *arguments: Any, stop: Any) -> Any:
        return action(*arguments)

    monkeypatch.setattr(bench.session, "alone", alone)
    yield from workers(False)


def test_no_task_is_lost_when_a_worker_is_killed(address: str, tmp_path: Path) -> None:
    deeds = [Deed("a", 0, tmp_path), Deed("once", 1, tmp_path), *(Deed(f"b{n}", 0, tmp_path) for n in "123")]
    with connected(address) as client:
        ended = list(Desk(client, do, iter(deeds)).ended())
    assert Counter(end.task.name for end in ended) == Counter(["a", "once", "once", "b1", "b2", "b3"])
    assert {end.task.name: end.value for end in ended if end.last} == {d.name: d.name for d in deeds}
    (died,) = (end for end in ended if end.failure)
    assert died.failure == DIED and not died.last
    assert len(set((tmp_path / "once").read_text().split())) == 2
    assert all(len((tmp_path / deed.name).read_text().split()) == 1 for deed in deeds if not deed.deaths)


def test_workers_that_fail_get_no_other_task(in_threads: str, tmp_path: Path) -> None:
    deeds = [Deed("raises", 0, tmp_path), Deed("raises", 0, tmp_path), Deed("c", 0, tmp_path)]
    with connected(in_threads) as client:
        client.wait_for_workers(WORKERS)
        ended = list(Desk(client, do, iter(deeds)).ended())
    tries = [end for end in ended if end.worker]
    assert len({end.worker for end in tries}) == len(tries) == WORKERS
    assert all("ZeroDivisionError" in end.failure and not end.last for end in tries)
    last = Counter((end.task.name, end.failure) for end in ended if end.last)
    assert last == {("raises", NONE_LEFT): 2, ("c", NONE_LEFT): 1}


# --- a table ------------------------------------------------------------------------------------------------

STARTED: list[tuple[int, str]] = []  # finalists and candidates of each session


def fake_measure(session: Session, seconds: float) -> int:
    """As `bench.session.measure`. What has the candidate `fails` fails the first time."""
    (here,) = session.table.subjects
    names = ",".join(map(str, here.candidates))
    STARTED.append((session.finalists, names))
    if names == "broken" or (names == "fails" and STARTED.count((0, "fails")) == 1):
        return 9
    session.path("machine.json").write_text(json.dumps(MACHINE))
    clock = FakeClock()
    device = FakeDevice({"good": 10.0, "fails": 8.0, "cublas": 9.0}, clock)
    Campaign(
        session.table, session.folder, device,
        Builds(Immediately(), derive, "sm_90a"), clock, Recorder(), code(),
        finalists=session.finalists,
    ).run()  # fmt: skip
    return 0


def test_a_table_is_measured_though_a_worker_fails(
    in_threads: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    STARTED.clear()
    of = table(tmp_path, "good", "fails", sizes=(16,), baselines=["cublas"])
    made = Session(of, tmp_path / "out", fleet=Cluster(in_threads), measure=fake_measure)
    assert made.run(60) == 0
    (ours,) = (row for row in made.rows() if row.kind == "rise")
    assert ours.name == "fails" and {row.kind for row in made.rows()} == {"rise", "cublas"}
    assert len(made.rows()) == 2 and len(set(made.attempts())) == len(made.attempts()) > 2
    assert json.loads(made.path("machine.json").read_text()) == MACHINE
    assert Counter(STARTED[:-1]) == {(0, "good"): 1, (0, "fails"): 2}, "in parts, one of them again"
    assert STARTED[-1][0] > 0 and STARTED[-1][1] == "good,fails", "then all on one GPU"
    assert "its process ended with status 9; another worker takes it" in capsys.readouterr().out


def test_a_table_that_every_worker_fails_at_is_a_reported_failure(
    in_threads: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of = table(tmp_path, "broken", sizes=(16, 32, 48))
    made = Session(of, tmp_path / "out", fleet=Cluster(in_threads), measure=fake_measure)
    assert made.run(60) == 1 and made.rows() == []
    said = capsys.readouterr().out
    assert all(f"{case.key}: no worker: {NONE_LEFT}; nobody takes it" in said for case in of.cases)


def test_what_a_killed_worker_has_started_ends_with_it(address: str, tmp_path: Path) -> None:
    of = table(tmp_path, "good", sizes=(16,))
    made = Session(of, tmp_path / "out", measure=partial(killing, tmp_path))
    made.folder.mkdir()
    assert Cluster(address).together(made, inf) == 0
    assert made.path("machine.json").read_text() == "measured"
    first, second = (tmp_path / "started").read_text().split()
    assert first != second and has_ended(int(first))


def has_ended(process: int) -> bool:
    """Within ten seconds; its parent, which is gone, may not take note of it."""
    for _ in range(1000):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


RUNNING, STOPPED = threading.Event(), threading.Event()


def wait_or_not(wait: bool) -> tuple[bool, str]:
    """Until nobody wants it."""
    if wait:
        unwanted = bench.cluster.Cancelled()
        RUNNING.set()
        while not unwanted.is_set():
            threading.Event().wait(0.01)
        STOPPED.set()
    else:
        assert RUNNING.wait(10)
    return wait, ""


def test_a_task_that_nobody_waits_for_is_told(in_threads: str) -> None:
    """After Ctrl-C in the client."""
    RUNNING.clear()
    STOPPED.clear()
    with connected(in_threads) as client:
        client.wait_for_workers(WORKERS)
        ended = Desk(client, wait_or_not, iter([True, False])).ended()
        assert next(ended).task is False and not STOPPED.is_set()
        ended.close()
        assert STOPPED.wait(10)


def test_a_scheduler_that_stops_answering_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.cluster, "ANSWER", 0.5)
    deeds = (Deed(f"a{n}", 0, tmp_path) for n in range(5))
    cluster = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    with cluster, pytest.raises(UsageError, match="R0869"), connected(cluster.scheduler_address) as client:
        ended = Desk(client, do, deeds).ended()
        assert not next(ended).failure
        cluster.close()
        list(ended)


# --- a campaign of trials -----------------------------------------------------------------------------------


def test_every_trial_of_an_attack_has_an_outcome(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process or a worker that a trial kills is noticed; trials beside it are only lost with the worker."""
    monkeypatch.setattr(tests.attack.runner, "TASKS", 4)
    with connected(address) as client:
        found = dict(run_on(client, Attack("some", trials, right, count=10, seconds=60), 7))
    assert sorted(found) == [*range(7, 17)] and CRASHING < 11 <= KILLING < 15
    lost = {trial for trial, outcome in found.items() if outcome.verdict is Verdict.CRASH}
    assert lost == {CRASHING, 11, 12, 13, 14}
    assert all(found[trial].verdict is Verdict.RIGHT for trial in found.keys() - lost)


# --- no cluster ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "tcp://127.0.0.1:x", "magic://a:1"])
def test_an_address_that_does_not_answer_is_a_mistake_with_a_hint(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench.cluster, "ANSWER", 0.1)
    assert main(["bench", "square", "--cluster", address, "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "R0869" in said and "dask scheduler" in said and "Traceback" not in said


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"R0868(.|\n)*rise-lang\[cluster\]"), connected("tcp://127.0.0.1:1"):
        pass
