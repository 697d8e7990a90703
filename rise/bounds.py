"""How large a program may become on the way to one that runs; what is larger is refused by name.

A checked program is a graph: types and definitions stand in it once, however often they are used. What
runs has them written out, and a short text can ask for more of that than there is memory.
"""

from __future__ import annotations

from rise.errors import RiseError
from rise.expr import Definition, Expr, Lambda, Primitive, subterms
from rise.types import LARGEST_WRITTEN, Argument, Composite, Type

LARGEST_TERM = 50_000  # nodes


def check_written_out(definition: Definition) -> None:
    """R0413 where a definition is too large with all that it uses in place of the names."""
    check_term(definition.body.extent, definition)


def check_term(nodes: int, what: Definition | Expr) -> None:
    """R0413"""
    if nodes > LARGEST_TERM:
        name = f"`{what.name}`" if isinstance(what, Definition) else "the program"
        raise RiseError(
            "R0413",
            f"{name} is too large: written out, it has more than {LARGEST_TERM} parts",
            what.origin,
            "`let` names what is used more than once",
        )


def check_types(definition: Definition, program: Expr) -> None:
    """R0412 where a type in a program has more parts than can be stored one by one."""
    for term in subterms(program):
        match term:
            case Lambda(parameter):
                found: tuple[Type | Argument, ...] = (parameter.type,)
            case Primitive(_, given):
                found = given
            case _:
                continue
        for type_ in found:
            if isinstance(type_, Composite) and type_.extent > LARGEST_WRITTEN:
                raise RiseError(
                    "R0412",
                    f"`{definition.name}` cannot be run: a type in it has more than {LARGEST_WRITTEN} parts",
                    term.origin or definition.origin,
                    "an array holds many elements of one type",
                )
