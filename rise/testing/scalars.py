"""Scalar operations at all the numbers where they may go wrong: what implementations have to agree on.

Each conversion is tried on every number of 16 bits and less, each operation on all pairs of numbers of 8
bits, and both at the borders of wider types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from rise.expr import Expr, Identifier, Lambda, Literal, Primitive, apply, substitute
from rise.interpret import call
from rise.interpret.inputs import dtype_of, stored_as
from rise.nat import constant
from rise.numbers import FLOATS, bounds, largest
from rise.pretty import show
from rise.primitives.declare import primitive
from rise.testing.choose import Choose, Drawn
from rise.types import BOOL, F64, SCALARS, TF32, Array, Pair, Scalar, expect

if TYPE_CHECKING:
    import numpy

    Numbers = numpy.ndarray[Any, Any]

I64 = Scalar("i64")
UNARY = ("neg", "abs", "floor", "ceil", "round")
ARITHMETIC = ("add", "sub", "mul", "div", "mod", "min", "max")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
WHOLE = ("pow",)  # of floats the last bit may differ
TERNARY = ("fma",)
NUMERIC = tuple(t for t in SCALARS.values() if t not in (BOOL, TF32))


@dataclass(frozen=True)
class Group:
    """Terms over the same operands, which all run through the same numbers, each with each.

    A term is of i64 or f64. They have the numbers of all other types, so a value shows that is beyond the
    type in which it was computed.
    """

    operands: tuple[Identifier, ...]
    terms: tuple[Expr, ...]

    @property
    def scalar(self) -> Scalar:
        """The type of the operands."""
        type_ = self.operands[0].type
        return type_ if isinstance(type_, Scalar) else BOOL

    @cached_property
    def numbers(self) -> Numbers:
        """What each of the operands runs through."""
        return numbers(self.scalar, len(self.operands))

    @property
    def inputs(self) -> tuple[Numbers, ...]:
        """The operands of every combination, the last one changing fastest."""
        import numpy as np

        grid = np.meshgrid(*[self.numbers] * len(self.operands), indexing="ij")
        return tuple(np.ascontiguousarray(axis.ravel()) for axis in grid)

    @cached_property
    def program(self) -> Expr:
        """A function of the inputs: an array for each term, as nested pairs."""
        size = constant(len(self.numbers) ** len(self.operands))
        arrays = [Identifier(f"{o.name}s", Array(size, self.scalar)) for o in self.operands]
        zipped: Expr = arrays[-1]
        for array in reversed(arrays[:-1]):
            zipped = _applied("zip", (size, self.scalar, expect(Array, zipped.type).element), array, zipped)
        element = Identifier("element", expect(Array, zipped.type).element)
        rest: Expr = element
        members: dict[str, Expr] = {}
        for operand in self.operands[:-1]:
            pair = expect(Pair, rest.type)
            members[operand.name] = _applied("fst", (pair.first, pair.second), rest)
            rest = _applied("snd", (pair.first, pair.second), rest)
        members[self.operands[-1].name] = rest
        body = self.terms[-1]
        for term in reversed(self.terms[:-1]):
            body = _applied("pair", (term.type, body.type), term, body)
        function = Lambda(element, substitute(body, members))
        program = _applied("map", (size, element.type, body.type), function, zipped)
        for array in reversed(arrays):
            program = Lambda(array, program)
        return program

    def expected(self) -> list[Numbers]:
        """For each term what the interpreter computes."""
        return self.separate(call(self.program, *self.inputs))

    def separate(self, result: Any) -> list[Numbers]:
        """A result of the program, an array for each term."""
        found = []
        for _ in self.terms[1:]:
            first, result = result
            found.append(first)
        return [*found, result]


def differences(group: Group, found: Sequence[Numbers], wanted: Sequence[Numbers]) -> list[str]:
    """A line for each term of which results differ, with the first operands where they do."""
    import numpy as np

    lines = []
    for term, one, other in zip(group.terms, found, wanted, strict=True):
        same = (one == other) & (np.signbit(one) == np.signbit(other)) | (one != one) & (other != other)
        if not same.all():
            first = int(np.argmin(same))
            given = zip(group.operands, group.inputs, strict=True)
            operands = ", ".join(f"{o.name} = {values[first]!r}" for o, values in given)
            lines.append(
                f"{show(term)} of {group.scalar} differs {int((~same).sum())} times: "
                f"{one[first]!r}, not {other[first]!r}, for {operands}"
            )
    return lines


# --- what is computed -----------------------------------------------------------------------------------


@cache
def groups() -> tuple[Group, ...]:
    """All conversions, and all operations on one, two and three numbers."""
    every = SCALARS.values()
    xs, ys, zs = ([Identifier(name, t) for t in NUMERIC] for name in "xyz")
    return (
        *(Group((x,), tuple(_wide(_cast(x, t)) for t in every)) for x in (Identifier("x", t) for t in every)),
        *(_operations(UNARY, x) for x in xs),
        *(
            _operations((*ARITHMETIC, *COMPARISONS, *(() if t.is_float else WHOLE)), x, y)
            for t, x, y in zip(NUMERIC, xs, ys, strict=True)
        ),
        # of f64 the interpreter rounds it within a hair, not once
        *(_operations(TERNARY, x, y, z) for x, y, z in zip(xs, ys, zs, strict=True) if x.type != F64),
    )


def random_group(seed: int, type_: Scalar, count: int) -> Group:
    """Random terms over three operands of a type, through all other types; they run through few numbers."""
    choose, operands = Drawn(seed), tuple(Identifier(name, type_) for name in "xyz")
    goals = [choose.pick(tuple(SCALARS.values())) for _ in range(count)]
    return Group(operands, tuple(_wide(_random(choose, goal, operands, 4)) for goal in goals))


def _random(choose: Choose, type_: Scalar, operands: tuple[Identifier, ...], depth: int) -> Expr:
    """A term of a type; what it starts from are operands, more often than not, and awkward literals."""

    def part(of: Scalar = type_) -> Expr:
        return _random(choose, of, operands, depth - 1)

    if depth == 0 or choose.one_in(8):
        if type_ == TF32 or not choose.one_in(3):
            return _cast(choose.pick(operands), type_)
        return Literal(choose.pick(numbers(type_, 2).tolist()), type_)
    if choose.one_in(3) or type_ == TF32:
        return _cast(part(choose.pick(tuple(SCALARS.values()))), type_)
    if choose.one_in(6):
        return _applied("select", (type_,), part(BOOL), part(), part())
    if type_ == BOOL:
        compared = choose.pick(NUMERIC)
        return _operation(choose.pick(COMPARISONS), part(compared), part(compared))
    name = choose.pick((*UNARY, *ARITHMETIC, *ARITHMETIC, *TERNARY, *(() if type_.is_float else WHOLE)))
    count = 1 if name in UNARY else 3 if name in TERNARY else 2
    if name in TERNARY and type_ == F64:  # which the interpreter rounds within a hair, not once
        name, count = "mul", 2
    return _operation(name, *(part() for _ in range(count)))


def _operations(names: Sequence[str], *operands: Identifier) -> Group:
    return Group(operands, tuple(_wide(_operation(name, *operands)) for name in names))


def _applied(name: str, types: tuple[Any, ...], *operands: Expr) -> Expr:
    return apply(Primitive(primitive(name), types), *operands)


def _operation(name: str, *operands: Expr) -> Expr:
    """The operation; where it is an error for a whole number that is zero, zero."""
    type_ = operands[0].type
    term = _applied(name, (type_,), *operands)
    may_fail = {"div": 1, "mod": 1, "pow": 0}.get(name)
    if may_fail is None or not isinstance(type_, Scalar) or type_.is_float:
        return term
    is_zero = _applied("eq", (type_,), operands[may_fail], Literal(0, type_))
    return _applied("select", (type_,), is_zero, Literal(0, type_), term)


def _cast(term: Expr, target: Scalar) -> Expr:
    if term.type == target:
        return term
    return _applied("cast", (term.type, target), term)


def _wide(term: Expr) -> Expr:
    return _cast(term, F64 if isinstance(term.type, Scalar) and term.type.is_float else I64)


# --- numbers --------------------------------------------------------------------------------------------


@cache
def numbers(type_: Scalar, operands: int = 1) -> Numbers:
    """What operands of a type run through: all of its numbers where those are few, else its borders."""
    import numpy as np

    storage = dtype_of(type_)
    if type_ == BOOL:
        return np.array([False, True])
    if type_.bits <= (16, 8, 0)[operands - 1]:
        return np.arange(2**type_.bits, dtype=np.int64).astype(f"u{storage.itemsize}").view(storage)
    if not type_.is_float:
        return np.array(_whole_borders(type_, operands), storage)
    found = _float_borders(type_) if operands == 1 else _float_corners(type_)
    return np.ascontiguousarray(found[:: 1 if operands < 3 else 3])


def _whole_borders(type_: Scalar, operands: int) -> list[int]:
    """Around zero, the bounds, powers of two; for one operand also halfway between floats of all types."""
    low, high = bounds(type_)
    step = (1, 4, 16)[operands - 1]
    centres = {0, low, high, *(sign << k for k in range(0, type_.bits, step) for sign in (1, -1))}
    if operands == 1:
        for digits, _ in FLOATS.values():
            for shift in range(type_.bits - digits):
                centres.update(((1 << digits) + odd) << shift for odd in (1, 3))
        centres.update({-c for c in centres})
    reach = 2 if operands < 3 else 1
    near = {c + d for c in centres for d in range(-reach, reach + 1)} | {3, 7, -7, 10}
    return sorted(n for n in near if low <= n <= high)


def _float_corners(type_: Scalar) -> Numbers:
    """A few dozen: NaN, infinities, zeros, the least and the largest, small numbers, halves."""
    import numpy as np

    digits, least = FLOATS[type_.name]
    normal, after_one = 2.0 ** (least + digits - 1), 1.0 + 2.0 ** (1 - digits)
    positive = [0.0, 2.0**least, normal, 1.0, after_one, 0.5, 1.5, 2.5, 3.0, 0.1, 7.0, 1 / 3]
    positive += [float(2**digits - 1), largest(type_) / 2, largest(type_), np.inf]
    return stored_as(np.array([s * p for p in positive for s in (1, -1)] + [np.nan]), type_)


def _float_borders(type_: Scalar) -> Numbers:
    """Borders of all other types, what lies beside them, and halfway between their numbers."""
    import numpy as np

    centres = [0.0, 0.1, 1 / 3]
    for other in SCALARS.values():
        if not other.is_float:
            centres += [float(b) for b in bounds(other)]
            continue
        digits, least = FLOATS[other.name]
        exponents = [0, 1, 10, -7, least + digits - 1, least + digits, least - 1, least, least + 2]
        halfway = [1.0 + odd * 2.0**-digits for odd in (1, 3, 5)] if digits < 53 else []
        centres += [m * 2.0**e for e in exponents for m in (1.0, *halfway)]
        centres += [largest(other), largest(other) * (1 + 2.0 ** (-digits - 1))]
    centres += [2.0**k + d for k in range(66) for d in (-0.5, 0, 0.5, 1, 1.5)]
    storage = dtype_of(type_)
    middle = np.array([s * c for c in centres for s in (1, -1)])
    bits = np.random.default_rng(1).integers(0, 2**type_.bits, 1000, f"u{storage.itemsize}")
    with np.errstate(all="ignore"):
        near = middle.astype(storage)
        around = [near, *(np.nextafter(near, storage.type(end)) for end in (np.inf, -np.inf))]
    ends = np.array([np.inf, -np.inf, np.nan], storage)
    return stored_as(np.concatenate([*around, bits.view(storage), ends]), type_)
