"""Floats of indices: what unrolled loops add to an index is a constant of its float.

    (float)(a + c) = (float)a + (float)c      for whole numbers below 2^24, which floats hold

An unrolled loop makes c a number, so the float of a is computed once, and each element takes one addition in
place of an addition and a conversion.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir import imperative as i
from codegen.ir.launch import Launch
from codegen.passes.analysis.walk import facts_of_workers, inside, rebuild_own
from rise.nat import Facts, Nat, constant, lower_bound, upper_bound
from rise.types import Data, Scalar

EXACT = {"f32": 2**24, "f64": 2**53}


def floats_of_indices(function: i.Function, launch: Launch) -> i.Function:
    """The pass."""
    return replace(function, body=_command(function.body, facts_of_workers(launch), frozenset()))


def _command(command: i.Command, facts: Facts, unrolled: frozenset[str]) -> i.Command:
    changed = rebuild_own(command, i.Operator, lambda found: _split(found, facts, unrolled))
    within = inside(command, facts)
    match command:
        case i.For(index, _, _, unroll):
            unrolled = unrolled | {index} if unroll else unrolled - {index}
    return i.with_inner(changed, tuple(_command(part, within, unrolled) for part in i.inner(changed)))


def _split(found: i.Operator, facts: Facts, unrolled: frozenset[str]) -> i.Operator:
    match found:
        case i.Operator("cast", (i.Operator("indexToInt", (i.Natural(number) as index,)) as to_int,), type_):
            pass
        case _:
            parts = i.rebuild(found.operands, i.Operator, lambda inner: _split(inner, facts, unrolled))
            return replace(found, operands=parts)
    varying = Nat.build({m: c for m, c in number.terms if _variables(m) and _variables(m) <= unrolled})
    rest = number - varying
    whole = (varying, rest, number)
    if constant(0) in (varying, rest) or not all(_is_exact(part, type_, facts) for part in whole):
        return found

    def converted(part: Nat) -> i.Operator:
        return replace(found, operands=(replace(to_int, operands=(replace(index, value=part),)),))

    return i.Operator("add", (converted(rest), converted(varying)), type_)


def _variables(monomial: tuple[object, ...]) -> set[str]:
    return set(Nat.build({monomial: 1}).variables)  # type: ignore[dict-item]  # a monomial of a number


def _is_exact(number: Nat, type_: Data, facts: Facts) -> bool:
    low, high = lower_bound(number, facts), upper_bound(number, facts)
    most = EXACT.get(type_.name, 0) if isinstance(type_, Scalar) else 0
    return low is not None and high is not None and (low.value or 0) >= 0 and (high.value or most) < most
