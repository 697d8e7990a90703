"""Exponentials as GPUs compute them: one instruction gives a power of two."""

from __future__ import annotations

from rewrites.rule import library_rule as rule

EXP_AS_EXP2 = rule(
    "exp → exp2",
    "exp(x)",
    "exp2(x * 1.4426950408889634)",
    exact=False,
    meaning="An exponential as a power of two: the factor is the binary logarithm of e.",
)
EXP2_OF_DIFFERENCE = rule(
    "exp2 of a difference",
    "exp2((x - y) * z)",
    "exp2(x * z - y * z)",
    exact=False,
    meaning="The factor of a difference is multiplied with both terms, one of which may be the same for many.",
)
