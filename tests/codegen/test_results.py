"""Results that are pairs: members that are rearranged, and members that later kernels read."""

from __future__ import annotations

import numpy as np

from codegen.execute import execute
from codegen.pipeline import assemble, generate
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow

PAIRS = "xs |> split(5) |> mapBlock(0)(r => r |> mapThreads(0)(x => (x + 1, x * x)))"


def of(text: str) -> Expr:
    return data_flow(check_expression(f"(xs: 35.i32) => {text}"))


def assert_exact(term: Expr) -> list[str]:
    """The names of the temporaries."""
    inputs = random_inputs(inputs_of(term), 3, exact=True)
    made = assemble(term, "f")
    for found, wanted in zip(execute(made, inputs, "emulate"), call(term, *inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)
    return [temporary.variable.name for temporary in made.temporaries]


def test_members_are_rearranged_where_they_are_written() -> None:
    """Each by views of its own; nothing is copied."""
    apart = f"{PAIRS} |> map(unzip) |> unzip"
    term = of(f"{apart} |> mapFst(rows => rows |> transpose) |> mapSnd(rows => rows |> join |> take(33))")
    assert assert_exact(term) == []
    assert generate(term, "f").source.count("] = ") == 2


def test_members_of_elements_are_rearranged_where_they_are_written() -> None:
    """The first three of five elements of a row, and all four of the other member."""
    rows = (
        "xs |> split(5) |> mapBlock(0)(r => (r |> mapThreads(0)(x => x + 1), r |> take(4) |> mapThreads(0)("
    )
    cut = "x => x * x))) |> map(mapFst(r => r |> take(3))) |> map(mapSnd(r => r |> split(2) |> transpose))"
    term = of(f"{rows}{cut} |> unzip")
    assert assert_exact(term) == []


def test_a_result_that_another_kernel_reads_is_stored_once() -> None:
    sums = "snd(y) |> mapBlock(0)(r => r |> reduceSeq(Local)((a, x) => a + x, 0))"
    term = of(f"let y = {PAIRS} |> map(unzip) |> unzip |> toMem(Global) in (fst(y), {sums})")
    assert assert_exact(term) == ["value_snd"]


def test_either_member_may_be_the_result() -> None:
    """The second kernel reads the result."""
    sums = "fst(y) |> mapBlock(0)(r => r |> reduceSeq(Local)((a, x) => a + x, 0))"
    stored = f"{PAIRS} |> map(unzip) |> unzip |> toMem(Global)"
    assert assert_exact(of(f"let y = {stored} in (snd(y), {sums})")) == ["value_fst"]
    copied = "fst(y) |> mapBlock(0)(r => r |> mapThreads(0)(x => x))"
    assert assert_exact(of(f"let y = {stored} in (fst(y), {copied})")) == ["value_snd"]


def test_a_temporary_is_stored_in_a_pair_at_once() -> None:
    """What is stored for a kernel, and then with another value for the next, has one array."""
    sums = "fst(y) |> mapBlock(0)(r => r |> reduceSeq(Local)((a, x) => a + x, 0))"
    whole = f"let y = {PAIRS} |> map(unzip) |> unzip |> toMem(Global) in (snd(y), {sums})"
    last = "zip(fst(z))(snd(z)) |> mapBlock(0)((r, s) => r |> mapThreads(0)(x => x + s))"
    term = of(f"let z = ({whole}) |> toMem(Global) in ({last}, snd(z))")
    assert assert_exact(term) == ["value_fst", "value_1_fst"]
