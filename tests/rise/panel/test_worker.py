"""The worker of the panel: rules and kernels as answers to lines of JSON; what is wrong is one, too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rewrites.library import rules
from rewrites.rule import Rule
from rise.cli.panel import kernels, laws, request, subjects, terms, worker
from rise.cli.stages import derived
from rise.cli.viewer.story import story
from rise.errors import RiseError
from rise.pretty import show
from rise.requests import Members
from rise.traced import traced
from tests.support.nightly import every_other

SUMS = """\
def twice(n: Nat)(xs: n.i32) = xs |> map(x => x * 2)
def sums(n: Nat)(xs: n.i32) =
  twice(n)(xs) |> map(x => x + 1) |> reduce(+, 0)
"""
PATH = Path("/programs/sums.rise")


def program(text: str = SUMS, name: str = "sums", **sizes: int) -> dict[str, Any]:
    return {
        "path": str(PATH),
        "folder": str(PATH.parent),
        "texts": {str(PATH): text},
        "name": name,
        "sizes": sizes or {"n": 7},
    }


def ask(method: str, **params: Any) -> dict[str, Any]:
    answer = worker.answered(json.dumps({"id": 3, "method": method, "params": params}).encode())
    assert answer["id"] == 3
    return answer


def result(method: str, **params: Any) -> Any:
    answer = ask(method, **params)
    assert "error" not in answer, answer
    return answer["result"]


def cursor(text: str, mark: str) -> dict[str, int]:
    before = text[: text.index(mark)]
    return {"line": before.count("\n") + 1, "column": len(before) - before.rfind("\n")}


def made() -> subjects.Derivation:
    return subjects.derivation_of(request.asked(Members(program())))


# --- the process ------------------------------------------------------------------------------------------


def test_lines_are_answered_in_order_until_the_input_ends() -> None:
    lines: list[Any] = [
        {"id": 1, "method": "step", "params": {"program": program(), "number": 0}},
        "no json",
        {"id": "two", "method": "rules", "params": {"program": program(SUMS.replace("+ 1", "+ xs"))}},
        {"id": 3, "method": "step", "params": {"program": program(), "number": 1}},
    ]
    given = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n"
    command = [sys.executable, "-P", "-m", "rise.cli.panel.worker"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, None, "two", 3]
    assert [("error" in answer) for answer in answers] == [False, True, True, False]
    assert answers[3]["result"]["number"] == 1


def test_what_is_printed_meanwhile_is_no_answer(monkeypatch: pytest.MonkeyPatch, capsysbinary: Any) -> None:
    import io

    monkeypatch.setitem(worker.METHODS, "rules", lambda given: print("loud") or {})
    stdin = io.TextIOWrapper(io.BytesIO(b'{"id": 1, "method": "rules", "params": {}}\n'))
    monkeypatch.setattr(sys, "stdin", stdin)
    worker.main()
    printed = capsysbinary.readouterr()
    assert json.loads(printed.out) == {"id": 1, "result": {}}
    assert printed.err == b"loud\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"\xff\n", "no JSON"),
        (b"\n", "no JSON"),
        (b"[1]\n", "should be an object"),
        (b'{"id": 1, "id": 2}', "given twice"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"id": 1}', "no `method`"),
        (b'{"id": 1, "method": 7}', "`method` is 7"),
        (b'{"id": 1, "method": "drop"}', "no method `drop`"),
        (b'{"id": 1, "method": "rules"}', "no `params`"),
        (b'{"id": 1, "method": "rules", "params": {"program": {}}}', "no `texts`"),
    ],
)
def test_a_line_that_is_no_request_is_refused(line: bytes, said: str) -> None:
    answer = worker.answered(line)
    assert answer["error"]["code"] == "R0063"
    assert said in answer["error"]["message"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"sizes": {"n": True}}, "`n` is True"),
        ({"sizes": {"n": -1}}, "`n` is -1"),
        ({"sizes": {"n": "7"}}, "`n` is '7'"),
        ({"texts": {"f.rise": 5}}, "`f.rise` is 5"),
        ({"texts": []}, "`texts` is []"),
        ({"name": None}, "`name` is None"),
        ({"target": 90}, "`target` is 90"),
    ],
)
def test_a_definition_is_asked_for_in_one_form(changed: dict[str, Any], said: str) -> None:
    error = ask("derivation", program={**program(), **changed})["error"]
    assert (error["code"], said in error["message"]) == ("R0063", True), error


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("rules", {"path": [9, 9]}, "no term at"),
        ("rules", {"path": [-1]}, "no term at"),
        ("rules", {"path": ["0"]}, "list of whole numbers"),
        ("rules", {"at": {"line": 0, "column": 1}}, "`line` is 0"),
        ("rules", {}, "no `at`"),
        ("rule", {"path": [0], "rule": "no such rule"}, "no rule `no such rule`"),
        ("rule", {"path": [0], "rule": "zipSwap"}, "no rule `zipSwap`"),
        ("step", {"number": 999}, "none of number 999"),
        ("step", {"number": -1}, "`number` is -1"),
        ("step", {}, "no `number`"),
    ],
)
def test_what_a_program_does_not_have_is_refused(method: str, params: dict[str, Any], said: str) -> None:
    error = ask(method, program=program(), **params)["error"]
    assert (error["code"], said in error["message"]) == ("R0063", True), error


def test_a_line_that_is_too_long_is_refused_and_the_next_one_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import io

    monkeypatch.setattr(worker, "LARGEST", 100)
    answers = io.BytesIO()
    worker.serve(io.BytesIO(b"x" * 350 + b"\n" + b"{}\n"), answers)
    first, second = (json.loads(line)["error"]["message"] for line in answers.getvalue().splitlines())
    assert "more than 100 bytes" in first
    assert "no `method`" in second


def test_a_mistake_of_the_compiler_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(given: object) -> dict[str, Any]:
        raise KeyError("lost")

    monkeypatch.setitem(worker.METHODS, "rules", broken)
    error = ask("rules", program=program())["error"]
    assert error["code"] == worker.INTERNAL
    assert "KeyError: 'lost'" in error["message"]


# --- wrong programs ---------------------------------------------------------------------------------------


def test_a_wrong_definition_is_told_with_its_place_and_others_are_answered() -> None:
    wrong = SUMS.replace("x + 1", "x + xs") + "def right(xs: 3.f32) = xs\n"
    error = ask("rules", program=program(wrong), at={"line": 1, "column": 1})["error"]
    [mistake] = error["mistakes"]
    assert error["code"] == mistake["code"] == "R0301"
    assert (mistake["file"], mistake["line"]) == (str(PATH), 3)
    line = wrong.split("\n")[2]
    assert line[mistake["column"] - 1 : mistake["end_column"] - 1] == "xs"
    right = {**program(wrong, "right"), "sizes": {}}
    assert result("rules", program=right, at={"line": 4, "column": 24})["term"]["text"] == "xs"


def test_sizes_that_do_not_fit_are_told() -> None:
    assert ask("derivation", program=program(m=3))["error"]["code"] == "R0406"
    assert ask("derivation", program={**program(), "sizes": {}})["error"]["code"] == "R0405"
    assert ask("derivation", program=program(name="other"))["error"]["code"] == "R0209"
    assert ask("derivation", program={**program(), "target": "sm_1"})["error"]["code"] == "R0031"


# --- rules ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mark", "text"),
    every_other(
        [
            ("reduce(", "xs |> map(x => x * 2) |> map(x => x + 1) |> reduce("),
            ("map(x => x + 1", "xs |> map(x => x * 2) |> map(x => x + 1)"),
            ("+ 1", "x + 1"),
            ("1) |>", "1"),
            ("sums(n", "xs |> map(x => x * 2) |> map(x => x + 1) |> reduce("),
        ]
    ),
)
def test_a_cursor_is_on_the_smallest_value_around_it(mark: str, text: str) -> None:
    found = result("rules", program=program(), at=cursor(SUMS, mark))["term"]
    assert found["text"].startswith(text)
    assert result("rules", program=program(), path=found["path"])["term"] == found


def test_the_terms_around_a_cursor_go_outward_to_the_whole() -> None:
    found = result("rules", program=program(), at=cursor(SUMS, "1) |>"))
    texts = [outer["text"] for outer in found["around"]]
    assert texts[0].startswith("xs |> map(x => x * 2) |> map(x => x + 1) |> reduce(")
    assert [len(text) for text in texts] == sorted(map(len, texts), reverse=True)
    assert texts[-1] == "x + 1"
    for outer in found["around"]:
        inner = result("rules", program=program(), path=outer["path"])
        assert inner["term"] == outer


@pytest.mark.parametrize("mark", ["reduce(", "map(x => x + 1", "+ 1"])
def test_the_rules_listed_are_those_that_apply(mark: str) -> None:
    whole = subjects.program_of(request.asked(Members(program())))
    found = result("rules", program=program(), at=cursor(SUMS, mark))
    term = terms.term_at(whole, tuple(found["term"]["path"]))
    listed = {item["name"]: item for item in (*found["own"], *found["general"])}
    assert len(listed) == len(found["own"]) + len(found["general"]) > 5
    for name, rule in rules().items():
        applies = False
        try:
            given = listed[name]["given"] if name in listed else {}
            applies = (rule.with_sizes(**given) if given else rule).attempt(term) is not None
        except RiseError:
            pass
        assert applies == (name in listed), name


def test_rules_are_of_the_construct_or_of_any_value() -> None:
    found = result("rules", program=program(), at=cursor(SUMS, "reduce("))
    own, general = ({item["name"] for item in found[group]} for group in ("own", "general"))
    assert {"reduceMap", "reduce → reduceSeq", "blockReduce"} <= own
    assert {"toMem(Local)", "let, introduced"} <= general
    # those of the construct begin with it; a law is its variable
    for name in general:
        assert rules()[name].head is None
    assert all(isinstance(rules()[n], Rule) for n in general)
    [blocks] = [item for item in found["own"] if item["name"] == "blockReduce"]
    assert blocks["given"] == {"n": 1}  # of those that are tried, only 1 divides 7
    assert blocks["known"] and blocks["meaning"] and "→" in blocks["equation"]


def test_a_rule_shows_what_it_makes() -> None:
    where = result("rules", program=program(), at=cursor(SUMS, "map(x => x + 1"))["term"]["path"]
    shown = result("rule", program=program(), path=where, rule="mapFusion")
    assert shown["before"] == "xs |> map(x => x * 2) |> map(x => x + 1)"
    assert shown["after"] == "xs |> map(x => x * 2 + 1)"


def test_a_general_law_has_a_variable_on_its_left() -> None:
    general = {name for name, rule in rules().items() if laws.is_general(rule)}
    assert {"etaAbstraction", "mapNothing", "toMem(Shared)", "T >> T, introduced"} <= general
    assert not {"mapFusion", "splitJoin", "rolling update", "unrollSum"} & general


# --- derivations and kernels ------------------------------------------------------------------------------


def test_the_list_of_steps_prints_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = []
    monkeypatch.setattr(kernels, "traced", lambda term: printed.append(term) or traced(term))  # type: ignore[func-returns-value]
    found = result("derivation", program=program())
    assert printed == []
    assert [step["rule"] for step in found["steps"]] == [step.rule for step in made().success.steps]
    assert found["plan"] == [str(choice) for choice in made().plan.kernels]
    result("step", program=program(), number=1)
    assert len(printed) == 2


def test_a_step_is_the_one_that_the_viewer_shows() -> None:
    told = story("sums", made().wholes[0], made().success)
    lines = list(told["start"]["lines"])
    assert len(told["steps"]) > 1
    for number, step in enumerate(told["steps"], 1):
        for at, gone, come in step["lines"]:
            lines[at : at + gone] = come
        shown = result("step", program=program(), number=number)
        assert shown["after"]["text"] == "\n".join(told["table"][line][0] for line in lines)
        assert (shown["before"]["extent"], shown["after"]["extent"]) == (step["before"], step["after"])
        rule = {"name": step["rule"], **told["rules"][step["rule"]]}
        assert shown["rule"] == rule
    assert result("step", program=program(), number=0)["after"]["text"] == show(made().wholes[0])


def test_a_kernel_has_the_place_of_each_part() -> None:
    found = result("kernel", program=program())
    assert any("__global__" in line for line in found["text"])
    assert len(found["places"]) == len(found["parts"])
    assert len(found["lines"]) == len(found["text"])
    assert {part for part in found["lines"] if part >= 0} <= set(range(len(found["parts"])))
    for part, where in zip(found["parts"], found["places"], strict=True):
        assert part[3] == f"{where['file']}:{where['line']}:{where['column']}"


def test_a_derivation_is_made_once_for_all_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    monkeypatch.setattr(subjects, "derived", lambda *given: counted.append(given) or derived(*given))  # type: ignore[func-returns-value]
    fresh = program(n=11)
    for method, more in (("derivation", {}), ("step", {"number": 1}), ("kernel", {})):
        result(method, program=fresh, **more)
    assert len(counted) == 1
    result("derivation", program={**fresh, "texts": {str(PATH): SUMS.replace("+ 1", "+ 2")}})
    assert len(counted) == 2
