"""A cluster shares work: two local workers of Dask, which are killed while they work."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import pytest

import bench.cluster
from bench.build import Builds, code
from bench.campaign import Campaign
from bench.cluster import DIED, NONE_LEFT, Cluster, Desk, connected
from bench.session import Session
from bench.supervise import LOOK
from rise.cli.main import main
from rise.errors import UsageError
from tests.attack.outcome import Outcome, Verdict
from tests.attack.runner import Attack, run_on
from tests.bench.fakes import MACHINE, FakeClock, FakeDevice, Immediately, Recorder, derive, table

distributed = pytest.importorskip("distributed")
WORKERS = 2


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Workers that are killed are started again, under another address."""
    with distributed.LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, silence_logs=100
    ) as cluster:
        yield cluster.scheduler_address


@dataclass(frozen=True)
class Deed:
    """name: of the task. deaths: of its workers, before it succeeds. folder: where they are counted."""

    name: str
    deaths: int
    folder: Path


def do(deed: Deed) -> tuple[str, str]:
    log = deed.folder / deed.name
    before = log.read_text().count("\n") if log.exists() else 0
    with log.open("a") as file:
        file.write(f"{os.getpid()}\n")
    if before < deed.deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    if deed.name == "raises":
        raise ZeroDivisionError
    return deed.name, ""


def test_no_task_is_lost_when_workers_are_killed(address: str, tmp_path: Path) -> None:
    deeds = [Deed("a", 0, tmp_path), Deed("once", 1, tmp_path), Deed("twice", 2, tmp_path)]
    deeds += [Deed(f"b{n}", 0, tmp_path) for n in range(5)]
    with connected(address) as client:
        ended = list(Desk(client, do, iter(deeds)).ended())
    last = {end.task.name: end for end in ended if end.last}
    assert sorted(last) == sorted(deed.name for deed in deeds) and len(ended) == len(deeds) + 2
    assert {name for name, end in last.items() if end.failure} == {"twice"}
    assert last["twice"].failure == DIED and last["once"].value == "once"
    started = {deed.name: (tmp_path / deed.name).read_text().split() for deed in deeds}
    assert len(set(started["once"])) == len(set(started["twice"])) == 2
    assert all(len(pids) == 1 for name, pids in started.items() if name not in ("once", "twice"))


def test_a_worker_that_fails_gets_no_other_task(address: str, tmp_path: Path) -> None:
    deeds = [Deed("raises", 0, tmp_path), *(Deed(f"c{n}", 0, tmp_path) for n in range(3))]
    with connected(address) as client:
        client.wait_for_workers(WORKERS)
        ended = list(Desk(client, do, iter(deeds), patience=0.3).ended())
    tries = [end for end in ended if end.task.name == "raises"]
    assert len({end.worker for end in tries}) == WORKERS and "ZeroDivisionError" in tries[-1].failure
    others = [end for end in ended if end.task.name != "raises"]
    assert Counter(end.task.name for end in others) == {f"c{n}": 1 for n in range(3)}
    assert NONE_LEFT in {end.failure for end in others}, "nobody is left, which is said of each task"


# --- a table ------------------------------------------------------------------------------------------------


def fake_measure(root: Path, session: Session, seconds: float) -> int:
    """As `bench.session.measure`. The first process that has the candidate `kills` kills its worker."""
    (here,) = session.table.subjects
    names = {str(candidate) for candidate in here.candidates}
    with (root / "started").open("a") as file:
        file.write(f"{os.getpid()} {os.getppid()} {session.finalists} {','.join(sorted(names))}\n")
    if "kills" in names and not (root / "killed").exists():
        (root / "killed").touch()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
    session.path("machine.json").write_text(json.dumps(MACHINE))
    clock = FakeClock()
    device = FakeDevice({"good": 10.0, "kills": 8.0, "cublas": 9.0}, clock)
    Campaign(
        session.table, session.folder, device,
        Builds(Immediately(), derive, "sm_90a"), clock, Recorder(), code(),
        finalists=session.finalists,
    ).run()  # fmt: skip
    return 0


def test_a_table_is_measured_though_a_worker_dies(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of = table(tmp_path, "good", "kills", sizes=(16,), baselines=["cublas"])
    made = Session(of, tmp_path / "out", fleet=Cluster(address), measure=partial(fake_measure, tmp_path))
    assert made.run(60) == 0
    (ours,) = (row for row in made.rows() if row.kind == "rise")
    assert ours.name == "kills" and {row.kind for row in made.rows()} == {"rise", "cublas"}
    assert made.path("machine.json").exists() and not list(made.folder.glob("gpu-*"))
    started = [line.split() for line in (tmp_path / "started").read_text().splitlines()]
    tried = Counter(names for _, _, _, names in started)
    assert tried == {"good": 1, "kills": 2, "good,kills": 1}, "in parts, one of them again, then together"
    assert [finalists == "0" for _, _, finalists, _ in started] == [True] * 3 + [False]
    first = next(int(pid) for pid, _, _, names in started if names == "kills")
    assert not Path(f"/proc/{first}").exists(), "what the dead worker has started ends with it"
    assert f"{DIED}; another worker takes it" in capsys.readouterr().out


def test_a_process_that_fails_is_a_reported_failure(address: str, tmp_path: Path) -> None:
    of = table(tmp_path, "good", sizes=(16, 32))
    made = Session(of, tmp_path / "out", fleet=Cluster(address, LOOK), measure=broken)
    assert made.run(60) == 1 and made.rows() == []


def broken(session: Session, seconds: float) -> int:
    return 9


# --- a campaign of trials -----------------------------------------------------------------------------------


def trials(seed: int) -> Iterator[int]:
    return count(seed)


def right(trial: int) -> Outcome:
    """The one that is 13 kills its process, and the one that is 60 the worker."""
    if trial in (13, 60):
        os.kill({13: os.getpid(), 60: os.getppid()}[trial], signal.SIGKILL)
    return Outcome(Verdict.RIGHT)


def test_every_trial_of_an_attack_has_an_outcome(address: str) -> None:
    attack = Attack("some", trials, right, count=90, seconds=60)
    with connected(address) as client:
        found = dict(run_on(client, attack, 7))
    assert sorted(found) == [*range(7, 97)]
    lost = {trial for trial, outcome in found.items() if outcome.verdict is Verdict.CRASH}
    assert lost == {13, *range(47, 87)} and {o.verdict for o in found.values()} == {
        Verdict.RIGHT,
        Verdict.CRASH,
    }


# --- no cluster ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "tcp://127.0.0.1:x", "magic://a:1"])
def test_an_address_that_does_not_answer_is_a_mistake_with_a_hint(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench.cluster, "ANSWER", 0.2)
    assert main(["bench", "square", "--cluster", address, "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "R0869" in said and "dask scheduler" in said and "Traceback" not in said


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"R0868(.|\n)*rise-lang\[cluster\]"), connected("tcp://127.0.0.1:1"):
        pass
