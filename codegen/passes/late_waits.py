"""Waits for products that stay behind what stands before them: a barrier of the warpgroup holds them there.

    products ; commit ; for e. f ; wait   =   products ; commit ; for e. f ; barrier ; wait

The instruction that waits names no registers, so NVIDIA's assembler may move it in front of what the text has
before it. It fills a latency with it, and exponentials then start when the products are over.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.ir import imperative as i
from rise.types import FragmentKind


def late_waits(command: i.Command) -> i.Command:
    """The command, with barriers before its late waits."""
    return _Holder().go(command)


@dataclass
class _Holder:
    """computed: whether elements of fragments were computed since the last product or wait"""

    computed: bool = False

    def go(self, command: i.Command) -> i.Command:
        match command:
            case i.Wgmma():
                self.computed = False
                return command
            case i.ForFragment(fragment):
                self.computed |= fragment.kind is FragmentKind.ACCUMULATOR
                return command
            case _ if _only_waits(command):
                late, self.computed = self.computed, False
                return i.sequence(i.Barrier(i.Scope.WARPGROUP), command) if late else command
            case _:
                return i.with_inner(command, tuple(map(self.go, i.inner(command))))


def _only_waits(command: i.Command) -> bool:
    """Whether a command is a wait, or a loop of waits for several fragments."""
    match command:
        case i.WgmmaWait():
            return True
        case i.For(_, _, body):
            return _only_waits(body)
        case _:
            return False
