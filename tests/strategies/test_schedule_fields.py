"""The parameters of a schedule of products are declared once, and whatever else needs them reads that."""

from __future__ import annotations

import ast
import inspect
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import pytest

from rise.errors import StrategyError
from rise.frozen import changed, filled_at_once, hashed_once
from rise.instructions import WMMA_SHAPES
from strategies.core import Strategy, id_
from strategies.matmul import constraints
from strategies.matmul.schedule import HOPPER, MMA_SYNC, VOLTA, WMMA, Schedule
from strategies.matmul.tensor_core import tensor_core
from strategies.registry import find, show_value
from strategies.search.cost import cost
from strategies.search.hardware import H200
from strategies.search.problem import Problem
from strategies.search.space import Point, ranked, refusal
from strategies.search.store import Record, append, lookup, point_of
from strategies.settings import Law, declarations, laws, parameter, parameters_from

ROOT = Path(__file__).parents[2]
FIELDS = frozenset(declarations(Schedule))


# --- one more parameter -----------------------------------------------------------------------------------


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True, repr=False)
class Wider(Schedule):
    """A schedule with one more parameter, of which nothing else has been told."""

    unrolled: int = parameter(
        1,
        "how many steps of k are written out one after the other",
        least=1,
        idle=[(lambda s: not s.stages, "there are no steps without stages")],
    )
    LAWS: ClassVar[tuple[Law, ...]] = (
        *Schedule.LAWS,
        Law(
            lambda s: s.unrolled <= max(s.stages, 1),
            "unrolled is {unrolled}: there are {stages} stages",
            "use `unrolled=1`",
        ),
    )


@parameters_from(Wider)
def wider(s: Wider) -> Strategy:
    """Does nothing, with one more parameter."""
    return id_


NAME = f"{__file__}:wider"
MORE = changed(Wider(epilogue="direct"), unrolled=2, stages=2)


def test_a_new_parameter_is_one_of_the_strategy() -> None:
    (setting,) = (s for s in find(NAME).settings if s.name == "unrolled")
    assert (setting.accepts, setting.default) == (int, 1)
    assert setting.meaning == declarations(Wider)["unrolled"].metadata["meaning"]
    assert "unrolled" in inspect.signature(wider).parameters
    assert find(NAME).make({"unrolled": "2"})


def test_a_new_parameter_is_documented() -> None:
    text = inspect.getdoc(wider) or ""
    assert text.startswith("Does nothing, with one more parameter.\n\nblock:")
    assert re.search(r"^unrolled: +how many steps of k", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"unrolled": 0}, "unrolled is 0, and must be at least 1", None),
        ({"unrolled": 4}, "unrolled is 4: there are 3 stages", "use `unrolled=1`"),
        (
            {"unrolled": 2, "stages": 0},
            "unrolled is 2: there are 0 stages",
            "use `unrolled=1`",
        ),
        ({"cluster": 2}, "persistent blocks and clusters need a raster order of tiles", None),
    ],
)
def test_a_new_parameter_is_refused_as_the_others(
    given: dict[str, Any], message: str, hint: str | None
) -> None:
    with pytest.raises(StrategyError) as caught:
        wider(**given)
    assert (caught.value.code, caught.value.message) == ("R0609", f"wider: {message}")
    assert hint is None or caught.value.hint == hint


def test_a_new_parameter_that_changes_nothing_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Lawless(Wider):
        LAWS: ClassVar[tuple[Law, ...]] = Schedule.LAWS

    with pytest.raises(StrategyError) as caught:
        Lawless(unrolled=2, stages=0).refuse("lawless")
    assert caught.value.message == "lawless: unrolled changes nothing: there are no steps without stages"
    assert caught.value.hint == "leave `unrolled` out"


def test_a_new_parameter_is_in_points_of_the_search() -> None:
    point = Point.of(NAME, MORE.changes)
    assert point.settings["unrolled"] == "2" and "unrolled=2" in str(point)
    assert Point.read(NAME, point.settings) == point
    assert point.schedule == MORE and isinstance(point.schedule, Wider)


def test_a_new_parameter_is_searched_where_a_space_changes_it() -> None:
    p = Problem(1024, 1024, 1024, result_bytes=2)
    spaces = {NAME: lambda p, gpu: (changed(MORE, unrolled=n) for n in (1, 2, 3, 2))}
    found = ranked(NAME, p, H200, spaces)
    assert [one.point.schedule for one in found] == [changed(MORE, unrolled=1), MORE], "3 is refused"
    refused = refusal(Point.of(NAME, changed(MORE, unrolled=3).changes), p, H200)
    assert refused is not None and refused.message == "wider: unrolled is 3: there are 2 stages"
    fixed = ranked(NAME, p, H200, spaces, {"unrolled": 1})
    assert [one.point.settings["unrolled"] for one in fixed] == ["1"]
    same = Schedule.of(MORE.changes)
    assert found[1].cost == cost(p, same, H200)
    assert constraints.resources(MORE) == constraints.resources(same)


def test_a_new_parameter_is_remembered(tmp_path: Path) -> None:
    file = tmp_path / "tuned.jsonl"
    for name, given in (("new", Point.of(NAME, MORE.changes).settings), ("old", {"stages": "2"})):
        append(file, Record(name, "f", {}, "sm_80", "a GPU", NAME, given, 1.0, 0.0, "code", "date"))
    new, old = lookup("new", "sm_80", file), lookup("old", "sm_80", file)
    assert new is not None and point_of(new).schedule == MORE
    assert old is not None and point_of(old).schedule == Wider(stages=2), "what a record lacks is the default"


# --- declared once ----------------------------------------------------------------------------------------


def modules() -> Iterator[tuple[str, ast.Module]]:
    for folder in ("strategies/matmul", "strategies/search"):
        for path in sorted((ROOT / folder).glob("*.py")):
            if path.name != "schedule.py":
                yield path.stem, ast.parse(path.read_text(encoding="utf-8"))


# of another strategy, or of records
OTHERS = {"one_pass", "passes", "store", "cuda_core"}


def test_no_module_names_parameters_by_text() -> None:
    """But one, whose refusals begin with what exceeds a block; two are parts of one tile."""
    found = {
        name: {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)} & FIELDS
        for name, tree in modules()
        if name not in OTHERS
    }
    assert {name: same for name, same in found.items() if len(same) > 2}.keys() == {"constraints"}


def test_no_function_takes_a_schedule_apart() -> None:
    """Phases have plain arguments, a few; what needs more takes the schedule."""
    found = {
        (name, node.name): same
        for name, tree in modules()
        if name not in OTHERS
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        if len(same := FIELDS & names_of(node)) > 3
    }
    assert not found


def names_of(node: ast.FunctionDef | ast.ClassDef) -> set[str]:
    """The parameters of a function, or the fields of a class."""
    if isinstance(node, ast.FunctionDef):
        return {each.arg for each in (*node.args.args, *node.args.kwonlyargs)}
    return {
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }


def test_everything_is_declared() -> None:
    assert all(f.metadata["meaning"] for f in declarations(Schedule).values())
    assert [setting.name for setting in find("tensor_core").settings] == [f.name for f in fields(Schedule)]
    assert all(setting.meaning for setting in find("tensor_core").settings)


@pytest.mark.parametrize("s", [WMMA, MMA_SYNC, VOLTA, HOPPER], ids=["WMMA", "MMA_SYNC", "VOLTA", "HOPPER"])
def test_schedules_that_have_names_are_legal(s: Schedule) -> None:
    assert tensor_core(**s.changes)
    assert Schedule.of(s.changes) == s == eval(repr(s), {"Schedule": Schedule})


def test_what_is_remembered_is_legal_and_reads_back() -> None:
    """Records name parameters at their defaults too; points that are made today do not."""
    lines = (ROOT / "strategies/search/remembered.jsonl").read_text(encoding="utf-8").splitlines()
    records = [re.search(r'"strategy":"tensor_core","parameters":({.*?})', line) for line in lines]
    read = [Point.read("tensor_core", ast.literal_eval(found[1])) for found in records if found]
    assert len(read) > 100
    for point in read:
        point.schedule.refuse("tensor_core")
        again = Point.of("tensor_core", point.schedule.changes)
        assert again.schedule == point.schedule
        assert dict(again.parameters).items() <= {**Schedule().values, **dict(point.parameters)}.items()


# --- laws -------------------------------------------------------------------------------------------------

VALUES: Mapping[str, tuple[Any, ...]] = {
    "fragment": (*sorted(WMMA_SHAPES), (16, 8, 16), (64, 64, 16), (64, 128, 16), (8, 8, 16)),
    "warp": ((16, 16), (64, 64), (64, 128), (128, 128), (48, 64)),
    "block": ((64, 64, 64), (128, 128, 64), (64, 128, 32), (96, 64, 40)),
    "epilogue": ("direct", "shared", "bulk", "rows", "else"),
    "promoted": (0, 64, 128, 256, 8),
}
SET = r"(\w+)=([\w,]*\w)"  # `name=value` in a hint
NUMBERS = (-1, 0, 1, 2, 3, 4, 8, 12)


# what a number or a word may be by itself; then what parameters ask of each other
ALONE = [law for law in laws(Schedule) if re.search("must be at least|it can be", law.reason)]
BETWEEN = laws(Schedule)[len(ALONE) :]


def drawn(choose: random.Random) -> Schedule:
    """A few changes of a schedule that has a name."""
    names = choose.sample(sorted(FIELDS), choose.randint(1, 4))
    given = {name: value(name, choose) for name in names}
    return changed(choose.choice([WMMA, MMA_SYNC, VOLTA, HOPPER]), **given)


def value(name: str, choose: random.Random) -> Any:
    """One that its type has, which need not be legal."""
    match declarations(Schedule)[name].default:
        case _ if name in VALUES:
            return choose.choice(VALUES[name])
        case bool():
            return choose.random() < 0.5
        case tuple() as default:
            return tuple(choose.choice((0, 1, 8, 64, 128, 300)) for _ in default)
        case _:
            return choose.choice(NUMBERS)


def said(law: Law) -> dict[str, Any]:
    """The values of parameters that the hint of a law names; nothing where these are not all of it."""
    hint = law.hint or ""
    settings = {setting.name: setting for setting in find("tensor_core").settings}
    if "and warp is block" in hint:
        return {}
    left = {name: settings[name].default for name in re.findall(r"leave `(\w+)` out", hint)}
    return {**left, **{name: settings[name].read(text) for name, text in re.findall(SET, hint)}}


def test_what_a_refusal_says_helps_and_every_law_refuses_something() -> None:
    seed = 7
    choose, fired, helped = random.Random(seed), Counter[str](), Counter[str]()
    for _ in range(9000):
        s = drawn(choose)
        alone = [law.reason for law in ALONE if not law.holds(s)]
        fired.update(alone)
        if not alone:
            for law in BETWEEN:
                if not law.holds(s):
                    fired[law.reason] += 1
                    if given := said(law):
                        assert law.holds(changed(s, **given)), (seed, law.reason, s)
                        helped[law.reason] += 1
    print(
        f"seed {seed}: {len(fired)} laws refused {fired.total()} times, hints helped {helped.total()} times"
    )
    assert {law.reason for law in laws(Schedule)} == fired.keys()
    assert len(helped) >= 20


def test_a_refusal_is_of_the_first_law_that_does_not_hold() -> None:
    seed, seen = 6, Counter[str]()
    choose = random.Random(seed)
    for _ in range(1500):
        s = drawn(choose)
        broken = next((law for law in laws(Schedule) if not law.holds(s)), None)
        seen["legal" if broken is None else broken.code] += 1
        try:
            s.refuse("tensor_core")
        except StrategyError as error:
            assert broken is not None and (error.code, error.hint) == (broken.code, broken.hint), (seed, s)
            assert error.message == f"tensor_core: {broken.reason.format_map(s.values)}"
            assert "{" not in error.message
        else:
            assert broken is None, (seed, s)
    assert {"legal", "R0604", "R0605", "R0609"} <= seen.keys(), (seed, seen)


def test_a_hint_is_written_as_set_takes_it() -> None:
    """What hints name are parameters with values that they may have."""
    settings = {setting.name: setting for setting in find("tensor_core").settings}
    for law in laws(Schedule):
        for name, text in re.findall(SET, law.hint or ""):
            assert show_value(settings[name].read(text)) == text
