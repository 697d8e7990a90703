"""Wrong variants of the library's rules: the property that all rules have to satisfy refutes each.

They are well typed, most for square arrays or equal types by chance. `test_mutants.py` has others, for the
property of `rise.testing`.
"""

from __future__ import annotations

import re

import pytest

from rewrites.hints import HINTS, REDUCTION
from rewrites.rule import RULES, Rule, rule
from rise.testing import Counterexample, Evidence
from tests.rewrites.mutants import undeclared
from tests.rewrites.soundness import assert_sound
from tests.rewrites.wrong_rules import WRONG

REDUCTIONS = {"a scan of blocks that counts its own block"}


def declared(what: str, left: str, right: str) -> Rule:
    with undeclared():
        return rule(
            f"wrong: {what}", left, right, exact=False, sizes=("p",) if "padEmpty(p)" in right else ()
        )


def refuted(wrong: Rule, limit: int = 100) -> tuple[int, Counterexample]:
    """How many instances it took to see two different results."""
    for count in range(1, limit + 1):
        try:
            assert_sound(wrong, count, start=count - 1)
        except Counterexample as counterexample:
            return count, counterexample
    raise AssertionError(f"`{wrong.name}` was not refuted by {limit} instances")


@pytest.mark.parametrize(("what", "left", "right"), WRONG, ids=[w[0] for w in WRONG])
def test_a_wrong_rule_is_refuted(what: str, left: str, right: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = declared(what, left, right)
    if what in REDUCTIONS:
        monkeypatch.setitem(HINTS, wrong.name, REDUCTION)
    count, counterexample = refuted(wrong)
    print(f"{what}: {count} instances")
    assert re.search(r"differ|escapes", str(counterexample))


def test_there_are_enough_of_them() -> None:
    assert len({what for what, _, _ in WRONG}) == len(WRONG) >= 25


def test_they_are_not_in_the_library() -> None:
    assert not [name for name in RULES if name.startswith("wrong")]


def test_a_rule_that_never_fires_is_noticed() -> None:
    """The count of applications is what `test_rules` looks at: here it stays at nothing."""
    with undeclared():
        never = rule("never", "xs |> map(f)", "xs |> map(f)", conditions=(lambda _: "never",))
    evidence: Evidence = assert_sound(never, 20)
    assert (evidence.examples, evidence.applied) == (20, 0)
    assert evidence.refusals == {"never": 20}


def test_an_undefined_element_may_become_anything_but_no_other() -> None:
    with undeclared():
        fine = rule("fine", "xs |> padEmpty(r)", "xs |> padClamp(0, r)")
        wrong = rule("wrong", "xs |> padEmpty(r)", "xs |> padClamp(r, 0)")
    assert assert_sound(fine, 50).applied == 50
    refuted(wrong)
