"""A table from its first case to its last, on a fake device: what is written, resumed, left, lost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.build import Builds
from bench.campaign import Campaign
from bench.contest import ContextLost
from bench.measure import COARSE, WARM_UP
from bench.results import Attempt, Row, append, latest, read_attempts, read_rows
from bench.supervise import LOST, RESTARTS, alone, supervise
from bench.table import Table
from rise.errors import LaunchError, RiseError, UsageError
from tests.bench.fakes import FakeClock, FakeDevice, Immediately, Killed, Never, Recorder, derive, table

ALL = {"good": 10.0, "better": 9.0, "slow": 20.0, "hopeless": 100.0, "cublas": 8.0}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RISE_CACHE_DIR", str(tmp_path / "cache"))


def campaign(folder: Path, of: Table, times: dict[str, Any], **options: Any) -> Campaign:
    clock = FakeClock()
    builds = Builds(options.pop("executor", Immediately()), derive, "sm_90a")
    code = options.pop("code", "abc")
    device = FakeDevice(times, clock, cool=options.pop("cool", 0.0))
    return Campaign(of, folder, device, builds, clock, Recorder(), code, **options)


def statuses(made: Campaign) -> dict[str, str]:
    return {a.name: a.status for a in read_attempts(made.attempts_path)}


def test_every_kind_has_a_row_and_everyone_an_attempt(tmp_path: Path) -> None:
    of = table(tmp_path, "good", "better", "slow", "hopeless", "refused", baselines=["cublas"])
    made = campaign(tmp_path, of, ALL)
    made.run()
    rows = read_rows(made.rows_path)
    assert [(r.case, r.kind, r.name) for r in rows] == [
        (f"f m={n} n={n} k={n}", kind, name)
        for n in (64, 128)
        for kind, name in (("rise", "better"), ("cublas", "cublas"))
    ]
    assert statuses(made) == {
        "good": "finalist", "better": "finalist", "slow": "timed", "hopeless": "slow",
        "refused": "refused", "cublas": "finalist",
    }  # fmt: skip
    assert all(runner.closed for runner in made.device.runners)  # type: ignore[attr-defined]
    assert made.journal.running() is None
    assert "R0606" in next(a.reason for a in read_attempts(made.attempts_path) if a.name == "refused")


def test_the_figures_of_a_row(tmp_path: Path) -> None:
    made = campaign(tmp_path, table(tmp_path, "better", baselines=["cublas"], sizes=[128]), ALL)
    made.run()
    ours, theirs = read_rows(made.rows_path)
    assert ours.median_us == pytest.approx(9.0, rel=0.02)
    assert ours.tflops == pytest.approx(2 * 128**3 / ours.median_us / 1e6)
    assert ours.gb_s == pytest.approx(1000 / ours.median_us / 1e3)
    assert ours.fraction == pytest.approx(ours.tflops / 100)
    assert (ours.ratio, theirs.ratio) == (1.0, theirs.median_us / ours.median_us)
    assert (ours.checked, ours.error, ours.sm_mhz) == ("exact, sampled", 0.001, 1980)


@pytest.mark.parametrize(
    ("how", "status", "text"),
    [
        ("wrong", "wrong", "5 in place of 4"),
        ("wrong on random numbers", "wrong", "0.5 in place"),
        ("fails", "failed", "RuntimeError: no such algorithm"),
    ],
)
def test_one_that_goes_wrong_is_named_and_the_rest_goes_on(
    tmp_path: Path, how: str, status: str, text: str
) -> None:
    made = campaign(tmp_path, table(tmp_path, "good", "bad", baselines=["cublas"]), {**ALL, "bad": how})
    made.run()
    assert statuses(made) == {"good": "finalist", "bad": status, "cublas": "finalist"}
    assert text in next(a.reason for a in read_attempts(made.attempts_path) if a.name == "bad")
    assert len(read_rows(made.rows_path)) == 4


def test_a_library_that_is_missing_is_named(tmp_path: Path) -> None:
    made = campaign(tmp_path, table(tmp_path, "good", baselines=["torch"]), {**ALL, "torch": "missing"})
    made.run()
    assert statuses(made) == {"good": "finalist", "torch": "failed"}
    assert {r.kind for r in read_rows(made.rows_path)} == {"rise"}


def test_of_the_variants_of_a_baseline_the_best_is_in_the_table(tmp_path: Path) -> None:
    times = {**ALL, "cublasLt:0": 8.0, "cublasLt:1": 7.0, "cublasLt:2": "wrong"}
    made = campaign(tmp_path, table(tmp_path, "good", baselines=["cublasLt"]), times)
    made.run()
    assert {r.name for r in read_rows(made.rows_path)} == {"good", "cublasLt:1"}
    assert [statuses(made)[f"cublasLt:{n}"] for n in range(3)] == ["finalist", "finalist", "wrong"]


def test_who_is_timed_while_the_gpu_is_cool_does_not_win_by_it(tmp_path: Path) -> None:
    times = {"first": 11.0, "second": 11.2, "third": 10.0, "fourth": 10.6, "fifth": 10.7}
    made = campaign(tmp_path, table(tmp_path, *times, sizes=[128]), times, cool=2 * (WARM_UP + COARSE))
    made.run()
    coarse = {a.name: a.median_us for a in read_attempts(made.attempts_path) if a.status == "timed"}
    assert sorted(coarse, key=coarse.__getitem__)[:2] == ["first", "second"]  # else this would show nothing
    (row,) = read_rows(made.rows_path)
    assert row.name == "third" and row.median_us == pytest.approx(10.0, rel=0.02)
    assert [name for name, status in statuses(made).items() if status == "finalist"] == ["third", "fourth"]


def test_a_case_without_any_kernel_still_has_its_baselines(tmp_path: Path) -> None:
    made = campaign(tmp_path, table(tmp_path, "refused", baselines=["cublas"]), ALL)
    made.run()
    rows = read_rows(made.rows_path)
    assert [(r.kind, r.ratio) for r in rows] == [("cublas", 0.0)] * 2


def test_a_case_without_anything_is_no_mistake(tmp_path: Path) -> None:
    made = campaign(tmp_path, table(tmp_path, "refused"), ALL)
    made.run()
    assert read_rows(made.rows_path) == []


def test_a_case_that_the_device_has_no_memory_for_is_skipped(tmp_path: Path) -> None:
    times = {**ALL, "f m=64 n=64 k=64": "too large"}
    made = campaign(tmp_path, table(tmp_path, "good"), times)
    made.run()
    assert "skipped f m=64 n=64 k=64: too large" in made.progress.said  # type: ignore[attr-defined]
    assert len(read_rows(made.rows_path)) == 1


# --- resuming ---------------------------------------------------------------------------------------------


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    of = table(tmp_path, "good")
    campaign(tmp_path, of, ALL).run()
    before = (tmp_path / "some.csv").read_text()
    again = Immediately()
    campaign(tmp_path, of, ALL, executor=again).run()
    assert (tmp_path / "some.csv").read_text() == before
    assert again.count == 0


def test_another_compiler_or_device_is_measured_anew(tmp_path: Path) -> None:
    of = table(tmp_path, "good", sizes=[64])
    campaign(tmp_path, of, ALL).run()
    campaign(tmp_path, of, {**ALL, "good": 5.0}, code="def").run()
    rows = read_rows(tmp_path / "some.csv")
    assert [r.code for r in rows] == ["abc", "def"]
    made = campaign(tmp_path, of, ALL)
    made.device = replace(made.device, name="other")  # type: ignore[type-var]
    made.run()
    assert len(read_rows(tmp_path / "some.csv")) == 3


def test_the_report_takes_the_last_measurement_of_each_case() -> None:
    def row(case: str, date: str) -> Row:
        return Row(
            date, "d", "c", case, "rise", "n", 1.0, 1.0, 1.0, 1.0, 1, 1.0, 1.0, "copy", 0.0, 0.0, 0.0, 0.0,
            "", 0, 0.0,
        )  # fmt: skip

    rows = [row("a", "1"), row("b", "1"), row("a", "2")]
    assert latest(rows) == [row("b", "1"), row("a", "2")]


def test_results_of_another_form_are_refused(tmp_path: Path) -> None:
    (tmp_path / "some.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match="R0864"):
        campaign(tmp_path, table(tmp_path, "good"), ALL).run()


def test_a_file_that_another_process_has_just_made_has_no_lines(tmp_path: Path) -> None:
    """It is there before its header is: whoever looks then is not told that it has another format."""
    path = tmp_path / "some.attempts.csv"
    path.touch()
    assert read_attempts(path) == []
    append(path, [Attempt("c", "d", "f n=1", "rise", "good", "timed", 1.0, 0.1, "", "")])
    assert len(read_attempts(path)) == 1


def test_with_no_time_left_cases_are_left_and_named(tmp_path: Path) -> None:
    of = table(tmp_path, "good", sizes=range(1, 100))
    made = campaign(tmp_path, of, ALL, deadline=0.4)
    made.run()
    assert 2 < len(read_rows(made.rows_path)) < 20
    assert len(made.left) + len(read_rows(made.rows_path)) == 99
    assert made.clock.now() <= 0.4, "a case is begun only where there is time for one as long as the longest"
    rest = campaign(tmp_path, of, ALL)
    rest.run()
    assert len(read_rows(made.rows_path)) == 99


def test_what_is_not_compiled_in_time_is_refused(tmp_path: Path) -> None:
    made = campaign(tmp_path, table(tmp_path, "good", sizes=[64]), ALL, executor=Never(), deadline=0.01)
    made.run()
    (attempt,) = read_attempts(made.attempts_path)
    assert (attempt.status, attempt.reason) == ("refused", "no time was left to compile it")


def test_kernels_are_built_once_and_refusals_are_kept(tmp_path: Path) -> None:
    calls = []

    def counting(order: Any) -> Any:
        calls.append(order)
        return derive(order)

    of = table(tmp_path, "good", "refused")
    for _ in range(2):
        builds = Builds(Immediately(), counting, "sm_90a")
        builds.start(of.cases)
        for case in of.cases:
            assert len(builds.of(case)) == 2
    assert len(calls) == 4
    (tmp_path / "some.rise").write_text("// another program")
    builds.start(of.cases)
    assert len(calls) == 8


# --- crashes ----------------------------------------------------------------------------------------------


def supervised(tmp_path: Path, of: Table, times: dict[str, Any], seconds: float = 100.0) -> tuple[int, int]:
    """Exit status, and how often the worker was started."""
    started = 0

    def start(left: float) -> int:
        nonlocal started
        started += 1
        assert left == seconds
        try:
            made.run()
        except ContextLost:
            return LOST
        except Killed:
            return -11
        return 0

    made = campaign(tmp_path, of, times)
    status = supervise(start, made.journal, made.attempts_path, "abc", lambda: "fake", lambda: seconds)
    return status, started


@pytest.mark.parametrize(("how", "reason"), [("lost", "stopped answering"), ("kills", "status -11")])
def test_one_that_takes_the_process_with_it_is_left_out(tmp_path: Path, how: str, reason: str) -> None:
    of = table(tmp_path, "good", "bad", baselines=["cublas"])
    assert supervised(tmp_path, of, {**ALL, "bad": how}) == (0, 3), "once for each case, and once to the end"
    crashed = [a for a in read_attempts(tmp_path / "some.attempts.csv") if a.status == "crashed"]
    assert [(a.kind, a.name) for a in crashed] == [("rise", "bad")] * 2
    assert reason in crashed[0].reason
    assert {(r.kind, r.name) for r in read_rows(tmp_path / "some.csv")} == {
        ("rise", "good"),
        ("cublas", "cublas"),
    }


def test_a_baseline_that_crashes_is_left_out_too(tmp_path: Path) -> None:
    of = table(tmp_path, "good", baselines=["cublas"], sizes=[64])
    assert supervised(tmp_path, of, {**ALL, "cublas": "kills"}) == (0, 2)


def test_of_a_baseline_only_the_variant_that_crashes_is_left_out(tmp_path: Path) -> None:
    of = table(tmp_path, "good", baselines=["cublasLt"], sizes=[64])
    assert supervised(tmp_path, of, {**ALL, "cublasLt:0": "kills", "cublasLt:1": 7.0}) == (0, 2)
    assert {r.name for r in read_rows(tmp_path / "some.csv")} == {"good", "cublasLt:1"}


def test_a_call_that_is_wrong_is_not_begun_again(tmp_path: Path) -> None:
    made = campaign(tmp_path, table(tmp_path, "good"), ALL)
    starts: list[Any] = []

    def start(left: float) -> int:
        starts.append(left)
        return 2

    assert supervise(start, made.journal, made.attempts_path, "abc", lambda: "fake", lambda: 9.0) == 2
    assert len(starts) == 1


def leave_behind(left: Path) -> int:
    """Starts a process that would write a file after this one has ended."""
    child = f"import time; time.sleep(1); open({str(left)!r}, 'w')"
    subprocess.Popen([sys.executable, "-c", child])
    os._exit(LOST)


def test_what_a_worker_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    """A process that compiles, when the one that measures is killed."""
    left = tmp_path / "left"
    assert alone(leave_behind, left) == LOST
    time.sleep(1.5)
    assert not left.exists()


def refuse(error: type[RiseError]) -> int:
    raise error("R0822", "there is no GPU")


def test_a_mistake_in_a_worker_is_a_message_and_an_exit_status(capfd: pytest.CaptureFixture[str]) -> None:
    assert (alone(refuse, LaunchError), alone(refuse, UsageError)) == (1, 2)
    shown = capfd.readouterr().err
    assert shown.count("R0822: there is no GPU") == 2 and "Traceback" not in shown


def test_it_ends_where_everything_crashes(tmp_path: Path) -> None:
    of = table(tmp_path, *(f"bad{i}" for i in range(RESTARTS + 5)), sizes=[64])
    times = {f"bad{i}": "kills" for i in range(RESTARTS + 5)}
    assert supervised(tmp_path, of, times) == (-11, RESTARTS)


def test_results_survive_being_written_and_read(tmp_path: Path) -> None:
    attempt = Attempt("c", "d", "a case", "rise", 'b="1,2"', "failed", 0.1, 0.2, "", "line, with, commas")
    append(tmp_path / "x.csv", [attempt])
    append(tmp_path / "x.csv", [attempt])
    assert read_attempts(tmp_path / "x.csv") == [attempt, attempt]
