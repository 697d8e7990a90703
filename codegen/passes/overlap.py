"""Lets the kernels of a program overlap where one of them is warp-specialised.

A warp-specialised kernel is launched before the preceding one ends, sets up its barriers meanwhile, and then
waits (`roles`). Any other kernel would be launched only when everything in front of it has ended, which takes
longer than many small kernels compute. So the small kernels of its program wait by themselves, too.

Where only the epilogue reads what a kernel of few threads computes, products are computed *beside* it: it is
launched when all before it has ended, and lets the next kernel start at once. What it does not write is
*ready*, so the producer loads it without a wait, and those that compute wait behind their first products. It
is launched on its own, so that its blocks are spread evenly: two of them on a multiprocessor would keep a
block of the product waiting.

Of two kernels in succession that use nothing of each other, such as those that copy operands of a product,
the second starts *at once*, when all blocks of the first have started. It waits at its end, so that whoever
waits for it waits for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

from codegen.ir import imperative as i
from codegen.ir.launch import WARP, WARPGROUP, derive
from codegen.passes.analysis.registers import sums
from codegen.passes.early_reads import reads_first
from codegen.passes.split_kernels import Temporary, uses
from rise.instructions import MOST_SUMS
from rise.types import Array

# Threads of kernels that gain by it. Of larger ones not all blocks are resident beside those of the kernel in
# front: measured at 0.1 million (0.8 µs less) and 0.26 million (4 µs more) on a GPU with 132 multiprocessors.
MOST_THREADS = 2**17
FIRST = (i.AwaitPreviousGrid(), i.StartNextGrid())
# blocks of a kernel beside which products are computed: about one for each multiprocessor of any GPU
MOST_BLOCKS = 144
# Of a kernel whose products are computed beside the one in front: registers of a multiprocessor for four
# warps of that, of 32 registers a thread.
LEFT = 4 * WARP * 32


def overlapping(functions: Sequence[i.Function]) -> tuple[i.Function, ...]:
    """The pass, over all kernels of a program: one kernel, or kernels without roles, stay as they are.

    So do large ones, and those whose number of blocks is known at launch only.
    """
    if len(functions) == 1 or not any(map(_is_specialised, functions)):
        return tuple(functions)
    made = [*map(_waiting, functions)]
    pairs = [*enumerate(pairwise(functions))]
    for number, (front, one) in pairs:
        if _independent(front, one) and not waits_at_its_end(made[number]):
            if made[number] == front:
                made[number] = replace(front, body=i.sequence(i.StartNextGrid(), front.body))
            made[number + 1] = replace(
                one, body=i.sequence(i.StartNextGrid(), one.body, i.AwaitPreviousGrid())
            )
    for number, (front, one) in pairs:
        ready = buffers(one) - {v.name for v in (*front.outputs, *one.outputs)}
        if _leaves_room(front) and _starts_beside(one, ready):
            made[number] = replace(front, body=i.sequence(i.StartNextGrid(), front.body))
            made[number + 1] = replace(one, ready=ready)
    return tuple(made)


def _waiting(function: i.Function) -> i.Function:
    """The kernel, which waits by itself if it gains by that and does not wait yet."""
    if _is_specialised(function) or not _is_small(function):
        return function
    return replace(function, body=i.sequence(*FIRST, function.body))


def _independent(front: i.Function, one: i.Function) -> bool:
    """Whether two kernels without roles may run at the same time: neither uses what the other one writes."""
    if _is_specialised(front) or _is_specialised(one):
        return False
    written = [{v.name for v in each.outputs} for each in (front, one)]
    return written[0].isdisjoint(buffers(one)) and written[1].isdisjoint(buffers(front))


def _leaves_room(front: i.Function) -> bool:
    """Whether a kernel has so few threads that it leaves room on each multiprocessor."""
    launch = derive(front.body)
    small = _is_small(front) and not _is_specialised(front) and launch.threads <= WARPGROUP
    return small and prod(extent for extent in launch.grid if isinstance(extent, int)) <= MOST_BLOCKS


def _starts_beside(function: i.Function, ready: frozenset[str]) -> bool:
    """Whether all that the producer of a kernel loads is ready."""
    roles = [c for c in i.commands(function.body) if isinstance(c, i.WarpSpecialise)]
    late = buffers(function) - ready
    return bool(roles) and bool(ready) and not any(any(uses(c.produce, late)) for c in roles)


def starts_next_at_once(function: i.Function) -> bool:
    """Whether a kernel, which starts when all before it has ended, lets the next one start at once."""
    return _commands(function)[:1] == FIRST[1:] and not waits_at_its_end(function)


def waits_at_its_end(function: i.Function) -> bool:
    """Whether a kernel runs beside the one in front of it, and only then waits for that."""
    return _commands(function)[-1:] == FIRST[:1]


def _commands(function: i.Function) -> tuple[i.Command, ...]:
    """What a kernel does, one after the other."""
    body = function.body
    while isinstance(body, i.Define):
        body = body.body
    return body.commands if isinstance(body, i.Sequence) else ()


def outliving(temporaries: Sequence[Temporary], functions: Sequence[i.Function]) -> tuple[Temporary, ...]:
    """Temporaries, of which those of a kernel are there as long as the next one runs beside it."""
    beside = {number - 1 for number, function in enumerate(functions) if waits_at_its_end(function)}
    return tuple(replace(t, last=t.last + 1) if t.last in beside else t for t in temporaries)


def await_before_uses(function: i.Function, command: i.Command) -> i.Command:
    """The program of a role, which waits for the kernel in front before it uses what is not ready.

    As late as that: behind loops that wait for tiles, before all loops that do not.
    """
    late = buffers(function) - function.ready

    def go(part: i.Command) -> i.Command:
        if not any(uses(part, late)):
            return part
        if not _waits_for_tiles(part):
            return i.sequence(i.AwaitPreviousGrid(), reads_first(part, late))
        if not isinstance(part, i.Sequence):
            return i.with_inner(part, tuple(map(go, i.inner(part))))
        parts = list(part.commands)
        for number, each in enumerate(parts):
            parts[number] = go(each)
            if parts[number] is not each and not _waits_for_tiles(each):
                break  # what follows is behind this wait
        return i.sequence(*parts)

    return go(command) if function.ready else command


def registers_left(function: i.Function) -> int:
    """The registers of a multiprocessor that a kernel leaves to the one in front of it, so that both run."""
    return LEFT if function.ready and sums(function.body, i.Wgmma) <= MOST_SUMS else 0


def buffers(function: i.Function) -> frozenset[str]:
    """The arrays of a kernel."""
    return frozenset(v.name for v in (*function.outputs, *function.inputs) if isinstance(v.type, Array))


def _waits_for_tiles(command: i.Command) -> bool:
    return any(isinstance(c, i.WaitBarrier) for c in i.commands(command))


def _is_small(function: i.Function) -> bool:
    launch = derive(function.body)
    blocks = [extent for extent in launch.grid if isinstance(extent, int)]
    return len(blocks) == len(launch.grid) and 0 < prod(blocks) * launch.threads <= MOST_THREADS


def _is_specialised(function: i.Function) -> bool:
    """Whether the pass `roles` is going to make the kernel wait for the preceding one."""
    return any(isinstance(c, i.WarpSpecialise) for c in i.commands(function.body))
