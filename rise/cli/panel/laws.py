"""The rules that apply to a term: those for what it is built by, and those that hold of any value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from rewrites.library import rules
from rewrites.result import Success
from rewrites.rule import Computed, Rule
from rise.cli import rules as catalogue
from rise.errors import RiseError
from rise.expr import Expr
from rise.pretty import show
from rise.requests import malformed

Data = dict[str, Any]
AnyRule = Rule | Computed
# what is tried for the parameters of a rule, in this order
TRIED = (32, 16, 8, 4, 2, 1)


def applicable(term: Expr) -> tuple[list[Data], list[Data]]:
    """The rules of the term's construct, and the general laws."""
    found: tuple[list[Data], list[Data]] = [], []
    for rule, given, success in _applying(term):
        asked = [str(constraint) for constraint in success.steps[0].constraints]
        found[is_general(rule)].append({**_item(rule.name), "given": given, "asks": asked})
    return found


def applied(term: Expr, name: str) -> Data:
    """The term before and after a rule. UsageError R0063 where it does not apply."""
    rule = rules().get(name)
    found = None if rule is None else _first(rule, term)
    if rule is None or found is None:
        raise malformed(f"there is no rule `{name}` that applies to the term")
    given, success = found
    return {**_item(name), "given": given, "before": show(term), "after": show(success.term)}


def is_general(rule: AnyRule) -> bool:
    """Whether a rule is for any term of a type: a variable is all of its left side."""
    left, _, right = catalogue.equation(rule).partition("→")
    return left.strip().isidentifier() and ", where " not in right


def _applying(term: Expr) -> Iterator[tuple[AnyRule, Mapping[str, int], Success]]:
    for rule in rules().values():
        found = _first(rule, term)
        if found is not None:
            yield rule, *found


def _first(rule: AnyRule, term: Expr) -> tuple[Mapping[str, int], Success] | None:
    """What a rule makes of a term, and the values that its parameters are given for that."""
    for given in _values(rule):
        try:
            success = rule.with_sizes(**given).attempt(term) if given else rule.attempt(term)
        except RiseError:  # what it makes would be refused
            continue
        if success is not None:
            return given, success
    return None


def _values(rule: AnyRule) -> Iterator[dict[str, int]]:
    """None, as the left side may say what they are; then the same for all, where the rule is no general law.

    The dimension of the hardware that a level is for is the first.
    """
    yield {}
    if isinstance(rule, Rule) and rule.sizes and not is_general(rule):
        for value in TRIED:
            yield {name: 0 if _is_dimension(rule, name) else value for name in rule.sizes}


def _is_dimension(rule: Rule, name: str) -> bool:
    return re.search(rf"\bmap(Block|Cluster|Threads|Global)\w*\({name}\b", rule.right) is not None


@cache
def _item(name: str) -> Data:
    return catalogue.item(rules()[name])
