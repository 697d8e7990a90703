"""Which dimension of an array is contiguous in memory, and where its rows start, as far as views tell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from rewrites.result import Failure, Result, Success
from rewrites.typed import array_type
from rise.expr import Apply, Expr, Identifier, Lambda, call, children, subterms
from rise.nat import Nat, NatVariable, constant, remainder, variable
from rise.normal import is_view
from rise.types import Array, NatFunction, Pair, Type, shape
from strategies.core import FunctionStrategy, Rewrite, Strategy, at_child, prints_as_call

PAIR = 2
WHOLE = 16  # elements: no vector reaches from one of two arrays into the other if these divide the first


@dataclass(frozen=True)
class Contiguity:
    """For each dimension of an array, outermost first, whether its neighbours are neighbours in memory.

    An array in an order that keeps pairs together counts as contiguous, too: a strategy that introduces such
    an order moves at most a pair at once.

    starts:   rows along the contiguous dimension start at sums of multiples of these numbers of elements
    computed: whether elements are computed from what is in memory, one by one
    """

    dimensions: tuple[bool, ...]
    starts: tuple[Nat, ...] = ()
    computed: bool = False


# what is known of a value: of a pair, of both parts; None where nothing is
Known = Contiguity | tuple["Known", "Known"] | None
Context = Mapping[str, Known]
NOTHING: Context = MappingProxyType({})


def stored(type_: Type, outer: tuple[Nat, ...] = ()) -> Known:
    """An array as it is stored, row by row; an array of pairs as a pair of arrays. outer: sizes around it"""
    sizes, element = outer, type_
    while isinstance(element, Array):
        sizes, element = (*sizes, element.size), element.element
    if isinstance(element, Pair):
        return stored(element.first, sizes), stored(element.second, sizes)
    dimensions = ((False,) * len(sizes) + (True,))[1:]
    return Contiguity(dimensions, sizes[1:][-1:])  # the one row of a list starts where it does


def contiguity_of(term: Expr, context: Context) -> Known:
    """What is known of the value of a term; the context says what is known of bound variables."""
    if isinstance(term, Identifier):
        return context[term.name] if term.name in context else stored(term.type)
    if isinstance(term, Apply) and isinstance(term.function, Lambda):
        inner = {**context, term.function.parameter.name: contiguity_of(term.argument, context)}
        return contiguity_of(term.function.body, inner)
    applied = call(term)
    if applied is None or not applied[2]:
        return None
    name, head, arguments = applied
    if name == "map" and len(arguments) == 2:
        return _map(arguments[0], contiguity_of(arguments[1], context), context)
    if head.declaration.elementwise:
        return Contiguity((), computed=True)
    if name == "concat" and (array_type(arguments[0]).size.value or 1) % WHOLE:
        return None
    if name == "reorder" and keeps_pairs(head.arguments):
        return contiguity_of(arguments[0], context)
    sizes = [size for size in head.arguments if isinstance(size, Nat)]
    return _view(name, sizes, [contiguity_of(a, context) for a in arguments])


def keeps_pairs(arguments: Sequence[object]) -> bool:
    """Whether an order leaves elements 2·i and 2·i + 1 beside each other, each pair at an even place."""
    match arguments:
        case [Nat(), NatFunction(parameter, body), *_]:
            pair = variable("pair")
            first, second = (
                body.substitute({NatVariable(parameter): PAIR * pair + constant(one)}) for one in range(PAIR)
            )
            return second == first + constant(1) and remainder(first, PAIR) == constant(0)
    return False


def _map(function: Expr, array: Known, context: Context) -> Known:
    if not isinstance(function, Lambda):
        return None
    inner = contiguity_of(function.body, {**context, function.parameter.name: element(array)})
    outer = _outermost(array)
    return _array(outer and not _gathers(function), _starts(array), inner)


def _gathers(function: Lambda) -> bool:
    """Whether a function reads at an index that depends on its argument: neighbours may read anywhere."""
    name = function.parameter.name
    reads = (call(part) for part in subterms(function.body))
    places = (read[2][0] for read in reads if read is not None and read[0] == "idx" and read[2])
    return any(name in place.free for place in places)


def _view(name: str, sizes: Sequence[Nat], parts: list[Known]) -> Known:
    match name, parts:
        case "zip" | "pair", [first, second]:
            return first, second
        case "fst", [(first, _)]:
            return first
        case "snd", [(_, second)]:
            return second
        case _, [(first, second)]:
            return _view(name, sizes, [first]), _view(name, sizes, [second])
        case "transpose", [Contiguity((a, b, *rest)) as array]:
            return replace(array, dimensions=(b, a, *rest))
        case "split" | "slide", [Contiguity() as array]:
            rows = _starting(array, sizes[0] if name == "split" else sizes[-1])
            return replace(rows, dimensions=(False, *array.dimensions))
        case "join", [Contiguity((_, inner, *rest)) as array]:
            return replace(array, dimensions=(inner, *rest))
        case "reorder", [Contiguity((_, *rest)) as array]:
            return replace(array, dimensions=(False, *rest))
        case "gather" | "scatter", [_, Contiguity((_, *rest)) as array]:
            return replace(array, dimensions=(False, *rest))
        case "idx", [_, array]:
            return element(array)
        case "scatterBy", [_, _, Contiguity((_, *rest)) as array]:
            return replace(array, dimensions=(False, *rest))
        case "drop" | "padCst", [*_, Contiguity() as array]:
            return _starting(array, sizes[0])
        case "take" | "id" | "promoted" | "unzip" | "padEmpty", [array]:
            return array
        case "prefix" | "prefixes", [_, array]:
            return array
        case "concat", [Contiguity(dimensions) as first, Contiguity(others) as second] if (
            dimensions == others
        ):
            computed, starts = first.computed or second.computed, (*first.starts, *second.starts)
            return replace(first, computed=computed, starts=starts)
        case "concat", [first, second] if first == second:
            return first
        case _:
            return None


def _starting(array: Contiguity, distance: Nat) -> Contiguity:
    """Parts of an array at multiples of a distance along its outermost dimension."""
    contiguous = array.dimensions[:1] == (True,) and distance != constant(0)
    return replace(array, starts=(*array.starts, distance)) if contiguous else array


def element(array: Known) -> Known:
    """What is known of an array's elements."""
    match array:
        case (first, second):
            return element(first), element(second)
        case Contiguity((_, *rest)):
            return replace(array, dimensions=tuple(rest))
        case _:
            return None


def _outermost(array: Known) -> bool | None:
    match array:
        case Contiguity((outer, *_)):
            return outer
        case (first, second):
            left, right = _outermost(first), _outermost(second)
            if left is None or right is None:
                return left if right is None else right
            return left if left == right else None
        case _:
            return None


def _starts(array: Known) -> tuple[Nat, ...]:
    match array:
        case (first, second):
            return (*_starts(first), *_starts(second))
        case Contiguity(starts=starts):
            return starts
        case _:
            return ()


def _array(outer: bool | None, starts: tuple[Nat, ...], inner: Known) -> Known:
    match inner:
        case (first, second):
            return _array(outer, starts, first), _array(outer, starts, second)
        case Contiguity(dimensions) if outer is not None:
            return replace(inner, dimensions=(outer, *dimensions), starts=inner.starts or starts)
        case _:
            return None


def starts_of_rows(term: Expr, sizes: Collection[int], context: Context = NOTHING) -> Iterator[Nat]:
    """Where rows of the matrices that a term reads start, for rows of one of these sizes."""
    if isinstance(term.type, Array) and isinstance(term.type.element, Array) and is_view(term):
        yield from _starts_along(contiguity_of(term, context), shape(term.type)[0], sizes)
    else:
        for child in children(term):
            yield from starts_of_rows(child, sizes, _below(term, child, context))


def _starts_along(known: Known, extents: Sequence[Nat], sizes: Collection[int]) -> Iterator[Nat]:
    match known:
        case Contiguity(dimensions) if len(dimensions) == len(extents):
            along = [extent.value for extent, is_row in zip(extents, dimensions, strict=True) if is_row]
            yield from () if set(along).isdisjoint(sizes) else known.starts
        case (first, second):
            yield from _starts_along(first, extents, sizes)
            yield from _starts_along(second, extents, sizes)
        case _:
            return


# --- strategies that ask --------------------------------------------------------------------------------


@prints_as_call
def in_context(
    at: Callable[[Expr], bool], make: Callable[[Expr, Context], Rewrite], known: Context
) -> Strategy:
    """What `make` gives at the outermost terms for which `at` holds, for what is known of variables."""

    def go(term: Expr, context: Context) -> Result:
        if at(term):
            return make(term, context)(term)
        result = Success(term)
        for index, child in enumerate(children(term)):
            below = at_child(index, lambda c, x=_below(term, child, context): go(c, x), result.term)  # type: ignore[misc]
            if isinstance(below, Failure):
                return below
            result = Success(below.term, result.steps + below.steps)
        return result

    return FunctionStrategy("in_context", lambda term: go(term, known))


def _below(term: Expr, child: Expr, context: Context) -> Context:
    """The context in a child: a mapped function's parameter is an element of the array."""
    if isinstance(term, Lambda):
        return context if term.parameter.name in context else {**context, term.parameter.name: None}
    if isinstance(term, Apply) and child is term.function:
        function: Expr = child
        if isinstance(function, Lambda):
            return {**context, function.parameter.name: contiguity_of(term.argument, context)}
        if isinstance(function, Apply) and isinstance(function.argument, Lambda):
            applied = call(term)
            if applied is not None and applied[0].startswith("map"):
                name = function.argument.parameter.name
                return {**context, name: element(contiguity_of(term.argument, context))}
    return context
