"""Batches whose second operand threads copy to padded rows: exact, without conflicts, in the same room."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from codegen.pipeline import generate
from rise.nat import nat
from strategies.batches.banks import LANES_OF_ROW, PAIRS, Matrices, Order, Run, conflicts
from strategies.batches.costs import Tile, is_unrolled
from strategies.batches.plans import in_bulk_second, suit_second
from strategies.matmul.staging import TileCopy
from tests.support.batches import chosen, exact, lowered, operands_of, products, program, sizes_of
from tests.support.nightly import every_other, in_turn

AWKWARD = [
    (2, 33, 97, 45),
    (1, 97, 17, 31),
    (3, 65, 64, 33),
    (2, 113, 41, 17),
    (5, 31, 33, 65),
    (1, 127, 9, 128),
]
DOT = "zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)"


second = partial(lowered, operands="bulk_second")


# --- results ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sizes", "layouts"), in_turn(AWKWARD, ("AA", "TT", "AT", "TA")))
def test_products_of_any_sizes_are_exact(sizes: tuple[int, int, int, int], layouts: str) -> None:
    term = products(*sizes, "f16", layouts)
    assert exact(term, second(term))


@pytest.mark.parametrize(
    ("type_", "body"),
    every_other([("bf16", "plain"), ("f16", "rounded"), ("bf16", "scaled"), ("f32", "rounded to tf32")]),
)
def test_other_types_and_tiles_are_exact(type_: str, body: str) -> None:
    """Sizes, tiles and layouts are drawn."""
    random = Random(f"{type_} {body}")
    for _ in range(2):
        m, n, k = (random.randint(1, 100) for _ in range(3))
        layouts = random.choice(("AA", "TT", "AT", "TA"))
        rows, columns = random.choice((0, 16, 32, 64)), random.choice((0, 32, 56))
        term = products(2, m, n, k, type_, layouts, body)
        assert exact(term, second(term, rows=rows, columns=columns)), (m, n, k, layouts, rows, columns)


@pytest.mark.parametrize(
    "text",
    every_other(
        [
            # operands that are computed: the first where fragments are loaded, the second where it is copied
            "(As: 2.83.45.f16, Bs: 2.45.85.f16) = zip(As)(Bs) |> map((A, B) => A |> map(row =>"
            " transpose(B) |> map(col => zip(row)(col) |> map((x, y) => f32(max(x, 0))"
            " * f32(y * y)) |> reduce(+, 0))))",
            # a matrix beside the product
            "(As: 2.83.45.f16, Bs: 2.45.85.f16, Cs: 2.83.85.f16) = zip(As)(zip(Bs)(Cs)) |> map((A, (B, C)) =>"
            " zip(A)(C) |> map((row, cs) => zip(transpose(B))(cs) |> map((col, c) =>"
            f" 2 * ({DOT}) + f32(c))))",
            # matrices that indices choose, and one for all
            "(As: 3.83.45.f16, B: 45.85.f16, is: 4.Idx[3]) = As |> gather(is) |> map(A => A |> map(row =>"
            f" transpose(B) |> map(col => {DOT})))",
            # one matrix as both operands
            f"(As: 3.83.45.bf16) = As |> map(A => A |> map(row => A |> map(col => bf16({DOT}))))",
        ]
    ),
)
def test_what_stands_around_products_stays_exact(text: str) -> None:
    term = program(f"def f{text}")
    assert exact(term, second(term))


# --- the kernel -------------------------------------------------------------------------------------------


def test_the_second_operand_alone_is_copied_and_columns_are_the_outer_loop() -> None:
    """So a thread has fragments of two rows and of one column, not of one row and of all columns."""
    low = second(products(1009, 113, 113, 113))
    kernel = generate(low, "f")
    assert kernel.source.count("copyThreads") == 0 and str(low).count("name='copyThreads'") == 1
    loads = [line for line in kernel.source.splitlines() if "load_matrices" in line]
    assert loads and all("b_fragment.x[0]" in line for line in loads)
    assert "matrix_a, 16, 8, 16, half>, 2> a_fragment" in kernel.source


@pytest.mark.parametrize("n", every_other([97, 101, 113, 121, 127]))
def test_padded_rows_are_where_the_second_run_was(n: int) -> None:
    """All of it is read before the first row is written, so three blocks fit, and registers are for three."""
    launch = generate(second(products(1009, n, n, n)), "f").launch
    plan = in_bulk_second(sizes_of(products(1009, n, n, n)))
    run, depth = -(-n * n * 2 // 128) * 128, -(-n // 16) * 16
    padded = depth * (128 + 8) * 2
    assert run < padded and launch.shared_bytes < run + padded + 1024
    assert plan.threads == launch.threads == 128 and launch.resident == 3


def test_lanes_read_and_store_rows_of_any_odd_length_without_conflicts() -> None:
    """Rows eight apart start in banks four apart. Adjacent rows of 97 elements share each bank in fours."""
    for n in range(97, 128, 2):
        run = Run.of(n, n, 2)
        matrices = Matrices(run, run, run, n, 16)
        order = matrices.best_rows((32, 8), 128)
        places = [(row, column) for row in order.rows for column in PAIRS]
        assert order == Order(8) and len(places) == 8 * LANES_OF_ROW
        assert conflicts(run, places) == conflicts(run, order.stored) == 1
    assert conflicts(Run.of(97, 97, 2), Order(1).stored) == 4


@pytest.mark.parametrize(
    ("row", "threads", "vector", "longer"),
    [
        (113, 128, 2, 128),
        (97, 128, 2, 128),
        (64, 128, 2, 64),
        (85, 96, 2, 96),
        (65, 96, 2, 96),
        (300, 128, 2, 512),
    ],
)
def test_rows_are_so_long_that_each_thread_has_the_same_part_of_each(
    row: int, threads: int, vector: int, longer: int
) -> None:
    copy = TileCopy(threads, vector, 8, second=True)
    more = copy.longer(nat(row))
    copied = row + (more.value or 0 if more is not None else 0)
    assert threads % (copied // vector) == 0 or copied // vector % threads == 0
    assert copied >= row and copied <= longer
    assert TileCopy(threads, vector, 8).longer(nat(row)) is None, "other copies are as long as they are"


# --- when it is chosen ------------------------------------------------------------------------------------


def test_large_matrices_are_multiplied_so_unless_their_rows_are_chunks() -> None:
    taken = [n for n in range(65, 129) if suit_second(sizes_of(products(1009, n, n, n)))]
    assert taken == [n for n in range(81, 129) if n % 8]


@pytest.mark.parametrize(
    ("shape", "layouts", "type_", "body", "operands"),
    every_other(
        [
            ((113, 113, 113), "AA", "f16", "rounded", "bulk_second"),
            ((120, 101, 87), "TT", "bf16", "rounded", "bulk_second"),
            # few terms
            ((108, 86, 25), "TA", "f16", "plain", "bulk"),
            # rows of the second operand all start in one bank
            ((47, 128, 77), "TA", "bf16", "plain", "bulk_second"),
            ((69, 64, 105), "AA", "f16", "plain", "bulk_second"),
            ((58, 113, 128), "TT", "bf16", "rounded", "bulk_second"),
            # those of the first one do
            ((113, 119, 64), "AA", "f16", "rounded", "bulk_padded"),
            # few rows: no other tile reads the second operand again
            ((44, 45, 99), "AA", "f16", "rounded", "bulk"),
            # 113 elements in columns that 96 threads copy: half of them would copy nothing
            ((87, 82, 113), "AT", "f16", "plain", "bulk"),
            # words of 32 bits
            ((113, 113, 113), "AA", "f32", "rounded to tf32", "bulk"),
        ]
    ),
)
def test_auto_chooses_what_is_faster(
    shape: tuple[int, int, int], layouts: str, type_: str, body: str, operands: str | None
) -> None:
    """Most were measured with all of these operands."""
    assert operands_of(chosen(products(1 << 14, *shape, type_, layouts, body))) == operands


def test_loops_are_unrolled_where_registers_are_left() -> None:
    """Sums of 104 columns leave 64 of a thread's registers, and those of 112 do not."""
    unrolled = [
        n for n in range(97, 129) if is_unrolled(sizes_of(products(9, n, n, n)), Tile(32, -(-n // 8) * 8))
    ]
    assert unrolled == [97, 99, 101, 103]
    for n in (97, 107):
        loops = generate(second(products(1009, n, n, n)), "f").source.count("// reduceSeq\n")
        assert loops == (n == 107)


def test_two_blocks_have_to_fit() -> None:
    """They do not where each also reads a matrix in f32 beside its product."""
    text = (
        "def f(As: 999.127.127.f16, Bs: 999.127.127.f16, Cs: 999.127.127.f32) = zip(As)(zip(Bs)(Cs)) |>"
        " map((A, (B, C)) => zip(A)(C) |> map((row, cs) => zip(transpose(B))(cs) |> map((col, c) =>"
        f" ({DOT}) + c)))"
    )
    assert suit_second(sizes_of(products(999, 127, 127, 127))) and not suit_second(sizes_of(program(text)))


def test_the_reason_names_the_plan() -> None:
    reason = chosen(products(1 << 14, 113, 113, 113)).reason
    assert reason.startswith("1 of a batch of 16384 products")
