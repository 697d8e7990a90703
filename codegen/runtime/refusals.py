"""Compiler remarks on kernels that compile, but are so slow or unsafe that they must not be run."""

from __future__ import annotations

from rise.errors import CompilationError

# code, a part of ptxas's remark, and its meaning. This is part of the key of the cache
REFUSED = (
    (
        "R0851",
        "instructions are serialized",
        "each wgmma is waited for before the next one starts",
    ),
    (
        "R0852",
        "'setmaxnreg' ignored",
        "registers are not transferred from the producer warps to the consumer warps",
    ),
)


def refuse(report: str) -> None:
    """CompilationError R0851, R0852 if a report has one of these remarks, which the message quotes."""
    for code, part, meaning in REFUSED:
        found = next((line for line in report.splitlines() if part in line), None)
        if found is not None:
            remark = found.partition(":")[2].strip() or found.strip()
            raise CompilationError(code, f"{meaning}: the compiler says `{remark}`")
