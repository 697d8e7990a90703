"""The arrays over one index in blocks, and what the elements of a block are; zeros are behind their ends."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rewrites.elements import (
    NotPointwise,
    are_numbers,
    at,
    generated,
    members,
    number,
    over,
    selects,
    transposed,
)
from rewrites.folds import operation
from rewrites.typed import array_type, instance, named, zero_of
from rise.expr import Expr, Identifier, Literal, application, apply, call, children
from rise.nat import Nat, constant, quotient
from rise.types import BOOL, I32, Data, Index


@dataclass
class Blocks:
    """The arrays over an index, in blocks of `size`; behind their ends are zeros.

    parts:  the parts of terms that select by the index, each with the array that it selects from; None for
            an array of the row, whose block is found by its number
    number: the quotient of the index by the size of a block, where terms use it
    linear: whether the number of an element is that of its block times the size, plus that in the block, so
            that conditions on numbers stay linear; and whether it is there is such a condition
    """

    index: Identifier
    length: Nat
    size: Nat
    row: Identifier
    column: Identifier
    parts: dict[Expr, Expr | None] = field(default_factory=dict)
    number: Expr | None = None
    linear: bool = False

    @property
    def count(self) -> Nat:
        return quotient(self.length + self.size - 1, self.size)

    @property
    def missing(self) -> Nat:
        return self.count * self.size - self.length

    @property
    def ragged(self) -> bool:
        return self.missing != constant(0)

    def find(self, term: Expr) -> None:
        """Collects the parts of a term."""
        if self.index.name not in term.free or term in self.parts:
            return
        if selects(term, self.index.name):
            xs = application(term)[2][1]
            self.parts[term] = None if self.row.name in xs.free else self._by_index(xs)
        elif self._is_number(term):
            self.number = term
        elif term == number(self.index):
            self.parts[term] = None if self.linear else generated(self.index, term)
        elif term == self.index:
            raise NotPointwise("the number of an element is used in another way than as a number", term)
        else:
            for child in children(term):
                self.find(child)

    def _is_number(self, term: Expr) -> bool:
        match call(term):
            case "div", _, [index, Literal(value)] if value == self.size.value:
                return index == number(self.index)
            case _:
                return False

    def _by_index(self, xs: Expr) -> Expr:
        """An array over the index; one that depends on the column, with that inside."""
        return transposed(over(self.column, xs)) if self.column.name in xs.free else xs

    @property
    def selected(self) -> list[Expr]:
        """The arrays over the index, each once."""
        return list(dict.fromkeys(xs for xs in self.parts.values() if xs is not None))

    @property
    def arrays(self) -> list[Expr]:
        """The arrays, each once, in blocks; at the end the numbers of the blocks where they are needed."""
        found = [self.split(xs) for xs in self.selected]
        if self.ragged and not self.linear:
            found.append(self.split(self._present, fill=Literal(False, BOOL)))
        if self.ragged or self.number is not None or None in self.parts.values() or not found:
            number = Identifier("number", Index(self.count))
            found.append(generated(number, number))
        return found

    @property
    def _present(self) -> Expr:
        return generated(self.index, Literal(True, BOOL))

    def split(self, xs: Expr, fill: Expr | None = None) -> Expr:
        known = array_type(xs)
        if self.ragged and are_numbers(xs):
            index = Identifier(self.index.name, Index(self.count * self.size))
            xs, known = generated(index, number(index)), replace(known, size=self.count * self.size)
        elif self.ragged:
            zero = fill or zero_of(known.element, xs)
            if isinstance(zero, str):
                raise NotPointwise(zero, xs)
            sizes: dict[str, Nat | Data] = {
                "l": constant(0),
                "r": self.missing,
                "n": known.size,
                "t": known.element,
            }
            xs = apply(named("padCst", sizes, xs), zero, xs)
        return apply(instance("split", (self.size, self.count, known.element), xs.origin), xs)

    def is_whole(self, block: Expr) -> Expr | None:
        """Whether all elements of a block are there; None if no block is known to be whole."""
        size, whole = self.size.value, quotient(self.length, self.size)
        if not self.ragged or size is None or not whole.value:
            return None
        this = number(members(block, len(self.arrays))[-1])
        return operation("lt", this, Literal(whole.value, I32))

    def opened(self, block: Expr, inner: Identifier) -> tuple[dict[Expr, Expr], Expr | None]:
        """What stands for each part in a block, and whether an element of it is there, if some are not."""
        members_ = members(block, len(self.arrays))
        of_array = dict(zip(self.selected, members_, strict=False))
        values: dict[Expr, Expr] = {}
        for part, xs in self.parts.items():
            given = application(part)[2]
            if part == number(self.index) and xs is None:
                values[part] = self._number_of(members_[-1], inner)
                continue
            if xs is None:
                values[part] = at(inner, at(members_[-1], self.split(given[1])))
                continue
            element = at(inner, of_array[xs])
            values[part] = at(self.column, element) if self.column.name in given[-1].free else element
        if self.number is not None:
            values[self.number] = number(members_[-1])
        if not self.ragged:
            return values, None
        if self.linear:
            length = Literal(self.length.value or 0, I32)
            return values, operation("lt", self._number_of(members_[-1], inner), length)
        return values, at(inner, members_[len(of_array)])

    def _number_of(self, block: Expr, inner: Identifier) -> Expr:
        """The number of an element, by the number of its block and its index there."""
        first = operation("mul", number(block), Literal(self.size.value or 0, I32))
        return operation("add", first, number(inner))
