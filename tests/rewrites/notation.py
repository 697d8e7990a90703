"""Theorems about rules in three lines: program, rule, program."""

from __future__ import annotations

from collections.abc import Callable

from rewrites.library import rules
from rewrites.result import Failure, Result, Success
from rewrites.rule import Rule
from rise.expr import Expr, Lambda, alpha_equal
from rise.normal import data_flow
from rise.pretty import show
from rise.testing import assert_equivalent
from strategies.core import top_down
from tests.support.programs import program

Rewrite = Callable[[Expr], Result]


def body(term: Expr) -> Expr:
    """What is under the lambdas of a program's inputs."""
    while isinstance(term, Lambda):
        term = term.body
    return term


def the(name: str, **sizes: int) -> Rewrite:
    """The rule of that name, with values for its parameters."""
    made = rules()[name]
    return made.with_sizes(**sizes) if isinstance(made, Rule) and sizes else made


def rewrites_to(rule: Rewrite, before: str, after: str) -> None:
    """The rule, at the first place where it applies, gives the other program, up to βη."""
    start, wanted = program(before), program(after)
    result = top_down(rule)(start)
    assert isinstance(result, Success), result.reason
    assert alpha_equal(data_flow(result.term), wanted), show(result.term)
    assert_equivalent(start, result.term)


def refused(rule: Rewrite, text: str) -> str:
    """Why the rule does not apply to the body of a program."""
    result = rule(body(program(text)))
    assert isinstance(result, Failure), show(result.term)
    return result.reason
