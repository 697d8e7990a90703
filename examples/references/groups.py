"""References of products whose second matrix is chosen by data."""

# ruff: noqa: N803  # matrices are called A, B, C

from __future__ import annotations

from itertools import pairwise

import numpy as np

from references.reference import Array, Reference, References, sizes

# by how many groups there are: one of one row; four rows, none, seven
OFFSETS = {1: (0, 1), 3: (0, 4, 4, 11)}
OF_GROUPS = sizes(g=(1, 3), r=(1, 11), h=(1, 3), t=(2, 6), c=(1, 2), b=(1, 2))
OF_TILES = sizes(t=(1, 5), h=(1, 3), c=(1, 2), w=(1, 3), r=(1, 7), k=(1, 11), g=(1, 2))
Tile = tuple[int, int, int]  # its group, and in this one its first row and the row behind it


def offsets(_: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.array(OFFSETS[shape[0] - 1])


def tiles_of(offsets: Array, h: int) -> list[Tile]:
    """The tiles of rows, group by group."""
    return [
        (group, row, min(row + h, end))
        for group, (start, end) in enumerate(pairwise(offsets))
        for row in range(start, end, h)
    ]


def in_order(offsets: Array, *, h: int, c: int, b: int) -> list[tuple[Tile, int]]:
    """Tiles with blocks of columns, band by band."""
    there = tiles_of(offsets, h)
    found: list[tuple[Tile, int]] = []
    for group in range(len(offsets) - 1):
        mine = [tile for tile in there if tile[0] == group]
        bands = [mine[first : first + b] for first in range(0, len(mine), b)]
        found += [(tile, column) for band in bands for column in range(c) for tile in band]
    return found


def tiles(offsets: Array, *, t: int, h: int, c: int, b: int, r: int, g: int) -> Array:
    """Behind the last tile such as start behind all rows, with none."""
    found = [
        (group * c + column, start, end - start)
        for (group, start, end), column in in_order(offsets, h=h, c=c, b=b)
    ]
    found += [((g - 1) * c + number % c, r, 0) for number in range(len(found), t * c)]
    blocks, starts, rows = (np.array(part) for part in zip(*found, strict=True))
    return blocks, (starts, rows)


def number_of_tiles(offsets: Array, *, h: int, c: int) -> Array:
    return np.array([len(tiles_of(offsets, h)) * c])


def owners(offsets: Array, *, h: int, c: int, b: int, r: int) -> Array:
    """Each tile says of which part of which row it is the owner."""
    found = np.zeros((offsets[-1], c), int)
    for number, ((_, start, end), column) in enumerate(in_order(offsets, h=h, c=c, b=b)):
        found[start:end, column] = number * h + np.arange(end - start)
    return found[:r].T.reshape(-1)


def of_tiles(X: Array, W: Array, tiles: Array, *, h: int, c: int) -> Array:
    """Row i of a tile is the i-th from its first one on, zeros behind the last."""
    blocks, (starts, _) = tiles
    rows = np.concatenate([X, np.zeros((h, X.shape[1]))])
    columns = W.reshape(len(W) * c, -1, W.shape[2])
    return rows[starts[:, None] + np.arange(h)] @ columns[blocks].swapaxes(1, 2)


def rows_of_tiles(tiles: Array, *, h: int, c: int, r: int) -> Array:
    blocks, (starts, _) = tiles
    rows = np.minimum(starts[:, None] + np.arange(h), r - 1)
    return ((blocks % c)[:, None] * r + rows).reshape(-1)


def grouped(
    X: Array, W: Array, tiles: Array, count: Array, owners: Array, *, h: int, c: int
) -> Array:  # fmt: skip
    """Tile by tile: each of its rows that is its group's, where it owns a part of a row."""
    blocks, (starts, rows) = tiles
    products = of_tiles(X, W, tiles, h=h, c=c)
    result = np.full((len(X) * c, W.shape[1] // c), np.nan)
    for tile in range(int(count[0])):
        for row in range(int(rows[tile])):
            place = blocks[tile] % c * len(X) + min(starts[tile] + row, len(X) - 1)
            if owners[place] == tile * h + row:
                result[place] = products[tile, row]
    return result.reshape(c, len(X), -1).swapaxes(0, 1).reshape(len(X), -1)


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
    "tilesOfEach": Reference(
        lambda offsets, *, h: np.array([len(range(*rows, h)) for rows in pairwise(offsets)]),
        sizes(g=(1, 3), h=(1, 3)),
        domains={"offsets": offsets},
    ),
    "tilesBefore": Reference(
        lambda offsets, *, h: np.array([len(tiles_of(offsets[: 1 + g], h)) for g in range(len(offsets))]),
        sizes(g=(1, 3), h=(1, 3)),
        domains={"offsets": offsets},
    ),
    "bandOf": Reference(
        lambda start, end, tile, *, b: next(
            (
                (band[0], len(band))
                for first in range(start, end, b)
                if tile in (band := range(first, min(first + b, end)))
            ),
            (tile, 1),
        ),
        sizes(b=(1, 3)),
        domains={"start": (0, 9), "end": (9, 20), "tile": (9, 25)},
    ),
    "tilesOfGroups": Reference(tiles, OF_GROUPS, domains={"offsets": offsets}),
    "ownersOfRow": Reference(
        lambda offsets, row, *, h, c, b, r: owners(offsets, h=h, c=c, b=b, r=r)[row::r],
        OF_GROUPS,
        domains={"offsets": offsets},
    ),
    "ownersOfRows": Reference(owners, OF_GROUPS, domains={"offsets": offsets}),
    "numberOfTiles": Reference(
        number_of_tiles, sizes(g=(1, 3), h=(1, 3), c=(1, 2), t=(2, 6)), domains={"offsets": offsets}
    ),
    "tables": Reference(
        lambda offsets, *, t, h, c, b, r, g: (
            (tiles(offsets, t=t, h=h, c=c, b=b, r=r, g=g), number_of_tiles(offsets, h=h, c=c)),
            owners(offsets, h=h, c=c, b=b, r=r),
        ),
        OF_GROUPS,
        domains={"offsets": offsets},
    ),
    "rowsOfTiles": Reference(rows_of_tiles, sizes(t=(1, 5), h=(1, 3), c=(1, 2), r=(1, 7), g=(1, 2))),
    "productsOfTiles": Reference(of_tiles, OF_TILES),
    "groupedProducts": Reference(grouped, OF_TILES),
    "productsOfGroups": Reference(
        lambda X, W, offsets: np.concatenate(
            [X[start:end] @ part.T for part, (start, end) in zip(W, pairwise(offsets), strict=True)]
        ),
        sizes(g=(1, 3), r=(1, 11), h=(1, 3), t=(2, 6), c=(1, 2), w=(1, 3), b=(1, 2), k=(1, 11)),
        domains={"offsets": offsets},
    ),
}
