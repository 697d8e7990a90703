"""Masks by numbers: what is said of blocks is implied, is the same for a whole block, and lets folds skip it.

Scores are whole numbers between -4 and 4 and weights powers of two, so all sums are exact in any order.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from rewrites.algorithmic import SPLIT_JOIN
from rewrites.folds import FACTORS
from rewrites.masks import BLOCKS_OF_A_MASK, FACTOR_OF_MASK, NUMBERS_OF_TILES
from rewrites.result import Failure
from rewrites.rolling import ROLLING
from rewrites.rows import guarded
from rise.expr import Expr, Lambda, call, subterms
from rise.testing import assert_equivalent
from strategies.core import Rewrite, argument, body, seq, try_
from strategies.places import in_inputs, mapped
from tests.support.programs import succeeded
from tests.support.rows import SCORE, term_of

DRAWS = 24


def comparison(random: Random) -> str:
    """Of the numbers i and j of a row and a column, and a number w that is an input."""
    i, j, w = random.choice((-2, -1, 0, 1, 2)), random.choice((-2, -1, 1, 2)), random.choice((0, 0, 1))
    left, right = f"{i} * i + {random.randint(-6, 6)}", f"{j} * j + {w} * w"
    return f"{left} {random.choice(('<', '<=', '>', '>='))} {right}"


def masked(random: Random, m: int, n: int, d: int, e: int) -> str:
    """Rows with scores under a mask, which always leaves the first column."""
    forms = ("{}", "{} && {}", "{} || {}", "{} && ({} || {})", "{} && {} || {}", "({} || i * i < 5) && {}")
    form = random.choice(forms)
    mask = form.format(*(comparison(random) for _ in range(3)))
    return (
        f"fun((w: i32, a: {m}.{d}.f16, b: {n}.{d}.f16, v: {n}.{e}.f16) =>"
        " zip(a)(generate(fun(i => indexToInt(i)))) |> map(fun((q, i) =>"
        " zip(b)(generate(fun(j => indexToInt(j)))) |> map(fun((k, j) =>"
        f" select(({mask}) || j == 0, {SCORE}, -infinity))) |> fun(scores =>"
        " scores |> reduce(max, -infinity) |> fun(m => scores |> map(fun(s => exp2(s - m))) |> fun(w =>"
        " transpose(v) |> map(fun(c => zip(w)(c) |> map(fun((x, y) => x * f32(y))) |> reduce(+, 0))))))))"
    )


def leaving_all(random: Random, m: int, n: int, d: int, e: int) -> str:
    """The same under a mask of comparisons alone: rows that it excludes as a whole give no number."""
    return masked(random, m, n, d, e).replace(" || j == 0", "")


def of_tiles(rows: int, strategy: Rewrite) -> Rewrite:
    """The strategy in each tile of so many rows, which are numbered by the tile's number."""
    tiles = seq(try_(NUMBERS_OF_TILES), mapped(strategy))
    return in_inputs(seq(SPLIT_JOIN.with_sizes(n=rows), argument(tiles)))


def guards(term: Expr) -> list[Expr]:
    found = [
        guarded(part.parameter, part.body.body)[0]
        for part in subterms(term)
        if isinstance(part, Lambda) and isinstance(part.body, Lambda)
    ]
    return [guard for guard in found if guard is not None]


def test_what_a_mask_says_of_blocks_changes_no_value() -> None:
    random, seen = Random(20261124), Counter[str]()
    for seed in range(DRAWS):
        rows, tiles, columns = random.choice((1, 2, 3)), random.choice((1, 2, 3)), random.choice((1, 2, 4))
        n, d, e = (random.choice((1, 2, 5, 7)) for _ in range(3))
        term = term_of(leaving_all(random, rows * tiles, n, d, e))
        result = of_tiles(rows, BLOCKS_OF_A_MASK.with_sizes(n=columns))(term)
        if isinstance(result, Failure):
            seen["refused"] += 1
            continue
        seen["applied"] += 1
        assert_equivalent(term, result.term, seeds=(seed,))
    assert seen["applied"] == DRAWS


def test_a_rolling_update_skips_what_a_mask_excludes() -> None:
    """Each row has a column that the mask leaves; the last blocks need not be whole."""
    random, seen = Random(20261125), Counter[str]()
    for seed in range(DRAWS):
        rows, tiles, columns = random.choice((1, 2, 3)), random.choice((2, 3)), random.choice((1, 2, 4))
        n, d, e = (random.choice((2, 3, 5, 7)) for _ in range(3))
        i, window = random.choice((1, 2)), random.choice(("", " && i - j < max(min(w, 5), 1)"))
        mask = f"j <= {i} * i" + (window if i == 1 else "")
        text = masked(random, rows * tiles, n, d, e)
        before, _, rest = text.partition("select(")
        term = term_of(f"{before}select({mask}, {rest.partition(', ')[2]}")
        if window and i == 1 and n < rows * tiles:
            continue  # rows without a column
        blocks = seq(
            try_(BLOCKS_OF_A_MASK.with_sizes(n=columns)), try_(FACTORS), ROLLING.with_sizes(n=columns)
        )
        made = succeeded(of_tiles(rows, blocks)(term)).term
        seen["guarded"] += bool(guards(made))
        seen["ragged"] += n % columns != 0
        assert_equivalent(term, made, seeds=(seed,))
    assert seen["guarded"] > DRAWS / 2 and seen["ragged"] > DRAWS / 5


@pytest.mark.parametrize(
    ("mask", "what"),
    [
        ("s < 2.0", "a score"),
        ("j <= i || i <= 3", "one of two that is of the row alone"),
        ("j <= i || i < j + 2 || j < 1", "one of three"),
        ("i <= 3", "the row alone"),
        ("j * j <= i", "a square"),
    ],
)
def test_other_masks_are_left_as_they_are(mask: str, what: str) -> None:
    text = (
        "fun((a: 4.f32, b: 6.f32) => zip(a)(generate(fun(i => indexToInt(i)))) |> map(fun((s, i) =>"
        " zip(b)(generate(fun(j => indexToInt(j)))) |> map(fun((y, j) =>"
        f" select({mask}, s * y, -infinity))))))"
    )
    result = in_inputs(BLOCKS_OF_A_MASK.with_sizes(n=2))(term_of(text))
    assert isinstance(result, Failure) and "no `select" in result.reason, what


@pytest.mark.parametrize(
    ("weight", "guarded_"),
    [
        ("exp2(s - m)", True),
        ("exp2(2 * (s - m))", True),
        ("exp2(m - s)", False),
        ("exp2(0 - m)", False),
        ("exp2(max(s, -2) - m)", False),
    ],
)
def test_only_weights_that_vanish_are_skipped(weight: str, guarded_: bool) -> None:
    """A weight that is not 0 where its score is -∞ has to be added."""
    text = masked(Random(1), 4, 6, 2, 2).replace("exp2(s - m)", weight)
    before, _, rest = text.partition("select(")
    term = term_of(f"{before}select(j <= i, {rest.partition(', ')[2]}")
    made = of_tiles(2, seq(BLOCKS_OF_A_MASK.with_sizes(n=2), ROLLING.with_sizes(n=2)))(term)
    if isinstance(made, Failure):
        assert not guarded_
    else:
        assert bool(guards(made.term)) == guarded_


def test_only_positive_factors_leave_a_mask() -> None:
    for factor, applies in (
        ("0.5", True),
        ("exp2(s)", True),
        ("rsqrt(s)", True),
        ("s", False),
        ("-2.0", False),
    ):
        term = term_of(f"fun((s: f32, x: f32) => select(x < 1, x * {factor}, -infinity))")
        assert isinstance(body(body(FACTOR_OF_MASK))(term), Failure) != applies, factor


def test_a_tile_knows_its_first_number() -> None:
    term = term_of(
        "fun((xs: 12.f32) => zip(xs)(generate(fun(i => indexToInt(i)))) |> map(fun((x, i) => x * f32(i))))"
    )
    made = succeeded(of_tiles(4, try_(BLOCKS_OF_A_MASK.with_sizes(n=2)))(term)).term
    numbers = [part for part in subterms(made) if (call(part) or ("",))[0] == "generate"]
    assert any("mul" in {getattr(p, "name", "") for p in subterms(part)} for part in numbers)
    assert_equivalent(term, made, seeds=(1,))
