"""Phases of a pipeline's step: products, what is computed from their results, and further products.

    S := Q K ; P := f S ; O := O + P V

Here K is in use during the first phase, and V during the second one. They are loaded and released each for
itself: V need not be there when the first products start, and K's slot is filled again before the last
products end. Operands that are in use during the same phases share the mbarriers of a ring.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from codegen.ir import imperative as i
from codegen.lower.resolve import resolved


def by_phase(step: i.Command, rings: Sequence[str]) -> list[frozenset[str]]:
    """The buffers of a pipeline in groups: those whose first and last use are in the same phases."""
    groups: dict[tuple[int, int], set[str]] = {}
    numbered = [(phase, buffers(part)) for phase, part in _phases(_parts(step))]
    for ring in rings:
        phases = [phase for phase, used in numbered if ring in used] or [0]
        groups.setdefault((phases[0], phases[-1]), set()).add(ring)
    return [frozenset(groups[key]) for key in sorted(groups)]


def before_phase(step: i.Command, rings: frozenset[str], wait: i.Command) -> i.Command:
    """The step, with a wait before the first phase that uses one of the buffers."""
    phases = list(_phases(_parts(step)))
    first = next(((phase, part) for phase, part in phases if not rings.isdisjoint(buffers(part))), None)
    if first is None or first[0] == 0:
        return i.sequence(wait, step)
    return _inserted(step, first[1], wait)


def in_turn(step: i.Command, begin: i.Command, end: i.Command) -> i.Command | None:
    """A step with a command before its last products and one behind its first; None if these are the same."""
    phases = list(_phases(_parts(step)))
    last = max((phase for phase, part in phases if _multiplies(part)), default=0)
    if not last:
        return None
    products = next(part for phase, part in phases if phase == last and _multiplies(part))
    behind = next(part for phase, part in phases if phase)
    return _inserted(_inserted(step, products, begin), behind, end)


def buffers(part: i.Command) -> set[str]:
    """The buffers that a command uses."""
    return {access.buffer for access in i.accesses_in(resolved(part))}


def _parts(step: i.Command) -> tuple[i.Command, ...]:
    """The commands of a step, in order."""
    match step:
        case i.New() | i.ParallelFor(i.Level.WARPGROUP):
            return _parts(step.body)
        case i.Sequence(parts):
            return tuple(inner for part in parts for inner in _parts(part))
        case _:
            return (step,)


def _phases(parts: Sequence[i.Command]) -> Iterator[tuple[int, i.Command]]:
    """The parts with the numbers of their phases: one starts with what follows products."""
    phase, after_products = 0, False
    for part in parts:
        inner = list(i.commands(part))
        products = _multiplies(part)
        clears = all(isinstance(c, i.FillFragment | i.For) for c in inner)
        if after_products and not products and not clears:
            phase, after_products = phase + 1, False
        after_products = after_products or products
        yield phase, part


def _multiplies(part: i.Command) -> bool:
    return any(isinstance(c, i.MmaFragment) for c in i.commands(part))


def _inserted(command: i.Command, place: i.Command, wait: i.Command) -> i.Command:
    if command is place:
        return i.sequence(wait, command)
    match command:
        case i.New() | i.ParallelFor():
            return replace(command, body=_inserted(command.body, place, wait))
        case i.Sequence(parts):
            return i.sequence(*(_inserted(part, place, wait) for part in parts))
        case _:
            return command
