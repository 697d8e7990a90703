"""Vectors where memory allows: on one side only, beside scalars, and under conditions."""

from __future__ import annotations

import pytest

from rise.errors import TranslationError
from tests.support.kernels import agrees, kernel
from tests.support.programs import program

BOTH = "|> asVector(4) |> mapGlobal(0)(fun(v => v)) |> asScalar)"


def transfers(source: str) -> tuple[int, int]:
    """Vectors read from `xs`, and vectors written to `output`."""
    return source.count("&xs_["), source.count("&output[")


@pytest.mark.parametrize(
    ("text", "read", "written"),
    [
        (f"fun(xs: 64.f32 => xs {BOTH}", 1, 1),
        (f"fun(xs: 65.f32 => xs |> drop(1) {BOTH}", 0, 1),
        (f"fun(xs: 4.16.f32 => xs |> transpose |> join {BOTH}", 0, 1),
        (
            "fun(xs: 4.16.f32 => xs |> mapGlobal(1)(fun(r => r |> asVector(4)"
            " |> mapGlobal(0)(fun(v => v)) |> asScalar)) |> transpose)",
            1,
            0,
        ),
        (f"fun(xs: 68.f32 => zip(xs |> take(64))(xs |> drop(4)) |> map(fun((x, y) => x * y)) {BOTH}", 2, 1),
        (f"fun(xs: 65.f32 => zip(xs |> take(64))(xs |> drop(1)) |> map(fun((x, y) => x * y)) {BOTH}", 1, 1),
    ],
    ids=["both", "not aligned", "columns read", "columns written", "two", "one of two"],
)
def test_what_lies_side_by_side_is_moved_at_once(text: str, read: int, written: int) -> None:
    assert transfers(kernel(text).source) == (read, written)
    assert agrees(kernel(text), program(text))


def test_a_vector_is_inside_of_an_array_or_outside_of_it() -> None:
    """60 is a multiple of the width: one condition decides for all lanes."""
    text = f"fun(xs: 60.f32 => xs |> padCst(4, 4)(1) |> take(64) {BOTH}"
    assert transfers(kernel(text).source) == (1, 1)
    assert agrees(kernel(text), program(text))


@pytest.mark.parametrize("pad", ["padCst(2, 6)(1)", "padCst(1, 7)(1)", "padClamp(4, 4)", "padClamp(3, 1)"])
def test_nothing_outside_of_an_array_is_read(pad: str) -> None:
    """The lanes of a vector are not all inside, or that is known for each by itself only."""
    text = f"fun(xs: 60.f32 => xs |> {pad} |> take(64) {BOTH}"
    assert transfers(kernel(text).source) == (0, 1)
    assert agrees(kernel(text), program(text))


@pytest.mark.parametrize("pad", ["padCst(1, 2)(generate(fun(i => 3)))", "padClamp(1, 2)"])
def test_rows_outside_are_not_read_and_those_inside_are_read_as_vectors(pad: str) -> None:
    text = (
        f"fun(xs: 5.16.f32 => xs |> {pad} |> mapGlobal(1)(fun(r => r |> asVector(4)"
        " |> mapGlobal(0)(fun(v => v)) |> asScalar)))"
    )
    assert transfers(kernel(text).source) == (1, 1)
    assert agrees(kernel(text), program(text))


@pytest.mark.parametrize(("one", "other"), [(5, 3), (3, 5)])
def test_what_is_read_under_either_of_two_conditions_is_not_read_under_one(one: int, other: int) -> None:
    """An element of the first rows is read twice, each time under another condition."""

    def rows(count: int) -> str:
        return f"(xs |> take({count}) |> padCst(0, {7 - count})(generate(fun(i => 1))))"

    text = (
        f"fun(xs: 5.16.f32 => zip{rows(one)}{rows(other)} |> map(fun((r, s) => zip(r)(s)"
        " |> map(fun((x, y) => x + y)))) |> mapGlobal(1)(fun(r => r |> asVector(4)"
        " |> mapGlobal(0)(fun(v => v)) |> asScalar)))"
    )
    assert agrees(kernel(text), program(text))


def test_an_accumulator_of_vectors_is_read_and_written_in_one_place() -> None:
    text = (
        "fun(xs: 4.16.f32 => xs |> mapGlobal(0)(fun(r => r |> asVector(4)"
        " |> reduceSeq(Local)(fun(acc, v => acc + v), vectorFromScalar(0)) |> fun(s =>"
        " generate(fun((i: Idx[1]) => s)) |> asScalar |> reduceSeq(Local)(fun(a, x => a + x), 0)))))"
    )
    assert kernel(text).source.count("&xs_[") == 1
    assert agrees(kernel(text), program(text))


def test_a_scalar_that_is_used_twice_is_computed_once_for_each_lane() -> None:
    text = (
        f"fun(xs: 64.f32 => xs |> map(fun(x => x + 1)) |> map(fun(x => x * x)) |> map(fun(x => x * x)) {BOTH}"
    )
    assert transfers(kernel(text).source) == (1, 1)
    assert agrees(kernel(text), program(text))


def test_an_element_that_data_selects_is_read_by_itself() -> None:
    text = f"fun((is: 64.Idx[9], xs: 9.f32) => xs |> gather(is) {BOTH}"
    assert transfers(kernel(text).source) == (0, 1)
    assert kernel(text).source.count("&is_1_[") + kernel(text).source.count("&is_[") <= 1
    assert agrees(kernel(text), program(text))


def test_the_only_element_of_an_array_is_written_by_whom_it_says() -> None:
    """A number is an array of one for the loops that compute it."""
    text = (
        "fun(xs: 64.i32 => xs |> split(64) |> mapBlock(0)(fun(r => r |> split(8) |> transpose"
        " |> mapThreads(0)(fun(c => c |> reduceSeq(Local)(fun(a, x => a + x), 0))) |> toMem(Shared)"
        " |> split(8) |> mapThreads(0)(fun(c => c |> reduceSeq(Local)(fun(a, x => a + x), 0))) |> idx(0)))"
        " |> idx(0))"
    )
    assert "output[0] = " in kernel(text).source
    assert agrees(kernel(text), program(text))


def test_what_is_taken_and_what_is_padded_end_in_different_places() -> None:
    """Each has a condition of its own: 52 elements are written, 40 of them are read."""
    text = f"fun(xs: 40.f32 => xs |> padCst(0, 24)(1) {BOTH[:-1]} |> take(52))"
    assert agrees(kernel(text), program(text))


@pytest.mark.parametrize("size", [60, 62])
def test_an_asynchronous_copy_has_one_condition_for_all_lanes(size: int) -> None:
    """Of 62 elements the last vector is inside for two lanes only."""
    text = (
        f"fun(xs: {size}.f32 => generate(fun((i: Idx[1]) => xs)) |> mapBlock(0)(fun(ys => ys"
        f" |> padCst(0, {64 - size})(0) |> asVectorAligned(4) |> mapThreads(0)(fun(v => v)) |> asScalar"
        " |> copyAsync(rowMajor) |> mapThreads(0)(fun(x => x + 1)))))"
    )
    if size == 62:
        with pytest.raises(TranslationError, match="an asynchronous copy moves"):
            kernel(text)
    else:
        assert "copy_async_or_zero<4>(" in kernel(text).source
        assert agrees(kernel(text), program(text))
