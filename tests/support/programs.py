"""Programs from text and from the examples."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from rewrites.result import Result, Success
from rise.check.program import Loader, Program, check_expression, check_text
from rise.check.specialise import specialise
from rise.expr import Expr, inline
from rise.normal import data_flow

ROOT = Path(__file__).parents[2]
LOADER = Loader()
PRELUDE = 'import "prelude.rise"\n'


@cache
def program(text: str, prelude: bool = False) -> Expr:
    """A closed program in normal form."""
    if not prelude:
        return data_flow(check_expression(text))
    return data_flow(specialise(check_text(f"{PRELUDE}def f = {text}")["f"], {}))


def at_sizes(text: str, **sizes: int) -> Expr:
    """The same for a program that is open in sizes, with the functions that it calls put in."""
    return data_flow(inline(specialise(check_text(f"def f = {text}")["f"], sizes)))


def loaded(path: Path | str) -> Program:
    """A file of ours, which a process checks once: programs do not change."""
    return LOADER.load(Path(path)).program


def succeeded(result: Result) -> Success:
    """What a rewrite gives, which has to apply."""
    assert isinstance(result, Success), result.story()
    return result


HALF = """
// sums in f16, and operands in bf16
def matmul_f16 = depFun((m: Nat, n: Nat, k: Nat) =>
  fun((A: Array[m, Array[k, f16]], B: Array[k, Array[n, f16]]) =>
    A |> map(fun(row => B |> transpose |> map(fun(col =>
      zip(row)(col) |> map(fun((a, b) => a * b)) |> reduce(+, 0)))))))
def matmul_bf16 = depFun((m: Nat, n: Nat, k: Nat) =>
  fun((A: Array[m, Array[k, bf16]], B: Array[k, Array[n, bf16]]) =>
    A |> map(fun(row => B |> transpose |> map(fun(col =>
      zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0)))))))
"""

Sizes = tuple[int, int, int]


@cache
def matrix_program(name: str, sizes: Sizes) -> Expr:
    text = (ROOT / "examples" / "gemm.rise").read_text(encoding="utf-8") + HALF
    definition = check_text(text)[name]
    return data_flow(inline(specialise(definition, dict(zip("mnk", sizes, strict=True)))))
