"""Batches whose matrices share the second operand, and tall matrices, as batches of rows."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest

import codegen
from codegen.pipeline import generate
from rewrites.result import Failure
from rise.check.program import check_text
from rise.expr import Expr, Lambda
from strategies.batches.batch import batch, matrices_of
from strategies.batches.joined import as_one, is_tall, rows_as_batch, suit_joined
from strategies.batches.plans import JOINED, two_fit
from strategies.batches.sizes import Sizes
from tests.support.batches import COLUMNS, ROWS, chosen, exact, lowered, operands_of, program, sizes_of
from tests.support.programs import succeeded

AWKWARD = (1, 2, 3, 5, 7, 13, 17, 31, 33, 65)
# what an element of the result is, of a sum s, an element c of a matrix beside it, and one d of a row
AROUND = {
    "plain": "s",
    "a matrix beside": "0.5 * s + 2 * f32(c)",
    "a row beside": "max(s + d, 0)",
    "both": "max(s + d, 0) + f32(c)",
}


def shared(sizes: tuple[int, int, int, int], layouts: str, type_: str, result: str, around: str) -> Expr:
    """b products of an m.k matrix each and one k.n matrix. type_: of operands, also tf32"""
    rows, columns = ROWS[layouts[0]], COLUMNS[layouts[1]]
    stored, number = ("f32", "f32(tf32({}))") if type_ == "tf32" else (type_, "f32({})")
    value = AROUND[around]
    with_c, with_d = "c" in re.findall(r"\w+", value), "d" in re.findall(r"\w+", value)
    given = f"As: b.{rows[0]}.{stored}, B: {columns[0]}.{stored}" + f", Cs: b.m.n.{result}" * with_c
    given += ", ds: n.f32" * with_d
    term = f"map((x, y) => {number.format('x')} * {number.format('y')}) |> reduce(+, 0)"
    element = f"{result}(let s = zip(row)(col) |> {term} in {value})"
    inner, names = (columns[1], "col")
    if with_d:
        inner, names = f"zip({inner})(ds)", f"({names}, d)"
    if with_c:
        inner, names = f"zip(cs)({inner})", f"(c, {names})"
    each = f"{inner} |> map({names} => {element})"
    body = f"zip(C)({rows[1]}) |> map((cs, row) => {each})" if with_c else f"{rows[1]} |> map(row => {each})"
    batch_ = "zip(As)(Cs) |> map((A, C) =>" if with_c else "As |> map(A =>"
    text = f"def f(b: Nat, m: Nat, n: Nat, k: Nat)({given}) = {batch_} {body})"
    return program(text, **dict(zip("bmnk", sizes, strict=True)))


def tall(rows: int, n: int, k: int, type_: str = "f16", beside: bool = False) -> Expr:
    """A product of a matrix of so many rows."""
    given = f"A: {rows}.{k}.{type_}, B: {k}.{n}.{type_}" + f", C: {rows}.{n}.f32" * beside
    dot = "zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)"
    if beside:
        body = f"zip(A)(C) |> map((row, cs) => zip(transpose(B))(cs) |> map((col, c) => ({dot}) - c))"
    else:
        body = f"A |> map(row => transpose(B) |> map(col => max({dot}, 0)))"
    return program(f"def f({given}) = {body}")


# --- several as one ---------------------------------------------------------------------------------------


def test_matrices_with_one_second_operand_are_exact_as_one() -> None:
    """Sizes, layouts, types, counts and what is beside the products are drawn: few counts divide a batch."""
    seed, ragged, beside = 20261129, 0, 0
    random = Random(seed)
    for number in range(14):
        b = random.choice((1, 7, 17))
        m, n, k = (random.choice(AWKWARD) for _ in range(3))
        type_, around = random.choice(("f16", "bf16", "tf32")), random.choice(list(AROUND))
        result = "f32" if type_ == "tf32" else random.choice(("f32", type_))
        layouts, count = random.choice(("AA", "AT", "TA", "TT")), random.choice((0, 1, 2, 3, 5))
        term = shared((b, m, n, k), layouts, type_, result, around)
        low = lowered(term, JOINED, count=count)
        assert exact(term, low), f"seed {seed}, number {number}: {b, m, n, k, layouts, type_, around, count}"
        ragged += count > 1 and b % count > 0
        beside += "beside" in around or around == "both"
    assert ragged > 2 and beside > 4


@pytest.mark.parametrize("around", AROUND)
def test_what_a_block_reads_is_copied_once(around: str) -> None:
    """The unit brings the arrays of the batch, threads the second operand, and nothing else reads these."""
    term = shared((40, 2, 24, 35), "TT", "f16", "f16", around)
    source = generate(lowered(term, JOINED), "f").source
    body = source.split("{", 1)[1]
    assert body.count("bulk_load_run") == 1 + ("c" in re.findall(r"\w+", AROUND[around]))
    assert not re.search(r"(As|Cs)_?\[", body)
    assert all("copy_async" in line for line in body.splitlines() if re.search(r"\bB_?\[", line))


def test_rows_of_a_fragment_are_those_of_several_matrices() -> None:
    """By themselves, two rows would be most of a fragment of zeros."""
    sizes = sizes_of(shared((1009, 2, 90, 104), "TT", "f16", "f16", "plain"))
    plan = as_one(sizes)
    assert plan.count * 2 >= 4 * 16 and sizes.joined(plan.count).product == (2 * plan.count, 90, 104)
    assert suit_joined(sizes)


# m, n, k, layouts, operands, result, around; of a copy on an H200, by themselves and as one
MEASURED = [
    ((2, 90, 104), "TT", "f16", "f16", "a row beside", 0.14, 0.90),
    ((6, 106, 95), "TA", "tf32", "f32", "plain", 0.24, 0.69),
    ((8, 113, 124), "AA", "f16", "f32", "plain", 0.31, 0.84),
    ((5, 22, 124), "AA", "f16", "f16", "both", 0.38, 0.93),
    ((6, 16, 103), "AT", "f16", "f32", "a row beside", 0.49, 0.95),
    ((12, 122, 45), "TT", "f16", "f32", "plain", 0.60, 0.92),
    ((1, 8, 29), "AT", "tf32", "f32", "plain", 0.60, 1.02),
    ((111, 12, 8), "AT", "bf16", "f32", "a row beside", 0.97, 0.89),
    ((55, 112, 2), "TA", "f16", "f16", "a row beside", 0.92, 0.78),
    ((108, 43, 6), "TT", "f16", "f32", "a row beside", 0.92, 0.83),
]


@pytest.mark.parametrize("case", MEASURED)
def test_they_are_one_where_that_was_faster(
    case: tuple[tuple[int, int, int], str, str, str, str, float, float],
) -> None:
    (m, n, k), layouts, type_, result, around, alone, as_one_ = case
    term = shared((1 << 14, m, n, k), layouts, type_, result, around)
    assert (operands_of(chosen(term)) == JOINED) == (as_one_ > alone)


def test_others_are_refused() -> None:
    own = program(
        "def f(As: 5.9.16.f16, Bs: 5.16.8.f16) = zip(As)(Bs) |> map((A, B) => A |> map(row => transpose(B) |>"
        " map(col => zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0))))"
    )
    refused = batch(operands=JOINED)(own)
    assert isinstance(refused, Failure) and "share a matrix" in refused.reason
    numbers = shared((5, 9, 8, 16), "AA", "f32", "f32", "plain")
    assert isinstance(batch(operands=JOINED)(numbers), Failure)


# --- one second operand, by threads and by fragments ------------------------------------------------------


@pytest.mark.parametrize("operands", ["", "bulk"])
def test_what_all_matrices_read_is_in_shared_memory(operands: str) -> None:
    """Of f32, threads that have parts of results read it for each term of their sums."""
    for type_ in ("f32", "f16"):
        term = shared((7, 13, 18, 30), "TT", type_, "f32", "a row beside")
        low = lowered(term, operands)
        source = generate(low, "f").source
        body = source.split("{", 1)[1]
        assert exact(term, low)
        assert all("copy_async" in line for line in body.splitlines() if re.search(r"\bB_?\[", line))


def test_its_bytes_count_where_blocks_have_to_fit() -> None:
    own = sizes_of(shared((99, 100, 100, 100), "AA", "f32", "f32", "plain"))
    assert own.common == 40_000 and own.read == (40_000,) and two_fit(own)
    beside = sizes_of(shared((99, 120, 120, 120), "TT", "f32", "f32", "a matrix beside"))
    assert beside.common == 57_600 and not two_fit(beside)


# --- tall matrices ----------------------------------------------------------------------------------------


def rows_of(term: Expr) -> Sizes:
    """What is known of the rows of a matrix, each as a matrix."""
    while isinstance(term, Lambda):
        term = term.body
    found = Sizes.of(matrices_of(succeeded(rows_as_batch(term)).term))
    assert found is not None
    return found


def test_tall_matrices_are_exact_as_batches_of_rows() -> None:
    """The last block has fewer rows than the others, or one."""
    seed, fewer = 7, 0
    random = Random(seed)
    for number in range(10):
        rows, n, k = random.choice((1, 127, 129, 257, 331)), random.choice(AWKWARD), random.choice(AWKWARD)
        term = tall(rows, n, k, random.choice(("f16", "bf16")), random.random() < 0.5)
        assert exact(term, lowered(term, JOINED)), f"seed {seed}, number {number}: {rows, n, k}"
        fewer += rows % as_one(rows_of(term)).count > 0
    assert fewer > 4


def test_any_number_of_rows_is_taken_by_one_kernel() -> None:
    """The number of rows is known at launch: the last block has those that are left."""
    program_ = check_text(
        "def f(m: Nat)(A: m.13.f16, B: 13.17.f16): m.17.f32 = A |> map(row => transpose(B) |> map(col =>"
        " zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)))"
    )
    kernel = codegen.compile(program_["f"], runtime=["m"], backend="emulate", target="sm_90a")
    random = np.random.default_rng(3)
    for m in (1, 31, 128, 257):
        a, b = (random.integers(-4, 5, size).astype(np.float16) for size in ((m, 13), (13, 17)))
        assert np.array_equal(kernel(a, b), a.astype(np.float32) @ b.astype(np.float32))
    assert [k.source.count("bulk_load_run") for k in kernel.program.kernels] == [1]


# n, k: whether blocks of rows were faster on an H200, of matrices of 300 MB
TALL = [(100, 21, True), (33, 33, True), (16, 16, True), (8, 29, True), (122, 45, True), (89, 89, True)]
TALL += [(48, 48, True), (64, 64, False), (128, 128, False), (96, 64, False)]


@pytest.mark.parametrize(("n", "k", "faster"), TALL)
def test_tall_matrices_of_odd_rows_are_batches(n: int, k: int, faster: bool) -> None:
    for rows, many in ((1 << 17, True), (1 << 10, False)):
        assert is_tall(rows_of(tall(rows, n, k))) == (faster and many)


# --- a row beside products --------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(7, 16, 17, 32), (3, 13, 31, 33), (2, 40, 35, 65)])
@pytest.mark.parametrize("layouts", ["AA", "TT"])
def test_a_row_is_in_the_order_in_which_lanes_have_columns(sizes: tuple[int, ...], layouts: str) -> None:
    """Pairs of columns are apart where that takes fewer bank conflicts."""
    b, m, n, k = sizes
    rows, columns = ROWS[layouts[0]], COLUMNS[layouts[1]]
    term = program(
        f"def f(b: Nat, m: Nat, n: Nat, k: Nat)(As: b.{rows[0]}.f16, Bs: b.{columns[0]}.f16, ds: n.f32) ="
        f" zip(As)(Bs) |> map((A, B) => {rows[1]} |> map(row => zip({columns[1]})(ds) |> map((col, d) =>"
        " (zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)) * d)))",
        b=b, m=m, n=n, k=k,
    )  # fmt: skip
    assert exact(term, lowered(term, "bulk"))
