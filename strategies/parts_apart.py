"""Rows whose parts are used apart, as halves of a product's rows for a gate: computed where they are used.

A product of packed weights is then two products beside each other, and their rows are not stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from rewrites.algorithmic import MAP_FUSION
from rewrites.lets import named_value
from rewrites.maps import BETA, LET_INLINE
from rewrites.movement import DROP_MAP, TAKE_MAP, ZIP_MAP_FIRST
from rewrites.result import Failure, Result
from rewrites.typed import array_type
from rise.expr import Expr, Identifier, Lambda, call, children
from rise.nat import Nat
from rise.types import Array, Type
from strategies.core import FunctionStrategy, choice, normalize, seq
from strategies.places import map_nest, mapped


def _parts_apart(term: Expr) -> Result:
    """Maps of rows whose parts are used apart: each part of a row is then computed where it is used.

    before: xs |> map(x => ys |> map(f)) |> map(p => zip(p |> take(n))(p |> drop(n)) |> map(g))
    after:  xs |> map(x => zip(ys |> take(n) |> map(f))(ys |> drop(n) |> map(f)) |> map(g))
    """
    parts = normalize(choice(TAKE_MAP, DROP_MAP))
    in_parts = mapped(seq(normalize(BETA), parts))
    match named_value(term), call(term):
        case (value, Lambda(p, body)), _ if map_nest(1)(value) and _are_apart(body, p, value.type):
            return seq(choice(LET_INLINE, BETA), parts)(term)
        case _, ("map", _, [Lambda(p, body), xs]):
            both = call(xs)
            zipped = both is not None and both[0] == "zip"
            rows, member = (both[2][0], "fst") if both is not None and zipped else (xs, "")
            if map_nest(2)(rows) and _are_apart(body, p, array_type(rows).element, member):
                return seq(ZIP_MAP_FIRST if zipped else MAP_FUSION, in_parts)(term)
    return Failure("parts_apart", term, "no rows are computed whose parts are used apart")


parts_apart = FunctionStrategy("parts_apart", _parts_apart)


def _are_apart(term: Expr, given: Identifier, type_: Type, member: str = "") -> bool:
    """Whether a term makes an array of parts of the given one that do not overlap, none in a function.

    given, member: the name of the array, or of the pair of which it is a member
    """
    size = type_.size.value if isinstance(type_, Array) else None
    if size is None or not isinstance(term.type, Array):
        return False
    parts = sorted(_parts_of(term, Used(given.name, member, size)))
    return len(parts) > 1 and all(end <= start for (_, end), (start, _) in pairwise(parts))


@dataclass(frozen=True)
class Used:
    """An array of so many elements: a variable, or a member of one."""

    name: str
    member: str
    size: int

    def is_all(self, term: Expr) -> bool:
        if isinstance(term, Identifier):
            return term.name == self.name
        applied = call(term)
        return applied is not None and applied[0] == self.member and self.is_all(applied[2][-1])

    def is_beside(self, term: Expr) -> bool:
        """Whether a term is the other member of a pair."""
        match call(term):
            case "fst" | "snd" as name, _, [Identifier()]:
                return self.member not in ("", name)
            case _:
                return False

    def part(self, term: Expr) -> tuple[int, int] | None:
        """Of a part of the array, where it begins and ends; None of another term."""
        if self.is_all(term):
            return 0, self.size
        match call(term):
            case "take" | "drop" as name, head, [xs] if (inner := self.part(xs)) is not None:
                count = head.arguments[0].value if isinstance(head.arguments[0], Nat) else None
                start, end = inner
                if count is None:
                    return inner
                return (start, start + count) if name == "take" else (start + count, end)
            case _:
                return None


def _parts_of(term: Expr, array: Used) -> Iterator[tuple[int, int]]:
    """The ranges of elements that are used, for each use; two for one in a function, which may repeat it."""
    if array.name not in term.free or array.is_beside(term):
        return
    part = array.part(term)
    if part is not None:
        yield part
        return
    for child in children(term):
        for found in _parts_of(child, array):
            yield from [found] * (2 if isinstance(child, Lambda) else 1)
