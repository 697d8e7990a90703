"""Indices that are data are read before loops in which they are the same, and only there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from codegen.ir import imperative as i
from codegen.passes.hoist_reads import hoist_reads, hoist_run_starts
from rise.nat import Nat, constant, nat, variable
from rise.types import F32, I32, Array, Index, Space
from tests.support.kernels import agrees, kernel
from tests.support.programs import program

INDEX = Index(nat(9))
OUTPUT = i.Variable("output", Array(nat(9), F32))
INPUTS = (i.Variable("is", Array(nat(4), INDEX)), i.Variable("xs", Array(nat(9), F32)))


def read(at: Nat, name: str = "index", array: str = "is") -> i.New:
    """new index. index := is[at] ; output[index] := xs[index]"""
    index = i.Access(name, (), INDEX)
    moved = i.Assign(i.Access("output", (variable(name),), F32), i.Access("xs", (variable(name),), F32))
    return i.New(Space.LOCAL, name, INDEX, i.sequence(i.Assign(index, i.Access(array, (at,), INDEX)), moved))


def loop(body: i.Command, count: Nat = constant(3)) -> i.For:
    return i.For("k", count, body)


def after(body: i.Command) -> i.Command:
    return hoist_reads(i.Function("f", (OUTPUT,), INPUTS, body)).body


def test_it_is_read_before_the_loops() -> None:
    found = after(i.For("j", constant(2), loop(read(constant(1)))))
    assert isinstance(found, i.New) and isinstance(found.body, i.Sequence)
    assert [type(part) for part in found.body.commands] == [i.Assign, i.For]
    assert not any(isinstance(c, i.New) for c in i.commands(found.body))


def test_it_is_read_in_the_innermost_loop_whose_index_it_needs() -> None:
    found = after(i.For("j", constant(2), loop(read(variable("j")))))
    assert isinstance(found, i.For) and isinstance(found.body, i.New)


UNCHANGED: dict[str, Callable[[], i.Command]] = {
    "it depends on the loop": lambda: loop(read(variable("k"))),
    "the loop may have no iteration": lambda: loop(read(constant(1)), variable("n")),
    "it is read under a condition": lambda: loop(i.When(variable("k"), nat(2), read(constant(1)))),
    "one thread reads it": lambda: loop(i.Elected(read(constant(1)))),
    "the array is written": lambda: i.sequence(
        i.Assign(i.Access("is", (constant(0),), INDEX), i.Natural(constant(3), INDEX)),
        loop(read(constant(1))),
    ),
    "another one has its name": lambda: i.sequence(loop(read(constant(1))), read(constant(2))),
    "the kernel computes the array": lambda: i.New(
        Space.SHARED, "own", Array(nat(4), INDEX), loop(read(constant(1), array="own"))
    ),
    "it is no index": lambda: loop(
        i.New(
            Space.LOCAL, "x", I32,
            i.Assign(i.Access("x", (), I32), i.Access("is", (constant(1),), INDEX)),
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("made", UNCHANGED.values(), ids=UNCHANGED)
def test_it_stays(made: Callable[[], i.Command]) -> None:
    command = made()
    assert after(command) == command


def test_a_kernel_computes_the_same() -> None:
    text = (
        "fun((is: 5.Idx[3], xss: 3.7.f32) => xss |> gather(is)"
        " |> mapBlock(fun(xs => xs |> mapSeq(fun(x => x + 1)))))"
    )
    made = kernel(text)
    assert made.source.index("is_[") < made.source.index("for (")
    assert agrees(made, program(text))


# --- the starts of runs -----------------------------------------------------------------------------------


def copied(around: Callable[[i.Command], i.Command]) -> i.New:
    """new run. new index. index := is[1] ; copy the run from element index on"""
    row = Array(constant(2), F32)
    run = i.Tile("run", constant(0), constant(0), True, row, (), (("d", constant(2)),))
    first = i.Access("xs", (variable("index"),), F32)
    copy = i.BulkCopy(run, first, i.Access("full", (), I32), corner=(variable("index"),))
    index = i.Access("index", (), INDEX)
    read_first = i.sequence(i.Assign(index, i.Access("is", (constant(1),), INDEX)), copy)
    return i.New(Space.SHARED, "run", row, around(i.New(Space.LOCAL, "index", INDEX, read_first)))


def moved(body: i.Command) -> i.Command:
    return hoist_run_starts(i.Function("f", (OUTPUT,), INPUTS, body)).body


def test_the_start_of_a_run_is_read_before_its_buffer_exists() -> None:
    found = moved(copied(i.Elected))
    assert isinstance(found, i.New) and found.name == "index"
    assert isinstance(found.body, i.Sequence) and isinstance(found.body.commands[1], i.New)
    assert [c.name for c in i.commands(found.body) if isinstance(c, i.New)] == ["run"]


@pytest.mark.parametrize(
    "around", [loop, lambda read: i.When(variable("k"), nat(2), read)], ids=["in a loop", "under a condition"]
)
def test_it_stays_where_the_run_may_start_elsewhere_or_nowhere(
    around: Callable[[i.Command], i.Command],
) -> None:
    command = copied(around)
    assert moved(command) == command
