"""Definitions refer to earlier ones only; what refers to itself, or to a later one, is told why not."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from rise.errors import ScopeError
from rise.primitives.declare import lookup
from rise.syntax import surface as s
from rise.types import SCALARS

HINT = "programs have no recursion: `reduce`, `scan` and `iterate` repeat"


class Recursion:
    """Which definitions of a file mention which names."""

    def __init__(self, definitions: Sequence[s.DefinitionSyntax]) -> None:
        self._lines = {d.name: d.name_span.line for d in reversed(definitions)}
        self._mentions = {id(d): {n.name: n for n in reversed(list(mentioned(d)))} for d in definitions}
        self._uses = {d.name: set(self._mentions[id(d)]) for d in definitions}

    def mentions(self, definition: s.DefinitionSyntax) -> set[str]:
        """The free names of a definition."""
        return set(self._mentions[id(definition)])

    def check(self, definition: s.DefinitionSyntax, earlier: Container[str]) -> None:
        """R0213 where a definition mentions itself, or a later one that no primitive is named like."""
        mentions: Mapping[str, s.Name] = self._mentions[id(definition)]
        for name, node in mentions.items():
            if name == definition.name:
                raise ScopeError("R0213", f"`{name}` refers to itself", node.span, HINT)
            if name not in self._lines or name in earlier or lookup(name) or name in SCALARS:
                continue
            if self._leads_to(name, definition.name):
                message = f"`{definition.name}` and `{name}` refer to each other"
                raise ScopeError("R0213", message, node.span, HINT)
            message = f"`{name}` is defined later, at line {self._lines[name]}"
            hint = "definitions refer to earlier ones: move it up"
            raise ScopeError("R0213", message, node.span, hint)

    def _leads_to(self, start: str, goal: str) -> bool:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name == goal:
                return True
            if name not in seen:
                seen.add(name)
                waiting += self._uses.get(name, ())
        return False


def mentioned(definition: s.DefinitionSyntax) -> Iterator[s.Name]:
    """The names in a definition that nothing in it binds, in the order of the text."""
    return free_names(definition.body, frozenset(p.name for p in definition.implicit))


def free_names(node: s.Surface, bound: frozenset[str] = frozenset()) -> Iterator[s.Name]:
    """Occurrences of names that are not bound in an expression, in the order of the text."""
    match node:
        case s.Name(name):
            if name not in bound:
                yield node
        case s.Binary(_, left, right) | s.Compose(left, right) | s.Tuple(left, right):
            yield from free_names(left, bound)
            yield from free_names(right, bound)
        case s.Unary(_, operand) | s.Annotated(operand):
            yield from free_names(operand, bound)
        case s.Call(function, arguments, piped=piped):
            for part in (*arguments, function) if piped else (function, *arguments):
                yield from free_names(part, bound)
        case s.Function(parameters, body):
            yield from free_names(body, bound.union(*map(_bound_by, parameters)))
        case s.DependentFunction(parameters, body):
            yield from free_names(body, bound | {p.name for p in parameters})
        case s.Let(pattern, value, body):
            yield from free_names(value, bound)
            yield from free_names(body, bound | _bound_by(pattern))
        case _:
            pass


def _bound_by(pattern: s.Pattern) -> frozenset[str]:
    if isinstance(pattern, s.NamePattern):
        return frozenset((pattern.name,))
    return _bound_by(pattern.first) | _bound_by(pattern.second)
