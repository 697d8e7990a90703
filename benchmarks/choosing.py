"""How long `auto` takes for fused programs: processor time, steps, and the candidates that were tried.

    python benchmarks/choosing.py [--compile] [--profile NAME] [NAME …]

Each program is derived and printed at sizes that tiles divide, and at ragged ones, in one warm process. With
--compile, candidates are compiled in a new cache, and the compiler's processor time counts, too. The bar is
1.5 s for each.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import tempfile
from contextlib import nullcontext
from pathlib import Path

from codegen.compiled import built
from codegen.pipeline import assemble
from rewrites.result import Success
from rise.check.program import load
from rise.check.specialise import size_names, specialise
from rise.depth import deep
from rise.expr import Definition, Expr
from rise.normal import data_flow
from strategies.auto import auto
from strategies.search.choice import Search

ROOT = Path(__file__).parent.parent
FILES = ("examples/fused.rise", "benchmarks/tables/fused.rise")
DIVIDED = {"m": 2048, "n": 4096, "k": 1024}
RAGGED = {"m": 1000, "n": 1333, "k": 777}
TARGET, BAR = "sm_90a", 1.5  # seconds


def processor_time() -> float:
    """Seconds of this process and of those that it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


class Tried:
    """How many candidates have been attempted."""

    def __init__(self) -> None:
        self.count = 0
        attempt = Search.attempt

        def counting(search: Search, point: object, term: Expr) -> object:
            self.count += 1
            return attempt(search, point, term)  # type: ignore[arg-type]

        Search.attempt = counting  # type: ignore[method-assign,assignment]


@deep
def chosen(definition: Definition, sizes: dict[str, int], compiles: bool) -> Success:
    """The derivation of a program whose candidates have to become kernels."""
    program = data_flow(specialise(definition, sizes))
    target = TARGET if compiles else None
    result = auto(TARGET).first_that(lambda low, _: built(assemble(low, "f"), target))(program)
    if not isinstance(result, Success):
        raise SystemExit(result.story())
    assemble(result.term, "f")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--compile", action="store_true", help="with the compiler, in a new cache")
    parser.add_argument("--profile", metavar="NAME", help="where this program's time goes, at ragged sizes")
    given = parser.parse_args()
    programs = [(file, name) for file in FILES for name in load(ROOT / file).own]
    tried = Tried()
    chosen(load(ROOT / FILES[0])["masked"], DIVIDED, compiles=False)  # imports, caches
    os.environ["RISE_CACHE_DIR"] = tempfile.mkdtemp()
    print(f"{'program':44} {'steps':>6} {'tried':>6} {'s':>6}")
    late = 0
    for file, name in programs:
        definition = load(ROOT / file)[name]
        if (given.names and name not in given.names) or set(size_names(definition)) != set("mnk"):
            continue
        for sizes in (DIVIDED, RAGGED):
            tried.count, started, profile = 0, processor_time(), cProfile.Profile()
            with profile if name == given.profile and sizes is RAGGED else nullcontext():
                result = chosen(definition, sizes, given.compile)
            seconds = processor_time() - started
            late += seconds > BAR
            at = "×".join(map(str, sizes.values()))
            print(f"{name + ' ' + at:44} {len(result.steps):6} {tried.count:6} {seconds:6.2f}", flush=True)
            if name == given.profile and sizes is RAGGED:
                pstats.Stats(profile).sort_stats("cumulative").print_stats(60)
    print(f"{late} of them take longer than {BAR} s")


if __name__ == "__main__":
    main()
