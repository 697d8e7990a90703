"""Types in messages: unknowns by readable names, and of two types the parts that differ, marked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import gcd, lcm
from typing import Any

from rise.errors import Difference, Marked
from rise.nat import Atom, Nat, NatUnknown, NatVariable, variable
from rise.types import (
    OMITTED,
    Array,
    Dependent,
    Fragment,
    FragmentKind,
    Function,
    Index,
    Pair,
    Scalar,
    Type,
    Unknown,
    Variable,
    Vector,
    as_data,
    leaves,
    map_type,
    shortened,
)

# two types whose text is longer show `…` for the parts in which they agree
WIDEST = 64
SHORTEST_ELIDED = 6
# of types that are too large to be written out, so many levels are compared
DEEPEST = 6

# one piece of text in each of the two types, and whether it is a difference
Piece = tuple[str, str, bool]


# --- names of unknowns ------------------------------------------------------------------------------


class Names:
    """Letters for what is unknown in some types: `a`, `b` for types, `p`, `q` for sizes."""

    def __init__(self, *types: Type | Nat) -> None:
        found = [leaf for t in types for leaf in (t.atoms if isinstance(t, Nat) else leaves(t))]
        taken = {leaf.name for leaf in found if isinstance(leaf, NatVariable | Variable)}
        sizes = sorted({leaf for leaf in found if isinstance(leaf, NatUnknown)}, key=lambda u: u.identity)
        others = dict.fromkeys(leaf for leaf in found if isinstance(leaf, Unknown))
        self.sizes: dict[Atom, Nat] = {
            u: variable(name) for u, name in zip(sizes, _letters("pqrsuvw", taken), strict=False)
        }
        self.types = {u: Variable(name) for u, name in zip(others, _letters("abcdefgh", taken), strict=False)}

    def show(self, type_: Type | Nat) -> str:
        if isinstance(type_, Nat):
            return str(self._size(type_))
        return str(map_type(type_, self._size, self._leaf))

    def _size(self, size: Nat) -> Nat:
        return size.substitute(self.sizes)

    def _leaf(self, leaf: Variable | Unknown) -> Variable | Unknown:
        return self.types[leaf] if isinstance(leaf, Unknown) else leaf


def _letters(letters: str, taken: set[str]) -> Iterator[str]:
    for number in count():
        yield from (name for letter in letters if (name := f"{letter}{number or ''}") not in taken)


def shown(type_: Type | Nat) -> str:
    """The text of a type or a size, unknowns by letters."""
    return Names(type_).show(type_)


# --- two types --------------------------------------------------------------------------------------


def difference(expected: Type, found: Type) -> Difference:
    """Both types with the parts marked in which they differ; equal parts are left out of long ones."""
    expected, found = _comparable(expected, found, DEEPEST)
    names = Names(expected, found)
    pieces = list(_Comparison(names, elided=False).pieces(expected, found))
    if max(sum(len(a) for a, _, _ in pieces), sum(len(b) for _, b, _ in pieces)) > WIDEST:
        pieces = list(_Comparison(names, elided=True).pieces(expected, found))
    return Difference(_marked((a, marked) for a, _, marked in pieces), _marked((b, m) for _, b, m in pieces))


def _comparable(a: Type, b: Type, levels: int) -> tuple[Type, Type]:
    """The two types, or the outer levels in which they differ where they are too large to be written out."""
    if shortened(a) is a and shortened(b) is b:
        return a, b
    match a, b:
        case _ if a == b or levels == 0:
            return OMITTED, OMITTED
        case Pair(s, t), Pair(u, v):
            (s, u), (t, v) = _comparable(s, u, levels - 1), _comparable(t, v, levels - 1)
            return Pair(as_data(s), as_data(t)), Pair(as_data(u), as_data(v))
        case Function(s, t), Function(u, v):
            (s, u), (t, v) = _comparable(s, u, levels - 1), _comparable(t, v, levels - 1)
            return Function(s, t), Function(u, v)
        case _:
            return shortened(a), shortened(b)


def _marked(pieces: Iterable[tuple[str, bool]]) -> Marked:
    text = ""
    ranges: list[tuple[int, int]] = []
    for piece, differs in pieces:
        if differs:
            ranges.append((len(text), len(text) + len(piece)))
        text += piece
    return Marked(text, tuple(ranges))


@dataclass(frozen=True)
class _Comparison:
    """Walks two types side by side. What is unknown agrees with everything."""

    names: Names
    elided: bool

    def pieces(self, a: Type, b: Type) -> Iterator[Piece]:
        if a == b:
            yield from self._same(a)
            return
        match a, b:
            case (Unknown(), _) | (_, Unknown()):
                yield self._short(a), self._short(b), False
            case Array(m, s), Array(n, t):
                yield _factor(self.names.show(m)), _factor(self.names.show(n)), _differ(m, n)
                yield from _text(".")
                yield from self.pieces(s, t)
            case Function(s, t), Function(u, v):
                yield from self._parameter(s, u)
                yield from _text(" -> ")
                yield from self.pieces(t, v)
            case Dependent(x, k, s), Dependent(y, j, t) if (x, k) == (y, j):
                yield from _text(f"({x}: {k.value}) -> ")
                yield from self.pieces(s, t)
            case _ if type(a) is type(b) and not isinstance(a, Scalar | Variable | Dependent):
                yield from self._listed(a, b)
            case _:
                yield self.names.show(a), self.names.show(b), True

    def _same(self, type_: Type) -> Iterator[Piece]:
        text = self.names.show(type_)
        yield from _text("…" if self.elided and len(text) > SHORTEST_ELIDED else text)

    def _short(self, type_: Type) -> str:
        text = self.names.show(type_)
        return "…" if self.elided and len(text) > WIDEST // 2 else text

    def _parameter(self, a: Type, b: Type) -> Iterator[Piece]:
        brackets = [("(", ")") if isinstance(t, Function | Dependent) else ("", "") for t in (a, b)]
        yield brackets[0][0], brackets[1][0], False
        yield from self.pieces(a, b)
        yield brackets[0][1], brackets[1][1], False

    def _listed(self, a: Type, b: Type) -> Iterator[Piece]:
        """Pairs, indices, vectors, fragments: a name, and parts in brackets."""
        opening, closing = ("(", ")") if isinstance(a, Pair) else (f"{WRITTEN[type(a)]}[", "]")
        yield from _text(opening)
        for number, (left, right) in enumerate(zip(_parts(a), _parts(b), strict=True)):
            yield from _text(", " if number else "")
            if isinstance(left, Nat) and isinstance(right, Nat):
                yield self.names.show(left), self.names.show(right), _differ(left, right)
            elif isinstance(left, FragmentKind) or isinstance(right, FragmentKind):
                either_open = isinstance(left, Unknown) or isinstance(right, Unknown)
                yield self._kind(left), self._kind(right), left != right and not either_open
            else:
                yield from self.pieces(left, right)
        yield from _text(closing)

    def _kind(self, kind: object) -> str:
        return "…" if isinstance(kind, Unknown) else str(kind)


WRITTEN: dict[type, str] = {Index: "Idx", Vector: "Vec", Fragment: "Fragment"}


def _parts(type_: Type) -> list[Any]:
    return [getattr(type_, name) for name in type_.__dataclass_fields__]


def _text(text: str) -> Iterator[Piece]:
    yield text, text, False


def _differ(a: Nat, b: Nat) -> bool:
    return a != b and not (a - b).unknowns


def _factor(text: str) -> str:
    bracketed = text.startswith("(") and text.endswith(")") and "(" not in text[1:]
    return f"({text})" if any(sign in text for sign in " */-") and not bracketed else text


# --- two sizes --------------------------------------------------------------------------------------


def equation(a: Nat, b: Nat) -> str | None:
    """What would have to hold for two sizes to be equal: `equal only if n = 2*m`, or that they never are."""
    gap = a - b
    if gap.value is not None or not gap.terms:
        return None if a.value is not None and b.value is not None else "the two are never equal"
    scale = lcm(*(Fraction(c).denominator for _, c in gap.terms))
    common = gcd(*(int(c * scale) for _, c in gap.terms))
    terms = {m: Fraction(c * scale, common) for m, c in gap.terms}
    left = Nat.build({m: c for m, c in terms.items() if c > 0})
    right = Nat.build({m: -c for m, c in terms.items() if c < 0})
    if left.value is not None or (right.value is None and len(left.terms) > len(right.terms)):
        left, right = right, left
    return f"equal only if {left} = {right}"
