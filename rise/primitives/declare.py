"""How a primitive is declared: name, scheme in RISE notation, a line of meaning, and its denotation.

A declaration is the only thing the checker, the printer and the interpreter know of a primitive; its
translation to imperative code stands in `codegen/primitives/`, in the file of the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rise.errors import RiseError
from rise.types import Argument, Scheme

Denotation = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Declaration:
    """A primitive. `defaults` are for explicit parameters that a program may leave out."""

    name: str
    signature: str
    meaning: str
    denotation: Denotation
    infix: str | None = None
    defaults: tuple[tuple[str, Argument], ...] = ()
    lowers: str | None = None
    elementwise: bool = False
    view: bool = False

    @cached_property
    def scheme(self) -> Scheme:
        from rise.syntax.parser import parse_scheme  # late: starting up must not build a parser

        return parse_scheme(self.signature, dict(self.defaults))


REGISTRY: dict[str, Declaration] = {}


def declare(
    name: str,
    signature: str,
    meaning: str,
    denotation: Denotation,
    infix: str | None = None,
    lowers: str | None = None,
    elementwise: bool = False,
    view: bool = False,
    **defaults: Argument,
) -> Declaration:
    """Adds a primitive to the registry.

    `lowers` names the high-level primitive that this one is a way of executing (`mapSeq` is `map`);
    `elementwise` primitives are for numbers, not for arrays; a `view` only rearranges what its
    arguments give (a map does so if its function does), so it may be repeated at no cost.
    A name declared twice is an error R0207.
    """
    if name in REGISTRY:
        raise RiseError("R0207", f"the primitive `{name}` is declared twice")
    declaration = Declaration(
        name, signature, meaning, denotation, infix, tuple(defaults.items()), lowers, elementwise, view
    )
    REGISTRY[name] = declaration
    return declaration


def lookup(name: str) -> Declaration | None:
    """The primitive of that name, all declaring modules being imported first."""
    import rise.primitives.arithmetic
    import rise.primitives.arrays
    import rise.primitives.levels
    import rise.primitives.memory
    import rise.primitives.tensor  # noqa: F401  # each import declares

    return REGISTRY.get(name)


def primitive(name: str) -> Declaration:
    declaration = lookup(name)
    if declaration is None:
        raise RiseError("R0201", f"there is no primitive `{name}`")
    return declaration
