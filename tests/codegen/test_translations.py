"""Every primitive through CUDA text, in the emulator: exact. And the form of the code, where it matters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codegen.execute import available_backend
from codegen.lower.translate import ACCEPTING, CONTINUING
from rise.primitives.declare import REGISTRY
from tests.support.kernels import agrees, arrays, kernel, loops
from tests.support.programs import program
from tests.support.translations import COPY, PROGRAMS, SUM

TRANSLATIONS = Path(__file__).parents[2] / "codegen" / "lower" / "primitives"
# the levels and copies of Hopper, and what rules have to lower first
UNTRANSLATED = {"reduce", "scan"}


needs_compiler = pytest.mark.skipif(available_backend() is None, reason="there is no C++ compiler")


@needs_compiler
@pytest.mark.parametrize("shown", PROGRAMS)
def test_a_primitive_computes_what_it_means(shown: str) -> None:
    text = PROGRAMS[shown]
    assert agrees(kernel(text), program(text)), kernel(text).source


def test_every_primitive_is_translated_but_those_that_are_listed() -> None:
    assert REGISTRY.keys() - ACCEPTING.keys() - CONTINUING.keys() == UNTRANSLATED


# of levels, pipelines and their steps have files of their own
LOOPS = ("pipelines", "skew", "turns")


def test_a_translation_stands_in_the_file_that_declares_the_primitive() -> None:
    for name in REGISTRY.keys() - UNTRANSLATED:
        group = REGISTRY[name].group
        files = [group, *LOOPS] if group == "levels" else [group]
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
