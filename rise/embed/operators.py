"""Python's operators, by the names of their methods, and what they are in a program."""

from __future__ import annotations

# the method is `__add__`, `__sub__` …; reflected ones are `__radd__` …
BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "mod": "%", "pow": "^", "and": "&&",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip
REFLECTED = ("add", "sub", "mul", "truediv", "mod", "pow", "and")

# what NumPy calls the operators
UFUNCS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "remainder": "%", "power": "^",
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==",
    "not_equal": "!=", "bitwise_and": "&&",
}  # fmt: skip

# of two sizes, these are a size
SIZE_FUNCTIONS = ("min", "max", "ceildiv")
