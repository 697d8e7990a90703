"""Where sizes and indices come from: numbers, for small cases, or terms of z3, for proofs of all cases."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, Protocol
from zlib import crc32

from rise.nat import Atom, Nat, NatVariable, constant
from rise.symbolic.values import Condition, Sequence, Whole
from rise.types import Argument, NatFunction

Bound = Mapping[str, Whole]


class Outside(Exception):
    """A program has no value at these sizes: one of them would be no natural number."""


class World(Protocol):
    writes_out_loops: bool  # all of them, not only short ones

    def name(self, stem: str) -> str:
        """A name that nothing else has."""
        ...

    def size(self, size: Nat, bound: Bound = ...) -> Whole:
        """`bound` has values for variables of the size that are indices."""
        ...

    def quotient(self, value: Whole, divisor: Whole) -> Whole: ...
    def remainder(self, value: Whole, divisor: Whole) -> Whole: ...
    def either(self, condition: Condition, then: Whole, otherwise: Whole) -> Whole: ...
    def both(self, *conditions: Condition) -> Condition: ...

    def index(self, name: str, arguments: tuple[Whole, ...], below: Whole, given: Condition) -> Whole:
        """An opaque index that depends on others; it is below a size wherever the condition holds."""
        ...

    def permuted(self, function: Argument, inverse: Argument, index: Whole, below: Whole) -> Whole:
        """Where a permutation takes an index below a size."""
        ...

    def origin(self, places: Sequence, index: Whole) -> tuple[Condition, Whole]:
        """Of an array of different indices: whether one is there, and where."""
        ...


class Numbers:
    """Sizes are given, and opaque indices drawn: those of one array differ, as `scatter` asks for."""

    writes_out_loops = True

    def __init__(self, sizes: Mapping[Atom, int], seed: int = 0) -> None:
        self.sizes = {a: constant(v) for a, v in sizes.items()}
        self.seed = seed
        self._number = count()

    def name(self, stem: str) -> str:
        return f"{stem}!{next(self._number)}"

    def size(self, size: Nat, bound: Bound = {}) -> int:  # noqa: B006  # never changed
        inner: dict[Atom, Nat] = {NatVariable(name): constant(value) for name, value in bound.items()}
        try:
            found = size.substitute({**self.sizes, **inner}).value
        except (ZeroDivisionError, ValueError):
            found = None
        if found is None or (found < 0 and not bound):
            raise Outside(str(size))
        return found

    def quotient(self, value: int, divisor: int) -> int:
        if divisor <= 0:
            raise Outside("a division by zero")
        return value // divisor

    def remainder(self, value: int, divisor: int) -> int:
        return value - divisor * self.quotient(value, divisor)

    def either(self, condition: bool, then: int, otherwise: int) -> int:
        return then if condition else otherwise

    def both(self, *conditions: bool) -> bool:
        return all(conditions)

    def index(self, name: str, arguments: tuple[Any, ...], below: int, given: bool) -> int:
        if below <= 0:
            raise Outside(f"`{name}` has no values")
        numbers = [a if isinstance(a, int) else crc32(str(a).encode()) for a in arguments]
        return (crc32(f"{name} {self.seed} {numbers[:-1]}".encode()) - sum(numbers[-1:])) % below

    def permuted(self, function: Argument, inverse: Argument, index: int, below: int) -> int:
        if isinstance(function, NatFunction):
            return self.size(function.body, {function.parameter: index})
        if function == inverse:
            return below - 1 - index
        forth = str(function) < str(inverse)
        return (index + (1 if forth else -1)) % below

    def origin(self, places: Sequence, index: int) -> tuple[bool, int]:
        found = [places.at(i) for i in range(places.size)]
        if len(set(found)) < len(found):
            raise Outside("two elements at one index")
        return index in found, found.index(index) if index in found else 0
