"""Rules about windows: overlapped tiling, windows of parts, separable stencils.

`slide(n, m)` gives windows of n elements, each m after the one before.
"""

from __future__ import annotations

from rewrites.rule import library_rule as rule

# --- compositions: correct for every step -------------------------------------------------------------

SLIDE_OVERLAP = rule(
    "slideOverlap",
    "xs |> slide(n, m)",
    "xs |> slide(m*w + n - m, m*w) |> map(fun(tile => tile |> slide(n, m))) |> join",
    sizes=("w",),
    meaning="Overlapped tiling, w windows in a tile.",
)
UNTILE_SLIDE = rule(
    "slideOverlap, undone",
    "xs |> slide(m*w + n - m, m*w) |> map(fun(tile => tile |> slide(n, m))) |> join",
    "xs |> slide(n, m)",
    meaning="Windows in overlapping tiles, joined, are the windows of the array.",
)
SLIDE_BEFORE_SPLIT = rule(
    "slide >> S",
    "xs |> slide(n, m) |> split(k)",
    "xs |> slide(m*k + n - m, m*k) |> map(fun(w => w |> slide(n, m)))",
    meaning="k windows at a time are the windows of a larger one.",
)
SLIDE_BEFORE_SLIDE = rule(
    "slide >> slide",
    "xs |> slide(n, m) |> slide(k, l)",
    "xs |> slide(m*k + n - m, m*l) |> map(fun(w => w |> slide(n, m)))",
    meaning="Windows of windows are windows in larger windows.",
)
SLIDE_TAKE = rule(
    "slide >> take",
    "xs |> slide(n, m) |> take(t + 1)",
    "xs |> take(m*t + n) |> slide(n, m)",
    meaning="The first windows see the first elements.",
)
SLIDE_DROP = rule(
    "slide >> drop",
    "xs |> slide(n, m) |> drop(d)",
    "xs |> drop(d*m) |> slide(n, m)",
    meaning="The last windows see the last elements.",
)
TAKE_IN_SLIDE = rule(
    "takeInSlide",
    "xs |> slide(n, m) |> take(t)",
    "xs |> slide(n + r*m, m) |> map(fun(w => w |> take(n)))",
    meaning="Fewer windows are the beginnings of larger ones.",
)
DROP_IN_SLIDE = rule(
    "dropInSlide",
    "xs |> slide(n, m) |> drop(l)",
    "xs |> slide(n + l*m, m) |> map(fun(w => w |> drop(l*m)))",
    meaning="The last windows are the ends of larger windows.",
)

# --- windows and other views --------------------------------------------------------------------------

SLIDE_AS_SPLIT = rule(
    "slide as S", "xs |> slide(n, n)", "xs |> split(n)", meaning="Windows that do not overlap are blocks."
)
SPLIT_AS_SLIDE = rule(
    "S as slide", "xs |> split(n)", "xs |> slide(n, n)", meaning="Parts are windows that do not overlap."
)
SLIDE_INTRODUCED = rule(
    "slide >> J, introduced",
    "xs",
    "xs |> slide(1, 1) |> join",
    meaning="An array is its windows of one element, joined.",
)
SLIDE_ONE = rule(
    "slide(1, 1), introduced",
    "xs",
    "xs |> slide(1, 1) |> map(fun(w => idx(0)(w)))",
    meaning="An array is its windows of one element.",
)
SLIDE_FIRST = rule(
    "slide >> *first",
    "xs |> slide(n + 1, 1) |> map(fun(w => idx(0)(w)))",
    "xs |> take(m)",
    meaning="The first elements of all windows.",
)
SLIDE_COLUMNS = rule(
    "*slide >> slide",
    "xs |> map(fun(r => r |> slide(n, m))) |> slide(k, l)",
    "xs |> slide(k, l) |> map(fun(w => w |> map(fun(r => r |> slide(n, m)))))",
    meaning="Windows of rows, each of windows in the rows.",
)
SLIDE_ROWS = rule(
    "slide >> **slide",
    "xs |> slide(k, l) |> map(fun(w => w |> map(fun(r => r |> slide(n, m)))))",
    "xs |> map(fun(r => r |> slide(n, m))) |> slide(k, l)",
    meaning="Windows in every row, seen in windows of rows, may be made before these.",
)

# --- separable stencils: two passes in one dimension for one in two -------------------------------------

WEIGHTS = "ws |> map(fun(a => us |> map(fun(b => a * b))))"
DOT = "map(fun((w, x) => w * x)) |> reduce(+, 0)"
SEPARATE_DOT_ROWS_FIRST = rule(
    "separateDotHV",
    f"zip({WEIGHTS} |> join)(xs |> join) |> {DOT}",
    f"zip(ws)(xs |> map(fun(r => zip(us)(r) |> {DOT}))) |> {DOT}",
    exact=False,
    meaning="A weighted sum whose weights are products: along the rows, then of their sums.",
)
SEPARATE_DOT_COLUMNS_FIRST = rule(
    "separateDotVH",
    f"zip({WEIGHTS} |> join)(xs |> join) |> {DOT}",
    f"zip(us)(xs |> transpose |> map(fun(c => zip(ws)(c) |> {DOT}))) |> {DOT}",
    exact=False,
    meaning="The same along the columns first.",
)
SEPARATE_SUM_ROWS_FIRST = rule(
    "separateSumHV",
    "xs |> join |> reduce(op, z)",
    "xs |> map(fun(r => r |> reduce(op, z))) |> reduce(op, z)",
    exact=False,
    meaning="A reduction of a matrix: of the rows, then of their results.",
)
SEPARATE_SUM_COLUMNS_FIRST = rule(
    "separateSumVH",
    "xs |> join |> reduce(op, z)",
    "xs |> transpose |> map(fun(c => c |> reduce(op, z))) |> reduce(op, z)",
    exact=False,
    meaning="The same of the columns first, as op is commutative.",
)
