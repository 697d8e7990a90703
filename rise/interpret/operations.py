"""Denotations of the scalar primitives: C's arithmetic, each operation rounded to its type."""

from __future__ import annotations

from collections.abc import Callable

from rise.interpret.inputs import dtype_of, stored_as
from rise.interpret.instance import Call
from rise.interpret.lazily import np
from rise.interpret.value import (
    Data,
    Leaf,
    Numbers,
    Scope,
    Tree,
    aligned,
    each,
    leaf_of,
    pointwise,
    together,
    trailing,
)
from rise.types import F32, Scalar

Operation = Callable[..., Data]
Thunk = Callable[[Scope], Data]
Accumulate = Callable[[Numbers, int], Numbers]

# the type in which a function is computed before its result is rounded once
WIDER = {"f16": "f32", "bf16": "f32", "f32": "f64"}


def wide(scalar: Scalar) -> Scalar:
    return Scalar(WIDER.get(scalar.name, "f64"))


def lazy(*positions: int) -> Callable[[Operation], Operation]:
    """Marks parameters that a denotation gets as functions of the scope: it may restrict it."""

    def mark(denotation: Operation) -> Operation:
        denotation.lazy = positions  # type: ignore[attr-defined]  # read by the evaluator
        return denotation

    return mark


# --- operations that NumPy has --------------------------------------------------------------------


def unary(name: str) -> Operation:
    return lambda call, x: _apply(call, name, x)


def whole(name: str) -> Operation:
    """Rounding to a whole number, which an integer is already."""
    return lambda call, x: _apply(call, name, x) if call.scalar().is_float else leaf_of(x)


def binary(name: str, commutative: bool = False) -> Operation:
    """An operation of NumPy. A fold with it runs inside NumPy, in order, rounding each step."""

    def denotation(call: Call, left: Data, right: Data) -> Leaf:
        return _apply(call, name, left, right)

    def accumulate(array: Numbers, axis: int) -> Numbers:
        return getattr(np, name).accumulate(array, axis=axis, dtype=array.dtype)

    return _accumulating(denotation, accumulate, commutative)


def _accumulating(denotation: Operation, accumulate: Accumulate, commutative: bool) -> Operation:
    """Tells folds how to run with the operation, and whether both orders give the same bits."""
    denotation.accumulate = accumulate  # type: ignore[attr-defined]  # read by the evaluator
    denotation.commutative = commutative  # type: ignore[attr-defined]
    return denotation


def extremum(name: str) -> Operation:
    """fmin or fmax, with -0 below +0 as on the GPU; NumPy takes either of them, as it happens."""
    wanted = name == "fmax"

    def denotation(call: Call, left: Data, right: Data) -> Leaf:
        return pointwise(lambda a, b: extreme(name, a, b), left, right)

    def accumulate(array: Numbers, axis: int) -> Numbers:
        found = getattr(np, name).accumulate(array, axis=axis, dtype=array.dtype)
        if array.dtype.kind in "iub" or (found != 0).all():
            return found
        zeros = (array == 0) & (np.signbit(array) != wanted)
        seen = np.logical_or.accumulate(zeros, axis=axis)
        return np.where(found == 0, np.where(seen == wanted, 0, -found.dtype.type(0)), found).astype(
            found.dtype
        )

    return _accumulating(denotation, accumulate, commutative=True)


def extreme(name: str, a: Numbers, b: Numbers) -> Numbers:
    """The smaller or the larger number; of a number and NaN, the number."""
    found = getattr(np, name)(a, b)
    if found.dtype.kind in "iub":
        return found
    return np.where(a == b, np.where(np.signbit(a) == (name == "fmax"), b, a), found)


def comparison(name: str) -> Operation:
    return lambda call, left, right: _apply(call, name, left, right)


def _apply(call: Call, name: str, *operands: Data) -> Leaf:
    try:
        return pointwise(getattr(np, name), *operands)
    except TypeError as problem:
        what = f"`{call.instance.name}` is not defined on {call.scalar()}"
        raise call.error("R0509", what) from problem


def elementary(name: str) -> Operation:
    """A function computed in a wider type and rounded once; of an integer, as C converts."""
    return lambda call, x: _rounded(call, getattr(np, name), x)


def power_of_two(call: Call, x: Data) -> Leaf:
    """2^x; in f32 zero below the smallest normal number, as GPUs compute it."""
    return _flushed(call, _rounded(call, np.exp2, x))


def reciprocal(call: Call, x: Data) -> Leaf:
    """1 / x; in f32 zero stands for all numbers below the smallest normal one, as GPUs compute it."""
    return _flushed(call, _rounded(call, lambda a: 1 / a, _flushed(call, x)))


def _flushed(call: Call, x: Data) -> Leaf:
    """Numbers; in f32, zero with the same sign for those below the smallest normal one."""
    if call.scalar() != F32:
        return leaf_of(x)
    tiny, zero = np.finfo(np.float32).tiny, np.float32(0)
    return pointwise(lambda a: np.where(np.abs(a) < tiny, np.copysign(zero, a), a), x)


def _rounded(call: Call, function: Callable[[Numbers], Numbers], x: Data) -> Leaf:
    scalar = call.scalar()
    wider = wide(scalar)
    result = pointwise(lambda a: function(a.astype(dtype_of(wider))), x)
    return _converted(result, wider, scalar)


def reciprocal_root(call: Call, x: Data) -> Leaf:
    return _rounded(call, lambda a: 1 / np.sqrt(a), x)


# --- integers as C has them -----------------------------------------------------------------------


def divide(call: Call, left: Data, right: Data) -> Leaf:
    if call.scalar().is_float:
        return pointwise(np.divide, left, right)
    _refuse(call, leaf_of(right), lambda b: b == 0, "division by zero")
    return pointwise(_truncated_quotient, left, right)


def _truncated_quotient(a: Numbers, b: Numbers) -> Numbers:
    quotient = np.floor_divide(a, b)
    inexact = np.remainder(a, b) != 0
    return quotient + (inexact & ((a < 0) != (b < 0))).astype(quotient.dtype)


def modulo(call: Call, left: Data, right: Data) -> Leaf:
    if not call.scalar().is_float:
        _refuse(call, leaf_of(right), lambda b: b == 0, "remainder of a division by zero")
    return pointwise(np.fmod, left, right)


def power(call: Call, base: Data, exponent: Data) -> Leaf:
    if call.scalar().is_float:
        return pointwise(np.power, base, exponent)
    depth, (b, e) = together(leaf_of(base), leaf_of(exponent))
    _refuse(call, Leaf((b == 0) & (e < 0), depth), lambda bad: bad, "0 to a negative power")
    return pointwise(_integer_power, base, exponent)


def _integer_power(base: Numbers, exponent: Numbers) -> Numbers:
    """b^e wrapping; 1/b^-e truncated where e is negative, which is 0 but for 1 and -1."""
    magnitude = np.where(exponent < 0, (exponent & 1) * (np.absolute(base) == 1), exponent)
    whole = np.power(base, magnitude.astype(exponent.dtype))
    return np.where((exponent < 0) & (np.absolute(base) != 1), 0, whole).astype(base.dtype)


def _refuse(call: Call, operand: Leaf, bad: Callable[[Numbers], Numbers], message: str) -> None:
    if counts(call.scope, bad(operand.array), operand.depth).any():
        raise call.error("R0504", f"{message} of {call.scalar()}")


def counts(scope: Scope, mask: Numbers, depth: int) -> Numbers:
    """The mask without the turns whose result is thrown away."""
    if scope.guard is None or not mask.any():
        return mask
    both_depth = max(depth, scope.guard.depth)
    guard = trailing(aligned(scope.guard, both_depth), mask.ndim - depth)
    return aligned(Leaf(mask, depth), both_depth) & guard


# --- fused multiply-add ---------------------------------------------------------------------------


def fused_multiply_add(call: Call, a: Data, b: Data, c: Data) -> Leaf:
    scalar = call.scalar()
    if not scalar.is_float:
        return pointwise(lambda x, y, z: x * y + z, a, b, c)
    if scalar.name == "f64":
        return pointwise(_fma_doubles, a, b, c)
    return pointwise(lambda x, y, z: stored_as(_fma_in_doubles(x, y, z), scalar), a, b, c)


def _fma_in_doubles(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
    """The sum in f64 rounded to odd: rounding that once more gives the correctly rounded result."""
    product = a.astype(np.float64) * b.astype(np.float64)
    total, rest = _two_sum(product, c.astype(np.float64))
    bits = total.view(np.int64)
    fix = np.isfinite(total) & (rest != 0) & (bits & 1 == 0)
    towards = np.where((rest > 0) == (total > 0), 1, -1)
    return np.where(fix, bits + towards, bits).view(np.float64)


def _two_sum(a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    """The rounded sum and what rounding lost (Knuth)."""
    total = np.asarray(a + b)
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _fma_doubles(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
    """Within a hair of one rounding: product and sum keep what they lose (Dekker, Knuth).

    Where only what lies between overflows, all is computed 2^600 times smaller.
    """
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    large = finite & ~np.isfinite(a * b)
    if not np.any(large):
        return _fma_parts(a, b, c)
    more = np.absolute(a) > np.absolute(b)
    smaller: Numbers = np.where(more, b, a)
    larger: Numbers = np.where(more, a, b)
    scaled: Numbers = _fma_parts(smaller, larger * 2.0**-600, c * 2.0**-600)
    return np.where(large, scaled * 2.0**600, _fma_parts(a, b, c))


def _fma_parts(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
    product = a * b
    high_a, low_a = _halves(a)
    high_b, low_b = _halves(b)
    lost = low_a * low_b - (((product - high_a * high_b) - low_a * high_b) - high_a * low_b)
    total, rest = _two_sum(product, c)
    return np.where(np.isfinite(lost + rest), total + (rest + lost), total)


def _halves(a: Numbers) -> tuple[Numbers, Numbers]:
    scaled = a * 134217729.0  # 2^27 + 1
    high = scaled - (scaled - a)
    return high, a - high


# --- conversion -----------------------------------------------------------------------------------


def cast(call: Call, x: Data) -> Leaf:
    return _converted(leaf_of(x), call.scalar("s"), call.scalar("t"))


def _converted(leaf: Leaf, source: Scalar, target: Scalar) -> Leaf:
    if source == target:
        return leaf
    if target.name == "bool":
        return pointwise(lambda a: a != 0, leaf)
    if source.is_float and not target.is_float:
        return pointwise(lambda a: _to_integer(a, target), leaf)
    return pointwise(lambda a: stored_as(a, target), leaf)


def _to_integer(a: Numbers, target: Scalar) -> Numbers:
    """Truncated; NaN is 0, and what is out of range the nearest there is, as CUDA converts."""
    dtype = dtype_of(target)
    bounds = np.iinfo(dtype)
    whole = np.trunc(a.astype(np.float64))
    low, high = float(bounds.min), float(bounds.max // 2 + 1) * 2  # high is not representable
    inside = np.where((whole >= low) & (whole < high), whole, 0).astype(dtype)
    clipped = np.where(whole >= high, dtype.type(bounds.max), inside)
    return np.where(whole < low, dtype.type(bounds.min), clipped)


# --- choice ---------------------------------------------------------------------------------------


@lazy(1, 2)
def select(call: Call, condition: Data, then: Thunk, otherwise: Thunk) -> Tree:
    holds = leaf_of(condition)
    fails = pointwise(np.logical_not, holds)
    return each(
        lambda a, b: _chosen(holds, a, b),
        then(call.scope.where(holds)),
        otherwise(call.scope.where(fails)),
    )


def _chosen(condition: Leaf, then: Leaf, otherwise: Leaf) -> Leaf:
    depth, (holds, a, b) = together(condition, then, otherwise)
    return Leaf(np.where(trailing(holds, a.ndim - depth), a, b), depth)


@lazy(1)
def both(call: Call, left: Data, right: Thunk) -> Leaf:
    holds = leaf_of(left)
    return pointwise(np.logical_and, holds, right(call.scope.where(holds)))


@lazy(1)
def either(call: Call, left: Data, right: Thunk) -> Leaf:
    holds = leaf_of(left)
    fails = pointwise(np.logical_not, holds)
    return pointwise(np.logical_or, holds, right(call.scope.where(fails)))
