"""Checked sides of rules, kept between runs: the same as when checked again, never those of other texts."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewrites import checked
from rewrites.library import rules
from rewrites.rule import Rule, Sides
from rise.kept import keep
from rise.pretty import show
from rise.primitives.declare import REGISTRY, primitive

SEED = 20261126
NAME = "test rule"
TEXT: tuple[str, str, dict[str, str]] = ("xs |> map(f)", "xs", {})
Run = Callable[[], list[str]]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Forgets what this run knows of a folder that was empty at first, and lists the files there."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(atexit, "register", lambda *_: None)

    def begin() -> list[str]:
        for memory in (checked._known, checked._new, checked._sources):
            memory.cache_clear()
        return [path.name for path in tmp_path.rglob("*.checked")]

    begin()
    yield begin
    monkeypatch.undo()
    for memory in (checked._known, checked._sources):
        memory.cache_clear()


def end() -> None:
    """What a run does at its end."""
    keep(checked._place(), checked._every)


def made(text: object = TEXT, name: str = NAME) -> tuple[Any, bool]:
    """The sides of a rule, and whether it was checked."""
    calls: list[object] = []

    def check() -> object:
        calls.append(text)
        return (primitive("map"), text)

    return checked.once(name, text, check), bool(calls)


def test_what_is_read_is_what_checking_gives(runs: Run) -> None:
    """Of some rules, which differ from seed to seed."""
    found = [rule for rule in rules().values() if isinstance(rule, Rule)][SEED % 8 :: 8]
    print(f"seed {SEED}")
    for rule in found:
        same(rule.name, checked.read(checked.written(rule.declared._check())), rule.declared.sides())
    assert len(checked._new()) > len(found) / 2 > 25, "most rules of the library wait for their first use"


def same(name: str, one: Sides, other: Sides) -> None:
    assert (one.lhs, one.rhs, one.sizes) == (other.lhs, other.rhs, other.sizes), name
    assert (one.asks, one.open, one.head) == (other.asks, other.open, other.head), name
    assert (one.lhs.type, one.rhs.type) == (other.lhs.type, other.rhs.type), name
    assert (show(one.lhs), show(one.rhs)) == (show(other.lhs), show(other.rhs)), name
    assert sorted(one.ancestors.values()) == sorted(other.ancestors.values()), name
    assert one.lhs.origin == other.lhs.origin, name


def test_the_next_run_checks_no_rule_again(runs: Run) -> None:
    first = made()
    assert first[1]
    end()
    assert len(runs()) == 1
    assert made() == (first[0], False)
    assert made(name="another rule")[1]
    end()
    runs()
    assert not made()[1] and not made(name="another rule")[1], "what other runs keep stays"


@pytest.mark.parametrize("change", ["text", "kinds", "primitive", "signature", "source", "damage"])
def test_what_a_rule_is_made_of_is_checked_again(
    runs: Run, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made()
    end()
    runs()
    text: Any = TEXT
    match change:
        case "text":
            text = ("xs |> map(g)", "xs", {})
        case "kinds":
            text = (*TEXT[:2], {"n": "nat"})
        case "primitive":  # `f` would be one, and no variable
            monkeypatch.setitem(REGISTRY, "f", primitive("map"))
        case "signature":
            monkeypatch.setitem(REGISTRY, "id", replace(primitive("id"), signature="{t: data} -> t -> t"))
        case "source":
            monkeypatch.setattr(checked, "SOURCES", (".py",))
        case "damage":
            (path,) = tmp_path.rglob("*.checked")
            content = bytearray(path.read_bytes())
            content[-9] ^= 1
            path.write_bytes(bytes(content))
    assert made(text)[1]


def test_nothing_is_kept_where_bytecode_is_not(runs: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert made()[1]
    end()
    assert not runs()
