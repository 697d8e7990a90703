"""How many blocks have to run on a multiprocessor at the same time, to hide the latency of memory.

A block that waits for all of its bulk copies, then computes, then stores, has nothing else to do while it
waits. The compiler of CUDA does not know how many blocks keep memory busy, and may give all registers to one.
"""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.launch import REGISTERS, WARP, Launch
from codegen.passes.analysis.registers import operands, sums
from rise.instructions import thread_registers

QUARTERS = 4  # of a multiprocessor, with as many registers each
SHARED, OF_BLOCK = 228 * 1024, 1024  # bytes of a multiprocessor, and what a block takes besides its own
THREADS, BLOCKS = 2048, 32  # of a multiprocessor


def resident_blocks(function: i.Function, launch: Launch) -> int:
    """As many blocks as there is room for; one, if blocks do other work meanwhile."""
    if not _waits_once(function.body):
        return 1
    registers = thread_registers(sums(function.body, i.MmaFragment), operands(function.body))
    rooms = (
        SHARED // (launch.shared_bytes + OF_BLOCK),
        THREADS // launch.threads,
        QUARTERS * (REGISTERS // QUARTERS // (registers * WARP)) * WARP // launch.threads,
        BLOCKS,
    )
    return max(1, min(rooms))


def _waits_once(body: i.Command) -> bool:
    """Whether warps multiply what bulk copies have brought, all of it before the first product."""
    inner = list(i.commands(body))
    again = [c for c in inner if isinstance(c, i.WarpSpecialise) or (isinstance(c, i.For) and _waits(c))]
    products = any(isinstance(c, i.MmaFragment) for c in inner)
    return products and _waits(body) and not again


def _waits(command: i.Command) -> bool:
    return any(isinstance(part, i.WaitBarrier) for part in i.commands(command))
