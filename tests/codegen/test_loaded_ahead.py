"""Matrices that only an epilogue reads, loaded ahead: results are exact, and nobody reads them too early."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest

import codegen
from codegen.execute import execute
from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from rewrites.result import Failure
from rise.check.program import Program, check_expression
from rise.check.specialise import inputs_of, specialise
from rise.errors import EmulationError, StrategyError
from rise.expr import Expr, inline
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.pretty import show
from strategies.matmul.constraints import resources
from strategies.matmul.schedule import Schedule
from strategies.matmul.tensor_core import tensor_core
from strategies.search.problem import Problem
from tests.support.examples import EXAMPLES
from tests.support.nightly import every_other
from tests.support.products import assert_same
from tests.support.programs import loaded, succeeded

SEED = 20261126
TILE: dict[str, Any] = {
    "block": (128, 64, 64), "warp": (64, 64), "fragment": (64, 64, 16), "stages": 2, "raster_group": 1,
    "epilogue": "bulk", "warp_specialised": True, "ahead": 1,
}  # fmt: skip
TURNS = {**TILE, "block": (64, 64, 64), "persistent_blocks": 2, "ping_pong": 2}
# of programs of fused.rise, how many matrices they read beside products
READS = {
    "chained": 1, "zipped": 1, "indexed": 1, "named": 1, "broadcast": 1, "transposedResidual": 1,
    "transposedResult": 1, "scaled": 1, "rowsAndColumns": 1,
}  # fmt: skip
SUM = "(zip(a)(b) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0))"


@cache
def fused() -> Program:
    return loaded(EXAMPLES / "fused.rise")


@cache
def program(name: str, m: int, n: int, k: int) -> Expr:
    return data_flow(inline(specialise(fused()[name], {"m": m, "n": n, "k": k})))


def several(m: int, n: int, k: int, results: int = 2) -> Expr:
    """Two matrices of other types beside a product: f16(AB + R + C), or a pair of that and AB - C."""
    first, unzip = "f16(s + f32(r) + c)", " |> unzip" if results > 1 else ""
    text = f"""fun((A: {m}.{k}.f16, B: {n}.{k}.f16, R: {m}.{n}.f16, C: {m}.{n}.f32) =>
      zip(A)(zip(R)(C)) |> map(fun((a, (rs, cs)) => zip(B)(zip(rs)(cs)) |> map(fun((b, (r, c)) =>
        {SUM} |> fun(s => {f"({first}, s - c)" if results > 1 else first}))){unzip})){unzip})"""
    return data_flow(check_expression(text))


def matrices(g: int, m: int, n: int, k: int) -> Expr:
    """An array of products, each with a matrix of its own beside it."""
    text = f"""fun((As: {g}.{m}.{k}.f16, Bs: {g}.{n}.{k}.f16, Rs: {g}.{m}.{n}.f16) =>
      zip(As)(zip(Bs)(Rs)) |> map(fun((A, (B, R)) => zip(A)(R) |> map(fun((a, rs) =>
        zip(B)(rs) |> map(fun((b, r) => f16({SUM} + f32(r)))))))))"""
    return data_flow(check_expression(text))


def two_products(m: int, n: int, k: int) -> Expr:
    """R + 3·AB - AD, whose products share an operand."""
    other = SUM.replace("b)", "d)")
    text = f"""fun((A: {m}.{k}.f16, B: {n}.{k}.f16, D: {n}.{k}.f16, R: {m}.{n}.f32) =>
      zip(A)(R) |> map(fun((a, rs) => zip(zip(B)(D))(rs) |> map(fun(((b, d), r) =>
        f16(r + 3.0 * {SUM} - {other}))))))"""
    return data_flow(check_expression(text))


def derived(term: Expr, **parameters: Any) -> Kernel:
    low = succeeded(tensor_core(**parameters)(term)).term
    assert "bulkCopyRoleSplit" in show(low)
    return generate(low, "f")


def assert_exact(term: Expr, kernel: Kernel) -> None:
    inputs = random_inputs(inputs_of(term), SEED, exact=True)
    assert_same(execute(kernel, inputs, "emulate"), call(term, *inputs), term)


def drawn(random: Random) -> tuple[tuple[int, int, int], dict[str, Any]]:
    """Sizes of which tiles may stick out, in rows that the copying unit takes, and a schedule."""
    sizes = random.choice((61, 64, 130, 192)), random.choice((72, 96, 136)), random.choice((64, 72, 200))
    turns, columns = random.choice((1, 2, 3)), random.choice((32, 48, 64))
    rows = 64 if turns > 1 else random.choice((64, 128))
    return sizes, {
        **TILE, "block": (rows, columns, 64), "warp": (64, columns), "fragment": (64, columns, 16),
        "epilogue": random.choice(("bulk", "direct", "rows")), "ahead": random.choice((1, 2, 3)),
        "raster_group": random.choice((1, 2)), "cluster": random.choice((1, 1, 2)), "ping_pong": turns,
        "persistent_blocks": random.choice((2, 4)) if turns > 1 else random.choice((0, 2)),
    }  # fmt: skip


@pytest.mark.parametrize("name", every_other(READS))
def test_programs_are_exact_under_schedules_drawn_at_random(name: str) -> None:
    random = Random(f"{SEED} {name}")
    sizes, schedule = drawn(random)
    if name == "transposedResidual":  # its rows are as long as there are rows of the result
        sizes = (random.choice((64, 136)), *sizes[1:])
    term = program(name, *sizes)
    kernel = derived(term, **schedule)
    assert len(re.findall(r"TensorMap \w+", kernel.source)) >= 2 + READS[name], (SEED, sizes, schedule)
    assert_exact(term, kernel)


@pytest.mark.parametrize(
    ("term", "schedule"),
    every_other(
        [
            (several(130, 72, 136), {**TURNS, "ahead": 2}),
            (several(192, 64, 64), {**TILE, "epilogue": "direct", "cluster": 2, "persistent_blocks": 2}),
            (matrices(3, 72, 64, 64), {**TURNS, "ping_pong": 3, "persistent_blocks": 1}),
            (two_products(136, 72, 64), {**TURNS, "persistent_blocks": 1}),
            (two_products(128, 64, 200), TILE),
        ]
    ),
)
def test_several_matrices_results_and_products_are_exact(term: Expr, schedule: dict[str, Any]) -> None:
    assert_exact(term, derived(term, **schedule))


@pytest.mark.parametrize("schedule", [TILE, {**TURNS, "ahead": 2}, {**TILE, "persistent_blocks": 2}])
def test_bytes_and_threads_are_those_of_the_kernel(schedule: dict[str, Any]) -> None:
    for term, beside in (
        (several(256, 128, 128, results=1), (2, 4)),
        (program("scaled", 256, 128, 128), (4,)),
    ):
        p = Problem.of(term)
        assert p is not None and tuple(sorted(p.beside)) == beside
        needed = resources(Schedule(**schedule), p.operand_bytes, p.along_k, p.result_bytes, beside=p.beside)
        found = derived(term, **schedule).launch
        assert (found.threads, found.shared_bytes) == (needed.threads, needed.shared_bytes)


@pytest.mark.parametrize("runtime", [{"m": 1}, {"n": 8, "k": 64}])
def test_sizes_may_be_open_until_launch(runtime: dict[str, int]) -> None:
    definition = fused()["broadcast"]
    sizes = {name: 72 for name in "mnk" if name not in runtime}
    compiled = codegen.compile(definition, tensor_core(**TURNS), sizes=sizes, runtime=runtime)
    m, n, k = (sizes.get(name, 2 * 64 + unit) for name, unit in (("m", 1), ("n", 8), ("k", 0)))
    term = program("broadcast", m, n, k)
    inputs = random_inputs(inputs_of(term), SEED, exact=True)
    assert_same(compiled(*inputs), call(term, *inputs), term)


# --- what must not be changed -----------------------------------------------------------------------------


@cache
def turns(ahead: int) -> tuple[Expr, Kernel]:
    term = program("scaled", 256, 128, 128)
    return term, derived(term, **{**TURNS, "ahead": ahead})


def edited(pattern: str, by: str, ahead: int) -> str:
    """The emulator's error for a kernel whose text was edited, or "wrong"; empty where it is exact."""
    term, kernel = turns(ahead)
    source, count = re.subn(pattern, by, kernel.source)
    assert count
    for seed in range(2):
        inputs = random_inputs(inputs_of(term), seed, exact=True)
        try:
            assert_same(execute(replace(kernel, source=source), inputs, "emulate"), call(term, *inputs), term)
        except EmulationError as error:
            return error.code
        except AssertionError:
            return "wrong"
    return ""


@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize(
    ("pattern", "by"),
    [
        (r"barrier_wait\(full_1[^;]*;", ";"),  # the tile of the matrix is not there yet
        (r"barrier_wait\(empty_1[^;]*;", ";"),  # the tile before is still read
        (r"barrier_expect\(full_1([^,]*), \d+\)", r"barrier_expect(full_1\1, 64)"),  # a part of it is there
        (r"barrier_wait\(baton_1[^;]*;", ";"),  # two phases ahead
    ],
)
def test_the_emulator_notices_a_missing_wait(pattern: str, by: str, ahead: int) -> None:
    assert edited(pattern, by, ahead)


def test_the_unedited_kernel_is_accepted() -> None:
    assert edited(r"start_next_grid\(\);", "start_next_grid();", 1) == ""


# --- when it is loaded ------------------------------------------------------------------------------------


def loads(kernel: Kernel) -> str:
    """What the warpgroup that loads does."""
    return kernel.source.split("// 1 load")[1].split("// 2 compute")[0]


def test_pieces_come_between_the_loads_of_operands() -> None:
    """Of two panels each with a step of eight: the last ones where blocks have several tiles."""
    term = program("scaled", 256, 128, 512)
    for schedule, first in ((TURNS, 6), (TILE, 3)):
        source = loads(derived(term, **{**schedule, "block": (64, 64, 64)}))
        assert len(re.findall(r"threadIdx.x == \d+", source)) == 2  # the other starts the next kernel
        assert source.index("bulk_load(ring") < source.index("bulk_load(tile")
        assert f"if ({first} < " in source.replace(f"{first - 1} < k_1 + 1", f"{first} < k_1")


def test_where_steps_are_fewer_than_pieces_another_warp_loads() -> None:
    source = loads(derived(program("scaled", 128, 64, 64), **TILE))
    assert "threadIdx.x == 256" in source and "threadIdx.x == 288" in source


def test_lanes_read_numbers_of_16_bits_as_matrices() -> None:
    """Of R all, 8 × 8 numbers each: eight instructions where there were thirty-two."""
    kernel = derived(program("zipped", 128, 128, 64), **TILE)
    assert "load_matrices<4>(&c_fragment" in kernel.source
    assert "copy_vector<2>(&c_fragment_1" not in kernel.source


# --- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"warp_specialised": False}, "warp_specialised=true"),
        ({"epilogue": "shared"}, "epilogue=bulk"),
        ({"split_k": 2}, "split_k=1"),
    ],
)
def test_what_it_does_not_go_with_is_refused(changes: dict[str, Any], hint: str) -> None:
    with pytest.raises(StrategyError, match="ahead is 1") as caught:
        tensor_core(**{**TILE, **changes})
    assert caught.value.code == "R0609" and hint in (caught.value.hint or "")


def test_without_a_matrix_beside_products_it_changes_nothing() -> None:
    result = tensor_core(**TILE)(program("siluOf", 128, 64, 64))
    assert isinstance(result, Failure) and "`ahead` changes nothing" in result.reason


def test_rows_that_the_copying_unit_does_not_take_are_refused() -> None:
    """Rows of 61 numbers of 16 bits do not start at multiples of 16 bytes."""
    result = tensor_core(**TILE)(program("transposedResidual", 61, 72, 64))
    assert isinstance(result, Failure) and "not a box of an array" in result.reason
