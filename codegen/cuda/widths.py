"""The widths of the integers with which a kernel computes its indices.

By C's rules, every operator of a printed index has a type: the registers `threadIdx.x` and `blockIdx.x` are
32-bit unsigned, variables and loop indices have the kernel's index type, `int` or `long long`. Interval
arithmetic bounds the values of each operator. The bounds determine the index type that a kernel needs, the
conversions of registers, and the sizes that a kernel with run-time sizes supports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from codegen.ir import imperative as i
from codegen.ir.launch import Launch
from codegen.ir.sizes import Binary, Grouped, Literal, Name, Negative, Tree, tree
from codegen.passes.analysis.walk import own_nats, rebuild_own
from codegen.passes.workers import worker
from rise.frozen import filled_at_once
from rise.nat import Nat, NatVariable, nat
from rise.types import I32, Array, Fragment, Index, Scalar, Vector

# the range of sizes (`rise.check.specialise` refuses larger ones)
LARGEST_SIZE = 2**40
I64 = Scalar("i64")


@filled_at_once
@dataclass(frozen=True, slots=True)
class Interval:
    """The integers from `low` to `high`, inclusive."""

    low: int
    high: int

    def within(self, other: Interval) -> bool:
        return other.low <= self.low and self.high <= other.high


INT = Interval(-(2**31), 2**31 - 1)
LONG = Interval(-(2**63), 2**63 - 1)
UNSIGNED = Interval(0, 2**32 - 1)
HOLDS = {I32: INT, I64: LONG}
C_NAMES = {I32: "int", I64: "long long"}

Ranges = Mapping[str, Interval]


# --- ranges of variables --------------------------------------------------------------------------------


def at_launch(function: i.Function, launch: Launch, sizes: Mapping[str, int] | None = None) -> Ranges:
    """The ranges of the registers and of a kernel's sizes: the given numbers, or all possible sizes."""
    if sizes is None:
        given: dict[str, Interval] = {
            v.name: Interval(0, LARGEST_SIZE) for v in function.inputs if v.type in (I32, I64)
        }
    else:
        given = {name: Interval(value, value) for name, value in sizes.items()}
    for register, extents in (("threadIdx", launch.block), ("blockIdx", launch.grid)):
        for axis, extent in zip("xyz", extents, strict=True):
            most = INT.high if axis == "x" else 2**16
            count = min(interval(tree(nat(extent)), given).high, most) if sizes is None else None
            last = (count if count is not None else interval(tree(nat(extent)), given).high) - 1
            given[f"{register}.{axis}"] = Interval(0, max(last, 0))
    return given


def inside(command: i.Command, ranges: Ranges) -> Ranges:
    """The ranges that hold in the body of a command."""
    match command:
        case i.For(index, count):
            new = {c.name: _below(c.modulus, ranges) for c in command.counters}
            return {**ranges, **new, index: _below(count, ranges)}
        case i.ParallelFor(_, _, index, count):
            return {**ranges, index: _below(count, ranges)}
        case i.ForFragment(_, index):
            return {**ranges, index: Interval(0, 2**10)}
        case i.When(value, bound):
            return _where_less(value, bound, ranges)
        case i.Define(name, value):
            return {**ranges, name: interval(tree(value), ranges)}
        case i.New(_, name, type_, body) if not isinstance(type_, Array | Vector | Fragment):
            return {**ranges, name: _of_scalar(name, type_, body, ranges)}
        case _:
            return ranges


def _below(count: Nat, ranges: Ranges) -> Interval:
    return Interval(0, max(0, interval(tree(count), ranges).high - 1))


def _where_less(value: Nat, bound: Nat, ranges: Ranges) -> Ranges:
    """Given c*v + rest < bound, v is at most (bound - 1 - min(rest)) / c."""
    most = interval(tree(bound), ranges).high - 1
    least = interval(tree(value), ranges).low
    found = dict(ranges)
    for monomial, step in value.terms:
        match monomial:
            case ((NatVariable(name), 1),) if name in ranges and isinstance(step, int) and step > 0:
                low, high = ranges[name].low, ranges[name].high
                found[name] = Interval(low, max(low, min(high, low + (most - least) // step)))
    return found


def _of_scalar(name: str, type_: object, body: i.Command, ranges: Ranges) -> Interval:
    match type_, body:
        case Index(size), _:
            return _below(size, ranges)
        case _, i.Sequence((i.Assign(i.Access(first), value), *_)) if first == name:
            return _of_expression(value, ranges) or INT
        case _:
            return INT


def _of_expression(value: i.Expression, ranges: Ranges) -> Interval | None:
    """The interval of an expression over indices; None if it reads memory or computes anything else."""
    match value:
        case i.Natural(known, _):
            return interval(tree(known), ranges)
        case i.Number(int() as number, _):
            return Interval(number, number)
        case i.Operator("min" | "max" as name, (left, right)):
            one, other = _of_expression(left, ranges), _of_expression(right, ranges)
            return _combined(name, one or INT, other or INT)
        case _:
            return None


# --- ranges of expressions ------------------------------------------------------------------------------


def interval(expression: Tree, ranges: Ranges) -> Interval:
    match expression:
        case Name(name):
            return ranges.get(name, INT)
        case Literal(value):
            return Interval(value, value)
        case Grouped(inner):
            return interval(inner, ranges)
        case Negative(inner):
            found = interval(inner, ranges)
            return Interval(-found.high, -found.low)
        case Binary(operator, left, right):
            return _combined(operator, interval(left, ranges), interval(right, ranges))


def _combined(operator: str, a: Interval, b: Interval) -> Interval:
    match operator:
        case "+":
            return Interval(a.low + b.low, a.high + b.high)
        case "-":
            return Interval(a.low - b.high, a.high - b.low)
        case "min":
            return Interval(min(a.low, b.low), min(a.high, b.high))
        case "max":
            return Interval(max(a.low, b.low), max(a.high, b.high))
        case "<":
            return Interval(0, 1)
        case "*":
            ends = [x * y for x, y in product((a.low, a.high), (b.low, b.high))]
        case "/":
            divisors = (max(1, b.low), max(1, b.high))
            ends = [end for x, y in product((a.low, a.high), divisors) for end in (x // y, -(-x // y))]
        case _:
            if a.low >= 0 and a.high < b.low:
                return a
            most = max(0, min(b.high - 1, max(a.high, -a.low)))
            return Interval(0 if a.low >= 0 else -most, most)
    return Interval(min(ends), max(ends))


# --- types ----------------------------------------------------------------------------------------------


def widened(value: Nat, ranges: Ranges, indices: Scalar) -> Tree:
    """A size, with registers converted to the index type wherever C would use too few bits, or would compare
    or divide a negative number as unsigned."""
    return _Typer(ranges, indices).typed(tree(value))[0]


def comparison(value: Nat, bound: Nat, ranges: Ranges, indices: Scalar) -> Tree:
    """value < bound, in the same way."""
    return _Typer(ranges, indices).typed(Binary("<", tree(value), tree(bound)))[0]


@filled_at_once
@dataclass(frozen=True, slots=True)
class _Typer:
    """Expressions with their C types `int`, `unsigned` or `long long`."""

    ranges: Ranges
    indices: Scalar

    def typed(self, expression: Tree) -> tuple[Tree, str]:
        match expression:
            case Name(name):
                return expression, "unsigned" if _is_register(name) else C_NAMES[self.indices]
            case Literal(value):
                return expression, "int" if value <= INT.high else "long long"
            case Grouped(inner):
                new, type_ = self.typed(inner)
                return Grouped(new), type_
            case Negative(inner):
                new, type_ = self.typed(inner)
                if type_ == "unsigned" and self._is_cut(interval(expression, self.ranges)):
                    new, type_ = self._converted(new), C_NAMES[self.indices]
                return Negative(new), type_
            case Binary(operator, left, right):
                return self._binary(expression, operator, self.typed(left), self.typed(right))

    def _binary(
        self, whole: Binary, operator: str, left: tuple[Tree, str], right: tuple[Tree, str]
    ) -> tuple[Tree, str]:
        (one, first), (other, second) = left, right
        types = {first, second}
        if "long long" in types:  # C converts the 32-bit unsigned operand without loss
            return Binary(operator, one, other), "long long"
        if "unsigned" not in types:
            return Binary(operator, one, other), "int"
        results = (interval(part, self.ranges) for part in (whole, whole.left, whole.right))
        if not any(map(self._is_cut, results)):
            return Binary(operator, one, other), "unsigned"
        if self.indices == I64 and first == "unsigned":  # converting one operand is enough
            return Binary(operator, self._converted(one), other), "long long"
        return Binary(operator, self._converted(one), self._converted(other)), C_NAMES[self.indices]

    def _is_cut(self, values: Interval) -> bool:
        """Whether 32 unsigned bits are too few. Kernels that count in `int` have no larger values."""
        return values.low < 0 or (self.indices == I64 and values.high > UNSIGNED.high)

    def _converted(self, expression: Tree) -> Tree:
        match expression:
            case Name(name):
                return replace(expression, cast=C_NAMES[self.indices]) if _is_register(name) else expression
            case Literal():
                return expression
            case Grouped(inner) | Negative(inner):
                return replace(expression, inner=self._converted(inner))
            case Binary(_, left, right):
                return replace(expression, left=self._converted(left), right=self._converted(right))


def _is_register(name: str) -> bool:
    return "." in name


# --- what a kernel needs --------------------------------------------------------------------------------


def spans(function: i.Function, launch: Launch, sizes: Mapping[str, int] | None = None) -> Iterator[Interval]:
    """The intervals of each operator in each index, guard and loop."""
    yield from _spans(function.body, at_launch(function, launch, sizes), launch)


def _spans(command: i.Command, ranges: Ranges, launch: Launch) -> Iterator[Interval]:
    for value in dict.fromkeys(own_nats(rebuild_own(command, i.Tile, _printed))):
        yield from parts(tree(value), ranges)
    if isinstance(command, i.ParallelFor):
        yield from _turns(command, ranges, launch)
    within = inside(command, ranges)
    for part in i.inner(command):
        yield from _spans(part, within, launch)


def _printed(tile: i.Tile) -> i.Tile:
    """The tile without the indices of its elements, which only passes use."""
    return replace(tile, indices=(), extents=())


def _turns(loop: i.ParallelFor, ranges: Ranges, launch: Launch) -> Iterator[Interval]:
    """The workers' numbers, and the final index, which exceeds the bound by up to the number of workers."""
    workers = tree(nat(launch.workers(loop.level, loop.dimension)))
    yield from parts(tree(worker(loop.level, loop.dimension, launch)), ranges)
    yield from parts(workers, ranges)
    yield _combined("+", _below(loop.count, ranges), interval(workers, ranges))


def parts(expression: Tree, ranges: Ranges) -> Iterator[Interval]:
    yield interval(expression, ranges)
    match expression:
        case Grouped(inner) | Negative(inner):
            yield from parts(inner, ranges)
        case Binary(_, left, right):
            yield from parts(left, ranges)
            yield from parts(right, ranges)
