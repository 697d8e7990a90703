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
from rewrites.proofs import Mark, mark
from rewrites.result import Failure, Success
from rewrites.rule import Rule
from rise.check.program import check_expression
from rise.errors import TranslationError
from rise.expr import Expr, Lambda
from rise.normal import data_flow
from rise.testing.rewriting import replaced
from strategies.default import default
from strategies.matmul.tensor_core import tensor_core
from tests.attack import differential
from tests.attack import variants as drawn
from tests.attack.outcome import Verdict
from tests.attack.variants import KINDS, Variant, original, outcome, places, plantable, proved, variants
from tests.codegen.kernel_faults import tiles
from tests.support.programs import succeeded

SEED, COUNT = 17, 10


def test_variants_compute_what_the_program_computes() -> None:
    """Four in five become kernels at least, and no two of these have the same text."""
    trials = list(islice(variants(SEED), COUNT))
    found = [(trial, outcome(trial)) for trial in trials]
    defects = [f"{trial}: {made}" for trial, made in found if made.verdict.is_defect]
    assert not defects, f"seed {SEED}: {defects}"
    right = [made for _, made in found if made.verdict is Verdict.RIGHT]
    counted = Counter(made.verdict for _, made in found)
    assert len(right) >= 0.8 * COUNT, f"seed {SEED}: {counted}"
    assert len({made.kernel for made in right}) == len(right)


def test_programs_of_all_kinds_are_drawn_and_a_seed_repeats_them() -> None:
    words = [original(seed).words for seed in range(len(KINDS))]
    assert words == [original(seed).words for seed in range(len(KINDS))]
    assert "by" in words[KINDS.index("scheduled")]
    trial = Variant(SEED)
    assert str(trial) == str(Variant(SEED)) and trial.made() == Variant(SEED).made()


def test_only_proved_rules_are_drawn() -> None:
    assert len(proved()) > 300 and len(plantable()) > 200
    assert all(mark(rule) is not Mark.TESTED for rule in proved())


def test_variants_show_a_fault_that_random_programs_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of tiles that are taken for longer than they are: `default` makes no tiles."""
    gemm = [each for each in drawn.examples() if each[0].endswith("gemm.rise")]
    monkeypatch.setattr(drawn, "examples", lambda: gemm)
    monkeypatch.setattr(drawn, "SCHEDULES", drawn.SCHEDULES[-1:])
    drawn._scheduled.cache_clear()
    chosen = [Variant(seed) for seed in range(KINDS.index("scheduled"), 24, len(KINDS))]
    tiles(lambda tile: replace(tile, leading=tile.leading + 8))(monkeypatch)
    random_programs = [differential.outcome(trial) for trial in islice(differential.programs(SEED), 12)]
    assert not any(found.verdict.is_defect for found in random_programs)
    assert any(found.verdict is Verdict.RIGHT for found in random_programs)
    assert any(outcome(trial).verdict is Verdict.WRONG for trial in chosen)
    drawn._scheduled.cache_clear()


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


def test_dimensions_that_a_grid_does_not_have_are_refused() -> None:
    term = check_expression("fun(xs: 4.f32 => xs |> mapGlobal(3)(fun(x => x)))")
    with pytest.raises(TranslationError, match="dimensions 0, 1 and 2") as refused:
        assemble(data_flow(term), "kernel")
    assert refused.value.code == "R0719"


def test_copies_that_are_too_narrow_are_refused_beside_others() -> None:
    """Of vectors of two f16, and of one f16 beside them."""
    text = "fun((xs: 6.f16) => xs |> mapSeq(fun(x => x)) |> copyAsync |> mapSeq(fun(x => x)))"
    with pytest.raises(TranslationError) as refused:
        assemble(data_flow(check_expression(text)), "kernel")
    assert refused.value.code in ("R0724", "R0706")


def test_warpgroups_read_no_global_memory() -> None:
    """A rule takes away the copy of one operand."""
    program = check_expression(
        "fun((A: 64.32.f16, B: 16.32.f16) => A |> map(fun(row => B |> map(fun(col =>"
        " zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0))))))"
    )
    schedule = tensor_core((64, 16, 16), (64, 16), (64, 16, 16), 2, epilogue="direct", warp_specialised=True)
    term, rule = succeeded(schedule(data_flow(program))).term, rules()["bulkCopy, removed"]
    assert isinstance(rule, Rule)
    found = ((place, rule(part)) for place, part in places(term))
    applied = [replaced(term, place, made.term) for place, made in found if isinstance(made, Success)]
    assert len(applied) == 2
    for without in applied:
        with pytest.raises(TranslationError, match="warpgroups read operands from shared memory") as refused:
            assemble(without, "kernel")
        assert refused.value.code == "R0732"
