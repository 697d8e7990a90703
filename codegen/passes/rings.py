"""Ring buffers of pipelines that are executed repeatedly: a block initialises their mbarriers only once.

An mbarrier must not be initialised while it is in use. A pipeline inside a loop, such as the loop over the
tiles of a persistent block, therefore continues with the phases that the last execution left: element k of
execution t of a pipeline of n elements has number n*t + k in its ring. A pipeline that is executed once
initialises its mbarriers right before it starts.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir import imperative as i
from codegen.ir.launch import derive
from codegen.passes.analysis.executions import check_equally_many, with_executions
from rise.nat import Atom, Nat, NatVariable, constant


def hoist_ring_setup(function: i.Function) -> i.Function:
    """The pass."""
    setups: list[i.Command] = []

    def use(command: i.Command, before: Nat) -> i.Command:
        if not isinstance(command, i.Ring):
            return command
        check_equally_many(command.body, before, command.origin)
        number: dict[Atom, Nat] = {NatVariable(command.execution): before}
        body = i.rebuild(command.body, Nat, lambda n: n.substitute(number))
        if before == constant(0):
            return _behind(command.setup, body)
        setups.append(command.setup)
        return body

    body = with_executions(function.body, derive(function.body), use)
    if not setups:
        return replace(function, body=body)
    names = {access.buffer for setup in setups for access in i.accesses(setup)}
    barriers = [c for c in i.commands(body) if isinstance(c, i.New) and c.name in names]
    whole = _behind(i.sequence(*setups), _without(body, names))
    for new in reversed(barriers):
        whole = replace(new, body=whole)
    return replace(function, body=whole)


def _behind(setup: i.Command, body: i.Command) -> i.Command:
    """One thread initialises the mbarriers, and a barrier makes the others wait for it."""
    return i.sequence(i.Elected(setup), i.Barrier(i.Scope.BLOCK), body)


def _without(command: i.Command, names: set[str]) -> i.Command:
    """The command without the declarations of these buffers, which now enclose it."""
    if isinstance(command, i.New) and command.name in names:
        return _without(command.body, names)
    return i.with_inner(command, tuple(_without(part, names) for part in i.inner(command)))
