"""Reads the indices that are data for the next iteration of a persistent loop, while this one computes.

Which rows a tile has, and which matrix it is multiplied with, may be data. A block that computes several
tiles would wait for these indices at the start of each, and at its end for where results go. So they are read
an iteration ahead, by S workers that take N elements in turn:

    parFor t < N. c(A[t])
        =   new next. parFor t < N. (when t < S. next := A[t]) ; new x. x := next ;
                                    (when t + S < N. next := A[t + S]) ; c(x)        A an input, S < N
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeGuard

from codegen.ir import imperative as i
from codegen.ir.buffers import written
from codegen.ir.launch import Launch
from codegen.passes.analysis.fresh import Names, names_of
from rise.nat import constant, variable
from rise.types import Index, Space

SEVERAL = (i.Level.BLOCK, i.Level.CLUSTER)  # whose loops are over elements that each worker takes in turn


def next_indices(function: i.Function, launch: Launch) -> i.Function:
    """The pass."""
    # a kernel beside the one in front of it waits for what that writes behind its first products
    inputs = function.ready or frozenset(v.name for v in function.inputs)
    ahead = _Ahead(frozenset(inputs - written(function.body)), names_of(function), launch)
    return replace(function, body=ahead.command(function.body))


@dataclass(frozen=True)
class _Ahead:
    """inputs: arrays that the kernel only reads"""

    inputs: frozenset[str]
    names: Names
    launch: Launch

    def command(self, command: i.Command) -> i.Command:
        if isinstance(command, i.ParallelFor) and command.most and command.level in SEVERAL:
            return self._loop(command)
        return i.with_inner(command, tuple(map(self.command, i.inner(command))))

    def _loop(self, loop: i.ParallelFor) -> i.Command:
        workers = self.launch.workers(loop.level, loop.dimension)
        count = loop.count.value
        if not isinstance(workers, int) or count is None or count <= workers:
            return loop
        found = {read.buffer: read for read in i.accesses_in(loop.body) if self._of_iteration(read, loop)}
        reads = [found[name] for name in sorted(found)]
        named = [(read, self._named(read, "now"), self._named(read, "next")) for read in reads]
        t = variable(loop.index)
        here = {read: now for read, now, _ in named}
        body = i.rebuild(loop.body, i.Access, lambda access: here.get(access, access))
        for read, now, later in named:
            further = replace(read, indices=(t + workers,))
            ahead = i.When(t + workers, loop.count, i.Assign(later, further))
            body = i.New(Space.LOCAL, now.buffer, read.type, i.sequence(i.Assign(now, later), ahead, body))
        first = [i.When(t, constant(workers), i.Assign(later, read)) for read, _, later in named]
        made: i.Command = replace(loop, body=i.sequence(*first, body))
        for read, _, later in named:
            made = i.New(Space.LOCAL, later.buffer, read.type, made)
        return made

    def _of_iteration(self, read: i.Access | i.Tile, loop: i.ParallelFor) -> TypeGuard[i.Access]:
        """Whether it is an index in an input, at the place of the iteration."""
        return (
            isinstance(read, i.Access)
            and read.buffer in self.inputs
            and isinstance(read.type, Index)
            and read.indices == (variable(loop.index),)
        )

    def _named(self, read: i.Access, when: str) -> i.Access:
        """A scalar for what is read."""
        return replace(read, buffer=self.names.fresh(f"{read.buffer.rstrip('_')}_{when}"), indices=())
