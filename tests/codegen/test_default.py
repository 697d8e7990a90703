"""The strategy `default` lowers any high-level program, and leaves low-level ones as they are."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from codegen.execute import available_backend
from codegen.ir.imperative import commands
from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from rise.check.program import Loader
from rise.check.specialise import specialise
from rise.errors import EvaluationError, RiseError, TranslationError
from rise.expr import Expr, Primitive, alpha_equal, subterms
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.pretty import show
from rise.testing import Choose, exact, high_level
from rise.testing.programs import program as random_program
from strategies.default import default
from tests.support.examples import EXAMPLES, REFERENCES, REFUSED
from tests.support.kernels import agrees, arrays, loops, lowered, parts
from tests.support.nightly import every_other
from tests.support.programs import program, succeeded

needs_compiler = pytest.mark.skipif(available_backend() is None, reason="there is no C++ compiler")


def kernel_of(text: str, prelude: bool = False) -> Kernel:
    return generate(lowered(text, prelude), "f")


# --- examples -------------------------------------------------------------------------------------------


def test_every_example_becomes_a_kernel_but_those_that_are_listed() -> None:
    """That the kernels are right is tested with the examples: some each time, all every night."""
    loader, refused = Loader(), {}
    cases = every_other(sorted(REFERENCES.items()))
    for (file, name), reference in cases:
        term = data_flow(specialise(loader.load(EXAMPLES / file).program[name], reference.sizes[-1]))
        result = succeeded(default()(term))
        try:
            generate(result.term, "example")
        except TranslationError as error:
            refused[file, name] = error.code
    assert refused == {case: code for case, code in REFUSED.items() if case in dict(cases)}


# --- any program ----------------------------------------------------------------------------------------


class Drawn(Choose):
    """Decisions of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def below(self, bound: int) -> int:
        return self.random.randrange(bound) if bound > 1 else 0


def made(seed: int) -> tuple[Expr, Expr]:
    """A high-level program, and what `default` makes of it."""
    term = data_flow(random_program(Drawn(seed), primitives=high_level() & exact()))
    return term, succeeded(default()(term)).term


def test_any_program_becomes_a_kernel() -> None:
    fired: Counter[str] = Counter()
    for seed in range(80):
        term, low_level = made(seed)
        try:
            kernel = generate(low_level, "f")
        except RiseError as error:
            raise AssertionError(f"seed {seed}: {error.message}\n{show(term)}") from error
        fired.update({p.name for p in subterms(low_level) if isinstance(p, Primitive)})
        fired["index from data"] += "index_1" in kernel.source
    for name in ("mapGlobal", "mapSeq", "toMem", "reduceSeq", "scanSeq", "let", "concat", "index from data"):
        assert fired[name] >= 3, (name, fired)


@needs_compiler
@pytest.mark.parametrize("seed", range(1000, 1010))
def test_the_kernel_of_any_program_is_right(seed: int) -> None:
    term, low_level = made(seed)
    kernel = generate(low_level, "f")
    try:
        call(term, *random_inputs(kernel.inputs, seed, exact=True))
    except EvaluationError:
        pytest.skip("these inputs have no result")
    assert agrees(kernel, term, seed), f"{show(term)}\n{kernel.source}"


# --- what is stored -------------------------------------------------------------------------------------

PAIR_STEP = "fun(((s, t), row) => (zip(t)(row) |> map(fun((x, y) => x + y)), s))"
NEIGHBOURS = "fun(ys => zip(ys)(reverse(ys)) |> map(fun((x, y) => 2 * x - y)))"
CASES = {
    "each thread stores a row of the first product": "fun((A: 5.3.i32, B: 3.7.i32, C: 7.2.i32) =>"
    " matmul(matmul(A)(B))(C))",
    "an array that is used twice": "fun((A: 5.3.i32, x: 3.i32) =>"
    " let y = matvec(A)(x) in y |> map(fun(e => e * dot(y)(y))))",
    "a scan that a map reads": "fun(xs: 7.i32 => zip(xs)(xs |> scan(+, 0)) |> map(fun((x, s) => s - x)))",
    "scans of rows and columns": "fun(A: 5.3.i32 =>"
    " A |> map(scan(+, 0)) |> transpose |> map(scan(+, 0)) |> transpose)",
    "a fold whose step reads its neighbours": f"fun(xs: 7.i32 => xs |> repeat(3)({NEIGHBOURS}))",
    "a fold of a pair of arrays": "fun((xs: 5.i32, A: 3.5.i32) =>"
    f" A |> reduceSeq(Local)({PAIR_STEP}, (xs, xs)))",
    "several results": "fun((xs: 5.i32, ys: 3.i32) => (xs |> map(fun(x => x + 1)), ys |> scan(+, 0)))",
    "an array and a number": "fun(xs: 5.i32 => (xs |> map(fun(x => x + 1)), sum(xs)))",
    "half of the result is computed": "fun((xs: 5.i32, ys: 3.i32) => concat(xs |> map(fun(x => x + 1)))(ys))",
    "elements put elsewhere": "fun((xs: 5.i32) => xs |> map(fun(x => x + 1)) |> scatter(reverse(indices)))",
    "an iteration": "fun(xs: 24.i32 =>"
    " xs |> iterate(3)(depFun((l: Nat) => fun(ys: (2*l).i32 => ys |> split(2) |> map(sum)))))",
    "a choice of computed arrays": "fun((c: bool, A: 5.3.i32) =>"
    " select(c)(A |> map(sum))(A |> map(maximum)) |> slide(2, 1) |> map(sum))",
    "remainders of fractions": "fun((xs: 5.f16, c: f16) => xs |> map(fun(x => x % (c * c + 1))))",
}


@needs_compiler
@pytest.mark.parametrize("case", CASES)
def test_what_takes_loops_is_stored_where_it_is_read(case: str) -> None:
    meaning = program(CASES[case], prelude=True)
    assert agrees(kernel_of(CASES[case], prelude=True), meaning)


def test_a_thread_stores_only_what_it_reads() -> None:
    kernel = kernel_of(CASES["each thread stores a row of the first product"], prelude=True)
    assert kernel.launch.grid[0] * kernel.launch.block[0] == 5
    assert "Local<int, 7>" in kernel.source and len(arrays(kernel)) == 1


def test_what_takes_no_loop_is_not_stored() -> None:
    kernel = kernel_of(
        "fun(xs: 7.f32 => xs |> map(fun(x => x * 2)) |> slide(3, 1) |> map(sum))", prelude=True
    )
    assert arrays(kernel) == [] and loops(kernel) == 2


def test_a_result_for_the_whole_grid_is_refused() -> None:
    """It would have to be complete before any thread reads of it: that takes two kernels."""
    text = "fun(xs: {n}.f32 => zip(xs)(xs |> scan(+, 0)) |> map(fun((x, s) => s - x)))"
    assert kernel_of(text.format(n=4096)).source
    with pytest.raises(TranslationError) as refused:
        kernel_of(text.format(n=4097))
    assert refused.value.code == "R0726" and "kernel of its own" in refused.value.message


# --- low-level programs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "fun(xs: 7.f32 => xs |> mapSeq(fun(x => x)))",
        "fun(xs: 7.5.f32 => xs |> mapBlock(mapThreads(fun(x => x + 1))))",
        "fun(xs: 3.64.f32 => xs |> mapBlock(fun(r => r |> mapThreads(fun(x => x)) |> toMem(Shared)"
        " |> slide(3, 1) |> mapThreads(fun(w => w |> reduceSeq(Local)(fun((a, x) => a + x), 0))))))",
    ],
)
def test_a_low_level_program_stays_as_it_is(text: str) -> None:
    assert alpha_equal(lowered(text), program(text))


def test_what_is_high_level_in_a_program_with_levels_becomes_loops() -> None:
    kernel = kernel_of("fun(A: 7.5.f32 => A |> mapBlock(fun(r => r |> map(fun(x => x + 1)))))")
    patterns = [type(c).__name__ for c in commands(kernel.function.body) if type(c).__name__.endswith("For")]
    assert patterns == ["ParallelFor", "For"]


def test_parts_are_one_after_the_other() -> None:
    """The helper that comparisons rest on takes pairs apart in order."""
    assert [int(part) for part in parts((1, (2, 3)))] == [1, 2, 3]
