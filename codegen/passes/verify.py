"""The validator that runs between passes: the result of each pass must be legal input of the next.

Buffers and indices are used in their scope, and no inner name shadows an outer one. An access has no more
indices than its buffer has dimensions, and has the element type of the buffer. The operands of instructions
are in the right address spaces. Inputs are not written. Levels nest as in the hardware.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

from codegen.ir import imperative as i
from codegen.ir.buffers import BARRIERS, dimensions, inner_element
from codegen.passes.analysis.walk import own_nats
from codegen.passes.legality import check_levels
from rise.errors import RiseError, TranslationError
from rise.frozen import filled_at_once
from rise.source import Origin
from rise.types import Array, Data, Fragment, Space, Vector

# the special registers of CUDA that hold the numbers of threads and blocks
REGISTERS = ("threadIdx", "blockIdx")

_state = {"on": False}


def is_on() -> bool:
    return _state["on"]


@contextmanager
def verifying(on: bool = True) -> Iterator[None]:
    """Inside this context, the result of every pass is checked."""
    before = _state["on"]
    _state["on"] = on
    try:
        yield
    finally:
        _state["on"] = before


@filled_at_once
@dataclass(frozen=True, slots=True)
class Buffer:
    type: Data
    space: Space
    barriers: bool = False


# equal ones are one object, so that scopes are compared quickly
buffer = cache(Buffer)


@filled_at_once
@dataclass(frozen=True, slots=True)
class Scope:
    """The names that are visible to a command."""

    buffers: Mapping[str, Buffer]
    indices: frozenset[str]
    inputs: frozenset[str]

    def with_index(self, *names: str) -> Scope:
        return Scope(self.buffers, self.indices.union(names), self.inputs)


def check(function: i.Function, after: str, levels: bool = True) -> None:
    """Checks one function by itself, as `Validator.check` does."""
    Validator().check(function, after, levels)


class Validator:
    """Checks what one pass after the other makes of a kernel; what none of them touches only once.

    known: the commands that are right, by identity, with the scopes in which they are
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[i.Command, Scope]] = {}

    def check(self, function: i.Function, after: str, levels: bool = True) -> None:
        """Raises RiseError R0799, an internal error that names the pass. levels: whether to check nesting"""
        given = {v.name: buffer(v.type, Space.GLOBAL) for v in (*function.outputs, *function.inputs)}
        inputs = frozenset(v.name for v in function.inputs)
        try:
            if levels:
                check_levels(function.body)
            self._command(function.body, Scope(given, frozenset(given), inputs))
        except TranslationError as error:
            raise RiseError(
                "R0799", f"internal: after the pass `{after}`: {error.message}", error.origin
            ) from error

    def _command(self, command: i.Command, around: Scope) -> None:
        before = self.known.get(id(command))  # which is kept alive, so that its id stays its own
        if before is not None and before[1] == around:
            return
        scope = _around(command, around)
        accesses = list(i.accesses(command))
        for access in accesses:
            _check_access(access, scope, _origin(command))
        _check_indices(command, accesses, scope)
        _check_spaces(command, scope)
        target = i.target_of(command)
        if isinstance(target, i.Access | i.Tile) and target.buffer in scope.inputs:
            raise TranslationError("R0799", f"the input `{target.buffer}` is written")
        for part in i.inner(command):
            self._command(part, scope)
        self.known[id(command)] = command, around


def _around(command: i.Command, scope: Scope) -> Scope:
    """The names that are visible to the command itself and to those inside it."""
    match command:
        case i.For(index):
            counters = (counter.name for counter in command.counters)
            return _fresh(command, scope, index).with_index(*counters)
        case i.ParallelFor(_, _, index):
            return _fresh(command, scope, index).with_index(command.execution)
        case i.ForFragment(_, index) | i.Define(index):
            return _fresh(command, scope, index)
        case i.Ring():
            return scope.with_index(command.execution)
        case i.WarpSpecialise():
            return scope.with_index(command.execution, command.position)
        case i.New(space, name, type_):
            new = buffer(type_, space, command.layout == BARRIERS)
            return replace(_fresh(command, scope, name), buffers={**scope.buffers, name: new})
        case _:
            return scope


def _fresh(command: i.Command, scope: Scope, name: str) -> Scope:
    if name in scope.indices:
        raise TranslationError("R0799", f"`{name}` of a {type(command).__name__} shadows another `{name}`")
    return scope.with_index(name)


def _check_indices(command: i.Command, accesses: list[i.Access | i.Tile], scope: Scope) -> None:
    """A tile binds the names of its rows and columns itself."""
    tiles = (access for access in accesses if isinstance(access, i.Tile))
    known = scope.indices | {name for tile in tiles for name, _ in tile.extents}
    for value in own_nats(command):
        for name in value.variables - known:
            if name.partition(".")[0] not in REGISTERS:
                raise TranslationError("R0799", f"the index `{name}` is not in scope", _origin(command))


def _check_access(access: i.Access | i.Tile, scope: Scope, origin: Origin) -> None:
    buffer = scope.buffers.get(access.buffer)
    if buffer is None:
        raise TranslationError("R0799", f"the buffer `{access.buffer}` is not in scope", origin)
    most = len(dimensions(buffer.type)) + isinstance(inner_element(buffer.type), Fragment | Vector)
    if len(access.indices) > most:
        found = f"`{access.buffer}` of type `{buffer.type}` has {len(access.indices)} indices"
        raise TranslationError("R0799", found, origin)
    if _scalar(access.type) != _scalar(buffer.type):
        message = f"`{access.buffer}` holds `{_scalar(buffer.type)}` and is used as `{_scalar(access.type)}`"
        raise TranslationError("R0799", message, origin)


def _scalar(type_: Data) -> Data:
    while isinstance(type_, Array | Vector | Fragment):
        type_ = type_.element
    return type_


def _check_spaces(command: i.Command, scope: Scope) -> None:
    """Checks the address spaces of the operands of each instruction."""
    match command:
        case i.CopyAsync(target, value):
            wanted = [(target, Space.SHARED), (value, Space.GLOBAL)]
        case i.BulkCopy(target, value):
            wanted = [(target, Space.SHARED), (value, Space.GLOBAL)]
        case i.LeaveUndefined(tile):
            wanted = [(tile, Space.SHARED)]
        case i.BulkStore(target, value):
            wanted = [(target, Space.GLOBAL), (value, Space.SHARED)]
        case i.Wgmma(target, a, b):
            operand = Space.SHARED if isinstance(a, i.Tile) else Space.LOCAL
            wanted = [(target, Space.LOCAL), (a, operand), (b, Space.SHARED)]
        case i.MmaFragment(target, a, b, c):
            wanted = [(part, Space.LOCAL) for part in (target, a, b, c)]
        case i.LoadFragment(_, target) | i.FillFragment(_, target):
            wanted = [(target, Space.LOCAL)]
        case _:
            wanted = []
    for part, space in wanted:
        if isinstance(part, i.Access | i.Tile) and scope.buffers[part.buffer].space is not space:
            message = f"`{part.buffer}` is in {scope.buffers[part.buffer].space.value} memory"
            raise TranslationError("R0799", f"{message}, not in {space.value}", _origin(command))
    match command:
        case i.Arrive(barrier) | i.WaitBarrier(barrier) | i.Expect(barrier) | i.InitBarriers(barrier):
            if isinstance(barrier, i.Access) and not scope.buffers[barrier.buffer].barriers:
                raise TranslationError("R0799", f"`{barrier.buffer}` is not a ring of mbarriers")


def _origin(command: i.Command) -> Origin:
    return getattr(command, "origin", None)
