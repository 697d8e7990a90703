"""`auto` with sizes that are open until launch: one compiled program each, right at random sizes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

import codegen
from codegen.compiled import Compiled
from codegen.execute import execute
from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.check.symbolic import opened, units_of_whole_rows
from rise.expr import Definition
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.auto import auto
from strategies.search.open_sizes import Expected
from tests.support.nightly import every_other
from tests.support.programs import loaded

DOT = "zip(row)(col) |> map((a, b) => f32(a) * f32(b)) |> reduce(+, 0)"
PROGRAM = check_text(f"""
def product(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16): m.n.f16 =
  A |> map(row => B |> transpose |> map(col => {DOT} |> cast))
def epilogue(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16, bias: n.f16, R: m.n.f16): m.n.f16 =
  zip(A)(R) |> map((row, rs) => zip(B |> transpose)(zip(bias)(rs)) |> map((col, (b, r)) =>
    {DOT} |> (x => cast(max(x + f32(b), 0) + f32(r)))))
def prologue(m: Nat, n: Nat, k: Nat)(A: m.k.f16, B: k.n.f16): m.n.f16 =
  A |> map(map(x => max(x, 0))) |> map(row => B |> transpose |> map(col => {DOT} |> cast))
def softmax(m: Nat, n: Nat)(X: m.n.f32): m.n.f32 = X |> map(row =>
  let most = row |> reduce(max, -1000) in let sum = row |> map(x => exp(x - most)) |> reduce(+, 0) in
  row |> map(x => exp(x - most) / sum))
def axpy(n: Nat)(xs: n.f32, ys: n.f32, a: f32): n.f32 = zip(xs)(ys) |> map((x, y) => a * x + y)
def total(n: Nat)(xs: n.f32): f32 = xs |> reduce(+, 0)
def sums(m: Nat, n: Nat)(xs: m.n.f32): m.f32 = xs |> map(reduce(+, 0))
def turned(m: Nat, n: Nat)(X: m.n.f16): n.m.f16 = X |> transpose
def small(b: Nat)(As: b.16.16.f16, Bs: b.16.16.f16): b.16.16.f16 =
  zip(As)(Bs) |> map((A, B) => A |> map(row => B |> transpose |> map(col => {DOT} |> cast)))
""")
ATTENTION = loaded("examples/attention.rise")
FIRST = dict.fromkeys("mnk", 256)  # expected, so that tiles are few and the emulator is quick
# what is open, by what is given
CASES: dict[str, tuple[dict[str, int], tuple[str, ...]]] = {
    "product m": ({"n": 96, "k": 72}, ("m",)),
    "product k": ({"m": 65, "n": 96}, ("k",)),
    "product": ({}, ("m", "n", "k")),
    "epilogue": ({}, ("m", "n", "k")),
    "prologue": ({"n": 64}, ("m", "k")),
    "softmax": ({}, ("m", "n")),
    "axpy": ({}, ("n",)),
    "total": ({}, ("n",)),
    "sums": ({}, ("m", "n")),
    "turned": ({}, ("m", "n")),
    "small": ({}, ("b",)),
}
DRAWN = (1, 2, 16, 63, 64, 65, 67, 88, 97, 128, 129)


def definition(name: str) -> Definition:
    return PROGRAM[name.split(maxsplit=1)[0]]


@cache
def compiled(name: str) -> Compiled:
    given, open_ = CASES[name]
    expected = {size: FIRST[size] for size in open_ if size in FIRST}
    return codegen.compile(
        definition(name), auto("sm_90a"), sizes=given, runtime=open_, backend="emulate", expected=expected
    )


def right(made: Compiled, subject: Definition, sizes: Mapping[str, int], seed: int) -> None:
    meaning = specialise(subject, sizes)
    call_ = made.program.at({size.name: sizes[size.name] for size in made.program.sizes})
    inputs = random_inputs(call_.inputs, seed, exact=True)
    found = np.asarray(execute(made.program, inputs, "emulate", seed=seed), np.float64)
    wanted = np.asarray(call(meaning, *inputs), np.float64)
    assert found.shape == wanted.shape
    rounded = subject.name in ("softmax", "attention")
    assert np.allclose(found, wanted, rtol=1e-2, atol=1e-2) if rounded else np.array_equal(found, wanted), (
        sizes
    )


@pytest.mark.parametrize("name", every_other(CASES, step=3))
def test_one_program_is_right_at_all_sizes(name: str) -> None:
    made, (given, open_) = compiled(name), CASES[name]
    seed = sum(map(ord, name))
    print(f"seed {seed}")
    draw = random.Random(seed)
    drawn = [dict.fromkeys(open_, 1), *({n: draw.choice(DRAWN) for n in open_} for _ in range(3))]
    kernels = {kernel.name for kernel in made.program.kernels}
    for number, sizes in enumerate(drawn):
        right(made, definition(name), {**given, **sizes}, number)
        launched = made.program.at(sizes).launches
        assert {each.kernel.name for each in launched} <= kernels, "nothing is compiled at a call"


@pytest.mark.parametrize("name, given", every_other([("product", {"n": 4096, "k": 4096}), ("epilogue", {})]))
def test_products_of_open_sizes_are_of_warpgroups(name: str, given: dict[str, int]) -> None:
    open_ = [size for size in "mnk" if size not in given]
    made = codegen.compile(
        definition(name), auto("sm_90a"), sizes=given, runtime=open_, backend="emulate"
    ).program
    sources = [made.at(dict.fromkeys(open_, size)).launches[-1].kernel.source for size in (136, 131)]
    assert all("wgmma" in source for source in sources)


def test_a_call_takes_the_kernels_that_its_rows_allow() -> None:
    """Bulk copies where rows are multiples of 16 bytes, else longer copies; loops where nothing is added."""
    made = compiled("product").program
    names = [
        [each.kernel.name for each in made.at(dict(zip("mnk", sizes, strict=True))).launches]
        for sizes in ((5, 64, 72), (5, 64, 73), (5, 63, 72), (5, 64, 0))
    ]
    copied = ["product_kernel_1", "product_kernel_2", "product_kernel_3"]
    assert names == [["product_aligned_kernel"], copied, copied, ["product_empty_kernel"]]
    assert len(made.kernels) == 5


def test_rows_and_lengths_of_attention_are_open() -> None:
    made = codegen.compile(
        ATTENTION["attention"], auto("sm_90a"), sizes={"d": 64, "e": 64}, runtime=("m", "n"),
        backend="emulate", expected={size: FIRST[size] for size in "mn"},
    )  # fmt: skip
    for number, (m, n) in enumerate(((1, 1), (65, 67))):
        right(made, ATTENTION["attention"], {"m": m, "n": n, "d": 64, "e": 64}, number)


def test_auto_says_what_it_assumes() -> None:
    left = opened(definition("product"), {}, {"m": 1, "n": 8, "k": 8})
    said = str(auto("sm_90a").expecting(left.sizes, {"m": 4096}).choice(data_flow(left.program)))
    assert "expected on H200 for k = 2040, m = 4095, n = 2040" in said


def test_what_is_expected_is_an_odd_multiple_of_what_divides_a_size() -> None:
    left = opened(definition("product"), {"k": 64}, {"m": 1, "n": 8})
    found = Expected.of(left.sizes, {"m": 1, "n": 4096}).at(left.program)
    known = specialise(definition("product"), {"m": 1, "n": 4088, "k": 64})
    assert str(found) == str(known) or data_flow(found) == data_flow(known)


def test_whole_rows_are_multiples_of_sixteen_bytes() -> None:
    units = {"m": 1, "n": 1, "k": 3}
    assert units_of_whole_rows(opened(definition("epilogue"), {}, units)) == {"m": 1, "n": 8, "k": 24}
    assert units_of_whole_rows(opened(definition("axpy"), {}, {"n": 1})) == {"n": 1}
