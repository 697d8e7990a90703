"""What `rise.testing` promises: its programs are well-typed and varied, and find mistakes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from math import gcd
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import Phase, given, settings

from rewrites.rule import RULES
from rise.check.program import check_expression, check_text
from rise.expr import Expr, Lambda, Primitive, Reference, children, size, subterms
from rise.nat import Nat
from rise.testing import (
    Counterexample,
    assert_equivalent,
    assert_evaluators_agree,
    assert_preserves,
    awkward_input,
    awkward_inputs,
    call_of,
    data_types,
    every_primitive,
    exact,
    inputs,
    program_texts,
    programs,
    redexes,
    shrunk,
    types,
    views,
)
from rise.testing.naive import PATTERNS, disagreement, first_difference, from_plain, value
from rise.testing.naive_scalars import SCALARS
from rise.testing.vocabulary import declarations
from rise.types import F16, F32, I32, Array, Data, Pair, Type, array, is_data
from rise.verify import verify
from tests.rise.properties import (
    evaluators_agree,
    nested_maps,
    normal_form_preserves,
    printed_text_is_the_program,
)

EXAMPLES = settings.default.max_examples if settings.default else 100
SAMPLE = 1200

# what schemes do not say enough about, or what does not define all of its result
NOT_GENERATED = {"iterate", "padEmpty", "reducePipelined", "reduceRoleSplit", "foreignFunction"}


@pytest.fixture(scope="module")
def sample() -> list[Expr]:
    """Programs, the same in every run."""
    found: list[Expr] = []

    @settings(max_examples=SAMPLE, derandomize=True, phases=[Phase.generate])
    @given(programs())
    def collect(program: Expr) -> None:
        found.append(program)

    collect()
    return found


def names_of(program: Expr) -> set[str]:
    return {p.declaration.written for p in subterms(program) if isinstance(p, Primitive)}


# --- programs -------------------------------------------------------------------------------------


@given(programs())
def test_a_program_is_closed_and_well_typed(program: Expr) -> None:
    verify(program)
    assert not program.free


@given(programs())
def test_the_printed_text_is_the_program(program: Expr) -> None:
    printed_text_is_the_program(program)


@given(programs(array(3, F32)))
def test_the_result_is_of_the_type_asked_for(program: Expr) -> None:
    while isinstance(program, Lambda):
        program = program.body
    assert program.type == array(3, F32)


@given(programs(primitives=views() | {"map"}))
def test_only_the_primitives_asked_for_are_used(program: Expr) -> None:
    plainest = {"generate", "pair", "fst", "snd", "cast"}  # a number of tf32 is a conversion
    assert names_of(program) <= views() | {"map"} | plainest


@settings(max_examples=EXAMPLES // 2)
@given(program_texts())
def test_a_text_has_definitions_that_check(text: str) -> None:
    program = check_text(text)
    assert len(program.own) == text.count("def ")


def test_later_definitions_call_earlier_ones() -> None:
    seen = Counter[str]()

    @settings(max_examples=120, derandomize=True, phases=[Phase.generate])
    @given(program_texts())
    def look(text: str) -> None:
        definitions = check_text(text).definitions.values()
        used = {t.name for d in definitions for t in subterms(d.body) if isinstance(t, Reference)}
        seen.update(used)

    look()
    assert sum(seen.values()) >= 10


# --- how varied programs are ----------------------------------------------------------------------


def test_every_primitive_is_generated_or_known_not_to_be() -> None:
    """A new primitive is covered from its scheme, or appears here."""
    written = {d.name for d in declarations().values()} | {"foreignFunction"}
    assert written - {declarations()[n].name for n in every_primitive()} == NOT_GENERATED


def test_every_primitive_occurs(sample: list[Expr]) -> None:
    counts = Counter(
        name for program in sample for name in {p.name for p in subterms(program) if isinstance(p, Primitive)}
    )
    print(counts.most_common())
    assert {declarations()[n].name for n in exact()} <= set(counts)


def test_programs_are_of_a_reasonable_size(sample: list[Expr]) -> None:
    sizes = sorted(size(program) for program in sample)
    assert 12 <= sum(sizes) / len(sizes) <= 40
    assert sizes[len(sizes) // 2] >= 6


def hides(term: Expr, scope: frozenset[str] = frozenset()) -> bool:
    """Whether a binder takes a name that is in scope."""
    if isinstance(term, Lambda):
        name = term.parameter.name
        return name in scope or hides(term.body, scope | {name})
    return any(hides(child, scope) for child in children(term))


def test_binders_hide_each_other(sample: list[Expr]) -> None:
    assert sum(map(hides, sample)) >= 0.1 * len(sample)


def sizes_of(type_: Type) -> Iterator[int]:
    match type_:
        case Array(length, element):
            yield length.value or 0
            yield from sizes_of(element)
        case Pair(first, second):
            yield from sizes_of(first)
            yield from sizes_of(second)


def test_sizes_are_equal_and_coprime_by_chance(sample: list[Expr]) -> None:
    seen = Counter[str]()
    for program in sample:
        lengths = [n for part in subterms(program) if is_data(part.type) for n in sizes_of(part.type)]
        distinct = set(lengths)
        seen["one"] += 1 in distinct
        seen["coprime"] += any(gcd(a, b) == 1 and min(a, b) > 1 for a, b in combinations(distinct, 2))
        matrices = [part.type for part in subterms(program) if isinstance(part.type, Array)]
        seen["square"] += any(isinstance(t.element, Array) and t.size == t.element.size for t in matrices)
        seen["oblong"] += any(isinstance(t.element, Array) and t.size != t.element.size for t in matrices)
    print(seen)
    assert all(seen[what] >= 0.03 * len(sample) for what in ("one", "coprime", "square", "oblong"))


# --- two evaluators -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(every_primitive() - {"tensorMatMulAdd"}))
def test_the_evaluators_agree_on_a_primitive(name: str) -> None:
    met = Counter[bool]()

    @settings(max_examples=max(8, EXAMPLES // 8))
    @given(programs(planted=call_of(name)))
    def agree(program: Expr) -> None:
        met[name in names_of(program)] += 1
        evaluators_agree(program)

    agree()
    assert met[True] >= max(3, met[False]), met


@settings(max_examples=EXAMPLES // 4)
@given(programs(planted=call_of("tensorMatMulAdd")))
def test_the_evaluators_agree_on_tensor_products_of_whole_numbers(program: Expr) -> None:
    assert_evaluators_agree(program, awkward=False)


@given(programs(primitives=every_primitive() - {"tensorMatMulAdd"}))
def test_the_evaluators_agree(program: Expr) -> None:
    evaluators_agree(program)


@given(nested_maps())
def test_the_evaluators_agree_in_nested_maps(program: Expr) -> None:
    evaluators_agree(program)


def test_the_slow_evaluator_has_every_primitive_that_is_generated() -> None:
    declared = declarations()
    known = {*PATTERNS, *SCALARS}
    missing = {
        n for n in every_primitive() if declared[n].name not in known and declared[n].lowers not in known
    }
    assert not missing


def test_the_slow_evaluator_on_a_program_by_hand() -> None:
    program = check_expression("fun((xs: 2.3.i32) => xs |> map(fun(r => r |> reduce(+, 0))) |> scan(+, 1))")
    rows = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert value(program)(from_plain(array(2, 3, I32), rows)) == [4, 16]


def test_fma_of_doubles_whose_product_overflows() -> None:
    program = check_expression("fun((a: f64, b: f64) => fma(a)(b)(a))")
    assert disagreement(program, [np.float64(1.7976931348623157e308), np.float64(-2.0)]) is None


def test_a_difference_is_where_values_differ_first() -> None:
    assert first_difference([1, (2, 3)], [1, (2, 4)]) == "result[1][1]: 3 and 4"
    assert first_difference(float("nan"), float("nan")) is None


# --- the normal form ------------------------------------------------------------------------------


@given(redexes())
def test_the_normal_form_preserves_redexes(program: Expr) -> None:
    normal_form_preserves(program)


@given(programs())
def test_the_normal_form_preserves_programs(program: Expr) -> None:
    normal_form_preserves(program)


# --- types and inputs -----------------------------------------------------------------------------


@given(types())
def test_types_are_printed(type_: Type) -> None:
    assert str(type_)


@given(data_types().flatmap(lambda t: inputs(t).map(lambda x: (t, x))))
def test_inputs_fit_their_type(made: tuple[Data, object]) -> None:
    type_, given_ = made
    assert first_difference(from_plain(type_, given_), from_plain(type_, given_)) is None


@pytest.mark.parametrize("scalar", [F32, F16])
def test_awkward_inputs_have_what_goes_wrong(scalar: Data) -> None:
    numbers = awkward_input(array(400, scalar), 0)
    largest = np.finfo(numbers.dtype).max
    assert np.isnan(numbers).any() and np.isposinf(numbers).any() and np.isneginf(numbers).any()
    assert (np.signbit(numbers) & (numbers == 0)).any()
    assert ((numbers > 0) & (numbers < np.finfo(numbers.dtype).tiny)).any()
    assert (numbers == largest).any()


@settings(max_examples=20)
@given(awkward_inputs(Pair(array(2, 3, F32), I32)))
def test_awkward_inputs_have_the_shape_of_their_type(made: tuple[np.ndarray, np.ndarray]) -> None:
    assert made[0].shape == (2, 3) and made[0].dtype == np.float32 and made[1].dtype == np.int32


# --- shrinking ------------------------------------------------------------------------------------

LARGE = "fun((xs: 4.i32, y: i32) => (xs |> map(fun(x => x * y + 3)) |> reduce(+, 0)) - (y + y) * (y - y))"


def test_a_term_shrinks_to_what_matters() -> None:
    def fails(term: Expr) -> bool:
        return "mul" in names_of(term)

    small = shrunk(check_expression(LARGE), fails, retype=True)
    assert fails(small)
    assert size(small) <= 6  # fun(y => y * y)


def test_what_raises_does_not_fail() -> None:
    def fails(term: Expr) -> bool:
        raise ValueError(str(size(term)))

    term = check_expression(LARGE)
    assert shrunk(term, fails) is term


def holding(seen: list[Expr]) -> Callable[[Expr], bool]:
    """A property that no program violates; it keeps the programs that it is asked about."""

    def fails(term: Expr) -> bool:
        seen.append(term)
        return False

    return fails


def test_shrinking_ends() -> None:
    calls: list[Expr] = []
    shrunk(check_expression(LARGE), holding(calls), tries=20)
    assert len(calls) == 20


def test_shrinking_keeps_terms_well_typed() -> None:
    term, seen = check_expression(LARGE), list[Expr]()
    shrunk(term, holding(seen), retype=False)
    assert seen
    for smaller in seen:
        verify(smaller)
        assert smaller.type == term.type and not smaller.free


def test_a_wrong_strategy_is_reported_with_a_smaller_program() -> None:
    from rise.testing import at, replaced

    class Step:
        rule, path = "wrong", (0,)

        def __init__(self, before: Expr, after: Expr) -> None:
            self.before, self.after = before, after

    class Result:
        def __init__(self, steps: list[Step], term: Expr) -> None:
            self.steps, self.term = steps, term

    zero = check_expression("0")

    def strategy(term: Expr) -> object:
        """Replaces the body by 0."""
        before = at(term, (0,))
        return Result([Step(before, zero)], replaced(term, (0,), zero))

    with pytest.raises(Counterexample, match=r"differ \(seed 0\)") as caught:
        assert_preserves(strategy, "fun((x: i32) => (x + x * x - x * x) * (x + 1))")
    assert size(caught.value.shrunk) <= 4
    assert "the same mistake shows in" in str(caught.value)


def test_terms_of_different_types_are_not_equivalent() -> None:
    with pytest.raises(AssertionError, match="the types differ"):
        assert_equivalent(check_expression("1"), check_expression("1.0"))


# --- the tutorial ---------------------------------------------------------------------------------

DOCUMENT = Path(__file__).parents[2] / "docs" / "testing.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_the_snippets_of_the_tutorial_run(number: int) -> None:
    """Each is run as it stands; tests in it are called."""
    scope: dict[str, object] = {}
    with patch.dict(RULES):  # rules of the tutorial are forgotten
        exec(compile(SNIPPETS[number], f"{DOCUMENT.name}, snippet {number + 1}", "exec"), scope)
        for name, test in list(scope.items()):
            if name.startswith("test_") and callable(test):
                test()


def test_sizes_in_programs_are_numbers(sample: list[Expr]) -> None:
    for program in sample[:200]:
        for part in subterms(program):
            if isinstance(part, Primitive):
                assert all(a.value is not None for a in part.arguments if isinstance(a, Nat))
