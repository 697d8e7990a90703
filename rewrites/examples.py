"""An example of a rule: an instance of its left side with small sizes, and the result.

Functions stay names (`f`, `g`) where no condition of the rule depends on them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rewrites.hints import hint
from rewrites.instances import sampled, specialised
from rewrites.maps import ETA
from rewrites.result import Failure, Result, Success
from rewrites.rule import Computed, Rule
from rise.check.program import check_expression
from rise.expr import Expr, children, substitute, subterms, with_children
from rise.interpret.evaluate import free_identifiers
from rise.normal import data_flow
from rise.pretty import show
from rise.testing.choose import Drawn
from rise.testing.samples import Sample

CANDIDATES = 10
LINE = 10_000


@dataclass(frozen=True)
class Example:
    """A term, the same after the rule, and the types of what is free in them."""

    before: str
    after: str
    names: str


def example(rule: Rule | Computed) -> Example | None:
    """The most readable of a few, the same one each time; None where the rule applied to none of them."""
    found = _of_instances(rule) if isinstance(rule, Computed) else (_of_names(rule) or _of_samples(rule))
    return min(found, key=_unreadable, default=None)


def _of_names(rule: Rule) -> list[Example]:
    """Instances in which functions are names."""
    return [*_applied(_with_names(rule, seed) for seed in range(CANDIDATES))]


def _with_names(rule: Rule, seed: int) -> tuple[Sample, Expr]:
    choose = Drawn(seed)
    sample = specialised(rule, choose)
    return sample, data_flow(substitute(sample.lhs, dict(hint(rule.name).values(choose, sample.types))))


def _of_samples(rule: Rule) -> list[Example]:
    """Instances in which functions are written out."""
    samples = (sampled(rule, seed) for seed in range(CANDIDATES))
    return [*_applied((made.rule, made.left) for made in samples)]


def _applied(instances: Iterable[tuple[Callable[[Expr], Result], Expr]]) -> Iterator[Example]:
    for rule, term in instances:
        result = rule(term)
        if isinstance(result, Success):
            yield _shown(term, result.term)


def _of_instances(rule: Computed) -> list[Example]:
    """The first part of each declared program to which the rule applies."""
    return [found for text in rule.instances if (found := _of_program(rule, text)) is not None]


def _of_program(rule: Computed, text: str) -> Example | None:
    program = check_expression(text)
    for form in (program, data_flow(program)):
        for part in subterms(form):
            result = rule(part)
            if not isinstance(result, Failure):
                return Example(show(part, LINE), show(result.term, LINE), _names(part))
    return None


def _shown(before: Expr, after: Expr) -> Example:
    return Example(show(contracted(before), LINE), show(contracted(after), LINE), _names(before))


def _names(term: Expr) -> str:
    return ", ".join(f"{i.name}: {i.type}" for i in free_identifiers(term))


def contracted(term: Expr) -> Expr:
    """(x => f(x)) as f, everywhere."""
    new = with_children(term, tuple(contracted(c) for c in children(term)))
    result = ETA(new)
    return new if isinstance(result, Failure) else result.term


def _unreadable(made: Example) -> tuple[int, str]:
    """Arrays of one element make poor examples."""
    text = made.before + made.names
    ones = len(re.findall(r"(?<![\w.])1\.[\w(]", text)) + len(re.findall(r"\(1[,)]", text))
    return len(text) + len(made.after) + 60 * ones, made.before
