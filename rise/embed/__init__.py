"""Programs written in Python: functions are traced, the checker and its messages are the same.

`places` finds where in a Python file something stands, `traced` has the values that parameters are,
`functions` and `types` turn Python functions and types into syntax, `naming` gives names,
`closing` checks; `definitions`, `evaluation` and `program` are what one does with the result.
"""

from __future__ import annotations

from rise.embed.definitions import Definition, define
from rise.embed.errors import TracingError
from rise.embed.program import Program, expression, load, parse
from rise.notebook import register_if_in_notebook

__all__ = ["Definition", "Program", "TracingError", "define", "expression", "load", "parse"]

register_if_in_notebook()
