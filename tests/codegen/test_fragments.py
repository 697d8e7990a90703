"""Fragments whose elements' places are known: `mma.sync`, `ldmatrix`, swizzled tiles."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest

from codegen import runtime
from codegen.emulation.emulator import Buffer, emulate
from codegen.execute import execute
from codegen.ir.fragments import LANES, Distribution, distribution, extents
from codegen.ir.kernel import Kernel
from codegen.pipeline import assemble, generate
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.errors import StrategyError, TranslationError
from rise.instructions import Family, family, instruction
from rise.interpret import call, random_inputs
from rise.nat import NatVariable, constant
from rise.normal import data_flow
from rise.types import Array, Fragment, FragmentKind, Scalar
from strategies.matmul.tensor_core import tensor_core
from tests.support.nightly import every_other, in_turn
from tests.support.programs import succeeded

A, B, C = FragmentKind.A, FragmentKind.B, FragmentKind.ACCUMULATOR
Element = tuple[int, int]


def fragment(kind: FragmentKind, m: int, n: int, k: int, element: str) -> Fragment:
    rows, columns, other = {A: (m, k, n), B: (k, n, m), C: (m, n, k)}[kind]
    return Fragment(constant(rows), constant(columns), constant(other), Scalar(element), kind)


def known(of: Fragment) -> Distribution:
    places = distribution(of)
    assert places is not None
    return places


@cache
def elements(places: Distribution) -> dict[tuple[int, int], Element]:
    """(row, column) by lane and register."""
    found: dict[tuple[int, int], Element] = {}
    for lane in range(LANES):
        for register in range(places.registers.value or 0):
            row, column = places.at(constant(lane), constant(register))
            found[lane, register] = (row.value or 0, column.value or 0)
    return found


SHAPES = [
    *((m, n, k, t) for t in ("f16", "bf16") for m, n in ((16, 8), (16, 64), (32, 24)) for k in (8, 16)),
    *((m, n, 32, "i8") for m in (16, 32) for n in (8, 16)),
    *((m, n, 8, "tf32") for m, n in ((16, 8), (16, 64), (32, 24))),
]


# --- distributions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k", "element"), SHAPES)
def test_every_element_is_held_once(m: int, n: int, k: int, element: str) -> None:
    accumulator = "i32" if element == "i8" else "f32"
    for kind, rows, columns in ((A, m, k), (B, k, n), (C, m, n)):
        held = Counter(
            elements(known(fragment(kind, m, n, k, element if kind is not C else accumulator))).values()
        )
        assert held == {(row, column): 1 for row in range(rows) for column in range(columns)}


def test_the_elements_are_where_the_instruction_has_them() -> None:
    """The formulas of the PTX manual for m16n8k16 (16 bits), m16n8k32 (8 bits) and m16n8k8 (tf32)."""
    for lane in range(LANES):
        group, thread = lane // 4, lane % 4
        for i in range(8):
            row = group + (8 if i in (2, 3, 6, 7) else 0)
            column = thread * 2 + (i & 1) + (8 if i >= 4 else 0)
            assert elements(known(fragment(A, 16, 8, 16, "f16")))[lane, i] == (row, column)
        for i in range(4):
            row = thread * 2 + (i & 1) + (8 if i >= 2 else 0)
            assert elements(known(fragment(B, 16, 8, 16, "bf16")))[lane, i] == (row, group)
            assert elements(known(fragment(C, 16, 8, 16, "f32")))[lane, i] == (
                group + (8 if i >= 2 else 0), thread * 2 + (i & 1),
            )  # fmt: skip
        for i in range(16):
            row = group + (8 if i // 4 % 2 else 0)
            column = thread * 4 + (i & 3) + (16 if i >= 8 else 0)
            assert elements(known(fragment(A, 16, 8, 32, "i8")))[lane, i] == (row, column)
        for i in range(4):
            row, column = group + (8 if i in (1, 3) else 0), thread + (4 if i >= 2 else 0)
            assert elements(known(fragment(A, 16, 8, 8, "tf32")))[lane, i] == (row, column)
        for i in range(2):
            row = thread + (4 if i else 0)
            assert elements(known(fragment(B, 16, 8, 8, "tf32")))[lane, i] == (row, group)


def test_neighbouring_registers_hold_neighbours() -> None:
    for kind in (A, B, C):
        places = known(fragment(kind, 32, 16, 16, "f16"))
        held = elements(places)
        for (lane, register), (row, column) in held.items():
            if register % places.run:
                one_before = (row, column - 1) if places.along_row else (row - 1, column)
                assert held[lane, register - 1] == one_before


def test_of_wmma_nothing_is_known() -> None:
    for shape in ((16, 16, 16), (32, 8, 16), (8, 32, 16)):
        assert family(shape) is Family.WMMA
        assert distribution(fragment(A, *shape, "f16")) is None
    assert extents(Array(constant(3), fragment(C, 16, 8, 16, "f32"))) == (constant(3), constant(4))
    assert NatVariable("lane") in known(fragment(C, 16, 8, 16, "f32")).row.atoms


def test_an_instruction_takes_certain_types() -> None:
    assert instruction((16, 8, 16), "f16", "f16") is not None
    assert instruction((16, 8, 16), "bf16", "f16") is None
    assert instruction((16, 8, 32), "f16", "f32") is None
    assert instruction((16, 8, 32), "i8", "i32") is not None
    assert instruction((16, 8, 8), "tf32", "f32") is not None
    assert instruction((16, 8, 16), "tf32", "f32") is None
    for element in ("f32", "i32", "i8"):
        with pytest.raises(TranslationError, match="the hardware does not have the fragment") as caught:
            distribution(fragment(A, 16, 8, 8, element))
        assert caught.value.code == "R0715"


# --- products ---------------------------------------------------------------------------------------------


def product(operand: str, result: str, a: str = "A", b: str = "transpose(B)") -> str:
    """A·B for 64 × 48 × 96; `a` and `b` say how the operands lie."""
    left = "A: 64.96" if a == "A" else "A: 96.64"
    right = "B: 96.48" if b == "transpose(B)" else "B: 48.96"
    dot = f"zip(r)(c) |> map(fun((x, y) => {result}(x) * {result}(y))) |> reduce(+, 0)"
    if operand == result:
        dot = "zip(r)(c) |> map(fun((x, y) => x * y)) |> reduce(+, 0)"
    return f"fun(({left}.{operand}, {right}.{operand}) => {a} |> map(fun(r => {b} |> map(fun(c => {dot})))))"


LAYOUTS = [(a, b) for a in ("A", "transpose(A)") for b in ("transpose(B)", "B")]


@cache
def derived(text: str, **parameters: object) -> Kernel:
    result = succeeded(
        tensor_core(**{"block": (32, 48, 32), "warp": (32, 24), **parameters})(  # type: ignore[arg-type]
            data_flow(check_expression(text))
        )
    )
    return generate(result.term, "product")


def agrees(text: str, made: Kernel) -> bool:
    term = check_expression(text)
    inputs = random_inputs(inputs_of(term), seed=5, exact=True)
    return np.array_equal(execute(made, inputs, "emulate"), call(term, *inputs))


KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "f16 → f32": ("f16", "f32", {"fragment": (16, 8, 16)}),
    "f16 → f16": ("f16", "f16", {"fragment": (16, 24, 16)}),
    "bf16 → f32, k = 8": ("bf16", "f32", {"fragment": (32, 8, 8)}),
    "12 bytes of B a lane": ("f16", "f32", {"fragment": (32, 24, 8)}),
    "i8 → i32": ("i8", "i32", {"fragment": (16, 8, 32), "vector": 16, "padding": 16}),
    "tf32 → f32": ("tf32", "f32", {"fragment": (16, 8, 8)}),
    "large fragments": (
        "f16",
        "f32",
        {"fragment": (32, 24, 16), "prefetch_fragments": True, "epilogue": "direct"},
    ),
}


@pytest.mark.parametrize("kind", every_other(KINDS))
def test_products_are_exact(kind: str) -> None:
    operand, result, parameters = KINDS[kind]
    made = derived(product(operand, result), **parameters)
    assert "mma::mma_sync" in made.source and "wmma" not in made.source
    assert agrees(product(operand, result), made)


@pytest.mark.parametrize(("a", "b"), every_other(LAYOUTS, step=3))
def test_a_tile_in_shared_memory_is_loaded_by_matrices_however_it_lies(a: str, b: str) -> None:
    """A's rows and B's columns lie along k: loaded as they are; else transposed on the way."""
    text = product("f16", "f32", a, b)
    made = derived(text, fragment=(16, 8, 16), epilogue="direct")
    transposed = (a != "A") + (b == "transpose(B)")
    loads = [line for line in made.source.splitlines() if "load_matrices" in line]
    assert sum("load_matrices_transposed" in line for line in loads) == transposed and len(loads) == 2
    assert agrees(text, made)


@pytest.mark.parametrize(
    ("row", "by_matrices"),
    [
        ("min(indexToInt(r), 9)", True),
        ("15 - indexToInt(r)", True),
        ("min(indexToInt(c), indexToInt(r))", False),
    ],
)
def test_rows_anywhere_are_loaded_by_matrices_but_not_elements_of_several(
    row: str, by_matrices: bool
) -> None:
    """Each lane computes where its row starts. If that depends on the column, adjacent elements are apart."""
    element = f"t |> idx(natAsIndex(16)({row})) |> take(16) |> idx(c)"
    tile = f"generate(fun((r: Idx[16]) => generate(fun((c: Idx[16]) => {element}))))"
    text = (
        "fun((xs: 1.1.16.24.f16, ys: 1.1.16.8.f16) => zip(xs)(ys) |> mapBlock(0)(fun(p => zip(fst(p))(snd(p))"
        " |> mapWarp(fun(q => (fst(q) |> mapSeq(mapLane(fun(e => e))) |> toMem(Shared)) |> fun(t =>"
        f" tensorMatMulAdd({tile} |> asFragment |> toMem(Local))"
        "(snd(q) |> asFragment |> toMem(Local))(generateFragment(f32(0)) |> toMem(Local)) |> toMem(Local)"
        " |> asMatrix))))))"
    )
    term = check_expression(text)
    made = generate(data_flow(term), "rows")
    assert ("load_matrices<4>(&a" in made.source) == by_matrices
    inputs = random_inputs(inputs_of(term), seed=3, exact=True)
    found = execute(assemble(data_flow(term), "rows"), inputs, "emulate")
    assert np.array_equal(np.asarray(found), call(term, *inputs))


@pytest.mark.parametrize(("a", "b"), every_other(LAYOUTS, step=3))
def test_tiles_of_tf32_are_loaded_by_matrices_along_k_only(a: str, b: str) -> None:
    """A transposing load exchanges elements of 16 bits: of the others each lane loads its own."""
    text = product("tf32", "f32", a, b)
    made = derived(text, fragment=(16, 24, 8), prefetch_fragments=True, epilogue="direct", padding=8)
    assert "load_matrices_transposed" not in made.source
    assert ("load_matrices<4>(&a" in made.source) == (a == "A")
    assert ("load_matrices<2>(&b" in made.source) == (b == "B")
    assert agrees(text, made)


@pytest.mark.parametrize(("a", "b"), every_other(LAYOUTS, step=3))
def test_swizzled_tiles_are_read_as_they_were_written(a: str, b: str) -> None:
    text = product("f16", "f32", a, b)
    made = derived(text, fragment=(16, 8, 16), swizzled=True, prefetch_fragments=True)
    # rows of 32 elements are 64 bytes; those of 48, which B has along n, fit no pattern
    swizzled = 1 + (b == "B")
    assert made.source.count("= swizzled_memory<half, 64>") == swizzled
    assert agrees(text, made)


@pytest.mark.parametrize(
    ("parameters", "worst"),
    [({"padding": 8}, 1), ({"swizzled": True}, 1), ({"padding": 0}, 8)],
    ids=["padded", "swizzled", "neither"],
)
def test_matrices_are_loaded_without_bank_conflicts(parameters: dict[str, object], worst: int) -> None:
    """Rows of 64 elements, 128 bytes, neither padded nor swizzled: all eight rows of a matrix in one bank."""
    text = product("f16", "f32", b="B").replace("96", "128")
    made = derived(text, fragment=(16, 8, 16), block=(32, 48, 64), epilogue="direct", **parameters)
    inputs = random_inputs(inputs_of(check_expression(text)), seed=5, exact=True)
    out = Buffer("output", np.full((64, 48), np.nan, np.float32), initialised=False)
    found = emulate(
        made.source,
        made.name,
        made.launch.grid_at({}),
        made.launch.block,
        [out, *inputs],
        made.launch.shared_bytes,
    )
    lines = made.source.splitlines()
    loads = [c for line, c in found.conflicts.items() if "load_matrices" in lines[line - 1]]
    assert len(loads) == 2 and max(c.wavefronts / c.phases for c in loads) == worst
    copies = [c for line, c in found.conflicts.items() if "copy_async" in lines[line - 1]]
    assert all(c.wavefronts == c.phases for c in copies)


def test_without_staging_each_lane_loads_its_elements() -> None:
    text = product("f16", "f32")
    made = derived(text, fragment=(16, 8, 16), stages=0, epilogue="direct")
    assert "load_matrices" not in made.source and agrees(text, made)


# --- pipelines into registers -----------------------------------------------------------------------------


@pytest.mark.parametrize(("stages", "tiles"), every_other([(1, 3), (2, 1), (2, 7), (3, 2), (3, 3), (5, 3)]))
def test_fragments_are_fetched_ahead_for_any_number_of_tiles(stages: int, tiles: int) -> None:
    """Also where there are fewer tiles than stages, and where a tile is the last one."""
    text = product("f16", "f32").replace("96", str(32 * tiles))
    made = derived(text, fragment=(16, 24, 16), stages=stages, prefetch_fragments=True, epilogue="direct")
    assert agrees(text, made)


def test_the_first_fragments_of_a_tile_are_loaded_before_the_last_product_of_the_one_before() -> None:
    made = derived(
        product("f16", "f32"), fragment=(16, 24, 16), stages=3, prefetch_fragments=True, epilogue="direct"
    )
    body = made.source[made.source.index("// reducePipelined") :]
    loop = body[: body.index("wait_copies<0>")]
    assert loop.index("__syncthreads") < loop.rindex("load_matrices") < loop.rindex("mma_sync")
    assert loop.count("__syncthreads") == 1


# --- refusals ---------------------------------------------------------------------------------------------


def test_wmma_reads_no_swizzled_tile() -> None:
    with pytest.raises(StrategyError, match="swizzled") as caught:
        derived(product("f16", "f32"), warp=(16, 48), swizzled=True)
    assert caught.value.code == "R0609"


def test_a_shape_that_no_instruction_has_is_refused_by_name() -> None:
    with pytest.raises(StrategyError, match=r"no fragment 16×12×16; there are .*m = 16 or 32") as caught:
        tensor_core(block=(32, 48, 32), warp=(16, 24), fragment=(16, 12, 16))
    assert caught.value.code == "R0605"


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
@pytest.mark.parametrize("kind", every_other(KINDS, 1))
def test_the_text_compiles(kind: str) -> None:
    operand, result, parameters = KINDS[kind]
    made = derived(product(operand, result), **parameters)
    for target in ("sm_80", "sm_90a"):
        assert runtime.compile_cubin(made.source, target).stat().st_size > 0


# --- Volta ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(16, 16, 8), (32, 32, 8)])
def test_quad_pairs_hold_operands_twice_and_results_once(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    for row_major in (True, False):
        for kind, rows, columns in ((A, m, k), (B, k, n)):
            places = distribution(fragment(kind, m, n, k, "f16"), row_major)
            assert places is not None and places.along_row is row_major
            held = Counter(elements(places).values())
            assert held == {(row, column): 2 for row in range(rows) for column in range(columns)}
    for element in ("f16", "f32"):
        held = Counter(elements(known(fragment(C, m, n, k, element))).values())
        assert held == {(row, column): 1 for row in range(m) for column in range(n)}


def test_a_quad_pair_has_what_its_instruction_needs() -> None:
    """The formulas of the PTX manual for m8n8k4, for the quarter of the tile that is a quad-pair's."""
    a_row, a_column, b_row, b_column = (
        elements(distribution(fragment(kind, 16, 16, 8, "f16"), row_major))
        for kind in (A, B)
        for row_major in (True, False)
    )
    sums = elements(known(fragment(C, 16, 16, 8, "f32")))
    for lane in range(LANES):
        pair, half = lane // 4 % 4, 4 * (lane >= 16)
        down, right = 8 * (pair % 2), 8 * (pair // 2)
        for i in range(4):
            assert a_row[lane, i] == (down + half + lane % 4, i)
            assert a_column[lane, i] == (down + half + i, lane % 4)
            assert b_row[lane, i] == (lane % 4, right + half + i)
            assert b_column[lane, i] == (i, right + half + lane % 4)
        for i in range(8):
            row, column = (lane & 1) + (i & 2) + half, (i & 4) + (lane & 2) + (i & 1)
            assert sums[lane, i] == (down + row, right + column)


@pytest.mark.parametrize(
    ("a", "b", "result", "shape"),
    [(*two, *shape) for two, shape in in_turn(LAYOUTS, [("f32", (32, 32, 8)), ("f16", (16, 16, 8))])],
)
def test_products_of_quad_pairs_are_exact(a: str, b: str, result: str, shape: tuple[int, int, int]) -> None:
    text = product("f16", result, a, b).replace("48", "64")
    made = derived(text, block=(32, 64, 32), warp=(32, 32), fragment=shape, cp_async=False, stages=1)
    operands = ("row" if a == "A" else "col", "row" if b != "B" else "col")
    for use, lies in zip("ab", operands, strict=True):
        assert f"volta::matrix_{use}, {shape[0]}, {shape[1]}, 8, half, volta::{lies}_major>" in made.source
    assert agrees(text, made)
    if runtime.can_compile():
        assert runtime.compile_cubin(made.source, "sm_75").stat().st_size > 0
