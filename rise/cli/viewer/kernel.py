"""Kernels as data for a page: their lines and where these come from, memory, barriers, bytes, and a profile.

All of it is known without a GPU; registers need nvcc, and times a profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from codegen.ir import imperative as i
from codegen.ir.buffers import BARRIERS, dimensions
from codegen.ir.kernel import Kernel
from codegen.passes.allocate import regions
from codegen.runtime import can_compile, resources
from rise.cli.origins import Explained
from rise.cli.viewer.banks import conflicts
from rise.cli.viewer.lines import Line, lines_of
from rise.cli.viewer.profile import Profile
from rise.cli.viewer.traffic import Traffic, traffic
from rise.errors import RiseError
from rise.types import ROW_MAJOR, Array
from strategies.search.hardware import Gpu, for_target

Data = dict[str, Any]
WAITING = (i.Barrier, i.Wait, i.WaitBarrier, i.WgmmaWait, i.BulkWait, i.Arrive, i.AwaitPreviousGrid)
HOTTEST = 12  # lines of a profile that are listed
ROUNDED = 3  # digits
# threads and blocks of a multiprocessor at most, where that is not 2048 and 32 (CUDA C++ Programming Guide,
# technical specifications per compute capability)
RESIDENT = {"sm_75": (1024, 16)}


def kernels(explained: Explained, target: str, profiles: Mapping[str, Profile] | None = None) -> Data:
    """The kernels of a derived program, as the page reads them."""
    paths = list(explained.origins)
    numbers = {path: number for number, path in enumerate(paths)}
    gpu = _gpu(target)
    used = _resources(explained, target)
    return {
        "text": explained.text.rstrip("\n").split("\n"),
        "lines": [-1 if path is None else numbers[path] for path in explained.paths],
        "parts": [_part(explained, path) for path in paths],
        "kernels": [
            _kernel(kernel, lines, gpu, used.get(kernel.name, []), (profiles or {}).get(kernel.name))
            for kernel, lines in lines_of(explained.program)
        ],
    }


def _part(explained: Explained, path: tuple[int, ...]) -> list[Any]:
    """The range of a term in the low-level program, the step that made it, its text and its source."""
    found, origin = explained.low.range_of(path), explained.origins[path]
    return [[*found[0], *found[1]] if found else [], origin.step, origin.term, origin.source]


def _gpu(target: str) -> Gpu | None:
    try:
        return for_target(target)
    except RiseError:
        return None


def _resources(explained: Explained, target: str) -> dict[str, list[list[Any]]]:
    """What ptxas says of each kernel; nothing where there is no compiler, or it refuses the text."""
    if not can_compile():
        return {}
    try:
        found = resources(explained.text, target)
    except RiseError:
        return {}
    return {
        name: [
            ["registers of a thread", each.registers],
            ["spilled, bytes of a thread", each.spill_stores + each.spill_loads],
            ["stack, bytes of a thread", each.stack],
        ]
        for name, each in found.items()
    }


def _kernel(
    kernel: Kernel, lines: list[Line], gpu: Gpu | None, used: list[list[Any]], profile: Profile | None
) -> Data:
    _, printed = kernel.stages[-1]
    moved = traffic(kernel)
    return {
        "name": kernel.name,
        "facts": [*_launch(kernel), *used, *_occupancy(kernel, gpu, used)],
        "shared": _shared(kernel, lines),
        "barriers": [[line.number, line.text.strip()] for line in lines if isinstance(line.command, WAITING)],
        "conflicts": [
            [c.line.number, c.buffer, f"{c.wavefronts} wavefronts for {c.phases}"]
            for c in conflicts(lines, printed.body)
        ],
        "traffic": [] if moved is None else _traffic(moved),
        "roofline": None if moved is None or gpu is None else _roofline(moved, gpu, profile),
        **_profiled(profile, lines),
    }


def _launch(kernel: Kernel) -> list[list[Any]]:
    launch = kernel.launch
    rows: list[list[Any]] = [
        ["grid", "×".join(map(str, launch.grid))],
        ["block", f"{'×'.join(map(str, launch.block))} = {launch.threads} threads"],
        ["shared memory, bytes of a block", launch.shared_bytes],
    ]
    if launch.cluster > 1:
        rows.append(["blocks of a cluster", launch.cluster])
    if launch.producers:
        rows.append(["warpgroups that only load", launch.producers])
    return rows


def _occupancy(kernel: Kernel, gpu: Gpu | None, used: list[list[Any]]) -> list[list[Any]]:
    """How many blocks share a multiprocessor, and what limits them."""
    if gpu is None:
        return []
    threads = ceil(kernel.launch.threads / 32) * 32
    resident, blocks = RESIDENT.get(gpu.target, (2048, 32))
    limits = {"threads": resident // threads, "blocks": blocks}
    if kernel.launch.shared_bytes:
        limits["shared memory"] = gpu.shared // (kernel.launch.shared_bytes + 1024)
    if used:
        limits["registers"] = gpu.limits.registers // (ceil(max(used[0][1], 1) / 8) * 8 * threads)
    least = min(limits, key=lambda name: limits[name])
    return [[f"blocks of a multiprocessor of {gpu.name}", limits[least]], ["limited by", least]]


# --- shared memory ----------------------------------------------------------------------------------------


def _shared(kernel: Kernel, lines: list[Line]) -> list[Data]:
    """The buffers in shared memory with their places, and the lines from their first to their last use."""
    placed = dict(kernel.stages)["place shared"]
    where = regions(placed, kernel.launch)
    made = []
    for new in i.commands(placed.body):
        if not isinstance(new, i.New) or not new.space.in_shared_memory or new.name not in where:
            continue
        used = [line.number for line in lines if _uses(line.command, new.name)]
        region = where[new.name]
        made.append(
            {
                "name": new.name,
                "offset": region.start,
                "bytes": region.end - region.start,
                "from": min(used, default=lines[0].number),
                "until": max(used, default=lines[-1].number),
                "slots": _slots(new),
                "layout": "" if new.layout == ROW_MAJOR else str(new.layout),
            }
        )
    return made


def _uses(command: i.Command, name: str) -> bool:
    """Whether a command by itself accesses a buffer."""
    return not i.inner(command) and any(access.buffer == name for access in i.accesses(command))


def _slots(new: i.New) -> int:
    """The slots of a ring, or its barriers: its first dimension, where a pipeline goes around in it."""
    ring = new.layout == BARRIERS or new.name.startswith("ring")
    sizes = dimensions(new.type) if isinstance(new.type, Array) else ()
    return (sizes[0].value or 0) if ring and sizes else 0


# --- bytes and time ---------------------------------------------------------------------------------------


def _traffic(moved: Traffic) -> list[list[Any]]:
    rows = [[level, count, _short(moved.operations / count)] for level, count in moved.bytes.items()]
    return [*rows, ["inputs and results, once", moved.compulsory, _short(moved.intensity)]]


def _roofline(moved: Traffic, gpu: Gpu, profile: Profile | None) -> Data | None:
    """The bounds of a GPU, in TFLOP/s, and where the kernel is under them; measured if there is a profile."""
    if not moved.operations:
        return None
    clock, many = gpu.mhz * 1e6, gpu.multiprocessors
    peak = 2 * many * clock * (gpu.macs if moved.products else 128) / 1e12
    bandwidth = gpu.dram_rate * clock / 1e12
    points = [["at most", _short(moved.intensity), _short(min(peak, bandwidth * moved.intensity))]]
    if profile is not None and profile.microseconds:
        points.append(["measured", points[0][1], _short(moved.operations / profile.microseconds / 1e6)])
    intensities = [peak / bandwidth, moved.intensity]
    return {
        "peak": _short(peak),
        "bandwidth": _short(bandwidth),
        "least": min(intensities) / 8,
        "most": max(intensities) * 8,
        "points": points,
    }


def _profiled(profile: Profile | None, lines: list[Line]) -> Data:
    if profile is None:
        return {"profile": [], "hot": []}
    time = [] if profile.microseconds is None else [["time, µs", profile.microseconds]]
    texts, all_ = {line.number: line.text.strip() for line in lines}, sum(profile.lines.values())
    hottest = sorted(profile.lines.items(), key=lambda item: -item[1])[:HOTTEST]
    hot = [[n, texts[n], f"{100 * samples / all_:.1f} %"] for n, samples in hottest if n in texts and all_]
    return {"profile": [*time, *map(list, profile.metrics.items())], "hot": hot}


def _short(value: float) -> float:
    return float(f"{value:.{ROUNDED}g}")
