"""Symbolic evaluation agrees with the interpreter, and no lemma proves what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from rise.check.program import check_expression, check_text
from rise.check.specialise import inputs_of, instantiated
from rise.constraint import Constraint
from rise.errors import RiseError, UsageError
from rise.expr import Definition, Expr, Primitive, subterms
from rise.interpret import call, random_inputs
from rise.nat import constant
from rise.normal import data_flow
from rise.pretty import show
from rise.symbolic import Open, Problem, Proved, Refuted, decide, examined, prove
from rise.symbolic.evaluate import Evaluator
from rise.symbolic.interpretation import Interpretation, Undefined
from rise.symbolic.values import Applied, Sequence, Unmodelled, Value
from rise.symbolic.worlds import Numbers, Outside
from rise.testing import every_primitive, high_level, program
from rise.testing.choose import Drawn
from rise.types import F32, I32

PROGRAMS = 400
LARGE = 2**10  # numbers that no type of a program rounds
MET = (
    "map", "zip", "split", "join", "transpose", "slide", "padCst", "padClamp", "concat", "take", "drop",
    "reduce", "scan", "generate", "gather", "select",
)  # fmt: skip


def part_of(inputs: Mapping[str, Any], symbol: str) -> Any:
    """The input, or the member of a pair of inputs, that an opaque symbol stands for."""
    name, *members = symbol.split(".")
    value = inputs[name]
    for member in members:
        value = value[int(member) - 1]
    return np.asarray(value)


class GivenIndices(Numbers):
    """Inputs in the place of opaque indices."""

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        super().__init__({})
        self.inputs = inputs

    def index(self, name: str, arguments: tuple[Any, ...], below: int, given: bool) -> int:
        return int(part_of(self.inputs, name)[arguments])


class Given(Interpretation):
    """Inputs in the place of opaque elements."""

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        super().__init__({}, {})
        self.inputs = inputs

    def _applied(self, symbol: str, arguments: tuple[Any, ...], element: Applied) -> Any:
        if symbol.partition(".")[0] not in self.inputs:
            return super()._applied(symbol, arguments, element)
        return Fraction(float(part_of(self.inputs, symbol)[arguments]))

    def _drawn(self, text: str) -> int:
        raise Unmodelled(text)


def elements(value: Value) -> Iterator[Value]:
    """All of a value, in the order in which `flat` gives those of a result."""
    match value:
        case Sequence(int() as size):
            parts = [list(elements(value.at(i))) for i in range(size)]
            yield from (x for part in parts for x in part)
        case tuple():
            for part in value:
                yield from elements(part)
        case _:
            yield value


def flat(result: Any, value: Value) -> Iterator[float]:
    """The numbers of a result in the order of `elements`: arrays of pairs are pairs of arrays there."""
    match value:
        case Sequence(int() as size):
            for i in range(size):
                yield from flat(_row(result, i), value.at(i))
        case tuple():
            for part, of in zip(result, value, strict=True):
                yield from flat(part, of)
        case _:
            yield float(np.asarray(result))


def _row(result: Any, i: int) -> Any:
    return tuple(_row(part, i) for part in result) if isinstance(result, tuple) else result[i]


def disagreement(term: Expr, seed: int) -> str | int:
    """Where an element differs, or how many were compared. Raises Unmodelled."""
    parameters = inputs_of(term)
    inputs = random_inputs(parameters, seed, exact=True)
    named = dict(zip((name for name, _ in parameters), inputs, strict=True))
    evaluator, given = Evaluator(GivenIndices(named)), Given(named)
    value = evaluator.value(term, {})
    for name, type_ in parameters:
        value = value(evaluator.opaque(name, type_))
    result = call(term, *inputs)
    compared = 0
    for element, expected in zip(elements(value), flat(result, value), strict=True):
        try:
            found = element if isinstance(element, int) else given.number(element)
        except Undefined:
            continue
        if Fraction(found).denominator != 1 or abs(found) > LARGE or not np.isfinite(expected):
            continue
        compared += 1
        if found != expected:
            return f"{found}, the interpreter computes {expected}"
    return compared


def test_it_agrees_with_the_interpreter_on_random_programs() -> None:
    seen: Counter[str] = Counter()
    for seed in range(PROGRAMS):
        names = every_primitive() if seed % 2 else high_level()
        term = data_flow(program(Drawn(seed), primitives=names, scalars=(F32, I32)))
        try:
            found = disagreement(term, seed)
        except (Unmodelled, Outside, RiseError, IndexError):
            continue
        assert isinstance(found, int), f"seed {seed}: {found}\n{show(term)}"
        if found:
            seen.update({part.name for part in subterms(term) if isinstance(part, Primitive)})
            seen["programs"] += 1
    assert seen["programs"] > PROGRAMS / 2
    views = (
        "map",
        "zip",
        "split",
        "join",
        "transpose",
        "slide",
        "padCst",
        "padClamp",
        "concat",
        "take",
        "drop",
    )
    rarely = {name for name in (*views, "reduce", "scan", "generate", "gather", "select") if seen[name] < 3}
    assert not rarely, seen


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("transpose", lambda e, g, r, xs: xs),
        ("drop", lambda e, g, r, xs: Sequence(e.world.size(r.size), xs.at)),
        ("zip", lambda e, g, r, x, y: Sequence(x.size, lambda i: (x.at(i), y.at(x.size - 1 - i)))),
        ("join", lambda e, g, r, xs: Sequence(e.world.size(r.size), lambda i: xs.at(0).at(0))),
    ],
)
def test_a_wrong_meaning_is_noticed(name: str, wrong: Any) -> None:
    with (
        patch.dict("rise.symbolic.meanings.VIEWS", {name: wrong}),
        pytest.raises((AssertionError, KeyError)),
    ):
        test_it_agrees_with_the_interpreter_on_random_programs()


# --- lemmas -----------------------------------------------------------------------------------------------

# what each would prove if one of its conditions were forgotten
TRAPS = {
    "two inputs of one type": (
        "def f(n: Nat)(x: f32, y: f32, xs: n.f32, ys: n.f32) = zip(xs)(ys) |> map((a, b) => a * x - b * y)",
        "def g(n: Nat)(x: f32, y: f32, xs: n.f32, ys: n.f32) = zip(ys)(xs) |> map((a, b) => a * x - b * y)",
    ),
    "a view of a part of the accumulator": (
        "def f(n: Nat)(xs: n.f32, z: 3.f32, w: 2.f32) = "
        "xs |> reduceSeq((acc, x) => acc |> map(a => a + idx(2)(acc)), z) |> take(1)",
        "def g(n: Nat)(xs: n.f32, z: 3.f32, w: 2.f32) = "
        "xs |> reduceSeq((acc, x) => acc |> map(a => a + idx(2)(acc)), concat(z |> take(1))(w)) |> take(1)",
    ),
    "a loop in a loop that starts anew": (
        "def f(n: Nat, m: Nat)(xs: n.m.f32, z: f32) = "
        "xs |> reduceSeq((a, r) => r |> reduceSeq((b, x) => b * x - a, a), z)",
        "def g(n: Nat, m: Nat)(xs: n.m.f32, z: f32) = xs |> join |> reduceSeq((b, x) => b * x - b, z)",
    ),
    "members of a pair that depend on each other": (
        "def f(n: Nat, m: Nat)(xs: n.m.f32, z: f32) = "
        "xs |> reduceSeq((a, r) => r |> reduceSeq((b, x) => (snd(b), fst(b) - x), a)"
        " |> (c => (fst(c), fst(a))), (z, z)) |> fst",
        "def g(n: Nat, m: Nat)(xs: n.m.f32, z: f32) = "
        "xs |> join |> reduceSeq((b, x) => (snd(b), fst(b) - x), (z, z)) |> fst",
    ),
    "one step more": (
        "def f(n: Nat, m: Nat)(xs: n.f32, ys: m.f32, z: f32) = "
        "concat(xs)(ys) |> reduceSeq((a, x) => a - x, z)",
        "def g(n: Nat, m: Nat)(xs: n.f32, ys: m.f32, z: f32) = "
        "ys |> reduceSeq((a, x) => a - x, xs |> reduceSeq((a, x) => x - a, z))",
    ),
    "a sum without its start": (
        "def f(n: Nat, m: Nat)(xs: n.m.f32) = xs |> join |> reduceSeq((a, x) => a + x, 1)",
        "def g(n: Nat, m: Nat)(xs: n.m.f32) = "
        "xs |> map(reduceSeq((a, x) => a + x, 1)) |> reduceSeq((a, x) => a + x, 0)",
    ),
    "a difference reordered": (
        "def f(n: Nat, m: Nat)(xs: n.m.f32) = "
        "xs |> map(reduceSeq((a, x) => a - x, 0)) |> reduceSeq((a, x) => a - x, 0)",
        "def g(n: Nat, m: Nat)(xs: n.m.f32) = "
        "xs |> transpose |> map(reduceSeq((a, x) => a - x, 0)) |> reduceSeq((a, x) => x - a, 0)",
    ),
    "the diagonal": (
        "def f(n: Nat, m: Nat)(xs: n.n.f32) = xs |> map(reduce(+, 0)) |> reduce(+, 0)",
        "def g(n: Nat, m: Nat)(xs: n.n.f32) = zip(xs)(xs |> transpose)"
        " |> map((r, c) => zip(r)(c) |> map((x, y) => x * y) |> reduce(+, 0)) |> reduce(+, 0)",
    ),
}


def both(texts: tuple[str, str]) -> Problem:
    """The definitions `f` and `g`."""
    return of_definitions(check_text(texts[0]).definitions["f"], check_text(texts[1]).definitions["g"])


def of_definitions(first: Definition, second: Definition) -> Problem:
    return Problem(
        instantiated(first, {}), instantiated(second, {}), (*first.constraints, *second.constraints)
    )


@pytest.mark.parametrize("name", TRAPS)
def test_no_lemma_proves_what_is_wrong(name: str) -> None:
    problem = both(TRAPS[name])
    assert isinstance(prove(problem), Open)
    assert isinstance(examined(problem), Refuted)


RIGHT = {
    "split": (
        "xs |> join |> reduceSeq((a, x) => a - x, z)",
        "xs |> reduceSeq((a, r) => r |> reduceSeq((b, x) => b - x, a), z)",
    ),
    "pointwise": (
        "xs |> transpose |> map(reduceSeq((a, x) => a - x, z))",
        "xs |> reduceSeq((acc, r) => zip(acc)(r) |> map((a, x) => a - x), generate((i: Idx[m]) => z))",
    ),
    "reordered": ("xs |> join |> reduce(+, 0)", "xs |> transpose |> map(reduce(+, 0)) |> reduce(+, 0)"),
    "distributed": (
        "xs |> join |> map(x => x * z) |> reduce(+, 0)",
        "(xs |> map(reduce(+, 0)) |> reduce(+, 0)) * z",
    ),
    "scans": (
        "xs |> map(scan(+, 0)) |> transpose",
        "xs |> transpose |> scanSeq((r, acc) => zip(r)(acc) |> map((x, a) => a + x),"
        " generate((i: Idx[n]) => 0))",
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_each_lemma_proves_something(name: str) -> None:
    header = "(n: Nat, m: Nat)(xs: n.m.f32, z: f32) = "
    first, second = (f"def {f}{header}{text}" for f, text in zip("fg", RIGHT[name], strict=True))
    found = decide(both((first, second)))
    assert isinstance(found, Proved), found
    assert found.reordered == (name in ("reordered", "distributed"))


def test_what_asks_for_impossible_sizes_is_not_proved() -> None:
    term = check_expression("(xs: 4.f32) => xs")
    assert isinstance(prove(Problem(term, term)), Proved)
    found = prove(Problem(term, term, (Constraint(constant(-1)),)))
    assert isinstance(found, Open)
    assert "no sizes" in found.reason


def test_one_rounding_is_not_several() -> None:
    """The product of fragments of floats rounds at the end."""
    fold = (
        "def f(k: Nat)(a: 16.k.f16, b: k.16.f16) = a |> map(r => b |> transpose |> map(c => "
        "zip(r)(c) |> reduceSeq((s, (x, y)) => s + f32(x) * f32(y), 0)))"
    )
    product = (
        "def g(k: Nat)(a: 16.k.f16, b: k.16.f16): 16.16.f32 = "
        "tensorMatMulAdd(asFragment(a))(asFragment(b))(generateFragment(0.0)) |> asMatrix"
    )
    found = prove(both((fold, product)))
    assert isinstance(found, Proved)
    assert found.reordered


def test_the_missing_solver_is_said() -> None:
    term = check_expression("(xs: 4.f32) => xs |> map(x => x)")
    with patch.dict("sys.modules", {"z3": None}), pytest.raises(UsageError) as caught:
        prove(Problem(term, term))
    assert caught.value.code == "R0517"
    assert "rise-lang[proofs]" in str(caught.value.hint)
