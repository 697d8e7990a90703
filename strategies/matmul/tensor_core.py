"""From a high-level product of matrices to tensor cores, for any program whose core is one.

Each phase is a strategy: outline the product, tile the result, block the reduction and bring its loop
out, tile for warps and for fragments, tensorise, keep accumulators fragments, finish on fragments,
choose levels. The phases look for structure (`reduce` under two maps), not for GEMM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import movement as m
from rewrites import tensor as t
from rewrites.pointwise import RESULTS
from rewrites.prologue import ZIP_MAP_OUT_FIRST, ZIP_MAP_OUT_SECOND
from rewrites.rasterise import RASTERISE
from rewrites.registers import (
    LOAD_FIRST,
    TENSORISE_REGISTERS,
    TENSORISE_REGISTERS_SAME,
    TENSORISE_REGISTERS_WHOLE,
)
from rewrites.result import Failure, Result
from rewrites.rule import Rule
from rewrites.split_k import JOIN_MAPS, SLICE_REDUCTION, UNROLL_SUM
from rewrites.tupling import SHARE_FIRST, SHARE_SECOND, TUPLING
from rewrites.views import MAP_SPLIT
from rewrites.zips import ZIP_SAME
from rise.errors import StrategyError
from rise.expr import Expr, call
from rise.instructions import Family, family, shapes
from rise.nat import Nat, nat
from rise.types import Pair, shape
from strategies.abstraction import with_parts_abstracted
from strategies.complete import complete
from strategies.contiguity import contiguity_of
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    all_,
    argument,
    at_child,
    bottom_up,
    check,
    choice,
    depending,
    everywhere,
    function,
    id_,
    normalize,
    prints_as_call,
    recursive,
    repeat,
    seq,
    top_down,
    try_,
)
from strategies.default import lowered
from strategies.matmul import constraints
from strategies.matmul.alignment import aligned_operands, copied
from strategies.matmul.constraints import Schedule
from strategies.matmul.epilogue import direct_epilogue, flatten, is_in_rows, kept_shared, shared_epilogue
from strategies.matmul.kernels import each_product_kernel
from strategies.matmul.products import (
    NO_PRODUCT,
    NOT_IN_BULK,
    bring_prologue,
    bulk_operands,
    computed_operands,
    contains,
    first_inside,
    is_fold,
    is_product,
    outline,
    rank,
    separate_prologue,
)
from strategies.matmul.requirements import PROGRAMS, TILES, Check, fulfils
from strategies.matmul.rounding import rounded_up
from strategies.matmul.split_k import over_blocks
from strategies.matmul.staging import TileCopy, stage
from strategies.normal_forms import form_outward, fuse_once, view_inward
from strategies.places import arguments, computes, in_inputs, mapped
from strategies.settings import parameters_from

VECTORS = (1, 2, 4, 8, 16)
EPILOGUES = ("direct", "shared", "bulk")
NO_CLUSTERS = "matrices of an array are a dimension of the grid that is in no cluster: use `cluster=1`"
NO_MATRIX = "there is no product of matrices: the result is neither a matrix nor an array of matrices"


@dataclass(frozen=True)
class Parameters(Schedule):
    """See `tensor_core`; those that do not change what a schedule needs of a GPU are declared here."""

    load_once: bool = True
    vector: int = 8
    cp_async: bool = True
    prefetch_fragments: bool = False

    @property
    def copies(self) -> TileCopy:
        warps = self.slice_k * (self.block[0] // self.warp[0]) * (self.block[1] // self.warp[1])
        return TileCopy(
            (128 if self.uses_wgmma else 32) * warps,
            self.vector,
            self.padding,
            self.cp_async,
            self.swizzled,
            self.uses_wgmma,
        )


@dataclass(frozen=True)
class Placed(Parameters):
    """What is known of the program.

    row:     how long the rows of the result are, of which tiles may stick out; 0: not known
    in_rows: all that elements of the result are computed from is contiguous along rows
    """

    row: int = 0
    in_rows: bool = True

    @property
    def finishing(self) -> TileCopy:
        """Of rows of the result, by vectors that divide them."""
        return replace(self.copies, vector=gcd(self.vector, self.row))


# --- phases -----------------------------------------------------------------------------------------------


@prints_as_call
def in_zips(s: Rewrite) -> Strategy:
    """s at a zip in a component of the zip that a term is, or in one of its components."""

    def component(term: Expr) -> Result:
        applied = call(term)
        if applied is None or applied[0] != "zip":
            return Failure("in_zips", term, "expected a zip")
        return choice(s, inside)(term)

    def inside(term: Expr) -> Result:
        return choice(argument(component), function(argument(component)))(term)

    return FunctionStrategy("in_zips", inside)


# maps in the components of a zip, and of the zips in these, fused with the map over it
in_components = in_zips(choice(ZIP_MAP_OUT_FIRST, ZIP_MAP_OUT_SECOND))
fuse_tiles = repeat(choice(fuse_once, argument(ZIP_SAME), argument(in_components)))
# tiles of operands beside each other, views next to what they rearrange
in_tiles = seq(view_inward, fuse_tiles, try_(mapped(seq(view_inward, fuse_tiles))), view_inward)


@prints_as_call
def tile_output(rows: int, columns: int) -> Strategy:
    """2: the result by tiles; the two maps over tiles contain all there is to do for one."""
    return seq(m.TILE.with_sizes(bm=rows, bn=columns), arguments(3, in_tiles))


@prints_as_call
def tile_output_flat(rows: int, columns: int, across: Nat) -> Strategy:
    """2, with the tiles in one list, `across` of them side by side."""
    tile = m.TILE_FLAT.with_sizes(bm=rows, bn=columns, c=across)
    return seq(tile, arguments(4, seq(argument(in_tiles), flatten)))


@prints_as_call
def block_reduction(size: int) -> Strategy:
    """3: the sums in blocks of `size`, and the loop over blocks outside of the maps over elements."""
    return seq(
        top_down(a.BLOCK_REDUCE.with_sizes(n=size)),
        view_inward,
        normalize(a.REDUCE_FROM),
        bottom_up(a.LIFT_REDUCE),
        view_inward,
        bottom_up(a.LIFT_REDUCE),
        view_inward,
    )


@prints_as_call
def at_step(s: Rewrite) -> Strategy:
    """s in the body of the outermost fold's step function."""

    def run(term: Expr) -> Result:
        if not is_fold(term):
            return Failure("at_step", term, "expected a reduction")
        # reduceSeq(step)(initial)(xs): step is an argument two applications in
        return at_child(0, lambda f: at_child(0, lambda g: at_child(1, two_bodies, g), f), term)

    def two_bodies(term: Expr) -> Result:
        return at_child(0, lambda inner: at_child(0, s, inner), term)

    return FunctionStrategy("at_step", run)


@parameters_from(Parameters)
def tensor_core(p: Parameters) -> Strategy:
    """From products of matrices to tensor cores. Applies to definitions whose core is a product.

    Of several kernels it is for those with products; `default` lowers the others.

    Tiles need not divide the matrices: then longer ones are multiplied, with zeros behind their ends.

    block:              the part of the result that a block computes (m, n), and how much of k at a time
    warp:               the part of that which a warp computes, or a warpgroup
    fragment:           the shape (m, n, k) of an instruction, which determines its family: 64 × n is a
                        warpgroup's
    load_once:          fragments that several instructions use are loaded once
    stages:             how many tiles of operands are in shared memory, or being loaded; 0: operands bypass
                        it
    padding:            elements added to rows in shared memory, so that columns are in different banks
    vector:             elements that a thread copies at once, up to 16 bytes
    raster_group:       blocks in groups of so many rows of tiles, for reuse in the L2 cache; 0: row by row
    epilogue:           `direct`: finished on fragments; `shared`: through shared memory, in whole rows;
                        `bulk`: finished on fragments of warpgroups, then through shared memory by bulk
                        stores
    slice_k:            how many sets of warps share a step of k
    prefetch_fragments: fragments of the next instructions are loaded while these compute
    swizzled:           rows in shared memory of 32, 64 or 128 bytes are swizzled instead of padded
    cp_async:           asynchronous copies to shared memory (sm_80 and later); else tiles are prefetched
                        into registers
    split_k:            how many blocks share the sums of a tile; a second kernel adds their parts
    warp_specialised:   one more warpgroup only loads, for those that compute
    persistent_blocks:  so many blocks, each of which computes several tiles; 0: a block for each tile
    cluster:            so many blocks, neighbours in raster order, load the operands that they share by
                        multicast
    ping_pong:          so many warpgroups compute a block's tiles alternately: one multiplies, another runs
                        its epilogue
    """
    validate(p)
    whole = schedule(p)
    if p.split_k > 1:
        whole = over_blocks(p.split_k, p.block[2], requirements(p, PROGRAMS), whole, in_tiles)
    if p.uses_wgmma:
        m, n, k = p.block
        whole = seq(try_(aligned_operands((m, n, k * p.split_k))), each_product_kernel(whole, copied))
    return FunctionStrategy("tensor_core", complete(in_inputs(each_product_kernel(whole, lowered))))


def validate(p: Parameters) -> None:
    """Refuses parameters that contradict each other: a tile that does not divide the one around it, say."""
    for name, outer, inner in (
        ("block m by warp m", p.block[0], p.warp[0]),
        ("block n by warp n", p.block[1], p.warp[1]),
        ("warp m by fragment m", p.warp[0], p.fragment[0]),
        ("warp n by fragment n", p.warp[1], p.fragment[1]),
        ("block k by fragment k", p.block[2], p.fragment[2]),
        ("block k by slice_k times fragment k", p.block[2], p.slice_k * p.fragment[2]),
    ):
        if inner < 1 or outer < 1 or outer % inner:
            raise StrategyError("R0604", f"tensor_core: {name}: {inner} does not divide {outer}")
    if family(p.fragment) is None:
        shape = "×".join(map(str, p.fragment))
        raise StrategyError("R0605", f"tensor_core: there is no fragment {shape}; there are {shapes()}")
    for name, value, least in (
        ("stages", p.stages, 0),
        ("padding", p.padding, 0),
        ("vector", p.vector, 1),
        ("raster_group", p.raster_group, 0),
        ("persistent_blocks", p.persistent_blocks, 0),
        ("cluster", p.cluster, 1),
        ("ping_pong", p.ping_pong, 1),
        ("split_k", p.split_k, 1),
    ):
        if value < least:
            raise StrategyError("R0609", f"tensor_core: {name} is {value}, and must be at least {least}")
    if p.slice_k > 1 and p.epilogue != "shared":
        message = f"tensor_core: slice_k is {p.slice_k}: partial sums are added in shared memory"
        raise StrategyError("R0609", message, hint="use `epilogue=shared`")
    if (p.persistent_blocks or p.cluster > 1) and not p.raster_group:
        message = "tensor_core: persistent blocks and clusters need a raster order of tiles"
        raise StrategyError("R0609", message, hint="use `raster_group=1` or more")
    if p.cluster > 1 and p.split_k > 1:
        message = (
            f"tensor_core: cluster is {p.cluster}: slices of sums are a dimension of the grid in no cluster"
        )
        raise StrategyError("R0609", message, hint="use `cluster=1`, or `split_k=1`")
    if p.persistent_blocks % p.cluster:
        message = (
            f"tensor_core: persistent_blocks is {p.persistent_blocks}, not a multiple of cluster, {p.cluster}"
        )
        raise StrategyError("R0609", message)
    if p.ping_pong > 1 and not (p.warp_specialised and p.persistent_blocks and p.warp == p.block[:2]):
        message = "tensor_core: ping_pong needs a tile for each warpgroup, and a warpgroup that only loads"
        raise StrategyError(
            "R0609", message, hint="`warp_specialised=true`, `persistent_blocks=132`, say, and warp is block"
        )
    if p.warp_specialised and not p.uses_wgmma:
        message = "tensor_core: warp_specialised is for warpgroups"
        raise StrategyError("R0609", message, hint="use fragments of 64 × n × 16")
    if p.uses_wgmma and p.stages < 2:
        message = f"tensor_core: stages is {p.stages}: warpgroups multiply tiles in shared memory"
        raise StrategyError("R0609", message, hint="use `stages=2` or more")
    if p.swizzled and p.stages and family(p.fragment) is Family.WMMA:
        message = "tensor_core: swizzled: these fragments are loaded from rows at a constant distance"
        raise StrategyError("R0609", message, hint="use `swizzled=false`, or `fragment=16,8,16`")
    if p.vector not in VECTORS:
        message = f"tensor_core: vector is {p.vector}; threads copy 1, 2, 4, 8 or 16 elements at once"
        raise StrategyError("R0609", message)
    if p.padding % 8:
        message = f"tensor_core: padding is {p.padding}; rows of tiles start at multiples of 8 elements"
        raise StrategyError("R0609", message)
    if p.epilogue == "bulk" and not p.uses_wgmma:
        message = "tensor_core: epilogue is `bulk`: only fragments of warpgroups, 64×n×16, are stored so"
        raise StrategyError("R0609", message, hint="use `epilogue=direct`")
    if p.epilogue not in EPILOGUES:
        known = ", ".join(f"`{name}`" for name in EPILOGUES[:-1]) + f" or `{EPILOGUES[-1]}`"
        raise StrategyError("R0609", f"tensor_core: epilogue is `{p.epilogue}`; it can be {known}")
    constraints.check(p, operand_bytes=1 if p.fragment[2] == 32 else 2)


@prints_as_call
def schedule(p: Parameters) -> Strategy:
    """Of a matrix; of an array of matrices, under the map over them, as blocks in the third dimension."""
    matrix = seq(
        check(lambda term: rank(term) == 2, "tensor_core", NO_MATRIX),
        view_inward,
        outline,
        check(contains(is_product), "tensor_core", NO_PRODUCT),
        requirements(p, PROGRAMS),
        seq(first_inside, check(bulk_operands, "tensor_core", NOT_IN_BULK))
        if p.uses_wgmma
        else separate_prologue,
        check(contains(is_product), "tensor_core", NO_PRODUCT),
        requirements(p, TILES),
        depending(
            lambda term: rounded_up(
                p.block,
                p.copies if p.stages else None,
                lambda columns: in_tiles_of(
                    Placed(**vars(p), row=columns.value or 0, in_rows=is_in_rows(term))
                ),
            )
        ),
    )
    batch = seq(
        check(lambda term: rank(term) == 3, "tensor_core", NO_MATRIX),
        mapped(matrix),
        check(lambda _: p.cluster == 1, "tensor_core", NO_CLUSTERS),
        low.MAP_BLOCK.with_sizes(d=2),
    )
    several = seq(RESULTS, arguments(2, matrix))
    one = choice(matrix, batch)
    return depending(lambda term: several if isinstance(term.type, Pair) else one)


@prints_as_call
def requirements(p: Parameters, checks: tuple[Check, ...]) -> Strategy:
    """Whether a matrix around products, outlined, is one that the schedule can lower; see `requirements`."""
    return fulfils(p, p.copies if p.stages else None, checks)


@prints_as_call
def in_tiles_of(p: Placed) -> Strategy:
    """The schedule of a matrix that tiles divide, its products outlined."""
    return seq(
        depending(lambda term: without_prologue(p, computed_operands(term), shape(term.type)[0][1])),
        bring_prologue,
    )


@prints_as_call
def without_prologue(p: Placed, computed: list[Expr], columns: Nat) -> Strategy:
    """The schedule of a program in which the operands that are computed are names."""

    def make(hidden: Mapping[str, Expr]) -> Strategy:
        known = {name: contiguity_of(matrix, {}) for name, matrix in hidden.items()}
        staged = stage(p.copies, p.stages, known) if p.stages else id_
        return seq(_schedule(p, columns), tupled, staged, warp_specialised(p))

    return with_parts_abstracted(lambda part: any(part is matrix for matrix in computed), make)


# products of a tile that share an operand as one fold, which loads it once
tupled = try_(repeat(top_down(seq(TUPLING, top_down(choice(SHARE_FIRST, SHARE_SECOND)), view_inward))))


def _schedule(p: Placed, columns: Nat) -> Strategy:
    in_block = shared(p) if p.epilogue == "shared" else direct(p)
    across = columns.exact_quotient(nat(p.block[1]))
    if p.raster_group and across is not None:
        return seq(
            tile_output_flat(p.block[0], p.block[1], across),
            arguments(4, mapped(in_block)),
            arguments(4, RASTERISE.with_sizes(g=p.raster_group, c=across)),
            arguments(5, seq(low.MAP_BLOCK.with_sizes(d=0), workers_of_grid(p))),
        )
    blocks = seq(low.MAP_BLOCK.with_sizes(d=1), mapped(low.MAP_BLOCK.with_sizes(d=0)))
    return seq(tile_output(p.block[0], p.block[1]), arguments(3, seq(mapped(mapped(in_block)), blocks)))


@prints_as_call
def workers_of_grid(p: Parameters) -> Strategy:
    """The blocks of a map over tiles: in clusters, and fewer than tiles."""
    persist = low.CLUSTERS_PERSIST if p.cluster > 1 else low.BLOCKS_PERSIST
    clusters = low.BLOCKS_IN_CLUSTERS.with_sizes(d=0, c=p.cluster) if p.cluster > 1 else id_
    staying = (
        top_down(persist.with_sizes(d=0, p=p.persistent_blocks // p.cluster)) if p.persistent_blocks else id_
    )
    groups = low.WARPGROUPS_PING_PONG.with_sizes(d=0, w=p.ping_pong) if p.ping_pong > 1 else id_
    return seq(groups, top_down(clusters), staying)


@prints_as_call
def warp_specialised(p: Parameters) -> Strategy:
    """One warpgroup loads, the others compute."""
    consumers = (p.block[0] // p.warp[0]) * (p.block[1] // p.warp[1])
    roles = low.WARP_SPECIALISE.with_sizes(s=p.stages, p=1, c=consumers)
    return everywhere(roles) if p.warp_specialised else id_


INSTRUCTIONS = (
    t.TENSORISE, t.TENSORISE_SAME, t.TENSORISE_WHOLE, t.TENSORISE_GROUP, t.TENSORISE_GROUP_SAME,
    t.TENSORISE_GROUP_WHOLE, TENSORISE_REGISTERS, TENSORISE_REGISTERS_SAME, TENSORISE_REGISTERS_WHOLE,
)  # fmt: skip


@prints_as_call
def computing(s: Rewrite) -> Strategy:
    return seq(check(computes, "a map that computes"), s)


# 6: what is done with the products of a block


@prints_as_call
def direct(p: Parameters) -> Strategy:
    """On fragments."""
    return direct_epilogue(epilogue_tiles(p), product(p), to_workers(p), bulk=p.epilogue == "bulk")


@prints_as_call
def shared(p: Placed) -> Strategy:
    """Through shared memory."""
    whole = seq(product(p), to_workers(p), kept_shared)
    return shared_epilogue(sliced_product(p) if p.slice_k > 1 else whole, p.finishing, p.in_rows)


# 9: the levels of the maps: blocks, then warps, then unrolled loops of each warp
in_warp = seq(everywhere(computing(low.MAP_SEQ_UNROLL)), everywhere(low.REDUCE_SEQ_UNROLL))


@prints_as_call
def to_level(name: str, rule: Rule) -> Strategy:
    """The outermost maps that compute become maps over a level, and those in what they are applied to."""
    return recursive(
        name,
        lambda itself: choice(
            seq(computing(rule), mapped(in_warp), argument(try_(itself))), all_(try_(itself))
        ),
    )


to_warps = to_level("to_warps", low.MAP_WARP)
to_warpgroups = to_level("to_warpgroups", low.MAP_WARP_GROUP)
by_itself = to_level("by_itself", low.MAP_SEQ_UNROLL)  # there is one tile for each worker


@prints_as_call
def to_workers(p: Parameters) -> Strategy:
    if p.ping_pong > 1:
        return by_itself
    return to_warpgroups if p.uses_wgmma else to_warps


@prints_as_call
def warp_tiles(p: Parameters) -> Strategy:
    """TILE_FLAT in tiles of a warp, views moved inward in the part that is tiled."""
    wm, wn = p.warp
    tile = m.TILE_FLAT.with_sizes(bm=wm, bn=wn, c=p.block[1] // wn)
    return seq(tile, arguments(4, seq(view_inward, flatten)))


@prints_as_call
def fragment_tiles(p: Parameters) -> Strategy:
    return seq(m.TILE.with_sizes(bm=p.fragment[0], bn=p.fragment[1]), arguments(3, view_inward))


@prints_as_call
def epilogue_tiles(p: Parameters) -> Strategy:
    """The tile of a block by warps and by fragments, the product being left as it is."""
    tiled = seq(warp_tiles(p), arguments(4, mapped(fragment_tiles(p))))
    return with_parts_abstracted(is_product, lambda _: tiled)


@prints_as_call
def product(p: Parameters) -> Strategy:
    """4 and 5: the product of a block: loop over k, warps, loop over fragments' k, instructions."""
    return seq(block_reduction(p.block[2]), sums(p), load_once(p))


@prints_as_call
def sums(p: Parameters) -> Strategy:
    """The sums of a block, held by warps as fragments from the first step to the last."""
    return seq(
        at_step(seq(warp_tiles(p), arguments(4, mapped(fragments(p))))),
        form_outward,
        top_down(seq(check(is_fold, "a reduction"), view_inward, flatten)),
    )


@prints_as_call
def fragments(p: Parameters) -> Strategy:
    """A warp's part of a step, by instructions."""
    return seq(
        block_reduction(p.fragment[2]),
        at_step(fragment_tiles(p)),
        at_step(top_down(choice(*INSTRUCTIONS))),
    )


@prints_as_call
def load_once(p: Parameters) -> Strategy:
    if p.uses_wgmma:
        return everywhere(LOAD_FIRST) if p.load_once else id_
    if p.prefetch_fragments:
        return everywhere(t.FETCH)
    return everywhere(t.LOAD_ONCE) if p.load_once else id_


@prints_as_call
def sliced_product(p: Parameters) -> Strategy:
    """The same with each step of k shared by `slice_k` times as many warps, whose sums are added.

    The partial sums are stored in shared memory, and added where the result is read.
    """
    slices = SLICE_REDUCTION.with_sizes(w=p.block[2] // p.slice_k)
    in_slice = mapped(seq(warp_tiles(p), arguments(4, mapped(fragments(p)))))
    fold = seq(check(is_fold, "a reduction"), view_inward, flatten)
    # the maps over slices and over warps as one, and the accumulator with it
    joined = seq(check(is_fold, "a reduction"), at_step(JOIN_MAPS), t.ACCUMULATE_SPLIT, argument(view_inward))
    return seq(
        block_reduction(p.block[2]),
        top_down(slices),
        arguments(
            3,
            seq(
                at_step(in_slice), form_outward, top_down(fold), top_down(joined), top_down(MAP_SPLIT),
                load_once(p), to_workers(p), kept_shared,
            ),
        ),
        normalize(UNROLL_SUM),
    )  # fmt: skip
