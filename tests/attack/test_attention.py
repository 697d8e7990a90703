"""A few of the programs of attention that the attack draws, and a wrong kernel that it notices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from random import Random
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from tests.attack import through_auto
from tests.attack.attention import SMALL, TARGETS, Attention, outcome
from tests.attack.outcome import Verdict
from tests.support.nightly import every_other

SEED = 20261125


def drawn() -> Iterator[Attention]:
    random = Random(SEED)
    return (Attention(random.randrange(1 << 32), SMALL) for _ in count())


def test_programs_of_attention_compute_what_they_mean() -> None:
    """One for each target, with different results; in CI for one of them."""
    trials = {trial.drawn[2]: trial for trial in islice(drawn(), 6)}
    assert set(trials) == set(TARGETS)
    for trial in every_other(trials.values(), step=3):
        found = outcome(trial)
        assert found.verdict is Verdict.RIGHT, f"{found}\n{trial}"


def test_a_wrong_result_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = next(t for t in drawn() if "(q, i) => modifiedScores" in t.drawn[0] and t.drawn[3] == 0.25)

    def wrong(*given: Any) -> Any:
        return np.asarray(execute(*given)) + np.float32(0.01)

    monkeypatch.setattr(through_auto, "execute", wrong)
    assert outcome(trial).verdict is Verdict.WRONG
