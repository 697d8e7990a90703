"""Dual products: one fold over triples of tiles (a, b, c), whose accumulator is a pair of sums, A·B and A·C.

The low-level programs are written by hand, with warpgroups' and with warps' instructions, in each form that
rules give a fold of pairs. The result is max(A·Bᵀ, 0) · (A·Cᵀ).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from codegen import runtime
from codegen.execute import execute
from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from codegen.runtime.compiling import compiler_report
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.errors import TranslationError
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from tests.support.nightly import in_turn


def k_tiles(k: int, matrix: str) -> str:
    return f"({matrix} |> map(split({k})) |> transpose)"


# --- the steps: the accumulator `acc` and tiles a, b and c give the new accumulator -----------------------

ADD = "tensorMatMulAdd(asFragment(a16), asFragment(transpose({b})), {sum})"


def one(b: str, sums: str) -> str:
    """The product of the rows `aw` and a tile, in steps of 16 along k."""
    return f"""(zip{k_tiles(16, "aw")}{k_tiles(16, b)}
        |> reduceSeqUnroll(Local)((sum, (a16, b16)) => {ADD.format(b="b16", sum="sum")}, {sums}))"""


def rows(sums: str, then: str) -> str:
    return f"zip({sums})(split(64)(a)) |> mapWarpGroup((sums, aw) => {then})"


ZEROS = "generate(w => generateFragment(0.0))"
PAIR = f"({ZEROS}, {ZEROS})"
PAIRS = "generate(w => (generateFragment(0.0), generateFragment(0.0)))"
HALVES = "generate(w => generate(h => generateFragment(0.0)))"


def halves(sums: str, b: str) -> str:
    """A warpgroup's columns in two fragments."""
    inner = f"""zip{k_tiles(16, "aw")}{k_tiles(16, b)} |> reduceSeqUnroll(Local)((acc, (a16, b16)) =>
        zip(acc)(b16 |> split(h)) |> mapSeqUnroll((sum, b16) => {ADD.format(b="b16", sum="sum")}), sums)"""
    return f"({rows(sums, inner)})"


# by the form of the accumulator: its start, the step, and the pairs of fragments, by warpgroup
FORMS = {
    "a pair of arrays": (
        PAIR,
        f"({rows('fst(acc)', one('b', 'sums'))}, {rows('snd(acc)', one('c', 'sums'))})",
        "zip(fst(acc))(snd(acc))",
    ),
    "an array of pairs": (PAIRS, rows("acc", f"({one('b', 'fst(sums)')}, {one('c', 'snd(sums)')})"), "acc"),
    "an array of pairs, by members": (
        PAIRS,
        f"zip({rows('map(fst)(acc)', one('b', 'sums'))})({rows('map(snd)(acc)', one('c', 'sums'))})",
        "acc",
    ),
    "a fold of pairs inside": (
        PAIRS,
        rows(
            "acc",
            f"zip{k_tiles(16, 'aw')}(zip{k_tiles(16, 'b')}{k_tiles(16, 'c')}) |> reduceSeqUnroll(Local)("
            f"(sum, (a16, (b16, c16))) => ({ADD.format(b='b16', sum='fst(sum)')}, "
            f"{ADD.format(b='c16', sum='snd(sum)')}), sums)",
        ),
        "acc",
    ),
}
COMBINED = "zipFragment(x)(y) |> mapFragment((u, v) => max(u, 0.0) * v) |> toMem(Local) |> asMatrix"


def dual(
    form: str, fold: str, m: int = 256, n: int = 128, k: int = 320, block: int = 64, element: str = "f16"
) -> str:
    """Tiles of 128 × block for each product, in steps of 64 along k."""
    start, step, pairs = FORMS[form]
    copied = "{} |> bulkCopy(swizzled(128))"
    return f"""fun((A: {m}.{k}.{element}, B: {n}.{k}.{element}, C: {n}.{k}.{element}) =>
      A |> split(128) |> mapBlock(1)(a =>
        zip(B |> split({block}))(C |> split({block})) |> mapBlock(0)((b, c) =>
          zip{k_tiles(64, "a")}(zip{k_tiles(64, "b")}{k_tiles(64, "c")})
          |> {fold}(
            (a, (b, c)) => ({copied.format("a")}, ({copied.format("b")}, {copied.format("c")})),
            (acc, (a, (b, c))) => {step},
            {start})
          |> (acc => {pairs} |> mapWarpGroup((x, y) => {COMBINED}))
          |> join |> transpose)
        |> join |> transpose)
      |> join)"""


# --- warps' instructions ------------------------------------------------------------------------------------


def copied(matrix: str) -> str:
    """A tile of rows of 32 elements, by 128 threads, each of which copies 16 bytes at a time."""
    return f"""({matrix} |> join |> asVectorAligned(8) |> split(128)
        |> mapSeqUnroll(mapThreads(0)(e => e)) |> join |> asScalar |> split(32) |> copyAsync(padded(8)))"""


WARPS = f"""
    zip(acc |> split(2), a |> split(32))
    |> map((accs, aw) => zip(accs, zip(b |> split(32))(c |> split(32))) |> map((acc, bc) => (acc, (aw, bc))))
    |> join
    |> mapWarp((acc, (aw, (bw, cw))) =>
      zip{k_tiles(16, "aw")}(zip{k_tiles(16, "bw")}{k_tiles(16, "cw")})
      |> reduceSeqUnroll(Local)((acc, (a16, (b16, c16))) =>
        a16 |> split(16) |> mapSeqUnroll(asFragment) |> toMem(Local) |> (fs =>
        b16 |> split(8) |> mapSeqUnroll(t => t |> transpose |> asFragment) |> toMem(Local) |> (gs =>
        c16 |> split(8) |> mapSeqUnroll(t => t |> transpose |> asFragment) |> toMem(Local) |> (hs =>
          STEP))),
        acc))"""
MEMBER = """(zip({sums}, fs) |> mapSeqUnroll((sums, f) =>
    zip(sums, {bs}) |> mapSeqUnroll((sum, g) => tensorMatMulAdd(f, g, sum))))"""
SUMS = "generate(i => generate(j => generateFragment(0.0)))"
WARP_FORMS = {
    "a pair of arrays": (
        f"generate(w => ({SUMS}, {SUMS}))",
        f"({MEMBER.format(sums='fst(acc)', bs='gs')}, {MEMBER.format(sums='snd(acc)', bs='hs')})",
        "zip(fst(acc))(snd(acc)) |> mapSeqUnroll((xs, ys) => zip(xs)(ys) |> mapSeqUnroll((x, y) =>"
        f" {COMBINED}))",
    ),
    "an array of pairs": (
        "generate(w => generate(i => generate(j => (generateFragment(0.0), generateFragment(0.0)))))",
        """zip(acc, fs) |> mapSeqUnroll((sums, f) => zip(sums, zip(gs, hs)) |> mapSeqUnroll((sum, (g, h)) =>
            (tensorMatMulAdd(f, g, fst(sum)), tensorMatMulAdd(f, h, snd(sum)))))""",
        f"acc |> mapSeqUnroll(xys => xys |> mapSeqUnroll((x, y) => {COMBINED}))",
    ),
}


def dual_of_warps(form: str, m: int = 64, n: int = 64, k: int = 96) -> str:
    """Blocks of 64 × 64, four warps of 32 × 32, steps of 32 along k."""
    start, step, combined = WARP_FORMS[form]
    joined = "map(ts => ts |> transpose |> map(r => r |> join)) |> join"
    return f"""fun((A: {m}.{k}.f16, B: {n}.{k}.f16, C: {n}.{k}.f16) =>
      A |> split(64) |> mapBlock(1)(a =>
        zip(B |> split(64))(C |> split(64)) |> mapBlock(0)((b, c) =>
          zip{k_tiles(32, "a")}(zip{k_tiles(32, "b")}{k_tiles(32, "c")})
          |> reducePipelined(3)(
            (a, (b, c)) => ({copied("a")}, ({copied("b")}, {copied("c")})),
            (acc, (a, (b, c))) => {WARPS.replace("STEP", step)},
            {start})
          |> mapWarp(acc => {combined})
          |> split(2)
          |> map(ts => ts |> map(y => y |> {joined}) |> transpose |> map(r => r |> join))
          |> join |> transpose)
        |> join |> transpose)
      |> join)"""


# --- right results ----------------------------------------------------------------------------------------

FOLDS = {"reduceRoleSplit": "reduceRoleSplit(3, 1, 2)", "reducePipelined": "reducePipelined(2)"}


@cache
def made(text: str) -> Kernel:
    return generate(data_flow(check_expression(text)), "dual")


def agrees(text: str, kernel: Kernel, seed: int = 0) -> bool:
    term = check_expression(text)
    inputs = random_inputs(inputs_of(term), seed=7, exact=True)
    return np.array_equal(execute(kernel, inputs, "emulate", seed=seed), call(term, *inputs))


@pytest.mark.parametrize(("form", "fold"), in_turn(FORMS, FOLDS))
def test_a_fold_of_triples_by_warpgroups_is_exact(form: str, fold: str) -> None:
    text = dual(form, FOLDS[fold])
    kernel = made(text)
    assert len(set(kernel.source.split("wgmma<")[1:])) >= 2 and "fill_fragment" not in kernel.source
    for seed in range(3):  # copies arrive late, at once, at random
        assert agrees(text, kernel, seed)


@pytest.mark.parametrize("form", WARP_FORMS)
def test_a_fold_of_triples_by_warps_is_exact(form: str) -> None:
    text = dual_of_warps(form)
    kernel = made(text)
    assert kernel.source.count("mma_sync") == 2 and "mma::fragment" in kernel.source
    assert agrees(text, kernel)


@pytest.mark.parametrize("form", FORMS)
def test_members_of_an_accumulator_are_updated_in_place(form: str) -> None:
    """Two fragments of accumulators a warpgroup, and none to which they would be copied."""
    kernel = made(dual(form, FOLDS["reduceRoleSplit"]))
    declared = [line for line in kernel.source.splitlines() if "group::fragment<64, float>" in line]
    assert len(declared) == 3  # with the one of the result


# --- refused, and for a GPU -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fold", ["reduceSeq(Local)(", "reducePipelined(2)(x => x |> mapSeq(y => y) |> toMem(Local), "]
)
def test_a_member_that_reads_what_another_has_replaced_is_refused(fold: str) -> None:
    """Arrays are updated in place, so the second member would see the first one's new value."""
    zeros = "(generate(i => 0.0) : 8.f32) |> mapSeq(x => x) |> toMem(Local)"
    text = f"""fun((xs: 4.8.f32) => xs |> {fold}
        (acc, x) => (zip(fst(acc))(x) |> mapSeq((a, b) => a + b),
            zip(FIRST(acc))(snd(acc)) |> mapSeq((a, b) => a + b)),
        ({zeros}, {zeros})) |> (acc => zip(fst(acc))(snd(acc)) |> mapSeq((a, b) => a * b)))"""
    right = text.replace("FIRST", "snd")
    assert agrees(right, made(right))
    with pytest.raises(TranslationError, match="reads an element of `acc_fst`") as caught:
        made(text.replace("FIRST", "fst"))
    assert caught.value.code == "R0720"


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
@pytest.mark.parametrize("form", FORMS)
def test_two_products_of_128_columns_fit_the_registers_of_two_warpgroups(form: str) -> None:
    kernel = made(dual(form, "reduceRoleSplit(4, 1, 2)", 256, 256, 512, 128))
    report = compiler_report(kernel.source, "sm_90a")
    assert "serialized" not in report and "0 bytes spill stores" in report
