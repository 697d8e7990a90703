"""How much is known of where the lines of kernels come from."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.host.program import HostProgram
from codegen.host.text import cuda_origins, cuda_text
from codegen.pipeline import assemble
from rewrites.derivation import part_at
from rise.cli.origins import bodies, is_trivial
from rise.expr import Apply, Expr, Primitive, located, spine
from rise.primitives.declare import REGISTRY
from rise.source import path_of


def of_program(term: Expr) -> HostProgram:
    """The kernels of a low-level program whose terms know their places."""
    return assemble(located(term), "shipped")


def coverage(program: HostProgram) -> tuple[int, int]:
    """Of the lines that do something: how many come from a part of the program, and how many there are."""
    text, origins = cuda_text(program), cuda_origins(program)
    lines = text.split("\n")
    assert len(lines) - len(origins) in (0, 1)
    counted = [number for number in bodies(text) if not is_trivial(lines[number - 1])]
    return sum(bool(path_of(origins[number - 1])) for number in counted), len(counted)


def loops(term: Expr, program: HostProgram) -> Iterator[tuple[str, str]]:
    """For each loop the primitive that its comment names, and the one that its term applies."""
    for line, origin in zip(cuda_text(program).split("\n"), cuda_origins(program), strict=False):
        code, _, label = line.partition("  // ")
        if label in REGISTRY and code.lstrip().startswith("for"):
            part = part_at(term, path_of(origin) or ())
            head = spine(part)[0] if isinstance(part, Apply) else part
            yield label, head.name if isinstance(head, Primitive) else type(part).__name__
