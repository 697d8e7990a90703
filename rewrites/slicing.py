"""Rules about `take`, `drop` and `concat`: parts of arrays, and arrays of parts."""

from __future__ import annotations

from rewrites.rule import library_rule as rule

TAKE_ALL = rule("takeAll", "xs |> take(n)", "xs", meaning="Taking as many elements as there are.")
DROP_NOTHING = rule("dropNothing", "xs |> drop(0)", "xs", meaning="Dropping no element changes nothing.")
TAKE_TAKE = rule(
    "take >> take",
    "xs |> take(n + m) |> take(n)",
    "xs |> take(n)",
    meaning="The beginning of a longer beginning is the beginning.",
)
DROP_DROP = rule(
    "drop >> drop", "xs |> drop(n) |> drop(m)", "xs |> drop(n + m)", meaning="Dropping twice drops the sum."
)
TAKE_DROP = rule(
    "take >> drop",
    "xs |> take(n + m) |> drop(m)",
    "xs |> drop(m) |> take(n)",
    meaning="The rest of a beginning is the beginning of a rest.",
)
DROP_TAKE = rule(
    "drop >> take",
    "xs |> drop(m) |> take(n)",
    "xs |> take(n + m) |> drop(m)",
    meaning="The beginning of a rest is the rest of a longer beginning.",
)

# --- joined and split arrays --------------------------------------------------------------------------

DROP_OF_JOIN = rule(
    "J >> drop",
    "xs |> join |> drop(q*m + r)",
    "xs |> drop(q) |> join |> drop(r)",
    meaning="q whole rows of m are dropped first; q is a parameter, at most d/m for drop(d).",
)
TAKE_OF_JOIN = rule(
    "J >> take",
    "xs |> join |> take(d)",
    "xs |> take(q) |> join |> take(d)",
    sizes=("q",),
    meaning="Only the first q rows are needed; q is a parameter, at least d/m where rows have m elements.",
)
TAKE_ROWS = rule(
    "take >> J", "xs |> take(q) |> join", "xs |> join |> take(q*m)", meaning="Whole rows, of m elements."
)
DROP_ROWS = rule(
    "drop >> J",
    "xs |> drop(q) |> join",
    "xs |> join |> drop(q*m)",
    meaning="Dropping rows before joining drops their elements afterwards.",
)
SPLIT_TAKE = rule(
    "S >> take",
    "xs |> split(n) |> take(q)",
    "xs |> take(q*n) |> split(n)",
    meaning="The first parts are parts of the first elements.",
)
SPLIT_DROP = rule(
    "S >> drop",
    "xs |> split(n) |> drop(q)",
    "xs |> drop(q*n) |> split(n)",
    meaning="The last parts are parts of the last elements.",
)
TAKE_SPLIT = rule(
    "take >> S",
    "xs |> take(q*n) |> split(n)",
    "xs |> split(n) |> take(q)",
    meaning="Parts of the first elements are the first parts, where whole parts are taken.",
)
DROP_SPLIT = rule(
    "drop >> S",
    "xs |> drop(q*n) |> split(n)",
    "xs |> split(n) |> drop(q)",
    meaning="Parts of the last elements are the last parts, where whole parts are dropped.",
)
TAKE_TRANSPOSE = rule(
    "T >> take",
    "xs |> transpose |> take(n)",
    "xs |> map(fun(r => r |> take(n))) |> transpose",
    meaning="The first columns are the beginnings of all rows.",
)
DROP_TRANSPOSE = rule(
    "T >> drop",
    "xs |> transpose |> drop(n)",
    "xs |> map(fun(r => r |> drop(n))) |> transpose",
    meaning="The last columns are the rests of all rows.",
)

# --- concatenated arrays ------------------------------------------------------------------------------

TAKE_CONCAT = rule("concat >> take", "concat(xs)(ys) |> take(n)", "xs", meaning="Where xs has n elements.")
DROP_CONCAT = rule("concat >> drop", "concat(xs)(ys) |> drop(n)", "ys", meaning="Where xs has n elements.")
SPLIT_AT = rule(
    "concat(take, drop), introduced",
    "xs",
    "concat(xs |> take(n))(xs |> drop(n))",
    meaning="An array cut at n.",
)
UNSPLIT_AT = rule(
    "concat(take, drop)",
    "concat(xs |> take(n))(xs |> drop(n))",
    "xs",
    meaning="The beginning and the rest of an array, concatenated, are the array.",
)
MAP_CONCAT = rule(
    "concat >> *f",
    "concat(xs)(ys) |> map(f)",
    "concat(xs |> map(f))(ys |> map(f))",
    meaning="A map of two concatenated arrays is a map of each.",
)
CONCAT_MAP = rule(
    "concat of *f",
    "concat(xs |> map(f))(ys |> map(f))",
    "concat(xs)(ys) |> map(f)",
    meaning="Two arrays mapped alike and concatenated are a map of the concatenated arrays.",
)
CONCAT_LEFT = rule(
    "concat(, concat)",
    "concat(xs)(concat(ys)(zs))",
    "concat(concat(xs)(ys))(zs)",
    meaning="Three arrays may be concatenated from the left.",
)
CONCAT_RIGHT = rule(
    "concat(concat, )",
    "concat(concat(xs)(ys))(zs)",
    "concat(xs)(concat(ys)(zs))",
    meaning="Three arrays may be concatenated from the right.",
)
CONCAT_JOIN = rule(
    "concat of J",
    "concat(xs |> join)(ys |> join)",
    "concat(xs)(ys) |> join",
    meaning="Two concatenated arrays of joined rows are the joined rows of concatenated matrices.",
)
CONCAT_SPLIT = rule(
    "concat of S",
    "concat(xs |> split(n))(ys |> split(n))",
    "concat(xs)(ys) |> split(n)",
    meaning="The parts of two arrays, concatenated, are the parts of the concatenated arrays.",
)
