"""Which rules are proved is what proofs find, and wrong rules are refuted.

`make proofs` proves all rules, which takes half a minute; here a part is proved again, another one each day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from rewrites.library import rules
from rewrites.proofs import Mark, mark, of_rule, verdict, verdicts
from rewrites.proofs.marks import digest, proved
from rewrites.proofs.verdicts import Wrong
from rewrites.rule import Rule, rule
from rise.cli.main import main
from rise.expr import Primitive, subterms
from rise.symbolic import Open, Proved, Refuted, examined, prove
from rise.symbolic.context import Context, chosen_by
from rise.symbolic.prove import Prover
from tests.rewrites.mutants import MUTANTS, declared, undeclared
from tests.rewrites.wrong_rules import WRONG

DECLARED = {name: made for name, made in rules().items() if isinstance(made, Rule)}
DAYS = 14  # in which all rules are proved again
PARTS = 12  # of the wrong rules, one of which is looked at each day
# their sides are equal: what is wrong with them is a function of the library, or an operator without its laws
RIGHT = {"capture in map fusion", "blocks of a reduction with no neutral element"}
# a neutral element is added, or terms are integers, whose order does not matter
EXACT = {"roundUp reduce", "roundUp reduce, of pairs", "first operand plus z", "second operand plus z"}


def is_about_execution(made: Rule) -> bool:
    """Whether a side says who computes something or where it is stored: both mean nothing to a proof."""
    parts = [p for side in (made.lhs, made.rhs) for p in subterms(side) if isinstance(p, Primitive)]
    folds = ("reduceSeq", "reduceSeqUnroll", "scanSeq")
    return any(p.declaration.group in ("memory", "levels") and p.name not in folds for p in parts)


def test_most_rules_are_proved_for_all_sizes() -> None:
    """Those about memory and levels are counted apart, as they are easier."""
    for made in (
        [r for r in DECLARED.values() if not is_about_execution(r)],
        [r for r in DECLARED.values() if is_about_execution(r)],
    ):
        assert len(made) > 90
        assert sum(mark(r) is not Mark.TESTED for r in made) >= 0.85 * len(made)


def test_the_page_counts_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "proofs.md").read_text(encoding="utf-8")
    marks = [mark(made) for made in DECLARED.values()]
    assert [int(n) for n in re.findall(r"^\| [∎≈·] \|.* (\d+) \|$", page, re.M)] == [
        marks.count(kind) for kind in Mark
    ]
    unproved = [name for name, made in DECLARED.items() if mark(made) is Mark.TESTED]
    assert sorted(re.findall(r"^\| `(.+)` \|", page, re.M)) == sorted(unproved)


def test_no_rule_has_changed_since_it_was_proved() -> None:
    """Else `make proofs` is due."""
    assert {name: found for name, (found, _) in proved().items()} == {
        name: digest(DECLARED[name]) for name in proved()
    }


def test_where_z3_gives_up_each_case_of_a_choice_is_asked() -> None:
    """What z3 finds out within its limit depends on where in memory its terms are."""
    ask, given_up = Context._asked, []

    def asked(self: Context, *more: Any) -> Any:
        z3 = self.world.z3
        if chosen_by(z3, more) is None:
            return ask(self, *more)
        given_up.append(more)
        return z3.unknown

    with patch.object(Context, "_asked", asked):
        assert isinstance(prove(of_rule(DECLARED["*f, in pairs"])), Proved)
    assert given_up


def test_a_rule_that_has_changed_has_no_mark() -> None:
    right = DECLARED["splitJoin"]
    assert mark(right) is Mark.PROVED
    assert mark(replace(right, right="xs |> map(f) |> map(fun(x => x))")) is Mark.TESTED


def test_rules_that_keep_every_bit_are_proved_in_order() -> None:
    reordered = {n for n in DECLARED if mark(DECLARED[n]) is Mark.REORDERED and DECLARED[n].exact}
    assert reordered == EXACT


def test_what_is_marked_as_proved_is_proved() -> None:
    today = date.today().toordinal() % DAYS
    part = [name for i, name in enumerate(proved()) if i % DAYS == today]
    print(f"part {today} of {DAYS}: {part}")
    assert len(part) > 30
    wrong = {}
    for name in part:
        found = prove(of_rule(DECLARED[name]))
        kind = isinstance(found, Proved) and (Mark.REORDERED if found.reordered else Mark.PROVED)
        if kind is not mark(DECLARED[name]):
            wrong[name] = found
    assert not wrong


# --- wrong rules --------------------------------------------------------------------------------------------


def wrong_rules() -> Iterator[Rule]:
    yield from (declared(mutant) for mutant in MUTANTS if mutant.what not in RIGHT)
    for what, left, right in WRONG:
        with undeclared():
            sizes = ("p",) if "padEmpty(p)" in right else ()
            yield rule(f"wrong: {what}", left, right, exact=False, sizes=sizes)


def test_wrong_rules_are_refuted_at_small_sizes() -> None:
    """Each with numbers for its sizes and the place of an element; by numbers alone, without a solver."""
    seen = 0
    with patch.dict("sys.modules", {"z3": None}):
        for wrong in wrong_rules():
            found = examined(of_rule(wrong))
            assert isinstance(found, Refuted), f"{wrong.name}: {found}"
            assert max(found.difference.sizes.values(), default=0) <= 6
            assert found.difference.left != found.difference.right
            seen += 1
    assert seen >= 50


def test_wrong_rules_are_not_proved() -> None:
    today = date.today().toordinal() % PARTS
    for i, wrong in enumerate(wrong_rules()):
        if i % PARTS == today:
            assert isinstance(prove(of_rule(wrong)), Open), wrong.name


@contextmanager
def made(left: str, right: str, **options: object) -> Iterator[Rule]:
    with undeclared():
        yield rule("made", left, right, **options)  # type: ignore[arg-type]  # options of `rule`


def test_a_reduction_of_an_operator_that_nothing_is_known_of_is_not_proved() -> None:
    """A fold becomes a `reduce`, which later rules may reorder."""
    with made("xs |> reduceSeq(Local)(fun(a, x => op(a, x)), z)", "xs |> reduce(op, z)") as wrong:
        found = prove(of_rule(wrong))
    assert isinstance(found, Open)
    assert "operator" in found.reason


def test_the_operator_of_a_scan_is_not_commutative() -> None:
    with made("xs |> scan(op, z)", "xs |> scanSeq(fun(x, acc => op(x, acc)), z)") as wrong:
        assert isinstance(verdict(wrong), Refuted)


def test_a_law_that_only_evaluation_knows_is_tested() -> None:
    with made("round(round(x))", "round(x)") as right:
        found = verdict(right, instances=5)
    assert isinstance(found, verdicts.Tested)
    assert "`round`" in found.reason


def test_a_condition_may_be_what_makes_a_rule_right() -> None:
    with made("xs |> map(f)", "xs", conditions=(lambda _: "never",)) as never:
        found = verdict(never, instances=5)
    assert found == verdicts.Tested("it holds by its conditions only", 0, 5)


def test_a_wrong_law_of_a_function_is_found_by_evaluation() -> None:
    with made("exp(x) + exp(y)", "exp(x) * exp(y)") as wrong:
        assert isinstance(verdict(wrong), Wrong)


def test_a_lemma_that_is_forgotten_is_noticed() -> None:
    with patch.object(Prover, "_simulates", lambda *_: True), pytest.raises(AssertionError):
        for day in range(PARTS):
            with patch("tests.rewrites.test_proofs.date") as now:
                now.today.return_value.toordinal.return_value = day
                test_wrong_rules_are_not_proved()


# --- the command line -----------------------------------------------------------------------------------

MINE = """
from rewrites.rule import rule

RIGHT = rule("mine, right", "xs |> drop(n) |> map(f)", "xs |> map(f) |> drop(n)", sizes=("n",))
WRONG = rule("mine, wrong", "xs |> drop(n) |> take(m)", "xs |> take(m)", sizes=("n", "m"))
"""


def test_a_rule_of_ones_own_is_proved_or_refuted(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path_factory.mktemp("rules") / "rules_to_prove.py"
    file.write_text(MINE)
    with undeclared():
        assert main(["rules", f"{file}:RIGHT", "--prove"]) == 0
        assert "proved for all sizes, types and functions" in capsys.readouterr().out
        assert main(["rules", f"{file}:WRONG", "--prove", "--json"]) == 1
        out = capsys.readouterr().out
        assert '"verdict": "wrong"' in out and '"place": "[0]"' in out
        assert main(["rules", f"{file}:WRONG", "--prove"]) == 1
        assert "is xs[" in capsys.readouterr().out
    assert main(["rules", "separateProduct", "--prove"]) == 0
    assert "not proved: its right side is computed" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "says"), [([], "needs the name"), (["splitJion"], "`splitJoin`?")])
def test_a_rule_that_is_not_there_is_said(
    name: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rules", *name, "--prove"]) == 2
    assert says in capsys.readouterr().err


def test_a_rule_is_shown_with_what_is_known_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a solver."""
    with patch.dict("sys.modules", {"z3": None}):
        assert main(["rules", "blockReduce"]) == 0
    assert "≈ proved for all sizes, up to the rounding of sums" in capsys.readouterr().out
