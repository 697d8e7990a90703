"""Orders that leave pairs together, which is decided for all elements at once."""

from __future__ import annotations

from math import gcd
from random import Random

import numpy as np
import pytest

from rewrites.orders import COLUMNS_STRIDED
from rise.expr import Expr, Identifier, call, subterms
from rise.interpret import call as interpreted
from rise.nat import NatVariable, constant, nat
from rise.types import F16, Array, NatFunction
from strategies.auto import split
from strategies.contiguity import Contiguity, contiguity_of, keeps_pairs
from tests.support.batches import program
from tests.support.programs import succeeded


def orders(term: Expr) -> list[tuple[object, ...]]:
    found = [call(part) for part in subterms(term)]
    return [c[1].arguments for c in found if c is not None and c[0] == "reorder" and len(c[2]) == 1]


def has_pairs(size: int, order: NatFunction) -> bool:
    """By looking at each element."""
    at = [order.body.substitute({NatVariable(order.parameter): constant(i)}).value or 0 for i in range(size)]
    return all(a % 2 == 0 and b == a + 1 for a, b in zip(at[::2], at[1::2], strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_strided_pairs_of_columns_stay_together(seed: int) -> None:
    """Parts, how many pairs a part has and how far apart they are: drawn."""
    random = Random(seed)
    p, q, s = random.randint(1, 5), random.choice((2, 4, 8)), random.randint(2, 17)
    xss = Identifier("xss", Array(nat(3), Array(nat(2 * p * q * s), F16)))
    ordered = succeeded(COLUMNS_STRIDED.with_sizes(p=p, j=s, q=q)(xss)).term
    found = orders(ordered)
    assert len(found) == 2 and all(map(keeps_pairs, found))
    assert all(has_pairs(2 * p * q * s, order[1]) for order in found if isinstance(order[1], NatFunction))
    assert contiguity_of(ordered, {}) == Contiguity((False, True), (nat(2 * p * q * s),))


@pytest.mark.parametrize(
    ("there", "back", "kept"),
    [
        ("11 - i", "11 - i", False),
        ("(i + 2) % 12", "(i + 10) % 12", True),
        ("(i + 1) % 12", "(i + 11) % 12", False),
        ("i % 3 * 4 + i / 3", "i % 4 * 3 + i / 4", False),
        ("1 - i % 2 + i / 2 * 2", "1 - i % 2 + i / 2 * 2", False),
    ],
)
def test_other_orders_are_told_apart(there: str, back: str, kept: bool) -> None:
    term = program(f"def f(xs: 12.f32) = xs |> reorder(12, natFun(i => {there}), natFun(i => {back}))")
    (order,) = orders(term)
    assert isinstance(order[1], NatFunction)
    assert keeps_pairs(order) == has_pairs(12, order[1]) == kept


def test_rows_that_indices_choose_are_neighbours_nowhere() -> None:
    """Their elements are; an index does not say where the next one is."""
    chosen = program("def f(T: 50.8.f32, is: 9.Idx[50]) = is |> map(i => T |> idx(i))")
    assert contiguity_of(split(chosen)[1], {}) == Contiguity((False, True), (nat(8),))
    lengths = program("def f(xs: 9.f32, is: 9.Idx[50]) = zip(xs)(is) |> map((x, i) => x * x)")
    assert contiguity_of(split(lengths)[1], {}) == Contiguity((True,), computed=True)


def view(random: Random, rows: int, columns: int) -> str:
    """A view of a matrix, which has as many columns or fewer, or turns it."""
    width = random.randint(1, columns)
    step = random.choice([d for d in range(1, columns + 1) if (columns - width) % d == 0])
    part = random.choice([d for d in range(1, columns + 1) if columns % d == 0])
    return random.choice(
        [
            f"map(drop({columns - width}))",
            f"map(take({width}))",
            f"drop({random.randint(0, rows - 1)})",
            "transpose",
            f"map(slide({width}, {step})) |> join",
            f"map(split({part})) |> join",
        ]
    )


@pytest.mark.parametrize("seed", range(12))
def test_rows_start_where_views_say(seed: int) -> None:
    """Views of views, drawn, of an array whose elements are their places: rows are the places they read."""
    random, fired = Random(seed), 0
    for _ in range(6):
        sizes = [random.randint(2, 9), random.randint(2, 12)]
        places = np.arange(sizes[0] * sizes[1], dtype=np.int32).reshape(sizes)
        text = "xss"
        for _ in range(random.randint(1, 4)):
            text += " |> " + view(random, *sizes)
            term = program(f"def f(xss: {places.shape[0]}.{places.shape[1]}.i32) = {text}")
            found = interpreted(term, places)
            sizes = list(found.shape)
        known = contiguity_of(split(term)[1], {})
        if not isinstance(known, Contiguity) or not any(known.dimensions):
            continue
        fired += 1
        rows = found if known.dimensions[1] else found.T
        apart = gcd(*(start.value or 1 for start in known.starts))
        assert all(place % apart == 0 if apart else place == 0 for place in rows[:, 0]), text
        assert (np.diff(rows, axis=1) == 1).all(), text
    assert fired > 1
