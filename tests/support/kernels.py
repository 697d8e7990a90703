"""Helpers: programs from text, their kernels, what a kernel consists of, and whether it computes the same."""

from __future__ import annotations

from functools import cache

import numpy as np

from codegen.emulation.emulator import Buffer, Emulation, emulate
from codegen.execute import execute
from codegen.ir import imperative as i
from codegen.ir.kernel import Kernel
from codegen.ir.tensor_maps import TensorBuffer
from codegen.pipeline import generate
from rise.check.specialise import inputs_of
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.types import Array
from strategies.default import default
from tests.support.programs import program, succeeded


@cache
def kernel(text: str) -> Kernel:
    """The kernel of a low-level program."""
    return generate(program(text), "f")


def emulated_exactly(term: Expr, made: Kernel, seed: int = 0) -> Emulation:
    """Runs a kernel, whose result has to be exact."""
    inputs = random_inputs(inputs_of(term), seed=7, exact=True)
    expected = call(term, *inputs)
    arrays = dict(zip([v.name for v in made.function.inputs], inputs, strict=True))
    arrays["output"] = np.zeros_like(expected)
    order = [v.name for v in (*made.function.outputs, *made.function.inputs)]
    arguments = [Buffer(name, arrays[name], initialised=name != "output") for name in order]
    maps = [TensorBuffer(m.name, arrays[m.buffer], m.map.at({})) for m in made.function.maps]
    x, y, z = (int(str(extent)) for extent in made.launch.grid)
    found = emulate(
        made.source, made.name, (x, y, z), made.launch.block, [*arguments, *maps], made.launch.shared_bytes,
        seed=seed,
    )  # fmt: skip
    assert np.array_equal(arrays["output"], expected)
    return found


def lowered(text: str, prelude: bool = False) -> Expr:
    return succeeded(default()(program(text, prelude))).term


def parts(value: object) -> list[np.ndarray]:
    """The arrays of a result, one after the other."""
    if isinstance(value, tuple):
        return [part for member in value for part in parts(member)]
    return [np.asarray(value)]


def agrees(made: Kernel, meaning: Expr, seed: int = 0) -> bool:
    """Whether a kernel gives bit by bit what the interpreter gives, on small whole numbers."""
    inputs = random_inputs(made.inputs, seed, exact=True)
    found, wanted = execute(made, inputs, "emulate", seed=seed), call(meaning, *inputs)
    return all(
        one.dtype == other.dtype and np.array_equal(one, other)
        for one, other in zip(parts(found), parts(wanted), strict=True)
    )


# --- what a kernel consists of --------------------------------------------------------------------------


def loops(made: Kernel) -> int:
    return sum(isinstance(c, i.For | i.ParallelFor) for c in i.commands(made.function.body))


def arrays(made: Kernel) -> list[str]:
    """The arrays that a kernel allocates."""
    return [
        c.name for c in i.commands(made.function.body) if isinstance(c, i.New) and isinstance(c.type, Array)
    ]
