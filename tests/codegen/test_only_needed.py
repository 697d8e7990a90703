"""Products are started by the warpgroups that need their sums, and by all where one needs them all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from codegen.ir import imperative as i
from codegen.passes.only_needed import only_needed
from rise.nat import Nat, constant, variable
from rise.types import F32, Array, Fragment, FragmentKind, Index, Scalar, Space

WARPGROUPS = constant(2)
ROWS = Index(constant(129))
SUMS = Fragment(constant(64), constant(64), constant(16), F32, FragmentKind.ACCUMULATOR)
INPUTS = (i.Variable("counts", Array(constant(7), ROWS)),)
OUTPUT = i.Variable("out", Array(constant(2), F32))


def each(index: str, body: i.Command) -> i.Command:
    return i.ParallelFor(i.Level.WARPGROUP, 0, index, WARPGROUPS, body)


def sums_of(index: str, name: str = "acc") -> i.Access:
    return i.Access(name, (variable(index),), SUMS)


def products(name: str = "acc", of: str = "w", a: i.Expression | None = None) -> i.Command:
    """for k. parFor w. acc[of] += ring ring ; commit"""
    tile = i.Tile("ring", constant(0), constant(64), True, Scalar("f16"))
    started = i.Wgmma(sums_of(of, name), tile if a is None else a, tile)
    return i.For("k", constant(9), each("w", i.sequence(started, i.WgmmaCommit(), i.WgmmaWait(1))))


def use(index: str = "v", name: str = "acc") -> i.Command:
    return i.Assign(i.Access("out", (variable(index),), F32), replaced(sums_of(index, name)))


def replaced(sums: i.Access) -> i.Access:
    return i.Access(sums.buffer, (*sums.indices, constant(0)), F32)


def where(body: i.Command, at: Nat = variable("t"), index: str = "v", counts: str = "counts") -> i.Command:
    """new rows. rows := counts[at] ; when (64 v < rows) body"""
    read = i.Assign(i.Access("rows", (), ROWS), i.Access(counts, (at,), ROWS))
    inside = i.When(64 * variable(index), variable("rows"), body)
    return i.New(Space.LOCAL, "rows", ROWS, i.sequence(read, inside))


def tile(*parts: i.Command) -> i.Command:
    """for t. new acc. parts"""
    acc = i.New(Space.LOCAL, "acc", Array(WARPGROUPS, SUMS), i.sequence(*parts))
    return i.For("t", constant(7), acc)


def after(body: i.Command) -> i.Command:
    return only_needed(i.Function("f", (OUTPUT,), INPUTS, body)).body


def test_products_are_started_where_something_reads_their_sums() -> None:
    found = after(tile(products(), each("v", where(use()))))
    (loop,) = (c for c in i.commands(found) if isinstance(c, i.For) and c.index == "k")
    assert isinstance(loop.body, i.ParallelFor) and isinstance(loop.body.body, i.Sequence)
    guarded, wait = loop.body.body.commands
    assert wait == i.WgmmaWait(1)
    assert isinstance(guarded, i.New) and isinstance(guarded.body, i.Sequence)
    read, inside, outside = guarded.body.commands
    assert isinstance(read, i.Assign) and read.value == i.Access("counts", (variable("t"),), ROWS)
    assert isinstance(inside, i.When) and isinstance(outside, i.When)
    assert (inside.value, inside.bound) == (64 * variable("w"), variable(guarded.name))
    assert [type(c) for c in inside.body.commands] == [i.Wgmma, i.WgmmaCommit]  # type: ignore[union-attr]
    assert (outside.value, outside.bound) == (inside.bound, inside.value + 1)
    assert outside.body == i.Barrier(i.Scope.WARPGROUP)


UNCHANGED: dict[str, Callable[[], i.Command]] = {
    "nothing has a condition": lambda: tile(products(), each("v", use())),
    "something has none": lambda: tile(products(), each("v", i.sequence(where(use()), use()))),
    "two conditions": lambda: tile(
        products(), each("v", i.sequence(where(use()), where(use(), constant(1))))
    ),
    "the condition changes": lambda: tile(
        products(), i.For("s", constant(3), each("v", where(use(), variable("s"))))
    ),
    "the kernel computes the number": lambda: i.New(
        Space.SHARED, "own", Array(constant(7), ROWS), tile(products(), each("v", where(use(), counts="own")))
    ),
    "another warpgroup reads them": lambda: tile(products(), each("v", where(use("x")))),
    "another warpgroup's sums are computed": lambda: tile(products(of="x"), each("v", where(use()))),
    "they are an operand": lambda: tile(products(), products(a=sums_of("w")), each("v", where(use()))),
    "other products have no condition": lambda: i.New(
        Space.LOCAL, "other", Array(WARPGROUPS, SUMS),
        i.sequence(
            tile(products("other"), products(), each("v", where(use()))), each("v", use(name="other"))
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("body", UNCHANGED.values(), ids=UNCHANGED)
def test_all_warpgroups_start_them(body: Callable[[], i.Command]) -> None:
    assert after(body()) == body()
