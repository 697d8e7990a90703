"""What a schedule of products needs of a GPU, predicted from its parameters; refused where there is less.

Everything here is arithmetic on parameters: nothing is derived or compiled. Sources: the programming guide's
table of compute capabilities; registers at launch as ptxas counts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import ceil

from rise.errors import StrategyError
from rise.frozen import filled_at_once
from strategies.matmul.schedule import WITHOUT_REST, Schedule

WARP, WARPGROUP = 32, 128
ROWS_PADDING = 16  # bytes, so that the rows of a fragment start in different banks
PARTIAL = 4  # bytes of a sum that another kernel adds to others
PATTERNS = (128, 64, 32)  # bytes of rows that can be swizzled
PRODUCER = 40  # registers of a thread that only copies
BARRIERS = 1024  # bytes for the barriers of rings, up to where swizzled tiles may start
OF_RING = 128  # bytes of those that say which slots are full, or empty, or whose turn it is
# registers of a thread of a warpgroup besides its accumulators, for addresses, descriptors, the loop: what
# ptxas counts for a product that is stored as it is
OTHERS = 26
DEEPEST = 8  # stages of the tiles that the last matrices of an array have


@filled_at_once
@dataclass(frozen=True, slots=True)
class Limits:
    """What a block may have. Registers are of 32 bits; `registers` are those of a multiprocessor.

    cluster: the most blocks of a cluster
    """

    shared_bytes: int = 232448
    threads: int = 1024
    thread_registers: int = 255
    registers: int = 65536
    cluster: int = 8

    def registers_of(self, threads: int) -> int:
        """How many a thread can have in a block of so many: they are given out in units of eight."""
        return min(self.thread_registers, self.registers // max(threads, 1) // 8 * 8)

    def registers_warp_specialised(self, threads: int) -> int:
        """The same for those that compute, where one warpgroup only copies and gives the rest of its own.

        A block has the registers that its threads have at launch; 248 is the most that a thread can request.
        """
        pool = min(self.registers_of(threads), 248) * threads
        return min(248, (pool - WARPGROUP * PRODUCER) // max(threads - WARPGROUP, 1) // 8 * 8)

    def room(self, s: Schedule, threads: int) -> int:
        """How many a thread of a schedule that computes can have."""
        return (self.registers_warp_specialised if s.warp_specialised else self.registers_of)(threads)


# the most that any GPU has, which is what `tensor_core` refuses to exceed when it does not know the GPU
LARGEST = Limits()


@filled_at_once
@dataclass(frozen=True, slots=True)
class Resources:
    """threads: of a block. accumulators: registers of a thread for its sums. shared_bytes: of a block."""

    threads: int
    accumulators: int
    shared_bytes: int

    @property
    def registers(self) -> int:
        """The fewest a thread gets along with."""
        return self.accumulators + OTHERS


def resources(
    s: Schedule,
    operand_bytes: int = 2,
    along_k: tuple[bool, bool] = (True, True),
    result_bytes: int = 2,
    operands: tuple[int, int] = (1, 1),
    products: int = 1,
    beside: tuple[int, ...] = (),
) -> Resources:
    """What a block of a schedule needs.

    operand_bytes: of an element of A and B
    along_k:       whether rows of A and columns of B are contiguous along k
    result_bytes:  of an element of the result
    operands:      how many tiles of first and of second operands a step loads
    products:      how many products have sums of their own
    beside:        of the matrices that the epilogue reads, the bytes of an element of each
    """
    lanes = WARPGROUP if s.uses_wgmma else WARP
    producer = WARPGROUP if s.warp_specialised else 0
    accumulators = products * s.warp[0] * s.warp[1] // lanes
    size = shared_bytes(s, operand_bytes, along_k, result_bytes, operands, products=products, beside=beside)
    return Resources(lanes * s.workers + producer, accumulators, size)


def shared_bytes(
    s: Schedule,
    operand_bytes: int,
    along_k: tuple[bool, bool],
    result_bytes: int = 2,
    operands: tuple[int, int] = (1, 1),
    stages: int | None = None,
    products: int = 1,
    beside: tuple[int, ...] = (),
) -> int:
    """The ring of tiles; or, once it is done with, the sums in f32 for an epilogue through shared memory.

    For bulk stores, and for those of rows, each warpgroup has a fragment of the result there. With roles,
    and where the blocks of a cluster share sums, all that is beside the ring: others load meanwhile. Tiles of
    matrices that are loaded ahead have rings of their own.

    stages: in place of those of the schedule
    """
    m, n, k = s.block
    first = operands[0] * _tile(s, m, k, operand_bytes, along_k[0])
    second = operands[1] * _tile(s, n, k, operand_bytes, along_k[1])
    stages = s.stages if stages is None else stages
    ring = stages * (first + second)
    if s.uses_wgmma and stages:
        ring += barriers(s, len(beside) if s.ahead else 0)
    ring += s.ahead * m * n * sum(beside)
    if s.epilogue in ("bulk", "rows"):
        size = PARTIAL if s.split_k > 1 else result_bytes
        padding = ROWS_PADDING if s.epilogue == "rows" else 0
        stored = s.workers * s.fragment[0] * (s.fragment[1] * size + padding)
        return ring + stored if s.warp_specialised else max(ring, stored)
    sums = products * s.slice_k * m * (n + 8) * 4 if s.epilogue == "shared" else 0
    return ring + sums if s.split_cluster > 1 or s.warp_specialised else max(ring, sums)


def barriers(s: Schedule, ahead: int) -> int:
    """Bytes for the barriers of the ring of operands, and of those of so many matrices."""
    each = 3 if s.ping_pong > 1 else 2
    return ceil((1 + ahead) * each * OF_RING / BARRIERS) * BARRIERS


def _tile(s: Schedule, outer: int, k: int, size: int, along_k: bool) -> int:
    """Bytes of a tile: rows along k or across it, swizzled by bulk copies, else padded as they are long."""
    rows, columns = (outer, k) if along_k else (k, outer)
    if s.uses_wgmma or (s.swizzled and columns * size in PATTERNS):
        return rows * columns * size
    return rows * (columns + s.padding) * size


def check(
    s: Schedule,
    limits: Limits = LARGEST,
    operand_bytes: int = 2,
    along_k: tuple[bool, bool] = (True, True),
    result_bytes: int = 2,
    beside: tuple[int, ...] = (),
) -> Resources:
    """What the schedule needs; StrategyError R0621, by parameter, where that is more than there is."""
    needed = resources(s, operand_bytes, along_k, result_bytes, beside=beside)
    if needed.threads > limits.threads:
        _refuse(
            "warp", f"{_shape(s.warp)} makes {needed.threads} threads of a block of {_shape(s.block[:2])}",
            f"{limits.threads} threads", "fewer and larger parts: a larger `warp`",
        )  # fmt: skip
    room = limits.room(s, needed.threads)
    if s.uses_wgmma and needed.registers > room:
        _refuse(
            "warp",
            f"{_shape(s.warp)} needs {needed.accumulators} registers a thread for sums and {OTHERS} besides",
            f"{room} registers a thread in a block of {needed.threads} threads",
            f"a part of at most {(room - OTHERS) * WARPGROUP} elements",
        )
    # the compiler asks that one product gets along with what threads have when the kernel starts
    at_launch, of_one = limits.registers_of(needed.threads), s.fragment[0] * s.fragment[1] // WARPGROUP
    if s.uses_wgmma and of_one + OTHERS > at_launch:
        _refuse(
            "fragment", f"{_shape(s.fragment)} needs {of_one} registers a thread for sums, {OTHERS} besides",
            f"{at_launch} registers a thread in a block of {needed.threads} threads when it starts",
            f"a fragment of at most {(at_launch - OTHERS) * WARPGROUP // s.fragment[0] // 8 * 8} columns",
        )  # fmt: skip
    if needed.shared_bytes > limits.shared_bytes:
        _refuse(
            "stages", f"{s.stages} tiles of {_shape(s.block)} need {needed.shared_bytes} bytes of a block",
            f"{limits.shared_bytes} bytes of shared memory",
            _fewer(s, limits, operand_bytes, along_k, result_bytes, beside),
        )  # fmt: skip
    for name, blocks in (("cluster", s.cluster), ("split_cluster", s.split_cluster)):
        if blocks > limits.cluster:
            _refuse(name, f"{blocks} blocks", f"at most {limits.cluster} in a cluster", "smaller clusters")
    return needed


def finer(s: Schedule, operand_bytes: int = 2, along_k: tuple[bool, bool] = (True, True)) -> Schedule:
    """The schedule of the rest, of warpgroups with 64 rows each and as many stages as fit."""
    _, m, n = s.rest
    block, fragment = (m, n, s.block[2]), (64, n, s.fragment[2])
    made = replace(
        s, rest=WITHOUT_REST, block=block, warp=(64, n), fragment=fragment, ping_pong=1, raster_matrices=1
    )
    made = made if made.has_halves else replace(made, short_tiles=False)
    fit = (
        stages
        for stages in range(DEEPEST, 2, -1)
        if shared_bytes(made, operand_bytes, along_k, stages=stages) <= LARGEST.shared_bytes
    )
    return replace(made, stages=next(fit, 2))


def check_sizes(s: Schedule, sizes: Mapping[str, int], along_k: tuple[bool, bool] = (True, True)) -> None:
    """StrategyError R0604 where what has to divide something does not. Tiles of a block may stick out.

    sizes: m, n, k of the product. Bulk copies take rows across k in panels, of which fragments are some.
    """
    for index, name in enumerate("mn"):
        if not s.uses_wgmma or along_k[index]:
            continue
        width = panel(s.block[index])
        for what, size in (("block", s.block[index]), ("fragment", s.fragment[index])):
            if size % width:
                message = f"tensor_core: {what} {name}: {width} does not divide {size}"
                hint = f"rows of this operand are contiguous along {name}, not along k"
                raise StrategyError("R0604", message, hint=hint)


def panel(length: int, size: int = 2) -> int:
    """How many elements of `size` bytes a row in shared memory has, of a tile that is so long."""
    return (pattern(length * size) or PATTERNS[-1]) // size


@cache
def pattern(length: int) -> int:
    """The longest one that divides rows of so many bytes; 0 without one."""
    return next((p for p in PATTERNS if length % p == 0), 0)


def _fewer(
    s: Schedule,
    limits: Limits,
    operand_bytes: int,
    along_k: tuple[bool, bool],
    result_bytes: int,
    beside: tuple[int, ...],
) -> str:
    """The most stages that fit; where results alone do not, what stores them from registers."""
    for epilogue, words in ((s.epilogue, ""), ("direct", "epilogue=direct ")):
        for stages in range(s.stages, 0, -1):
            smaller = replace(s, stages=stages, epilogue=epilogue)
            size = shared_bytes(smaller, operand_bytes, along_k, result_bytes, beside=beside)
            if size <= limits.shared_bytes:
                return f"{words}stages={stages}"
    return "a smaller `block`"


def _shape(sizes: tuple[int, ...]) -> str:
    return "×".join(map(str, sizes))


def _refuse(parameter: str, needs: str, there: str, instead: str) -> None:
    raise StrategyError("R0621", f"tensor_core: {parameter}: {needs}; there are {there}", hint=instead)
