"""The CUDA text of a program, and edited texts that replace it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from codegen.host.program import HostProgram
from codegen.ir.kernel import Kernel
from rise.errors import LaunchError
from rise.source import Origin

ENTRY = re.compile(
    r'extern\s*"C"\s*__global__\s+void\s+(?:__cluster_dims__\s*\([^)]*\)\s*)?'
    r"(?:__maxnreg__\s*\([^)]*\)\s*)?(?:__launch_bounds__\s*\(\s*(\d+)[^)]*\)\s*)?(\w+)\s*\(([^)]*)\)"
)


@dataclass(frozen=True)
class Entry:
    """A kernel's signature: its name, its parameters, and its launch bound in threads per block."""

    name: str
    parameters: tuple[str, ...]
    bound: int | None


def cuda_text(program: HostProgram) -> str:
    """All kernels in one text; what precedes them, includes and functions, only once."""
    before, bodies = _parts(program)
    return "\n".join([*(f"{part}\n" for part in before), *bodies])


def cuda_origins(program: HostProgram) -> list[Origin]:
    """For each line of that text the origin of the term that it comes from; None where there is none."""
    before, bodies = _parts(program)
    origins: list[Origin] = [None] * sum(part.count("\n") + 2 for part in before)
    for kernel, body in zip(program.kernels, bodies, strict=True):
        count = body.count("\n")
        origins += [*kernel.lines[-count:], None]
    return origins[:-1]


def _parts(program: HostProgram) -> tuple[list[str], list[str]]:
    """What precedes all kernels, and the kernels."""
    before: dict[str, None] = {}
    bodies = []
    for kernel in program.kernels:
        head, start, body = kernel.source.partition('extern "C"')
        before |= dict.fromkeys(part.strip("\n") for part in head.split("\n\n") if part.strip())
        bodies.append(start + body)
    return list(before), bodies


def entries(text: str) -> dict[str, Entry]:
    """The kernels of a text, by name."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    found = {}
    for bound, name, parameters in ENTRY.findall(code):
        listed = tuple(" ".join(p.split()) for p in parameters.split(",") if p.strip())
        found[name] = Entry(name, listed, int(bound) if bound else None)
    return found


def edited(program: HostProgram, text: str) -> HostProgram:
    """The program with its kernels from another text. LaunchError R0839 if their signatures differ."""
    given = entries(text)
    for kernel in program.kernels:
        _check(kernel, given)
    kernels = tuple(replace(kernel, source=text, lines=()) for kernel in program.kernels)
    alternatives = tuple(edited(each, text) for each in program.alternatives)
    return replace(program, kernels=kernels, alternatives=alternatives)


def _check(kernel: Kernel, given: dict[str, Entry]) -> None:
    wanted = entries(kernel.source)[kernel.name]
    found = given.get(kernel.name)
    if found is None:
        listed = ", ".join(f"`{name}`" for name in given) or "none"
        raise _differs(f"the text has no kernel `{kernel.name}`; it has {listed}")
    for number, (one, other) in enumerate(zip(wanted.parameters, found.parameters, strict=False), 1):
        if one != other:
            raise _differs(f"parameter {number} of `{kernel.name}` is `{other}`, the program's is `{one}`")
    if len(wanted.parameters) != len(found.parameters):
        counts = f"{len(found.parameters)} parameters, the program's has {len(wanted.parameters)}"
        raise _differs(f"`{kernel.name}` has {counts}")
    threads = kernel.launch.threads
    if found.bound is not None and found.bound < threads:
        raise _differs(
            f"`{kernel.name}` is bounded to {found.bound} threads per block, but launched with {threads}"
        )


def _differs(what: str) -> LaunchError:
    return LaunchError("R0839", what, hint="`rise compile` prints the text to start from")
