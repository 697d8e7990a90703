"""Functions that are written in C."""

from __future__ import annotations

from functools import partial

from rise.declaration import HostParameter
from rise.errors import ScopeError
from rise.interpret import patterns
from rise.primitives import declare as declaring
from rise.primitives.c_text import objection
from rise.type_classes import TypeClass

declare = partial(declaring.declare, group="foreign")

# as many as any function of the CUDA mathematics library has, and some more
MOST = 8


def _signature(name: str, n: int, body: str) -> str:
    """`{s1: DataType, …, t: DataType} -> (s1 -> … -> t) -> s1 -> … -> t`"""
    if not name.isidentifier():
        raise ScopeError("R0204", f'"{name}" is no name of a C function')
    if not 1 <= n <= MOST:
        raise ScopeError("R0204", f"a foreign function has 1 to {MOST} parameters, not {n}")
    reason = objection(body)
    if reason is not None:
        hint = "brackets of a body are balanced, and it has no directives: it stands between `{` and `}`"
        raise ScopeError("R0204", f'the body of "{name}" is no body of a C function: {reason}', hint=hint)
    types = [f"s{i}" for i in range(1, n + 1)] if n > 1 else ["s"]
    function = " -> ".join([*types, "t"])
    kinds = ", ".join(f"{t}: DataType" for t in [*types, "t"])
    return f"{{{kinds}}} -> ({function}) -> {function}"


declare(
    "foreignFunction",
    '("name", n, "body") : (s1 -> … -> sn -> t) -> s1 -> … -> sn -> t',
    "Calls a C function of n numbers, which exists or has the body given (its parameters are x1, x2, …);"
    " it means what the RISE function says.",
    patterns.foreign,
    example=('foreignFunction("__expf", 1)((x: f32) => exp(x))(0)', "1.0"),
    host=(HostParameter("name", str), HostParameter("n", int), HostParameter("body", str, "")),
    member_signature=_signature,
    elementwise=True,
    operands=TypeClass.VALUE,
)
