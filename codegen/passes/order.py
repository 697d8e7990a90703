"""The passes over a kernel, in the order in which they run, each with the reasons for its place.

`rise compile --stage imperative --pass NAME` prints the program after a pass; docs/passes.md is written from
this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from codegen.ir import imperative as i
from codegen.ir.launch import Launch, check_grid, derive
from codegen.passes.allocate import place_shared, regions, shares
from codegen.passes.barriers import insert_barriers
from codegen.passes.common_subexpressions import common_subexpressions, row_starts
from codegen.passes.distribute import distribute
from codegen.passes.early_guards import early_guards
from codegen.passes.elect_bulk_stores import elect_bulk_stores
from codegen.passes.floats_of_indices import floats_of_indices
from codegen.passes.fuse_fragment_loops import fuse_fragment_loops
from codegen.passes.grouped_reads import grouped_reads
from codegen.passes.hoist_reads import hoist_reads, hoist_run_starts
from codegen.passes.index_scalars import index_scalars
from codegen.passes.interior import interior
from codegen.passes.joint_waits import joint_waits
from codegen.passes.legality import check, check_accumulators
from codegen.passes.linearise import linearise
from codegen.passes.multicast import multicast
from codegen.passes.next_indices import next_indices
from codegen.passes.only_needed import only_needed
from codegen.passes.overlap import registers_left
from codegen.passes.prefetches import prefetches
from codegen.passes.reads_before_writes import reads_before_writes
from codegen.passes.resident import resident_blocks
from codegen.passes.rings import hoist_ring_setup
from codegen.passes.roles import split_roles
from codegen.passes.split_guards import split_guards
from codegen.passes.split_loops import split_loops
from codegen.passes.strength_reduction import strength_reduction
from codegen.passes.tile_alignment import check_tile_alignment
from codegen.passes.unit_loops import unit_loops
from codegen.passes.vectorise import vectorise
from codegen.passes.wgmma_sync import wgmma_sync
from codegen.passes.workers import name_workers
from codegen.passes.zero_init import zero_init

Run = Callable[[i.Function, Launch], tuple[i.Function, Launch]]


@dataclass(frozen=True)
class Pass:
    """A transformation that preserves the meaning of the program, or a check, which leaves it unchanged.

    meaning: what the pass does, in one sentence
    needs:   the passes that must run before it, each with the reason
    """

    name: str
    meaning: str
    run: Run = field(repr=False)
    needs: Mapping[str, str] = field(default_factory=dict)
    checks: bool = False


def _function(change: Callable[[i.Function], i.Function]) -> Run:
    return lambda function, launch: (change(function), launch)


def _with_launch(change: Callable[[i.Function, Launch], i.Function]) -> Run:
    return lambda function, launch: (change(function, launch), launch)


def _derived(function: i.Function, _: Launch) -> tuple[i.Function, Launch]:
    launch = derive(function.body)
    check_grid(function.name, launch)
    return function, launch


def _roomy(function: i.Function, launch: Launch) -> tuple[i.Function, Launch]:
    room = replace(launch, left=registers_left(function), resident=resident_blocks(function, launch))
    return function, room


def _checked(function: i.Function, launch: Launch) -> tuple[i.Function, Launch]:
    check(function, launch)
    check_tile_alignment(function.body)
    check_accumulators(function.body)
    return function, launch


def _synchronised(function: i.Function, launch: Launch) -> i.Function:
    return insert_barriers(function, regions(function, launch), launch)


# the structure of the kernel, and which thread executes what
STRUCTURE = (
    Pass(
        "multicast",
        "Each block of a cluster loads a part of what all its blocks need, and sends it to all of them.",
        _function(multicast),
    ),
    Pass(
        "rings",
        "A pipeline of bulk copies inside a loop initialises its mbarriers only once.",
        _function(hoist_ring_setup),
    ),
    Pass(
        "roles",
        "Warp specialisation: one program for the warpgroups that load, one for those that compute.",
        _function(split_roles),
        {"multicast": "the mbarrier of a slot counts the consumers of every block that it is multicast to"},
    ),
    Pass(
        "zero init",
        "The first product of a sum overwrites its accumulator, which then need not be cleared.",
        _function(zero_init),
        {"roles": "the loop of a consumer is separate from that of its producer"},
    ),
    Pass(
        "wgmma sync",
        "Fences, commits and waits for wgmma; waits follow from uses of registers and slots, and are late.",
        _function(wgmma_sync),
        {
            "roles": "the loads of a producer say which slots a release hands back",
            "zero init": "a fence orders the accumulator registers, whether or not they are cleared",
        },
    ),
    Pass(
        "only needed",
        "Products are started by the warpgroups that need their sums: others read none of them.",
        _function(only_needed),
        {"wgmma sync": "what is committed and waited for is the same with products and without"},
    ),
    Pass(
        "elect bulk stores",
        "One elected thread starts a bulk store, commits it and waits for it.",
        _function(elect_bulk_stores),
        {"roles": "the elected thread belongs to a warpgroup that computes"},
    ),
    Pass(
        "reads before writes",
        "Of copies from shared memory to shared memory, all are read before the first is written.",
        _function(reads_before_writes),
        {"roles": "copies of a producer are separate from those of its consumers"},
    ),
    Pass(
        "distribute",
        "Each thread allocates only the elements of a register array that it uses.",
        _function(distribute),
        {
            "roles": "the threads that use an element are known once each warpgroup has its program",
            "reads before writes": "registers of all threads are declared around the loops over these",
        },
    ),
    Pass(
        "launch",
        "The parallel loops determine grid, block and cluster.",
        _derived,
        {"roles": "warpgroups that only load are threads of the block, too"},
        checks=True,
    ),
    Pass(
        "legality",
        "Levels nest as in the hardware, no two threads write the same location, and tiles are aligned.",
        _checked,
        {"distribute": "a register array is private to its owner", "launch": "workers of loops are known"},
        checks=True,
    ),
    Pass(
        "joint waits",
        "Copies that follow each other are waited for once.",
        _function(joint_waits),
        {"legality": "what is checked is what a strategy has written"},
    ),
    Pass(
        "run starts",
        "The index of a run's first element, if it is data, is read before the run's buffer exists.",
        _function(hoist_run_starts),
    ),
    Pass(
        "place shared",
        "Buffers in shared memory get offsets; buffers with disjoint live ranges may share bytes.",
        place_shared,
        {
            "launch": "each warp has its own copy of some buffers",
            "run starts": "the offset of a run from a 16-byte boundary may depend on data",
            "reads before writes": "what has been read leaves room for what is written",
            "wgmma sync": "where an operand's scope ends, its products have been waited for",
        },
    ),
    Pass(
        "barriers",
        "Inserts barriers and fences between threads that touch the same location of shared memory.",
        _with_launch(_synchronised),
        {
            "place shared": "buffers that share bytes conflict, too",
            "wgmma sync": "a wait completes reads of operands, and a barrier before it does not",
        },
    ),
    Pass(
        "shares",
        "A dimension of a buffer that is distributed over workers shrinks to one worker's share.",
        _with_launch(shares),
        {"distribute": "it determines the workers that share a dimension"},
    ),
    Pass(
        "room",
        "Registers are left for the kernel in front, if a kernel starts beside it, and for other blocks, if a"
        " block only waits for its copies.",
        _roomy,
        {"shares": "a thread's share of an array of sums says how many registers it has for these"},
        checks=True,
    ),
    Pass(
        "unit loops",
        "A loop of one iteration becomes its body; conditions that always or never hold are decided.",
        _function(unit_loops),
        {"shares": "a share of one element needs no loop"},
    ),
    Pass(
        "early guards",
        "Threads that store no result do not compute it, if that takes a loop over shared memory.",
        _function(early_guards),
        {"unit loops": "conditions that always hold are gone"},
    ),
    Pass(
        "split guards",
        "A loop that is unrolled, or brings tiles, is split in two where a condition holds in all of its"
        " first iterations.",
        _function(split_guards),
        {"unit loops": "conditions that always hold are gone", "shares": "indices are those of one worker"},
    ),
    Pass(
        "interior",
        "Tiles that are inside get a version of what is done with their elements, without conditions.",
        _function(interior),
        {"split guards": "loops whose first iterations are inside need no second version"},
    ),
    Pass(
        "vectorise",
        "One access moves adjacent elements that start at an aligned address.",
        _function(vectorise),
        {
            "shares": "a thread's elements are adjacent in its share",
            "unit loops": "the loop over the elements of a vector is innermost",
        },
    ),
)  # fmt: skip

# how indices are computed: for readability, and for the optimisers of nvcc
INDICES = (
    Pass(
        "workers",
        "A parallel loop with one worker per iteration is replaced by the worker's number.",
        _with_launch(name_workers),
    ),
    Pass(
        "hoist reads",
        "An index that is data is read before the loops in which it is the same.",
        _function(hoist_reads),
        {"roles": "the loop of a producer is separate from that of its consumers"},
    ),
    Pass(
        "next indices",
        "A block that computes several tiles reads the indices that are data for its next one ahead.",
        _with_launch(next_indices),
        {"hoist reads": "an index is read where its place is known"},
    ),
    Pass(
        "fuse fragment loops",
        "Successive loops over the elements of fragments are fused.",
        _with_launch(fuse_fragment_loops),
        {"vectorise": "a vector is one step of such a loop", "workers": "lane loops are replaced by then"},
    ),
    Pass(
        "index scalars",
        "A scalar that holds an index becomes a definition, so that its range is known.",
        _with_launch(index_scalars),
    ),
    Pass(
        "linearise",
        "The indices of an access become one index, in its simplest form.",
        _with_launch(linearise),
        {"index scalars": "known ranges simplify other indices"},
    ),
    Pass(
        "split loops",
        "A loop whose index is divided is split into two, whose indices are the quotient and remainder.",
        _with_launch(split_loops),
        {"linearise": "it removes the divisions that simplification can remove"},
    ),
    Pass(
        "prefetches",
        "What an epilogue reads element by element is brought into the L2 cache before the first product.",
        _with_launch(prefetches),
        {
            "split loops": "elements are read where its loops say",
            "workers": "addresses are those of a thread",
        },
    ),
    Pass(
        "grouped reads",
        "A thread reads several elements before it does anything with the first of them.",
        _with_launch(grouped_reads),
        {"split loops": "elements of a group have few quotients", "vectorise": "vectors stay whole"},
    ),
    Pass(
        "floats of indices",
        "The float of an index is that of its part outside of unrolled loops, plus a constant.",
        _with_launch(floats_of_indices),
        {"split loops": "the loops that are unrolled have their indices"},
    ),
    Pass(
        "strength reduction",
        "A remainder of a loop index becomes a counter that wraps around to 0.",
        _with_launch(strength_reduction),
        {"split loops": "counters replace only the divisions that splitting leaves"},
    ),
    Pass(
        "common subexpressions",
        "A quotient, remainder or bound is computed once, and hoisted as far as possible.",
        _with_launch(common_subexpressions),
        {"strength reduction": "a counter replaces a division, which then need not be hoisted"},
    ),
    Pass(
        "row starts",
        "The loop-invariant part of an index is computed before the loop.",
        _with_launch(row_starts),
        {"common subexpressions": "a row start is a sum of named values"},
    ),
)

PASSES = (*STRUCTURE, *INDICES)
