"""Arrays in the shared memory of the blocks of a cluster: who writes, who waits for whom, exact results."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from codegen.ir import imperative as i
from codegen.ir.imperative import Scope
from codegen.ir.kernel import Kernel
from codegen.runtime import can_compile
from codegen.runtime.compiling import compiler_report
from rise.errors import EmulationError, TranslationError
from tests.support.kernels import agrees, kernel
from tests.support.programs import program

DOUBLED = "mapBlock(0)(fun(p => p |> mapThreads(0)(fun(x => x * 2))))"
STORED = f"{DOUBLED} |> toMem(Distributed)"
COLUMNS = "transpose |> split(11) |> mapBlock(0)(fun(cs => cs |> mapThreads(0)(fun(c => {0})))) |> join"
SUMS = COLUMNS.format("c |> reduceSeq(Local)(+, 0)")
OWN = "mapBlock(0)(fun(p => p |> mapThreads(0)(fun(x => x + 1))))"
SHIFTED = "mapBlock(0)(fun(p => p |> drop(1) |> mapThreads(0)(fun(x => x + 1))))"
REVERSED = "reorder(3, natFun(i => 2 - i), natFun(i => 2 - i))"
PAIRS = "mapBlock(0)(fun(p => p |> mapThreads(0)(fun(x => (x, x * 3)))))"
BOTH = COLUMNS.format("c |> map(fun((a, b) => a * b)) |> reduceSeq(Local)(+, 0)")

# a cluster's work on 3 × 33 numbers, and its barriers: of the cluster, of the block
WORK = {
    "columns of what the blocks wrote": (f"ps |> {STORED} |> {SUMS}", 2, 0),
    "only what the own thread wrote": (f"ps |> {STORED} |> {OWN} |> join", 0, 0),
    "only what the own block wrote": (f"ps |> {STORED} |> {SHIFTED} |> join", 0, 1),
    "blocks in reverse": (f"ps |> {STORED} |> {REVERSED} |> {OWN} |> join", 2, 0),
    "padded rows": (f"ps |> map(split(11)) |> mapBlock(0)(mapSeq(mapThreads(0)(fun(x => x))))"
                    f" |> toMem(Distributed, padded(2)) |> map(join) |> {SUMS}", 2, 0),
    "pairs": (f"ps |> {PAIRS} |> toMem(Distributed) |> {BOTH}", 2, 0),
    "what the cluster exchanges twice": (f"ps |> {STORED} |> {SUMS[:-8]} |> toMem(Distributed) |> {REVERSED}"
                                         f" |> {OWN} |> join", 3, 0),
    "in a loop": (f"generate(fun((j: Idx[4]) => j)) |> mapSeq(fun(j => ps |> {STORED} |> {SUMS})) |> join",
                  3, 0),
}  # fmt: skip


def text(work: str, over: str = "mapCluster(0)") -> str:
    return f"fun((xs: 5.3.33.i32) => xs |> {over}(fun(ps => {work})))"


def of_scope(made: Kernel, scope: Scope) -> int:
    return sum(c == i.Barrier(scope) for c in i.commands(made.function.body))


@pytest.mark.parametrize("name", WORK)
def test_barriers_follow_from_uses(name: str) -> None:
    work, of_cluster, of_block = WORK[name]
    made = kernel(text(work))
    assert (of_scope(made, Scope.CLUSTER), of_scope(made, Scope.BLOCK)) == (of_cluster, of_block)
    for seed in (0, 1):
        assert agrees(made, program(text(work)), seed)


def test_persistent_clusters_wait_before_they_write_again() -> None:
    whole = text(WORK["columns of what the blocks wrote"][0], "mapClusterPersistent(0, 2)")
    made = kernel(whole)
    assert made.launch.grid[0] == 6 and of_scope(made, Scope.CLUSTER) == 3
    assert agrees(made, program(whole))


# --- seeded faults ------------------------------------------------------------------------------------

EXCHANGED, AGAIN = WORK["columns of what the blocks wrote"][0], WORK["in a loop"][0]
EARLY = ("R0904|R0908", "of the shared memory of block .*, which .* wrote|before it is written")
ENDED = ("R0924", "may have ended when .* accesses it")
OVERWRITTEN = ("R0907|R0908", "race: .* writes .*, which .* read|race: .* reads .*, which .* wrote")
FAULTS = {
    "nothing waits before the reads": (EXCHANGED, 0, ";", *EARLY),
    "only the block waits before the reads": (EXCHANGED, 0, "__syncthreads();", *EARLY),
    "a block ends while others read": (EXCHANGED, 1, ";", *ENDED),
    "the block alone waits at the end": (EXCHANGED, 1, "__syncthreads();", *ENDED),
    "nothing waits before the next write": (AGAIN, 0, ";", *OVERWRITTEN),
    "only the block waits before the next write": (AGAIN, 0, "__syncthreads();", *OVERWRITTEN),
}


def outcome(work: str, source: str, seed: int) -> tuple[str, str]:
    try:
        made = replace(kernel(text(work)), source=source)
        return str(agrees(made, program(text(work)), seed)), ""
    except EmulationError as error:
        return error.code, error.message


@pytest.mark.parametrize("fault", FAULTS)
def test_the_emulator_notices(fault: str) -> None:
    work, number, instead, code, message = FAULTS[fault]
    source = kernel(text(work)).source
    start, end = [m.span() for m in re.finditer(r"cluster_sync\(\);", source)][number]
    for seed in range(3):
        found, words = outcome(work, source[:start] + instead + source[end:], seed)
        assert re.fullmatch(code, found) and re.search(message, words), (found, words)


def test_a_block_that_the_cluster_does_not_have_is_noticed() -> None:
    source = kernel(text(EXCHANGED)).source
    found, words = outcome(EXCHANGED, source.replace("block(part, k)", "block(part, k + 1)"), 0)
    assert found == "R0902" and "the cluster has no block 3" in words


# --- what is refused ----------------------------------------------------------------------------------

OPERANDS = "tensorMatMulAdd(t |> asFragment |> toMem(Local))(t |> asFragment |> toMem(Local))"
TILES = f"mapWarp(fun(t => {OPERANDS}(generateFragment(f32(0)) |> toMem(Local)) |> toMem(Local) |> asMatrix))"
REFUSED = {
    "outside of clusters": (f"fun((xs: 3.33.i32) => xs |> {STORED} |> {OWN})", "is not stored by a cluster"),
    "of one block": (
        text("ps |> mapBlock(0)(fun(p => p |> split(11) |> mapThreads(0)(mapSeq(fun(x => x)))"
             " |> toMem(Distributed) |> mapThreads(0)(mapSeq(fun(x => x))) |> join)) |> join"),
        "is not stored by a cluster"),
    "several elements for a block": (
        text(f"ps |> map(split(11)) |> mapBlock(0)(mapSeq(mapThreads(0)(fun(x => x)))) |> join"
             f" |> toMem(Distributed) |> split(3) |> map(join) |> {OWN} |> join"),
        "is `9.11.i32`, and a cluster has 3 blocks"),
    "written by another block": (
        text(f"ps |> {DOUBLED} |> {REVERSED} |> toMem(Distributed) |> {OWN} |> join"),
        "has an element for each block, and another block writes it"),
    "swizzled": (
        text(f"ps |> {DOUBLED} |> toMem(Distributed, swizzled(128)) |> {OWN} |> join").replace("33", "32"),
        "is swizzled"),
    "fragments": (
        f"fun((xs: 5.3.1.16.16.f16) => xs |> mapCluster(0)(fun(ps => ps |> mapBlock(0)({TILES})"
        f" |> toMem(Distributed) |> mapBlock(0)(mapSeq(mapSeq(mapSeq(fun(x => x))))))))",
        "is moved as a whole, and threads write and read elements of it"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    whole, message = REFUSED[case]
    with pytest.raises(TranslationError, match="`part` in distributed memory") as caught:
        kernel(whole)
    assert caught.value.code == "R0743" and message in caught.value.message


# --- for the GPU --------------------------------------------------------------------------------------


@pytest.mark.skipif(not can_compile(), reason="there is no CUDA compiler")
def test_the_text_compiles() -> None:
    report = compiler_report(kernel(text(EXCHANGED)).source, "sm_90a")
    assert "0 bytes stack frame, 0 bytes spill stores" in report
