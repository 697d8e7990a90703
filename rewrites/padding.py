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
CLAMP_MAP = rule("padClamp >> *f", "xs |> padClamp(l, r) |> map(f)", "xs |> map(f) |> padClamp(l, r)")
MAP_CLAMP = rule("*f >> padClamp", "xs |> map(f) |> padClamp(l, r)", "xs |> padClamp(l, r) |> map(f)")
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

# --- of rows and columns ------------------------------------------------------------------------------


def _of_rows(name: str, pad: str, pad_rows: str) -> tuple[Rule, Rule]:
    """Padding every column is padding with rows; `pad_rows` pads an array of rows likewise."""
    each = f"map(fun(x => x |> {pad}))"
    return (
        rule(f"T >> *{name}", f"xs |> transpose |> {each}", f"xs |> {pad_rows} |> transpose"),
        rule(f"*{name} >> T", f"xs |> {each} |> transpose", f"xs |> transpose |> {pad_rows}"),
    )


CONSTANT_ROW = "padCst(l, r)(generate(fun(i => z)))"
PAD_COLUMNS, PAD_TRANSPOSE = _of_rows("padCst", "padCst(l, r)(z)", CONSTANT_ROW)
CLAMP_COLUMNS, CLAMP_TRANSPOSE = _of_rows("padClamp", "padClamp(l, r)", "padClamp(l, r)")
EMPTY_COLUMNS, EMPTY_TRANSPOSE = _of_rows("padEmpty", "padEmpty(r)", "padEmpty(r)")
TRANSPOSE_PAD = rule(
    "T >> padCst",
    "xs |> transpose |> padCst(l, r)(generate(fun(i => z)))",
    "xs |> map(fun(x => x |> padCst(l, r)(z))) |> transpose",
)
TRANSPOSE_CLAMP = rule(
    "T >> padClamp",
    "xs |> transpose |> padClamp(l, r)",
    "xs |> map(fun(x => x |> padClamp(l, r))) |> transpose",
)
TRANSPOSE_EMPTY = rule(
    "T >> padEmpty",
    "xs |> transpose |> padEmpty(r)",
    "xs |> map(fun(x => x |> padEmpty(r))) |> transpose",
)

# --- of zipped arrays, of joined arrays ----------------------------------------------------------------

PAD_ZIP = rule(
    "zip >> padCst",
    "zip(xs)(ys) |> padCst(l, r)((x, y))",
    "zip(xs |> padCst(l, r)(x))(ys |> padCst(l, r)(y))",
)
ZIP_PAD = rule(
    "zip of padCst",
    "zip(xs |> padCst(l, r)(x))(ys |> padCst(l, r)(y))",
    "zip(xs)(ys) |> padCst(l, r)((x, y))",
)
EMPTY_ZIP = rule("zip >> padEmpty", "zip(xs)(ys) |> padEmpty(r)", "zip(xs |> padEmpty(r))(ys |> padEmpty(r))")
ZIP_EMPTY = rule("zip of padEmpty", "zip(xs |> padEmpty(r))(ys |> padEmpty(r))", "zip(xs)(ys) |> padEmpty(r)")
PAD_SPLIT = rule(
    "S >> padCst",
    "xs |> split(n) |> padCst(l, r)(generate(fun(i => z)))",
    "xs |> padCst(l*n, r*n)(z) |> split(n)",
)
PAD_JOIN = rule(
    "padCst >> J",
    "xs |> padCst(l, r)(generate(fun((i: Idx[n]) => z))) |> join",
    "xs |> join |> padCst(l*n, r*n)(z)",
    sizes=("n",),
    meaning="Rows of n elements.",
)
EMPTY_SPLIT = rule("S >> padEmpty", "xs |> split(n) |> padEmpty(r)", "xs |> padEmpty(r*n) |> split(n)")
EMPTY_SLIDE = rule(
    "slide >> padEmpty", "xs |> slide(n, m) |> padEmpty(r)", "xs |> padEmpty(r*m) |> slide(n, m)"
)

# --- several times, not at all ------------------------------------------------------------------------

PAD_PAD = rule(
    "padCst >> padCst", "xs |> padCst(l, r)(z) |> padCst(m, n)(z)", "xs |> padCst(l + m, r + n)(z)"
)
CLAMP_CLAMP = rule(
    "padClamp >> padClamp", "xs |> padClamp(l, r) |> padClamp(m, n)", "xs |> padClamp(l + m, r + n)"
)
EMPTY_EMPTY = rule("padEmptyFusion", "xs |> padEmpty(r) |> padEmpty(n)", "xs |> padEmpty(r + n)")
PAD_NOTHING = rule("padCstNothing", "xs |> padCst(0, 0)(z)", "xs")
CLAMP_NOTHING = rule("padClampNothing", "xs |> padClamp(0, 0)", "xs")
EMPTY_NOTHING = rule("padEmptyNothing", "xs |> padEmpty(0)", "xs")
PAD_DROPPED = rule("padCst >> drop", "xs |> padCst(l, r)(z) |> drop(l)", "xs |> padCst(0, r)(z)")
PAD_TAKEN = rule(
    "padCst >> take", "xs |> padCst(0, r)(z) |> take(n)", "xs", meaning="Where xs has n elements."
)
EMPTY_TAKEN = rule("padEmpty >> take", "xs |> padEmpty(r) |> take(n)", "xs |> take(n)")
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
)
