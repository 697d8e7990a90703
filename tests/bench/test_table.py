"""Tables say what they mean: combinations, restrictions, mistakes by name; the shipped ones hold together."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import baselines
from bench.interpreted import operation as operation_named
from bench.signature import Signature
from bench.table import Case, find, known, restrict, selects
from rise.errors import UsageError
from strategies.registry import find as strategy

TEXT = """
title = "two programs"
[[programs]]
file = "some.rise"
definition = "first"
operation = "gemm"
sizes = [{ m = 64, n = 64, k = 64 }, { m = 128, n = 64, k = 32 }]
baselines = ["cublas", "torch"]
scalars = { alpha = 2 }
[[programs.candidates]]
strategy = "default"
[[programs.candidates]]
strategy = "tensor_core"
settings = { block = ["128,128,64", "64,64,64"], raster_group = ["0", "8"], stages = "3" }
[[programs]]
file = "some.rise"
definition = "second"
operation = "copy"
sizes = "sizes.csv"
limit = "copy"
candidates = "tried.toml"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "two.toml").write_text(TEXT)
    (tmp_path / "sizes.csv").write_text("n\n7\n1024\n")
    (tmp_path / "tried.toml").write_text('[[candidates]]\nstrategy = "default"\n')
    return tmp_path


def refused(action: object, *texts: str) -> None:
    with pytest.raises(UsageError) as error:
        action()  # type: ignore[operator]
    for text in texts:
        assert text in error.value.render()


def test_a_table_is_read(folder: Path) -> None:
    table = find("two", folder)
    first, second = table.subjects
    assert [str(c) for c in first.candidates] == [
        "default",
        "tensor_core block=128,128,64 raster_group=0 stages=3",
        "tensor_core block=128,128,64 raster_group=8 stages=3",
        "tensor_core block=64,64,64 raster_group=0 stages=3",
        "tensor_core block=64,64,64 raster_group=8 stages=3",
    ]
    assert first.scalars == {"alpha": 2.0}
    assert (first.limit, second.limit, first.mode) == ("tensor", "copy", "graph")
    assert [c.key for c in table.cases][-2:] == ["second n=7", "second n=1024"]
    assert [str(c) for c in second.candidates] == ["default"]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('operation = "copy"', 'opreation = "copy"', "`opreation` means nothing here"),
        ('definition = "second"', "", "no `definition`"),
        ('limit = "copy"', 'limit = "speed"', "tensor or copy"),
        ('stages = "3"', "stages = 3", "settings are texts"),
        ("m = 64, n = 64", 'm = "x", n = 64', "sizes are numbers"),
        ('strategy = "default"', 'name = "default"', "a candidate has a `strategy`"),
        ("[[programs]]", "[[programs", "two.toml"),
    ],
)
def test_what_a_table_cannot_say_is_named(folder: Path, old: str, new: str, text: str) -> None:
    (folder / "two.toml").write_text(TEXT.replace(old, new))
    refused(lambda: find("two", folder), "R0861", text)


def test_an_unknown_table_is_named_with_those_there_are(folder: Path) -> None:
    refused(lambda: find("tow", folder), "R0860", "`two`")


def test_sizes_that_are_missing_are_named(folder: Path) -> None:
    (folder / "sizes.csv").unlink()
    refused(lambda: find("two", folder), "R0001", "sizes.csv")


@pytest.mark.parametrize(
    ("text", "chosen"),
    [("64", True), ("64x64x64", True), ("m=64", True), ("k=32", False), ("64x64", False), ("128", False)],
)
def test_a_text_selects_sizes(text: str, chosen: bool) -> None:
    assert selects(text, {"m": 64, "n": 64, "k": 64}) is chosen


def test_a_table_is_restricted(folder: Path) -> None:
    table = find("two", folder)
    assert [c.key for c in restrict(table, ["64", "n=7"]).cases] == ["first m=64 n=64 k=64", "second n=7"]
    assert len(restrict(table, limit=1).cases) == 2
    (only,) = restrict(table, only=["tensor_core", "torch"]).subjects
    assert len(only.candidates) == 4
    assert only.baselines == ("torch",)
    (second,) = restrict(table, only=["second"]).subjects
    assert len(second.candidates) == 1
    (both,) = restrict(table, only=["first", "cublas"]).subjects
    assert (both.candidates, both.baselines) == ((), ("cublas",))
    refused(lambda: restrict(table, ["65"]), "R0862", "`65`")
    refused(lambda: restrict(table, only=["cubals"]), "R0862", "`cublas`")


# --- the tables that are shipped ------------------------------------------------------------------------


@pytest.mark.parametrize("name", known())
def test_a_shipped_table_holds_together(name: str) -> None:
    """Programs check, take what their operation takes, strategies have the settings, baselines exist."""
    for subject in find(name).subjects:
        signature = Signature.of(Case(subject, subject.sizes[0]))
        assert signature.bytes > 0
        operation = operation_named(subject.operation)
        assert operation.terms(subject.sizes[0]) > 0
        for baseline in subject.baselines:
            baselines.find(baseline, subject.operation)
        for candidate in subject.candidates:
            strategy(candidate.strategy).make(dict(candidate.settings))


def test_the_shipped_tables_have_the_sizes_of_the_papers() -> None:
    counts = {name: len(find(name).cases) for name in known()}
    assert counts["rise_gemm"] == 13
    assert counts["square"] == 61
    assert counts["volta"] == 100
    assert counts["batched"] == 49
    for name in known():
        keys = [case.key for case in find(name).cases]
        assert len(keys) == len(set(keys)), name


def test_a_baseline_that_an_operation_has_not_is_named() -> None:
    refused(lambda: baselines.find("cublas", "softmax"), "R0861", "`torch`")
