"""Where buffers are in shared memory: as low as those allow that are needed at the same time."""

from __future__ import annotations

from itertools import combinations
from random import Random

from codegen.passes.allocate import Buffer, Region, end_of, offsets_in, offsets_of
from rise.nat import constant


def buffer(name: str, size: int, start: int, end: int) -> Buffer:
    return Buffer(name, size, 1, constant(0), Region(start, end), constant(0))


def test_what_takes_the_place_of_another_may_be_larger() -> None:
    """Of two runs that come at once, one is free sooner: behind the other one, its room may grow."""
    soon, late, larger = buffer("soon", 1024, 0, 5), buffer("late", 1024, 1, 9), buffer("larger", 1536, 5, 9)
    buffers = [soon, late, larger]
    assert end_of(buffers, offsets_in(buffers)) == 1024 + 1024 + 1536
    found = offsets_of(buffers)
    assert found == {"late": 0, "larger": 1024, "soon": 1024} and end_of(buffers, found) == 1024 + 1536


def test_no_two_that_are_needed_at_once_overlap() -> None:
    """Buffers are drawn: seed 4. All of them together never take more than each on its own."""
    random, shared = Random(4), 0
    for _ in range(200):
        buffers = []
        for name in range(random.randint(1, 7)):
            start = random.randint(0, 9)
            buffers.append(buffer(str(name), 128 * random.randint(1, 9), start, start + random.randint(1, 9)))
        found = offsets_of(buffers)
        for one, other in combinations(buffers, 2):
            apart = (
                found[one.name] + one.bytes <= found[other.name]
                or found[other.name] + other.bytes <= found[one.name]
            )
            assert apart or not one.live.overlaps(other.live)
            shared += not apart
        assert end_of(buffers, found) <= sum(each.bytes for each in buffers)
        assert end_of(buffers, found) <= end_of(
            buffers, offsets_in(sorted(buffers, key=lambda b: b.live.start))
        )
    assert shared > 100, "many took the place of others"
