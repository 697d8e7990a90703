"""Attention over parts of arrays: packed projections, the first tokens of a cache, rows from any element."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from codegen.execute import execute
from codegen.pipeline import assemble
from rise.check.compare import compare, tolerance
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.auto import auto
from tests.support.nightly import NIGHTLY
from tests.support.programs import loaded, succeeded

PARTS = {
    "columns of one array": """
def f(n: Nat, d: Nat)(scale: f32, QKV: n.(3*d).f16): n.d.f16 =
  let q = QKV |> map(take(d)) in
  let k = QKV |> map(r => r |> drop(d) |> take(d)) in
  let v = QKV |> map(drop(2*d)) in
  q |> map(attend((j, s) => s * scale, k, v))""",
    "one of three matrices": """
def f(n: Nat, d: Nat)(scale: f32, QKV: 3.n.d.f16): n.d.f16 =
  QKV |> idx(natAsIndex(3)(0))
  |> map(attend((j, s) => s * scale, QKV |> idx(natAsIndex(3)(1)), QKV |> idx(natAsIndex(3)(2))))""",
    "heads of one array": """
def f(n: Nat, d: Nat)(scale: f32, QKV: n.3.2.d.f16): 2.n.d.f16 =
  let q = QKV |> map(r => r |> idx(natAsIndex(3)(0))) |> transpose in
  let k = QKV |> map(r => r |> idx(natAsIndex(3)(1))) |> transpose in
  let v = QKV |> map(r => r |> idx(natAsIndex(3)(2))) |> transpose in
  zip(q)(zip(k)(v)) |> map((Q, (K, V)) => Q |> map(attend((j, s) => s * scale, K, V)))""",
    "the first keys": """
def f(n: Nat, d: Nat)(scale: f32, Q: 70.d.f16, K: (n + 5).d.f16, V: (n + 5).d.f16): 70.d.f16 =
  Q |> map(attend((j, s) => s * scale, K |> take(n), V |> take(n)))""",
    "some queries": """
def f(n: Nat, d: Nat)(scale: f32, Q: (n + 9).d.f16, K: 50.d.f16, V: 50.d.f16): n.d.f16 =
  Q |> drop(3) |> take(n) |> map(attend((j, s) => s * scale, K, V))""",
    "rows from other elements": """
def f(n: Nat, d: Nat)(scale: f32, Q: 65.(d + 3).f16, K: n.(d + 5).f16, V: n.(d + 1).f16): 65.d.f16 =
  Q |> map(drop(3)) |> map(attend((j, s) => s * scale, K |> map(take(d)), V |> map(drop(1))))""",
}


def attention(name: str, n: int, d: int) -> Expr:
    return data_flow(specialise(check_text('import "prelude.rise"' + PARTS[name])["f"], {"n": n, "d": d}))


def chosen(term: Expr) -> dict[str, Any]:
    """The parameters of the one pass that `auto` chooses."""
    first = auto().choice(term).kernels[0].point
    assert first.strategy == "one_pass"
    return dict(first.parameters)


def agrees(term: Expr) -> bool:
    inputs = random_inputs(inputs_of(term), 5, exact=False)
    found = execute(assemble(succeeded(auto()(term)).term, "f"), inputs, "emulate")
    return compare(found, call(term, *inputs), tolerance(term)).agrees


@pytest.mark.parametrize("name", PARTS)
def test_parts_are_attended_in_one_pass(name: str) -> None:
    random = Random(name)
    for _ in range(3 if NIGHTLY else 1):
        term = attention(name, random.choice((33, 64, 65, 96, 97)), random.choice((16, 32)))
        assert chosen(term)
        assert agrees(term)


@pytest.mark.parametrize("name", [name for name in PARTS if name != "rows from other elements"])
def test_warpgroups_take_parts_whose_rows_start_at_multiples_of_16_bytes(name: str) -> None:
    assert chosen(attention(name, 1024, 64)).get("fragment", 64) == 64


def test_vectors_are_as_wide_as_rows_allow() -> None:
    name = "rows from other elements"
    found = chosen(attention(name, 1024, 64))
    assert found["fragment"] < 64 and found["vector"] == 1
    even = PARTS[name].replace("drop(3)", "drop(4)").replace("d + 3", "d + 4")
    even = even.replace("d + 5", "d + 8").replace("d + 1", "d + 2").replace("drop(1)", "drop(2)")
    term = data_flow(specialise(check_text('import "prelude.rise"' + even)["f"], {"n": 1024, "d": 64}))
    assert chosen(term)["vector"] == 2


@pytest.mark.parametrize(("n", "columns"), [(4000, {80, 32, 16}), (4096, {128, 64, 32, 16})])
def test_blocks_divide_keys_that_others_follow(n: int, columns: set[int]) -> None:
    """The copying unit puts zeros behind the end of an array, and not behind the first n of its keys."""
    found = chosen(attention("the first keys", n, 64))
    assert found["columns"] in columns and n % (found["columns"] * found.get("parts", 1)) == 0
    assert chosen(attention("the first keys", 4001, 64))["fragment"] < 64


def test_examples_are_one_pass() -> None:
    programs = loaded("examples/attention.rise")
    packed = data_flow(specialise(programs["packedByToken"], {"b": 2, "h": 3, "n": 65, "d": 16}))
    cached = {"b": 1, "h": 2, "m": 3, "n": 97, "c": 5, "d": 16}
    for term in (packed, data_flow(specialise(programs["cached"], cached))):
        assert chosen(term) and agrees(term)
