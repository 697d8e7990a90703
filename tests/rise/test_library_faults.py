"""Faults seeded in the library: the properties of `test_testing.py` have to notice each of them."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings

from rise.expr import Expr, size
from rise.primitives.declare import primitive
from rise.testing import Counterexample
from tests.rise.faults import FAULTS, Fault, programs_for, seeded


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.what)
def test_a_fault_is_noticed(fault: Fault) -> None:
    alone, _ = programs_for(fault)
    examples = 0

    @settings(max_examples=600, derandomize=True, phases=[Phase.generate])
    @given(alone)
    def holds(program: Expr) -> None:
        nonlocal examples
        examples += 1
        fault.check(program)

    with seeded(fault), pytest.raises(Counterexample) as caught:
        holds()
    print(f"{fault.what}: {examples} programs")
    assert "captures" not in fault.what or examples < 100
    assert size(caught.value.term) > 0


def test_a_fault_is_gone_afterwards() -> None:
    before = primitive("slide").denotation
    slide = next(f for f in FAULTS if "slide" in (f.denotations or {}))
    with seeded(slide):
        assert primitive("slide").denotation is not before
    assert primitive("slide").denotation is before


def test_there_are_enough_faults() -> None:
    assert len({f.what for f in FAULTS}) == len(FAULTS) >= 15
