"""Rules that move `split`, `join`, `transpose` and `zip` past maps and past each other.

The names are the rules: `*f` is map(f), `**f` map(map(f)); `S`, `J`, `T` are split, join and transpose;
`f >> g` is g after f.
"""

from __future__ import annotations

from rewrites import unused
from rewrites.conditions import reshaping
from rewrites.rule import library_rule as rule

DROP_UNUSED = unused.DROP_UNUSED

SPLIT_MAP = rule(
    "*f >> S",
    "xs |> map(f) |> split(n)",
    "xs |> split(n) |> map(fun(b => b |> map(f)))",
    meaning="A map before a split is a map of each part.",
)
SLIDE_MAP = rule(
    "*f >> slide",
    "xs |> map(f) |> slide(n, m)",
    "xs |> slide(n, m) |> map(fun(w => w |> map(f)))",
    meaning="A map before windows is a map of each window.",
)
TAKE_MAP = rule(
    "*f >> take",
    "xs |> map(f) |> take(n)",
    "xs |> take(n) |> map(f)",
    meaning="The first elements of a mapped array are the first elements, mapped.",
)
DROP_MAP = rule(
    "*f >> drop",
    "xs |> map(f) |> drop(n)",
    "xs |> drop(n) |> map(f)",
    meaning="The last elements of a mapped array are the last elements, mapped.",
)
SPLIT_ZIP = rule(
    "zip >> S",
    "zip(xs)(ys) |> split(n)",
    "zip(xs |> split(n))(ys |> split(n)) |> map(fun((a, b) => zip(a)(b)))",
    meaning="The parts of a zip are zips of the parts.",
)
SPLIT_CONSTANT = rule(
    "constant >> S",
    "generate(fun(i => z)) |> split(n)",
    "generate(fun(i => generate(fun(j => z))))",
    meaning="The parts of a constant array are constant.",
)
TRANSPOSE_MAP = rule(
    "**f >> T",
    "xs |> map(fun(x => h(x) |> map(fun(y => f(x, y))))) |> transpose",
    "xs |> map(h) |> transpose |> map(fun(col => zip(col)(xs) |> map(fun((y, x) => f(x, y)))))",
    meaning="Loop interchange, for inner arrays that may depend on the outer element.",
)
TRANSPOSE_ZIP = rule(
    "zip2D >> T",
    "xs |> map(fun(x => zip(u(x))(v(x)))) |> transpose",
    "zip(xs |> map(u) |> transpose)(xs |> map(v) |> transpose) |> map(fun((a, b) => zip(a)(b)))",
    meaning="A transposed matrix of pairs is the zip of two transposed matrices.",
)
TRANSPOSE_ROWS = rule(
    "constant rows >> T",
    "xs |> map(fun(x => ys)) |> transpose",
    "ys |> map(fun(y => xs |> map(fun(x => y))))",
    meaning="If all rows are equal, each column is constant.",
)
TRANSPOSE_CONSTANT_ROWS = rule(
    "constant row >> T",
    "generate(fun(i => ys)) |> transpose",
    "ys |> map(fun(y => generate(fun(i => y))))",
    meaning="Generated rows that are all equal have constant columns.",
)
TRANSPOSE_CONSTANT = rule(
    "constant >> T",
    "generate(fun(i => generate(fun(j => z)))) |> transpose",
    "generate(fun(i => generate(fun(j => z))))",
    meaning="A constant matrix, transposed, is constant.",
)
CONSTANT_ROWS = rule(
    "*constant",
    "xs |> map(fun(x => generate(fun(i => h(x)))))",
    "xs |> map(fun(x => h(x))) |> map(fun(y => generate(fun(i => y))))",
    meaning="The element that a row of equal elements repeats is computed once.",
)
SPLIT_OF_JOIN = rule(
    "J >> S",
    "xs |> join |> split(n)",
    "xs",
    meaning="A split into the rows that were joined gives the rows back.",
)
JOIN_OF_SPLIT = rule(
    "S >> J", "xs |> split(n) |> join", "xs", meaning="Joined parts are the array that was split."
)
TRANSPOSE_TWICE = rule(
    "T >> T", "xs |> transpose |> transpose", "xs", meaning="A transposition undoes a transposition."
)
INNERMOST_OUT = rule(
    "*T >> T >> T >> *T",
    "e",
    "e |> map(fun(x => x |> transpose)) |> transpose |> transpose |> map(fun(x => x |> transpose))",
    meaning="The innermost of three dimensions outermost, and back.",
)
JOIN_CONSTANT = rule(
    "constant >> J",
    "generate(fun(i => generate(fun(j => z)))) |> join",
    "generate(fun(i => z))",
    meaning="The rows of a constant matrix, joined, are a constant array.",
)


ZIP_MAP_FIRST = rule(
    "zip(*f, ) >> *g",
    "zip(xs |> map(f))(ys) |> map(fun((x, y) => g(x, y)))",
    "zip(xs)(ys) |> map(fun((x, y) => g(f(x), y)))",
    meaning="A map in a component of a zip is fused with the map over it.",
)
ZIP_MAP_SECOND = rule(
    "zip(, *f) >> *g",
    "zip(xs)(ys |> map(f)) |> map(fun((x, y) => g(x, y)))",
    "zip(xs)(ys) |> map(fun((x, y) => g(x, f(y))))",
    meaning="A map in the second component of a zip is fused with the map over it.",
)
ZIP_VIEW_FIRST = rule(
    "zip(*f, )",
    "zip(xs |> map(f))(ys)",
    "zip(xs)(ys) |> map(fun((x, y) => (f(x), y)))",
    meaning="A map that only changes the form of elements is brought out of a zip.",
    conditions=(reshaping("f"),),
)
ZIP_VIEW_SECOND = rule(
    "zip(, *f)",
    "zip(xs)(ys |> map(f))",
    "zip(xs)(ys) |> map(fun((x, y) => (x, f(y))))",
    conditions=(reshaping("f"),),
    meaning="A map that only changes the form of elements is brought out of the second component of a zip.",
)
ZIP_CONSTANT_FIRST = rule(
    "zip(constant, )",
    "zip(generate(fun(i => z)))(ys)",
    "ys |> map(fun(y => (z, y)))",
    meaning="A zip with a constant first component pairs each element with that constant.",
)
ZIP_CONSTANT_SECOND = rule(
    "zip(, constant)",
    "zip(xs)(generate(fun(i => z)))",
    "xs |> map(fun(x => (x, z)))",
    meaning="A zip with a constant second component pairs each element with that constant.",
)
TILE = rule(
    "tile",
    "e",
    "e |> split(bm) |> map(fun(rows => rows |> map(fun(r => r |> split(bn))) |> transpose)) "
    "|> map(fun(ts => ts |> transpose)) |> map(fun(ts => ts |> map(fun(r => r |> join)))) |> join",
    meaning="A matrix in tiles of bm × bn, and back.",
)
TILE_FLAT = rule(
    "tileFlat",
    "e",
    "e |> split(bm) |> map(fun(rows => rows |> map(fun(r => r |> split(bn))) |> transpose)) |> join "
    "|> split(c) |> map(fun(ts => ts |> transpose)) "
    "|> map(fun(ts => ts |> map(fun(r => r |> join)))) |> join",
    meaning="A matrix by tiles of bm × bn in one list, row by row.",
)
