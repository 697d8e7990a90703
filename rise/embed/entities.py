"""What the names in a traced expression mean, until they are names of a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rise.expr import Definition
from rise.source import Span
from rise.types import Kind


@dataclass(frozen=True)
class Symbol:
    """A size, type or memory that a definition abstracts over, by name: `n = Nat("n")`."""

    name: str
    kind: Kind


@dataclass(frozen=True, eq=False)
class Binder:
    """A parameter of one function of a program; `kind` is None for values."""

    stem: str
    kind: Kind | None
    span: Span


Entity = Symbol | Binder | Definition
# what the names in a node mean that are no names of primitives, types or constants
Uses = Mapping[str, Entity]
