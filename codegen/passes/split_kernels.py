"""Splits a program into kernels wherever a later command reads a result in global memory.

Blocks of a grid cannot wait for each other, but kernels of a stream do. A buffer in global memory declared
outside all loops becomes a temporary that outlives kernels. Commands that share registers or shared memory
stay in one kernel; a command that depends on another through global memory goes into a later kernel.
Independent commands share a kernel if their launch configurations agree, unless they have rings of slots
with barriers: these keep their shared memory until the kernel ends, so that nothing else could use it.
Each kernel reads for itself an index that is data:

    new i. i := A[t] ; c ; d   =   (new i. i := A[t] ; c) ; (new i. i := A[t] ; d)      c does not write A
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from codegen.ir import imperative as i
from codegen.ir.buffers import BARRIERS, dimensions
from codegen.ir.identifiers import shown
from codegen.ir.launch import Launch, derive
from codegen.lower.resolve import several_kernels
from rise.errors import TranslationError
from rise.nat import Nat, constant
from rise.source import Note, Origin
from rise.types import Array, Data, Index, Space


@dataclass(frozen=True)
class Temporary:
    """A buffer in global memory, live from kernel `first` to kernel `last`, both numbered from 0."""

    variable: i.Variable
    first: int
    last: int
    origin: Origin = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Kernels:
    """The kernels in order, and the temporaries that connect them."""

    functions: tuple[i.Function, ...]
    temporaries: tuple[Temporary, ...] = ()


@dataclass(frozen=True)
class Step:
    """A command outside all loops, with the buffers declared around it that are not in global memory."""

    command: i.Command
    around: tuple[i.New, ...] = ()

    @property
    def kept(self) -> frozenset[str]:
        """The enclosing buffers that the kernel uses."""
        read, written = uses(self.command, frozenset(new.name for new in self.around))
        return frozenset(read | written)


def kernels(function: i.Function) -> Kernels:
    """The pass; views must be resolved.

    Without temporaries there is one kernel, unless it would have two rings, or workers would repeat a step.
    """
    found: list[i.New] = []
    steps = tuple(_steps(function.body, (), found))
    own, outputs = frozenset(new.name for new in found), frozenset(v.name for v in function.outputs)
    # what nobody reads afterwards needs no kernel
    clusters = [cluster for cluster in _clusters(steps) if cluster.writes(own | outputs)]
    if not found and sum(cluster.has_ring for cluster in clusters) < 2 and not _repeated(clusters):
        return Kernels((function,))
    groups = _groups(clusters, own, outputs)
    variables = [i.Variable(new.name, in_memory(new.type)) for new in found]
    functions = [_kernel(function, group, number, variables) for number, group in enumerate(groups, 1)]
    users = [{v.name for v in (*f.outputs, *f.inputs)} for f in functions]
    temporaries: list[Temporary] = []
    for new, variable in zip(found, variables, strict=True):
        using = [number for number, names in enumerate(users) if new.name in names]
        if using:
            temporaries.append(Temporary(variable, using[0], using[-1], new.origin))
    return Kernels(tuple(functions), tuple(temporaries))


def _steps(command: i.Command, around: tuple[i.New, ...], temporaries: list[i.New]) -> Iterator[Step]:
    match command:
        case i.Skip():
            return
        case i.Sequence(parts):
            for part in parts:
                yield from _steps(part, around, temporaries)
        case i.New(Space.GLOBAL):
            temporaries.append(command)
            yield from _steps(command.body, around, temporaries)
        case i.New(_, name, Index(), i.Sequence([i.Assign(i.Access(written, ())) as read, *parts])) if (
            name == written and not _writes(name, parts)
        ):
            for step in _steps(i.sequence(*parts), around, temporaries):
                again = replace(command, body=i.sequence(read, step.command))
                yield replace(step, command=again) if _uses(step.command, name) else step
        case i.New():
            yield from _steps(command.body, (*around, command), temporaries)
        case _:
            _refuse_temporaries(command)
            yield Step(command, around)


def _writes(name: str, commands: Iterable[i.Command]) -> bool:
    return any(name in uses(command, frozenset({name}))[1] for command in commands)


def _uses(command: i.Command, scalar: str) -> bool:
    """Whether a command uses the index that a scalar holds, by itself or in other indices and conditions."""
    return scalar in _variables(command) or any(a.buffer == scalar for a in i.accesses_in(command))


def _variables(command: i.Command) -> set[str]:
    """The names in counts, indices and conditions."""
    found: set[str] = set()

    def see(size: Nat) -> Nat:
        found.update(size.variables)
        return size

    i.rebuild(command, Nat, see)
    return found


def in_memory(type_: Data) -> Data:
    """The type in global memory: a scalar is stored as an array of one element."""
    return type_ if isinstance(type_, Array) else Array(constant(1), type_)


def _refuse_temporaries(command: i.Command) -> None:
    for part in i.commands(command):
        if isinstance(part, i.New) and part.space is Space.GLOBAL:
            raise several_kernels(
                f"a temporary result is stored in Global memory inside a {_loop(command)}",
                part.origin,
                "store it outside all maps and folds, or in Shared or Local memory",
                (Note("this is the map", command.origin),) if isinstance(command, i.ParallelFor) else (),
            )


def _loop(command: i.Command) -> str:
    match command:
        case i.ParallelFor(i.Level.GRID):
            return "map over the grid"
        case i.ParallelFor(level):
            return f"map over {level.value}s"
        case _:
            return "loop"


def uses(command: i.Command, names: frozenset[str]) -> tuple[set[str], set[str]]:
    """Which of the buffers a command reads, and which it writes."""
    read: set[str] = set()
    written: set[str] = set()
    for part in i.commands(command):
        target = i.target_of(part)
        for access in i.accesses(part):
            (written if access is target else read).add(access.buffer)
    return read & names, written & names


# blocks of the grid or threads of a block, in one dimension
Dimension = tuple[i.Level, int]
DIMENSIONS = tuple((level, d) for level in (i.Level.BLOCK, i.Level.THREAD) for d in range(3))


def _dimensions(loop: i.ParallelFor) -> tuple[Dimension, ...]:
    """Those over which a loop distributes its iterations."""
    match loop.level:
        case i.Level.GRID:
            return (i.Level.BLOCK, loop.dimension), (i.Level.THREAD, loop.dimension)
        case i.Level.BLOCK | i.Level.CLUSTER:
            return ((i.Level.BLOCK, loop.dimension),)
        case i.Level.THREAD:
            return ((i.Level.THREAD, loop.dimension),)
        case _:
            return ((i.Level.THREAD, 0),)


@dataclass(frozen=True)
class Cluster:
    """Numbered steps that share registers or shared memory, and so belong to one kernel."""

    steps: tuple[tuple[int, Step], ...]

    @property
    def start(self) -> int:
        return self.steps[0][0]

    @property
    def kept(self) -> frozenset[str]:
        """The enclosing buffers that the steps use."""
        return frozenset(name for _, step in self.steps for name in step.kept)

    def together(self, other: Cluster) -> Cluster:
        return Cluster(tuple(sorted((*self.steps, *other.steps), key=lambda numbered: numbered[0])))

    def writes(self, names: frozenset[str]) -> bool:
        return any(uses(step.command, names)[1] for _, step in self.steps)

    @property
    def has_ring(self) -> bool:
        return any(
            isinstance(part, i.New) and part.layout == BARRIERS
            for _, step in self.steps
            for part in (*step.around, *i.commands(step.command))
        )

    @property
    def distributed(self) -> set[Dimension]:
        """The dimensions over which the steps distribute iterations."""
        loops = (part for _, step in self.steps for part in i.commands(step.command))
        return {each for loop in loops if isinstance(loop, i.ParallelFor) for each in _dimensions(loop)}

    @property
    def several(self) -> set[Dimension]:
        """The dimensions in which the steps, by themselves, have more than one worker."""
        launch = self.launch()
        return {each for each in DIMENSIONS if launch.workers(*each) != 1}

    def launch(self) -> Launch:
        return derive(i.sequence(*(step.command for _, step in self.steps)))


def _clusters(steps: Iterable[Step]) -> list[Cluster]:
    clusters: list[Cluster] = []
    for numbered in enumerate(steps):
        new = Cluster((numbered,))
        for old in [c for c in clusters if not c.kept.isdisjoint(new.kept)]:
            clusters.remove(old)
            new = old.together(new)
        clusters.append(new)
    return sorted(clusters, key=lambda cluster: cluster.start)


def _repeated(clusters: Sequence[Cluster]) -> bool:
    """Whether all workers of some dimension would repeat a step in one kernel: only other steps use it."""
    if len(clusters) < 2:
        return False
    several = {dimension for cluster in clusters for dimension in cluster.several}
    return any(several - cluster.distributed for cluster in clusters)


def _groups(
    clusters: Sequence[Cluster], temporaries: frozenset[str], outputs: frozenset[str]
) -> list[list[Step]]:
    """The steps of each kernel: as early as dependences allow, with equal launch configurations."""

    def follows(later: Cluster, earlier: Cluster) -> bool:
        # steps of one cluster write an output in program order
        return _follows(later, earlier, temporaries if later is earlier else temporaries | outputs)

    before = {c.start: [other.start for other in clusters if follows(c, other)] for c in clusters}
    stages: dict[int, int] = {}

    def stage(cluster: int, path: tuple[int, ...]) -> int:
        if cluster in path:
            raise _kept_too_long(next(c for c in clusters if c.start == cluster))
        if cluster not in stages:
            stages[cluster] = max(
                (1 + stage(other, (*path, cluster)) for other in before[cluster]), default=0
            )
        return stages[cluster]

    groups: dict[tuple[int, Launch, int | None], Cluster] = {}
    for cluster in clusters:
        alone = cluster.start if cluster.has_ring else None
        key = stage(cluster.start, ()), cluster.launch(), alone
        groups[key] = groups[key].together(cluster) if key in groups else cluster
    ordered = sorted(groups, key=lambda key: (key[0], groups[key].start))
    return [[step for _, step in groups[key].steps] for key in ordered]


def _follows(later: Cluster, earlier: Cluster, names: frozenset[str]) -> bool:
    """Whether a step of `later` depends on an earlier step of `earlier`: flow, anti- or output dependence."""
    for n, step in later.steps:
        read, written = uses(step.command, names)
        for m, other in earlier.steps:
            other_read, other_written = uses(other.command, names) if m < n else (set(), set())
            if (read | written) & other_written or written & other_read:
                return True
    return False


def _kept_too_long(cluster: Cluster) -> TranslationError:
    new = next(new for _, step in cluster.steps for new in step.around if new.name in cluster.kept)
    return TranslationError(
        "R0727",
        f"`{shown(new.name)}` is in {new.space} memory, which ends with a kernel, but two kernels use it",
        new.origin,
        "store it with `toMem(Global)`",
    )


def _kernel(
    function: i.Function, group: Sequence[Step], number: int, temporaries: Sequence[i.Variable]
) -> i.Function:
    """One kernel. Its parameters are the buffers it uses; those it writes are outputs."""
    known = (*function.outputs, *temporaries, *function.inputs)
    names = frozenset(variable.name for variable in known)
    found = [uses(step.command, names) for step in group]
    written = {name for _, names_written in found for name in names_written}
    read = {name for names_read, _ in found for name in names_read} | _sizes(known, group)
    return i.Function(
        f"{function.name}_{number}",
        tuple(v for v in known if v.name in written),
        tuple(v for v in known if v.name in read - written),
        _nested(group, 0),
        _maps(function, group),
    )


def _maps(function: i.Function, group: Sequence[Step]) -> tuple[i.MapParameter, ...]:
    """The tensor maps that the commands of a kernel use."""
    named = {getattr(command, "map", None) for step in group for command in i.commands(step.command)}
    return tuple(one for one in function.maps if one.name in named)


def _sizes(known: Iterable[i.Variable], group: Sequence[Step]) -> set[str]:
    """The run-time sizes that a kernel needs: in counts, indices, and types of buffers."""
    types = {v.name: v.type for v in known}
    found = {name for step in group for name in _variables(step.command)}
    for step in group:
        for command in i.commands(step.command):
            buffers = [types[a.buffer] for a in i.accesses(command) if a.buffer in types]
            inside = [command.type] if isinstance(command, i.New) else []
            for type_ in (*buffers, *inside, *(new.type for new in step.around)):
                found.update(name for size in dimensions(type_) for name in size.variables)
    return found


def _nested(steps: Sequence[Step], depth: int) -> i.Command:
    """The steps in order, inside the declarations of their enclosing buffers."""
    parts: list[i.Command] = []
    for name, inside in groupby(steps, lambda s: s.around[depth].name if len(s.around) > depth else ""):
        group = list(inside)
        if name:
            parts.append(replace(group[0].around[depth], body=_nested(group, depth + 1)))
        else:
            parts += [step.command for step in group]
    return i.sequence(*parts)
