"""What rows of products are reduced to, without the products: log-sum-exps, losses, nearest rows, moments.

No matrix of all products is stored. Kernels run in the emulator at awkward sizes, on whole numbers and on
numbers that tell programs apart.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import codegen
from codegen import runtime
from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.pipeline import assemble
from codegen.runtime.compiling import compiler_report
from rewrites.result import Failure
from rise.check.compare import compare, tolerance
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.expr import Definition, Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.types import shape
from strategies.auto import auto
from strategies.matmul.one_pass import one_pass
from strategies.matmul.tensor_core import tensor_core
from tests.support.nightly import every_other
from tests.support.programs import ROOT, loaded, succeeded

MORE = """import "prelude.rise"
def scores{m: Nat, n: Nat, k: Nat}(X: m.k.f16, Y: n.k.f16): m.n.f32 =
  X |> map(x => Y |> map(y => zip(x)(y) |> map((a, b) => f32(a) * f32(b)) |> sum))
def lastBest(m: Nat, n: Nat, k: Nat)(X: m.k.f16, Y: n.k.f16) =
  scores(X)(Y) |> map(row => zip(row)(generate(j => indexToInt(j))) |> reduce(
    ((x, i), (y, j)) => select(x > y || (x == y && i > j))((x, i))((y, j)), (row |> idx(0), 0))) |> unzip
def moments(m: Nat, n: Nat, k: Nat)(X: m.k.f16, Y: n.k.f16) =
  scores(X)(Y) |> map(row => sum(row |> map(p => p * p)) - 2 * sum(row))
def largest(m: Nat, n: Nat, k: Nat)(X: m.k.f16, Y: n.k.f16) = scores(X)(Y) |> map(reduce(max, -100000))
def numbersInPairs(m: Nat, n: Nat, k: Nat)(X: m.k.f16, Y: n.k.f16) =
  scores(X)(Y) |> map(row => (maximum(row), argmax(row)))
def arraysOfNumbers(m: Nat, n: Nat, k: Nat)(X: m.k.f16, Y: n.k.f16) =
  let P = scores(X)(Y) in (P |> map(argmin), P |> map(minimum))

def weighted(m: Nat, n: Nat, k: Nat)(X: m.k.f16, Y: n.k.f16) =
  scores(X)(Y) |> map(row => let top = maximum(row) in row |> map(p => exp(p - top) * p) |> sum)
def columnsBeside(m: Nat, n: Nat, k: Nat)(X: m.k.f16, Y: n.k.f16) =
  let P = scores(X)(Y) in
  (P |> map(map(p => f16(p))), P |> transpose |> map(xs => (sum(xs), (maximum(xs), mean(xs)))))

def lessVariance(m: Nat, n: Nat, k: Nat)(X: m.k.f16, Y: n.k.f16) =
  zip(X)(scores(X)(Y)) |> map((x, row) => logSumExp(row) - (x |> map(a => f32(a)) |> variance))
def ofDirections(m: Nat, n: Nat, k: Nat)(X: m.k.f16, Y: n.k.f16) =
  zip(X)(scores(X)(Y)) |> map((x, row) =>
    let norm = rsqrt(1 + (x |> map(a => f32(a) * f32(a)) |> sum)) in row |> map(p => p * norm) |> maximum)

def loss{n: Nat}(row: n.f32, class: Idx[n]): f32 = logSumExp(row) - (row |> idx(class))
def losses{s: Nat, n: Nat, k: Nat}(X: s.k.f16, Y: n.k.f16, classes: s.Idx[n]): s.f32 =
  zip(scores(X)(Y))(classes) |> map((row, class) => loss(row, class))
def ofSequences(b: Nat, s: Nat, n: Nat, k: Nat)(X: b.s.k.f16, Y: n.k.f16, classes: b.s.Idx[n]) =
  zip(X)(classes) |> map((x, c) => losses(x)(Y)(c))
def meanOfSequences(b: Nat, s: Nat, n: Nat, k: Nat)(X: b.s.k.f16, Y: n.k.f16, classes: b.s.Idx[n]) =
  zip(X)(classes) |> map((x, c) => losses(x)(Y)(c)) |> join |> mean
def meansOfSequences(b: Nat, s: Nat, n: Nat, k: Nat)(X: b.s.k.f16, Y: n.k.f16, classes: b.s.Idx[n]) =
  zip(X)(classes) |> map((x, c) => losses(x)(Y)(c) |> mean)
def bestOfSequences(b: Nat, s: Nat, n: Nat, k: Nat)(X: b.s.k.f16, Y: n.k.f16) =
  X |> map(x => scores(x)(Y) |> map(argmax))
def bestOfPairs(b: Nat, s: Nat, n: Nat, k: Nat)(X: b.s.k.f16, Y: b.n.k.f16) =
  zip(X)(Y) |> map((x, y) => scores(x)(y) |> map(argmax))
def lossesOfPairs(b: Nat, s: Nat, n: Nat, k: Nat)(X: b.s.k.f16, Y: b.n.k.f16, classes: b.s.Idx[n]) =
  zip(X)(zip(Y)(classes)) |> map((x, (y, c)) => losses(x)(y)(c))
"""
EXAMPLES, OTHERS = loaded(ROOT / "examples" / "reduced_rows.rise"), check_text(MORE)
MINE = ("lastBest", "moments", "largest", "numbersInPairs", "arraysOfNumbers")
NAMES = ("logSumExps", "linearCrossEntropy", "scoresAndLogSumExps", "best", "nearest", "partition", *MINE)
FURTHER = ("weighted", "columnsBeside", "lessVariance", "ofDirections")
# programs of batches, with how many numbers for each row of a product stay in memory at most
BATCHES = {
    "ofSequences": 8, "meanOfSequences": 8, "meansOfSequences": 8, "bestOfSequences": 8,
    "bestOfPairs": 70, "lossesOfPairs": 70,
}  # fmt: skip
BY: dict[str, dict[str, Any]] = {
    "warps": {
        "block": (32, 64, 16), "warp": (16, 32), "fragment": (16, 32, 16), "stages": 2, "cp_async": False,
        "vector": 1,
    },
    "warpgroups": {"block": (64, 64, 32), "warp": (64, 64), "fragment": (64, 32, 16), "stages": 2},
    "persistent warpgroups": {
        "block": (128, 64, 32), "warp": (64, 64), "fragment": (64, 64, 16), "stages": 2,
        "warp_specialised": True, "raster_group": 2, "persistent_blocks": 3,
    },
}  # fmt: skip
SIZES = ((1, 1, 1), (33, 65, 17), (130, 127, 24), (64, 128, 16), (5, 300, 7))
CASES = [
    (name, by, SIZES[(number + turn) % len(SIZES)])
    for number, name in enumerate(NAMES)
    for turn, by in enumerate(BY)
]


def definition(name: str) -> Definition:
    return OTHERS[name] if name in (*MINE, *BATCHES, *FURTHER) else EXAMPLES[name]


@cache
def program(name: str, m: int, n: int, k: int) -> Expr:
    return data_flow(specialise(definition(name), {"m": m, "n": n, "k": k}))


def stored(made: HostProgram) -> int:
    """The most elements of a temporary."""
    sizes = (shape(temporary.variable.type)[0] for temporary in made.temporaries)
    return max((int(np.prod([size.value or 1 for size in each])) for each in sizes), default=0)


def assert_agrees(term: Expr, made: HostProgram) -> None:
    """On whole numbers, and on small ones, whose exponentials are not all of one element."""
    for seed, scale in ((3, 1.0), (4, 1 / 16)):
        given = random_inputs(inputs_of(term), seed, exact=True)
        given = [x * x.dtype.type(scale) if x.dtype.kind == "f" else x for x in given]
        found, wanted = execute(made, given, "emulate"), call(term, *given)
        result = compare(found, wanted, tolerance(term))
        assert result.agrees, result


@pytest.mark.parametrize(("name", "by", "sizes"), every_other(CASES))
def test_a_product_stores_only_what_parts_of_its_rows_are_reduced_to(
    name: str, by: str, sizes: tuple[int, int, int]
) -> None:
    """A part is as wide as a fragment; a second kernel combines the parts."""
    term = program(name, *sizes)
    made = assemble(succeeded(tensor_core(**BY[by], epilogue="direct")(term)).term, "f")
    m, n, _ = sizes
    parts = -(-n // BY[by]["fragment"][1]) + BY[by]["block"][1] // BY[by]["fragment"][1]
    copied = max(m + 256, n + 256) * 64  # operands whose rows are made longer
    assert stored(made) <= max(m * parts, copied)
    assert_agrees(term, made)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("logSumExps", {"rows": 64, "columns": 64}),
        ("largest", {"rows": 128, "columns": 32, "bulk_stores": False}),
        ("largest", {"rows": 64, "columns": 32, "bulk_stores": False, "parts": 2}),
        ("partition", {"rows": 64, "columns": 32, "bulk_stores": False, "parts": 3}),
        ("moments", {"rows": 64, "columns": 64, "fragment": 16, "parts": 2}),
    ],
)
def test_one_pass_takes_second_operands_alone(name: str, settings: dict[str, Any]) -> None:
    """Where blocks have whole columns, a step of the ring has nothing else, not even which columns exist."""
    term = program(name, 100, 192, 24)
    made = assemble(succeeded(one_pass(**settings)(term)).term, "f")
    assert any(word in made.kernels[0].source for word in ("wgmma", "mma_sync"))
    assert_agrees(term, made)


def test_a_weight_times_a_score_adds_nothing_behind_the_end() -> None:
    """A maximum takes -∞ for what is behind the end: its exponential is 0, but not 0 · -∞."""
    term = program("weighted", 60, 150, 24)
    low = succeeded(one_pass(rows=64, columns=64, bulk_stores=False)(term)).term
    assert_agrees(term, assemble(low, "f"))
    refused = tensor_core(**BY["warpgroups"], epilogue="direct")(term)
    assert isinstance(refused, Failure)


# --- auto -------------------------------------------------------------------------------------------------


def chosen(name: str, m: int, n: int, k: int) -> list[str]:
    return [choice.point.strategy for choice in auto(target="sm_90a").choice(program(name, m, n, k)).kernels]


@pytest.mark.parametrize("name", ["logSumExps", "partition", "largest"])
def test_rows_stay_in_shared_memory_up_to_some_depth(name: str) -> None:
    """Deeper products, and those whose rows the copying unit does not bring, have parts of rows reduced."""
    assert chosen(name, 1000, 3000, 384) == ["one_pass"]
    assert chosen(name, 1000, 3000, 392) == chosen(name, 1000, 3000, 100) == ["tensor_core"]


@pytest.mark.parametrize("name", every_other(NAMES))
def test_rows_that_are_reduced_are_not_stored(name: str) -> None:
    """Whatever the depth is; of logits, that are a result, no second matrix is."""
    for k in (64, 392, 100):
        sizes = {"m": 1000, "n": 3001, "k": k}
        made = codegen.compile(definition(name), sizes=sizes, target="sm_90a").program
        assert stored(made) < 1000 * 3001 / 4, k  # of operands with rows of 100, longer ones are


@pytest.mark.parametrize("name", every_other(FURTHER))
def test_what_no_part_of_a_row_gives_is_computed_of_whole_rows(name: str) -> None:
    term = program(name, 66, 70, 392)
    assert_agrees(term, assemble(succeeded(auto(target="sm_90a")(term)).term, "f"))


@pytest.mark.parametrize("name", every_other(BATCHES))
def test_rows_of_batches_are_multiplied_once(name: str) -> None:
    """Of sequences that share a matrix, as one list. Where each has its own, the products are stored once."""
    sizes = {"b": 3, "s": 67, "n": 70, "k": 392}
    term = data_flow(specialise(definition(name), sizes))
    made = assemble(succeeded(auto(target="sm_90a")(term)).term, "f")
    (product,) = (kernel for kernel in made.kernels if "wgmma" in kernel.source)
    rows = sizes["b"] * sizes["s"]
    assert stored(made) <= max(rows, sizes["n"]) * BATCHES[name]
    assert_agrees(term, made)


def test_short_products_are_multiplied_again_for_their_columns() -> None:
    """Neither product stores the matrix, and the diagonal takes products of single rows."""
    term = data_flow(specialise(definition("contrastive"), {"n": 130, "k": 72}))
    made = assemble(succeeded(auto(target="sm_90a")(term)).term, "f")
    assert len([kernel for kernel in made.kernels if "wgmma" in kernel.source]) == 2
    assert stored(made) < 130 * 130 / 4
    assert_agrees(term, made)


@pytest.mark.parametrize(("k", "times"), [(1024, 2), (1032, 1)])
def test_long_products_are_stored(k: int, times: int) -> None:
    made = codegen.compile(definition("contrastive"), sizes={"n": 300, "k": k}, target="sm_90a").program
    assert len([kernel for kernel in made.kernels if "wgmma" in kernel.source]) == times


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
@pytest.mark.parametrize("name", ["linearCrossEntropy", "best"])
def test_no_register_is_spilled(name: str) -> None:
    wide = {
        **BY["persistent warpgroups"],
        "block": (128, 256, 64),
        "warp": (64, 256),
        "fragment": (64, 256, 16),
    }
    made = assemble(succeeded(tensor_core(**wide, epilogue="direct")(program(name, 512, 512, 256))).term, "f")
    report = compiler_report(made.kernels[0].source, "sm_90a")
    assert "serialized" not in report and "0 bytes stack frame, 0 bytes spill stores" in report
