"""Launch parameters, which are derived from the parallel loops of a kernel and never given.

The size of a block is known at compile time; the size of a grid may depend on sizes that are known at launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil

from codegen.ir import imperative as i
from rise.errors import LaunchError, TranslationError
from rise.nat import Nat, ceiling_quotient, constant, evaluate, maximum, minimum, nat, quotient
from rise.source import Origin

WARP = 32
WARPGROUP = 128
THREAD = "threadIdx.x"  # the number of a thread in its block, in CUDA
GLOBAL_BLOCK = 128
LARGEST_CLUSTER = 8
LARGEST_DEPTH = 64
PRODUCER = 40  # registers of a thread that loads: with 24, indices of tiles are spilled
FEWEST = 32  # the same in a kernel that leaves registers to another one
# warps that share a loop whose number of iterations is not known at compile time
SOME_WARPS = 4
REGISTERS = 65536  # per multiprocessor
GRIDS = (i.Level.CLUSTER, i.Level.BLOCK, i.Level.GRID)
LARGEST_GRID = (2**31 - 1, 2**16 - 1, 2**16 - 1)
# a number, or a size that is known at launch
Extent = int | Nat


class Sharing(Enum):
    """How the iterations of a parallel loop are distributed over its workers."""

    ONE_EACH = "each worker runs one iteration"
    AT_MOST_ONE = "some workers run one iteration, the others none"
    STRIDED = "each worker runs several iterations, one after the other"


@dataclass(frozen=True)
class Launch:
    """Blocks of the grid and threads of a block, by dimension, and bytes of dynamic shared memory.

    cluster:   blocks per cluster, which are adjacent in dimension 0
    producers: the warpgroups at the end of a block that only load; no level counts them as workers
    left:      registers of a multiprocessor that a block leaves to another kernel
    resident:  how many blocks, at least, a multiprocessor has registers for at the same time
    """

    grid: tuple[Extent, Extent, Extent] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int = 0
    cluster: int = 1
    producers: int = 0
    left: int = 0
    resident: int = 1

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps(self) -> int:
        return self.block[0] // WARP - self.producers * (WARPGROUP // WARP)

    @property
    def registers(self) -> int:
        """Registers available to each thread when the kernel starts, with one block per multiprocessor."""
        return min(248, (REGISTERS - self.left) // self.threads // 8 * 8)

    def at(self, sizes: Mapping[str, int]) -> Launch:
        """The launch at these sizes, with numbers for the grid."""
        return replace(self, grid=self.grid_at(sizes))

    def grid_at(self, sizes: Mapping[str, int]) -> tuple[int, int, int]:
        """The blocks in each dimension at these sizes."""
        x, y, z = (e if isinstance(e, int) else int(evaluate(e, sizes)) for e in self.grid)
        return x, y, z

    def workers(self, level: i.Level, dimension: int) -> Extent:
        """The number of workers over which the iterations of a loop are distributed."""
        match level:
            case i.Level.CLUSTER:
                return _extent(quotient(nat(self.grid[dimension]), self.cluster if dimension == 0 else 1))
            case i.Level.BLOCK:
                return self.cluster if self.cluster > 1 and dimension == 0 else self.grid[dimension]
            case i.Level.THREAD:
                return self.block[dimension]
            case i.Level.WARP:
                return self.warps
            case i.Level.LANE:
                return WARP
            case i.Level.WARPGROUP:
                return self.block[0] // WARPGROUP - self.producers
            case i.Level.WARPGROUP_THREAD:
                return WARPGROUP
            case i.Level.GRID:
                return self.grid[dimension] * self.block[dimension]

    def sharing(self, loop: i.ParallelFor) -> Sharing:
        """A grid always has a worker per iteration; a block may have fewer."""
        workers = nat(self.workers(loop.level, loop.dimension))
        if workers == loop.count:
            return Sharing.ONE_EACH
        if workers.value is not None and loop.count.value is not None:
            return Sharing.AT_MOST_ONE if loop.count.value < workers.value else Sharing.STRIDED
        return Sharing.AT_MOST_ONE if loop.level in GRIDS and not loop.most else Sharing.STRIDED

    def __str__(self) -> str:
        sizes = ["×".join(map(str, s)) for s in (self.grid, self.block)]
        clusters = f" in clusters of {self.cluster}" if self.cluster > 1 else ""
        return f"grid {sizes[0]}{clusters}, block {sizes[1]}, {self.shared_bytes} bytes of shared memory"


def register_budget(launch: Launch) -> tuple[int, int]:
    """Registers per loading thread and per computing thread, redistributed from the block's allocation.

    Both are multiples of 8; their total is at most what the block was launched with.
    """
    groups = launch.threads // WARPGROUP
    consumers = groups - launch.producers
    low = FEWEST if launch.left else PRODUCER
    return low, min(248, (launch.registers * groups - low * launch.producers) // consumers // 8 * 8)


def number(size: Nat, what: str, origin: Origin = None) -> int:
    if size.value is None:
        names = " ".join(f"{name}=…" for name in sorted(size.variables))
        raise TranslationError(
            "R0713",
            f"{what} is {size}, which is not known at compile time",
            origin,
            hint=f"give the sizes, `--size {names or 'n=…'}`",
        )
    return size.value


def derive(body: i.Command) -> Launch:
    """Each level gets as many workers as its largest loop has iterations."""
    loops = [c for c in i.commands(body) if isinstance(c, i.ParallelFor)]
    block = [_in_block(loops, i.Level.THREAD, d, GLOBAL_BLOCK if d == 0 else 1) for d in range(3)]
    cluster = _cluster(body)
    grid = [_largest(loops, i.Level.BLOCK, d) for d in range(3)]
    if cluster > 1:
        grid[0] = _extent(nat(_largest(loops, i.Level.CLUSTER, 0)) * cluster)
    if any(loop.level in (i.Level.WARP, i.Level.LANE) for loop in loops):
        block[0] = max(block[0], WARP * _in_block(loops, i.Level.WARP, 0, SOME_WARPS))
        block[0] = ceil(block[0] / WARP) * WARP
    if any(loop.level in (i.Level.WARPGROUP, i.Level.WARPGROUP_THREAD) for loop in loops):
        groups = WARPGROUP * _in_block(loops, i.Level.WARPGROUP, 0, 1)
        block[0] = ceil(max(block[0], groups) / WARPGROUP) * WARPGROUP
    for dimension in range(3):
        total = _largest(loops, i.Level.GRID, dimension)
        if total != 1:
            known = total if isinstance(total, int) else GLOBAL_BLOCK
            block[dimension] = min(known, GLOBAL_BLOCK) or 1 if dimension == 0 else 1
            grid[dimension] = _extent(ceiling_quotient(total, block[dimension]))
    producers = max((c.producers for c in i.commands(body) if isinstance(c, i.WarpSpecialise)), default=0)
    block[0] += producers * WARPGROUP
    launch = Launch(
        (grid[0], grid[1], grid[2]), (block[0], block[1], block[2]), cluster=cluster, producers=producers
    )
    if launch.threads > 1024:
        raise TranslationError("R0714", f"a block would have {launch.threads} threads; the limit is 1024")
    if launch.block[2] > LARGEST_DEPTH:
        raise TranslationError(
            "R0714",
            f"a block would have {launch.block[2]} threads in z; the limit is {LARGEST_DEPTH}",
        )
    return launch


def _cluster(body: i.Command) -> int:
    """The cluster size: the extent of the maps over blocks inside maps over clusters."""
    clusters = [c for c in i.commands(body) if isinstance(c, i.ParallelFor) and c.level is i.Level.CLUSTER]
    blocks = [c for c in i.commands(body) if isinstance(c, i.ParallelFor) and c.level is i.Level.BLOCK]
    inside = [b for c in clusters for b in i.commands(c) if isinstance(b, i.ParallelFor) and b in blocks]
    if not clusters:
        return 1
    sizes = {number(b.count, "the size of a cluster", b.origin) for b in inside}
    flat = all(loop.dimension == 0 for loop in (*clusters, *inside))
    if len(sizes) != 1 or len(inside) != len(blocks) or not flat or max(sizes) > LARGEST_CLUSTER:
        raise TranslationError(
            "R0733",
            "not all blocks of this program are in clusters of the same size",
            clusters[0].origin,
            f"put every mapBlock(0) into a mapCluster(0), with at most {LARGEST_CLUSTER} blocks each",
        )
    return max(sizes)


def _counts(loops: Iterable[i.ParallelFor], level: i.Level, dimension: int) -> list[Nat]:
    found = [loop for loop in loops if loop.level is level and loop.dimension == dimension]
    return [minimum(loop.count, loop.most) if loop.most else loop.count for loop in found]


def _in_block(loops: Sequence[i.ParallelFor], level: i.Level, dimension: int, some: int) -> int:
    """The workers of a block; `some` of them share a loop with an unknown number of iterations."""
    counts = _counts(loops, level, dimension)
    return max((some if count.value is None else count.value for count in counts), default=1) or 1


def _largest(loops: Sequence[i.ParallelFor], level: i.Level, dimension: int) -> Extent:
    largest = constant(1)
    for number_, count in enumerate(_counts(loops, level, dimension)):
        largest = count if number_ == 0 else maximum(largest, count)
    return _extent(largest)


def _extent(size: Nat) -> Extent:
    return size if size.value is None else size.value


def check_grid(name: str, launch: Launch, at: str = "") -> None:
    """Raises LaunchError R0841 if a grid would be too large; skips extents that are not known yet."""
    for axis, found, most in zip("xyz", launch.grid, LARGEST_GRID, strict=True):
        if isinstance(found, int) and found > most:
            raise LaunchError("R0841", f"`{name}` needs {found} blocks in {axis}{at}; the limit is {most}")
