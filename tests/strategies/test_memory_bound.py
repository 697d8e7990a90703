"""Memory-bound programs: every step of a derivation evaluated, the kernel exact in the emulator."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from codegen import runtime
from codegen.execute import execute
from codegen.ir.kernel import Kernel
from codegen.pipeline import assemble, generate
from rewrites.result import Failure
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.errors import StrategyError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.testing import assert_preserves, assert_structure
from strategies.core import Strategy
from strategies.memory_bound.elementwise import elementwise
from strategies.memory_bound.reduction import reduction
from strategies.memory_bound.rows import rows
from strategies.memory_bound.stencil import stencil
from strategies.memory_bound.transposition import transposition
from tests.strategies.schedule_programs import cut, runs_as_it_should
from tests.support.nightly import in_turn
from tests.support.programs import succeeded

NEIGHBOURS = "(w |> idx2D(0, 1)) + (w |> idx2D(1, 0)) + (w |> idx2D(1, 2)) + (w |> idx2D(2, 1))"


@cache
def program(text: str) -> Expr:
    return data_flow(specialise(check_text(f'import "prelude.rise"\ndef f = {text}')["f"], {}))


FIVE = f"slide2D(3, 1) |> map2D(fun(w => {NEIGHBOURS} + (w |> idx2D(1, 1))))"


def five_point(pad: str, rows_: int = 16, columns: int = 64) -> str:
    return f"fun(xss: {rows_}.{columns}.f32 => xss |> {pad} |> {FIVE})"


TRANSPOSES = "fun((xss: 32.64.f32, yss: 9.8.f16) => (transpose(xss), transpose(yss)))"
TRANSPOSE = "fun(xss: 32.48.{} => transpose(xss))"
SAXPY = "fun((a: f32, xs: 192.f32, ys: 192.f32) => zip(xs)(ys) |> map(fun((x, y) => a * x + y)))"
SUM = "fun(xs: 5.192.f32 => xs |> map(sum))"
DOT = "fun((xs: 384.f32, ys: 384.f32) => dot(xs)(ys))"
EXACT: dict[str, tuple[str, Strategy]] = {
    "copy": ("fun(xs: 192.f32 => xs)", elementwise(8, 4, 2)),
    "saxpy": (SAXPY, elementwise(8, 4, 2)),
    "saxpy, one at a time": (SAXPY, elementwise(64, 1, 1)),
    "relu of rows": ("fun(xss: 3.64.f16 => xss |> map(map(relu)))", elementwise(4, 8)),
    "sums of rows": (SUM, reduction(8, 4, 2, 4)),
    "sums of rows, scalars loaded": (SUM, reduction(8, 1, 4)),
    "sums of rows by one thread": (SUM, reduction(1, 4, 2)),
    "a dot product in two kernels": (DOT, reduction(8, 4, 1, 8, part=96)),
    "a product with a vector": ("fun((A: 5.64.f32, x: 64.f32) => matvec(A)(x))", rows(8, 4, 2)),
    "rows less their maxima": (
        "fun(xss: 3.64.f32 => xss |> map(fun(r => let top = maximum(r) in r |> map(fun(x => x - top)))))",
        rows(8),
    ),
    "a number of each row": ("fun(xss: 3.64.f32 => xss |> map(fun(r => 3 * sum(r) - 1)))", rows(8)),
    "transpose": (TRANSPOSE.format("f32"), transposition(16, 32, 4)),
    "transpose of halves": (TRANSPOSE.format("f16"), transposition(16, 16, 8, 2)),
    "transpose, one at a time": (TRANSPOSE.format("f32"), transposition(16, 32, 1)),
    "stencil, clamped": (five_point("padClamp2D(1, 1)"), stencil((2, 4), 2, 4)),
    "stencil, zeros": (five_point("padCst2D(1, 1)(0)"), stencil((2, 4), 4, 4)),
    "stencil, one at a time": (five_point("padCst2D(1, 1)(0)"), stencil((4, 16), 1, 1)),
    "stencil, along rows": (five_point("padClamp2D(1, 1)"), elementwise(16, 4)),
}


# whose kernels differ from those of others in numbers only
ALIKE = {"saxpy, one at a time", "sums of rows by one thread", "transpose, one at a time", "copy"}


@pytest.mark.parametrize("name", sorted(set(EXACT) - ALIKE))
def test_a_derived_kernel_is_exact(name: str) -> None:
    """On small whole numbers, for which the order of a sum does not matter."""
    text, strategy = EXACT[name]
    runs_as_it_should(program(text), strategy)


@pytest.mark.parametrize("name", EXACT)
def test_every_step_preserves_the_program(name: str) -> None:
    text, strategy = EXACT[name]
    assert_preserves(strategy, program(text))


def derived(text: str, strategy: Strategy) -> Expr:
    return succeeded(strategy(program(text))).term


def kernel(text: str, strategy: Strategy) -> Kernel:
    return generate(derived(text, strategy), "f")


# --- any size ---------------------------------------------------------------------------------------------

LESS_TOP = "fun(xss: 3.{}.f32 => xss |> map(fun(r => let top = maximum(r) in r |> map(fun(x => x - top)))))"
ANY_SIZE: dict[str, tuple[str, Strategy]] = {
    "elements": ("fun((a: f32, xs: {0}.f32, ys: {0}.f32) => axpy(a)(xs)(ys))", elementwise()),
    "elements of three dimensions": ("fun(xsss: 2.3.{}.f16 => xsss |> map(map(map(relu))))", elementwise()),
    "a row added to each": (
        "fun((xss: 5.{0}.f16, ys: {0}.f16) =>"
        " xss |> map(fun(xs => zip(xs)(ys) |> map(fun((x, y) => x + y)))))",
        elementwise(32, 4, 2),
    ),
    "sum": ("fun(xs: {}.f32 => sum(xs))", reduction()),
    "sum of parts": ("fun(xs: {}.f32 => sum(xs))", reduction(24, 4, 3, 3, part=101)),
    "sums of rows": ("fun(xss: 6.{}.f32 => xss |> map(sum))", reduction()),
    "sums of rows, in turns": ("fun(xss: 2.{}.f32 => xss |> map(sum))", reduction(3, 4, 2, 2)),
    "rows": (LESS_TOP, rows()),
    "rows, read again": (LESS_TOP, rows(3, 2, 2, keep=False)),
    "rows by blocks": (LESS_TOP, rows(40, 0, 5)),
    "transpose": ("fun(xss: 67.{}.f16 => transpose(xss))", transposition()),
    "stencil": (f"fun(xss: 35.{{}}.f32 => xss |> {{border}} |> {FIVE})", stencil()),
}


def at_size(name: str, size: int) -> tuple[str, Strategy]:
    text, strategy = ANY_SIZE[name]
    border = "padClamp2D(1, 1)" if size % 2 else "padCst2D(1, 1)(0)"
    return text.format(size, border=border), strategy


@pytest.mark.parametrize(("name", "size"), in_turn(ANY_SIZE, [1, 31, 132, 1025]))
def test_any_size_is_exact(name: str, size: int) -> None:
    """One, primes, multiples of vectors, a tile plus one: what is too much is neither read nor written."""
    text, strategy = at_size(name, size)
    runs_as_it_should(program(text), strategy)


@pytest.mark.parametrize("name", ANY_SIZE)
def test_every_step_at_any_size_preserves_the_program(name: str) -> None:
    text, strategy = at_size(name, 149)
    assert_preserves(strategy, program(text))


@pytest.mark.parametrize(
    ("text", "strategy", "threads"),
    [
        ("fun(xss: 20000.1000.f32 => xss |> map(softmax))", rows(), 128),
        ("fun(xss: 7777.3001.f32 => xss |> map(softmax))", rows(), 384),
        ("fun(xss: 4096.5120.f32 => xss |> map(softmax))", rows(), 640),
        ("fun(xss: 50.100000.f32 => xss |> map(softmax))", rows(), 512),
        ("fun(xss: 8000.100.f32 => xss |> map(softmax))", rows(), 128),  # four warps
        ("fun(xs: 123456789.f32 => sum(xs))", reduction(), 256),
    ],
)
def test_threads_are_chosen_by_the_length_of_rows(text: str, strategy: Strategy, threads: int) -> None:
    kernel_ = assemble(derived(text, strategy), "f").kernels[0]
    assert kernel_.launch.threads == threads


def test_a_vector_that_is_not_whole_is_read_and_written_by_elements() -> None:
    source = kernel(*at_size("elements", 1025)).source
    assert source.count("copy_vector<4>") == 3, "in the version for whole vectors"
    assert "if (1025 < " in source and "< 1025" in source


# --- rounding ---------------------------------------------------------------------------------------------

SOFTMAX = "fun(xss: 3.64.f32 => xss |> map(softmax))"
LAYERNORM = "fun((g: 64.f32, b: 64.f32, xss: 3.64.f32) => xss |> map(layernorm(1e-5)(g)(b)))"


@pytest.mark.parametrize(
    ("text", "keep"),
    [(SOFTMAX, True), (SOFTMAX, False), (LAYERNORM, True)],
    ids=["softmax", "softmax, read again", "layernorm"],
)
def test_normalised_rows_are_close_to_double_precision(text: str, keep: bool) -> None:
    """Six roundings of what a row adds up, in units of the largest result."""
    term = program(text)
    made = kernel(text, rows(8, 4, 4, keep))
    inputs = random_inputs(made.inputs, 0, exact=False)
    found = execute(made, inputs, "emulate")
    wanted = np.asarray(call(program(text.replace("f32", "f64")), *(np.float64(x) for x in inputs)))
    assert found.dtype == np.float32
    assert np.abs(found - wanted).max() <= 6 * 2**-23 * np.abs(wanted).max() * np.log2(64)
    assert np.abs(call(term, *inputs) - wanted).max() > 0  # the bound is about something


# --- what the kernels consist of --------------------------------------------------------------------------


def test_the_structure_of_a_softmax() -> None:
    """The row and its exponentials in registers; two reductions, each with two results in shared memory."""
    term = derived(SOFTMAX, rows(8, 4, 8))
    assert_structure(term, mapBlock=1, mapThreads=7, reduce=0, exp=1)
    assert kernel(SOFTMAX, rows(8, 4, 8)).source.count("copy_vector<4>(&value[") == 1
    source = kernel(SOFTMAX, rows(8, 4, 8)).source
    assert source.count("&xss_[") == 1, "the row is read once"
    assert source.count("&output[") == 1 and source.count("output[") == 1, "and written once"


def test_rows_that_are_not_kept_are_read_again() -> None:
    assert kernel(SOFTMAX, rows(8, 4, 8, keep=False)).source.count("&xss_[") > 1


VECTORS = {
    "copy": 1,
    "saxpy": 3,
    "relu of rows": 2,
    "transpose": 2,
    "stencil, clamped": 4,  # above, here, below, and the result
    "stencil, zeros": 8,  # the last row of a thread by itself: only that can be next to the border
}


@pytest.mark.parametrize("name", VECTORS)
def test_memory_is_read_and_written_by_vectors(name: str) -> None:
    source = kernel(*EXACT[name]).source
    assert source.count("copy_vector") == VECTORS[name]
    assert "output[" not in source.replace("&output[", "")


def test_a_block_reads_each_tile_of_a_transposition_once() -> None:
    made = kernel(*EXACT["transpose"])
    assert made.launch.grid == (2, 3, 1) and made.launch.shared_bytes >= 16 * 17 * 4
    assert made.source.count("__sync") == 1


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "strategy", "reason"),
    [
        (SOFTMAX, elementwise(8), "computing an element takes a loop"),
        (SAXPY, rows(8), "expected a map over the rows of an array"),
        (SAXPY, transposition(16, 32), "expected a matrix whose columns are contiguous in memory"),
        (TRANSPOSES, transposition(16, 32), "expected a matrix whose columns are contiguous in memory"),
        (SAXPY, reduction(), "expected a map, whose function is a reduction"),
        (SAXPY, stencil((1, 1)), "expected a matrix whose elements are computed each by itself"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(text: str, strategy: Strategy, reason: str) -> None:
    result = strategy(program(text))
    assert isinstance(result, Failure)
    assert result.reason.startswith(reason), result.story()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rows(-1), "rows: threads is -1, and must be at least 0"),
        (lambda: rows(8, 3), "rows: vector is 3, and must be a power of two"),
        (lambda: rows(8, fan=1), "rows: fan is 1, and must be at least 2"),
        (lambda: stencil(rows=0), "stencil: rows is 0, and must be at least 1"),
        (lambda: transposition(8, 256), "transposition: 256 does not divide 8×8, the elements of a tile"),
        (lambda: reduction(part=-1), "reduction: part is -1, and must be at least 0"),
    ],
)
def test_values_that_parameters_cannot_have(make: object, message: str) -> None:
    with pytest.raises(StrategyError) as caught:
        make()  # type: ignore[operator]
    assert (caught.value.code, caught.value.message) == ("R0609", message)


# --- at the sizes of a GPU --------------------------------------------------------------------------------

LARGE: dict[str, tuple[str, Strategy]] = {
    "sum": ("fun(xs: 1073741824.f32 => sum(xs))", reduction()),
    "sum, odd": ("fun(xs: 123456789.f32 => sum(xs))", reduction()),
    "softmax, odd": ("fun(xss: 7777.3001.f32 => xss |> map(softmax))", rows()),
    "softmax, long": ("fun(xss: 77.300001.f32 => xss |> map(softmax))", rows()),
    "transpose, odd": ("fun(xss: 4097.4099.f16 => transpose(xss))", transposition()),
    "saxpy, odd": (ANY_SIZE["elements"][0].format(99999999), elementwise()),
    "transpose": ("fun(xss: 16384.16384.f32 => transpose(xss))", transposition()),
    "stencil": (five_point("padCst2D(1, 1)(0)", 16384, 16384), stencil()),
    "softmax": ("fun(xss: 16384.4096.f32 => xss |> map(softmax))", rows()),
}


@pytest.mark.skipif(not runtime.can_compile(), reason="there is no CUDA compiler")
@pytest.mark.parametrize(("name", "target"), in_turn(LARGE, ["sm_75", "sm_80", "sm_90a"]))
def test_large_programs_compile_without_spills(name: str, target: str) -> None:
    """All that is local is in registers, few enough that the threads of a multiprocessor hide latency."""
    for part in cut(derived(*LARGE[name])):
        (found,) = runtime.resources(generate(part, "f").source, target).values()
        assert (found.stack, found.spill_stores, found.spill_loads) == (0, 0, 0)
        assert found.registers <= 64, str(found)


@pytest.mark.parametrize(
    "text",
    [
        "fun((A: 2.64.f32, s: f32) => A |> map(fun(r => r |> map(fun(x => x * s)) |> softmax)))",
        "fun((A: 2.64.f32, s: f32) => A |> map(fun(r => let y = r |> map(fun(x => x * s)) in y |> softmax)))",
    ],
)
def test_rows_that_are_computed_in_the_function_of_a_map_are_those_of_a_map_before(text: str) -> None:
    term = program(text)
    result = succeeded(rows(8)(term))
    inputs = random_inputs(inputs_of(term), 0, exact=True)
    found = execute(generate(result.term, "rows"), inputs, "emulate")
    assert np.allclose(found, call(term, *inputs), rtol=1e-5)


def test_a_reduction_of_what_is_computed_for_an_element_is_refused_by_name() -> None:
    text = "fun(A: 2.64.f32 => A |> map(fun(r => r |> map(fun(x => r |> map(fun(y => x * y)) |> sum)))))"
    result = rows(8)(program(text))
    assert isinstance(result, Failure) and "a reduction is left" in result.reason
