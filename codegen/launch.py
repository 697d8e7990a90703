"""Launch parameters: derived from the parallel loops of a kernel, never given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from codegen import imperative as i
from rise.errors import TranslationError
from rise.nat import Nat

WARP = 32
GLOBAL_BLOCK = 128


@dataclass(frozen=True)
class Launch:
    """Blocks of the grid and threads of a block, by dimension; bytes of dynamic shared memory."""

    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int = 0

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    def workers(self, level: i.Level, dimension: int) -> int:
        """How many there are to share the iterations of a loop."""
        match level:
            case i.Level.BLOCK:
                return self.grid[dimension]
            case i.Level.THREAD:
                return self.block[dimension]
            case i.Level.WARP:
                return self.block[0] // WARP
            case i.Level.LANE:
                return WARP
            case i.Level.GRID:
                return self.grid[dimension] * self.block[dimension]

    def __str__(self) -> str:
        sizes = ["×".join(map(str, s)) for s in (self.grid, self.block)]
        return f"grid {sizes[0]}, block {sizes[1]}, {self.shared_bytes} bytes of shared memory"


def number(size: Nat, what: str) -> int:
    if size.value is None:
        raise TranslationError(
            "R0713",
            f"{what} is {size}, which is not known at compile time",
            hint="give the sizes, `--size n=…`",
        )
    return size.value


def derive(body: i.Command) -> Launch:
    """As many workers at every level as its largest loop has iterations."""
    loops = [c for c in i.commands(body) if isinstance(c, i.ParallelFor)]
    block = [_largest(loops, i.Level.THREAD, d) for d in range(3)]
    grid = [_largest(loops, i.Level.BLOCK, d) for d in range(3)]
    if any(loop.level in (i.Level.WARP, i.Level.LANE) for loop in loops):
        block[0] = max(block[0], WARP * _largest(loops, i.Level.WARP, 0))
        block[0] = ceil(block[0] / WARP) * WARP
    for dimension in range(3):
        total = _largest(loops, i.Level.GRID, dimension)
        if total > 1:
            block[dimension] = min(total, GLOBAL_BLOCK) if dimension == 0 else 1
            grid[dimension] = ceil(total / block[dimension])
    launch = Launch((grid[0], grid[1], grid[2]), (block[0], block[1], block[2]))
    if launch.threads > 1024:
        raise TranslationError(
            "R0714", f"a block would have {launch.threads} threads; at most 1024 are possible"
        )
    return launch


def _largest(loops: Iterable[i.ParallelFor], level: i.Level, dimension: int) -> int:
    counts = [
        number(loop.count, f"the number of iterations over {level.value}s")
        for loop in loops
        if loop.level is level and loop.dimension == dimension
    ]
    return max(counts, default=1)
