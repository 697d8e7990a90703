"""One pass by clusters whose blocks load keys and values together: the same results, no wait too few."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from rewrites.lowering import BLOCKS_IN_CLUSTERS
from rise.check.compare import compare, tolerance
from rise.check.program import load
from rise.check.specialise import inputs_of, specialise
from rise.errors import EmulationError, StrategyError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.core import seq, top_down
from strategies.matmul.one_pass import one_pass
from tests.support.nightly import every_other
from tests.support.programs import succeeded

PROGRAMS = load(Path(__file__).parents[2] / "examples" / "attention.rise")
SEED = 20261126
SMALL: dict[str, Any] = {"rows": 64, "columns": 32}
MULTICAST = "bulk_load_multicast"


def program(name: str, **sizes: int) -> Expr:
    return data_flow(specialise(PROGRAMS[name], sizes))


def kernel(term: Expr, **parameters: Any) -> Kernel:
    return generate(succeeded(one_pass(**{**SMALL, **parameters})(term)).term, "f")


def run(term: Expr, made: Kernel) -> Any:
    return execute(made, random_inputs(inputs_of(term), SEED, exact=False), "emulate")


# what a mask leaves differs from tile to tile; one tile, whole ones and others, more tiles than blocks
CASES: list[tuple[str, dict[str, int], dict[str, Any]]] = [
    ("attention", {"m": 1, "n": 63}, {"cluster": 4, "skewed": True}),
    ("heads", {"b": 1, "h": 3, "m": 130, "n": 65}, {"blocks": 2, "ahead": 1, "skewed": True}),
    ("causalHeads", {"b": 1, "h": 2, "m": 257, "n": 130}, {"blocks": 4, "ahead": 2}),
]


@pytest.mark.parametrize(("name", "sizes", "parameters"), every_other(CASES))
def test_clusters_agree_with_the_interpreter(
    name: str, sizes: dict[str, int], parameters: dict[str, Any]
) -> None:
    term = program(name, **sizes, d=16, e=Random(f"{SEED} {name} {sizes}").choice((16, 24)))
    made = kernel(term, **{"cluster": 2, **parameters})
    assert made.source.count(MULTICAST) == 2
    inputs = random_inputs(inputs_of(term), SEED, exact=False)
    assert compare(execute(made, inputs, "emulate"), call(term, *inputs), tolerance(term)).agrees


@cache
def made() -> tuple[Expr, Kernel]:
    term = program("causal", m=256, n=288, d=16, e=16)
    return term, kernel(term, cluster=2)


def test_clusters_compute_what_blocks_do() -> None:
    """Bit for bit: of the same elements in the same order. No row needs the keys that are no numbers here."""
    term, whole = made()
    inputs = random_inputs(inputs_of(term), SEED, exact=False)
    for operand in inputs[-2:]:
        operand[256:] = np.nan
    found, wanted = (execute(each, inputs, "emulate") for each in (whole, kernel(term)))
    np.testing.assert_array_equal(found, wanted)
    assert np.isfinite(found).all()


def edited(pattern: str, by: str) -> str:
    """What the emulator says of a kernel whose text was edited at one place."""
    term, whole = made()
    source = re.sub(pattern, by, whole.source, count=1)
    assert source != whole.source
    try:
        result = run(term, replace(whole, source=source))
    except EmulationError as error:
        return error.code
    return "" if np.array_equal(result, run(term, whole)) else "wrong"


@pytest.mark.parametrize(
    ("pattern", "by"),
    [
        (r"barrier_wait\(empty[^;]*;", ";"),  # the other block may still read its slot
        (r"barrier_arrive_remote\(empty([^;]*), [^,;]*\);", r"barrier_arrive(empty\1);"),  # only its own may
    ],
)
def test_the_emulator_notices_blocks_that_do_not_wait_for_each_other(pattern: str, by: str) -> None:
    assert edited(pattern, by)


def test_blocks_that_take_different_steps_load_for_themselves() -> None:
    """Each tile skips what its own rows do not need, so the blocks of a cluster load unequally often."""
    term, _ = made()
    by_tiles = seq(one_pass(**SMALL), top_down(BLOCKS_IN_CLUSTERS.with_sizes(d=0, c=2)))
    found = generate(succeeded(by_tiles(term)).term, "f")
    assert found.launch.cluster == 2 and MULTICAST not in found.source
    np.testing.assert_array_equal(run(term, found), run(term, made()[1]))


@pytest.mark.parametrize(
    ("parameters", "code", "reason"),
    [
        ({"cluster": 0}, "R0609", "at least 1"),
        ({"cluster": 2, "fragment": 16}, "R0609", "only a warpgroup that loads"),
        ({"cluster": 2, "warp_specialised": False}, "R0609", "only a warpgroup that loads"),
        ({"cluster": 3, "columns": 32}, "R0604", "24 does not divide 32"),
        ({"cluster": 2, "blocks": 133}, "R0604", "does not divide 133"),
    ],
)
def test_clusters_that_would_share_nothing_are_refused(
    parameters: dict[str, Any], code: str, reason: str
) -> None:
    with pytest.raises(StrategyError) as caught:
        one_pass(**{**SMALL, **parameters})
    assert caught.value.code == code and reason in caught.value.message
