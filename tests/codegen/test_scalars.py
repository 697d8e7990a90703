"""Conversions and arithmetic mean the same in the interpreter and in kernels, at every number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from codegen.cuda.scalars import base, literal, operation
from codegen.emulation.emulator import Buffer, emulate
from codegen.execute import execute
from codegen.ir import imperative as i
from codegen.pipeline import generate
from rise.check.program import check_expression
from rise.errors import EmulationError, EvaluationError
from rise.expr import Expr, Identifier, Literal, Primitive, spine
from rise.interpret import call, dtype_of
from rise.nat import nat
from rise.normal import data_flow
from rise.testing.scalars import Group, differences, groups, random_group
from rise.types import F64, SCALARS, Vector
from strategies.default import default
from tests.support.emulated import Array, Run, directory, needs_compiler, text, unset  # noqa: F401  # a fixture
from tests.support.programs import succeeded


def operand(term: Expr) -> i.Expression:
    """A term as the printer sees an operand: its type, and whether it is read from memory."""
    if isinstance(term, Literal):
        return i.Number(term.value, term.type)  # type: ignore[arg-type]
    return i.Access("x", (), term.type)  # type: ignore[arg-type]


def printed(term: Expr) -> str:
    match term:
        case Identifier(name):
            return name
        case Literal(value, type_):
            return literal(value, type_)  # type: ignore[arg-type]
        case _:
            head, applications = spine(term)
            operands = [a.argument for a in applications]
            assert isinstance(head, Primitive)
            expression = i.Operator(head.name, tuple(map(operand, operands)), term.type)  # type: ignore[arg-type]
            return operation(expression, [printed(o) for o in operands])


def result_of(term: Expr) -> str:
    return "floats" if term.type == F64 else "wholes"


def loops(group: Group, number: int, starts: list[int]) -> list[str]:
    """All terms of a group at all combinations of numbers, by one thread."""
    lines, size = ["int at = 0;"], len(group.numbers)
    for depth, name in enumerate(o.name for o in group.operands):
        lines.append(f"for (int i{depth} = 0; i{depth} < {size}; i{depth} += 1) {{")
        lines.append(f"const {base(group.scalar)} {name} = in{number}[i{depth}];")
    for term, start in zip(group.terms, starts, strict=True):
        lines.append(f"{result_of(term)}[{start} + at] = {printed(term)};")
    return ["{", *lines, "at += 1;", "}" * len(group.operands), "}"]


def kernel(chosen: Sequence[Group]) -> tuple[str, list[list[int]], dict[str, int]]:
    """One kernel of all groups; where in its two results each term's numbers start; their lengths."""
    sizes = {"wholes": 0, "floats": 0}
    starts, body = [], []
    for number, group in enumerate(chosen):
        places = []
        for term in group.terms:
            result = result_of(term)
            places.append(sizes[result])
            sizes[result] += len(group.numbers) ** len(group.operands)
        starts.append(places)
        body += loops(group, number, places)
    inputs = [f"Global<const {base(g.scalar)}> in{n}" for n, g in enumerate(chosen)]
    parameters = ", ".join(["Global<long long> wholes", "Global<double> floats", *inputs])
    text = f'#include "rise.cuh"\n\nextern "C" __global__ void k({parameters}) {{\n'
    return text + "\n".join(body) + "\n}\n", starts, sizes


def assert_agree(chosen: Sequence[Group]) -> int:
    """How many results were compared."""
    source, starts, sizes = kernel(chosen)
    results = {"wholes": np.zeros(sizes["wholes"], np.int64), "floats": np.zeros(sizes["floats"])}
    inputs = [Buffer(f"in{n}", group.numbers) for n, group in enumerate(chosen)]
    outputs = [Buffer(name, array) for name, array in results.items()]
    emulate(source, "k", (1, 1, 1), (1, 1, 1), [*outputs, *inputs])
    lines = []
    for group, places in zip(chosen, starts, strict=True):
        count = len(group.numbers) ** len(group.operands)
        found = [
            results[result_of(term)][place : place + count]
            for term, place in zip(group.terms, places, strict=True)
        ]
        lines += differences(group, found, group.expected())
    assert not lines, "\n".join(lines)
    return sum(sizes.values())


@needs_compiler
def test_every_operation_on_every_type_of_numbers() -> None:
    compared = assert_agree(groups())
    print(f"{compared} results of {sum(len(g.terms) for g in groups())} operations")
    assert compared > 5_000_000


@needs_compiler
def test_operations_on_results_of_others() -> None:
    seed = 0
    print(f"seed {seed}")
    chosen = [random_group(seed + n, type_, 12) for n, type_ in enumerate(SCALARS.values())]
    assert sum(len(group.terms) for group in chosen) > 100
    assert_agree(chosen)


# --- in programs ----------------------------------------------------------------------------------------


def assert_runs(program: str, inputs: Sequence[Array]) -> str:
    """The CUDA text of a program that gives the interpreter's bits, NaN and signs of zeros included."""
    term = data_flow(check_expression(program))
    result = succeeded(default()(term))
    made = generate(result.term, "program")
    found, wanted = execute(made, inputs, "emulate"), call(term, *inputs)
    assert found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes(), made.source
    return made.source


@needs_compiler
def test_literals_round_once() -> None:
    """A hair beside halfway between two numbers of the type, and for a vector in each element."""
    for type_, number in (
        ("f16", "1.000488281251"),
        ("bf16", "1.00390625001"),
        ("f32", "1.0000000596046448"),
    ):
        ones = np.ones(8, dtype_of(SCALARS[type_]))
        program = (
            f"fun((xs: 8.{type_}) => xs |> asVector(4) |> map(fun(v => v * {number} + 0.1)) |> asScalar)"
        )
        assert_runs(program, [ones])


def test_literals_as_text() -> None:
    texts = {
        ("i32", -(2**31)): "(-2147483647 - 1)", ("i64", -(2**63)): "(-9223372036854775807ll - 1)",
        ("u32", 2**32 - 1): "4294967295u", ("u64", 2**64 - 1): "18446744073709551615ull", ("i8", 300): "44",
        ("f32", 0.1): "0.1f", ("f32", 1.0000000596046448): "1.0f", ("f64", 1e300): "1e+300",
        ("f32", -np.inf): "(-INFINITY)", ("f64", np.nan): "((double)NAN)",
        ("f16", 1e6): "__float2half((INFINITY))", ("f16", 0.1): "__float2half(0.0999755859375f)",
        ("bf16", 2**62 + 2**54 + 1): "__float2bfloat16(4.647714815446352e+18f)",
    }  # fmt: skip
    for (name, value), wanted in texts.items():
        assert literal(value, SCALARS[name]) == wanted
    assert literal(1.5, Vector(nat(4), SCALARS["f32"])) == "1.5f"


@needs_compiler
@pytest.mark.parametrize("type_", ["tf32", "bf16"])
def test_a_choice_between_numbers_in_different_memories(type_: str) -> None:
    cs, xs = np.arange(6) % 3 == 0, np.arange(6).astype(dtype_of(SCALARS[type_]))
    assert_runs(
        f"""fun((cs: 6.bool, xs: 6.{type_}, y: {type_}) =>
            zip(cs)(xs |> padCst(1, 0)({type_}(0.0)) |> take(6)) |> map(fun((c, x) => select(c)(x)(y))))""",
        [cs, xs, xs[5]],
    )


@needs_compiler
@pytest.mark.parametrize("operation", ["10 % x", "pow(x)(-1)"])
def test_what_integers_have_no_result_for_is_an_error(operation: str) -> None:
    term = data_flow(check_expression(f"fun((xs: 3.i32) => xs |> map(fun(x => {operation})))"))
    result = succeeded(default()(term))
    xs = np.array([1, 0, 2], np.int32)
    with pytest.raises(EvaluationError, match="R0504"):
        call(term, xs)
    with pytest.raises(EmulationError, match="R0915") as raised:
        execute(generate(result.term, "program"), [xs], "emulate")
    assert "_of<int>" in str(raised.value)  # the line of the kernel is shown


@needs_compiler
def test_sums_of_integer_fragments_wrap() -> None:
    body = """
  mma::fragment<mma::matrix_a, 16, 8, 32, signed char> a;
  mma::fragment<mma::matrix_b, 16, 8, 32, signed char> b;
  mma::fragment<mma::accumulator, 16, 8, 32, int> c;
  mma::fill_fragment(a, (signed char)127);
  mma::fill_fragment(b, (signed char)127);
  mma::fill_fragment(c, 2147483647);
  mma::mma_sync(c, a, b, c);
  out[threadIdx.x] = c.x[0];
"""
    out = unset(32, np.int32)
    Run()(text("Global<int> out", body), out)
    assert (out.array == 32 * 127 * 127 + 2**31 - 1 - 2**32).all()
