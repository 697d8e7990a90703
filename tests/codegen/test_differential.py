"""Generated programs, compiled and emulated, against the interpreter: equal bit by bit.

High-level ones are lowered by the strategy `default`; low-level ones are run as they are written.
"""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import generate
from rise.expr import Expr
from rise.interpret import call, random_inputs
from strategies.default import default
from tests.support.programs import at_sizes as program
from tests.support.programs import succeeded
from tests.support.texts import high

HIGH, LOW = range(25), range(18)
PRIMITIVES = (
    "map", "zip", "reduce", "slide", "split", "join", "transpose", "take", "drop", "fst", "snd",
    "unzip", "generate", "select", "let",
)  # fmt: skip


LEVELS = {
    1: ["mapSeq({0})", "mapThreads({0})", "mapBlock({0})", "mapGlobal({0})"],
    2: [
        "mapBlock(mapThreads({0}))",
        "mapBlock(mapSeq({0}))",
        "mapThreads(1)(mapThreads(0)({0}))",
        "mapSeq(mapSeq({0}))",
        "mapGlobal(1)(mapGlobal(0)({0}))",
        "mapBlock(fun(r => r |> mapThreads({0}) |> toMem(Shared) |> mapThreads(fun(x => x - 1))))",
    ],
    3: [
        "mapBlock(1)(mapBlock(0)(mapThreads({0})))",
        "mapBlock(mapWarp(mapLane({0})))",
        "mapBlock(mapThreads(1)(mapThreads(0)({0})))",
        "mapBlock(mapThreads(mapSeqUnroll({0})))",
    ],
}
AFTER = {
    1: ["split(2)", "split(3) |> transpose"],
    2: ["join", "transpose"],
    3: ["map(join)", "join"],
}


def low(seed: int) -> str:
    """Views, then levels for every dimension, then views of what is written."""
    random = Random(1000 + seed)
    dimensions = 1 + seed % 3
    shape = {1: (12,), 2: (4, 6), 3: (2, 3, 8)}[dimensions]
    levels = LEVELS[dimensions][seed // 3 % len(LEVELS[dimensions])]
    function = random.choice(["fun(x => x * 2)", "fun(x => select(x < 0)(-x)(x))"])
    before = {1: "drop(3)", 2: "slide(2, 1) |> join", 3: "transpose |> transpose"}[dimensions]
    shape = {1: (15,), 2: (3, 6), 3: shape}[dimensions]
    type_ = ".".join(map(str, shape)) + ".f32"
    after = random.choice(AFTER[dimensions])
    return f"fun((xs: {type_}) => xs |> {before} |> {levels.format(function)} |> {after})"


def used(text: str) -> Counter[str]:
    return Counter(re.findall(r"\b[a-zA-Z]+\b", text))


def assert_agrees(text: str, low_level: Expr, seed: int) -> None:
    kernel = generate(low_level, "f")
    inputs = random_inputs(kernel.inputs, seed, exact=True)
    wanted = call(program(text), *inputs)
    found = execute(kernel, inputs, "emulate", seed=seed)
    for one, other in zip(parts(found), parts(wanted), strict=True):
        message = f"seed {seed}: {text}\n{kernel.source}\n{one}\nis not\n{other}"
        assert one.dtype == other.dtype and np.array_equal(one, other), message


def parts(value: object) -> list[np.ndarray]:
    if isinstance(value, tuple):
        return [part for member in value for part in parts(member)]
    return [np.asarray(value)]


@pytest.mark.parametrize("seed", HIGH)
def test_any_program_runs_by_default(seed: int) -> None:
    text = high(seed)
    print(seed, text)
    result = succeeded(default()(program(text)))
    assert_agrees(text, result.term, seed)


@pytest.mark.parametrize(
    "text",
    [
        "fun((xs: 6.3.i32) => xs |> map(reduce(+, 0)) |> map(fun(x => x * 2 + x)))",
        "fun((xs: 6.f32) => xs |> slide(4, 1) |> map(reduce(+, 0)) |> slide(2, 1) |> map(reduce(+, 0)))",
        "fun((xs: 3.4.f32) => xs |> map(reduce(+, 0)) |> reduce(+, 0))",
    ],
)
def test_reductions_that_are_read_run_by_default(text: str) -> None:
    result = succeeded(default()(program(text)))
    assert_agrees(text, result.term, 0)


def test_a_named_choice_among_pairs_is_read_by_its_parts() -> None:
    text = """fun((c: bool, d: (f32, f32)) => generate(fun((i: Idx[4]) =>
      let r = select(c)(d)(d) in fst(r) + snd(r))) |> drop(1) |> scan(+, 0.0))"""
    result = succeeded(default()(program(text)))
    assert_agrees(text, result.term, 0)


@pytest.mark.parametrize("seed", LOW)
def test_low_level_programs_run_as_written(seed: int) -> None:
    text = low(seed)
    print(seed, text)
    assert_agrees(text, program(text), seed)


def test_every_primitive_occurs_at_least_twice() -> None:
    counts = Counter[str]()
    for seed in HIGH:
        counts.update(set(used(high(seed))))
    print({name: counts[name] for name in PRIMITIVES})
    assert not [name for name in PRIMITIVES if counts[name] < 2]
    counts = Counter[str]()
    for seed in LOW:
        counts.update(set(used(low(seed))))
    print(counts)
    for name in ("mapBlock", "mapThreads", "mapSeq", "toMem", "transpose", "join", "split"):
        assert counts[name] >= 1, name
