"""How many blocks have to run on a multiprocessor at the same time, to hide the latency of memory.

A block that waits for all of its bulk copies, then computes, then stores, has nothing else to do while it
waits. The compiler of CUDA does not know how many blocks keep memory busy, and may give all registers to one.
"""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.launch import REGISTERS, WARP, Launch
from codegen.passes.analysis.registers import numbers, operands, sums
from rise.instructions import number_registers, thread_registers

QUARTERS = 4  # of a multiprocessor, with as many registers each
SHARED, OF_BLOCK = 228 * 1024, 1024  # bytes of a multiprocessor, and what a block takes besides its own
THREADS, BLOCKS = 2048, 32  # of a multiprocessor
MANY = 8  # numbers of a thread for which the compiler of CUDA may take too many registers
FEW = 4  # blocks: where shared memory has room for more, kernels would spill registers (measured)


def resident_blocks(function: i.Function, launch: Launch) -> int:
    """As many blocks as there is room for; one, if blocks do other work meanwhile."""
    room = SHARED // (launch.shared_bytes + OF_BLOCK)
    registers = _registers(function.body, room) if _waits_once(function.body) else None
    if registers is None:
        return 1
    rooms = (
        room,
        THREADS // launch.threads,
        QUARTERS * (REGISTERS // QUARTERS // (registers * WARP)) * WARP // launch.threads,
        BLOCKS,
    )
    return max(1, min(rooms))


def _registers(body: i.Command, room: int) -> int | None:
    """What a thread needs, for fragments, or for numbers if shared memory has room for few blocks."""
    if any(isinstance(c, i.MmaFragment) for c in i.commands(body)):
        return thread_registers(sums(body, i.MmaFragment), operands(body))
    kept = numbers(body)
    return number_registers(kept) if kept >= MANY and room <= FEW else None


def _waits_once(body: i.Command) -> bool:
    """Whether bulk copies have brought all of what threads compute with, before they begin."""
    inner = list(i.commands(body))
    again = [c for c in inner if isinstance(c, i.WarpSpecialise) or (isinstance(c, i.For) and _waits(c))]
    return _waits(body) and not again


def _waits(command: i.Command) -> bool:
    return any(isinstance(part, i.WaitBarrier) for part in i.commands(command))
