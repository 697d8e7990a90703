"""Programs of several kernels: cut at what is stored in global memory, exact, temporaries sharing memory."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.ir import imperative as i
from codegen.passes.split_kernels import kernels as split
from codegen.pipeline import assemble, generate
from codegen.runtime import can_compile, compile_cubin
from rise.errors import TranslationError
from rise.interpret import call, random_inputs
from rise.nat import nat, variable
from rise.source import place
from rise.types import F32, Array, Space
from tests.support.kernels import parts
from tests.support.nightly import every_other
from tests.support.programs import program

SUM = "reduceSeq(Local)(fun((s, x) => s + x), 0)"
COPY = "mapSeq(fun(x => x))"
ONE_MORE = "mapGlobal(fun(x => x + 1)) |> toMem(Global)"
# by name: the text, how many kernels it is, and the bytes of its temporaries
PROGRAMS: dict[str, tuple[str, int, int]] = {
    "sums of rows, then squares": (
        f"fun(xs: 7.13.f32 => xs |> mapBlock({SUM}) |> toMem(Global) |> mapGlobal(fun(x => x * x)))",
        *(2, 28),
    ),
    "a sum in two kernels": (
        f"fun(xs: 91.f32 => xs |> split(13) |> mapBlock({SUM}) |> toMem(Global) |> {SUM})",
        *(2, 28),
    ),
    "a chain": (
        f"fun(xs: 131.f32 => xs |> {ONE_MORE} |> {ONE_MORE} |> {ONE_MORE} |> mapGlobal(fun(x => x * 2)))",
        *(4, 2 * 768 - 768 + 524),
    ),
    "two results that do not wait for each other": (
        f"fun((xs: 9.f32, ys: 9.f32) => (xs |> {ONE_MORE}, ys |> {ONE_MORE}) |>"
        f" fun(p => (p |> fst |> {SUM}) + (p |> snd |> {SUM})))",
        *(2, 256 + 36),
    ),
    "two results, launched differently": (
        f"fun((xs: 9.f32, ys: 17.f32) => (xs |> {ONE_MORE}, ys |> {ONE_MORE}) |>"
        f" fun(p => (p |> fst |> {SUM}) + (p |> snd |> {SUM})))",
        *(3, 256 + 68),
    ),
    "read by two later kernels": (
        f"fun(xs: 33.f32 => xs |> {ONE_MORE} |> fun(ys => zip(ys)(ys |> reorder(33, natFun(i => 32 - i),"
        f" natFun(i => 32 - i)) |> {ONE_MORE}) |> mapGlobal(fun((a, b) => a * b))))",
        *(3, 256 + 132),
    ),
    "pairs": (
        "fun(xs: 5.f32 => xs |> mapGlobal(fun(x => (x, x > 0))) |> toMem(Global)"
        " |> mapGlobal(fun((x, p) => select(p, x, x * 2))))",
        *(2, 256 + 5),
    ),
    "one number, read by all blocks": (
        f"fun(xs: 37.f32 => xs |> {SUM} |> toMem(Global) |> fun(s => xs |> mapGlobal(fun(x => x - s))))",
        *(2, 4),
    ),
    "an accumulator in global memory": (
        "fun(xs: 5.67.f32 => xs |> reduceSeq(Global)(fun((acc, r) => zip(acc)(r) |> mapGlobal(fun((a, x) =>"
        " a * 2 + x))), generate(fun(i => 0)) |> mapGlobal(fun(x => x))) |> mapGlobal(fun(x => x)))",
        *(3, 268),
    ),
}


def assembled(text: str) -> HostProgram:
    return assemble(program(text), "f")


@pytest.mark.parametrize("case", every_other(PROGRAMS))
def test_several_kernels_are_exact(case: str) -> None:
    text, count, workspace = PROGRAMS[case]
    made, meaning = assembled(text), program(text)
    assert (len(made.kernels), made.at({}).workspace) == (count, workspace)
    for seed in (0, 1, 2):
        inputs = random_inputs(made.inputs, seed, exact=True)
        found, wanted = execute(made, inputs, "emulate", seed=seed), call(meaning, *inputs)
        assert all(map(np.array_equal, parts(found), parts(wanted)))


def test_a_program_without_temporaries_is_one_kernel_with_all_its_parameters() -> None:
    made = assembled("fun((xs: 5.f32, ys: 5.f32) => xs |> mapGlobal(fun(x => x + 1)))")
    (kernel,) = made.kernels
    assert kernel.name == "f_kernel" and made.temporaries == () and made.at({}).workspace == 0
    assert [v.name for v in kernel.function.inputs] == ["xs_", "ys_"]


def test_a_value_that_nobody_uses_is_no_kernel() -> None:
    """All threads would repeat it in the kernel of the rest: it was in one of its own, without a result."""
    low = assembled("fun((n: i32, xs: 300.f32) => let unused = n * n in xs |> mapGlobal(fun(x => x + 1)))")
    assert len(low.kernels) == 1
    xs = np.arange(300, dtype=np.float32)
    np.testing.assert_array_equal(execute(low, [np.int32(7), xs], "emulate"), xs + 1)


def test_kernels_take_what_they_use() -> None:
    made = assembled(
        f"fun((xs: 5.f32, ys: 5.f32) => zip(xs |> {ONE_MORE})(ys) |> mapGlobal(fun((x, y) => x * y)))"
    )
    taken = [[v.name for v in (*k.function.outputs, *k.function.inputs)] for k in made.kernels]
    assert taken == [["value", "xs_"], ["output", "value", "ys_"]]
    assert str(made).splitlines() == [
        "value : 5.f32, a temporary from kernel 1 to kernel 2",
        "f_kernel_1(value, xs_): grid 1×1×1, block 5×1×1, 0 bytes of shared memory",
        "f_kernel_2(output, value, ys_): grid 1×1×1, block 5×1×1, 0 bytes of shared memory",
    ]


@pytest.mark.parametrize("length", range(2, 9))
def test_temporaries_share_memory_unless_they_are_in_use_at_once(length: int) -> None:
    """Of a chain two exist at any time, whatever its length."""
    call_ = assembled(f"fun(xs: 100.f32 => xs |> {' |> '.join([ONE_MORE] * length)} |> {SUM})").at({})
    assert call_.workspace == 512 + 400 and len(call_.temporaries) == length
    for one, other in combinations(call_.temporaries, 2):
        a, b = one.temporary, other.temporary
        assert one.bytes.start % 256 == 0
        assert a.last < b.first or b.last < a.first or not one.bytes.overlaps(other.bytes)


def test_what_no_kernel_wrote_of_a_temporary_shows() -> None:
    """The second kernel reads more than the first wrote: NaN comes out."""
    text = f"fun(xs: 5.f32 => xs |> mapGlobal(fun(x => x)) |> padEmpty(2) |> toMem(Global) |> {ONE_MORE}"
    made = assembled(f"{text} |> mapGlobal(fun(x => x)))")
    found = execute(made, [np.arange(5, dtype=np.float32)], "emulate")
    assert (found[:5] == np.arange(5) + 1).all() and np.isnan(found[5:]).all()


@pytest.mark.parametrize(
    "inside, text",
    [
        (
            "map over blocks",
            f"fun(xs: 3.4.f32 => xs |> mapBlock(fun(r => «r |> {COPY}» |> toMem(Global) |> {SUM})))",
        ),
        (
            "loop",
            f"fun(xs: 3.4.f32 => xs |> mapSeq(fun(r => «r |> {COPY}» |> toMem(Global) |> {SUM})))",
        ),
    ],
)
def test_temporaries_inside_of_loops_are_refused(inside: str, text: str) -> None:
    refuses(
        text,
        "R0726",
        f"a temporary result is stored in Global memory inside a {inside}: a result for"
        " the whole grid that others read needs a kernel of its own",
    )


def test_what_is_read_is_overwritten_by_a_later_kernel() -> None:
    """t := xs ; ys := t ; t := 1 ; zs := t, with a loop around each: four kernels, in this order."""
    array = Array(nat(8), F32)

    def each(target: str, value: str | None) -> i.Command:
        place = (variable("i"),)
        read = i.Number(1.0, F32) if value is None else i.Access(value, place, F32)
        assign = i.Assign(i.Access(target, place, F32), read)
        return i.ParallelFor(i.Level.GRID, 0, "i", nat(8), assign)

    body = i.sequence(each("t", "xs"), each("ys", "t"), each("t", None), each("zs", "t"))
    outputs, inputs = tuple(i.Variable(n, array) for n in ("ys", "zs")), (i.Variable("xs", array),)
    found = split(i.Function("f", outputs, inputs, i.New(Space.GLOBAL, "t", array, body)))
    taken = [[v.name for v in (*f.outputs, *f.inputs)] for f in found.functions]
    assert taken == [["t", "xs"], ["ys", "t"], ["t"], ["zs", "t"]]
    assert [(t.first, t.last) for t in found.temporaries] == [(0, 3)]


def test_registers_end_with_a_kernel() -> None:
    text = (
        f"fun(xs: 4.f32 => «xs |> {COPY}» |> toMem(Local) |> fun(ys =>"
        f" zip(ys)(ys |> {COPY} |> toMem(Global)) |> mapSeq(fun((y, z) => y + z))))"
    )
    refuses(
        text,
        "R0727",
        "`value` is in Local memory, which ends with a kernel, but two kernels use it",
    )


def refuses(text: str, code: str, message: str) -> None:
    """With the place that the text marks."""
    with pytest.raises(TranslationError) as refused:
        assemble(program(text.replace("«", "").replace("»", "")), "f")
    assert (refused.value.code, refused.value.message) == (code, message)
    span = place(refused.value.origin)
    assert span is not None and span.column == text.index("«") + 1
    assert span.end_column == text.index("»")


def test_one_kernel_is_asked_for_by_name() -> None:
    text = f"fun(xs: 4.f32 => xs |> {ONE_MORE} |> mapGlobal(fun(x => x)))"
    with pytest.raises(TranslationError) as refused:
        generate(program(text), "f")
    assert refused.value.code == "R0726" and refused.value.hint == "`assemble` makes several"


def test_results_are_separate_kernels_if_one_kernel_would_repeat_some_of_them() -> None:
    """One kernel would write the second result once for each row of blocks. Smaller grids stay one kernel."""
    head, rows = "fun((A: 4.5.f32, B: {}.f32)", "A |> mapBlock(1)(mapBlock(0)(fun(x => x)))"
    repeated = program(f"{head.format('3')} => ({rows}, B |> mapBlock(0)(fun(x => x))))")
    smaller = program(f"{head.format('2.3')} => ({rows}, {rows.replace('A', 'B')}))")
    assert len(assemble(repeated, "f").kernels) == 2
    assert len(assemble(smaller, "f").kernels) == 1
    with pytest.raises(TranslationError) as refused:
        generate(repeated, "f")
    assert refused.value.code == "R0726" and "need separate kernels" in refused.value.message


@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a"])
def test_every_kernel_compiles(target: str) -> None:
    for case in ("a sum in two kernels", "pairs"):
        text = PROGRAMS[case][0]
        assert all(compile_cubin(k.source, target).stat().st_size for k in assembled(text).kernels)
