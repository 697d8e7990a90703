"""Every primitive through CUDA text, in the emulator: exact. And the form of the code, where it matters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kernels import agrees, arrays, kernel, loops, program

from codegen.execute import available_backend
from codegen.lower.translate import ACCEPTING, CONTINUING
from rise.primitives.declare import REGISTRY

TRANSLATIONS = Path(__file__).parents[2] / "codegen" / "lower" / "primitives"
COPY = "mapSeq(fun(x => x))"
SUM = "reduceSeq(Local)(fun((a, x) => a + x), 0)"
# the levels and copies of Hopper, and what rules have to lower first
UNTRANSLATED = {"bulkCopy", "reduce", "scan"}

HALVE = """depFun((l: Nat) => fun(ys: (2*l).i32 =>
  ys |> split(2) |> mapSeq(fun(p => idx(0)(p) - idx(1)(p)))))"""
NEXT = """depFun((l: Nat) => fun(ys: (1*l).i32 =>
  zip(ys)(ys |> reorder(l, natFun(i => l - 1 - i), natFun(i => l - 1 - i)))
  |> mapSeq(fun((x, y) => 2*x + y))))"""
BACKWARDS = "generate(fun((i: Idx[20]) => i)) |> reorder(20, natFun(i => 19 - i), natFun(i => 19 - i))"
MIX = 'foreignFunction("mix", 2, "return x1 * x1 - x2;")(fun((a, b) => a * a - b))'

# by what is shown; sizes are primes, so that what is mixed up shows
PROGRAMS = {
    "makeArray, read by a loop": f"fun((x: i32, y: i32) => makeArray(5)(x, y, 3, x, 7) |> {COPY})",
    "makeArray of arrays": "fun((xs: 3.f32, ys: 3.f32) =>"
    f" makeArray(2)(xs, ys) |> transpose |> mapSeq({COPY}))",
    "makeArray, written": "fun((xs: 5.f32, ys: 5.f32) =>"
    f" makeArray(3)(xs |> {COPY}, ys |> {COPY}, xs |> {COPY}))",
    "concat, read": f"fun((xs: 2.f32, ys: 5.f32, zs: 1.f32) => concat(concat(xs)(ys))(zs) |> {COPY})",
    "concat, written": f"fun((xs: 2.f32, ys: 5.f32) => concat(xs |> {COPY}, ys |> mapSeq(fun(y => y + 1))))",
    "padClamp": f"fun(xs: 7.f32 => xs |> padClamp(2, 3) |> {COPY})",
    "padClamp, left only": f"fun(xs: 1.f32 => xs |> padClamp(3, 0) |> {COPY})",
    "padClamp, right only": f"fun(xs: 5.f32 => xs |> padClamp(0, 2) |> {COPY})",
    "padClamp, then padCst": f"fun(xs: 3.f32 => xs |> padClamp(1, 1) |> padCst(1, 1)(0) |> {COPY})",
    "padCst of a value": f"fun((x: f32, xs: 7.f32) => xs |> padCst(2, 3)(x) |> {COPY})",
    "padCst before, padClamp after transposing": "fun(xs: 3.5.f32 =>"
    f" xs |> map(padCst(1, 2)(0)) |> transpose |> padClamp(2, 0) |> mapSeq({COPY}))",
    "padEmpty, written": f"fun(xs: 5.f32 => xs |> {COPY} |> padEmpty(0))",
    "padEmpty, read": f"fun(xs: 5.f32 => xs |> padEmpty(3) |> take(5) |> {COPY})",
    "gather": f"fun((is: 7.Idx[5], xs: 5.3.f32) => xs |> gather(is) |> mapSeq({COPY}))",
    "gather by gathered indices": "fun((is: 7.Idx[5], js: 5.Idx[3], xs: 3.f32) =>"
    f" xs |> gather(js |> gather(is)) |> {COPY})",
    "gather, padded: no index is read that there is not": "fun((is: 4.Idx[5], xs: 5.f32) =>"
    f" xs |> gather(is) |> padCst(1, 2)(0) |> {COPY})",
    "an index from data": "fun((is: 7.Idx[5], xs: 3.5.f32) =>"
    " is |> mapSeq(fun(i => xs |> join |> idx(natAsIndex(15)(2 * indexAsNat(i) + 1)))))",
    "scatter": f"fun((xs: 20.f32) => xs |> {COPY} |> scatter({BACKWARDS}))",
    "reorder, read": "fun(xs: 6.f32 =>"
    f" xs |> reorder(6, natFun(i => i / 3 + 2*(i % 3)), natFun(i => i / 2 + 3*(i % 2))) |> {COPY})",
    "scanSeq": "fun((z: i32, xs: 7.i32) => xs |> scanSeq(fun((x, a) => 2 * a + x), z))",
    "scanSeq of rows": "fun(xs: 5.3.f32 => xs |> scanSeq("
    "fun((x, a) => zip(x)(a) |> mapSeq(fun((p, q) => 2 * q - p))), generate(fun(i => 0))))",
    "iterate, each turn shorter": f"fun(xs: 24.i32 => xs |> iterate(3)({HALVE}))",
    "iterate, read": f"fun(xs: 12.i32 => xs |> iterate(2)({HALVE}) |> {SUM})",
    "iterate, many turns of one size": f"fun(xs: 3.i32 => xs |> iterate(5)({NEXT}))",
    "iterate, no turn": f"fun(xs: 3.i32 => xs |> iterate(0)({NEXT}))",
    "mapFst and mapSnd, read": "fun(ps: 5.(i32, f32) => ps |> mapSeq(fun(p =>"
    " p |> mapFst(fun(x => x + 1)) |> mapSnd(fun(y => y * 2)) |> fun((x, y) => f32(x) + y))))",
    "mapFst, written": "fun(p: (5.i32, 3.f32) => p |> mapFst(mapSeq(fun(x => x + 1))))",
    "mapSnd, written": "fun(p: (5.i32, 3.f32) => p |> mapSnd(mapSeq(fun(x => x + 1))))",
    "a C function, given": f"fun(xs: 5.i32 => xs |> mapSeq(fun(x => {MIX}(x, {MIX}(x, 3)))))",
    "a C function that exists": 'fun(xs: 5.f32 => xs |> mapSeq(foreignFunction("fabsf", 1)(abs)))',
    "vectorFromScalar": "fun((a: f32, xs: 12.f32) =>"
    " xs |> asVector(4) |> mapSeq(fun(v => v * vectorFromScalar(a))) |> asScalar)",
    "select of arrays": "fun((c: bool, xs: 5.f32, is: 5.Idx[5]) =>"
    f" select(c)(generate(fun(i => f32(indexToInt(i)))))(xs |> gather(is)) |> {COPY})",
    "select of pairs": "fun((xs: 5.i32, ys: 5.i32) =>"
    " zip(xs)(ys) |> mapSeq(fun((x, y) => select(x < y)((x, y))((y, x)))))",
    "whole numbers": "fun(xs: 7.f32 => xs |> mapSeq(fun(x => (round(x * 0.5), ceil(x * 0.25)))))",
    "narrow numbers wrap": "fun(xs: 7.u8 => xs |> mapSeq(fun(x => i32(fma(x + 250, x, x)))))",
    "the largest number of all": "fun(xs: 5.f32 => xs |> reduceSeq(Local)(min, infinity))",
}

needs_compiler = pytest.mark.skipif(available_backend() is None, reason="there is no C++ compiler")


@needs_compiler
@pytest.mark.parametrize("shown", PROGRAMS)
def test_a_primitive_computes_what_it_means(shown: str) -> None:
    text = PROGRAMS[shown]
    assert agrees(kernel(text), program(text)), kernel(text).source


def test_every_primitive_is_translated_but_those_that_are_listed() -> None:
    assert REGISTRY.keys() - ACCEPTING.keys() - CONTINUING.keys() == UNTRANSLATED


def test_a_translation_stands_in_the_file_that_declares_the_primitive() -> None:
    for name in REGISTRY.keys() - UNTRANSLATED:
        group = REGISTRY[name].group
        files = [group, "pipelines"] if group == "levels" else [group]  # pipelines have a file of their own
        texts = [(TRANSLATIONS / f"{file}.py").read_text(encoding="utf-8") for file in files]
        assert any(re.search(rf"\b{name}\b", text) for text in texts), name


# --- the form of the code -------------------------------------------------------------------------------

STRIDE = "natFun(i => i / 2 + 128*(i % 2)), natFun(i => i / 128 + 2*(i % 128))"
FORMS = {  # how many loops; no case stores an array
    "a copy": (f"fun(xs: 7.f32 => xs |> {COPY})", 1),
    "a copy in two dimensions": (f"fun(xs: 7.5.f32 => xs |> mapSeq({COPY}))", 2),
    "a copy in three dimensions": (f"fun(xs: 7.5.3.f32 => xs |> mapSeq(mapSeq({COPY})))", 3),
    "pieces": (f"fun(xs: 15.f32 => xs |> split(5) |> mapSeq({COPY}))", 2),
    "windows": (f"fun(xs: 7.f32 => xs |> slide(3, 1) |> mapSeq({COPY}))", 2),
    "windows in two dimensions": (f"fun(xs: 7.5.f32 => xs |> map(slide(3, 1)) |> slide(3, 1)"
                                  f" |> map(transpose) |> mapSeq(mapSeq(join >> {SUM})))", 3),
    "a view of what is written": (f"fun(xs: 7.5.f32 => xs |> mapSeq({COPY}) |> map(fun(x => x)))", 2),
    "a reduction": (f"fun(xs: 7.f32 => xs |> {SUM})", 1),
    "a reduction of a map": (f"fun(xs: 7.f32 => xs |> map(fun(x => x * x)) |> {SUM})", 1),
    "a reduction of reductions": (f"fun(xs: 7.5.f32 => xs |> map({SUM}) |> {SUM})", 2),
    "read with a stride": (f"fun(xs: 256.f32 => xs |> reorder(256, {STRIDE}) |> {COPY})", 1),
    "rows read with a stride": (f"fun(xs: 3.256.f32 => xs"
                                f" |> map(reorder(256, {STRIDE})) |> mapSeq({COPY}))", 2),
    "written with a stride": (f"fun(xs: 256.f32 => xs |> {COPY} |> reorder(256, {STRIDE}))", 1),
    "scattered": (f"fun(xs: 20.f32 => xs |> {COPY} |> scatter(generate(fun((i: Idx[20]) => i))))", 1),
    "pairs": ("fun(ps: 5.(f32, i32) => ps |> mapSeq(fun((x, y) => (y, x))))", 1),
    "a choice of arrays": (f"fun((c: bool, xs: 5.f32) => select(c)(xs)(generate(fun(i => 0))) |> {COPY})", 1),
}  # fmt: skip


@pytest.mark.parametrize("shown", FORMS)
def test_views_cost_no_loop_and_no_memory(shown: str) -> None:
    text, count = FORMS[shown]
    assert (loops(kernel(text)), arrays(kernel(text))) == (count, []), kernel(text).source


READ_AS_A_VIEW = f"fun(xs: 5.f32 => xs |> map(fun(x => {{}})) |> slide(2, 1) |> mapSeq({SUM}))"


@pytest.mark.parametrize(
    "text",
    [
        "fun(x: f32 => (x + 2 |> toMem(Local)) |> fun(y => y * y))",
        "fun(x: f32 => let y = x + 2 in y * y)",
        "fun(x: f32 => (x + 2) |> fun(y => y * y))",
        READ_AS_A_VIEW.format("let y = x + 2 in y * y"),
        READ_AS_A_VIEW.format("(x + 2) |> fun(y => y * y)"),
    ],
)
def test_what_is_named_is_computed_once(text: str) -> None:
    assert kernel(text).source.count("+ 2.0f") == 1, kernel(text).source


def test_what_a_map_uses_twice_is_computed_once() -> None:
    """So code does not double with every map before a loop."""
    squares = "map(fun(x => x * x)) |> " * 8
    source = kernel(f"fun(xs: 5.f32 => xs |> {squares}mapSeq(fun(x => x)))").source
    assert source.count(" * ") == 8, source


@needs_compiler
def test_transposed_while_read_is_transposed_while_written() -> None:
    read = f"fun(xs: 6.10.f32 => xs |> transpose |> mapSeq({COPY}))"
    written = f"fun(xs: 6.10.f32 => xs |> mapSeq({COPY}) |> transpose)"
    assert agrees(kernel(read), program(written)) and agrees(kernel(written), program(read))


@needs_compiler
def test_an_accumulator_may_be_an_array_and_start_as_a_part_of_a_pair() -> None:
    step = "fun((a, row) => zip(a)(row) |> mapSeq(fun((s, x) => s + x)))"
    sums = f"xs |> reduceSeq(Local)({step}, fst(start))"
    text = f"fun((start: (64.f32, 3.f32), xs: 64.64.f32) => {sums} |> {COPY})"
    assert agrees(kernel(text), program(text))
    assert len(arrays(kernel(text))) == 1


# --- index arithmetic stays small -----------------------------------------------------------------------


def padded(depth: int) -> str:
    """A stencil on an array that is padded that often, in both dimensions, in turn by border and by zeros."""
    pads = "".join(
        f" |> map({pad}) |> {outer}"
        for pad, outer in [
            ("padClamp(1, 1)", "padClamp(1, 1)"),
            ("padCst(1, 1)(0)", "padCst(1, 1)(generate(fun(i => 0)))"),
        ]
        * (depth // 2)
    )
    return f"fun(xs: 5.3.f32 => xs{pads} |> mapSeq(slide(3, 1) >> mapSeq({SUM})))"


def test_nested_pads_make_text_that_grows_with_their_number() -> None:
    """Each pad adds a constant; were indices copied into both ends of a clamp, it would double the text."""
    four, eight, twelve = (len(kernel(padded(depth)).source) for depth in (4, 8, 12))
    assert abs((twelve - eight) - (eight - four)) < 0.2 * (eight - four)


@needs_compiler
def test_nested_pads_are_right() -> None:
    assert agrees(kernel(padded(4)), program(padded(4)))


def test_what_is_certain_is_not_compared() -> None:
    """The middle of a padded array has neither conditions nor clamped indices."""
    for pad in ("padClamp(2, 2)", "padCst(2, 2)(0)"):
        source = kernel(f"fun(xs: 7.f32 => xs |> {pad} |> drop(2) |> take(7) |> {COPY})").source
        assert re.search(r"output\[(\w+)\] = xs_\[\1\];", source), source


def test_a_computed_index_is_stored_once() -> None:
    """Both members of a pair are read through one index."""
    made = kernel(f"fun((is: 7.Idx[5], ps: 5.(f32, i32)) => ps |> gather(is) |> {COPY})")
    assert made.source.count("is_[") == 2  # one for each of two assignments
    text = "fun((is: 7.Idx[5], ps: 5.(f32, f32)) => ps |> gather(is) |> mapSeq(fun((x, y) => x - y)))"
    assert kernel(text).source.count("is_[") == 1
