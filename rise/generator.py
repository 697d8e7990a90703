"""Whether a low-level program can become kernels, asked without knowing the code generator.

Strategies do not import the code generator, and the language does not import it either. It registers here
what says why a program is refused, so that a schedule can end by asking.
"""

from __future__ import annotations

from collections.abc import Callable

from rise.errors import RiseError
from rise.expr import Expr

Refusal = Callable[[Expr], RiseError | None]
_REFUSALS: list[Refusal] = []


def register(refusal: Refusal) -> None:
    """From now on, this is asked as well."""
    _REFUSALS.append(refusal)


def refusal(program: Expr) -> RiseError | None:
    """Why a code generator refuses a closed low-level program; None where it takes it, or none is loaded."""
    return next((error for each in _REFUSALS if (error := each(program)) is not None), None)
