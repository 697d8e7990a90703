"""Rules that move `split`, `join`, `transpose` and `slide` past maps and past each other.

The names are the rules, as in `rewrites.movement`, where those stand that our strategies use.
"""

from __future__ import annotations

from rewrites.rule import Rule
from rewrites.rule import library_rule as rule

# --- maps, the other way round ------------------------------------------------------------------------

MAP_SPLIT = rule(
    "S >> **f",
    "xs |> split(n) |> map(fun(b => b |> map(f)))",
    "xs |> map(f) |> split(n)",
    meaning="A map of every part is a map before the split.",
)
MAP_JOINED = rule(
    "*f, of joined elements",
    "xs |> map(f)",
    "xs |> map(fun(x => x |> join)) |> map(fun(x => f(x |> split(n))))",
    sizes=("n",),
    meaning="A function of each matrix is one of the list of its elements.",
)
MAP_JOIN = rule(
    "J >> *f",
    "xs |> join |> map(f)",
    "xs |> map(fun(b => b |> map(f))) |> join",
    meaning="A map of joined rows is a map of each row.",
)
JOIN_MAP = rule(
    "**f >> J",
    "xs |> map(fun(b => b |> map(f))) |> join",
    "xs |> join |> map(f)",
    meaning="A map of each row, joined, is a map of the joined rows.",
)
ROWS_AS_LIST = rule(
    "*(*f), as a list",
    "xs |> map(fun(x => g(x) |> map(f)))",
    "xs |> map(g) |> join |> map(f) |> split(m)",
    meaning="What is done with each row of several arrays is done with each row of one list.",
)
TRANSPOSE_ELEMENTS = rule(
    "**f >> T, the same f",
    "xs |> map(fun(x => x |> map(f))) |> transpose",
    "xs |> transpose |> map(fun(c => c |> map(f)))",
    meaning="Where the inner function does not depend on the outer element.",
)
MAP_TRANSPOSE = rule(
    "T >> **f",
    "xs |> transpose |> map(fun(c => c |> map(f)))",
    "xs |> map(fun(r => r |> map(f))) |> transpose",
    meaning="A map of every element of a matrix may precede the transposition.",
)
MAP_SLIDE = rule(
    "slide >> **f",
    "xs |> slide(n, m) |> map(fun(w => w |> map(f)))",
    "xs |> map(f) |> slide(n, m)",
    meaning="A map of each window is a map before windows, which computes each element once.",
)
MAP_TAKE = rule(
    "take >> *f",
    "xs |> take(n) |> map(f)",
    "xs |> map(f) |> take(n)",
    meaning="A map of the first elements is the beginning of a map of all.",
)
MAP_DROP = rule(
    "drop >> *f",
    "xs |> drop(n) |> map(f)",
    "xs |> map(f) |> drop(n)",
    meaning="This also computes the dropped elements.",
)
INTERCHANGE = rule(
    "loopInterchange",
    "xs |> map(fun(x => ys |> map(fun(y => f(x, y)))))",
    "ys |> map(fun(y => xs |> map(fun(x => f(x, y))))) |> transpose",
    meaning="Two independent loops; of a matrix product, A·B as the transpose of Bᵀ·Aᵀ.",
)
LOOP_INTERCHANGE_ZIPPED = rule(
    "loopInterchange, zipped",
    "zip(xss)(as) |> map(fun((xs, a) => zip(xs)(bs) |> map(fun((x, b) => f(x, a, b)))))",
    "zip(xss |> transpose)(bs) |> map(fun((xs, b) => zip(xs)(as) |> map(fun((x, a) => f(x, a, b)))))"
    " |> transpose",
    meaning="Of the sums of a matrix, columns are the outer loop, and rows the inner one.",
)
INTERCHANGE_NEST = rule(
    "**f",
    "xs |> map(fun(x => x |> map(f)))",
    "xs |> transpose |> map(fun(c => c |> map(f))) |> transpose",
    meaning="Interchange of the two loops of a nest.",
)

# --- split, join and transpose past each other --------------------------------------------------------

MAP_T, MAP_J = "map(fun(x => x |> transpose))", "map(fun(x => x |> join))"


def _map_s(view: str) -> str:
    return f"map(fun(x => x |> {view}))"


def _past_transpose(name: str, view: str, parts: str) -> tuple[Rule, Rule, Rule]:
    """What adds a dimension to an array: of rows, of columns, of the array of rows."""
    return (
        rule(
            f"T >> {name}",
            f"xs |> transpose |> {view}",
            f"xs |> {_map_s(view)} |> transpose |> {MAP_T}",
            meaning=f"{parts} of columns are cut out of every row.",
        ),
        rule(
            f"T >> *{name}",
            f"xs |> transpose |> {_map_s(view)}",
            f"xs |> {view} |> {MAP_T} |> transpose",
            meaning=f"{parts} within every column are those of the rows, transposed.",
        ),
        rule(
            f"*{name} >> T",
            f"xs |> {_map_s(view)} |> transpose",
            f"xs |> transpose |> {view} |> {MAP_T}",
            meaning=f"{parts} within every row are those of the columns, transposed.",
        ),
    )


SPLIT_PAST_TRANSPOSE = _past_transpose("S", "split(n)", "Groups")
SLIDE_PAST_TRANSPOSE = _past_transpose("slide", "slide(n, m)", "Windows")
TRANSPOSE_JOIN = rule(
    "J >> T",
    "xs |> join |> transpose",
    f"xs |> {MAP_T} |> transpose |> {MAP_J}",
    meaning="Matrices below each other, transposed, are the transposed matrices side by side.",
)
MAP_JOIN_TRANSPOSE = rule(
    "T >> *J",
    f"xs |> transpose |> {MAP_J}",
    f"xs |> {MAP_T} |> join |> transpose",
    meaning="Matrices side by side are the transposition of the transposed matrices below each other.",
)
JOIN_MAP_TRANSPOSE = rule(
    "*T >> J",
    f"xs |> {MAP_T} |> join",
    f"xs |> transpose |> {MAP_J} |> transpose",
    meaning="Transposed matrices below each other are the transposition of the matrices side by side.",
)
TRANSPOSE_MAP_JOIN = rule(
    "*J >> T",
    f"xs |> {MAP_J} |> transpose",
    f"xs |> transpose |> {MAP_T} |> join",
    meaning="Matrices side by side, transposed, are the transposed matrices below each other.",
)
JOIN_JOIN = rule(
    "J >> J",
    "xs |> join |> join",
    f"xs |> {MAP_J} |> join",
    meaning="Three dimensions may be joined from the inside as well as from the outside.",
)
MAP_JOIN_JOIN = rule(
    "*J >> J",
    f"xs |> {MAP_J} |> join",
    "xs |> join |> join",
    meaning="Three dimensions may be joined from the outside as well as from the inside.",
)
SPLIT_SPLIT = rule(
    "S >> S",
    "xs |> split(m) |> split(n)",
    "xs |> split(n*m) |> map(fun(b => b |> split(m)))",
    meaning="Blocks of blocks.",
)
SPLIT_MAP_SPLIT = rule(
    "S >> *S",
    "xs |> split(n*m) |> map(fun(b => b |> split(m)))",
    "xs |> split(m) |> split(n)",
    meaning="The parts of larger parts are groups of the smaller ones.",
)
SPLIT_IN_JOIN = rule(
    "J >> S, within rows",
    "xs |> join |> split(n)",
    "xs |> map(fun(r => r |> split(n))) |> join",
    meaning="Where n divides the rows.",
)
MAP_SPLIT_JOIN = rule(
    "*S >> J",
    "xs |> map(fun(r => r |> split(n))) |> join",
    "xs |> join |> split(n)",
    meaning="Every row in parts, joined, is the joined array in parts.",
)

# --- identities, introduced ---------------------------------------------------------------------------

TRANSPOSE_PAIR = rule(
    "T >> T, introduced",
    "xs",
    "xs |> transpose |> transpose",
    meaning="A matrix is its transposition, transposed.",
)
SPLIT_JOIN_PAIR = rule(
    "S >> J, introduced", "xs", "xs |> split(n) |> join", meaning="An array is its parts, joined."
)
JOIN_SPLIT_PAIR = rule(
    "J >> S, introduced", "xs", "xs |> join |> split(n)", meaning="A matrix is its joined rows, split."
)
MAP_TRANSPOSE_TWICE = rule(
    "*T >> *T",
    f"xs |> {MAP_T} |> {MAP_T}",
    "xs",
    meaning="Two transpositions of every element undo each other.",
)
DEAL = rule(
    "deal",
    "xs |> map(f)",
    "xs |> split(n) |> transpose |> map(fun(c => c |> map(f))) |> transpose |> join",
    meaning="A cyclic distribution of the elements over n workers, as over persistent blocks.",
)
