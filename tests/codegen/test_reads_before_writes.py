"""Copies from shared memory to shared memory: all reads come first, unless one reads what another writes."""

from __future__ import annotations

import pytest

from codegen.ir import imperative as i
from codegen.ir.show import show_program
from codegen.passes.reads_before_writes import reads_before_writes
from codegen.pipeline import generate
from rise.nat import constant, variable
from rise.types import F32, Array, Space
from strategies.batches.batch import batch
from tests.support.batches import exact, products
from tests.support.programs import succeeded

ROW = Array(constant(32), F32)


def at(buffer: str, index: str) -> i.Access:
    return i.Access(buffer, (variable(index),), F32)


def copied(source: str, target: str, number: int) -> i.Command:
    """By 32 threads, through a register each."""
    thread, register = f"t{number}", f"x{number}"
    own = i.Access(register, (), F32)
    moved = i.sequence(i.Assign(own, at(source, thread)), i.Assign(at(target, thread), own))
    return i.ParallelFor(i.Level.THREAD, 0, thread, constant(32), i.New(Space.LOCAL, register, F32, moved))


def order(*pairs: tuple[str, str]) -> list[str]:
    """The copies after the pass: which buffers are read and written, in this order."""
    body = i.sequence(*(copied(*pair, number) for number, pair in enumerate(pairs)))
    for name in sorted({name for pair in pairs for name in pair}):
        body = i.New(Space.SHARED, name, ROW, body)
    found = i.commands(reads_before_writes(i.Function("f", (), (), body)).body)
    assigned = [c for c in found if isinstance(c, i.Assign)]
    moved = [(c.value, c.target) for c in assigned]
    return [
        f"read {value.buffer}" if target.buffer.startswith("x") else f"write {target.buffer}"
        for value, target in moved
        if isinstance(value, i.Access) and isinstance(target, i.Access)
    ]


def test_all_reads_come_first() -> None:
    assert order(("a", "b"), ("c", "d")) == ["read a", "read c", "write b", "write d"]
    assert order(("a", "b"), ("a", "c"), ("d", "e")) == [
        *("read a", "read a", "read d"),
        *("write b", "write c", "write e"),
    ]  # fmt: skip


def test_reads_may_go_through_registers_of_their_own() -> None:
    """As those of pairs of elements do, which are loaded one by one. They are no part of the copy."""
    own, pair = i.Access("x", (), F32), i.Access("pair", (), F32)
    reads = i.New(Space.LOCAL, "pair", F32, i.sequence(i.Assign(pair, at("a", "t")), i.Assign(own, pair)))
    moved = i.New(Space.LOCAL, "x", F32, i.sequence(reads, i.Assign(at("b", "t"), own)))
    body: i.Command = i.sequence(
        i.ParallelFor(i.Level.THREAD, 0, "t", constant(32), moved), copied("c", "d", 1)
    )
    for name in "abcd":
        body = i.New(Space.SHARED, name, ROW, body)
    found = i.commands(reads_before_writes(i.Function("f", (), (), body)).body)
    targets = [c.target.buffer for c in found if isinstance(c, i.Assign) and isinstance(c.target, i.Access)]
    assert targets == ["pair", "x", "x1", "b", "d"]


def test_what_another_copy_writes_is_read_behind_it() -> None:
    assert order(("a", "b"), ("b", "c")) == ["read a", "write b", "read b", "write c"]
    assert order(("a", "b"), ("c", "d"), ("b", "c"), ("a", "e")) == [
        *("read a", "read c", "write b", "write d"),
        *("read b", "read a", "write c", "write e"),
    ]  # fmt: skip


def test_registers_are_those_of_each_thread() -> None:
    """Also of a copy by itself."""
    body = i.New(Space.SHARED, "a", ROW, i.New(Space.SHARED, "b", ROW, copied("a", "b", 0)))
    shown = show_program(reads_before_writes(i.Function("f", (), (), body)))
    assert "new(Local, x0: 32.f32)" in shown and "x0[t0] = a[t0]" in shown and "b[t0] = x0[t0]" in shown


@pytest.mark.parametrize(("n", "blocks"), [(97, 2), (113, 2)])
def test_padded_rows_are_where_runs_were(n: int, blocks: int) -> None:
    """Both would take more than half of a multiprocessor's shared memory."""
    term = products(2, n, n, n)
    low = succeeded(batch(operands="bulk_padded")(term)).term
    kernel = generate(low, "f")
    whole = -(-n // 16) * 16
    padded, runs = 2 * 2 * whole * (whole + 8), 2 * 2 * n * n
    assert padded <= kernel.launch.shared_bytes < padded + 1024 < padded + runs
    assert kernel.launch.resident == blocks
    source = kernel.source
    runs_read, rows_written = source.rindex("tile_1_fst["), source.index("&ring[")
    assert "__syncthreads();" in source[runs_read:rows_written], "other threads have read what is overwritten"
    assert exact(term, low)
