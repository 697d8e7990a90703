"""One pass by persistent blocks: rows loaded ahead, tiles in pairs, skewed steps."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from codegen.execute import execute
from codegen.pipeline import assemble, generate
from rise.check.compare import compare, tolerance
from rise.check.program import check_expression
from rise.check.specialise import inputs_of, specialise
from rise.errors import EmulationError, TranslationError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.pretty import show
from strategies.matmul.one_pass import one_pass
from strategies.search.hardware import for_target
from strategies.search.passes import Pass
from tests.support.nightly import every_other
from tests.support.programs import loaded, succeeded

PROGRAMS = loaded(Path(__file__).parents[2] / "examples" / "attention.rise")
SEED = 20261125


def lowered(name: str, sizes: dict[str, int], **parameters: Any) -> tuple[Expr, Expr]:
    term = data_flow(specialise(PROGRAMS[name], sizes))
    return term, succeeded(one_pass(**{"rows": 64, "columns": 32, **parameters})(term)).term


def agrees(term: Expr, low: Expr) -> bool:
    inputs = random_inputs(inputs_of(term), SEED, exact=False)
    found = execute(assemble(low, "f"), inputs, "emulate")
    return compare(found, call(term, *inputs), tolerance(term)).agrees


# even and odd numbers of tiles, whole ones and others, several steps and one
CASES = [
    ("heads", {"b": 2, "h": 3, "m": 130, "n": 97, "d": 16, "e": 16}, 4),
    ("heads", {"b": 2, "h": 1, "m": 64, "n": 31, "d": 16, "e": 24}, 1),
    ("causalHeads", {"b": 1, "h": 3, "m": 256, "n": 256, "d": 16, "e": 16}, 4),
    ("causalHeads", {"b": 1, "h": 2, "m": 191, "n": 129, "d": 16, "e": 16}, 2),
    ("causalHeadsByToken", {"b": 2, "h": 1, "m": 128, "n": 160, "d": 16, "e": 16}, 1),
]


@pytest.mark.parametrize(("name", "sizes", "blocks"), every_other(CASES))
def test_persistent_blocks_agree_with_the_interpreter(name: str, sizes: dict[str, int], blocks: int) -> None:
    random = Random(f"{SEED} {name} {sizes}")
    ahead, skewed = random.choice((1, 2)), random.choice((True, False))
    term, low = lowered(name, sizes, blocks=blocks, ahead=ahead, skewed=skewed)
    assert agrees(term, low), (SEED, ahead, skewed)


@pytest.mark.parametrize("n", every_other([1, 160, 33]))
def test_skewed_steps_agree_with_the_interpreter(n: int) -> None:
    for name in ("attention", "window"):
        term, low = lowered(name, {"m": 65, "n": n, "d": 16, "e": 32}, skewed=True, ahead=1)
        assert agrees(term, low)


def test_pairs_of_tiles_have_equally_much_to_do() -> None:
    """Of n tiles, the last goes with the first: together they have n + 1 blocks of keys, whichever pair."""
    _, low = lowered("causalHeads", {"b": 1, "h": 3, "m": 384, "n": 384, "d": 16, "e": 16}, blocks=2)
    assert "mapBlockPersistent(0, 2)" in show(low) and "mapSeq(" in show(low)
    order = [(1 - i % 2) * (6 - 1 - i // 2) + i % 2 * (i // 2) for i in range(6)]
    assert order == [5, 0, 4, 1, 3, 2]
    assert {a + b for a, b in zip(order[::2], order[1::2], strict=True)} == {5}


# --- what must not be changed ---------------------------------------------------------------------------


def edited(pattern: str, by: str, number: int = 0, **parameters: Any) -> str:
    """The message of the emulator for a kernel whose text was edited at one place."""
    sizes = {"b": 1, "h": 2, "m": 128, "n": 128, "d": 16, "e": 16}
    term, low = lowered("heads", sizes, blocks=1, **parameters)
    kernel = generate(low, "f")
    found = list(re.finditer(pattern, kernel.source))
    assert found, pattern
    place = found[number]
    source = kernel.source[: place.start()] + by + kernel.source[place.end() :]
    inputs = random_inputs(inputs_of(term), SEED, exact=False)
    from dataclasses import replace

    try:
        result = execute(replace(kernel, source=source), inputs, "emulate")
    except EmulationError as error:
        return error.code
    return "" if compare(result, call(term, *inputs), tolerance(term)).agrees else "wrong"


@pytest.mark.parametrize(
    ("pattern", "number"),
    [
        (r"barrier_wait\(full, [^;]*;", 0),  # the rows of a tile are not there yet
        (r"barrier_wait\(empty, [^;]*;", 0),  # the rows of the tile before are still in use
        (r"wgmma_wait<1>\(sum_\w*\.x\);", 0),  # the next scores are not there yet
        (r"wgmma_wait<0>\(block_\w+\.x\);", 0),  # a sum is scaled while products add to it
    ],
)
def test_the_emulator_notices_a_missing_wait(pattern: str, number: int) -> None:
    assert edited(pattern, ";", number, ahead=1, skewed=True)


def test_a_skewed_step_waits_for_its_scores_once() -> None:
    """The slot of the keys is handed back behind the wait for the scores that were computed of them."""
    _, low = lowered("attention", {"m": 128, "n": 128, "d": 16, "e": 16}, skewed=True)
    source = generate(low, "f").source
    (wait,) = re.finditer(r"wgmma_wait<1>\(.*\);\n(.*)", source)
    assert "sum_" in wait[0] and "barrier_arrive(empty" in wait[1]


def test_what_is_released_in_every_step_is_released_first() -> None:
    """The slot of the rows is handed back in the last step, the slot of the keys in all of them."""
    _, low = lowered("heads", {"b": 1, "h": 2, "m": 128, "n": 256, "d": 16, "e": 16}, blocks=1, ahead=2)
    releases = re.findall(r"barrier_arrive\((empty\w*)", generate(low, "f").source)
    assert releases.index("empty_1") < releases.index("empty")


def test_the_unedited_kernel_is_accepted() -> None:
    assert edited(r"start_next_grid\(\);", "start_next_grid();", ahead=1, skewed=True) == ""


# --- refusals -------------------------------------------------------------------------------------------

PRODUCT = (
    "fun((a: 64.64.f16, b: 64.64.f16) => zip(a |> split(64))(b |> split(64)) |>"
    " reduceSeq(Local)(fun((acc, ab) => skewed(acc + 1.0)), 0.0))"
)


def test_a_step_that_is_not_by_roles_cannot_be_skewed() -> None:
    with pytest.raises(TranslationError) as caught:
        generate(data_flow(check_expression(PRODUCT)), "refused")
    assert caught.value.code == "R0744" and caught.value.origin is not None


def test_candidates_persist_where_blocks_have_several_tiles_of_equal_length() -> None:
    def best(name: str, batch: int, length: int, dim: int) -> dict[str, Any]:
        sizes = {"b": batch, "h": 16, "m": length, "n": length, "d": dim, "e": dim}
        found = Pass.of(data_flow(specialise(PROGRAMS[name], sizes)))
        assert found is not None
        return found.candidates(for_target("sm_90a"))[0]

    assert best("heads", 32, 512, 128)["ahead"] and best("heads", 32, 512, 128)["skewed"]
    assert "ahead" not in best("heads", 1, 512, 128)
    assert "ahead" not in best("causalHeads", 8, 2000, 64)
    assert best("causalHeads", 32, 512, 128)["blocks"] == for_target("sm_90a").multiprocessors
