"""`rise check-eq`: whether two definitions are equal, or a definition and what a strategy makes of it."""

from __future__ import annotations

import argparse
import json
from typing import Any

from rise.check.program import load
from rise.check.specialise import specialise
from rise.cli.definitions import named
from rise.cli.options import sizes
from rise.errors import UsageError
from rise.expr import Definition
from rise.testing.equivalence import Different, Equal, check_equivalent


def run(arguments: argparse.Namespace) -> int:
    """Prints the verdict; 1 where they differ."""
    given = sizes(arguments.size) or None
    left = named(arguments)
    if arguments.other is None:
        if arguments.strategy is None:
            hint = (
                "name it: `rise check-eq FILE f g`, `rise check-eq FILE f other.rise:g`, or give `--strategy`"
            )
            raise UsageError("R0003", "there is no second definition to compare with", None, hint)
        right = _derived(arguments, left)
    else:
        file, colon, name = arguments.other.rpartition(":")
        right = load(file if colon else arguments.file, arguments.import_path)[name]
    found = check_equivalent(left, right, sizes=given, seed=arguments.seed)
    print(json.dumps(described(found), indent=2) if arguments.json else found)
    return 0 if found else 1


def _derived(arguments: argparse.Namespace, definition: Definition) -> Definition:
    """The low-level program of a strategy, at the sizes given."""
    from rise.cli.stages import chosen_strategy, derived
    from rise.normal import data_flow

    start = data_flow(specialise(definition, sizes(arguments.size)))
    made = derived(start, chosen_strategy(arguments)).term
    return Definition(f"{definition.name}_derived", (), made, (), definition.origin)


def described(found: Equal | Different) -> dict[str, Any]:
    """For a machine."""
    if isinstance(found, Different):
        place = list(found.comparison.index or ())
        return {"equal": False, "sizes": dict(found.sizes[0]), "place": place, "snippet": found.snippet}
    return {
        "equal": True,
        "proved": found.proved,
        "reordered": found.reordered,
        "reason": found.reason,
        "instances": found.instances,
        "sizes": [dict(at) for at in found.sizes],
    }
