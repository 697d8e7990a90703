"""Rows of products whose parts are used apart, for gates and rotations: in the kernel of the products."""

from __future__ import annotations

import pytest

from codegen.execute import execute
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.compare import compare, tolerance
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.testing import assert_equivalent
from strategies.auto import auto
from strategies.core import top_down
from strategies.parts_apart import parts_apart
from strategies.places import in_inputs
from tests.support.nightly import every_other
from tests.support.programs import succeeded

HEAD = """
def dot{k: Nat}(x: k.f16, y: k.f16): f32 = zip(x)(y) |> map((a, b) => f32(a) * f32(b)) |> reduce(+, 0)
def rows{m: Nat, n: Nat, k: Nat}(X: m.k.f16, W: n.k.f16): m.n.f32 = X |> map(x => W |> map(w => dot(x, w)))
def act(a: f32, b: f32): f16 = f16(max(a, 0) * b)
"""
GATED = {
    "a matrix with a name": """def f(m: Nat, n: Nat, k: Nat)(X: m.k.f16, W: (2*n).k.f16) =
      let P = rows(X, W) in P |> map(p => zip(p |> take(n))(p |> drop(n)) |> map((a, b) => act(a, b)))""",
    "halves with names": """def f(m: Nat, n: Nat, k: Nat)(X: m.k.f16, W: k.(2*n).f16) =
      rows(X, transpose(W)) |> map(p =>
        let a = p |> take(n) in let b = p |> drop(n) in zip(a)(b) |> map((a, b) => act(a, b)))""",
    "a row with a name": """def f(m: Nat, n: Nat, k: Nat)(X: m.k.f16, W: (2*n).k.f16) =
      X |> map(x =>
        let p = W |> map(w => dot(x, w)) in zip(p |> take(n))(p |> drop(n)) |> map((a, b) => act(a, b)))""",
    "rotated by the numbers of a row": """def f(m: Nat, n: Nat, k: Nat)
      (X: m.k.f16, W: (2*n).k.f16, c: m.n.f32, s: m.n.f32) =
      zip(rows(X, W))(zip(c)(s)) |> map((p, (c, s)) =>
        zip(zip(p |> take(n))(p |> drop(n)))(zip(c)(s))
        |> map(((a, b), (c, s)) => (f16(a * c - b * s), f16(a * s + b * c))))""",
}
USED_OFTEN = {
    "one part twice": "p => zip(p |> take(n))(p |> take(n)) |> map((a, b) => a * b)",
    "parts that overlap": "p => zip(p |> take(n))(p |> drop(1) |> take(n)) |> map((a, b) => a + b)",
    "in a function": "p => X |> map(x => zip(p |> take(n))(p |> drop(n)) |> map((a, b) => a * b))",
    "a part and the row": "p => (p |> take(n)) |> map(a => a * (p |> reduce(+, 0)))",
}


def program(text: str, m: int, n: int, k: int) -> Expr:
    return data_flow(specialise(check_text(HEAD + text)["f"], {"m": m, "n": n, "k": k}))


@pytest.mark.parametrize("name", every_other(GATED))
def test_parts_are_computed_where_they_are_used(name: str) -> None:
    for sizes in ((3, 5, 2), (33, 40, 64), (65, 65, 33)):
        term = program(GATED[name], *sizes)
        assert len(auto().choice(term).kernels) == 1
        made, inputs = (
            assemble(succeeded(auto()(term)).term, "f"),
            random_inputs(inputs_of(term), 3, exact=True),
        )
        found, wanted = execute(made, inputs, "emulate"), call(term, *inputs)
        assert compare(found, wanted, tolerance(term)).agrees, sizes


@pytest.mark.parametrize("name", GATED)
def test_the_matrix_of_both_halves_is_not_stored(name: str) -> None:
    (chosen,) = auto().choice(program(GATED[name], 1024, 1024, 1024)).kernels
    assert chosen.point.strategy == "tensor_core"


@pytest.mark.parametrize("name", [name for name in GATED if name != "a matrix with a name"])
def test_each_form_is_equivalent(name: str) -> None:
    term = program(GATED[name].replace("let a = p |> take(n) in let b = p |> drop(n) in zip(a)(b)",
                                       "zip(p |> take(n))(p |> drop(n))"), 3, 4, 2)  # fmt: skip
    assert_equivalent(term, succeeded(in_inputs(top_down(parts_apart))(term)).term)


@pytest.mark.parametrize("name", USED_OFTEN)
def test_what_is_used_often_stays(name: str) -> None:
    head = "def f(m: Nat, n: Nat, k: Nat)(X: m.k.f16, W: (2*n).k.f16) ="
    text = f"{head} rows(X, W) |> map({USED_OFTEN[name]})"
    assert isinstance(in_inputs(top_down(parts_apart))(program(text, 3, 4, 2)), Failure)
