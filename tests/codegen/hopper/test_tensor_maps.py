"""Tensor maps: what is legal, and what the driver is given."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from codegen.cuda.wgmma import Wgmma, instruction, print_wgmma
from codegen.ir.tensor_maps import TensorBuffer, TensorMap, encode, map_of
from rise.errors import LaunchError

GOOD = TensorMap(element="float16", sizes=(100, 30), strides=(208,), box=(64, 30), swizzle=128)


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"element": "float64"}, "R0880", "cannot have elements of type float64"),
        ({"sizes": (1,) * 6, "strides": (16,) * 5, "box": (8,) * 6}, "R0880", "1 to 5 dimensions, not 6"),
        ({"sizes": (), "strides": (), "box": ()}, "R0880", "not 0"),
        ({"strides": ()}, "R0880", "2 sizes need 1 strides"),
        ({"sizes": (0, 30)}, "R0880", "not 0"),
        ({"strides": (200,)}, "R0880", "multiple of 16 bytes below 2⁴⁰, not 200"),
        ({"strides": (0,)}, "R0880", "not 0"),
        ({"strides": (2**40,)}, "R0880", "multiple of 16"),
        ({"swizzle": 16}, "R0881", "a swizzle is one of"),
        ({"box": (64, 257)}, "R0881", "1 to 256 elements in a dimension, not 257"),
        ({"box": (64, 0)}, "R0881", "not 0"),
        ({"box": (12, 30), "swizzle": 0}, "R0881", "multiple of 16 bytes, not 24"),
        ({"box": (72, 30)}, "R0881", "144 bytes is longer than its swizzle"),
        ({"box": (32, 30)}, "R0881", "64 bytes is shorter than its swizzle"),
    ],
)
def test_an_illegal_map_cannot_be_made(change: dict[str, Any], code: str, message: str) -> None:
    with pytest.raises(LaunchError) as refused:
        replace(GOOD, **change)
    assert refused.value.code == code and message in refused.value.message


def test_a_map_of_an_array_has_its_dimensions_innermost_first() -> None:
    described = map_of((5, 7, 24), "float16", (2, 3, 16))
    assert described == TensorMap("float16", (24, 7, 5), (48, 336), (16, 3, 2))
    assert described.box_bytes == 192 and described.extent_bytes == 5 * 7 * 24 * 2
    padded = map_of((7, 20), "float16", (7, 16), row_bytes=64)
    assert padded.strides == (64,) and padded.extent_bytes == 6 * 64 + 40


class Recorded:
    """Stands for the driver library: keeps what cuTensorMapEncodeTiled is called with."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.given: list[Any] = []

    def __call__(self, place: Any, *arguments: Any) -> int:
        self.given = [list(a) if isinstance(a, ctypes.Array) else a.value for a in arguments]
        ctypes.memset(place, 7, 128)
        return self.status


def test_the_driver_is_given_what_the_map_says() -> None:
    driver = Recorded()
    encoded = encode(GOOD, 4096, driver)
    float16, rank, none, swizzle_128, promote_128, zeros = 6, 2, 0, 3, 2, 0
    assert driver.given == [
        *(float16, rank, 4096, [100, 30], [208], [64, 30], [1, 1]),
        *(none, swizzle_128, promote_128, zeros),
    ]
    assert bytes(encoded) == b"\x07" * 128 and ctypes.addressof(encoded) % 64 == 0


def test_so_many_bytes_are_brought_into_the_cache_at_once() -> None:
    driver = Recorded()
    for promoted, number in ((64, 1), (256, 3)):
        encode(map_of((4, 16), "float16", (4, 16), promoted=promoted), 16, driver)
        assert driver.given[-2] == number
    with pytest.raises(LaunchError, match="64, 128, 256 bytes can be brought") as refused:
        map_of((4, 16), "float16", (4, 16), promoted=100)
    assert refused.value.code == "R0881"


def test_bytes_stand_for_types_of_one_byte() -> None:
    driver = Recorded()
    for element in ("int8", "float8_e4m3fn"):
        encode(map_of((4, 16), element, (4, 16)), 16, driver)
        assert driver.given[0] == 0


def test_refusals_have_a_reason() -> None:
    with pytest.raises(LaunchError, match="multiple of 16 bytes, not at 0x8"):
        encode(GOOD, 8, Recorded())
    with pytest.raises(LaunchError, match="error 1"):
        encode(GOOD, 16, Recorded(status=1))
    with pytest.raises(LaunchError, match="1000 bytes, its map describes 6232"):
        TensorBuffer("A", np.zeros(500, "float16"), GOOD)
    with pytest.raises(LaunchError, match="elements of float32, its map of float16"):
        TensorBuffer("A", np.zeros(5000, "float32"), GOOD)


@pytest.mark.parametrize(
    ("wgmma", "message"),
    [
        ((12,), "12 columns, only 8 to 256 in steps of 8"),
        ((264,), "264 columns"),
        ((40, "signed char", "int"), "40 columns, only 8 to 256 in steps of 16"),
        ((64, "double"), "operands of type double"),
        ((64, "bfloat16", "half"), "accumulators of type half for bfloat16"),
        ((64, "tf32", "float", "K", "MN"), "tf32 operands contiguous along anything but k"),
        ((64, "half", "float", "M", "K"), "operands contiguous along M and K"),
        ((64, "half", "float", "MN", "K", True), "an A in registers contiguous along anything but k"),
    ],
)
def test_there_is_no_other_wgmma(wgmma: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LaunchError, match="wgmma does not support") as refused:
        Wgmma(*wgmma)
    assert refused.value.code == "R0884" and message in refused.value.message


def test_an_instruction_has_its_operands_in_order() -> None:
    assert instruction(Wgmma(8)) == (
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;"
    )
    assert instruction(Wgmma(8, b_major="MN", a_in_registers=True)).endswith(
        "{%4, %5, %6, %7}, %8, p, 1, 1, 1;"
    )
    assert instruction(Wgmma(16, "signed char", "int")).endswith("%8, %9, p;")
    assert instruction(Wgmma(16, "e4m3", "half")).endswith("{%0, %1, %2, %3}, %4, %5, p, 1, 1;")


def test_each_instruction_is_printed_once() -> None:
    assert print_wgmma([Wgmma(8), Wgmma(16), Wgmma(8)]).count("struct Wgmma") == 2
