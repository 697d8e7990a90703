"""Generated programs, compiled and emulated, against the interpreter: equal bit by bit.

High-level ones are lowered by the strategy `default`; low-level ones are run as they are written.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
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

HIGH, LOW = range(25), range(18)
SCALARS = ("f32", "i32")
PRIMITIVES = (
    "map", "zip", "reduce", "slide", "split", "join", "transpose", "take", "drop", "fst", "snd",
    "unzip", "generate", "select", "let",
)  # fmt: skip


@dataclass(frozen=True)
class Value:
    """A program's text, and the shape and element type of what it computes."""

    text: str
    shape: tuple[int, ...]
    element: str  # f32, i32, or pair: of two f32

    def then(self, step: str, shape: tuple[int, ...], element: str | None = None) -> Value:
        return Value(f"{self.text} |> {step}", shape, element or self.element)


def nested(function: str, depth: int) -> str:
    return "map(" * depth + function + ")" * depth


def elementwise(random: Random, value: Value) -> Value:
    """A map over the elements."""
    depth = len(value.shape)
    if value.element == "pair":
        body = random.choice(
            ["fun((a, b) => a - b)", "fun(p => fst(p) * snd(p))", "fun((a, b) => max(a, b))"]
        )
        return value.then(nested(body, depth), value.shape, "f32")
    bodies = [
        "fun(x => x * 3 + 1)",
        "fun(x => select(x < 1)(-x)(x + 2))",
        "fun(x => let y = x + 1 in y * y - x)",
    ]
    if value.element == "f32":
        bodies.append("fun(x => (x, x + 2))")
    body = random.choice(bodies)
    return value.then(nested(body, depth), value.shape, "pair" if "(x, x" in body else value.element)


def reduced(random: Random, value: Value) -> Value:
    """The sums of the innermost arrays; the whole sum where there is one dimension."""
    if value.element == "pair":
        return elementwise(random, value)
    operator = random.choice(["reduce(+, 0)", "reduce(fun((a, b) => a + b), 0)"])
    depth = len(value.shape) - 1
    return value.then(nested(f"fun(r => r |> {operator})", depth) if depth else operator,
                      value.shape[:-1])  # fmt: skip


def zipped(random: Random, value: Value) -> Value:
    """With another view of itself, or with its indices."""
    n = value.shape[0]
    if value.element != "f32" or len(value.shape) > 1:
        return elementwise(random, value)
    other = random.choice(["vs |> take({n})", "generate(fun(i => f32(indexToInt(i))))"])
    text = f"zip({value.text})({other.format(n=n)})"
    projected = random.choice(
        [f"fst(unzip({text}))", f"snd(unzip({text}))", f"{text} |> map(fun((a, b) => a - b))"]
    )
    return replace(value, text=projected)


def viewed(random: Random, value: Value) -> Value:
    n, *rest = value.shape
    divisor = random.choice([d for d in range(1, n + 1) if n % d == 0])
    size = random.randint(1, n)
    views = [(f"take({size})", (size, *rest)), (f"drop({n - size})", (size, *rest))]
    if len(value.shape) < 3:
        views += [
            (f"split({divisor})", (n // divisor, divisor, *rest)),
            (f"slide({size}, 1)", (n - size + 1, size, *rest)),
        ]
    if len(value.shape) > 1:
        m, *inner = rest
        views += [("transpose", (m, n, *inner)), ("join", (n * m, *inner))]
    step, shape = random.choice(views)
    return value.then(step, shape)


def high(seed: int) -> str:
    """A well-typed program of four to seven steps."""
    random = Random(seed)
    shape = tuple(random.choice([1, 2, 3, 5, 6, 8]) for _ in range(random.randint(1, 3)))
    element = random.choice(SCALARS)
    if seed % 3 == 0:  # else arrays are rarely such that they can be zipped
        shape, element = shape[:1], "f32"
    value = Value("xs", shape, element)
    if seed % 3 == 0:
        value = zipped(random, value)
    for _ in range(random.randint(4, 7)):
        step = random.choice([viewed, viewed, viewed, elementwise, zipped])
        value = step(random, value)
    if random.random() < 0.4 and value.element != "pair":
        value = reduced(random, value)
    type_ = ".".join(map(str, shape)) + f".{element}"
    return f"fun((xs: {type_}, vs: 600.f32) => {value.text})"


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
