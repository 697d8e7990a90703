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
