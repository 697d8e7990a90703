"""The wgmma instructions of a kernel, printed as functions around one line of PTX each.

There are thousands of them, by shape, types and operand layouts, and each names up to 128 registers, so a
kernel's text contains only those that it uses. The header of the emulator has them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rise.errors import LaunchError


@dataclass(frozen=True)
class Operand:
    """A type of A and B: its names in the kernel's text and in PTX, its bytes, and its accumulator types."""

    text: str
    ptx: str
    bytes: int
    sums: tuple[str, ...]


OPERANDS = {
    operand.text: operand
    for operand in (
        Operand("half", "f16", 2, ("float", "half")),
        Operand("bfloat16", "bf16", 2, ("float",)),
        Operand("tf32", "tf32", 4, ("float",)),
        Operand("e4m3", "e4m3", 1, ("float", "half")),
        Operand("signed char", "s8", 1, ("int",)),
    )
}
SUMS = {"float": "f32", "half": "f16", "int": "s32"}


@dataclass(frozen=True)
class Wgmma:
    """One instruction: 64 × n accumulators += (64 × k) · (k × n), where k has 32 bytes.

    operand:          type of A and B: half, bfloat16, tf32, e4m3, signed char
    sum:              type of the accumulators: float, half, int
    a_major, b_major: "K" or "MN": the dimension along which an operand in shared memory is contiguous
    a_in_registers:   A is in registers, 16 bytes of each thread

    Raises LaunchError R0884 for combinations that the hardware does not support.
    """

    n: int
    operand: str = "half"
    sum: str = "float"
    a_major: str = "K"
    b_major: str = "K"
    a_in_registers: bool = False

    def __post_init__(self) -> None:
        if problem := _problem(self):
            raise LaunchError("R0884", f"wgmma does not support {problem}", hint=str(self))

    @property
    def k(self) -> int:
        return 32 // OPERANDS[self.operand].bytes

    @property
    def registers(self) -> int:
        """Accumulator registers per thread."""
        return self.n // 4 if self.sum == "half" else self.n // 2


def _problem(wgmma: Wgmma) -> str | None:
    if wgmma.operand not in OPERANDS:
        return f"operands of type {wgmma.operand}"
    operand = OPERANDS[wgmma.operand]
    step = 16 if operand.ptx == "s8" and wgmma.n > 32 else 8
    if not 8 <= wgmma.n <= 256 or wgmma.n % step:
        return f"{wgmma.n} columns, only 8 to 256 in steps of {step}"
    if wgmma.sum not in operand.sums:
        return f"accumulators of type {wgmma.sum} for {wgmma.operand}"
    if not {wgmma.a_major, wgmma.b_major} <= {"K", "MN"}:
        return f"operands contiguous along {wgmma.a_major} and {wgmma.b_major}"
    if operand.bytes != 2 and (wgmma.a_major, wgmma.b_major) != ("K", "K"):
        return f"{wgmma.operand} operands contiguous along anything but k"
    if wgmma.a_in_registers and wgmma.a_major != "K":
        return "an A in registers contiguous along anything but k"
    return None


def print_wgmma(instructions: Iterable[Wgmma]) -> str:
    """The text that follows the includes of a kernel: each instruction once."""
    printed = "".join(_function(wgmma) for wgmma in dict.fromkeys(instructions))
    return f"#ifndef RISE_EMULATION\n{printed}#endif\n"


def _function(wgmma: Wgmma) -> str:
    """A specialisation of `Wgmma` in `device/hopper.cuh`."""
    a = "unsigned*" if wgmma.a_in_registers else "Descriptor"
    majors = f"Major::{wgmma.a_major}, Major::{wgmma.b_major}"
    register = "float" if wgmma.sum == "float" else "unsigned"
    constraint = "+f" if wgmma.sum == "float" else "+r"
    outputs = ", ".join(f'"{constraint}"(r[{i}])' for i in range(wgmma.registers))
    inputs = [f'"r"(a[{i}])' for i in range(4)] if wgmma.a_in_registers else ['"l"(a)']
    inputs += ['"l"(b)', '"r"(static_cast<int>(scale))']
    return f"""\
template <>
struct Wgmma<{wgmma.n}, {wgmma.operand}, {majors}, {wgmma.sum}, {a}> {{
  static __device__ __forceinline__ void issue({wgmma.sum}* d, {a} a, Descriptor b, bool scale) {{
    {register}* r = reinterpret_cast<{register}*>(d);
    asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{wgmma.registers + len(inputs) - 1}, 0;\\n"
                 "{instruction(wgmma)}\\n}}"
                 : {outputs}
                 : {", ".join(inputs)});
  }}
}};
"""


def instruction(wgmma: Wgmma) -> str:
    """The line of PTX; operands are numbered in the order accumulators, A, B. The predicate is p."""
    operand = OPERANDS[wgmma.operand]
    first = wgmma.registers
    accumulators = ", ".join(f"%{i}" for i in range(first))
    if wgmma.a_in_registers:
        a, after = "{" + ", ".join(f"%{first + i}" for i in range(4)) + "}", first + 4
    else:
        a, after = f"%{first}", first + 1
    flags = [] if operand.ptx == "s8" else ["1", "1"]  # no operand is negated
    if operand.bytes == 2:
        majors = [wgmma.b_major] if wgmma.a_in_registers else [wgmma.a_major, wgmma.b_major]
        flags += [str(int(major == "MN")) for major in majors]
    shape = f"m64n{wgmma.n}k{wgmma.k}.{SUMS[wgmma.sum]}.{operand.ptx}.{operand.ptx}"
    operands = ", ".join(["{" + accumulators + "}", a, f"%{after}", "p", *flags])
    return f"wgmma.mma_async.sync.aligned.{shape} {operands};"
