"""Types of data, and inputs for them: small integers, or the floats that go wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rise.expr import Expr
from rise.interpret import dtype_of, random_inputs, shape_of
from rise.interpret.evaluate import free_identifiers
from rise.interpret.inputs import random_input, stored_as
from rise.nat import constant
from rise.testing.choose import Choose, choices
from rise.types import F16, F32, I32, Array, Data, Fragment, Function, Pair, Scalar, Type, Vector, as_data

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SIZES = (1, 2, 3, 4, 6)  # coprime ones, and equal ones by chance
SCALAR_TYPES = (I32, F32, F16)
Inputs = Mapping[str, Any]


def data_type(choose: Choose, depth: int = 2, scalars: Sequence[Data] = SCALAR_TYPES) -> Data:
    """A scalar, or (to the depth) an array or a pair."""
    form = choose.below(5) if depth else 0
    if form < 3:
        return choose.pick(scalars)
    if form == 3:
        size = constant(choose.pick(SIZES))
        return Array(size, data_type(choose, depth - 1, scalars))
    first = data_type(choose, depth - 1, scalars)
    return Pair(first, data_type(choose, depth - 1, scalars))


def data_types(depth: int = 2, scalars: Sequence[Data] = SCALAR_TYPES) -> SearchStrategy[Data]:
    """Types of data, nested to the depth."""
    return choices().map(lambda choose: data_type(choose, depth, scalars))


def types(
    parameters: int = 2, depth: int = 2, scalars: Sequence[Data] = SCALAR_TYPES
) -> SearchStrategy[Type]:
    """Types of data, and of functions of at most that many parameters."""

    def type_(choose: Choose) -> Type:
        made: Type = data_type(choose, depth, scalars)
        for _ in range(choose.below(parameters + 1)):
            made = Function(data_type(choose, depth, scalars), made)
        return made

    return choices().map(type_)


def inputs(type_: Type) -> SearchStrategy[Any]:
    """What a user passes for a parameter of a data type: small integers throughout."""
    from hypothesis.strategies import integers

    return integers(0, 2**16).map(lambda seed: random_inputs([("x", type_)], seed, exact=True)[0])


def exact_inputs(term: Expr, seed: int) -> dict[str, Any]:
    """Random small integers for the free identifiers of a term."""
    import numpy as np

    generator = np.random.default_rng(seed)
    return {i.name: random_input(i.type, generator, exact=True) for i in free_identifiers(term)}


# --- awkward numbers ------------------------------------------------------------------------------


def awkward_inputs(type_: Type) -> SearchStrategy[Any]:
    """Inputs with the numbers that go wrong: see `awkward_input`."""
    from hypothesis.strategies import integers

    return integers(0, 2**16).map(lambda seed: awkward_input(type_, seed))


def awkward_input(type_: Type, seed: int) -> Any:
    """NaN, infinities, zeros of both signs, denormals, halfway cases, the largest number; for integers
    the ends of their range. Half of the numbers are ordinary. Depends on the type and the seed only.
    """
    import numpy as np

    return _awkward(type_, (), np.random.default_rng(seed))


def _awkward(type_: Type, outer: tuple[int, ...], generator: Any) -> Any:
    import numpy as np

    if isinstance(type_, Array | Vector | Fragment):
        axes = 2 if isinstance(type_, Fragment) else 1
        return _awkward(type_.element, (*outer, *shape_of(type_)[:axes]), generator)
    if isinstance(type_, Pair):
        return _awkward(type_.first, outer, generator), _awkward(type_.second, outer, generator)
    ordinary = _ordinary(type_, outer, generator)
    if not isinstance(type_, Scalar):
        return ordinary
    special = generator.choice(awkward_numbers(type_).astype(object), outer)
    chosen = np.where(generator.integers(0, 2, outer) == 1, special, ordinary.astype(object))
    return stored_as(chosen, type_)


def _ordinary(type_: Type, outer: tuple[int, ...], generator: Any) -> Any:
    import numpy as np

    whole = as_data(type_)
    for size in reversed(outer):
        whole = Array(constant(size), whole)
    return np.asarray(random_inputs([("x", whole)], int(generator.integers(0, 2**31)), exact=True)[0])


def awkward_numbers(scalar: Scalar) -> Any:
    """The awkward numbers of a scalar type, as an array of it."""
    import numpy as np

    dtype = dtype_of(scalar)
    if scalar.name == "bool":
        return np.array([False, True])
    if not scalar.is_float:
        bounds = np.iinfo(dtype)
        return np.array([bounds.min, bounds.max, 0, 1, bounds.max - 1], dtype)
    import ml_dtypes

    about: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    epsilon, tiny, largest = (float(v) for v in (about.eps, about.smallest_subnormal, about.max))
    halfway = 1 + epsilon  # times 1 + epsilon/2, and added to small numbers, this lies between two
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, float(about.tiny), largest, -largest]
    rounding = [halfway, 1 / epsilon + 1, epsilon / 2, 0.5, 1.5, 2.5]
    return stored_as(np.array(special + rounding, np.float64), scalar)
