"""The passes over a kernel, in the order in which they run, each with the reasons for its place.

`rise compile --stage imperative --pass NAME` prints the program after a pass; docs/passes.md is written from
this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from codegen.ir import imperative as i
from codegen.ir.launch import Launch, check_grid, derive
from codegen.passes.allocate import place_shared, regions, shares
from codegen.passes.barriers import insert_barriers
from codegen.passes.common_subexpressions import name_operations, name_starts
from codegen.passes.distribute import distribute
from codegen.passes.elect_bulk_stores import elect_in_groups
from codegen.passes.fuse_fragment_loops import fuse_elements
from codegen.passes.index_scalars import define_indices
from codegen.passes.legality import check, check_accumulators
from codegen.passes.linearise import linear_indices
from codegen.passes.multicast import multicast
from codegen.passes.rings import carry_rings
from codegen.passes.roles import split_roles
from codegen.passes.split_loops import split_loops
from codegen.passes.strength_reduction import count_remainders
from codegen.passes.tile_alignment import check_tiles
from codegen.passes.unit_loops import unit_loops
from codegen.passes.vectorise import vectorise
from codegen.passes.wgmma_sync import group_products
from codegen.passes.workers import name_workers
from codegen.passes.zero_init import first_products

Run = Callable[[i.Function, Launch], tuple[i.Function, Launch]]


@dataclass(frozen=True)
class Pass:
    """A step from an imperative program to one that means the same, or a check, which changes nothing.

    meaning: what it does, in a sentence
    needs:   the passes that have to come before it, each with the reason
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


def _checked(function: i.Function, launch: Launch) -> tuple[i.Function, Launch]:
    check(function, launch)
    check_tiles(function.body)
    check_accumulators(function.body)
    return function, launch


def _synchronised(function: i.Function, launch: Launch) -> i.Function:
    return insert_barriers(function, regions(function, launch), launch)


# what a kernel does, and who does it
STRUCTURE = (
    Pass(
        "multicast",
        "What all blocks of a cluster load, each block loads a part of, for all of them.",
        _function(multicast),
    ),
    Pass(
        "rings",
        "A pipeline of bulk copies that runs again and again initialises its mbarriers once.",
        _function(carry_rings),
    ),
    Pass(
        "roles",
        "Warp specialisation: one program for the warpgroups that load, one for those that compute.",
        _function(split_roles),
        {"multicast": "an mbarrier of a slot counts the consumers of every block that it is multicast to"},
    ),
    Pass(
        "zero init",
        "The first product of a sum replaces its accumulator, which nothing has to clear.",
        _function(first_products),
        {"roles": "the loop of a consumer is apart from that of its producer"},
    ),
    Pass(
        "wgmma sync",
        "Products of warpgroups are fenced, committed in groups, and waited for as late as possible.",
        _function(group_products),
        {
            "roles": "a slot is released after the wait for the products that read it",
            "zero init": "a fence orders the registers that products add to, cleared or not",
        },
    ),
    Pass(
        "elect bulk stores",
        "One thread starts a bulk store, commits it and waits for it.",
        _function(elect_in_groups),
        {"roles": "the thread is one of the warpgroups that compute"},
    ),
    Pass(
        "distribute",
        "An array in registers is allocated to the threads that use its elements.",
        _function(distribute),
        {"roles": "who uses an element is known when each warpgroup has its program"},
    ),
    Pass(
        "launch",
        "The parallel loops determine grid, block and cluster.",
        _derived,
        {"roles": "warpgroups that only load are threads of the block"},
        checks=True,
    ),
    Pass(
        "legality",
        "Levels nest as in the hardware, no two threads write one location, tiles are aligned.",
        _checked,
        {"distribute": "a register array is private to its owner", "launch": "loops have workers"},
        checks=True,
    ),
    Pass(
        "place shared",
        "Buffers in shared memory get offsets; those that are never live together may share bytes.",
        place_shared,
        {
            "launch": "each warp has its own copy of some buffers",
            "wgmma sync": "an operand is live until its product is waited for",
        },
    ),
    Pass(
        "barriers",
        "Barriers and fences between threads that touch the same location of shared memory.",
        _with_launch(_synchronised),
        {"place shared": "buffers that share an address conflict, too"},
    ),
    Pass(
        "shares",
        "The dimension of a buffer that is distributed over workers becomes each worker's share.",
        _with_launch(shares),
        {"distribute": "the workers that share a dimension are known then"},
    ),
    Pass(
        "unit loops",
        "A loop of one iteration is its body; conditions that are certain are decided.",
        _function(unit_loops),
        {"shares": "a share of one element needs no loop"},
    ),
    Pass(
        "vectorise",
        "Adjacent elements that start at an aligned address are moved by one access.",
        _function(vectorise),
        {
            "shares": "a thread's elements are adjacent in its share",
            "unit loops": "the elements of a vector lie in the innermost loop",
        },
    ),
)  # fmt: skip

# how its indices are computed: for readers, and for the compiler after us
INDICES = (
    Pass(
        "workers",
        "A parallel loop with a worker for each iteration becomes the worker's number.",
        _with_launch(name_workers),
    ),
    Pass(
        "fuse fragment loops",
        "Successive loops over the elements of fragments become one.",
        _with_launch(fuse_elements),
        {"vectorise": "a vector is one step of such a loop", "workers": "lanes are numbers by then"},
    ),
    Pass(
        "index scalars",
        "A scalar that holds an index becomes a definition of the index.",
        _with_launch(define_indices),
    ),
    Pass(
        "linearise",
        "The indices of an access become one, in its simplest form.",
        _with_launch(linear_indices),
        {"index scalars": "what is known of an index simplifies others"},
    ),
    Pass(
        "split loops",
        "A loop whose index is divided becomes two, whose indices are quotient and remainder.",
        _with_launch(split_loops),
        {"linearise": "which divisions are left is known then"},
    ),
    Pass(
        "strength reduction",
        "A remainder of a loop's index becomes a counter that starts again at 0.",
        _with_launch(count_remainders),
        {"split loops": "a counter is for what splitting leaves"},
    ),
    Pass(
        "common subexpressions",
        "A quotient, remainder or bound is computed once, as far out as it is known.",
        _with_launch(name_operations),
        {"strength reduction": "what is counted is not computed"},
    ),
    Pass(
        "row starts",
        "The part of an index that a loop does not change is computed before the loop.",
        _with_launch(name_starts),
        {"common subexpressions": "a start is a sum of what has a name"},
    ),
)

PASSES = (*STRUCTURE, *INDICES)
