"""Batches of small products: derived, checked against the interpreter, run in the emulator."""

from __future__ import annotations

import re
from math import prod
from random import Random
from typing import Any

import pytest

from codegen.ir.scalar_temporaries import undivided
from codegen.pipeline import generate
from rewrites.result import Failure
from rise.errors import StrategyError
from rise.expr import Expr, Lambda, Primitive, subterms
from rise.nat import Facts, evaluate, nat, quotient, remainder, simplify, variable
from rise.normal import data_flow
from rise.testing import assert_preserves
from rise.types import Array, Scalar
from strategies.auto import auto
from strategies.batches.banks import Order
from strategies.batches.batch import batch
from strategies.batches.fragments import stored_order
from strategies.batches.plans import BLOCKS, BULK, ELEMENTS, THREADS, WARPS, plan_of
from strategies.batches.sizes import RESERVED, ROOM, Sizes
from strategies.search.batches import batched
from strategies.search.choice import Search
from strategies.search.hardware import for_target
from strategies.search.problem import Problem
from tests.support.batches import exact, products, program, sizes_of
from tests.support.nightly import every_other, in_turn
from tests.support.programs import succeeded

DOT = "zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)"


def used(low: Expr) -> set[str]:
    return {part.name for part in subterms(low) if isinstance(part, Primitive)}


def by(term: Expr) -> str:
    """Who multiplies the matrices of a program."""
    return plan_of(sizes_of(term)).by


# --- who multiplies ---------------------------------------------------------------------------------------

AWKWARD = {
    THREADS: [(1, 1, 1, 1), (97, 2, 3, 5), (5, 1, 13, 3), (29, 7, 1, 2)],
    WARPS: [(13, 13, 13, 13), (2, 31, 17, 5)],
    BLOCKS: [(3, 33, 33, 33), (1, 65, 31, 20)],
}


@pytest.mark.parametrize(
    ("who", "sizes"), every_other([(who, s) for who, all_ in AWKWARD.items() for s in all_])
)
def test_products_of_any_size_are_exact(who: str, sizes: tuple[int, int, int, int]) -> None:
    term = products(*sizes)
    assert by(term) == who
    low = succeeded(batch()(term)).term
    assert ("tensorMatMulAdd" in used(low)) == (who != THREADS)
    assert exact(term, low)


def test_random_products_are_exact() -> None:
    """Any size, element type, layout and epilogue."""
    seed, found = 20261123, set()
    random = Random(seed)
    for number in range(6):
        sizes = (random.randint(1, 40), *(random.choice([1, 2, 3, 5, 8, 11, 16, 21]) for _ in range(3)))
        type_, body = random.choice(["f16", "bf16", "f32"]), random.choice(["plain", "rounded", "scaled"])
        layouts = random.choice("AT") + random.choice("AT")
        term = products(*sizes, type_, layouts, body)
        found.add(by(term))
        case = f"seed {seed}, number {number}: {sizes}, {type_}, {layouts}, {body}"
        assert exact(term, succeeded(batch()(term)).term), case
    assert found >= {THREADS, WARPS}


@pytest.mark.parametrize(
    ("body", "sizes", "who"),
    [
        ("plain", (5, 37, 33, 35), THREADS),
        ("scaled", (2, 11, 127, 3), THREADS),
        ("rounded to tf32", (7, 3, 5, 2), THREADS),
        ("rounded to tf32", (5, 17, 16, 9), WARPS),
        ("rounded to tf32", (2, 65, 34, 21), BLOCKS),
    ],
)
def test_operands_of_32_bits_are_multiplied(body: str, sizes: tuple[int, int, int, int], who: str) -> None:
    """By threads, whatever the length of rows; by tensor cores where the program rounds them to tf32."""
    term = products(*sizes, "f32", "AT", body)
    low = succeeded(batch()(term)).term
    assert (by(term), "tensorMatMulAdd" in used(low)) == (who, who != THREADS)
    assert exact(term, low)


def test_loops_over_many_multiplications_are_not_unrolled() -> None:
    """Of a row that a thread computes."""
    short, long = (generate(succeeded(batch()(products(5, 1, n, n, "f32"))).term, "f") for n in (32, 33))
    assert "// reduceSeqUnroll" in short.source and "// reduceSeqUnroll" not in long.source
    assert "for (int k = 0; k < 33; k += 1) {  // reduceSeq" in long.source


@pytest.mark.parametrize(("rows", "epilogue"), [(32, "shared"), (48, "direct")])
def test_a_warp_may_have_several_fragments_of_rows(rows: int, epilogue: str) -> None:
    term = products(2, 65, 33, 17)
    low = succeeded(batch(rows=rows, epilogue=epilogue)(term)).term
    assert generate(low, "f").launch.block[0] == 32 * -(-65 // rows)
    assert ("toMem" in used(low)) and (low == succeeded(batch(rows=rows)(term)).term) == (
        epilogue == "shared"
    )
    assert exact(term, low)


ROW_FORMS = ({"operands": "elements", "count": 1, "epilogue": "shared"}, {"operands": "padded"})


ODD = [
    ((1, 65, 33, 17), "f16", "AT", "scaled"),
    ((2, 33, 17, 31), "bf16", "TA", "rounded"),
    ((1, 33, 47, 21), "f32", "TT", "rounded to tf32"),
    ((2, 34, 36, 18), "f16", "AA", "plain"),
]


@pytest.mark.parametrize(
    ("sizes", "type_", "layouts", "body", "form"), [(*case, form) for case, form in in_turn(ODD, ROW_FORMS)]
)
def test_fragments_of_odd_rows_come_from_padded_ones(
    form: dict[str, Any], sizes: tuple[int, int, int, int], type_: str, layouts: str, body: str
) -> None:
    """No load of a fragment has a condition, and elements of 16 bits come by ldmatrix."""
    term = products(*sizes, type_=type_, layouts=layouts, body=body)
    low = succeeded(batch(by=BLOCKS, **form)(term)).term
    source = generate(low, "f").source
    assert not any("fragment" in line and "?" in line for line in source.splitlines())
    assert "load_matrices" in source
    assert exact(term, low)


def test_matrices_that_are_no_whole_fragments_come_to_padded_rows_and_fit() -> None:
    """Odd ones, and long ones: one for a block, of which a multiprocessor has three."""
    for side, blocks in ((31, 0), (33, 3), (97, 3), (127, 3), (34, 0), (98, 3), (96, 0), (72, 0), (88, 3)):
        term = products(1000, side, side, side)
        assert isinstance(term, Lambda) and isinstance(term.body, Lambda)
        sizes = Sizes.of(term.body.body)
        assert sizes is not None and (plan_of(sizes).operands == ELEMENTS) == (blocks > 0), side
        if side in (97, 98):
            low = succeeded(batch()(term)).term
            assert blocks * (generate(low, "f").launch.shared_bytes + RESERVED) <= ROOM


@pytest.mark.parametrize(
    ("sizes", "copy"),
    [
        ((2, 33, 40, 24), "copy_async_or_zero<8>(&ring"),
        ((1, 37, 36, 20), "copy_async_or_zero<4>(&ring"),
        ((1, 35, 38, 22), "copy_async_or_zero<2>(&ring"),
        ((1, 33, 17, 31), "copy_vector<2>(&ring"),
    ],
)
def test_rows_come_by_the_widest_vectors_that_divide_them(
    sizes: tuple[int, int, int, int], copy: str
) -> None:
    """Asynchronously; elements of odd rows are loaded one by one, and stored two at once."""
    term = products(*sizes)
    low = succeeded(batch(by=BLOCKS, operands=ELEMENTS, count=1)(term)).term
    source = generate(low, "f").source
    stores = {
        line.split("[")[0].strip() for line in source.splitlines() if "(&ring" in line and "copy" in line
    }
    assert {store.split("(")[0] for store in stores} == {copy.split("(", maxsplit=1)[0]}
    assert "load_matrices" in source and exact(term, low)


def test_a_thread_has_many_loads_under_way_before_it_stores() -> None:
    """Of odd rows, which no asynchronous copy brings: all that it loads of a matrix, or batches of that."""
    term = products(1, 65, 65, 65)
    low = succeeded(batch(by=BLOCKS, operands=ELEMENTS, count=1, vector=1)(term)).term
    source = generate(low, "f").source
    kept = [int(n) for n in re.findall(r"Local<half, (\d+)> value", source)]
    assert kept and min(kept) >= 32
    assert source.index("value[") < source.index("As_[") < source.index("ring[")


def test_results_of_one_matrix_are_kept_where_its_operands_were() -> None:
    """A loop over one matrix carries nothing, so that the operands are not needed when results are stored."""
    for m, n, k, blocks in ((65, 65, 65, 7), (33, 127, 16, 13), (128, 128, 128, 3)):
        made = batch(by=BLOCKS, operands=ELEMENTS, count=1, rows=16, epilogue="shared")
        low = succeeded(made(products(3, m, n, k)))
        shared = generate(low.term, "f").launch.shared_bytes
        whole = 2 * (-(-m // 16) * 16 * (-(-k // 16) * 16 + 8) + -(-k // 16) * 16 * (-(-n // 16) * 16 + 8))
        assert abs(shared - max(whole, 4 * m * n)) <= 128 * 3 + 4 * 8 * m
        assert ROOM // (shared + RESERVED) == blocks


@pytest.mark.parametrize("in_pairs", [False, True])
def test_lanes_store_to_as_many_banks_as_an_order_gives(in_pairs: bool) -> None:
    """Rows that are no multiples of 16 bytes: lanes have rows, or pairs of columns, that are apart."""
    found = []
    for side in range(33, 129):
        for width in ("f16", "f32"):
            result = Array(nat(side), Array(nat(side), Scalar(width)))
            chosen = stored_order(result, (32, 96), in_pairs)
            orders = (
                [Order(columns=n) for n in (1, 2, 3, 4, 6, 12)] if in_pairs else [Order(n) for n in (1, 2, 4)]
            )
            most = {order: stores_to_a_bank(side, Scalar(width).bytes, order) for order in orders}
            plain = most[Order()]
            assert most[chosen] == (min(most.values()) if side * Scalar(width).bytes % 16 else plain)
            found.append(plain // most[chosen])
    assert max(found) >= 4 and len(found) - found.count(1) >= 50


@pytest.mark.parametrize(("sizes", "body"), [((1, 65, 33, 17), "rounded"), ((2, 31, 33, 5), "scaled")])
def test_results_in_rows_apart_are_exact(sizes: tuple[int, int, int, int], body: str) -> None:
    """The order of rows is one of the first operand's, and its inverse one of the results."""
    term = products(*sizes, body=body)
    low = succeeded(batch(by=BLOCKS, operands=ELEMENTS, count=1, rows=32)(term)).term
    assert "reorder" in used(low) and exact(term, low)


@pytest.mark.parametrize("body", ["rounded", "scaled"])
def test_rows_that_threads_bring_several_of_at_once_stay_as_they_are(body: str) -> None:
    """The first operand is stored by columns: four or more of its rows are one access of a thread."""
    for m, n, k in ((40, 44, 12), (80, 125, 12), (24, 34, 8)):
        term = products(2, m, n, k, layouts="TT", body=body)
        low = succeeded(batch(by=BLOCKS, operands=ELEMENTS, count=1, rows=32)(term)).term
        assert "copyAsync" in used(low) and exact(term, low)


def stores_to_a_bank(side: int, width: int, order: Order) -> int:
    """How many words that eight rows of four lanes store at once are in the fullest of 32 banks."""
    places = [(row * order.apart, 2 * lane * order.columns) for row in range(8) for lane in range(4)]
    words = {(row * side + column) * width // 4 for row, column in places}
    banks = [word % 32 for word in words]
    return max(banks.count(bank) for bank in banks)


def test_parameters_that_cannot_be_are_refused() -> None:
    for given, said in (
        ({"rows": 8}, "rows: 8 is not a multiple of the 16 of a fragment"),
        ({"rows": -16}, "rows"),
        ({"epilogue": "bulk"}, "epilogue: `bulk` is not one of shared, direct"),
        ({"operands": "rows"}, "operands: `rows` is not one of runs, padded, elements"),
        ({"vector": 3}, "vector is 3, and must be a power of two"),
        ({"by": "lanes"}, "by: `lanes` is not one of threads, warps, blocks"),
    ):
        with pytest.raises(StrategyError, match=said):
            batch(**given)
    cases: tuple[tuple[Expr, dict[str, Any], str], ...] = (
        (products(5, 8, 8, 8, "f32"), {"by": WARPS}, "no fragments of `f32`: use `by=threads`"),
        (products(5, 8, 8, 8), {"operands": ELEMENTS}, "`operands` changes nothing"),
        (products(5, 64, 64, 64), {"vector": 2, "operands": BULK}, "`vector` changes nothing"),
        (products(5, 8, 8, 8), {"rows": 16}, "`rows` changes nothing: matrices are multiplied by warps"),
    )
    for term, given, said in cases:
        result = batch(**given)(term)
        assert isinstance(result, Failure) and said in str(result.error("batch"))


# what a drawn program multiplies, and what it does with the sums
DRAWN = {
    "A": ("A", "A |> map(map(x => max(x, 0)))", "A |> map(map(x => x + x))"),
    "e": ("s", "f16(s)", "a * s + b * c", "f16(max(s + c, 0))"),
}


def test_drawn_programs_are_exact() -> None:
    """α and β, prologues, epilogues, an operand for all matrices, and those that indices choose."""
    seed, found = 20261125, set()
    random = Random(seed)
    for number in range(6):
        b, (m, n, k) = random.choice([1, 2, 7]), (random.choice([1, 2, 5, 9, 17]) for _ in range(3))
        prologue, epilogue = random.choice(DRAWN["A"]), random.choice(DRAWN["e"])
        where = random.choice(["Bs", "one", "chosen"])
        second = {"Bs": f"{b}.{k}.{n}", "one": f"{k}.{n}", "chosen": f"5.{k}.{n}"}[where] + ".f16"
        all_ = {"Bs": "Bs", "one": f"generate((i: Idx[{b}]) => Bs)", "chosen": "Bs |> gather(js)"}[where]
        text = (
            f"def f(As: {b}.{m}.{k}.f16, Bs: {second}, Cs: {b}.{m}.{n}.f32, js: {b}.Idx[5], a: f32, b: f32) ="
            f" zip(As)(zip({all_})(Cs)) |> map((A, (B, C)) => zip({prologue})(C) |> map((row, cs) =>"
            f" zip(transpose(B))(cs) |> map((col, c) => let s = {DOT} in {epilogue})))"
        )
        term = program(text)
        low = auto()(term)
        found.add((where, epilogue in DRAWN["e"][2:]))
        assert exact(term, succeeded(low).term), f"seed {seed}, number {number}: {text}"
    assert {"Bs", "one", "chosen"} == {where for where, _ in found}


def test_every_step_preserves_the_products() -> None:
    assert_preserves(batch(), products(3, 3, 2, 4))


# --- what else is a batch ---------------------------------------------------------------------------------

OTHERS = {
    "α·A·B + β·C": (
        "def f(As: 7.5.6.f16, Bs: 7.6.4.f16, Cs: 7.5.4.f32, a: f32, b: f32) = zip(As)(zip(Bs)(Cs)) |>"
        " map((A, (B, C)) => zip(A)(C) |> map((row, cs) => zip(transpose(B))(cs) |> map((col, c) =>"
        f" a * ({DOT}) + b * c)))"
    ),
    "one operand for all": (
        "def f(As: 7.5.6.f16, B: 6.4.f16) = As |> map(A => A |> map(row => transpose(B) |> map(col =>"
        f" {DOT})))"
    ),
    "one operand for all, whose elements are used twice": (
        "def f(As: 7.5.29.f16, B: 29.6.f16) = As |> map(A => A |> map(row => transpose(B |> map(map(x =>"
        f" x + x))) |> map(col => {DOT})))"
    ),
    "max(A, 0)·B": (
        "def f(As: 7.5.6.f16, Bs: 7.6.4.f16) = zip(As)(Bs) |> map((A, B) => A |> map(map(x => max(x, 0))) |>"
        f" map(row => transpose(B) |> map(col => {DOT})))"
    ),
    "Gram matrices": f"def f(As: 7.11.13.f16) = As |> map(A => A |> map(row => A |> map(col => {DOT})))",
    "transposed results": (
        "def f(As: 7.5.6.f16, Bs: 7.6.4.f16) = zip(As)(Bs) |> map((A, B) =>"
        f" A |> map(row => transpose(B) |> map(col => {DOT})) |> transpose)"
    ),
    "matrices times vectors": (
        f"def f(As: 7.5.6.f32, xs: 7.6.f32) = zip(As)(xs) |> map((A, col) => A |> map(row => {DOT}))"
    ),
    "outer products": "def f(us: 7.5.f32, vs: 7.4.f32) = zip(us)(vs) |> map((u, v) => u |> map(x =>"
    " v |> map(y => x * y)))",
}


@pytest.mark.parametrize("name", every_other(OTHERS))
def test_other_batches_are_exact(name: str) -> None:
    term = program(OTHERS[name])
    assert exact(term, succeeded(batch()(term)).term)


def test_auto_takes_batches_and_leaves_single_matrices() -> None:
    chosen = [k.point.strategy for k in auto().choice(products(50, 5, 6, 7)).kernels]
    assert chosen == ["batch"]
    search = Search(for_target("sm_90a"), "sm_90a")
    assert batched(search, products(50, 5, 6, 7)) is not None
    assert batched(search, products(1, 64, 64, 64)) is None
    alone = products(1, 31, 15, 33, "f32")  # which tensor cores do not take
    assert [k.point.strategy for k in auto().choice(alone).kernels] == ["batch"]
    assert batched(search, products(50, 64, 192, 64)) is None


def test_a_multiprocessor_has_two_blocks_with_padded_results_or_they_go_to_memory() -> None:
    """Rows of 120 numbers would start in few banks: with 8 more each, two blocks' results do not fit."""
    for size in (112, 120):
        term = products(1009, size, size, size)
        for kernel in auto().choice(term).kernels:
            if kernel.point.strategy == "batch":
                low = succeeded(batch(**dict(kernel.point.parameters))(term)).term
                blocks = ROOM // (generate(low, "f").launch.shared_bytes + RESERVED)
                assert blocks >= 2, size


def test_operands_of_a_batch_are_not_read_beside_its_products() -> None:
    text = """def f(As: 3.8.8.f16, Bs: 3.8.8.f16, Cs: 3.8.8.f16) = zip(zip(As)(Bs))(Cs) |> map((P, C) =>
      zip(fst(P) |> map(a => transpose(snd(P)) |> map(b => zip(a)(b) |> map((x, y) => f32(x) * f32(y))
        |> reduce(+, 0))))(C) |> map((row, cs) => zip(row)(cs) |> map((x, c) => x + f32(c))))"""
    for taken, beside in ((text, (2,)), (text.replace("x + f32(c)", "x * x"), ())):
        found = Problem.of(data_flow(program(taken)))
        assert found is not None and found.beside == beside


def test_where_the_plan_does_not_build_others_are_tried() -> None:
    """Of the kernels at 27 and 42 with f16 results a version of the compiler spilled 8 and 12 bytes."""
    for size, refused, there in ((27, 1, 5), (42, 7, 7)):  # by warps, which have no other number of rows
        tried: list[Expr] = []

        def builds(term: Expr, _: str, tried: list[Expr] = tried, refused: int = refused) -> int:
            tried.append(term)
            if len(tried) <= refused:
                raise StrategyError("R0832", "it spills")
            return 0

        search = Search(for_target("sm_90a"), "sm_90a", builds=builds)
        found = batched(search, products(1009, size, size, size))
        assert (found is None) == (refused == there) and len(tried) == min(refused + 1, there)
        assert len(set(tried)) == len(tried)


def test_what_is_no_batch_is_refused() -> None:
    for text in ("def f(xs: 8.f32) = xs |> map(x => x + 1)", "def f(x: f32) = x + 1"):
        result = batch()(program(text))
        assert isinstance(result, Failure)
        assert "a map over a batch of arrays" in str(result.error("batch"))


# --- what the kernels are ---------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(1009, 5, 7, 2), (1009, 16, 16, 16), (103, 31, 31, 31)])
def test_all_global_accesses_are_wide(sizes: tuple[int, int, int, int]) -> None:
    """16 bytes (8 where runs are multiples of 8), but for a vector at the end, which exists only in part."""
    text = generate(succeeded(batch()(products(*sizes))).term, "f").source
    whole = [line for line in text.splitlines() if "[&" in line or "&As_[" in line or "&Bs_[" in line]
    wide = [line for line in whole if "copy_async" in line]
    assert wide
    assert all("<8>" in line or "<4>" in line for line in wide)
    stores = [line for line in text.splitlines() if "&output[" in line]
    assert stores
    assert all("copy_vector<4>" in line for line in stores)


def test_plans_fit_and_divide() -> None:
    random = Random(3)
    for _ in range(300):
        m, n, k = (random.randint(1, 128) for _ in range(3))
        sizes = Sizes(10**6, (2 * m * k, 2 * k * n), 4 * m * n, m, n, k, "f16")
        plan = plan_of(sizes)
        shared = plan.count * (sum(sizes.read) + sizes.written * plan.stored)
        assert shared <= ROOM
        assert 32 <= plan.threads <= 1024
        whole = all(plan.count * size % 4 == 0 for size in sizes.read)
        assert whole or plan.operands == ELEMENTS, (m, n, k)
        assert plan.by != THREADS or prod((m, n, k)) < 500


def test_digits_of_an_index_are_joined() -> None:
    """c·(r·(q / r) + q % r) + x % c is x for q = x / c, whatever simplifies in between."""
    thread, lane, turn = variable("thread"), variable("lane"), variable("turn")
    for turns in (1, 2):
        facts = Facts().with_range("thread", 0, nat(160)).with_range("lane", 0, nat(8))
        facts = facts.with_range("turn", 0, nat(turns))
        x = lane + 8 * thread + 1280 * turn
        for rows in (1, 2, 7, 12, 20):
            for columns in (3, 12, 20):
                q = quotient(x, columns, facts)
                digits = rows * quotient(q, rows, facts) + remainder(q, rows, facts)
                joined = simplify(columns * digits + remainder(x, columns, facts), facts)
                assert joined == simplify(x, facts), (turns, rows, columns)


def test_conditions_on_rows_are_conditions_on_elements() -> None:
    x, y = variable("x"), variable("y")
    facts = Facts().with_range("x", 0, nat(40)).with_range("y", 0, nat(5))
    for divisor in (3, 7):
        value = 4 * y + quotient(x + 2 * y + 2, divisor, facts)
        assert undivided(value, nat(9), facts, set()) == (value, nat(9))
        flat, bound = undivided(value, nat(9), facts, {"x"})
        assert "/" not in str(flat)
        for i in range(40):
            for j in range(5):
                at = {"x": i, "y": j}
                assert (evaluate(value, at) < 9) == (evaluate(flat, at) < evaluate(bound, {}))
