"""Reductions of columns: by threads that are beside each other, whatever is reduced, and in one pass."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest

from codegen.execute import execute
from codegen.ir.launch import Launch
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.specialise import inputs_of
from rise.errors import StrategyError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from strategies.auto import auto
from strategies.memory_bound.columns import RESIDENT, columns
from tests.support.batches import exact, program
from tests.support.nightly import every_other, in_turn
from tests.support.programs import succeeded

AUTO = auto()  # what is derived for one test is there for the others

# of a matrix X of m.n, numbers u for its rows and w for its columns
REDUCED = {
    "sums": "transpose(X) |> map(sum)",
    "means": "transpose(X) |> map(mean)",
    "sums of squares, as roots": "transpose(X) |> map(c => sqrt(c |> map(x => x * x) |> sum))",
    "greatest": "transpose(X) |> map(c => c |> reduce(max, -100000))",
    "where they are greatest": "transpose(X) |> map(argmax)",
    "times a vector": "transpose(X) |> map(c => zip(c)(u) |> map((x, y) => x * y) |> sum)",
    "with a number for each": "zip(transpose(X))(w) |> map((c, y) => y - sum(c))",
    "shifted by a number for each": "zip(transpose(X))(w) |> map((c, y) => c |> map(x => x - y) |> sum)",
    "two of each": "transpose(X) |> map(c => (sum(c), c |> reduce(max, -100000)))",
    "least and greatest": "transpose(X) |> map(c => (c |> reduce(max, -99999)) - (c |> reduce(min, 99999)))",
    "one sum, twice": "transpose(X) |> map(c => sum(c) * sum(c) - (c |> map(x => x * x) |> sum))",
    "variances": "transpose(X) |> map(variance)",
    "rows, added": "X |> reduce((p, q) => zip(p)(q) |> map((x, y) => x + y), generate(i => 0.0))",
}
SIZES = [(97, 45), (131, 36), (64, 32), (33, 7), (257, 131), (50, 2), (127, 1)]
SETTINGS = [{}, {"part": 48}, {"vector": 2}, {"across": 8, "rows": 3, "loads": 1}, {"part": 7, "loads": 3}]


def of_matrix(body: str, m: int, n: int, type_: str = "f32") -> Expr:
    given = f"X: {m}.{n}.{type_}, u: {m}.f32, w: {n}.f32"
    return program(f'import "prelude.rise" def f({given}) = {body}')


def is_close(term: Expr, low: Expr) -> bool:
    """Where numbers are divided, or exponentials taken."""
    inputs = random_inputs(inputs_of(term), 5, exact=True)
    found = execute(assemble(low, "f"), inputs, "emulate")
    return np.allclose(np.asarray(found), np.asarray(call(term, *inputs)), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("name", "sizes", "settings"), in_turn(REDUCED, SIZES, SETTINGS))
def test_columns_are_reduced(name: str, sizes: tuple[int, int], settings: dict[str, int]) -> None:
    term = of_matrix(REDUCED[name], *sizes)
    (kernel,) = AUTO.choice(term).kernels if sizes[0] > 32 else (None,)
    made = columns(**settings)(term) if name != "rows, added" else AUTO(term)
    if isinstance(made, Failure):  # vectors of columns whose elements, or sums, are no numbers
        assert "vector" in settings and name == "where they are greatest"
        return
    assert (is_close if name == "variances" else exact)(term, made.term)
    assert kernel is None or str(kernel.point) == "columns"


def test_columns_of_drawn_shapes_are_exact() -> None:
    random = Random(seed := 1127)
    for _ in range(3):
        m, n, name = random.randint(33, 300), random.randint(1, 150), random.choice(list(REDUCED)[:8])
        term = of_matrix(REDUCED[name], m, n)
        given = {key: random.choice(values) for key, values in (("rows", [0, 5]), ("part", [0, 37, 100]))}
        assert exact(term, succeeded(columns(**given)(term)).term), (seed, m, n, name, given)


# --- how they are read ------------------------------------------------------------------------------------


def source_of(term: Expr) -> str:
    """Of the first kernel."""
    return assemble(succeeded(columns()(term)).term, "f").kernels[0].source


@pytest.mark.parametrize(("type_", "n", "step"), [("f32", 45, 1), ("f32", 64, 2), ("f16", 128, 4)])
def test_neighbours_read_neighbouring_columns(type_: str, n: int, step: int) -> None:
    """A warp reads 128 or 256 bytes that are adjacent, where columns are as many as its threads."""
    body = "transpose(X) |> map(c => c |> map(x => f32(x)) |> sum)"
    term = of_matrix(body, 200, n, type_)
    read = re.search(r"X_start = .*thread_x( \* (\d+))?;", source := source_of(term))
    assert read is not None and int(read[2] or 1) == step
    assert ("copy_vector" in source) == (step > 1)


def test_only_the_last_turn_of_a_loop_has_conditions() -> None:
    """Loads of vectors under conditions wait for each other."""
    source = source_of(of_matrix(REDUCED["sums"], 100001, 64))
    inside, at_the_end = source.split("(0 < inside)")[1].split("(inside < 1)")
    assert "< 100001" not in inside
    assert "< 100001" in at_the_end
    assert "inside" not in source_of(of_matrix(REDUCED["sums"], 131072, 64))


@pytest.mark.parametrize(("m", "n"), [(1000003, 3), (50000, 64), (4096, 4096), (1 << 20, 37)])
def test_parts_of_few_columns_run_at_the_same_time(m: int, n: int) -> None:
    term = of_matrix(REDUCED["sums"], m, n)
    first, last = (each.launch for each in assemble(succeeded(columns()(term)).term, "f").kernels)
    assert RESIDENT / 3 < blocks(first) * -(-first.threads // 32) * 32 <= RESIDENT
    assert blocks(last) <= blocks(first)


def blocks(launch: Launch) -> int:
    x, y, z = (int(str(extent)) for extent in launch.grid)
    return x * y * z


# --- what `auto` makes of them ----------------------------------------------------------------------------

PROGRAMS = {
    "probabilities in columns": (
        "X: 67.45.f32) = X |> transpose |> map(softmax) |> transpose",
        ["columns", "elementwise"],
    ),
    "the same, transposed": ("X: 67.45.f32) = X |> transpose |> map(softmax)", ["columns", "transposition"]),
    "of each matrix": (
        "X: 3.67.45.f32) = X |> map(A => A |> transpose |> map(softmax) |> transpose)",
        ["columns", "elementwise"],
    ),
    "sums of each matrix": ("X: 3.67.45.f32) = X |> map(A => A |> transpose |> map(sum))", ["columns"]),
    "of rows in matrices": ("X: 3.67.45.f32) = X |> join |> transpose |> map(sum)", ["columns"]),
    "centred": (
        "X: 67.45.f32) = let means = X |> transpose |> map(mean) in"
        " X |> map(row => zip(row)(means) |> map((x, y) => x - y))",
        ["columns", "elementwise"],
    ),
    "rows and then columns": (
        "X: 67.45.f32) = X |> map(softmax) |> transpose |> map(softmax) |> transpose",
        ["rows", "columns", "elementwise"],
    ),
    "matrices, added": (
        "X: 77.9.8.f32) = X |> reduce((A, B) => zip(A)(B) |> map((p, q) => zip(p)(q)"
        " |> map((x, y) => x + y)), generate(i => generate(j => 0.0)))",
        ["columns"],
    ),
    "of what has a name, two of each": (
        "X: 67.45.f32, g: 45.f32) = let D = X |> map(r => zip(r)(g) |> map((x, y) => x * y)) in"
        " (transpose(D) |> map(sum), transpose(D) |> map(c => c |> reduce(max, -100000)))",
        ["columns", "columns"],
    ),
    "rows of a table, chosen by long lists": (
        "T: 50.45.f32, I: 9.67.Idx[50]) ="
        " I |> map(is => is |> map(i => T |> idx(i)) |> transpose |> map(sum))",
        ["columns"],
    ),
    "the same by short lists": (
        "T: 50.45.f32, I: 9.7.Idx[50]) ="
        " I |> map(is => is |> map(i => T |> idx(i)) |> transpose |> map(sum))",
        ["default"],
    ),
    "short columns": ("X: 32.4500.f32) = X |> transpose |> map(sum)", ["default"]),
}


@pytest.mark.parametrize(
    "name", every_other(PROGRAMS, 1) + ["probabilities in columns", "of what has a name, two of each"]
)
def test_auto_reduces_columns(name: str) -> None:
    text, wanted = PROGRAMS[name]
    term = program(f'import "prelude.rise" def f({text}')
    assert [str(kernel.point).split()[0] for kernel in AUTO.choice(term).kernels] == wanted
    agrees = is_close if "softmax" in text or "mean" in text else exact
    assert agrees(term, succeeded(AUTO(term)).term)


def test_results_are_threads_however_many_lists_there_are() -> None:
    """Neighbours read neighbouring elements of a row. A grid has no room for 70,000 lists in y."""
    text = (
        "T: 50.8.f32, I: {}.3.Idx[50]) = I |> map(is => is |> map(i => T |> idx(i)) |> transpose |> map(sum))"
    )
    for lists, launched in ((1000, (1, 1000, 1)), (70000, (4375, 1, 1))):
        low = succeeded(AUTO(program(f'import "prelude.rise" def f({text.format(lists)}'))).term
        assert assemble(low, "f").kernels[0].launch.grid_at({}) == launched


@pytest.mark.parametrize("rows", [33, 100, 501, 700])
@pytest.mark.parametrize("name", ["sums", "times a vector", "with a number for each", "two of each"])
def test_many_columns_of_a_matrix_are_beside_each_other(name: str, rows: int) -> None:
    """No block takes them as a list of rows, of which each would be read from one end of the matrix on."""
    term = of_matrix(REDUCED[name], rows, 100003)
    assert [kernel.point.strategy for kernel in AUTO.choice(term).kernels] == ["columns"]


@pytest.mark.parametrize("columns", ["A |> transpose", "zip(A |> transpose)(w)"])
def test_columns_of_large_matrices_in_arrays_are_beside_each_other(columns: str) -> None:
    """No block takes two such matrices, and threads that each read a column of one would read far apart."""
    each = "c => sum(c)" if "zip" not in columns else "(c, y) => sum(c) * y"
    text = (
        'import "prelude.rise" def f(t: Nat)(As: t.307.97.f32, ws: t.97.f32) ='
        f" zip(As)(ws) |> map((A, w) => {columns} |> map({each}))"
    )
    few, many = program(text, t=3), program(text, t=300)
    for term in (few, many):
        assert [kernel.point.strategy for kernel in AUTO.choice(term).kernels] == ["columns"]
    assert exact(few, succeeded(AUTO(few)).term)


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["across", "rows", "vector", "loads", "part"])
def test_settings_are_numbers(setting: str) -> None:
    with pytest.raises(StrategyError, match="R0609"):
        columns(**{setting: -1})


def test_a_map_of_something_else_is_refused() -> None:
    made = columns()(of_matrix("X |> map(r => r |> map(x => x + 1))", 40, 40))
    assert isinstance(made, Failure)
    assert "expected a map over columns, whose function reduces each" in made.reason
