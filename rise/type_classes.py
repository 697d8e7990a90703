"""Classes of types: what an operation may ask of a type that it is applied at."""

from __future__ import annotations

from enum import Enum

from rise.types import TF32, Index, Scalar, Type, Vector


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

    def implies(self, other: TypeClass) -> bool:
        """Whether all of the class are in the other."""
        return other in (self, *_IMPLIED[self])


_IMPLIED = {
    TypeClass.VALUE: (),
    TypeClass.SCALAR: (TypeClass.VALUE,),
    TypeClass.NUMBER: (TypeClass.VALUE,),
    TypeClass.ORDERED: (TypeClass.NUMBER, TypeClass.SCALAR, TypeClass.VALUE),
    TypeClass.FLOAT: (TypeClass.NUMBER, TypeClass.VALUE),
}
