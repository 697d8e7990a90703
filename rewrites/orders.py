"""Rules about the order of elements: `reorder`, `gather`, `scatter`.

`reorder(n, f, g)` has at i the element at f(i), and g is the inverse of f, so `reorder(n, g, f)` is its
inverse.
"""

from __future__ import annotations

from rewrites.conditions import total
from rewrites.rule import Rule, computed
from rewrites.rule import library_rule as rule
from rise.expr import Expr, Primitive, apply, call
from rise.nat import Nat, NatVariable
from rise.types import NatFunction

# --- reorder ------------------------------------------------------------------------------------------

REORDER_MAP = rule(
    "reorder >> *f",
    "xs |> reorder(n, f, g) |> map(h)",
    "xs |> map(h) |> reorder(n, f, g)",
    meaning="A map of reordered elements may precede the reordering.",
)
MAP_REORDER = rule(
    "*f >> reorder",
    "xs |> map(h) |> reorder(n, f, g)",
    "xs |> reorder(n, f, g) |> map(h)",
    meaning="Mapped elements, reordered, are reordered elements, mapped.",
)
REORDER_BACK = rule(
    "reorder >> reorder⁻¹",
    "xs |> reorder(n, f, g) |> reorder(n, g, f)",
    "xs",
    meaning="A reordering and its inverse undo each other.",
)
REORDER_NOTHING = rule(
    "reorder(id)",
    "xs |> reorder(n, natFun(i => i), natFun(i => i))",
    "xs",
    sizes=("n",),
    meaning="A reordering that leaves every element in its place changes nothing.",
)
REDUCE_ANY_ORDER = rule(
    "reorder >> reduce",
    "xs |> reorder(n, f, g) |> reduce(op, z)",
    "xs |> reduce(op, z)",
    exact=False,
    meaning="A reduction's operator is commutative.",
)
REORDER_TRANSPOSE = rule(
    "T >> reorder",
    "xs |> transpose |> reorder(n, f, g)",
    "xs |> map(fun(r => r |> reorder(n, f, g))) |> transpose",
    meaning="Reordering the columns reorders every row.",
)
REORDER_COLUMNS = rule(
    "*reorder >> T",
    "xs |> map(fun(r => r |> reorder(n, f, g))) |> transpose",
    "xs |> transpose |> reorder(n, f, g)",
    meaning="Reordering every row reorders the columns.",
)
GENERATE_IN_ORDER = rule(
    "reorder as gather",
    "xs |> reorder(n, f, g)",
    "xs |> gather(generate(fun(i => i)) |> reorder(n, f, g))",
    meaning="The order as an array of indices.",
)


def _in_order(name: str, order: str, inverse: str, sizes: tuple[str, ...], meaning: str) -> Rule:
    """*f → reorder s >> *f >> reorder s⁻¹: the same elements, computed in another order."""
    size = " * ".join(sizes) if len(sizes) > 1 else sizes[0]
    there, back = f"natFun(i => {order})", f"natFun(i => {inverse})"
    return rule(
        f"*f, {name}",
        "xs |> map(f)",
        f"xs |> reorder({size}, {there}, {back}) |> map(f) |> reorder({size}, {back}, {there})",
        sizes=sizes,
        meaning=meaning,
    )


RASTERISE_BACKWARDS = _in_order("backwards", "n - 1 - i", "n - 1 - i", ("n",), "The last element first.")
IN_PAIRS = _in_order(
    "in pairs",
    "(1 - i % 2) * (n - 1 - i / 2) + i % 2 * (i / 2)",
    "min(2 * i + 1, 2 * (n - 1 - i))",
    ("n",),
    "The last element, the first one, the last but one, the second one, and so on.",
)
RASTERISE_STRIDED = _in_order(
    "strided",
    "i % q * s + i / q",
    "i % s * q + i / s",
    ("q", "s"),
    "Every s-th element, then those that follow them.",
)
STRIDED_IN_PARTS = _in_order(
    "strided in parts",
    "i / (q * s) * (q * s) + i % q * s + i / q % s",
    "i / (q * s) * (q * s) + i % s * q + i / s % q",
    ("p", "q", "s"),
    "Of every q * s elements, every s-th one, then those that follow them.",
)
ORDER_ROWS = rule(
    "*f >> *reorder",
    "xs |> map(h) |> map(fun(r => r |> reorder(n, f, g)))",
    "xs |> map(fun(x => h(x) |> reorder(n, f, g)))",
    meaning="Rows are reordered where they are computed.",
)
# of 2·j·q terms, lane c of q has the pairs c, c + q, c + 2·q and so on: the order that makes them adjacent
_ADJACENT = "i / (2 * j * q) * (2 * j * q) + i % (2 * q) / 2 * (2 * j) + i / (2 * q) % j * 2 + i % 2"
_APART = "i / (2 * j * q) * (2 * j * q) + i / 2 % j * (2 * q) + i % (2 * j * q) / (2 * j) * 2 + i % 2"
_BY_LANES = f"reorder(p * 2 * j * q, natFun(i => {_ADJACENT}), natFun(i => {_APART}))"
_FROM_LANES = f"reorder(p * 2 * j * q, natFun(i => {_APART}), natFun(i => {_ADJACENT}))"
SUMS_BY_LANES = rule(
    "reduce, terms of a lane adjacent",
    "zip(xs)(ys) |> map(f) |> reduce(op, z)",
    f"zip(xs |> {_BY_LANES})(ys |> {_BY_LANES}) |> map(f) |> reduce(op, z)",
    sizes=("p", "j", "q"),
    exact=False,
    meaning="Each of q lanes multiplies j pairs of terms, q pairs apart. They become adjacent terms.",
)
COLUMNS_STRIDED = rule(
    "columns, pairs strided in parts",
    "xss",
    f"xss |> transpose |> {_BY_LANES} |> transpose |> map(fun(r => r |> {_FROM_LANES}))",
    sizes=("p", "j", "q"),
    meaning="Of every j * q pairs of columns, every j-th one, then those that follow; and the same undone.",
)
TILE_SNAKE = rule(
    "**f, snake",
    "xs |> map(fun(r => r |> map(f))) |> split(2)",
    "xs |> split(2) |> map(fun(p => concat(p |> take(1))"
    "(p |> drop(1) |> map(fun(r => r |> reorder(n, natFun(i => n - 1 - i), natFun(i => n - 1 - i)))))))"
    " |> map(fun(p => p |> map(fun(r => r |> map(f))))) |> map(fun(p => concat(p |> take(1))"
    "(p |> drop(1) |> map(fun(r => r |> reorder(n, natFun(i => n - 1 - i), natFun(i => n - 1 - i)))))))",
    sizes=("n",),
    meaning="Every second row in reverse order (boustrophedon), so that adjacent rows share their ends.",
)


@computed(
    "reorder >> reorder",
    "xs |> reorder(n, f, g) |> reorder(n, h, k) → xs |> reorder(n, f ∘ h, k ∘ g)",
    (
        "fun(xs: 6.i32 => xs |> reorder(6, natFun(i => 5 - i), natFun(i => 5 - i))"
        " |> reorder(6, natFun(i => (i + 2) % 6), natFun(j => (j + 4) % 6)))",
        "fun(xs: 5.f32 => xs |> reorder(5, natFun(i => (i + 1) % 5), natFun(i => (i + 4) % 5))"
        " |> reorder(5, natFun(i => (i + 3) % 5), natFun(i => (i + 2) % 5)))",
    ),
    "Two orders as one.",
)
def REORDER_FUSION(term: Expr) -> Expr | str:  # noqa: N802  # rules are constants
    outer = call(term)
    inner = call(outer[2][0]) if outer and outer[0] == "reorder" and len(outer[2]) == 1 else None
    if outer is None or inner is None or inner[0] != "reorder" or len(inner[2]) != 1:
        return "expected an order of an ordered array"
    size, f, g, element = inner[1].arguments
    _, h, k, _ = outer[1].arguments
    if not all(isinstance(part, NatFunction) for part in (f, g, h, k)):
        return "an order is not known yet"
    there, back = _after(f, h), _after(k, g)  # type: ignore[arg-type]  # checked
    order = Primitive(outer[1].declaration, (size, there, back, element), term.origin)
    return apply(order, inner[2][0], origin=term.origin)


def _after(second: NatFunction, first: NatFunction) -> NatFunction:
    """second ∘ first"""
    index: Nat = first.body
    return NatFunction(first.parameter, second.body.substitute({NatVariable(second.parameter): index}))


# --- gather and scatter -------------------------------------------------------------------------------

GATHER_MAP = rule(
    "*f >> gather",
    "xs |> map(f) |> gather(is)",
    "xs |> gather(is) |> map(f)",
    meaning="Gathering from a mapped array maps what is gathered.",
)
MAP_GATHER = rule(
    "gather >> *f",
    "xs |> gather(is) |> map(f)",
    "xs |> map(f) |> gather(is)",
    meaning="This computes each element once, however often it is read.",
)
GATHER_GATHER = rule(
    "gather >> gather",
    "xs |> gather(is) |> gather(js)",
    "xs |> gather(is |> gather(js))",
    meaning="Gathering twice is gathering once, by gathered indices.",
)
GATHER_UNFUSED = rule(
    "gather of gathered",
    "xs |> gather(is |> gather(js))",
    "xs |> gather(is) |> gather(js)",
    meaning="Gathering by gathered indices is gathering twice.",
)
GATHER_GENERATED = rule(
    "generate >> gather",
    "generate(f) |> gather(is)",
    "is |> map(f)",
    meaning="Gathering from a generated array generates at the indices.",
)
GATHER_IN_PLACE = rule(
    "gather(id)",
    "xs |> gather(generate(fun(i => i)))",
    "xs",
    meaning="Gathering every element from its own place changes nothing.",
)
GATHER_AS_MAP = rule(
    "gather as *idx",
    "xs |> gather(is)",
    "is |> map(fun(i => idx(i)(xs)))",
    meaning="Gathering accesses the array at each index.",
)
MAP_IDX = rule(
    "*idx as gather",
    "is |> map(fun(i => idx(i)(xs)))",
    "xs |> gather(is)",
    meaning="A map that accesses an array at each index gathers from it.",
)
GATHER_TAKE = rule(
    "gather >> take",
    "xs |> gather(is) |> take(n)",
    "xs |> gather(is |> take(n))",
    meaning="The first gathered elements are those at the first indices.",
)
GATHER_DROP = rule(
    "gather >> drop",
    "xs |> gather(is) |> drop(n)",
    "xs |> gather(is |> drop(n))",
    meaning="The last gathered elements are those at the last indices.",
)
SCATTER_MAP = rule(
    "*f >> scatter",
    "xs |> map(h) |> scatter(is)",
    "xs |> scatter(is) |> map(h)",
    conditions=(total("h"),),
    meaning="The function may be applied to elements that `scatter` does not write.",
)
SCATTER_ZIP = rule(
    "zip >> scatter",
    "zip(xs)(ys) |> scatter(is)",
    "zip(xs |> scatter(is))(ys |> scatter(is))",
    meaning="A scattered zip is a zip of arrays that are scattered alike.",
)
SCATTER_GATHER = rule(
    "scatter >> gather",
    "xs |> scatter(is) |> gather(is)",
    "xs",
    meaning="Gathering from where elements were scattered gives them back.",
)
ZIP_SCATTER_BY = rule(
    "zip >> scatterBy",
    "zip(xs)(ys) |> scatterBy(os)(is)",
    "zip(xs |> scatterBy(os)(is))(ys |> scatterBy(os)(is))",
    meaning="A zip is put at places that elements own as its arrays are.",
)
ZIP_PREFIX = rule(
    "zip >> prefix",
    "zip(xs)(ys) |> prefix(c)",
    "zip(xs |> prefix(c))(ys |> prefix(c))",
    meaning="The first elements of a zip are those of its arrays.",
)
TRANSPOSE_PREFIX = rule(
    "prefix >> transpose",
    "xss |> prefix(c) |> transpose",
    "xss |> transpose |> map(fun(xs => xs |> prefix(c)))",
    meaning="The first rows have the first elements of all columns.",
)
