"""The machine a table was measured on: GPU, driver, versions, clocks."""

from __future__ import annotations

import ctypes
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.campaign import Limits, State
from rise import files
from rise.data import parsed
from rise.errors import UsageError

# NVML: nvmlClockType_t
CLOCK_SM = 1
# dense f16 operations with f32 sums that a multiprocessor does in a cycle, by compute capability
FLOPS_PER_CYCLE: Mapping[tuple[int, int], int] = {(7, 0): 1024, (7, 5): 1024, (8, 0): 2048, (9, 0): 4096}


@dataclass(frozen=True)
class Machine:
    """limits: of tensor cores at the highest clock, and a measured copy from memory to memory."""

    device: str
    driver: str
    cuda: str
    multiprocessors: int
    max_sm_mhz: int
    l2_bytes: int
    limits: Limits
    versions: Mapping[str, str]
    host: str

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, json.dumps(asdict(self), indent=2) + "\n")

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        limits = [f"{self.limits.tflops:.0f} TFLOP/s"] if self.limits.tflops else []
        limits += [f"copies at {self.limits.gb_s:.0f} GB/s"] if self.limits.gb_s else []
        clock = f"{self.multiprocessors} multiprocessors, at most {self.max_sm_mhz} MHz"
        return (
            f"{self.device}, driver {self.driver}, CUDA {self.cuda}, {versions}; {clock}: {', '.join(limits)}"
        )


def read(path: Path) -> Machine:
    """UsageError R0864 where the file has another format."""
    try:
        content = parsed(files.read_text(path))
        return Machine(**{**content, "limits": Limits(**content["limits"])})
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(
            "R0864", f"{path} has another format: {error}", hint="choose another folder with --out"
        ) from None


def tensor_peak(capability: tuple[int, int], multiprocessors: int, mhz: int) -> float | None:
    """TFLOP/s of the tensor cores at a clock; None for a generation that is not in the table."""
    each = FLOPS_PER_CYCLE.get(capability)
    return each * multiprocessors * mhz / 1e6 if each else None


def versions(*packages: str) -> dict[str, str]:
    """The versions of installed packages."""
    found = {"Python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


class Sensors:
    """Clock and power of a GPU through NVML, and the driver's version; zero without NVML."""

    def __init__(self, bus: str) -> None:
        self._handle = ctypes.c_void_p()
        self._library: ctypes.CDLL | None = None
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if library.nvmlInit_v2() == 0:
            found = library.nvmlDeviceGetHandleByPciBusId_v2(bus.encode(), ctypes.byref(self._handle))
            self._library = library if found == 0 else None

    def state(self) -> State:
        mhz, milliwatts = ctypes.c_uint(), ctypes.c_uint()
        if self._library is None:
            return State()
        self._library.nvmlDeviceGetClockInfo(self._handle, CLOCK_SM, ctypes.byref(mhz))
        self._library.nvmlDeviceGetPowerUsage(self._handle, ctypes.byref(milliwatts))
        return State(mhz.value, milliwatts.value / 1000)

    def driver(self) -> str:
        text = ctypes.create_string_buffer(80)
        if self._library is None or self._library.nvmlSystemGetDriverVersion(text, 80):
            return "unknown"
        return text.value.decode()
