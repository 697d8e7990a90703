"""Deep terms: the limit of Python, and the room for frames."""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from rise.depth import FRAMES, OBJECTS, deep

CALLS = 200


def test_the_limit_is_raised_and_never_lowered() -> None:
    before = sys.getrecursionlimit()
    try:
        for limit in (1000, FRAMES + 1):
            sys.setrecursionlimit(limit)
            deep(lambda: None)()
            assert sys.getrecursionlimit() == max(limit, FRAMES)
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize("before", [700, 2 * OBJECTS])
def test_cycles_are_looked_for_rarely_inside_only(before: int) -> None:
    kept, enabled = gc.get_threshold(), gc.isenabled()
    try:
        gc.enable()
        gc.set_threshold(before, *kept[1:])
        inside = deep(lambda: (gc.get_threshold()[0], deep(gc.get_threshold)()[0]))()
        assert inside == (max(before, OBJECTS),) * 2 and gc.get_threshold()[0] == before
        deep(lambda: gc.set_threshold(900))()
        assert gc.get_threshold()[0] == 900, "what is set meanwhile stays"
        gc.disable()
        assert deep(gc.get_threshold)()[0] == 900, "whoever turns it off wants it so"
    finally:
        gc.set_threshold(*kept)
        (gc.enable if enabled else gc.disable)()


def test_a_recursion_asks_for_memory_once() -> None:
    """Back and forth over a border of a piece, each piece that is taken is a page fault at least."""
    assert in_a_thread(most_faults) > CALLS / 2, "this Python keeps its pieces: remove `deep`"
    assert in_a_thread(deep(most_faults)) < CALLS / 4  # other threads of the process count, too


def in_a_thread(work: Callable[[], int]) -> int:
    """Elsewhere: this test itself runs with room for frames (`tests/conftest.py`)."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def most_faults() -> int:
    """The page faults of a loop of calls, at the worst of some depths."""

    def at(depth: int) -> int:
        return at(depth - 1) if depth else faults()

    return max(at(depth) for depth in range(300))


def faults() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        frames(4)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def frames(count: int) -> int:
    return frames(count - 1) if count else 0


def test_arguments_results_and_names_stay() -> None:
    @deep
    def joined(first: str, *, second: str = "b") -> str:
        """Two texts."""
        return first + second

    assert joined("a", second="c") == "ac"
    assert (joined.__name__, joined.__doc__) == ("joined", "Two texts.")
