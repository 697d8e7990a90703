"""Folds whose step is `select(p, new, state)` visit, and load, only the elements where p holds."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import generate
from rewrites.lowering import BLOCKS_PERSIST
from rewrites.result import Success
from rise.check.program import check_expression, check_text
from rise.check.specialise import inputs_of, specialise
from rise.errors import TranslationError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.pretty import show
from strategies.core import top_down
from strategies.matmul.one_pass import one_pass
from tests.support.nightly import every_other
from tests.support.programs import ROOT, loaded, succeeded

PROGRAMS = loaded(ROOT / "examples" / "attention.rise")
DRAWS = 12
OPERATORS = ("<", "<=", ">", ">=")


def folded(condition: str, count: int, rows: int) -> str:
    """For each row, numbered r, the sum of the vectors k for which the condition holds."""
    return f"""fun((w: i32, xs: {rows}.{count}.4.f32) =>
        zip(xs)(generate(fun(i => indexToInt(i)))) |> mapBlock(0)(fun((row, r) =>
          zip(generate(fun((k: Idx[{count}]) => indexToInt(k))))(row)
          |> reducePipelined(2)(fun(kx => (fst(kx), snd(kx) |> mapSeq(fun(y => y)) |> toMem(Local))),
              fun((acc, kx) => select({condition}, zip(acc)(snd(kx)) |> mapSeq(fun((a, b) => a + b)), acc)),
              (generate(fun(i => 0.0)) : 4.f32) |> mapSeq(fun(x => x)) |> toMem(Local))
          |> mapSeq(fun(x => x)))))"""


def test_a_fold_visits_what_its_condition_says() -> None:
    random = Random(20261126)
    for seed in range(DRAWS):
        parts = [
            f"{random.choice((-2, -1, 1, 2, 3))} * fst(kx) + {random.randint(-4, 4)}"
            f" {random.choice(OPERATORS)} {random.choice((-1, 0, 1, 2))} * r + {random.choice((0, 1))} * w"
            for _ in range(random.choice((1, 1, 2)))
        ]
        text = folded(" && ".join(parts), random.choice((1, 2, 5, 7)), random.choice((1, 3, 4)))
        term = data_flow(check_expression(text))
        made = generate(term, "visit")
        assert " ? " not in made.source.split("__global__")[1], parts
        for w in (-3, 0, 2):
            _, xs = random_inputs(inputs_of(term), seed, exact=True)
            inputs = (np.int32(w), xs)
            assert np.array_equal(execute(made, inputs, "emulate"), call(term, *inputs)), (parts, w)


def test_a_fold_visits_what_one_of_two_conditions_says() -> None:
    """Ranges that overlap, that leave elements between them, and that are empty."""
    random, seen = Random(20261125), Counter[str]()

    def comparison() -> str:
        left = f"{random.choice((-2, -1, 1, 2, 3))} * fst(kx) + {random.randint(-4, 4)}"
        right = f"{random.choice((-1, 0, 1, 2))} * r + {random.choice((0, 1))} * w"
        return f"{left} {random.choice(OPERATORS)} {right}"

    for seed in range(DRAWS):
        form = random.choice(("{} || {}", "{} && ({} || {})", "{} && {} || {}", "{} && {} || {} && {}"))
        condition = form.format(*(comparison() for _ in range(4)))
        term = data_flow(
            check_expression(folded(condition, random.choice((1, 2, 5, 7)), random.choice((1, 3, 4))))
        )
        made = generate(term, "visit")
        for w in (-3, 0, 2):
            _, xs = random_inputs(inputs_of(term), seed, exact=True)
            inputs = (np.int32(w), xs)
            found, wanted = execute(made, inputs, "emulate"), call(term, *inputs)
            seen["some" if np.any(wanted) else "none"] += 1
            assert np.array_equal(found, wanted), (condition, w)
    assert min(seen["some"], seen["none"]) > 2, seen


@pytest.mark.parametrize(
    "condition",
    [
        "fst(kx) * fst(kx) < r",
        "fst(kx) < 3 || r < 1",
        "fst(kx) < 1 || fst(kx) > 3 || fst(kx) < r",
        "w < r",
    ],
)
def test_other_conditions_are_refused_by_place(condition: str) -> None:
    """They are no range of elements, and a state of arrays is not chosen element by element."""
    with pytest.raises(TranslationError) as caught:
        generate(data_flow(check_expression(folded(condition, 5, 3))), "refused")
    assert caught.value.origin is not None


def attention(name: str, blocks: int = 0, **sizes: int) -> tuple[Expr, Expr]:
    """The program, and its low-level form."""
    term = data_flow(specialise(PROGRAMS[name], sizes))
    return term, succeeded(one_pass(rows=64, columns=32, blocks=blocks)(term)).term


@pytest.mark.parametrize(
    ("name", "width", "read"),
    [("causal", None, (0, 64)), ("window", 20, (32, 128)), ("window", 200, (0, 128))],
)
def test_what_a_mask_excludes_is_not_read(name: str, width: int | None, read: tuple[int, int]) -> None:
    """NaN in the values of other keys would make the sums NaN, also with weights of 0.

    Of two tiles of 64 rows the one that is looked at is the first without a window, else the second.
    """
    term, low = attention(name, m=128, n=128, d=16, e=16)
    inputs: list[Any] = [np.array(x) for x in random_inputs(inputs_of(term), 5, exact=False)]
    if width is not None:
        inputs[0] = np.int32(width)
    wanted = np.asarray(call(term, *inputs))
    for array in inputs[-2:]:
        array[: read[0]], array[read[1] :] = np.nan, np.nan
    found = np.asarray(execute(generate(low, "masked"), inputs, "emulate"))
    rows = slice(0, 64) if name == "causal" else slice(64, 128)
    assert np.allclose(found[rows].astype(float), wanted[rows].astype(float), atol=4e-3)


STREAMING = "j <= i && (j < {} || i - j < {})"
PREFIX = "j < {} || j <= i"


@pytest.mark.parametrize(
    ("mask", "numbers", "tile", "seen", "fragment"),
    every_other(
        [
            (STREAMING, (4, 20), 2, "10011100", 64),  # the first keys, and a window
            (STREAMING, (40, 40), 3, "11001111", 64),
            (STREAMING, (4, 20), 2, "10011100", 16),
            (PREFIX, (100,), 0, "11110000", 16),
            (PREFIX, (3,), 1, "11110000", 64),
        ]
    ),
)
def test_what_both_of_two_masks_exclude_is_not_read(
    mask: str, numbers: tuple[int, ...], tile: int, seen: str, fragment: int
) -> None:
    """NaN in all other blocks of 32 keys."""
    text = f"""import "prelude.rise"
def f(m: Nat, n: Nat, d: Nat)(Q: m.d.f16, K: n.d.f16, V: n.d.f16): m.d.f16 =
  Q |> numbered |> map((q, i) =>
    attend((j, s) => select({mask.format(*numbers)}, s * 0.25, -infinity), K, V, q))"""
    term = data_flow(specialise(check_text(text)["f"], {"m": 256, "n": 250, "d": 16}))
    low = succeeded(one_pass(rows=64, columns=32, fragment=fragment)(term)).term
    inputs: list[Any] = [np.array(x) for x in random_inputs(inputs_of(term), 5, exact=False)]
    wanted = np.asarray(call(term, *inputs))
    for array in inputs[-2:]:
        array[~np.repeat([block == "1" for block in seen], 32)[:250]] = np.nan
    found = np.asarray(execute(generate(low, "masked"), inputs, "emulate"))
    rows = slice(64 * tile, 64 * tile + 64)
    assert np.allclose(found[rows].astype(float), wanted[rows].astype(float), atol=4e-3)


@pytest.mark.parametrize(("b", "h", "blocks"), every_other([(3, 5, 4), (2, 4, 3), (1, 3, 2)]))
def test_persistent_blocks_go_on_where_shares_differ(b: int, h: int, blocks: int) -> None:
    """The blocks of a dimension that they do not divide have different numbers of executions."""
    term, low = attention("heads", blocks=blocks, b=b, h=h, m=50, n=96, d=16, e=16)
    made = generate(low, "persistent")
    assert "mapBlockPersistent" in show(low)
    inputs = random_inputs(inputs_of(term), 3, exact=False)
    found, wanted = execute(made, inputs, "emulate"), call(term, *inputs)
    assert np.allclose(np.asarray(found, float), np.asarray(wanted, float), atol=4e-3)


def test_a_ring_of_all_threads_goes_on_only_if_executions_have_equally_many_elements() -> None:
    term = data_flow(specialise(PROGRAMS["causal"], {"m": 256, "n": 256, "d": 16, "e": 16}))
    low = succeeded(one_pass(rows=64, columns=32, warp_specialised=False)(term)).term
    persistent = top_down(BLOCKS_PERSIST.with_sizes(d=0, p=2))(low)
    assert isinstance(persistent, Success)
    with pytest.raises(TranslationError, match="another number of elements") as caught:
        generate(persistent.term, "refused")
    assert caught.value.code == "R0739" and caught.value.origin is not None
