"""How much each thread and each block allocates: shares of distributed arrays, and shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen import imperative as i
from codegen.launch import Launch, number
from rise.errors import TranslationError
from rise.nat import Nat, ceiling_quotient, constant, quotient, variable
from rise.types import Array, Data, Index, Scalar, Space

SHARED_LIMIT = 227 * 1024
ALIGNMENT = 128


def shares(function: i.Function, launch: Launch) -> i.Function:
    """The pass: a dimension distributed over as many workers as it is long vanishes."""
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


def bytes_of(type_: Data) -> int:
    """The size of a value in memory."""
    total = 1
    while isinstance(type_, Array):
        total *= number(type_.size, "the size of a buffer")
        type_ = type_.element
    if isinstance(type_, Scalar):
        return total * type_.bytes
    if isinstance(type_, Index):
        return total * 4
    raise TranslationError("R0715", f"`{type_}` cannot be stored in memory")


def place_shared(function: i.Function, launch: Launch) -> tuple[i.Function, Launch]:
    """The pass: offsets for buffers in shared memory; those inside of a warp's work, once for each warp."""
    body, used = _place(function.body, 0, {}, launch)
    if used > SHARED_LIMIT:
        raise TranslationError(
            "R0716", f"{used} bytes of shared memory are needed; at most {SHARED_LIMIT} exist"
        )
    return replace(function, body=body), replace(launch, shared_bytes=used)


def _place(command: i.Command, used: int, warps: Mapping[str, int], launch: Launch) -> tuple[i.Command, int]:
    """Offsets from `used` up, for each buffer its own space: reusing it would need further barriers."""
    if isinstance(command, i.ParallelFor) and command.level is i.Level.WARP:
        warps = {**warps, command.index: launch.workers(i.Level.WARP, 0)}
    if isinstance(command, i.ParallelFor) and command.level in (i.Level.LANE, i.Level.THREAD):
        _refuse_shared(command.body)
    if isinstance(command, i.New) and command.space is Space.SHARED:
        size = -(-bytes_of(command.type) // ALIGNMENT) * ALIGNMENT
        offset: Nat = constant(used)
        copies = 1
        for index, count in warps.items():
            offset, copies = offset + variable(index) * size, copies * count
        body, top = _place(command.body, used + size * copies, warps, launch)
        return replace(command, body=body, offset=offset), top
    placed: list[i.Command] = []
    for part in i.inner(command):
        new, used = _place(part, used, warps, launch)
        placed.append(new)
    return i.with_inner(command, tuple(placed)), used


def _refuse_shared(command: i.Command) -> None:
    for part in i.commands(command):
        if isinstance(part, i.New) and part.space is Space.SHARED:
            raise TranslationError(
                "R0717",
                f"`{part.name}` would be shared memory of a single thread",
                part.origin,
                "use toMem(Local), or store it outside of the map over threads",
            )
