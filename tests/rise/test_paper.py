"""The programs of the RISE paper (CGO'22 extended abstract) are accepted as printed there."""

from __future__ import annotations

import numpy as np
import pytest

from rise.check.elaborate import Elaborator, Scope
from rise.check.generalise import fill
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr, Primitive, subterms
from rise.interpret import call, random_inputs
from rise.pretty import show_type
from rise.source import Source
from rise.syntax.parser import parse_expression

# Figure 1, lines 1-8
HIGH_LEVEL = """
depFun((m:Nat,n:Nat,k:Nat) =>
fun((A: Array[m,Array[k,f32]], B: Array[k,Array[n,f32]],
     C: Array[m,Array[n,f32]], alpha: f32, beta: f32) =>
zip(A)(C) |> map(fun(rowAC =>
zip(B |> transpose)(snd(rowAC)) |> map(fun(colBC =>
zip(fst(rowAC))(fst(colBC)) |>
map(fun((a, b) => a * b)) |> reduce(+, 0) |>
fun(r => (alpha * r) + (beta * snd(colBC))) ))))))
"""

TYPE = "(m: Nat, n: Nat, k: Nat) -> m.k.f32 -> k.n.f32 -> m.n.f32 -> f32 -> f32 -> m.n.f32"

# Figure 1, lines 9-15
LOW_LEVEL = """
depFun((m:Nat,n:Nat,k:Nat) => fun(A,B,C,alpha,beta =>
zip(A)(C) |> mapBlock(fun(rowAC =>
zip(B |> transpose)(snd(rowAC)) |>
mapThreads(fun(colBC => zip(fst(rowAC))(fst(colBC)) |>
reduceSeq(Local) (fun((acc,ab) =>
acc + fst(ab) * snd(ab)),0) |>
fun(r => (alpha * r) + (beta * snd(colBC))) ))))))
"""

# Listing 4
LEFT = """
aTile: Array[16,Array[16,f16]] |> map(fun(aRow =>
  bTile: Array[16,Array[16,f16]] |> map(fun(bCol =>
    zip(aRow, bCol) |>
    reduceSeq(fun(ac, ab =>
      add(ac, mul(fst(ab), snd(ab)))))(0.0)))))
"""
RIGHT = """
tensorMatMulAdd
  (aTile: Array[16,Array[16,f16]] |> asFragment |> toMem(Local))
  (bTile: Array[16,Array[16,f16]] |> transpose
    |> asFragment |> toMem(Local))
  (generateFragment(0.0) |> toMem(Local))
|> toMem(Local) |> asMatrix
"""


def open_expression(text: str) -> Expr:
    """A side of a rule: its free names stand for any program."""
    elaborator = Elaborator(pattern_variables={})
    term = elaborator.infer(parse_expression(Source("listing 4", text)), Scope())
    elaborator.unifier.finish()
    return fill(term, elaborator.unifier)


def test_the_high_level_gemm_has_the_type_of_gemm() -> None:
    gemm = check_text(f"def gemm = {HIGH_LEVEL}")["gemm"]
    assert show_type(gemm.body.type) == TYPE


def test_the_low_level_gemm_is_accepted_without_any_type() -> None:
    low = check_text(f"def low = {LOW_LEVEL}")["low"]
    names = {t.name for t in subterms(low.body) if isinstance(t, Primitive)}
    assert {"mapBlock", "mapThreads", "reduceSeq"} <= names
    assert not names & {"map", "reduce"}


def test_the_low_level_gemm_means_what_the_high_level_one_means() -> None:
    program = check_text(f"def high = {HIGH_LEVEL}\ndef low: {TYPE} = {LOW_LEVEL}")
    high, low = (specialise(program[name], {"m": 3, "n": 4, "k": 5}) for name in ("high", "low"))
    inputs = random_inputs(inputs_of(high), 0, exact=True)
    np.testing.assert_array_equal(call(low, *inputs), call(high, *inputs))


@pytest.mark.parametrize("side", [LEFT, RIGHT], ids=["left", "right"])
def test_listing_4_is_accepted(side: str) -> None:
    assert show_type(open_expression(side).type).startswith("16.16.")
