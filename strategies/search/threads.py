"""Which tile `cuda_core` has for reductions of all pairs of rows: the first of a model that builds.

The figures are of 21 products and distances in f32 on an H100, with ten tiles each, and with up to 16 blocks
that share the reductions of a tile. The one that is ranked first takes 1.02 times as long as the best one in
the mean, and 1.12 times at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, exp, gcd, prod

from rewrites.result import Success
from rise.errors import RiseError
from rise.expr import Expr, call
from rise.instructions import OPERANDS, Family
from rise.types import Scalar, shape
from strategies.abstraction import outermost_parts
from strategies.matmul.cuda_core import Tile
from strategies.matmul.products import Product, is_product
from strategies.matmul.rounding import Row, sums
from strategies.matmul.staging import WIDEST
from strategies.matmul.thread_tiles import Operand, is_turned
from strategies.result_views import computed_in
from strategies.search.choice import Choice, Search, nothing_tried
from strategies.search.hardware import Gpu
from strategies.search.problem import body_of, outlined, separated
from strategies.search.space import Point

TRIED = 4  # tiles, of those that are ranked first
FEW = 2**18  # pairs of elements, up to where an element a thread is as fast
SPLIT = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PIPES = 128  # operations of f32 that a multiprocessor does in a cycle
FILL = 2450  # cycles until a block has its first tiles, and until its results are stored
ALONE = 8  # operations that an element costs which a thread copies by itself
SUM = 4  # bytes of a result of some of the blocks that share a tile
MATRIX = 2  # dimensions


@dataclass(frozen=True)
class Part:
    """The rows and columns of a thread, and how fast threads are that have so many.

    reached: the fraction of a multiprocessor's operations that many warps reach
    warps:   of a multiprocessor at most, by registers
    hidden:  how many of them reach 63 % of that
    """

    sizes: tuple[int, int]
    reached: float
    warps: int
    hidden: float

    def rate(self, warps: int) -> float:
        """Operations that a multiprocessor does in a cycle with so many warps."""
        return PIPES * self.reached * (1 - exp(-warps / self.hidden))


WIDE, NARROW = Part((12, 6), 0.76, 12, 3), Part((8, 3), 0.6, 20, 5)
TALL, SQUARE, SMALL = Part((16, 8), 0.76, 8, 2.2), Part((8, 8), 0.78, 12, 3.1), Part((4, 4), 0.64, 24, 6)
# a block by m, n and the depth of a step, a warp of it, and the part of a thread
Tiled = tuple[tuple[int, int, int], tuple[int, int], Part]
TILES: tuple[Tiled, ...] = (
    ((128, 256, 16), (32, 128), TALL),
    ((128, 128, 16), (64, 32), SQUARE),
    ((64, 256, 16), (32, 64), SQUARE),
    ((64, 128, 16), (64, 32), SQUARE),
    ((32, 128, 16), (32, 64), SQUARE),
    ((64, 64, 16), (64, 32), SQUARE),
    ((96, 96, 16), (48, 48), WIDE),
    ((64, 48, 16), (32, 24), NARROW),
    ((64, 64, 16), (32, 16), SMALL),
    ((32, 64, 16), (32, 16), SMALL),
    ((16, 64, 32), (16, 32), SMALL),
    ((32, 32, 32), (32, 16), SMALL),
)


@dataclass(frozen=True)
class Pairs:
    """batch matrices of m × n elements, each of which reduces k pairs.

    ragged: whether these may be made more, by zeros
    alone:  of each operand, how many copies an element takes: a part of one where threads copy vectors
    """

    m: int
    n: int
    k: int
    batch: int
    ragged: bool = True
    alone: tuple[float, float] = (1, 0.25)

    @classmethod
    def of(cls, program: Expr) -> Pairs | None:
        """Of a closed program; None where it has no such matrix, or where its sizes are not all numbers."""
        inner = computed_in(body_of(program)) or body_of(program)
        found = outlined(inner)
        products = outermost_parts(found, is_product) if found is not None else []
        if not products:
            return None
        sizes = [size.value for size in shape(products[0].type)[0]]
        outer = [size.value for size in shape(inner.type)[0][:-MATRIX]]
        known = [size for size in (*outer, *sizes, Product.of(products[0]).length.value) if size is not None]
        if len(known) < len(outer) + MATRIX + 1:
            return None
        *batch, m, n, k = known
        ragged = isinstance(sums(k + 1)(products[0]), Success)
        alone = [
            max(map(_copies, Operand.of(matrix).matrices)) for matrix in Product.of(products[0]).operands
        ]
        return cls(m, n, k, prod(batch), ragged, (alone[0], alone[1]))

    @property
    def count(self) -> int:
        return self.m * self.n * self.k * self.batch

    def splits(self, depth: int) -> Iterator[int]:
        """How many blocks may share the reductions of a tile."""
        for split_k in SPLIT:
            if split_k == 1 or (self.batch == 1 and (self.ragged or self.k % (split_k * depth) == 0)):
                yield split_k

    def cycles(self, tile: Tiled, split_k: int, gpu: Gpu) -> float:
        """An estimate, of a multiprocessor with the most blocks: it has as many at a time as have room."""
        (rows, columns, depth), warp, part = tile
        steps = ceil(self.k / (split_k * depth)) * depth
        blocks = ceil(self.m / rows) * ceil(self.n / columns) * self.batch * split_k
        warps = rows * columns // prod(warp)
        room = max(1, part.warps // warps)
        turns, rest = divmod(ceil(blocks / gpu.multiprocessors), room)

        pairs = rows * columns + ALONE * (rows * self.alone[0] + columns * self.alone[1])

        def turn(count: int) -> float:
            return FILL + count * pairs * steps / part.rate(count * warps) if count else 0

        results = SUM * self.m * self.n * self.batch
        read = SUM * self.k * (self.m + self.n) * self.batch
        added = 2 * (2 * split_k + 1) * results / gpu.dram_rate if split_k > 1 else 0
        return max(turns * turn(room) + turn(rest), (read + results) / gpu.dram_rate) + added


def _copies(row: Row | None) -> float:
    """How many copies an element takes."""
    if row is None or is_turned(row):
        return 1
    return 1 / gcd(WIDEST // row.width, row.size.factor)


def points(pairs: Pairs, gpu: Gpu) -> Iterator[Point]:
    """Tiles, and how many blocks share the reductions of each; the fastest first.

    The second is the first again, for rows that start anywhere: threads copy their elements one by one.
    """
    tiles = [(tile, split_k) for tile in TILES for split_k in pairs.splits(tile[0][2])]
    asynchronous = Family.MMA in gpu.sustained  # from sm_80 on there are both
    ranked = sorted(tiles, key=lambda point: pairs.cycles(point[0], point[1], gpu))
    for number, ((block, warp, part), split_k) in enumerate(ranked):
        tile = Tile(block, warp, part.sizes, split_k=split_k, cp_async=asynchronous)
        yield Point.of("cuda_core", tile.changes)
        if number == 0:
            yield Point.of("cuda_core", replace(tile, vector=1).changes)


def by_threads(search: Search, program: Expr) -> tuple[Choice, Success] | None:
    """The kernel of a closed program that reduces all pairs of rows of matrices; None where it is none."""
    try:
        pairs = Pairs.of(search.expected.at(program))
    except RiseError:  # of a rule that does not take the program
        return None
    if pairs is None or pairs.count <= FEW:
        return None
    for point in islice(points(pairs, search.gpu), TRIED):
        result = search.attempt(point, program)
        if isinstance(result, Success):
            return Choice(point, "all pairs of rows are reduced, by threads that have parts of tiles"), result
    return None


def beyond_instructions(search: Search, program: Expr) -> str | None:
    """Why no instructions compute some product of a program; None where there may be some."""
    found = separated(program)
    products = outermost_parts(found, is_product) if found is not None else []
    return next((why for part in products if (why := _beyond(search, part)) is not None), None)


def _beyond(search: Search, product: Expr) -> str | None:
    found = Product.of(product)
    operator = call(body_of(found.operator))
    name = operator[0] if operator is not None else getattr(body_of(found.operator), "name", "")
    if name != "add":
        return "instructions add, and this is another reduction"
    elements = (shape(matrix.type)[1] for matrix in found.operands)
    others = (e for e in elements if not (isinstance(e, Scalar) and e.name in OPERANDS))
    other = next(others, None)
    return None if other is None else nothing_tried(search, str(other))
