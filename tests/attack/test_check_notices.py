"""`rise derive --check` and `rise run --check` notice wrong rules, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rewrites.result import Success
from rise.check.agreement import reference
from rise.check.draws import DIGITS, LITERALS, Scale, draws
from rise.check.program import check_expression
from rise.check.specialise import specialise
from rise.cli.checking import Trial, coverage, other_sizes, trials
from rise.expr import Expr
from rise.interpret import call_many
from rise.nat import constant
from rise.normal import data_flow
from rise.testing import assert_equivalent
from rise.types import F16, F32, SCALARS, Index, Pair, Type, array
from strategies.registry import find
from tests.attack.wrong_rules import (
    EXAMPLES,
    NAME,
    WRONG_RULES,
    Wrong,
    checked,
    declared,
    is_noticed_in_runs,
    program_of,
)
from tests.support.programs import succeeded

# what a kernel rounds in its own order cannot show
ONLY_STEP_BY_STEP = ("a product in the narrow type",)


@pytest.mark.parametrize("wrong", WRONG_RULES, ids=str)
def test_the_first_guilty_step_is_named(wrong: Wrong) -> None:
    trial = checked(wrong)[-1]
    assert trial.guilty is not None, coverage([trial])
    assert trial.guilty.rule == NAME
    assert len(trial.success.steps) >= len(trial.verdicts)


def test_there_are_many_on_many_programs() -> None:
    assert len(WRONG_RULES) >= 40
    assert len({(w.file, w.name) for w in WRONG_RULES}) >= 30
    assert len(set(map(str, WRONG_RULES))) == len(WRONG_RULES)


def test_runs_notice_them_as_well() -> None:
    sample = [w for w in WRONG_RULES[::8] if w.what not in ONLY_STEP_BY_STEP]
    assert [str(w) for w in sample if not is_noticed_in_runs(w)] == []


def test_other_seeds_do() -> None:
    for number, wrong in enumerate(WRONG_RULES[1::7], 1):
        assert checked(wrong, seed=number)[-1].guilty is not None, str(wrong)


def test_the_command_names_the_rule(rise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = WRONG_RULES[0]
    with declared(wrong) as strategy:
        monkeypatch.setattr("rise.cli.derive.chosen_strategy", lambda _: strategy)
        called = rise("derive", str(EXAMPLES / f"{wrong.file}.rise"), wrong.name, "--size", "n=5", "--check")
    assert called.status == 1
    assert f"step 1, `{NAME}`, changes the result: differs first at [0]" in called.out
    assert "alpha = " in called.out  # the inputs


def test_what_shows_on_no_square_is_named_at_other_sizes(rise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """h * (i / h) is h * i / h, but not for a height that is not the result's."""
    wrong = next(w for w in WRONG_RULES if w.name == "resizeNearest")
    file, sizes = str(EXAMPLES / f"{wrong.file}.rise"), [f"{n}={v}" for n, v in wrong.sizes.items()]
    with declared(wrong) as strategy:
        monkeypatch.setattr("rise.cli.derive.chosen_strategy", lambda _: strategy)
        called = rise("derive", file, wrong.name, "--size", *sizes, "--check")
    assert called.status == 1
    wanted = rf"at h=5 w=7 p=3 q=11, step 1 of \d+, `{NAME}`, changes the result"
    assert re.search(wanted, called.out), called.out


# --- no false alarm ---------------------------------------------------------------------------------

LAWFUL = (
    ("linear_algebra", "sgemm", {"m": 4, "n": 4, "k": 4}),
    ("networks", "layerNorm", {"b": 3, "n": 8}),
    ("networks", "softmaxRows", {"b": 3, "n": 8}),
    ("statistics", "correlation", {"n": 8}),
    ("stencils_1d", "median3", {"n": 8}),
    ("finance", "blackScholes", {"n": 4}),
    ("scans", "segmentedSum", {"n": 6}),
    ("fourier", "dft", {"n": 4}),
    ("reordering", "toPlaces", {"n": 6}),
    ("clustering", "step", {"n": 4, "k": 2, "d": 3}),
)


def lawful(file: str, name: str, sizes: dict[str, int]) -> list[Trial]:
    definition, strategy = program_of(file)[name], find("default").make({})

    def derive(program: Expr) -> Success:
        return succeeded(strategy(program))

    success = derive(data_flow(specialise(definition, sizes)))
    return trials(definition, sizes, success, derive, 0)


def test_lawful_derivations_agree_at_other_sizes_too() -> None:
    for file, name, sizes in LAWFUL:
        made = lawful(file, name, sizes)
        assert made[-1].agrees, f"{file} {name}: {made[-1].verdicts[-1]}"
        assert len(made) == 2, f"{file} {name}: no other sizes"
        numbers = [*made[1].sizes.values()]
        assert len(set(numbers)) == len(numbers)


def test_a_program_that_comes_back_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0

    def counting(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        return call_many(*arguments)

    monkeypatch.setattr("rise.check.agreement.call_many", counting)
    (first, other) = lawful("linear_algebra", "dot", {"n": 4})
    different = [len({*trial.programs, trial.reference.program}) for trial in (first, other)]
    assert count == sum(different)


# --- inputs -----------------------------------------------------------------------------------------


def parts(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from parts(part)
    else:
        yield value


TYPES: tuple[Type, ...] = (
    F32,
    F16,
    SCALARS["bf16"],
    SCALARS["tf32"],
    SCALARS["i8"],
    SCALARS["u8"],
    SCALARS["i64"],
    array(7, F32),
    array(3, 5, SCALARS["u8"]),
    array(6, Pair(F32, SCALARS["i8"])),
    array(4, SCALARS["bool"]),
    array(4, Index(constant(9))),
    Pair(F32, F32),
)


def test_scalars_are_never_0_or_1_and_all_different() -> None:
    named = [(f"x{i}", F32) for i in range(6)]
    for seed in range(20):
        made = draws(named, seed, Scale(9, (0.0, 1.0)))
        for position, kind in enumerate(made.kinds):
            values = [float(value) for value in made.one(position)]
            if kind in ("whole", "below", "fractions", "beyond"):
                assert not {0, 1, -1} & {*values}
                assert len(set(values)) == len(values), (seed, kind, values)


def test_every_type_is_drawn_as_it_is_stored() -> None:
    from rise.interpret.inputs import checked_input

    for seed, type_ in enumerate(TYPES):
        made = draws([("x", type_)], seed, Scale(9, (0.0, 255.0, 2.5)))
        for position in range(made.count):
            checked_input("x", type_, made.one(position)[0])


def test_numbers_beyond_a_type_are_drawn_as_its_largest() -> None:
    """1e5 beside a literal of f32 is none of f16; infinite inputs tell nothing apart."""
    made = draws([("x", array(9, F16))], 0, Scale(9, (1e-5, 1e5, -1e5)))
    drawn = np.concatenate([made.one(position)[0] for position in range(made.count)])
    assert np.isfinite(drawn).all() and {65504, -65504} <= set(drawn.tolist())


def test_each_scalar_meets_each_literal_and_what_is_beside_it() -> None:
    made = draws([("x", F32), ("y", F32), ("xs", array(3, F32))], 1, Scale(9, (7.0, 100.0)))
    for value in made.inputs:
        met = {float(v) for v in np.ravel(value)}
        assert {6, 6.875, 7, 7.125, 8, 99, 100, 101, 93} <= met
        assert min(met) < 7
        assert max(met) > 100


def test_elements_of_arrays_differ_as_far_as_there_are_numbers() -> None:
    made = draws([("xs", array(40, F32))], 0, Scale(32))
    for position, kind in enumerate(made.kinds):
        if kind not in (LITERALS, "equal", "ascending", "sparse"):
            assert len(set(made.one(position)[0].tolist())) == 40, kind


def test_products_of_long_rows_are_exact() -> None:
    term = check_expression(
        "fun((x: 512.f16, y: 512.f16) => zip(x)(y) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0))"
    )
    made = reference(data_flow(term), [], 0)
    for position, kind in enumerate(made.draws.kinds):
        if kind != DIGITS:
            x, y = (value.astype(np.float64) for value in made.draws.one(position))
            assert made.results[position] == np.dot(x, y), kind


def test_draws_follow_from_the_seed() -> None:
    named = [("x", F32), ("xs", array(5, Pair(F32, F16)))]
    first, again, other = (draws(named, seed, Scale()) for seed in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(parts(first.inputs), parts(again.inputs), strict=True))
    assert not all(
        np.array_equal(a, b) for a, b in zip(parts(first.inputs), parts(other.inputs), strict=True)
    )


def test_other_sizes_are_all_different() -> None:
    for sizes in (
        {"m": 128, "n": 128, "k": 64},
        {"n": 7},
        {"m": 4, "n": 4},
        {"b": 1, "m": 32, "n": 32, "k": 32},
    ):
        found = list(other_sizes(sizes))
        assert found
        for other in found:
            assert len({*other.values()}) == len(other)
            assert other != sizes


# --- two programs -----------------------------------------------------------------------------------

PROGRAMS = """
def seven: {n: Nat} -> n.f32 -> n.f32 = fun(xs => xs |> map(fun(x => select(x == 7)(0)(x))))
def same: {n: Nat} -> n.f32 -> n.f32 = fun(xs => xs)
def plusZero: {m: Nat} -> m.f32 -> m.f32 = fun(ys => ys |> map(fun(x => x + 0)))
def blocks = depFun((n: Nat) => fun(xs: n.f32 => xs |> split(5) |> join))
def matrix: {m: Nat, n: Nat} -> m.n.f32 -> m.n.f32 = fun(xs => xs)
"""


def test_definitions_are_compared_at_several_sizes() -> None:
    import rise

    made = rise.parse(PROGRAMS)
    assert_equivalent(made.same, made.plusZero)
    assert_equivalent(made.same, made.blocks)
    assert_equivalent(made.same, made.blocks, sizes={"n": 15})
    with pytest.raises(AssertionError, match=r"(?s)differs first at \[1\]: 0.0, expected 7.0.*xs = \["):
        assert_equivalent(made.seven, made.same)
    with pytest.raises(rise.RiseError, match="1 size and `matrix` has 2"):
        assert_equivalent(made.same, made.matrix)


def test_a_literal_that_is_not_small_tells_terms_apart() -> None:
    wrong, right = (check_expression(f"fun((x: f32) => {body})") for body in ("select(x == 7)(0)(x)", "x"))
    with pytest.raises(AssertionError, match=r"x = 7"):
        assert_equivalent(wrong, right)
