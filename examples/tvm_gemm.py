"""The seven schedules of TVM's GEMM, derived from A * B, run, and compared with what the program means.

python examples/tvm_gemm.py               the loops of each, and whether its kernels are right
python examples/tvm_gemm.py --markdown    docs/schedules.md
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from textwrap import dedent

from codegen.execute import available_backend, execute
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.compare import compare, tolerance
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.pretty import show
from strategies.core import Strategy
from strategies.loops import tvm_gemm as schedules
from strategies.loops.nests import show_nest
from strategies.memory_bound.blocks import Block
from strategies.memory_bound.reduction import reduction

PROGRAMS = """
def matmul(m: Nat, n: Nat, k: Nat)(A: Array[m, Array[k, f32]], B: Array[k, Array[n, f32]]) =
  A |> map(row =>
    B |> transpose |> map(col => zip(row)(col) |> map((x, y) => x * y) |> reduce(+, 0)))

def dots(m: Nat, k: Nat)(xs: Array[m, Array[k, f32]], ys: Array[m, Array[k, f32]]) =
  zip(xs)(ys) |> map((r, s) => zip(r)(s) |> map((x, y) => x * y) |> reduce(+, 0))

def dot(n: Nat)(xs: Array[n, f32], ys: Array[n, f32]) =
  zip(xs)(ys) |> map((x, y) => x * y) |> reduce(+, 0)
"""
DEFINITIONS = check_text(PROGRAMS)
TILES = {"x": 32, "y": 32, "k": 4, "vector": 4}
SIZES = {"m": 64, "n": 96, "k": 8}  # two tiles of rows, three of columns, two blocks of the sum
HALVES = {"threads": 8, "vector": 1, "loads": 1, "fan": 2}
FUNCTIONS: dict[str, Callable[..., Strategy]] = {
    name: getattr(schedules, name) for name in schedules.VERSIONS
}


def lowered(strategy: Strategy, program: Expr) -> Expr:
    """The low-level program of a strategy. StrategyError where it does not apply."""
    result = strategy(data_flow(program))
    if isinstance(result, Failure):
        raise result.error(strategy.name)
    return result.term


def product(version: str) -> tuple[Expr, Expr]:
    """A * B, and what a schedule makes of it."""
    program = specialise(DEFINITIONS["matmul"], SIZES)
    return program, lowered(schedules.tvm_gemm(version, **TILES), program)


def outcome(program: Expr, low_level: Expr, backend: str) -> tuple[bool, str]:
    """Whether the kernels compute what the program means, and in words; packing is the first of two."""
    inputs = random_inputs(inputs_of(program), seed=0, exact=True)
    made = assemble(low_level, "scheduled")
    verdict = compare(execute(made, inputs, backend), call(program, *inputs), tolerance(program))
    count = "one kernel" if len(made.kernels) == 1 else f"{len(made.kernels)} kernels"
    return verdict.agrees, f"{backend}, {count}: {verdict}"


def main() -> bool:
    """Every schedule: its loops, and whether its kernels are right."""
    backend = available_backend()
    right = []
    for version in schedules.VERSIONS:
        program, low_level = product(version)
        print(f"{version}\n{show_nest(low_level)}")
        if backend is not None:
            agrees, told = outcome(program, low_level, backend)
            print(told)
            right.append(agrees)
        print()
    return all(right)


# --- the page ---------------------------------------------------------------------------------------------

INTRODUCTION = """# Schedules of loops

Made with `python examples/tvm_gemm.py --markdown > docs/schedules.md`; a test compares the two. Products on
tensor cores have a strategy of their own ([tensor-cores.md](tensor-cores.md)); its parameters for Hopper are
in [hopper-machine.md](hopper-machine.md#from-programs).

A program's loops have numbers, 1 is the outermost. What changes their nest is composed from rules:

| strategy | what it does | by |
| --- | --- | --- |
| `tile(x, y, …)` | the first loops in tiles, maps or folds | `split_loop` of each, then `reorder` |
| `split_loop(i, n)`, `block(i, n)` | loop i over blocks, and in them | `S >> J`, `reduceSeq in blocks` |
| `interchange(i)` | loops i and i + 1 | `T >> T`, `liftReduce`, `reduceSeq of map`, folds of one operator |
| `reorder(2, 3, 1)` | the loops in that order | interchanges |
| `vectorize(n)` | the innermost map on vectors | `asVector >> asScalar` moved inward |
| `pack(n, v)` | transpose(B) in memory, by n columns | `toMem`, and `toMem, hoisted` |
| `unroll`, `parallel(level)` | how a loop is executed | `mapSeqUnroll`, `reduceSeqUnroll`, `mapGlobal(d)` … |
| `to_loops`, `to_threads` | all else as loops; the outermost over a grid | `mapSeq`, `mapGlobal` |

Each change of a map's loop is an identity around the whole result, `x → x |> v |> v⁻¹`. The view v is moved
inward, through maps and through folds, until it only rearranges what is read; v⁻¹ is left outside, where it
costs nothing. What does not divide, and a loop that is not there, is refused by name:

    `tile` does not apply: 4 does not divide 6, the size of loop 2
    `reorder` does not apply: there is no loop 2: the nest has 1 loop

## TVM's seven schedules of A * B
"""
PAR = """
Packing is a kernel of its own, since all threads of a grid read what it writes, and a grid has no barrier:
one kernel for both is refused. `codegen.pipeline.assemble` makes two, which the host launches in order.
"""
TREE = """
## Reductions of rows

`reduction` gives each row to a block. Each thread folds every n-th element, so that neighbours read
neighbours; then half of the threads add two results each (`fan=2`), and half of these. The operator and its
neutral element may be any; maps before are done by the threads that read. Vectors, and more loads at once,
are parameters.
"""
ONE = """
### To one number

A grid has no barrier, so one number takes two kernels. `reduction(part=n)` reduces parts of n, a block each,
by the rule `reduceTree`; one more block reduces their results, a row of its own.
"""


def page() -> str:
    """docs/schedules.md: each schedule's strategy, the program derived with it, and its loops."""
    return "\n".join(lines()).rstrip() + "\n"


def lines() -> Iterator[str]:
    sizes, tiles = (", ".join(f"{n} = {v}" for n, v in d.items()) for d in (SIZES, TILES))
    yield INTRODUCTION
    yield f"In f32, at {sizes}; {tiles}.\n\n```\n{show(data_flow(product('baseline')[0]))}\n```"
    for version, function in FUNCTIONS.items():
        yield from section(f"### {version}", function, product(version)[1])
    yield PAR
    yield TREE
    rows = specialise(DEFINITIONS["dots"], {"m": 3, "k": 24})
    yield from section("### Dot products of rows", Block.tree, lowered(reduction(**HALVES), rows))
    yield ONE
    parts = lowered(reduction(**HALVES, part=24), specialise(DEFINITIONS["dot"], {"n": 96}))
    yield f"```\n{show_nest(parts)}\n```\n\n```\n{show(parts)}\n```"


def section(title: str, function: Callable[..., object], low_level: Expr) -> Iterator[str]:
    code = dedent(inspect.getsource(function)).rstrip().removeprefix("@prints_as_call\n")
    yield f"\n{title}\n\n```python\n{code}\n```\n"
    yield f"```\n{show_nest(low_level)}\n```\n\n```\n{show(low_level)}\n```"


if __name__ == "__main__":
    if "--markdown" in sys.argv:
        print(page(), end="")
        raise SystemExit(0)
    raise SystemExit(0 if main() else 1)
