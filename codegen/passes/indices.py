"""Loops and index arithmetic that stay small: the passes between what is computed and what is printed."""

from __future__ import annotations

from collections.abc import Callable

from codegen import imperative as i
from codegen.launch import Launch
from codegen.passes.counters import count_remainders
from codegen.passes.elements import fuse_elements
from codegen.passes.linear import linear_indices
from codegen.passes.loops import split_loops
from codegen.passes.names import name_operations, name_starts
from codegen.passes.scalars import define_indices
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
