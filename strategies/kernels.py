"""A program in several kernels: cut where a result is complete that the whole grid reads afterwards."""

from __future__ import annotations

from rise.expr import Apply, Expr, Lambda, call
from rise.types import Space


def cut(program: Expr) -> tuple[Expr, ...]:
    """The programs of the kernels, in order: one, where nothing is stored in global memory on the way.

    Of fun(inputs => let y = e |> toMem(Global) in f(y)): first fun(inputs => e), which gives y, and then
    fun(inputs => fun(y => f(y))), cut further. So each kernel has all inputs, and after them what the kernels
    before it gave.
    """
    inputs, body = [], program
    while isinstance(body, Lambda):
        inputs.append(body)
        body = body.body
    applied = call(body)
    if applied is None or applied[0] != "let" or len(applied[2]) != 2:
        return (program,)
    value, function = _without_memory(applied[2][0]), applied[2][1]
    if value is None or not isinstance(function, Lambda):
        return (program,)
    return _under(inputs, value), *cut(_under(inputs, function))


def _without_memory(stored: Expr) -> Expr | None:
    """e of e |> toMem(Global): the result of a kernel is there anyway; None for what is stored elsewhere."""
    applied = call(stored)
    if applied is None or applied[0] != "toMem" or not isinstance(stored, Apply):
        return None
    return stored.argument if Space.GLOBAL in applied[1].arguments else None


def _under(inputs: list[Lambda], body: Expr) -> Expr:
    for function in reversed(inputs):
        body = Lambda(function.parameter, body, function.origin)
    return body
