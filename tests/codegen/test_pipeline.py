"""From programs to kernels: exact results in the emulator, and the structure that makes them fast."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from codegen.execute import execute
from codegen.ir import imperative as i
from codegen.ir.imperative import Level, Scope
from codegen.ir.kernel import Kernel
from codegen.ir.launch import Launch
from codegen.pipeline import generate
from rewrites.result import Failure
from rise.check.program import check_text
from rise.check.specialise import size_names, specialise
from rise.expr import Expr, inline
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.types import FragmentKind, Space
from strategies.default import default
from strategies.matmul.tensor_core import tensor_core
from tests.support.golden import assert_golden
from tests.support.nightly import every_other
from tests.support.programs import Sizes, matrix_program, succeeded

GOLDEN = Path(__file__).parent / "golden"
SUM = "reduceSeq(Local)(fun((s, t) => s + t), 0)"


# --- helpers ----------------------------------------------------------------------------------------


def program(body: str, **sizes: int) -> Expr:
    definition = check_text(f"def f = {body}")["f"]
    given = {name: sizes.get(name, 16) for name in size_names(definition)}
    return data_flow(inline(specialise(definition, given)))


def low(body: str, **sizes: int) -> Kernel:
    """The kernel of a low-level program as it is written."""
    return generate(program(body, **sizes), "f")


@cache
def derived(name: str, sizes: Sizes, block: Sizes, warp: tuple[int, int]) -> Kernel:
    return generate(
        succeeded(
            tensor_core(block=block, warp=warp, stages=0, epilogue="direct")(matrix_program(name, sizes))
        ).term,
        name,
    )


def same(left: object, right: object) -> bool:
    """Bit for bit, types included."""
    if isinstance(left, tuple) or isinstance(right, tuple):
        if not (isinstance(left, tuple) and isinstance(right, tuple)):
            return False
        return all(same(a, b) for a, b in zip(left, right, strict=True))
    a, b = np.asarray(left), np.asarray(right)
    return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())


def assert_computes(term: Expr, kernel: Kernel, seeds: tuple[int, ...] = (0, 1)) -> None:
    """The kernel gives exactly what the program means, in every order of threads."""
    for seed in seeds:
        inputs = random_inputs(kernel.inputs, seed, exact=True)
        wanted = call(term, *inputs)
        found = execute(kernel, inputs, "emulate", seed=seed)
        assert same(found, wanted), f"seed {seed}: {found} is not {wanted}\n{kernel.source}"


def assert_runs(body: str, **sizes: int) -> Kernel:
    term = program(body, **sizes)
    kernel = generate(term, "f")
    assert_computes(term, kernel)
    return kernel


def every(kernel: Kernel, kind: type) -> list[i.Command]:
    return [c for c in i.commands(kernel.function.body) if isinstance(c, kind)]


def loops(kernel: Kernel) -> int:
    return len(every(kernel, i.For))


def barriers(kernel: Kernel, scope: Scope = Scope.BLOCK) -> int:
    return every(kernel, i.Barrier).count(i.Barrier(scope))


def arrays(kernel: Kernel) -> dict[str, str]:
    """What the kernel allocates, scalars left out."""
    new = {c.name: str(c.type) for c in every(kernel, i.New) if isinstance(c, i.New)}
    return {name: type_ for name, type_ in new.items() if "." in type_}


# --- products of matrices ---------------------------------------------------------------------------


def layouts(kernel: Kernel, a: tuple[bool, int], b: tuple[bool, int]) -> None:
    """Whether A and B are loaded by rows, and how far the rows (or columns) are apart."""
    loads = [c for c in every(kernel, i.LoadFragment) if isinstance(c, i.LoadFragment)]
    found = {
        c.fragment.kind: (c.tile.row_major, c.tile.leading.value) for c in loads if isinstance(c.tile, i.Tile)
    }
    assert (found[FragmentKind.A], found[FragmentKind.B]) == (a, b)


def rounded_once_through_shared_memory(kernel: Kernel) -> None:
    assert barriers(kernel, Scope.WARP) > 0
    assert barriers(kernel) == 0, "each warp has its own part"
    assert kernel.launch.shared_bytes == 8 * 16 * 16 * 4
    assert arrays(kernel)["acc_"] == "2.1.Fragment[16, 16, 16, f32, Accum]"


def transposed_b(kernel: Kernel) -> None:
    layouts(kernel, (True, 64), (False, 64))
    assert_golden(GOLDEN / "matmul_bt.cu", kernel.source)


WRAPPING: dict[str, tuple[str, Sizes, Sizes, tuple[int, int], Callable[[Kernel], None]]] = {
    "αAB+βC, 4 warps": (
        *("gemm", (128, 192, 96), (64, 64, 32), (32, 32)),
        lambda k: layouts(k, (True, 96), (True, 192)),
    ),
    "A·B, 4 warps": (
        *("matmul", (96, 64, 96), (32, 32, 32), (16, 16)),
        lambda k: layouts(k, (True, 96), (True, 64)),
    ),
    "A·Bᵀ, 8 warps": ("matmul_bt", (64, 128, 64), (32, 64, 32), (16, 16), transposed_b),
    "Aᵀ·B, 4 warps": (
        *("matmul_at", (128, 64, 64), (64, 32, 32), (32, 16)),
        lambda k: layouts(k, (False, 128), (True, 64)),
    ),
    "to f16, 8 warps": (
        *("gemm_f16", (128, 128, 64), (64, 64, 32), (32, 16)),
        rounded_once_through_shared_memory,
    ),
    "sums in f16": ("matmul_f16", (64, 96, 64), (32, 32, 32), (16, 16), lambda k: None),
    "bf16 operands": ("matmul_bf16", (64, 64, 48), (32, 32, 16), (32, 16), lambda k: None),
    "one warp is the block": ("matmul", (32, 32, 64), (32, 32, 32), (32, 32), lambda k: None),
}


@pytest.mark.parametrize("case", every_other(WRAPPING))
def test_derived_products_are_exact(case: str) -> None:
    name, sizes, block, warp, has_structure = WRAPPING[case]
    kernel = derived(name, sizes, block, warp)
    warps = block[0] // warp[0] * (block[1] // warp[1])
    assert kernel.launch.grid == (sizes[1] // block[1], sizes[0] // block[0], 1)
    assert kernel.launch.block == (32 * warps, 1, 1)
    assert_computes(matrix_program(name, sizes), kernel, (0, 1, 2))
    has_structure(kernel)


def test_gemm_at_256_with_eight_warps() -> None:
    """One test for all claims, since its derivation takes seconds."""
    sizes = (256, 256, 256)
    kernel = derived("gemm", sizes, (128, 128, 64), (64, 32))
    assert_computes(matrix_program("gemm", sizes), kernel, (0,))
    has_the_structure_of_the_schedule(kernel)
    keeps_accumulators_in_registers(kernel)
    assert "%" not in inner_loop(kernel).replace("warp % 4", "")
    assert_golden(GOLDEN / "gemm.cu", kernel.source)


def inner_loop(kernel: Kernel) -> str:
    """From the loop over k to the instruction."""
    return kernel.source[kernel.source.index("reduceSeq") : kernel.source.index("mma_sync")]


def has_the_structure_of_the_schedule(kernel: Kernel) -> None:
    levels = [c.level for c in every(kernel, i.ParallelFor) if isinstance(c, i.ParallelFor)]
    assert levels.count(Level.BLOCK) == 2
    assert levels.count(Level.WARP) == 3  # initial value, step, epilogue
    assert set(levels) == {Level.BLOCK, Level.WARP}
    assert len(every(kernel, i.MmaFragment)) == 1
    assert len(every(kernel, i.LoadFragment)) == 3
    assert len(every(kernel, i.Barrier)) == 0
    assert len(every(kernel, i.StoreFragment)) == len(every(kernel, i.ForFragment)) == 1
    assert kernel.launch == Launch((2, 2, 1), (256, 1, 1), 0)


def keeps_accumulators_in_registers(kernel: Kernel) -> None:
    assert arrays(kernel) == {
        "acc_": "4.2.Fragment[16, 16, 16, f32, Accum]",
        "b_fragment": "2.Fragment[16, 16, 16, f16, BMatrix]",
    }
    assert all(c.space is Space.LOCAL for c in every(kernel, i.New) if isinstance(c, i.New))
    (mma,) = every(kernel, i.MmaFragment)
    assert isinstance(mma, i.MmaFragment)
    assert mma.target == mma.c, "multiplied in place"


TILE = "zip(A)(B) |> mapBlock(fun((As, Bs) => zip(As)(Bs) |> mapWarp(fun((a, b) =>"
MMA = """tensorMatMulAdd(a |> {} asFragment |> toMem(Local))(b |> {} asFragment |> toMem(Local))
  (generateFragment(f32(0)) |> toMem(Local)) |> toMem(Local) |> asMatrix {})))))"""


@pytest.mark.parametrize("a", ["", "transpose |>"])
@pytest.mark.parametrize("b", ["", "transpose |>"])
@pytest.mark.parametrize("d", ["", "|> transpose"])
def test_fragments_are_loaded_and_stored_in_every_layout(a: str, b: str, d: str) -> None:
    types = "A: 2.3.16.16.f16, B: 2.3.16.16.f16"
    kernel = assert_runs(f"fun(({types}) => {TILE} {MMA.format(a, b, d)}")
    loads = [c.tile for c in every(kernel, i.LoadFragment) if isinstance(c, i.LoadFragment)]
    assert [t.row_major for t in loads if isinstance(t, i.Tile)] == [not a, not b]
    (store,) = every(kernel, i.StoreFragment)
    assert isinstance(store, i.StoreFragment)
    assert isinstance(store.tile, i.Tile) and store.tile.row_major == (not d)


@pytest.mark.parametrize("sizes", [(32, 31, 32), (32, 32, 31)])
@pytest.mark.parametrize("name", ["matmul", "gemm"])
def test_rows_that_vectors_do_not_divide_are_refused_by_name(name: str, sizes: Sizes) -> None:
    result = tensor_core(block=(32, 32, 32), warp=(16, 16))(matrix_program(name, sizes))
    assert isinstance(result, Failure)
    assert "rows of 31 elements, 62 bytes, and a thread copies at once 16 bytes" in result.story()


@pytest.mark.parametrize(("name", "sizes"), [("matmul", (32, 32, 48)), ("gemm", (33, 32, 32))])
def test_sizes_that_tiles_do_not_divide_are_rounded_up(name: str, sizes: Sizes) -> None:
    term = matrix_program(name, sizes)
    result = succeeded(tensor_core(block=(32, 32, 32), warp=(16, 16))(term))
    assert_computes(term, generate(result.term, name), seeds=(0,))


# --- the paper's Figure 1 ---------------------------------------------------------------------------

FIGURE_1 = """depFun((m: Nat, n: Nat, k: Nat) => fun((A: Array[m,Array[k,f32]],
  B: Array[k,Array[n,f32]], C: Array[m,Array[n,f32]], alpha: f32, beta: f32) =>
zip(A)(C) |> mapBlock(fun(rowAC =>
zip(B |> transpose)(snd(rowAC)) |>
mapThreads(fun(colBC => zip(fst(rowAC))(fst(colBC)) |>
reduceSeq(Local) (fun((acc,ab) =>
acc + fst(ab) * snd(ab)),0) |>
fun(r => (alpha * r) + (beta * snd(colBC))) ))))))"""


@pytest.mark.parametrize("m, n, k", [(5, 7, 3), (1, 1, 1), (13, 33, 17)])
def test_low_level_gemm_of_figure_1(m: int, n: int, k: int) -> None:
    kernel = assert_runs(FIGURE_1, m=m, n=n, k=k)
    assert kernel.launch == Launch((m, 1, 1), (n, 1, 1), 0)
    assert loops(kernel) == (0 if k == 1 else 1)
    assert not arrays(kernel)


# --- cases of rise.md §5 ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body, count",
    [
        ("xs: 7.f32) => xs |> mapSeq(fun(x => x))", 1),
        ("xs: 3.7.f32) => xs |> mapSeq(mapSeq(fun(x => x)))", 2),
        ("xs: 3.2.5.f32) => xs |> mapSeq(mapSeq(mapSeq(fun(x => x))))", 3),
        ("xs: 12.f32) => xs |> split(4) |> mapSeq(mapSeq(fun(x => x)))", 2),
        ("xs: 11.f32) => xs |> slide(3, 1) |> mapSeq(mapSeq(fun(x => x)))", 2),
        ("xs: 11.f32) => xs |> slide(3, 2) |> mapSeq(mapSeq(fun(x => x)))", 2),
        ("xs: 6.5.f32) => xs |> slide(3, 1) |> mapSeq(mapSeq(mapSeq(fun(x => x))))", 3),
    ],
)
def test_case_5_copies_are_as_many_loops_as_dimensions(body: str, count: int) -> None:
    assert loops(assert_runs(f"fun(({body})")) == count


@pytest.mark.parametrize(
    "body, count",
    [
        (f"xs: 7.f32) => xs |> {SUM}", 1),
        (f"xs: 7.f32) => xs |> map(fun(x => x * 2)) |> {SUM}", 1),
        (f"xs: 3.5.f32) => xs |> map(fun(r => r |> {SUM})) |> {SUM}", 2),
    ],
)
def test_case_6_reductions_need_no_array(body: str, count: int) -> None:
    kernel = assert_runs(f"fun(({body})")
    assert loops(kernel) == count
    assert not arrays(kernel)


REORDER = "split({}) |> transpose |> join"


@pytest.mark.parametrize(
    "body, count",
    [
        (f"xs: 1024.f32) => xs |> {REORDER.format(128)} |> mapSeq(fun(x => x))", 1),
        (f"xs: 1024.f32) => xs |> mapSeq(fun(x => x)) |> {REORDER.format(128)}", 1),
        (f"xs: 256.3.f32) => xs |> {REORDER.format(128)} |> mapSeq(mapSeq(fun(x => x)))", 2),
        (f"xs: 256.3.f32) => xs |> mapSeq(mapSeq(fun(x => x))) |> {REORDER.format(128)}", 2),
    ],
)
def test_case_7_reordering_is_no_loop(body: str, count: int) -> None:
    assert loops(assert_runs(f"fun(({body})")) == count


@pytest.mark.parametrize(
    "body",
    [
        "(x + 2) |> toMem(Local) |> fun(y => y * y)",
        "let y = x + 2 in y * y",
        "(x + 2) |> fun(y => y * y)",
    ],
)
def test_case_8_what_is_named_is_computed_once(body: str) -> None:
    kernel = assert_runs(f"fun((xs: 7.f32) => xs |> mapSeq(fun(x => {body})))")
    assert kernel.source.count("+ 2.0f") == 1


def test_case_9_transpose_read_is_transpose_written() -> None:
    read = assert_runs("fun((xs: 6.10.f32) => xs |> transpose |> mapSeq(mapSeq(fun(x => x))))")
    written = assert_runs("fun((xs: 6.10.f32) => xs |> mapSeq(mapSeq(fun(x => x))) |> transpose)")
    (inputs,) = [random_inputs(read.inputs, 3, exact=True)]
    assert same(execute(read, inputs, "emulate"), execute(written, inputs, "emulate"))


COLUMNS = """xs |> reduceSeq(Local)(fun((acc, row) =>
  zip(acc)(row) |> mapSeq(fun((a, x) => a + x))), generate(fun(i => 0)))"""


@pytest.mark.parametrize("end", ["", "|> mapSeq(fun(x => x))"])
def test_case_9_an_array_as_accumulator(end: str) -> None:
    kernel = assert_runs(f"fun((xs: 64.64.f32) => {COLUMNS} {end})")
    assert arrays(kernel) == {"acc_": "64.f32"}
    (values,) = random_inputs(kernel.inputs, 0, exact=True)
    assert same(execute(kernel, [values], "emulate"), values.sum(axis=0))


def test_case_9_a_projection_as_initial_value() -> None:
    assert_runs("fun((xs: 7.f32, p: (f32, i32)) => xs |> reduceSeq(Local)(+, fst(p)))")


@pytest.mark.parametrize(
    "body",
    [
        "xs: 7.(f32, i32)) => xs |> mapSeq(fun((a, b) => (b, a + 1)))",
        "xs: 3.4.(f32, (i32, f16))) => xs |> mapSeq(mapSeq(fun(p => (snd(snd(p)), fst(p)))))",
        "xs: 7.(f32, i32)) => xs |> mapSeq(fun((a, b) => (b, a + 1))) |> unzip",
        "xs: 7.f32, ys: 7.i32) => zip(xs |> mapSeq(fun(x => -x)))(ys |> mapSeq(fun(y => y + 1)))",
        "xs: 7.f32, ys: 3.i32) => (xs |> mapSeq(fun(x => -x)), ys |> mapSeq(fun(y => y + 1)))",
        "xs: (7.f32, 5.i32)) => fst(xs) |> mapSeq(fun(x => x))",
        f"xs: 7.f32) => xs |> {SUM}",
        "x: f16) => x + 1",
        f"xs: 7.f32, ys: 3.i32) => (xs |> {SUM}, ys |> {SUM})",
    ],
)
def test_case_12_pairs_and_scalars_in_and_out(body: str) -> None:
    assert_runs(f"fun(({body})")


def test_case_13_registers_of_a_value_over_threads_are_each_threads_share() -> None:
    kernel = assert_runs("""fun((xs: 4.2.2.2.f32) => xs
      |> mapThreads(1)(mapThreads(0)(mapSeq(mapSeq(fun(x => x + 1))))) |> toMem(Local)
      |> mapThreads(1)(mapThreads(0)(mapSeq(mapSeq(fun(x => x * 2))))))""")
    assert kernel.launch.block == (2, 4, 1)
    assert arrays(kernel) == {"value": "2.2.f32"}


def test_case_13_registers_of_accumulators_over_threads() -> None:
    kernel = assert_runs("""fun((xs: 3.4.2.f32) => xs |> reduceSeq(Local)(fun((acc, x) =>
        zip(acc)(x) |> mapThreads(fun((a, b) => zip(a)(b) |> mapSeq(fun((p, q) => p + q))))),
      generate(fun(i => generate(fun(j => 0))))) |> mapThreads(mapSeq(fun(x => x))))""")
    assert kernel.launch.block == (4, 1, 1)
    assert arrays(kernel) == {"acc_": "2.f32"}


COPY = "mapThreads(fun(x => x)) |> toMem(Shared)"
WINDOWS = f"slide(3, 1) |> mapThreads(fun(w => w |> {SUM}))"
TURNED = "mapThreads(1)(mapThreads(0)(fun(x => x))) |> toMem(Shared) |> transpose"


@pytest.mark.parametrize(
    "body, count",
    [
        ("xs: 3.40.f32) => xs |> mapBlock(fun(r => r |> mapThreads(fun(x => x))))", 0),
        (f"xs: 3.40.f32) => xs |> mapBlock(fun(r => r |> {COPY} |> {WINDOWS}))", 1),
        # the buffer is used again: a barrier before it is written, and one before it is read
        (f"xs: 3.40.f32) => xs |> mapSeq(fun(r => r |> {COPY} |> {WINDOWS}))", 2),
        (
            f"""xs: 3.8.8.f32, ys: 3.8.8.f32) => zip(xs)(ys) |> mapBlock(fun((a, b) =>
              zip(a |> {TURNED})(b |> {TURNED}) |> mapThreads(1)(fun((r, s) =>
                zip(r)(s) |> mapThreads(0)(fun((x, y) => x + y))))))""",
            1,
        ),
    ],
)
def test_case_14_barriers_where_threads_exchange_data(body: str, count: int) -> None:
    assert barriers(assert_runs(f"fun(({body})")) == count


def test_case_14_warps_wait_for_themselves_only() -> None:
    kernel = assert_runs(f"""fun((xs: 2.3.32.f32) => xs |> mapBlock(mapWarp(fun(w => w
      |> mapLane(fun(x => x)) |> toMem(Shared) |> slide(3, 1) |> mapLane(fun(v => v |> {SUM}))))))""")
    assert (barriers(kernel), barriers(kernel, Scope.WARP)) == (0, 1)
    assert kernel.launch.shared_bytes == 3 * 128


def test_shared_memory_is_not_reused_before_all_threads_have_read_it() -> None:
    assert_runs(f"""fun((xs: 2.66.f32, ys: 2.66.f32) => zip(xs)(ys) |> mapBlock(fun((x, y) =>
      zip(x |> {COPY} |> {WINDOWS})(y |> {COPY} |> {WINDOWS}))))""")


# --- views, scalars, launches -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "xs: 11.f32) => xs |> drop(3) |> take(5) |> mapSeq(fun(x => x))",
        "xs: 3.4.5.f32) => xs |> join |> transpose |> mapSeq(mapSeq(fun(x => x)))",
        "xs: 12.f32) => xs |> split(3) |> map(fun(r => r |> split(1) |> join)) |> join"
        " |> mapSeq(fun(x => x))",
        "xs: 12.f32) => xs |> slide(4, 2) |> map(drop(1)) |> transpose |> mapSeq(mapSeq(fun(x => x)))",
        "xs: 6.8.f32) => xs |> split(2) |> map(transpose) |> mapSeq(mapSeq(mapSeq(fun(x => x))))",
        "xs: 3.4.5.f32) => xs |> mapSeq(mapSeq(mapSeq(fun(x => x)))) |> map(transpose)",
        "xs: 12.f32) => xs |> mapSeq(fun(x => x)) |> split(4) |> transpose |> join",
        "xs: 3.4.f32) => xs |> mapSeq(mapSeq(fun(x => x))) |> join |> split(6)",
        "xs: 2.3.4.f32) => xs |> mapSeq(mapSeq(mapSeq(fun(x => x)))) |> map(join) |> transpose",
        "xs: 2.3.4.f32) => xs |> join |> mapSeq(mapSeq(fun(x => x))) |> transpose |> join",
        "xs: 3.4.(f32, i32)) => xs |> map(unzip) |> map(fun(p => zip(snd(p))(fst(p))))"
        " |> mapSeq(mapSeq(fun(x => x)))",
        "xs: 3.4.f32) => zip(xs)(generate(fun(i => generate(fun(j =>"
        " f32(indexToInt(i) * 10 + indexToInt(j)))))))"
        " |> mapSeq(fun((a, b) => zip(a)(b) |> mapSeq(fun((x, y) => x + y))))",
    ],
)
def test_views_nest_on_both_sides(body: str) -> None:
    assert_runs(f"fun(({body})")


@pytest.mark.parametrize(
    "type_, body",
    [
        ("i32", "x / 3 + x % 3 * -2"),
        ("i8", "x * x * x * x"),
        ("u8", "x - 100"),
        ("i32", "x * 2000000000"),
        ("f16", "abs(max(min(x * 3 + 1, 5), -2))"),
        ("bf16", "x * 3 + 1"),
        ("f64", "x / 4 - 1"),
        ("f32", "x < 1 && !(x > -2) || x == 3"),
        ("f32", "select(x < 0)(-x)(x + 1)"),
        ("f32", "f32(i32(x)) + f32(f16(x))"),
    ],
)
def test_scalar_operations_are_those_of_the_interpreter(type_: str, body: str) -> None:
    assert_runs(f"fun((xs: 9.{type_}) => xs |> mapSeq(fun(x => {body})))")


@pytest.mark.parametrize(
    "body, grid, block",
    [
        ("xs: 1000.f32) => xs |> mapGlobal(fun(x => x + 1))", (8, 1, 1), (128, 1, 1)),
        ("xs: 7.f32) => xs |> mapGlobal(fun(x => x + 1))", (1, 1, 1), (7, 1, 1)),
        (
            "xs: 3.130.f32) => xs |> mapGlobal(1)(mapGlobal(0)(fun(x => -x)))",
            (2, 3, 1),
            (128, 1, 1),
        ),
        ("xs: 5.f32) => xs |> mapThreads(fun(x => x + 1))", (1, 1, 1), (5, 1, 1)),
        (
            "xs: 2.3.40.f32) => xs |> mapBlock(mapWarp(mapLane(fun(x => -x))))",
            (2, 1, 1),
            (96, 1, 1),
        ),
        ("xs: 2.3.f32) => xs |> mapBlock(1)(mapBlock(0)(fun(x => -x)))", (3, 2, 1), (1, 1, 1)),
    ],
)
def test_launches_are_derived(body: str, grid: Sizes, block: Sizes) -> None:
    assert assert_runs(f"fun(({body})").launch == Launch(grid, block, 0)


@pytest.mark.parametrize("name", ["output", "float", "asm", "constexpr", "threadIdx", "i"])
def test_names_of_the_program_do_not_clash_with_those_of_cuda(name: str) -> None:
    assert_runs(f"fun(({name}: 5.f32) => {name} |> mapSeq(fun(x => x + 1)))")


def test_members_of_pairs_do_not_clash_with_names_of_the_program() -> None:
    assert_runs("fun((p: (f32, f32), p_fst: f32) => fst(p) - snd(p) * p_fst)")


def test_a_scalar_in_shared_memory() -> None:
    assert_runs(f"""fun((xs: 4.8.f32) => xs |> mapBlock(fun(r =>
      r |> {SUM.replace("Local", "Shared")})))""")


# --- accumulators -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "xs: 4.f32) => xs |> reduceSeq(Local)(fun((acc, x) => (snd(acc), fst(acc) + x)), (0, 1))",
        "xs: 4.f32) => xs |> reduceSeq(Local)(fun((acc, x) => (fst(acc) + x, fst(acc))), (0, 1))",
        "xs: 4.f32) => xs |> reduceSeq(Local)(fun((acc, x) => (fst(acc) + x, snd(acc) * x)), (0, 1))",
    ],
)
def test_both_members_of_a_pair_are_computed_from_the_old_pair(body: str) -> None:
    assert_runs(f"fun(({body})")


# --- the default strategy ---------------------------------------------------------------------------


@pytest.mark.parametrize("m, n", [(1, 1), (7, 13), (31, 33)])
def test_default_takes_any_size(m: int, n: int) -> None:
    term = program(
        """depFun((m: Nat, n: Nat) => fun((xs: m.n.f32, ys: n.f32) =>
      xs |> map(fun(r => zip(r)(ys) |> map(fun((x, y) => x * y)) |> reduce(+, 0)))))""",
        m=m,
        n=n,
    )
    result = succeeded(default()(term))
    kernel = generate(result.term, "f")
    assert_computes(term, kernel)
    assert not arrays(kernel)
