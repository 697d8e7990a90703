"""Numbers in a program: how they round, and which of them a type has."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from rise.check.program import check_expression, check_text
from rise.errors import ParseError, RiseError, TypeMismatch
from rise.expr import Expr, Literal, subterms
from rise.interpret import call, dtype_of
from rise.interpret.inputs import literal_number, stored_as
from rise.numbers import FLOATS, SHOWN, Written, fits, largest, rounded, wrapped
from rise.types import SCALARS, Scalar

NARROW = [SCALARS[name] for name in ("f16", "bf16", "f32")]


def run(text: str) -> object:
    return call(check_expression(text))


def literals(term: Expr) -> list[Literal]:
    return [part for part in subterms(term) if isinstance(part, Literal)]


@pytest.mark.parametrize("type_", NARROW, ids=str)
def test_rounding_is_that_of_numpy(type_: Scalar) -> None:
    bits = np.random.default_rng(3).integers(0, 2**64, 1000, np.uint64)
    with np.errstate(all="ignore"):
        wide = np.concatenate([bits.view(np.float64), bits.view(np.float32).astype(np.float64)])
        expected = stored_as(wide, type_)
    for value, number in zip(wide.tolist(), expected, strict=True):
        assert np.array_equal(rounded(value, type_), float(number), equal_nan=True), value


def halfway(type_: Scalar) -> Fraction:
    """Between one and the number after it; one is even."""
    return 1 + Fraction(1, 2 ** FLOATS[type_.name][0])


@pytest.mark.parametrize("type_", NARROW, ids=str)
def test_a_decimal_is_rounded_once(type_: Scalar) -> None:
    """A hair above halfway: f64 has no such number, and rounding from there would give one."""
    digits = f"{halfway(type_).numerator * 10**60 // halfway(type_).denominator + 1}"
    text = f"{digits[0]}.{digits[1:]}"
    after_one = 1 + 2.0 ** (1 - FLOATS[type_.name][0])
    assert float(text) == halfway(type_)
    assert run(f"{text}: {type_}") == after_one and run(f"(-{text}): {type_}") == -after_one
    assert run(f"{Decimal(float(halfway(type_)))}: {type_}") == 1


def test_a_whole_number_is_rounded_once_too() -> None:
    assert run(f"{2**53 + 2**29 + 1}: f32") == 2**53 + 2**30
    assert run(f"{2**62 + 2**54 + 1}: bf16") == 2**62 + 2**55
    assert run(f"bf16({2**62 + 2**54 + 1}: i64)") == 2**62 + 2**55
    assert run(f"bf16({2**62 + 2**54}: i64)") == 2**62


def test_what_is_written_is_shown_where_it_rounds_as_it_should() -> None:
    (tenth,) = literals(check_expression("fun(x: f16 => x * 0.1)"))
    assert tenth.value == 0.1 and type(tenth.value) is float


TOO_LARGE = {
    "f16": ("65520", "65520.0", "70000.0", "-1e5", "1e999"),
    "bf16": ("3.3961775292304601e38", "1e39", "-1e999"),
    "f32": ("3.4028235677973367e38", "1e39", "1e999", f"{10**39}"),
    "f64": ("1e309", "-1e400000000", f"{10**309}"),
    "i8": ("128", "-129"), "u8": ("256", "-1"), "i64": (f"{2**63}",), "u64": (f"{2**64}",),
}  # fmt: skip
LARGEST = {"f16": "65519.999", "bf16": "3.3961e38", "f32": "3.4028235677973366e38", "f64": "1.7e308"}


@pytest.mark.parametrize("type_", TOO_LARGE)
@pytest.mark.parametrize(
    "text",
    [
        "def a: {t} = {n}",
        "def a = fun(x: {t} => max(x)({n}))",
        "def a = fun((xs: 3.{t}) => xs |> map(max({n})))",
    ],
)
def test_a_number_beyond_the_range_of_its_type_is_rejected(type_: str, text: str) -> None:
    for number in TOO_LARGE[type_]:
        with pytest.raises(TypeMismatch) as raised:
            check_text(text.format(t=type_, n=number))
        assert raised.value.code == "R0307"
        assert (number if len(number) <= SHOWN else "digits") in raised.value.message
    if type_ in LARGEST:
        (literal,) = literals(check_text(text.format(t=type_, n=LARGEST[type_]))["a"].body)
        assert np.isfinite(float(literal_number(literal.value, SCALARS[type_])))


def test_a_number_has_to_fit_where_its_type_is_chosen() -> None:
    """A definition for any number type asks that the type has the numbers that it uses."""
    text = "def more: {t: DataType} -> t -> t = fun(x => x + 300)\ndef used = fun(x: TYPE => more(x))"
    assert (
        str(check_text(text.replace("TYPE", "i16"))["more"].constraints[0])
        == "t is a number type that has 300"
    )
    for type_ in ("i8", "u8", "Vec[4, i8]"):
        with pytest.raises(TypeMismatch) as raised:
            check_text(text.replace("TYPE", type_))
        assert raised.value.code == "R0307" and "300" in raised.value.message
    with pytest.raises(TypeMismatch) as raised:
        check_text(text.replace("TYPE", "bool"))
    assert raised.value.code == "R0308"
    halves = "def half: {t: DataType} -> t -> t = fun(x => x * 0.5 + 100)"
    assert [str(c) for c in check_text(halves)["half"].constraints] == ["t is a float"]


def test_infinity_is_a_number_of_every_float_type() -> None:
    for type_ in FLOATS:
        if type_ != "tf32":
            assert run(f"infinity: {type_}") == np.inf and run(f"(-infinity): {type_}") == -np.inf
    assert run("makeArray(1)(-2.0) |> reduce(max, -infinity)") == -2
    with pytest.raises(RiseError, match="R0306"):
        check_expression("infinity: i32")
    with pytest.raises(ParseError):
        check_expression("fun(infinity => infinity)")


def test_the_largest_number_fits_and_the_next_power_of_two_does_not() -> None:
    for name, type_ in SCALARS.items():
        if name != "bool" and type_.is_float:
            assert fits(largest(type_), type_) and not fits(Written("1e999"), type_)
            assert literal_number(largest(type_), type_) < np.inf
        elif name != "bool":
            bounds = np.iinfo(dtype_of(type_))
            assert fits(int(bounds.max), type_) and not fits(int(bounds.max) + 1, type_)
            assert wrapped(int(bounds.max) + 1, type_) == bounds.min == wrapped(int(bounds.min), type_)
