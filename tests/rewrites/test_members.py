"""Zips of rows, columns and what is of neither, in any nesting, become zips of rows and of columns."""

from __future__ import annotations

from random import Random

import pytest

from rewrites.members import MEMBERS_APART
from rewrites.result import Failure
from rise.check.program import check_expression
from rise.expr import Expr, Lambda, call
from rise.normal import data_flow
from strategies.core import body
from tests.rewrites.soundness import disagreement

SEED, DRAWS = 20261127, 60
ARRAYS = {"xs": "x", "ys": "y", "w": "c", "v": "d"}  # a row, a column, two arrays beside both


def zipped(random: Random, arrays: list[str]) -> tuple[str, str]:
    """A zip of arrays in some nesting, and the pattern of its elements."""
    if len(arrays) == 1:
        return arrays[0], ARRAYS[arrays[0]]
    cut = random.randrange(1, len(arrays))
    (first, x), (second, y) = zipped(random, arrays[:cut]), zipped(random, arrays[cut:])
    return f"zip({first})({second})", f"({x}, {y})"


def drawn(random: Random) -> Expr:
    arrays = ["xs", "ys", *random.sample(["w", "v"], random.randrange(1, 3))]
    random.shuffle(arrays)
    zips, pattern = zipped(random, arrays)
    terms = " - ".join(f"{random.randint(1, 3)} * {ARRAYS[name]}" for name in arrays)
    text = (
        "fun((xss: 2.3.i32, yss: 4.3.i32, w: 3.i32, v: 3.i32) => xss |> map(fun(xs => yss |> map(fun(ys =>"
        f" {zips} |> map(fun({pattern} => {terms})) |> reduce(+, 0))))))"
    )
    term = data_flow(check_expression(text))
    while isinstance(term, Lambda):
        term = term.body
    return term


def operands(term: Expr) -> list[frozenset[str]]:
    """The free names of both members of the zip that is reduced."""
    for _ in range(2):
        term = call(term)[2][0].body  # type: ignore[index, union-attr]
    pairs = call(call(term)[2][2])[2][1]  # type: ignore[index]
    return [part.free for part in call(pairs)[2]]  # type: ignore[index]


def test_rows_and_columns_are_apart() -> None:
    random, fired = Random(SEED), 0
    print(f"seed {SEED}")
    for number in range(DRAWS):
        term = drawn(random)
        result = MEMBERS_APART(term)
        if isinstance(result, Failure):
            assert not any({"xs", "ys"} <= names for names in operands(term))
            continue
        fired += 1
        rows, columns = operands(result.term)
        assert "xs" in rows - columns and "ys" in columns - rows
        assert isinstance(MEMBERS_APART(result.term), Failure), "once is enough"
        assert disagreement(term, result.term, number) is None
    assert fired > DRAWS // 4


@pytest.mark.parametrize(
    "text",
    [
        "fun((xss: 2.3.i32, yss: 4.3.i32) => xss |> map(fun(xs => yss |> map(fun(ys => zip(xs)(ys)"
        " |> map(fun((x, y) => x * y)) |> reduce(+, 0))))))",
        "fun((xss: 2.3.i32, yss: 4.3.i32, w: 3.i32) => xss |> map(fun(xs => yss |> map(fun(ys => zip(w)"
        "(zip(xs)(ys) |> map(fun((x, y) => x + y))) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))))",
    ],
)
def test_others_stay(text: str) -> None:
    term = data_flow(check_expression(text))
    assert isinstance(body(body(MEMBERS_APART))(term), Failure)
