"""Paths against NumPy: a view's element is where NumPy finds it, when read and when written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from codegen.ir import imperative as i
from codegen.lower.paths import Resolver
from codegen.pipeline import generate, translate
from rise.expr import Expr
from rise.nat import Facts, Nat, NatVariable, constant, variable
from rise.types import I32, Array, Data, Pair
from tests.support.programs import at_sizes as program

Numbers = NDArray[np.int64]


def windows(xs: Numbers, size: int, step: int) -> Numbers:
    return np.stack([xs[s : s + size] for s in range(0, len(xs) - size + 1, step)])


def joined(xs: Numbers) -> Numbers:
    return xs.reshape(-1, *xs.shape[2:])


def parted(xs: Numbers, n: int) -> Numbers:
    return xs.reshape(-1, n, *xs.shape[1:])


# views of `xs` and what NumPy does for them
READ: dict[str, tuple[tuple[int, ...], str, Any]] = {
    "itself": ((4,), "xs", lambda x: x),
    "split": ((12,), "xs |> split(3)", lambda x: parted(x, 3)),
    "split of rows": ((6, 5), "xs |> split(2)", lambda x: parted(x, 2)),
    "join": ((3, 5), "xs |> join", joined),
    "join of rows of rows": ((2, 3, 4), "xs |> join", joined),
    "join, join": ((2, 3, 4), "xs |> join |> join", lambda x: x.ravel()),
    "transpose": ((3, 5), "xs |> transpose", lambda x: x.T),
    "transpose outside": ((2, 3, 4), "xs |> transpose", lambda x: x.swapaxes(0, 1)),
    "transpose inside": ((2, 3, 4), "xs |> map(transpose)", lambda x: x.swapaxes(1, 2)),
    "slide": ((11,), "xs |> slide(3, 2)", lambda x: windows(x, 3, 2)),
    "slide of rows": ((6, 4), "xs |> slide(3, 1)", lambda x: windows(x, 3, 1)),
    "slide in both directions": (
        *((5, 6), "xs |> map(slide(3, 1)) |> slide(2, 1) |> map(transpose)"),
        lambda x: np.stack([np.stack([x[r : r + 2, c : c + 3] for c in range(4)]) for r in range(4)]),
    ),
    "take": ((11,), "xs |> take(5)", lambda x: x[:5]),
    "drop": ((11,), "xs |> drop(5)", lambda x: x[5:]),
    "drop and take": ((11, 3), "xs |> drop(2) |> take(4)", lambda x: x[2:6]),
    "drop in rows": ((3, 11), "xs |> map(drop(5))", lambda x: x[:, 5:]),
    "stride": ((12,), "xs |> split(4) |> transpose |> join", lambda x: parted(x, 4).T.ravel()),
    "tiles": (
        *((4, 6), "xs |> split(2) |> map(transpose) |> map(split(3)) |> map(map(transpose))"),
        lambda x: x.reshape(2, 2, 2, 3).swapaxes(1, 2),
    ),
    "windows of windows": (
        *((12,), "xs |> slide(6, 3) |> map(slide(2, 2))"),
        lambda x: np.stack([windows(w, 2, 2) for w in windows(x, 6, 3)]),
    ),
    "one element of each": ((4, 5), "xs |> map(fun(r => r |> idx(2)))", lambda x: x[:, 2]),
    "a row": ((4, 5), "xs |> idx(2)", lambda x: x[2]),
    "split of join": ((3, 4), "xs |> join |> split(6)", lambda x: x.reshape(2, 6)),
    "out of a pair": ((4,), "fst(unzip(zip(xs)(xs |> drop(0))))", lambda x: x),
    "size one": ((1, 1), "xs |> transpose |> join |> split(1)", lambda x: x.reshape(1, 1)),
    "primes": ((7, 11), "xs |> transpose |> join", lambda x: x.T.ravel()),
}
# views that can be written through
WRITTEN = {
    "split", "split of rows", "join", "join of rows of rows", "join, join", "transpose",
    "transpose outside", "transpose inside", "stride", "split of join", "size one", "primes",
    "tiles",
}  # fmt: skip


def copied(shape: tuple[int, ...], before: str, after: str, depth: int) -> Expr:
    """`xs |> before |> copy |> after`, in loops."""
    type_ = ".".join(map(str, shape)) + ".i32"
    copy = "mapSeq(" * depth + "fun(x => x)" + ")" * depth
    seen = before if before != "xs" else "xs"
    return program(f"fun((xs: {type_}) => {seen} |> {copy} {after})")


def shape_of(type_: Data) -> tuple[int, ...]:
    if not isinstance(type_, Array):
        return ()
    return (type_.size.value or 0, *shape_of(type_.element))


def number(index: Nat) -> int:
    assert index.value is not None, index
    return index.value


def linear(access: object, sizes: tuple[int, ...]) -> int:
    assert isinstance(access, i.Access)
    return int(np.ravel_multi_index(tuple(map(number, access.indices)), sizes))


def stores(command: i.Command) -> Iterator[i.Assign]:
    return (c for c in i.commands(command) if isinstance(c, i.Assign))


def places(term: Expr) -> Iterator[tuple[int, int]]:
    """For each iteration of a copy: the place that is read, and the one that is written."""
    function, _ = translate(term, "f")
    (store,) = stores(function.body)
    loops = [c for c in i.commands(function.body) if isinstance(c, i.For)]
    (source,), (target,) = function.inputs, function.outputs
    for values in product(*(range(number(loop.count)) for loop in loops)):
        indices = {NatVariable(c.index): constant(v) for c, v in zip(loops, values, strict=True)}
        facts = Facts()
        for loop in loops:
            facts = facts.with_range(loop.index, 0, loop.count)
        read = Resolver().read(store.value, (), facts)
        written = Resolver().write(store.target, (), facts)
        yield (
            linear(at(read, indices), shape_of(source.type)),
            linear(at(written, indices), shape_of(target.type)),
        )


def at(access: i.Expression, indices: dict[Any, Nat]) -> i.Access:
    assert isinstance(access, i.Access)
    return i.Access(access.buffer, tuple(n.substitute(indices) for n in access.indices), access.type)


@pytest.mark.parametrize("name", READ)
def test_every_element_is_read_where_numpy_finds_it(name: str) -> None:
    shape, text, view = READ[name]
    expected = view(np.arange(np.prod(shape)).reshape(shape))
    found = list(places(copied(shape, text, "", expected.ndim)))
    assert [read for read, _ in found] == expected.ravel().tolist()
    assert [written for _, written in found] == list(range(expected.size))


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_every_element_is_written_where_numpy_puts_it(name: str) -> None:
    shape, text, view = READ[name]
    expected = view(np.arange(np.prod(shape)).reshape(shape))
    found = list(places(copied(shape, "xs", text.removeprefix("xs"), len(shape))))
    assert [read for read, _ in found] == list(range(expected.size))
    result = np.full(expected.size, -1)
    for read, written in found:
        result[written] = read
    assert result.reshape(expected.shape).tolist() == expected.tolist()


@pytest.mark.parametrize("seed", range(40))
def test_random_compositions_of_views(seed: int) -> None:
    """Up to five views in a row, of arrays of one to three dimensions with random sizes."""
    random = np.random.default_rng(seed)
    shape = tuple(int(s) for s in random.choice([1, 2, 3, 4, 5, 6], random.integers(1, 4)))
    text, array = "xs", np.arange(np.prod(shape)).reshape(shape)
    for _ in range(random.integers(1, 6)):
        step, array = random_view(random, array)
        text += f" |> {step}"
    found = list(places(copied(shape, text, "", array.ndim)))
    assert [read for read, _ in found] == array.ravel().tolist(), text


def random_view(random: np.random.Generator, xs: Numbers) -> tuple[str, Numbers]:
    n = len(xs)
    size = int(random.integers(1, n + 1))
    divisors = [d for d in range(1, n + 1) if n % d == 0]
    divisor = int(random.choice(divisors))
    choices: list[tuple[str, Numbers]] = [
        (f"take({size})", xs[:size]),
        (f"drop({n - size})", xs[n - size :]),
    ]
    if xs.ndim < 4:
        choices += [
            (f"split({divisor})", parted(xs, divisor)),
            (f"slide({size}, 1)", windows(xs, size, 1)),
        ]
    if xs.ndim > 1:
        choices += [("transpose", xs.swapaxes(0, 1)), ("join", joined(xs))] * 2
    if xs.ndim > 2:
        choices += [
            ("map(transpose)", xs.swapaxes(1, 2)),
            ("map(join)", xs.reshape(n, -1, *xs.shape[3:])),
        ]
    return choices[int(random.integers(len(choices)))]


def test_members_of_pairs_select_arrays() -> None:
    pairs = Array(constant(3), Pair(Array(constant(2), I32), I32))
    resolver, xs = Resolver(), i.Variable("xs", pairs)
    index, facts = variable("i"), Facts()
    first = resolver.read(xs, (index, "fst", constant(1)), facts)
    assert first == i.Access("xs_fst", (index, constant(1)), I32)
    assert resolver.read(xs, (index, "snd"), facts) == i.Access("xs_snd", (index,), I32)
    assert resolver.write(i.AcceptVariable("xs", pairs), (index, "snd"), facts).buffer == "xs_snd"


@pytest.mark.parametrize(
    "text",
    [
        "xs |> split(4) |> join |> mapSeq(fun(x => x))",
        "xs |> split(4) |> mapSeq(mapSeq(fun(x => x))) |> join",
        "xs |> split(4) |> transpose |> transpose |> join |> mapSeq(fun(x => x))",
        "xs |> split(4) |> map(split(2)) |> join |> join |> mapSeq(fun(x => x))",
        "xs |> mapSeq(fun(x => x)) |> split(4) |> transpose |> transpose |> join",
    ],
)
def test_views_that_undo_each_other_leave_no_arithmetic(text: str) -> None:
    source = generate(program(f"fun((xs: 24.f32) => {text})"), "f").source
    assert not re.search(r"[%/]", source.replace("//", "").replace('"rise.cuh"', ""))


GEMM = """fun((A: 64.64.f16, B: 64.64.f16) =>
  A |> split(16) |> mapBlock(fun(rows => B |> transpose |> split(16) |> mapWarp(fun(cols =>
    zip(rows |> transpose |> split(16))(cols |> transpose |> split(16))
    |> reduceSeq(Local)(fun((acc, ab) => tensorMatMulAdd
        (fst(ab) |> transpose |> asFragment |> toMem(Local))(snd(ab) |> asFragment |> toMem(Local))
        (acc)), generateFragment(f32(0)))
    |> asMatrix |> transpose)) |> join |> transpose)) |> join)"""


def test_the_inner_loop_of_a_product_divides_nothing() -> None:
    source = generate(program(GEMM), "gemm").source
    loop = source[source.index("reduceSeq") :]
    assert "mma_sync" in loop
    assert "%" not in loop and " / " not in loop
    assert "A + (block_x * 1024 + k * 16), 64)" in loop
    assert "B + (k * 1024 + warp * 16), 64)" in loop
    assert "output + (block_x * 1024 + warp * 16)" in loop
