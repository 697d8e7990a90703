"""Wrong rules: the property has to refute each of them, or it would not find such a mistake in the library.

`pytest -s` prints how many instances the property needed; `python benchmarks/kill_table.py` measures it.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase

from rewrites.rule import RULES
from rise.expr import size
from rise.testing import Counterexample, Evidence, assert_sound
from tests.rewrites.mutants import MUTANTS, Mutant, declared, hides, seeded

MOST = 200  # instances; the docs have how many five seeds need


def refuted(mutant: Mutant, limit: int = 400) -> tuple[int, Counterexample]:
    """How many instances the property needed to see two different results, and the last of them."""
    wrong, evidence = declared(mutant), Evidence()
    options = {"max_examples": limit, "phases": [Phase.generate], "derandomize": True}
    with (
        seeded(mutant),
        pytest.raises(Counterexample, match=r" differ \(seed \d+\)| escape|not well typed") as caught,
    ):
        assert_sound(wrong, mutant.hint, share=0.0, hide=hides(mutant), evidence=evidence, **options)
    return evidence.examples, caught.value


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.what)
def test_a_wrong_rule_is_refuted(mutant: Mutant) -> None:
    needed, counterexample = refuted(mutant)
    print(f"{mutant.what}: {needed} instances, shrunk to {size(counterexample.shrunk)} nodes")
    assert 0 < needed <= MOST
    assert size(counterexample.shrunk) <= size(counterexample.term)


def test_there_are_enough_mutants() -> None:
    assert len({m.what for m in MUTANTS}) == len(MUTANTS) >= 30


def test_declaring_mutants_leaves_no_trace() -> None:
    before = dict(RULES)
    declared(MUTANTS[3])
    assert before == RULES
