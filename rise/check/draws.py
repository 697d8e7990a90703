"""Inputs that tell programs apart, for checks by evaluation.

What such a check is worth depends on what it draws. A factor that happens to be 1, a summand that is 0 or a
row that is equal to its neighbour hides a mistake, and so does a bound that no number reaches. So there are
several draws, each of its own kind:

    whole      whole numbers of both signs, none of them 0, 1 or -1, different as far as there are enough
    below      numbers below all literals of the programs, so that all are negative
    fractions  multiples of 1/8 that are no whole numbers
    beyond     numbers beyond all literals
    equal      one number everywhere, for what decides between equals
    ascending  arrays that are sorted, with equal numbers in them
    sparse     every other array is zero almost everywhere, so that each of many summands counts
    literals   each literal, what is just beside it, and what two of them differ by
    digits     floats with all of their digits, on which roundings show

All but the last are such that sums of products have no rounding, as far as the types allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, floor, isfinite, isqrt, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from rise.expr import Expr, Literal, Primitive, subterms
from rise.interpret.inputs import Block, Layout, Plain, elements, layout, stored_as
from rise.interpret.instance import number
from rise.nat import Nat
from rise.numbers import largest
from rise.primitives.declare import plain_pattern
from rise.types import Array, Fragment, Scalar, Type, Vector, arguments

if TYPE_CHECKING:
    Random = np.random.Generator

BASE = ("whole", "below", "fractions", "beyond", "equal", "ascending", "sparse")
WHOLE, BELOW, FRACTIONS, BEYOND, EQUAL, ASCENDING, SPARSE = BASE
LITERALS, DIGITS = "literals", "digits"
# of a type's significand
BITS = {"bf16": 8, "f16": 11, "tf32": 11, "f32": 24, "f64": 53}
SMALLEST, LARGEST = 4, 32  # magnitudes of whole numbers
REACHED = 2.0**24  # larger literals, as the -1e30 that stands for minus infinity, are not drawn
PASSED = 2.0**10  # no draw lies wholly beyond larger ones: squares of them would not be exact
PAIRS = 6  # of so many literals all sums and quotients are drawn
MOST = 64  # draws
ROOM = 1 << 21  # elements that all draws together may take to compute, but for two of them


@dataclass(frozen=True)
class Scale:
    """How large the numbers may be.

    magnitude: of whole numbers, such that sums of products are exact
    literals:  of the programs, those that are drawn
    """

    magnitude: int = 9
    literals: tuple[float, ...] = ()

    @property
    def near(self) -> tuple[float, ...]:
        return tuple(v for v in self.literals if abs(v) <= PASSED)

    @property
    def critical(self) -> tuple[float, ...]:
        """Each literal, its neighbours, and what two literals make of each other."""
        found = [c for v in self.literals for c in (v, v - 1, v + 1, v - _beside(v), v + _beside(v))]
        if len(self.literals) <= PAIRS:
            for a, b in combinations(self.literals, 2):
                found += [a + b, a - b, b - a, *(x / y for x, y in ((a, b), (b, a)) if y)]
        return tuple(dict.fromkeys(v for v in found if abs(v) <= 2 * REACHED))


def _beside(value: float) -> float:
    return 0.125 if value == 0 or abs(value) >= 1 else abs(value) / 8


@dataclass(frozen=True)
class Draws:
    """Several sets of inputs, one after the other along a first axis.

    kinds: what each draw is, in order
    """

    inputs: tuple[Plain, ...]
    kinds: tuple[str, ...]

    @property
    def count(self) -> int:
        return len(self.kinds)

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest number; none where all inputs are truth values or indices."""
        found = [leaf for value in self.inputs for leaf in _leaves(value) if leaf.dtype.kind not in "b"]
        numbers = [leaf.astype(np.float64) for leaf in found if leaf.size]
        return min((x.min() for x in numbers), default=1.0), max((x.max() for x in numbers), default=0.0)

    def one(self, position: int) -> list[Plain]:
        """The inputs of one draw."""
        return [at(value, position) for value in self.inputs]

    def only(self, positions: Sequence[int]) -> Draws:
        """These draws."""
        chosen = tuple(at(value, list(positions)) for value in self.inputs)
        return Draws(chosen, tuple(self.kinds[i] for i in positions))


def _leaves(value: Plain) -> list[Any]:
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, tuple) else [value]


def at(values: Plain, place: int | list[int]) -> Plain:
    """Of stacked values one, or some."""
    return tuple(at(part, place) for part in values) if isinstance(values, tuple) else values[place]


def shown(value: Any) -> str:
    """An input on a line, so that it can be pasted if it is short."""
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))})"
    with np.printoptions(threshold=64, edgeitems=3, linewidth=10**6):
        return " ".join(np.array2string(np.asarray(value), separator=", ").split())


# --- what programs say ----------------------------------------------------------------------------------


def literals(terms: Iterable[Expr]) -> tuple[float, ...]:
    """The finite numbers that stand in the terms, in order, each once."""
    parts = {part for term in terms for part in subterms(term) if isinstance(part, Literal)}
    numbers = {
        p.value for p in parts if isinstance(p.type, Scalar | Vector) and not isinstance(p.value, bool)
    }
    return tuple(sorted({float(value) for value in numbers if isfinite(value)}))


def scale(program: Expr, numbers: Sequence[float] = ()) -> Scale:
    """How large inputs of the program may be so that sums of products of two of them are exact."""
    bits, terms = 24, 1
    for part in subterms(program):
        if not isinstance(part, Primitive):
            continue
        if plain_pattern(part.declaration) in ("reduce", "scan"):
            terms = max(terms, *(a.value or 1 for a in part.arguments if isinstance(a, Nat)), 1)
        elif part.name not in ("add", "sub", "mul", "fma"):
            continue
        bits = min(bits, _bits(arguments(part.type)[1]))
    magnitude = isqrt((1 << bits) // max(terms, 1))
    return Scale(min(max(magnitude, SMALLEST), LARGEST), reached(numbers))


def reached(numbers: Sequence[float]) -> tuple[float, ...]:
    """Those that are drawn."""
    return tuple(v for v in numbers if abs(v) <= REACHED)


def _bits(type_: Type) -> int:
    while isinstance(type_, Array | Vector | Fragment):
        type_ = type_.element
    return BITS.get(type_.name, 24) if isinstance(type_, Scalar) else 24


def work(program: Expr, parameters: Sequence[tuple[str, Type]]) -> int:
    """About how many elements one evaluation computes."""
    longest = 1
    for part in subterms(program):
        if isinstance(part, Primitive) and plain_pattern(part.declaration) in ("reduce", "scan", "iterate"):
            longest = max(longest, *(a.value or 1 for a in part.arguments if isinstance(a, Nat)), 1)
    result = arguments(program.type)[1]
    return max(longest * elements(result), *(elements(t) for _, t in parameters), 1)


# --- drawing ----------------------------------------------------------------------------------------------


def draws(
    parameters: Sequence[tuple[str, Type]], seed: int, size: Scale, cost: int = 1, rounding: bool = True
) -> Draws:
    """Several draws of inputs, fewer where one evaluation costs much.

    cost:     about how many elements an evaluation computes
    rounding: whether floats with all digits are among them, as the last draw
    """
    layouts = [layout(type_) for _, type_ in parameters]
    blocks = [block for wanted in layouts for block in _blocks(wanted)]
    room = max(ROOM // cost, 1)
    kinds = [*BASE[:room]]
    kinds += [LITERALS] * min(_needed(blocks, size), min(MOST, room) - len(kinds))
    sprinkled = LITERALS not in kinds
    kinds += [DIGITS] * (rounding and cost <= 2 * ROOM)
    streams = np.random.SeedSequence(seed).spawn(len(blocks) + 1)
    turns = np.random.default_rng(streams[-1]).permutation(len(kinds)).tolist()
    stacked = iter(
        [
            _Source(block, np.random.default_rng(stream), size, place, sprinkled).draws(kinds, turns)
            for place, (block, stream) in enumerate(zip(blocks, streams, strict=False))
        ]
    )
    return Draws(tuple(_nested(wanted, stacked) for wanted in layouts), tuple(kinds))


def _blocks(wanted: Layout) -> list[Block]:
    return [wanted] if isinstance(wanted, Block) else [b for part in wanted for b in _blocks(part)]


def _nested(wanted: Layout, values: Iterator[Plain]) -> Plain:
    return next(values) if isinstance(wanted, Block) else tuple(_nested(part, values) for part in wanted)


def _needed(blocks: Sequence[Block], size: Scale) -> int:
    """In how many draws each input has met each critical number."""
    smallest = min((prod(b.shape) for b in blocks if _is_number(b)), default=0)
    return ceil(len(size.critical) / smallest) if smallest else 0


def _is_number(block: Block) -> bool:
    return isinstance(block.element, Scalar) and block.element.name != "bool"


@dataclass
class _Source:
    """Where the numbers of one array come from, draw by draw.

    place:     which of all arrays it is
    sprinkled: whether critical numbers are put among others, for want of draws of their own
    """

    block: Block
    generator: Random
    size: Scale
    place: int
    sprinkled: bool
    met: int = 0

    @property
    def count(self) -> int:
        return prod(self.block.shape)

    def draws(self, kinds: Sequence[str], turns: Sequence[int]) -> Plain:
        return np.stack([self._draw(kind, turn) for kind, turn in zip(kinds, turns, strict=True)])

    def _draw(self, kind: str, turn: int) -> Plain:
        shape, element = self.block.shape, self.block.element
        if not self.count:
            return np.zeros(shape, self.block.dtype)
        if not isinstance(element, Scalar):
            return self._indices(max(number(element.size), 1), kind)
        if element.name == "bool":
            values = self.generator.integers(0, 2, shape) if shape else (turn + self.place) % 2
            return np.asarray(values).astype(self.block.dtype)
        numbers = self._numbers(element, kind, turn)
        if self.sprinkled and kind == WHOLE and self.count >= 8:
            self._sprinkle(numbers)
        return _stored(numbers.reshape(shape), element)

    def _indices(self, below: int, kind: str) -> Plain:
        """Different ones along the last axis, as `scatter` asks for; in some draws not."""
        shape = self.block.shape
        if kind == EQUAL:
            return np.full(shape, below // 2)
        if kind == FRACTIONS:  # none of the larger half
            return np.asarray(self.generator.integers(0, (below + 1) // 2, shape))
        if not shape or shape[-1] > below:
            return np.asarray(self.generator.integers(0, below, shape))
        rows = [self.generator.permutation(below)[: shape[-1]] for _ in range(prod(shape[:-1]))]
        return np.asarray(rows, np.int64).reshape(shape)

    def _numbers(self, scalar: Scalar, kind: str, turn: int) -> Any:
        if kind == DIGITS and scalar.is_float:
            signs = self.generator.choice((-1.0, 1.0), self.count)
            return signs * self.generator.uniform(0.3, 3, self.count)
        if kind == LITERALS:
            return self._critical(scalar)
        if kind == EQUAL:
            return np.full(self.count, 3.0)
        pool = np.asarray(_pool(scalar, kind, self.count, self.size))
        if kind == ASCENDING and self.count > 1:
            return np.sort(self._dealt(pool[: max(self.count // 2, 1)]))
        if self.count == 1:  # of several numbers no two are equal
            return pool[[(turn + self.place) % len(pool)]]
        numbers = self._dealt(pool)
        if kind == SPARSE and self.place % 2 == 0:
            numbers[self.generator.random(self.count) >= 2 / self.block.shape[-1]] = 0
        return numbers

    def _critical(self, scalar: Scalar) -> Any:
        """The next of the critical numbers, in an order of the input's own; all of them if there is room."""
        critical = np.asarray(self.size.critical)
        if self.count >= len(critical):
            others = _pool(scalar, WHOLE, self.count, self.size)
            return self._dealt(np.concatenate([critical, others])[: self.count])
        order = np.random.default_rng(self.place).permutation(len(critical))
        found = critical[order[np.arange(self.met, self.met + self.count) % len(critical)]]
        self.met += self.count
        return found

    def _sprinkle(self, numbers: Any) -> None:
        """A quarter of the elements becomes critical."""
        critical = [v for v in self.size.critical if abs(v) <= 4 * self.size.magnitude]
        if critical:
            places = self.generator.permutation(len(numbers))[: len(numbers) // 4]
            numbers[places] = np.resize(critical, len(places))

    def _dealt(self, pool: Any) -> Any:
        """Each number as often as any other, in random order; equal ones stand far apart."""
        rounds = -(-self.count // len(pool))
        return np.concatenate([self.generator.permutation(pool) for _ in range(rounds)])[: self.count]


def _pool(scalar: Scalar, kind: str, count: int, size: Scale) -> list[float]:
    """The numbers of a kind, enough that they differ if that is possible."""
    magnitude = min(max(count // 2 + 2, 9), size.magnitude)
    unsigned, near = scalar.name.startswith("u"), size.near or (0.0,)
    if kind == FRACTIONS and scalar.is_float:
        return [sign * k / 8 for k in range(3, 2 * magnitude + 3, 2) for sign in (1, -1)]
    if kind == BEYOND:
        start = max(floor(max(near)) + 1, 2)
        return [float(start + k) for k in range(max(2 * magnitude, start))]
    if kind == BELOW and not unsigned:
        start = min(ceil(min(near)) - 1, -2)
        return [float(start - k) for k in range(max(2 * magnitude, -start))]
    if unsigned:
        return [float(k) for k in range(2, 2 * magnitude)]
    return [sign * float(k) for k in range(2, magnitude + 1) for sign in (1, -1)]


def _stored(numbers: Any, scalar: Scalar) -> Plain:
    """As the type holds them: within its range, whole where it has nothing else."""
    if scalar.is_float:
        most = largest(scalar)
        return stored_as(np.where(np.isinf(numbers), numbers, np.clip(numbers, -most, most)), scalar)
    about = np.iinfo(stored_as(np.zeros(()), scalar).dtype)
    return np.clip(np.rint(numbers), about.min, about.max).astype(about.dtype)
