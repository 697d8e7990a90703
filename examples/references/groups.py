"""References of products whose second matrix is chosen by data."""

# ruff: noqa: N803  # matrices are called A, B, C

from __future__ import annotations

from itertools import pairwise

import numpy as np

from references.reference import Array, Reference, References, sizes

# by how many groups there are: one of one row; four rows, none, seven
OFFSETS = {1: (0, 1), 3: (0, 4, 4, 11)}
OF_GROUPS = sizes(g=(1, 3), r=(1, 11), h=(1, 3), t=(2, 6), c=(1, 2), b=(1, 2), p=(1, 4))
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


def is_short(tile: Tile, h: int) -> bool:
    return 2 * (tile[2] - tile[1]) <= h - h % 2


def last_ones(tiles: int, short: int, *, c: int, p: int) -> int:
    """Of tiles that are left for a last time of p, how many rows, if as many short ones come before."""
    left = tiles * c % p
    rows = -(-left // c)
    fit = tiles * c >= p and 2 * rows <= short and 2 * rows * c <= p + left
    return rows if fit else 0


def moved(offsets: Array, *, h: int, c: int, p: int) -> list[Tile]:
    """The short tiles that are not where their groups are."""
    there = tiles_of(offsets, h)
    short = [tile for tile in there if is_short(tile, h)]
    return short[: 2 * last_ones(len(there), len(short), c=c, p=p)]


def in_order(offsets: Array, *, h: int, c: int, b: int, p: int) -> list[tuple[Tile, int]]:
    """Tiles with blocks of columns: band by band, but for short ones that end the last two turns."""
    there, short = tiles_of(offsets, h), moved(offsets, h=h, c=c, p=p)
    found: list[tuple[Tile, int]] = []
    for group in range(len(offsets) - 1):
        mine = [tile for tile in there if tile[0] == group and tile not in short]
        bands = [mine[first : first + b] for first in range(0, len(mine), b)]
        found += [(tile, column) for band in bands for column in range(c) for tile in band]
    ends = [(tile, column) for tile in short for column in range(c)]
    turn = (len(there) * c // p - 1) * p
    half = len(ends) // 2
    return [*found[:turn], *ends[:half], *found[turn:], *ends[half:]] if ends else found


def tiles(offsets: Array, *, t: int, h: int, c: int, b: int, p: int, r: int, g: int) -> Array:
    """Behind the last tile such as start behind all rows, with none."""
    found = [
        (group * c + column, start, end - start)
        for (group, start, end), column in in_order(offsets, h=h, c=c, b=b, p=p)
    ]
    found += [((g - 1) * c + number % c, r, 0) for number in range(len(found), t * c)]
    blocks, starts, rows = (np.array(part) for part in zip(*found, strict=True))
    return blocks, (starts, rows)


def number_of_tiles(offsets: Array, *, h: int, c: int) -> Array:
    return np.array([len(tiles_of(offsets, h)) * c])


def owners(offsets: Array, *, h: int, c: int, b: int, p: int, r: int) -> Array:
    """Each tile says of which part of which row it is the owner."""
    found = np.zeros((offsets[-1], c), int)
    for number, ((_, start, end), column) in enumerate(in_order(offsets, h=h, c=c, b=b, p=p)):
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
    "before": Reference(lambda xs: np.concatenate([[0], np.cumsum(xs)]), sizes(g=(1, 5))),
    "tilesOfEach": Reference(
        lambda offsets, *, h: np.array([len(range(*rows, h)) for rows in pairwise(offsets)]),
        sizes(g=(1, 3), h=(1, 3)),
        domains={"offsets": offsets},
    ),
    "shortOfEach": Reference(
        lambda offsets, *, h, g: np.bincount(
            [tile[0] for tile in tiles_of(offsets, h) if is_short(tile, h)], minlength=g
        ),
        sizes(g=(1, 3), h=(1, 3)),
        domains={"offsets": offsets},
    ),
    "lastOnes": Reference(
        last_ones, sizes(c=(1, 3, 2), p=(1, 4, 7)), domains={"tiles": (0, 30), "short": (0, 9)}
    ),
    "lastOfEach": Reference(
        lambda offsets, *, h, c, p, g: np.bincount(
            [tile[0] for tile in moved(offsets, h=h, c=c, p=p)], minlength=g
        ),
        sizes(g=(1, 3, 3), h=(1, 3, 3), c=(1, 2, 1), p=(1, 3, 4)),
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
        lambda offsets, row, *, h, c, b, p, r: owners(offsets, h=h, c=c, b=b, p=p, r=r)[row::r],
        OF_GROUPS,
        domains={"offsets": offsets},
    ),
    "ownersOfRows": Reference(owners, OF_GROUPS, domains={"offsets": offsets}),
    "numberOfTiles": Reference(
        number_of_tiles, sizes(g=(1, 3), h=(1, 3), c=(1, 2), t=(2, 6)), domains={"offsets": offsets}
    ),
    "tables": Reference(
        lambda offsets, *, t, h, c, b, p, r, g: (
            (tiles(offsets, t=t, h=h, c=c, b=b, p=p, r=r, g=g), number_of_tiles(offsets, h=h, c=c)),
            owners(offsets, h=h, c=c, b=b, p=p, r=r),
        ),
        OF_GROUPS,
        domains={"offsets": offsets},
    ),
    "rowsOfTiles": Reference(rows_of_tiles, sizes(t=(1, 5), h=(1, 3), c=(1, 2), r=(1, 7), g=(1, 2))),
    "productsOfTiles": Reference(of_tiles, OF_TILES),
    "groupedProducts": Reference(grouped, OF_TILES),
}
