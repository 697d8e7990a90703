"""Arrays of matrices, or of rows, in arrays are one array: heads of attention, their scores and softmax."""

from __future__ import annotations

from random import Random

import pytest

from codegen.ir.tensor_maps import TensorMap
from codegen.pipeline import assemble, generate
from rise.expr import Expr, Lambda
from strategies.auto import auto
from strategies.batches.batch import batch
from strategies.matmul.kernels import has_product
from strategies.matmul.tensor_core import tensor_core
from tests.support.batches import exact, program
from tests.support.nightly import every_other
from tests.support.programs import succeeded

AUTO = auto()  # what is derived for one test is there for the others

DOT = "zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)"
EACH = f"A |> map(row => B |> map(col => {DOT}))"
BODIES = (
    EACH,
    EACH.replace(DOT, f"f16(max({DOT}, 1))"),
    EACH.replace("A |>", "A |> map(map(x => x + x)) |>", 1),
)

# the type of the second operand, and the program
OPERANDS = {
    "of each": ("{b}.{h}.{n}.{k}", "zip(Xs)(Bs) |> map((P, Q) => zip(P)(Q) |> map((A, B) => {each}))"),
    "of a group": ("{b}.{n}.{k}", "zip(Xs)(Bs) |> map((P, B) => P |> map(A => {each}))"),
    "of a number": ("{h}.{n}.{k}", "Xs |> map(P => zip(P)(Bs) |> map((A, B) => {each}))"),
    "of all": ("{n}.{k}", "Xs |> map(P => P |> map(A => let B = Bs in {each}))"),
}
# the type of the first operand, and what it is as an array of arrays of matrices
LAYOUTS = {
    "as it is": ("{b}.{h}.{m}.{k}", "As"),
    "numbers inside": ("{b}.{m}.{h}.{k}", "(As |> map(transpose))"),
    "transposed": ("{b}.{h}.{k}.{m}", "(As |> map(map(transpose)))"),
}


def nested(sizes: tuple[int, ...], operand: str, layout: str, type_: str, each: str) -> str:
    (first, xs), (second, body) = LAYOUTS[layout], OPERANDS[operand]
    known = dict(zip("bhmnk", sizes, strict=True))
    of_first, of_second = (shape.format(**known) for shape in (first, second))
    given = f"As: {of_first}.{type_}, Bs: {of_second}.{type_}"
    return f"def f({given}) = let Xs = {xs} in {body.format(each=each)}"


def strategies(term: Expr) -> list[str]:
    return [kernel.point.strategy for kernel in AUTO.choice(term).kernels]


def body_of(term: Expr) -> Expr:
    return body_of(term.body) if isinstance(term, Lambda) else term


def is_exact(term: Expr) -> bool:
    return exact(term, succeeded(AUTO(term)).term)


# --- products ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operand", every_other(OPERANDS, 1))
def test_auto_takes_nested_arrays_as_one_batch(operand: str) -> None:
    """Of sizes that tiles do not divide, and more of them than are few."""
    term = program(nested((23, 3, 33, 37, 41), operand, "as it is", "f16", EACH))
    assert strategies(term) == ["batch"]
    assert is_exact(term)


@pytest.mark.parametrize("operand", ["of each", "of a group"])
def test_larger_matrices_are_tiles(operand: str) -> None:
    term = program(nested((2, 3, 72, 136, 64), operand, "as it is", "f16", EACH))
    assert strategies(term) == ["tensor_core"]
    assert is_exact(term)


def test_drawn_programs_are_exact() -> None:
    """Operands of each matrix, of groups and of all, in three layouts, with prologues and epilogues."""
    seed, found = 20261126, set()
    random = Random(seed)
    for number in range(6):
        sizes = tuple(random.choice(c) for c in [(1, 2, 3, 7), (1, 2, 5), *[(1, 3, 8, 17, 33)] * 3])
        operand, layout = random.choice(list(OPERANDS)), random.choice(list(LAYOUTS))
        type_, each = random.choice(["f16", "bf16", "f32"]), random.choice(BODIES)
        text = nested(sizes, operand, layout, type_, each)
        found.add((operand, layout))
        assert is_exact(program(text)), f"seed {seed}, number {number}: {text}"
    assert len(found) >= 4


def test_rows_that_are_far_apart_are_copied_by_narrower_vectors() -> None:
    """Rows of 20 elements: two of a matrix are 60 elements apart, and 8 elements do not divide one."""
    term = program(nested((5, 3, 4, 4, 20), "of each", "numbers inside", "f16", EACH))
    (kernel,) = AUTO.choice(term).kernels
    assert str(kernel.point) == "batch"
    source = generate(succeeded(AUTO(term)).term, "f").source
    assert "copy_async<4>(&tile_1_snd" in source and "copy_async<8>(&tile_1_snd" not in source
    assert is_exact(term)
    assert exact(term, succeeded(batch(vector=2)(term)).term)


OTHERS = {
    "covariances by indices": (
        "def f(X: 45.17.19.f16) = X |> map(x => generate((i: Idx[17]) => generate((j: Idx[17]) =>"
        f" let row = x |> idx(i) in let col = x |> idx(j) in {DOT})))",
        ["batch"],
    ),
    "of centred rows": (
        'import "prelude.rise" def f(X: 45.17.8.f32) = X |> map(x => let c = x |> map(row =>'
        " let m = mean(row) in row |> map(v => f16(v - m))) in"
        f" c |> map(row => c |> map(col => {DOT})))",
        ["batch", "batch"],
    ),
    "five dimensions": (
        "def f(A: 3.2.5.17.8.f16, B: 3.2.5.8.9.f16) = zip(A)(B) |> map((a, b) => zip(a)(b) |> map((p, q) =>"
        " zip(p)(q) |> map((x, y) => x |> map(row => transpose(y) |> map(col =>"
        f" {DOT})))))",
        ["batch"],
    ),
}


@pytest.mark.parametrize("name", every_other(OTHERS))
def test_other_programs_are_batches(name: str) -> None:
    text, wanted = OTHERS[name]
    term = program(text)
    assert strategies(term) == wanted
    assert is_exact(term)


# --- rows -------------------------------------------------------------------------------------------------

SOFTMAX = "map(v => f32(v)) |> softmax"
ROWS = {
    "softmax": (f"X: 2.3.5.300.f16) = X |> map(map(map(row => row |> {SOFTMAX})))", "rows"),
    "sums": ("X: 2.3.300.f32) = X |> map(map(row => row |> reduce(+, 0)))", "reduction"),
    "times vectors": (
        "X: 3.5.300.f32, vs: 3.300.f32) = zip(X)(vs) |> map((x, v) => x |> map(row => zip(row)(v) |>"
        " map((p, q) => p * q) |> reduce(+, 0)))",
        "reduction",
    ),
    "with a mask for each group": (
        "X: 2.3.5.300.f32, M: 2.5.300.f32) = zip(X)(M) |> map((x, k) => x |> map(y => zip(y)(k) |>"
        f" map((row, mask) => zip(row)(mask) |> map((p, q) => p + q) |> {SOFTMAX})))",
        "rows",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_arrays_in_arrays_are_one_list(name: str) -> None:
    text, wanted = ROWS[name]
    term = program(f'import "prelude.rise" def f({text}')
    assert strategies(term) == [wanted]
    assert not has_product(body_of(term))
    if wanted == "reduction":
        assert is_exact(term)


def test_columns_are_summed_by_threads_beside_each_other() -> None:
    """As a list of rows, each would be read by a block from places that are far apart."""
    term = program("def f(X: 3.300.200.f32) = X |> map(x => transpose(x) |> map(col => col |> reduce(+, 0)))")
    assert strategies(term) == ["columns"]
    assert is_exact(term)


def test_products_are_told_from_sums_of_rows() -> None:
    sums = body_of(program("def f(X: 2.3.4.f32) = X |> map(map(row => row |> reduce(+, 0)))"))
    product = body_of(program(f"def f(A: 3.4.f16, B: 5.4.f16) = {EACH}"))
    assert not has_product(sums)
    assert has_product(product)


# --- one matrix for all rows ------------------------------------------------------------------------------

LAYERS = {
    "of arrays in arrays": (
        f"X: 2.2.21.72.f16, W: 136.72.f16) = X |> map(map(A => A |> map(row => W |> map(col => f16({DOT})))))"
    ),
    "with a bias, and a factor for each array": (
        "X: 9.45.264.f16, W: 648.264.f16, u: 648.f32, s: 9.f32) = zip(X)(s) |> map((A, t) => A |> map(row =>"
        f" zip(W)(u) |> map((col, c) => f16(t * ({DOT}) + c))))"
    ),
}


@pytest.mark.parametrize("name", every_other(LAYERS))
def test_rows_that_one_matrix_multiplies_are_one_product(name: str) -> None:
    """In one kernel. 45 rows are no tile, so tiles reach from one array into the next."""
    term = program(f"def f({LAYERS[name]}")
    (kernel,) = AUTO.choice(term).kernels
    assert kernel.point.strategy == "tensor_core"
    assert is_exact(term)


def test_a_tile_of_joined_arrays_is_a_box() -> None:
    """Of the list of all rows: the tensor map has two dimensions, where the array has three."""
    text = f"def f(X: 5.13.64.f16, W: 64.64.f16) = X |> join |> map(row => W |> map(col => f16({DOT})))"
    term, tile = program(text), (64, 64, 64)
    schedule = tensor_core(block=tile, warp=(64, 64), fragment=(64, 64, 16), stages=2, warp_specialised=True)
    low = succeeded(schedule(term)).term
    maps = assemble(low, "f").kernels[0].function.maps
    sizes = [m.map.sizes for m in maps if m.buffer.startswith("X") and isinstance(m.map, TensorMap)]
    assert sizes == [(64, 5 * 13)]
    assert exact(term, low)


# --- transposition ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, 65536])
def test_each_matrix_is_transposed_by_tiles(count: int) -> None:
    """Tiles are first in the grid, or matrices where there are too many for its last dimension."""
    term = program(f"def f(X: {count}.67.64.f32) = X |> map(transpose)")
    (kernel,) = AUTO.choice(term).kernels
    assert kernel.point.strategy == "transposition"
    low = succeeded(AUTO(term)).term
    grid = assemble(low, "f").kernels[0].launch.grid
    assert grid == ((2, 1, 3) if count == 3 else (65536, 2, 1))
    assert count > 3 or exact(term, low)


# --- layers -----------------------------------------------------------------------------------------------

LAYER = "points |> map(row => {weights} |> map(col => {result}))"
FIRST = LAYER.format(weights="W", result=f"f16(max({DOT}, 0))")
LAST = LAYER.format(weights="V", result=DOT)
# the array of rows, the first weights, and what is computed of them
CHAINS = {
    "two": ("{s}.{p}.{i}", "{h}.{i}", f"X |> map(points => {FIRST}) |> map(points => {LAST})"),
    "of each its own first": (
        "{s}.{p}.{i}",
        "{s}.{h}.{i}",
        f"zip(X)(W) |> map((points, W) => {FIRST}) |> map(points => {LAST})",
    ),
    "in arrays in an array": (
        "2.{s}.{p}.{i}",
        "{h}.{i}",
        f"X |> map(map(points => {FIRST})) |> map(map(points => {LAST}))",
    ),
    "and their sums": (
        "{s}.{p}.{i}",
        "{h}.{i}",
        f"X |> map(points => {FIRST}) |> map(points => {LAST}) |> map(points => transpose(points)"
        " |> map(column => column |> reduce(+, 0)))",
    ),
}


def layers(name: str, **sizes: int) -> Expr:
    rows, first, body = (text.format(**sizes) for text in CHAINS[name])
    given = f"X: {rows}.f16, W: {first}.f16, V: {sizes['o']}.{sizes['h']}.f16"
    return program(f"def f({given}) = {body}")


@pytest.mark.parametrize("name", every_other(CHAINS))
def test_layers_of_arrays_of_rows_are_products(name: str) -> None:
    """What one layer computes is stored for the next: no thread computes it for each of its results."""
    kernels = AUTO.choice(layers(name, s=200, p=500, i=512, h=1024, o=512)).kernels
    assert [kernel.point.strategy for kernel in kernels[:2]] == ["tensor_core"] * 2
    small = AUTO.choice(layers(name, s=3000, p=9, i=11, h=29, o=17)).kernels
    assert all(kernel.point.strategy != "default" for kernel in small)


@pytest.mark.parametrize("name", every_other(CHAINS, 1))
def test_layers_are_exact(name: str) -> None:
    term = layers(name, s=3, p=7, i=11, h=13, o=5)
    assert exact(term, succeeded(AUTO(term)).term)
