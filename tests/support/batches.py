"""Programs of batches of small products, and whether kernels for them are exact."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from codegen.execute import execute
from codegen.pipeline import assemble
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr, Lambda
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.batches.batch import batch, matrices_of
from strategies.batches.sizes import Sizes
from strategies.search.batches import batched
from strategies.search.choice import Choice, Search
from strategies.search.hardware import for_target
from tests.support.kernels import parts
from tests.support.programs import succeeded

DOT = "zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0)"
TF32 = "zip(row)(col) |> map((x, y) => f32(tf32(x)) * f32(tf32(y))) |> reduce(+, 0)"
BODIES = {
    "plain": DOT,
    "rounded": f"$t({DOT})",
    "scaled": f"0.5 * ({DOT}) + 3",
    "rounded to tf32": TF32,
}
ROWS = {"A": ("m.k", "A"), "T": ("k.m", "transpose(A)")}
COLUMNS = {"A": ("k.n", "transpose(B)"), "T": ("n.k", "B")}


@cache
def products(
    b: int, m: int, n: int, k: int, type_: str = "f16", layouts: str = "AA", body: str = "plain"
) -> Expr:
    """b products of an m.k and a k.n matrix; T: stored transposed."""
    rows, columns = ROWS[layouts[0]], COLUMNS[layouts[1]]
    text = (
        f"def f(b: Nat, m: Nat, n: Nat, k: Nat)(As: b.{rows[0]}.{type_}, Bs: b.{columns[0]}.{type_}) ="
        f" zip(As)(Bs) |> map((A, B) => {rows[1]} |> map(row => {columns[1]} |> map(col =>"
        f" {BODIES[body].replace('$t', type_)})))"
    )
    return program(text, b=b, m=m, n=n, k=k)


def program(text: str, **sizes: int) -> Expr:
    return data_flow(specialise(check_text(text)["f"], sizes))


def sizes_of(term: Expr) -> Sizes:
    """What is known of a matrix of a batch, of a program of such matrices."""
    while isinstance(term, Lambda):
        term = term.body
    found = Sizes.of(matrices_of(term))
    assert found is not None
    return found


def lowered(term: Expr, operands: str = "bulk", **settings: Any) -> Expr:
    """By the strategy `batch`, with these parameters."""
    return succeeded(batch(operands=operands, **settings)(term)).term


def chosen(term: Expr, target: str = "sm_90a") -> Choice:
    """What `auto` chooses for a batch."""
    found = batched(Search(for_target(target), target), term)
    assert found is not None
    return found[0]


def operands_of(choice: Choice) -> str | None:
    """Where fragments are read from; None if the strategy decides that."""
    operands = dict(choice.point.parameters).get("operands")
    return None if operands is None else str(operands)


def exact(term: Expr, low: Expr, seed: int = 5) -> bool:
    """Whether the kernel computes what the program does, on whole numbers."""
    inputs = random_inputs(inputs_of(term), seed, exact=True)
    found, wanted = execute(assemble(low, "f"), inputs, "emulate"), call(term, *inputs)
    return all(
        np.array_equal(np.asarray(a, np.float64), np.asarray(b, np.float64))
        for a, b in zip(parts(found), parts(wanted), strict=True)
    )
