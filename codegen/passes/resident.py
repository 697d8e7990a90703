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
FEW = 4  # blocks, of which each that has no registers is missed; of more, these registers would be too few


def resident_blocks(function: i.Function, launch: Launch) -> int:
    """As many blocks as there is room for; one, if blocks do other work meanwhile."""
    room = SHARED // (launch.shared_bytes + OF_BLOCK)
    if not _waits_once(function.body) or not (_multiplies(function.body) or room <= FEW):
        return 1
    fragments = thread_registers(sums(function.body, i.MmaFragment), operands(function.body))
    registers = fragments if _multiplies(function.body) else number_registers(numbers(function.body))
    rooms = (
        room,
        THREADS // launch.threads,
        QUARTERS * (REGISTERS // QUARTERS // (registers * WARP)) * WARP // launch.threads,
        BLOCKS,
    )
    return max(1, min(rooms))


def _waits_once(body: i.Command) -> bool:
    """Whether threads compute with what bulk copies have brought, all of it before the first sum."""
    inner = list(i.commands(body))
    again = [c for c in inner if isinstance(c, i.WarpSpecialise) or (isinstance(c, i.For) and _waits(c))]
    return (_multiplies(body) or numbers(body) >= MANY) and _waits(body) and not again


def _multiplies(body: i.Command) -> bool:
    """Whether warps multiply fragments."""
    return any(isinstance(c, i.MmaFragment) for c in i.commands(body))


def _waits(command: i.Command) -> bool:
    return any(isinstance(part, i.WaitBarrier) for part in i.commands(command))
