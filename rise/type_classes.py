"""Classes of types: what an operation may ask of a type that it is applied at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rise.numbers import fits, written
from rise.types import SCALARS, TF32, Index, Scalar, Type, Vector


class TypeClass(Enum):
    """What an operation asks of a type that it is applied at. An index counts as a whole number.

    A truth value is no number: it can be compared with `==` and `!=`, converted, and nothing else. A
    tf32 is no number either, but an operand of tensor cores: it can be converted, and nothing else. A
    vector is what its elements are, except where a comparison would have to give a vector.
    """

    VALUE = "a scalar or a vector"
    SCALAR = "a scalar"
    NUMBER = "a number"
    ORDERED = "a scalar number"
    FLOAT = "a float"

    @property
    def members(self) -> str:
        """The types of the class, as `+` is for them: "numbers"."""
        return " and ".join(f"{noun}s" for noun in self.value.removeprefix("a ").split(" or a "))

    @property
    def has_vectors(self) -> bool:
        return self in (TypeClass.VALUE, TypeClass.NUMBER, TypeClass.FLOAT)

    def asked(self, type_: Type) -> Type | None:
        """What of a type has to be in the class for it to be: a variable, an unknown; None where it is.

        What is certainly not in the class is the answer itself, or the vector's element.
        """
        if isinstance(type_, Vector) and self.has_vectors:
            return self.asked(type_.element)
        match type_:
            case Scalar() if type_ == TF32:
                return None if self is TypeClass.VALUE else type_
            case Scalar() if self is TypeClass.FLOAT:
                return None if type_.is_float else type_
            case Scalar("bool"):
                return None if self in (TypeClass.VALUE, TypeClass.SCALAR) else type_
            case Index():
                return type_ if self is TypeClass.FLOAT else None
            case Scalar():
                return None
            case _:
                return type_

    def implies(self, other: TypeClass | Holding) -> bool:
        """Whether all of the class are in the other."""
        return other in (self, *_IMPLIED[self])


@dataclass(frozen=True)
class Holding:
    """Number types that have a certain number: 300 is an i16, and no i8."""

    number: int | float
    numbers: TypeClass

    @property
    def value(self) -> str:
        return f"{self.numbers.value} type that has {written(self.number)}"

    @property
    def members(self) -> str:
        return f"types that have {written(self.number)}"

    @property
    def has_vectors(self) -> bool:
        return self.numbers.has_vectors

    def asked(self, type_: Type) -> Type | None:
        """As of a class. Of an index, whose bound may be any, nothing is asked."""
        if isinstance(type_, Vector):
            return self.asked(type_.element)
        if (left := self.numbers.asked(type_)) is not None:
            return left
        return type_ if isinstance(type_, Scalar) and not fits(self.number, type_) else None

    def implies(self, other: TypeClass | Holding) -> bool:
        return other == self or (isinstance(other, TypeClass) and self.numbers.implies(other))


def having(number: int | float) -> TypeClass | Holding:
    """What a number in a program asks of its type: most are in all of them."""
    numbers = TypeClass.FLOAT if isinstance(number, float) else TypeClass.NUMBER
    everywhere = all(fits(number, t) for t in SCALARS.values() if numbers.asked(t) is None)
    return numbers if everywhere else Holding(number, numbers)


_IMPLIED = {
    TypeClass.VALUE: (),
    TypeClass.SCALAR: (TypeClass.VALUE,),
    TypeClass.NUMBER: (TypeClass.VALUE,),
    TypeClass.ORDERED: (TypeClass.NUMBER, TypeClass.SCALAR, TypeClass.VALUE),
    TypeClass.FLOAT: (TypeClass.NUMBER, TypeClass.VALUE),
}
