"""Strategies whose parameters are the fields of a dataclass: stated once, with types and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar, get_type_hints

from strategies.core import Strategy, prints_as_call

P = ParamSpec("P")
K = TypeVar("K")


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
