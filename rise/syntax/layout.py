"""How programs are laid out: one set of forms, for what users wrote and for what was computed."""

from __future__ import annotations

from collections.abc import Sequence

from rise.document import NOTHING, SPACE, Align, Document, Either, concat, fill, group, indented, join, solid

# how tightly a form binds; one that binds less tightly than its place asks for is parenthesised
LOOSEST, PIPE, ANNOTATED, COMPOSE, OR, AND, EQUALITY, COMPARISON = range(8)
SUM, PRODUCT, UNARY, POWER, ATOM = range(8, 13)

BINARY = {
    "||": OR, "&&": AND, "==": EQUALITY, "!=": EQUALITY,
    "<": COMPARISON, "<=": COMPARISON, ">": COMPARISON, ">=": COMPARISON,
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "^": POWER,
}  # fmt: skip

# the literal of the infinite number that each float type has
INFINITY = "infinity"


def operand_levels(operator: str) -> tuple[int, int]:
    """What the places left and right of an operator ask for.

    Comparisons do not chain, `^` groups to the right, all others to the left.
    """
    level = BINARY[operator]
    if level in (EQUALITY, COMPARISON):
        return level + 1, level + 1
    return (ATOM, UNARY) if level == POWER else (level, level + 1)


def parenthesised(document: Document, hugged: bool = False) -> Document:
    return concat("(", document if hugged else Align(document), ")")


def abstraction(parameters: Document, body: Document) -> Document:
    """`x => …`: the body, where it has no room, on its own lines."""
    return group(parameters, indented(SPACE, body))


def parameters(documents: Sequence[Document]) -> Document:
    """`(x: s, y: t)`: as many on a line as fit, below each other."""
    return concat("(", Align(fill(",", documents)), ")")


def inferred(documents: Sequence[Document]) -> Document:
    """`{n: Nat, t: DataType}`, likewise."""
    return concat("{", Align(fill(",", documents)), "}")


def call(function: Document, arguments: Sequence[Document], in_place: bool) -> Document:
    """A function written in place stays behind its parenthesis, where there is room for `map(x =>`."""
    broken = concat(function, group("(", indented(NOTHING, join(concat(",", SPACE), arguments)), ")"))
    return Either(concat(solid(function), "(", join(", ", arguments), ")"), broken) if in_place else broken


def chain(start: Document, stages: Sequence[Document], hugged: bool) -> Document:
    """`x |> f |> g`, on one line or a line each.

    A short chain that ends in a function written in place is broken inside that one only, where there is
    room for what precedes its body: `hugged`.
    """
    broken = group(join(SPACE, [start, *stages]))
    *others, last = stages
    return Either(concat(solid(join(" ", [start, *others])), " ", last), broken) if hugged else broken


def infix(before: Document, operator: str, after: Document) -> Document:
    return group(before, f" {operator}", indented(SPACE, after))


def pair(parts: Sequence[Document]) -> Document:
    return group("(", indented(join(concat(",", SPACE), parts), by=1), ")")


def bindings(bound: Sequence[Document], body: Document, line_end: Document = SPACE) -> Document:
    """`let x = … in let y = … in …`, on one line or a line each."""
    return group(*(concat(binding, line_end) for binding in bound), body)


def binding(pattern: Document, value: Document, remark: Document = "") -> Document:
    return concat("let ", pattern, " = ", indented(value), " in", remark)


def header(name: str, groups: Sequence[Document], result: Document) -> Document:
    """`def f{n: Nat}(x: s): t`: as many lists of parameters on a line as fit, the result behind the last."""
    first, *others = groups or [""]
    others = [group(NOTHING, other, *([result] if other is others[-1] else [])) for other in others]
    return concat("def ", name, indented(first, *(others or [result]), by=4))
