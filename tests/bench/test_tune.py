"""`rise tune` from the command line to what is remembered, on a fake device whose clock its work moves."""

from __future__ import annotations

import itertools
import json
import pickle
import re
import sys
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench import build, search, session, tune
from bench.build import Built, Order
from bench.campaign import Limits
from bench.contest import Variant
from bench.derive import program
from bench.machine import Machine
from bench.results import Attempt, read_attempts
from bench.search import searched
from bench.search_plot import bars
from bench.table import Candidate, Case, find, restrict
from codegen import execute, runtime
from rise.cli.main import main
from rise.errors import StrategyError
from rise.progress import watching
from strategies.search import store
from strategies.search.cost import UNKNOWN
from strategies.search.space import Point, Ranked
from strategies.search.store import point_of, read, user_file
from tests.bench.fakes import FakeClock, FakeDevice, FakeRunner, FakeTimed, Immediately

GEMM = str(Path(__file__).parents[2] / "examples" / "gemm.rise")
COMMAND = ["tune", GEMM, "matmul", "--size", "m=512", "n=512", "k=256", "--top", "6"]
ROWS = [*COMMAND, "--strategy", "rows"]  # which no model ranks: that takes a while
MACHINE = Machine("fake", "580", "13.0", 132, 1980, 2**25, Limits(1000.0, 4000.0), {}, "x")
FASTEST = 3  # which candidate, in the order of the model


@dataclass
class Bench:
    """A device; what goes wrong with which candidate, by number; after how many timings it is interrupted."""

    times: dict[str, Any] = field(default_factory=dict)
    wrong: dict[int, str] = field(default_factory=dict)
    interrupted: int | None = None
    timed: list[FakeTimed] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)

    def derive(self, order: Order) -> str:
        self.orders.append(order)
        number = len(self.times)
        if self.wrong.get(number) == "refused":
            self.times[str(order.candidate)] = None
            raise StrategyError("R0606", "it does not apply")
        default = 10.0 + abs(number - FASTEST)
        self.times.setdefault(str(order.candidate), self.wrong.get(number, default))
        return "a kernel"

    def device(self) -> Device:
        return Device(self.times, CLOCK, bench=self)


CLOCK = FakeClock()
OWN = """from rise.primitives.declare import declare

declare("twice", "{n: Nat} -> n.f32 -> n.f32", "Each twice.", lambda call, xs: xs, group="own",
        example=("twice(makeArray(1)(f32(1)))", "[1.0]"))
"""


@dataclass
class Device(FakeDevice):
    bench: Any = None
    target: str = "sm_90a"

    def machine(self) -> Machine:
        return MACHINE

    def runner(self, case: Case) -> FakeRunner:
        self.runners.append(Runner(self))
        return self.runners[-1]


class Runner(FakeRunner):
    def timed(self, variant: Variant) -> FakeTimed:
        of: Bench = self.device.bench  # type: ignore[attr-defined]
        if of.interrupted is not None and len(of.timed) == of.interrupted:
            raise KeyboardInterrupt
        of.timed.append(FakeTimed(variant.name, self.device.times[variant.name], self.device.clock))
        return of.timed[-1]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    of = Bench()
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "RISE_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped.jsonl")
    monkeypatch.setattr(execute, "present_target", lambda: "sm_90a")
    monkeypatch.setattr("bench.gpu.Gpu", of.device)
    monkeypatch.setattr("bench.derive.derive", of.derive)
    monkeypatch.setattr(tune, "derive", of.derive)
    monkeypatch.setattr(session, "SystemClock", lambda: CLOCK)

    @contextmanager
    def at_once(count: int | None = None, seconds: float | None = None) -> Any:
        yield Immediately()

    monkeypatch.setattr(tune, "processes", at_once)
    monkeypatch.setattr(session, "processes", at_once)
    monkeypatch.setattr(session, "alone", lambda action, *arguments, stop: action(*arguments))
    return of


def attempts(tmp_path: Path) -> dict[str, str]:
    (path,) = (tmp_path / "XDG_STATE_HOME").rglob("*.attempts.csv")
    return {a.name: a.status for a in read_attempts(path)}


def test_the_fastest_is_remembered_and_then_taken(
    made: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(COMMAND) == 0
    (record,) = read(user_file())
    fastest = list(made.times)[FASTEST]
    assert " ".join([record.strategy, *(f"{n}={v}" for n, v in record.parameters.items())]) == fastest
    assert record.microseconds == pytest.approx(10.0, rel=0.02)
    assert (record.name, dict(record.sizes), record.target, record.gpu) == (
        "matmul", {"m": 512, "n": 512, "k": 256}, "sm_90a", "fake",
    )  # fmt: skip
    assert (record.compiler, len(made.orders)) == (build.code(), 6)
    assert "remembered in" in capsys.readouterr().out
    assert (
        main(["compile", GEMM, "matmul", "--strategy", "tuned", "--stage", "low", "--size", *COMMAND[4:7]])
        == 0
    )
    assert f"note: tuned: {fastest}: remembered" in capsys.readouterr().err


def test_several_gpus_find_the_same_winner_while_candidates_are_compiled(
    made: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both GPUs time some, one of them compares the best; nothing is derived twice."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # each process sets it: here, they are threads
    made.wrong = {0: "refused", 1: "wrong"}
    assert main([*COMMAND, "--gpus", "0,1"]) == 0
    (record,) = read(user_file())
    assert (
        " ".join([record.strategy, *(f"{n}={v}" for n, v in record.parameters.items())]) == [*made.times][3]
    )
    assert len(made.orders) == 7
    timed = [read_attempts(path) for path in (tmp_path / "XDG_STATE_HOME").rglob("gpu-*/*.attempts.csv")]
    finals = [sum(a.status == "finalist" for a in each) for each in timed]
    assert sorted(finals)[-1] == 4 and sum(finals) == 4
    coarse = [a.name for each in timed for a in each if a.status in ("timed", "slow")]
    assert len(set(coarse)) == 5, "six build, of which one is wrong"
    out = capsys.readouterr().out
    assert "R0830 5 in place of 4" in out and "R0606 it does not apply" in out and "GPU " in out
    assert main([*COMMAND, "--gpus", "1"]) == 0
    assert len(made.orders) == 7 and len(read(user_file())) == 1, "it is done already"


def test_those_that_fail_are_named_with_parameters_and_reason(
    made: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made.wrong = {FASTEST: "wrong", 0: "refused", 1: "fails"}
    assert main(COMMAND) == 0
    names = list(made.times)
    out = capsys.readouterr().out
    for number, status, reason in (
        (FASTEST, "wrong", "R0830 5 in place of 4"), (0, "refused", "R0606 it does not apply"),
        (1, "failed", "no such algorithm"),
    ):  # fmt: skip
        assert any(status in x and names[number] in x and reason in x for x in out.splitlines()), status
    (record,) = read(user_file())
    assert f"block={record.parameters['block']}" in names[FASTEST - 1] + names[FASTEST + 1]
    assert len(made.orders) == 7, "another takes the place of the one that does not build"


# --- the picture --------------------------------------------------------------------------------------------


def test_the_picture_has_the_time_of_each_candidate_or_why_there_is_none(made: Bench, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    made.wrong = {0: "wrong"}
    for name, begins in (("p.svg", b"<?xml"), ("p.png", b"\x89PNG")):
        picture = tmp_path / name
        assert main([*COMMAND, "--top", "3", "--plot", str(picture)]) == 0
        assert picture.read_bytes().startswith(begins)
    text = (tmp_path / "p.svg").read_text(encoding="utf-8")
    for shown in ("matmul m=512 n=512 k=256", "> wrong<", "> 12.0", "cycles that the model predicts"):
        assert shown in text, shown
    labels = re.findall(r">(block=[^<]*)<", text)
    assert len(set(labels)) == 3 and all(len(label) < len(str(next(iter(made.times)))) for label in labels)


def test_bars_are_those_of_the_attempts_and_then_what_was_not_measured() -> None:
    a, b, c = (Candidate("rows", (("threads", "8"), ("stages", stages))) for stages in "123")
    ranked = Ranked(Point("rows", ()), replace(UNKNOWN, cycles=9.0))
    built = [(ranked, Built(each, None)) for each in (a, b, c)]
    tried = [Attempt("", "", "", kind, name, "timed", 5.0, 0.1, "", "") for kind, name in
             (("rise", str(b)), ("cublas", "x"), ("rise", str(a)))]  # fmt: skip
    found = bars(built, tried)
    assert [bar.label for bar in found] == ["stages=2", "cublas x", "stages=1", "stages=3"]
    assert [bar.cycles for bar in found] == [9.0, 0.0, 9.0, 9.0]
    assert [bar.status for bar in found] == ["timed"] * 3 + ["not measured"]


def test_another_suffix_is_refused_before_anything_is_measured(
    made: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*COMMAND, "--plot", "picture.pdf"]) == 2
    assert "R0003" in (said := capsys.readouterr().err) and ".png" in said
    assert made.orders == []


# --- on the way ---------------------------------------------------------------------------------------------


def test_on_the_way_it_says_how_far_it_is(
    made: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looked = itertools.count(0, 10)
    monkeypatch.setattr("rise.progress._ticking", lambda watcher, stop: None)
    watched = partial(watching, clock=lambda: float(next(looked)))
    monkeypatch.setattr(sys.modules["rise.cli.main"], "watching", watched)
    assert main([*ROWS, "--progress"]) == 0
    lines = capsys.readouterr().err.splitlines()
    for text in ("compiling 3/6", "checking 2/6", "timing 5/6", "comparing the best 9/"):
        assert any(re.search(rf"{text}.* · [0-9:]+ left$", line) for line in lines), text
    assert any(line.startswith("cases 0/1 · matmul m=512 n=512 k=256 · ") for line in lines)


def test_where_none_is_right_nothing_is_remembered(made: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    made.wrong = dict.fromkeys(range(6), "wrong")
    assert main(COMMAND) == 1
    assert "R0035: none of 6 candidates is correct" in capsys.readouterr().err
    assert not user_file().exists()


def test_an_interrupted_search_goes_on_where_it_was(made: Bench, tmp_path: Path) -> None:
    made.interrupted = 4
    assert main(COMMAND) == 130
    assert not user_file().exists()
    assert list(attempts(tmp_path).values()) == ["timed"] * 4
    first, made.timed, made.interrupted = made.timed, [], None
    assert main(COMMAND) == 0
    samples = {each.name: each.samples for each in made.timed}
    known = [each.name for each in first]
    finalists = [name for name, status in attempts(tmp_path).items() if status == "finalist"]
    assert len(finalists) == 4 and len(samples) == 6
    assert any(samples[name] == 0 for name in known if name not in finalists) or set(known) <= set(finalists)
    assert all(samples[name] > 50 for name in samples if name not in known)
    assert all(samples[name] < 50 for name in known)  # only the last round
    assert len(made.orders) == 6  # what was compiled is kept
    (record,) = read(user_file())
    assert record.microseconds == pytest.approx(10.0, rel=0.02)


def test_a_search_that_is_done_is_not_done_again(made: Bench) -> None:
    assert main(COMMAND) == 0
    count = len(made.timed)
    assert main(COMMAND) == 0
    assert len(made.timed) == count
    assert len(read(user_file())) == 1


def test_another_file_and_json(made: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.jsonl"
    assert main([*COMMAND, "--store", str(path), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert printed == json.loads(read(path)[0].line)
    assert not user_file().exists()


# --- without a GPU, and what cannot be ----------------------------------------------------------------------


def test_without_a_gpu_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(execute, "present_target", lambda: None)
    assert main(COMMAND) == 1
    assert "no GPU to time candidates on\nhint: `--dry-run`" in capsys.readouterr().err


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No GPU, and kernels are compiled in this process."""
    monkeypatch.setenv("RISE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(execute, "present_target", lambda: None)

    @contextmanager
    def processes(count: int | None = None, seconds: float | None = None) -> Any:
        yield Immediately()

    monkeypatch.setattr(tune, "processes", processes)


@pytest.mark.usefixtures("at_once")
@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
def test_a_dry_run_ranks_and_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    command = [*COMMAND[:7], "--top", "2", "--dry-run"]
    assert main([*command, "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)
    assert [line["cycles"] for line in lines] == sorted(line["cycles"] for line in lines)
    assert all(32 <= line["registers"] <= 255 and line["spilled"] == 0 for line in lines)
    assert all(0 < line["shared_bytes"] <= 232448 for line in lines)
    assert main(command) == 0
    assert lines[0]["candidate"] in capsys.readouterr().out


def test_a_strategy_without_a_model_is_tried_from_its_defaults_on(made: Bench) -> None:
    command = [*COMMAND[:-2], "--strategy", "rows", "--top", "6"]
    assert main(command) == 0
    names = [str(order.candidate) for order in made.orders]
    assert names[0] == "rows" and all(name.count("=") <= 1 for name in names)
    (record,) = read(user_file())
    assert record.strategy == "rows" and str(record.parameters) == "{'threads': '128'}"


def test_parameters_that_are_set_are_not_searched(made: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--set", "stages=3", "block=128,128,64"]) == 0
    names = [str(order.candidate) for order in made.orders]
    assert len(set(names)) == 6
    assert all("stages=3" in name and "block=128,128,64" in name for name in names)
    assert len({name.partition("warp=")[2].split()[0] for name in names}) > 1, "others are"


def test_of_a_declared_space_too(made: Bench) -> None:
    assert main([*ROWS, "--top", "3", "--set", "threads=64"]) == 0
    names = [str(order.candidate) for order in made.orders]
    assert len(set(names)) == 3 and all("threads=64" in name for name in names)


def test_another_search_of_the_same_program_is_measured(made: Bench) -> None:
    assert main(ROWS) == 0
    count = len(made.timed)
    assert main([*ROWS, "--set", "threads=64"]) == 0
    assert len(made.timed) > count
    assert read(user_file())[-1].parameters["threads"] == "64"


@pytest.mark.usefixtures("own_rules")
def test_what_a_program_imports_and_declares_reaches_those_who_build(made: Bench, tmp_path: Path) -> None:
    own, folder, file = tmp_path / "doubling.py", tmp_path / "shared", tmp_path / "own.rise"
    folder.mkdir()
    (folder / "sums.rise").write_text("def sums(xs: 8.f32) = xs |> twice")
    own.write_text(OWN)
    file.write_text('import "sums.rise"\ndef f(xs: 8.f32) = sums(xs)')
    further = ["--load", str(own), "--import-path", str(folder)]
    assert main(["tune", str(file), "f", "--strategy", "elementwise", "--top", "2", *further]) == 0
    for order in made.orders:
        assert order.source.imports == (str(folder),) and order.source.modules == (str(own),)
        assert program(order.source)["f"].name == "f"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--size", "m=64", "n=64", "k=64", "--set", "stage=3"], "R0011"),
        (["--size", "m=64", "n=64", "k=64", "--strategy", "auto"], "R0032: the search space of"),
        (["--size", "m=64", "n=64", "k=64", "--scalar", "x=fast", "--dry-run"], "R0005"),
    ],
)
def test_what_cannot_be_searched(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", GEMM, "matmul", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_product_that_nothing_is_tried_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", GEMM, "matmul_tf32", *COMMAND[3:7], "--target", "sm_75"]) == 2
    said = "R0034: nothing is tried of `tensor_core` for products of `tf32` on sm_75"
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("at_once")
@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
def test_what_does_not_build_is_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of 3 elements cannot be copied 16 bytes at a time, so no candidate for sm_80 does that."""
    command = [*COMMAND[:4], "m=7", "n=5", "k=3", "--top", "2", "--dry-run", "--json", "--target", "sm_80"]
    assert main(command) == 0
    shown = capsys.readouterr()
    candidates = [line["candidate"] for line in json.loads(shown.out)]
    assert len(candidates) == 2 and all("vector=1 cp_async=false" in each for each in candidates)


def test_where_none_builds_the_reasons_are_said(
    at_once: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    orders: list[Order] = []

    def refused(order: Order) -> str:
        orders.append(order)
        raise StrategyError("R0606", f"it does not apply to {len(orders)}")

    monkeypatch.setattr(tune, "derive", refused)
    assert main([*COMMAND, "--dry-run"]) == 1
    said = capsys.readouterr().err
    assert f"R0035: of {len(orders)} candidates none builds: passed over {len(orders)}: " in said
    assert f"{len(orders)} × R0606 it does not apply to 1" in said
    assert len(orders) <= 24


# --- tables whose candidates are searched -------------------------------------------------------------------


class Elsewhere(Immediately):
    """With what another process would be sent."""

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        return super().submit(*pickle.loads(pickle.dumps((function, *arguments))), **named)


def test_a_table_can_ask_what_is_remembered_and_the_model(
    made: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = restrict(find("rise_gemm_bt"), limit=4)
    by_model = searched(table, "model", 5, "sm_90a")
    assert [case.key for case in by_model.cases] == [case.key for case in table.cases]
    assert {len(case.subject.candidates) for case in by_model.cases} == {5}
    assert len({case.subject.candidates for case in by_model.cases}) == 4
    with monkeypatch.context() as patched:
        patched.setattr(search, "MANY", 4)  # then by workers
        patched.setattr(search, "processes", lambda jobs: nullcontext(Elsewhere()))
        assert searched(table, "model", 5, "sm_90a") == by_model
    assert searched(table, "table", 5, "sm_90a") is table
    case = by_model.cases[0]
    assert (
        main(["tune", str(case.subject.file), "gemmBt", "--size", "m=256", "n=256", "k=256", "--top", "5"])
        == 0
    )
    tuned = searched(table, "tuned", 5, "sm_90a")
    assert [len(each.subject.candidates) for each in tuned.cases] == [1] + [5] * (len(table.cases) - 1)
    assert str(tuned.cases[0].subject.candidates[0]) == list(made.times)[FASTEST]
    assert searched(table, "model", 5, "sm_90a") == by_model  # whatever is remembered


def test_a_table_remembers_what_is_fastest_of_each_case(
    made: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then the winners are candidates again, beside the model's."""
    table, kept = restrict(find("rise_gemm_bt"), limit=2), tmp_path / "kept.jsonl"
    asked = ["bench", "rise_gemm_bt", "--limit", "2", "--only", "rise", "--top", "3", "--store", str(kept)]
    assert main([*asked, "--candidates", "model", "--remember", "--out", str(tmp_path / "first")]) == 0
    assert "2 of 2 cases remembered anew" in capsys.readouterr().out
    first = read(kept)
    assert [record.sizes for record in first] == [case.sizes for case in table.cases]
    for record, case in zip(first, searched(table, "model", 3, "sm_90a").cases, strict=True):
        times = {str(each): made.times[str(each)] for each in case.subject.candidates}
        assert str(point_of(record)) == min(times, key=lambda name: times[name]) and len(times) == 3
    both = searched(table, "both", 3, "sm_90a", str(kept))
    assert [str(case.subject.candidates[0]) for case in both.cases] == [str(point_of(r)) for r in first]
    assert {len(case.subject.candidates) for case in both.cases} <= {3, 4}
    assert main([*asked, "--candidates", "both", "--remember", "--out", str(tmp_path / "first")]) == 0
    assert "0 of 2 cases remembered anew" in capsys.readouterr().out and read(kept) == first


def test_programs_that_no_model_ranks_keep_their_candidates() -> None:
    table = find("launch")
    assert (
        searched(table, "model", 5, "sm_90a").cases[0].subject.candidates == table.cases[0].subject.candidates
    )
