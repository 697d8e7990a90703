"""A rule as a problem, and what is found about it: a proof, a counterexample, or instances that agree."""

from __future__ import annotations

from dataclasses import dataclass

from rewrites.conditions import Converts
from rewrites.instances import sampled
from rewrites.result import Failure
from rewrites.rule import Computed, Rule
from rewrites.typed import instance
from rise.constraint import Constraint
from rise.errors import RiseError
from rise.expr import Expr, Identifier, Lambda, apply, substitute
from rise.interpret.evaluate import free_identifiers
from rise.nat import Atom, Nat, NatVariable, atom
from rise.normal import simplify
from rise.progress import stepwise
from rise.symbolic import Open, Problem, Proved, Refuted, examined, problem, prove
from rise.testing.rules import Evidence, check_instance
from rise.testing.shrink import Counterexample
from rise.types import Function

INSTANCES = 50


@dataclass(frozen=True)
class Tested:
    """No proof was found, for a reason; on so many instances, of so many drawn, both sides agree."""

    reason: str
    applied: int
    drawn: int


@dataclass(frozen=True)
class Wrong:
    """An instance on which the sides differ, as the property test of rules reports it."""

    counterexample: Counterexample


Verdict = Proved | Refuted | Wrong | Tested


def of_rule(rule: Rule) -> Problem:
    """Both sides, and what their types ask of the sizes.

    A function that has to be a conversion is one; other conditions in Python are left out.
    """
    sizes: dict[Atom, Nat] = {NatVariable(n): atom(u) for n, u in rule.sizes.items()}
    asks = [
        Constraint(ask.value.substitute(sizes), ask.divisor and ask.divisor.substitute(sizes))
        for ask in rule.sides.asks
        if isinstance(ask.value, Nat)
    ]
    conversions = {c.function for c in rule.conditions if isinstance(c, Converts)}
    values = {i.name: _conversion(i) for i in free_identifiers(rule.lhs) if i.name in conversions}
    lhs, rhs = (simplify(substitute(side, values)) for side in (rule.lhs, rule.rhs))
    return problem(lhs, rhs, asks)


def _conversion(function: Identifier) -> Expr:
    """x => cast(x) of a type, whatever its types are: the identity, where they are the same."""
    match function.type:
        case Function(parameter, result):
            x = Identifier("x", parameter, function.origin)
            return Lambda(x, apply(instance("cast", (parameter, result), function.origin), x))
        case other:
            raise RiseError("R0699", f"internal: `{other}` is not the type of a function", function.origin)


def verdict(rule: Rule | Computed, instances: int = INSTANCES) -> Verdict:
    """Small sizes first, where a difference is a counterexample; then a proof; then random instances.

    A difference that a condition excludes, or that a law of `exp` explains, is not a counterexample.
    UsageError R0517 where z3 is not installed.
    """
    if isinstance(rule, Computed):
        return Tested("its right side is computed", 0, 0)
    of = of_rule(rule)
    found = examined(of)
    if isinstance(found, Refuted) and not rule.conditions and not found.difference.drawn:
        return found
    made = prove(of) if isinstance(found, Open) else Open(_why(rule, found))
    return made if isinstance(made, Proved) else tested(rule, made.reason, instances)


def _why(rule: Rule, found: Refuted) -> str:
    """Why the rule is not proved, where the difference that was found is not a counterexample."""
    if rule.conditions:
        return "it holds by its conditions only"
    return f"it holds by laws of `{min(found.difference.drawn)}` only"


def tested(rule: Rule, reason: str, instances: int) -> Tested | Wrong:
    """Compares both sides on random instances; where the rule has conditions, those that it applies to."""
    evidence = Evidence()
    for seed in stepwise("testing instances", range(instances), instances):
        made = sampled(rule, seed)
        if rule.conditions and isinstance(refused := made.rule(made.left), Failure):
            evidence.examples += 1
            evidence.refusals[refused.reason] += 1
            continue
        try:
            check_instance(made, evidence)
        except Counterexample as counterexample:
            return Wrong(counterexample)
    return Tested(reason, evidence.applied, evidence.examples)
