"""Which program it is: a digest that names, places, the order of inputs and maps of maps do not change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from rewrites.algorithmic import MAP_FUSION
from rewrites.result import Success
from rise.canonical import canonical
from rise.expr import Expr, Identifier, Lambda, children
from rise.normal import data_flow
from strategies.core import normalize

NONE: frozenset[str] = frozenset()


def identity(program: Expr) -> str:
    """16 hexadecimal digits. Programs have the same that differ in names, or in the order of their inputs.

    A function of the elements of `A·B` is that function of its sums: `A·B |> map(map(f16))` is `f16(dot)`.

    A kernel that is cut from a program takes its inputs in another order than a definition of the same
    product, and what is remembered of that is right for it, too.
    """
    return hashlib.sha256(canonical(_inputs_by_use(_fused(data_flow(program)))).encode()).hexdigest()[:16]


def _fused(program: Expr) -> Expr:
    """The program without maps of maps."""
    fused = normalize(MAP_FUSION)(program)
    return fused.term if isinstance(fused, Success) else program


def _inputs_by_use(program: Expr) -> Expr:
    """The program with its inputs in the order in which the body first uses them; unused ones come last."""
    inputs: dict[str, Lambda] = {}
    body = program
    while isinstance(body, Lambda) and body.parameter.name not in inputs:
        inputs[body.parameter.name] = body
        body = body.body
    order = dict.fromkeys((*(name for name in _uses(body) if name in inputs), *inputs))
    for name in reversed(order):
        body = Lambda(inputs[name].parameter, body, inputs[name].origin)
    return body


def _uses(term: Expr, bound: frozenset[str] = NONE) -> Iterator[str]:
    """The names of free variables, each as often as it occurs: from left to right, as a program prints."""
    if isinstance(term, Identifier):
        if term.name not in bound:
            yield term.name
        return
    inside = bound | {term.parameter.name} if isinstance(term, Lambda) else bound
    # `f(x)` prints as `x |> f`
    for child in reversed(children(term)):
        yield from _uses(child, inside)
