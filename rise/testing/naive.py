"""A second interpreter: slow, one element at a time, each primitive transcribed from its definition.

Arrays (vectors, fragments) are lists, pairs are tuples, functions are Python's. It shares nothing with
`rise.interpret` but the layout of inputs, so that `assert_evaluators_agree` finds mistakes of either,
above all of evaluation in batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

from rise.errors import EvaluationError
from rise.expr import Apply, Expr, Identifier, Lambda, Literal, Primitive, inline, spine
from rise.interpret import call, random_inputs
from rise.nat import Nat, constant
from rise.pretty import show
from rise.testing.data import awkward_input
from rise.testing.naive_scalars import SCALARS, converted, fused, is_nan, number
from rise.testing.shrink import Counterexample
from rise.types import Array, Fragment, Index, NatFunction, Pair, Scalar, Type, Vector, arguments

Value = Any  # a number, a list, a tuple, or a function of values
Arguments = Mapping[str, Any]  # dependent arguments by name; sizes as numbers
Environment = Mapping[str, Value]


def value(term: Expr, environment: Environment | None = None) -> Value:
    """What a term without dependent functions denotes; KeyError of the name of a primitive not known."""
    return _value(inline(term), environment or {})


def _value(term: Expr, environment: Environment) -> Value:
    match term:
        case Identifier(name):
            return environment[name]
        case Literal(constant_, type_):
            return number(constant_, type_) if isinstance(type_, Scalar) else int(constant_)
        case Lambda(parameter, body):
            return lambda given: _value(body, {**environment, parameter.name: given})
        case Primitive():
            return _curried(_denotation(term), _arity(term), ())
        case Apply(function, argument):
            chosen = _chosen(term, environment)
            if chosen is not None:
                return _value(chosen, environment)
            return _value(function, environment)(_value(argument, environment))
        case _:
            raise TypeError(f"the plain interpreter has no {type(term).__name__}")


def _chosen(term: Apply, environment: Environment) -> Expr | None:
    """What a `select`, `and`, `or` comes to: the operand that is not taken has no value."""
    if term.head not in (("select", 3), ("and", 2), ("or", 2)):
        return None
    condition, *branches = (a.argument for a in spine(term)[1])
    holds = _value(condition, environment)
    if term.head == ("select", 3):
        return branches[0] if holds else branches[1]
    return branches[0] if holds == (term.head == ("and", 2)) else condition


def _arity(primitive: Primitive) -> int:
    return len(arguments(primitive.declaration.scheme.type)[0])


def _curried(function: Callable[..., Value], missing: int, given: tuple[Value, ...]) -> Value:
    return function(*given) if missing == 0 else lambda one: _curried(function, missing - 1, (*given, one))


def _denotation(primitive: Primitive) -> Callable[..., Value]:
    name, parameters = primitive.name, primitive.declaration.scheme.parameters
    given = {
        p.name: a.value if isinstance(a, Nat) else a
        for p, a in zip(parameters, primitive.arguments, strict=True)
    }
    if name in SCALARS:
        return lambda *operands: SCALARS[name](given["t"], *operands)
    lowers = primitive.declaration.lowers
    pattern = PATTERNS[name if name in PATTERNS else lowers or name]
    return lambda *operands: pattern(given, *operands)


# --- the patterns: dependent arguments, then values ---------------------------------------------------


def _identity(_: Arguments, x: Value) -> Value:
    return x


def _fold(_: Arguments, f: Value, start: Value, xs: list[Value]) -> Value:
    return reduce(lambda acc, x: f(acc)(x), xs, start)


def _windows(a: Arguments, xs: list[Value]) -> list[Value]:
    return [[xs[i * a["sp"] + j] for j in range(a["sz"])] for i in range(a["n"] + 1)]


def _scattered(a: Arguments, places: list[int], xs: list[Value]) -> list[Value]:
    return [xs[places.index(i)] for i in range(a["m"])]


def _owned(_: Arguments, owners: list[int], places: list[int], xs: list[Value]) -> list[Value]:
    """Of operands that leave nothing undefined."""
    return [next(xs[j] for j in [owner] if places[j] == i) for i, owner in enumerate(owners)]


def _reordered(a: Arguments, xs: list[Value]) -> list[Value]:
    return [xs[_at(a["f"], i)] for i in range(a["n"])]


def _at(function: NatFunction, index: int) -> int:
    return function(constant(index)).value or 0


def _pieces(a: Arguments, xs: list[Value]) -> list[Value]:
    return [[xs[i * a["n"] + j] for j in range(a["n"])] for i in range(a["m"])]


def _product(a: Arguments, x: list[Value], y: list[Value], z: list[Value]) -> list[Value]:
    """Summed in a wide type and rounded once: the definition, where all sums are exact."""
    wide = Scalar("f64" if a["t"].is_float else "i64")

    def element(i: int, j: int) -> Value:
        total = converted(a["t"], wide, z[i][j])
        for p in range(a["k"]):
            left, right = (converted(a["s"], wide, v) for v in (x[i][p], y[p][j]))
            total = fused(wide, left, right, total)
        return converted(wide, a["t"], total) if a["t"].is_float else number(total, a["t"])

    return [[element(i, j) for j in range(a["n"])] for i in range(a["m"])]


PATTERNS: Mapping[str, Callable[..., Value]] = {
    # computation
    "map": lambda _, f, xs: [f(x) for x in xs],
    "reduce": _fold,
    "reduceSeq": _fold,
    "reducePipelined": lambda _, load, f, z, xs: _fold(_, f, z, [load(x) for x in xs]),
    "reduceRoleSplit": lambda _, load, f, z, xs: _fold(_, f, z, [load(x) for x in xs]),
    "scan": lambda _, f, z, xs: list(accumulate(xs, lambda acc, x: f(acc)(x), initial=z))[1:],
    "scanSeq": lambda _, f, z, xs: list(accumulate(xs, lambda acc, x: f(x)(acc), initial=z))[1:],
    "generate": lambda a, f: [f(i) for i in range(a["n"])],
    "makeArray": lambda _, *xs: list(xs),
    "let": lambda _, x, f: f(x),
    "select": lambda _, holds, x, y: x if holds else y,
    "and": lambda _, x, y: x and y,
    "or": lambda _, x, y: x or y,
    "not": lambda _, x: not x,
    "cast": lambda a, x: converted(a["s"], a["t"], x),
    # pairs
    "pair": lambda _, x, y: (x, y),
    "fst": lambda _, p: p[0],
    "snd": lambda _, p: p[1],
    "mapFst": lambda _, f, p: (f(p[0]), p[1]),
    "mapSnd": lambda _, f, p: (p[0], f(p[1])),
    "zip": lambda _, xs, ys: list(zip(xs, ys, strict=True)),
    "unzip": lambda _, ps: ([x for x, _ in ps], [y for _, y in ps]),
    # shape
    "split": _pieces,
    "join": lambda _, rows: [x for row in rows for x in row],
    "transpose": lambda _, rows: [list(column) for column in zip(*rows, strict=True)],
    "slide": _windows,
    "take": lambda a, xs: xs[: a["n"]],
    "drop": lambda a, xs: xs[a["n"] :],
    "concat": lambda _, xs, ys: xs + ys,
    "padCst": lambda a, x, xs: [x] * a["l"] + xs + [x] * a["r"],
    "padClamp": lambda a, xs: [xs[0]] * a["l"] + xs + [xs[-1]] * a["r"],
    "reorder": _reordered,
    # indices
    "gather": lambda _, places, xs: [xs[i] for i in places],
    "scatter": _scattered,
    "scatterBy": _owned,
    "prefix": lambda _, count, xs: [next(x for _ in [x][: count - i]) for i, x in enumerate(xs)],
    "prefixes": lambda _, counts, xss: [
        [next(x for _ in [x][: count - i]) for i, x in enumerate(xs)]
        for count, xs in zip(counts, xss, strict=True)
    ],
    "idx": lambda _, i, xs: xs[i],
    "indexToInt": lambda _, i: i,
    "indexAsNat": lambda _, i: i,
    "natAsIndex": lambda _, i: i,
    # vectors, fragments
    "asVector": _pieces,
    "asVectorAligned": _pieces,
    "asScalar": lambda _, vectors: [x for vector in vectors for x in vector],
    "vectorFromScalar": lambda a, x: [x] * a["n"],
    "mapVec": lambda _, f, xs: [f(x) for x in xs],
    "generateFragment": lambda a, x: [[x] * a["n"] for _ in range(a["m"])],
    "reduceRows": lambda a, f, z, rows: [[_fold(a, f, z, row)] for row in rows],
    "repeatColumn": lambda a, rows: [row * a["n"] for row in rows],
    "asOperands": lambda a, rows: [
        [row[j * a["k"] : (j + 1) * a["k"]] for row in rows] for j in range(a["c"])
    ],
    "mapFragment": lambda _, f, rows: [[f(x) for x in row] for row in rows],
    "zipFragment": lambda _, xs, ys: [list(zip(r, s, strict=True)) for r, s in zip(xs, ys, strict=True)],
    "tensorMatMulAdd": _product,
    # where a value lives is no part of it
    **dict.fromkeys(
        "id toMem copyThreads copyAsync bulkCopy bulkCopyRoleSplit bulkStore skewed inTurn"
        " asFragment asMatrix asColumn".split(),
        _identity,
    ),
}


# --- against the interpreter --------------------------------------------------------------------------


def from_plain(type_: Type, plain: Any, at: tuple[int, ...] = ()) -> Value:
    """An input or a result of `rise.interpret` as a value: an array of pairs is a pair of arrays there."""
    match type_:
        case Array(size, element) | Vector(size, element):
            return [from_plain(element, plain, (*at, i)) for i in range(size.value or 0)]
        case Fragment(rows, columns, _, element, _):
            return from_plain(Array(rows, Array(columns, element)), plain, at)
        case Pair(first, second):
            return from_plain(first, plain[0], at), from_plain(second, plain[1], at)
        case Scalar() if type_.is_float:
            return plain[at] if at else plain
        case Scalar() | Index():
            one = plain[at] if at else plain
            return bool(one) if type_ == Scalar("bool") else int(one)
        case _:
            raise TypeError(f"no data: {type_}")


def first_difference(found: Value, expected: Value, place: str = "result") -> str | None:
    """Where two values differ first, with both; NaN is equal to NaN, 0.0 to -0.0."""
    if isinstance(expected, list | tuple):
        if not isinstance(found, list | tuple) or len(found) != len(expected):
            return f"{place}: {found} and {expected}"
        parts: Sequence[tuple[Value, Value]] = list(zip(found, expected, strict=True))
        differences = (first_difference(a, b, f"{place}[{i}]") for i, (a, b) in enumerate(parts))
        return next((d for d in differences if d), None)
    if found == expected or (is_nan(found) and is_nan(expected)):
        return None
    return f"{place}: {found} and {expected}"


def disagreement(program: Expr, inputs: Sequence[Any]) -> str | None:
    """Where the interpreter and this one differ on a program and inputs; None where they agree.

    They agree as well where both refuse to evaluate the program.
    """
    import numpy as np

    parameters, result = arguments(program.type)

    def plainly() -> Value:
        function = value(program)
        for type_, given in zip(parameters, inputs, strict=True):
            function = function(from_plain(type_, given))
        return function

    with np.errstate(all="ignore"):
        expected = _outcome(plainly)
    found = _outcome(lambda: from_plain(result, call(program, *inputs)))
    if isinstance(found, Exception) or isinstance(expected, Exception):
        both = isinstance(found, EvaluationError) and isinstance(expected, EvaluationError)
        return None if both else f"result: {found!r} and {expected!r}"
    return first_difference(found, expected)


def _outcome(compute: Callable[[], Value]) -> Value:
    """The value, or what was raised instead."""
    try:
        return compute()
    except Exception as problem:
        return problem


def assert_evaluators_agree(program: Expr, *, seeds: Sequence[int] = (0, 1), awkward: bool = True) -> None:
    """The interpreter, which evaluates in batches, and this one compute the same, bit by bit.

    awkward: on the numbers that go wrong, such as NaN; else on small whole numbers
    """

    def found(term: Expr, seed: int) -> str | None:
        types, _ = arguments(term.type)
        if awkward:
            return disagreement(term, [awkward_input(t, seed + i) for i, t in enumerate(types)])
        return disagreement(term, random_inputs([("x", t) for t in types], seed, exact=True))

    for seed in seeds:
        different = found(program, seed)
        if different is not None:
            message = f"{different} differ (seed {seed})\n  {show(program, annotate=True)}"
            raise Counterexample(message, program, lambda t: any(found(t, s) for s in seeds), retype=True)
