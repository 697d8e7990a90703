"""Which programs are one pass over products and reductions of rows, and the parameters tried for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, prod
from typing import Any

from rewrites.algorithmic import is_reduction
from rewrites.beside import beside
from rewrites.elements import NotPointwise
from rewrites.folds import System, factored, is_float, of_rows, operator_name
from rewrites.result import Success
from rise.expr import Expr, Primitive, call, children, subterms
from rise.instructions import Family
from rise.nat import Nat
from rise.progress import stepwise
from rise.types import Array, Index
from strategies.contiguity import starts_of_rows
from strategies.matmul.instructions import DEPTH, WARPGROUPS, WARPS, WIDEST
from strategies.matmul.kernels import has_product
from strategies.matmul.one_pass import OPERAND_BYTES, counted, one_map
from strategies.matmul.parts import dimensions
from strategies.nests import listed_rows
from strategies.places import as_one_array
from strategies.result_views import computed_in
from strategies.search.choice import Choice, Search
from strategies.search.hardware import Gpu
from strategies.search.masks import Mask, mask_of
from strategies.search.problem import body_of
from strategies.search.space import Point

TRIED, TRIED_BY_WARPS = 6, 2
# by warpgroups
WARPGROUP_ROWS = 64
ROWS, COLUMNS, STAGES = (192, 128, 64), (128, 112, 96, 80, 64, 48, 32, 16), (3, 2)
# how busy tensor cores are, by the rows of a block: warpgroups compute while others wait for their products
BUSY = {192: 1.0, 128: 0.85, 64: 0.5}
DEEP = 128  # columns of a block from which on products keep tensor cores as busy as longer ones
SHALLOW = 0.3  # the power of columns / DEEP by which shorter ones keep them less busy: measured
# what starts and ends a tile takes, in columns: longer where lanes store its rows than through shared memory
START_AND_END = {True: 240, False: 360}
# the same where blocks persist, and load the rows of the next tile ahead: measured
START_AND_END_AHEAD = {True: 110, False: 300}
# how much busier a skewed step keeps tensor cores; from so many terms of the first product's sums, and
# columns of a block, on: measured
SKEWED, SKEWED_DEPTH, SKEWED_COLUMNS = {192: 1.0, 128: 1.08, 64: 1.08}, 128, 64
# the same where two warpgroups take turns: of fewer terms
IN_TURN = 1.04
# the same where three take turns at steps that are not skewed, whose scores are sums: measured
SUMS_IN_TURN = 1.16
TURNING = 128  # rows
MASKED = 0.3  # what a block takes longer whose scores are compared
RESERVED = 1024 + 512  # bytes of shared memory: alignment, and mbarriers
OTHER_REGISTERS = 40  # of a thread: addresses, and what is kept for each row
# elements, 16 bytes: a thread copies as many at once, and the copying unit takes rows of multiples
IN_BULK = 8
# by warps: rows and columns of a block, rows of a warp
WARP_ROWS, WARP_COLUMNS, FRAGMENTS = (128, 64, 32, 16), (128, 64, 32), (32, 16)
# an estimate of how busy tensor cores are, by the rows of a warp: they share its second operands
BUSY_WARPS = {32: 1.0, 16: 0.7}
PARTITIONS = 4  # of a multiprocessor, each with tensor cores of its own: fewer warps leave some idle
STEP, START = 16, 64  # an estimate of what a step, and a tile, takes besides its products, in columns
# scores, weights and results in registers of a thread, beside which ptxas needs no stack: measured for sm_80
KEPT_REGISTERS = 192
SLOTS, PADDING = 2, 8  # of operands in shared memory: blocks, and elements between rows
SHARED = 99 * 1024  # bytes of a block that every GPU with these instructions has
# an estimate of what a kernel that combines parts takes, and each part of it, in columns
COMBINED, PART = 200, 6
LEAST_BLOCKS = 2  # of columns, of a part
ORDERS = ((True, True), (True, False), (False, True), (False, False))  # of steps: skewed, in turn
# terms of a product whose rows are only reduced, up to which warpgroups keep them in shared memory: measured
RESIDENT_DEPTH = 384
WHY = "its products and the reductions of their rows are one pass"


Cost = Callable[[dict[str, Any], Gpu], float]


@dataclass(frozen=True)
class Pass:
    """The sizes of such a program: batch × (rows × depth) · (depth × length) · (length × columns).

    masked:   whether rows may have different parts of the length
    mask:     which parts, where that is known
    summed:   whether maxima are of sums of products and other numbers
    by_parts: whether a product's kernel can reduce the rows in parts
    apart:    rows of operands are known to start at multiples of so many elements
    cut:      whether other numbers than zeros may be behind the last of what is reduced
    """

    batch: int
    rows: int
    length: int
    depth: int
    columns: int
    masked: bool = False
    mask: Mask | None = None
    summed: bool = False
    by_parts: bool = False
    apart: int = IN_BULK
    cut: bool = False

    @classmethod
    def of(cls, program: Expr) -> Pass | None:
        """Of a closed program; None where there is nothing to gain: a product, or reductions, alone."""
        whole = body_of(program)
        whole = computed_in(whole) or whole
        together = one_map(whole)
        matrices = together.term if isinstance(together, Success) else whole
        counts, body = counted(matrices)
        if not isinstance(body.type, Array) or dimensions(body) != 2 or 0 in counts:
            return None
        try:
            found = _sizes(factored(of_rows(body)), prod(counts))
        except NotPointwise:
            return None
        if found is None:
            return None
        by_parts = found.columns == 0 and _is_beside(whole if counts else body)
        cut = found.is_cut(matrices, body)
        return replace(found, by_parts=by_parts, apart=found.apart_in(matrices), cut=cut)

    def apart_in(self, program: Expr) -> int:
        """The largest number of elements that is known to divide where rows of operands start."""
        starts = starts_of_rows(program, {self.depth, self.columns})
        return gcd(self.depth, self.columns, *(start.factor for start in starts))

    def is_cut(self, program: Expr, matrix: Expr) -> bool:
        """Whether an array other than the rows is cut to the length that is reduced."""
        found = call(matrix)
        rows = set(map(id, subterms(found[2][-1]))) if found is not None and found[0] == "map" else set()
        parts = [call(part) for part in subterms(program) if id(part) not in rows]
        taken = (head.arguments[0] for name, head, _ in filter(None, parts) if name == "take")
        return any(_known(size) == self.length for size in taken)

    def is_faster_by_parts(self, gpu: Gpu) -> bool:
        """Whether rows that are only reduced are reduced faster by the parts that a product's kernel has."""
        resident = self.depth % IN_BULK == 0 and self.depth <= RESIDENT_DEPTH
        return Family.WGMMA in gpu.sustained and self.by_parts and not resident

    def candidates(self, gpu: Gpu) -> list[dict[str, Any]]:
        """Parameters of `one_pass`, those first that are expected to be faster.

        By warpgroups where the GPU has them and they take operands of this size, else by warps.
        """
        by_warpgroups = Family.WGMMA in gpu.sustained and self.apart % IN_BULK == 0
        if by_warpgroups and (found := self._by_warpgroups(gpu)):
            return found
        return self.by_warps(gpu) if Family.MMA in gpu.sustained else []

    @property
    def deep(self) -> int:
        """The terms of the first product's sums, in whole fragments."""
        return -(-self.depth // DEPTH) * DEPTH

    def by_warps(self, gpu: Gpu) -> list[dict[str, Any]]:
        """Parameters with which warps compute, those first that are expected to be faster."""
        vector = gcd(IN_BULK, self.apart)
        found: list[dict[str, Any]] = [
            {"rows": rows, "columns": columns, "fragment": fragment, "vector": vector}
            for rows, columns, fragment in product(WARP_ROWS, WARP_COLUMNS, FRAGMENTS)
            if rows % fragment == 0 and self._fits_warps(rows, columns, fragment, gpu)
        ]
        found += [point | parts for point in found if (parts := self._parts(point, gpu, self._cost_by_warps))]

        def order(point: dict[str, Any]) -> tuple[float, int, int]:
            """Of equal ones, those that load operands less often, then those with fewer rows too many."""
            rows = point["rows"]
            return self._cost_by_warps(point, gpu), -(-self.rows // rows), rows

        return _of_each_kind(sorted(found, key=order), "parts")

    def _fits_warps(self, rows: int, columns: int, fragment: int, gpu: Gpu) -> bool:
        wide = WARPS.width(fragment, self.columns)
        shared = rows * (self.deep + PADDING) + SLOTS * columns * (self.deep + wide + 2 * PADDING)
        kept = fragment * (wide + columns + columns // 2) // WARPS.threads
        room = min(SHARED, gpu.limits.shared_bytes)
        return wide <= WIDEST and OPERAND_BYTES * shared <= room and kept <= KEPT_REGISTERS

    def _cost_by_warps(self, point: dict[str, Any], gpu: Gpu) -> float:
        """Rounds of blocks, as for warpgroups; also with the rows that nobody asked for."""
        rows, columns, fragment = (int(point[name]) for name in ("rows", "columns", "fragment"))
        busy = BUSY_WARPS[fragment] * min(1.0, rows / fragment / PARTITIONS)
        return self._rounds(point, gpu, columns + STEP, START) * rows / busy

    def _rounds(self, point: dict[str, Any], gpu: Gpu, step: int, start: int) -> float:
        """The rounds of blocks, times the columns of each; with those that combining parts takes."""
        rows, columns, parts = int(point["rows"]), int(point["columns"]), int(point.get("parts", 1))
        blocks = self.batch * -(-self.rows // rows) * parts
        steps = self._steps(rows, columns, parts)
        if parts == 1:
            return -(-blocks // gpu.multiprocessors) * (steps * step + start)
        # sums of a part are written and read in 32 bits, where a column of operands is read in 16
        stored = min(rows, self.rows) * self.columns * 8 // (2 * (self.depth + self.columns))
        rounds = -(-blocks // gpu.multiprocessors) * (steps * step + start + stored)
        return rounds + COMBINED + PART * parts

    def _steps(self, rows: int, columns: int, parts: int) -> float:
        """How many blocks of columns a tile visits in each part, on average; some of these take longer."""
        if self.mask is None:
            return -(-self.length // (columns * parts))
        visited, cut = self.mask.blocks(rows, columns, self.rows, self.length)
        return max((visited + MASKED * cut) / parts, 1.0)

    def _parts(self, point: dict[str, Any], gpu: Gpu, cost: Cost) -> dict[str, int]:
        """In how many parts the length is best, where tiles are fewer than multiprocessors."""
        tiles = self.batch * -(-self.rows // point["rows"])
        most = min(gpu.multiprocessors, self.length // (LEAST_BLOCKS * point["columns"]))
        if tiles >= gpu.multiprocessors or most < 2:
            return {}
        by_warps = "fragment" in point
        numbers = (n for n in range(1, most + 1) if by_warps or self._takes(point | {"parts": n}))
        parts = min(numbers, key=lambda parts: cost(point | {"parts": parts}, gpu), default=1)
        return {"parts": parts} if parts > 1 else {}

    def _by_warpgroups(self, gpu: Gpu) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [
            {"rows": rows, "columns": columns, "stages": stages, "bulk_stores": bulk}
            for rows, columns, stages, bulk in product(ROWS, COLUMNS, STAGES, (True, False))
            if self._fits(rows, columns, stages, bulk, gpu)
        ]
        found += [
            point | {"blocks": gpu.multiprocessors, "ahead": ahead, "skewed": skewed, "turns": turns}
            for point, ahead, (skewed, turns) in product(found, (2, 1), ORDERS)
            if self._persists(point, ahead, skewed, turns, gpu)
        ]
        # in parts, numbers of 32 bits are stored, which shared memory may have no room for
        found += [
            point | parts
            for point in found
            if not point["bulk_stores"] and (parts := self._parts(point, gpu, self._cost))
        ]
        found = list(filter(self._takes, found))
        found.sort(key=lambda point: (self._cost(point, gpu), point["stages"], -point.get("ahead", 0)))
        # results that are transposed cannot be stored in bulk; with a mask, tiles may not be boxes in pairs
        return _of_each_kind(found, "bulk_stores", "parts", "blocks")

    def _takes(self, point: dict[str, Any]) -> bool:
        """Whether the copying unit takes the blocks: it puts zeros only behind the end of an array."""
        return not self.cut or self.length % (int(point["columns"]) * int(point.get("parts", 1))) == 0

    def _persists(self, point: dict[str, Any], ahead: int, skewed: bool, turns: bool, gpu: Gpu) -> bool:
        """Whether there are several tiles for each block, and the operands fit.

        With a mask, tiles have to be in pairs, so that blocks have equally much to do.
        """
        rows, columns, stages, bulk = (point[name] for name in ("rows", "columns", "stages", "bulk_stores"))
        several = self.batch > 1 and self.batch * -(-self.rows // rows) > gpu.multiprocessors
        alike = not self.masked or self.rows % (2 * rows) == 0
        useful = not skewed or (self.depth >= SKEWED_DEPTH and columns >= SKEWED_COLUMNS)
        if turns:
            turning = rows == TURNING if skewed else rows == ROWS[0] and self.summed
            useful = turning and columns == DEEP and self.depth < SKEWED_DEPTH
        return several and alike and useful and self._fits(rows, columns, stages, bulk, gpu, ahead, skewed)

    def _fits(
        self, rows: int, columns: int, stages: int, bulk: bool, gpu: Gpu, ahead: int = 1, skewed: bool = False
    ) -> bool:
        wide = WARPGROUPS.width(WARPGROUP_ROWS, self.columns)
        shared = ahead * rows * self.deep + stages * columns * (self.deep + wide) + rows * wide * bulk
        # the weights of a step stay until the next scores are there
        own = columns // 2 + wide // 2 + columns // 8 + OTHER_REGISTERS + columns // 4 * skewed
        limit = {1: 240, 2: 232, 3: 152}[rows // WARPGROUP_ROWS]
        return OPERAND_BYTES * shared + RESERVED <= gpu.limits.shared_bytes and own <= limit

    def _cost(self, point: dict[str, Any], gpu: Gpu) -> float:
        """Rounds of blocks, each as long as it has rows and columns and as tensor cores are not busy."""
        rows, columns = int(point["rows"]), int(point["columns"])
        busy = float(min(1.0, columns / DEEP) ** SHALLOW) * BUSY[rows]
        if point.get("turns"):
            busy *= IN_TURN if point["skewed"] else SUMS_IN_TURN
        elif point.get("skewed"):
            busy *= SKEWED[rows]
        start = (START_AND_END_AHEAD if point.get("ahead") else START_AND_END)[point["bulk_stores"]]
        return self._rounds(point, gpu, columns, start) * rows / busy


def _is_beside(term: Expr) -> bool:
    """Whether a product's kernel can reduce rows in parts, those of arrays as one list."""
    listed = listed_rows(term)
    rows = as_one_array(listed.term) if isinstance(listed, Success) else term
    return beside(rows) is not None and has_product(rows)


def _of_each_kind(found: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """Points in order, but those first that are the best of their kind: with and without what is named."""
    kinds: dict[tuple[bool, ...], dict[str, Any]] = {}
    for point in found:
        kinds.setdefault(tuple(bool(point.get(name)) for name in names), point)
    return [*kinds.values(), *(point for point in found if point not in kinds.values())]


def _sizes(found: System, batch: int) -> Pass | None:
    reductions = [part for fold in found.folds for part in subterms(fold.body) if is_reduction(part)]
    depths = {_length(part) for part in reductions}
    rows = _extent(found.row.type)
    columns = _extent(found.column.type) if found.column is not None else 0  # a number for each row
    length = found.folds[0].size if found.folds else None
    if len(depths) != 1 or None in depths or rows is None or columns is None or _known(length) is None:
        return None
    masked = any(_chooses(part) for fold in found.folds for part in subterms(fold.body))
    own = Pass(batch, rows, _known(length) or 0, depths.pop() or 0, columns, masked)
    summed = any(_adds(fold.body) for fold in found.folds if operator_name(fold.operator) == "max")
    return replace(own, mask=mask_of(found), summed=summed)


def _adds(term: Expr) -> bool:
    """Whether a term has sums of floats outside of reductions."""
    match call(term):
        case (("add" | "sub"), _, _) if is_float(term):
            return True
        case _:
            return not is_reduction(term) and any(map(_adds, children(term)))


def _chooses(term: Expr) -> bool:
    return isinstance(term, Primitive) and term.name == "select"


def _length(reduction: Expr) -> int | None:
    found = call(reduction)
    return _known(found[1].arguments[0]) if found is not None else None


def _extent(type_: object) -> int | None:
    return _known(type_.size) if isinstance(type_, Index) else None


def _known(size: object) -> int | None:
    return size.value if isinstance(size, Nat) else None


def in_one_pass(search: Search, program: Expr) -> tuple[Choice, Success] | None:
    """The first candidate that is a kernel, for a program that is one pass."""
    found = Pass.of(search.expected.at(program))
    if found is None or found.is_faster_by_parts(search.gpu):
        return None
    tried = found.candidates(search.gpu)[:TRIED]
    if tried and "fragment" not in tried[0]:  # warpgroups take only what the copying unit takes
        tried += found.by_warps(search.gpu)[:TRIED_BY_WARPS]
    for number, parameters in stepwise("candidate", enumerate(tried, 1), len(tried)):
        point = Point.of("one_pass", parameters)
        result = search.attempt(point, program)
        if isinstance(result, Success):
            return Choice(
                point, f"{WHY}; candidate {number} of {len(tried)}{search.expected.said(program)}"
            ), result
    return None
