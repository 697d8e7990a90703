"""Loop rotation, for a pipeline into registers inside a pipeline into shared memory.

Step k of the outer pipeline begins with the inner pipeline's first load, and ends with its last computation,
which needs no memory. Rotating the outer loop overlaps that computation with the first load of the next step:

    for k < n. (first k ; middle k ; last k)   =   first 0 ; for k < n. (middle k ; first (k+1) ; last k)

The slots that `first` fills must not be those that `last` reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from codegen.ir import imperative as i
from codegen.lower.translate import Translator
from rise.nat import Atom, Nat, NatVariable, constant, variable
from rise.types import Array, Data, Space


@dataclass(frozen=True)
class RotatedStep:
    """The parts of a step, and the registers that are filled in one step and read in the next."""

    registers: tuple[i.New, ...]
    first: i.Command
    middle: i.Command
    last: i.Command

    def around(self, body: i.Command) -> i.Command:
        for new in reversed(self.registers):
            body = replace(new, body=body)
        return body


def rotated(translator: Translator, step: i.Command) -> RotatedStep | None:
    """The parts of a step that is a pipeline into registers; None for any other step."""
    match step:
        case i.ParallelFor(level, _, index, workers) if level is i.Level.WARP:
            inner = rotated(translator, step.body)
            if inner is None:
                return None
            return _for_all(translator, step, inner, index, workers)
        case i.New(Space.LOCAL, _, _, body):
            inner = rotated(translator, body)
            return None if inner is None else replace(inner, registers=(step, *inner.registers))
        case i.Sequence((i.For(role=i.Role.PRELOAD) as first, i.For() as loop)):
            return _split(first, loop)
        case _:
            return None


def _split(first: i.For, loop: i.For) -> RotatedStep | None:
    count = loop.count.value
    if count is None or count < 2 or count % 2 or not isinstance(loop.body, i.Sequence):
        return None
    load, *computation = loop.body.commands
    if not isinstance(load, i.When):
        return None  # products that are asynchronous come before the load of the next element
    end: dict[Atom, Nat] = {NatVariable(loop.index): constant(count - 1)}
    last = _substituted(i.sequence(*computation), end)
    return RotatedStep((), first, replace(loop, count=constant(count - 1)), last)


def _for_all(
    translator: Translator, loop: i.ParallelFor, inner: RotatedStep, index: str, workers: Nat
) -> RotatedStep:
    """Each part, executed by all workers of a level, each with its own share of the registers."""
    registers = tuple(replace(new, type=Array(workers, new.type)) for new in inner.registers)
    types = {new.name: new.type for new in inner.registers}

    def part(body: i.Command) -> i.Command:
        fresh = translator.name(index)
        moved = _substituted(body, {NatVariable(index): variable(fresh)})
        return replace(loop, index=fresh, body=of_worker(moved, types, variable(fresh), workers))

    return RotatedStep(registers, part(inner.first), part(inner.middle), part(inner.last))


def at_index(command: i.Command, name: str, value: Nat) -> i.Command:
    """The part of a step at another value of the index."""
    return _substituted(command, {NatVariable(name): value})


def _substituted(command: i.Command, sizes: Mapping[Atom, Nat]) -> i.Command:
    return i.rebuild(command, Nat, lambda n: n.substitute(sizes))


def of_worker(command: i.Command, types: Mapping[str, Data], worker: Nat, workers: Nat) -> i.Command:
    def read(variable_: i.Variable) -> i.Expression:
        if variable_.name not in types:
            return variable_
        whole = i.Variable(variable_.name, Array(workers, types[variable_.name]))
        return i.At(worker, whole, variable_.type)

    def write(acceptor: i.AcceptVariable) -> i.Acceptor:
        if acceptor.name not in types:
            return acceptor
        whole = i.AcceptVariable(acceptor.name, Array(workers, types[acceptor.name]))
        return i.AcceptAt(worker, whole, acceptor.type)

    command = i.rebuild(command, i.Variable, read)
    return i.rebuild(command, i.AcceptVariable, write)
