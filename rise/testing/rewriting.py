"""Strategies: replaying their steps, and evaluating before and after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from rise.check.program import check_expression
from rise.expr import Expr, children, with_children
from rise.normal import data_flow
from rise.pretty import show
from rise.testing.compare import assert_equivalent, differ
from rise.testing.shrink import Counterexample
from rise.verify import verify


def at(term: Expr, path: Sequence[int]) -> Expr:
    """The subterm at a path of child positions."""
    for index in path:
        term = children(term)[index]
    return term


def replaced(term: Expr, path: Sequence[int], new: Expr) -> Expr:
    """The term with another subterm at a path of child positions."""
    if not path:
        return new
    below = list(children(term))
    below[path[0]] = replaced(below[path[0]], path[1:], new)
    return with_children(term, tuple(below))


class RewriteStep(Protocol):
    """What a strategy records of one application of a rule."""

    @property
    def rule(self) -> str: ...
    @property
    def path(self) -> tuple[int, ...]: ...
    @property
    def before(self) -> Expr: ...
    @property
    def after(self) -> Expr: ...


def replayed(program: Expr, steps: Sequence[RewriteStep]) -> Iterator[tuple[RewriteStep, Expr]]:
    """Each step with the whole program after it; fails where a step is not at its place."""
    for number, step in enumerate(steps, 1):
        found = at(program, step.path)
        assert found == step.before, f"step {number}, `{step.rule}`, is not at {step.path}"
        program = replaced(program, step.path, step.after)
        yield step, program


def assert_preserves(
    strategy: Callable[[Expr], Any],
    program: Expr | str,
    *,
    seeds: Sequence[int] = (0,),
    each_step: bool = True,
) -> Expr:
    """The strategy applies to the program, and no step of it changes what is computed.

    Returns the new program. `each_step=False` compares beginning and end only. Raises AssertionError,
    with a smaller program for which the strategy is wrong, if there is one.
    """
    term = check_expression(program) if isinstance(program, str) else program
    start = data_flow(term)
    result = strategy(start)
    assert hasattr(result, "steps"), result.story()
    try:
        _assert_result(term, start, result, seeds, each_step)
    except AssertionError as problem:
        raise Counterexample(str(problem), term, _changes_value(strategy, seeds)) from problem
    changed: Expr = result.term
    return changed


def _changes_value(strategy: Callable[[Expr], Any], seeds: Sequence[int]) -> Callable[[Expr], bool]:
    def fails(term: Expr) -> bool:
        result = strategy(data_flow(term))
        return hasattr(result, "steps") and differ(term, result.term, seeds=seeds)

    return fails


def _assert_result(term: Expr, start: Expr, result: Any, seeds: Sequence[int], each_step: bool) -> None:
    last = start
    for step, last in replayed(start, result.steps):
        if each_step:
            _assert_step(term, step, last, seeds)
    assert last == result.term, "the steps do not lead to the result"
    verify(result.term)
    assert_equivalent(term, result.term, seeds=seeds)


def _assert_step(program: Expr, step: RewriteStep, current: Expr, seeds: Sequence[int]) -> None:
    try:
        verify(current)
        assert_equivalent(program, current, seeds=seeds)
    except Exception as problem:
        message = f"`{step.rule}` at {step.path}: {problem}\n  {show(step.before)}\n  {show(step.after)}"
        raise AssertionError(message) from problem
