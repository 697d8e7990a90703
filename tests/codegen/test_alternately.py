"""Powers of two by a polynomial, and registers of fragments that take one of two functions."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.execute import execute
from codegen.host.program import HostProgram
from codegen.pipeline import assemble
from rise.check.program import check_expression
from rise.errors import TranslationError
from rise.expr import Expr
from rise.interpret import call
from rise.interpret.operations import _fma_in_doubles as fused
from rise.normal import data_flow

SEED = 20261125
F32 = np.float32
COEFFICIENTS = (
    0.0018671309808269143, 0.009017029777169228, 0.05579991266131401, 0.24016444385051727,
    0.6931512951850891, 1.0,
)  # fmt: skip
FULL = F32(12582912.0 + 127.0)


def numbers() -> np.ndarray:
    """All exponents of results with their neighbours, numbers between, any bits, and special ones."""
    random = np.random.default_rng(SEED)
    whole = np.arange(-160, 140).astype(F32)
    near = [np.nextafter(whole, F32(end)) for end in (-np.inf, np.inf)]
    between = random.uniform(-130, 129, 20000).astype(F32)
    bits = random.integers(0, 2**32, 20000, dtype=np.uint64).astype(np.uint32).view(F32)
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38], F32)
    return np.concatenate([whole, *near, between, bits, special])


def as_on_gpus(xs: np.ndarray) -> np.ndarray:
    """Each operation of the device function, rounded to f32: the last bits of a sum hold the whole part."""
    with np.errstate(invalid="ignore", over="ignore"):
        x = np.where(np.isnan(xs), xs, np.clip(xs, F32(-127), F32(128)))
        whole = np.floor(x) + FULL  # rounded down, as units in the last place are 1 between 2^23 and 2^24
        rest = x - (whole - FULL)
        power = np.full_like(x, F32(COEFFICIENTS[0]))
        for following in COEFFICIENTS[1:]:
            power = fused(power, rest, np.full_like(x, F32(following))).astype(F32)
        scale = (whole.view(np.uint32) << np.uint32(23)).view(F32)
        return np.where(np.isnan(xs), xs, power * scale)


def powers(function: str, xs: np.ndarray) -> np.ndarray:
    term = check_expression(f"fun(xs: {len(xs)}.f32 => xs |> mapSeq({function}))")
    return np.asarray(execute(assemble(data_flow(term), "f"), [xs], "emulate"))


def test_the_polynomial_is_computed_as_on_gpus_and_within_three_units_in_the_last_place() -> None:
    xs = numbers()
    found, wanted = powers("exp2Polynomial", xs), as_on_gpus(xs)
    np.testing.assert_array_equal(found.view(np.uint32)[~np.isnan(xs)], wanted.view(np.uint32)[~np.isnan(xs)])
    with np.errstate(over="ignore", invalid="ignore"):
        exact = np.exp2(xs.astype(np.float64))
        rounded = np.asarray(call(check_expression(f"fun(xs: {len(xs)}.f32 => xs |> map(exp2))"), xs))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(xs))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(rounded))
    np.testing.assert_array_equal(found == 0, rounded == 0)
    normal = np.isfinite(rounded) & (rounded != 0)
    assert normal.sum() > 20000
    assert (np.abs(found[normal] - exact[normal]) / np.spacing(rounded[normal])).max() < 3


def kernel(function: str) -> tuple[Expr, HostProgram]:
    text = (
        "fun(xs: 16.8.f32 => xs |> split(16) |> mapBlock(0)(fun(t => t |> split(16) |> mapWarp(fun(u =>"
        f" u |> asFragment |> toMem(Local) |> mapFragment({function}) |> toMem(Local)"
        " |> fun((f: Fragment[16, 8, 16, f32, Accum]) => f) |> asMatrix)) |> join)) |> join)"
    )
    term = data_flow(check_expression(text))
    return term, assemble(term, "f")


@pytest.mark.parametrize(("share", "period"), [(1, 4), (3, 4), (1, 3)])
def test_so_many_registers_take_the_other_function(share: int, period: int) -> None:
    """Both differ in last bits, which show what computed an element."""
    xs = np.random.default_rng(SEED).uniform(-9, 9, (16, 8)).astype(F32)
    _, made = kernel(f"fun(x => alternately({share}, {period})(exp2)(exp2Polynomial)(x + 0.0))")
    found = np.asarray(execute(made, [xs], "emulate"))
    other = as_on_gpus(xs)
    register = np.arange(8) % 2 + 2 * (np.arange(16)[:, None] // 8)  # of mma.sync's accumulators
    takes = register * share % period < share
    assert (found == other)[takes].all()
    assert (found != other)[~takes].sum() > 5
    np.testing.assert_allclose(found, np.exp2(xs), rtol=3e-7)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("alternately(1, 4)(exp2)(exp)", "not two ways to compute one function"),
        ("fun(x => alternately(1, 4)(exp2)(fun(y => exp2Polynomial(y + x)))(x))", "not two ways"),
        ("alternately(1, 0)(exp2)(exp2Polynomial)", "how many registers"),
    ],
)
def test_what_has_another_meaning_is_refused(function: str, why: str) -> None:
    with pytest.raises(TranslationError, match=why) as caught:
        kernel(function)
    assert caught.value.code == "R0749" and caught.value.hint


def test_numbers_that_are_in_no_fragment_have_no_registers_to_choose_by() -> None:
    with pytest.raises(TranslationError, match="in no `mapFragment`"):
        powers("alternately(1, 4)(exp2)(exp2Polynomial)", np.ones(3, F32))


def test_functions_may_be_any_that_are_the_same() -> None:
    function = "alternately(1, 2)(fun(x => 3.0 - exp2(x)))(fun(y => 3.0 - exp2Polynomial(y)))"
    term, made = kernel(function)
    xs = np.random.default_rng(SEED).uniform(-9, 1, (16, 8)).astype(F32)
    np.testing.assert_allclose(np.asarray(execute(made, [xs], "emulate")), call(term, xs), rtol=1e-6)
