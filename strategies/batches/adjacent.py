"""Which elements that a batch reads are adjacent in memory, so that a thread may move several at once."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, prod
from types import MappingProxyType

from rise.expr import Expr, Identifier, Lambda, call
from rise.normal import is_view
from rise.types import Type, shape
from strategies.batches.runs import arrays_of

SAME = frozenset({"zip", "pair", "fst", "snd", "unzip", "split", "join", "id"})
WHOLE_ELEMENTS = frozenset({"gather", "reorder", "slide", "idx", "drop"})


def aligned(term: Expr, bound: Mapping[str, int] = MappingProxyType({})) -> int:
    """A number that divides where adjacent elements begin, and how many they are; 0 if all are adjacent.

    It is for a view of arrays, read row by row: of `xss |> gather(is)` it is how many elements an xs has.

    bound: the numbers of bound variables
    """
    applied = call(term)
    if applied is None or not applied[2]:
        return bound.get(term.name, 0) if isinstance(term, Identifier) else 1
    name, _, arguments = applied
    xs = arguments[-1]
    match name, arguments[0]:
        case _ if name in SAME:
            return gcd(*(aligned(each, bound) for each in arguments))
        case _ if name in WHOLE_ELEMENTS:
            return gcd(aligned(xs, bound), _elements(xs.type))
        case "transpose", _:
            return gcd(aligned(xs, bound), *(prod(sizes[2:]) for sizes in _sizes(xs.type)))
        case "take", _:
            return gcd(aligned(xs, bound), *(prod(sizes) for sizes in _sizes(term.type)))
        case "map", Lambda(x, body) if is_view(term):
            if body.free <= {x.name} and aligned(body) == 0:
                return aligned(xs, bound)
            each = gcd(aligned(xs, bound), _elements(xs.type)) if arrays_of(xs.type) else 0
            return gcd(aligned(body, {**bound, x.name: each}), _elements(term.type))
        case "map", _ if not is_view(term):
            return aligned(xs, bound)
        case "generate", Lambda(_, body):
            return gcd(aligned(body, bound), _elements(term.type))
        case _:
            return 1


def adjacent(term: Expr) -> tuple[int, ...]:
    """The same for each of the arrays that an array of tuples is."""
    match call(term):
        case "zip", _, [xs, ys]:
            return (*adjacent(xs), *adjacent(ys))
        case _:
            return (aligned(term),) * len(arrays_of(term.type))


def _elements(type_: Type) -> int:
    """A number that divides the elements of each element of an array, in each array that it is made of."""
    return gcd(*(prod(sizes[1:]) for sizes in _sizes(type_)))


def _sizes(type_: Type) -> list[list[int]]:
    """The sizes of the arrays that an array of tuples is; 1 for one that is known at launch only."""
    return [[size.value or 1 for size in shape(array)[0]] for array in arrays_of(type_)]
