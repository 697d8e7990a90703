"""Which part of what a rule matches each part of what it makes goes back to: the one with the same variables.

A rule says nothing of that itself. But `xs |> map(f) |> split(n) → xs |> split(n) |> map(b => b |> map(f))`
makes a map of f, and the smallest call on its left that f occurs in is the map that was there. So a loop in
a kernel leads to the map that it executes, and not to all of the program that some early step was about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from rise.expr import Apply, Expr, Lambda, Primitive, children, map_children, spine, subterms
from rise.frozen import changed
from rise.source import Origin, place

Path = tuple[int, ...]


# what differs in the names of patterns is who executes them
PATTERNS = ("map", "reduce", "scan")


def ancestors(lhs: Expr, rhs: Expr) -> Mapping[int, Path]:
    """For calls and functions of the right side, by identity, the path of a call on the left.

    What is not there goes back to what the part around it goes back to.
    """
    calls = list(_calls(lhs, ()))
    found: dict[int, Path] = {}
    for _, part in (*_calls(rhs, ()), *_functions(rhs, ())):
        path = _same_pattern(part, calls)
        if path is None:
            path = _same_variables(part, calls, rhs.free)
        if path is not None:
            found[id(part)] = path
    return found


def _same_pattern(part: Expr, calls: Sequence[tuple[Path, Expr]]) -> Path | None:
    """The only call of the same pattern: the map that a map comes from, whatever they are applied to."""
    alike = [path for path, call in calls if isinstance(part, Apply) and _pattern(part) == _pattern(call)]
    return alike[0] if len(alike) == 1 else None


def _pattern(call: Expr) -> str:
    name = getattr(spine(call)[0], "name", "")
    return next((pattern for pattern in PATTERNS if name.startswith(pattern)), name)


def _same_variables(part: Expr, calls: Sequence[tuple[Path, Expr]], of_rule: frozenset[str]) -> Path | None:
    """The smallest call with all variables of the rule that the part has; none where it has none.

    If two calls beside each other both have them, it is neither of the two.
    """
    variables = part.free & of_rule
    around = [path for path, call in calls if variables <= call.free]
    smallest = max(around, key=len, default=())
    if variables and around and all(smallest[: len(path)] == path for path in around):
        return smallest
    return None


def part_of(term: Expr, path: Path) -> Expr:
    """What a path of the left side leads to in the term that it matched; the term where it leads nowhere."""
    part = term
    for index in path:
        below = children(part)
        if index >= len(below):
            return term
        part = below[index]
    return part


def with_origin(new: Expr, old: Expr, origin: Origin) -> Expr:
    """What a computed rule made of a term, with an origin for those of its nodes that have no place."""
    return _placed(new, set(map(id, subterms(old))), origin)


def _placed(part: Expr, kept: Set[int], origin: Origin) -> Expr:
    if id(part) in kept:
        return part
    part = map_children(part, lambda child: _placed(child, kept, origin))
    return changed(part, origin=origin) if place(part.origin) is None else part


def _calls(term: Expr, path: Path) -> Iterator[tuple[Path, Expr]]:
    """The applications of primitives to all of their arguments, outer ones first.

    A variable of the rule that is applied stands for any term: nothing is known of what is in it.
    """
    if isinstance(term, Apply):
        head, applications = spine(term)
        if isinstance(head, Primitive):
            yield path, term
        for number, application in enumerate(reversed(applications)):
            yield from _calls(application.argument, (*path, *[0] * number, 1))
        return
    for index, child in enumerate(children(term)):
        yield from _calls(child, (*path, index))


def _functions(term: Expr, path: Path) -> Iterator[tuple[Path, Expr]]:
    if isinstance(term, Lambda):
        yield path, term
    for index, child in enumerate(children(term)):
        yield from _functions(child, (*path, index))
