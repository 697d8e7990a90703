"""Programs and schedules for warpgroups at random: refused by name, or exact, and without a fault."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np

from codegen.execute import execute
from codegen.pipeline import assemble
from rewrites.result import Failure
from rise.check.program import check_expression
from rise.check.specialise import inputs_of
from rise.errors import RiseError
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.matmul.tensor_core import tensor_core
from tests.support.nightly import NIGHTLY

SEED = 20
COUNT = 200 if NIGHTLY else 5
DOT = "zip(row)(col) |> map(fun((x, y) => f32({x}) * f32(y))) |> reduce(+, 0)"
PROGRAMS = {
    "sums": "fun((A: {l}.f16, B: {r}.f16) => {a} |> map(fun(row => {b} |> map(fun(col => {dot})))))",
    "rounded": "fun((A: {l}.f16, B: {r}.f16) => {a} |> map(fun(row => {b} |> map(fun(col => f16({dot}))))))",
    "added": "fun((A: {l}.f16, B: {r}.f16, C: {m}.{n}.f32, s: f32, t: f32) => zip({a})(C) |>"
    " map(fun((row, cs) => zip({b})(cs) |> map(fun((col, c) => {dot} |> fun(sum => s * sum + t * c))))))",
    "bias": "fun((A: {l}.f16, B: {r}.f16, bias: {n}.f32) => {a} |> map(fun(row =>"
    " zip({b})(bias) |> map(fun((col, c) => max(({dot}) + c, 0.0))))))",
    "batched": "fun((As: 2.{l}.f16, Bs: 2.{r}.f16) => zip(As)(Bs) |> map(fun((A, B) =>"
    " {a} |> map(fun(row => {b} |> map(fun(col => {dot})))))))",
}  # fmt: skip


def program(choose: random.Random) -> str:
    """At sizes that no tile divides, mostly; operands lie either way, the first may be changed on the way."""
    m, n, k = (8 * choose.randint(1, most) for most in (33, 20, 28))
    a, b = choose.choice(("A", "transpose(A)")), choose.choice(("B", "transpose(B)"))
    left, right = (
        f"{k}.{rows}" if side.startswith("t") else f"{rows}.{k}" for side, rows in ((a, m), (b, n))
    )
    dot = DOT.format(x=choose.choice(("x", "x", "max(x, 0.0)")))
    text = PROGRAMS[choose.choice(sorted(PROGRAMS))]
    return text.format(l=left, r=right, a=a, b=b, m=m, n=n, dot=dot)


def schedule(choose: random.Random) -> dict[str, Any]:
    rows, ping_pong = choose.choice((64, 64, 128)), choose.choice((1, 1, 2))
    columns, parts = choose.choice((32, 48, 64, 80, 96)), choose.choice((1, 1, 2))
    groups = 1 if ping_pong == 2 else choose.choice((1, 1, 2))
    made = {
        "block": (rows * groups, columns, choose.choice((64, 64, 32, 16, 128))), "warp": (rows, columns),
        "fragment": (64, columns // parts, 16), "stages": choose.randint(2, 4), "raster_group": 1,
        "epilogue": choose.choice(("direct", "bulk")),
    }  # fmt: skip
    if choose.random() < 0.8:
        made |= {
            "warp_specialised": True, "ping_pong": ping_pong, "cluster": choose.choice((1, 1, 2)),
            "persistent_blocks": choose.choice((2, 4) if ping_pong > 1 else (0, 2, 4)),
            "split_k": choose.choice((1, 1, 1, 2)),
        }  # fmt: skip
        if choose.random() < 0.25:
            alone = dict.fromkeys(("ping_pong", "cluster", "split_k"), 1)
            made |= {
                **alone,
                "persistent_blocks": 0,
                "epilogue": "shared",
                "split_cluster": choose.choice((2, 4)),
            }
    if made["epilogue"] == "bulk" and made.get("split_k", 1) == 1:
        made["swap_operands"] = choose.random() < 0.5
    return made


def test_what_is_not_refused_is_exact() -> None:
    choose = random.Random(SEED)
    became: Counter[str] = Counter()
    while became["exact"] < COUNT:
        text, parameters, seed = program(choose), schedule(choose), choose.randint(0, 9)
        term = check_expression(text)
        try:
            result = tensor_core(**parameters)(data_flow(term))
            if isinstance(result, Failure):
                became["refused by the strategy"] += 1
                continue
            made = assemble(result.term, "product")
        except RiseError as error:
            became[error.code] += 1
            continue
        inputs = random_inputs(inputs_of(term), seed=7, exact=True)
        found = execute(made, inputs, "emulate", seed=seed)
        assert np.array_equal(found, call(term, *inputs)), f"{text}\n{parameters}, seed {seed}"
        became["exact"] += 1
        became["ring"] += "reduceRoleSplit" in made.kernels[0].source
    assert became["R0799"] == 0 and became["ring"] >= COUNT // 2, became
    assert became.total() < 6 * COUNT, became
