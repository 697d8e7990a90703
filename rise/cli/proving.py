"""`rise rules NAME --prove`: a proof for all sizes, a counterexample, or how many instances agree."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from rewrites.library import rules
from rewrites.proofs import Tested, verdict
from rewrites.proofs.verdicts import Verdict, Wrong
from rewrites.rule import Computed, Rule
from rise.cli.rules import equation, letters_of
from rise.errors import UsageError
from rise.nat import Atom
from rise.progress import progress
from rise.suggest import suggestion
from rise.symbolic import Proved, Refuted
from rise.symbolic.refute import Difference
from strategies.user_defined import load

ALWAYS = "proved for all sizes, types and functions"


def run(arguments: argparse.Namespace) -> int:
    """Prints what is found about one rule; 1 where it is wrong."""
    if arguments.name is None:
        hint = "a name that `rise rules` lists, or `file.py:RULE` for one of your own"
        raise UsageError("R0003", "`rise rules --prove` needs the name of a rule", None, hint)
    rule = _rule(arguments.name)
    with progress(f"proving {rule.name}"):
        found = verdict(rule)
    if arguments.json:
        print(json.dumps(described(rule, found), indent=2))
    else:
        print(f"{rule.name}\n    {equation(rule)}\n{in_words(rule, found)}")
    return 1 if isinstance(found, Refuted | Wrong) else 0


def _rule(name: str) -> Rule | Computed:
    known: Mapping[str, Rule | Computed] = rules()
    if name in known:
        return known[name]
    if ":" in name:
        found: Any = load(name)
        if isinstance(found, Rule | Computed):
            return found
        hint = "`rewrites.rule.rule` makes one"
        raise UsageError("R0003", f"`{name}` is not a rule", None, hint)
    hint = suggestion(name, known) or "`rise rules` lists them; one of your own is `file.py:RULE`"
    raise UsageError("R0003", f"`rise rules` knows no `{name}`", None, hint)


def in_words(rule: Rule | Computed, found: Verdict) -> str:
    match found:
        case Proved(_, True):
            return f"{ALWAYS}, up to the rounding of sums"
        case Proved():
            return ALWAYS
        case Refuted(difference):
            return f"wrong: {_different(rule, difference)}"
        case Wrong(counterexample):
            return f"wrong: {counterexample}"
        case Tested(reason, applied, drawn) if drawn:
            return f"not proved: {reason}; tested on {drawn} instances, of which it applied to {applied}"
        case _:
            return f"not proved: {found.reason}; `rise derive --check` evaluates its steps"


def _different(rule: Rule | Computed, difference: Difference) -> str:
    names = letters_of(rule) if isinstance(rule, Rule) else {}
    sizes = ", ".join(f"{n} = {v}" for n, v in _named(difference.sizes, names).items())
    where = f"element {difference.place} " if difference.place else "the result "
    return f"at {sizes}\n    {where}is {difference.left} on the left\n    and {difference.right} on the right"


def _named(sizes: Mapping[Atom, int], names: Mapping[Any, Any]) -> dict[str, int]:
    return {str(names.get(atom, atom)): number for atom, number in sizes.items()}


def described(rule: Rule | Computed, found: Verdict) -> dict[str, Any]:
    """For a machine."""
    kind = {Proved: "proved", Refuted: "wrong", Wrong: "wrong", Tested: "tested"}[type(found)]
    made: dict[str, Any] = {"name": rule.name, "verdict": kind, "reason": in_words(rule, found)}
    match found:
        case Proved():
            made["reordered"] = found.reordered
        case Refuted(difference):
            names = letters_of(rule) if isinstance(rule, Rule) else {}
            made |= {"sizes": _named(difference.sizes, names), "place": difference.place}
        case Tested():
            made["instances"] = found.drawn
    return made
