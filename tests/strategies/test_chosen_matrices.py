"""Batches of matrices that are not adjacent: that indices choose, of a larger array, of longer rows."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from random import Random

import numpy as np
import pytest

from codegen.pipeline import generate
from rise.errors import RiseError
from rise.expr import Expr, Lambda
from rise.expr import call as call_of
from rise.interpret import call
from rise.types import shape
from strategies.auto import auto
from strategies.batches.adjacent import adjacent, aligned
from strategies.batches.batch import batch, matrices_of
from tests.support.batches import DOT, exact, program
from tests.support.nightly import every_other
from tests.support.programs import succeeded

AUTO = auto()
PRODUCTS = f"(A, B) => A |> map(row => transpose(B) |> map(col => {DOT}))"


def chosen(b: int, m: int, n: int, k: int, result: str = "f32", beside: str = "Bs |> gather(js)") -> Expr:
    """b products of matrices that indices choose."""
    products = PRODUCTS if result == "f32" else PRODUCTS.replace(DOT, f"{result}({DOT})")
    count = b if beside == "Bs" else 3
    return program(
        f"def f(As: 4.{m}.{k}.f16, Bs: {count}.{k}.{n}.f16, is: {b}.Idx[4], js: {b}.Idx[3]) ="
        f" zip(As |> gather(is))({beside}) |> map({products})"
    )


def result(term: Expr) -> Expr:
    while isinstance(term, Lambda):
        term = term.body
    return term


def zipped(term: Expr) -> Expr:
    """The arrays that the matrices of a batch are in."""
    applied = call_of(matrices_of(result(term)))
    assert applied is not None and applied[0] == "map"
    return applied[2][1]


# --- what is adjacent -------------------------------------------------------------------------------------

# a view of an array of arrays of arrays, and how it is made of another
VIEWS = (
    "({}) |> gather(is)",
    "({}) |> take(3)",
    "({}) |> drop(1)",
    "({}) |> map(x => x |> take(2))",
    "({}) |> map(x => x |> drop(1))",
    "({}) |> map(x => x |> map(y => y |> take(4)))",
    "({}) |> map(x => x |> map(y => y |> drop(2)))",
    "({}) |> map(x => x |> transpose)",
    "({}) |> map(x => xs |> idx(natAsIndex(5)(1)))",
    "({}) |> map(x => ys)",
    "is |> map(i => ({}) |> idx(i))",
    "({}) |> map(x => x |> join |> split(2))",
    "({}) |> slide(2, 1) |> join",
    "generate((i: Idx[5]) => ({}) |> idx(natAsIndex(3)(1)))",
)


def drawn(random: Random) -> str:
    """Some of these views, one of the other, that fit each other."""
    view = "xs"
    for each in random.sample(VIEWS, random.randint(0, 3)):
        view = each.format(view)
    return view


def test_adjacent_elements_begin_at_multiples_of_the_number_and_are_as_many() -> None:
    """The views are of an array that holds at each place the number of that place."""
    seed, random = 20261128, Random(20261128)
    places, found = np.arange(5 * 6 * 8, dtype=np.int32).reshape(5, 6, 8), list[int]()
    while len(found) < 120:
        view = drawn(random)
        try:
            term = program(f"def f(xs: 5.6.8.i32, ys: 6.8.i32, is: 5.Idx[3]) = {view}")
        except RiseError:  # sizes of views that do not fit each other
            continue
        body = result(term)
        number = aligned(body)
        read = np.asarray(call(term, places, places[0], np.array([2, 0, 1, 1, 2]))).ravel()
        assert len(read) == prod(size.value or 0 for size in shape(body.type)[0])
        if not len(read):
            continue
        parts = [read] if number == 0 else np.split(read, range(number, len(read), number))
        assert all(b == a + 1 for part in parts for a, b in pairwise(part)), (seed, view, number)
        assert number == 0 or all(part[0] % number == 0 for part in parts), (seed, view, number)
        found.append(number)
    assert found.count(0) >= 10 and sum(number > 1 for number in found) >= 40, found


def test_what_an_index_chooses_is_as_long_as_an_element() -> None:
    rows = "As |> gather(is) |> map(A => A |> map(row => row))"
    assert aligned(result(program(f"def f(As: 4.12.10.f16, is: 5.Idx[4]) = {rows}"))) == 120
    both = result(chosen(5, 13, 7, 9))  # matrices of 117 elements, and of 63
    assert aligned(both) == 9


# --- the strategy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", every_other([*range(1, 17), 18, 20, 21, 22, 24, 25, 30, 34, 42]))
def test_matrices_of_any_size_come_by_vectors_that_divide_them(n: int) -> None:
    """A run of several would be divided by more."""
    for result in ("f32", "f16"):
        succeeded(batch()(chosen(16, n, n, n, result)))


DRAWN = [(5, 5, 5, "f32"), (7, 7, 7, "f16"), (13, 13, 13, "f32"), (20, 20, 20, "f16"), (21, 29, 9, "f16")]


@pytest.mark.parametrize(("m", "n", "k", "result"), every_other(DRAWN))
@pytest.mark.parametrize("beside", ["Bs |> gather(js)", "Bs"])
def test_products_of_chosen_matrices_are_exact(m: int, n: int, k: int, result: str, beside: str) -> None:
    term = chosen(17, m, n, k, result, beside)
    assert exact(term, succeeded(batch()(term)).term)


# what a program says of where its matrices are: the inputs, and both arrays
PLACES = {
    "at any element": (
        "(A: 301.f16, B: 301.f16, at: 7.Idx[101], bt: 7.Idx[101])",
        "A |> slide(n * n, 1) |> take(101) |> gather(at) |> map(split(n))",
        "B |> slide(n * n, 1) |> take(101) |> gather(bt) |> map(split(n))",
    ),
    "each in a row": ("(A: 7.(n * n).f16, B: 7.(n * n).f16)", "A |> map(split(n))", "B |> map(split(n))"),
    "some rows": (
        "(A: 30.n.f16, B: 7.n.n.f16, at: 7.Idx[17])",
        "A |> slide(n, 1) |> take(17) |> gather(at)",
        "B",
    ),
    "every other": (
        "(A: 14.n.n.f16, B: 7.n.n.f16)",
        "A |> split(2) |> map(p => p |> idx(natAsIndex(2)(1)))",
        "B",
    ),
    "one of each four": (
        "(A: 7.4.n.n.f16, B: 7.n.n.f16, at: 7.Idx[4])",
        "zip(at)(A) |> map((i, p) => p |> idx(i))",
        "B",
    ),
    "where a router says": ("(A: 7.n.n.f16, B: 5.n.n.f16, at: 7.Idx[5])", "A", "at |> map(i => B |> idx(i))"),
    "parts of matrices": (
        "(A: 7.(n + 2).(n + 5).f16, B: 7.n.n.f16)",
        "A |> map(a => a |> drop(2) |> map(r => r |> take(n)))",
        "B",
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_auto_multiplies_matrices_wherever_they_are(place: str) -> None:
    """One kernel, of `batch`: no other copies what indices choose."""
    n = 7 + list(PLACES).index(place)
    inputs, first, second = PLACES[place]
    term = program(f"def f(n: Nat){inputs} = zip({first})({second}) |> map({PRODUCTS})", n=n)
    (kernel,) = AUTO.choice(term).kernels
    assert kernel.point.strategy == "batch"
    assert exact(term, succeeded(AUTO(term)).term)


def test_an_array_whose_rows_and_elements_are_used_is_read_once() -> None:
    """A matrix is the rows of a flat array, whose first elements are added to each row of the product."""
    term = program(
        "def f(A: 7.42.f16, B: 7.6.5.f16) = zip(A)(B) |> map((a, b) => a |> split(6) |> map(row =>"
        f" zip(transpose(b))(a |> take(5)) |> map((col, c) => f32(c) + ({DOT}))))"
    )
    assert len(adjacent(zipped(term))) == 2
    assert exact(term, succeeded(batch()(term)).term)


def test_a_warp_brings_each_odd_matrix_and_reads_its_index_once() -> None:
    """So no thread divides by the number of elements to know of which matrix it brings one."""
    source = generate(succeeded(batch()(chosen(16, 13, 13, 13))).term, "f").source
    copies = source[source.index("shared_memory") : source.index("__syncthreads")]
    assert "/ 169" not in copies and "% 169" not in copies and "warp" in copies
    even = generate(succeeded(batch()(chosen(12, 12, 12, 12))).term, "f").source
    assert "copy_async<8>" in even


def test_matrices_beside_them_that_are_adjacent_come_by_wide_vectors() -> None:
    beside = chosen(16, 13, 13, 13, beside="Bs")
    assert adjacent(zipped(beside)) == (0, 169)
    source = generate(succeeded(batch()(beside)).term, "f").source
    assert "copy_vector<8>(&tile_1_fst" in source and "copy_vector<8>(&tile_1_snd" not in source
