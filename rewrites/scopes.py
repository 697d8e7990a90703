"""What is known of the variables of a function of rows: of which element of which array each is a name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from rewrites.elements import Elements, NotPointwise, at, fresh, names
from rewrites.typed import array_type
from rise.expr import Expr, Identifier, Lambda, apply, call, map_children, substitute
from rise.types import Index


@dataclass(frozen=True)
class Scope:
    """What is known of variables: each is an element of an array, at an index.

    elements: by name
    row:      the index of the rows, of the outermost map
    column:   the index of the innermost map around, and the variable that is its element; of an array that
              is generated, the same variable
    """

    elements: Mapping[str, Expr]
    row: Identifier
    column: tuple[Identifier, Identifier] | None = None


@dataclass
class Scoped(ABC):
    """A term rewritten where it stands: `here` changes a part, of whose variables the scope is known.

    whole:   the term
    taken:   names that are in use
    changed: whether `here` has changed a part
    """

    whole: Expr
    taken: set[str]
    changed: bool = field(default=False, kw_only=True)

    @abstractmethod
    def here(self, term: Expr, scope: Scope) -> Expr | None:
        """What stands for a part; None for the part with its own parts changed."""

    def go(self, term: Expr, scope: Scope) -> Expr:
        if (made := self.here(term, scope)) is not None:
            return made
        match call(term):
            case "map", head, [Lambda(x, body), xs]:
                inner = self.entered(x, xs, scope)
                return apply(head, Lambda(x, self.go(body, inner)), self.go(xs, scope), origin=term.origin)
            case "generate", head, [Lambda(x, body)]:
                outside = {name: y for name, y in scope.elements.items() if name != x.name}
                inner = Scope(outside, scope.row, (x, x))
                return apply(head, Lambda(x, self.go(body, inner)), origin=term.origin)
            case _ if isinstance(term, Lambda):
                outside = {name: x for name, x in scope.elements.items() if name != term.parameter.name}
                inner = replace(scope, elements=outside)
                return map_children(term, lambda child: self.go(child, inner))
            case _:
                return map_children(term, lambda child: self.go(child, scope))

    def entered(self, x: Identifier, xs: Expr, scope: Scope) -> Scope:
        index = fresh("c", Index(array_type(xs).size), self.taken)
        element = at(index, substitute(xs, dict(scope.elements)))
        return Scope({**scope.elements, x.name: element}, scope.row, (index, x))

    def value(self, term: Expr, scope: Scope) -> Expr | None:
        """A number or a condition as a function of indices."""
        elements = Elements(set(self.taken))
        try:
            return elements.closed(elements.value(substitute(term, dict(scope.elements))))
        except NotPointwise:
            return None


def over_rows(term: Expr, rewriter: Callable[[Expr, set[str]], Scoped], otherwise: str) -> Expr | str:
    """A map over rows with its function rewritten; a reason where there is none, or nothing changes.

    rewriter:  made of the whole term and of the names in use
    otherwise: the reason if nothing changes
    """
    match call(term):
        case "map", head, [Lambda(x, body), xs]:
            pass
        case _:
            return "expected a map over rows"
    taken = names(term)
    row = fresh("row", Index(array_type(xs).size), taken)
    rewriting = rewriter(term, taken)
    made = rewriting.go(body, Scope({x.name: at(row, xs)}, row))
    return apply(head, Lambda(x, made), xs, origin=term.origin) if rewriting.changed else otherwise
