"""Bank conflicts of a warp's accesses to shared memory, computed from their indices.

The memory serves a warp's instruction in phases: all lanes at once for up to 4 bytes each, half of them for
8, a quarter for 16. A phase takes one wavefront, and one more for each further word requested from the same
one of the 32 banks (`codegen/emulation/banks.hpp` counts them in a run). Here the first warp stands for all
of them, and the first iteration for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from codegen.ir import imperative as i
from codegen.ir.buffers import swizzle
from rise.cli.viewer.lines import Line
from rise.nat import Nat, evaluate
from rise.types import Data, Index, Scalar, Space, Vector

LANES, BANKS, WORD = 32, 32, 4
PHASE = LANES * WORD  # bytes that a wavefront moves at most


@dataclass(frozen=True)
class Conflict:
    """An access whose phases take more wavefronts than there are phases."""

    line: Line
    buffer: str
    phases: int
    wavefronts: int


def conflicts(lines: list[Line], body: i.Command) -> Iterator[Conflict]:
    """The accesses of a kernel that conflict. Those to swizzled buffers, and of fragments, are left out."""
    buffers = {c.name: c for c in i.commands(body) if isinstance(c, i.New) and c.space is Space.SHARED}
    plain = {name for name, new in buffers.items() if not swizzle(new.layout)}
    values = {c.name: c.value for c in i.commands(body) if isinstance(c, i.Define)}
    seen: set[tuple[int, str]] = set()
    for line in lines:
        for buffer, index, size in _accesses(line.command):
            if buffer not in plain or (id(line.command), buffer) in seen:
                continue
            seen.add((id(line.command), buffer))
            places = [_at(index, lane, values) * size[0] for lane in range(LANES)]
            phases, wavefronts = cost(places, size[1])
            if wavefronts > phases:
                yield Conflict(line, buffer, phases, wavefronts)


def cost(places: list[int], size: int) -> tuple[int, int]:
    """Phases and wavefronts of an instruction whose lanes access `size` bytes from these on."""
    together = max(1, min(LANES, PHASE // max(size, WORD)))
    phases = [places[start : start + together] for start in range(0, LANES, together)]
    return len(phases), sum(_wavefronts(phase, size) for phase in phases)


def _wavefronts(places: list[int], size: int) -> int:
    words = {word for place in places for word in range(place // WORD, (place + size - 1) // WORD + 1)}
    return max(sum(word % BANKS == bank for word in words) for bank in range(BANKS))


def _accesses(command: i.Command) -> Iterator[tuple[str, Nat, tuple[int, int]]]:
    """Buffer, index, and the bytes of an element and of the whole access."""
    if not isinstance(command, i.Assign | i.CopyAsync | i.LoadMatrices | i.StoreMatrices):
        return
    for access in i.accesses(command):
        if isinstance(access, i.Access) and len(access.indices) == 1:
            element, whole = _sizes(access.type)
            if isinstance(command, i.LoadMatrices | i.StoreMatrices):
                whole = 16
            if element:
                yield access.buffer, access.indices[0], (element, whole)


def _sizes(type_: Data) -> tuple[int, int]:
    match type_:
        case Vector(size, Scalar() as element) if size.value is not None:
            return element.bytes, element.bytes * size.value
        case Scalar():
            return type_.bytes, type_.bytes
        case Index():
            return 4, 4
        case _:
            return 0, 0


def _at(value: Nat, lane: int, values: Mapping[str, Nat]) -> int:
    """An index in lane `lane` of the first warp, in the first iteration of all loops."""
    known = {}
    for name in value.variables:
        known[name] = (
            lane if name == "threadIdx.x" else _at(values[name], lane, values) if name in values else 0
        )
    return int(evaluate(value, known))
