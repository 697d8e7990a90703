"""The imperative IR, produced by accT/conT from functional programs (extended abstract, sections 2.2, 4.1).

Expressions are read, acceptors are written, commands have effects. After translation, expressions and
acceptors still contain the views of the functional program (`At(i, View("zip", …))`); `codegen.lower.paths`
turns each of them into an `Access` to a buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from operator import is_
from typing import Any, TypeVar, cast

from codegen.ir.tensor_maps import AnyMap
from rise.expr import Expr
from rise.frozen import Memory, changed, filled_at_once
from rise.nat import Nat
from rise.source import Origin
from rise.types import ROW_MAJOR, Argument, Data, Fragment, Layout, Pair, Space

N = TypeVar("N")
T = TypeVar("T")
# fields that contain no part of the program
LEAVES = frozenset({"origin", "type", "fragment"})


class Level(Enum):
    """The hardware level whose workers execute the iterations of a parallel loop."""

    GRID = "global"
    CLUSTER = "cluster"
    BLOCK = "block"
    THREAD = "thread"
    WARPGROUP = "warpgroup"
    WARPGROUP_THREAD = "member"  # a thread of a warpgroup
    WARP = "warp"
    LANE = "lane"


class Role(Enum):
    """How the iterations of a sequential loop relate to each other; passes depend on it."""

    SEQUENCE = "an iteration may use the results of earlier ones"
    MAP = "iterations are independent"
    REDUCTION = "iterations add to one accumulator"
    PIPELINE = "a reduction whose operands are loaded several iterations ahead"
    PRELOAD = "loads the first elements of a pipeline into registers"
    VECTOR = "the elements of a vector, which one access can move"
    ALIGNED_VECTOR = "the elements of a vector declared as aligned, which one access must move"


class Scope(Enum):
    """The threads that a barrier synchronises."""

    CLUSTER = "cluster"
    BLOCK = "block"
    CONSUMERS = "consumers"  # the warpgroups that compute, in a warp-specialised kernel
    WARPGROUP = "warpgroup"
    WARP = "warp"


# --- expressions ----------------------------------------------------------------------------------------


@filled_at_once
@dataclass(frozen=True, slots=True)
class Variable:
    """A buffer, a scalar parameter, or the element that a `MapExpression` binds."""

    name: str
    type: Data


@filled_at_once
@dataclass(frozen=True, slots=True)
class Number:
    value: int | float | bool
    type: Data


@filled_at_once
@dataclass(frozen=True, slots=True)
class Natural:
    """The value of a size or of a loop index."""

    value: Nat
    type: Data


@filled_at_once
@dataclass(frozen=True, slots=True)
class Operator:
    """A scalar operation, with the name of the primitive."""

    name: str
    operands: tuple[Expression, ...]
    type: Data


@filled_at_once
@dataclass(frozen=True, slots=True)
class At:
    """idx(index, array); for a fragment, the element held in register `index`."""

    index: Nat
    array: Expression
    type: Data


@filled_at_once
@dataclass(frozen=True, slots=True)
class View:
    """A primitive that only rearranges: no code, no memory. `arguments` are its dependent arguments."""

    name: str
    arguments: tuple[Argument, ...]
    operands: tuple[Expression, ...]
    type: Data
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class MapExpression:
    """map in read position: the body replaces each element."""

    parameter: str
    body: Expression
    array: Expression
    type: Data


@filled_at_once
@dataclass(frozen=True, slots=True)
class GenerateExpression:
    """An array whose elements are a function of the index."""

    parameter: str
    body: Expression
    type: Data


@filled_at_once
@dataclass(frozen=True, slots=True)
class LetExpression:
    """The body, in which the parameter denotes a scalar that is computed once."""

    parameter: str
    value: Expression
    body: Expression
    type: Data


@filled_at_once
@dataclass(frozen=True, slots=True)
class ForeignCall:
    """A call of a C function: an existing one, or one with the given text over x1, x2, …"""

    name: str
    text: str
    operands: tuple[Expression, ...]
    type: Data


@filled_at_once
@dataclass(frozen=True, slots=True)
class Access:
    """An element of a buffer, or a subarray if there are fewer indices than dimensions."""

    buffer: str
    indices: tuple[Nat, ...]
    type: Data


@filled_at_once
@dataclass(frozen=True, slots=True)
class Tile:
    """A two-dimensional part of a buffer: the offset of its first element and its leading dimension.

    indices: of an element, in terms of its row and column
    panel:   the distance between panels of columns, if the tile is stored in panels
    extents: the names of row and column in `indices`, and their extents
    """

    buffer: str
    offset: Nat
    leading: Nat
    row_major: bool
    type: Data
    indices: tuple[Nat, ...] = ()
    extents: tuple[tuple[str, Nat], ...] = ()
    panel: Nat | None = None


Expression = (
    Variable
    | Number
    | Natural
    | Operator
    | At
    | View
    | MapExpression
    | GenerateExpression
    | LetExpression
    | ForeignCall
    | Access
    | Tile
)

# --- acceptors ------------------------------------------------------------------------------------------


@filled_at_once
@dataclass(frozen=True, slots=True)
class AcceptVariable:
    name: str
    type: Data


@filled_at_once
@dataclass(frozen=True, slots=True)
class AcceptAt:
    index: Nat
    array: Acceptor
    type: Data


@filled_at_once
@dataclass(frozen=True, slots=True)
class AcceptView:
    """The acceptor of a view's operand number `operand`, given the acceptor of its result.

    indices: the index array of a scatter, which determines where the elements are written; of `scatterBy`
             the pair of its index arrays; the number of `prefix`
    """

    name: str
    arguments: tuple[Argument, ...]
    acceptor: Acceptor
    type: Data
    operand: int = 0
    indices: Expression | None = None


@filled_at_once
@dataclass(frozen=True, slots=True)
class AcceptMap:
    """The acceptor of xs in `map(fun(parameter => body))(xs)`, where the body only rearranges."""

    parameter: str
    body: Expr
    acceptor: Acceptor
    type: Data


@filled_at_once
@dataclass(frozen=True, slots=True)
class AcceptMember:
    """The acceptor of p in `mapFst(fun(parameter => body))(p)`, where the body only rearranges.

    member: which member of the pair that is, 0 or 1; the other one is written as it is
    """

    parameter: str
    body: Expr
    member: int
    acceptor: Acceptor
    type: Pair


Acceptor = AcceptVariable | AcceptAt | AcceptView | AcceptMap | AcceptMember | Access | Tile

# --- commands -------------------------------------------------------------------------------------------


@filled_at_once
@dataclass(frozen=True, slots=True)
class Skip:
    pass


@filled_at_once
@dataclass(frozen=True, slots=True)
class Sequence:
    commands: tuple[Command, ...]


@filled_at_once
@dataclass(frozen=True, slots=True)
class Assign:
    target: Acceptor
    value: Expression
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class CopyAsync:
    """An asynchronous assignment from global to shared memory (cp.async), complete when it is waited for."""

    target: Acceptor
    value: Expression
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class Commit:
    """Makes the asynchronous copies started since the last commit a commit group."""


@filled_at_once
@dataclass(frozen=True, slots=True)
class Wait:
    """Waits until at most `pending` of the thread's commit groups are pending."""

    pending: int


@filled_at_once
@dataclass(frozen=True, slots=True)
class InitBarriers:
    """Initialises the mbarriers of a ring, whose phases complete after `arrivals` arrivals; by one thread."""

    barriers: Acceptor
    count: Nat
    arrivals: int = 1


@filled_at_once
@dataclass(frozen=True, slots=True)
class Expect:
    """Arrive/expect-tx: arrives at an mbarrier and announces the bytes that bulk copies will transfer."""

    barrier: Acceptor
    bytes: int


@filled_at_once
@dataclass(frozen=True, slots=True)
class BulkCopy:
    """Starts a bulk copy of a tile from global to shared memory, which signals its bytes to an mbarrier.

    map, corner: once resolved: the tensor map, and the box's first element in it, innermost first. A run of
                 adjacent elements has no map, and its corner is the number of its first element
    blocks:      the number of blocks of the cluster that receive the copy, at the same address
    """

    target: Acceptor
    value: Expression
    barrier: Acceptor
    map: str = ""
    corner: tuple[Nat, ...] = ()
    blocks: int = 1
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class LeaveUndefined:
    """Says that nothing is brought to a tile in shared memory in the current phase of an mbarrier.

    Whatever is there may be read, but no result may depend on it. It costs a GPU nothing.
    """

    tile: Acceptor
    barrier: Acceptor


@filled_at_once
@dataclass(frozen=True, slots=True)
class WaitBarrier:
    """Waits until the phase of that parity is complete."""

    barrier: Acceptor
    parity: Nat


@filled_at_once
@dataclass(frozen=True, slots=True)
class PrefetchMap:
    """Prefetches a tensor map, which is a parameter, for the copy engine."""

    map: str


@filled_at_once
@dataclass(frozen=True, slots=True)
class Prefetch:
    """Brings the line of memory with an element, which is read later, into the L2 cache."""

    value: Expression


@filled_at_once
@dataclass(frozen=True, slots=True)
class AwaitPreviousGrid:
    """Waits for the results of the previous kernel of the stream, before which this one may have started."""


@filled_at_once
@dataclass(frozen=True, slots=True)
class StartNextGrid:
    """Lets the next kernel of the stream start, once every block has said so or has ended."""


@filled_at_once
@dataclass(frozen=True, slots=True)
class Arrive:
    """Each warpgroup arrives once, at the mbarriers with the same address in `blocks` blocks.

    release: arrives only when the products that the warpgroup started are complete
    """

    barrier: Acceptor
    blocks: int = 1
    release: bool = False


@filled_at_once
@dataclass(frozen=True, slots=True)
class Elected:
    """One thread executes the body: number `thread` of a block, or one of each warp(group); see `scope`."""

    body: Command
    scope: Scope = Scope.BLOCK
    thread: int = 0


@filled_at_once
@dataclass(frozen=True, slots=True)
class WarpSpecialise:
    """The last warpgroups of a block only load; the first `consumers` warpgroups do everything else.

    setup:     executed once per block, before everything else
    execution: in `produce` and `consume`, the number of earlier executions (see `passes.roles`)
    position:  the number of elements that these loaded
    """

    setup: Command
    produce: Command
    consume: Command
    producers: int
    consumers: int
    execution: str = ""
    position: str = ""
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class Ring:
    """A pipeline of bulk copies that all threads of a block execute.

    setup: initialises its mbarriers, once per block, before the first execution of the pipeline
    turn:  in `body`, the number of earlier executions (see `passes.rings`)
    """

    setup: Command
    body: Command
    execution: str
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class BulkStore:
    """Starts a bulk store of a tile from shared to global memory; elements out of bounds are dropped.

    map, corner: once resolved: the tensor map, and the box's first element in it, innermost first. A run of
                 adjacent elements has no map, and its corner is the number of its first element
    """

    target: Acceptor
    value: Expression
    map: str = ""
    corner: tuple[Nat, ...] = ()
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class BulkCommit:
    """Makes the bulk stores that the thread started since the last commit a commit group."""


@filled_at_once
@dataclass(frozen=True, slots=True)
class BulkWait:
    """Waits until all but `pending` of the thread's groups of bulk stores have read their sources."""

    pending: int


@filled_at_once
@dataclass(frozen=True, slots=True)
class FenceAsync:
    """A proxy fence: makes the thread's writes to shared memory visible to the copy engine and to wgmma."""


@filled_at_once
@dataclass(frozen=True, slots=True)
class WgmmaFence:
    """Orders earlier writes to a warpgroup's accumulators before its wgmmas.

    pins: only keeps the compiler from moving these writes further down; a fence follows
    """

    fragments: tuple[Acceptor, ...] = ()
    pins: bool = False


@filled_at_once
@dataclass(frozen=True, slots=True)
class WgmmaCommit:
    """Makes the wgmmas that a warpgroup started since the last commit a commit group."""


@filled_at_once
@dataclass(frozen=True, slots=True)
class WgmmaWait:
    """Waits until at most `pending` groups of wgmmas are pending; then the fragments can be used.

    operands: the buffers in shared memory that the groups waited for have read
    """

    pending: int
    fragments: tuple[Acceptor, ...] = ()
    operands: tuple[str, ...] = ()


@filled_at_once
@dataclass(frozen=True, slots=True)
class When:
    """Executes the body if value < bound."""

    value: Nat
    bound: Nat
    body: Command
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class Define:
    """Computes an index once: in the body, the name denotes the value."""

    name: str
    value: Nat
    body: Command
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class Counter:
    """(start + loop index) mod modulus, without a division: it wraps around to 0. start < modulus.

    after: the counter whose wrap-arounds it counts, instead of the iterations of the loop
    """

    name: str
    start: Nat
    modulus: Nat
    after: str = ""


@filled_at_once
@dataclass(frozen=True, slots=True)
class For:
    """A sequential loop.

    owner: each thread executes the iterations whose elements it owns
    label: the primitive or the pass that the loop is of, for readers of the kernel
    """

    index: str
    count: Nat
    body: Command
    unroll: bool = False
    owner: bool = False
    role: Role = Role.SEQUENCE
    label: str = ""
    counters: tuple[Counter, ...] = ()
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class ParallelFor:
    """Iterations distributed over the workers of a level, in dimension `dimension` (0 is x).

    most: the largest number of workers, over which iterations are then distributed cyclically; 0: no limit
    turn: if not empty, each execution runs only one iteration, and the next execution the next one; the
          name denotes the number of earlier executions (see `passes.roles`)
    """

    level: Level
    dimension: int
    index: str
    count: Nat
    body: Command
    origin: Origin = field(default=None, compare=False, repr=False)
    most: int = 0
    execution: str = ""


@filled_at_once
@dataclass(frozen=True, slots=True)
class New:
    """A buffer whose scope is the body.

    layout: the layout of rows in shared memory
    owners: for each dimension the workers over which it is distributed, or None (see `distribute`)
    offset: in bytes from the start of shared memory (see `allocate`)
    results: of the buffers of its members, those that are stored in others at once: both names
    """

    space: Space
    name: str
    type: Data
    body: Command
    origin: Origin = field(default=None, compare=False, repr=False)
    layout: Layout = ROW_MAJOR
    owners: tuple[tuple[Level, int] | None, ...] = ()
    offset: Nat | None = None
    results: tuple[tuple[str, str], ...] = ()


@filled_at_once
@dataclass(frozen=True, slots=True)
class Barrier:
    scope: Scope


@filled_at_once
@dataclass(frozen=True, slots=True)
class LoadFragment:
    """loadFragment of Listing 1: loads a tile in memory into a fragment."""

    fragment: Fragment
    target: Acceptor
    tile: Expression
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class LoadMatrices:
    """ldmatrix: loads `count` 8×8 matrices of 16-bit elements into registers of a fragment, from `target`.

    source: the start of row i of matrix j, for lane 8j + i
    """

    target: Acceptor
    source: Expression
    count: int
    transposed: bool
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class StoreMatrices:
    """stmatrix: stores `count` 8×8 matrices of 16-bit elements from registers of a fragment, from `value`.

    target: the start of row i of matrix j, for lane 8j + i
    """

    target: Acceptor
    value: Expression
    count: int
    transposed: bool
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class StoreFragment:
    fragment: Fragment
    tile: Acceptor
    value: Expression
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class FillFragment:
    fragment: Fragment
    target: Acceptor
    value: Expression
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class MmaFragment:
    """target = a * b + c on fragments in registers, executed by all threads of a warp together."""

    target: Acceptor
    a: Expression
    b: Expression
    c: Expression
    origin: Origin = field(default=None, compare=False, repr=False)


@filled_at_once
@dataclass(frozen=True, slots=True)
class Wgmma:
    """target += a * b, started by a warpgroup: b is in shared memory, a is there or in registers.

    clear: if its value is 0, the product replaces the target
    """

    target: Acceptor
    a: Expression
    b: Tile
    origin: Origin = field(default=None, compare=False, repr=False)
    clear: Nat | None = None


@filled_at_once
@dataclass(frozen=True, slots=True)
class ForFragment:
    """The body, for each element that a thread holds of the fragments that are accessed with `index`."""

    fragment: Fragment
    index: str
    body: Command
    origin: Origin = field(default=None, compare=False, repr=False)


Command = (
    Skip
    | Sequence
    | Assign
    | CopyAsync
    | Commit
    | Wait
    | InitBarriers
    | Expect
    | BulkCopy
    | LeaveUndefined
    | WaitBarrier
    | PrefetchMap
    | Prefetch
    | AwaitPreviousGrid
    | StartNextGrid
    | Arrive
    | Elected
    | WarpSpecialise
    | Ring
    | BulkStore
    | BulkCommit
    | BulkWait
    | FenceAsync
    | WgmmaFence
    | WgmmaCommit
    | WgmmaWait
    | When
    | Define
    | For
    | ParallelFor
    | New
    | Barrier
    | LoadFragment
    | LoadMatrices
    | StoreMatrices
    | StoreFragment
    | FillFragment
    | MmaFragment
    | Wgmma
    | ForFragment
)


# nodes whose fields are expressions and acceptors
READING = (
    Operator, ForeignCall, Assign, CopyAsync, LoadFragment, LoadMatrices, StoreFragment, FillFragment,
    MmaFragment, InitBarriers, Expect, BulkCopy, LeaveUndefined, WaitBarrier, Arrive, WgmmaFence, WgmmaWait,
    BulkStore, StoreMatrices, Wgmma, Prefetch,
)  # fmt: skip


def sequence(*commands: Command) -> Command:
    """The commands in order, with nested sequences flattened."""
    flat: list[Command] = []
    for command in commands:
        if isinstance(command, Sequence):
            flat.extend(command.commands)
        elif not isinstance(command, Skip):
            flat.append(command)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat)) if flat else Skip()


def vector_loop(lane: str, size: Nat, body: Command, aligned: bool = False) -> For:
    """The loop over the elements of a vector."""
    if aligned:
        return For(lane, size, body, unroll=True, role=Role.ALIGNED_VECTOR, label="aligned vector")
    return For(lane, size, body, unroll=True, role=Role.VECTOR, label="vector")


BODY = ("body",)
# the fields of a command that are commands, besides those of a sequence
INNER: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((For, ParallelFor, New, ForFragment, When, Define, Elected), BODY),
    WarpSpecialise: ("setup", "produce", "consume"),
    Ring: ("setup", "body"),
}


def inner(command: Command) -> tuple[Command, ...]:
    """The commands directly inside a command."""
    if isinstance(command, Sequence):
        return command.commands
    names = INNER.get(type(command))
    if names is None:
        return ()
    if len(names) == 1:
        return (getattr(command, names[0]),)
    return tuple([getattr(command, name) for name in names])


def with_inner(command: Command, new: tuple[Command, ...]) -> Command:
    """The command with other commands inside it; the command itself where they are the same objects."""
    if isinstance(command, Sequence):
        made = sequence(*new)
        return command if isinstance(made, Sequence) and same(made.commands, command.commands) else made
    names = INNER.get(type(command))
    if names is None or same(inner(command), new):
        return command
    return changed(command, **dict(zip(names, new, strict=True)))


def same(left: tuple[object, ...], right: tuple[object, ...]) -> bool:
    """Whether two tuples have the same objects."""
    return len(left) == len(right) and all(map(is_, left, right))


def commands(command: Command) -> Iterator[Command]:
    """Every command, outermost first."""
    rest = [command]
    while rest:
        part = rest.pop()
        yield part
        rest += reversed(inner(part))


def accesses(node: object) -> Iterator[Access | Tile]:
    """Every access in an expression, or in the expressions of one command."""
    rest = [node]
    while rest:
        part = rest.pop()
        if isinstance(part, (Access, Tile)):
            yield part
        elif isinstance(part, tuple):
            rest += reversed(part)
        elif isinstance(part, READING):
            rest += [getattr(part, name) for name in reversed(_parts(part))]


def accesses_in(command: Command) -> Iterator[Access | Tile]:
    """Every access in a command and the commands inside it."""
    for part in commands(command):
        yield from accesses(part)


def target_of(command: Command) -> object:
    """The location that a command writes."""
    match command:
        case Assign(target) | CopyAsync(target) | MmaFragment(target) | Wgmma(target) | LoadMatrices(target):
            return target
        case BulkCopy(target) | BulkStore(target) | StoreMatrices(target):
            return target
        case LoadFragment(_, target) | FillFragment(_, target):
            return target
        case StoreFragment(_, tile):
            return tile
        case _:
            return None


def rebuild(node: T, kind: type[N], change: Callable[[N], object]) -> T:
    """A command or expression with every node of a kind changed, at any depth.

    The replacement must be legal where the node was; this is not checked.
    """
    return cast(T, _rebuilt(node, kind, change))


def _rebuilt(value: Any, kind: type[N], change: Callable[[N], object]) -> Any:
    """What may stand where the value was."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, tuple):
        parts = tuple([_rebuilt(part, kind, change) for part in value])
        return value if same(parts, value) else parts
    new: dict[str, object] = {}
    for name in _PARTS[type(value)]:
        old = getattr(value, name)
        part = _rebuilt(old, kind, change)
        if part is not old:
            new[name] = part
    return changed(value, **new) if new else value


def own(command: Command, kind: type[N]) -> Iterator[N]:
    """Every node of a kind in the command, but not in the commands inside it."""
    if isinstance(command, kind):
        yield command
        return
    rest: list[object] = [getattr(command, name) for name in reversed(_OWN_PARTS[type(command)])]
    while rest:
        value = rest.pop()
        if isinstance(value, kind):
            yield value
        elif isinstance(value, tuple):
            rest += reversed(value)
        elif names := _PARTS[type(value)]:
            rest += [getattr(value, name) for name in reversed(names)]


def _parts(node: object) -> tuple[str, ...]:
    """The fields of a node that may contain nodes, sizes or indices; none for what is not a node."""
    return _PARTS[type(node)]


def _names_of_parts(kind: Any) -> tuple[str, ...]:
    if not is_dataclass(kind) or kind.__module__ != __name__:
        return ()
    return tuple(f.name for f in fields(kind) if f.name not in LEAVES)


def _names_of_own_parts(kind: Any) -> tuple[str, ...]:
    inside = ("commands",) if kind is Sequence else INNER.get(kind, ())
    return tuple(name for name in _PARTS[kind] if name not in inside)


_PARTS: Memory[type, tuple[str, ...]] = Memory(_names_of_parts)
# those of a command that are not commands
_OWN_PARTS: Memory[type, tuple[str, ...]] = Memory(_names_of_own_parts)


@filled_at_once
@dataclass(frozen=True, slots=True)
class MapParameter:
    """A kernel parameter that is the tensor map of the array parameter `buffer`."""

    name: str
    buffer: str
    map: AnyMap


@filled_at_once
@dataclass(frozen=True, slots=True)
class Function:
    """A kernel before printing: its parameters and its body.

    ready: buffers that it may read before the kernel in front of it has ended
    """

    name: str
    outputs: tuple[Variable, ...]
    inputs: tuple[Variable, ...]
    body: Command
    maps: tuple[MapParameter, ...] = ()
    ready: frozenset[str] = frozenset()
