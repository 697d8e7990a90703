"""Loops whose conditions are certain in their first iterations, by the ranges of threads."""

from __future__ import annotations

import pytest

from codegen.ir import imperative as i
from codegen.passes.split_guards import split_guards
from rise.nat import NatVariable, constant, variable
from rise.types import Array, Scalar

F32 = Scalar("f32")
LOOP, THREAD = variable("i"), variable("t")


def guarded(iterations: int, threads: int, size: int, unroll: bool = True) -> i.Function:
    """Each thread writes every `threads`-th element of an array: for i { if (i * threads + t < size) … }"""
    place = LOOP * threads + THREAD
    write = i.Assign(i.Access("xs", (place,), F32), i.Number(1.0, F32))
    loop = i.For("i", constant(iterations), i.When(place, constant(size), write), unroll, role=i.Role.MAP)
    body = i.ParallelFor(i.Level.THREAD, 0, "t", constant(threads), loop)
    return i.Function("f", (i.Variable("xs", Array(constant(size), F32)),), (), body)


def parts(function: i.Function) -> list[tuple[int, bool]]:
    """Of each loop its iterations, and whether it has a condition."""
    loops = [c for c in i.commands(function.body) if isinstance(c, i.For)]
    return [(loop.count.value or 0, isinstance(loop.body, i.When)) for loop in loops]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (31, [(3, False), (1, True)]),
        (25, [(3, False), (1, True)]),
        (24, [(3, False), (1, True)]),  # the last iteration writes nothing
        (23, [(2, False), (2, True)]),
        (7, [(4, True)]),
    ],
)
def test_the_first_iterations_need_no_condition(size: int, expected: list[tuple[int, bool]]) -> None:
    assert parts(split_guards(guarded(4, 8, size))) == expected


def test_both_parts_write_the_same_elements_as_the_whole_loop() -> None:
    def written(function: i.Function) -> set[int]:
        found = set()
        for loop in (c for c in i.commands(function.body) if isinstance(c, i.For)):
            for number in range(loop.count.value or 0):
                for thread in range(8):
                    at = {NatVariable("i"): constant(number), NatVariable("t"): constant(thread)}
                    body = loop.body
                    if isinstance(body, i.When):
                        value = body.value.substitute(at).value or 0
                        if value >= (body.bound.value or 0):
                            continue
                        body = body.body
                    assert isinstance(body, i.Assign) and isinstance(body.target, i.Access)
                    found.add(body.target.indices[0].substitute(at).value or 0)
        return found

    for size in (1, 7, 8, 9, 31, 32):
        whole = guarded(4, 8, size)
        assert written(split_guards(whole)) == written(whole) == set(range(size))


def test_a_loop_that_is_not_unrolled_stays() -> None:
    whole = guarded(4, 8, 31, unroll=False)
    assert split_guards(whole) == whole


def test_a_condition_that_no_thread_is_certain_of_stays() -> None:
    outer = i.ParallelFor(i.Level.BLOCK, 0, "b", constant(9), guarded(4, 8, 31).body)
    shifted = i.rebuild(
        outer, i.When, lambda when: i.When(when.value + variable("b") * 32, when.bound, when.body)
    )
    whole = i.Function("f", (), (), shifted)
    assert split_guards(whole) == whole
