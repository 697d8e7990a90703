"""Products of bytes with offsets, or of unsigned bytes, as products of signed bytes for tensor cores."""

from __future__ import annotations

from math import inf, prod

from rewrites.offsets import FIRST_MINUS, FIRST_PLUS, SECOND_MINUS, SECOND_PLUS, UNSIGNED_AS_SIGNED
from rise.expr import Expr, Lambda, call, subterms
from rise.types import Array, Pair, Scalar, shape
from strategies.core import Strategy, argument, check, choice, normalize, seq, top_down
from strategies.places import mapped

LEAST_PAIRS = 1 << 23  # of bytes, for which the kernels in front of such a product pay: measured
BYTES = frozenset({Scalar("i8"), Scalar("u8")})
_signed = argument(mapped(top_down(UNSIGNED_AS_SIGNED)))
_outside = choice(FIRST_MINUS, FIRST_PLUS, SECOND_MINUS, SECOND_PLUS, _signed)


def pairs_of_bytes(term: Expr) -> Array | None:
    """The type of the pairs, if a term is a reduction of a function of pairs of bytes."""
    match call(term):
        case "reduce", _, [_, _, elements]:
            pass
        case _:
            return None
    match call(elements):
        case "map", _, [Lambda(), pairs] if isinstance(pairs.type, Array):
            element = pairs.type.element
            bytes_ = isinstance(element, Pair) and {element.first, element.second} <= BYTES
            return pairs.type if bytes_ else None
        case _:
            return None


def is_worthwhile(matrix: Expr) -> bool:
    """Whether tensor cores, with the kernels in front that the offsets need, are faster than threads."""
    return multiplied_bytes(matrix) >= LEAST_PAIRS


def multiplied_bytes(matrix: Expr) -> float:
    """How many pairs of bytes are multiplied for a matrix; infinite if a size is open until launch."""
    lengths = (pairs.size.value for part in subterms(matrix) if (pairs := pairs_of_bytes(part)) is not None)
    sizes = (size.value for size in shape(matrix.type)[0])
    longest = max((inf if n is None else n for n in lengths), default=0)
    return prod((inf if n is None else n for n in sizes), start=longest)


# before: zip(row)(column) |> map((x, y) => (i32(x) - z) * i32(y)) |> reduce(+, 0)
# after:  (zip(row)(column) |> map((x, y) => i32(x) * i32(y)) |> reduce(+, 0))
#           - z * (column |> map(y => i32(y)) |> reduce(+, 0))
offsets_outside: Strategy = normalize(
    seq(check(lambda e: pairs_of_bytes(e) is not None, "offsets_outside", "no pairs of bytes"), _outside)
)
