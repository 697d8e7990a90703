"""Any high-level program on a GPU: the outermost map over all threads, the rest one after the other.

Only what writes the result gets a level: maps that are read are evaluated where they are read.
"""

from __future__ import annotations

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import movement as m
from rewrites.result import Failure, Result, Success
from rise.expr import Apply, Expr, Lambda, Primitive, call, spine
from rise.types import Array, Pair
from strategies.core import (
    Rewrite,
    Strategy,
    argument,
    at_child,
    choice,
    function,
    normalize,
    seq,
)
from strategies.places import computes, in_inputs, mapped

# reductions as folds, with the maps before them inside, also those before views of what they map
folds = normalize(
    choice(
        a.MAP_FUSION,
        a.REDUCE_MAP,
        low.REDUCE_SEQ,
        a.REDUCE_SEQ_MAP,
        m.SLIDE_MAP,
        m.SPLIT_MAP,
        m.TAKE_MAP,
        m.DROP_MAP,
    )
)

WRITTEN_THROUGH = frozenset({"split", "join", "transpose", "unzip", "map"})


def default() -> Strategy:
    """The outermost map over all threads of the grid, everything else sequential; for any program."""
    return Strategy("default", in_inputs(seq(folds, written(low.MAP_GLOBAL.with_sizes(d=0)))))


def written(level: Rewrite) -> Strategy:
    """Gives levels to the maps that write a result: `level` to the outermost, loops to those inside."""

    def run(term: Expr) -> Result:
        if isinstance(term.type, Pair):
            return _both(run, term)
        if not isinstance(term.type, Array):
            return Success(term)
        applied = call(term)
        name = applied[0] if applied is not None else ""
        if computes(term):
            return seq(level, mapped(written(low.MAP_SEQ)))(term)
        if name == "generate":
            return seq(a.GENERATE_AS_MAP, run)(term)
        if name == "zip":
            return _both(run, term)
        if name in WRITTEN_THROUGH and _writes_below(term):
            return at_child(1, run, term)
        if name == "let" or isinstance(spine(term)[0], Lambda):
            return _body(run, term)
        if name in ("reduceSeq", "reduceSeqUnroll"):
            return _fold(term)
        return seq(a.MAP_NOTHING, level, mapped(written(low.MAP_SEQ)))(term)

    return Strategy("written", run)


def _writes_below(term: Expr) -> bool:
    """Whether under views that can be written through there is a map that computes."""
    while True:
        applied = call(term)
        if applied is None or not applied[2]:
            return False
        name, _, operands = applied
        if computes(term) or name in ("generate", "reduceSeq", "let"):
            return True
        if name not in WRITTEN_THROUGH or (name == "map" and not _rearranges(operands[0])):
            return False
        term = operands[-1]


def _rearranges(mapped_: Expr) -> bool:
    """A function of one array that only passes it through views which can be written through."""
    if not isinstance(mapped_, Lambda):
        return False
    term = mapped_.body
    while (applied := call(term)) is not None and applied[0] in WRITTEN_THROUGH - {"map"}:
        term = applied[2][-1]
    return term == mapped_.parameter or getattr(term, "name", None) == mapped_.parameter.name


def _both(run: Rewrite, term: Expr) -> Result:
    head, applications = spine(term)
    if isinstance(head, Primitive) and head.name in ("pair", "zip") and len(applications) == 2:
        return seq(function(argument(run)), argument(run))(term)
    return Success(term)


def _body(run: Rewrite, term: Expr) -> Result:
    """The body of a let, or of an applied function."""
    if isinstance(term, Apply) and isinstance(term.function, Lambda):
        return at_child(0, lambda f: at_child(0, run, f), term)
    if isinstance(term, Apply) and isinstance(term.argument, Lambda):
        return at_child(1, lambda f: at_child(0, run, f), term)
    return Failure("default", term, "the body of this let is not a function")


def _fold(term: Expr) -> Result:
    """A fold whose accumulator is an array: initial value and step are written by loops."""
    loops = written(low.MAP_SEQ)
    return seq(
        function(
            seq(
                argument(loops),
                function(
                    argument(Strategy("step", lambda f: at_child(0, lambda g: at_child(0, loops, g), f)))
                ),
            )
        )
    )(term)
