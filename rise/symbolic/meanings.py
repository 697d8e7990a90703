"""What each pattern and view means, as a function of indices.

A meaning is given the evaluator, the dependent arguments by name, and the type of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rise.symbolic.values import (
    FALSE,
    TRUE,
    Applied,
    Condition,
    Contract,
    Sequence,
    Unmodelled,
    Value,
    Whole,
    dimensions,
)
from rise.types import Argument, Scalar, Type

if TYPE_CHECKING:
    from rise.symbolic.evaluate import Evaluator

Given = Mapping[str, Argument]
Meaning = Callable[..., Value]

# --- patterns: what takes functions, or loops ------------------------------------------------------------


def _map(e: Evaluator, given: Given, result: Type, f: Value, xs: Sequence) -> Sequence:
    return Sequence(xs.size, lambda i: f(xs.at(i)))


def _reduce(e: Evaluator, given: Given, result: Any, op: Value, z: Value, xs: Sequence) -> Value:
    e.contracts.append(Contract(op, z, result))
    return _reduce_seq(e, given, result, op, z, xs)


def _reduce_seq(e: Evaluator, given: Given, result: Any, f: Value, z: Value, xs: Sequence) -> Value:
    return e.fold(result, xs.size, lambda acc, i: f(acc)(xs.at(i)), z)


def _reduce_loaded(
    e: Evaluator, given: Given, result: Any, load: Value, f: Value, z: Value, xs: Sequence
) -> Value:
    return e.fold(result, xs.size, lambda acc, i: f(acc)(load(xs.at(i))), z)


def _scan(e: Evaluator, given: Given, result: Any, op: Value, z: Value, xs: Sequence) -> Value:
    e.contracts.append(Contract(op, z, result.element, commutative=False))
    return Sequence(xs.size, lambda k: e.fold(result.element, k + 1, lambda a, i: op(a)(xs.at(i)), z))


def _scan_seq(e: Evaluator, given: Given, result: Any, f: Value, z: Value, xs: Sequence) -> Value:
    return Sequence(xs.size, lambda k: e.fold(result.element, k + 1, lambda a, i: f(xs.at(i))(a), z))


def _generate(e: Evaluator, given: Given, result: Any, f: Value) -> Value:
    return Sequence(e.world.size(result.size), f)


def _matrix(e: Evaluator, fragment: Any, at_: Callable[[Whole, Whole], Value]) -> Sequence:
    rows, columns = e.world.size(fragment.rows), e.world.size(fragment.columns)
    return Sequence(rows, lambda i: Sequence(columns, lambda j: at_(i, j)))


def _multiply_add(e: Evaluator, given: Given, result: Any, a: Sequence, b: Sequence, c: Sequence) -> Value:
    operand, sum_ = given["s"], result.element
    inner = e.world.size(result.other)
    whole = isinstance(sum_, Scalar) and not sum_.is_float
    place = " of fragments" if e.rounds and not whole else ""

    def wide(x: Value) -> Value:
        return x if operand == sum_ else Applied(f"cast:{operand}→{sum_}", (x,))

    def element(i: Whole, j: Whole) -> Value:
        def step(acc: Value, k: Whole) -> Value:
            product = Applied(f"mul:{sum_}{place}", (wide(a.at(i).at(k)), wide(b.at(k).at(j))))
            return Applied(f"add:{sum_}{place}", (acc, product))

        return e.fold(sum_, inner, step, c.at(i).at(j))

    return _matrix(e, result, element)


def _scatter(e: Evaluator, given: Given, result: Any, places: Sequence, xs: Sequence) -> Value:
    def element(k: Whole) -> Value:
        there, where = e.world.origin(places, k)
        return _cut(e, there, lambda: xs.at(where), lambda: e.undefined(result.element))

    return Sequence(e.world.size(result.size), element)


def _scatter_by(
    e: Evaluator, given: Given, result: Any, owners: Sequence, places: Sequence, xs: Sequence
) -> Value:
    def element(k: Whole) -> Value:
        owner = owners.at(k)
        return _cut(e, places.at(owner) == k, lambda: xs.at(owner), lambda: e.undefined(result.element))

    return Sequence(e.world.size(result.size), element)


def _prefix(e: Evaluator, given: Given, result: Any, count: Whole, xs: Sequence) -> Value:
    return Sequence(
        e.world.size(result.size),
        lambda i: _cut(e, i < count, lambda: xs.at(i), lambda: e.undefined(result.element)),
    )


def _prefixes(e: Evaluator, given: Given, result: Any, counts: Sequence, xss: Sequence) -> Value:
    def row(i: Whole) -> Value:
        return _prefix(e, given, result.element, counts.at(i), xss.at(i))

    return Sequence(e.world.size(result.size), row)


PATTERNS: dict[str, Meaning] = {
    "map": _map,
    "mapVec": _map,
    "reduce": _reduce,
    "reduceSeq": _reduce_seq,
    "reducePipelined": _reduce_loaded,
    "reduceRoleSplit": _reduce_loaded,
    "scan": _scan,
    "scanSeq": _scan_seq,
    "generate": _generate,
    "let": lambda e, g, r, x, f: f(x),
    "mapFst": lambda e, g, r, f, p: (f(p[0]), p[1]),
    "mapSnd": lambda e, g, r, f, p: (p[0], f(p[1])),
    "mapFragment": lambda e, g, r, f, x: _matrix(e, r, lambda i, j: f(x.at(i).at(j))),
    "zipFragment": lambda e, g, r, x, y: _matrix(e, r, lambda i, j: (x.at(i).at(j), y.at(i).at(j))),
    "generateFragment": lambda e, g, r, x: _matrix(e, r, lambda i, j: x),
    "tensorMatMulAdd": _multiply_add,
    "scatter": _scatter,
    "scatterBy": _scatter_by,
    "prefix": _prefix,
    "prefixes": _prefixes,
    "select": lambda e, g, r, c, x, y: e.chosen(True if c is TRUE else False if c is FALSE else c, x, y),
}

# --- views: what only rearranges -------------------------------------------------------------------------


def _split(e: Evaluator, given: Given, result: Any, xs: Sequence) -> Value:
    size, element = e.world.size(result.size), dimensions(result.element)
    rows = e.world.size(element[0])  # type: ignore[index]  # the result is an array of arrays or vectors
    return Sequence(size, lambda i: Sequence(rows, lambda j: xs.at(i * rows + j)))


def _joined(e: Evaluator, result: Any, xs: Sequence, row: Whole) -> Sequence:
    quotient, remainder = e.world.quotient, e.world.remainder
    return Sequence(e.world.size(result.size), lambda i: xs.at(quotient(i, row)).at(remainder(i, row)))


def _transpose(e: Evaluator, given: Given, result: Any, xs: Sequence) -> Value:
    outer, inner = e.world.size(result.size), e.world.size(result.element.size)
    return Sequence(outer, lambda i: Sequence(inner, lambda j: xs.at(j).at(i)))


def _slide(e: Evaluator, given: Any, result: Any, xs: Sequence) -> Value:
    width, step = e.world.size(given["sz"]), e.world.size(given["sp"])
    return Sequence(e.world.size(result.size), lambda i: Sequence(width, lambda j: xs.at(i * step + j)))


def _drop(e: Evaluator, given: Any, result: Any, xs: Sequence) -> Value:
    n = e.world.size(given["n"])
    return Sequence(e.world.size(result.size), lambda i: xs.at(i + n))


def _concat(e: Evaluator, given: Given, result: Any, xs: Sequence, ys: Sequence) -> Value:
    return Sequence(
        e.world.size(result.size),
        lambda i: _cut(e, i < xs.size, lambda: xs.at(i), lambda: ys.at(i - xs.size)),
    )


def _cut(
    e: Evaluator, condition: Condition, then: Callable[[], Value], otherwise: Callable[[], Value]
) -> Value:
    """A choice by an index; of numbers only the side that is chosen has a value."""
    if isinstance(condition, bool):
        return then() if condition else otherwise()
    return e.chosen(condition, then(), otherwise())


def _pad_constant(e: Evaluator, given: Any, result: Any, z: Value, xs: Sequence) -> Value:
    left = e.world.size(given["l"])

    def element(i: Whole) -> Value:
        return _cut(e, e.world.both(i >= left, i < left + xs.size), lambda: xs.at(i - left), lambda: z)

    return Sequence(e.world.size(result.size), element)


def _pad_clamp(e: Evaluator, given: Any, result: Any, xs: Sequence) -> Value:
    left, last = e.world.size(given["l"]), xs.size - 1

    def element(i: Whole) -> Value:
        k = i - left
        return xs.at(e.world.either(k < 0, 0, e.world.either(k > last, last, k)))

    return Sequence(e.world.size(result.size), element)


def _pad_empty(e: Evaluator, given: Given, result: Any, xs: Sequence) -> Value:
    return Sequence(
        e.world.size(result.size),
        lambda i: _cut(e, i < xs.size, lambda: xs.at(i), lambda: e.undefined(result.element)),
    )


def _reorder(e: Evaluator, given: Any, result: Any, xs: Sequence) -> Value:
    n = e.world.size(given["n"])
    return Sequence(n, lambda i: xs.at(e.world.permuted(given["f"], given["finv"], i, n)))


def _index_to_int(e: Evaluator, given: Given, result: Any, i: Whole) -> Value:
    return Applied("indexToInt", (i,))


def _nat_as_index(e: Evaluator, given: Given, result: Any, x: Value) -> Value:
    if isinstance(x, Applied) and x.symbol == "indexToInt":
        return x.arguments[0]
    raise Unmodelled("an index that is computed")


VIEWS: dict[str, Meaning] = {
    "id": lambda e, g, r, x: x,
    "promoted": lambda e, g, r, x: x,
    "zip": lambda e, g, r, x, y: Sequence(x.size, lambda i: (x.at(i), y.at(i))),
    "unzip": lambda e, g, r, x: (
        Sequence(x.size, lambda i: x.at(i)[0]),
        Sequence(x.size, lambda i: x.at(i)[1]),
    ),
    "fst": lambda e, g, r, p: p[0],
    "snd": lambda e, g, r, p: p[1],
    "pair": lambda e, g, r, x, y: (x, y),
    "split": _split,
    "asVector": _split,
    "join": lambda e, g, r, xs: _joined(e, r, xs, e.world.size(g["m"])),
    "asScalar": lambda e, g, r, xs: _joined(e, r, xs, e.world.size(g["n"])),
    "vectorFromScalar": lambda e, g, r, x: Sequence(e.world.size(r.size), lambda i: x),
    "transpose": _transpose,
    "slide": _slide,
    "take": lambda e, g, r, xs: Sequence(e.world.size(r.size), xs.at),
    "drop": _drop,
    "concat": _concat,
    "padCst": _pad_constant,
    "padClamp": _pad_clamp,
    "padEmpty": _pad_empty,
    "gather": lambda e, g, r, is_, xs: Sequence(is_.size, lambda i: xs.at(is_.at(i))),
    "reorder": _reorder,
    "idx": lambda e, g, r, i, xs: xs.at(i),
    "makeArray": lambda e, g, r, *xs: _array(e, xs),
    "asFragment": lambda e, g, r, x: x,
    "asMatrix": lambda e, g, r, x: x,
    "asColumn": lambda e, g, r, x: x,
    "indexToInt": _index_to_int,
    "indexAsNat": _index_to_int,
    "natAsIndex": _nat_as_index,
}


def _array(e: Evaluator, values: tuple[Value, ...]) -> Sequence:
    def element(i: Whole) -> Value:
        if isinstance(i, int):
            return values[i]
        found = values[-1]
        for place in reversed(range(len(values) - 1)):
            found = e.chosen(i == place, values[place], found)
        return found

    return Sequence(len(values), element)
