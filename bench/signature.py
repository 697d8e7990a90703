"""The arrays of a case: inputs and result of its program at its sizes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from bench.derive import program
from bench.table import Case
from rise.check.specialise import inputs_of, specialise
from rise.errors import UsageError
from rise.interpret import dtype_of, shape_of
from rise.types import Array, Scalar, Type, arguments


@dataclass(frozen=True)
class Part:
    """An array, or a number with its value, for which the shape is empty."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    value: float = 0.0

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize if self.shape else 0


@dataclass(frozen=True)
class Signature:
    inputs: tuple[Part, ...]
    output: Part

    @property
    def bytes(self) -> int:
        """Of all arrays, each once: what has to be read and written."""
        return sum(part.bytes for part in (*self.inputs, self.output))

    @classmethod
    def of(cls, case: Case) -> Signature:
        """R0861 where an input is neither an array of numbers nor a number that the table gives."""
        term = specialise(program(case.subject.source)[case.subject.definition], case.sizes)
        parameters, result = arguments(term.type)
        names = [name for name, _ in inputs_of(term)]
        scalars = case.subject.scalars
        inputs = tuple(
            _part(names[i] if i < len(names) else f"input {i}", type_, scalars)
            for i, type_ in enumerate(parameters)
        )
        output = _part("the result", result, {"the result": 0.0})
        return cls(inputs, output if output.shape else Part(output.name, (1,), output.dtype))


def _part(name: str, type_: Type, scalars: Any) -> Part:
    element = type_
    while isinstance(element, Array):
        element = element.element
    if not isinstance(element, Scalar):
        raise UsageError("R0861", f"a benchmark passes arrays of numbers; {name} is of type {type_}")
    shape = shape_of(type_)
    if not shape and name not in scalars:
        hint = f"scalars = {{{name} = 1}}"
        raise UsageError("R0861", f"the table has no value for `{name}`", hint=hint)
    return Part(name, shape, dtype_of(element), 0.0 if shape else scalars[name])
