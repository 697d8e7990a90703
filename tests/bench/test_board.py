"""What is built is posted on a board, and taken by GPUs that work in turns: nothing here measures seconds."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.board import Board, Task
from bench.build import Built
from bench.fleet import by_candidate, length
from bench.table import Case
from tests.bench.fakes import table
from tests.support.nightly import in_turn

SEEDS = range(4)


@dataclass
class Gpu:
    """Takes from a board, and is busy for as many turns as what it takes is long."""

    board: Board
    starts: int
    busy: int = 0
    task: Task | None = None
    idle: int = 0
    began: int = 0
    done: list[Task] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)

    def turn(self, turn: int, lengths: dict[str, int]) -> None:
        if turn < self.starts:
            return
        if self.task is not None and self.busy == 0:
            self.board.finish(self.task, "" if not self.task.last else self.task.case.key)
            self.done.append(self.task)
            self.ended.append(turn)
            self.task = None
        if self.task is None and (taken := self.board.take()) is not None:
            self.task, self.busy, self.began = taken, sum(lengths[name] for name in taken.names), turn
        if self.task is None:
            self.idle += 1
        else:
            self.busy -= 1


def gpus(folder: Path, count: int, starts: int = 0) -> list[Gpu]:
    folder.mkdir(exist_ok=True)
    return [Gpu(Board(folder, str(number), count), starts) for number in range(count)]


def cases(folder: Path, count: int) -> list[Case]:
    return list(table(folder, "some", sizes=[16 * n for n in range(1, count + 1)]).cases)


def built(case: Case) -> list[Built]:
    return [Built(candidate, "a kernel") for candidate in case.subject.candidates]


def turns_of_a_table(folder: Path, count: int, durations: list[int], every: int) -> tuple[int, list[Gpu]]:
    """So many GPUs measure cases, of which one is built every few turns, the longest first."""
    workers, board = gpus(folder, count, starts=2), Board(folder)
    waiting = list(enumerate(sorted(durations, reverse=True)))
    of, lengths, turn = cases(folder, len(durations)), {}, 0
    while not board.finished:
        if waiting and turn % every == 0:
            number, duration = waiting.pop(0)
            board.last(number, of[number], built(of[number]))
            lengths[f"{number:06}.last"] = duration
            if not waiting:
                board.close()
        for gpu in workers:
            gpu.turn(turn, lengths)
        turn += 1
    return turn, workers


@pytest.mark.parametrize(
    ("seed", "count", "speedup"), [(seed, *gpus) for seed, gpus in in_turn(SEEDS, [(2, 1.8), (4, 3.4)])]
)
def test_several_gpus_take_turns_in_proportion(tmp_path: Path, seed: int, count: int, speedup: float) -> None:
    """Forty cases of different lengths, whose compilation keeps up with all GPUs."""
    print(f"seed {seed}")
    durations = [random.Random(seed).randint(8, 40) for _ in range(40)]
    alone, (single,) = turns_of_a_table(tmp_path / "one", 1, durations, 2)
    together, workers = turns_of_a_table(tmp_path / "several", count, durations, 2)
    assert len(single.done) == sum(len(gpu.done) for gpu in workers) == len(durations)
    assert alone >= speedup * together, (alone, together)
    assert all(gpu.idle <= max(durations) for gpu in workers), "only when the others do the last cases"


@pytest.mark.parametrize("seed", SEEDS)
def test_parts_are_divided_and_the_last_round_comes_after_them(tmp_path: Path, seed: int) -> None:
    """One case whose candidates are posted as they are built."""
    drawn = random.Random(seed)
    print(f"seed {seed}")
    count, candidates = drawn.choice([2, 3, 4]), drawn.randint(9, 24)
    (case,) = table(tmp_path, *(f"c{n}" for n in range(candidates)), baselines=["cublas"], sizes=[128]).cases
    workers, board = gpus(tmp_path / "board", count), Board(tmp_path / "board")
    pieces, lengths, turn, posted = by_candidate(case), {"000000.last": 5}, 0, 0
    while not board.finished:
        for _ in range(drawn.randint(0, 3)):
            if posted < candidates:
                board.part(0, posted, pieces[posted], built(pieces[posted])[0])
                lengths[f"000000.{posted:06}.part"] = drawn.randint(1, 4)
                posted += 1
                if posted == candidates:
                    board.last(0, case, built(case), apart=True)
                    board.close()
        for gpu in workers:
            gpu.turn(turn, lengths)
        turn += 1
    tasks = [task for gpu in workers for task in gpu.done]
    timed = Counter(str(made.candidate) for task in tasks if not task.last for made in task.builds)
    assert timed == Counter(f"c{n}" for n in range(candidates)), "each is timed once"
    assert all(task.last or not task.case.subject.baselines for task in tasks)
    (last,) = (task for task in tasks if task.last)
    assert last.apart and len(last.builds) == candidates and last.case.subject.baselines == ("cublas",)
    (decided,) = (gpu for gpu in workers if gpu.done[-1] is last)
    ends = [at for gpu in workers for at, task in zip(gpu.ended, gpu.done, strict=True) if not task.last]
    assert decided.began >= max(ends), "no GPU times a part any longer"
    assert min(len(gpu.done) for gpu in workers) >= 1, "all of them take some"


def test_of_many_parts_each_takes_fewer_and_fewer(tmp_path: Path) -> None:
    (case,) = table(tmp_path, *(f"c{n}" for n in range(17)), sizes=[128]).cases
    board = Board(tmp_path / "board")
    first, second = (gpu.board for gpu in gpus(tmp_path / "board", 2))
    for number, piece in enumerate(by_candidate(case)):
        board.part(0, number, piece, built(piece)[0])
    taken = []
    for one in (first, second) * 6:
        if (task := one.take()) is not None:
            taken.append(len(task.builds))
            one.finish(task)
    assert taken[0] == 5 and taken == sorted(taken, reverse=True) and taken[-1] == 1 and sum(taken) == 17


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_dies_everything_is_done_once(tmp_path: Path, seed: int) -> None:
    """Processes start again, and then have what they had; or are lost, and the others have it."""
    drawn = random.Random(seed)
    print(f"seed {seed}")
    workers, board = gpus(tmp_path / "board", 3), Board(tmp_path / "board")
    of, restarted, lost = cases(tmp_path, 23), 0, 0
    for number, case in enumerate(of):
        board.last(number, case, built(case))
    board.close()
    lengths = {f"{number:06}.last": drawn.randint(1, 6) for number in range(len(of))}
    turn = 0
    while not board.finished:
        for gpu in workers:
            gpu.turn(turn, lengths)
            if gpu.task is not None and drawn.random() < 0.1:
                had, gpu.task, gpu.busy = gpu.task, None, 0
                if len(workers) - lost > 1 and drawn.random() < 0.2:
                    gpu.board.release()
                    gpu.starts, lost = 10**9, lost + 1
                else:
                    again = gpu.board.take()
                    assert again is not None and again.names == had.names
                    gpu.task, gpu.busy, restarted = again, 1, restarted + 1
        turn += 1
    assert Counter(task.case.key for gpu in workers for task in gpu.done) == Counter(c.key for c in of)
    assert restarted > 0
    assert {line for _, _, line in board.lines()} == {case.key for case in of}


def test_what_is_longer_is_expected_to_take_longer(tmp_path: Path) -> None:
    few, many = (cases(tmp_path, 5), list(table(tmp_path, "a", "b", baselines=["c"], sizes=[16]).cases))
    assert sorted(few, key=length) == few and length(many[0]) == 3 * length(few[0])


def test_nothing_is_finished_before_the_board_is_closed(tmp_path: Path) -> None:
    (gpu,), board = gpus(tmp_path / "board", 1), Board(tmp_path / "board")
    assert not board.finished and gpu.board.take() is None
    (case,) = cases(tmp_path, 1)
    board.last(0, case, built(case))
    task = gpu.board.take()
    assert task is not None and board.count() == (0, 1)
    gpu.board.finish(task, "said")
    assert not board.finished and board.count() == (1, 1)
    board.close()
    assert board.finished and list(board.lines()) == [("000000.last", "0", "said")]
