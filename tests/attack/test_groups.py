"""A few of the groups that the attack draws, and a fault that it notices."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from tests.attack import groups
from tests.attack.groups import EPILOGUES, Groups, outcome
from tests.attack.outcome import Verdict

SEED = 20261126
SMALL = 150_000


def test_groups_are_multiplied_each_by_its_matrix() -> None:
    trial = next(t for t in (Groups(SEED + n, SMALL) for n in range(99)) if t.drawn[4])
    found = outcome(trial)
    assert found.verdict is Verdict.RIGHT, f"{found}\n{trial}"


def test_all_kinds_are_drawn() -> None:
    drawn = [trial.drawn for trial in islice(groups.groups(SEED), 60)]
    assert {0, 1} <= {rows for _, each, *_ in drawn for rows in each}
    assert {"cluster", "rest", "ping_pong"} <= {name for *_, made in drawn for name in made}
    assert any(not made for *_, made in drawn)
    types = {"f16" if "X: r.k.f16" in text else "bf16" for text, *_ in drawn}
    assert types == {"f16", "bf16"} and len(EPILOGUES) > 1


def test_a_wrong_result_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: Any) -> Any:
        return np.asarray(execute(*given)) + 1

    monkeypatch.setattr(groups, "execute", wrong)
    assert outcome(Groups(SEED, SMALL)).verdict is Verdict.WRONG
