"""How long `auto` takes from a checked program to the text of its kernels: processor time of a first compile.

    python benchmarks/choosing.py [--compile] [--warm] [--profile NAME] [--out FOLDER] [NAME …]

Each program is derived and printed at sizes that tiles divide, and at ragged ones, in a process of its own
that has imported everything and done nothing yet. With --compile, candidates are compiled in a new cache, and
the compiler's processor time counts, too; with --warm, all are derived in one process. The bar is 1.5 s, and
3 s for attention. Texts go to a folder, to compare two states of the compiler.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pickle
import pstats
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

from complex_products import PROGRAMS

from codegen.compiled import built
from codegen.pipeline import assemble
from rewrites.result import Success
from rise.check.program import load
from rise.check.specialise import size_names, specialise
from rise.depth import deep
from rise.expr import Definition, Expr
from rise.normal import data_flow
from strategies.auto import auto
from strategies.registry import MODULES
from strategies.search.choice import Search

ROOT = Path(__file__).parent.parent
FUSED = ("examples/fused.rise", "benchmarks/tables/fused.rise", "benchmarks/tables/layouts.rise")
OTHERS = ("examples/products.rise", "examples/gemm.rise", "examples/networks.rise")
ATTENTION = "examples/attention.rise"
DIVIDED = {"m": 2048, "n": 4096, "k": 1024, "l": 1024, "b": 64, "h": 64, "w": 64, "c": 64, "o": 128}
RAGGED = {"m": 1000, "n": 1333, "k": 777, "l": 411, "b": 37, "h": 31, "w": 45, "c": 24, "o": 67}
HEADS = {"b": 2, "h": 16, "g": 4, "m": 2048, "n": 2048, "d": 128, "e": 128}
TARGET, BAR, BAR_OF_ATTENTION = "sm_90a", 1.5, 3.0  # seconds
Timed = tuple[float, int, int, list[str]]


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
def chosen(definition: Definition, sizes: dict[str, int], compiles: bool) -> tuple[int, list[str]]:
    """The steps to a program whose candidates have to become kernels, and the texts of these."""
    program = data_flow(specialise(definition, sizes))
    target = TARGET if compiles else None
    result = auto(TARGET).first_that(lambda low, _: built(assemble(low, "f"), target))(program)
    if not isinstance(result, Success):
        raise SystemExit(result.story())
    return len(result.steps), [kernel.source for kernel in assemble(result.term, "f").kernels]


def timed(definition: Definition, sizes: dict[str, int], compiles: bool, profiled: bool) -> Timed:
    """Seconds, steps, candidates, texts."""
    tried, started, profile = Tried(), processor_time(), cProfile.Profile()
    with profile if profiled else nullcontext():
        steps, texts = chosen(definition, sizes, compiles)
    seconds = processor_time() - started
    if profiled:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(110)
        pstats.Stats(profile).sort_stats("tottime").print_stats(50)
    return seconds, steps, tried.count, texts


def in_new_process(work: Callable[[], Timed]) -> Timed:
    """What it gives in a copy of this process, in which nothing of it stays."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(writes, "wb") as out:
            pickle.dump(work(), out)
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as given:
        made: Timed = pickle.load(given)
    os.waitpid(child, 0)
    return made


def programs() -> Iterator[tuple[str, Definition, float, list[Mapping[str, int]]]]:
    """Programs, the bar for each, and the sizes."""
    for file in (*FUSED, *OTHERS):
        loaded = load(ROOT / file)
        for name in loaded.own:
            yield name, loaded[name], BAR, [DIVIDED, RAGGED]
    for name in ("difference", "complexProduct"):
        yield name, PROGRAMS[name], BAR, [DIVIDED, RAGGED]
    loaded = load(ROOT / ATTENTION)
    for name in loaded.own:
        yield f"attention {name}", loaded[name], BAR_OF_ATTENTION, [HEADS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--compile", action="store_true", help="with the compiler, in a new cache")
    parser.add_argument("--warm", action="store_true", help="all in one process")
    parser.add_argument("--profile", metavar="NAME", help="where this program's time goes")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="for the texts of the kernels")
    given = parser.parse_args()
    for module in MODULES.values():
        import_module(module)
    os.environ["RISE_CACHE_DIR"] = tempfile.mkdtemp()
    print(f"{'program':52} {'steps':>6} {'tried':>6} {'s':>6}")
    late, total, count = 0, 0.0, 0
    for name, definition, bar, several in programs():
        if given.names and name not in given.names:
            continue
        wanted = size_names(definition)
        for sizes in several:
            if not wanted or not set(wanted) <= set(sizes):
                continue
            at = {size: sizes[size] for size in wanted}

            def work(definition: Definition = definition, at: dict[str, int] = at, name: str = name) -> Timed:
                return timed(definition, at, given.compile, name == given.profile)

            seconds, steps, tried, texts = work() if given.warm else in_new_process(work)
            late, total, count = late + (seconds > bar), total + seconds, count + 1
            shown = f"{name} {'×'.join(map(str, at.values()))}"
            print(f"{shown:52} {steps:6} {tried:6} {seconds:6.2f}{' !' * (seconds > bar)}", flush=True)
            for number, text in enumerate(texts if given.out else ()):
                given.out.mkdir(parents=True, exist_ok=True)
                (given.out / f"{shown} {number}.cu").write_text(text, encoding="utf-8")
    print(f"{late} of {count} take longer than the bar; all of them {total:.1f} s")


if __name__ == "__main__":
    main()
