"""The named sets of rules that a guided search applies: `tile=32,4`, `reorder`, `pack` …

A rule of a set is applied wherever it can be, and the program brought back into normal form: views next to
the arrays that they rearrange, maps fused. So a set gives strategies that each change one loop, one strategy
for each place of the program at hand. What they do is in `strategies.loops` and in `strategies.guided.moves`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import sliding
from rewrites import tensor as t
from rewrites import views as v
from rewrites.constants import constant_of
from rewrites.library import modules, places, rules
from rewrites.result import Path
from rewrites.strategy import head_of
from rise.errors import StrategyError
from rise.expr import Apply, Expr, children
from rise.nat import Nat
from rise.suggest import suggestion
from strategies.core import Rewrite, Strategy, id_, seq
from strategies.guided.moves import (
    at,
    dimensions,
    folds,
    lift_fold,
    packed,
    sums_in_blocks,
    tidied,
    views_of_inputs,
)
from strategies.guided.sketch import Sketch
from strategies.loops.nests import at_loop, in_elements, interchange, kinds, loop_sizes
from strategies.loops.tiling import split_loop
from strategies.loops.vectorise import vectorize

Moves = Callable[[Expr], Iterable[Strategy]]
GLOBAL = low.MAP_GLOBAL.with_sizes(d=0)


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
        """The rules of both sets, from the normal form of the first."""

        def moves(term: Expr) -> Iterator[Strategy]:
            yield from self.moves(term)
            yield from other.moves(term)

        return Rules(f"{self.name} {other.name}", moves, self.start)


def anywhere(name: str, *chosen: Strategy, after: Strategy = id_, start: Strategy = id_) -> Rules:
    """Rules at every place where one applies; `after` brings the program into normal form."""

    def moves(term: Expr) -> Iterator[Strategy]:
        for path, part in _places(term):
            head = part.head if isinstance(part, Apply) else None
            for rule in chosen:
                if head_of(rule) in (None, head) and rule.attempt(part) is not None:
                    yield at(path, rule) if after is id_ else seq(at(path, rule), after)

    return Rules(name, moves, start)


def _places(term: Expr, path: Path = ()) -> Iterator[tuple[Path, Expr]]:
    yield path, term
    for number, child in enumerate(children(term)):
        yield from _places(child, (*path, number))


# --- loops ------------------------------------------------------------------------------------------------


def tile(*sizes: int) -> Rules:
    """Every loop in blocks of one of the sizes (`S >> J`, `reduceSeq in blocks`)."""

    def moves(term: Expr) -> Iterator[Strategy]:
        for number, size in enumerate(loop_sizes(term), 1):
            yield from (split_loop(number, block) for block in sizes if _splits(block, size))

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
    """How a loop is executed: over the threads of a grid, one step after the other, or unrolled."""
    levels = (GLOBAL, low.MAP_SEQ, low.REDUCE_SEQ, low.REDUCE_SEQ_UNROLL, low.MAP_SEQ_UNROLL)

    def moves(term: Expr) -> Iterator[Strategy]:
        numbers = range(1, len(kinds(term)) + 1)
        yield from (at_loop(number, level) for level in levels for number in numbers)

    return Rules("execute", moves, folds())


def pack() -> Rules:
    """What is read of an input, copied into memory first: as it is, or its inner matrices transposed."""
    forms: tuple[tuple[Rewrite, ...], ...] = ((), (in_elements(1, v.TRANSPOSE_PAIR),))

    def moves(term: Expr) -> Iterator[Strategy]:
        for number, (_, view) in enumerate(views_of_inputs(term), 1):
            depth = dimensions(view)
            yield from (
                packed(number, depth, level, *form) for form in forms for level in (low.MAP_SEQ, GLOBAL)
            )

    return Rules("pack", moves)


def fuse() -> Rules:
    """Maps fused with maps and folds; reductions as folds."""
    return anywhere("fuse", a.MAP_FUSION, a.REDUCE_MAP, low.REDUCE_SEQ, a.REDUCE_SEQ_MAP)


def stencil() -> Rules:
    """Windows of a tile as windows of a larger one, so that tiles overlap (`slide >> S`)."""
    return anywhere("stencil", sliding.SLIDE_BEFORE_SPLIT, after=tidied(), start=folds())


def tensorise(*sizes: int) -> Rules:
    """Sums in blocks, outside of the maps of a tile; products of tiles as tensor-core instructions."""
    instructions = anywhere("", t.TENSORISE)

    def moves(term: Expr) -> Iterator[Strategy]:
        yield from (sums_in_blocks(size) for size in sizes)
        yield lift_fold()
        yield from instructions.moves(term)

    return Rules(_named("tensorise", sizes), moves)


def laws(group: str) -> Rules:
    """The rules of a file of `rewrites/`, each anywhere; those whose parameters need a value never apply."""
    chosen = tuple(rule for name, rule in rules().items() if places()[name][0] == group)
    return anywhere(group, *chosen)


def _named(name: str, numbers: Iterable[int]) -> str:
    given = ",".join(map(str, numbers))
    return f"{name}={given}" if given else name


# --- by name ----------------------------------------------------------------------------------------------

PLAIN: Mapping[str, Callable[[], Rules]] = {
    "reorder": reorder,
    "execute": execute,
    "pack": pack,
    "fuse": fuse,
    "stencil": stencil,
}
NUMBERED: Mapping[str, Callable[..., Rules]] = {
    "tile": tile,
    "vectorise": vectorise,
    "tensorise": tensorise,
}
NAMES = (*NUMBERED, *PLAIN)
NUMBERS, CONSTANT = r"[1-9][0-9]{0,8}", r"([A-Z][A-Z0-9_]+(?:\[\w+\])?)(?:\(((?:\w+=\d{1,9},?)*)\))?"


def rule_set(text: str, sketch: Sketch) -> Rules:
    """The sets that a text names: `tile=32,4 reorder`, files of rules, `views`, and rules, `SPLIT_JOIN(n=8)`.

    Numbers that are not given are those that the sketch says. R0641 where there is no set of a name.
    """
    sets = [_rule_set(word, sketch) for word in text.split()]
    if not sets:
        raise StrategyError("R0641", "no set of rules is given", hint=f"there are {_known()}")
    first, *others = sets
    for other in others:
        first |= other
    return first


def _rule_set(word: str, sketch: Sketch) -> Rules:
    name, equals, numbers = word.partition("=")
    if not equals and name in PLAIN:
        return PLAIN[name]()
    if not equals and name in NUMBERED:
        return NUMBERED[name](*_numbers(sketch))
    if name in NUMBERED and re.fullmatch(f"{NUMBERS}(,{NUMBERS})*", numbers):
        return NUMBERED[name](*map(int, numbers.split(",")))
    if not equals and name in modules():
        return laws(name)
    if found := re.fullmatch(CONSTANT, word):
        return _rule(found[1], found[2] or "")
    if name in NAMES:
        hint = f"{', '.join(f'`{each}`' for each in NUMBERED)} have numbers, as in `tile=32,4`"
        raise StrategyError("R0641", f"`{word}` is no set of rules", None, hint)
    hint = suggestion(name, (*NAMES, *modules())) or f"there are {_known()}, and rules such as `MAP_FUSION`"
    raise StrategyError("R0641", f"there is no set of rules `{name}`", None, hint)


def _rule(constant: str, given: str) -> Rules:
    """One rule by itself, anywhere."""
    names = {constant_of(name): name for name in rules()}
    if constant not in names:
        hint = suggestion(constant, names) or "`rise rules` lists the rules"
        raise StrategyError("R0641", f"there is no rule `{constant}`", None, hint)
    sizes = dict(part.split("=") for part in given.split(",") if part)
    rule = rules()[names[constant]]
    chosen = rule.with_sizes(**{name: int(value) for name, value in sizes.items()}) if sizes else rule
    return anywhere(repr(chosen), chosen)


def _numbers(sketch: Sketch) -> tuple[int, ...]:
    """The sizes of a sketch that are numbers, largest first."""
    found = {node.size.value for node in sketch.nodes() if node.size is not None}
    return tuple(sorted((n for n in found if n is not None and n > 1), reverse=True))


def _known() -> str:
    return f"{', '.join(f'`{name}`' for name in NAMES)}, and the files of rules, such as `views`"
