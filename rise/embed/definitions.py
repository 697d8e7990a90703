"""A definition as a value of Python: its type, its text, its results, its compositions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rise.embed.closing import close
from rise.embed.errors import short_traceback
from rise.embed.functions import is_tracing
from rise.embed.places import here
from rise.embed.traced import Traced, lift, reference
from rise.expr import Definition, Expr, Reference, children, fresh_name, subterms, with_children
from rise.pretty import show_definition, show_type
from rise.syntax import surface as s
from rise.types import Dependent, Type


@dataclass(frozen=True, eq=False)
class Signature:
    """The type of a definition, inferred parameters first, with what it asks of its sizes."""

    definition: Definition

    @property
    def type(self) -> Type:
        type_: Type = self.definition.body.type
        for parameter in reversed(self.definition.parameters):
            type_ = Dependent(parameter.name, parameter.kind, type_, parameter.implicit)
        return type_

    def __str__(self) -> str:
        asked = ", ".join(str(c) for c in self.definition.constraints)
        return show_type(self.type) + (f" where {asked}" if asked else "")

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def _repr_html_(self) -> str:
        from rise.notebook import code_html

        return code_html(str(self))


# --- text -------------------------------------------------------------------------------------------


def program_text(definition: Definition, width: int) -> str:
    """The definition after all that it uses: a program that parses back to it.

    Of different definitions with one name, as a notebook makes them, the later ones are renamed.
    """
    taken: set[str] = set()
    final: dict[int, Definition] = {}
    texts: list[str] = []
    for each in (*_used(definition), definition):
        renamed = replace(each, name=fresh_name(each.name, taken), body=_redirected(each.body, final))
        taken.add(renamed.name)
        final[id(each)] = renamed
        texts.append(show_definition(renamed, width))
    return "\n\n".join(texts)


def _used(definition: Definition, seen: set[int] | None = None) -> Iterator[Definition]:
    """What a definition refers to, each once, those that others need first."""
    seen = seen if seen is not None else set()
    for term in subterms(definition.body):
        if isinstance(term, Reference) and id(term.definition) not in seen:
            seen.add(id(term.definition))
            yield from _used(term.definition, seen)
            yield term.definition


def _redirected(body: Expr, final: Mapping[int, Definition]) -> Expr:
    if isinstance(body, Reference):
        return replace(body, definition=final[id(body.definition)])
    return with_children(body, tuple(_redirected(c, final) for c in children(body)))


# --- application ------------------------------------------------------------------------------------


def apply(definition: Definition, inputs: tuple[Any, ...], sizes: Mapping[str, Any]) -> Any:
    """A part of the program that is being traced; elsewhere, the result on NumPy inputs."""
    if is_tracing() or any(isinstance(x, Traced | Definition) or callable(x) for x in inputs):
        return reference(definition)(*inputs)
    return definition.evaluate(*inputs, **sizes)


def compose(first: Any, second: Any) -> Definition | Traced:
    """`f >> g`, checked: a definition of its own, or a part of the program that is being traced."""
    place = here()
    value = lift(first, place.operand(0)) >> lift(second, place.operand(1))
    if is_tracing():
        return value
    with short_traceback():
        return close(value, f"{_name(first)}_then_{_name(second)}", place.span)


def _name(function: Any) -> str:
    """What a function is called: itself, or what it is a partial application of."""
    if isinstance(function, Definition):
        return function.name
    node = function.expression if isinstance(function, Traced) else None
    while isinstance(node, s.Call):
        node = node.function
    return node.name if isinstance(node, s.Name) and node.name.isidentifier() else "function"
