"""How fast terms are rewritten: attempts to apply a rule a second, and the time of whole derivations.

    python benchmarks/rewriting.py [--repeat N] [--profile]

An attempt is one call of one rule on one term, whether it applies or not; a choice does not call rules
for other primitives than a term applies. Times are processor time of one core, the least of several runs;
counting is done in a run of its own.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rewrites.result import Success
from rewrites.rule import COMPUTED, RULES, Computed, Rule
from rise.check.program import load
from rise.check.specialise import specialise
from rise.expr import Expr, subterms
from rise.normal import data_flow
from strategies.core import Rewrite, all_top_down, choice, fail, seq, try_
from strategies.matmul.tensor_core import tensor_core

GEMM = Path(__file__).parent.parent / "examples" / "gemm.rise"
SIZES = {"m": 1024, "n": 1024, "k": 1024}


@contextmanager
def counted() -> Iterator[list[int]]:
    """The number of attempts made inside, as the only item of the list."""
    count = [0]
    kinds = (Rule, Computed)
    originals = [kind.__call__ for kind in kinds]

    def counting(original: Callable[..., object]) -> Callable[..., object]:
        def call(rule: object, term: Expr) -> object:
            count[0] += 1
            return original(rule, term)

        return call

    for kind, original in zip(kinds, originals, strict=True):
        kind.__call__ = counting(original)  # type: ignore[method-assign]
    try:
        yield count
    finally:
        for kind, original in zip(kinds, originals, strict=True):
            kind.__call__ = original  # type: ignore[method-assign]


def gemm() -> Expr:
    return data_flow(specialise(load(GEMM)["gemm"], SIZES))


def every_rule_at_every_node(rules: list[Rewrite], nodes: list[Expr]) -> None:
    for node in nodes:
        for rule in rules:
            rule(node)


def best(run: Callable[[], object], repeat: int) -> float:
    """Seconds of processor time, the least of several runs."""
    times = []
    for _ in range(repeat):
        started = time.process_time()
        run()
        times.append(time.process_time() - started)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="the best of so many runs (5)")
    parser.add_argument("--profile", action="store_true", help="where the derivation spends its time")
    given = parser.parse_args()
    rules: list[Rewrite] = [*RULES.values(), *COMPUTED.values()]
    term, derivation = gemm(), tensor_core()
    nodes = list(subterms(term))
    print(
        f"GEMM, {len(nodes)} nodes, at {', '.join(f'{n}={v}' for n, v in SIZES.items())}; {len(rules)} rules"
    )

    attempts = len(rules) * len(nodes)
    seconds = best(lambda: every_rule_at_every_node(rules, nodes), given.repeat)
    rate = f"{attempts / seconds:,.0f} a second"
    print(f"every rule at every node:   {attempts} attempts in {seconds:.3f} s, {rate}")

    search = all_top_down(try_(seq(choice(*rules), fail)))
    seconds = best(lambda: search(term), given.repeat)
    print(f"the choice of all, top down: until one applies, at every node, {seconds:.3f} s")

    with counted() as count:
        result = derivation(term)
    if not isinstance(result, Success):
        raise SystemExit(result.story())
    seconds = best(lambda: derivation(gemm()), given.repeat)
    rate = f"{count[0]} rules tried, {count[0] / seconds:,.0f} a second"
    print(f"derivation to tensor cores: {len(result.steps)} steps in {seconds:.3f} s; {rate}")
    if given.profile:
        profile = cProfile.Profile()
        profile.runcall(derivation, gemm())
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
