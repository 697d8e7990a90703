"""Runs of adjacent elements that the copying unit brings and takes, wherever in an array they start."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from codegen.emulation.emulator import Buffer, emulate
from codegen.execute import execute
from codegen.ir import imperative as i
from codegen.ir.kernel import Kernel
from codegen.passes.analysis.shifts import granularity, shift
from codegen.passes.multicast import multicast
from codegen.pipeline import assemble, generate
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.errors import EmulationError, TranslationError
from rise.interpret import call, random_inputs
from rise.nat import constant, variable
from tests.support.kernels import emulated_exactly
from tests.support.nightly import in_turn
from tests.support.programs import program

TWICE = "bulkCopy |> mapSeq(mapThreads(0)(fun(x => x + x))) |> toMem(Shared) |> bulkStore"


def twice(blocks: int, rows: int, columns: int, type_: str) -> str:
    """Each block doubles one matrix."""
    return f"fun(xs: {blocks}.{rows}.{columns}.{type_} => xs |> mapBlock(0)(fun(t => t |> {TWICE})))"


def made(text: str) -> Kernel:
    return generate(program(text), "runs")


SIZES = [(1, 1, 1), (5, 1, 3), (3, 7, 11), (2, 13, 17), (11, 3, 5), (3, 31, 33)]


@pytest.mark.parametrize(("type_", "sizes", "seed"), in_turn(["f16", "f32", "i8", "f64"], SIZES, range(3)))
def test_runs_are_exact_wherever_they_start(sizes: tuple[int, int, int], type_: str, seed: int) -> None:
    """The last chunk of an array, and those that two blocks write to, are there only in part."""
    text = twice(*sizes, type_)
    kernel = made(text)
    emulated_exactly(check_expression(text), kernel, seed)
    assert "bulk_load_run" in kernel.source and "bulk_store_run" in kernel.source


@pytest.mark.parametrize(("columns", "is_run"), [(8, True), (24, True), (32, False), (40, False)])
def test_rows_of_whole_chunks_are_boxes_unless_they_are_short(columns: int, is_run: bool) -> None:
    """The unit moves a box row by row, and a run at once."""
    text = twice(3, 7, columns, "f16")
    kernel = made(text)
    emulated_exactly(check_expression(text), kernel)
    assert ("bulk_load_run" in kernel.source) == ("bulk_store_run" in kernel.source) == is_run


def test_no_part_of_a_run_is_sent_to_the_other_blocks_of_a_cluster() -> None:
    """Parts of boxes are, where producers bring what all blocks need."""
    for columns, is_run in ((16, True), (64, False)):
        added = "mapThreads(0)(fun((a, e) => a + f32(e)))"
        text = (
            f"fun((xs: 4.{columns}.f32, ys: 16.{columns}.f16) => xs |> split(2) |> mapCluster(0)(fun(c => c"
            f" |> mapBlock(0)(fun(r => ys |> bulkCopy |> mapSeq(fun(y => zip(r)(y) |> {added})))))) |> join)"
        )
        kernel = dict(made(text).stages)["kernel"]

        def produced(command: i.Command) -> i.Command:
            if isinstance(command, i.BulkCopy):
                return i.WarpSpecialise(i.Skip(), command, i.Skip(), 1, 1)
            return i.with_inner(command, tuple(map(produced, i.inner(command))))

        sent = multicast(replace(kernel, body=produced(kernel.body)))
        [copy] = (c for c in i.commands(sent.body) if isinstance(c, i.BulkCopy))
        assert (copy.blocks == 1, not copy.map) == (is_run, is_run)


def test_parts_of_rows_are_boxes_however_short() -> None:
    text = (
        "fun(xs: 3.7.24.f16 => xs |> mapBlock(0)(fun(t => t |> map(take(8)) |> bulkCopy"
        " |> mapSeq(mapThreads(0)(fun(x => x + x))))))"
    )
    kernel = made(text)
    emulated_exactly(check_expression(text), kernel)
    assert "bulk_load(" in kernel.source and "bulk_load_run" not in kernel.source


@pytest.mark.parametrize("elements", [1, 8, 9, 77])
def test_arrays_of_tuples_are_waited_for_once(elements: int) -> None:
    added = "fun((x, z) => x + (z |> idx(0)) + (z |> idx(1)) + f16(fst(snd(p)) |> idx(2)))"
    body = f"zip(fst(p))(snd(snd(p)) |> transpose) |> mapThreads(0)({added})"
    text = (
        f"fun((xs: 5.{elements}.f16, ys: 5.3.f32, zs: 5.2.{elements}.f16) => zip(xs)(zip(ys)(zs)) |> split(1)"
        f" |> mapBlock(0)(fun(t => t |> bulkCopy |> mapSeq(fun(p => {body})))) |> join)"
    )
    term = check_expression(text)
    kernel = made(text)
    assert kernel.source.count("bulk_load_run") == 3 and kernel.source.count("barrier_wait") == 1
    inputs = random_inputs(inputs_of(term), 3, exact=True)
    assert np.array_equal(execute(assemble(program(text), "f"), inputs, "emulate"), call(term, *inputs))


def test_tuples_of_tuples_in_arrays_of_arrays_are_copied_too() -> None:
    text = (
        "fun((xs: 3.5.7.f16, ys: 3.5.7.f32, zs: 3.5.7.f16) => zip(xs)(zip(ys)(zs))"
        " |> mapBlock(0)(fun((x, (y, z)) => zip(x)(zip(y)(z)) |> map(fun((a, (b, c)) => zip(a)(zip(b)(c))))"
        " |> bulkCopy |> mapSeq(mapThreads(0)(fun((a, (b, c)) => b + f32(a + c)))))))"
    )
    term, kernel = check_expression(text), made(text)
    assert kernel.source.count("bulk_load_run") == 3 and kernel.source.count("barrier_wait") == 1
    inputs = random_inputs(inputs_of(term), 3, exact=True)
    assert np.array_equal(execute(assemble(program(text), "f"), inputs, "emulate"), call(term, *inputs))


# --- runs that reach beyond the end -----------------------------------------------------------------------

SHARES = (  # sizes, how many arrays a block has, how many there are not
    ((5, 3, 7), 2, 1), ((1, 5, 11), 4, 3), ((7, 1, 3), 5, 3), ((3, 2, 33), 2, 1), ((2, 31, 1), 3, 1),
)  # fmt: skip


def beyond(sizes: tuple[int, ...], each: int, more: int, type_: str) -> str:
    """Each block doubles several matrices; the last one has fewer."""
    count, inner = sizes[0], ".".join(map(str, sizes[1:]))
    return (
        f"fun(xs: {count}.{inner}.{type_} => xs |> padEmpty({more}) |> split({each}) |> mapBlock(0)(fun(t =>"
        " t |> bulkCopy |> mapSeq(mapSeq(mapThreads(0)(fun(x => x + x)))) |> toMem(Shared) |> bulkStore))"
        f" |> join |> take({count}))"
    )


@pytest.mark.parametrize("type_", ["f16", "f32", "i8"])
@pytest.mark.parametrize(("sizes", "each", "more"), SHARES)
def test_only_elements_that_exist_are_copied(
    sizes: tuple[int, ...], each: int, more: int, type_: str
) -> None:
    """The emulator writes NaN, or -1, where on a GPU there is what was there before."""
    text = beyond(sizes, each, more, type_)
    kernel = made(text)
    emulated_exactly(check_expression(text), kernel)
    assert "bulk_load_run" in kernel.source and "bulk_store_run" in kernel.source


@pytest.mark.parametrize("type_", ["f16", "f32", "i8"])
def test_a_run_of_which_no_element_exists_is_not_copied(type_: str) -> None:
    """A block takes several runs, one after the other, and the last ones start behind the end."""
    for count, inner, each, turns in ((5, 21, 2, 4), (9, 11, 1, 5), (1, 3, 3, 3), (17, 8, 2, 8)):
        more = -count % (each * turns)
        text = (
            f"fun(xs: {count}.{inner}.{type_} => xs |> padEmpty({more}) |> split({each * turns})"
            f" |> mapBlock(0)(fun(b => b |> split({each}) |> mapSeq(fun(t => t |> bulkCopy"
            " |> mapSeq(mapThreads(0)(fun(x => x + x))) |> toMem(Shared) |> bulkStore)) |> join))"
            f" |> join |> take({count}))"
        )
        assert more >= each
        emulated_exactly(check_expression(text), made(text))


def test_arrays_in_an_array_end_where_the_last_one_does() -> None:
    text = (
        "fun(xs: 3.5.7.11.f16 => xs |> join |> padEmpty(1) |> split(4) |> mapBlock(0)(fun(t => t"
        " |> bulkCopy |> mapSeq(mapSeq(mapThreads(0)(fun(x => x + x)))) |> toMem(Shared) |> bulkStore))"
        " |> join |> take(15) |> split(5))"
    )
    kernel = made(text)
    emulated_exactly(check_expression(text), kernel)
    assert "bulk_load_run" in kernel.source and "bulk_store_run" in kernel.source


# --- runs that start where data say -----------------------------------------------------------------------

GATHERED = "mapBlock(0)(fun(t => t |> {rows}))"
CHOSEN = {
    "by indices": f"fun((is: 5.Idx[7], xs: 7.3.5.f16) => xs |> gather(is) |> {GATHERED})",
    "by indices of indices": (
        f"fun((is: 9.Idx[7], js: 5.Idx[9], xs: 7.3.5.f16) => xs |> gather(is) |> gather(js) |> {GATHERED})"
    ),
    "by numbers": (
        "fun((is: 5.i32, xs: 7.3.5.f16) =>"
        f" xs |> gather(is |> map(fun(i => natAsIndex(7)(min(max(i, 0), 6))))) |> {GATHERED})"
    ),
    "at any element": (
        "fun((is: 5.Idx[87], xs: 101.f16) =>"
        f" xs |> slide(15, 1) |> gather(is) |> map(split(5)) |> {GATHERED})"
    ),
    "several for a block": (
        "fun((is: 5.4.Idx[7], xs: 7.3.5.f16) => is |> mapBlock(0)(fun(js => xs |> gather(js)"
        " |> mapSeq(fun(t => t |> bulkCopy |> mapSeq(mapThreads(0)(fun(x => x + x))))))))"
    ),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_data_may_say_where_a_run_starts(name: str) -> None:
    """All threads read the index, since the offset of the run in shared memory depends on it."""
    text = CHOSEN[name].format(rows=TWICE)
    term, kernel = check_expression(text), made(text)
    assert "bulk_load_run" in kernel.source
    for seed in range(3):
        inputs = random_inputs(inputs_of(term), seed, exact=True)
        found = execute(assemble(program(text), "f"), inputs, "emulate")
        assert np.array_equal(found, call(term, *inputs))


# --- what the emulator notices ----------------------------------------------------------------------------


def without_shift(source: str) -> str:
    """As if each buffer started at a chunk."""
    return re.sub(r"\(([^()]|\([^()]*\))* \+ (\d+)\);", r"(\2);", source)


FAULTS: dict[str, tuple[Callable[[str], str], str]] = {
    "buffers that start at a chunk": (without_shift, "16"),
    "no wait": (lambda s: re.sub(r" *barrier_wait.*\n", "", s), "under way"),
    "no announcement": (lambda s: s.replace("barrier_expect(full, 0);", ""), "wait"),
    "no fence": (lambda s: s.replace("fence_async_shared();", ""), "fence"),
    "no wait for the store": (lambda s: re.sub(r" *bulk_wait_read.*\n", "", s), "bulk_wait_read"),
    "an element too many": (lambda s: s.replace(" * 77, 77,", " * 77, 78,"), "written|outside|stores"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_noticed(fault: str) -> None:
    change, said = FAULTS[fault]
    kernel = made(twice(3, 7, 11, "f16"))
    source = change(kernel.source)
    assert source != kernel.source
    launch = kernel.launch
    arrays = [np.zeros((3, 7, 11), np.float16), np.ones((3, 7, 11), np.float16)]
    arguments = [Buffer("output", arrays[0], initialised=False), Buffer("xs", arrays[1])]
    with pytest.raises(EmulationError) as caught:
        for seed in range(3):
            emulate(source, kernel.name, (3, 1, 1), launch.block, arguments, launch.shared_bytes, seed=seed)
    assert re.search(said, str(caught.value)), caught.value


# --- what is refused --------------------------------------------------------------------------------------

LOCAL = "asFragment |> toMem(Local)"
FRAGMENTS = (
    f"tensorMatMulAdd(a |> {LOCAL}, B |> {LOCAL}, generateFragment(0.0) |> toMem(Local)) |> toMem(Local)"
    " |> asMatrix"
)
REFUSED = {
    "zeros behind the end": (
        "fun(xs: 3.33.f16 => xs |> mapBlock(0)(fun(t => t |> padCst(0, 3)(0.0) |> bulkCopy"
        " |> mapThreads(0)(fun(x => x)))))",
        "R0731",
    ),
    "an end that is not that of the array": (
        "fun((xs: 3.7.11.f16, ys: 3.7.11.f16) => concat(xs |> padEmpty(1) |> split(2) |> mapBlock(0)(fun(t =>"
        " t |> bulkCopy |> mapSeq(mapSeq(mapThreads(0)(fun(x => x + x)))) |> toMem(Shared) |> bulkStore))"
        " |> join |> take(3))(ys |> mapBlock(0)(mapSeq(mapThreads(0)(fun(x => x))))))",
        "R0731",
    ),
    "nothing behind the end of each row": (
        "fun(xs: 3.5.33.f16 => xs |> mapBlock(0)(fun(t => t |> map(padEmpty(3)) |> bulkCopy"
        " |> mapSeq(mapThreads(0)(fun(x => x))))))",
        "R0731",
    ),
    "the last element behind the end": (
        "fun(xs: 5.33.f16 => xs |> padClamp(0, 1) |> split(2) |> mapBlock(0)(fun(t => t |> bulkCopy"
        " |> mapSeq(mapThreads(0)(fun(x => x))))))",
        "R0731",
    ),
    "rows that are apart": (
        "fun(xs: 3.5.33.f16 => xs |> mapBlock(0)(fun(t => t |> map(take(31)) |> bulkCopy"
        " |> mapSeq(mapThreads(0)(fun(x => x))))))",
        "R0731",
    ),
    "padded rows": (
        "fun(xs: 3.5.33.f16 => xs |> mapBlock(0)(fun(t => t |> bulkCopy(padded(4))"
        " |> mapSeq(mapThreads(0)(fun(x => x))))))",
        "R0731",
    ),
    "swizzled rows": (  # more of them than a box has
        "fun(xs: 3.257.64.f16 => xs |> mapBlock(0)(fun(t => t |> bulkCopy(swizzled(128))"
        " |> mapSeq(mapThreads(0)(fun(x => x))))))",
        "R0731",
    ),
    "a part of a buffer": (
        "fun(xs: 3.2.33.f16 => xs |> mapBlock(0)(fun(t => t |> mapSeq(mapThreads(0)(fun(x => x)))"
        " |> toMem(Shared) |> mapSeq(fun(r => r |> bulkStore)))))",
        "R0731",
    ),
    "fragments from anywhere in a chunk": (
        "fun((xs: 515.f16, B: 16.16.f16) => xs |> drop(3) |> split(256) |> mapBlock(0)(fun(t => t"
        f" |> split(16) |> bulkCopy |> split(16) |> mapWarp(fun(a => {FRAGMENTS})))))",
        "R0745",
    ),
    "a place that the kernel computes": (
        "fun((is: 5.2.Idx[7], xs: 7.13.f16) => is |> mapBlock(0)(fun(is =>"
        " let js = is |> mapThreads(0)(fun(i => i)) |> toMem(Shared) in"
        " xs |> gather(js) |> mapSeq(fun(t => t |> bulkCopy |> mapThreads(0)(fun(x => x)))))))",
        "R0745",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_run_is_refused_with_a_place(name: str) -> None:
    text, code = REFUSED[name]
    with pytest.raises(TranslationError) as caught:
        made(text)
    assert caught.value.code == code and caught.value.origin is not None


# --- alignment --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("factor", "expected"), [(9409, 1), (9604, 4), (6, 2), (4096, 8), (24, 8)])
def test_vectors_are_no_longer_than_starts_allow(factor: int, expected: int) -> None:
    start = variable("block") * factor
    assert granularity(start, 8) == expected
    assert (shift(start, 8) == constant(0)) == (expected == 8)
    assert all(factor * block % 8 % expected == 0 for block in range(20))


def test_threads_move_pairs_of_runs_whose_starts_are_even_and_no_more() -> None:
    """98 · 98 is four times an odd number: vectors of 8 would be misaligned in every second block."""
    copy = "mapSeq(mapThreads(0)(fun(v => v)))"
    for width, expected in ((2, True), (4, True), (8, False)):
        text = (
            "fun(xs: 3.98.98.f16 => xs |> mapBlock(0)(fun(t => t |> bulkCopy |> join"
            f" |> padEmpty(4) |> asVector({width}) |> split(1) |> {copy} |> join |> asScalar |> take(9604))))"
        )
        source = made(text).source
        assert (f"copy_vector<{width}>" in source) == expected, source
