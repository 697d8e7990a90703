"""One kernel for many sizes: exact at all that its constraints allow, others are refused by name."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from codegen.execute import checked_inputs, execute
from codegen.host.program import HostProgram
from codegen.pipeline import assemble, generate
from codegen.runtime import can_compile, compile_cubin
from rewrites.algorithmic import SPLIT_JOIN
from rise.check.program import check_text
from rise.check.specialise import size_names, undepended
from rise.check.symbolic import opened
from rise.errors import LaunchError, RiseError, TranslationError, TypeMismatch, UsageError
from rise.expr import Definition, inline
from rise.normal import data_flow
from rise.source import place
from strategies.core import Strategy, seq, top_down
from strategies.default import default
from strategies.matmul.tensor_core import tensor_core
from tests.support.open_sizes import assert_exact
from tests.support.programs import succeeded

GEMM = (Path(__file__).parents[2] / "examples" / "gemm.rise").read_text(encoding="utf-8")
SUM = "reduceSeq(Local)(fun((s, x) => s + x), 0)"
TILE = 32
TEXTS = {
    "sum": "depFun((n: Nat) => fun(xs: n.f32 => xs |> reduce(+, 0)))",
    "saxpy": "depFun((n: Nat) => fun((a: f32, xs: n.f32, ys: n.f32) =>"
    " zip(xs)(ys) |> map(fun((x, y) => a * x + y))))",
    "transpose": "depFun((m: Nat, n: Nat) => fun(xs: m.n.i32 => xs |> transpose |> map(map(fun(x => x)))))",
    "softmax": "depFun((m: Nat, n: Nat) => fun(xs: m.n.f64 => xs |> map(fun(row =>"
    " row |> map(fun(x => exp(x))) |> fun(es => es |> reduce(+, 0) |> fun(s =>"
    " es |> map(fun(e => e / s))))))))",
    "sums of blocks": "depFun((n: Nat) => fun(xs: n.i32 => xs |> split(32) |> map(reduce(+, 0))))",
    "windows": "depFun((n: Nat) => fun(xs: n.i32 => xs |> slide(3, 1) |> map(reduce(+, 0))))",
    "a wall of clamped ends": "depFun((n: Nat) => fun(xs: n.i32 => xs |> padClamp(2, 1) |> slide(4, 1) |>"
    " map(reduce(+, 0))))",
    "rows by blocks": "depFun((m: Nat, n: Nat) => fun(xs: m.n.i32 => xs |> mapBlock(fun(r => r |>"
    " mapThreads(fun(x => x * 2)))) |> toMem(Global) |> mapBlock(mapThreads(fun(x => x + 1)))))",
    "blocks in two kernels": f"depFun((n: Nat) => fun(xs: n.i32 =>"
    f" xs |> split(4) |> mapGlobal({SUM})"
    f" |> toMem(Global) |> {SUM}))",
    "sizes that C has names for": "depFun((x: Nat, int: Nat) =>"
    " fun(xs: x.int.i32 => xs |> map(reduce(+, 0))))",
}
DEFAULT = default()
TENSOR = tensor_core(block=(TILE, TILE, TILE), warp=(16, 16), stages=2)


def definition(name: str) -> Definition:
    return check_text(f"def f = {TEXTS[name]}")["f"] if name in TEXTS else check_text(GEMM)[name]


@cache
def compiled(name: str, strategy: Strategy, unit: int = 1) -> HostProgram:
    return low(definition(name), strategy, unit)


def low(subject: Definition, strategy: Strategy, unit: int = 1) -> HostProgram:
    """With all sizes open, multiples of a number."""
    program = opened(subject, {}, dict.fromkeys(size_names(subject), unit))
    return assemble(replace(program, program=succeeded(strategy(data_flow(program.program))).term), "f")


ONE: list[tuple[int, ...]] = [(n,) for n in (0, 1, 2, 3, 7, 31, 32, 33, 127, 128, 129, 1009)]
TWO: list[tuple[int, ...]] = [(1, 1), (1, 7), (7, 1), (5, 3), (31, 33), (127, 2), (129, 5), (0, 4), (3, 0)]
CASES: dict[str, list[tuple[int, ...]]] = {
    "sum": ONE,
    "saxpy": ONE,
    "transpose": TWO,
    "softmax": TWO,
    "sums of blocks": [(0,), (32,), (64,), (128 * 32,), (129 * 32,)],
    "windows": [(3,), (4,), (130,), (131,)],
    "a wall of clamped ends": ONE[1:],
    "rows by blocks": TWO,
    "blocks in two kernels": [(4,), (8,), (127 * 4,), (129 * 4,)],
    "sizes that C has names for": TWO,
}


@pytest.mark.parametrize("name", CASES)
def test_one_kernel_is_exact_at_all_sizes(name: str) -> None:
    made, subject = compiled(name, DEFAULT), definition(name)
    for number, sizes in enumerate(CASES[name]):
        assert_exact(made, subject, dict(zip(size_names(subject), sizes, strict=True)), seed=number)


@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (2, 3, 5), (31, 7, 33), (129, 1, 2), (13, 17, 0), (0, 3, 4)])
def test_product_of_matrices_of_any_size(m: int, n: int, k: int) -> None:
    assert_exact(compiled("matmul", DEFAULT), definition("matmul"), {"m": m, "n": n, "k": k})


@pytest.mark.parametrize("m, n, k", [(TILE, 32, 64), (3 * TILE, 64, 32), (7 * TILE, 32, 96)])
def test_tensor_cores(m: int, n: int, k: int) -> None:
    made = compiled("matmul", TENSOR, TILE)
    assert_exact(made, definition("matmul"), {"m": m, "n": n, "k": k})
    (kernel,) = made.kernels
    assert "mma_sync" in kernel.source and "int m_32" in kernel.source
    assert [str(extent) for extent in kernel.launch.grid] == ["n_32", "m_32", "1"]


def test_what_a_strategy_asks_of_an_open_size_is_a_constraint_of_the_kernel() -> None:
    """Nobody said that 32 divides n: the rule `splitJoin` does, and the launch checks that."""
    made = compiled("saxpy", seq(top_down(SPLIT_JOIN.with_sizes(n=TILE)), DEFAULT))
    assert sorted(map(str, made.constraints)) == ["32 | n"]
    with pytest.raises(TypeMismatch) as refused:
        made.at({"n": 33})
    assert refused.value.message == "`f` needs 32 | n, which does not hold for n = 33: 32 does not divide 33"


def test_tiles_that_do_not_divide_a_size_stick_out() -> None:
    made = compiled("matmul", TENSOR, 8)
    assert sorted(map(str, made.constraints)) == ["8 | k", "8 | m", "8 | n"]
    for m, n, k in ((8, 8, 8), (40, 24, 104), (32, 72, 64)):
        assert_exact(made, definition("matmul"), {"m": m, "n": n, "k": k})


# --- what sizes must be -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, sizes, code, message",
    [
        (
            *("sums of blocks", {"n": 33}, "R0401"),
            "`f` needs 32 | n, which does not hold for n = 33: 32 does not divide 33",
        ),
        (
            *("windows", {"n": 2}, "R0404"),
            "`f` needs n >= 3, which does not hold for n = 2: a size would be -1",
        ),
        ("sum", {}, "R0405", "`f` needs a number for `n`"),
        ("sum", {"n": 3, "m": 1}, "R0406", "`f` has no run-time size `m`"),
        ("sum", {"n": -3}, "R0407", "the size n=-3 is not a natural number up to 2^40"),
        (
            *("sum", {"n": 2**31 - 2**16}, "R0840"),
            "in `f_kernel` `xs` has 2147418112 elements at n = 2147418112, beyond the range of int indices",
        ),
        (
            *("transpose", {"m": 2**16, "n": 2**15}, "R0840"),
            "in `f_kernel` `output` has 2147483648 elements at m = 65536, n = 32768, "
            "beyond the range of int indices",
        ),
    ],
)
def test_sizes_are_refused_by_name(name: str, sizes: dict[str, int], code: str, message: str) -> None:
    with pytest.raises(RiseError) as refused:
        compiled(name, DEFAULT).at(sizes)
    assert (refused.value.code, refused.value.message) == (code, message)


def test_the_largest_size_that_int_counts_is_taken() -> None:
    assert compiled("sum", DEFAULT).at({"n": 2**31 - 1 - 2**16})


def test_a_grid_beyond_what_gpus_have_is_refused() -> None:
    made = generate(term("depFun((n: Nat) => fun(xs: n.i32 => xs |> mapBlock(1)(fun(x => x))))"), "f")
    with pytest.raises(LaunchError) as refused:
        execute(made, [np.zeros(2**16, np.int32)], "emulate")
    assert refused.value.code == "R0841"
    assert refused.value.message == "`f_kernel` needs 65536 blocks in y at n = 65536; the limit is 65535"


def test_inputs_that_contradict_each_other_or_the_constraints_are_refused() -> None:
    made = compiled("saxpy", DEFAULT)
    with pytest.raises(UsageError) as refused:
        execute(made, [np.float32(1), np.zeros(3, np.float32), np.zeros(4, np.float32)], "emulate")
    assert refused.value.code == "R0409"
    with pytest.raises(TypeMismatch):
        execute(compiled("sums of blocks", DEFAULT), [np.zeros(31, np.int32)], "emulate")
    with pytest.raises(LaunchError) as shape:
        list(checked_inputs(made.at({"n": 3}), [np.float32(1), *[np.zeros(4, np.float32)] * 2]))
    assert shape.value.code == "R0804"


# --- what must be known -------------------------------------------------------------------------------------


def term(text: str):  # type: ignore[no-untyped-def]
    return data_flow(inline(undepended(check_text(f"def f = {text}")["f"].body)))


@pytest.mark.parametrize("space", ["Shared", "Local"])
def test_buffers_of_blocks_and_threads_have_known_sizes(space: str) -> None:
    inside = "mapThreads" if space == "Shared" else "mapSeq"
    text = (
        f"depFun((m: Nat, n: Nat) => fun(xs: m.n.f32 => xs |> mapBlock(fun(r =>"
        f" r |> {inside}(fun(x => x)) |> toMem({space}) |> {inside}(fun(x => x))))))"
    )
    with pytest.raises(TranslationError) as refused:
        generate(term(text), "f")
    assert refused.value.code == "R0713"
    assert refused.value.message == "the size of a buffer is n, which is not known at compile time"
    assert refused.value.hint == "give the sizes, `--size n=…`"
    assert place(refused.value.origin) is not None


def test_threads_take_turns_where_their_number_is_not_known() -> None:
    made = compiled("rows by blocks", DEFAULT)
    assert [str(k.launch) for k in made.kernels] == [
        "grid m×1×1, block 128×1×1, 0 bytes of shared memory"
    ] * 2
    assert all("+= 128" in k.source for k in made.kernels)


def test_warps_that_take_turns_keep_to_their_shared_memory() -> None:
    """More rows than warps: a warp uses its own buffer again, and no other."""
    text = (
        "depFun((n: Nat) => fun(xss: n.32.i32 => xss |> mapWarp(fun(xs => "
        "xs |> mapLane(fun(x => x + 1)) |> toMem(Shared) |> split(8) |> transpose |> join"
        " |> mapLane(fun(x => x * 2))))))"
    )
    made = generate(term(text), "f")
    for n in (1, 4, 5, 13):
        xss = np.arange(n * 32, dtype=np.int32).reshape(n, 32)
        turned = xss.reshape(n, 4, 8).transpose(0, 2, 1).reshape(n, 32)
        assert np.array_equal(execute(made, [xss], "emulate"), 2 * (turned + 1))


def test_a_grid_without_blocks_is_not_launched() -> None:
    made = compiled("rows by blocks", DEFAULT)
    sizes = ({"m": 0, "n": 3}, {"m": 3, "n": 0})
    assert [[launching.is_empty for launching in made.at(s).launches] for s in sizes] == [
        [True] * 2,
        [False] * 2,
    ]


def test_temporaries_have_the_size_of_the_call() -> None:
    made = compiled("rows by blocks", DEFAULT)
    assert [made.at({"m": m, "n": n}).workspace for m, n in ((1, 1), (3, 7), (100, 11))] == [4, 84, 4400]


# --- facts --------------------------------------------------------------------------------------------------


def test_a_multiple_of_what_divides_it_is_what_a_kernel_counts() -> None:
    """32 | n is how n is written, not a fact beside it: the kernel has no division."""
    (kernel,) = compiled("sums of blocks", DEFAULT).kernels
    assert "int n_32)" in kernel.source and "/" not in kernel.source.replace("//", "")
    assert str(kernel.launch.grid[0]) == "(n_32 + 127) / 128"


def test_two_units_become_one() -> None:
    """4 | n of the definition, and 6 | n of the call: n is 12 times a number."""
    made = opened(
        check_text("def f = depFun((n: Nat) => fun(xs: n.i32 => xs |> split(4)))")["f"], {}, {"n": 6}
    )
    (size,) = made.sizes
    assert (size.name, size.number, size.unit) == ("n", "n_12", 12)
    assert sorted(map(str, made.constraints)) == ["12 | n", "4 | n"]


def test_a_product_that_is_divided_is_counted_in_long_long() -> None:
    """8 | m * n says nothing of m or n: the quotient of the product is a fraction of it."""
    text = "depFun((m: Nat, n: Nat) => fun(xs: m.n.i32 => xs |> join |> split(8) |> map(reduce(+, 0))))"
    subject = check_text(f"def f = {text}")["f"]
    made = low(subject, DEFAULT)
    assert "long long m" in made.kernels[0].source
    for m, n in ((8, 1), (2, 4), (6, 12), (40, 33)):
        assert_exact(made, subject, {"m": m, "n": n})
    with pytest.raises(TypeMismatch) as refused:
        made.at({"m": 3, "n": 5})
    assert "8 does not divide 15" in refused.value.message


def test_fractions_are_whole_together() -> None:
    """Of 2 | m + n it does not follow that m / 2 is whole."""
    text = (
        "depFun((m: Nat, n: Nat) => fun((xs: m.i32, ys: n.i32) =>"
        " concat(xs)(ys) |> split(2) |> map(reduce(+, 0))))"
    )
    subject = check_text(f"def f = {text}")["f"]
    made = low(subject, DEFAULT)
    for m, n in ((1, 1), (3, 5), (2, 4), (129, 131)):
        assert_exact(made, subject, {"m": m, "n": n})


@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a"])
def test_open_kernels_compile(target: str) -> None:
    for name in ("softmax", "a wall of clamped ends"):
        assert all(compile_cubin(k.source, target).stat().st_size for k in compiled(name, DEFAULT).kernels)
