"""Products of matrices that are parts of arrays: in boxes of these arrays where possible, else of copies.

The copying unit brings boxes that start at multiples of 16 bytes in a row, and puts zeros only behind the
end of an array. An H200 reports an illegal instruction for other boxes, and so does the emulator.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.ir.tensor_maps import TensorMap
from codegen.pipeline import assemble
from rise.check.specialise import inputs_of
from rise.errors import TranslationError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from strategies.auto import auto
from strategies.matmul import tensor_core as strategy
from tests.support.nightly import NIGHTLY, every_other
from tests.support.programs import program, succeeded

DOT = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"
GROUPS: dict[str, Any] = {
    "block": (64, 64, 64),
    "warp": (64, 64),
    "fragment": (64, 64, 16),
    "epilogue": "direct",
}
DRAWN = 40 if NIGHTLY else 8


@dataclass(frozen=True)
class Part:
    """The sizes of an array `$`, and a matrix that is part of it. copied: whether a kernel copies it"""

    array: str
    matrix: str
    copied: bool = False


def parts(m: int, k: int) -> dict[str, Part]:
    """Parts of m × k, k being a multiple of 8, in arrays of f16."""
    cut, wide, columns = k % 64 > 0, m + 16 - m % 8, f"map(take({m})) |> transpose"
    return {
        "rows from any row": Part(f"{m + 8}.{k}", f"$ |> drop(5) |> take({m})"),
        "columns from element 8": Part(f"{m}.{k + 8}", "$ |> map(drop(8))"),
        "columns from element 3": Part(f"{m}.{k + 8}", f"$ |> map(drop(3)) |> map(take({k}))", True),
        "columns from element 4": Part(f"{m}.{k + 4}", "$ |> map(drop(4))", True),
        "columns before others": Part(f"{m}.{k + 16}", f"$ |> map(take({k}))", cut),
        "turned, from column 8": Part(f"{k}.{wide}", f"$ |> map(drop(8)) |> {columns}"),
        "turned, from column 7": Part(f"{k}.{wide}", f"$ |> map(drop(7)) |> {columns}", True),
        "turned, rows before others": Part(f"{k + 1}.{wide}", f"$ |> take({k}) |> {columns}", cut),
        "a flat array": Part(f"{m * k}", f"$ |> split({k})"),
        "a flat array from element 8": Part(f"{m * k + 8}", f"$ |> drop(8) |> split({k})", k > 8),
        "a flat array from within a row": Part(
            f"{(m + 1) * k}", f"$ |> drop(8) |> take({m * k}) |> split({k})", k > 8
        ),
        "a flat array from element 1": Part(f"{m * k + 1}", f"$ |> drop(1) |> split({k})", True),
        "a joined array": Part(f"{m}.2.{k // 2}", "$ |> map(join)", k % 16 > 0),
        "halves of rows": Part(f"{m}.{2 * k}", f"$ |> join |> split({k}) |> take({m})"),
    }


NAMES = list(parts(1, 8))


def product(first: Part, second: Part) -> str:
    a, b = (part.matrix.replace("$", name) for part, name in ((first, "A"), (second, "B")))
    return (
        f"fun((A: {first.array}.f16, B: {second.array}.f16) =>"
        f" {a} |> map(fun(row => {b} |> map(fun(col => {DOT})))))"
    )


def is_exact(term: Expr, low: Expr, temporaries: int) -> bool:
    made, inputs = assemble(low, "product"), random_inputs(inputs_of(term), 3, exact=True)
    assert len(made.temporaries) == temporaries and "bulk_load(" in made.kernels[-1].source
    return np.array_equal(execute(made, inputs, "emulate"), call(term, *inputs))


@pytest.mark.parametrize("name", every_other(NAMES))
def test_a_part_is_read_in_place_or_copied(name: str) -> None:
    random = Random(name)
    for _ in range(2):
        m, k = random.choice((1, 31, 64, 67, 130)), 8 * random.choice((1, 5, 8, 11, 16))
        part, whole = parts(m, k)[name], Part(f"40.{k}", "$")
        for first, second in ((part, whole), (whole, part)):
            term = program(product(first, second))
            low = succeeded(strategy.tensor_core(**GROUPS)(term)).term
            assert is_exact(term, low, int(part.copied)), (m, k)


@pytest.mark.parametrize("seed", range(DRAWN))
def test_parts_are_multiplied_by_parts(seed: int) -> None:
    random = Random(seed)
    m, n, k = random.randint(1, 140), random.randint(1, 140), 8 * random.randint(1, 16)
    first, second = parts(m, k)[random.choice(NAMES)], parts(n, k)[random.choice(NAMES)]
    term = program(product(first, second))
    low = succeeded(strategy.tensor_core(**GROUPS)(term)).term
    assert is_exact(term, low, first.copied + second.copied)


@pytest.mark.parametrize("name", every_other(NAMES, 1))
def test_auto_takes_warpgroups_whatever_the_part(name: str) -> None:
    """Threads multiplied parts that end within an array before, eight times as slow."""
    random = Random(name)
    m, k = random.randint(900, 1100), 8 * random.randint(110, 140)
    (*_, kernel) = auto().choice(program(product(parts(m, k)[name], Part(f"1024.{k}", "$")))).kernels
    assert kernel.point.strategy == "tensor_core" and "warp_specialised=true" in str(kernel.point)


@pytest.mark.parametrize(("m", "k"), [(1, 8), (70, 72), (65, 33)])
def test_one_number_of_each_element_is_copied(m: int, k: int) -> None:
    """Its neighbours are elsewhere, so no instruction reads rows of it."""
    second = "$ |> map(map(fun(x => x |> idx(natAsIndex(3)(1)))))"
    first = "$ |> map(fun(x => transpose(x) |> idx(natAsIndex(2)(1))))"
    for a, b in (
        (Part(f"{m}.{k}.2", first), Part(f"40.{k}", "$")),
        (Part(f"{m}.{k}", "$"), Part(f"40.{k}.3", second)),
    ):
        term = program(product(a, b))
        made, inputs = (
            assemble(succeeded(auto()(term)).term, "f"),
            random_inputs(inputs_of(term), 3, exact=True),
        )
        assert np.array_equal(execute(made, inputs, "emulate"), call(term, *inputs))
    large = program(product(Part("1024.1024.2", first), Part("1024.1024.3", second)))
    *copies, last = [each.point.strategy for each in auto().choice(large).kernels]
    assert set(copies) == {"elementwise"} and last == "tensor_core"


def boxes(array: str, tiles: str) -> HostProgram:
    """Copies tiles, which are views of an array `xs`, to shared memory and from there."""
    copies = "t |> bulkCopy |> mapSeq(mapThreads(0)(fun(x => x)))"
    return assemble(program(f"fun(xs: {array} => xs |> {tiles} |> mapBlock(0)(fun(t => {copies})))"), "boxes")


@pytest.mark.parametrize(("offset", "type_"), [(4, "f16"), (2, "f32"), (8, "i8")])
def test_a_box_starts_at_a_multiple_of_16_bytes(offset: int, type_: str) -> None:
    array, tiles = f"3.32.64.{type_}", "map(map(drop($))) |> map(map(take(32)))"
    with pytest.raises(TranslationError, match=f"starts at element {offset} of a row") as caught:
        boxes(array, tiles.replace("$", str(offset)))
    assert caught.value.code == "R0731"
    boxes(array, tiles.replace("$", "16"))


@pytest.mark.parametrize(
    ("array", "tiles", "is_matrix"),
    [
        ("480.f16", "split(40) |> split(4)", True),
        ("480.f16", "split(40) |> map(padCst(0, 24)(0.0)) |> split(4)", True),
        ("480.f16", "split(40) |> take(11) |> padEmpty(1) |> split(4)", True),
        ("6.2.40.f16", "join |> split(4)", True),
        ("6.80.f16", "join |> split(40) |> split(4)", True),
        ("3.160.f16", "map(split(40)) |> join |> split(4)", True),
        # rows that overlap, and zeros behind elements within a row
        ("544.f16", "slide(64, 32) |> split(4)", False),
        ("480.f16", "drop(8) |> take(320) |> split(40) |> map(padCst(0, 24)(0.0)) |> split(4)", False),
        ("480.f16", "split(40) |> map(take(24)) |> map(padCst(0, 8)(0.0)) |> split(4)", False),
        # a list whose length is not a multiple of a row's
        ("488.f16", "take(480) |> split(40) |> map(padCst(0, 24)(0.0)) |> split(4)", False),
    ],
)
def test_a_list_is_a_matrix_of_rows(array: str, tiles: str, is_matrix: bool) -> None:
    """Whichever dimensions the program gives the array, the copying unit sees those that boxes need."""
    if not is_matrix:
        with pytest.raises(TranslationError) as caught:
            boxes(array, tiles)
        assert caught.value.code == "R0731"
        return
    made = boxes(array, tiles)
    (kernel,) = made.kernels
    (map_,) = kernel.function.maps
    assert isinstance(map_.map, TensorMap) and map_.map.sizes == (40, 12)
    term = program(f"fun(xs: {array} => xs |> {tiles})")
    inputs = random_inputs(inputs_of(term), 3, exact=True)
    found, wanted = execute(made, inputs, "emulate"), call(term, *inputs)
    assert np.array_equal(np.asarray(found)[:2], np.asarray(wanted)[:2])
