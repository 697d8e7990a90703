"""A few of the batches that the attack draws, and faults that it notices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from random import Random
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from tests.attack import through_auto
from tests.attack.batches import SMALL, TARGETS, TIMES, Batch, outcome
from tests.attack.outcome import Verdict

SEED = 20261125


def drawn() -> Iterator[Batch]:
    random = Random(SEED)
    return (Batch(random.randrange(1 << 32), SMALL) for _ in count())


def test_batches_compute_what_they_mean_by_no_loops() -> None:
    trials = {trial.drawn[2]: trial for trial in islice(drawn(), 8)}
    assert set(trials) == set(TARGETS)
    for trial in trials.values():
        found = outcome(trial)
        assert found.verdict is Verdict.RIGHT, f"{found}\n{trial}"


def test_all_kinds_are_drawn() -> None:
    texts = [trial.drawn[0] for trial in islice(drawn(), 60)]
    for part in (
        *TIMES.values(),
        "gather",
        "generate",
        "|> transpose",
        "max(x, 0)",
        "a * s + b * c",
        "* d + r",
    ):
        assert any(part in text for text in texts), part


def test_a_wrong_result_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: Any) -> Any:
        return np.asarray(execute(*given)) + 1

    monkeypatch.setattr(through_auto, "execute", wrong)
    assert outcome(next(drawn())).verdict is Verdict.WRONG


def test_a_batch_that_loops_compute_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seeded fault: no program is found to be a batch. Tensor cores take no products of f32."""
    trial = next(t for t in drawn() if "=> x * y)" in t.drawn[0])
    monkeypatch.setattr("strategies.auto.batched", lambda *_, **__: None)
    assert outcome(trial).verdict is Verdict.MISSED
