"""Write races: no two threads may write the same location. Every level with several workers must be a loop
around a write, and the indices of the write must distinguish its workers.

Views distinguish workers, since they are bijections. A `scatter` is a bijection if its indices are a
permutation that does not depend on data, a `reorder` if its functions are inverse to each other. What is
written at a place p only where owners[p] = j distinguishes workers like j: the same p has the same owner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from codegen.ir import imperative as i
from codegen.ir.identifiers import shown
from codegen.ir.launch import Extent, Launch
from codegen.passes.analysis.dependences import (
    OUTSIDE,
    WARPGROUP_THREADS,
    Loop,
    Use,
    Workers,
    elements,
    loop_of,
)
from codegen.passes.analysis.injectivity import natural, same_location
from rise.errors import TranslationError
from rise.nat import Atom, Facts, Nat, NatVariable, variable
from rise.types import Space


@dataclass(frozen=True)
class Around:
    """The context of a command.

    loops:  innermost last
    local:  the buffers that are private to a thread
    own:    for each buffer that the kernel declares: the loops each iteration of which has its own copy
    known:  scalars that are sums of loop indices
    read:   scalars that hold an element of an array that no command writes: the variables in its indices
    once:   the scalars that are assigned exactly once
    elected: one thread of the block executes it
    conditions: pairs (value, bound): it is executed only if each value < bound
    """

    loops: tuple[Loop, ...] = ()
    local: frozenset[str] = frozenset()
    own: Mapping[str, frozenset[str]] = field(default_factory=dict)
    known: Mapping[str, Nat] = field(default_factory=dict)
    read: Mapping[str, frozenset[str]] = field(default_factory=dict)
    once: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    elected: bool = False
    conditions: tuple[tuple[Nat, Nat], ...] = ()

    @property
    def owned(self) -> dict[str, Nat]:
        """For scalars p that hold places: the element j that owns p, where a condition says that it does."""
        found: dict[str, Nat] = {}
        for name, places in self.read.items():
            owner = variable(name)
            for element, bound in self.conditions:
                equal = bound == owner + 1 and (owner, element + 1) in self.conditions
                if equal and len(places) == 1 and owner != element:
                    found |= dict.fromkeys(places, element)
        return found

    @property
    def workers(self) -> dict[Workers, str]:
        return {loop.workers: loop.index for loop in self.loops if loop.workers}

    @property
    def levels(self) -> set[i.Level]:
        return {level for level, _ in self.workers}

    @property
    def facts(self) -> Facts:
        facts = Facts()
        for loop in self.loops:
            facts = facts.with_range(loop.index, 0, loop.count)
        return facts


def check_races(body: i.Command, launch: Launch) -> None:
    """Raises TranslationError R0707 for the first write that races with itself."""
    targets = Counter(t.buffer for c in i.commands(body) if isinstance(t := i.target_of(c), i.Access))
    once = frozenset(name for name, times in targets.items() if times == 1)
    _check(body, Around(once=once, written=frozenset(targets)), launch)


def _check(command: i.Command, around: Around, launch: Launch) -> Around:
    """The context after the command."""
    if (loop := loop_of(command)) is not None:
        inner = replace(around, loops=(*around.loops, loop))
        _check_all(command, inner, launch)
        return around
    if isinstance(command, i.Elected):
        _check_all(command, replace(around, elected=True), launch)
        return around
    if isinstance(command, i.When):
        condition = (command.value, command.bound)
        _check_all(command, replace(around, conditions=(*around.conditions, condition)), launch)
        return around
    if isinstance(command, i.New):
        local = around.local | ({command.name} if command.space is Space.LOCAL else set())
        mine = frozenset(loop.index for loop in around.loops)
        around = replace(around, local=local, own={**around.own, command.name: mine})
    target = i.target_of(command)
    if isinstance(target, i.Access | i.Tile) and target.buffer not in around.local:
        _single_writer(command, target, around, launch)
    if isinstance(command, i.Assign) and isinstance(target, i.Access) and not target.indices:
        match command.value:
            case i.Access(array, places) if target.buffer in around.once and array not in around.written:
                by = frozenset[str]().union(*(place.variables for place in places))
                around = replace(around, read={**around.read, target.buffer: by})
        value = natural(command.value, around.known, around.facts)
        if value is not None and target.buffer in around.local & around.once:
            return replace(around, known={**around.known, target.buffer: value})
    return _check_all(command, around, launch)


def _check_all(command: i.Command, around: Around, launch: Launch) -> Around:
    for part in i.inner(command):
        around = _check(part, around, launch)
    return around


def _single_writer(command: i.Command, target: i.Access | i.Tile, around: Around, launch: Launch) -> None:
    origin = getattr(command, "origin", None)
    for level, dimension, workers in _launched(launch, around, command, target.buffer):
        if workers != 1 and (level, dimension) not in around.workers:
            raise TranslationError(
                "R0707",
                f"all {level.value}s write the same location of `{shown(target.buffer)}`",
                origin,
                f"distribute the writes with a map over {level.value}s",
            )
    use = _use(command, target, around)
    private = around.own.get(target.buffer, frozenset())
    several = {w for w, index in use.workers().items() if index not in private}
    if target.buffer in around.own:
        several = {w for w in several if w[0] not in OUTSIDE}  # each block has its own copy
    several -= {loop.workers for loop in use.around if loop.workers and (loop.one or loop.count.value == 1)}
    if isinstance(command, i.StoreMatrices):
        # a warp stores collectively, and only one lane per row supplies an address
        several -= {WARPGROUP_THREADS}
    mentioned = {name for n in use.indices for name in n.variables}
    for level, dimension in sorted(several, key=str):
        if use.workers()[level, dimension] not in mentioned:
            _refuse_read(use, target, origin)
            message = f"all {level.value}s write the same location of `{shown(target.buffer)}`"
            raise TranslationError("R0707", message, origin)
    uniform = use.uniform(i.Scope.BLOCK) if target.buffer in around.own else frozenset()
    computed = around.known.keys() & {name for n in target.indices for name in n.variables}
    indices = {loop.index for loop in (*use.around, *use.collective)}
    conditions = [pair for pair in around.conditions if all(n.variables <= indices for n in pair)]
    same = same_location(use, several, uniform, not computed, conditions)
    if same is not None:
        raise TranslationError(
            "R0707",
            f"several {same[0].value}s write the same location of `{shown(target.buffer)}`",
            origin,
            "the function of a `reorder`, or the indices of a `scatter`, must be a permutation",
        )


def _refuse_read(use: Use, target: i.Access | i.Tile, origin: object) -> None:
    """If data determine the location of a write, two threads may write the same one."""
    loops = {loop.index for loop in (*use.around, *use.collective)}
    if any(n.variables - loops for n in use.indices):
        raise TranslationError(
            "R0707",
            f"threads may write the same location of `{shown(target.buffer)}`: its indices are data",
            origin,  # type: ignore[arg-type]  # an origin
            "write it with `mapSeq`, by a permutation, or where places have owners (`scatterBy`)",
        )


def _use(command: i.Command, target: i.Access | i.Tile, around: Around) -> Use:
    """The write, with its indices in terms of loop indices as far as possible."""
    indices, collective = elements(command, target)
    scalars = {**around.known, **around.owned}
    known: dict[Atom, Nat] = {NatVariable(name): value for name, value in scalars.items()}
    return Use(target.buffer, tuple(n.substitute(known) for n in indices), around.loops, True, collective)


def _launched(
    launch: Launch, around: Around, command: i.Command, buffer: str
) -> list[tuple[i.Level, int, Extent]]:
    """The levels whose workers the indices of a write must distinguish."""
    if i.Level.GRID in around.levels:
        return [(i.Level.GRID, d, launch.workers(i.Level.GRID, d)) for d in range(3)]
    wanted: list[tuple[i.Level, int, Extent]] = []
    if buffer not in around.own:
        levels = (i.Level.CLUSTER, i.Level.BLOCK) if launch.cluster > 1 else (i.Level.BLOCK,)
        wanted += [(level, d, launch.workers(level, d)) for level in levels for d in range(3)]
    if around.elected:
        return wanted
    if i.Level.WARP in around.levels or i.Level.LANE in around.levels:
        if i.Level.WARP not in around.levels:
            wanted.append((i.Level.WARP, 0, launch.workers(i.Level.WARP, 0)))
        if not isinstance(command, i.StoreFragment):
            wanted.append((i.Level.LANE, 0, 32))
        return wanted + [(i.Level.THREAD, d, launch.block[d]) for d in (1, 2)]
    if i.Level.WARPGROUP in around.levels:
        wanted.append((i.Level.WARPGROUP_THREAD, 0, 128))
        return wanted + [(i.Level.THREAD, d, launch.block[d]) for d in (1, 2)]
    return wanted + [(i.Level.THREAD, d, launch.block[d]) for d in range(3)]
