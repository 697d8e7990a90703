"""Mistakes in Python code of a user's own are shown as theirs: file, line, reason."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewrites.result import Success
from rewrites.rule import COMPUTED, RULES
from rise.errors import StrategyError
from strategies.core import at_child, choice, normalize, one, repeat, seq, some, strategy, top_down

PROGRAM = "def double = fun(xs: 8.f32 => xs |> map(fun(x => x + x)))\n"
OWN = """
from rewrites.rule import computed, rule
from strategies.core import seq, strategy, top_down
from strategies.default import default

def undefined():
    return seq(nothing_of_that_name)  # undefined

def divides():
    return strategy(lambda term: 1 / 0)  # divides

def three():
    return strategy(lambda term: 3)  # three

def made_of_three():  # made_of_three
    return 3

def sequence_of_three():
    return seq(3)  # sequence_of_three

def of_a_term(term):  # of_a_term
    return default()(term)

def recursive():
    def again(term):
        return again(term)  # recursive
    return strategy(again)

def leaves():
    raise SystemExit(0)  # leaves

def library():
    from strategies.loops.tiling import tile
    return tile("a", None)  # library

def condition():
    bad = rule("ownBadCondition", "xs |> map(f)", "xs |> map(f)",
               conditions=(lambda match: match.sizes["k"],))  # condition
    return top_down(bad)

def truth():
    yes = (lambda match: True,)  # truth
    return top_down(rule("ownTruth", "xs |> map(f)", "xs |> map(f)", conditions=yes))

def type_changer():
    @computed("ownTypes", "f(x) = f", ())  # type_changer
    def rewrite(term):
        return getattr(term, "function", "it applies nothing")
    return top_down(rewrite)
"""
CODES = {
    "undefined": "R0630", "divides": "R0630", "three": "R0631", "made_of_three": "R0631",
    "sequence_of_three": "R0631", "of_a_term": "R0631", "recursive": "R0630", "leaves": "R0630",
    "library": "R0630", "condition": "R0630", "truth": "R0631", "type_changer": "R0632",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_mistakes.py").write_text(OWN)
    (tmp_path / "p.rise").write_text(PROGRAM)
    for name, table in (("RULES", RULES), ("COMPUTED", COMPUTED)):  # what is declared here is forgotten
        monkeypatch.setattr(f"rewrites.rule.{name}", dict(table))
    yield tmp_path
    sys.modules.pop("own_mistakes", None)


def line(name: str) -> int:
    return next(n for n, text in enumerate(OWN.splitlines(), 1) if text.endswith(f"# {name}"))


@pytest.mark.usefixtures("own_rules")
@pytest.mark.parametrize("name", CODES)
def test_a_mistake_in_a_strategy_is_shown_where_it_is(rise: Any, folder: Path, name: str) -> None:
    command = ("derive", "run", "compile")[len(name) % 3]
    called = rise(command, "p.rise", "double", "--strategy", f"own_mistakes.py:{name}")
    assert called.status in (1, 2) and called.out == ""
    first = called.err.splitlines()[0]
    assert first.startswith(f"own_mistakes.py:{line(name)}:") and f"error {CODES[name]}: " in first, (
        called.err
    )
    assert "internal" not in called.err and "issue tracker" not in called.err


def test_a_mistake_of_the_compiler_stays_one(
    rise: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "own_right.py").write_text("from strategies.default import default as right\n")
    monkeypatch.setattr("rise.cli.derive.data_flow", lambda term: 1 / 0)
    called = rise("derive", "p.rise", "double", "--strategy", "own_right.py:right")
    assert called.status == 3 and "internal error: ZeroDivisionError" in called.err


@pytest.mark.parametrize("text", ["def f(:\n", "import nowhere_at_all\n", "raise SystemExit(0)\n", "1 / 0\n"])
def test_a_module_that_cannot_be_imported_is_shown_with_the_line(rise: Any, folder: Path, text: str) -> None:
    (folder / "own_broken.py").write_text(f"# first\n{text}")
    called = rise("run", "p.rise", "double", "--strategy", "own_broken.py:f")
    assert called.status == 2
    assert called.err.startswith("own_broken.py:2:1: error R0010: `own_broken.py` cannot be imported: ")


@pytest.mark.parametrize(
    "combined", [seq, choice, repeat, normalize, one, some, top_down, lambda s: lambda t: at_child(0, s, t)]
)
def test_every_combinator_sees_what_a_function_returns(combined: Any) -> None:
    from rise.check.program import check_expression

    term = check_expression("fun(xs: 4.f32 => xs |> map(fun(x => x + x)))")
    for wrong in (3, None, term, "text"):
        with pytest.raises(StrategyError) as refused:
            combined(lambda part, wrong=wrong: wrong)(term)
        assert refused.value.code == "R0631"
        assert refused.value.origin is not None


def test_what_is_no_function_is_no_strategy() -> None:
    with pytest.raises(StrategyError, match="3 is not a strategy"):
        strategy(3)  # type: ignore[arg-type]
    assert isinstance(strategy(Success).name, str)
