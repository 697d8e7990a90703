"""On a machine with a GPU: conversions and arithmetic against the interpreter, at every number.

python benchmarks/gpu_scalars.py              on the GPU
python benchmarks/gpu_scalars.py emulate      the same in the emulator, which takes minutes
"""

from __future__ import annotations

import sys

from codegen.execute import execute
from codegen.pipeline import generate
from rewrites.result import Failure
from rise.errors import RiseError
from rise.normal import data_flow
from rise.testing.scalars import Group, differences, groups
from strategies.default import default


def check(group: Group, backend: str) -> list[str]:
    """A line for each operation whose results differ."""
    result = default()(data_flow(group.program))
    if isinstance(result, Failure):
        raise RiseError("R0600", result.story())
    found = execute(generate(result.term, "operations"), group.inputs, backend)
    return differences(group, group.separate(found), group.expected())


def check_all(backend: str) -> list[str]:
    return [line for group in groups() for line in check(group, backend)]


def main(backend: str) -> None:
    """Raises R0830 where anything differs."""
    if lines := check_all(backend):
        raise RiseError("R0830", "\n".join(lines))
    print(f"{sum(len(g.terms) for g in groups())} scalar operations: equal")


if __name__ == "__main__":
    main("emulate" if "emulate" in sys.argv else "cuda")
