"""What `rise rules` and docs/rules.md show of the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from rewrites.examples import example
from rewrites.library import modules, places, rules
from rewrites.proofs import mark
from rewrites.rule import Computed, Rule
from rise.check.program import check_expression
from rise.cli.main import main
from rise.cli.rules import SYMBOLS, equation, escaped, items, listed, markdown, uses
from rise.expr import Apply, Expr, Identifier, Lambda, alpha_equal, children
from rise.normal import simplify
from rise.testing.rewriting import replaced
from strategies.guided.rules import laws
from tests.support.nightly import every_other

DOCUMENT = Path(__file__).parents[2] / "docs" / "rules.md"


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["rules", *arguments]) == 0
    return capsys.readouterr().out


def test_of_one_rule_only_its_equation_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def counted(rule: Rule | Computed) -> str:
        asked.append(rule.name)
        return equation(rule)

    monkeypatch.setattr("rise.cli.rules.equation", counted)
    assert "mapFusion" in said(capsys, "mapFusion")
    assert asked == ["mapFusion"]


def test_the_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == markdown(), "python -m rise.cli.rules > docs/rules.md"


def test_the_document_has_every_rule() -> None:
    names = re.findall(r"^\* \*\*(.+?)\*\*: ", DOCUMENT.read_text(encoding="utf-8"), re.M)
    assert names == [escaped(name) for name in rules()]


def test_every_rule_says_what_it_means() -> None:
    """In a sentence, beside its equation."""
    assert not [name for name, rule in rules().items() if not re.fullmatch(r"\S.*\.", rule.meaning)]


def test_all_rules_are_listed_with_their_equations_by_file(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys)
    assert text.strip() == listed(items())
    groups = [line.split(":")[0] for line in text.splitlines() if line and line[0] != " "]
    assert groups == list(dict.fromkeys(module for module, _ in places().values()))
    for made in rules().values():
        assert f"  {SYMBOLS[mark(made)]} {made.name}:  {equation(made)}" in text


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "splitJoin",
            (
                "→ xs |> split(n) |> map(b => b |> map(f)) |> join",
                "of type (m*n).s, where f: t -> s, xs: (m*n).t",
                "splitJoin  (parameters: n)",
            ),
        ),
        (
            "roundUp *f",
            (
                "only if f is total. It is applied to elements that nothing defines; they are dropped later.",
                "roundUp *f  (parameters: p)",
            ),
        ),
        ("blockReduce", ("Changes the order of sums: floats may be rounded differently.",)),
        (
            "mapFusion",
            (
                "Two maps as one.",
                "xs |> map(f) |> map(g)",
                "declared in rewrites.algorithmic, in MAP_FUSION",
            ),
        ),
        (
            "idxReduction",
            ("idx(i)(makeArray(n)(x1, …, xn)) → xi, i a number", "An element of listed values."),
        ),
    ],
)
def test_one_rule_in_full(capsys: pytest.CaptureFixture[str], name: str, lines: tuple[str, ...]) -> None:
    text = said(capsys, name)
    for line in lines:
        assert line in text


def test_an_example_shows_the_sizes_at_work() -> None:
    made = example(rules()["slideOverlap"])
    assert made is not None
    assert re.fullmatch(r"xs \|> slide\(\d+, \d+\)", made.before)
    assert re.fullmatch(r"xs \|> slide\(\d+, \d+\) \|> map\(slide\(\d+, \d+\)\) \|> join", made.after)
    assert re.fullmatch(r"xs: [\d.]+\.\w+", made.names)


def test_every_rule_has_an_example() -> None:
    assert [name for name, rule in every_other(rules().items()) if example(rule) is None] == []


def test_examples_are_always_the_same() -> None:
    for made in list(rules().values())[::40]:
        assert example(made) == example(made)


def test_where_a_rule_is_used() -> None:
    assert "normal_forms.FUSE" in uses()["mapViewFusion"]
    assert "default.written" in uses()["mapNothing"]
    assert any(place.startswith("normal_forms.") for place in uses()["dropUnused"])


def test_only_rules_are_used() -> None:
    assert set(uses()) <= set(rules())


def test_every_file_of_rules_says_what_it_is_about() -> None:
    assert all((module.__doc__ or "").strip().endswith(".") for module in modules().values())


def test_every_rule_is_in_a_strategy_or_a_law_of_a_set() -> None:
    """What no strategy uses is found by the name of its file, and the page says how many these are."""
    sets = {name: laws(name) for name in modules()}
    assert all(sets[places()[name][0]].name == places()[name][0] for name in rules())
    unused = rules().keys() - uses().keys()
    assert f"{len(unused)} are in no strategy" in markdown()
    term = check_expression("fun(xs: 3.4.f32 => xs |> transpose |> transpose)")
    assert isinstance(term, Lambda)
    made = [move.attempt(term.body) for move in sets["movement"].moves(term.body)]
    assert any(result is not None and result.term == Identifier("xs", term.parameter.type) for result in made)


def test_no_rule_is_another_one_at_a_place_inside() -> None:
    """A tenth of the rules, by the day: `map(f)` of both sides of a rule would be no rule of its own."""
    every = [rule for rule in rules().values() if isinstance(rule, Rule)]
    tenth = every[date.today().toordinal() % 10 :: 10]
    assert len(tenth) > 30
    for rule in tenth:
        for place, part in subterms_with_places(rule.lhs):
            others = (other for other in every if other is not rule and other.head in (None, _head(part)))
            for other in others:
                made = other.attempt(part)
                if made is not None and not any(step.constraints for step in made.steps):
                    whole = simplify(replaced(rule.lhs, place, made.term))
                    assert not alpha_equal(whole, simplify(rule.rhs)), f"`{rule.name}` is `{other.name}`"


def _head(part: Expr) -> object:
    return part.head if isinstance(part, Apply) else None


def subterms_with_places(term: Expr, place: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Expr]]:
    yield place, term
    for number, child in enumerate(children(term)):
        yield from subterms_with_places(child, (*place, number))
