"""Blocks that take several elements read the indices for the next one ahead, and within their array."""

from __future__ import annotations

import re

import pytest

from codegen.ir import imperative as i
from codegen.ir.launch import Launch
from codegen.passes.next_indices import next_indices
from rise.nat import Nat, constant, nat, variable
from rise.types import F32, Array, Index, Space
from tests.support.kernels import agrees, kernel
from tests.support.programs import program

INDEX = Index(nat(9))
OUTPUT = i.Variable("output", Array(nat(9), F32))
INPUTS = (i.Variable("is", Array(nat(7), INDEX)), i.Variable("xs", Array(nat(9), F32)))
LAUNCH = Launch((2, 1, 1), (32, 1, 1))


def read(at: Nat) -> i.New:
    """new index. index := is[at] ; output[index] := xs[index]"""
    index = i.Access("index", (), INDEX)
    moved = i.Assign(i.Access("output", (variable("index"),), F32), i.Access("xs", (variable("index"),), F32))
    return i.New(
        Space.LOCAL, "index", INDEX, i.sequence(i.Assign(index, i.Access("is", (at,), INDEX)), moved)
    )


def loop(body: i.Command, count: Nat = constant(7), most: int = 2) -> i.ParallelFor:
    return i.ParallelFor(i.Level.BLOCK, 0, "t", count, body, most=most)


def after(body: i.Command, ready: frozenset[str] = frozenset()) -> i.Command:
    return next_indices(i.Function("f", (OUTPUT,), INPUTS, body, ready=ready), LAUNCH).body


@pytest.mark.parametrize("count", [3, 7])
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_kernel_computes_the_same(count: int, blocks: int) -> None:
    text = (
        f"fun((is: {count}.Idx[3], xss: 3.5.f32) => xss |> gather(is)"
        f" |> mapBlockPersistent(0, {blocks})(fun(xs => xs |> mapSeq(fun(x => x + 1)))))"
    )
    made = kernel(text)
    reads = re.findall(r"= is_?\[(.*?)\];", made.source)
    assert reads == ["block_x", f"block_x + {blocks}"]
    assert agrees(made, program(text))


def test_no_element_is_read_behind_the_last_one() -> None:
    found = after(loop(read(variable("t"))))
    bounds = {str(c.value): c.bound.value for c in i.commands(found) if isinstance(c, i.When)}
    assert bounds == {"t": 2, "t + 2": 7}
    places = [a.indices for c in i.commands(found) for a in i.accesses(c) if a.buffer == "is"]
    assert sorted(str(place) for (place,) in places) == ["t", "t + 2"]


WRITTEN = i.Assign(i.Access("is", (constant(0),), INDEX), i.Natural(constant(3), INDEX))
UNCHANGED = {
    "another element is read": loop(read(variable("t") - 1)),
    "it is the same one each time": loop(read(constant(1))),
    "there is a block for each element": loop(read(variable("t")), constant(2)),
    "the number of elements is not known": loop(read(variable("t")), variable("n")),
    "blocks are not persistent": loop(read(variable("t")), most=0),
    "the array is written": i.sequence(WRITTEN, loop(read(variable("t")))),
}


@pytest.mark.parametrize("command", UNCHANGED.values(), ids=UNCHANGED)
def test_it_stays(command: i.Command) -> None:
    assert after(command) == command


def test_beside_another_kernel_only_what_that_does_not_write_is_read_ahead() -> None:
    command = loop(read(variable("t")))
    assert after(command, frozenset({"xs"})) == command
    assert after(command, frozenset({"is"})) != command
