"""Lets the kernels of a program overlap where one of them is warp-specialised.

A warp-specialised kernel is launched before the preceding one ends, sets up its barriers meanwhile, and then
waits (`roles`). Any other kernel would be launched only when everything in front of it has ended, which takes
longer than many small kernels compute. So the other kernels of its program wait for themselves, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from codegen.ir import imperative as i
from codegen.ir.launch import derive

# Threads of kernels that gain by it. Of larger ones not all blocks are resident beside those of the kernel in
# front: measured at 0.1 million (0.8 µs less) and 0.26 million (4 µs more) on a GPU with 132 multiprocessors.
MOST_THREADS = 2**17
FIRST = (i.AwaitPreviousGrid(), i.StartNextGrid())


def overlapping(functions: Sequence[i.Function]) -> tuple[i.Function, ...]:
    """The pass, over all kernels of a program: one kernel, or kernels without roles, stay as they are.

    So do large ones, and those whose number of blocks is known at launch only.
    """
    specialised = [_is_specialised(function) for function in functions]
    if len(functions) == 1 or not any(specialised):
        return tuple(functions)
    apart = [waits or not _is_small(function) for function, waits in zip(functions, specialised, strict=True)]
    return tuple(
        function if stays else replace(function, body=i.sequence(*FIRST, function.body))
        for function, stays in zip(functions, apart, strict=True)
    )


def _is_small(function: i.Function) -> bool:
    launch = derive(function.body)
    blocks = [extent if isinstance(extent, int) else extent.value for extent in launch.grid]
    return None not in blocks and prod(count or 1 for count in blocks) * launch.threads <= MOST_THREADS


def _is_specialised(function: i.Function) -> bool:
    """Whether the pass `roles` is going to make the kernel wait for the preceding one."""
    return any(isinstance(c, i.WarpSpecialise) for c in i.commands(function.body))
