"""Rules about pairs and zipped arrays: what is done to both is done to the array of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce

from rewrites.match import project
from rewrites.rule import Rule, computed
from rewrites.rule import library_rule as rule
from rewrites.typed import array_type, instance, mapped
from rise.expr import Expr, Identifier, Lambda, apply, call, fresh_name

# --- order --------------------------------------------------------------------------------------------

ZIP_SWAP = rule(
    "zipSwap",
    "zip(xs)(ys)",
    "zip(ys)(xs) |> map(fun((y, x) => (x, y)))",
    meaning="The components of a zip may be exchanged and each pair swapped back.",
)
ZIP_SAME = rule(
    "zipSame",
    "zip(xs)(xs)",
    "xs |> map(fun(x => (x, x)))",
    meaning="A zip of an array with itself pairs each element with itself.",
)
SAME_ZIP = rule(
    "zipSame, introduced",
    "xs |> map(fun(x => (x, x)))",
    "zip(xs)(xs)",
    meaning="An array of pairs of equal elements is a zip of an array with itself.",
)


MAP_OF_PAIRS = rule(
    "map of pairs",
    "xs |> map(fun(x => (f(x), g(x))))",
    "zip(xs |> map(f))(xs |> map(g))",
    meaning="An array of pairs is the zip of an array of their first members and one of their second ones.",
)


def components(term: Expr) -> Iterator[Expr]:
    """The arrays that a nest of zips is of, from left to right."""
    match call(term):
        case "zip", _, [first, second]:
            yield from components(first)
            yield from components(second)
        case _:
            yield term


@computed(
    "zip of zips, repeated",
    "zip(xs)(zip(ys)(xs)) → zip(xs)(ys) |> map((x, y) => (x, (y, x)))",
    (
        "fun((xs: 3.i32, ys: 3.f32) => zip(xs)(zip(ys)(zip(xs)(ys))))",
        "fun((xs: 3.i32, ys: 3.f32) => zip(zip(zip(xs)(ys))(xs))(ys))",
        "fun((xs: 3.i32) => zip(xs)(zip(xs)(xs)))",
    ),
    "Of the arrays in a nest of zips each is read once, however often it stands there.",
    head=("zip", 2),
)
def ZIP_REPEATED(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    if call(term) is None:
        return "expected a zip"
    arrays = list(components(term))
    distinct = list(dict.fromkeys(arrays))
    if len(distinct) == len(arrays):
        return "no array stands in a nest of zips twice"
    zipped = reduce(lambda rest, xs: _zip(xs, rest), reversed(distinct))
    element = Identifier(fresh_name("p", term.free), array_type(zipped).element, term.origin)
    members: dict[Expr, Expr] = {}
    rest: Expr = element
    for xs in distinct[:-1]:
        members[xs], rest = project("fst", rest), project("snd", rest)
    members[distinct[-1]] = rest
    return mapped(Lambda(element, _tuple(term, members), term.origin), zipped)


def _zip(xs: Expr, ys: Expr) -> Expr:
    types = (array_type(xs).size, array_type(xs).element, array_type(ys).element)
    return apply(instance("zip", types, xs.origin), xs, ys)


def _tuple(term: Expr, members: Mapping[Expr, Expr]) -> Expr:
    """An element of a nest of zips, of elements of its arrays."""
    match call(term):
        case "zip", _, [xs, ys]:
            first, second = _tuple(xs, members), _tuple(ys, members)
            return apply(instance("pair", (first.type, second.type), term.origin), first, second)
        case _:
            return members[term]


ZIP_ROTATE_LEFT = rule(
    "zipRotateLeft",
    "zip(xs)(zip(ys)(zs))",
    "zip(zip(xs)(ys))(zs) |> map(fun(((x, y), z) => (x, (y, z))))",
    meaning="A nest of zips is bracketed to the left, and each element to the right again.",
)
ZIP_ROTATE_RIGHT = rule(
    "zipRotateRight",
    "zip(zip(xs)(ys))(zs)",
    "zip(xs)(zip(ys)(zs)) |> map(fun((x, (y, z)) => ((x, y), z)))",
    meaning="A nest of zips is bracketed to the right, and each element to the left again.",
)

# --- zip and unzip ------------------------------------------------------------------------------------

UNZIP_ZIP = rule(
    "unzip(zip)", "zip(xs)(ys) |> unzip", "(xs, ys)", meaning="Unzipping a zip gives its components back."
)
ZIP_UNZIP = rule(
    "zip(unzip)",
    "zip(fst(unzip(xs)))(snd(unzip(xs)))",
    "xs",
    meaning="Zipping both components of an array of pairs gives the array back.",
)
FIRST_OF_UNZIP = rule(
    "unzip >> fst",
    "xs |> unzip |> fst",
    "xs |> map(fun((x, y) => x))",
    meaning="The first component of an unzipped array is the first of each pair.",
)
SECOND_OF_UNZIP = rule(
    "unzip >> snd",
    "xs |> unzip |> snd",
    "xs |> map(fun((x, y) => y))",
    meaning="The second component of an unzipped array is the second of each pair.",
)
UNZIP_MAP = rule(
    "*pair >> unzip",
    "xs |> map(fun(x => (f(x), g(x)))) |> unzip",
    "(xs |> map(f), xs |> map(g))",
    meaning="An unzipped map to pairs is two maps.",
)
FIRST_OF_ZIP = rule(
    "zip >> *fst",
    "zip(xs)(ys) |> map(fun((x, y) => x))",
    "xs",
    meaning="The first elements of the pairs of a zip are its first component.",
)
SECOND_OF_ZIP = rule(
    "zip >> *snd",
    "zip(xs)(ys) |> map(fun((x, y) => y))",
    "ys",
    meaning="The second elements of the pairs of a zip are its second component.",
)

# --- maps out of pairs and zips -----------------------------------------------------------------------

MAP_OUTSIDE_ZIP = rule(
    "mapOutsideZip",
    "zip(xs |> map(f))(ys |> map(g))",
    "zip(xs)(ys) |> map(fun((x, y) => (f(x), g(y))))",
    meaning="Maps in both components of a zip are one map over the pairs.",
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
    meaning="A map that treats both elements of a pair separately is a map in each component of the zip.",
)
MAP_PAIR_AS_ZIP = rule(
    "*pair",
    "xs |> map(fun(x => (f(x), g(x))))",
    "zip(xs |> map(f))(xs |> map(g))",
    meaning="A map to pairs is a zip of two maps.",
)

# --- mapFst and mapSnd --------------------------------------------------------------------------------

MAP_FIRST_FUSION = rule(
    "mapFstFusion",
    "p |> mapFst(f) |> mapFst(g)",
    "p |> mapFst(fun(x => g(f(x))))",
    meaning="Two functions of the first member of a pair are one.",
)
MAP_SECOND_FUSION = rule(
    "mapSndFusion",
    "p |> mapSnd(f) |> mapSnd(g)",
    "p |> mapSnd(fun(x => g(f(x))))",
    meaning="Two functions of the second member of a pair are one.",
)
MAP_SECOND_FIRST = rule(
    "mapSnd >> mapFst",
    "p |> mapSnd(f) |> mapFst(g)",
    "p |> mapFst(g) |> mapSnd(f)",
    meaning="A function of the first member may precede one of the second.",
)
MAP_FIRST_SECOND = rule(
    "mapFst >> mapSnd",
    "p |> mapFst(f) |> mapSnd(g)",
    "p |> mapSnd(g) |> mapFst(f)",
    meaning="A function of the second member may precede one of the first.",
)
MAP_FIRST_OF_PAIR = rule(
    "mapFst",
    "p |> mapFst(f)",
    "(f(fst(p)), snd(p))",
    meaning="A function of the first member leaves the second one as it is.",
)
MAP_SECOND_OF_PAIR = rule(
    "mapSnd",
    "p |> mapSnd(f)",
    "(fst(p), f(snd(p)))",
    meaning="A function of the second member leaves the first one as it is.",
)

# --- views of both components -------------------------------------------------------------------------


def _with_zip(name: str, view: str) -> tuple[Rule, Rule]:
    """A view of a zip, where it keeps the elements: v(zip a b) = zip (v a) (v b), both ways."""
    return (
        rule(
            f"zip >> {name}",
            f"zip(xs)(ys) |> {view}",
            f"zip(xs |> {view})(ys |> {view})",
            meaning=f"`{name}` of a zip applies to each component.",
        ),
        rule(
            f"zip of {name}",
            f"zip(xs |> {view})(ys |> {view})",
            f"zip(xs)(ys) |> {view}",
            meaning=f"`{name}` of each component applies to the zip.",
        ),
    )


_BOTH_WAYS = {
    name: _with_zip(name, view)
    for name, view in (
        ("take", "take(n)"),
        ("drop", "drop(n)"),
        ("padClamp", "padClamp(l, r)"),
        ("reorder", "reorder(n, f, g)"),
        ("gather", "gather(is)"),
    )
}
ZIPPED_VIEWS = tuple(made for both in _BOTH_WAYS.values() for made in both)
ZIP_REORDER, _ = _BOTH_WAYS["reorder"]


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
            meaning="Zipped parts are parts of the zipped arrays.",
        ),
    )


SLIDE_INSIDE_ZIP, SLIDES_ZIPPED = _with_zip_nested("slide", "slide(n, m)")
SLIDE_OUTSIDE_ZIP = rule(
    "slideOutsideZip",
    "zip(xs |> slide(n, m))(ys |> slide(n, m))",
    "zip(xs)(ys) |> slide(n, m) |> map(fun(w => w |> unzip))",
    meaning="Zipped windows are the windows of the zip, each unzipped.",
)
SPLIT_OUTSIDE_ZIP = rule(
    "splitOutsideZip",
    "zip(xs |> split(n))(ys |> split(n))",
    "zip(xs)(ys) |> split(n) |> map(fun(b => b |> unzip))",
    meaning="Zipped parts are the parts of the zip, each unzipped.",
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
    meaning="Matrices zipped row by row, then joined, are zipped after joining.",
)
JOIN_OF_ZIPS = rule(
    "*zip >> J",
    "xs |> map(fun(x => zip(f(x))(g(x)))) |> join",
    "zip(xs |> map(f) |> join)(xs |> map(g) |> join)",
    meaning="Zips of parts of each element, joined, are the zip of the joined parts.",
)
TRANSPOSE_OUTSIDE_ZIP = rule(
    "zip2D of T",
    "zip(xs |> transpose)(ys |> transpose) |> map(fun((a, b) => zip(a)(b)))",
    "zip(xs)(ys) |> map(fun((a, b) => zip(a)(b))) |> transpose",
    meaning="Transposed matrices, zipped in both dimensions, are the transposition of their zip.",
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
    meaning="The beginnings of two arrays are taken from the members of a pair.",
)
DROP_PAIR = rule(
    "(drop, drop)",
    "(xs |> drop(n), ys |> drop(m))",
    "(xs, ys) |> mapFst(fun(x => x |> drop(n))) |> mapSnd(fun(y => y |> drop(m)))",
    meaning="The rests of two arrays are taken from the members of a pair.",
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
    meaning="Two concatenated zips are a zip of concatenated arrays.",
)
