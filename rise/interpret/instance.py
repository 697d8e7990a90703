"""A primitive at work: what its denotation may ask about the dependent arguments and the place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rise.errors import EvaluationError
from rise.frozen import filled_at_once
from rise.interpret.value import Scope
from rise.nat import Nat
from rise.source import Origin
from rise.types import Argument, Index, Scalar, Type, Vector, as_data


def number(size: Nat, origin: Origin = None) -> int:
    """A size as an int; R0506 where a variable is left in it."""
    if size.value is not None:
        return size.value
    names = ", ".join(f"`{n}`" for n in sorted(size.variables)) or f"`{size}`"
    hint = f"evaluation needs a number for {names}: apply the program to its sizes first"
    raise EvaluationError("R0506", f"the size {size} is no whole number", origin, hint)


@filled_at_once
@dataclass(frozen=True, slots=True)
class Instance:
    """A primitive with its dependent arguments, sizes as numbers."""

    name: str
    sizes: Mapping[str, int]
    arguments: Mapping[str, Argument]
    origin: Origin


@filled_at_once
@dataclass(frozen=True, slots=True)
class Call:
    """An instance applied in a scope: the first argument of every denotation."""

    instance: Instance
    scope: Scope

    def size(self, name: str) -> int:
        return self.instance.sizes[name]

    def type(self, name: str) -> Type:
        return as_data(self.instance.arguments[name])

    def scalar(self, name: str = "t") -> Scalar:
        """The scalar that values of the type consist of; an index computes as i64."""
        type_ = self.type(name)
        while isinstance(type_, Vector):
            type_ = type_.element
        if isinstance(type_, Index):
            return Scalar("i64")
        if isinstance(type_, Scalar):
            return type_
        raise self.error("R0509", f"`{self.instance.name}` is not defined on {type_}")

    def error(self, code: str, message: str) -> EvaluationError:
        return EvaluationError(code, message, self.instance.origin)
