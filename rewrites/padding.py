"""Rules about padding: past maps and other views, of several kinds at once.

What `padEmpty` adds is undefined, so a right side may define it: such rules keep every element that the
left side defines.
"""

from __future__ import annotations

from rewrites.conditions import total
from rewrites.rule import Rule
from rewrites.rule import library_rule as rule

# --- past maps ----------------------------------------------------------------------------------------

PAD_MAP = rule(
    "padCst >> *f",
    "xs |> padCst(l, r)(z) |> map(f)",
    "xs |> map(f) |> padCst(l, r)(f(z))",
    meaning="A map of a padded array pads with the function of the constant.",
)
CLAMP_MAP = rule(
    "padClamp >> *f",
    "xs |> padClamp(l, r) |> map(f)",
    "xs |> map(f) |> padClamp(l, r)",
    meaning="A map of an array with repeated ends repeats the ends of the mapped array.",
)
MAP_CLAMP = rule(
    "*f >> padClamp",
    "xs |> map(f) |> padClamp(l, r)",
    "xs |> padClamp(l, r) |> map(f)",
    meaning="The repeated ends of a mapped array are repeated ends, mapped.",
)
MAP_EMPTY = rule(
    "*f >> padEmpty",
    "xs |> map(f) |> padEmpty(r)",
    "xs |> padEmpty(r) |> map(f)",
    conditions=(total("f"),),
    meaning="The function may be applied to undefined elements.",
)
ROUND_UP_MAP = rule(
    "roundUp *f",
    "xs |> map(f)",
    "xs |> padEmpty(p) |> map(f) |> take(n)",
    sizes=("p",),
    conditions=(total("f"),),
    meaning="A map of p elements more, to a size that tiles or vectors divide.",
)
ROUND_UP_REDUCE = rule(
    "roundUp reduce",
    "xs |> reduce(op, z)",
    "xs |> padCst(0, p)(z) |> reduce(op, z)",
    sizes=("p",),
    meaning="Neutral elements do not change a reduction, so they can fill tiles at the borders.",
)

ROUND_UP_SCAN = rule(
    "roundUp scan",
    "xs |> scan(op, z)",
    "xs |> padCst(0, p)(z) |> scan(op, z) |> take(n)",
    sizes=("p",),
    meaning="What comes behind the end changes nothing before it, so it can fill the last block.",
)

# --- of rows and columns ------------------------------------------------------------------------------


def _of_rows(name: str, pad: str, pad_rows: str) -> tuple[Rule, Rule]:
    """Padding every column is padding with rows; `pad_rows` pads an array of rows likewise."""
    each = f"map(fun(x => x |> {pad}))"
    return (
        rule(
            f"T >> *{name}",
            f"xs |> transpose |> {each}",
            f"xs |> {pad_rows} |> transpose",
            meaning="Padding every column is padding with rows.",
        ),
        rule(
            f"*{name} >> T",
            f"xs |> {each} |> transpose",
            f"xs |> transpose |> {pad_rows}",
            meaning="Padding every row is padding the transposed matrix with rows.",
        ),
    )


CONSTANT_ROW = "padCst(l, r)(generate(fun(i => z)))"
PAD_COLUMNS, PAD_TRANSPOSE = _of_rows("padCst", "padCst(l, r)(z)", CONSTANT_ROW)
CLAMP_COLUMNS, CLAMP_TRANSPOSE = _of_rows("padClamp", "padClamp(l, r)", "padClamp(l, r)")
EMPTY_COLUMNS, EMPTY_TRANSPOSE = _of_rows("padEmpty", "padEmpty(r)", "padEmpty(r)")
TRANSPOSE_PAD = rule(
    "T >> padCst",
    "xs |> transpose |> padCst(l, r)(generate(fun(i => z)))",
    "xs |> map(fun(x => x |> padCst(l, r)(z))) |> transpose",
    meaning="Padding with constant columns pads every row.",
)
TRANSPOSE_CLAMP = rule(
    "T >> padClamp",
    "xs |> transpose |> padClamp(l, r)",
    "xs |> map(fun(x => x |> padClamp(l, r))) |> transpose",
    meaning="Repeating the first and the last column repeats the ends of every row.",
)
TRANSPOSE_EMPTY = rule(
    "T >> padEmpty",
    "xs |> transpose |> padEmpty(r)",
    "xs |> map(fun(x => x |> padEmpty(r))) |> transpose",
    meaning="Padding with undefined columns pads every row.",
)

# --- of zipped arrays, of joined arrays ----------------------------------------------------------------

PAD_ZIP = rule(
    "zip >> padCst",
    "zip(xs)(ys) |> padCst(l, r)((x, y))",
    "zip(xs |> padCst(l, r)(x))(ys |> padCst(l, r)(y))",
    meaning="A zip padded with a pair is a zip of arrays padded with its members.",
)
ZIP_PAD = rule(
    "zip of padCst",
    "zip(xs |> padCst(l, r)(x))(ys |> padCst(l, r)(y))",
    "zip(xs)(ys) |> padCst(l, r)((x, y))",
    meaning="Arrays that are padded alike, zipped, are the padded zip.",
)
EMPTY_ZIP = rule(
    "zip >> padEmpty",
    "zip(xs)(ys) |> padEmpty(r)",
    "zip(xs |> padEmpty(r))(ys |> padEmpty(r))",
    meaning="A zip with undefined pairs behind it is a zip of arrays with undefined elements.",
)
ZIP_EMPTY = rule(
    "zip of padEmpty",
    "zip(xs |> padEmpty(r))(ys |> padEmpty(r))",
    "zip(xs)(ys) |> padEmpty(r)",
    meaning="Arrays with equally many undefined elements, zipped, are a zip with undefined pairs.",
)
PAD_SPLIT = rule(
    "S >> padCst",
    "xs |> split(n) |> padCst(l, r)(generate(fun(i => z)))",
    "xs |> padCst(l*n, r*n)(z) |> split(n)",
    meaning="Padding with constant parts is padding with their elements before the split.",
)
PAD_JOIN = rule(
    "padCst >> J",
    "xs |> padCst(l, r)(generate(fun((i: Idx[n]) => z))) |> join",
    "xs |> join |> padCst(l*n, r*n)(z)",
    sizes=("n",),
    meaning="Rows of n elements.",
)
EMPTY_NUMBERS = rule(
    "padEmpty of numbers",
    "generate(fun(i => indexToInt(i))) |> padEmpty(r)",
    "generate(fun(i => indexToInt(i)))",
    meaning="Undefined numbers behind numbers may go on counting.",
)
EMPTY_SPLIT = rule(
    "S >> padEmpty",
    "xs |> split(n) |> padEmpty(r)",
    "xs |> padEmpty(r*n) |> split(n)",
    meaning="Undefined parts are parts of undefined elements.",
)
EMPTY_SLIDE = rule(
    "slide >> padEmpty",
    "xs |> slide(n, m) |> padEmpty(r)",
    "xs |> padEmpty(r*m) |> slide(n, m)",
    meaning="Undefined windows are windows of an array with undefined elements.",
)

# --- several times, not at all ------------------------------------------------------------------------

PAD_PAD = rule(
    "padCst >> padCst",
    "xs |> padCst(l, r)(z) |> padCst(m, n)(z)",
    "xs |> padCst(l + m, r + n)(z)",
    meaning="Padding twice with the same constant is padding once.",
)
CLAMP_CLAMP = rule(
    "padClamp >> padClamp",
    "xs |> padClamp(l, r) |> padClamp(m, n)",
    "xs |> padClamp(l + m, r + n)",
    meaning="Repeating the ends twice is repeating them more often.",
)
EMPTY_EMPTY = rule(
    "padEmptyFusion",
    "xs |> padEmpty(r) |> padEmpty(n)",
    "xs |> padEmpty(r + n)",
    meaning="Padding twice with undefined elements is padding once.",
)
PAD_NOTHING = rule(
    "padCstNothing", "xs |> padCst(0, 0)(z)", "xs", meaning="Padding with no elements changes nothing."
)
CLAMP_NOTHING = rule(
    "padClampNothing", "xs |> padClamp(0, 0)", "xs", meaning="Repeating the ends no times changes nothing."
)
EMPTY_NOTHING = rule(
    "padEmptyNothing",
    "xs |> padEmpty(0)",
    "xs",
    meaning="Padding with no undefined elements changes nothing.",
)
PAD_DROPPED = rule(
    "padCst >> drop",
    "xs |> padCst(l, r)(z) |> drop(l)",
    "xs |> padCst(0, r)(z)",
    meaning="Dropping the padding in front leaves the padding behind.",
)
PAD_TAKEN = rule(
    "padCst >> take", "xs |> padCst(0, r)(z) |> take(n)", "xs", meaning="Where xs has n elements."
)
EMPTY_TAKEN = rule(
    "padEmpty >> take",
    "xs |> padEmpty(r) |> take(n)",
    "xs |> take(n)",
    meaning="The beginning of an array contains none of the padding behind it.",
)
TAKE_EMPTY = rule(
    "take >> padEmpty",
    "xs |> take(n) |> padEmpty(m)",
    "xs |> padEmpty(p)",
    meaning="Elements that are undefined afterwards may be dropped; p is m less those dropped.",
)
EMPTY_DEFINED = rule(
    "padEmpty as padCst",
    "xs |> padEmpty(r)",
    "xs |> padClamp(0, r)",
    meaning="Undefined elements may have any value, so they may repeat the last element.",
)
PAD_AS_CONCAT = rule(
    "padCst as concat",
    "xs |> padCst(l, r)(z)",
    "concat(concat(generate(fun((i: Idx[l]) => z)))(xs))(generate(fun((i: Idx[r]) => z)))",
    sizes=("l", "r"),
    meaning="Padding concatenates constant arrays in front and behind.",
)

# --- of rows whose ends are undefined -------------------------------------------------------------------

_UNDEFINED = "What undefined results are computed from may be undefined, too."
PREFIXES_INWARD = rule(
    "*(*f) >> prefixes",
    "xss |> map(fun(xs => xs |> map(f))) |> prefixes(ns)",
    "xss |> prefixes(ns) |> map(fun(xs => xs |> map(f))) |> prefixes(ns)",
    meaning=_UNDEFINED,
)
PREFIXES_FIRST = rule(
    "zip >> *(*f) >> prefixes, first",
    "zip(xss)(ys) |> map(fun((xs, y) => xs |> map(fun(x => f(x, y))))) |> prefixes(ns)",
    "zip(xss |> prefixes(ns))(ys) |> map(fun((xs, y) => xs |> map(fun(x => f(x, y))))) |> prefixes(ns)",
    meaning=_UNDEFINED,
)
PREFIXES_SECOND = rule(
    "zip >> *(*f) >> prefixes, second",
    "zip(xs)(yss) |> map(fun((x, ys) => ys |> map(fun(y => f(x, y))))) |> prefixes(ns)",
    "zip(xs)(yss |> prefixes(ns)) |> map(fun((x, ys) => ys |> map(fun(y => f(x, y))))) |> prefixes(ns)",
    meaning=_UNDEFINED,
)
