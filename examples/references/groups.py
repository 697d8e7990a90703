"""References of products whose second matrix is chosen by data."""

# ruff: noqa: N803  # matrices are called A, B, C

from __future__ import annotations

from itertools import pairwise

import numpy as np

from references.reference import Array, Reference, References, sizes

# by how many groups there are: one of one row; four rows, none, seven
OFFSETS = {1: (0, 1), 3: (0, 4, 4, 11)}
TILE = {1: 1, 3: 3}  # rows of a tile
OF_GROUPS = sizes(g=(1, 3), r=(1, 11), h=(1, 3), t=(2, 6))


def offsets(_: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.array(OFFSETS[shape[0] - 1])


def tiles(offsets: Array, *, t: int, h: int, r: int, g: int) -> Array:
    """Group by group the first rows of its tiles, then tiles behind all rows."""
    found = [(group, row) for group in range(g) for row in range(offsets[group], offsets[group + 1], h)]
    found += [(g - 1, r)] * (t - len(found))
    return tuple(np.array(part) for part in zip(*found, strict=True))


def number_of_tiles(offsets: Array, *, h: int) -> Array:
    return np.array([sum(-(-(end - start) // h) for start, end in pairwise(offsets))])


def owners(offsets: Array, *, h: int, r: int, g: int) -> Array:
    """Counted row by row: a group begins with the next whole tile."""
    found: list[int] = []
    place = 0
    for group in range(g):
        rows = offsets[group + 1] - offsets[group]
        found += range(place, place + rows)
        place += -(-rows // h) * h
    return np.array(found[:r])


def of_tiles(X: Array, W: Array, tiles: Array, *, h: int) -> Array:
    """Row i of a tile is the i-th from its first one on, zeros behind the last."""
    groups, starts = tiles
    rows = np.concatenate([X, np.zeros((h, X.shape[1]))])
    return rows[starts[:, None] + np.arange(h)] @ W[groups].swapaxes(1, 2)


def rows_of_tiles(tiles: Array, *, h: int, r: int) -> Array:
    _, starts = tiles
    return np.minimum(np.concatenate([np.arange(start, start + h) for start in starts]), r - 1)


def grouped(X: Array, W: Array, tiles: Array, count: Array, owners: Array, *, h: int) -> Array:
    """Group by group: each row of a tile, up to the first of the next."""
    groups, starts = tiles
    products = of_tiles(X, W, tiles, h=h)
    result = np.full((len(X), W.shape[1]), np.nan)
    for tile in range(int(count[0])):
        for row in range(h):
            place = min(starts[tile] + row, len(X) - 1)
            if owners[place] == tile * h + row:
                result[place] = products[tile, row]
    return result


GROUPS: References = {
    "bf16Dot": Reference(lambda xs, ys: xs @ ys, sizes(n=(1, 11))),
    "linear": Reference(lambda A, W: A @ W.T, sizes(m=(1, 5), n=(1, 7), k=(1, 11))),
    "chosenProducts": Reference(
        lambda As, Bs, firsts, seconds: As[firsts] @ Bs[seconds].swapaxes(1, 2),
        sizes(b=(1, 5), c=(1, 3), d=(1, 2), m=(1, 3), n=(1, 7), k=(1, 11)),
    ),
    "tiledGroups": Reference(
        lambda X, W, groups, *, h: np.einsum("rk,rnk->rn", X, W[np.repeat(groups, h)]),
        sizes(t=(1, 5), h=(1, 3), n=(1, 7), k=(1, 11), g=(1, 2)),
    ),
    "notAbove": Reference(lambda ends, x: (ends <= x).sum(), sizes(g=(1, 5))),
    "tilesOf": Reference(
        lambda start, end, *, h: len(range(start, end, h)),
        sizes(h=(1, 3, 7)),
        domains={"start": (0, 9), "end": (9, 30)},
    ),
    "tilesOfGroups": Reference(tiles, OF_GROUPS, domains={"offsets": offsets}),
    "tilesBefore": Reference(
        lambda offsets, row, *, h: sum(
            len(range(start, end, h)) for start, end in pairwise(offsets) if end <= row
        ),
        sizes(g=(1, 3), h=(1, 3)),
        domains={"offsets": offsets},
    ),
    "ownersOfRows": Reference(owners, OF_GROUPS, domains={"offsets": offsets}),
    "numberOfTiles": Reference(
        number_of_tiles, sizes(g=(1, 3), h=(1, 3), t=(2, 6)), domains={"offsets": offsets}
    ),
    "tables": Reference(
        lambda offsets, *, t, h, r, g: (
            (tiles(offsets, t=t, h=h, r=r, g=g), number_of_tiles(offsets, h=h)),
            owners(offsets, h=h, r=r, g=g),
        ),
        OF_GROUPS,
        domains={"offsets": offsets},
    ),
    "rowsOfTiles": Reference(rows_of_tiles, sizes(t=(1, 5), h=(1, 3), r=(1, 7), g=(1, 2))),
    "productsOfTiles": Reference(
        of_tiles, sizes(t=(1, 5), h=(1, 3), r=(1, 7), n=(1, 5), k=(1, 11), g=(1, 2))
    ),
    "groupedProducts": Reference(grouped, sizes(t=(1, 5), h=(1, 3), r=(1, 7), n=(1, 5), k=(1, 11), g=(1, 2))),
}
