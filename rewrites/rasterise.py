"""The raster order of the tiles of a result, in which tiles that share operands are close to each other."""

from __future__ import annotations

from rewrites.rule import library_rule as rule

# of an r × c grid of tiles in one list, row by row: g rows at a time, column by column, and back
GROUPED = "natFun(i => i / (g*c) * (g*c) + i % g * c + i % (g*c) / g)"
BY_ROWS = "natFun(t => t / (g*c) * (g*c) + t % c * g + t / c % g)"

RASTERISE = rule(
    "*f, in groups of rows",
    "xs |> map(f)",
    f"xs |> reorder(q*g*c, {GROUPED}, {BY_ROWS}) |> map(f) |> reorder(q*g*c, {BY_ROWS}, {GROUPED})",
    sizes=("q", "g", "c"),
    meaning="The elements of a q*g × c matrix in one list, in groups of g rows, column by column in each.",
)
# the same of groups of g*s rows, behind which h*s are left, and where s neighbours in a column stay together,
# as those of a cluster do. Of two places, in the groups and behind them, one is 0; all divisors are sizes
_INSIDE, _BEHIND = "min(i / s, q*g*c)", "(max(i / s, q*g*c) - q*g*c)"
GROUPED_TO_THE_END = (
    f"natFun(i => (({_INSIDE} / (g*c) * g + {_INSIDE} % g + {_BEHIND} % h) * s + i % s) * c"
    f" + {_INSIDE} % (g*c) / g + {_BEHIND} / h)"
)
_ROW, _LAST = "t / c / s", "min(t / c / s / (q*g), 1)"
BY_ROWS_TO_THE_END = (
    f"natFun(t => ((1 - {_LAST}) * ({_ROW} / g * (g*c) + t % c * g + {_ROW} % g)"
    f" + {_LAST} * (q*g*c + t % c * h + max({_ROW}, q*g) - q*g)) * s + t / c % s)"
)

RASTERISE_TO_THE_END = rule(
    "*f, in groups of rows, the last one shorter",
    "xs |> map(f)",
    f"xs |> reorder((q*g + h)*s*c, {GROUPED_TO_THE_END}, {BY_ROWS_TO_THE_END}) |> map(f)"
    f" |> reorder((q*g + h)*s*c, {BY_ROWS_TO_THE_END}, {GROUPED_TO_THE_END})",
    sizes=("q", "g", "h", "s", "c"),
    meaning="The elements of a (q*g + h)*s × c matrix in one list, in q groups of g*s rows and one of h*s,"
    " column by column in each.",
)
# the same of lists that persistent blocks, or clusters, share out
RASTERISE_PERSISTENT = tuple(
    rule(
        f"{level}, in groups of rows",
        f"xs |> {level}(d, p)(f)",
        f"xs |> reorder(q*g*c, {GROUPED}, {BY_ROWS}) |> {level}(d, p)(f)"
        f" |> reorder(q*g*c, {BY_ROWS}, {GROUPED})",
        sizes=("d", "p", "q", "g", "c"),
        meaning="The order in which they take the elements of a q*g × c matrix.",
    )
    for level in ("mapBlockPersistent", "mapClusterPersistent")
)
