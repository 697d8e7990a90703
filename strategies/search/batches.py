"""Which programs are batches of small products, for which a block takes several of them at a time."""

from __future__ import annotations

from rewrites.result import Success
from rise.expr import Expr
from strategies.search.choice import Choice, Search, problem_of
from strategies.search.space import Point

LARGEST = 128  # rows, columns and depth of products
WHY = "a batch of small products"


def batched(search: Search, program: Expr) -> tuple[Choice, Success] | None:
    """The kernel of a closed program that is a batch of small products; None where it is none."""
    problem = problem_of(program)
    if problem is None or problem.batch == 1 or max(problem.m, problem.n, problem.k) > LARGEST:
        return None
    point = Point.of("batch", {})
    result = search.attempt(point, program)
    return (Choice(point, WHY), result) if isinstance(result, Success) else None
