"""Waits for products follow from uses: low-level programs of every shape, and what happens without each wait.

Each program folds triples of tiles (a, b, c) in shared memory with two warpgroups.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from codegen import runtime
from codegen.execute import execute
from codegen.ir import imperative as i
from codegen.ir.kernel import Kernel
from codegen.passes.late_waits import late_waits
from codegen.passes.wgmma_sync import wgmma_sync
from codegen.pipeline import generate
from codegen.runtime.compiling import compiler_report
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.errors import EmulationError, TranslationError
from rise.interpret import call, random_inputs
from rise.nat import constant, remainder, variable
from rise.normal import data_flow
from rise.types import Fragment, FragmentKind, Scalar, Space
from tests.support.nightly import in_turn

ADD = "tensorMatMulAdd(asFragment(a16), asFragment(transpose(b16)), sum)"
ZEROS = "generate(w => generateFragment(0.0))"
PAIRS = "generate(w => (generateFragment(0.0), generateFragment(0.0)))"
BOTH = "(x, y) => zipFragment(x)(y) |> mapFragment((u, v) => u + 2.0 * v) |> toMem(Local) |> asMatrix"


def k_tiles(k: int, matrix: str) -> str:
    return f"({matrix} |> map(split({k})) |> transpose)"


def product(b: str, sums: str, loop: str = "reduceSeqUnroll") -> str:
    """sums + aw · b, in steps of 16 along k."""
    return f"(zip{k_tiles(16, 'aw')}{k_tiles(16, b)} |> {loop}(Local)((sum, (a16, b16)) => {ADD}, {sums}))"


def new_product(b: str) -> str:
    return f"({product(b, 'generateFragment(0.0)')} |> toMem(Local))"


def using(part: str, sums: str) -> str:
    """Adds a function of each sum, which is used twice and therefore stored."""
    return f"""(zipFragment(zipFragment({sums})({part}))({part})
        |> mapFragment((s, p) => fst(s) + max(snd(s), 0.0) + p))"""


def program(step: str, start: str, then: str) -> str:
    copied = "{} |> bulkCopy(swizzled(128))"
    tiles = f"zip{k_tiles(64, 'a')}(zip{k_tiles(64, 'b')}{k_tiles(64, 'c')})"
    return f"""fun((A: 128.320.f16, B: 64.320.f16, C: 64.320.f16, fault: f32) =>
      A |> split(128) |> mapBlock(1)(a =>
        zip(B |> split(64))(C |> split(64)) |> mapBlock(0)((b, c) =>
          {tiles} |> FOLD(
            (a, (b, c)) => ({copied.format("a")}, ({copied.format("b")}, {copied.format("c")})),
            (acc, (a, (b, c))) => zip(acc)(split(64)(a)) |> mapWarpGroup((sums, aw) => {step}),
            {start})
          |> mapWarpGroup({then})
          |> join |> transpose)
        |> join |> transpose)
      |> join)"""


# by what is used and when; the waits of the step with warp specialisation, and those after the loop
PROGRAMS = {
    "two products of one operand": (
        program(f"({product('b', 'fst(sums)')}, {product('c', 'snd(sums)')})", PAIRS, BOTH),
        ["2 release", "1 acc_fst_", "0 acc_snd_ release"],
    ),
    "sums that are scaled between products": (
        program(product("b", "(sums |> mapFragment(x => 0.5 * x))"), ZEROS, "asMatrix"),
        ["0 acc_ release"],
    ),
    "sums of blocks that are scaled": (
        program(
            f"{new_product('b')} |> (p => zipFragment(sums)(p) |> mapFragment((s, p) => s + 2.0 * p))",
            ZEROS,
            "asMatrix",
        ),
        ["0 c_fragment release"],
    ),
    "a product from whose result nothing follows is under way": (
        program(
            f"{new_product('b')} |> (p => ({product('c', 'fst(sums)')}, {using('p', 'snd(sums)')}))",
            PAIRS,
            BOTH,
        ),
        ["2 release", "1 c_fragment", "0 acc_fst_ release"],
    ),
    "rings that alternate": (
        program(
            f"{new_product('b')} |> (p => ({using('p', 'fst(sums)')}, {product('c', 'snd(sums)')}))",
            PAIRS,
            BOTH,
        ),
        ["1 release release", "0 c_fragment release", "0 acc_snd_ release release"],
    ),
}
# a function of the first operand, in registers that are loaded while a product is under way
PROGRAMS["operands in registers, twice"] = (
    program(
        f"""(zip{k_tiles(16, "aw")}{k_tiles(16, "b")} |> reducePipelined(2)(
            (a16, b16) => (a16 |> asFragment |> toMem(Local) |> mapFragment(x => max(x, f16(0.0)))
                |> toMem(Local), b16),
            (sum, (f, b16)) => tensorMatMulAdd(f, asFragment(transpose(b16)), sum), sums))""",
        ZEROS,
        "asMatrix",
    ),
    ["1 a_fragment[k_3_inner + 1 % 2]", "0 release", "0 acc_"],
)
FOLDS = {"specialised": "reduceRoleSplit(3, 1, 2)", "not specialised": "reducePipelined(3)"}


@cache
def made(name: str, fold: str) -> Kernel:
    return generate(data_flow(check_expression(PROGRAMS[name][0].replace("FOLD", FOLDS[fold]))), "waits")


def agrees(name: str, fold: str, kernel: Kernel, seed: int = 0, fault: int = 0) -> bool:
    term = check_expression(PROGRAMS[name][0].replace("FOLD", FOLDS[fold]))
    inputs = [*random_inputs(inputs_of(term), seed=7, exact=True)[:3], np.float32(fault)]
    return np.array_equal(execute(kernel, inputs, "emulate", seed=seed), call(term, *inputs))


@pytest.mark.parametrize(("name", "fold"), in_turn(PROGRAMS, FOLDS))
def test_programs_are_exact(name: str, fold: str) -> None:
    for seed in range(3):  # copies arrive late, at once, at random
        assert agrees(name, fold, made(name, fold), seed)


@pytest.mark.parametrize("name", PROGRAMS)
def test_waits_are_as_late_as_uses_allow(name: str) -> None:
    source = made(name, "specialised").source
    computing = source[source.index("registers_increase") :]
    found: list[str] = []
    for pending, registers, arrival in re.findall(r"wgmma_wait<(\d)>\((.*)\)|(barrier_arrive)", computing):
        if arrival:
            found[-1] += " release"
        else:
            found.append(
                f"{pending} {registers}".translate({ord(c): None for c in "(),"}).replace(".x", "").strip()
            )
    assert found == PROGRAMS[name][1]


# --- faults -----------------------------------------------------------------------------------------------

WAIT = re.compile(r"wgmma_wait<(\d)>\((.*)\);")


# waits that only name registers of products over by then, or keep the compiler from using registers again
NAMING = {
    ("operands in registers, twice", "specialised", "one later: wgmma_wait<0>(acc_.x);"),
    ("operands in registers, twice", "not specialised", "without wgmma_wait<0>();"),
    ("operands in registers, twice", "not specialised", "one later: wgmma_wait<0>();"),
}


def with_faults(source: str) -> tuple[str, list[str]]:
    """The text with a fault for each number: every wait is left out, and every wait for fewer groups."""
    faults: list[str] = []

    def faulty(found: re.Match[str]) -> str:
        pending, registers = int(found[1]), found[2]
        faults.append(f"without {found[0]}")
        without = len(faults)
        faults.append(f"one later: {found[0]}")
        return (
            f"if (fault_ == {without}.0f) ; else if (fault_ == {without + 1}.0f) "
            f"wgmma_wait<{pending + 1}>({registers}); else {found[0]}"
        )

    return WAIT.sub(faulty, source), faults


@pytest.mark.parametrize(("name", "fold"), in_turn(PROGRAMS, FOLDS))
def test_no_wait_can_be_left_out_or_be_later(name: str, fold: str) -> None:
    kernel = made(name, fold)
    source, faults = with_faults(kernel.source)
    faulty = replace(kernel, source=source)
    assert faults and agrees(name, fold, faulty)
    for number, fault in enumerate(faults, 1):
        noticed = any(is_noticed(name, fold, faulty, seed, number) for seed in range(3))
        assert noticed == ((name, fold, fault) not in NAMING), fault


def is_noticed(name: str, fold: str, faulty: Kernel, seed: int, number: int) -> bool:
    try:
        return not agrees(name, fold, faulty, seed, number)
    except EmulationError:
        return True


# --- a converted accumulator as an operand ------------------------------------------------------------------


def shown(command: i.Command) -> list[str]:
    """The commands of a program in order, as words."""
    match command:
        case i.Wgmma(i.Access(name)):
            return [f"{name} += product"]
        case i.WgmmaFence(fragments, pins):
            return [
                " ".join(
                    ["pin" if pins else "fence", *(f.buffer for f in fragments if isinstance(f, i.Access))]
                )
            ]
        case i.WgmmaWait(pending, fragments):
            names = (f.buffer for f in fragments if isinstance(f, i.Access))
            return [" ".join([f"wait {pending}", *names])]
        case i.WgmmaCommit():
            return ["commit"]
        case i.Barrier():
            return ["barrier"]
        case i.Assign(i.Access(name)):
            return [f"{name} := …"]
        case i.For():
            return [f"for {command.index}", *shown(command.body), "end"]
        case _:
            return [word for part in i.inner(command) for word in shown(part)]


def test_a_result_that_becomes_an_operand_is_waited_for_and_no_other() -> None:
    """S := Q K ; P := f S ; O := g O + P V, with P in registers; O is scaled, so it is over with its step."""
    sums = Fragment(constant(64), constant(64), constant(16), Scalar("f32"), FragmentKind.ACCUMULATOR)
    left = Fragment(constant(64), constant(16), constant(64), Scalar("f16"), FragmentKind.A)
    half, k = Scalar("f16"), variable("k")

    def tile(name: str) -> i.Tile:
        return i.Tile(name, constant(0), constant(64), True, half, (remainder(k, constant(2)),))

    def element(name: str) -> i.Access:
        return i.Access(name, (variable("e"),), Scalar("f32"))

    def each(command: i.Command) -> i.Command:
        return i.For("e", constant(8), command, unroll=True)

    s, p, o = (i.Access(name, (), type_) for name, type_ in (("S", sums), ("P", left), ("O", sums)))
    step = i.sequence(
        i.Wgmma(s, tile("Q"), tile("K"), clear=constant(0)),
        each(i.Assign(element("P"), element("S"))),
        each(i.Assign(element("O"), element("O"))),
        i.Wgmma(o, p, tile("V")),
    )
    body: i.Command = i.sequence(i.For("k", constant(9), step), each(i.Assign(element("out"), element("O"))))
    for name, type_ in (("S", sums), ("P", left), ("O", sums)):
        body = i.New(Space.LOCAL, name, type_, body)
    body = i.ParallelFor(i.Level.WARPGROUP, 0, "w", constant(1), body)
    assert shown(wgmma_sync(i.Function("f", (), (), body)).body) == [
        *("for k", "fence S", "S += product", "commit"),
        *("wait 0 S", "for e", "P := …", "end", "for e", "O := …", "end"),
        *("pin O", "pin P", "fence", "O += product", "commit", "wait 0 O", "wait 0 P", "end"),
        *("for e", "out := …", "end"),
    ]  # fmt: skip


def test_a_wait_stays_behind_the_elements_that_are_computed_before_it() -> None:
    """Once for the waits that follow each other; not where nothing, or a number for each row, is computed."""
    sums = Fragment(constant(64), constant(64), constant(16), Scalar("f32"), FragmentKind.ACCUMULATOR)
    column = replace(sums, columns=constant(1), kind=FragmentKind.COLUMN)
    o, rows = i.Access("O", (), sums), i.Access("R", (), column)

    def computed(of: i.Access) -> i.Command:
        element = i.Access(of.buffer, (variable("e"),), Scalar("f32"))
        return i.ForFragment(of.type, "e", i.Assign(element, element))  # type: ignore[arg-type]  # a fragment

    wait = i.WgmmaWait(0, (o,))
    several = i.For("f", constant(2), wait, unroll=True, label="accumulators")
    tile = i.Tile("Q", constant(0), constant(64), True, Scalar("f16"), (constant(0),))
    text = [
        *(i.Wgmma(o, tile, tile), computed(rows), wait, computed(rows), wait),
        *(computed(o), wait, several, computed(o), i.Wgmma(o, tile, tile), wait, computed(o), several),
    ]
    assert shown(late_waits(i.sequence(*text))) == [
        *("O += product", "R := …", "wait 0 O", "R := …", "wait 0 O", "O := …", "barrier", "wait 0 O"),
        *("for f", "wait 0 O", "end", "O := …", "O += product", "wait 0 O", "O := …", "barrier"),
        *("for f", "wait 0 O", "end"),
    ]  # fmt: skip


# --- for a GPU, and refused -------------------------------------------------------------------------------


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
@pytest.mark.parametrize(("name", "fold"), in_turn(PROGRAMS, FOLDS))
def test_the_compiler_serialises_no_products(name: str, fold: str) -> None:
    report = compiler_report(made(name, fold).source, "sm_90a")
    assert "serialized" not in report and "0 bytes spill stores" in report


def test_a_loop_over_fragments_that_is_not_unrolled_is_refused() -> None:
    halves = f"""zip{k_tiles(16, "aw")}{k_tiles(16, "b")} |> reduceSeqUnroll(Local)((sums, (a16, b16)) =>
        zip(sums)(b16 |> split(32)) |> mapSeqUnroll((sum, b16) => {ADD}), sums)"""
    start = "generate(w => generate(h => generateFragment(0.0)))"
    then = "sums => sums |> mapSeqUnroll(asMatrix) |> transpose |> map(join)"
    text = program(halves, start, then).replace("FOLD", FOLDS["specialised"])
    generate(data_flow(check_expression(text)), "waits")
    rolled = text.replace("mapSeqUnroll((sum, b16)", "mapSeq((sum, b16)")
    with pytest.raises(TranslationError, match="not unrolled selects a fragment") as caught:
        generate(data_flow(check_expression(rolled)), "waits")
    assert caught.value.code == "R0738" and caught.value.origin is not None
