"""Programs with sizes that are open until launch, at given sizes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from codegen.execute import execute
from codegen.host.program import HostProgram
from rise.check.specialise import specialise
from rise.expr import Definition
from rise.interpret import call, random_inputs
from tests.support.kernels import parts


def assert_exact(made: HostProgram, subject: Definition, sizes: Mapping[str, int], seed: int = 0) -> None:
    """Bit for bit what the definition means at these sizes, which the shapes of the inputs tell."""
    meaning = specialise(subject, sizes)
    inputs = random_inputs(made.at(pick(made, sizes)).inputs, seed, exact=True)
    found, wanted = execute(made, inputs, "emulate", seed=seed), call(meaning, *inputs)
    for one, other in zip(parts(found), parts(wanted), strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert np.array_equal(one, other) or np.allclose(one, other, rtol=1e-14), sizes


def pick(made: HostProgram, sizes: Mapping[str, int]) -> dict[str, int]:
    return {size.name: sizes[size.name] for size in made.sizes}
