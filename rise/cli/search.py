"""`rise search`: the steps from a definition to a program that satisfies sketches (docs/guided-search.md)."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewrites.derivation import described as saved
from rewrites.result import Failure, Success
from rise import files
from rise.cli.definitions import named
from rise.cli.derive import checked, described, plural, print_derivation
from rise.cli.options import sizes
from rise.cli.stages import Subject
from rise.errors import UsageError
from rise.expr import Expr
from rise.normal import data_flow
from strategies.core import Strategy, seq
from strategies.guided.moves import lowered
from strategies.guided.python import module_of
from strategies.guided.search import Guide, Reached, Search, result
from strategies.loops.nests import loop_nest
from strategies.places import in_inputs

# for --rules that are not given
EVERY_LOOP = "tile reorder vectorise pack execute"


def run(arguments: argparse.Namespace) -> int:
    """Prints what was searched and the steps found; with --python the strategy that repeats them."""
    given = sizes(arguments.size)
    chosen = Subject(named(arguments), given)
    program = data_flow(chosen.program)
    wanted = guides(arguments.sketch, arguments.rules, given)
    reached = Search(arguments.steps, arguments.beam).reached(program, wanted)
    found = result(reached)
    if isinstance(found, Failure):
        raise found.error("guided")
    repeated = reached[-1].program.schedule
    if arguments.lower:
        repeated = seq(repeated, in_inputs(lowered()))
    success = _repeated(repeated, program)
    made = checked(chosen, success, repeated, None, arguments.seed) if arguments.check else []
    if arguments.save:
        files.write(Path(arguments.save), json.dumps(saved(program, success), indent=1, ensure_ascii=False))
    if arguments.python:
        meaning = f"Found by `rise search` from `{arguments.name}`: {'; '.join(arguments.sketch)}."
        print(module_of(reached[-1].program.moves, meaning, arguments.lower), end="")
    elif arguments.json:
        told = {"sketches": [_described(each) for each in reached]}
        print(json.dumps({**told, **described(program, success, made)}, indent=2))
    else:
        _print(reached)
        print_derivation(success, made)
    return 0 if all(trial.agrees for trial in made) else 1


def guides(sketches: Sequence[str], rules: Sequence[str], given: dict[str, int]) -> tuple[Guide, ...]:
    """A guide for each sketch; one set of rules for each of them, or one for all. R0003 where neither is."""
    sets = list(rules) or [EVERY_LOOP]
    if len(sets) not in (1, len(sketches)):
        message = f"there are {len(sketches)} sketches, and {len(sets)} sets of rules"
        raise UsageError("R0003", message, hint="give `--rules` once for all sketches, or once for each")
    each = sets * len(sketches) if len(sets) == 1 else sets
    return tuple(Guide.of(sketch, names, given) for sketch, names in zip(sketches, each, strict=True))


def _repeated(strategy: Strategy, program: Expr) -> Success:
    """The steps again, and what lowers the program. R0606 where that fails."""
    again = strategy(program)
    if isinstance(again, Failure):
        raise again.error("search")
    return again


def _described(reached: Reached) -> dict[str, Any]:
    return {
        "sketch": str(reached.guide.written),
        "rules": reached.guide.rules.name,
        "programs": reached.visited,
        "rounds": reached.rounds,
    }


def _print(reached: Sequence[Reached]) -> None:
    """For each sketch how many programs were visited, the strategies that lead to it, and the loops then."""
    moves = steps = 0
    for number, each in enumerate(reached, 1):
        found = each.program
        print(f"{number}. {each.guide.written}")
        print(f"   {each.visited} programs, {plural(found.steps[steps:])}, by {each.guide.rules.name}")
        for move in found.moves[moves:]:
            print(f"     {move!r}")
        print(f"   → {' '.join(_loops(found.term))}\n")
        moves, steps = len(found.moves), len(found.steps)


def _loops(term: Expr) -> Sequence[str]:
    """The loops of a program, a nest on one line."""
    return [line.strip() for loop in loop_nest(term) for line in loop.lines()]
