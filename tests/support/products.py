"""Products with prologues and epilogues, by name, on small tiles."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from codegen.execute import execute
from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from rewrites.exponentials import ROUNDED
from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.expr import Expr, Primitive, inline, subterms
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.matmul.tensor_core import tensor_core
from tests.support.programs import succeeded

PROGRAMS = """
def dot = fun((xs, ys) => zip(xs)(ys) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0))

def rows = depFun((m: Nat, n: Nat, k: Nat) => fun((A: m.k.f16, B: n.k.f16) =>
  A |> map(fun(row => B |> map(fun(col => dot(row, col)))))))
def columns = depFun((m: Nat, n: Nat, k: Nat) => fun((A: k.m.f16, B: k.n.f16) =>
  A |> transpose |> map(fun(row => B |> transpose |> map(fun(col => dot(row, col)))))))
def scaled = depFun((m: Nat, n: Nat, k: Nat) => fun((A: m.k.f16, B: k.n.f16, C: m.n.f16, alpha: f32) =>
  zip(A)(C) |> map(fun((row, cs) => zip(B |> transpose)(cs) |> map(fun((col, c) =>
    f16(alpha * dot(row, col) + f32(c))))))))
def biased = depFun((m: Nat, n: Nat, k: Nat) => fun((A: m.k.f16, B: k.n.f16, bias: n.f32) =>
  A |> map(fun(row => zip(B |> transpose)(bias) |> map(fun((col, b) => max(dot(row, col) + b, 0)))))))
def rectified = depFun((m: Nat, n: Nat, k: Nat) => fun((A: m.k.f16, B: k.n.f16) =>
  A |> map(map(fun(x => max(x, 0)))) |> map(fun(row => B |> transpose |> map(fun(col => dot(row, col)))))))
def inside = depFun((m: Nat, n: Nat, k: Nat) => fun((A: m.k.f16, B: n.k.f16, C: m.n.f32) =>
  zip(A)(C) |> map(fun((row, cs) => zip(B)(cs) |> map(fun((col, c) =>
    (zip(row)(col) |> map(fun((x, y) => f32(max(x, 0)) * f32(y + 1))) |> reduce(+, 0)) + c))))))
def two = depFun((m: Nat, n: Nat, k: Nat, l: Nat) =>
  fun((A: m.k.f16, B: k.n.f16, C: m.l.f16, D: n.l.f16) =>
    zip(A)(C) |> map(fun((ra, rc) => zip(B |> transpose)(D) |> map(fun((cb, cd) =>
      dot(ra, cb) - dot(rc, cd)))))))
def rowBias = depFun((m: Nat, n: Nat, k: Nat) => fun((A: m.k.f16, B: k.n.f16, bias: m.f32) =>
  zip(A)(bias) |> map(fun((row, b) => B |> transpose |> map(fun(col => dot(row, col) + b))))))
def gelu = fun(x: f32 => 0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x * x * x))))
def residual = depFun((m: Nat, n: Nat, k: Nat) => fun((A: m.k.f16, B: k.n.f16, bias: n.f32, R: m.n.f16) =>
  zip(A)(R) |> map(fun((row, rs) => zip(B |> transpose)(zip(bias)(rs)) |> map(fun((col, (b, r)) =>
    f16(gelu(dot(row, col) + b)) + r))))))
def three = depFun((m: Nat, n: Nat, k: Nat) =>
  fun((A: m.k.f16, B: k.n.f16, C: m.k.f16, D: n.k.f16, E: k.m.f16) =>
    zip(A)(zip(C)(E |> transpose)) |> map(fun((ra, (rc, re)) => zip(B |> transpose)(D) |> map(fun((cb, cd) =>
      max(dot(ra, cb), dot(rc, cd)) * dot(re, cd)))))))
def batched = depFun((b: Nat, m: Nat, n: Nat, k: Nat) => fun((As: b.m.k.f16, Bs: b.k.n.f16) =>
  zip(As)(Bs) |> map(fun((A, B) => A |> map(fun(row => B |> transpose |> map(fun(col => dot(row, col)))))))))
def convolved = depFun((h: Nat, w: Nat, c: Nat, o: Nat) =>
  fun((image: (h + 2).(w + 2).c.f16, weights: o.(3*3*c).f16) =>
    image |> map(slide(3, 1)) |> slide(3, 1) |> map(transpose) |> map(map(map(join))) |> map(map(join))
      |> join |> map(fun(patch => weights |> map(fun(filter => dot(patch, filter)))))))
"""

SMALL: dict[str, Any] = {"block": (32, 32, 32), "warp": (16, 16), "epilogue": "direct"}


@cache
def definitions() -> Any:
    return check_text(PROGRAMS, "products.rise")


def derive(name: str, sizes: dict[str, int], **parameters: Any) -> tuple[Expr, Kernel]:
    term = data_flow(inline(specialise(definitions()[name], sizes)))
    return term, generate(succeeded(tensor_core(**{**SMALL, **parameters})(term)).term, name)


def assert_exact(term: Expr, kernel: Kernel, seed: int = 0) -> None:
    inputs = random_inputs(kernel.inputs, seed, exact=True)
    found = execute(kernel, inputs, "emulate", seed=seed)
    assert_same(found, call(term, *inputs), term)


def assert_same(found: Any, wanted: Any, term: Expr) -> None:
    """Equal in every element; where functions are rounded, up to the last digit of f16.

    Where 1 + tanh(x) cancels, up to what the sum in f32 loses: it may be computed in another way.
    """
    rounds = any(isinstance(part, Primitive) and part.name in ROUNDED for part in subterms(term))
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, wanted)), strict=True):
        if rounds:
            np.testing.assert_allclose(
                one.astype(np.float64), other.astype(np.float64), rtol=2**-10, atol=2**-21
            )
        else:
            np.testing.assert_array_equal(one, other)


def matrices(m: int, n: int, k: int) -> dict[str, int]:
    return {"m": m, "n": n, "k": k}
