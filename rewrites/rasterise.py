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
# the same of groups of g*s rows, where the last one has as many as are left of r*s, and s neighbours in a
# column stay together, as those of a cluster do
_PAIR, _FIRST = "i / s", "i / s / (g*c) * g"
_HEIGHT = "min(g, r - i / s / (g*c) * g)"
GROUPED_TO_THE_END = (
    f"natFun(i => ({_FIRST} + {_PAIR} % (g*c) % {_HEIGHT}) * s * c + i % s * c + {_PAIR} % (g*c) / {_HEIGHT})"
)
_ROW, _ABOVE = "t / c / s", "t / c / s / g * g"
BY_ROWS_TO_THE_END = (
    f"natFun(t => ({_ABOVE} * c + t % c * min(g, r - {_ABOVE}) + {_ROW} % g) * s + t / c % s)"
)

RASTERISE_TO_THE_END = rule(
    "*f, in groups of rows, the last one shorter",
    "xs |> map(f)",
    f"xs |> reorder(r*s*c, {GROUPED_TO_THE_END}, {BY_ROWS_TO_THE_END}) |> map(f)"
    f" |> reorder(r*s*c, {BY_ROWS_TO_THE_END}, {GROUPED_TO_THE_END})",
    sizes=("r", "s", "g", "c"),
    meaning="The elements of an r*s × c matrix in one list, in groups of g*s rows, the last one of those that"
    " are left, column by column in each.",
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
