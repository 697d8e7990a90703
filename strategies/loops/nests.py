"""Nests of loops: the loop that makes a value, the loop inside it, and their order.

A loop is a map that computes, a reduction, or either of them with a level chosen; views around it do not
count. Loops of a nest have numbers, 1 is the outermost. What changes a nest of maps is done from the
outside: the result is brought into another form and back (`T >> T`, `S >> J`), and the form moved inward,
so that outside of the nest only a view of its result is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rewrites import algorithmic as a
from rewrites import loops as rules
from rewrites import lowering as low
from rewrites import maps as l
from rewrites import views as v
from rewrites.result import Failure, Result
from rise.errors import StrategyError
from rise.expr import Apply, Expr, Lambda, call, children
from rise.nat import Nat
from rise.normal import is_view
from rise.types import Array
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    argument,
    at_child,
    check,
    choice,
    depending,
    normalize,
    prints_as_call,
    recursive,
    seq,
    try_,
)
from strategies.normal_forms import CANCEL, CONSTANTS, FUSE, MOVE
from strategies.places import computes, mapped

MAP, FOLD = "map", "reduce"

# --- what a loop is ---------------------------------------------------------------------------------------


def kind(term: Expr) -> str | None:
    """`map` or `reduce`, of a full application of such a pattern at any level; None for anything else."""
    applied = call(term)
    if applied is None:
        return None
    name, lowers = applied[0], applied[1].declaration.lowers
    if name == MAP:
        return MAP if computes(term) else None
    if lowers == MAP and len(applied[2]) == 2:
        return MAP
    return FOLD if FOLD in (name, lowers) and len(applied[2]) == 3 else None


@prints_as_call
def nearest(s: Rewrite) -> Strategy:
    """s at the loop that makes a term's value: below the views of it, in the body of a let."""

    def run(term: Expr) -> Result:
        if kind(term) is not None:
            return s(term)
        match term:
            case Apply(Lambda(), _):
                return at_child(0, lambda f: at_child(0, run, f), term)
            case Apply(_, Lambda()) if (applied := call(term)) is not None and applied[0] == "let":
                return at_child(1, lambda f: at_child(0, run, f), term)
            case Apply(function, _) if is_view(function) or _stores(function):
                return at_child(1, run, term)
            case _:
                return Failure("nearest", term, "there is no loop here")

    return FunctionStrategy("nearest", run)


def _stores(function: Expr) -> bool:
    applied = call(function)
    return applied is not None and applied[0] in rules.STORING


@prints_as_call
def within(s: Rewrite) -> Strategy:
    """s in the function of a loop: in a map's body, in a fold's step."""

    def run(term: Expr) -> Result:
        match kind(term):
            case "map":
                return mapped(s)(term)
            case "reduce":
                # reduce(step)(initial)(xs): the step is an argument two applications in
                return at_child(0, lambda f: at_child(0, lambda g: at_child(1, step, g), f), term)
            case _:
                return Failure("within", term, "expected a loop")

    def step(term: Expr) -> Result:
        return at_child(0, lambda inner: at_child(0, s, inner), term)

    return FunctionStrategy("within", run)


@prints_as_call
def at_loop(number: int, s: Rewrite) -> Strategy:
    """s at the loop of that number."""
    return nearest(s) if number <= 1 else nearest(within(at_loop(number - 1, s)))


@prints_as_call
def at_innermost(s: Rewrite) -> Strategy:
    """s at the last loop of a nest."""
    return recursive("at_innermost", lambda itself: nearest(choice(within(itself), s)))


@prints_as_call
def at_innermost_fold(s: Rewrite) -> Strategy:
    """s at the last fold of a nest."""
    here = seq(check(lambda loop: kind(loop) == FOLD, "at_innermost_fold", "there is no fold here"), s)
    return recursive("at_innermost_fold", lambda itself: nearest(choice(within(itself), here)))


@prints_as_call
def at_every_loop(s: Rewrite) -> Strategy:
    """s at each loop of a nest where it applies, from outside."""
    return recursive("at_every_loop", lambda itself: nearest(seq(try_(s), try_(within(itself)))))


# --- the nest as a tree -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loop:
    """A loop: how it is executed, how often, and the loops inside of it."""

    pattern: str
    size: Nat
    inner: tuple[Loop, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, indent: int = 0) -> Iterator[str]:
        yield f"{'  ' * indent}{self.pattern}({self.size})"
        for loop in self.inner:
            yield from loop.lines(indent + 1)


def loop_nest(term: Expr) -> tuple[Loop, ...]:
    """The loops of a term as a tree; those of a fold's initial value and of what is read come before it."""
    if kind(term) is None:
        return tuple(loop for child in children(term) for loop in loop_nest(child))
    name, _, operands = call(term) or ("", None, [])
    before = tuple(loop for operand in operands[1:] for loop in loop_nest(operand))
    return (*before, Loop(name, _size(term), loop_nest(operands[0])))


def _size(loop: Expr) -> Nat:
    """The size of the array that a loop is over, its last argument."""
    match loop:
        case Apply(_, array) if isinstance(array.type, Array):
            return array.type.size
        case _:
            raise TypeError(str(loop.type))


def show_nest(term: Expr) -> str:
    """The loops of a term, one a line: `mapSeq(32)`, what is inside of it indented."""
    return "\n".join(str(loop) for loop in loop_nest(term))


def spine_of(term: Expr) -> tuple[Expr, ...]:
    """The loops of the nest that makes a term's value, from outside."""
    found: list[Expr] = []

    def note(loop: Expr) -> Result:
        found.append(loop)
        return Failure("spine_of", loop, "it is only looked at")

    recursive("spine_of", lambda itself: nearest(choice(note, within(itself))))(term)
    return tuple(found)


def kinds(term: Expr) -> tuple[str, ...]:
    """`map` or `reduce` for each loop of the nest that makes a term's value, from outside."""
    return tuple(kind(loop) or "" for loop in spine_of(term))


def loop_sizes(term: Expr) -> tuple[Nat, ...]:
    """How often each of these loops is executed."""
    return tuple(_size(loop) for loop in spine_of(term))


# --- forms of results -------------------------------------------------------------------------------------

# reductions as folds, with the maps before them inside: the form in which loops are reordered
fused: Strategy = normalize(choice(a.MAP_FUSION, a.REDUCE_MAP, low.REDUCE_SEQ, a.REDUCE_SEQ_MAP))

# views next to the arrays that they rearrange, also through folds
inward: Strategy = normalize(choice(*CANCEL, *CONSTANTS, *FUSE, *MOVE, rules.VIEW_INTO_FOLD))


# views outside of a nest that undo each other; they are not moved into it
cancelled: Strategy = normalize(choice(*CANCEL, v.MAP_TRANSPOSE_TWICE))


@prints_as_call
def in_elements(depth: int, pair: Rewrite) -> Strategy:
    """x → x |> v |> v⁻¹ in the elements at a depth of an array: x → x |> *v |> *v⁻¹ for depth 1."""
    if depth == 0:
        return FunctionStrategy("in_elements", pair)
    return seq(a.MAP_NOTHING, mapped(in_elements(depth - 1, pair)), l.MAP_LAST_FISSION)


@prints_as_call
def reform(depth: int, pair: Rewrite, move: Rewrite = inward) -> Strategy:
    """The result in another form, which is moved inward, and back: `pair` introduces both."""
    return seq(nearest(seq(in_elements(depth, pair), argument(move))), cancelled)


# --- the order of loops -----------------------------------------------------------------------------------


@prints_as_call
def interchange(number: int) -> Strategy:
    """Interchanges the loop of that number and the one inside it.

    Two maps: the result is transposed. A map of folds becomes a fold of arrays (liftReduce), and back. Two
    folds with one operator may be interchanged where they are innermost.
    """

    def chosen(term: Expr) -> Rewrite:
        found = kinds(term)
        if number < 1 or number >= len(found):
            return missing("interchange", number + 1, len(found))
        match found[number - 1 : number + 1]:
            case ("map", "map"):
                return reform(found[: number - 1].count(MAP), v.TRANSPOSE_PAIR)
            case ("map", "reduce"):
                return seq(at_loop(number, a.LIFT_REDUCE), nearest(inward))
            case ("reduce", "map"):
                return seq(at_loop(number, choice(*rules.FOLD_OF_MAP)), nearest(inward))
            case _:
                return seq(at_loop(number, choice(*rules.FOLD_OF_FOLD)), nearest(inward))

    return depending(chosen)


@prints_as_call
def missing(name: str, wanted: int, found: int) -> Strategy:
    """A failure that says how many loops there are."""
    count = "1 loop" if found == 1 else f"{found} loops"
    reason = f"there is no loop {wanted}: the nest has {count}"
    return FunctionStrategy(name, lambda term: Failure(name, term, reason))


@prints_as_call
def reorder(*order: int) -> Strategy:
    """The loops of a nest in another order: reorder(1, 3, 2) puts the third loop before the second.

    Each loop moves outward past its neighbours, so the others keep their order. Loops further in than the
    numbers given stay where they are. R0609 where the numbers are not 1, 2, …, each once.
    """
    if sorted(order) != list(range(1, len(order) + 1)):
        given = ", ".join(map(str, order))
        problem = f"reorder({given}): expected the numbers from 1 to {len(order)}, each once"
        raise StrategyError("R0609", problem, hint="each is the number of a loop before, 1 the outermost")

    def chosen(term: Expr) -> Rewrite:
        found = len(kinds(term))
        return missing("reorder", len(order), found) if found < len(order) else seq(*_moves(order))

    return depending(chosen)


def _moves(order: Sequence[int]) -> Iterator[Strategy]:
    current = sorted(order)
    for place, loop in enumerate(order):
        for number in range(current.index(loop), place, -1):
            yield interchange(number)
        current.remove(loop)
        current.insert(place, loop)


# --- what is done with one loop ---------------------------------------------------------------------------

# one loop, unrolled: its body once for each element
unroll: Strategy = choice(low.UNROLL_MAP, low.REDUCE_SEQ_UNROLL, low.MAP_SEQ_UNROLL, low.REDUCE_UNROLL)


@prints_as_call
def parallel(level: Rewrite) -> Strategy:
    """Distributes the outermost loop, a map, over the workers of a level."""
    return nearest(level)


# --- lowering ---------------------------------------------------------------------------------------------


# sequential loops for all maps and folds without a level
to_loops: Strategy = at_every_loop(choice(low.MAP_SEQ, low.REDUCE_SEQ))

# the outermost loop over all threads of the grid; fails where it is a reduction
to_threads: Strategy = seq(parallel(low.MAP_GLOBAL.with_sizes(d=0)), to_loops)
