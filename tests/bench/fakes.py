"""A device whose timings come from a model, on a clock that only its work moves."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.build import Built, Order
from bench.campaign import Limits, State
from bench.contest import Finalist, Tried, Variant, Verdict
from bench.measure import Timed
from bench.table import Candidate, Case, Source, Subject, Table
from rise.errors import LaunchError, StrategyError

CALLS = 10  # in a sample
MACHINE = {
    "device": "fake", "driver": "", "cuda": "", "multiprocessors": 1, "max_sm_mhz": 1, "l2_bytes": 1,
    "limits": {"tflops": None, "gb_s": None}, "versions": {}, "host": "",
}  # fmt: skip


@dataclass
class FakeClock:
    seconds: float = 0.0

    def now(self) -> float:
        return self.seconds


@dataclass
class FakeTimed:
    """So many microseconds a call, give or take 2 %, a fifth less while it is cool; samples are counted."""

    name: str
    microseconds: float
    clock: FakeClock
    noise: random.Random = field(default_factory=lambda: random.Random(1))
    samples: int = 0
    log: list[str] = field(default_factory=list)
    cool: float = 0.0

    def sample(self) -> float:
        self.samples += 1
        self.log.append(self.name)
        taken = self.microseconds * self.noise.uniform(0.98, 1.02)
        taken *= 0.8 if self.clock.now() < self.cool else 1.0
        self.clock.seconds += CALLS * taken / 1e6
        return taken


class Killed(BaseException):
    """The process ends here."""


@dataclass
class FakeDevice:
    """times: microseconds by name; a text in place of a number is what goes wrong.

    `wrong`: a wrong result. `fails`: an exception. `lost`: one after which the device does not answer.
    `kills`: the end of the process. cool: until when it is, seconds
    """

    times: Mapping[str, Any]
    clock: FakeClock
    name: str = "fake"
    limits: Limits = Limits(100.0, 1000.0)
    cool: float = 0.0
    runners: list[FakeRunner] = field(default_factory=list)

    def runner(self, case: Case) -> FakeRunner:
        if self.times.get(case.key) == "too large":
            raise MemoryError("too large")
        self.runners.append(FakeRunner(self))
        return self.runners[-1]

    def state(self) -> State:
        return State(1980, 500.0)

    def bytes(self, case: Case) -> int:
        return 1000


@dataclass
class FakeRunner:
    device: FakeDevice
    exact: bool = True
    alive: bool = True
    closed: bool = False
    filled: list[bool] = field(default_factory=list)

    def ours(self, built: Built) -> Variant:
        return Variant(built.candidate.series, str(built.candidate), built.kernel, "32 registers")

    def baseline(self, name: str) -> Sequence[Variant]:
        if self.device.times.get(name) == "missing":
            raise LaunchError("R0828", f"{name} is not installed")
        variants = [key for key in self.device.times if key.startswith(name + ":")] or [name]
        return [Variant(name, variant, None) for variant in variants]

    def fill(self, whole_numbers: bool) -> None:
        self.filled.append(whole_numbers)

    def check(self, variant: Variant) -> Verdict:
        match self.device.times[variant.name]:
            case "wrong":
                raise LaunchError("R0830", "5 in place of 4")
            case "wrong on random numbers" if not self.filled[-1]:
                raise LaunchError("R0830", "0.5 in place of 0.4")
            case "fails":
                raise RuntimeError("no such algorithm")
            case "lost":
                self.alive = False
                raise RuntimeError("illegal address")
            case "kills":
                raise Killed
        return Verdict(0.001, 0.01, "exact" if self.filled[-1] else "sampled")

    def timed(self, variant: Variant) -> Timed:
        device = self.device
        return FakeTimed(variant.name, device.times[variant.name], device.clock, cool=device.cool)

    def answers(self) -> bool:
        return self.alive

    def close(self) -> None:
        self.closed = True


class Immediately(Executor):
    """Does what it is asked for at once, and counts it."""

    def __init__(self) -> None:
        self.count = 0

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.count += 1
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:  # as an executor does
            future.set_exception(error)
        return future


class Never(Executor):
    """Does nothing of what it is asked for."""

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        return Future()


def derive(order: Order) -> Any:
    """`refused` is refused, everything else becomes a kernel."""
    if order.candidate.strategy == "refused":
        raise StrategyError("R0606", "it does not apply")
    return f"kernel of {order.candidate} at {order.sizes}"


@dataclass
class Recorder:
    """Progress, as a list."""

    said: list[str] = field(default_factory=list)

    def case(self, case: Case, position: int, count: int) -> None:
        self.said.append(f"{position}/{count} {case.key}")

    def step(self, kind: str, name: str) -> None:
        self.said.append(f"{kind} {name}")

    def finished(self, case: Case, finalists: Sequence[Finalist], tried: Sequence[Tried]) -> None:
        self.said.append(f"finished {case.key}")

    def skipped(self, case: Case, reason: str) -> None:
        self.said.append(f"skipped {case.key}: {reason}")


def table(
    folder: Path, *strategies: str, baselines: Sequence[str] = (), sizes: Sequence[int] = (64, 128)
) -> Table:
    candidates = tuple(Candidate(name) for name in strategies)
    cases = tuple({"m": n, "n": n, "k": n} for n in sizes)
    file = folder / "some.rise"
    file.touch()
    subject = Subject(Source(file), "f", "matmul", cases, candidates, tuple(baselines), {})
    return Table("some", "some products", (subject,))
