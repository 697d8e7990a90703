"""Products in f32, the loops that schedules leave of them, and running what they derive."""

from __future__ import annotations

import numpy as np

from codegen.execute import execute
from codegen.pipeline import assemble
from rise.check.specialise import inputs_of
from rise.expr import Apply, Expr, Lambda
from rise.expr import call as call_of
from rise.interpret import call, random_inputs
from rise.types import Space
from strategies.core import Strategy
from strategies.loops.nests import loop_nest
from strategies.places import in_inputs
from tests.support.programs import program, succeeded


def matmul(m: int, n: int, k: int) -> str:
    return (
        f"fun((A: {m}.{k}.f32, B: {k}.{n}.f32) => A |> map(fun(row => B |> transpose |> map(fun(col =>"
        " zip(row)(col) |> map(fun((x, y) => x * y)) |> reduce(+, 0))))))"
    )


def derived(s: Strategy, text: str | Expr) -> Expr:
    """What a strategy for whole definitions, or for their bodies, makes of a program."""
    return succeeded(in_inputs(s)(program(text) if isinstance(text, str) else text)).term


def nest(term: Expr) -> str:
    """The loops on one line, those inside after those outside; nests that follow each other after `;`."""
    return "; ".join(" ".join(str(loop).split()) for loop in loop_nest(term))


def runs_as_it_should(text: str | Expr, s: Strategy) -> None:
    """The kernels compute, in the emulator, what the program means, bit by bit."""
    term = program(text) if isinstance(text, str) else text
    inputs = random_inputs(inputs_of(term), 0, exact=True)
    result = execute(assemble(derived(s, term), "scheduled"), inputs, "emulate")
    assert np.array_equal(np.ravel(result), np.ravel(call(term, *inputs)))


# m, n, k = 8, 18, 6 in tiles of 4 × 6, blocks of 3, vectors of 3
PACKING = "mapSeq(3) mapSeq(6) mapSeq(2); "
TVM = {
    "baseline": "mapSeq(8) mapSeq(18) reduceSeq(6)",
    "blocking": "mapSeq(2) mapSeq(3) reduceSeq(2) reduceSeq(3) mapSeq(4) mapSeq(6)",
    "vectorization": "mapSeq(2) mapSeq(3) reduceSeq(2) reduceSeq(3) mapSeq(4) mapSeq(2)",
    "loop_perm": "mapSeq(2) mapSeq(3) reduceSeq(2) mapSeq(4) reduceSeq(3) mapSeq(2)",
    "array_packing": PACKING + "mapSeq(2) mapSeq(3) reduceSeq(2) mapSeq(4) reduceSeq(3) mapSeq(2)",
    "cache_blocks": PACKING + "mapSeq(2) mapSeq(3) reduceSeq(2) mapSeq(4) reduceSeqUnroll(3) mapSeq(2)",
    "par": "mapGlobal(3) mapSeq(6) mapSeq(2); "
    "mapGlobal(2) mapSeq(3) reduceSeq(2) mapSeq(4) reduceSeqUnroll(3) mapSeq(2)",
}


def at_size(version: str) -> str:
    """The same nest for 1024 × 1024 × 1024 in tiles of 32 × 32, blocks of 4, vectors of 32."""
    packing = "mapSeq(32) mapSeq(1024) mapSeq(1); "
    tiles, rest = "mapSeq(32) mapSeq(32) reduceSeq(256)", "mapSeq(32) reduceSeq(4) mapSeq(1)"
    unrolled = rest.replace("reduceSeq", "reduceSeqUnroll")
    return {
        "baseline": "mapSeq(1024) mapSeq(1024) reduceSeq(1024)",
        "blocking": f"{tiles} reduceSeq(4) mapSeq(32) mapSeq(32)",
        "vectorization": f"{tiles} reduceSeq(4) mapSeq(32) mapSeq(1)",
        "loop_perm": f"{tiles} {rest}",
        "array_packing": f"{packing}{tiles} {rest}",
        "cache_blocks": f"{packing}{tiles} {unrolled}",
        "par": f"mapGlobal{packing[6:]}mapGlobal{tiles[6:]} {unrolled}",
    }[version]


# --- the programs of kernels ------------------------------------------------------------------------------


def cut(program: Expr) -> tuple[Expr, ...]:
    """The programs of the kernels, in order: one, where nothing is stored in global memory on the way.

    Of fun(inputs => let y = e |> toMem(Global) in f(y)): first fun(inputs => e), which gives y, and then
    fun(inputs => fun(y => f(y))), cut further. So each kernel has all inputs, and after them what the kernels
    before it gave.
    """
    inputs, body = [], program
    while isinstance(body, Lambda):
        inputs.append(body)
        body = body.body
    applied = call_of(body)
    if applied is None or applied[0] != "let" or len(applied[2]) != 2:
        return (program,)
    value, function = _without_memory(applied[2][0]), applied[2][1]
    if value is None or not isinstance(function, Lambda):
        return (program,)
    return _under(inputs, value), *cut(_under(inputs, function))


def _without_memory(stored: Expr) -> Expr | None:
    """e of e |> toMem(Global): the result of a kernel is there anyway; None for what is stored elsewhere."""
    applied = call_of(stored)
    if applied is None or applied[0] != "toMem" or not isinstance(stored, Apply):
        return None
    return stored.argument if Space.GLOBAL in applied[1].arguments else None


def _under(inputs: list[Lambda], body: Expr) -> Expr:
    for function in reversed(inputs):
        body = Lambda(function.parameter, body, function.origin)
    return body
