"""Programs with a redex planted: the rule applies somewhere in them, and keeps their value."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import Phase, given, settings

import rewrites.algorithmic
import rewrites.movement  # noqa: F401  # each import declares rules
from rewrites.result import Success
from rewrites.rule import RULES
from rise.expr import Expr
from rise.normal import data_flow
from rise.testing import assert_preserves, programs, redex
from rise.verify import verify
from strategies.core import top_down

# with the sizes that the left side does not determine
PLANTED = {"mapFusion": {}, "splitJoin": {"n": 1}, "T >> T": {}, "S >> J": {}, "zip(*f, ) >> *g": {}}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_redex_is_found(name: str) -> None:
    rule, met = RULES[name], Counter[bool]()
    strategy = top_down(rule.with_sizes(**PLANTED[name]))

    @settings(max_examples=25, derandomize=True, phases=[Phase.generate])
    @given(programs(planted=redex(rule)))
    def preserves(program: Expr) -> None:
        verify(program)
        assert not program.free
        applies = isinstance(strategy(data_flow(program)), Success)
        met[applies] += 1
        if applies:
            assert_preserves(strategy, program)

    preserves()
    assert met[True] >= 0.8 * met.total(), met
