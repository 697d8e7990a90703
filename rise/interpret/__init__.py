"""The reference interpreter: what a program, high-level or low-level, means on NumPy arrays."""

from rise.interpret.evaluate import Closure, call, call_many, evaluate
from rise.interpret.inputs import dtype_of, random_inputs, shape_of
from rise.interpret.views import other_undefined

__all__ = [
    "Closure", "call", "call_many", "dtype_of", "evaluate", "other_undefined", "random_inputs", "shape_of",
]  # fmt: skip
