"""Which values of its parameters a strategy is tried with.

Most strategies declare them beside their parameters (`strategies.settings.searched`). For
`tensor_core` they depend on the problem and the GPU (`strategies.search.schedules`), and a model ranks them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heapify, heappop, heappush
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from rise.errors import StrategyError, UsageError
from rise.frozen import Remembers, cached_property, changed, filled_at_once, hashed_once
from strategies.matmul.constraints import (
    check,
    check_sizes,
)
from strategies.matmul.schedule import Schedule
from strategies.registry import catalogue, find, show_value
from strategies.search.cost import (
    Cost,
    cost,
    least,
)
from strategies.search.hardware import Gpu
from strategies.search.problem import Problem
from strategies.search.schedules import WIDEST, needed, tensor_core, tensor_core_else

Parameters = Mapping[str, Any]
Space = Callable[[Problem, Gpu], Iterator[Schedule]]


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class Point(Remembers):
    """A strategy with values for its parameters."""

    strategy: str
    parameters: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, strategy: str, parameters: Parameters) -> Point:
        return cls(strategy, tuple(parameters.items()))

    @classmethod
    def read(cls, strategy: str, settings: Mapping[str, str]) -> Point:
        """From what `settings` gives. UsageError R0011 for what the strategy does not have."""
        known = {setting.name: setting for setting in find(strategy).settings}
        for name in settings:
            if name not in known:
                raise UsageError("R0011", f"the strategy `{strategy}` has no parameter `{name}`")
        return cls.of(strategy, {name: known[name].read(text) for name, text in settings.items()})

    @classmethod
    def by(cls, strategy: str, schedule: Schedule) -> Point:
        """With what a schedule changes."""
        point = cls.of(strategy, schedule.changes)
        vars(point)["schedule"] = schedule  # as `schedule` would make it again
        return point

    @property
    def settings(self) -> dict[str, str]:
        """As `--set` takes them."""
        return {name: show_value(value) for name, value in self.parameters}

    @cached_property
    def schedule(self) -> Schedule:
        """With what the strategy's own defaults say of the others."""
        kind = find(self.strategy).parameters
        own = kind if kind is not None and issubclass(kind, Schedule) else Schedule
        return own.of(dict(self.parameters))

    def __str__(self) -> str:
        return " ".join([self.strategy, *(f"{name}={text}" for name, text in self.settings.items())])


@filled_at_once
@dataclass(frozen=True, slots=True)
class Ranked:
    point: Point
    cost: Cost


SLOW = 1.3  # times the cost of the best
NONE: Parameters = MappingProxyType({})
T = TypeVar("T")


def declared(strategy: str, fixed: Parameters = NONE) -> Iterator[Point]:
    """Every combination of the values that a strategy declares, those with few changes of its defaults first.

    A point names only what it changes, and the parameters that are fixed. UsageError R0032 where the strategy
    declares none.
    """
    settings = [s for s in find(strategy).settings if s.tried]
    tried = {s.name: [v for v in s.tried if v != s.default] for s in settings if s.name not in fixed}
    if not settings:
        known = ", ".join(f"`{name}`" for name in searchable())
        message = f"the search space of `{strategy}` is not defined"
        raise UsageError("R0032", message, hint=f"there are those of {known}")
    for count in range(len(tried) + 1):
        for names in itertools.combinations(tried, count):
            for values in itertools.product(*(tried[name] for name in names)):
                yield Point.of(strategy, {**fixed, **dict(zip(names, values, strict=True))})


def searchable() -> list[str]:
    """The strategies that have a space."""
    declare = (entry.name for entry in catalogue() if any(s.tried for s in entry.settings))
    return [*SPACES, *declare]


SPACES = {"tensor_core": tensor_core}
ELSE = {"tensor_core": tensor_core_else}


def space_of(strategy: str, spaces: Mapping[str, Space] = SPACES) -> Space:
    """UsageError R0032 where there is none."""
    if strategy not in spaces:
        known = ", ".join(f"`{name}`" for name in spaces)
        message = f"the cost model has no search space of `{strategy}`"
        raise UsageError("R0032", message, hint=f"there is {known}")
    return spaces[strategy]


def points(
    strategy: str, p: Problem, gpu: Gpu, spaces: Mapping[str, Space] = SPACES, fixed: Parameters = NONE
) -> Iterator[Point]:
    """Every member of the space of a strategy. UsageError R0032 without one.

    fixed: parameters that have these values whatever the space says of them
    """
    for s in space_of(strategy, spaces)(p, gpu):
        if fixed:
            yield Point.of(strategy, {**changed(s, **fixed).changes, **fixed})
        else:
            yield Point.by(strategy, s)


def refusal(point: Point, p: Problem, gpu: Gpu) -> StrategyError | None:
    """Why a point cannot be, before anything is derived."""
    schedule = point.schedule
    p = p.seen_by(schedule)
    try:
        check_sizes(schedule, p.sizes, p.along_k)
        check(schedule, gpu.limits, p.operand_bytes, p.along_k, p.result_bytes, p.beside)
        check_several(schedule, p, gpu)
        check_rows(schedule, p)
        check_reduced(schedule, p)
        check_beside(schedule, p)
    except StrategyError as error:
        return error
    return _contradiction(point)


@lru_cache(maxsize=1 << 14)
def _contradiction(point: Point) -> StrategyError | None:
    """Why a strategy does not take its parameters, whatever the problem and the GPU."""
    try:
        find(point.strategy).factory(**dict(point.parameters))
    except StrategyError as error:
        return error
    return None


def check_reduced(s: Schedule, p: Problem) -> None:
    """StrategyError R0609 where rows are reduced, and no fragment has whole sums of elements of theirs."""
    along = not s.swap_operands or p.turned
    if p.reduced and not (along and s.slices == 1 and s.epilogue != "shared"):
        message = "tensor_core: rows are reduced from the fragments of the result: no others share its sums"
        raise StrategyError("R0609", message, hint="use `epilogue=direct`, `split_k=1`, `split_cluster=1`")


def check_beside(s: Schedule, p: Problem) -> None:
    """StrategyError R0609 where rows are reduced beside a product, and no worker has them whole."""
    whole = s.warp[1] == s.block[1] and s.slices == s.slice_k == 1 and not s.swap_operands
    if p.row_work and not (whole and s.epilogue != "shared" and p.k % s.block[2] == 0):
        message = "tensor_core: rows of an operand are reduced by those who have these rows of the result"
        hint = "use warps of all columns of a block, steps that divide k, and `epilogue=direct`"
        raise StrategyError("R0609", message, hint=hint)


def check_rows(s: Schedule, p: Problem) -> None:
    """StrategyError R0604 where threads copy vectors that do not divide the rows of an operand.

    Bulk copies take longer copies of such operands, which are made by a kernel before.
    """
    vector = min(s.vector, WIDEST // p.operand_bytes)
    for row in p.rows if not s.uses_wgmma else ():
        if row % vector:
            raise StrategyError("R0604", f"tensor_core: vector: {vector} does not divide rows of {row}")


def check_several(s: Schedule, p: Problem, gpu: Gpu) -> None:
    """StrategyError R0621 where the tiles and sums of all products of a program do not fit together."""
    if p.products == 1:
        return
    all_, limits = needed(s, p), gpu.limits
    if all_.shared_bytes > limits.shared_bytes or all_.registers > limits.room(s, all_.threads):
        raise StrategyError("R0621", f"tensor_core: {p.products} products do not fit into a block together")


def cost_of(s: Schedule, p: Problem, gpu: Gpu) -> Cost:
    return cost(p.seen_by(s), s, gpu)


def candidates(strategy: str, p: Problem, gpu: Gpu, count: int, fixed: Parameters = NONE) -> Iterator[Ranked]:
    """All of them, in the order in which they are tried: the first `count` of the model, as `varied` says.

    Then the others that it ranks, and last what fits where none of these does.
    """
    found = best_first(strategy, p, gpu) if not fixed else ranked(strategy, p, gpu, fixed=fixed)
    first = varied(found, count)
    return itertools.chain(first, (one for one in found if one not in first), _else(strategy, p, gpu, fixed))


def _else(strategy: str, p: Problem, gpu: Gpu, fixed: Parameters) -> Iterator[Ranked]:
    """Ranked when the first of them is read."""
    yield from ranked(strategy, p, gpu, ELSE, fixed)


def ranked(
    strategy: str, p: Problem, gpu: Gpu, spaces: Mapping[str, Space] = SPACES, fixed: Parameters = NONE
) -> Sequence[Ranked]:
    """All legal points, the best first; of equals, the one that is written first."""
    if spaces is SPACES and not fixed:
        return list(best_first(strategy, p, gpu))
    # what differed in what is fixed, or is not tried here, is the same now
    several = dict.fromkeys(points(strategy, p, gpu, spaces, fixed))
    return sorted(_priced(several, p, gpu), key=lambda r: r.cost.cycles)


def _priced(several: Iterable[Point], p: Problem, gpu: Gpu) -> Iterator[Ranked]:
    """Those that are legal, with what they cost."""
    legal = (point for point in several if refusal(point, p, gpu) is None)
    return (Ranked(point, cost_of(point.schedule, p, gpu)) for point in legal)


def has_faster(strategy: str, p: Problem, gpu: Gpu, cycles: float) -> bool:
    """Whether the model expects some schedule to take less: mostly one of the first that are looked at."""
    may_be = (Point.by(strategy, s) for s in _members(strategy, p, gpu) if bound_of(s, p, gpu) < cycles)
    return any(one.cost.cycles < cycles for one in _priced(may_be, p, gpu))


class Remembered(Generic[T]):
    """What an iterator gives, which is asked for only once, and only as far as somebody wants to know."""

    def __init__(self, rest: Iterator[T]) -> None:
        self._known: list[T] = []
        self._rest = rest

    def __iter__(self) -> Iterator[T]:
        for number in itertools.count():
            if number == len(self._known):
                one = next(self._rest, None)
                if one is None:
                    return
                self._known.append(one)
            yield self._known[number]


@lru_cache(maxsize=4)
def best_first(strategy: str, p: Problem, gpu: Gpu) -> Iterable[Ranked]:
    """What `ranked` gives, of which several strategies ask for the first, for one program."""
    return Remembered(_in_order(strategy, _members(strategy, p, gpu), p, gpu))


def _members(strategy: str, p: Problem, gpu: Gpu) -> Iterable[Schedule]:
    """The members of a space, which is the same whatever is in front."""
    return _known_members(strategy, replace(p, in_front=0), gpu)


@lru_cache(maxsize=2)
def _known_members(strategy: str, p: Problem, gpu: Gpu) -> Iterable[Schedule]:
    return Remembered(space_of(strategy)(p, gpu))


def _in_order(strategy: str, several: Iterable[Schedule], p: Problem, gpu: Gpu) -> Iterator[Ranked]:
    """The legal ones, the best first: priced when their bound is the least, and judged when their price is.

    Most have a bound above the price of those that anybody asks for.
    """
    heap: list[tuple[float, int, Schedule, Cost | None]] = [
        (bound_of(s, p, gpu), number, s, None) for number, s in enumerate(several)
    ]
    heapify(heap)
    while heap:
        _, number, s, price = heappop(heap)
        if price is None:
            price = cost_of(s, p, gpu)
            heappush(heap, (price.cycles, number, s, price))
            continue
        point = Point.by(strategy, s)
        if refusal(point, p, gpu) is None:
            yield Ranked(point, price)


def bound_of(s: Schedule, p: Problem, gpu: Gpu) -> float:
    """Cycles, which are not more than the cost of a schedule has."""
    return least(p.seen_by(s), s, gpu)


def varied(found: Iterable[Ranked], count: int, each: int = 2) -> list[Ranked]:
    """The best `count`, with at most `each` of one tile while there are others: the model is approximate.

    One of several points with the same tile and the same cost is enough. At least one candidate whose
    warpgroups share a tile and one with ping-pong are among them, unless they are slow.
    """
    seen: Counter[tuple[Any, ...]] = Counter()
    first: list[Ranked] = []
    later: list[Ranked] = []
    for one in found:
        s = one.point.schedule
        ways = (s.warp_specialised, s.ping_pong, s.swap_operands, s.ahead)
        tile = (s.block, s.warp, s.split_k, s.split_cluster, *ways)
        same = (tile, one.cost.cycles)
        (later if seen[same] or seen[tile] >= each else first).append(one)
        seen[tile] += 1
        seen[same] += 1
        if len(first) == count:
            break
    chosen = [*first, *later][:count]
    for turns in (False, True):
        missing = all((one.point.schedule.ping_pong > 1) != turns for one in chosen)
        if missing and len(chosen) > 1:
            quick = itertools.takewhile(lambda one: one.cost.cycles < SLOW * chosen[0].cost.cycles, found)
            best = (one for one in quick if (one.point.schedule.ping_pong > 1) == turns)
            chosen[-1] = next(best, chosen[-1])
    return chosen
