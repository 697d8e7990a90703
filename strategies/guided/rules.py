"""The named sets of rules that a guided search applies: `tile=32,4`, `reorder`, `pack` …

A rule of a set is applied wherever it can be, and the program brought back into normal form: views next to
the arrays that they rearrange, maps fused. So the members of a set are strategies that each change one loop,
one for each place of the program at hand; what they do is in `strategies.loops`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import memory, sliding
from rewrites import tensor as t
from rewrites import views as v
from rewrites.loops import HOIST_STORED, STORING
from rewrites.result import Failure, Result
from rise.errors import StrategyError
from rise.expr import Apply, Expr, Identifier, Lambda, call, children
from rise.nat import Nat
from rise.normal import is_view
from rise.suggest import suggestion
from rise.types import Array
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    at_child,
    bottom_up,
    id_,
    normalize,
    prints_as_call,
    seq,
    try_,
)
from strategies.guided.sketch import Sketch
from strategies.loops.nests import (
    FOLD,
    MAP,
    at_loop,
    fused,
    in_elements,
    interchange,
    inward,
    kinds,
    loop_sizes,
    nearest,
    unroll,
)
from strategies.loops.tiling import split_loop
from strategies.loops.tvm_gemm import copy, in_form
from strategies.loops.vectorise import vectorize

Moves = Callable[[Expr], Iterable[Strategy]]


@dataclass(frozen=True)
class Rules:
    """A named set of rules.

    moves: the strategies that may be applied to a program, in a fixed order
    start: the normal form that the search begins with
    """

    name: str
    moves: Moves
    start: Strategy = id_

    def __or__(self, other: Rules) -> Rules:
        """The rules of both sets."""

        def moves(term: Expr) -> Iterator[Strategy]:
            yield from self.moves(term)
            yield from other.moves(term)

        start = other.start if self.start is id_ else self.start
        return Rules(f"{self.name} {other.name}", moves, start)


# --- loops ------------------------------------------------------------------------------------------------


@prints_as_call
def folds() -> Strategy:
    """The form in which loops are split and reordered: maps fused, reductions as folds."""
    return nearest(fused)


def tile(*sizes: int) -> Rules:
    """Every loop in blocks of one of the sizes (`S >> J`, `reduceSeq in blocks`)."""

    def moves(term: Expr) -> Iterator[Strategy]:
        for number, (size, found) in enumerate(zip(loop_sizes(term), kinds(term), strict=True), 1):
            yield from (split_loop(number, n) for n in sizes if _splits(n, size) and found in (MAP, FOLD))

    return Rules(_named("tile", sizes), moves, folds())


def _splits(block: int, size: Nat) -> bool:
    """Whether blocks of a size are neither the whole loop nor its single steps."""
    return block > 1 and (size.value is None or (size.value > block and size.value % block == 0))


def reorder() -> Rules:
    """Two neighbouring loops exchanged (`T >> T`, `liftReduce`, `reduceSeq of map` …)."""
    return Rules("reorder", lambda term: (interchange(n) for n in range(1, len(kinds(term)))), folds())


def vectorise(*widths: int) -> Rules:
    """The innermost map on vectors (`asVector >> asScalar`)."""
    return Rules(_named("vectorise", widths), lambda _: (vectorize(width) for width in widths))


def execute() -> Rules:
    """How a loop is executed: over the threads of a grid, one after the other, or unrolled."""
    levels = (low.MAP_GLOBAL.with_sizes(d=0), low.MAP_SEQ, low.REDUCE_SEQ, unroll)

    def moves(term: Expr) -> Iterator[Strategy]:
        numbers = range(1, len(kinds(term)) + 1)
        yield from (at_loop(number, level) for level in levels for number in numbers)

    return Rules("execute", moves, folds())


def _named(name: str, numbers: Iterable[int]) -> str:
    given = ",".join(map(str, numbers))
    return f"{name}={given}" if given else name


# --- memory -----------------------------------------------------------------------------------------------


def pack() -> Rules:
    """What is read of an input, copied into memory first, as it is or with its inner matrices transposed."""
    forms: tuple[tuple[Rewrite, ...], ...] = ((), (in_elements(1, v.TRANSPOSE_PAIR),))
    levels = (low.MAP_SEQ, low.MAP_GLOBAL.with_sizes(d=0))

    def moves(term: Expr) -> Iterator[Strategy]:
        for number, view in enumerate(views_of_inputs(term), 1):
            depth = _dimensions(view)
            yield from (packed(number, depth, level, *form) for form in forms for level in levels)

    return Rules("pack", moves)


@prints_as_call
def packed(number: int, depth: int, level: Rewrite, *form: Rewrite) -> Strategy:
    """The view of that number of an input, in a form, copied to global memory by `depth` loops, and read there."""
    stored = in_form(seq(copy(level, *[low.MAP_SEQ] * (depth - 1)), memory.IN_GLOBAL), *form)
    return FunctionStrategy("packed", seq(at_view(number, stored), HOIST_STORED, nearest(inward)))


@prints_as_call
def at_view(number: int, s: Rewrite) -> Strategy:
    """s at the view of that number of an input, 1 the first one."""

    def run(term: Expr) -> Result:
        views = list(_views(term, frozenset(), ()))
        if not 1 <= number <= len(views):
            return Failure("at_view", term, f"there is no view {number}: inputs are read in {len(views)} views")
        return at(views[number - 1][0], s)(term)

    return FunctionStrategy("at_view", run)


@prints_as_call
def at(path: tuple[int, ...], s: Rewrite) -> Strategy:
    """s at a place of a term: the children to follow, from the top."""
    if not path:
        return FunctionStrategy("at", s)

    def run(term: Expr) -> Result:
        if path[0] >= len(children(term)):
            return Failure("at", term, "the term has no such part")
        return at_child(path[0], at(path[1:], s), term)

    return FunctionStrategy("at", run)


def views_of_inputs(term: Expr) -> tuple[Expr, ...]:
    """The largest views of what is not bound in a term, of two dimensions or more; stored ones are not."""
    return tuple(view for _, view in _views(term, frozenset(), ()))


def _views(
    term: Expr, bound: frozenset[str], path: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], Expr]]:
    if isinstance(term, Apply) and _dimensions(term) > 1 and is_view(term) and _input(term) not in (None, *bound):
        yield path, term
        return
    applied = call(term)
    if applied is not None and applied[0] in STORING:
        return
    inner = bound | {term.parameter.name} if isinstance(term, Lambda) else bound
    for number, child in enumerate(children(term)):
        yield from _views(child, inner, (*path, number))


def _input(view: Expr) -> str | None:
    """The variable that a view rearranges."""
    while isinstance(view, Apply):
        view = view.argument
    return view.name if isinstance(view, Identifier) else None


def _dimensions(term: Expr) -> int:
    type_, count = term.type, 0
    while isinstance(type_, Array):
        type_, count = type_.element, count + 1
    return count


# --- anywhere ---------------------------------------------------------------------------------------------


def anywhere(name: str, *rules: Strategy, after: Strategy = id_, start: Strategy = id_) -> Rules:
    """Rules at every place where one applies; `after` brings the program into normal form."""

    def moves(term: Expr) -> Iterator[Strategy]:
        for path, part in _places(term):
            yield from (seq(at(path, rule), after) for rule in rules if rule.attempt(part) is not None)

    return Rules(name, moves, start)


def _places(term: Expr, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Expr]]:
    yield path, term
    for number, child in enumerate(children(term)):
        yield from _places(child, (*path, number))


def fuse() -> Rules:
    """Maps fused with maps and folds; reductions as folds."""
    return anywhere("fuse", a.MAP_FUSION, a.REDUCE_MAP, low.REDUCE_SEQ, a.REDUCE_SEQ_MAP)


def stencil() -> Rules:
    """Windows in overlapping tiles (`slide >> S`)."""
    return anywhere("stencil", sliding.SLIDE_BEFORE_SPLIT, after=nearest(inward), start=folds())


def tensorise(*sizes: int) -> Rules:
    """Sums in blocks, blocks of them outside of tiles, products of tiles as tensor-core instructions."""
    instructions = anywhere("", t.TENSORISE, t.TENSORISE_SAME, t.TENSORISE_WHOLE)

    def moves(term: Expr) -> Iterator[Strategy]:
        yield from (in_blocks(size) for size in sizes)
        yield bottom_up_lift
        yield from instructions.moves(term)

    return Rules(_named("tensorise", sizes), moves)


@prints_as_call
def in_blocks(size: int) -> Strategy:
    """Every reduction in blocks of a size, each added to the result of those before."""
    blocks = bottom_up(a.BLOCK_REDUCE.with_sizes(n=size))
    return FunctionStrategy("in_blocks", seq(blocks, nearest(inward), normalize(a.REDUCE_FROM)))


# the innermost map of folds as a fold of maps
bottom_up_lift: Strategy = seq(bottom_up(a.LIFT_REDUCE), nearest(inward))


# --- by name ----------------------------------------------------------------------------------------------

SETS: Mapping[str, Callable[..., Rules]] = {
    "tile": tile,
    "reorder": reorder,
    "vectorise": vectorise,
    "execute": execute,
    "pack": pack,
    "fuse": fuse,
    "stencil": stencil,
    "tensorise": tensorise,
}
NUMBERED = ("tile", "vectorise", "tensorise")


def rules(text: str, sketch: Sketch | None = None) -> Rules:
    """The sets that a text names: `tile=32,4 reorder`. R0641 where there is none of a name.

    Numbers that are not given are those that the sketch says.
    """
    made = [_set(part, sketch) for part in text.split()]
    if not made:
        raise StrategyError("R0641", "no set of rules is given", hint=f"there are {_known()}")
    first, *rest = made
    for other in rest:
        first |= other
    return first


def _set(text: str, sketch: Sketch | None) -> Rules:
    name, equals, numbers = text.partition("=")
    if name not in SETS:
        raise StrategyError("R0641", f"there is no set of rules `{name}`", None, suggestion(name, SETS) or f"there are {_known()}")
    if not equals:
        return SETS[name](*(_numbers(sketch) if name in NUMBERED and sketch is not None else ()))
    if name not in NUMBERED or not re.fullmatch(r"[1-9][0-9]{0,8}(,[1-9][0-9]{0,8})*", numbers):
        hint = f"as in `{NUMBERED[0]}=32,4`; {', '.join(f'`{n}`' for n in NUMBERED)} have numbers"
        raise StrategyError("R0641", f"`{text}` is no set of rules", None, hint)
    return SETS[name](*map(int, numbers.split(",")))


def _numbers(sketch: Sketch) -> tuple[int, ...]:
    """The sizes of a sketch that are numbers, largest first."""
    found = {node.size.value for node in sketch.nodes() if node.size is not None}
    return tuple(sorted((n for n in found if n is not None and n > 1), reverse=True))


def _known() -> str:
    return ", ".join(f"`{name}`" for name in SETS)
