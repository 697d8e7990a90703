"""Replaces a parallel loop that has a worker for every iteration by the worker's number, defined once.

Loops with more iterations than workers stay loops. With fewer iterations, the other workers are idle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeGuard

from codegen.ir import imperative as i
from codegen.ir.launch import THREAD, WARP, WARPGROUP, Launch, Sharing
from codegen.passes.analysis.fresh import names_of
from codegen.passes.analysis.walk import rebuild_own
from rise.nat import Atom, Nat, NatVariable, quotient, remainder, variable

Workers = tuple[i.Level, int]


def worker(level: i.Level, dimension: int, launch: Launch) -> Nat:
    """The number of the worker at a level, in terms of CUDA's built-in variables."""
    axis = "xyz"[dimension]
    thread, block = variable(f"threadIdx.{axis}"), variable(f"blockIdx.{axis}")
    clusters = launch.cluster > 1 and dimension == 0
    match level:
        case i.Level.CLUSTER:
            return quotient(block, launch.cluster) if clusters else block
        case i.Level.BLOCK:
            return remainder(block, launch.cluster) if clusters else block
        case i.Level.THREAD:
            return thread
        case i.Level.WARP:
            return quotient(variable(THREAD), WARP)
        case i.Level.LANE:
            return remainder(variable(THREAD), WARP)
        case i.Level.WARPGROUP:
            return quotient(variable(THREAD), WARPGROUP)
        case i.Level.WARPGROUP_THREAD:
            return remainder(variable(THREAD), WARPGROUP)
        case i.Level.GRID:
            return block * launch.block[dimension] + thread


def name_workers(function: i.Function, launch: Launch) -> i.Function:
    """The pass."""
    loops = [c for c in i.commands(function.body) if _has_one(c, launch)]
    names = names_of(function)
    names.taken -= {loop.index for loop in loops}
    found = {key: names.fresh(_stem(*key)) for key in dict.fromkeys((c.level, c.dimension) for c in loops)}
    body = _named(function.body, found, {}, launch)
    firsts = {(loop.level, loop.dimension): loop.origin for loop in reversed(loops)}
    for key, name in reversed(found.items()):
        body = i.Define(name, worker(*key, launch), body, firsts[key])
    return replace(function, body=body)


def _has_one(command: i.Command, launch: Launch) -> TypeGuard[i.ParallelFor]:
    """Whether it is a loop that assigns at most one iteration to each worker."""
    return isinstance(command, i.ParallelFor) and launch.sharing(command) is not Sharing.STRIDED


def _stem(level: i.Level, dimension: int) -> str:
    """`warp`, `lane`, `thread_x`: the usual name for the number."""
    within = (i.Level.WARPGROUP, i.Level.WARPGROUP_THREAD, i.Level.WARP, i.Level.LANE)
    return level.value if level in within else f"{level.value}_{'xyz'[dimension]}"


def _named(
    command: i.Command, names: Mapping[Workers, str], renamed: Mapping[Atom, Nat], launch: Launch
) -> i.Command:
    command = rebuild_own(command, Nat, lambda n: n.substitute(renamed))
    if not _has_one(command, launch):
        inside = (_named(part, names, renamed, launch) for part in i.inner(command))
        return i.with_inner(command, tuple(inside))
    number = variable(names[command.level, command.dimension])
    body = _named(command.body, names, {**renamed, NatVariable(command.index): number}, launch)
    each = launch.sharing(command) is Sharing.ONE_EACH
    return body if each else i.When(number, command.count, body, command.origin)
