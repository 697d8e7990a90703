"""Variants by proved rules compute the same; what they found stays mended."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import assemble
from rewrites.library import rules
from rewrites.proofs.marks import Mark, mark
from rewrites.result import Failure, Success
from rise.canonical import canonical
from rise.check.program import check_expression
from rise.errors import TranslationError
from rise.expr import Expr, Lambda
from rise.normal import data_flow
from rise.testing.rewriting import replaced
from strategies.default import default
from tests.attack import differential
from tests.attack.outcome import Verdict
from tests.attack.variants import SCHEDULED, Variant, base, outcome, places, proved, variants, varied
from tests.codegen.kernel_faults import tiles
from tests.support.programs import succeeded

SEED, COUNT = 17, 16


def test_variants_compute_what_the_program_computes() -> None:
    """Nine in ten become kernels, and no two of a program are the same."""
    trials = list(islice(variants(SEED), COUNT))
    found = [(trial, outcome(trial)) for trial in trials]
    defects = [f"{trial}: {outcome_}" for trial, outcome_ in found if outcome_.verdict.is_defect]
    assert not defects, f"seed {SEED}: {defects}"
    counted = Counter(outcome_.verdict for _, outcome_ in found)
    assert counted[Verdict.RIGHT] >= 0.8 * COUNT, f"seed {SEED}: {counted}"
    made = {outcome_.detail for _, outcome_ in found if outcome_.verdict is Verdict.RIGHT}
    assert len(made) > 0.9 * counted[Verdict.RIGHT], "hardly any rules apply"


@pytest.mark.parametrize("number", range(len(SCHEDULED)))
def test_every_schedule_has_variants(number: int) -> None:
    term = base(number)[1]
    changed = [varied(term, seed, low_level=True) for seed in range(4)]
    assert sum(bool(made.rules) for made in changed) >= 3
    assert all(canonical(made.term) != canonical(term) for made in changed if made.rules)


def test_a_seed_gives_the_same_variants() -> None:
    for one, other in zip(islice(variants(3), 6), islice(variants(3), 6), strict=True):
        assert str(one) == str(other)
        high, low = data_flow(one.program), one.scheduled is not None
        start = base(one.scheduled)[1] if one.scheduled is not None else high
        assert varied(start, one.seed, low) == varied(start, one.seed, low)


def test_only_proved_rules_are_drawn() -> None:
    assert len(proved()) > 300
    assert all(mark(rule) is not Mark.TESTED for rule in proved().values())


def test_variants_show_a_fault_that_random_programs_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of tiles that are taken for longer than they are: `default` makes no tiles."""
    tiles(lambda tile: replace(tile, leading=tile.leading + 8))(monkeypatch)
    random_programs = [differential.outcome(trial) for trial in islice(differential.programs(SEED), 12)]
    assert not any(found.verdict.is_defect for found in random_programs)
    assert any(found.verdict is Verdict.RIGHT for found in random_programs)
    products = [outcome(Variant(seed, 1)) for seed in range(3)]
    assert any(found.verdict is Verdict.WRONG for found in products)


# --- what variants found ----------------------------------------------------------------------------------


def test_rules_of_data_are_not_for_functions() -> None:
    """`x → let y = x in y` has no meaning for a function: names are for data."""
    program = check_expression("fun((f: i32 -> i32) => f)")
    assert isinstance(program, Lambda)
    made = rules()["let, introduced"](program.body)
    assert isinstance(made, Failure) and "is the type of a function" in made.reason


def low_level(text: str) -> Expr:
    return succeeded(default()(data_flow(check_expression(text)))).term


def test_a_vector_is_passed_as_an_array() -> None:
    kernel = assemble(low_level("fun((v: Vec[2, f32]) => generate(fun((i: Idx[3]) => v)))"), "kernel")
    given = np.array([5, -7], np.float32)
    assert np.array_equal(execute(kernel, [given], "emulate"), np.tile(given, (3, 1)))


def test_numbers_are_not_copied_asynchronously() -> None:
    with pytest.raises(TranslationError, match="reads memory, and `x` is in registers") as refused:
        assemble(low_level("fun((x: i32) => x |> copyAsync)"), "kernel")
    assert refused.value.code == "R0724"


def test_warpgroups_read_no_global_memory() -> None:
    """A rule takes away the copy of one operand."""
    term, rule = base(2)[1], proved()["bulkCopy, removed"]
    applied = [
        replaced(term, place, made.term)
        for place, part in places(term, rule)
        if isinstance(made := rule(part), Success)
    ]
    assert len(applied) == 2
    for without in applied:
        with pytest.raises(TranslationError, match="warpgroups read operands from shared memory") as refused:
            assemble(without, "kernel")
        assert refused.value.code == "R0732"
