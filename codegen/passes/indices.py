"""Loops and index arithmetic that stay small: the passes between what is computed and what is printed."""

from __future__ import annotations

from collections.abc import Callable

from codegen.ir import imperative as i
from codegen.ir.launch import Launch
from codegen.passes.common_subexpressions import name_operations, name_starts
from codegen.passes.fuse_fragment_loops import fuse_elements
from codegen.passes.index_scalars import define_indices
from codegen.passes.linearise import linear_indices
from codegen.passes.split_loops import split_loops
from codegen.passes.strength_reduction import count_remainders
from codegen.passes.workers import name_workers

INDEX_PASSES: tuple[tuple[str, Callable[[i.Function, Launch], i.Function]], ...] = (
    ("workers", name_workers),
    ("elements", fuse_elements),
    ("scalars", define_indices),
    ("linear indices", linear_indices),
    ("split loops", split_loops),
    ("counters", count_remainders),
    ("operations", name_operations),
    ("starts", name_starts),
)
