"""Linearises indices: the indices of an access become one index, in its simplest form.

An access keeps the number of indices that its array has dimensions. All but the last become 0, and the last
one ranges over the whole array: the path `[i][j]` into rows of n becomes `[0][i*n + j]`. The first index of a
distributed array stays, since it is the number of a block: `[c][i][j]` becomes `[c][0][i*n + j]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.ir import imperative as i
from codegen.ir.buffers import dimensions, distributed, flatten
from codegen.ir.launch import Launch
from codegen.passes.analysis.walk import facts_of_workers, simplified
from rise.nat import constant
from rise.types import Data


def linearise(function: i.Function, launch: Launch) -> i.Function:
    """The pass."""
    types = {v.name: v.type for v in (*function.outputs, *function.inputs)}
    types |= {c.name: c.type for c in i.commands(function.body) if isinstance(c, i.New)}
    of_blocks = distributed(function.body)
    body = i.rebuild(
        function.body, i.Access, lambda access: _linear(access, types, int(access.buffer in of_blocks))
    )
    return replace(function, body=simplified(body, facts_of_workers(launch)))


def _linear(access: i.Access, types: Mapping[str, Data], outer: int) -> i.Access:
    """The index into all dimensions but so many outer ones."""
    sizes = dimensions(types[access.buffer])[outer:]
    if not access.indices or not sizes:
        return access
    block, indices = access.indices[:outer], access.indices[outer:]
    place, rest = indices[: len(sizes)], indices[len(sizes) :]
    start = (constant(0),) * (len(sizes) - 1)
    return replace(access, indices=(*block, *start, flatten(place, sizes), *rest))
