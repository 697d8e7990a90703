"""Laws of the combinators on random programs, and random strategies that keep what a program means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from hypothesis import given, settings
from hypothesis.strategies import integers

from rewrites import algorithmic, lowering, maps, movement
from rewrites.algorithmic import MAP_FUSION, MAP_IDENTITY, REDUCE_MAP, SPLIT_JOIN
from rewrites.lowering import MAP_SEQ, REDUCE_SEQ
from rewrites.maps import BETA, ETA, MAP_LAST_FISSION
from rewrites.memory import COPIED
from rewrites.movement import SPLIT_MAP, TRANSPOSE_MAP, TRANSPOSE_TWICE
from rewrites.result import Failure, Result, Success
from rise.expr import Expr, children
from rise.normal import data_flow
from rise.pretty import show
from rise.testing import Choose, assert_equivalent, programs, redex, replayed
from rise.verify import verify
from strategies import core
from strategies.core import (
    Rewrite,
    Strategy,
    all_,
    all_bottom_up,
    all_top_down,
    alltd,
    applies,
    at_child,
    bottom_up,
    choice,
    downup,
    everywhere,
    fail,
    id_,
    if_then_else,
    normalize,
    not_,
    one,
    outermost,
    position,
    repeat,
    repeat_n_times,
    seq,
    skip,
    some,
    somebu,
    sometd,
    strategy,
    top_down,
    try_,
)
from strategies.default import default
from strategies.matmul.tensor_core import tensor_core
from strategies.tuned import tuned
from tests.support.programs import succeeded

# no rule that applies to what it makes: all-traversals of such a rule do not end, and should not
ENDING: tuple[Rewrite, ...] = (
    MAP_FUSION, MAP_IDENTITY, TRANSPOSE_TWICE, SPLIT_MAP, TRANSPOSE_MAP, REDUCE_MAP, MAP_SEQ, REDUCE_SEQ,
    BETA, ETA,
)  # fmt: skip
RULES: tuple[Rewrite, ...] = (*ENDING, MAP_LAST_FISSION)  # which fusion undoes
PLANTED = (MAP_FUSION, TRANSPOSE_MAP, REDUCE_MAP, SPLIT_MAP, TRANSPOSE_TWICE)

UNARY: tuple[Callable[[Rewrite], Strategy], ...] = (
    top_down, bottom_up, try_, one, some, all_, alltd, sometd, somebu, everywhere, not_,
    lambda s: all_top_down(try_(s)), lambda s: all_bottom_up(try_(s)), lambda s: downup(try_(s)),
    lambda s: skip(1, s), lambda s: position(3, s), lambda s: repeat_n_times(2, try_(s)),
)  # fmt: skip
BINARY: tuple[Callable[[Rewrite, Rewrite], Strategy], ...] = (
    seq, choice, lambda a, b: if_then_else(a, b, a), lambda a, b: seq(try_(a), try_(b)),
)  # fmt: skip


class Uniform(Choose):
    """Decisions that are all equally likely."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


def random_strategy(choose: Choose, fuel: int) -> Strategy:
    """Rules under traversals and combinators, so many of these deep."""
    if fuel == 0:
        rules = choice(*(choose.pick(RULES) for _ in range(10)))
        leaf = choose.pick((rules, rules, rules, rules, id_, fail))
        return choose.pick((top_down, top_down, bottom_up, everywhere, strategy))(leaf)
    match choose.below(5):
        case 0:
            return choose.pick((normalize, repeat))(choice(*(choose.pick(ENDING) for _ in range(4))))
        case 1:
            return choose.pick(BINARY)(random_strategy(choose, fuel - 1), random_strategy(choose, fuel - 1))
        case _:
            return choose.pick(UNARY)(random_strategy(choose, fuel - 1))


def planted(choose: Choose) -> Expr:
    return redex(choose.pick(PLANTED))(choose)


def same(left: Rewrite, right: Rewrite, term: Expr) -> Counter[str]:
    """One result, term and steps, or two failures. Returns the rules that were applied."""
    a, b = left(term), right(term)
    if isinstance(a, Failure) or isinstance(b, Failure):
        assert isinstance(a, Failure) is isinstance(b, Failure)
        return Counter()
    assert a == b, f"{show(term)}\n{show(a.term)}\n{show(b.term)}"
    return Counter(step.rule for step in a.steps)


# --- equations ----------------------------------------------------------------------------------------


def equations(a: Strategy, b: Strategy, c: Strategy) -> dict[str, tuple[Rewrite, Rewrite]]:
    return {
        "id ; s = s": (seq(id_, a), a),
        "s ; id = s": (seq(a, id_), a),
        "fail ; s = fail": (seq(fail, a), fail),
        "fail <+ s = s": (choice(fail, a), a),
        "s <+ fail = s": (choice(a, fail), a),
        "id <+ s = id": (choice(id_, a), id_),
        "s <+ s = s": (choice(a, a), a),
        "(a ; b) ; c = a ; (b ; c)": (seq(seq(a, b), c), seq(a, seq(b, c))),
        "(a <+ b) <+ c = a <+ (b <+ c)": (choice(choice(a, b), c), choice(a, choice(b, c))),
        "a ; b ; c": (seq(a, b, c), seq(a, seq(b, c))),
        "a <+ b <+ c": (choice(a, b, c), choice(a, choice(b, c))),
        "try s = s <+ id": (try_(a), choice(a, id_)),
        "try (try s) = try s": (try_(try_(a)), try_(a)),
        "topDown s = s <+ one (topDown s)": (top_down(a), choice(a, one(top_down(a)))),
        "bottomUp s = one (bottomUp s) <+ s": (bottom_up(a), choice(one(bottom_up(a)), a)),
        "alltd s = s <+ all (alltd s)": (alltd(a), choice(a, all_(alltd(a)))),
        "sometd s = s <+ some (sometd s)": (sometd(a), choice(a, some(sometd(a)))),
        "somebu s = some (somebu s) <+ s": (somebu(a), choice(some(somebu(a)), a)),
        "all id = id": (all_(id_), id_),
        "not (not s) succeeds where s does": (not_(not_(a)), if_then_else(a, id_, fail)),
        "if s then a else a = a": (if_then_else(b, a, a), a),
        "skip 0 = topDown": (skip(0, a), top_down(a)),
        "position 0 s = s": (position(0, a), a),
        "repeatNTimes 2 s = s ; s": (repeat_n_times(2, a), seq(a, a)),
    }


def test_equations_of_combinators() -> None:
    """Each on random strategies and programs, and each on many where rules were applied on both sides.

    The strategies come from a uniform source: Hypothesis prefers simple choices, which mostly fail.
    """
    fired = Counter[str]()

    @settings(max_examples=settings().max_examples // 2)
    @given(integers(0, 2**32), programs(planted=planted))
    def check(seed: int, program: Expr) -> None:
        term, choose = data_flow(program), Uniform(seed)
        parts = [random_strategy(choose, choose.below(2)) for _ in range(3)]
        for law, (left, right) in equations(*parts).items():
            fired[law] += bool(same(left, right, term))

    check()
    silent = {"fail ; s = fail", "all id = id", "id <+ s = id", "not (not s) succeeds where s does"}
    assert {law for law, count in fired.items() if count < 5} == silent, fired


def test_try_and_normalize_never_fail_and_end() -> None:
    fired = Counter[str]()

    @given(integers(0, 2**32), programs(planted=planted))
    def check(seed: int, program: Expr) -> None:
        term, choose = data_flow(program), Uniform(seed)
        assert isinstance(try_(random_strategy(choose, 3))(term), Success)
        rules = choice(*(choose.pick(ENDING) for _ in range(5)))
        once = succeeded(normalize(rules, limit=200)(term))
        fired.update(step.rule for step in once.steps)
        assert normalize(rules)(once.term) == Success(once.term)
        same(normalize(rules), repeat(top_down(rules)), term)

    check()
    assert fired.total() >= 60, fired


def noting(seen: list[Expr]) -> Rewrite:
    """Changes nothing, and keeps the terms that it was applied to."""

    def note(term: Expr) -> Result:
        seen.append(term)
        return Success(term)

    return note


def test_traversals_go_where_they_say() -> None:
    @given(programs())
    def check(term: Expr) -> None:
        nodes = list(_top_down(term))
        for n in (0, 1, len(nodes) // 2, len(nodes) - 1):
            seen: list[Expr] = []
            succeeded(position(n, noting(seen))(term))
            assert seen == [nodes[n]]
        assert isinstance(position(len(nodes), id_)(term), Failure)
        assert isinstance(skip(len(nodes), id_)(term), Failure)
        assert isinstance(at_child(0, id_, nodes[0]), Success) if children(nodes[0]) else True

    check()


def _top_down(term: Expr) -> list[Expr]:
    return [term, *(part for child in children(term) for part in _top_down(child))]


# --- printing ------------------------------------------------------------------------------------------

SIZED: tuple[Strategy, ...] = (
    SPLIT_JOIN.with_sizes(n=2),
    MAP_FUSION >> MAP_IDENTITY,
    MAP_FUSION | MAP_SEQ.with_sizes(),
    (id_ | fail) >> everywhere(choice(*PLANTED)),
    MAP_FUSION >> (MAP_IDENTITY >> id_) | fail,
    MAP_FUSION @ try_ @ top_down,
    repeat(MAP_FUSION, limit=3),
    outermost(applies("map"), SPLIT_JOIN.with_sizes(n=2)),
    seq(),
    choice(),
)


def test_a_strategy_prints_as_an_expression_for_it() -> None:
    scope = {**vars(core), **vars(algorithmic), **vars(lowering), **vars(maps), **vars(movement)}
    fired = Counter[str]()

    @settings(max_examples=settings().max_examples // 4)
    @given(integers(0, 2**32), programs(planted=planted))
    def check(seed: int, program: Expr) -> None:
        term, choose = data_flow(program), Uniform(seed)
        for s in (random_strategy(choose, choose.below(4)), *SIZED):
            again = eval(repr(s), scope)
            assert repr(again) == repr(s)
            fired.update(same(again, s, term))

    check()
    assert fired.total() >= 25, fired


def test_expressions_are_as_one_writes_them() -> None:
    def by_hand(term: Expr) -> Result:
        return Success(term)

    expressions: dict[str, Rewrite] = {
        "MAP_FUSION >> MAP_IDENTITY >> id_": seq(MAP_FUSION, MAP_IDENTITY, id_),
        "(MAP_FUSION | id_) >> MAP_IDENTITY": (MAP_FUSION | id_) >> MAP_IDENTITY,
        "top_down(SPLIT_MAP)": top_down(SPLIT_MAP),
        "SPLIT_JOIN.with_sizes(n=32)": SPLIT_JOIN.with_sizes(n=32),
        "COPIED[0]": COPIED[0],
        "strategy(by_hand) >> MAP_FUSION": by_hand >> MAP_FUSION,
        "MAP_FUSION | strategy(by_hand)": MAP_FUSION | by_hand,
        "tensor_core(block=(128, 128, 64))": tensor_core(block=(128, 128, 64)),
        "default()": default(),
        "tuned(target='sm_80')": tuned(target="sm_80"),
    }
    assert {text: repr(s) for text, s in expressions.items()} == {text: text for text in expressions}


# --- meaning ------------------------------------------------------------------------------------------


def test_random_strategies_preserve_programs() -> None:
    """Whatever is composed of rules keeps type and value; the steps lead from program to result."""
    fired, outcomes = Counter[str](), Counter[bool]()

    @given(integers(0, 2**32), programs(planted=planted))
    def check(seed: int, program: Expr) -> None:
        term, choose = data_flow(program), Uniform(seed)
        for fuel in (0, 1, 2, 3):
            result = random_strategy(choose, fuel)(term)
            outcomes[isinstance(result, Success)] += 1
            if isinstance(result, Success):
                fired.update(step.rule for step in result.steps)
                preserved(term, result)

    check()
    assert fired.total() >= 100, fired
    assert len(fired) >= 6, fired
    assert min(outcomes.values()) >= 10, outcomes


def preserved(term: Expr, result: Success) -> None:
    """The steps lead to the result, which is well typed and computes the same."""
    wholes = [term, *(whole for _, whole in replayed(term, result.steps))]
    assert wholes[-1] == result.term
    verify(result.term)
    assert_equivalent(term, result.term, seeds=(0,))
