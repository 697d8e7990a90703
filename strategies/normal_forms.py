"""Normal forms as strategies. Each terminates, and is idempotent.

The four of ELEVATE: `benf` by β and η, `dfnf` as rules are matched, `rnf` with a map for each function,
`cnf` with these fused again. Those of the schedules: views inward, forms outward.
"""

from __future__ import annotations

from rewrites import algorithmic as a
from rewrites import maps
from rewrites import movement as m
from rewrites import tensor as t
from rewrites.conditions import reshapes, result
from rewrites.loops import VIEW_OUT_OF_FOLD, is_form
from rise.expr import Apply, Expr, Lambda, call
from rise.normal import is_view, occurrences
from strategies.core import Strategy, argument, body, check, choice, normalize, repeat, seq


def repeats_no_work(term: Expr) -> bool:
    """Whether β would put an argument where it is computed no more often than now."""
    return (
        isinstance(term, Apply)
        and isinstance(term.function, Lambda)
        and (is_view(term.argument) or _used_once(term.function))
    )


def _used_once(function: Lambda) -> bool:
    count, under_a_function = occurrences(function.body, function.parameter.name)
    return count == 0 or (count == 1 and not under_a_function)


def _names_a_view(term: Expr) -> bool:
    match call(term):
        case "let", _, [value, _]:
            return is_view(value)
        case _:
            return False


# a name for what only rearranges an array: the same array is then seen wherever it is used
view_inlined: Strategy = seq(check(_names_a_view, "view_inlined", "no view has a name"), maps.LET_INLINE)
# β-η normal form: no function is applied in place, none only applies another
benf: Strategy = normalize(choice(maps.ETA, maps.BETA))
# β where it does not duplicate work
gentle_beta: Strategy = seq(check(repeats_no_work, "gentle_beta", "work would be repeated"), maps.BETA)
# a function that is passed or returned, as a lambda
expand: Strategy = choice(argument(maps.ETA_ABSTRACTION), body(maps.ETA_ABSTRACTION))
# data-flow normal form: every function that is passed or returned is a lambda
dfnf: Strategy = normalize(choice(gentle_beta, expand))
# rewrite normal form: a map does one thing to each element
rnf: Strategy = seq(dfnf, normalize(maps.MAP_LAST_FISSION))
# code generation normal form: no map of a map
cnf: Strategy = seq(dfnf, normalize(a.MAP_FUSION))

CANCEL = (m.SPLIT_OF_JOIN, m.JOIN_OF_SPLIT, m.TRANSPOSE_TWICE, t.FRAGMENT_OF_MATRIX, a.MAP_IDENTITY)
CONSTANTS = (
    a.MAP_CONSTANT,
    a.GENERATE_MAP,
    m.SPLIT_CONSTANT,
    m.TRANSPOSE_CONSTANT,
    m.JOIN_CONSTANT,
    m.ZIP_CONSTANT_FIRST,
    m.ZIP_CONSTANT_SECOND,
    t.FRAGMENT_OF_CONSTANT,
)
MOVE = (
    m.SPLIT_MAP,
    m.SPLIT_ZIP,
    m.TRANSPOSE_ROWS,
    m.TRANSPOSE_CONSTANT_ROWS,
    m.TRANSPOSE_ZIP,
    m.TRANSPOSE_MAP,
)
FUSE = (a.MAP_VIEW_FUSION, a.REDUCE_SEQ_MAP, m.ZIP_VIEW_FIRST, m.ZIP_VIEW_SECOND, m.DROP_UNUSED)

INWARD = (*CANCEL, *CONSTANTS, *FUSE, *MOVE)

# views next to the arrays they rearrange, maps fused, constants seen through
view_inward: Strategy = normalize(choice(*INWARD))

# the maps in the components of a zip fused with the map over it, at the top of a term only
fuse_once: Strategy = choice(a.MAP_FUSION, m.ZIP_MAP_FIRST, m.ZIP_MAP_SECOND, m.DROP_UNUSED)
# the same, as long as there is something to fuse
fuse_components: Strategy = repeat(fuse_once)


def step_computes(term: Expr) -> bool:
    """Whether the step of a fold does more than change the form of its accumulator.

    Where it does not, the rule would apply to its own result for ever.
    """
    applied = call(term)
    if applied is None or not applied[2]:
        return False
    return not reshapes(result(applied[2][0]))


def maps_to_form(term: Expr) -> bool:
    """A map whose function ends with a view that arranges tiles, or with a map of one."""
    match call(term):
        case "map", _, [Lambda(_, Apply(view, _)), _]:
            return is_form(view)
    return False


# a view of the accumulator out of the step of a fold
accumulate: Strategy = seq(
    check(step_computes, "accumulate", "the step only changes the form of its accumulator"), VIEW_OUT_OF_FOLD
)
# views of results out of maps, and out of the steps of folds
form_outward: Strategy = normalize(
    choice(accumulate, seq(check(maps_to_form, "form_outward", "no view is mapped"), maps.MAP_LAST_FISSION))
)
