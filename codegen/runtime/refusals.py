"""What the compiler remarks of kernels for Hopper and compiles all the same, which is no kernel to run."""

from __future__ import annotations

from rise.errors import CompilationError

# code, a part of the remark of ptxas, and what it means. A part of the key of what is cached
REFUSED = (
    (
        "R0851",
        "instructions are serialized",
        "each product of a warpgroup is waited for before the next one starts",
    ),
    (
        "R0852",
        "'setmaxnreg' ignored",
        "registers are not handed from the warps that copy to those that compute",
    ),
)


def refuse(report: str) -> None:
    """CompilationError R0851, R0852 where a report has one of these remarks; the message quotes it."""
    for code, part, meaning in REFUSED:
        found = next((line for line in report.splitlines() if part in line), None)
        if found is not None:
            remark = found.partition(":")[2].strip() or found.strip()
            raise CompilationError(code, f"{meaning}: the compiler says `{remark}`")
