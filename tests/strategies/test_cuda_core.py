"""All pairs of rows, reduced by threads: by any function and any operator, in the program's order."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.specialise import inputs_of
from rise.errors import StrategyError
from rise.expr import Expr
from rise.interpret import random_inputs
from strategies.auto import auto
from strategies.default import default
from strategies.matmul.cuda_core import cuda_core
from strategies.search.hardware import for_target
from strategies.search.threads import Pairs, points
from tests.support.batches import exact, program
from tests.support.nightly import every_other, in_turn
from tests.support.programs import succeeded

AUTO = auto()  # what is derived for one test is there for the others

DOT = "zip(r)(c) |> map((x, y) => x * y) |> sum"
DISTANCE = "zip(r)(c) |> map((x, y) => abs(x - y)) |> sum"
PAIR = "A |> map(r => B |> map(c => {}))"
# of A : m.k and B : n.k, or of what the text names; sizes are put in the place of m, n and k
REDUCED = {
    "products": ("A: m.k.f32, B: n.k.f32", PAIR.format(DOT)),
    "of columns": ("A: k.m.f32, B: k.n.f32", f"transpose(A) |> map(r => transpose(B) |> map(c => {DOT}))"),
    "of rows and columns": ("A: m.k.f32, B: k.n.f32", "matmul(A)(B)"),
    "of columns and rows": ("A: k.m.i32, B: n.k.i32", f"transpose(A) |> map(r => B |> map(c => {DOT}))"),
    "distances": ("A: m.k.f32, B: n.k.f32", PAIR.format(DISTANCE)),
    "shortest paths": (
        "A: m.k.f32, B: k.n.f32",
        "A |> map(r => transpose(B) |> map(c => zip(r)(c) |> map((x, y) => x + y) |> reduce(min, 100000)))",
    ),
    "greatest differences, of f16": (
        "A: m.k.f16, B: n.k.f16",
        PAIR.format("zip(r)(c) |> map((x, y) => abs(f32(x) - f32(y))) |> reduce(max, 0)"),
    ),
    "sums of greatest, of bf16 columns": (
        "A: k.m.bf16, B: k.n.f32",
        "transpose(A) |> map(r => transpose(B) |> map(c =>"
        " zip(r)(c) |> map((x, y) => max(f32(x), y)) |> sum))",
    ),
    "of bits": (
        "A: m.k.bool, B: n.k.bool",
        PAIR.format("zip(r)(c) |> map((x, y) => x && y) |> reduce(||, false)"),
    ),
    "of f64": ("A: m.k.f64, B: n.k.f64", PAIR.format("zip(r)(c) |> map((x, y) => x * y) |> reduce(+, 0)")),
    "complex products": (
        "A: m.k.(f32, f32), B: k.n.(f32, f32)",
        "A |> map(r => transpose(B) |> map(c => zip(r)(c)"
        " |> map(((a, b), (c, d)) => (a * c - b * d, a * d + b * c))"
        " |> reduce(((a, b), (c, d)) => (a + c, b + d), (0, 0))))",
    ),
    "of two matrices beside each other": (
        "A: m.k.f32, C: m.k.f32, B: n.k.f32",
        "zip(A)(C) |> map((r, s) => B |> map(c =>"
        " zip(zip(r)(s))(c) |> map(((x, y), z) => x * z - y) |> sum))",
    ),
    "with a weight for each step": (
        "A: m.k.f32, B: n.k.f32, w: k.f32",
        PAIR.format("zip(w)(zip(r)(c)) |> map((v, (x, y)) => v * abs(x - y)) |> sum"),
    ),
    "products and a bias": (
        "A: m.k.f32, B: n.k.f32, b: n.f32",
        f"A |> map(r => zip(b)(B) |> map((v, c) => max(v + ({DOT}), 0)))",
    ),
    "distances and a matrix": (
        "A: m.k.f32, B: n.k.f32, C: m.n.f32",
        f"zip(C)(A) |> map((cs, r) => zip(cs)(B) |> map((v, c) => 2 * v - ({DISTANCE})))",
    ),
    "two sums": (
        "A: m.k.f32, C: m.k.f32, B: n.k.f32",
        f"zip(A)(C) |> map((r, s) => B |> map(c => ({DOT}) - (zip(s)(c) |> map((x, y) => x + y) |> sum)))",
    ),
    "computed rows": (
        "A: m.k.f32, B: n.k.f32",
        PAIR.format("zip(r)(c) |> map((x, y) => max(x, 0) * (y + 1)) |> sum"),
    ),
    "of each matrix": (
        "A: 3.m.k.f32, B: 3.k.n.f32",
        "zip(A)(B) |> map((X, Y) => matmul(X)(Y))",
    ),
    "of each matrix, beside each other": (
        "A: 3.m.k.f32, B: 3.k.n.f32",
        "zip(A)(B) |> map((X, Y) => matmul(X)(Y)) |> transpose |> map(join)",
    ),
    "two results": (
        "A: m.k.f32, B: k.n.f32",
        "let P = matmul(A)(B) in (P, P |> map(map(x => max(x, 0))))",
    ),
    "where the place counts": (
        "A: m.k.f32, B: n.k.f32",
        "zip(A)(generate(i => i)) |> map((r, i) => zip(B)(generate(j => j)) |> map((c, j) =>"
        f" select(indexToInt(i) < indexToInt(j), {DISTANCE}, 0)))",
    ),
    "of windows": (
        "A: (m + k - 1).f32, B: n.k.f32",
        f"A |> slide(k, 1) |> map(r => B |> map(c => {DISTANCE}))",
    ),
}  # fmt: skip
SIZES = [(64, 64, 32), (67, 131, 37), (33, 65, 16), (1, 70, 45), (129, 1, 17), (63, 48, 1), (70, 36, 100)]
TILES: list[dict[str, Any]] = [
    {"block": (32, 32, 16), "warp": (32, 16), "thread": (4, 4)},
    {"block": (64, 64, 8), "warp": (64, 32), "thread": (8, 8)},
    {"block": (16, 64, 32), "warp": (16, 32), "thread": (4, 4), "stages": 2, "padding": 0},
    {"block": (128, 32, 16), "warp": (64, 32), "thread": (16, 4), "raster_group": 0},
    {"block": (24, 32, 12), "warp": (24, 32), "thread": (3, 8), "cp_async": False},
]


def of_rows(name: str, m: int, n: int, k: int) -> Expr:
    given, body = REDUCED[name]
    sizes = {"m": m, "n": n, "k": k}
    given = re.sub(r"\(m \+ k - 1\)", str(m + k - 1), given)
    given = re.sub(r"(?<=[ .])([mnk])(?=\.)", lambda found: str(sizes[found[1]]), given)
    return program(f'import "prelude.rise" def f({given}) = {body.replace("slide(k", f"slide({k}")}')


@pytest.mark.parametrize(("name", "sizes", "tile"), every_other(in_turn(REDUCED, SIZES, TILES)))
def test_all_pairs_of_rows_are_reduced(name: str, sizes: tuple[int, int, int], tile: dict[str, Any]) -> None:
    term = of_rows(name, *sizes)
    assert exact(term, succeeded(cuda_core(**tile)(term)).term)


def test_drawn_reductions_are_exact() -> None:
    """Sizes, tiles and programs that no list names; those that are refused say why."""
    random, reduced = Random(seed := 2711), 0
    for _ in range(6):
        name = random.choice(list(REDUCED)[:15])
        m, n, k = random.randint(1, 150), random.randint(1, 150), random.randint(1, 90)
        thread = random.choice([(8, 4), (4, 4), (2, 8), (8, 8)])
        below, beside = random.choice([(4, 8), (8, 4), (2, 16)])
        warp = thread[0] * below, thread[1] * beside
        block = warp[0] * random.randint(1, 2), warp[1] * random.randint(1, 2), random.choice([4, 8, 24])
        term = of_rows(name, m, n, k)
        made = cuda_core(block=block, warp=warp, thread=thread, split_k=random.choice([1, 1, 3]))(term)
        if isinstance(made, Failure):
            assert "the function of two zeros" in made.reason, (seed, name, made.reason)
            continue
        reduced += 1
        assert exact(term, made.term), (seed, m, n, k, name, block, warp, thread)
    assert reduced > 3


@pytest.mark.parametrize("name", ["products", "distances", "with a weight for each step"])
def test_floats_are_added_in_the_order_of_the_program(name: str) -> None:
    """Bit by bit as by one thread for each element."""
    term = of_rows(name, 37, 41, 61)
    inputs = random_inputs(inputs_of(term), 3, exact=False)
    one, many = (
        execute(assemble(succeeded(s(term)).term, "f"), inputs, "emulate")
        for s in (default(), cuda_core(**TILES[0]))
    )
    assert np.array_equal(np.asarray(one), np.asarray(many))


@pytest.mark.parametrize("split_k", [1, 3])
def test_zeros_of_tuples_have_the_types_of_their_members(split_k: int) -> None:
    term = program(
        "def f(A: 19.29.bf16, B: 23.29.bf16, w: 29.f32) = A |> map(r => B |> map(c => zip(w)(zip(r)(c))"
        " |> map((v, (x, y)) => v * abs(f32(x) - f32(y))) |> reduce(+, 0)))"
    )
    assert exact(term, succeeded(cuda_core(**TILES[0], vector=1, split_k=split_k)(term)).term)


@pytest.mark.parametrize(
    ("name", "split_k"), in_turn(["products", "distances and a matrix", "of bits"], [2, 5])
)
def test_blocks_share_long_reductions(name: str, split_k: int) -> None:
    term = of_rows(name, 33, 47, 203)
    made = succeeded(cuda_core(**TILES[0], split_k=split_k)(term)).term
    assert len(assemble(made, "f").kernels) == 2
    assert exact(term, made)


# --- the kernel -------------------------------------------------------------------------------------------


def source_of(term: Expr, **tile: Any) -> str:
    (kernel,) = assemble(succeeded(cuda_core(**tile)(term)).term, "f").kernels
    return kernel.source


def test_a_thread_loads_vectors_and_multiplies_in_registers() -> None:
    """Of 16 × 8 products in two steps: four vectors of the rows, and two of the columns, for each step."""
    source = source_of(
        of_rows("of rows and columns", 128, 256, 64), block=(128, 256, 16), warp=(32, 128), thread=(16, 8)
    )
    loops = source[source.index("// reducePipelined") :]
    step = loops[loops.index("// reduceSeqUnroll") : loops.index("wait_copies<0>")]
    assert step.count("copy_vector<4>(&value") == 2
    assert "+ (value[" in step
    assert "ring" not in step.split("Local<float, 16> value_1")[1].split("// reduceSeqUnroll")[1]
    assert "copy_vector<4>(&output" in source


def test_rows_in_memory_are_columns_in_shared_memory() -> None:
    """So that threads load vectors of elements for one step; neighbours read along the rows in memory."""
    source = source_of(of_rows("products", 64, 64, 64), **TILES[1])
    assert "copy_async<1>" in source
    assert "copy_async<4>" not in source
    assert re.search(r"A_start = .*thread_x_row \* 64 \+ thread_x_column", source)


def test_only_the_last_step_asks_which_elements_there_are() -> None:
    source = source_of(of_rows("shortest paths", 64, 64, 60), **TILES[0])
    inside, at_the_end = source.split("(0 < inside)")[1].split("(inside < 1)")
    assert "< 60" not in inside.split("fminf")[1]
    assert "< 60" in at_the_end.split("fminf")[1]
    assert "inside" not in source_of(of_rows("shortest paths", 64, 64, 64), **TILES[0])
    assert "? true : false" not in source


# --- what `auto` makes of them ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", every_other(REDUCED, 1, 3))
def test_auto_takes_threads_for_what_tensor_cores_do_not_compute(name: str) -> None:
    term = of_rows(name, 90, 131, 70)
    (kernel,) = AUTO.choice(term).kernels
    assert kernel.point.strategy == "cuda_core"
    assert exact(term, succeeded(AUTO(term)).term)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "A: 96.64.f16, B: 96.64.f16) = "
            + PAIR.format("zip(r)(c) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)"),
            "tensor_core",
        ),
        ("A: 40.30.f32, B: 30.50.f32) = matmul(A)(B)", "default levels=2"),
        (
            "A: 90.70.f32, B: 70.131.f32, C: 90.70.f32, D: 70.131.f32) = zip(matmul(A)(B))(matmul(C)(D))"
            " |> map((r, s) => zip(r)(s) |> map((x, y) => x - y))",
            "cuda_core",
        ),
        (
            "A: 90.70.f32, B: 70.131.f32, C: 90.70.f32) = (matmul(A)(B), matmul(C)(B))",
            "cuda_core, cuda_core",
        ),
        ("A: 128.96.f32, B: 96.160.f32) = matmul(A)(B) |> map(softmax)", "cuda_core, rows"),
        (f"A: 128.96.f32, B: 160.96.f32) = {PAIR.format(DISTANCE)} |> map(argmin)", "cuda_core, rows"),
        ("A: 128.96.f32, B: 96.160.f32, C: 160.128.f32) = matmul(matmul(A)(B))(C)", "cuda_core, cuda_core"),
    ],
)  # fmt: skip
def test_the_kernels_of_programs(text: str, wanted: str) -> None:
    term = program(f'import "prelude.rise" def f({text}')
    kernels = [str(kernel.point) for kernel in AUTO.choice(term).kernels]
    assert ", ".join(kernel if "default" in kernel else kernel.split()[0] for kernel in kernels) == wanted


@pytest.mark.parametrize(
    ("sizes", "block", "split_k"),
    [
        ((4096, 4096, 4096), (128, 256, 16), 1),
        ((64, 4096, 1024), (64, 256, 16), 8),
        ((128, 128, 4096), (64, 64, 16), 32),
        ((8, 8, 100003), (16, 64, 32), 256),
        ((512, 512, 512), (64, 128, 16), 4),
    ],
)
def test_small_results_have_small_tiles_and_share_reductions(
    sizes: tuple[int, int, int], block: tuple[int, int, int], split_k: int
) -> None:
    first = next(points(Pairs(*sizes, 1), for_target("sm_90a")))
    given = dict(first.parameters)
    assert (given["block"], given.get("split_k", 1)) == (block, split_k)


def test_older_gpus_copy_through_registers() -> None:
    first = next(points(Pairs(512, 512, 512, 1), for_target("sm_75")))
    assert dict(first.parameters)["cp_async"] is False


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"block": (128, 96, 16)}, None),
        ({"block": (100, 128, 16)}, "R0604"),
        ({"block": (128, 128, 0)}, "R0604"),
        ({"warp": (64, 64)}, "R0609"),
        ({"thread": (5, 8)}, "R0604"),
        ({"block": (1024, 128, 16)}, "R0609"),
        ({"stages": 1}, "R0609"),
        ({"vector": 3}, "R0609"),
        ({"split_k": 0}, "R0609"),
    ],
)  # fmt: skip
def test_tiles_are_checked(settings: dict[str, Any], code: str | None) -> None:
    if code is None:
        cuda_core(**settings)
        return
    with pytest.raises(StrategyError, match=code):
        cuda_core(**settings)


def test_programs_without_such_reductions_are_refused() -> None:
    made = cuda_core()(program("def f(A: 64.32.f32) = A |> map(map(x => x + 1))"))
    assert isinstance(made, Failure)
    assert "there is no product of two matrices" in made.reason
