"""Fresh names, which do not occur in a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

from codegen.ir import imperative as i
from codegen.ir.identifiers import RESERVED, derived


@dataclass
class Names:
    taken: set[str] = field(default_factory=lambda: set(RESERVED))

    def fresh(self, stem: str) -> str:
        """The stem, with a number if it is taken."""
        number, name = 0, stem
        while name in self.taken:
            number += 1
            name = derived(stem, number)
        self.taken.add(name)
        return name


def names_of(function: i.Function) -> Names:
    """The names in use: of variables, and of functions that are called."""
    names = Names()
    names.taken |= {function.name, *(v.name for v in (*function.outputs, *function.inputs))}
    names.taken |= bound_in(function.body)

    def see(call: i.ForeignCall) -> i.ForeignCall:
        names.taken.add(call.name)
        for operand in call.operands:
            i.rebuild(operand, i.ForeignCall, see)
        return call

    i.rebuild(function.body, i.ForeignCall, see)
    return names


def bound_in(command: i.Command) -> set[str]:
    """The names that a command and the commands inside it bind."""
    return {name for part in i.commands(command) for name in binds(part)}


def binds(command: i.Command) -> tuple[str, ...]:
    """The names that a command binds in its body."""
    match command:
        case i.For(index):
            return (index, *(counter.name for counter in command.counters))
        case i.New(_, name) | i.Define(name) | i.ParallelFor(_, _, name) | i.ForFragment(_, name):
            return (name,)
        case _:
            return ()
