"""What the packages above the language ask of each other, without importing each other.

Strategies do not import the code generator, which registers here why it refuses a program, so that a schedule
can end by asking. The code generator does not import strategies, and finds here the one for programs that are
compiled without one.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from rise.errors import RiseError
from rise.expr import Expr

Refusal = Callable[[Expr], RiseError | None]
# of a low-level program, for a target: the bytes of shared memory that a block of its kernels takes. Raises
# a RiseError where the program does not become kernels that should run
Builds = Callable[[Expr, str], int]
_REFUSALS: list[Refusal] = []


def register(refusal: Refusal) -> None:
    """From now on, this is asked as well."""
    _REFUSALS.append(refusal)


def refusal(program: Expr) -> RiseError | None:
    """Why a code generator refuses a closed low-level program; None where it takes it, or none is loaded."""
    return next((error for each in _REFUSALS if (error := each(program)) is not None), None)


def default_strategy(target: str | None) -> Any:
    """The strategy for programs that are compiled without one, for a GPU; the newest where none is given."""
    auto = import_module("strategies.auto").auto
    return auto(target=target) if target else auto()
