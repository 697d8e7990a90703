"""Timing on a clock of our own: who is cut, who goes on, how long it takes, who is before whom."""

from __future__ import annotations

import pytest

from bench.measure import COARSE, FEWEST, LEAST, ROUNDS, SETTLING, WARM_UP, coarse, in_rotation, survivors
from bench.statistics import Summary, summarise
from tests.bench.fakes import FakeClock, FakeTimed


def test_median_and_quartiles() -> None:
    assert summarise([3.0]) == Summary(3.0, 3.0, 3.0, 1)
    found = summarise([5.0, 1.0, 2.0, 4.0, 3.0])
    assert (found.lower, found.median, found.upper, found.spread) == (2.0, 3.0, 4.0, 2 / 3)


def test_an_outlier_does_not_move_the_median() -> None:
    assert summarise([1.0] * 14 + [1000.0]).median == 1.0


@pytest.mark.parametrize("microseconds", [2.0, 50.0, 3000.0])
def test_the_coarse_pass_takes_about_its_time(microseconds: float) -> None:
    clock = FakeClock()
    found = coarse(FakeTimed("a", microseconds, clock), clock)
    assert found.summary.median == pytest.approx(microseconds, rel=0.02)
    assert found.summary.samples >= LEAST
    one = 10 * microseconds / 1e6
    assert clock.now() <= WARM_UP + COARSE + (LEAST + 4) * one


def test_what_is_hopelessly_slow_is_sampled_twice_only() -> None:
    clock = FakeClock()
    timed = FakeTimed("a", 400.0, clock)
    assert coarse(timed, clock, best=100.0).cut
    assert timed.samples == 2
    assert not coarse(FakeTimed("a", 200.0, clock), clock, best=100.0).cut


def test_those_within_a_third_of_the_best_go_on() -> None:
    clock = FakeClock()
    times = [100.0, 120.0, 90.0, 130.0, 300.0]
    found = [coarse(FakeTimed(str(t), t, clock), clock) for t in times]
    assert [m.timed.name for m in survivors(found, 4)] == ["90.0", "100.0"]
    assert [m.timed.name for m in survivors(found, 1)] == ["90.0"]
    assert len(survivors(found[:2], 4)) == 2


def test_they_take_turns_each_round_in_another_order() -> None:
    clock = FakeClock()
    log: list[str] = []
    finalists = [FakeTimed(name, 10.0, clock, log=log) for name in "abc"]
    found = in_rotation(finalists, clock)
    assert [s.samples for s in found] == [ROUNDS] * 3
    rounds = [log[i : i + 3] for i in range(0, len(log), 3)]
    assert len(rounds) == ROUNDS + SETTLING
    assert all(sorted(each) == ["a", "b", "c"] for each in rounds)
    neighbours = {pair for each in rounds for pair in zip(each, each[1:], strict=False)}
    assert neighbours == {(a, b) for a in "abc" for b in "abc" if a != b}


def test_slow_kernels_have_fewer_rounds() -> None:
    clock = FakeClock()
    found = in_rotation([FakeTimed(name, 1e5, clock) for name in "ab"], clock)
    assert [s.samples for s in found] == [FEWEST] * 2
