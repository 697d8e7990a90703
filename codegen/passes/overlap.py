"""Lets the kernels of a program overlap where one of them is warp-specialised.

A warp-specialised kernel is launched before the preceding one ends, sets up its barriers meanwhile, and then
waits (`roles`). Any other kernel would be launched only when everything in front of it has ended, which takes
longer than many small kernels compute. So the other kernels of its program wait for themselves, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen.ir import imperative as i

FIRST = (i.AwaitPreviousGrid(), i.StartNextGrid())


def overlapping(functions: Sequence[i.Function]) -> tuple[i.Function, ...]:
    """The pass, over all kernels of a program: one kernel, or kernels without roles, stay as they are."""
    specialised = [_is_specialised(function) for function in functions]
    if len(functions) == 1 or not any(specialised):
        return tuple(functions)
    return tuple(
        function if waits else replace(function, body=i.sequence(*FIRST, function.body))
        for function, waits in zip(functions, specialised, strict=True)
    )


def _is_specialised(function: i.Function) -> bool:
    """Whether the pass `roles` is going to make the kernel wait for the preceding one."""
    return any(isinstance(c, i.WarpSpecialise) for c in i.commands(function.body))
