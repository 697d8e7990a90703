"""The property of rules: where one applies, the type stays, and what is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rewrites.instances import sampled
from rewrites.result import Failure, Result
from rewrites.rule import Rule
from rise.expr import Expr, Primitive, subterms
from rise.interpret import evaluate
from rise.pretty import show
from rise.testing import Counterexample, Evidence, difference, exact_inputs, hiding
from rise.testing.choose import Drawn
from rise.testing.compare import differ_as_roundings
from rise.testing.rules import Instance
from rise.verify import verify

# what these give is not defined everywhere
UNDEFINED = frozenset({"padEmpty", "scatter", "scatterBy", "prefix", "prefixes"})


Rewrite = Callable[[Expr], Result]


def check(made: Instance, evidence: Evidence) -> None:
    """Applies the rule of an instance to its left side; a failure to apply is counted, with its reason."""
    evidence.examples += 1
    result = made.rule(made.left)
    if isinstance(result, Failure):
        evidence.refusals[result.reason] += 1
        return
    evidence.applied += 1
    verify(result.term)
    problem = disagreement(made.left, result.term, made.seed, made.sample.rule.rounds)
    if problem is not None:
        message = f"`{made.name}`: {problem}\n  {show(made.left)}\n  {show(result.term)}"
        raise Counterexample(message, made.left, _wrong(made))


def disagreement(left: Expr, right: Expr, seed: int, rounds: bool = False) -> str | None:
    """What is wrong with right in place of left. Elements that left does not define may be anything.

    rounds: whether results may differ as roundings do
    """
    if left.type != right.type:
        return f"the types differ: {left.type} and {right.type}"
    if not right.free <= left.free:
        return f"{sorted(right.free - left.free)} escapes"
    inputs = exact_inputs(left, seed)
    before, after = evaluate(left, inputs), evaluate(right, inputs)
    problem = difference(before, after)
    if rounds and differ_as_roundings(after, before, right):
        return None
    if problem and any(isinstance(part, Primitive) and part.name in UNDEFINED for part in subterms(left)):
        return difference(before, where_defined(before, after))
    return problem


def where_defined(before: Any, after: Any) -> Any:
    """After, with what is before where that is undefined: NaN, or the smallest integer."""
    if isinstance(before, tuple):
        return tuple(where_defined(b, a) for b, a in zip(before, after, strict=True))
    b, a = np.asarray(before), np.asarray(after)
    if b.dtype.kind == "b":
        return a
    undefined = b == np.iinfo(b.dtype).min if b.dtype.kind in "iu" else np.isnan(b)
    return np.where(undefined, b, a).astype(a.dtype)


def _wrong(made: Instance) -> Callable[[Expr], bool]:
    rounds = made.sample.rule.rounds

    def fails(term: Expr) -> bool:
        result = made.rule(term)
        applied = not isinstance(result, Failure)
        return applied and disagreement(term, result.term, made.seed, rounds) is not None

    return fails


def assert_sound(rule: Rule, examples: int, *, start: int = 0, by: Rewrite | None = None) -> Evidence:
    """Checks the instances from the seed `start` to `examples`. Raises Counterexample at a wrong one.

    by: what is applied to them in place of the rule
    """
    evidence = Evidence()
    for seed in range(start, examples):
        made = drawn(rule, seed)
        try:
            check(replace(made, rule=by or made.rule), evidence)
        except Exception as problem:
            problem.add_note(f"the instance is drawn(rule, {seed}) of `{rule.left} → {rule.right}`")
            raise
    return evidence


def drawn(rule: Rule, seed: int) -> Instance:
    """The instance of a seed. Three of four have binders that hide each other."""
    made = sampled(rule, seed)
    return replace(made, left=hiding(made.left, Drawn(seed))) if seed % 4 else made
