"""Any high-level program on a GPU: the outermost maps over all threads, the rest in loops.

A result is written by loops. What is read on the way is evaluated where it is read, if that takes no
loop; otherwise it is stored in the thread's own memory first:

* a map before a loop is done in the loop, on the element that is needed;
* an array that takes loops to compute, and is read in another way, is stored by the thread that reads it;
* a result that depends on a stored array is written element by element, each thread storing what its
  own elements need;
* a result that is not an array of independent elements (a scan, an iteration) is one thread's work.

Maps directly inside each other may all be over threads (`levels`): then the inner ones, too, compute elements
that do not wait for each other, and nothing is computed between them that each thread would have to repeat.

A program that has levels keeps them; what is still high-level inside of them becomes loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import movement as m
from rewrites import selection as choose
from rewrites import storing
from rewrites.memory import IN_LOCAL
from rewrites.result import Failure, Result, Success
from rewrites.typed import array_type
from rise.errors import StrategyError
from rise.expr import Expr, Lambda, application, call
from rise.nat import Nat
from rise.normal import is_view
from rise.types import Array, Pair
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    at_child,
    choice,
    depending,
    normalize,
    prints_as_call,
    seq,
)
from strategies.evaluation import (
    FOLDS,
    MAPS,
    WRITING,
    WRITTEN_THROUGH,
    bytes_of,
    has_array,
    has_levels,
    in_place,
    independent,
    is_applied,
    is_expression,
    source,
    writes_below,
)
from strategies.kernels import each_kernel
from strategies.operands import each_operand, in_function, nth_operand, operand
from strategies.places import computes, in_inputs, mapped
from strategies.settings import searched

# functions applied to data as lets; reductions as folds, with the maps before them inside, also those
# before views of what they map; of what an element is taken, only that element
folds = normalize(
    choice(
        storing.APPLIED_AS_LET,
        storing.MAP_FIRST_NAMED,
        storing.MAP_SECOND_NAMED,
        a.MAP_FUSION,
        a.REDUCE_MAP,
        low.REDUCE_SEQ,
        a.REDUCE_SEQ_MAP,
        low.SCAN_SEQ,
        m.SLIDE_MAP,
        m.SPLIT_MAP,
        m.TAKE_MAP,
        m.DROP_MAP,
        choose.IDX_MAP,
        choose.IDX_GENERATE,
        choose.IDX_ZIP,
    )
)
to_element = normalize(
    choice(storing.IDX_LET, choose.IDX_MAP, choose.IDX_GENERATE, choose.IDX_ZIP, choose.IDX_SELECT)
)

loops = normalize(choice(low.REDUCE_SEQ, low.SCAN_SEQ))

LOOP = low.MAP_SEQ
GRID = low.MAP_GLOBAL.with_sizes(d=0)
DIMENSIONS = 3  # of a grid
LARGEST = 65535  # of its dimensions, but for the first
# what is cheap enough to store: bytes
SMALL = 1024


@searched(levels=(1, 2, 3))
@prints_as_call
def default(levels: int = 1) -> Strategy:
    """The outermost maps over all threads of the grid, everything else sequential; for any program.

    levels: how many maps, at most, that are directly inside each other
    """
    if not 1 <= levels <= DIMENSIONS:
        raise StrategyError("R0609", f"default: levels={levels} is not a number from 1 to {DIMENSIONS}")
    return FunctionStrategy("default", in_inputs(each_kernel(lowered_by(levels))))


def lowered_by(levels: int) -> Strategy:
    """What `default` does with one kernel, under its inputs."""

    def run(term: Expr) -> Result:
        if has_levels(term):
            return seq(loops, written(LOOP))(term)
        return seq(folds, depending(lambda new: written(*grid(new, levels))))(term)

    return FunctionStrategy("lowered", run)


lowered = lowered_by(1)


def grid(term: Expr, levels: int) -> tuple[Rewrite, ...]:
    """The levels of the outermost maps that write a result, at most so many; a loop for what has to wait."""
    if not independent(term):
        return (LOOP,)
    dimensions = max(min(levels, _nested(term)), 1)
    return tuple(low.MAP_GLOBAL.with_sizes(d=d) for d in reversed(range(dimensions)))


def most_levels(term: Expr) -> int:
    """How many levels `default` may use for one kernel."""
    result = folds(term)
    return len(grid(result.term, DIMENSIONS)) if isinstance(result, Success) else 1


def _nested(term: Expr) -> int:
    """How many maps directly inside each other compute a result; the grid has room for their elements."""
    sizes = list(_nest(term))
    fitting = list(takewhile(lambda size: size.value is not None and size.value <= LARGEST, sizes))
    return min(len(fitting) + 1, len(sizes), DIMENSIONS)


def _nest(term: Expr) -> Iterator[Nat]:
    """The sizes of maps directly inside each other, outermost first; nothing between them takes a loop."""
    while (applied := call(term)) is not None:
        match applied:
            case "map", _, [Lambda(_, body), xs] if is_expression(xs):
                yield array_type(xs).size
                term = body
            case "generate", _, [Lambda(_, body)]:
                yield array_type(term).size
                term = body
            case name, _, [*_, xs] if name in WRITTEN_THROUGH - {"map"} and isinstance(xs.type, Array):
                term = xs
            case _:
                return


# --- writing --------------------------------------------------------------------------------------------


@prints_as_call
def written(level: Rewrite, *inside: Rewrite) -> Strategy:
    """Gives levels to the maps that write a result: `level` to the outermost, loops to those inside.

    inside: levels of the maps directly inside of it, before the loops
    """
    below = written(*inside) if inside else None

    def run(term: Expr) -> Result:
        if is_applied(term):
            return seq(storing.APPLIED_AS_LET, run)(term)
        applied = call(term)
        name = applied[0] if applied is not None else ""
        if name == "let":
            return _let(term)
        if not has_array(term.type):
            return readable(term)
        if name in FOLDS:
            return fold(term)
        if name == "iterate":
            return iteration(term)
        if isinstance(term.type, Pair):
            return _pair(term, name)
        return _array(term, name)

    def _pair(term: Expr, name: str) -> Result:
        if name == "pair":
            return each_operand(run)(term)
        if name == "unzip":
            return at_child(1, run, term)
        if name == "toMem":
            return readable(term)
        if name and not is_expression(term):
            return seq(readable, storing.NAMED, run)(term)
        return seq(storing.PAIR_OF_MEMBERS, run)(term)

    def _array(term: Expr, name: str) -> Result:
        if name == "zip" or name == "concat" or (name == "makeArray" and has_array(array_type(term).element)):
            return each_operand(run)(term)
        if name == "makeArray":
            return each_operand(readable)(term)
        if name in MAPS:
            return seq(mapped(written(LOOP)), operand(loop_operand))(term)
        if name == "scanSeq":
            return fold(term)
        if name == "scatter":
            return seq(operand(written(LOOP)), nth_operand(0, readable))(term)
        if name == "scatterBy":
            return seq(operand(run), nth_operand(0, readable), nth_operand(1, readable))(term)
        if name == "generate":
            return _generated(term)
        if computes(term):
            return _map(term)
        if name in WRITTEN_THROUGH and writes_below(term):
            return operand(run)(term)
        if name == "toMem":
            return readable(term)
        if name in WRITING:
            return operand(run)(term)
        return seq(a.MAP_NOTHING, _map)(term)

    def _map(term: Expr) -> Result:
        if level is not LOOP and not is_expression(source(term)):
            return seq(choose.ARRAY_AS_GENERATE, to_element, _generated)(term)
        return seq(level, mapped(below or written(LOOP)), operand(loop_operand))(term)

    def _generated(term: Expr) -> Result:
        return seq(a.GENERATE_AS_MAP, level, mapped(below or written(LOOP)))(term)

    def _let(term: Expr) -> Result:
        _, _, (value, _) = application(term)
        stored = has_array(value.type) and not is_expression(value)
        if stored and level is not LOOP and isinstance(term.type, Array):
            return seq(choose.ARRAY_AS_GENERATE, to_element, _generated)(term)
        inside = kept if level is LOOP else readable
        return seq(nth_operand(0, inside), nth_operand(1, in_function(run)))(term)

    return FunctionStrategy("written", run)


# --- reading --------------------------------------------------------------------------------------------


def _readable(term: Expr) -> Result:
    """Stores what is read and takes loops to compute."""
    if is_expression(term):
        return Success(term)
    if is_applied(term):
        return seq(storing.APPLIED_AS_LET, readable)(term)
    applied = call(term)
    if applied is None:
        return Success(term)
    name, head, _ = applied
    if name == "let":
        return seq(nth_operand(0, kept), nth_operand(1, in_function(readable)))(term)
    if name in FOLDS:
        return fold(term)
    if name == "iterate":
        return iteration(term)
    if name == "toMem":
        return operand(written(LOOP))(term)
    if name in ("map", "generate", "scanSeq", "scatter", "scatterBy") or name in MAPS:
        return stored(term)
    if head.declaration.group in ("tensor", "memory", "levels"):
        return Success(term)
    return each_operand(readable)(term)


readable = FunctionStrategy("readable", _readable)


def _kept(term: Expr) -> Result:
    """What gets a name within one thread's work: an array is stored, if it is computed and small."""
    size = bytes_of(term.type)
    small = size is not None and size <= SMALL
    if has_array(term.type) and is_expression(term) and not is_view(term) and small:
        return stored(term)
    return readable(term)


kept = FunctionStrategy("kept", _kept)


def _stored(term: Expr) -> Result:
    return seq(written(LOOP), IN_LOCAL)(term)


stored = FunctionStrategy("stored", _stored)


def _loop_operand(term: Expr) -> Result:
    """What a loop ranges over: a map is done in the loop."""
    applied = call(term)
    if applied is not None and applied[0] == "map" and not is_expression(term):
        return seq(mapped(readable), operand(loop_operand))(term)
    return readable(term)


loop_operand = FunctionStrategy("loop operand", _loop_operand)


# --- folds and iterations -------------------------------------------------------------------------------


def _fold(term: Expr) -> Result:
    """Initial value and step are written by loops where they are arrays."""
    position = 0 if application(term)[0] in FOLDS else 1  # of the accumulator

    def step(function: Expr) -> Result:
        names: list[str] = []
        body = function
        while isinstance(body, Lambda) and len(names) < 2:
            names.append(body.parameter.name)
            body = body.body
        if len(names) < 2:
            return Failure("default", function, "the step of this fold is not a function of two")
        simple = not has_array(body.type) or has_levels(body) or in_place(body, names[position])
        inner = written(LOOP) if simple else seq(written(LOOP), IN_LOCAL, storing.NAMED, written(LOOP))
        return at_child(0, lambda f: at_child(0, inner, f), function)

    def initial(value: Expr) -> Result:
        return Success(value) if is_view(value) else written(LOOP)(value)

    return seq(operand(loop_operand), nth_operand(1, initial), nth_operand(0, step))(term)


fold = FunctionStrategy("fold", _fold)


def _iteration(term: Expr) -> Result:
    turn = in_function(in_function(written(LOOP)))
    return seq(operand(readable), nth_operand(0, turn))(term)


iteration = FunctionStrategy("iteration", _iteration)
