"""What a kernel takes of a multiprocessor, as ptxas reports it; and that nothing is spilled."""

from __future__ import annotations

import re
from dataclasses import dataclass

from codegen.runtime.compiling import ENTRY, compiler_report
from rise.errors import CompilationError, UsageError

SPILLS = ("refuse", "allow")


@dataclass(frozen=True)
class Resources:
    """Of one kernel for one target. Stack and spills are bytes of a thread, shared ones of a block.

    stack:  arrays of a thread that are not in registers, and what is spilled
    shared: static shared memory; the dynamic part is the launch's
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
    """Of every kernel of a text, by name. Raises CompilationError R0820, R0821 as the compiler does."""
    return {found.name: found for found in parse(compiler_report(source, target))}


def parse(report: str) -> list[Resources]:
    """The kernels of a report of `ptxas -v`, in its order."""
    entries = re.split(rf"{ENTRY} '([^']+)' for '([^']+)'", report)[1:]
    parts = zip(entries[::3], entries[1::3], entries[2::3], strict=True)
    return [_resources(name, target, text) for name, target, text in parts]


def _resources(name: str, target: str, text: str) -> Resources:
    """`text` has a paragraph for the kernel, and one for each function that it calls."""

    def total(what: str) -> int:
        return sum(int(number) for number in re.findall(rf"(\d+) bytes {what}", text))

    registers = re.search(r"Used (\d+) registers", text)
    if registers is None:
        raise CompilationError("R0821", f"the compiler reports no registers of `{name}`:\n{text.strip()}")
    spilled = total("spill stores"), total("spill loads")
    return Resources(name, target, int(registers[1]), total("stack frame"), *spilled, total("smem"))


def check_spills(found: Resources, spills: str = "refuse") -> None:
    """CompilationError R0832 where registers are spilled, unless that is allowed."""
    if spills not in SPILLS:
        raise UsageError("R0003", f"spills={spills!r}: it is {' or '.join(map(repr, SPILLS))}")
    if spills == "refuse" and (found.spill_stores or found.spill_loads):
        raise CompilationError(
            "R0832",
            f"`{found.name}` for {found.target} spills {found.spill_stores} bytes of registers a thread "
            f"and loads {found.spill_loads} back; it uses {found.registers} registers",
            hint="smaller tiles for a thread, more threads for a tile, or `spills='allow'`",
        )
