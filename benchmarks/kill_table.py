"""Measures the generators of `rise.testing`, and how soon properties notice seeded mistakes.

python benchmarks/kill_table.py            prints the report
python benchmarks/kill_table.py --write    puts it into docs/testing.md
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import rewrites.algorithmic  # noqa: E402
import rewrites.movement  # noqa: E402, F401  # each import declares rules
from rewrites.rule import RULES  # noqa: E402
from rise import files  # noqa: E402
from rise.expr import Expr, size  # noqa: E402
from rise.testing import (  # noqa: E402
    Choose,
    Counterexample,
    Evidence,
    Hint,
    check_instance,
    choices,
    hiding,
    instance,
    program_texts,
    programs,
    redexes,
)
from tests.rewrites.mutants import MUTANTS, Mutant, declared, hides  # noqa: E402
from tests.rewrites.mutants import seeded as with_functions  # noqa: E402
from tests.rise.faults import FAULTS, Fault, programs_for, seeded  # noqa: E402  # of the tests
from tests.rise.properties import normal_form_preserves  # noqa: E402

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
DOCUMENT = ROOT / "docs" / "testing.md"
SEEDS = range(5)
LIMIT = 1000  # examples after which a mistake counts as not noticed
CORRECT = ("mapFusion", "T >> T", "S >> J", "*f >> take")  # among which a wrong rule is mixed


@dataclass(frozen=True)
class Run:
    """Examples (None: no failure) and processor seconds until the first failure; nodes of what was shrunk."""

    examples: int | None
    seconds: float
    nodes: int


def generated(
    strategy: SearchStrategy[Any], number: int, count: int
) -> Callable[[Callable[[Any], None]], None]:
    """Runs a function on that many examples, with a seed."""

    def run(check: Callable[[Any], None]) -> None:
        @seed(number)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def examples(value: Any) -> None:
            check(value)

        examples()

    return run


def until_failure(strategy: SearchStrategy[Any], check: Callable[[Any], None], number: int) -> Run:
    examples = 0

    def counted(value: Any) -> None:
        nonlocal examples
        examples += 1
        check(value)

    start = time.process_time()
    try:
        generated(strategy, number, LIMIT)(counted)
    except Counterexample as found:
        seconds = time.process_time() - start
        return Run(examples, seconds, size(found.shrunk))
    return Run(None, time.process_time() - start, 0)


# --- mistakes ---------------------------------------------------------------------------------------


def runs_of_fault(fault: Fault) -> tuple[list[Run], list[Run]]:
    """Alone and mixed: on programs made for it, and on programs for all faults."""
    with seeded(fault):
        alone, mixed = (
            [until_failure(strategy, fault.check, number) for number in SEEDS]
            for strategy in programs_for(fault)
        )
    return alone, mixed


def runs_of_mutant(mutant: Mutant) -> tuple[list[Run], list[Run]]:
    """Alone, and mixed with four correct rules."""
    wrong = (declared(mutant), mutant.hint)
    correct = [(RULES[name], Hint()) for name in CORRECT]

    def check(*rules: tuple[Any, Hint]) -> Callable[[Choose], None]:
        def one(choose: Choose) -> None:
            rule, hint = choose.pick(rules)
            made = instance(rule, choose, hint)
            left = hiding(made.left, choose) if hides(mutant) else made.left
            check_instance(replace(made, left=left), Evidence())

        return one

    # in the middle, for the first and the last of all alternatives are drawn early
    mixed = check(*correct[:2], wrong, *correct[2:])
    with with_functions(mutant):
        alone, among = (
            [until_failure(choices(), one, number) for number in SEEDS] for one in (check(wrong), mixed)
        )
    return alone, among


# --- the report -------------------------------------------------------------------------------------


def rate(strategy: SearchStrategy[Any], count: int = 2000) -> tuple[float, list[Any]]:
    """Examples a second of the processor, and the examples."""
    found: list[Any] = []
    start = time.process_time()
    generated(strategy, 0, count)(found.append)
    return len(found) / (time.process_time() - start), found


def rates() -> Iterator[str]:
    yield "| generator | a second | mean size (nodes) |"
    yield "| --- | --- | --- |"
    kinds: dict[str, SearchStrategy[Expr]] = {"`programs()`": programs(), "`redexes()`": redexes()}
    for name, strategy in kinds.items():
        speed, found = rate(strategy)
        yield f"| {name} | {speed:.0f} | {mean(size(e) for e in found):.1f} |"
    speed, texts = rate(program_texts(), 500)
    yield f"| `program_texts()` | {speed:.0f} | {mean(map(len, texts)):.0f} characters |"


def cell(runs: Sequence[Run]) -> str:
    """Least, median and most examples, `–` where there was no failure; the slowest in seconds."""
    counts = sorted(r.examples if r.examples is not None else LIMIT + 1 for r in runs)
    shown = [f"{n}" if n <= LIMIT else "–" for n in (counts[0], int(median(counts)), counts[-1])]
    return f"{' / '.join(shown)} | {max(r.seconds for r in runs):.2f}"


def table(rows: Sequence[tuple[str, list[Run], list[Run]]]) -> Iterator[str]:
    yield "| mistake | alone: examples | s at most | mixed: examples | s at most | shrunk to |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for what, alone, mixed in rows:
        nodes = [r.nodes for r in (*alone, *mixed) if r.examples is not None]
        yield (
            f"| {what} | {cell(alone)} | {cell(mixed)} | {mean(nodes):.0f} |"
            if nodes
            else (f"| {what} | {cell(alone)} | {cell(mixed)} | |")
        )


def false_alarms(count: int = 2000) -> str:
    """The property of normal forms without any fault."""
    generated(programs(), 0, count)(normal_form_preserves)
    return f"Without a fault, {count} programs pass the property of normal forms."


def report() -> str:
    lines = [*rates(), ""]
    faults = [(f.what, *runs_of_fault(f)) for f in FAULTS]
    mutants = [(m.what, *runs_of_mutant(m)) for m in MUTANTS]
    lines += ["Faults in the library:", "", *table(faults), "", "Wrong rules:", "", *table(mutants), ""]
    alone = [r for _, runs, _ in (*faults, *mutants) for r in runs]
    found = [r for r in alone if r.examples is not None]
    lines.append(
        f"{len(faults) + len(mutants)} mistakes: alone, {len(found)} of {len(alone)} runs notice them, "
        f"the slowest after {max(r.seconds for r in found):.2f} s; "
        f"what is reported has {mean(r.nodes for r in found):.1f} nodes on average. {false_alarms()}"
    )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the report into docs/testing.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # NaN and infinities are meant
    text = report()
    print(text)
    if arguments.write:
        whole = DOCUMENT.read_text(encoding="utf-8")
        before, rest = whole.split(BEGIN)
        files.write(DOCUMENT, f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
