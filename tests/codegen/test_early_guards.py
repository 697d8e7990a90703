"""Threads that store no result skip the loop that computes it."""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.passes.early_guards import LEAST, early_guards
from rise.nat import Nat, constant, variable
from rise.types import F32, Array, Space

THREAD = variable("t")


def at(name: str, *indices: Nat) -> i.Access:
    return i.Access(name, indices, F32)


def summed(count: int, read: str = "tile", store: i.Command | None = None) -> i.Command:
    """new x. (x := tile[0] ; for k < count. x := read[k] ; when (t < 3) out[t] := x)"""
    first = i.Assign(at("x"), at("tile", constant(0)))
    loop = i.For("k", constant(count), i.Assign(at("x"), at(read, variable("k"))))
    stored = store or i.When(THREAD, constant(3), i.Assign(at("out", THREAD), at("x")))
    return i.New(Space.LOCAL, "x", F32, i.sequence(first, loop, stored))


def changed(command: i.Command) -> i.Command:
    """The command after the pass, where tile and out are shared."""
    body = command
    for name in ("tile", "out"):
        body = i.New(Space.SHARED, name, Array(constant(64), F32), body)
    found = early_guards(i.Function("f", (), (), body)).body
    for _ in range(2):
        assert isinstance(found, i.New)
        found = found.body
    return found


def test_all_of_the_sum_is_under_the_condition() -> None:
    found = changed(summed(LEAST))
    assert isinstance(found, i.When)
    assert (found.value, found.bound) == (THREAD, constant(3))
    assert isinstance(found.body, i.New)
    assert not any(isinstance(c, i.When) for c in i.commands(found.body))


def test_a_condition_comes_out_of_loops_over_stores() -> None:
    stores = i.For("j", constant(2), i.When(THREAD, constant(3), i.Assign(at("out", variable("j")), at("x"))))
    found = changed(summed(LEAST, store=stores))
    assert isinstance(found, i.When)
    assert sum(isinstance(c, i.For) for c in i.commands(found.body)) == 2


def test_one_that_depends_on_the_loop_stays() -> None:
    inside = i.When(variable("j"), THREAD, i.Assign(at("out", variable("j")), at("x")))
    term = summed(LEAST, store=i.For("j", constant(2), inside))
    assert changed(term) == term


def test_short_sums_stay() -> None:
    term = summed(LEAST - 1)
    assert changed(term) == term


def test_reads_of_global_memory_stay_outside() -> None:
    """They start before those of other results end."""
    term = summed(LEAST, read="xs")
    assert changed(term) == term


def test_other_effects_stay_outside() -> None:
    """What other threads wait for, or read, happens in any case."""
    effects: tuple[i.Command, ...] = (i.Barrier(i.Scope.BLOCK), i.Assign(at("tile", THREAD), at("x")))
    for effect in effects:
        stored = i.When(THREAD, constant(3), i.Assign(at("out", THREAD), at("x")))
        term = summed(LEAST, store=i.sequence(effect, stored))
        assert changed(term) == term
