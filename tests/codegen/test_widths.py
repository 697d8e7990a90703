"""Indices of arrays larger than 2^31 and 2^32 elements, read off the printed text: see printed_indices.py."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import codegen
from codegen.cuda.widths import Interval, interval
from codegen.emulation.emulator import emulate
from codegen.host.program import HostProgram
from codegen.ir.buffers import dimensions
from codegen.ir.sizes import tree
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.errors import EmulationError, LaunchError, TranslationError
from rise.nat import evaluate, minimum, quotient, remainder, variable
from rise.normal import data_flow
from rise.types import Array
from strategies.registry import find
from tests.codegen.printed_indices import Expression, Number, WrongIndex, accesses
from tests.support.programs import succeeded

PROGRAMS = """
def increased = depFun((n: Nat) => fun((xs: n.u8) => xs |> map(fun(x => x + 1))))
def halves = depFun((n: Nat) => fun((xs: n.f16) => xs |> map(fun(x => x + x))))
def doubles = depFun((n: Nat) => fun((xs: n.f64) => xs |> map(fun(x => x * 2.0))))
def pairs = depFun((n: Nat) => fun((xs: n.(f32, u8)) => xs |> map(fun((x, y) => (y, x)))))
def backwards = depFun((n: Nat) => fun((xs: n.f32) =>
  xs |> reorder(n)(natFun(j => n - 1 - j))(natFun(j => n - 1 - j)) |> map(fun(x => x))))
def transposed = depFun((m: Nat, n: Nat) => fun((A: m.n.f32) =>
  A |> transpose |> map(map(fun(x => x)))))
def rows = depFun((m: Nat, n: Nat) => fun((A: m.n.f32) => A |> map(reduce(+, 0.0))))
def total = depFun((n: Nat) => fun((xs: n.f32) => xs |> reduce(+, 0.0)))
def stencil = depFun((n: Nat) => fun((xs: n.f32) =>
  xs |> padClamp(1)(1) |> slide(3)(1) |> map(reduce(+, 0.0))))
def counted = depFun((n: Nat) => fun((x: f32) => generate(fun((j: Idx[n]) => x)) |> reduce(+, 0.0)))
def product = depFun((m: Nat, n: Nat, k: Nat) => fun((A: m.k.f16, B: k.n.f16) =>
  A |> map(fun(row => B |> transpose |> map(fun(col =>
    zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0.0)))))))
"""
DEFINITIONS = check_text(PROGRAMS).definitions
P31, P32, P33 = 2**31, 2**32, 2**33
LARGE = {
    ("increased", "default"): [
        {"n": n} for n in (P31 - 1, P31 + 1, P32 - 1, P32, P32 + 1, 6442450944, P33 + 127)
    ],
    ("increased", "elementwise"): [{"n": n} for n in (P31 + 1024, P32 + 3072, 6442450944)],
    ("halves", "default"): [{"n": n} for n in (P31, P32 + 129)],
    ("halves", "elementwise"): [{"n": P33}],
    ("doubles", "default"): [{"n": n} for n in (P31 + 3, P33 - 1)],
    ("pairs", "default"): [{"n": n} for n in (P32 - 1, P32 + 1)],
    ("backwards", "default"): [{"n": n} for n in (P31 + 5, P32 + 3)],
    ("transposed", "default"): [{"m": 70000, "n": 70001}, {"m": P31 + 1, "n": 3}, {"m": 3, "n": P32 + 1}],
    ("transposed", "transposition"): [{"m": 2**16, "n": 2**17 + 64}, {"m": 2**20, "n": 2**12}],
    ("rows", "default"): [{"m": 3, "n": P31 + 1}, {"m": P32 + 3, "n": 2}, {"m": 65537, "n": 65537}],
    ("rows", "rows"): [{"m": 2**22, "n": 4096}, {"m": 2**23 + 1, "n": 1024}],
    ("total", "default"): [{"n": P32 + 1}],
    ("total", "reduction"): [{"n": P32}, {"n": P33 + P31}],
    ("stencil", "default"): [{"n": n} for n in (P31 - 1, P31 + 1, P32 + 1)],
    ("counted", "default"): [{"n": n} for n in (P31 - 1, P31 + 1, P32 + 1)],
    ("product", "default"): [{"m": 70000, "n": 70001, "k": 3}, {"m": P32 + 1, "n": 1, "k": 2}],
    ("product", "tensor_core"): [
        {"m": 2**22 + 128, "n": 1024, "k": 64},
        {"m": 128, "n": 2**26, "k": 64},
        {"m": 128, "n": 128, "k": 2**26},
    ],
}  # fmt: skip
SETTINGS = {("total", "reduction"): {"part": "65536"}}
CASES = [(name, strategy, sizes) for (name, strategy), many in LARGE.items() for sizes in many]


def compiled(name: str, strategy: str, sizes: dict[str, int]) -> HostProgram:
    term = data_flow(specialise(DEFINITIONS[name], sizes))
    return assemble(succeeded(find(strategy).make(SETTINGS.get((name, strategy), {}))(term)).term, name)


@pytest.mark.parametrize(("name", "strategy", "sizes"), CASES, ids=str)
def test_large_arrays_are_indexed_exactly(name: str, strategy: str, sizes: dict[str, int]) -> None:
    """In bounds, by no number that C cuts off, and by no two threads alike where they write."""
    for kernel in compiled(name, strategy, sizes).kernels:
        function = kernel.function
        arrays = {
            v.name: prod(size.value or 0 for size in dimensions(v.type))
            for v in (*function.outputs, *function.inputs)
            if isinstance(v.type, Array)
        }
        grid = kernel.launch.grid_at({})
        found = accesses(kernel.source, grid, kernel.launch.block, arrays)
        writes = [{(a.array, a.index) for a in thread if a.written} for thread in found]
        assert len(set().union(*writes)) == sum(map(len, writes)), "two threads write one element"
        used = {access.array for thread in found for access in thread}
        assert strategy != "default" or used == {a for a, n in arrays.items() if n}, kernel.source


def test_the_evaluator_sees_what_wraps() -> None:
    """The expression that a kernel for 6 * 2^30 elements once had."""
    registers = {
        "blockIdx.x": Number(2**26 - 1, "unsigned", 2**26 - 1),
        "threadIdx.x": Number(9, "unsigned", 9),
    }
    for text, right in [
        ("blockIdx.x * 128 + threadIdx.x", False),
        ("(long long)blockIdx.x * 128 + threadIdx.x", True),
        ("threadIdx.x - 10", False),
        ("(int)threadIdx.x - 10", True),
    ]:
        number = Expression(text, registers).evaluate()
        assert (number.value == number.exact) == right, text
    with pytest.raises(WrongIndex):
        Expression("a * 2", {"a": Number(2**30, "int", 2**30)}).evaluate()


def test_kernels_of_right_size_keep_int() -> None:
    """`long long` only where it is needed: n = 2^31 - 1 elements are counted by int."""
    (small,) = compiled("increased", "default", {"n": P31 - 128}).kernels
    (large,) = compiled("increased", "default", {"n": P31 + 128}).kernels
    assert "const int global_x = blockIdx.x * 128 + threadIdx.x;" in small.source
    assert "const long long global_x = blockIdx.x * 128 + threadIdx.x;" in large.source


def test_intervals_hold_every_value() -> None:
    """Of random expressions at random variables."""
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(300):
        a, b = variable("a"), variable("b")
        terms = [a * int(rng.integers(-3, 5)), b * int(rng.integers(1, 9)), a * b]
        inner = terms[rng.integers(3)] + terms[rng.integers(3)] + int(rng.integers(0, 9))
        divisor = int(rng.integers(2, 7))
        value = [inner, quotient(inner, divisor), remainder(inner, divisor), minimum(inner, b)][
            rng.integers(4)
        ]
        ranges = {"a": Interval(0, 6), "b": Interval(2, 5)}
        found = interval(tree(value), ranges)
        for x in range(7):
            for y in range(2, 6):
                if evaluate(inner, {"a": x, "b": y}) >= 0:
                    inside += 1
                    assert found.low <= evaluate(value, {"a": x, "b": y}) <= found.high, value
    assert inside > 3000


def test_open_sizes_are_refused_where_an_index_overflows() -> None:
    """Of a generated array nothing is stored, so that only its indices show how large it is."""
    text = """def f = depFun((m: Nat, n: Nat) => fun((xs: m.f32, ys: n.f32) => xs |> map(fun(x =>
      generate(fun((j: Idx[m * n]) => x)) |> reduce(+, 0.0)))))"""
    term = check_text(text).definitions["f"]
    host = codegen.compile(term, find("default").make({}), runtime=["m", "n"], backend="emulate").program
    assert host.at({"m": 40000, "n": 40000}).launches
    with pytest.raises(LaunchError) as refused:
        host.at({"m": 50000, "n": 50000})
    assert refused.value.code == "R0840"


def test_what_no_index_holds_is_refused() -> None:
    with pytest.raises(TranslationError) as beyond:
        compiled("transposed", "default", {"m": 2**37, "n": 2**37})
    assert beyond.value.code == "R0740"
    text = f"def f = fun((is: 3.Idx[{2**31 + 1}]) => is |> map(fun(i => i32(i))))"
    definition = check_text(text).definitions["f"]
    with pytest.raises(TranslationError) as stored:
        codegen.compile(definition, find("default").make({}), backend="emulate")
    assert stored.value.code == "R0741"


def test_a_grid_that_cannot_be_launched_is_refused_when_it_is_compiled() -> None:
    """As it would be when it is launched."""
    term = data_flow(specialise(DEFINITIONS["transposed"], {"m": 2**22, "n": 2**22}))
    result = find("transposition").make({})(term)
    assert isinstance(result, Failure) and result.code == "R0841"
    assert "the kernel needs 65536 blocks in y; the limit is 65535" in result.reason


def test_a_launch_that_is_too_large_for_the_emulator_is_refused_by_it() -> None:
    with pytest.raises(EmulationError) as refused:
        emulate("", "k", (2**24 + 1, 128, 1), (128, 1, 1), [])
    assert refused.value.code == "R0914" and str(2**31 + 128) in refused.value.message


def test_indices_that_are_inputs_are_checked_before_they_are_narrowed() -> None:
    definition = check_text("def f = fun((is: 4.Idx[3], x: Idx[3]) => is |> map(fun(i => i32(i) + i32(x))))")
    run = codegen.compile(definition.definitions["f"], find("default").make({}), backend="emulate")
    assert list(run(np.array([0, 1, 2, 2]), 1)) == [1, 2, 3, 3]
    for wrong in (2**32, 3, -1, -(2**32)):
        for given in (np.array([0, 1, 2, wrong]), 1), (np.array([0, 1, 2, 0]), wrong):
            with pytest.raises(LaunchError) as refused:
                run(*given)
            assert refused.value.code == "R0843"
