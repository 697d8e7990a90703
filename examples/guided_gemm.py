"""Guided search: the seven goals of the POPL 2024 paper from A * B; tiles, a stencil, tensor cores.

python examples/guided_gemm.py         what each search visits and finds, and whether its kernels are right
python examples/guided_gemm.py par     one goal, with the program and the kernels
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from codegen.execute import available_backend, execute
from codegen.host.program import HostProgram
from codegen.pipeline import assemble
from rise.check.compare import compare, tolerance
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr, Lambda
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.pretty import show
from strategies.complete import complete
from strategies.core import Strategy, seq
from strategies.guided.engine import Found
from strategies.guided.moves import lowered
from strategies.guided.search import Guide, Reached, Search
from strategies.loops.nests import show_nest
from strategies.places import in_inputs

PROGRAMS = """
import "prelude.rise"

def times(m: Nat, n: Nat, k: Nat)(A: m.k.f32, B: k.n.f32) = matmul(A)(B)

def halves(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16) =
  A |> map(row => B |> transpose |> map(col =>
    zip(row)(col) |> map((a, b) => f32(a) * f32(b)) |> reduce(+, 0)))

def twice1(l: Nat)(xs: l.f32) = xs |> map(x => 2.0 * x)
def twice2(l: Nat, m: Nat)(xs: l.m.f32) = xs |> map(map(x => 2.0 * x))
def twice3(l: Nat, m: Nat, n: Nat)(xs: l.m.n.f32) = xs |> map(map(map(x => 2.0 * x)))

def sums(n: Nat)(xs: (n + 2).f32) = xs |> slide(3, 1) |> map(reduce(+, 0))
"""
DEFINITIONS = check_text(PROGRAMS, "examples/guided_gemm.py")
SPLIT = ("map m/32 > map 32 > map n/32 > map 32 > reduce k/4 > reduce 4", "tile")
BLOCKS = "map m/32 > map n/32 > reduce k/4 > reduce 4 > map 32 > map 32"
ROWS = "map m/32 > map n/32 > reduce k/4 > map 32 > reduce 4 > map 32"
VECTORS = "map m/32 > map n/32 > reduce k/4 > map 32 > reduce 4 > map 8 > vector 4"
UNROLLED = "map n/32 > reduce k/4 > map 32 > reduceSeqUnroll 4 > map 8 > vector 4"


@dataclass(frozen=True)
class Goal:
    """A program, its sizes, and sketches, each with the rules that lead to it."""

    program: str
    sizes: Mapping[str, int] = field(hash=False)
    guides: tuple[tuple[str, str], ...]

    @property
    def definition(self) -> Expr:
        return specialise(DEFINITIONS[self.program], self.sizes)


PRODUCT = {"m": 64, "n": 96, "k": 8}  # two tiles of rows, three of columns, two blocks of the sum
GOALS: Mapping[str, Goal] = {
    "baseline": Goal("times", PRODUCT, (("mapSeq m > mapSeq n > reduceSeq k", "execute"),)),
    "blocking": Goal("times", PRODUCT, (SPLIT, (BLOCKS, "reorder"))),
    "vectorization": Goal(
        "times", PRODUCT, (SPLIT, (BLOCKS, "reorder"), (f"{BLOCKS[:-6]}map 8 > vector 4", "vectorise=4"))
    ),
    "loop_perm": Goal("times", PRODUCT, (SPLIT, (ROWS, "reorder"), (VECTORS, "vectorise=4"))),
    "array_packing": Goal(
        "times",
        PRODUCT,
        (
            SPLIT,
            (ROWS, "reorder"),
            (f"toMem(Global) > map n/32 > map k > map 32 & {VECTORS}", "vectorise=4 pack"),
        ),
    ),
    "cache_blocks": Goal(
        "times",
        PRODUCT,
        (
            SPLIT,
            (ROWS, "reorder"),
            (
                f"toMem(Global) > map n/32 > map k > map 32 & map m/32 > {UNROLLED}",
                "vectorise=4 pack execute",
            ),
        ),
    ),
    "par": Goal(
        "times",
        PRODUCT,
        (
            SPLIT,
            (ROWS, "reorder"),
            (
                f"toMem(Global) > mapGlobal n/32 > map k > map 32 & mapGlobal m/32 > {UNROLLED}",
                "vectorise=4 pack execute",
            ),
        ),
    ),
}
# rules by their Python names: no normal form after each
BARE_SPLIT = "SPLIT_JOIN(n=32) SPLIT_JOIN(n=4) BLOCK_REDUCE(n=32) BLOCK_REDUCE(n=4) REDUCE_MAP REDUCE_SEQ_MAP"
BARE_REORDER = (
    "MAP_FIRST_FISSION MAP_LAST_FISSION MAP_FUSION LIFT_REDUCE LIFT_REDUCTION INTERCHANGE INTERCHANGE_NEST"
    " TRANSPOSE_MAP REDUCE_FROM REDUCE_SEQ_MAP REDUCE_MAP REDUCE_SEQ JOIN_MAP MAP_JOIN TRANSPOSE_TWICE"
    " FOLD_OF_FOLD[0] FOLD_JOIN"
)
OTHERS: Mapping[str, Goal] = {
    "blocking, by bare rules": Goal("times", PRODUCT, ((SPLIT[0], BARE_SPLIT), (BLOCKS, BARE_REORDER))),
    "tiles in 1 dimension": Goal("twice1", {"l": 35}, (("map l/5 > map 5", "tile"),)),
    "tiles in 2 dimensions": Goal(
        "twice2", {"l": 35, "m": 33}, (("map l/5 > map m/3 > map 5 > map 3", "tile reorder"),)
    ),
    "tiles in 3 dimensions": Goal(
        "twice3",
        {"l": 35, "m": 33, "n": 26},
        (("map l/5 > map m/3 > map n/2 > map 5 > map 3 > map 2", "tile reorder"),),
    ),
    "a stencil in overlapping tiles": Goal(
        "sums",
        {"n": 96},
        (("slide(34, 32) & map n/32 > slide(3, 1) & map n/32 > map 32", "tile=32 stencil"),),
    ),
    "a tensor-core product of tiles": Goal(
        "halves",
        {"m": 64, "n": 32, "k": 48},
        (
            ("map m/16 > map n/16 > map 16 > map 16 > reduce k", "tensorise tile=16 reorder"),
            ("map m/16 > map n/16 > reduce k/16 > tensorMatMulAdd", "tensorise=16"),
        ),
    ),
}


@cache
def found(goal: Goal) -> tuple[Reached, ...]:
    """What the search finds, sketch by sketch; goals that begin alike share what is found."""
    *first, last = goal.guides
    before = found(replace(goal, guides=tuple(first))) if first else ()
    start = before[-1].program if before else Found(body(data_flow(goal.definition)))
    return (*before, Search().towards(Guide.of(*last, goal.sizes), start))


def body(term: Expr) -> Expr:
    """What a definition computes from its inputs."""
    return body(term.body) if isinstance(term, Lambda) else term


def compiled(schedule: Strategy) -> Strategy:
    """A schedule that was found, and every other loop executed one step after the other."""
    return complete(seq(schedule, in_inputs(lowered())))


def kernels(goal: Goal) -> HostProgram:
    """The kernels that are made of the result, and how the host calls them."""
    result = compiled(found(goal)[-1].program.schedule)(data_flow(goal.definition))
    if not hasattr(result, "steps"):
        raise result.error("guided")
    return assemble(result.term, "guided")


def outcome(goal: Goal, backend: str) -> tuple[bool, str]:
    """Whether the kernels compute what the program means, and in words."""
    program = goal.definition
    inputs = random_inputs(inputs_of(program), seed=0, exact=True)
    verdict = compare(execute(kernels(goal), inputs, backend), call(program, *inputs), tolerance(program))
    return verdict.agrees, f"{backend}: {verdict}"


def figures(reached: tuple[Reached, ...]) -> tuple[int, int, int, int]:
    """The numbers of sketches, of programs visited, of strategies, and of steps found."""
    last = reached[-1].program
    return len(reached), sum(each.visited for each in reached), len(last.moves), len(last.steps)


def main(chosen: str | None) -> bool:
    """Every goal, or one of them in full."""
    backend, right = available_backend(), []
    for name, goal in {**GOALS, **OTHERS}.items():
        if chosen not in (None, name):
            continue
        found.cache_clear()
        before = time.process_time()
        reached = found(goal)
        seconds = time.process_time() - before
        sketches, visited, moves, steps = figures(reached)
        counts = f"{sketches} sketches, {visited} programs, {moves} strategies, {steps} steps"
        print(f"{name}: {counts}, {seconds:.1f} s")
        right.append(reached[-1].satisfied)
        if name in GOALS and backend is not None:
            agrees, told = outcome(goal, backend)
            print(f"  {told}")
            right.append(agrees)
        if chosen is not None:
            term = reached[-1].program.term
            print(f"\n{show_nest(term)}\n\n{show(term)}\n")
            if name in GOALS:
                print("\n".join(kernel.source for kernel in kernels(goal).kernels))
    return all(right)


if __name__ == "__main__":
    raise SystemExit(0 if main(sys.argv[1] if len(sys.argv) > 1 else None) else 1)
