"""Copies that follow each other are waited for once, and pipelines keep their waits."""

from __future__ import annotations

import pytest

from codegen.ir import imperative as i
from codegen.ir.buffers import MBARRIER
from codegen.passes.joint_waits import joint_waits
from codegen.pipeline import generate
from rise.nat import constant
from rise.types import F32, Array, Space
from strategies.batches.batch import batch
from tests.support.batches import exact, lowered, program
from tests.support.programs import succeeded

TILE = Array(constant(4), F32)
FULL = i.AcceptVariable("full", Array(constant(1), MBARRIER))


def at(name: str) -> i.Access:
    return i.Access(name, (constant(0),), F32)


def brought(name: str) -> list[i.Command]:
    return [i.CopyAsync(at(name), at("xs")), i.Commit(), i.Wait(0)]


USE = i.Assign(at("out"), at("a"))
BULK: list[i.Command] = [i.InitBarriers(FULL, constant(1)), i.Barrier(i.Scope.BLOCK)]


def order(*parts: i.Command) -> list[str]:
    """What commands are left, in their order."""
    found = joint_waits(i.Function("f", (), (), i.sequence(*parts))).body
    leaves = (c for c in i.commands(found) if not i.inner(c) and not isinstance(c, i.Skip))
    return [type(c).__name__ for c in leaves]


def test_a_wait_moves_behind_the_next_copy() -> None:
    assert order(*brought("a"), *brought("b"), USE) == ["CopyAsync", "Commit"] * 2 + ["Wait", "Assign"]


def test_also_into_the_scope_of_the_next_tile() -> None:
    inner = i.New(Space.SHARED, "b", TILE, i.sequence(*brought("b"), USE))
    assert order(*brought("a"), inner) == ["CopyAsync", "Commit"] * 2 + ["Wait", "Assign"]


def test_a_bulk_copy_starts_before_others_are_waited_for() -> None:
    waited = i.WaitBarrier(FULL, constant(0))
    bulk: list[i.Command] = [*BULK, i.Elected(i.Expect(FULL, 16)), waited]
    found = order(*brought("a"), *bulk, USE)
    assert found[-3:] == ["Wait", "WaitBarrier", "Assign"]
    assert found.count("Wait") == 1


@pytest.mark.parametrize("between", [USE, i.Assign(at("b"), at("a"))])
def test_what_reads_a_tile_waits_for_it(between: i.Command) -> None:
    found = order(*brought("a"), between, *brought("b"), USE)
    assert found == ["CopyAsync", "Commit", "Wait", "Assign"] * 2


def test_a_pipeline_waits_for_the_stage_that_it_computes() -> None:
    """It waits, starts the next copy, and computes: with a later wait nothing would be ahead."""
    ahead: list[i.Command] = [i.CopyAsync(at("b"), at("xs")), i.Commit()]
    kept = ["CopyAsync", "Commit", "Wait", "CopyAsync", "Commit", "Assign"]
    assert order(*brought("a"), *ahead, USE) == kept
    loop = i.For("k", constant(3), i.sequence(i.Wait(0), *ahead, USE))
    assert order(loop) == ["Wait", "CopyAsync", "Commit", "Assign"]


def test_waits_for_some_stages_stay() -> None:
    assert order(*brought("a")[:2], i.Wait(1), *brought("b"), USE).count("Wait") == 2


# --- in kernels -------------------------------------------------------------------------------------------

DOT = "zip(r)(c) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)"
SHARED = (
    f"def f(As: 9.33.24.f16, B: 24.40.f16) = As |> map(A => A |> map(r => transpose(B) |> map(c => {DOT})))"
)


def test_a_shared_matrix_and_its_partners_come_at_once() -> None:
    """The copy of the matrix that all share was waited for before those of others were started."""
    term = program(SHARED)
    low = lowered(term)
    text = generate(low, "f").source
    assert text.index("bulk_load") < text.index("wait_copies<0>") < text.index("barrier_wait")
    assert exact(term, low)


def test_results_are_exact_where_three_arrays_are_waited_for_once() -> None:
    text = "def f(As: 9.13.64.f16, xs: 9.64.f16, ys: 9.13.f16) = zip(As)(zip(xs)(ys)) |> map((A, (c, ys)) =>"
    term = program(f"{text} zip(A)(ys) |> map((r, y) => f32(y) + ({DOT})))")
    low = succeeded(batch()(term)).term
    assert generate(low, "f").source.count("wait_copies") == 1
    assert exact(term, low)
