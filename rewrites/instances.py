"""Instances of the library's rules: for the property that every rule has to satisfy, and the catalogue.

A left side says most of what it takes for a rule to apply: sizes, types and functions are drawn at
random. What it does not say (an operator is associative, a tile has the shape of an instruction) is in
`rewrites.hints`.
"""

from __future__ import annotations

from rewrites.hints import hint
from rewrites.rule import Rule
from rise.testing.choose import Choose, Drawn
from rise.testing.rules import Instance, instance
from rise.testing.samples import Sample, sample
from rise.testing.unsolved import unsolved


def sampled(rule: Rule, seed: int) -> Instance:
    """The instance of a rule that belongs to the seed."""
    return instance(rule, Drawn(seed), hint(rule.name))


def specialised(rule: Rule, choose: Choose) -> Sample:
    """The rule with numbers for its sizes, types for its types, and so on; functions are left open."""
    return sample(rule, choose, hint(rule.name))


def parameters(rule: Rule) -> list[str]:
    """The sizes that have to be given, since the left side does not determine them."""
    return [*unsolved(rule).needed]
