"""How much work it is to choose a schedule: what is priced, tried and checked, in numbers of each.

Seconds depend on the machine. What takes a program through more schedules, candidates or rules shows here.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewrites.result import Success
from rise.check.program import check_expression
from rise.check.specialise import specialise
from rise.normal import data_flow
from strategies.auto import auto
from strategies.matmul.constraints import shared_bytes
from strategies.matmul.schedule import Schedule
from strategies.search import schedules, space
from strategies.search.choice import Search, multiplies
from strategies.search.cost import Cost
from strategies.search.hardware import A100, H200, Gpu
from strategies.search.problem import Problem
from tests.support.programs import loaded

SEED = 20261125
EXAMPLES = Path(__file__).parents[2] / "examples"
DOT = "zip(row)(col) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)"


def problems(count: int) -> Iterator[Problem]:
    draw = random.Random(SEED)
    print(f"seed {SEED}")
    for _ in range(count):
        m, n, k = (draw.choice((1, 17, 63, 65, 128, 411, 777, 1333, 2048)) for _ in range(3))
        along_k = draw.random() < 0.5, draw.random() < 0.5
        yield Problem(
            m, n, k, along_k=along_k, result_bytes=draw.choice((2, 4)), beside=draw.choice(((), (2,))),
            batch=draw.choice((1, 1, 3)), scattered=draw.random() < 0.2, work=draw.choice((0, 12)),
        )  # fmt: skip


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> list[Schedule]:
    """Whose cost has been computed."""
    seen: list[Schedule] = []
    cost_of = space.cost_of

    def seeing(s: Schedule, p: Problem, gpu: Gpu) -> Cost:
        seen.append(s)
        return cost_of(s, p, gpu)

    monkeypatch.setattr(space, "cost_of", seeing)
    space.best_first.cache_clear()
    return seen


@pytest.mark.parametrize("gpu", [H200, A100])
def test_no_bound_is_above_the_cost(gpu: Gpu) -> None:
    count = 0
    for p in problems(6):
        for point in list(space.points("tensor_core", p, gpu))[::7]:
            assert space.bound_of(point.schedule, p, gpu) <= space.cost_of(point.schedule, p, gpu).cycles
            count += 1
    assert count > 100


@pytest.mark.parametrize("gpu", [H200, A100])
def test_what_comes_first_is_what_sorting_all_gives(gpu: Gpu) -> None:
    for p in problems(3):
        legal = [each for each in space.points("tensor_core", p, gpu) if space.refusal(each, p, gpu) is None]
        costs = [space.cost_of(point.schedule, p, gpu).cycles for point in legal]
        order = sorted(range(len(legal)), key=costs.__getitem__)  # which is stable
        assert [one.point for one in space.ranked("tensor_core", p, gpu)] == [legal[i] for i in order]
        if legal:
            least = min(costs)
            assert not space.has_faster("tensor_core", p, gpu, least)
            assert space.has_faster("tensor_core", p, gpu, least + 1e-3)


def test_the_most_stages_that_fit_are_counted() -> None:
    seen = set()
    for p in problems(6):
        for s in list(schedules.shapes(p, H200, ("direct", "shared", "bulk")))[::23]:
            given = s, p.operand_bytes, p.along_k, p.result_bytes, p.operands
            sizes = {
                n: shared_bytes(*given, n, p.products, p.beside) for n in range(3, schedules.DEEPEST + 1)
            }
            fit = max((n for n, size in sizes.items() if size <= H200.limits.shared_bytes), default=2)
            assert schedules.deepest(s, p, H200) == fit
            seen.add(fit)
    assert len(seen) >= 5, seen


def test_few_schedules_are_priced_for_the_first(priced: list[Schedule]) -> None:
    p = Problem(1000, 1333, 777, result_bytes=2)
    every = len(list(space.points("tensor_core", p, H200)))
    first = space.varied(space.best_first("tensor_core", p, H200), 16)
    assert len(first) == 16 and len(priced) < every / 3, f"{len(priced)} of {every}"
    count = len(priced)
    list(space.varied(space.best_first("tensor_core", p, H200), 16))
    assert len(priced) == count, "priced again"


def test_whether_one_is_faster_is_known_after_a_few(priced: list[Schedule]) -> None:
    p = Problem(2048, 4096, 1024, result_bytes=2)
    least = next(iter(space.best_first("tensor_core", p, H200))).cost.cycles
    priced.clear()
    assert space.has_faster("tensor_core", p, H200, 2 * least)
    assert len(priced) <= 10
    priced.clear()
    assert not space.has_faster("tensor_core", p, H200, least / 2)
    assert not priced, "bounds tell"


# the candidates that `auto` derives, at ragged sizes; what it derives in vain is what takes long
CANDIDATES = {"tanhOf": 1, "both": 1, "withRowSums": 1}


@pytest.mark.parametrize("name", CANDIDATES)
def test_few_candidates_are_derived(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = counted(monkeypatch)
    program = data_flow(specialise(loaded(EXAMPLES / "fused.rise")[name], {"m": 100, "n": 133, "k": 77}))
    assert isinstance(auto()(program), Success)
    assert len(tried) <= CANDIDATES[name]


def test_numbers_that_no_instruction_multiplies_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = counted(monkeypatch)
    text = f"fun((A: 100.77.f32, B: 133.77.f32) => A |> map(fun(row => B |> map(fun(col => {DOT})))))"
    program, strategy = data_flow(check_expression(text)), auto()
    assert isinstance(strategy(program), Success)
    assert [point.strategy for point in tried] == ["cuda_core"]
    said = str(strategy.choice(program))
    assert "nothing is tried of `tensor_core` for products of `f32`" in said and "`tf32(x)` rounds" in said


@pytest.mark.parametrize(
    ("type_", "dot", "there"),
    [
        ("f32", DOT, False),
        ("f16", DOT, True),
        ("i8", DOT.replace("f32", "i32"), True),
        ("f32", DOT.replace("f32(x) * f32(y)", "f32(tf32(x)) * f32(tf32(y))"), True),
        ("f64", DOT.replace("f32", "f64"), False),
    ],
)
def test_a_type_tells_whether_an_instruction_multiplies(type_: str, dot: str, there: bool) -> None:
    text = f"fun((A: 64.64.{type_}, B: 64.64.{type_}) => A |> map(fun(row => B |> map(fun(col => {dot})))))"
    assert multiplies(data_flow(check_expression(text))) is there


def counted(monkeypatch: pytest.MonkeyPatch) -> list[space.Point]:
    tried: list[space.Point] = []
    attempt = Search.attempt

    def counting(search: Search, point: space.Point, term: object) -> object:
        tried.append(point)
        return attempt(search, point, term)  # type: ignore[arg-type]

    monkeypatch.setattr(Search, "attempt", counting)
    return tried


def test_importing_the_strategies_checks_no_rule() -> None:
    text = (
        "import strategies.auto, strategies.matmul.tensor_core, strategies.batches.batch;"
        "from rewrites.rule import RULES;"
        "print([name for name, rule in RULES.items() if rule.declared.checked])"
    )
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
