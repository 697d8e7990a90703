"""Other forms of a kernel's program, of which schedules take more than of the one that a user wrote."""

from __future__ import annotations

from rewrites.algorithmic import FLATTEN_INNER, MAP_FUSION, MAP_IDENTITY
from rewrites.lets import named_value
from rewrites.maps import LET_INLINE, MAP_LAST_FISSION
from rewrites.memory import IN_GLOBAL
from rewrites.prologue import INLINE
from rewrites.reductions import REDUCE_FLAT_MAP
from rewrites.result import Failure, Result
from rewrites.storing import is_global
from rewrites.zips import JOIN_INSIDE_ZIP, MAP_OF_PAIRS
from rise.expr import Expr, Lambda, call
from rise.normal import occurrences
from strategies.core import FunctionStrategy, choice, normalize, seq, top_down
from strategies.evaluation import is_expression
from strategies.nests import elements_as_rows, elements_of_all_as_rows, rows_as_list
from strategies.normal_forms import view_inlined
from strategies.operands import nth_operand
from strategies.parts_apart import parts_apart
from strategies.result_views import at_computed


def _used_once(term: Expr) -> Result:
    """A name for what is used once, outside of functions: its kernel goes on with what is done there."""
    applied, named = call(term), named_value(term)
    let = applied is not None and applied[0] == "let" and named is not None and not is_global(named[0])
    if not let or named is None or occurrences(named[1].body, named[1].parameter.name) != (1, False):
        return Failure("used_once", term, "no value is used once, outside of functions")
    return LET_INLINE(term)


used_once = FunctionStrategy("used_once", _used_once)


# names for operands that are computed point by point, for what is used once, and for views, in place
inlined = normalize(choice(INLINE, used_once, view_inlined, parts_apart))
# reductions of rows, reduced: of all their elements at once
reductions_flat = seq(
    top_down(REDUCE_FLAT_MAP),
    normalize(choice(REDUCE_FLAT_MAP, MAP_IDENTITY, FLATTEN_INNER, JOIN_INSIDE_ZIP)),
)


def _unzips_last(term: Expr) -> Result:
    """The parts of a result behind the array of pairs: all rows of all matrices are then computed alike."""
    match call(term):
        case "map", _, [Lambda(_, body), _] if (last := call(body)) is not None and last[0] == "unzip":
            return MAP_LAST_FISSION(term)
        case _:
            return Failure("unzips_last", term, "no map gives parts of pairs")


unzips_last = FunctionStrategy("unzips_last", _unzips_last)


def _members_apart(term: Expr) -> Result:
    """A map for each member of the pairs that one gives: kernels of their own store those that take loops."""
    match call(term):
        case "map", _, [Lambda(_, body), _] if (pair := call(body)) is not None and pair[0] == "pair":
            looped = [number for number, member in enumerate(pair[2]) if not is_expression(member)]
            if looped:
                return seq(MAP_OF_PAIRS, *(nth_operand(number, IN_GLOBAL) for number in looped))(term)
    return Failure("members_apart", term, "no map gives pairs that take loops")


members_apart = FunctionStrategy("members_apart", _members_apart)
# of programs that memory-bound schedules take
FORMS = (
    seq(top_down(unzips_last), normalize(unzips_last)),
    reductions_flat,
    at_computed(elements_as_rows),
    at_computed(elements_of_all_as_rows),
    seq(MAP_FUSION, normalize(MAP_FUSION)),  # rows are reduced, then changed
    rows_as_list,
)
