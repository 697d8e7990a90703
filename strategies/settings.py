"""Strategies whose parameters are the fields of a dataclass: stated once, with types and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, get_type_hints

from strategies.core import Strategy, prints_as_call

P = ParamSpec("P")
K = TypeVar("K")
S = TypeVar("S", bound=Callable[..., Strategy])


def parameters_from(kind: Callable[P, K]) -> Callable[[Callable[[K], Strategy]], Callable[P, Strategy]]:
    """Makes of a function that takes such an object one that takes its fields, as `registry` reads them."""

    def decorate(make: Callable[[K], Strategy]) -> Callable[P, Strategy]:
        @prints_as_call
        @wraps(make)
        def factory(*given: P.args, **named: P.kwargs) -> Strategy:
            return make(kind(*given, **named))

        signature = inspect.signature(kind).replace(return_annotation=Strategy)
        factory.__signature__ = signature  # type: ignore[attr-defined]  # what `inspect` looks at first
        factory.__annotations__ = {**get_type_hints(kind), "return": Strategy}
        return factory

    return decorate


def searched(**values: Sequence[Any]) -> Callable[[S], S]:
    """Declares the values of its parameters that a search tries a strategy with; the registry reads them.

    A parameter that is not named keeps its default. The strategy itself refuses values that do not fit each
    other, or a program.
    """

    def declare(make: S) -> S:
        make.searched = values  # type: ignore[attr-defined]  # what `registry.entry` looks at
        return make

    return declare
