"""Numbers from global memory that are read before what they are used with is there.

An epilogue reads numbers for rows into registers, and uses them with sums whose products are still under way.
Where the reads come first, the wait for these products, which stands before the first use of sums (see
`wgmma_sync`), comes behind them:

    for w. new x. (read x ; use x)   =   new xs. (for w. read xs[w] ; for w. use xs[w])

`w` is the number of a warpgroup, of a thread, or of the only iteration of a loop. Copies between buffers in
shared memory are taken apart in the same way (see `reads_before_writes`).
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir import imperative as i
from codegen.ir.buffers import written
from rise.nat import constant, variable
from rise.types import Array, Space


def reads_first(command: i.Command, arrays: frozenset[str]) -> i.Command:
    """The command, with the reads of these arrays into registers at its beginning before all of it."""
    found = apart(command, arrays)
    if found is None:
        return command
    new, reads, rest = found
    return replace(new, body=i.sequence(reads, reads_first(rest, arrays)))


Apart = tuple[i.New, i.Command, i.Command]


def apart(command: i.Command, arrays: frozenset[str]) -> Apart | None:
    """Registers that a command reads at its beginning: their declaration, the reads, and all that follows."""
    match command:
        case i.New(Space.LOCAL, name, body=i.Sequence((first, *others))) if _reads(first, name, arrays):
            return command, first, i.sequence(*others)
        case i.New():
            found = apart(command.body, arrays)
            return found and (found[0], found[1], replace(command, body=found[2]))
        case i.Sequence((first, *others)):
            found = apart(first, arrays)
            return found and (found[0], found[1], i.sequence(found[2], *others))
        case i.For() if command.count == constant(1):
            found = apart(command.body, arrays)
            return found and (found[0], replace(command, body=found[1]), replace(command, body=found[2]))
        case i.ParallelFor(i.Level.WARPGROUP | i.Level.THREAD, execution=""):
            found = apart(command.body, arrays)
            return found and _for_each(command, *found)
        case _:
            return None


def _reads(command: i.Command, name: str, arrays: frozenset[str]) -> bool:
    """Whether all that a command does is to read from arrays into a buffer, by registers of its own."""
    own = {c.name for c in i.commands(command) if isinstance(c, i.New) and c.space is Space.LOCAL}
    used = {access.buffer for access in i.accesses_in(command)} - own
    return written(command) - own == {name} and used <= {name, *arrays}


def _for_each(loop: i.ParallelFor, new: i.New, reads: i.Command, rest: i.Command) -> Apart:
    """Registers of each worker, declared around the loop over workers."""

    def own(access: i.Access) -> i.Access:
        mine = access.buffer == new.name
        return replace(access, indices=(variable(loop.index), *access.indices)) if mine else access

    parts = [replace(loop, body=i.rebuild(part, i.Access, own)) for part in (reads, rest)]
    return replace(new, type=Array(loop.count, new.type)), parts[0], parts[1]
