"""GPUs as numbers: what the cost model knows of them, and nothing else does.

Sources: NVIDIA's white papers and the programming guide; the sustained fraction and the latency of H200 from
benchmarks/results/schedules-h200.csv, where tensor cores are held back by power. Figures for the others are
estimates of the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rise.errors import UsageError
from rise.instructions import INSTRUCTIONS, Family
from strategies.matmul.constraints import Limits


def capability(target: str) -> int:
    """The compute capability of a target, times ten; 0 where it names none."""
    return int("".join(filter(str.isdigit, target)) or 0)


@dataclass(frozen=True)
class Gpu:
    """Cycles are of the multiprocessors' clock at `mhz`.

    macs:       products and sums of f16 that tensor cores of a multiprocessor do in a cycle, at their peak
    sustained:  the fraction of the peak that a family of instructions reaches for long
    l2_rate:    bytes a cycle from the L2 cache, for the whole GPU; at most `l2_port` to a multiprocessor
    shared_rate: bytes a cycle into and out of shared memory of a multiprocessor
    dram_rate:  bytes a cycle from memory, for the whole GPU
    latency:    cycles from asking for a tile to having it, while others do too
    fill:       cycles from the start of a block to its first product
    clusters:   blocks that there are at a time in clusters of so many, where fewer than multiprocessors: as
                the driver says, since a cluster is in one graphics processing cluster
    cluster_rate: bytes a cycle that a multiprocessor reads from others of its cluster: what fits the kernels
                that share sums in this way, of seven products
    shared:     bytes of shared memory of a multiprocessor; a block has `limits.shared_bytes` at most
    """

    name: str
    target: str
    multiprocessors: int
    mhz: int
    macs: int
    sustained: Mapping[Family, float] = field(hash=False)
    l2_rate: int
    l2_port: int
    l2_bytes: int
    shared_rate: int
    dram_rate: int
    latency: int
    fill: int
    shared: int
    limits: Limits
    clusters: Mapping[int, int] = field(default_factory=dict, hash=False)
    cluster_rate: int = 10

    def __hash__(self) -> int:
        """Of what tells GPUs apart: tables have no hash."""
        return hash((self.name, self.target))

    @property
    def capability(self) -> int:
        """The compute capability, times ten."""
        return capability(self.target)

    def multiplies(self, operand: str) -> bool:
        """Whether it has instructions for products of elements of a type."""
        return any(operand in each.operands and each.target <= self.capability for each in INSTRUCTIONS)

    def in_clusters(self, size: int) -> int:
        """How many blocks there are at a time, in clusters of so many, one block to a multiprocessor."""
        return self.clusters.get(size, self.multiprocessors // size * size)

    def microseconds(self, cycles: float) -> float:
        return cycles / self.mhz


_WARPS = {Family.MMA: 0.55, Family.WMMA: 0.5, Family.VOLTA: 0.2}
H200 = Gpu(
    "H200", "sm_90a", 132, 1870, 2048, {Family.WGMMA: 0.88, **_WARPS},
    7300, 64, 50 * 2**20, 133, 2300, 1000, 1300, 228 * 1024, Limits(), {3: 117, 4: 120, 8: 120},
)  # fmt: skip
A100 = Gpu(
    "A100", "sm_80", 108, 1410, 1024, {Family.MMA: 0.85, Family.WMMA: 0.75, Family.VOLTA: 0.3},
    5120, 64, 40 * 2**20, 128, 1100, 700, 1500, 164 * 1024, Limits(163 * 1024),
)  # fmt: skip
T4 = Gpu(
    "T4", "sm_75", 40, 1590, 512, {Family.WMMA: 0.7, Family.VOLTA: 0.6},
    1280, 64, 4 * 2**20, 128, 200, 500, 1200, 64 * 1024, Limits(64 * 1024),
)  # fmt: skip
V100 = Gpu(
    "V100", "sm_70", 80, 1530, 512, {Family.WMMA: 0.6, Family.VOLTA: 0.7},
    2000, 64, 6 * 2**20, 128, 560, 500, 1200, 96 * 1024, Limits(96 * 1024),
)  # fmt: skip
GPUS = (H200, A100, T4, V100)


def for_target(target: str) -> Gpu:
    """The GPU that stands for a target: the newest that runs its code. UsageError R0031 without one."""
    for gpu in GPUS:
        if gpu.capability <= capability(target) and _runs(gpu.target, target):
            return gpu
    known = ", ".join(gpu.target for gpu in GPUS)
    raise UsageError("R0031", f"nothing is known of GPUs for {target}", hint=f"there are figures for {known}")


def _runs(made_for: str, target: str) -> bool:
    """Code for sm_90a runs there and nowhere else; other code on later GPUs."""
    return made_for == target if made_for.endswith("a") else True
