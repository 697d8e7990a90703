"""Turns scalars that hold an index, such as min(max(i, 0), n - 1), into definitions.

Their ranges are then known, and they can be hoisted.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir import imperative as i
from codegen.ir.launch import Launch
from codegen.ir.scalar_temporaries import INT
from rise.nat import Nat, constant, maximum, minimum
from rise.types import Space


def index_scalars(function: i.Function, _: Launch) -> i.Function:
    """The pass."""
    return replace(function, body=_command(function.body))


def _command(command: i.Command) -> i.Command:
    command = i.with_inner(command, tuple(_command(part) for part in i.inner(command)))
    match command:
        case i.New(
            Space.LOCAL, name, type_, i.Sequence((i.Assign(i.Access(first), value), *rest)), origin
        ) if first == name and type_ == INT and (known := _index(value)) is not None:
            body = i.sequence(*rest)
            return command if _is_used_as_scalar(body, name) else i.Define(name, known, body, origin)
        case _:
            return command


def _index(value: i.Expression) -> Nat | None:
    """An expression over indices as a single index; None if it reads memory or computes anything else."""
    match value:
        case i.Natural(known, _):
            return known
        case i.Number(int() as number, _):
            return constant(number)
        case i.Operator("min" | "max" as name, (left, right)):
            one, other = _index(left), _index(right)
            if one is None or other is None:
                return None
            return minimum(one, other) if name == "min" else maximum(one, other)
        case _:
            return None


def _is_used_as_scalar(command: i.Command, name: str) -> bool:
    """Whether the scalar is used for anything but an index."""
    return any(a.buffer == name for part in i.commands(command) for a in i.accesses(part))
