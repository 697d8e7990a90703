"""Wrong rules, each well-typed by chance of sizes or types, for the property of rules to refute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from rewrites.rule import RULES, Rule, rule
from rise.expr import Expr, Literal, Primitive
from rise.primitives.declare import primitive
from rise.testing import Choose, Hint
from rise.types import F16, F32, I32, Scalar, Type, array


def addition(choose: Choose, types: Mapping[str, Type]) -> Mapping[str, Expr]:
    """+, and an initial value that is not its neutral element by chance only."""
    type_ = types["z"]
    if not isinstance(type_, Scalar):
        raise TypeError(str(type_))
    value = choose.below(3)
    start = Literal(float(value) if type_.is_float else value, type_)
    return {"op": Primitive(primitive("add"), (type_,)), "z": start}


def square_tiles(_: Choose) -> Mapping[str, Type]:
    tile = array(16, 16, F16)
    return {"a": tile, "b": tile, "c": array(16, 16, F32)}


@dataclass(frozen=True)
class Mutant:
    """A rule that is wrong, or right but applied by functions that are: these by `module.name`."""

    what: str
    left: str
    right: str
    hint: Hint = Hint()
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


PRODUCT = (
    "zip(c)(a) |> map(fun((cr, r) => zip(cr)(b) |> map(fun((x, col) => "
    "x + (zip(r)(col) |> map(fun((p, q) => f32(p) * f32(q))) |> reduce(+, 0))))))"
)
TENSOR = "tensorMatMulAdd(a |> asFragment)"
FOLD = "xs |> reduceSeq(Local)"
CAPTURING = {"rewrites.rule.fresh_name": lambda name, taken: name}
MUTANTS = (
    Mutant(
        "capture in map fusion", "xs |> map(f) |> map(g)", "xs |> map(fun(x => g(f(x))))", functions=CAPTURING
    ),
    Mutant(
        "transpose dropped on squares",
        "zip(xs)(xs |> transpose) |> map(fun((r, c) => zip(r)(c)))",
        "zip(xs)(xs) |> map(fun((r, c) => zip(r)(c)))",
    ),
    Mutant("split for transpose", "xs |> split(n) |> transpose", "xs |> split(m)"),
    Mutant("columns joined for rows", "xs |> join", "xs |> transpose |> join"),
    Mutant("a map moved past transpose", "xs |> transpose |> map(f) |> transpose", "xs |> map(f)"),
    Mutant(
        "components of a zip swapped",
        "zip(xs)(ys) |> map(fun((x, y) => x - y))",
        "zip(ys)(xs) |> map(fun((x, y) => x - y))",
    ),
    Mutant("the other component kept", "zip(xs)(xs |> map(f)) |> map(fun((x, y) => y))", "xs"),
    Mutant("maps fused in the wrong order", "xs |> map(f) |> map(g)", "xs |> map(fun(x => f(g(x))))"),
    Mutant(
        "an initial value lost",
        f"{FOLD}(fun(acc, y => acc + g(y)), c)",
        f"{FOLD}(fun(acc, y => acc + g(y)), 0)",
    ),
    Mutant(
        "blocks of a reduction with no neutral element",
        "xs |> reduce(op, z)",
        "xs |> split(n) |> reduceSeq(Local)(fun(acc, b => op(acc, b |> reduce(op, z))), z)",
        Hint(lambda choose: {"z": choose.pick((I32, F32))}, addition),
    ),
    Mutant(
        "a lifted reduction that starts every row alike",
        "xs |> map(fun(x => h(x) |> reduceSeq(Local)(fun(acc, y => acc + y), x)))",
        "xs |> map(h) |> transpose |> reduceSeq(Local)("
        "fun(acc, ys => zip(acc)(ys) |> map(fun((a, y) => a + y))), xs |> map(fun(x => 0)))",
    ),
    Mutant(
        "a step with its arguments swapped",
        f"{FOLD}(fun(acc, y => g(acc, y)), z)",
        f"{FOLD}(fun(acc, y => g(y, acc)), z)",
    ),
    Mutant(
        "a wrong second summand",
        f"c + ({FOLD}(fun(acc, y => acc + g(y)), 0))",
        f"{FOLD}(fun(acc, y => acc + g(y)), c + c)",
    ),
    Mutant(
        "b not transposed",
        PRODUCT,
        f"{TENSOR}(b |> asFragment)(c |> asFragment) |> asMatrix",
        Hint(square_tiles),
    ),
    Mutant(
        "the accumulator forgotten",
        PRODUCT,
        f"{TENSOR}(b |> transpose |> asFragment)(generateFragment(0)) |> asMatrix",
        Hint(square_tiles),
    ),
    Mutant(
        "operands of a product swapped",
        PRODUCT,
        "tensorMatMulAdd(b |> asFragment)(a |> transpose |> asFragment)(c |> asFragment) |> asMatrix",
        Hint(square_tiles),
    ),
    Mutant(
        "interchange without transpose",
        "xs |> map(fun(x => xs |> map(fun(y => f(x, y)))))",
        "xs |> map(fun(y => xs |> map(fun(x => f(x, y)))))",
    ),
    Mutant(
        "a fragment's matrix transposed",
        "f |> asMatrix |> map(fun(r => r |> map(g)))",
        "f |> mapFragment(g) |> asMatrix |> transpose",
    ),
    Mutant(
        "an index for another",
        "generate(fun(i => generate(fun(j => h(i, j)))))",
        "generate(fun(i => generate(fun(j => h(j, i)))))",
    ),
    Mutant("padding on the wrong side", "xs |> padCst(l, r)(c)", "xs |> padCst(r, l)(c)"),
    Mutant("the wrong end repeated", "xs |> padClamp(l, r)", "xs |> padClamp(r, l)"),
    Mutant("the tail kept for the head", "xs |> take(n)", "xs |> drop(m)"),
    Mutant("a drop forgotten", "xs |> drop(n) |> take(n)", "xs |> take(n)"),
    Mutant("arrays joined in the wrong order", "concat(xs)(ys)", "concat(ys)(xs)"),
    Mutant("branches swapped", "select(b)(x)(y)", "select(b)(y)(x)"),
    Mutant("windows that start one early", "xs |> drop(1) |> slide(n, 1)", "xs |> slide(n, 1) |> take(m)"),
    Mutant("gathered in the wrong order", "gather(is)(gather(js)(xs))", "gather(js)(gather(is)(xs))"),
    Mutant("a view taken inside", "xs |> map(gather(is))", "xs |> gather(is)"),
    Mutant("split and joined the other way", "xs |> split(n) |> transpose |> join", "xs"),
    Mutant("a map moved into a scan", "xs |> scan(+, 0) |> map(f)", "xs |> map(f) |> scan(+, 0)"),
    Mutant("the halves of a pair swapped", "mapFst(f)(mapSnd(g)(p))", "mapFst(g)(mapSnd(f)(p))"),
    Mutant("transposes swapped", "xs |> transpose |> map(transpose)", "xs |> map(transpose) |> transpose"),
    Mutant(
        "a factor taken out of a sum with its start",
        "xs |> map(fun(x => x * c)) |> reduceSeq(Local)(fun(acc, y => acc + y), z)",
        f"({FOLD}(fun(acc, y => acc + y), z)) * c",
    ),
)


@contextmanager
def undeclared() -> Iterator[None]:
    """Rules declared inside are forgotten afterwards."""
    before = dict(RULES)
    try:
        yield
    finally:
        RULES.clear()
        RULES.update(before)


def declared(mutant: Mutant) -> Rule:
    with undeclared():
        return rule(f"mutant: {mutant.what}", mutant.left, mutant.right, exact=False)


def hides(mutant: Mutant) -> bool:
    """Whether binders of the instances are to hide each other: where names are what goes wrong."""
    return bool(mutant.functions)


@contextmanager
def seeded(mutant: Mutant) -> Iterator[None]:
    """With the wrong functions, and without them afterwards."""
    with ExitStack() as stack:
        for name, wrong in mutant.functions.items():
            stack.enter_context(patch(name, wrong))
        yield
