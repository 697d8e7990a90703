"""Programs that cannot become kernels are refused: code, message and place, exactly."""

from __future__ import annotations

import pytest

from codegen.execute import execute
from codegen.ir import imperative as i
from codegen.lower.accumulators import check_update
from codegen.pipeline import generate
from rise.check.program import check_text
from rise.check.specialise import size_names, specialise
from rise.errors import TranslationError
from rise.expr import Expr, inline
from rise.interpret import call, random_inputs
from rise.nat import nat, variable
from rise.normal import data_flow
from rise.source import place
from rise.types import F32

SUM = "reduceSeq(Local)(fun((s, t) => s + t), 0)"
COPY = "mapThreads(fun(x => x))"
FRAGMENT = "fun(t => t |> asFragment |> toMem(Local) |> asMatrix)"
WRITTEN = "the program does not say how this {} of type `{}` is written"
LEVELS = "a map over {}s cannot be inside one over {}s"
SAME = "all {}s write the same location of `{}`"
SEVERAL = "several {}s write the same location of `{}`"
OWNED = "`{}` is in the registers of each {}, but another one uses it"
WARP = "a fragment belongs to a whole warp: use it inside mapWarp and outside mapLane"
STEP = "the step of a reduction reads an element of `acc` that it does not write"
THREADS = "a block would have {} threads; the limit is 1024"
NOWHERE = "the result of `{}`, of type `{}`, is read but not stored anywhere"
GRID_WIDE = "{}: a result for the whole grid that others read needs a kernel of its own"
IMPLICIT = "this map computes a result that would be stored implicitly"
SCATTERED = (
    "the tile has its elements at 512*block_x + 2*column_0 + 32*row_0 + 512*warp:"
    " neither rows nor columns are contiguous"
)

BOTH = "w |> reduceSeq(Local)(fun((acc, t) => «t |> transpose |> asFragment»), w |> idx(0) |> asFragment)"

# «» mark the place that the error is to show
CASES = {
    "the result has no level": (
        *("R0701", "the program does not say how this map writes its result of type `4.f32`"),
        "fun((xs: 4.f32) => «xs |> map(fun(x => x + 1))»)",
    ),
    "the result is an input": (
        *("R0701", WRITTEN.format("result", "4.f32")),
        "fun((xs: 4.f32) => «xs»)",
    ),
    "half of the result has no level": (
        *("R0701", WRITTEN.format("result", "4.f32")),
        "fun((xs: 4.f32) => (xs |> mapSeq(fun(x => x)), «xs»))",
    ),
    "a view that cannot be written through": (
        *("R0701", WRITTEN.format("result", "3.2.f32")),
        "fun((xs: 4.f32) => «xs |> mapSeq(fun(x => x)) |> slide(2, 1)»)",
    ),
    "toMem is missing": (
        *("R0702", NOWHERE.format("mapSeq", "4.f32")),
        "fun((xs: 4.f32) => «xs |> mapSeq(fun(x => x + 1))» |> mapSeq(fun(x => x)))",
    ),
    "a reduction without order": (
        *("R0702", NOWHERE.format("reduce", "f32")),
        "fun((xs: 4.f32) => «xs |> reduce(+, 0)»)",
    ),
    "a map that would allocate": (
        *("R0703", IMPLICIT),
        f"fun((xs: 4.4.f32) => «xs |> map(fun(r => r |> mapSeq(fun(x => x + 1)) |> toMem(Local)))»"
        f" |> transpose |> mapSeq(fun(r => r |> {SUM})))",
    ),
    "registers of all threads read by each": (
        *("R0705", OWNED.format("value", "thread")),
        f"fun((xs: 2.32.f32) => xs |> mapBlock(fun(r => «r |> {COPY}» |> toMem(Local)"
        " |> mapSeq(fun(x => x)))))",
    ),
    "registers of the neighbours": (
        *("R0705", OWNED.format("value", "thread")),
        f"fun((xs: 2.32.f32) => xs |> mapBlock(fun(r => «r |> {COPY}» |> toMem(Local)"
        f" |> slide(3, 1) |> mapThreads(fun(w => w |> {SUM})))))",
    ),
    "registers distributed in two ways": (
        *("R0705", "`value` is distributed over two different levels"),
        "fun((xs: 2.8.8.f32) => xs |> mapBlock(fun(r => «r |> mapThreads(0)(mapSeq(fun(x => x)))»"
        " |> toMem(Local) |> mapThreads(1)(mapSeq(fun(x => x))))))",
    ),
    "a fragment outside of mapWarp": (
        *("R0706", WARP),
        "fun((a: 16.16.f32) => «a |> asFragment» |> toMem(Local) |> asMatrix)",
    ),
    "a fragment for each thread": (
        *("R0706", WARP),
        "fun((a: 2.32.16.16.f32) => a |> mapBlock(mapThreads(fun(t =>"
        " «t |> asFragment» |> toMem(Local) |> asMatrix))))",
    ),
    "a fragment inside of mapLane": (
        *("R0706", WARP),
        "fun((a: 2.2.32.16.16.f32) => a |> mapBlock(mapWarp(mapLane(fun(t =>"
        " «t |> asFragment» |> toMem(Local) |> asMatrix)))))",
    ),
    "all threads write one place": (
        *("R0707", SAME.format("thread", "output")),
        f"fun((xs: 4.32.f32) => xs |> mapBlock(fun(r => r |> {COPY} |> toMem(Shared)"
        " |> mapSeq(fun(x => «x»)))))",
    ),
    "all lanes write one place": (
        *("R0707", SAME.format("lane", "output")),
        "fun((xs: 4.2.8.f32) => xs |> mapBlock(mapWarp(mapSeq(fun(x => «x»)))))",
    ),
    "all blocks write one place": (
        *("R0707", SAME.format("block", "output_snd")),
        "fun((xs: 4.f32, ys: 3.f32) => ys |> mapSeq(fun(y => y)) |> toMem(Shared) |> fun(tile =>"
        " (xs |> mapBlock(fun(x => x + (tile |> idx(0)))), tile |> mapSeq(fun(y => «y»)))))",
    ),
    "all threads in another dimension write one place": (
        *("R0707", SAME.format("thread", "output_snd")),
        "fun((xs: 4.8.f32, ys: 8.f32) => xs |> mapThreads(1)(mapThreads(0)(fun(x => x))) |> toMem(Shared)"
        " |> fun(tile => (tile |> mapThreads(1)(mapThreads(0)(fun(x => x))),"
        " tile |> idx(0) |> mapThreads(0)(fun(y => «y»)))))",
    ),
    "all rows of threads are warps again": (
        *("R0707", SAME.format("thread", "output_snd")),
        "fun((xs: 4.32.f32) => xs |> mapThreads(1)(mapThreads(0)(fun(x => x))) |> toMem(Shared)"
        " |> fun(tile => (tile |> mapThreads(1)(mapThreads(0)(fun(x => x))),"
        " tile |> idx(0) |> split(32) |> mapWarp(mapLane(fun(y => «y»))))))",
    ),
    "case 14: what all threads wrote, written by each": (
        *("R0707", SAME.format("thread", "tile")),
        "fun((xs: 3.64.f32) => xs |> mapBlock(fun(r => r |> mapSeq(fun(x => «x»)) |> toMem(Shared)"
        f" |> {COPY})))",
    ),
    "a reorder by what is no permutation": (
        *("R0707", SEVERAL.format("thread", "output")),
        "fun((xs: 64.f32) => xs |> mapThreads(fun(x => «x»))"
        " |> reorder(64, natFun(i => i % 32), natFun(i => i % 32)))",
    ),
    "a scatter of two elements to one place": (
        *("R0707", SEVERAL.format("thread", "output")),
        "fun((xs: 64.f32) => xs |> mapThreads(fun(x => «x»))"
        " |> scatter(generate(fun((i: Idx[64]) => natAsIndex(64)(indexToInt(i) / 2)))))",
    ),
    "a scatter by blocks of all elements to one place": (
        *("R0707", SAME.format("block", "output")),
        "fun((xs: 6.f32) => xs |> mapBlock(fun(x => «x»))"
        " |> scatter(generate(fun((i: Idx[6]) => natAsIndex(7)(3)))))",
    ),
    "a scatter by data": (
        *("R0707", "threads may write the same location of `output`: its indices are data"),
        "fun((xs: 64.f32, is: 64.Idx[64]) => xs |> mapThreads(fun(x => «x»)) |> scatter(is))",
    ),
    "a tile that is computed": (
        *("R0710", "the tile is computed: a fragment is loaded from memory"),
        "fun((a: 2.1.16.16.f32) => a |> mapBlock(mapWarp(fun(t =>"
        " «t |> map(map(fun(x => x + 1))) |> asFragment» |> toMem(Local) |> asMatrix))))",
    ),
    "a tile of every other element": (
        *("R0711", SCATTERED),
        "fun((a: 2.1.16.16.2.f32) => a |> mapBlock(mapWarp(fun(t =>"
        " «t |> map(map(fun(x => x |> idx(0)))) |> asFragment» |> toMem(Local) |> asMatrix))))",
    ),
    "too many threads": (
        *("R0714", THREADS.format(2048)),
        "fun((xs: 2.2048.f32) => xs |> mapBlock(mapThreads(fun(x => x))))",
    ),
    "too many threads in two dimensions": (
        *("R0714", THREADS.format(1056)),
        "fun((xs: 33.32.f32) => xs |> mapThreads(1)(mapThreads(0)(fun(x => x))))",
    ),
    "too many warps": (
        *("R0714", THREADS.format(1056)),
        "fun((xs: 2.33.32.f32) => xs |> mapBlock(mapWarp(mapLane(fun(x => x)))))",
    ),
    "a fragment in shared memory": (
        *("R0715", "`Fragment[16, 16, 16, f32, Accum]` cannot be stored in memory"),
        "fun((a: 2.2.16.16.f32) => a |> mapBlock(mapWarp(fun(t =>"
        " t |> asFragment |> toMem(Shared) |> asMatrix))))",
    ),
    "too much shared memory": (
        *("R0716", "240000 bytes of shared memory are needed; the limit is 232448"),
        "fun((xs: 2.60000.f32) => xs |> mapBlock(fun(r => r |> split(1000)"
        " |> mapThreads(mapSeq(fun(x => x))) |> toMem(Shared) |> mapThreads(mapSeq(fun(x => x))))))",
    ),
    "shared memory of a thread": (
        *("R0717", "`tile` would be shared memory of a single thread"),
        "fun((xs: 2.32.4.f32) => xs |> mapBlock(mapThreads(fun(r => «r |> mapSeq(fun(x => x))»"
        " |> toMem(Shared) |> mapSeq(fun(x => x))))))",
    ),
    "shared memory of a thread of the grid": (
        *("R0717", "`tile` would be shared memory of a single thread"),
        "fun((xs: 100.4.f32) => xs |> mapGlobal(fun(r => «r |> mapSeq(fun(x => x))»"
        " |> toMem(Shared) |> mapSeq(fun(x => x)))))",
    ),
    "an asynchronous copy of a thread": (
        *("R0717", "`tile` would be shared memory of a single thread"),
        "fun((xs: 3.64.4.f32) => xs |> mapBlock(mapThreads(fun(r => «r |> mapSeq(fun(x => x))» |> copyAsync"
        " |> mapSeq(fun(x => x))))))",
    ),
    "mapWarp in mapWarp": (
        *("R0719", LEVELS.format("warp", "warp")),
        "fun((xs: 4.4.f32) => xs |> mapWarp(«mapWarp(fun(x => x))»))",
    ),
    "mapBlock in mapThreads": (
        *("R0719", LEVELS.format("block", "thread")),
        "fun((xs: 4.4.f32) => xs |> mapThreads(«mapBlock(fun(x => x))»))",
    ),
    "mapWarp in mapLane": (
        *("R0719", LEVELS.format("warp", "lane")),
        "fun((xs: 4.4.f32) => xs |> mapLane(«mapWarp(fun(x => x))»))",
    ),
    "mapThreads in mapWarp": (
        *("R0719", LEVELS.format("thread", "warp")),
        "fun((xs: 4.4.f32) => xs |> mapWarp(«mapThreads(fun(x => x))»))",
    ),
    "mapBlock twice in one dimension": (
        *("R0719", LEVELS.format("block", "block")),
        "fun((xs: 4.4.f32) => xs |> mapBlock(1)(«mapBlock(1)(fun(x => x))»))",
    ),
    "the accumulator read in another order": (
        *("R0720", STEP),
        "fun((xs: 4.8.f32) => xs |> reduceSeq(Local)(fun((acc, r) =>"
        " zip(acc |> split(4) |> transpose |> join)(r) |> mapSeq(fun((a, x) => «a + x»))),"
        " generate(fun(i => 0))) |> mapSeq(fun(x => x)))",
    ),
    "the accumulator read at one place": (
        *("R0720", STEP),
        "fun((xs: 4.8.f32) => xs |> reduceSeq(Local)(fun((acc, r) =>"
        " zip(acc)(r) |> mapSeq(fun((a, x) => «x + (acc |> idx(0))»))),"
        " generate(fun(i => 1))) |> mapSeq(fun(x => x)))",
    ),
    "the accumulator read as a whole": (
        *("R0720", STEP),
        "fun((xs: 4.8.f32) => xs |> reduceSeq(Local)(fun((acc, r) => r |> mapSeq(fun(x =>"
        f" «x + (acc |> {SUM})»))), generate(fun(i => 1))) |> mapSeq(fun(x => x)))",
    ),
    "an input that is a function": (
        *("R0722", "the input `g` is a function"),
        "«fun((g: f32 -> f32, xs: 4.f32) => xs |> mapSeq(g))»",
    ),
    "a result that is a function": (
        *("R0723", "the result is a function of type `(n: Nat) -> n.f32`"),
        "fun(x: f32 => «depFun((n: Nat) => generate(fun((i: Idx[n]) => x)))»)",
    ),
    "a temporary result in global memory": (
        *("R0726", GRID_WIDE.format("a temporary result is stored in Global memory")),
        "fun(xs: 4.f32 => «xs |> mapGlobal(fun(x => x + 1))» |> toMem(Global) |> mapGlobal(fun(x => x)))",
    ),
    "more than a thread can keep": (
        *("R0726", GRID_WIDE.format("`value` takes 16388 bytes in each thread")),
        "fun(xs: 4097.f32 => «xs |> mapSeq(fun(x => x + 1))» |> toMem(Local) |> mapSeq(fun(x => x)))",
    ),
    "one fragment from tiles of both layouts": (
        *("R0721", "`acc` is loaded from tiles of both layouts"),
        f"fun((a: 2.2.3.16.16.f16) => a |> mapBlock(mapWarp(fun(w => {BOTH} |> fun(x =>"
        " tensorMatMulAdd(x)(w |> idx(1) |> asFragment |> toMem(Local))"
        "(generateFragment(f32(0)) |> toMem(Local)) |> toMem(Local) |> asMatrix)))))",
    ),
}
# the place is not part of the claim where the error is of the kernel as a whole
OF_THE_KERNEL = {"R0713", "R0714", "R0715", "R0716"}


def program(text: str) -> Expr:
    definition = check_text(f"def kernel = {text}")["kernel"]
    return data_flow(inline(specialise(definition, dict.fromkeys(size_names(definition), 16))))


@pytest.mark.parametrize("case", CASES)
def test_refused(case: str) -> None:
    code, message, text = CASES[case]
    plain = text.replace("«", "").replace("»", "")
    with pytest.raises(TranslationError) as refused:
        generate(program(plain), "kernel")
    error = refused.value
    assert (error.code, error.message) == (code, message)
    if "«" in text:
        start = len("def kernel = ") + text.index("«") + 1
        end = len("def kernel = ") + text.index("»")
        span = place(error.origin)
        assert span is not None
        assert (span.line, span.column, span.end_line, span.end_column) == (1, start, 1, end)
    else:
        assert code in OF_THE_KERNEL


def test_what_a_loop_of_a_step_has_replaced_is_not_read() -> None:
    """for i < 8. { a[i] := b[i] ; b[i] := a[i] } would give both the old value of b."""
    a, b = (i.Access(name, (variable("i"),), F32) for name in "ab")
    exchanged = i.For("i", nat(8), i.sequence(i.Assign(a, b), i.Assign(b, a)))
    with pytest.raises(TranslationError, match="reads an element of `a` that it has replaced"):
        check_update(exchanged)
    twice = i.Assign(a, i.Operator("add", (a, b), F32))
    check_update(i.For("i", nat(8), i.sequence(twice, twice)))


LEGAL = {
    "blocks, warps, lanes": "fun((xs: 2.2.32.f32) => xs |> mapBlock(mapWarp(mapLane(fun(x => x)))))",
    "a reduction in each thread": (
        f"fun((xs: 2.8.5.f32) => xs |> mapBlock(mapThreads(fun(r => r |> {SUM}))))"
    ),
    "a fragment of each warp": f"fun((a: 2.2.16.16.f32) => a |> mapBlock(mapWarp({FRAGMENT})))",
    "1024 threads": "fun((xs: 32.32.f32) => xs |> mapThreads(1)(mapThreads(0)(fun(x => x))))",
    "accumulators from tiles of both layouts": (
        f"fun((a: 2.2.3.16.16.f32) => a |> mapBlock(mapWarp(fun(w => {BOTH} |> asMatrix))))".replace(
            "«", ""
        ).replace("»", "")
    ),
    "a scatter by a permutation": (
        "fun((xs: 64.f32) => xs |> mapThreads(fun(x => x))"
        " |> scatter(generate(fun((i: Idx[64]) => natAsIndex(64)(63 - indexToInt(i))))))"
    ),
    "a scatter by indices put in another order": (
        "fun((xs: 6.8.f32) => xs |> mapBlock(fun(r => r |> mapThreads(fun(x => x)))) |> join"
        " |> scatter(generate(fun((i: Idx[48]) => i)) |> split(8) |> transpose |> join))"
    ),
    "the accumulator read where it is written": (
        "fun((xs: 4.8.f32) => xs |> reduceSeq(Local)(fun((acc, r) => zip(acc)(r)"
        " |> mapSeq(fun((a, x) => a + x * a))), generate(fun(i => 1))) |> mapSeq(fun(x => x)))"
    ),
    "pairs in the accumulator, exchanged": (
        "fun((xs: 4.8.f32) => xs |> reduceSeq(Local)(fun((acc, r) => zip(acc)(r)"
        " |> mapSeq(fun(((a, b), x) => (b + x, a)))), generate(fun(i => (0, 1))))"
        " |> mapSeq(fun((a, b) => a - b)))"
    ),
    "pairs in rows of the accumulator, exchanged": (
        "fun((xs: 4.2.8.f32) => xs |> reduceSeq(Local)(fun((acc, r) => zip(acc)(r) |> mapSeq(fun((row, ys) =>"
        " zip(row)(ys) |> mapSeq(fun(((a, (b, c)), x) => (c, (a, b + x))))))), generate(fun(i =>"
        " generate(fun(j => (0, (1, 2))))))) |> mapSeq(mapSeq(fun((a, (b, c)) => a - b * c))))"
    ),
}


@pytest.mark.parametrize("case", LEGAL)
def test_accepted(case: str) -> None:
    """What is next to the forbidden is allowed, and right."""
    term = program(LEGAL[case])
    kernel = generate(term, "kernel")
    inputs = random_inputs(kernel.inputs, 0, exact=True)
    assert (execute(kernel, inputs, "emulate") == call(term, *inputs)).all()
