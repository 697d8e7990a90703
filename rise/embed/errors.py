"""What Python can do with values that a program written in Python cannot, and what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NoReturn

from rise.depth import allow_deep_terms, too_deep
from rise.embed.places import Place, here
from rise.errors import ParseError, RiseError

BOOLEAN = "R0150"
ITERATED = "R0151"
FOREIGN = "R0152"
RESULT = "R0153"
ESCAPED = "R0154"
OPERATOR = "R0155"
PARAMETERS = "R0156"
DEFINED = "R0157"
ATTRIBUTE = "R0158"
CONVERTED = "R0159"


class TracingError(ParseError):
    """A Python function does with a traced value what no program can: it is not known yet."""


class MissingAttribute(TracingError, AttributeError):
    """A traced value has no such attribute; so `hasattr` gives an answer and no error."""


class short_traceback:  # noqa: N801  # used as a statement: `with short_traceback():`
    """Errors without the frames of the checker: the message has the place that matters. Terms may be deep."""

    def __enter__(self) -> None:
        allow_deep_terms()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RecursionError):
            raise too_deep() from error
        if isinstance(error, RiseError):
            raise error.with_traceback(None) from None


# --- truth values -----------------------------------------------------------------------------------

SELECT = "`select(condition, then, otherwise)` chooses between values"
CONNECTIVES = "write `a & b`, `or_(a, b)`, `~a`: Python's `and`, `or`, `not` cannot be traced"
CHAIN = "write `(a < b) & (b < c)`: Python reads `a < b < c` with an `and`, `a < b & c < d` as a chain"


def undecided() -> TracingError:
    """Python asks a traced value whether it is true."""
    place = here()
    message = "whether this is true is not known before the program runs"
    return TracingError(BOOLEAN, message, place.span, _instead_of_deciding(place))


def _instead_of_deciding(place: Place) -> str:
    """What to write instead depends on the construct that asks."""
    inside: ast.AST | None = None
    for construct in place.surroundings():
        match construct:
            case ast.Compare(_, [ast.In() | ast.NotIn()]):
                return CONTAINS
            case ast.Compare(_, [_, _, *_]):
                return CHAIN
            case ast.BoolOp() | ast.UnaryOp(ast.Not()):
                return CONNECTIVES
            case ast.Call(ast.Name(name)) if inside is None:
                return f"Python's own `{name}` does not work on values of programs: see `rise.ops`"
            case ast.While(test) if test is inside:
                return "`iterate(k)` repeats a step; `reduce` and `scan` go through an array"
            case ast.stmt():
                return SELECT
        inside = construct
    return SELECT


# --- other conversions ------------------------------------------------------------------------------

CONTAINS = "`map` with `==`, then `reduce(or_, False)`, says whether an array holds a value"
LENGTH = "the size is part of the type, `Array[n, f32]`: use the `n` of the annotation"
ITERATION = "`map`, `reduce` and `scan` of `rise.ops` go through an array; `a, b = pair` takes a pair apart"


def unsupported(code: str, what: str, hint: str) -> Callable[..., NoReturn]:
    """A method that refuses."""

    def refuse(*_: object) -> NoReturn:
        raise TracingError(code, what, here().span, hint)

    return refuse
