"""A kernel: the imperative program, the text printed from it, and its launch parameters."""

from __future__ import annotations

from dataclasses import dataclass, field

from codegen.ir import imperative as i
from codegen.ir.launch import Launch
from rise.check.symbolic import RuntimeSize
from rise.constraint import Constraint
from rise.source import Origin
from rise.types import Data


@dataclass(frozen=True)
class Kernel:
    """A printed kernel: its text, launch parameters, inputs and output.

    stages:      the imperative program after each pass, by name
    sizes:       the run-time sizes, which are passed at launch after the other inputs
    constraints: the conditions that these sizes must satisfy
    lines:       for each line of the text, the part of the source program that it comes from
    """

    name: str
    source: str
    launch: Launch
    inputs: tuple[tuple[str, Data], ...]
    output: Data
    function: i.Function = field(repr=False)
    stages: tuple[tuple[str, i.Function], ...] = field(default=(), repr=False)
    sizes: tuple[RuntimeSize, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    lines: tuple[Origin, ...] = field(default=(), repr=False)
