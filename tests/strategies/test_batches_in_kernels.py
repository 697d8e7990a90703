"""Batches that take more than products: norms, functions of whole rows, sums of all, results elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import assemble
from rise.check.specialise import inputs_of
from rise.expr import Expr
from rise.interpret import call, random_inputs
from strategies.auto import auto
from strategies.batches.batch import batch
from tests.support.batches import exact, program
from tests.support.nightly import every_other
from tests.support.programs import succeeded

AUTO = auto()  # what is derived for one test is there for the others

PRELUDE = 'import "prelude.rise" '


def dot(xs: str, ys: str) -> str:
    return f"(zip({xs})({ys}) |> map((a, b) => f32(a) * f32(b)) |> reduce(+, 0))"


OF_EACH = "A |> map(x => B |> map(y => {each}))"
NORMS = {
    "distances": f"{dot('x', 'x')} + {dot('y', 'y')} - 2 * {dot('x', 'y')}",
    "of the second only": f"{dot('x', 'y')} - {dot('y', 'y')}",
    "of the first only": f"{dot('x', 'x')} - {dot('x', 'y')}",
}
PRODUCT = OF_EACH.format(each=dot("x", "y"))
SOFTMAX = f"{PRODUCT} |> map(softmax)"
OPERANDS = "As: {b}.{m}.{k}.f16, Bs: {b}.{n}.{k}.f16"
SIZES = {"b": 47, "m": 17, "n": 19, "k": 9}


def of_operands(body: str, around: str = "{}", sizes: dict[str, int] = SIZES) -> Expr:
    """A batch of what two matrices of each element give, inside of something else."""
    computed = around.format(f"(zip(As)(Bs) |> map((A, B) => {body}))")
    return program(f"{PRELUDE}def f({OPERANDS.format(**sizes)}) = {computed}")


def kernels(term: Expr) -> list[str]:
    return [str(kernel.point) for kernel in AUTO.choice(term).kernels]


def is_exact(term: Expr) -> bool:
    return exact(term, succeeded(AUTO(term)).term)


def is_close(term: Expr) -> bool:
    inputs = random_inputs(inputs_of(term), 7, exact=False)
    found = np.asarray(execute(assemble(succeeded(AUTO(term)).term, "f"), inputs, "emulate"))
    return np.allclose(found, np.asarray(call(term, *inputs)), rtol=1e-4, atol=1e-5)


# --- norms beside products --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", every_other(NORMS))
def test_norms_beside_products_are_computed_before(name: str) -> None:
    """Once for each row: the products are then multiplied by tensor cores, and by no threads."""
    term = of_operands(OF_EACH.format(each=NORMS[name]))
    *before, last = AUTO.choice(term).kernels
    assert len(before) == NORMS[name].count("zip(x)(x)") + NORMS[name].count("zip(y)(y)")
    assert "computed by threads" not in last.reason
    assert "products" in last.reason
    assert is_exact(term)


@pytest.mark.parametrize("sizes", [{"b": 3, "m": 64, "n": 64, "k": 64}, {"b": 1, "m": 17, "n": 1, "k": 5}])
def test_batches_of_distances_are_exact(sizes: dict[str, int]) -> None:
    assert is_exact(of_operands(OF_EACH.format(each=NORMS["distances"]), sizes=sizes))


# --- functions of whole rows ------------------------------------------------------------------------------


@pytest.mark.parametrize("around", every_other(["{}", "{} |> join", "{} |> join |> join"]))
def test_rows_of_products_are_one_kernel_behind_them(around: str) -> None:
    """The product is computed once, whatever of its rows is computed of it, and wherever they are."""
    assert [name.split()[0] for name in kernels(of_operands(SOFTMAX, around))] == ["batch", "batch"]


def test_softmax_of_products_is_right_in_whatever_is_joined() -> None:
    term = of_operands(SOFTMAX, "{} |> join", {"b": 5, "m": 17, "n": 19, "k": 8})
    assert is_close(term)


# --- sums of sums, and products of vectors ----------------------------------------------------------------

OF_ONE = {
    "inner products of matrices": (
        f"As: 7.37.41.f16, Bs: 7.37.41.f16) = zip(As)(Bs) |> map((A, B) => zip(A)(B) |> map((x, y) => "
        f"{dot('x', 'y')}) |> reduce(+, 0))",
        ["batch"],
    ),
    "of three dimensions": (
        "As: 5.3.7.11.f32) = As |> map(A => A |> map(map(reduce(+, 0))) |> map(reduce(+, 0))"
        " |> reduce(+, 0))",
        ["reduction"],
    ),
    "the greatest of all": (
        "As: 5.37.41.f32) = As |> map(A => A |> map(row => row |> reduce(max, -100000))"
        " |> reduce(max, -100000))",
        ["reduction"],
    ),
    "quadratic forms": (
        "As: 7.61.61.f16, xs: 7.61.f16) = zip(As)(xs) |> map((A, x) =>"
        f" zip(A |> map(row => {dot('row', 'x')}))(x) |> map((s, t) => s * f32(t)) |> reduce(+, 0))",
        ["batch"],
    ),
    "bilinear forms": (
        "As: 40.33.29.f16, xs: 33.f16, ys: 29.f16) = As |> map(A =>"
        f" zip(A |> map(row => {dot('row', 'ys')}))(xs) |> map((s, t) => s * f32(t)) |> reduce(+, 0))",
        ["batch"],
    ),
    "blocks of a diagonal": (
        f"As: 40.37.37.f16, xs: 1480.f16) = zip(As)(xs |> split(37)) |> map((A, x) => A |> map(row =>"
        f" {dot('row', 'x')})) |> join",
        ["batch"],
    ),
}


@pytest.mark.parametrize("name", every_other(OF_ONE))
def test_sums_of_each_element_are_no_loops(name: str) -> None:
    text, wanted = OF_ONE[name]
    term = program(f"{PRELUDE}def f({text}")
    assert [kernel.split()[0] for kernel in kernels(term)] == wanted
    assert is_exact(term)


# --- functions of all elements of a matrix ----------------------------------------------------------------

NORM = (
    "let m = mean({0} |> {1}) in let d = {0} |> {2} in let v = mean(d |> {1} |> map(x => x * x)) in d |> {3}"
)
OF_ALL = {
    "divided by their norm": (
        "X: 47.33.29.f32) = X |> map(A => let s = sqrt(A |> map(row => row |> map(x => x * x)"
        " |> reduce(+, 0)) |> reduce(+, 0)) in A |> map(map(x => x / s)))",
        ["batch"],
    ),
    "less their greatest element": (
        "X: 5.17.48.f32) = X |> map(A => let s = A |> map(row => row |> reduce(max, -1000))"
        " |> reduce(max, -1000) in A |> map(map(x => x - s)))",
        ["rows"],
    ),
    "images, centred and scaled": (
        "X: 3.2.17.19.f32) = X |> map(map(a => "
        + NORM.format("a", "join", "map(map(x => x - m))", "map(map(x => x * rsqrt(v + 0.001)))")
        + "))",
        ["rows"],
    ),
    "groups of images": (
        "X: 3.4.17.19.f32) = X |> map(c => c |> split(2) |> map(g => let m = mean(g |> join |> join) in"
        " g |> map(map(map(x => x - m)))) |> join)",
        ["rows"],
    ),
    "rows, then columns": (
        "X: 47.33.29.f32) = X |> map(A => A |> map(softmax) |> transpose |> map(softmax) |> transpose)",
        ["rows", "batch", "elementwise"],
    ),
}


@pytest.mark.parametrize("name", every_other(OF_ALL))
def test_functions_of_all_elements_are_functions_of_rows(name: str) -> None:
    """A block computes each, or threads beside each other: in loops, one thread would."""
    text, wanted = OF_ALL[name]
    term = program(f"{PRELUDE}def f({text}")
    assert [kernel.split()[0] for kernel in kernels(term)] == wanted
    assert is_close(term)


# --- what is not used -------------------------------------------------------------------------------------

UNUSED = (
    "Xs: 40.33.29.f32, Ys: 40.29.31.f16, Zs: 40.31.33.f16) ="
    " zip(Xs)(zip(Ys)(Zs)) |> map((X, _) => X |> map({}))"
)


def test_auto_reads_no_array_that_nothing_uses() -> None:
    term = program(f"{PRELUDE}def f({UNUSED.format('softmax')}")
    alone = program(f"{PRELUDE}def f(Xs: 40.33.29.f32) = Xs |> map(map(softmax))")
    assert AUTO.choice(term).kernels == AUTO.choice(alone).kernels


def test_arrays_that_nothing_reads_share_no_memory() -> None:
    """Nothing waits for copies of them, so they may be under way as long as the block is."""
    term = program(f"{PRELUDE}def f({UNUSED.format('map(x => x + x)')}")
    assert exact(term, succeeded(batch()(term)).term)
