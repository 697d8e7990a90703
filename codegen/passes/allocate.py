"""Allocation: each thread's share of distributed arrays, and the layout of shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from codegen.ir import imperative as i
from codegen.ir.buffers import BARRIERS, bytes_of, in_block
from codegen.ir.identifiers import shown
from codegen.ir.launch import Launch, Sharing, number
from codegen.passes.analysis.shifts import CHUNK, shift, starts
from rise.errors import TranslationError
from rise.nat import Atom, Nat, NatVariable, ceiling_quotient, constant, nat, quotient, remainder, variable
from rise.types import Array, Layout, Space

SHARED_LIMIT = 227 * 1024
ALIGNMENT = 128
# loops over these levels do not give each worker its own buffer in shared memory
BLOCKS = (i.Level.CLUSTER, i.Level.BLOCK)
OWNERS = (i.Level.WARP, i.Level.WARPGROUP)
# instructions on parts of shared memory that start at 16-byte boundaries
MOVED_WHOLE = (i.LoadMatrices, i.StoreMatrices, i.LoadFragment, i.StoreFragment, i.Wgmma)


def shares(function: i.Function, launch: Launch) -> i.Function:
    """The pass: a dimension distributed over as many workers as it has elements disappears."""
    return replace(function, body=_shares(function.body, launch))


def _shares(command: i.Command, launch: Launch) -> i.Command:
    command = i.with_inner(command, tuple(_shares(c, launch) for c in i.inner(command)))
    if not isinstance(command, i.New) or not any(command.owners):
        return command
    sizes: list[Nat | None] = []
    type_ = command.type
    for owner in command.owners:
        size = type_.size  # type: ignore[union-attr]  # there is an owner for each array dimension
        workers = launch.workers(*owner) if owner else 1
        share = ceiling_quotient(size, workers) if owner else size
        sizes.append(None if owner and share == constant(1) else share)
        type_ = type_.element  # type: ignore[union-attr]
    for size in reversed(sizes):
        type_ = type_ if size is None else Array(size, type_)

    def own(access: i.Access) -> i.Access:
        if access.buffer != command.name:
            return access
        indices = list(access.indices)
        mine: list[Nat] = []
        for size, owner, index in zip(sizes, command.owners, indices, strict=False):
            if size is not None:
                mine.append(quotient(index, launch.workers(*owner)) if owner else index)
        return replace(access, indices=tuple(mine + indices[len(sizes) :]))

    return replace(command, type=type_, body=i.rebuild(command.body, i.Access, own), owners=())


def place_shared(function: i.Function, launch: Launch) -> tuple[i.Function, Launch]:
    """The pass: assign offsets in shared memory; each warp or warpgroup gets its own copy of its buffers.

    Buffers whose live ranges do not overlap may share addresses; the pass that inserts barriers then treats
    them as conflicting.
    """
    buffers = list(_buffers(function.body, launch))
    offsets = offsets_of(buffers)
    used = end_of(buffers, offsets)
    if used > SHARED_LIMIT:
        raise TranslationError(
            "R0716", f"{used} bytes of shared memory are needed; the limit is {SHARED_LIMIT}"
        )
    placed = {b.name: constant(offsets[b.name]) + b.worker * b.size + b.shift for b in buffers}

    def place(command: i.Command) -> i.Command:
        command = i.with_inner(command, tuple(place(c) for c in i.inner(command)))
        if isinstance(command, i.New) and command.name in placed:
            return replace(command, offset=placed[command.name])
        return command

    return replace(function, body=place(function.body)), replace(launch, shared_bytes=used)


def offsets_of(buffers: Sequence[Buffer]) -> dict[str, int]:
    """Where buffers start, in the better of two orders: by first use, or those that are needed longest first.

    In the second order, what replaces a buffer that is needed shortly may be larger than it.
    """
    orders = [sorted(buffers, key=key) for key in (lambda b: b.live.start, lambda b: -b.live.length)]
    return min(map(offsets_in, orders), key=lambda offsets: end_of(buffers, offsets))


def offsets_in(order: Sequence[Buffer]) -> dict[str, int]:
    """Where buffers start: each at the lowest address where no earlier one is that is alive with it."""
    offsets: dict[str, int] = {}
    for buffer in order:
        others = [b for b in order if b.name in offsets and b.live.overlaps(buffer.live)]
        taken = sorted((offsets[b.name], offsets[b.name] + b.bytes) for b in others)
        offsets[buffer.name] = first_fit(taken, buffer.bytes, buffer.alignment)
    return offsets


def end_of(buffers: Sequence[Buffer], offsets: Mapping[str, int]) -> int:
    """How many bytes they take."""
    return max((offsets[b.name] + b.bytes for b in buffers), default=0)


def first_fit(taken: list[tuple[int, int]], size: int, alignment: int) -> int:
    """The lowest aligned start of `size` bytes that do not overlap a taken range."""
    start = 0
    for lower, upper in taken:
        if start + size <= lower:
            break
        start = max(start, -(-upper // alignment) * alignment)
    return start


@dataclass(frozen=True)
class Region:
    """The half-open range [start, end): bytes of shared memory, or numbers of commands."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start

    def overlaps(self, other: Region) -> bool:
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True)
class Buffer:
    """A buffer in shared memory of `size` bytes, with one copy in all or one per warp or warpgroup.

    shift: the offset of its first element in these bytes
    """

    name: str
    size: int
    copies: int
    worker: Nat
    live: Region
    shift: Nat
    alignment: int = ALIGNMENT

    @property
    def bytes(self) -> int:
        return self.size * self.copies


def _buffers(body: i.Command, launch: Launch) -> Iterator[Buffer]:
    """All shared buffers, each with its live range in numbers of commands."""
    order = {id(c): number for number, c in enumerate(i.commands(body))}

    def extent(command: i.Command) -> Region:
        numbers = [order[id(c)] for c in i.commands(command)]
        return Region(min(numbers), max(numbers) + 1)

    everything, runs = extent(body), starts(body)

    def visit(command: i.Command, around: tuple[i.Command, ...]) -> Iterator[Buffer]:
        if isinstance(command, i.ParallelFor) and command.level not in (*BLOCKS, *OWNERS):
            _refuse_shared(command.body)
        if isinstance(command, i.New) and command.space.in_shared_memory:
            owner = next((c for c in around if isinstance(c, i.ParallelFor) and c.level in OWNERS), None)
            # workers are not synchronised, so a buffer of theirs is live as long as any of them is running
            uses = (
                [extent(owner)] if owner else [extent(c) for c in _using(command.body, command.name, launch)]
            )
            live = Region(min((u.start for u in uses), default=0), max((u.end for u in uses), default=0))
            if command.layout == BARRIERS:
                # copies in flight may still signal the mbarrier, so its memory is never reused
                live = everything
            elif not _is_read(command):
                # nothing waits for copies into it, so they are under way as long as the block is
                live = Region(live.start, everything.end)
            elif _stored_in_bulk(command):
                # bulk stores read the buffer until their wait, which is at the end or before the next write
                again = next((extent(c) for c in around if is_repeated(c, launch)), live)
                live = Region(min(live.start, again.start), everything.end)
            copies = _copies(owner, launch) if owner else 1
            worker = _worker_number(owner, launch) if owner else constant(0)
            alignment = _alignment(command.layout)
            offset = _shift(command, runs)
            room = bytes_of(in_block(command), command.origin) + (2 * CHUNK if command.name in runs else 0)
            size = -(-room // alignment) * alignment
            yield Buffer(command.name, size, copies, worker, live, offset, alignment)
        for part in i.inner(command):
            yield from visit(part, (*around, command))

    return visit(body, ())


def _shift(new: i.New, runs: Mapping[str, tuple[Nat, int]]) -> Nat:
    """The offset in bytes, if the buffer is a run. Raises TranslationError R0745 if that is not allowed."""
    if new.name not in runs:
        return constant(0)
    start, chunk = runs[new.name]
    offset = shift(start, chunk) * (CHUNK // chunk)
    inner = list(i.commands(new.body))
    own = {c.index for c in inner if isinstance(c, i.For | i.ParallelFor)}
    own |= {c.name for c in inner if isinstance(c, i.New | i.Define)}
    if not offset.variables.isdisjoint(own):
        raise TranslationError(
            "R0745",
            f"`{shown(new.name)}` is a run from element {start} on, which changes while the buffer exists",
            new.origin,
            "store each in a buffer of its own",
        )
    whole = (c for c in inner if isinstance(c, MOVED_WHOLE))
    if offset != constant(0) and any(a.buffer == new.name for c in whole for a in i.accesses(c)):
        raise TranslationError(
            "R0745",
            f"fragments need 16-byte boundaries, but `{shown(new.name)}` is a run from element {start} on",
            new.origin,
            "copy it with `copyAsync`",
        )
    return offset


def _is_read(new: i.New) -> bool:
    """Whether anything but the commands that write a buffer uses it."""
    return any(
        a.buffer == new.name and a is not i.target_of(c) for c in i.commands(new.body) for a in i.accesses(c)
    )


def _stored_in_bulk(new: i.New) -> bool:
    return any(
        isinstance(c, i.BulkStore) and any(a is c.value and a.buffer == new.name for a in i.accesses(c))
        for c in i.commands(new.body)
    )


def is_repeated(command: i.Command, launch: Launch) -> bool:
    """Whether the loop executes several iterations one after the other."""
    match command:
        case i.For(_, count):
            return count != constant(1)
        case i.ParallelFor():
            return launch.sharing(command) is Sharing.STRIDED
        case _:
            return False


def _copies(loop: i.ParallelFor, launch: Launch) -> int:
    """How many workers of a loop have their own copy of the buffer."""
    workers = launch.workers(loop.level, loop.dimension)
    if loop.level is i.Level.WARP or launch.sharing(loop) is Sharing.STRIDED or loop.count.value is None:
        return number(nat(workers), "the number of workers")
    return loop.count.value


def _worker_number(loop: i.ParallelFor, launch: Launch) -> Nat:
    """The worker that runs an iteration: its index, modulo the number of workers if it is cyclic."""
    index = variable(loop.index)
    cyclic = launch.sharing(loop) is Sharing.STRIDED
    return remainder(index, nat(launch.workers(loop.level, loop.dimension))) if cyclic else index


def _alignment(layout: Layout) -> int:
    """Alignment in bytes: the pattern of a swizzled buffer repeats every eight rows."""
    match layout:
        case Layout("swizzled", Nat(value=int() as size)):
            return max(ALIGNMENT, 8 * size)
        case _:
            return ALIGNMENT


def _using(command: i.Command, name: str, launch: Launch) -> Iterator[i.Command]:
    """The commands that use a buffer.

    A loop counts as a whole, since its contents may be loop-carried, if it has more than one iteration; one
    over workers, too, since these are not synchronised.
    """
    used = any(a.buffer == name for c in i.commands(command) for a in i.accesses(c))
    if not used:
        return
    whole = isinstance(command, i.ParallelFor) or is_repeated(command, launch)
    if whole or not i.inner(command):
        yield command
    else:
        for part in i.inner(command):
            yield from _using(part, name, launch)


def regions(function: i.Function, launch: Launch) -> dict[str, Region]:
    """The byte range of each buffer in shared memory, by name."""
    sizes = {buffer.name: buffer.bytes for buffer in _buffers(function.body, launch)}
    found: dict[str, Region] = {}
    for command in i.commands(function.body):
        if isinstance(command, i.New) and command.space.in_shared_memory and command.offset is not None:
            first: dict[Atom, Nat] = {NatVariable(name): constant(0) for name in command.offset.variables}
            start = command.offset.substitute(first).value or 0
            found[command.name] = Region(start, start + sizes[command.name])
    return found


def _refuse_shared(command: i.Command) -> None:
    for part in i.commands(command):
        if isinstance(part, i.New) and part.space is Space.SHARED:
            raise TranslationError(
                "R0717",
                f"`{shown(part.name)}` would be shared memory of a single thread",
                part.origin,
                "use toMem(Local), or store it outside the map over threads",
            )
