"""What long commands say meanwhile, on a clock that the test moves: nobody waits here."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rise import progress as module
from rise.progress import DELAY, PLAIN, Watcher, clock_time, progress, said, stepwise, watching
from tests.support.emulated import needs_compiler

GEMM = str(Path(__file__).parents[2] / "examples" / "gemm.rise")


@dataclass
class FakeClock:
    """step: seconds that pass whenever somebody looks."""

    now: float = 1000.0
    step: float = 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(module, "_ticking", lambda watcher, stop: None)  # the tests say when
    return FakeClock()


def watched(stream: io.StringIO, clock: FakeClock) -> tuple[Watcher, Callable[[], str]]:
    """A watcher, and what it has written since it was last asked."""
    seen = [0]

    def new() -> str:
        text = stream.getvalue()[seen[0] :]
        seen[0] += len(text)
        return text

    return Watcher(stream, stream.isatty(), clock), new


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_nothing_is_drawn_before_two_seconds_and_then_the_time_left(
    clock: FakeClock, stream: io.StringIO
) -> None:
    watcher, new = watched(stream, clock)
    stage = watcher.begin("checking")
    for done in (1, 2):
        clock.now += 0.95
        watcher.advance(stage, done, 20)
    clock.now += 0.09
    watcher.tick()
    assert clock.now < 1000 + DELAY and new() == ""
    clock.now += 0.02
    watcher.tick()
    # 18 steps of 0.95 seconds, less the 0.11 since the last
    assert "checking 2/20 · 0:17 left" in new()


def test_the_time_left_is_counted_down_between_steps_and_is_never_less_than_none(clock: FakeClock) -> None:
    watcher, new = watched(io.StringIO(), clock)
    stage = watcher.begin("checking")
    clock.now += 30
    watcher.advance(stage, 1, 3)
    assert new() == "checking 1/3 · 1:00 left\n"
    for passed, text in ((PLAIN, "0:50 left"), (PLAIN - 1, ""), (1, "0:40 left"), (100, "0:00 left")):
        clock.now += passed
        watcher.tick()
        assert text in (said := new()) and bool(said) == bool(text)


def test_what_cannot_say_how_far_it_is_is_asked_when_a_line_is_drawn(clock: FakeClock) -> None:
    watcher, new = watched(io.StringIO(), clock)
    done = [0]
    watcher.begin("thread", 8, lambda: done[0])
    for now, text in ((0, "0/8 · 0:10 so far"), (4, "4/8 · 0:20 left"), (4, "4/8 · 0:10 left")):
        clock.now += PLAIN
        done[0] = now
        watcher.tick()
        assert new() == f"thread {text}\n"


def test_where_nothing_is_counted_the_stage_and_how_long_it_took_are_shown(clock: FakeClock) -> None:
    watcher, new = watched(io.StringIO(), clock)
    outer = watcher.begin("gemm")
    clock.now += 62
    inner = watcher.begin("rewriting")
    assert new() == "gemm · rewriting · 1:02 so far\n"
    clock.now += 10
    watcher.advance(inner, 1, 2)
    assert new() == "gemm · rewriting 1/2 · 0:10 left\n"
    watcher.end(inner)
    watcher.end(outer)
    clock.now += 10
    watcher.tick()
    assert new() == ""


def test_on_a_terminal_the_line_is_removed_at_the_end_and_before_output(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    clock.step = 3
    with watching(clock=clock):
        with progress("before"):
            pass
        assert terminal.getvalue().endswith("\x1b[2K"), "erased"
        for number in stepwise("cases", range(3), 3):
            if number == 1:
                said("the first is done")
                assert terminal.getvalue().endswith("\x1b[2K"), "erased"
    assert "cases 2/3" in terminal.getvalue() and terminal.getvalue().endswith("\x1b[2K")
    assert capsys.readouterr().out == "the first is done\n"


@pytest.mark.parametrize(
    ("stream", "wanted", "shown"),
    [
        (Terminal, None, True), (io.StringIO, None, False), (io.StringIO, True, True),
        (Terminal, False, False), (io.StringIO, False, False), (Terminal, True, True),
    ],
)  # fmt: skip
def test_it_is_shown_on_a_terminal_or_where_it_is_asked_for(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, stream: Any, wanted: bool | None, shown: bool
) -> None:
    made = stream()
    monkeypatch.setattr(sys, "stderr", made)
    clock.step = 3
    with watching(wanted, clock), progress("rewriting") as advance:
        advance(1, 2)
    assert ("rewriting" in made.getvalue()) == shown == bool(made.getvalue())


def test_without_anybody_who_watches_it_costs_and_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(stepwise("cases", "abc", 3)) == ["a", "b", "c"]
    said("output")
    assert capsys.readouterr() == ("output\n", "")


def test_times_are_written_as_on_a_clock() -> None:
    assert [*map(clock_time, (0, 9.6, 61, 3599, 3661))] == ["0:00", "0:10", "1:01", "59:59", "1:01:01"]


def test_attacks_say_how_far_they_are(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.attack.__main__ import ATTACKS, attacked
    from tests.attack.outcome import Outcome, Verdict

    clock.step = PLAIN
    attack = replace(ATTACKS[0], count=3)
    with watching(True, clock):
        attacked(attack, lambda attack: [("", Outcome(Verdict.HANG)) for _ in range(attack.count)])
    shown = capsys.readouterr()
    assert f"{attack.name} 2/3 · " in shown.err and shown.err.count(" left") == 3
    assert shown.out.count("  hang") == 3


# --- the commands -------------------------------------------------------------------------------------------

PROGRAMS = """
def twice(xs: 7.f32) = xs |> map(x => x * 2)
def doubled(xs: 7.f32) = xs |> map(x => x + x)
def other(xs: 7.f32) = xs |> map(x => x + 1)
def named{n: Nat}(xs: n.f32) = xs |> map(x => x + x)
"""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["run", "F", "twice", "--backend", "interpret", "--check"],
         ("the interpreter runs twice", "the interpreter computes what is expected")),
        pytest.param(["run", "F", "twice", "--backend", "emulate"],
                     ("rewriting", "twice runs in the emulator · thread 0/"), marks=needs_compiler),
        (["check", "F"], ("reading F", "checking F 1/4", "checking F 3/4", " left")),
        (["check", "F", "F"], ("file 1/2", " left")),
        (["fmt", "--check", "F"], ("formatting F",)),
        (["run", "F", "twice", "--backend", "interpret", "--check=field"], ("checking 1/", " left")),
        (["derive", "F", "twice", "--check"], ("rewriting", "checking the steps 1/", " left")),
        (["check-eq", "F", "twice", "other"], ("proving", "comparing at small sizes", "simplifying")),
        (["search", "F", "named", "--size", "n=64", "--sketch", "map n/8 > map 8", "--rules", "tile=8"],
         ("searching `map n/8 > map 8` 1/12", " left")),
        (["rules", "mapFusion", "--prove"], ("proving mapFusion",)),
        (["view", "F", "twice", "--strategy", "default", "--out", "P"], ("rewriting", "writing twice 1/")),
    ],
)  # fmt: skip
def test_long_commands_say_what_they_do(
    rise: Any, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    command: list[str], said: tuple[str, ...],
) -> None:  # fmt: skip
    (tmp_path / "f.rise").write_text(PROGRAMS)
    clock.step = PLAIN
    monkeypatch.setattr(sys.modules["rise.cli.main"], "watching", partial(watching, clock=clock))
    files = {"F": str(tmp_path / "f.rise"), "P": str(tmp_path / "p.html")}
    called = rise(*(files.get(word, word) for word in command), "--progress")
    assert called.status in (0, 1) and "error" not in called.err, called.err
    for text in said:
        assert text in called.err.replace(files["F"], "F")
    silent = rise(*(files.get(word, word) for word in command))
    assert " so far" not in silent.err and " left" not in silent.err
    assert silent.out == called.out or "run" in command
