"""The command that each line of a kernel is printed from: the kernel is printed once more, and watched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from codegen.cuda.printer import Printer
from codegen.cuda.widths import I64
from codegen.host.program import HostProgram
from codegen.host.text import cuda_text
from codegen.ir import imperative as i
from codegen.ir.kernel import Kernel
from rise.types import I32


@dataclass
class _Watching(Printer):
    """A printer that remembers the command of each line."""

    current: i.Command = field(default_factory=i.Skip)
    commands: list[i.Command] = field(default_factory=list)

    def command(self, command: i.Command) -> None:
        around, self.current = self.current, command
        super().command(command)
        self.current = around

    def line(self, text: str) -> None:
        super().line(text)
        self.commands.append(self.current)


@dataclass(frozen=True)
class Line:
    """A line of the text of a program, by its number, counted from 1, and the command that it is of."""

    number: int
    text: str
    command: i.Command


def lines_of(program: HostProgram) -> Iterator[tuple[Kernel, list[Line]]]:
    """The lines of the body of each kernel, as they are numbered in the text of all of them."""
    text = cuda_text(program).split("\n")
    starts = [n for n, line in enumerate(text) if line.startswith('extern "C"')]
    for kernel, start in zip(program.kernels, starts, strict=True):
        commands = _commands(kernel)
        yield (
            kernel,
            [Line(start + n + 1, text[start + n], command) for n, command in enumerate(commands)],
        )


def _commands(kernel: Kernel) -> list[i.Command]:
    """The command of each line from the signature on."""
    _, printed = kernel.stages[-1]
    for indices in (I32, I64):
        watching = _Watching(printed, kernel.launch, indices)
        source = watching.text()
        if source == kernel.source:
            break
    count = source.rstrip("\n").count("\n") + 1 - source[: source.index('extern "C"')].count("\n")
    return watching.commands[-count:]
