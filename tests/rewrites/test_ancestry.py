"""What rules make goes back to the parts that they matched: the maps, sums and functions of the program."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from rewrites.ancestry import ancestors, part_of
from rewrites.derivation import part_at
from rewrites.library import rules
from rewrites.rule import COMPUTED, Rule
from rise.check.program import check_text
from rise.cli.origins import explained
from rise.cli.stages import Subject
from rise.expr import Apply, Primitive, spine, subterms
from rise.normal import data_flow
from rise.pretty import show
from rise.source import place
from strategies.matmul.tensor_core import tensor_core
from tests.support.programs import succeeded

PRODUCT = """\
def f(A: 64.64.f16, B: 64.64.f16) =
  A |> map(row =>
    B |> transpose |> map(col =>
      zip(row)(col) |> map((a, b) => f32(a) * f32(b)) |> reduce(+, 0)))
"""
RULES = [rule for rule in rules().values() if isinstance(rule, Rule)]


MAP = "xs |> map(x => f(x))"
LIFTED = "xs |> map(x => h(x) |> reduceSeq(Local)((acc, y) => g(x, acc, y), z(x)))"


@pytest.mark.parametrize(
    ("name", "made", "before"),
    [
        ("*f >> S", "b |> map(x => f(x))", MAP),
        ("*f >> S", "xs |> split(n) |> map(b => b |> map(x => f(x)))", MAP),
        ("*f >> S", "xs |> split(n)", f"{MAP} |> split(n)"),
        ("map → mapWarp", "xs |> mapWarp(x => f(x))", MAP),
        # the sum that was in a map, and the map around it
        ("liftReduce", "xs |> map(x => z(x))", LIFTED),
        ("liftReduce", "xs |> map(x_1 => h(x_1)) |> transpose |> reduceSeq", LIFTED.split("=> ", 1)[1][:-1]),
    ],
)
def test_a_part_goes_back_to_the_call_of_its_pattern_or_of_its_variables(
    name: str, made: str, before: str
) -> None:
    rule = rules()[name]
    assert isinstance(rule, Rule)
    paths = ancestors(rule.lhs, rule.rhs)
    texts = {
        _plain(show(part)): _plain(show(part_of(rule.lhs, paths[id(part)])))
        for part in subterms(rule.rhs)
        if isinstance(part, Apply) and id(part) in paths
    }
    found = {texts[after] for after in texts if after == made or after.startswith(f"{made}(")}
    assert found == {before}


def _plain(text: str) -> str:
    """On one line, and open sizes as `n`."""
    return re.sub(r"\?\d+", "n", " ".join(text.split()))


def test_every_path_leads_to_a_call_of_the_left_side() -> None:
    finer = 0
    for rule in RULES:
        found = ancestors(rule.lhs, rule.rhs)
        assert found.keys() <= set(map(id, subterms(rule.rhs)))
        for path in found.values():
            part = part_at(rule.lhs, path)
            assert isinstance(part, Apply), rule.name
            assert isinstance(spine(part)[0], Primitive)
            finer += path != ()
    assert finer > 100


def test_a_law_of_any_term_goes_back_to_the_term() -> None:
    rule = rules()["T >> T, introduced"]
    assert isinstance(rule, Rule)
    assert ancestors(rule.lhs, rule.rhs) == {}


def test_what_a_rule_makes_has_the_places_of_what_it_matched() -> None:
    term = data_flow(check_text("def f(xs: 8.f32) = xs |> map(exp) |> split(4)")["f"].body)
    body = part_at(term, (0,))
    assert body is not None
    success = succeeded(rules()["*f >> S"](body))
    places = {_plain(show(t)): place(t.origin) for t in subterms(success.term) if isinstance(t, Apply)}
    inner = places["b |> map(x => exp(x))"]
    outer = places["xs |> split(4)"]
    assert inner is not None and inner.text == "xs |> map(exp)"
    assert outer is not None and outer.text == "xs |> map(exp) |> split(4)"


def test_the_lines_of_a_product_lead_to_its_maps_and_to_its_sum() -> None:
    chosen = Subject(check_text(PRODUCT, "program.rise")["f"], {})
    success = succeeded(tensor_core(block=(32, 32, 32), warp=(16, 16))(data_flow(chosen.program)))
    made = explained(chosen, success)
    lines = [origin.source for path in made.paths if path is not None for origin in [made.origins[path]]]
    counted = Counter(source.removeprefix("program.rise:") for source in lines)
    assert set(counted) >= {"2:3", "3:5", "4:7"}  # rows, columns, and the sum
    assert max(counted.values()) < 0.7 * len(lines)


def test_what_computed_rules_build_has_the_places_of_the_program() -> None:
    """Also what they write as a text in the language, whose places say nothing to a reader."""
    seen = 0
    for rule in COMPUTED.values():
        for text in rule.instances[:1]:
            term = data_flow(check_text(f"def f = {text}", "f.rise")["f"].body)
            for success in (found for part in subterms(term) if (found := rule.attempt(part)) is not None):
                places = [place(part.origin) for part in subterms(success.term)]
                assert all(span is not None and span.source.name == "f.rise" for span in places), rule.name
                seen += 1
    assert seen > 50
