"""Final names: each binder keeps the name it has in Python, unless that would capture another.

Until here names are told apart by numbers, so that none means what it should not. What is left without
a binder has escaped from the function it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from rise.embed import errors
from rise.embed.entities import Binder, Symbol, Uses
from rise.embed.errors import TracingError
from rise.expr import Definition, fresh_name
from rise.source import Span
from rise.syntax import surface as s

# words of the notation, which Python does not reserve
KEYWORDS = frozenset("def import let in fun depFun natFun true false infinity".split())


@dataclass(frozen=True)
class Named:
    """A complete program: its syntax, the sizes and types it leaves free in the order of their first
    use, and the definitions it uses by the names they have in it."""

    syntax: s.Surface
    symbols: tuple[Symbol, ...]
    definitions: Mapping[str, Definition]


def finish(node: s.Surface, uses: Uses) -> Named:
    """Raises R0154 where a parameter is used outside of its function."""
    mentioned = list(dict.fromkeys(names(node)))
    final = {m: u.name for m in mentioned if isinstance(u := uses.get(m), Symbol)}
    taken = {*KEYWORDS, *(m for m in mentioned if m not in uses), *final.values()}
    definitions: dict[str, Definition] = {}
    for name in mentioned:
        used = uses.get(name)
        if isinstance(used, Definition):
            final[name] = fresh_name(used.name, taken)
            taken.add(final[name])
            definitions[final[name]] = used
    symbols = tuple(u for m in mentioned if isinstance(u := uses.get(m), Symbol))
    return Named(_Renaming(uses, frozenset(taken)).go(node, final), symbols, definitions)


def names(node: object) -> Iterator[str]:
    """Every name that is used in a surface term, in the order of the text."""
    match node:
        case s.Name(name) | s.TypeName(name):
            yield name
        case tuple():
            for part in node:
                yield from names(part)
        case _ if is_dataclass(node) and not isinstance(node, Span):
            for each in fields(node):
                yield from names(getattr(node, each.name))


@dataclass(frozen=True)
class _Renaming:
    """`taken` are the names that no binder may have: those of what is used and of what is free."""

    uses: Uses
    taken: frozenset[str]

    def go(self, node: Any, final: Mapping[str, str]) -> Any:
        match node:
            case s.Name(name, span) | s.TypeName(name, span):
                return replace(node, name=self._known(name, span, final))
            case s.Function(parameters, body, span):
                inner = self._bind([p.name for p in parameters if isinstance(p, s.NamePattern)], final)
                return s.Function(self.go(parameters, inner), self.go(body, inner), span)
            case s.NamePattern(name, annotation, span):
                return s.NamePattern(final[name], self.go(annotation, final), span)
            case s.DependentFunction(parameters, body, span):
                inner = self._bind([p.name for p in parameters], final)
                renamed = tuple(replace(p, name=inner[p.name]) for p in parameters)
                return s.DependentFunction(renamed, self.go(body, inner), span)
            case s.NatLambda(parameter, body, span):
                inner = self._bind([parameter], final)
                return s.NatLambda(inner[parameter], self.go(body, inner), span)
            case tuple():
                return tuple(self.go(part, final) for part in node)
            case _ if is_dataclass(node) and not isinstance(node, type | Span):
                return replace(node, **{f.name: self.go(getattr(node, f.name), final) for f in fields(node)})
        return node

    def _bind(self, bound: list[str], final: Mapping[str, str]) -> Mapping[str, str]:
        """The names below a binder."""
        inner = dict(final)
        for name in bound:
            stem = getattr(self.uses[name], "stem", name)
            inner[name] = fresh_name(stem, self.taken | set(inner.values()))
        return inner

    def _known(self, name: str, span: Span, final: Mapping[str, str]) -> str:
        if isinstance(binder := self.uses.get(name), Binder) and name not in final:
            message = f"`{binder.stem}` is used outside of the function whose parameter it is"
            hint = f"its function starts in line {binder.span.line}; return the value from it instead"
            raise TracingError(errors.ESCAPED, message, span, hint)
        return final.get(name, name)
