"""What a result is compared with is what the program means: every operation against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from bench import columns, evaluations, fused, nested, pairs
from bench.data import integers, normal
from bench.interpreted import operation
from bench.operations import OPERATIONS, bound
from bench.signature import Signature
from bench.table import Case, Source, Subject
from rise.check.program import load
from rise.check.specialise import specialise
from rise.errors import UsageError
from rise.interpret import call
from tests.bench.operations import PROGRAMS
from tests.support.nightly import in_turn


def test_every_operation_is_tested() -> None:
    rooms = (fused, nested, columns, pairs, evaluations)
    assert set(PROGRAMS) == {*OPERATIONS, *(name for room in rooms for name in room.OPERATIONS)}


@pytest.mark.parametrize(("name", "whole_numbers"), in_turn(PROGRAMS, [True, False]))
def test_an_operation_is_what_its_program_means(name: str, whole_numbers: bool) -> None:
    file, definition, sizes = PROGRAMS[name]
    op = operation(name)
    case = Case(
        Subject(Source(file), definition, name, (sizes,), (), scalars={"alpha": 1.5, "beta": 0.5}), sizes
    )
    signature, terms = Signature.of(case), op.terms(sizes)
    patterns = [
        part.value if not part.shape
        else integers(part.shape, part.dtype, seed, terms, op.whole) if whole_numbers
        else normal(part.shape, part.dtype, seed)
        for seed, part in enumerate(signature.inputs)
    ]  # fmt: skip
    inputs = [
        np.float32(p) if isinstance(p, float) else np.resize(p.numbers, p.size).reshape(p.shape)
        for p in patterns
    ]
    wanted = np.asarray(call(specialise(load(file)[definition], sizes), *inputs)).reshape(
        signature.output.shape
    )
    expected = op.expected(patterns, np.ix_(*(np.arange(size) for size in signature.output.shape)))
    assert expected.values.shape == wanted.shape
    allowed = bound(expected, terms, wanted.dtype)
    assert (np.abs(expected.values - wanted) <= allowed).all()
    largest = max(1.0, float(np.abs(wanted).max()))
    assert allowed.max() / largest < {np.dtype(np.float32): 1e-2, np.dtype(np.float16): 0.1}[wanted.dtype]
    if whole_numbers and op.exact:
        assert np.array_equal(expected.values, wanted.astype(np.float64))


def test_the_bound_catches_a_term_that_is_missing() -> None:
    """One product of 4096 left out, or counted twice, is beyond it nearly everywhere."""
    sizes = {"m": 8, "n": 8, "k": 4096}
    a = normal((8, 4096), np.dtype(np.float16), 0)
    b = normal((4096, 8), np.dtype(np.float16), 1)
    mesh = np.ix_(np.arange(8), np.arange(8))
    expected = OPERATIONS["matmul"].expected([a, b], mesh)
    missing = a.at(mesh[0], 17) * b.at(17, mesh[1])
    allowed = bound(expected, OPERATIONS["matmul"].terms(sizes), np.dtype(np.float32))
    assert (np.abs(missing) > allowed).mean() > 0.1


def test_an_unknown_operation_is_named() -> None:
    with pytest.raises(UsageError, match="R0861"):
        operation("gem")
