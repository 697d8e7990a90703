"""Derivations: recorded, saved, applied again, checked, and shown as a page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rewrites.algorithmic import MAP_FUSION
from rewrites.derivation import FORMAT, VERSION, described, read, replay, rule_named
from rewrites.result import Success
from rewrites.rule import RULES, rule
from rise.check.program import check_text
from rise.errors import StrategyError, UsageError
from rise.expr import Expr, alpha_equal
from rise.normal import data_flow
from rise.pretty import show
from rise.testing import assert_equivalent, assert_structure, structure
from strategies.core import choice, normalize, seq, top_down
from strategies.default import default
from strategies.matmul.tensor_core import tensor_core
from tests.support.programs import succeeded

ROOT = Path(__file__).parents[2]
PROGRAM = """
def f = depFun((n: Nat) => fun(xs: n.i32 =>
  xs |> map(fun(x => x * 2)) |> map(fun(x => x + 1)) |> reduce(+, 0)))
"""
PRODUCT = """def f = fun((A: 64.64.f16, B: 64.64.f16) => A |> map(fun(row => B |> transpose |> map(fun(col =>
  zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0))))))"""
SMALL = tensor_core((32, 32, 32), (16, 16))


def program(text: str) -> Expr:
    return data_flow(check_text(text, "program.rise")["f"].body)


def derived(strategy: Any, term: Expr) -> Success:
    return succeeded(strategy(term))


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "program.rise"
    path.write_text(PROGRAM)
    return str(path)


# --- saving and applying again ------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [SMALL, default()], ids=["tensor_core", "default"])
def test_a_saved_derivation_applies_to_its_program(strategy: Any) -> None:
    term = program(PRODUCT)
    success = derived(strategy, term)
    text = json.dumps(described(term, success))
    again = replay(term, read(text))
    assert alpha_equal(again.success.term, success.term)
    assert again.changed == ()
    assert [s.rule for s in again.success.steps] == [s.rule for s in success.steps]


def test_a_saved_derivation_can_be_read(rise: Any, file: str, tmp_path: Path) -> None:
    saved = tmp_path / "f.json"
    assert rise("derive", file, "f", "--size", "n=7", "--save", str(saved)).status == 0
    found = json.loads(saved.read_text())
    assert (found["format"], found["version"]) == (FORMAT, VERSION)
    first = found["steps"][0]
    assert (first["rule"], first["path"], first["parameters"]) == ("reduceMap", [0], {})
    assert first["before"].startswith("xs |> map(x => x * 2) |> map(x => x + 1) |> reduce(")
    assert first["after"].endswith("|> reduceSeq(Local)((acc, x) => acc + (x + 1), 0)")


def test_replaying_does_not_use_the_strategy(rise: Any, file: str, tmp_path: Path) -> None:
    saved = tmp_path / "f.json"
    first = rise("derive", file, "f", "--size", "n=7", "--save", str(saved))
    second = rise("derive", file, "f", "--size", "n=7", "--replay", str(saved), "--check")
    assert second.status == 0, second.err
    assert "all agree" in second.out
    assert first.out.splitlines()[0] + "   ✓ ∎" == second.out.splitlines()[0]
    assert second.err == ""


def test_a_program_that_changed_a_little(rise: Any, file: str, tmp_path: Path) -> None:
    saved = tmp_path / "f.json"
    rise("derive", file, "f", "--size", "n=7", "--save", str(saved))
    Path(file).write_text(PROGRAM.replace("x * 2", "x - 2"))
    called = rise("derive", file, "f", "--size", "n=7", "--replay", str(saved), "--check")
    assert called.status == 0, called.err
    assert "all agree" in called.out
    assert "note: the program has changed: 2 of 2 steps, from step 1 on" in called.err


def test_a_program_that_changed_too_much(rise: Any, file: str, tmp_path: Path) -> None:
    """The message has number, rule, place, reason, and both terms."""
    saved = tmp_path / "f.json"
    rise("derive", file, "f", "--size", "n=7", "--save", str(saved))
    Path(file).write_text(PROGRAM.replace("|> map(fun(x => x + 1)) ", ""))
    called = rise("derive", file, "f", "--size", "n=7", "--replay", str(saved))
    assert called.status == 1
    message = called.err.splitlines()
    assert re.search(
        r"program.rise:3:3: error R0607: step 2 of 2, `reduceSeqMap` at 0, no longer applies: "
        r"expected `map`, found `xs`", message[0],
    )  # fmt: skip
    assert "note: when it was saved, the term there was `xs |> map(x => x * 2) |> reduceSeq(" in called.err
    assert "now it is `xs |> reduceSeq(Local)((acc, x) => acc + x * 2, 0)`" in called.err


def test_a_place_that_is_no_longer_there() -> None:
    term = program(PRODUCT)
    steps = read(json.dumps(described(term, derived(SMALL, term))))
    with pytest.raises(StrategyError) as caught:
        replay(program("def f = fun(x: i32 => x)"), steps)
    assert caught.value.code == "R0607"
    assert "step 1 of" in caught.value.message
    assert "no such part" in caught.value.message


def test_sizes_that_no_longer_divide() -> None:
    term = program(PRODUCT)
    steps = read(json.dumps(described(term, derived(SMALL, term))))
    with pytest.raises(StrategyError, match="32 does not divide 80") as caught:
        replay(program(PRODUCT.replace("64.64.f16,", "80.64.f16,")), steps)
    assert "`tile`" in caught.value.message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("[]", "should be an object"),
        ("{}", "its format is None"),
        ('{"format": "other"}', "its format is 'other'"),
        (f'{{"format": "{FORMAT}", "version": 99}}', "its version is 99, and this program reads version 1"),
        (f'{{"format": "{FORMAT}", "version": 1, "steps": [{{"rule": "x"}}]}}', "it has no `before`"),
    ],
)
def test_a_file_that_is_no_derivation(rise: Any, file: str, tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(text)
    assert caught.value.code == "R0608"
    assert reason in caught.value.message
    saved = tmp_path / "f.json"
    saved.write_text(text)
    assert rise("derive", file, "f", "--size", "n=7", "--replay", str(saved)).status == 2


def test_a_file_that_is_not_there(rise: Any, file: str) -> None:
    called = rise("derive", file, "f", "--size", "n=7", "--replay", "missing.json")
    assert called.status == 2
    assert "error R0001" in called.err


def test_a_rule_that_is_not_there() -> None:
    assert rule_named("mapFusion") is MAP_FUSION
    with pytest.raises(StrategyError, match="there is no rule `mapFussion`") as caught:
        rule_named("mapFussion")
    assert caught.value.hint is not None
    assert "mapFusion" in caught.value.hint


def test_parameters_of_steps_are_kept() -> None:
    made = rule_named("splitJoin").with_sizes(n=3)
    term = program("def f = fun(xs: 12.i32 => xs |> map(fun(x => x + 1)))")
    success = derived(top_down(made), term)
    steps = read(json.dumps(described(term, success)))
    assert steps[0].parameters == {"n": 3}
    assert alpha_equal(replay(term, steps).success.term, success.term)


# --- checking -----------------------------------------------------------------------------------------


def test_a_wrong_rule_in_the_middle_is_named(rise: Any, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that says f after g is g after f, between two right ones."""
    wrong = rule("swapped, for tests", "xs |> map(f) |> map(g)", "xs |> map(fun(x => f(g(x))))")
    monkeypatch.delitem(RULES, "swapped, for tests")
    nothing = normalize(choice(rule_named("mapIdentity")))
    lowering = top_down(rule_named("reduce → reduceSeq"))
    monkeypatch.setattr("rise.cli.derive.chosen_strategy", lambda _: seq(lowering, nothing, top_down(wrong)))
    called = rise("derive", file, "f", "--size", "n=7", "--check")
    assert called.status == 1
    assert "step 2, `swapped, for tests`, changes the result" in called.out
    assert "   1. reduce → reduceSeq   at 0   ✓ ∎" in called.out
    assert "CHANGES THE RESULT" in called.out


# --- the structure of results -------------------------------------------------------------------------


def test_structure_counts_primitives() -> None:
    result = derived(SMALL, program(PRODUCT)).term
    assert_structure(result, mapBlock=2, tensorMatMulAdd=1, reduceSeqUnroll=1, reduce=0)
    assert structure(result)["generateFragment"] == 1
    with pytest.raises(AssertionError, match="mapBlock: 2, not 3; reduce: 0, not 1"):
        assert_structure(result, mapBlock=3, reduce=1)
    with pytest.raises(AssertionError, match="mapBlock: 2, not 1"):
        assert_structure(result, mapBlock=1)


# --- the documentation --------------------------------------------------------------------------------


def test_the_documentation_says_what_happens(
    rise: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each `console` block of docs/derivations.md is run; `…` stands for lines that are left out."""
    text = (ROOT / "docs" / "derivations.md").read_text(encoding="utf-8")
    program_text = re.search(r"```rise\n(.*?)```", text, re.DOTALL)
    assert program_text is not None
    monkeypatch.chdir(tmp_path)
    Path("sums.rise").write_text(program_text[1])
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            if command.startswith("sed "):
                old, new = re.search(r"s/(.*)/(.*)/", command).groups()  # type: ignore[union-attr]
                Path("sums.rise").write_text(Path("sums.rise").read_text().replace(old, new))
                continue
            called = rise(*command.split()[1:])
            _same_lines(expected, called.out + called.err, command)


def _same_lines(expected: str, printed: str, command: str) -> None:
    pattern = r"(?:.*\n)*?".join(re.escape(part) for part in expected.split("…\n"))
    assert re.search(pattern, printed), f"{command}\n{printed}"


def test_the_program_after_a_replay_means_the_same() -> None:
    term = program(PRODUCT)
    steps = read(json.dumps(described(term, derived(SMALL, term))))
    assert_equivalent(term, replay(term, steps).success.term, seeds=(0,))
    assert show(term)
