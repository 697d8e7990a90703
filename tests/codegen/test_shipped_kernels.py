"""What the shipped strategies make of the examples compiles for every target, and nothing is spilled."""

from __future__ import annotations

import pytest

from codegen import runtime
from codegen.runtime import check_spills, resources
from rise.check.specialise import specialise
from rise.normal import data_flow
from tests.support.examples import (
    EXAMPLES,
    REFERENCES,
    REFUSED,
    SHIPPED,
    SIZES,
    TARGETS,
    Shipped,
    example,
    kernels,
    texts,
)
from tests.support.lines import coverage
from tests.support.nightly import every_other
from tests.support.programs import loaded

pytestmark = pytest.mark.skipif(not runtime.can_compile(), reason="there is no compiler for CUDA")


def compiles(text: str, target: str) -> None:
    """For a target, with all of its values in registers."""
    (found,) = resources(text, target).values()
    check_spills(found)
    assert 0 < found.registers <= 255


@pytest.mark.parametrize("shipped", every_other(SHIPPED), ids=str)
def test_a_strategy_makes_kernels_for_its_targets(shipped: Shipped) -> None:
    """And at least 95 % of its lines that do something are known to come from a part of the program."""
    term = example(shipped.file, shipped.name, SIZES if shipped.strategy == "tensor_core" else {})
    made = kernels(term, shipped.strategy, shipped.settings)
    known, lines = coverage(made)
    assert known >= 0.95 * lines > 0
    for kernel in made.kernels:
        for target in shipped.targets:
            compiles(kernel.source, target)


def test_examples_of_every_file_compile() -> None:
    """One of each file, by the default strategy; the targets take turns."""
    one_of_each = {file: name for file, name in sorted(REFERENCES) if (file, name) not in REFUSED}
    assert len(one_of_each) > 30
    for number, (file, name) in enumerate(one_of_each.items()):
        definition = loaded(EXAMPLES / file)[name]
        term = data_flow(specialise(definition, REFERENCES[file, name].sizes[-1]))
        for text in texts(term, "default", {}):
            compiles(text, TARGETS[number % len(TARGETS)])
