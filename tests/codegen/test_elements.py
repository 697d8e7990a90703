"""Loops over the elements of fragments become one where iterations have nothing to do with each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codegen.ir import imperative as i
from codegen.ir.launch import Launch
from codegen.passes.fuse_fragment_loops import fuse_fragment_loops
from rise.nat import Nat, constant, variable
from rise.types import F32, Array, Fragment, FragmentKind, Space, Vector

SUM = Fragment(constant(64), constant(64), constant(16), F32, FragmentKind.ACCUMULATOR)
ELEMENTS = 32  # of 64·64 sums a thread of 128 has so many
LAUNCH = Launch(block=(128, 1, 1))
g, k = variable("g"), variable("k")


def at(buffer: str, index: Nat, width: int = 1) -> i.Access:
    type_ = F32 if width == 1 else Vector(constant(width), F32)
    return i.Access(buffer, (index,), type_)


def loop(index: str, count: int, body: i.Command, unroll: bool = True) -> i.For:
    return i.For(index, constant(count), body, unroll=unroll)


def copy(target: i.Access, value: i.Access) -> i.Assign:
    return i.Assign(target, value)


def each(target: str, value: str) -> i.ForFragment:
    return i.ForFragment(SUM, "e", copy(at(target, variable("e")), at(value, variable("e"))))


def fused(*commands: i.Command) -> i.Command:
    """Of x, y, z, which are fragments, and of `memory` and `result`, which are not."""
    body = i.sequence(*commands)
    for name in ("z", "y", "x"):
        body = i.New(Space.LOCAL, name, SUM, body)
    memory = [i.Variable(name, Array(constant(1024), F32)) for name in ("memory", "result")]
    function = fuse_fragment_loops(i.Function("f", (memory[1],), (memory[0],), body), LAUNCH)
    while isinstance(body := function.body, i.New):
        function = replace(function, body=body.body)
    return function.body


def count(command: i.Command) -> int:
    return len(command.commands) if isinstance(command, i.Sequence) else 1


load = loop("g", 16, copy(at("x", 2 * g, 2), at("memory", 8 * g, 2)))
store = loop("k", 16, copy(at("result", 8 * k, 2), at("y", 2 * k, 2)))


def test_what_is_loaded_computed_and_stored_is_one_loop() -> None:
    made = fused(load, each("y", "x"), store)
    assert isinstance(made, i.For) and made.index == "g" and count(made.body) == 3
    first, second, third = made.body.commands  # type: ignore[union-attr]
    assert first == load.body
    assert isinstance(second, i.For) and second.count == constant(2)
    written = second.body.target  # type: ignore[union-attr]
    assert written == at("y", 2 * g + variable(second.index))
    assert third == copy(at("result", 8 * g, 2), at("y", 2 * g, 2))


def test_loops_over_all_elements_are_one_as_well() -> None:
    made = fused(each("y", "x"), each("z", "y"))
    assert isinstance(made, i.ForFragment) and count(made.body) == 2


def test_nests_have_a_loop_for_each_of_theirs() -> None:
    inner = loop("k", 2, copy(at("x", 4 * g + 2 * k, 2), at("memory", 8 * g + k, 2)))
    made = fused(loop("g", 8, inner), each("y", "x"))
    assert isinstance(made, i.For) and isinstance(made.body, i.For) and count(made.body.body) == 2


def test_a_step_of_one_loop_is_several_of_another() -> None:
    whole = loop("k", 8, copy(at("result", k, 4), at("x", 4 * k, 4)))
    for made in (fused(load, whole), fused(load, each("x", "x"), whole)):
        assert isinstance(made, i.For) and made.count == constant(8)
        first, *_, last = made.body.commands  # type: ignore[union-attr]
        assert isinstance(first, i.For) and first.count == constant(2)
        assert last == copy(at("result", variable(made.index) * 1, 4), at("x", 4 * variable(made.index), 4))


def test_a_wait_comes_before_loads_that_are_then_one_loop_with_stores() -> None:
    barrier, wait = i.Barrier(i.Scope.WARPGROUP), i.BulkWait(0)
    made = fused(load, each("y", "x"), wait, barrier, store)
    assert isinstance(made, i.Sequence) and made.commands[:2] == (wait, barrier)
    assert count(made) == 3 and count(made.commands[2].body) == 3  # type: ignore[union-attr]


APART: dict[str, tuple[i.Command, ...]] = {
    "elements of another iteration": (load, loop("k", 16, copy(at("result", k, 2), at("x", 30 - 2 * k, 2)))),
    "elements of two iterations": (load, loop("k", 16, copy(at("result", k, 4), at("x", 2 * k, 4)))),
    "elements of a part of an iteration": (
        loop("g", 8, copy(at("x", 4 * g, 4), at("memory", g, 4))),
        loop("k", 8, copy(at("result", k, 4), at("x", 28 - 4 * k, 4))),
    ),
    "iterations that are not parts of others": (
        load,
        loop("k", 3, copy(at("result", k, 2), at("x", 2 * k, 2))),
    ),
    "not all elements": (loop("g", 8, copy(at("x", 2 * g, 2), at("memory", g, 2))), each("y", "x")),
    "elements twice": (loop("g", 32, copy(at("x", g, 2), at("memory", g, 2))), each("y", "x")),
    "memory that is written": (
        loop("g", 16, i.sequence(copy(at("result", g), at("memory", g)), load.body)),
        loop("k", 16, copy(at("y", 2 * k, 2), at("result", 15 - k, 2))),
    ),
    "a loop that is not unrolled": (replace(load, unroll=False), each("y", "x")),
    "a barrier between": (each("y", "x"), i.Barrier(i.Scope.BLOCK), store),
    "a barrier behind a loop that writes memory": (
        loop("g", 16, i.sequence(load.body, copy(at("result", g), at("memory", g)))),
        i.Barrier(i.Scope.BLOCK),
        each("y", "x"),
    ),
    "a barrier inside": (replace(load, body=i.sequence(load.body, i.Barrier(i.Scope.BLOCK))), each("y", "x")),
}


@pytest.mark.parametrize("name", APART)
def test_what_is_not_apart_stays(name: str) -> None:
    commands = APART[name]
    assert fused(*commands) == i.sequence(*commands)
