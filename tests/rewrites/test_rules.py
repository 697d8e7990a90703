"""Every rule of the library: where it applies, the type stays, and what is computed, bit by bit.

`HYPOTHESIS_PROFILE=nightly` checks 20 000 instances of each, in place of 80, or of a third of these for
rules without conditions that are proved for all sizes: there, only how they are applied is left to test.
Three of four instances have binders that hide each other. Each mistake of `mutants.py` was made in 30 runs:
the longest took 78 instances, a capture, half of whose runs took 11 at most; of other mistakes the longest
took 62 and half 9 at most.
"""

from __future__ import annotations

import pytest

from rewrites.hints import HINTS
from rewrites.instances import parameters, specialised
from rewrites.library import modules, places, rules
from rewrites.proofs import Mark, mark
from rewrites.result import Success
from rewrites.rule import COMPUTED, RULES, Rule, rule
from rise.check.program import check_expression
from rise.expr import Expr, Identifier, Lambda, alpha_equal
from rise.interpret.evaluate import free_identifiers
from rise.nat import constant
from rise.normal import data_flow, simplify
from rise.pretty import show
from rise.testing import assert_preserves, hiding, primitive_call
from rise.testing.choose import Drawn
from rise.types import Array, is_data
from strategies.core import top_down
from strategies.places import mapped
from tests.rewrites.mutants import undeclared
from tests.rewrites.soundness import assert_sound, drawn
from tests.support.nightly import NIGHTLY

DATA = {name: made for name, made in rules().items() if isinstance(made, Rule)}
EXAMPLES = 20_000 if NIGHTLY else 80
LEAST = 0.5  # of the instances, for rules with conditions


# --- the property ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DATA)
def test_a_rule_preserves_type_and_value(name: str) -> None:
    """On random instances, of proved rules on fewer; three of four have binders that hide each other."""
    conditions, proved = DATA[name].conditions, mark(DATA[name]) is not Mark.TESTED
    evidence = assert_sound(DATA[name], EXAMPLES // 6 if proved and not conditions else EXAMPLES)
    least = LEAST * evidence.examples if conditions else evidence.examples
    assert evidence.applied >= least > 0, evidence.refusals


@pytest.mark.parametrize("name", [n for n in DATA if not DATA[n].conditions])
def test_a_rule_takes_its_left_side_to_its_right_side(name: str) -> None:
    """Up to βη, with names for functions: bare, and one level deeper."""
    sample = specialised(DATA[name], Drawn(1))
    left, right = data_flow(sample.lhs), simplify(sample.rhs)
    for before, after, at in (
        (left, right, sample),
        (under_map(left), under_map(right, left), mapped(sample)),
    ):
        result = at(before)
        assert isinstance(result, Success), result.reason
        assert alpha_equal(data_flow(result.term), data_flow(after))


@pytest.mark.parametrize("name", list(DATA)[::16])
def test_an_attempt_succeeds_where_a_rule_applies(name: str) -> None:
    """No term is ruled out by its form that a rule matches: instances of some rules, for all rules."""
    applied = 0
    for seed in range(2):
        made = drawn(DATA[name], seed)
        of_instance = DATA[name].with_sizes(**made.sample.chosen)
        for tried in (of_instance, *DATA.values(), *COMPUTED.values()):
            result, attempted = tried(made.left), tried.attempt(made.left)
            if isinstance(result, Success):
                assert attempted is not None, tried.name
                assert alpha_equal(attempted.term, result.term), tried.name
                applied += 1
            else:
                assert attempted is None, tried.name
    assert applied or DATA[name].conditions


def under_map(term: Expr, like: Expr | None = None) -> Expr:
    """`outer |> map(fun(x => term))`, x a free name of the term (of `like`, where that has others)."""
    assert is_data(term.type)
    names = ((i, i.type) for i in free_identifiers(like or term) if is_data(i.type))
    parameter, type_ = next(names, (Identifier("unused", term.type), term.type))
    two = constant(2)
    outer = Identifier("outer", Array(two, type_))
    return primitive_call("map", (two, type_, term.type), Lambda(parameter, term), outer)


# --- computed rules -------------------------------------------------------------------------------------

# left sides of which random instances are made
SHAPES = (
    ("separateReduction", "xs |> map(fun(x => f(x, h(x) |> reduce(op, z))))"),
    ("separateProduct", "xs |> map(fun(x => h(x) |> map(fun(y => k(y) |> reduce(op, z))) |> join))"),
    ("mapLastFission", "xs |> map(fun(x => zip(x)(f(x)) |> map(g) |> split(n)))"),
    ("mapFirstFission", "xs |> map(fun(x => zip(x)(f(x)) |> map(g) |> split(n)))"),
    ("mapFullFission", "xs |> map(fun(x => x |> map(f) |> split(n) |> transpose))"),
    ("subexpressionElimination", "(f(x), f(x))"),
    ("betaReduction", "(xs |> map(fun(x => x + 1))) |> fun(y => zip(y)(y |> map(g)))"),
    ("let, before a loop", "xs |> map(fun(x => f(x, ys |> map(g) |> reduce(op, z))))"),
    ("reduce beside reduce", "(xs |> map(f) |> reduce(op, z), xs |> map(g) |> reduce(+, 0))"),
    ("unrollSum", "xs |> reduce(+, 0)"),
    (
        "tupling",
        "(zip(xs)(ys) |> reduceSeq(Local)(fun(a, p => op(a, g(p))), z),"
        " zip(xs)(zs) |> reduceSeq(Local)(fun(a, p => op(a, h(p))), z))",
    ),
    ("toMem(Global), of each", "xs |> map(fun(x => f((x, h(x)) |> toMem(Global))))"),
    ("toMem(Shared), of each", "xs |> map(fun(x => f((x, h(x)) |> toMem(Shared))))"),
    ("toMem(Local), of each", "xs |> map(fun(x => f((x, h(x)) |> toMem(Local))))"),
    (
        "toMem(Local), before steps",
        "xs |> reduceSeq(Local)(fun(acc, x =>"
        " zip(acc)(zip(x)(h(x)) |> toMem(Local)) |> map(fun((a, (b, c)) => f(a, b, c)))), z)",
    ),
    (
        "toMem(Local), before steps",
        "xs |> reduceSeq(Local)(fun(acc, x => zip(acc)(zip(x)(x |> toMem(Local)))"
        " |> map(fun((a, (b, c)) => f(a, b, c, (x, g(x)) |> toMem(Local))))), z)",
    ),
    ("zip of zips, repeated", "zip(xs)(zip(ys)(zip(zip(xs)(ys))(zs)))"),
    ("factor of a sum", "xs |> map(fun(x => f32(f(x)) * c)) |> reduce(+, 0)"),
    ("product with a byte", "f32(i8(x)) * f32(f16(y))"),
    ("let, of an array", "xs |> map(fun(x => zip(ys)(f(x)) |> map(g)))"),
    ("conversion of factors, last", "max(f32(f16(x)), 2) * f32(f16(y))"),
    ("conversion of factors, last", "f32(tf32(f32(x))) * -abs(min(0.5, f32(tf32(f32(y)))))"),
    ("conversion of factors, last", "select(x < y, 0 - f32(bf16(x)), f32(bf16(y))) * f32(z)"),
    ("unsigned, as signed", "i32(u8(x))"),
    ("appliedAsLet", "(xs |> map(fun(x => x + 1))) |> fun(y => zip(y)(y |> map(g)))"),
    (
        "fold of maps",
        "xs |> map(fun(x => ys |> reduceSeq(Local)(fun(a, y => f(x, a, y)), z(x)) |> fun(s => (s, s))))",
    ),
    ("inline", "(xs |> map(fun(x => x + 1))) |> fun(y => zip(y)(y |> map(g)))"),
    ("let, computed at each use", "let y = xs |> map(fun(x => x + 1)) in zip(y)(y |> map(g))"),
    (
        "view into reduceSeq",
        "xs |> reduceSeq(Local)(fun(acc, x => zip(acc)(x) |> map(fun((a, b) => f(a, b)))), z) |> split(n)",
    ),
    (
        "view out of reduceSeq",
        "xs |> reduceSeq(Local)(fun(acc, x => zip(acc)(h(x)) |> map(fun((a, b) => f(a, b)))"
        " |> map(fun(r => r |> split(n)))), z)",
    ),
    ("view out of reduceSeq", "xs |> reduceSeq(Local)(fun(acc, x => f(acc, x) |> transpose), z)"),
    ("*reduce, of one element", "xs |> split(1) |> map(fun(b => b |> reduce(+, 0)))"),
    ("toMem, hoisted", "xs |> map(fun(x => f(x, (y, z) |> toMem(Local))))"),
    ("reduceMapFission", "xs |> reduceSeq(Local)(fun(acc, x => acc + (f(x) + 1)), z)"),
    ("dropUnused", "zip(xs)(ys) |> map(fun((x, y) => f(x)))"),
    ("dropUnused", "zip(xs)(zip(ys)(zs)) |> map(fun((x, (y, z)) => f(x, z)))"),
    ("reorder >> reorder", "xs |> reorder(n, f, g) |> reorder(n, h, k)"),
    ("idxReduction", "idx(1)(makeArray(3)(x, y, z))"),
    ("padEmpty as zeros", "xs |> padEmpty(r)"),
    ("padEmpty out of *f", "xss |> map(fun(xs => zip(xs |> padEmpty(p))(f(xs))))"),
    (
        "padEmpty out of *f",
        "zip(xss)(ys) |> map(fun((xs, y) => xs |> padEmpty(p) |> map(fun(x => f(x, y)))))",
    ),
    ("toMem(Global), first", "zip(xs |> map(f) |> toMem(Global))(ys) |> map(g)"),
    ("mapOutsideMakeArray", "makeArray(2)(xs |> map(f), xs |> map(g))"),
    ("fOutsideMakeArray", "makeArray(2)(xs |> map(f), ys |> map(f))"),
    ("fOutsideSelect", "select(c)(xs |> map(f))(ys |> map(f))"),
    (
        "zip >> *f >> asVector",
        "zip(xs)(zip(ys)(zs)) |> map(fun((x, (y, z)) => x * y - z + 2)) |> asVector(n)",
    ),
    (
        "pointwise",
        "generate(fun(i => generate(fun(j => (idx(j)(idx(i)(xs)) - idx(i)(ys), f(idx(j)(zs)))))))",
    ),
    (
        "pointwise",
        "zip(xs |> transpose)(ys) |> map(fun((r, y) => zip(zs)(r) |> map(fun((z, x) => (x * y, f(z), x)))))",
    ),
    (
        "pointwise, of each matrix",
        "zip(xs)(ys) |> map(fun((a, b) => zip(a)(b) |> map(fun((r, s) => zip(s)(r)"
        " |> map(fun((y, x) => (x - z, f(y))))))))",
    ),
    (
        "pointwise, of each matrix",
        "zip(xs)(ys) |> map(fun((p, q) => zip(p)(transpose(q)) |> map(fun((a, s) => a |> map(fun(r =>"
        " zip(s)(r) |> map(fun((y, x) => (x - z, f(y))))))))))",
    ),
    ("*(*f), as one list", "xs |> map(fun(x => x |> map(f)))"),
    (
        "*(*f), as one list",
        "zip(xs)(ys) |> map(fun((x, v) => zip(x)(zs) |> map(fun((y, z) => (v, f(y, z))))))",
    ),
    (
        "pointwise on fragments",
        "zip(asMatrix(f : Fragment[16, 8, 16, f32, Accum]))(ys)"
        " |> map(fun((r, y) => zip(zs)(r) |> map(fun((z, x) => f16(x) * y + z))))",
    ),
    (
        "pointwise through Shared",
        "zip(asMatrix(f : Fragment[16, 16, 16, f32, Accum]))(ys)"
        " |> map(fun((r, y) => zip(zs)(r) |> map(fun((z, x) => i32(x) * y + z))))",
    ),
)


@pytest.mark.parametrize(("name", "shape"), SHAPES)
def test_a_computed_rule_preserves_random_instances(name: str, shape: str) -> None:
    with undeclared():
        instances = rule("shape", shape, shape)
    evidence = assert_sound(instances, EXAMPLES, by=COMPUTED[name])
    assert evidence.applied >= evidence.examples / 4, evidence.refusals


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, c in COMPUTED.items() for t in c.instances])
def test_a_computed_rule_preserves_its_instances(name: str, text: str) -> None:
    assert_preserves(top_down(COMPUTED[name]), text, seeds=range(5))


@pytest.mark.parametrize("name", COMPUTED)
def test_names_of_bound_variables_change_nothing_of_a_computed_rule(name: str) -> None:
    """An inner variable of the name of an outer one is another one."""
    apply = top_down(COMPUTED[name])
    for text in COMPUTED[name].instances:
        term = data_flow(check_expression(text))
        wanted = apply(term)
        for seed in range(4):
            found = apply(hiding(term, Drawn(seed)))
            assert isinstance(found, Success) == isinstance(wanted, Success), found
            if isinstance(found, Success) and isinstance(wanted, Success):
                same = alpha_equal(data_flow(found.term), data_flow(wanted.term))
                assert same, f"{show(found.term)}\n{show(wanted.term)}"


MORE_INSTANCES = (
    ("separateReduction", "fun((xss: 3.4.i32, y: i32) => xss |> map(fun(xs => (xs |> reduce(+, y)) * y)))"),
    (
        "separateReduction",
        "fun(xsss: 2.3.4.i32 => xsss |> map(fun(xss => xss |> map(fun(xs => 1 + (xs |> reduce(+, 0)))))))",
    ),
    (
        "dropUnused",
        "fun((a: 4.i32, b: 4.i32, c: 4.f32) => zip(zip(a)(c))(b) |> map(fun(((x, y), z) => x - z)))",
    ),
    (
        "dropUnused",
        "fun((a: 2.3.i32, b: 2.i32) => zip(a)(b) |> map(fun((r, y) => r |> map(fun(x => x - 1)))))",
    ),
    ("dropUnused", "fun((a: 2.i32, b: 2.i32, x: i32) => zip(a)(b) |> map(fun((y, z) => z - x)))"),
)


@pytest.mark.parametrize(("name", "text"), MORE_INSTANCES)
def test_a_computed_rule_preserves_further_programs(name: str, text: str) -> None:
    assert_preserves(top_down(COMPUTED[name]), text, seeds=range(5))


def test_drop_unused_keeps_what_is_used_as_a_whole() -> None:
    text = "fun((a: 4.i32, b: 4.i32) => zip(a)(b) |> map(fun(p => (p, fst(p)))))"
    result = top_down(COMPUTED["dropUnused"])(data_flow(check_expression(text)))
    assert not isinstance(result, Success)


# --- the library ----------------------------------------------------------------------------------------


def test_every_rule_belongs_to_a_file() -> None:
    modules()
    assert set(places()) >= {n for n in {**RULES, **COMPUTED} if "for tests" not in n and n != "r"}


def test_every_computed_rule_has_instances() -> None:
    assert all(made.instances for made in COMPUTED.values())
    # the left sides of the others are functions, or functions of sizes, of which no instances are drawn
    others = {"etaReduction", "etaAbstraction", "iterate, unrolled"}
    # tests/rewrites/test_rolling.py draws programs for these
    others |= {"factors of reductions", "rolling update", "rows on fragments"}
    # tests/rewrites/test_parts.py, for this one
    others |= {"reductions in parts"}
    # tests/rewrites/test_joint.py, for this one
    others |= {"reductions as one"}
    # tests/rewrites/test_masks.py, for these
    others |= {"numbers of tiles", "blocks of a mask", "factor of a mask"}
    # tests/rewrites/test_summands.py, for these
    others |= {"numbers apart", "summands of a maximum"}
    # tests/rewrites/test_monotone.py, for these
    others |= {"maximum of a monotone function", "named elements in a maximum"}
    # tests/rewrites/test_literal_factors.py, for this one
    others |= {"literal factors as one"}
    # tests/rewrites/test_members.py, for this one
    others |= {"members of rows and of columns, apart"}
    # tests/strategies/test_columns.py derives products with these
    others |= {"column on fragments", "elements as a map", "pointwise, reductions apart"}
    # tests/strategies/test_one_pass_by_warps.py derives programs with this one at random sizes
    others |= {"whole fragments"}
    # tests/strategies/test_in_one_sum.py, for these
    others |= {"product beside product", "difference of products"}
    # tests/rewrites/test_beside.py draws programs, and tests/strategies/test_beside.py derives others
    others |= {"reductions of rows by parts", "reductions of rows, inward"}
    # tests/rewrites/test_extrema.py draws orders and arrays for this one
    others |= {"index of an extremum"}
    assert set(COMPUTED) - {name for name, _ in SHAPES} <= others


def test_hints_are_about_names_of_their_rules() -> None:
    """A hint that names nothing of its rule would be one without effect."""
    for name, wanted in HINTS.items():
        assert set(wanted.types(Drawn(0))) | wanted.views <= DATA[name].lhs.free, name


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("splitJoin", ["n"]),
        ("*f >> S", []),
        ("J >> drop", ["q"]),
        ("S >> *S", []),
        ("slideOverlap", ["w"]),
        ("tile", ["bm", "bn"]),
    ],
)
def test_parameters_are_the_sizes_that_matching_does_not_find(name: str, needed: list[str]) -> None:
    assert parameters(DATA[name]) == needed
