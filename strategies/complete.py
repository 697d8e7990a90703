"""The check that a low-level program is complete: maps and folds have levels, arrays that are read a memory.

The code generator refuses incomplete programs. A schedule that ends with `complete` fails instead, at the
pattern that it did not lower. Anything else that the code generator would refuse is a failure, too; the check
calls the code generator where it is loaded (`rise.generator`).
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

# high-level patterns, which have no translation
OPEN = ("reduce", "scan")
OPERANDS = 3  # of each: function, start, array
# what says where the elements of its last argument are written, or which of them
PLACED = frozenset({"scatter", "scatterBy", "prefix", "prefixes"})
# what is stored where it says, and then read
STORED = ("toMem", "copyThreads", "copyAsync")


@dataclass(frozen=True)
class Incomplete:
    """A part of a program, and what it lacks."""

    part: Expr
    reason: str


@prints_as_call
def complete(s: Rewrite) -> Strategy:
    """s, and then the check: fails at the first part that s left without a level or a memory."""
    return seq(s, FunctionStrategy("complete", _check))


def _check(term: Expr) -> Result:
    body = term
    while isinstance(body, Lambda):
        body = body.body
    found = first_incomplete(body)
    if found is None:
        return _accepted(term)
    hint = "this schedule does not lower it; use another one, `rise strategies`, or `default`"
    return Failure("complete", term, found.reason, part=found.part, hint=hint)


def _accepted(term: Expr) -> Result:
    """A part of a program may depend on what is around it, so only whole programs are checked."""
    error = None if free_identifiers(term) else refusal(term)
    if error is None:
        return Success(term)
    return Failure("complete", term, error.message, hint=error.hint, code=error.code, origin=error.origin)


def first_incomplete(term: Expr) -> Incomplete | None:
    """The first part of a program that lacks a level or a memory."""
    for part in subterms(term):
        applied = call(part)
        if applied is not None and applied[0] in OPEN and len(applied[2]) == OPERANDS:
            return Incomplete(
                part, f"this `{applied[0]}` has no level: nothing computes its result, of type `{part.type}`"
            )
    return _written(term)


def _written(term: Expr) -> Incomplete | None:
    """The same for a part whose result is written to memory."""
    if isinstance(term, Apply) and isinstance(term.function, Lambda):
        return _read(term.argument) or _written(term.function.body)
    applied = call(term)
    if applied is None:
        return Incomplete(term, _unwritten(term)) if _stays(term) else None
    name, head, arguments = applied
    if name == "map" and len(arguments) == 2:
        function, array = arguments
        if not isinstance(function, Lambda) or not is_view(function.body):
            return Incomplete(term, f"no level executes this `map`, whose result is `{term.type}`")
        return _written(array)
    if plain_pattern(head.declaration) == "map" and len(arguments) == 2:
        return _in_function(arguments[0]) or _read(arguments[1])
    if (name in STORED and len(arguments) == 1) or name in PLACED:
        return _written(arguments[-1])
    if head.declaration.view and name not in ("idx", "generate"):
        return next((found for a in arguments if _is_data(a) and (found := _written(a))), None)
    return None


def _in_function(function: Expr) -> Incomplete | None:
    return _written(function.body) if isinstance(function, Lambda) else None


def _read(term: Expr) -> Incomplete | None:
    """The same for a part whose elements are read one by one."""
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
        return Incomplete(term, f"the result of this `{name}`, `{term.type}`, has no memory")
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
    return f"no level copies this array, of type `{term.type}`, to the result"
