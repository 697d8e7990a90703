"""Batches that the copying unit brings and takes: exact, in few blocks of registers, and in many banks."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from codegen.ir.kernel import Kernel
from codegen.pipeline import assemble, generate
from rewrites.result import Failure
from rise.check.specialise import inputs_of
from rise.errors import StrategyError
from rise.interpret import random_inputs
from strategies.batches.banks import Matrices, Order, Run
from strategies.batches.batch import batch
from strategies.batches.plans import at_once, in_bulk, suit_bulk, suit_padded
from strategies.batches.sizes import Sizes
from strategies.search.batches import batched
from strategies.search.choice import Search
from strategies.search.hardware import for_target
from tests.support.batches import chosen, exact, lowered, operands_of, products, program, sizes_of
from tests.support.kernels import emulated_exactly
from tests.support.nightly import every_other, in_turn

AWKWARD = [(1, 33, 33, 33), (5, 17, 65, 31), (3, 65, 9, 97), (2, 97, 97, 97), (3, 127, 49, 5), (7, 31, 1, 33)]


@pytest.mark.parametrize(("sizes", "layouts"), in_turn(AWKWARD, ("AA", "TT", "AT", "TA")))
def test_products_of_any_sizes_are_exact(sizes: tuple[int, int, int, int], layouts: str) -> None:
    term = products(*sizes, "f16", layouts)
    assert exact(term, lowered(term))


@pytest.mark.parametrize(
    ("type_", "body"),
    every_other([("bf16", "plain"), ("f16", "rounded"), ("f16", "scaled"), ("f32", "rounded to tf32")]),
)
def test_other_types_and_epilogues_are_exact(type_: str, body: str) -> None:
    for layouts in ("AA", "TT"):
        term = products(3, 35, 67, 45, type_, layouts, body)
        assert exact(term, lowered(term))


def test_other_tiles_and_results_in_place_are_exact() -> None:
    """Tiles are drawn: seed 16 of rows and columns for each warp, and of how results leave."""
    random = Random(16)
    for _ in range(5):
        m, n, k = (random.randint(17, 90) for _ in range(3))
        rows, columns = random.choice((16, 32, 48)), random.choice((8, 24, 40, 64))
        epilogue = random.choice(("shared", "direct"))
        term = products(3, m, n, k)
        low = lowered(term, rows=rows, columns=columns, epilogue=epilogue)
        assert exact(term, low), (m, n, k, rows, columns, epilogue)


PADDED = [
    ("f16", "plain"),
    ("f16", "scaled"),
    ("bf16", "rounded"),
    ("f16", "rounded"),
    ("f32", "rounded to tf32"),
]


@pytest.mark.parametrize(("type_", "body"), every_other(PADDED))
def test_runs_in_padded_rows_are_exact(type_: str, body: str) -> None:
    """Sizes, tiles and layouts are drawn: of these sizes few are whole fragments."""
    random = Random(f"{type_} {body}")
    m, n, k = (random.randint(1, 128) for _ in range(3))
    rows, columns = random.choice((0, 16, 32, 48)), random.choice((0, 48, 64))
    layouts = random.choice(("AA", "TT", "AT", "TA"))
    term = products(2, m, n, k, type_, layouts, body)
    low = lowered(term, "bulk_padded", rows=rows, columns=columns)
    assert exact(term, low), (m, n, k, rows, columns, layouts)


def test_a_matrix_beside_the_product_is_copied_with_the_operands() -> None:
    text = (
        "def f(As: 3.35.37.f16, Bs: 3.37.41.f16, Cs: 3.35.41.f32, a: f32) = zip(As)(zip(Bs)(Cs)) |>"
        " map((A, (B, C)) => zip(A)(C) |> map((row, cs) => zip(transpose(B))(cs) |> map((col, c) =>"
        " a * (zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)) + c)))"
    )
    term = program(text)
    for operands in ("bulk", "bulk_padded"):
        low = lowered(term, operands)
        assert exact(term, low)
        assert generate(low, "f").source.count("bulk_load_run") == 3


@pytest.mark.parametrize("sizes", [(35, 37, 41), (97, 31, 45)])
def test_matrices_that_indices_choose_are_copied_so_too(sizes: tuple[int, int, int]) -> None:
    """An odd matrix starts anywhere in a chunk, and where is known when the kernel has read its index."""
    m, n, k = sizes
    text = (
        f"def f(As: 4.{m}.{k}.f16, Bs: 3.{k}.{n}.f16, is: 5.Idx[4], js: 5.Idx[3]) ="
        " zip(As |> gather(is))(Bs |> gather(js)) |> map((A, B) => A |> map(row => transpose(B) |> map(col =>"
        " zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0))))"
    )
    term = program(text)
    low = lowered(term)
    assert exact(term, low)
    assert generate(low, "f").source.count("bulk_load_run") == 2


# --- the kernels ------------------------------------------------------------------------------------------


def kernel(n: int, result: str = "plain") -> Kernel:
    return generate(lowered(products(1009, n, n, n, body=result)), "f")


@pytest.mark.parametrize("n", every_other([33, 65, 97, 127], 1))
def test_no_thread_moves_operands_or_results_of_global_memory(n: int) -> None:
    source = kernel(n).source
    body = source[source.index("{") :]
    assert not re.search(r"(As_|Bs_|output)\[", body)
    # one barrier for the mbarrier, one where results overwrite operands, one in front of the store
    assert body.count("__syncthreads") == 3 and body.count("barrier_wait(") == 1


@pytest.mark.parametrize(
    ("n", "blocks"), every_other([(33, 12), (49, 8), (65, 5), (79, 4), (97, 3), (127, 2)])
)
def test_registers_are_left_for_as_many_blocks_as_keep_memory_busy(n: int, blocks: int) -> None:
    """Each quarter of a multiprocessor has a quarter of the registers, and whole warps."""
    made = kernel(n)
    assert made.launch.resident == blocks
    bound = f"__launch_bounds__({made.launch.threads}, {made.launch.resident})"
    assert bound in made.source
    assert made.launch.resident * (made.launch.shared_bytes + 1024) <= 228 * 1024


@pytest.mark.parametrize("n", every_other([65, 97, 113]))
def test_only_the_last_terms_of_a_sum_are_under_conditions(n: int) -> None:
    """In the loop over the others no load waits for a condition, and the loop is not unrolled."""
    source = kernel(n).source
    start = source.index("// reduceSeq")
    loop = source[start : source.index("\n  }\n", start)]
    assert "mma_sync" in loop and "?" not in loop and "if (" not in loop
    assert "#pragma unroll 1\n" in source[:start].rsplit("for (", 1)[0][-30:]


def wavefronts(n: int, order: Order | None, monkeypatch: pytest.MonkeyPatch) -> int:
    """What all loads and stores of shared memory take, in the order that is chosen or in a given one."""
    if order is not None:
        monkeypatch.setattr(Matrices, "best_order", lambda *_: order)
    term = products(2, n, n, n)
    found = emulated_exactly(term, generate(lowered(term, rows=32), "f"))
    monkeypatch.undo()
    return sum(c.wavefronts for c in found.conflicts.values())


@pytest.mark.parametrize("n", every_other([33, 49, 65, 97]))
def test_the_chosen_order_takes_fewer_wavefronts_than_the_plain_one(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the emulator counts them; at 33, 65 and 97 all rows start in the same banks.

    Elsewhere there is little to gain, and where runs start changes a little.
    """
    chosen, plain = (wavefronts(n, order, monkeypatch) for order in (None, Order()))
    assert chosen <= (0.85 if n % 32 == 1 else 1.02) * plain


@pytest.mark.parametrize(("n", "body", "part"), [(113, "plain", 0.85), (127, "rounded", 0.8)])
def test_padded_rows_take_fewer_wavefronts_than_runs(n: int, body: str, part: float) -> None:
    """The copy to padded rows is counted, too."""
    term = products(1, n, n, n, "f16", "AA", body)

    def taken(operands: str) -> int:
        found = emulated_exactly(term, generate(lowered(term, operands), "f"))
        return sum(c.wavefronts for c in found.conflicts.values())

    assert taken("bulk_padded") <= part * taken("bulk")


def test_the_model_counts_the_words_of_a_bank() -> None:
    odd, even = Run.of(97, 97, 2), Run.of(64, 64, 2)
    matrices = Matrices(even, even, Run.of(64, 64, 4), 64, 16)
    assert (odd.pairs, even.pairs) == (1, 2)
    # rows of 128 bytes all start in bank 0
    assert matrices.turns((32, 64), Order()) > matrices.turns((32, 64), matrices.best_order((32, 64))) * 0.99
    tf32 = Matrices(Run.of(33, 33, 4), Run.of(33, 33, 4), Run.of(33, 33, 4), 33, 8)
    assert tf32.best_order((32, 40)).adjacent == 1


# --- the plan ---------------------------------------------------------------------------------------------


def sizes(n: int, result: int = 4) -> Sizes:
    return Sizes(1009, (n * n * 2, n * n * 2), n * n * result, n, n, n, "f16")


def test_padded_rows_are_for_large_matrices_whose_rows_are_no_chunks() -> None:
    def padded(m: int, n: int, k: int, result: int = 4, beside: tuple[int, ...] = ()) -> bool:
        rows, read = (2 * k, 2 * n, *beside), (2 * m * k, 2 * k * n, *beside)
        return suit_padded(Sizes(1009, read, m * n * result, m, n, k, "f16", row_bytes=rows))

    for result in (2, 4):
        taken = [n for n in range(97, 129) if padded(n, n, n, result)]
        assert taken == [n for n in range(113, 129) if n % 8]
    assert padded(127, 120, 17) and not padded(127, 33, 127) and not padded(33, 127, 127)
    assert padded(113, 113, 113, 4, (113 * 4,)), "a number for each row takes little room"
    assert not padded(113, 113, 113, 4, (113 * 113 * 4,)), "a matrix leaves room for one block only"


def test_each_warp_has_a_part_and_no_registers_are_short() -> None:
    for n in range(2, 129):
        plan = in_bulk(sizes(n))
        assert plan.rows % 16 == 0 and plan.columns % 8 == 0
        assert plan.rows * plan.columns <= 48 * 88
        assert plan.threads // 32 == -(-n // plan.rows) * -(-n // plan.columns) <= 8
        assert plan.threads > 32 or n <= 32 or (n % 2 == 0 and n <= 40)


def test_two_tall_tiles_have_half_of_the_columns_if_that_pads_no_more() -> None:
    assert {n: (in_bulk(sizes(n)).rows, in_bulk(sizes(n)).columns) for n in (97, 104, 105, 111, 113)} == {
        97: (32, 104), 104: (32, 104), 105: (64, 56), 111: (64, 56), 113: (32, 120)
    }  # fmt: skip


def test_a_block_brings_several_small_matrices_if_there_are_many() -> None:
    many = {n: at_once(replace(sizes(n), batch=1 << 17)) for n in (21, 27, 33, 45, 46, 65)}
    assert many == {21: 4, 27: 2, 33: 2, 45: 2, 46: 1, 65: 1}
    assert at_once(sizes(21)) == 1, "with few blocks, multiprocessors would be idle"
    assert at_once(replace(sizes(33), batch=1 << 17, adjacent=(0, 33 * 33))) == 1
    assert suit_bulk(replace(sizes(21), batch=1 << 17)) and not suit_bulk(sizes(21))


@pytest.mark.parametrize(("batch_", "count"), [(5, 2), (7, 3), (2, 4)])
@pytest.mark.parametrize(("type_", "body"), [("f16", "plain"), ("bf16", "rounded")])
def test_the_last_block_brings_the_matrices_that_exist(
    batch_: int, count: int, type_: str, body: str
) -> None:
    """What is behind them is never written: of NaN, no result would be right."""
    random = Random(f"{batch_} {count} {type_}")
    m, n, k = (random.randint(1, 48) | 1 for _ in range(3))
    layouts = random.choice(("AA", "TT", "AT", "TA"))
    term = products(batch_, m, n, k, type_, layouts, body)
    for operands in ("bulk", "bulk_padded"):
        low = lowered(term, operands, count=count)
        assert exact(term, low), (m, n, k, layouts)
        source = generate(low, "f").source
        assert source.count("bulk_load_run") == 2 and source.count("bulk_store_run") == 1


def test_auto_lets_the_copying_unit_bring_what_it_brings_faster() -> None:
    for n, operands in ((26, None), (31, "bulk"), (65, "bulk"), (113, "bulk_second"), (120, "bulk")):
        for target, expected in (("sm_90a", operands), ("sm_80", None))[: 1 + (n == 65)]:
            assert operands_of(chosen(products(1009, n, n, n), target)) == expected, n


@pytest.mark.parametrize(
    ("shape", "copied"),
    [
        ((32, 128, 107), True), ((22, 64, 71), True), ((96, 128, 91), True), ((112, 128, 99), False),
        ((112, 87, 128), True), ((48, 128, 32), False), ((112, 128, 96), False), ((96, 32, 64), True),
    ],
)  # fmt: skip
def test_crowded_rows_come_in_bulk_unless_that_costs_too_much(
    shape: tuple[int, int, int], copied: bool
) -> None:
    """Rows of 128 and 256 bytes start in the same bank, and are not swizzled if only one operand has them."""
    assert suit_bulk(sizes_of(products(2000, *shape))) == copied


@pytest.mark.parametrize(
    ("n", "tiles_up_to", "threads_up_to"),
    every_other(
        [(64, 528, 528), (128, 528, 528), (50, 44, 1056), (76, 44, 1056), (65, 44, 330), (97, 44, 330)]
    ),
)
def test_few_matrices_are_tiles_or_come_by_threads(n: int, tiles_up_to: int, threads_up_to: int) -> None:
    """A block for each of ten matrices would leave most multiprocessors idle."""
    search = Search(for_target("sm_90a"), "sm_90a")

    def taken(count: int) -> str:
        """Tiles are the cost model's where rows are whole chunks of 16 bytes."""
        found = batched(search, products(count, n, n, n))
        if found is None or found[0].point.strategy == "tensor_core":
            assert (found is None) == (n % 8 == 0)
            return "tiles"
        return str(dict(found[0].point.parameters).get("operands", "by threads"))

    assert taken(tiles_up_to) == "tiles"
    assert taken(tiles_up_to + 1) == ("by threads" if tiles_up_to < threads_up_to else "bulk")
    assert taken(threads_up_to) == ("by threads" if tiles_up_to < threads_up_to else "tiles")
    assert taken(threads_up_to + 1) == "bulk"


@pytest.mark.parametrize(
    ("type_", "n", "expected"),
    every_other(
        [
            ("f16", 97, {"vector": 1, "cp_async": False, "block": (32, 32, 64), "stages": 2}),
            ("f16", 65, {"vector": 1, "cp_async": False, "block": (32, 32, 32), "stages": 3}),
            ("bf16", 50, {"vector": 2, "cp_async": True, "block": (32, 32, 64), "stages": 3}),
            ("bf16", 100, {"vector": 4, "cp_async": True, "block": (32, 32, 64), "stages": 3}),
            ("f32", 51, {"vector": 1, "cp_async": True, "block": (32, 32, 64), "stages": 3}),
        ]
    ),
)
def test_tiles_of_few_matrices_are_copied_as_wide_as_rows_allow(
    type_: str, n: int, expected: dict[str, object]
) -> None:
    term = products(3, n, n, n, type_, body="rounded to tf32" if type_ == "f32" else "plain")
    found = batched(Search(for_target("sm_90a"), "sm_90a"), term)
    assert found is not None
    schedule = found[0].point.schedule
    assert {name: getattr(schedule, name) for name in expected} == expected
    assert exact(term, found[1].term)


@pytest.mark.parametrize("sizes", every_other([(72, 64, 89), (72, 128, 77), (119, 113, 56)]))
def test_few_matrices_are_tiles_where_rows_of_one_operand_are_odd(sizes: tuple[int, int, int]) -> None:
    assert chosen(products(10, *sizes)).point.strategy == "tensor_core"


def test_threads_bring_odd_runs_only_if_both_operands_are_odd() -> None:
    """Else they would bring both by two bytes at once."""
    assert operands_of(chosen(products(200, 119, 113, 56))) == "bulk_second"


def test_the_reason_is_that_of_the_plan_that_is_taken() -> None:
    """Without the copying unit, a block has several of these matrices, and each is multiplied by one warp."""
    for target, reason in (
        ("sm_90a", "1 of a batch of 1009 products for each block, multiplied by all of its warps"),
        ("sm_80", "4 of a batch of 1009 products for each block, multiplied by a warp each"),
    ):
        assert chosen(products(1009, 31, 31, 31), target).reason == reason


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"threads": 64}, "`threads` changes nothing"),
        ({"by": "warps"}, "`operands` changes nothing"),
        ({"vector": 2}, "`vector` changes nothing"),
    ],
)
def test_what_changes_nothing_is_refused(settings: dict[str, Any], said: str) -> None:
    result = batch(operands="bulk", **settings)(products(9, 33, 33, 33))
    assert isinstance(result, Failure) and said in str(result.error("batch"))


def test_columns_are_those_of_fragments() -> None:
    with pytest.raises(StrategyError, match="12 is not a multiple of the 8"):
        batch(columns=12)


# --- rows that would all start in one bank ----------------------------------------------------------------


PATTERNS = [
    ((64, 64, 64), 128), ((128, 128, 128), 128), ((48, 128, 64), 128), ((33, 64, 64), 128),
    ((96, 96, 96), 64), ((32, 32, 32), 64), ((40, 96, 64), 64), ((56, 32, 96), 64), ((33, 32, 32), 64),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "pattern", "body"),
    every_other((*p, ("plain", "rounded")[i // 2 % 2]) for i, p in enumerate(PATTERNS)),
)
def test_rows_that_start_in_few_banks_are_swizzled_and_exact(
    shape: tuple[int, int, int], pattern: int, body: str
) -> None:
    """Longer rows come in panels. Instructions load fragments, also where the last rows do not exist."""
    term = products(2, *shape, "f16", "AA", body)
    low = lowered(term)
    assert exact(term, low)
    source = generate(low, "f").source
    assert f"Swizzled<half, {pattern}>" in source
    assert "load_matrices<4>" in source
    assert source.count("bulk_load(") == 2 and "bulk_load_run" not in source


# m, n and k: instructions add up 16 terms, and whole steps of so many leave others
TAILS = [(104, 104, 104), (120, 120, 120), (40, 56, 72), (17, 104, 41), (97, 40, 120), (40, 73, 73)]


@pytest.mark.parametrize(("shape", "layout"), in_turn(TAILS, ("AA", "AT", "TA")))
def test_whole_steps_load_fragments_by_instructions(shape: tuple[int, int, int], layout: str) -> None:
    """Only the last step of a sum has zeros behind its terms, and loads single elements; it is peeled."""
    term = products(2, *shape, "f16", layout)
    made = generate(lowered(term), "f")
    emulated_exactly(term, made)
    loop = made.source.split("// reduceSeq\n")[1].split("for (int k")[0]
    m, n, k = shape
    rows = (k if layout[0] == "A" else m, n if layout[1] == "A" else k)
    assert loop.count("load_matrices") == sum(row % 8 == 0 for row in rows)


def test_a_row_behind_the_last_does_not_reach_sums() -> None:
    """The terms of a row that instructions read behind its last one are those of the next row."""
    term = products(1, 40, 40, 24)
    a, b = random_inputs(inputs_of(term), 5, exact=True)
    a[0, 1::2], b[0, :, 1::2] = np.inf, np.nan
    found = np.asarray(execute(assemble(lowered(term), "f"), [a, b], "emulate"))
    wanted = a[0, ::2].astype(np.float32) @ b[0, :, ::2].astype(np.float32)
    assert np.array_equal(found[0, ::2, ::2], wanted)


@pytest.mark.parametrize("n", [32, 64, 96, 128])
def test_fragments_of_swizzled_rows_are_loaded_without_conflicts(n: int) -> None:
    """Results are stored by elements, eight rows at once, so only their stores have conflicts."""
    made = generate(lowered(products(2, n, n, n, body="rounded")), "f")
    found = emulated_exactly(products(2, n, n, n, body="rounded"), made)
    lines = made.source.splitlines()
    loads = [c for number, c in found.conflicts.items() if "load_matrices" in lines[number - 1]]
    assert loads and all(c.extra == 0 for c in loads)


# --- few terms, and small matrices ------------------------------------------------------------------------

# m, n, k, layouts, operands, result; of a copy on an H200: in runs, and in rows that threads bring
FEW_TERMS = [
    ((73, 104, 7), "AT", "f16", "rounded", 0.73, 0.91),
    ((122, 108, 7), "TT", "f16", "rounded", 0.75, 0.92),
    ((101, 70, 16), "AT", "f16", "rounded", 0.65, 0.86),
    ((67, 82, 6), "TT", "bf16", "rounded", 0.75, 0.89),
    ((118, 119, 13), "TA", "f16", "rounded", 0.76, 0.85),
    ((103, 92, 7), "AT", "f16", "plain", 0.77, 0.91),
    ((63, 114, 14), "AT", "f16", "plain", 0.89, 0.93),
    ((95, 121, 8), "AT", "f16", "rounded", 0.65, 0.58),  # results are aligned to two bytes
    ((95, 59, 10), "AT", "f16", "rounded", 0.88, 0.66),
    ((44, 59, 4), "TA", "f16", "plain", 0.94, 0.91),
    ((20, 67, 7), "AA", "f16", "plain", 0.98, 0.80),
    ((40, 89, 7), "TA", "f32", "rounded to tf32", 0.95, 0.83),
]


@pytest.mark.parametrize("case", FEW_TERMS)
def test_few_terms_of_large_results_come_in_rows_where_that_was_faster(
    case: tuple[tuple[int, int, int], str, str, str, float, float],
) -> None:
    (m, n, k), layouts, type_, body, in_runs, in_rows = case
    choice = chosen(products(10007, m, n, k, type_, layouts, body))
    assert (operands_of(choice) is None) == (in_rows > in_runs), choice


# of a copy on an H200 before, one matrix at a time, and since
SMALL = {(42, 17, 3): (0.36, 0.91), (45, 24, 1): (0.74, 0.93), (20, 39, 4): (0.81, 0.96)}


@pytest.mark.parametrize("sizes", SMALL)
def test_blocks_bring_several_matrices_that_are_small(sizes: tuple[int, int, int]) -> None:
    """However odd they are: one would be a few hundred bytes for a block."""
    term = products(100_003, *sizes, "f16", "TA", "rounded")
    choice = chosen(term)
    plan = in_bulk(sizes_of(term))
    assert operands_of(choice) == "bulk" and plan.count >= 4
