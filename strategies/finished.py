"""Whether a low-level program says all: who executes each map and fold, and where what is read is stored.

The code generator refuses what is left open. A schedule that ends with `finished` fails by name instead, at
the place of the pattern that it left as it was. Whatever else the code generator would refuse is a failure,
too: it is asked where it is loaded (`rise.generator`).
"""

from __future__ import annotations

from dataclasses import dataclass

from rewrites.result import Failure, Result, Success
from rise.expr import Apply, Expr, Identifier, Lambda, call, subterms
from rise.generator import refusal
from rise.interpret.evaluate import free_identifiers
from rise.normal import is_view
from rise.primitives.declare import plain_pattern
from rise.types import Array
from strategies.core import FunctionStrategy, Rewrite, Strategy, prints_as_call, seq

# what other primitives are ways of executing, and has no translation of its own
OPEN = ("reduce", "scan")
OPERANDS = 3  # of each: function, start, array
# what is stored where it says, and then read
STORED = ("toMem", "copyThreads", "copyAsync")


@dataclass(frozen=True)
class Unsaid:
    """A part of a program, and what is not said of it."""

    part: Expr
    reason: str


@prints_as_call
def finished(s: Rewrite) -> Strategy:
    """s, and then the check: fails at what s left for somebody else to decide."""
    return seq(s, FunctionStrategy("finished", _check))


def _check(term: Expr) -> Result:
    body = term
    while isinstance(body, Lambda):
        body = body.body
    found = unsaid(body)
    if found is None:
        return _accepted(term)
    hint = "the schedule has no place for it: another one does, `rise strategies`, or `default`"
    return Failure("finished", term, found.reason, part=found.part, hint=hint)


def _accepted(term: Expr) -> Result:
    """A part of a program may depend on what is around it: only whole programs are asked about."""
    error = None if free_identifiers(term) else refusal(term)
    if error is None:
        return Success(term)
    return Failure("finished", term, error.message, hint=error.hint, code=error.code, origin=error.origin)


def unsaid(term: Expr) -> Unsaid | None:
    """The first part of a program, inputs aside, of which something is not said."""
    for part in subterms(term):
        applied = call(part)
        if applied is not None and applied[0] in OPEN and len(applied[2]) == OPERANDS:
            return Unsaid(part, f"nothing says who computes this `{applied[0]}`, of type `{part.type}`")
    return _written(term)


def _written(term: Expr) -> Unsaid | None:
    """Of a part whose result is written where it belongs."""
    if isinstance(term, Apply) and isinstance(term.function, Lambda):
        return _read(term.argument) or _written(term.function.body)
    applied = call(term)
    if applied is None:
        return Unsaid(term, _unwritten(term)) if _stays(term) else None
    name, head, arguments = applied
    if name == "map" and len(arguments) == 2:
        function, array = arguments
        if not isinstance(function, Lambda) or not is_view(function.body):
            return Unsaid(term, f"nothing says who executes this `map`, whose result is `{term.type}`")
        return _written(array)
    if plain_pattern(head.declaration) == "map" and len(arguments) == 2:
        return _in_function(arguments[0]) or _read(arguments[1])
    if name in STORED and len(arguments) == 1:
        return _written(arguments[0])
    if head.declaration.view and name not in ("idx", "generate"):
        return next((found for a in arguments if _is_data(a) and (found := _written(a))), None)
    return None


def _in_function(function: Expr) -> Unsaid | None:
    return _written(function.body) if isinstance(function, Lambda) else None


def _read(term: Expr) -> Unsaid | None:
    """Of a part whose elements are read one by one."""
    if isinstance(term, Apply) and isinstance(term.function, Lambda):
        return _read(term.argument) or _read(term.function.body)
    applied = call(term)
    if applied is None:
        return None
    name, head, arguments = applied
    if name == "map" and len(arguments) == 2:
        function, array = arguments
        return (_read(function.body) if isinstance(function, Lambda) else None) or _read(array)
    if plain_pattern(head.declaration) == "map" and name != "map" and len(arguments) == 2:
        return Unsaid(term, f"nothing says where the result of this `{name}`, `{term.type}`, is stored")
    if name in STORED and len(arguments) == 1:
        return _written(arguments[0])
    if head.declaration.view or head.declaration.elementwise:
        return next((found for a in arguments if _is_data(a) and (found := _read(a))), None)
    return None


def _is_data(term: Expr) -> bool:
    return not isinstance(term, Lambda)


def _stays(term: Expr) -> bool:
    return isinstance(term, Identifier) and isinstance(term.type, Array)


def _unwritten(term: Expr) -> str:
    return f"nothing says who copies this array, of type `{term.type}`, to where the result belongs"
