"""A maximum or a mean and sums that use it as one reduction, and which repairs of sums are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from codegen.execute import execute
from codegen.pipeline import assemble
from rewrites import joint as joint_
from rewrites.elements import NotPointwise, put
from rewrites.folds import factored, of_rows, operation
from rewrites.joint import AS_ONE, Joint
from rewrites.repairs import Reductions, Repair, check
from rewrites.result import Failure
from rise.check.compare import compare, tolerance
from rise.check.program import check_text
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr, Lambda, Literal, Primitive, subterms
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.auto import auto
from strategies.places import in_inputs
from tests.support.programs import succeeded

PROGRAMS = check_text("""import "prelude.rise"
def softmaxes(m: Nat, n: Nat)(xs: m.n.f32): m.n.f32 = xs |> map(softmax)
def sums(m: Nat, n: Nat)(xs: m.n.f32): m.f32 = xs |> map(logSumExp)
def powers(m: Nat, n: Nat)(xs: m.n.f32): m.(f32, f32) =
  xs |> map(x => let top = maximum(x) in (x |> map(x => exp2(2.0 * (x - top))) |> sum, top))
def variances(m: Nat, n: Nat)(xs: m.n.f32): m.f32 = xs |> map(variance)
def norms(m: Nat, n: Nat)(eps: f32, g: n.f32, b: n.f32, xs: m.n.f32): m.n.f32 =
  xs |> map(layernorm(eps, g, b))
def maskedSoftmaxes(m: Nat, n: Nat)(w: i32, xs: m.n.f32): m.n.f32 =
  xs |> map(x => x |> numbered |> map((x, j) => select(j < w, x, -infinity)) |> softmax)
def wrong(m: Nat, n: Nat)(xs: m.n.f32): m.f32 =
  xs |> map(x => let top = maximum(x) in x |> map(x => 1.0 / (1.0 + (x - top) * (x - top))) |> sum)
def raw(m: Nat, n: Nat)(xs: m.n.f32): m.f32 =
  xs |> map(x => let total = sum(x) in x |> map(x => (x - total) * (x - total)) |> sum)
""")
RIGHT = ("softmaxes", "sums", "powers", "variances", "norms", "maskedSoftmaxes")


def program(name: str, m: int, n: int) -> Expr:
    return data_flow(specialise(PROGRAMS[name], {"m": m, "n": n}))


def same(term: Expr, other: Expr, seed: int) -> bool:
    inputs = random_inputs(inputs_of(term), seed, exact=False)
    return compare(call(other, *inputs), call(term, *inputs), tolerance(term)).agrees


@pytest.mark.parametrize("name", RIGHT)
def test_reductions_of_rows_are_one(name: str) -> None:
    random = Random(15)
    for seed in range(5):
        term = program(name, random.choice((1, 3)), random.choice((1, 2, 7, 64, 65)))
        made = succeeded(in_inputs(AS_ONE)(term)).term
        folds = [p for p in subterms(made) if isinstance(p, Primitive) and p.name == "reduce"]
        assert len(folds) == 1
        assert same(term, made, seed)


@pytest.mark.parametrize("scale", [1e4, -1e4])
@pytest.mark.parametrize("name", ["softmaxes", "sums", "powers", "maskedSoftmaxes"])
def test_large_scores_do_not_overflow(name: str, scale: float) -> None:
    term = program(name, 2, 33)
    made = succeeded(in_inputs(AS_ONE)(term)).term
    inputs = list(random_inputs(inputs_of(term), 3, exact=False))
    inputs[-1] = np.asarray(inputs[-1]) * np.float32(scale)
    assert compare(call(made, *inputs), call(term, *inputs), tolerance(term)).agrees


@pytest.mark.parametrize("shift", [1e4, -1e4])
def test_variances_of_numbers_that_are_close_together_far_from_zero(shift: float) -> None:
    """The squares of such numbers round to multiples of 8, so their sum says nothing."""
    term = program("variances", 2, 33)
    made = succeeded(in_inputs(AS_ONE)(term)).term
    (xs,) = random_inputs(inputs_of(term), 3, exact=False)
    xs = (np.asarray(xs) + shift).astype(np.float32)
    np.testing.assert_allclose(np.asarray(call(made, xs)), xs.astype(np.float64).var(1), rtol=4e-3)


def test_a_row_that_is_masked_as_a_whole_is_what_the_program_says() -> None:
    made = succeeded(in_inputs(AS_ONE)(program("sums", 2, 7))).term
    xs = np.array([[-np.inf] * 7, [-np.inf] * 6 + [2]], np.float32)
    assert list(np.asarray(call(made, xs))) == [-np.inf, 2]
    made = succeeded(in_inputs(AS_ONE)(program("maskedSoftmaxes", 1, 7))).term
    assert np.isnan(np.asarray(call(made, np.int32(0), xs[1:]))).all()


@pytest.mark.parametrize(
    ("name", "reason"), [("wrong", "no repair is known"), ("raw", "which is not a mean")]
)
def test_what_has_no_repair_is_refused(name: str, reason: str) -> None:
    result = in_inputs(AS_ONE)(program(name, 3, 5))
    assert isinstance(result, Failure)
    assert reason in result.reason


# --- wrong repairs ----------------------------------------------------------------------------------------

Change = Callable[[Repair], Expr]
WRONG: dict[str, Change] = {
    "a wrong sign": lambda h: put(h.term, {h.old: h.new, h.new: h.old}),
    "no repair": lambda h: h.total,
    "half of the change": lambda h: put(
        h.term, {h.new: operation("add", h.old, _half(operation("sub", h.new, h.old)))}
    ),
    "a factor too many": lambda h: operation("mul", h.term, Literal(2.0, h.total.type)),
    "the new reference for the old": lambda h: put(h.term, {h.old: h.new}),
    "the reference itself": lambda h: put(h.term, {h.old: Literal(0.0, h.old.type)}),
    "the number of elements": lambda h: operation("mul", h.term, h.count),
}
# of squares, both signs are right
OF_SQUARES = {name: change for name, change in WRONG.items() if name != "a wrong sign"} | {
    "no number of elements": lambda h: put(h.term, {h.count: Literal(1.0, h.count.type)})
}


def _half(term: Expr) -> Expr:
    return operation("mul", term, Literal(0.5, term.type))


def joint_of(name: str) -> Joint:
    term = program(name, 3, 5)
    while isinstance(term, Lambda):
        term = term.body
    of = joint_._of_mean if name in ("variances", "norms") else joint_._of_maximum
    return of(factored(of_rows(term)))[0]


def changed(joint: Joint, change: Change) -> Joint:
    sums = tuple(
        (g, None if repair is None else replace(repair, term=change(repair))) for g, repair in joint.sums
    )
    return replace(joint, sums=sums)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [(name, wrong) for name in ("sums", "powers") for wrong in WRONG]
    + [("variances", wrong) for wrong in OF_SQUARES],
)
def test_a_wrong_repair_is_refused(name: str, wrong: str) -> None:
    joint = joint_of(name)
    joint.check()
    with pytest.raises(NotPointwise):
        changed(joint, {**WRONG, **OF_SQUARES}[wrong]).check()


@pytest.mark.parametrize("wrong", [name for name in WRONG if name != "the number of elements"])
def test_a_pass_over_blocks_refuses_it_too(wrong: str) -> None:
    """The conditions on a repair alone; it is checked for one element."""
    term = program("powers", 3, 5)
    while isinstance(term, Lambda):
        term = term.body
    given = Reductions.of(of_rows(term))
    (sum_,) = given.sums
    assert given.reference is not None and sum_.repair is not None
    check(sum_.repair, sum_.weight, given.reference.name, given.index)
    with pytest.raises(NotPointwise):
        repair = replace(sum_.repair, term=WRONG[wrong](sum_.repair))
        check(repair, sum_.weight, given.reference.name, given.index)


# --- kernels ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["softmaxes", "sums", "variances", "norms"])
def test_rows_that_registers_do_not_hold_are_reduced_in_one_pass(name: str) -> None:
    term = program(name, 2, 40009)
    made = succeeded(auto("sm_90a")(term))
    assert "reductions as one" in {step.rule for step in made.steps}
    (kernel,) = assemble(made.term, "f").kernels
    inputs = random_inputs(inputs_of(term), 2, exact=False)
    found = execute(assemble(made.term, "f"), inputs, "emulate")
    assert compare(found, call(term, *inputs), tolerance(term)).agrees
    assert kernel.source.count("for (int k = 0; k <") == 1


def test_rows_that_registers_hold_keep_their_reductions() -> None:
    made = succeeded(auto("sm_90a")(program("softmaxes", 8, 1000)))
    assert "reductions as one" not in {step.rule for step in made.steps}
