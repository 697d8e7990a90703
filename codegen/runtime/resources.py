"""What a kernel uses of a multiprocessor, as ptxas reports it; and the check for spills."""

from __future__ import annotations

import re
from dataclasses import dataclass

from codegen.runtime.compiling import ENTRY, compiler_report
from rise.errors import CompilationError, UsageError

SPILLS = ("refuse", "allow")


@dataclass(frozen=True)
class Resources:
    """The resources of one kernel for one target. Stack and spills are in bytes per thread, shared per block.

    stack:  thread-private arrays outside registers, and spilled registers
    shared: static shared memory; the launch has the dynamic part
    """

    name: str
    target: str
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int

    def __str__(self) -> str:
        spilled = f"{self.spill_stores} bytes spilled and {self.spill_loads} loaded back"
        return (
            f"{self.name} for {self.target}: {self.registers} registers a thread, {spilled}, "
            f"{self.stack} bytes of stack, {self.shared} bytes of static shared memory"
        )


def resources(source: str, target: str = "sm_90a") -> dict[str, Resources]:
    """The resources of every kernel of a text, by name. Raises CompilationError R0820, R0821."""
    return {found.name: found for found in parse(compiler_report(source, target))}


def parse(report: str) -> list[Resources]:
    """The kernels in a report of `ptxas -v`, in its order."""
    entries = re.split(rf"{ENTRY} '([^']+)' for '([^']+)'", report)[1:]
    parts = zip(entries[::3], entries[1::3], entries[2::3], strict=True)
    return [_resources(name, target, text) for name, target, text in parts]


def _resources(name: str, target: str, text: str) -> Resources:
    """`text` has a paragraph for the kernel, and one for each function that it calls."""

    def total(what: str) -> int:
        return sum(int(number) for number in re.findall(rf"(\d+) bytes {what}", text))

    registers = re.search(r"Used (\d+) registers", text)
    if registers is None:
        raise CompilationError("R0821", f"the compiler reports no registers for `{name}`:\n{text.strip()}")
    spilled = total("spill stores"), total("spill loads")
    return Resources(name, target, int(registers[1]), total("stack frame"), *spilled, total("smem"))


def check_spills(found: Resources, spills: str = "refuse") -> None:
    """CompilationError R0832 if registers are spilled, unless that is allowed."""
    if spills not in SPILLS:
        raise UsageError("R0003", f"spills={spills!r}: it is {' or '.join(map(repr, SPILLS))}")
    if spills == "refuse" and (found.spill_stores or found.spill_loads):
        raise CompilationError(
            "R0832",
            f"`{found.name}` for {found.target} spills {found.spill_stores} bytes of registers per thread "
            f"and reloads {found.spill_loads}; it uses {found.registers} registers",
            hint="use smaller tiles per thread, more threads per tile, or `spills='allow'`",
        )
