"""Which writes are proved to go to different locations is true of all of them, tried one by one."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping

import pytest

from codegen.ir.imperative import Level
from codegen.passes.analysis import injectivity
from codegen.passes.analysis.dependences import Loop, Use, determined, same_workers
from codegen.passes.analysis.injectivity import same_location
from rise.nat import Facts, Nat, constant, quotient, remainder, variable

SEED = 14
BLOCKS, THREADS = (Level.BLOCK, 0), (Level.THREAD, 0)


def drawn(draw: random.Random) -> Use:
    """A write whose indices are sums of quotients, remainders and multiples of indices of loops."""
    counts = {"b": draw.choice((1, 3, 4)), "t": draw.choice((4, 6, 8)), "i": draw.choice((1, 2))}
    facts = Facts().with_ranges([(name, 0, constant(count)) for name, count in counts.items()])
    flat = draw.choice((1, counts["t"], counts["t"], 2)) * variable("b") + variable("t")
    terms = [variable("b"), variable("t"), variable("i"), flat]

    def part() -> Nat:
        whole, by = draw.choice(terms), draw.choice((2, 3, 4, 5))
        made = draw.choice((quotient, remainder, lambda n, *_: n))(whole, constant(by), facts)
        return made * draw.choice((1, 1, 2, 4, 8)) + draw.choice((constant(0), variable("i")))

    by = constant(draw.choice((2, 3, 5)))
    split = quotient(flat, by, facts), remainder(flat, by, facts)
    rows = split if draw.random() < 0.4 else (part(), part())
    loops = (
        Loop("b", constant(counts["b"]), BLOCKS), Loop("t", constant(counts["t"]), THREADS),
        Loop("i", constant(counts["i"])),
    )  # fmt: skip
    return Use("x", rows, loops, written=True)


def truly_determined(use: Use, index: str) -> bool:
    """Whether any two iterations that touch the same location have the same number of an index."""
    found: dict[tuple[int | None, ...], set[int]] = {}
    for numbers in itertools.product(*(range(loop.count.value or 0) for loop in use.around)):
        at: Mapping[str, int] = dict(zip((loop.index for loop in use.around), numbers, strict=True))
        values = {atom: constant(at[name]) for name in at for atom in variable(name).atoms}
        place = tuple(n.substitute(values).value for n in use.indices)
        found.setdefault(place, set()).add(at[index])
    return all(len(each) == 1 for each in found.values())


def test_what_is_determined_is_so_when_all_are_tried() -> None:
    draw, proved, more = random.Random(SEED), 0, 0
    print(f"seed {SEED}")
    for _ in range(200):
        use = drawn(draw)
        shown = determined(use, frozenset())
        for workers, index in use.workers().items():
            assert workers not in shown or truly_determined(use, index), (use, workers)
            assert (same_location(use, [workers], frozenset(), views=False) is None) == truly_determined(
                use, index
            ), (use, workers)
        proved += len(shown)
        more += len(shown - same_workers(use, use, frozenset()))
    assert proved > 50 and more > 25, (proved, more)


@pytest.mark.parametrize("length", [56, 104, 333])
def test_rows_of_a_flat_index_are_proved(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies at ragged sizes: nothing is enumerated."""
    monkeypatch.setattr(injectivity, "_iterations", lambda use: pytest.fail("all are tried"))
    flat = 256 * variable("b") + variable("t")
    facts = Facts().with_ranges([("b", 0, constant(77)), ("t", 0, constant(256))])
    by = constant(length)
    loops = (Loop("b", constant(77), BLOCKS), Loop("t", constant(256), THREADS), Loop("l", constant(8)))
    inner = 8 * remainder(flat, by, facts) + variable("l")
    use = Use("x", (quotient(flat, by, facts), inner), loops, written=True)
    assert same_location(use, [BLOCKS, THREADS], frozenset(), views=False) is None
