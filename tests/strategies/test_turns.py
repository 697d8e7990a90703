"""Warpgroups that take turns: the same results, no deadlock, and every missing or wrong part is noticed."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from codegen.execute import execute
from codegen.ir.kernel import Kernel
from codegen.pipeline import assemble, generate
from rewrites.result import Failure, Result
from rise.check.compare import compare, tolerance
from rise.check.program import check_expression
from rise.check.specialise import inputs_of, specialise
from rise.errors import EmulationError, TranslationError
from rise.expr import Expr, Primitive, subterms
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.matmul.one_pass import one_pass
from tests.support.nightly import every_other
from tests.support.programs import loaded, succeeded

PROGRAMS = loaded(Path(__file__).parents[2] / "examples" / "attention.rise")
SEED = 20261125
# even and odd numbers of steps and of tiles, one step, none for some rows; two warpgroups and three
CASES = [
    ("attention", {"m": 128, "n": 32, "d": 16, "e": 16}, 128, 0, False),
    ("window", {"m": 65, "n": 97, "d": 16, "e": 16}, 128, 0, True),
    ("heads", {"b": 1, "h": 3, "m": 130, "n": 97, "d": 16, "e": 16}, 128, 2, True),
    ("window", {"m": 385, "n": 64, "d": 16, "e": 16}, 128, 1, False),
    ("causalHeads", {"b": 1, "h": 2, "m": 192, "n": 130, "d": 16, "e": 16}, 192, 1, False),
]


def derived(name: str, sizes: dict[str, int], **parameters: Any) -> tuple[Expr, Result]:
    term = data_flow(specialise(PROGRAMS[name], sizes))
    given = {"rows": 128, "columns": 32, "skewed": True, "turns": True, "ahead": 1, **parameters}
    return term, one_pass(**given)(term)


def lowered(name: str, sizes: dict[str, int], **parameters: Any) -> tuple[Expr, Expr]:
    term, result = derived(name, sizes, **parameters)
    return term, succeeded(result).term


@pytest.mark.parametrize(("name", "sizes", "rows", "blocks", "skewed"), every_other(CASES))
def test_turns_agree_with_the_interpreter(
    name: str, sizes: dict[str, int], rows: int, blocks: int, skewed: bool
) -> None:
    stages = Random(f"{SEED} {name} {sizes}").choice((2, 3))
    term, low = lowered(name, sizes, rows=rows, blocks=blocks, stages=stages, skewed=skewed)
    assert "inTurn" in {part.name for part in subterms(low) if isinstance(part, Primitive)}
    inputs = random_inputs(inputs_of(term), SEED, exact=False)
    found = execute(assemble(low, "f"), inputs, "emulate")
    assert compare(found, call(term, *inputs), tolerance(term)).agrees, stages


@cache
def made(skewed: bool) -> tuple[Expr, Kernel]:
    sizes = {"b": 1, "h": 2, "m": 128, "n": 128, "d": 16, "e": 16}
    term, low = lowered("heads", sizes, blocks=1, skewed=skewed)
    return term, generate(low, "f")


def edited(pattern: str, by: str, number: int = 0, skewed: bool = True) -> str:
    """What the emulator says of a kernel whose text was edited at one place."""
    term, kernel = made(skewed)
    place = list(re.finditer(pattern, kernel.source))[number]
    source = kernel.source[: place.start()] + by + kernel.source[place.end() :]
    try:
        inputs = random_inputs(inputs_of(term), SEED, exact=False)
        result = execute(replace(kernel, source=source), inputs, "emulate")
    except EmulationError as error:
        return error.code
    return "" if compare(result, call(term, *inputs), tolerance(term)).agrees else "wrong"


WAIT, ARRIVE = r"barrier_wait\(turns [^;]*;", r"barrier_arrive\(turns [^;]*;"


@pytest.mark.parametrize(
    ("pattern", "by", "number"),
    [
        (WAIT, ";", 0),
        (ARRIVE, ";", 0),
        (ARRIVE, "barrier_arrive(turns + warpgroup);", 0),  # at its own
        (WAIT, "barrier_wait(turns + warpgroup, 0);", 0),
        (r"barrier_init\(turns \+ s, 1\)", "barrier_init(turns + s, 2)", 0),
    ],
)
def test_the_emulator_notices_a_missing_or_wrong_turn(pattern: str, by: str, number: int) -> None:
    assert edited(pattern, by, number)


@pytest.mark.parametrize(("pattern", "number"), [(WAIT, 0), (ARRIVE, 1)])
def test_the_emulator_notices_a_missing_turn_of_steps_that_are_not_skewed(pattern: str, number: int) -> None:
    assert edited(pattern, ";", number, skewed=False)


def test_the_unedited_kernel_is_accepted() -> None:
    for skewed in (True, False):
        assert edited(r"start_next_grid\(\);", "start_next_grid();", skewed=skewed) == ""


# --- refusals -------------------------------------------------------------------------------------------


def refused(term: Expr) -> TranslationError:
    with pytest.raises(TranslationError) as caught:
        generate(term, "refused")
    return caught.value


def test_one_warpgroup_takes_no_turns() -> None:
    _, result = derived("attention", {"m": 64, "n": 64, "d": 16, "e": 16}, rows=64)
    assert isinstance(result, Failure)
    assert "several warpgroups" in result.story()


def test_a_step_that_is_not_by_roles_takes_no_turns() -> None:
    text = (
        "fun((a: 64.64.f16, b: 64.64.f16) => zip(a |> split(64))(b |> split(64)) |>"
        " reduceSeq(Local)(fun((acc, ab) => inTurn(acc + 1.0)), 0.0))"
    )
    found = refused(data_flow(check_expression(text)))
    assert found.code == "R0747" and found.origin is not None
