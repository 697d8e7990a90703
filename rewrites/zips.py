"""Rules about pairs and zipped arrays: what is done to both is done to the array of pairs."""

from __future__ import annotations

from rewrites.rule import Rule
from rewrites.rule import library_rule as rule

# --- order --------------------------------------------------------------------------------------------

ZIP_SWAP = rule("zipSwap", "zip(xs)(ys)", "zip(ys)(xs) |> map(fun((y, x) => (x, y)))")
ZIP_SAME = rule("zipSame", "zip(xs)(xs)", "xs |> map(fun(x => (x, x)))")
SAME_ZIP = rule("zipSame, introduced", "xs |> map(fun(x => (x, x)))", "zip(xs)(xs)")
ZIP_ROTATE_LEFT = rule(
    "zipRotateLeft", "zip(xs)(zip(ys)(zs))", "zip(zip(xs)(ys))(zs) |> map(fun(((x, y), z) => (x, (y, z))))"
)
ZIP_ROTATE_RIGHT = rule(
    "zipRotateRight", "zip(zip(xs)(ys))(zs)", "zip(xs)(zip(ys)(zs)) |> map(fun((x, (y, z)) => ((x, y), z)))"
)

# --- zip and unzip ------------------------------------------------------------------------------------

UNZIP_ZIP = rule("unzip(zip)", "zip(xs)(ys) |> unzip", "(xs, ys)")
ZIP_UNZIP = rule("zip(unzip)", "zip(fst(unzip(xs)))(snd(unzip(xs)))", "xs")
FIRST_OF_UNZIP = rule("unzip >> fst", "xs |> unzip |> fst", "xs |> map(fun((x, y) => x))")
SECOND_OF_UNZIP = rule("unzip >> snd", "xs |> unzip |> snd", "xs |> map(fun((x, y) => y))")
UNZIP_MAP = rule(
    "*pair >> unzip", "xs |> map(fun(x => (f(x), g(x)))) |> unzip", "(xs |> map(f), xs |> map(g))"
)
FIRST_OF_ZIP = rule("zip >> *fst", "zip(xs)(ys) |> map(fun((x, y) => x))", "xs")
SECOND_OF_ZIP = rule("zip >> *snd", "zip(xs)(ys) |> map(fun((x, y) => y))", "ys")

# --- maps out of pairs and zips -----------------------------------------------------------------------

MAP_OUTSIDE_ZIP = rule(
    "mapOutsideZip",
    "zip(xs |> map(f))(ys |> map(g))",
    "zip(xs)(ys) |> map(fun((x, y) => (f(x), g(y))))",
)
MAP_OUTSIDE_PAIR = rule(
    "mapOutsidePair",
    "(xs |> map(f), ys |> map(g))",
    "zip(xs)(ys) |> map(fun((x, y) => (f(x), g(y)))) |> unzip",
    meaning="Two loops of one length become one.",
)
MAP_INSIDE_ZIP = rule(
    "mapInsideZip",
    "zip(xs)(ys) |> map(fun((x, y) => (f(x), g(y))))",
    "zip(xs |> map(f))(ys |> map(g))",
)
MAP_PAIR_AS_ZIP = rule("*pair", "xs |> map(fun(x => (f(x), g(x))))", "zip(xs |> map(f))(xs |> map(g))")

# --- mapFst and mapSnd --------------------------------------------------------------------------------

MAP_FIRST_FUSION = rule("mapFstFusion", "p |> mapFst(f) |> mapFst(g)", "p |> mapFst(fun(x => g(f(x))))")
MAP_SECOND_FUSION = rule("mapSndFusion", "p |> mapSnd(f) |> mapSnd(g)", "p |> mapSnd(fun(x => g(f(x))))")
MAP_SECOND_FIRST = rule("mapSnd >> mapFst", "p |> mapSnd(f) |> mapFst(g)", "p |> mapFst(g) |> mapSnd(f)")
MAP_FIRST_SECOND = rule("mapFst >> mapSnd", "p |> mapFst(f) |> mapSnd(g)", "p |> mapSnd(g) |> mapFst(f)")
MAP_FIRST_OF_PAIR = rule("mapFst", "p |> mapFst(f)", "(f(fst(p)), snd(p))")
MAP_SECOND_OF_PAIR = rule("mapSnd", "p |> mapSnd(f)", "(fst(p), f(snd(p)))")

# --- views of both components -------------------------------------------------------------------------


def _with_zip(name: str, view: str) -> tuple[Rule, Rule]:
    """A view of a zip, where it keeps the elements: v(zip a b) = zip (v a) (v b), both ways."""
    return (
        rule(f"zip >> {name}", f"zip(xs)(ys) |> {view}", f"zip(xs |> {view})(ys |> {view})"),
        rule(f"zip of {name}", f"zip(xs |> {view})(ys |> {view})", f"zip(xs)(ys) |> {view}"),
    )


ZIPPED_VIEWS = tuple(
    made
    for name, view in (
        ("take", "take(n)"),
        ("drop", "drop(n)"),
        ("padClamp", "padClamp(l, r)"),
        ("reorder", "reorder(n, f, g)"),
        ("gather", "gather(is)"),
    )
    for made in _with_zip(name, view)
)


def _with_zip_nested(name: str, view: str) -> tuple[Rule, Rule]:
    """A view that adds a dimension: *(unzip) or *(zip) is left."""
    return (
        rule(
            f"zip >> {name}, of rows",
            f"zip(xs)(ys) |> {view}",
            f"zip(xs |> {view})(ys |> {view}) |> map(fun((a, b) => zip(a)(b)))",
            meaning="Parts of zipped arrays are zipped parts.",
        ),
        rule(
            f"zip of {name}",
            f"zip(xs |> {view})(ys |> {view}) |> map(fun((a, b) => zip(a)(b)))",
            f"zip(xs)(ys) |> {view}",
        ),
    )


SLIDE_INSIDE_ZIP, SLIDES_ZIPPED = _with_zip_nested("slide", "slide(n, m)")
SLIDE_OUTSIDE_ZIP = rule(
    "slideOutsideZip",
    "zip(xs |> slide(n, m))(ys |> slide(n, m))",
    "zip(xs)(ys) |> slide(n, m) |> map(fun(w => w |> unzip))",
)
SPLIT_OUTSIDE_ZIP = rule(
    "splitOutsideZip",
    "zip(xs |> split(n))(ys |> split(n))",
    "zip(xs)(ys) |> split(n) |> map(fun(b => b |> unzip))",
)
JOIN_OUTSIDE_ZIP = rule(
    "zip of J",
    "zip(xs |> join)(ys |> join)",
    "zip(xs)(ys) |> map(fun((a, b) => zip(a)(b))) |> join",
    meaning="Where both have the same rows.",
)
JOIN_INSIDE_ZIP = rule(
    "zip2D >> J",
    "zip(xs)(ys) |> map(fun((a, b) => zip(a)(b))) |> join",
    "zip(xs |> join)(ys |> join)",
)
TRANSPOSE_OUTSIDE_ZIP = rule(
    "zip2D of T",
    "zip(xs |> transpose)(ys |> transpose) |> map(fun((a, b) => zip(a)(b)))",
    "zip(xs)(ys) |> map(fun((a, b) => zip(a)(b))) |> transpose",
)
TRANSPOSE_BEFORE_MAP_ZIP = rule(
    "*zip >> T",
    "xs |> map(fun(r => zip(ys)(r))) |> transpose",
    "zip(ys |> map(fun(y => generate(fun(i => y)))))(xs |> transpose) |> map(fun((a, b) => zip(a)(b)))",
    meaning="Each element of ys goes with a column of xs.",
)
TAKE_PAIR = rule(
    "(take, take)",
    "(xs |> take(n), ys |> take(m))",
    "(xs, ys) |> mapFst(fun(x => x |> take(n))) |> mapSnd(fun(y => y |> take(m)))",
)
DROP_PAIR = rule(
    "(drop, drop)",
    "(xs |> drop(n), ys |> drop(m))",
    "(xs, ys) |> mapFst(fun(x => x |> drop(n))) |> mapSnd(fun(y => y |> drop(m)))",
)
CONCAT_ZIP = rule(
    "zip of concat",
    "zip(concat(xs)(us))(concat(ys)(vs))",
    "concat(zip(xs)(ys))(zip(us)(vs))",
    meaning="Where the parts have the same sizes.",
)
ZIP_CONCAT = rule(
    "concat of zip",
    "concat(zip(xs)(ys))(zip(us)(vs))",
    "zip(concat(xs)(us))(concat(ys)(vs))",
)
