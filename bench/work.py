"""The work of a variant on operands, as the device runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.memory import DeviceArray


@dataclass(frozen=True)
class Operands:
    """One set of inputs, in the order of the program, and a result."""

    inputs: tuple[Any, ...]
    output: DeviceArray


@dataclass(frozen=True)
class Work:
    """The work of a variant. call: puts it on a stream once.

    check:  the same, where the result has to end in the operands' result, and calls do not put it there
    record: records a call on each of the operands in a graph of its own kind; returns a function that
            replays it
    computes: whether the result is that of the operation, which is checked
    """

    call: Callable[[Any, Operands], None]
    check: Callable[[Any, Operands], None] | None = None
    record: Callable[[Any, Sequence[Operands]], Callable[[], None]] | None = None
    computes: bool = True
