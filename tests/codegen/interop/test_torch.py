"""Definitions as operators of torch: in graphs, with derivatives, on tensors in place."""

from __future__ import annotations

from typing import Any

import pytest

import rise
from codegen.emulation.compiling import compiler
from rise.errors import LaunchError, UsageError
from strategies.default import default

torch = pytest.importorskip("torch")
operators = pytest.importorskip("codegen.torch")

# a product of two arrays and a number, and its derivatives; s has none
PRODUCT = """
def product{n: Nat}(xs: n.f64, ys: n.f64, s: f64): n.f64 = zip(xs, ys) |> map((x, y) => s * x * y)
def gradXs{n: Nat}(grad: n.f64, ys: n.f64, s: f64): n.f64 = zip(grad, ys) |> map((g, y) => s * g * y)
def gradYs{n: Nat}(grad: n.f64, xs: n.f64, s: f64): n.f64 = zip(grad, xs) |> map((g, x) => s * g * x)
"""
PAIRS = """def both{m: Nat, n: Nat}(xss: m.n.bf16): n.(bf16, i32) =
  xss |> transpose |> map(c => (c |> reduce(+, 0), 3))"""
MATMUL = """def matmul{m: Nat, n: Nat, k: Nat}(A: m.k.f16, B: k.n.f16): m.n.f32 =
  A |> map(r => B |> transpose |> map(c => zip(r, c) |> map((a, b) => f32(a) * f32(b)) |> reduce(+, 0)))"""


@pytest.fixture(scope="module")
def product() -> Any:
    program = rise.parse(PRODUCT)
    return operators.operator(program.product, backward={"xs": program.gradXs, "ys": program.gradYs})


def inputs(n: int) -> Any:
    torch.manual_seed(n)
    return [torch.randn(n, dtype=torch.float64, requires_grad=True) for _ in range(2)]


def test_it_is_an_operator_as_torch_wants_it(product: Any) -> None:
    xs, ys = inputs(5)
    assert set(torch.library.opcheck(product, (xs, ys, 2.0)).values()) == {"SUCCESS"}


def test_derivatives_are_those_of_the_function(product: Any) -> None:
    xs, ys = inputs(3)
    assert torch.autograd.gradcheck(product, (xs, ys, 2.0))


def test_torch_compile_keeps_it_in_one_graph_also_backwards(product: Any) -> None:
    xs, ys = inputs(7)
    compiled = torch.compile(lambda a, b: product(a + 1, b, 3.0).sum(), fullgraph=True, backend="aot_eager")
    compiled(xs, ys).backward()
    assert torch.equal(xs.grad, 3 * ys) and torch.equal(ys.grad, 3 * (xs + 1))


def test_pairs_are_several_tensors_and_results_alias_nothing() -> None:
    both = operators.operator(rise.parse(PAIRS).both, name="rise_test::both")
    xss = torch.arange(6).reshape(2, 3).to(torch.bfloat16)
    sums, threes = both(xss)
    assert sums.dtype == torch.bfloat16 and sums.tolist() == [3, 5, 7] and threes.tolist() == [3, 3, 3]
    same = operators.operator(rise.parse("def same{n: Nat}(xs: n.f32): n.f32 = xs").same)
    xs = torch.ones(3)
    same(xs).zero_()
    assert xs.tolist() == [1, 1, 1]


@pytest.mark.skipif(compiler() is None, reason="no C++ compiler")
def test_the_emulator_runs_it_on_the_cpu() -> None:
    definition = rise.parse(MATMUL).matmul
    matmul = operators.operator(definition, default(), name="rise_test::emulated", on_cpu="emulate")
    a, b = (torch.randint(-3, 4, shape).half() for shape in ((3, 5), (5, 2)))
    assert torch.equal(matmul(a, b), a.float() @ b.float())


def test_tensors_that_do_not_fit_are_refused_by_name(product: Any) -> None:
    xs, ys = (x.detach() for x in inputs(4))
    for wrong, code in (
        ((xs, ys[:3], 1.0), "R0409"),
        ((xs, ys.float(), 1.0), "R0803"),
        ((xs, ys.reshape(2, 2), 1.0), "R0409"),
        ((xs, ys.repeat_interleave(2)[::2], 1.0), "R0805"),
    ):
        with pytest.raises((LaunchError, UsageError)) as refused:
            product(*wrong)
        assert refused.value.code == code and "ys" in str(refused.value)


def test_a_gradient_that_nobody_gave_is_not_left_out_silently() -> None:
    program = rise.parse(PRODUCT)
    half = operators.operator(program.product, name="rise_test::half", backward={"xs": program.gradXs})
    xs, ys = inputs(3)
    half(xs, ys.detach(), 1.0).sum().backward()
    assert torch.equal(xs.grad, ys)
    with pytest.raises(LaunchError, match="`ys` requires a gradient"):
        half(xs, ys, 1.0)
    constant = operators.operator(
        program.product, name="rise_test::constant", backward={"xs": program.gradXs, "ys": None}
    )
    constant(xs, ys, 1.0).sum().backward()
    assert ys.grad is None


def test_derivatives_by_other_names_are_refused() -> None:
    program = rise.parse(PRODUCT + "def wrong{n: Nat}(gradient: n.f64): n.f64 = gradient")
    for backward, named in (({"x": program.gradXs}, "`x`"), ({"xs": program.wrong}, "`gradient`")):
        with pytest.raises(UsageError, match=named) as refused:
            operators.operator(program.product, name="rise_test::refused", backward=backward)
        assert refused.value.code == "R0008"
