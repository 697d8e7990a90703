"""The spaces that strategies declare: their members derive, or are refused by name."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from bench.search import Search
from rewrites.result import Success
from rise.check.program import check_text, load
from rise.check.specialise import specialise
from rise.errors import RiseError, UsageError
from rise.expr import Expr
from rise.normal import data_flow
from rise.testing import assert_preserves
from strategies.auto import auto
from strategies.registry import catalogue, find, show_value
from strategies.search.choice import Choice
from strategies.search.identity import identity
from strategies.search.space import Point, declared, searchable
from strategies.search.store import Record, append
from tests.support.nightly import every_other

EXAMPLES = Path(__file__).parents[2] / "examples"
DRAWN = {"one_pass": 2, "batch": 6, "default": 2}  # members of these spaces; the first two take longer
ELSE = 10
SMALL = {"default": 3}  # spaces with so many members, all others have more than 50
# a program for each strategy, at sizes that its tiles do not divide
PROGRAMS = {
    "default": "def f(xs: 7.5.61.f32) = xs |> map(map(map(x => 2 * x + 1)))",
    "elementwise": "def f(xs: 7.61.f32) = xs |> map(map(x => 2 * x + 1))",
    "columns": "def f(xs: 131.37.f32) = xs |> transpose |> map(reduce(+, 0))",
    "cuda_core": "def f(A: 67.45.f32, B: 45.70.f32) = A |> map(row => transpose(B) |> map(col =>"
    " zip(row)(col) |> map((x, y) => x * y) |> reduce(+, 0)))",
    "reduction": "def f(xs: 5.1031.f32) = xs |> map(reduce(+, 0))",
    "rows": "def f(xs: 3.1543.f32) = xs |> map(row => let s = row |> reduce(+, 0) in row |> map(x => x + s))",
    "transposition": "def f(xs: 61.131.f32) = xs |> transpose",
    "stencil": "def f(xs: 35.70.f32) = xs |> map(slide(3, 1)) |> map(map(w => idx(0)(w) + idx(2)(w)))",
    "batch": "def f(As: 5.33.5.f16, Bs: 5.5.34.f16) = zip(As)(Bs) |> map((A, B) => A |> map(row =>"
    " transpose(B) |> map(col => zip(row)(col) |> map((x, y) => f32(x) * f32(y)) |> reduce(+, 0))))",
}


def program(name: str) -> Expr:
    if name == "one_pass":
        attention = load(EXAMPLES / "attention.rise")["attention"]
        return data_flow(specialise(attention, {"m": 65, "n": 33, "d": 16, "e": 32}))
    return data_flow(specialise(check_text(PROGRAMS[name])["f"], {}))


def outcome(point: Point, term: Expr) -> Success | str:
    """The program that a point makes of a term; or the code of the refusal."""
    try:
        result = find(point.strategy).make(point.settings)(term)
        return result if isinstance(result, Success) else result.error(point.strategy).code
    except RiseError as error:
        return error.code


def test_all_schedules_with_parameters_have_a_space() -> None:
    without = {entry.name for entry in catalogue() if entry.settings} - {*searchable()}
    assert without == {"auto", "tuned", "tvm_gemm"}, "two search themselves; one shows a tutorial's versions"


@pytest.mark.parametrize("name", searchable()[1:])
def test_a_space_begins_with_the_defaults_and_has_no_member_twice(name: str) -> None:
    points = list(declared(name))
    assert points[0] == Point.of(name, {}) and len(set(points)) == len(points)
    assert len(points) == SMALL[name] if name in SMALL else len(points) > 50
    changes = [len(point.parameters) for point in points]
    assert changes == sorted(changes)
    for setting in (s for s in find(name).settings if s.tried):
        assert setting.default in setting.tried
        assert all(setting.read(show_value(value)) == value for value in setting.tried)


@pytest.mark.parametrize("name", every_other(searchable()[1:]))
def test_members_derive_or_are_refused_by_name(name: str) -> None:
    seed, count = 11, DRAWN.get(name, ELSE)
    points = list(declared(name))
    drawn = [points[0], *random.Random(seed).sample(points[1:], count)]
    term = program(name)
    found = Counter[str]()
    for point in drawn:
        result = outcome(point, term)
        found["derived" if isinstance(result, Success) else result] += 1
    assert found["derived"] >= count // 4 + 1 and found.total() == count + 1, (seed, found)
    assert all(code.startswith(("R06", "R07")) for code in found.keys() - {"derived"}), (seed, found)
    print(f"{name}, seed {seed}: {dict(found)}")


@pytest.mark.parametrize("name", every_other(PROGRAMS))
def test_a_member_with_every_parameter_changed_preserves_the_meaning(name: str) -> None:
    term, all_ = program(name), [s for s in find(name).settings if s.tried]
    changed = (point for point in declared(name) if len(point.parameters) == len(all_))
    derived = (point for point in changed if isinstance(outcome(point, term), Success))
    (point,) = islice(derived, 1)
    assert_preserves(find(name).make(point.settings), term)


def test_what_declares_no_space_is_named_with_those_that_do() -> None:
    with pytest.raises(UsageError, match=r"R0032(.|\n)*`tensor_core`.*`stencil`"):
        next(declared("auto"))


def test_a_program_that_a_strategy_does_not_fit_is_given_up() -> None:
    term = program("transposition")
    trials = Search(term, "sm_90a", "reduction").trials(16)
    while (one := trials.take()) is not None:
        result = outcome(one.point, term)
        assert isinstance(result, str)
        trials.refuse(one, f"{result} alike")
    assert len(trials.refused) == 10


def test_auto_uses_what_is_remembered_of_a_memory_bound_program(tmp_path: Path) -> None:
    term, remembered = program("transposition"), tmp_path / "tuned.jsonl"

    def chosen(**parameters: str) -> Choice:
        """What `auto` chooses once these are remembered."""
        name, of = identity(term), "transposition"
        append(remembered, Record(name, "f", {}, "sm_90a", "a GPU", of, parameters, 1.0, 0.0, "code", "date"))
        (found,) = auto(store=str(remembered)).choice(term).kernels
        return found

    assert str(chosen(tile="32").point) == "transposition tile=32"
    illegal = chosen(tile="0")
    assert str(illegal.point) == "transposition" and "no longer make a kernel" in illegal.reason
