"""Predicates on terms for lowering: which need loops, which can be written, and how."""

from __future__ import annotations

from rise.expr import Apply, Expr, Identifier, Lambda, Primitive, call, children, closed_parts, subterms
from rise.normal import is_view
from rise.types import Array, Index, Pair, Scalar, Type, Vector
from strategies.core import Predicate
from strategies.places import computes

PARALLEL = frozenset({
    "mapGlobal", "mapCluster", "mapClusterPersistent", "mapBlock", "mapBlockPersistent",
    "mapThreads", "mapWarpGroup", "mapWarpGroupThreads", "mapWarp", "mapLane",
})  # fmt: skip
MAPS = PARALLEL | {"mapSeq", "mapSeqUnroll"}
FOLDS = frozenset({"reduceSeq", "reduceSeqUnroll"})
# views that a result can be written through
WRITTEN_THROUGH = frozenset({"split", "join", "transpose", "unzip", "reorder", "map"})
# what writes a result as it is computed: only the operand is left to compute
WRITING = frozenset({
    "asMatrix", "asColumn", "asOperands", "bulkStore", "padEmpty", "prefix", "prefixes", "asScalar",
    "asVector", "asVectorAligned",
})  # fmt: skip
# what commands write, besides maps and folds
OTHERS_WRITTEN = frozenset({
    "generate", "let", "scanSeq", "iterate", "scatter", "scatterBy", "asMatrix", "bulkStore",
})  # fmt: skip
# groups of primitives, and others, that take commands to compute
COMMANDS = frozenset({"levels", "memory", "tensor", "reduce", "scan", "iterate", "scatter", "scatterBy"})


def has_levels(term: Expr) -> bool:
    """Whether a program says what is done in parallel."""
    return any(isinstance(part, Primitive) and part.name in PARALLEL for part in subterms(term))


def has_array(type_: Type) -> bool:
    match type_:
        case Array():
            return True
        case Pair(first, second):
            return has_array(first) or has_array(second)
        case _:
            return False


def is_expression(term: Expr) -> bool:
    """Whether a term can be evaluated where it is read, without a loop or memory."""
    if isinstance(term, Primitive):
        return term.name not in COMMANDS and term.declaration.group not in COMMANDS
    return all(map(is_expression, children(term)))


def is_applied(term: Expr) -> bool:
    """Whether a term is a function written in place, applied."""
    return isinstance(term, Apply) and isinstance(term.function, Lambda)


def closed_in(term: Expr) -> Predicate:
    """Whether a part of a term uses no variable bound inside of the term."""
    closed = {id(part) for part in closed_parts(term)}
    return lambda part: id(part) in closed


def independent(term: Expr) -> bool:
    """Whether the elements of all parts of a result can be computed each by itself."""
    applied = call(term)
    if not has_array(term.type):
        return False
    if applied is None or not applied[2]:
        return True
    name, _, operands = applied
    match name:
        case "pair" | "zip" | "concat" | "makeArray":
            return all(map(independent, operands))
        case "let":
            function = operands[1]
            stored = has_array(operands[0].type) and not is_expression(operands[0])
            several = isinstance(term.type, Pair) and stored
            return isinstance(function, Lambda) and not several and independent(function.body)
        case "scanSeq" | "iterate" | "scatter" | "reduceSeq" | "reduceSeqUnroll":
            return False
        case _ if name in WRITTEN_THROUGH - {"map"} | {"scatterBy", "prefix", "prefixes"}:
            return independent(operands[-1])
        case _:
            return isinstance(term.type, Array) or is_expression(term)


def bytes_of(type_: Type) -> int | None:
    """The size of data in memory; None where it depends on sizes that are not known yet."""
    match type_:
        case Array(size, element) | Vector(size, element):
            inner = bytes_of(element)
            return None if inner is None or size.value is None else size.value * inner
        case Pair(first, second):
            one, other = bytes_of(first), bytes_of(second)
            return None if one is None or other is None else one + other
        case Scalar():
            return type_.bytes
        case Index():
            return 4
        case _:
            return None


def source(term: Expr) -> Expr:
    """The array under the maps that a loop over a term does on the way."""
    applied = call(term)
    while applied is not None and applied[0] == "map" and len(applied[2]) == 2:
        term = applied[2][1]
        applied = call(term)
    return term


def writes_below(term: Expr) -> bool:
    """Whether under views that can be written through there is something that is computed."""
    while True:
        applied = call(term)
        if applied is None or not applied[2]:
            return False
        name, _, operands = applied
        if computes(term) or name in OTHERS_WRITTEN or name in FOLDS | MAPS:
            return True
        if name not in WRITTEN_THROUGH or (name == "map" and not rearranges(operands[0])):
            return False
        term = operands[-1]


def is_rearranged(term: Expr) -> bool:
    """Whether a term only rearranges each element of an array: `xs |> map(join)`."""
    match call(term):
        case "map", _, [function, _]:
            return rearranges(function)
        case _:
            return False


def rearranges(function: Expr) -> bool:
    """A function of one array that only passes it through views which can be written through."""
    if not isinstance(function, Lambda):
        return False
    term = function.body
    while (applied := call(term)) is not None and applied[0] in WRITTEN_THROUGH:
        if applied[0] == "map" and not rearranges(applied[2][0]):
            return False
        term = applied[2][-1]
    return isinstance(term, Identifier) and term.name == function.parameter.name


def in_place(body: Expr, name: str) -> bool:
    """Whether each element of the new accumulator needs no other element of the old one than itself."""
    if name not in body.free or (isinstance(body, Identifier) and body.name == name):
        return True
    applied = call(body)
    if applied is None or isinstance(body.type, Pair):
        return False
    head, _, operands = applied
    if head in FOLDS:
        function, start, xs = operands
        return is_view(start) and in_place(start, name) and name not in function.free | xs.free
    if head not in MAPS | {"map"} or not isinstance(function := operands[0], Lambda):
        return False
    return name not in function.free and aligned(operands[1], name) and elementwise(function)


def aligned(term: Expr, name: str) -> bool:
    """Whether an array is the accumulator, or it zipped with other arrays."""
    applied = call(term)
    if applied is not None and applied[0] == "zip":
        return all(aligned(part, name) for part in applied[2])
    return name not in term.free or isinstance(term, Identifier)


def elementwise(function: Lambda) -> bool:
    """Whether a function gives no array: then it reads one element, and writes it."""
    return not has_array(function.body.type)
