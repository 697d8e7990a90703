"""Elements that a thread stores one by one: it reads several before, and no branch is between them."""

from __future__ import annotations

import re
from random import Random

import pytest

from codegen.ir import imperative as i
from codegen.passes import grouped_reads, prefetches, split_loops
from codegen.passes.grouped_reads import is_defined
from rise.errors import EmulationError
from rise.nat import variable
from rise.types import F32, Scalar
from tests.support.warpgroups import DOT, ROLES, agrees, derived

TILE = {**ROLES, "block": (64, 96, 64), "warp": (64, 96), "fragment": (64, 96, 16), "epilogue": "shared"}


def masked(m: int, n: int, otherwise: str = "0") -> str:
    """A·B where a mask is positive; of 72 products each."""
    return (
        f"fun((A: {m}.72.f16, B: {n}.72.f16, C: {m}.{n}.f16) => zip(A)(C) |> map(fun((row, cs) =>"
        f" zip(B)(cs) |> map(fun((col, c) => f16(select(c > 0)({DOT})({otherwise})))))))"
    )


def test_a_thread_reads_a_group_before_it_stores_the_first() -> None:
    """Rows of odd length: elements of C are read one by one, as are those of the result written."""
    text = masked(65, 97)
    made = derived(text, **TILE)
    reads = [m.start() for m in re.finditer(r"C_read_?\w*\[.*\] = ", made.source)]
    stores = [m.start() for m in re.finditer(r"output\[.*\] = output_element", made.source)]
    assert reads and len(reads) == len(stores)
    assert all(read < store for read, store in zip(reads, stores, strict=True))
    assert not re.search(r"if \(thread_x < 128\)", made.source.rpartition("named_barrier(")[2]), (
        "all that compute do"
    )
    assert agrees(text, made)


def test_quotients_of_a_period_serve_all_elements() -> None:
    """128 threads store rows of 96 elements: four rows in three rounds, which have the same three columns."""
    made = derived(masked(65, 97), **TILE)
    assert re.search(r"for \(int \w+ = 0; \w+ < 3; ", made.source)
    assert re.findall(r"\(\w+_inner\w* \* 128 \+ thread_x\) / 96", made.source)
    assert not re.search(r"\(\w+_outer\w* \* 384 \+", made.source)


@pytest.mark.parametrize(("at_once", "most"), [(7, 1), (1000, 16)])
def test_groups_and_periods_of_any_size_are_exact(
    monkeypatch: pytest.MonkeyPatch, at_once: int, most: int
) -> None:
    random = Random(f"{at_once}")
    monkeypatch.setattr(grouped_reads, "AT_ONCE", at_once)
    monkeypatch.setattr(split_loops, "MOST_QUOTIENTS", most)
    m, n = random.randint(1, 130), 2 * random.randint(20, 70) + 1
    text = masked(m, n, "f32(c)")
    made = derived(text, **TILE)
    assert "output_element" in made.source
    assert agrees(text, made), (m, n)


@pytest.mark.parametrize(("type_", "defined"), [(Scalar("i32"), False), (F32, True)])
def test_what_is_not_defined_for_zeros_is_not_computed_of_them(type_: Scalar, defined: bool) -> None:
    """Missing elements are zeros: floats may be divided by these, integers may not."""
    read = i.Access("xs", (variable("k"),), type_)
    assert is_defined(i.Operator("div", (i.Number(1, type_), read), type_)) == defined
    assert is_defined(i.Operator("add", (i.Number(1, type_), read), type_))


def test_lines_of_what_is_read_beside_a_product_are_asked_for_first() -> None:
    text = masked(65, 97)
    source = derived(text, **TILE).source
    consumer = source[source.index(" compute\n") :]
    assert -1 < consumer.find("prefetch_line(&C[") < consumer.find("wgmma<")
    assert consumer.count("prefetch_line(") == 1, "one version, for tiles inside and at the ends"


def test_nothing_is_asked_for_whose_address_is_not_known_yet() -> None:
    """The tiles of a persistent block follow from a loop inside of its program."""
    text = masked(129, 97)
    made = derived(text, **{**TILE, "persistent_blocks": 2})
    assert "prefetch_line" not in made.source
    assert agrees(text, made)


def test_a_line_outside_of_an_array_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    prefetch = prefetches._prefetch
    monkeypatch.setattr(
        prefetches, "_prefetch", lambda place, name, count, _: prefetch(place, name, count, ())
    )
    text = masked(65, 99)
    with pytest.raises(EmulationError):
        agrees(text, derived(text, **TILE))
