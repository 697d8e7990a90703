"""Inputs for the definitions of the examples, from the domains that their references name."""

from __future__ import annotations

from typing import Any

import numpy as np

from references.reference import Reference
from rise.check.specialise import inputs_of
from rise.expr import Expr
from rise.interpret import dtype_of, random_inputs
from rise.types import Array, Pair, Scalar, Type, arguments


def parameters_of(program: Expr) -> list[tuple[str, Type]]:
    """Names and types of the inputs, also of a program that is written without parameters."""
    named = inputs_of(program)
    types = arguments(program.type)[0]
    return [named[i] if i < len(named) else (f"argument {i}", type_) for i, type_ in enumerate(types)]


def inputs_for(program: Expr, reference: Reference, seed: int = 0) -> list[Any]:
    """Small whole numbers, or what the reference asks for."""
    parameters = parameters_of(program)
    unknown = set(reference.domains) - {name for name, _ in parameters}
    if unknown:
        raise KeyError(f"the reference has a domain for {sorted(unknown)}, which are no inputs")
    inputs = random_inputs(parameters, seed, exact=True)
    generator = np.random.default_rng(seed)
    for position, (name, type_) in enumerate(parameters):
        if name in reference.domains:
            inputs[position] = drawn(type_, reference.domains[name], generator)
    return inputs


def drawn(type_: Type, domain: Any, generator: np.random.Generator, shape: tuple[int, ...] = ()) -> Any:
    """An input from its domain: numbers of an interval, or what a function draws."""
    match type_:
        case Array(size, element):
            return drawn(element, domain, generator, (*shape, int(size.value)))  # type: ignore[arg-type]
        case Pair(first, second):
            return drawn(first, domain, generator, shape), drawn(second, domain, generator, shape)
    dtype = dtype_of(type_) if isinstance(type_, Scalar) else np.dtype(np.int64)
    if callable(domain):
        return np.asarray(domain(generator, shape)).astype(dtype)
    low, high = domain
    if dtype.kind == "f":
        return np.asarray(generator.uniform(low, high, shape)).astype(dtype)[()]
    return np.asarray(generator.integers(int(low), int(high) + 1, shape)).astype(dtype)[()]
