"""How a primitive is declared, and found by its name: importing `rise.primitives` declares them all."""

from __future__ import annotations

from collections.abc import Callable

from rise.declaration import Declaration, Denotation, HostParameter
from rise.errors import RiseError
from rise.syntax.parser import parse_scheme
from rise.type_classes import TypeClass
from rise.types import Argument

REGISTRY: dict[str, Declaration] = {}


def declare(
    name: str,
    signature: str,
    meaning: str,
    denotation: Denotation,
    *,
    example: tuple[str, str],
    group: str,
    infix: str | None = None,
    lowers: str | None = None,
    elementwise: bool = False,
    operands: TypeClass = TypeClass.NUMBER,
    view: bool = False,
    host: tuple[HostParameter, ...] = (),
    member_signature: Callable[..., str] | None = None,
    **defaults: Argument,
) -> Declaration:
    """Adds a primitive to the registry; the parameters are those of `Declaration`.

    A name declared twice is an error R0207.
    """
    if name in REGISTRY:
        raise RiseError("R0207", f"the primitive `{name}` is declared twice")
    REGISTRY[name] = Declaration(
        name,
        signature,
        meaning,
        denotation,
        parse_scheme,
        infix,
        tuple(defaults.items()),
        lowers,
        elementwise,
        operands,
        view,
        group,
        example,
        host,
        member_signature=member_signature,
    )
    return REGISTRY[name]


def lookup(name: str) -> Declaration | None:
    """The primitive of that name."""
    return REGISTRY.get(name)


def plain_pattern(declaration: Declaration) -> str:
    """The high-level primitive that this one executes in the end: `reducePipelined` is a `reduce`."""
    while declaration.lowers is not None:
        declaration = REGISTRY[declaration.lowers]
    return declaration.name


def primitive(name: str) -> Declaration:
    declaration = lookup(name)
    if declaration is None:
        raise RiseError("R0201", f"there is no primitive `{name}`")
    return declaration
