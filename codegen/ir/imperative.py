"""The imperative program: what accT/conT make of a functional one (extended abstract, sections 2.2, 4.1).

Expressions are read, acceptors are written, commands do something. As translated, expressions and
acceptors still contain the views of the functional program (`At(i, View("zip", …))`); `codegen.lower.paths`
turns every one of them into an `Access` to a buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import TypeVar, cast

from codegen.ir.tensor_maps import TensorMap
from rise.expr import Expr
from rise.nat import Nat
from rise.source import Origin
from rise.types import ROW_MAJOR, Argument, Data, Fragment, Layout, Space

N = TypeVar("N")
T = TypeVar("T")
# what holds no part of a program
LEAVES = frozenset({"origin", "type", "fragment"})


class Level(Enum):
    """Who executes an iteration of a parallel loop."""

    GRID = "global"
    CLUSTER = "cluster"
    BLOCK = "block"
    THREAD = "thread"
    WARPGROUP = "warpgroup"
    WARPGROUP_THREAD = "member"  # a thread of a warpgroup
    WARP = "warp"
    LANE = "lane"


class Role(Enum):
    """What the iterations of a sequential loop are to each other: passes decide by it."""

    SEQUENCE = "an iteration may use what those before it left"
    MAP = "iterations are independent"
    REDUCTION = "iterations add to one accumulator"
    PIPELINE = "a reduction whose operands are loaded some iterations ahead"
    PRELOAD = "loads the first elements of a pipeline into registers"
    VECTOR = "the elements of a vector, which one access can move"
    ALIGNED_VECTOR = "the elements of a vector that the program says is aligned: one access must move them"


class Scope(Enum):
    """Who waits at a barrier."""

    CLUSTER = "cluster"
    BLOCK = "block"
    CONSUMERS = "consumers"  # the warpgroups that compute, where others only load
    WARPGROUP = "warpgroup"
    WARP = "warp"


# --- expressions ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variable:
    """A buffer, a scalar parameter, or the element that a `MapExpression` binds."""

    name: str
    type: Data


@dataclass(frozen=True)
class Number:
    value: int | float | bool
    type: Data


@dataclass(frozen=True)
class Natural:
    """The value of a size or of a loop index."""

    value: Nat
    type: Data


@dataclass(frozen=True)
class Operator:
    """A scalar operation, named as the primitive."""

    name: str
    operands: tuple[Expression, ...]
    type: Data


@dataclass(frozen=True)
class At:
    """idx(index, array); of a fragment, the element with that number."""

    index: Nat
    array: Expression
    type: Data


@dataclass(frozen=True)
class View:
    """A primitive that rearranges: no code, no memory. `arguments` are its dependent arguments."""

    name: str
    arguments: tuple[Argument, ...]
    operands: tuple[Expression, ...]
    type: Data
    origin: Origin = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class MapExpression:
    """map in read position: the body in place of each element."""

    parameter: str
    body: Expression
    array: Expression
    type: Data


@dataclass(frozen=True)
class GenerateExpression:
    """An array that is a function of the index."""

    parameter: str
    body: Expression
    type: Data


@dataclass(frozen=True)
class LetExpression:
    """The body, where the parameter stands for a scalar that is computed once."""

    parameter: str
    value: Expression
    body: Expression
    type: Data


@dataclass(frozen=True)
class ForeignCall:
    """A call of a C function: one that exists, or of the given text over x1, x2, …"""

    name: str
    text: str
    operands: tuple[Expression, ...]
    type: Data


@dataclass(frozen=True)
class Access:
    """An element of a buffer, or a part of it where indices are fewer than dimensions."""

    buffer: str
    indices: tuple[Nat, ...]
    type: Data


@dataclass(frozen=True)
class Tile:
    """A two-dimensional part of a buffer: its first element, and how far rows (columns) are apart.

    indices: those of an element, in terms of its row and column
    panel:   how far panels of columns are apart, where it consists of such
    extents: the names of row and column in `indices`, and how many there are
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


@dataclass(frozen=True)
class AcceptVariable:
    name: str
    type: Data


@dataclass(frozen=True)
class AcceptAt:
    index: Nat
    array: Acceptor
    type: Data


@dataclass(frozen=True)
class AcceptView:
    """The acceptor of a view's operand, given the acceptor of its result: `operand` says of which operand.

    indices: the array of indices of a scatter, which says where the elements go
    """

    name: str
    arguments: tuple[Argument, ...]
    acceptor: Acceptor
    type: Data
    operand: int = 0
    indices: Expression | None = None


@dataclass(frozen=True)
class AcceptMap:
    """The acceptor of xs in `map(fun(parameter => body))(xs)`, where the body only rearranges."""

    parameter: str
    body: Expr
    acceptor: Acceptor
    type: Data


Acceptor = AcceptVariable | AcceptAt | AcceptView | AcceptMap | Access | Tile

# --- commands -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Skip:
    pass


@dataclass(frozen=True)
class Sequence:
    commands: tuple[Command, ...]


@dataclass(frozen=True)
class Assign:
    target: Acceptor
    value: Expression
    origin: Origin = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class CopyAsync:
    """An assignment from global into shared memory that goes on until it is waited for."""

    target: Acceptor
    value: Expression
    origin: Origin = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Commit:
    """The asynchronous copies started since the last commit become a group."""


@dataclass(frozen=True)
class Wait:
    """Until at most `pending` groups of the thread's copies are under way."""

    pending: int


@dataclass(frozen=True)
class InitBarriers:
    """Makes the mbarriers of a ring, whose phases end after so many arrivals: by one thread."""

    barriers: Acceptor
    count: Nat
    arrivals: int = 1


@dataclass(frozen=True)
class Expect:
    """Arrives at an mbarrier, and says how many bytes bulk copies are to bring."""

    barrier: Acceptor
    bytes: int


@dataclass(frozen=True)
class BulkCopy:
    """Starts to copy a tile from global into shared memory, whose bytes come to an mbarrier.

    map, corner: as resolved: of the tensor, and the first element of the box in it, innermost first
    blocks:      to the same place in so many blocks of the cluster
    """

    target: Acceptor
    value: Expression
    barrier: Acceptor
    map: str = ""
    corner: tuple[Nat, ...] = ()
    blocks: int = 1
    origin: Origin = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class WaitBarrier:
    """Until the phase of that parity has ended."""

    barrier: Acceptor
    parity: Nat


@dataclass(frozen=True)
class PrefetchMap:
    """Brings a tensor map, which is a parameter, close to the copying unit."""

    map: str


@dataclass(frozen=True)
class GridDependency:
    """The next kernel of the stream may start; what the one before has written is there from here on."""


@dataclass(frozen=True)
class Arrive:
    """Each warpgroup arrives once: at the mbarriers at one place of so many blocks.

    release: when the products that it has started are over
    """

    barrier: Acceptor
    blocks: int = 1
    release: bool = False


@dataclass(frozen=True)
class Elected:
    """The body, by one thread: of the block, that with a number, or of each warpgroup (see `stores`)."""

    body: Command
    scope: Scope = Scope.BLOCK
    thread: int = 0


@dataclass(frozen=True)
class WarpSpecialise:
    """The last warpgroups of a block only load; `consumers` warpgroups do everything else.

    setup: is done once in a block, before anything
    turn:  in `produce` and `consume`, how often they were executed before (see `passes.roles`)
    """

    setup: Command
    produce: Command
    consume: Command
    producers: int
    consumers: int
    turn: str = ""
    origin: Origin = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Ring:
    """A pipeline of bulk copies, by all threads of a block.

    setup: initialises its mbarriers: once in a block, before the pipeline is executed for the first time
    turn:  in `body`, how often it was executed before (see `passes.rings`)
    """

    setup: Command
    body: Command
    turn: str
    origin: Origin = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class BulkStore:
    """Starts to copy a tile from shared into global memory; what lies outside of the array is left out.

    map, corner: as resolved: of the tensor, and the first element of the box in it, innermost first
    """

    target: Acceptor
    value: Expression
    map: str = ""
    corner: tuple[Nat, ...] = ()
    origin: Origin = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class BulkCommit:
    """The bulk stores that the thread started since the last commit become a group."""


@dataclass(frozen=True)
class BulkWait:
    """Until at most `pending` groups of the thread's bulk stores have not read their tiles."""

    pending: int


@dataclass(frozen=True)
class FenceAsync:
    """What the thread wrote to shared memory is seen by the copying unit and by products."""


@dataclass(frozen=True)
class WgmmaFence:
    """A warpgroup's accumulators, written before, are ready for its products."""

    fragments: tuple[Acceptor, ...] = ()


@dataclass(frozen=True)
class WgmmaCommit:
    """The products that a warpgroup started since the last commit become a group."""


@dataclass(frozen=True)
class WgmmaWait:
    """Until at most `pending` groups of products are under way; then the fragments can be used."""

    pending: int
    fragments: tuple[Acceptor, ...] = ()


@dataclass(frozen=True)
class When:
    """The body if value < bound."""

    value: Nat
    bound: Nat
    body: Command


@dataclass(frozen=True)
class Define:
    """An index that is computed once: during the body, the name stands for the value."""

    name: str
    value: Nat
    body: Command


@dataclass(frozen=True)
class Counter:
    """(start + index of the loop) mod modulus, without dividing: it starts again at 0. start < modulus.

    after: the counter that it counts the rounds of, in place of the iterations of the loop
    """

    name: str
    start: Nat
    modulus: Nat
    after: str = ""


@dataclass(frozen=True)
class For:
    """A sequential loop.

    owner: each thread runs the iterations whose elements it owns
    label: where the loop comes from, for readers of the kernel
    """

    index: str
    count: Nat
    body: Command
    unroll: bool = False
    owner: bool = False
    role: Role = Role.SEQUENCE
    label: str = ""
    counters: tuple[Counter, ...] = ()


@dataclass(frozen=True)
class ParallelFor:
    """Iterations distributed over the workers of a level, in dimension `dimension` (0 is x).

    most: at most so many workers, who do several iterations in turn; 0: one for each
    turn: what stands for how often the command was executed before, where of its iterations only one is
          executed, the next one each time (see `roles`)
    """

    level: Level
    dimension: int
    index: str
    count: Nat
    body: Command
    origin: Origin = field(default=None, compare=False, repr=False)
    most: int = 0
    turn: str = ""


@dataclass(frozen=True)
class New:
    """A buffer that lives during the body.

    layout: how rows lie in shared memory
    owners: for each dimension the workers among whom it is distributed, or None (see `distribute`)
    offset: bytes from the start of shared memory (see `place`)
    """

    space: Space
    name: str
    type: Data
    body: Command
    origin: Origin = field(default=None, compare=False, repr=False)
    layout: Layout = ROW_MAJOR
    owners: tuple[tuple[Level, int] | None, ...] = ()
    offset: Nat | None = None


@dataclass(frozen=True)
class Barrier:
    scope: Scope


@dataclass(frozen=True)
class LoadFragment:
    """loadFragment of Listing 1: a tile in memory into a fragment."""

    fragment: Fragment
    target: Acceptor
    tile: Expression
    origin: Origin = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class LoadMatrices:
    """ldmatrix: `count` 8×8 matrices of 16-bit elements into the registers of a fragment from `target` on.

    source: of lane 8j + i where row i of matrix j starts
    """

    target: Acceptor
    source: Expression
    count: int
    transposed: bool
    origin: Origin = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class StoreMatrices:
    """stmatrix: `count` 8×8 matrices of 16-bit elements from the registers of a fragment from `value` on.

    target: of lane 8j + i where row i of matrix j goes
    """

    target: Acceptor
    value: Expression
    count: int
    transposed: bool
    origin: Origin = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class StoreFragment:
    fragment: Fragment
    tile: Acceptor
    value: Expression
    origin: Origin = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class FillFragment:
    fragment: Fragment
    target: Acceptor
    value: Expression


@dataclass(frozen=True)
class MmaFragment:
    """target = a * b + c, by all threads of a warp together, on fragments in registers."""

    target: Acceptor
    a: Expression
    b: Expression
    c: Expression
    origin: Origin = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Wgmma:
    """target += a * b, started by a warpgroup: b is in shared memory, and a is there or in registers.

    clear: where it is 0, the product replaces the target
    """

    target: Acceptor
    a: Expression
    b: Tile
    origin: Origin = field(default=None, compare=False, repr=False)
    clear: Nat | None = None


@dataclass(frozen=True)
class ForFragment:
    """The body for every element that a thread holds of the fragments accessed with `index`."""

    fragment: Fragment
    index: str
    body: Command


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
    | WaitBarrier
    | PrefetchMap
    | GridDependency
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


# what has expressions and acceptors as its parts
READING = (
    Operator, ForeignCall, Assign, CopyAsync, LoadFragment, LoadMatrices, StoreFragment, FillFragment,
    MmaFragment, InitBarriers, Expect, BulkCopy, WaitBarrier, Arrive, WgmmaFence, WgmmaWait, BulkStore,
    StoreMatrices, Wgmma,
)  # fmt: skip


def sequence(*commands: Command) -> Command:
    """One after the other, flat."""
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


def inner(command: Command) -> tuple[Command, ...]:
    """The commands directly inside a command."""
    match command:
        case Sequence(commands):
            return commands
        case For() | ParallelFor() | New() | ForFragment() | When() | Define() | Elected():
            return (command.body,)
        case WarpSpecialise(setup, produce, consume):
            return setup, produce, consume
        case Ring(setup, body):
            return setup, body
        case _:
            return ()


def with_inner(command: Command, new: tuple[Command, ...]) -> Command:
    """The same command around others."""
    match command:
        case Sequence():
            return sequence(*new)
        case For() | ParallelFor() | New() | ForFragment() | When() | Define() | Elected():
            return replace(command, body=new[0])
        case WarpSpecialise():
            return replace(command, setup=new[0], produce=new[1], consume=new[2])
        case Ring():
            return replace(command, setup=new[0], body=new[1])
        case _:
            return command


def commands(command: Command) -> Iterator[Command]:
    """Every command, outermost first."""
    yield command
    for part in inner(command):
        yield from commands(part)


def accesses(node: object) -> Iterator[Access | Tile]:
    """Every access in an expression, or in the expressions of one command."""
    if isinstance(node, Access | Tile):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from accesses(part)
    elif is_dataclass(node) and isinstance(node, READING):
        for f in fields(node):
            yield from accesses(getattr(node, f.name))


def accesses_in(command: Command) -> Iterator[Access | Tile]:
    """Every access in a command and the commands inside of it."""
    for part in commands(command):
        yield from accesses(part)


def rebuild(node: T, kind: type[N], change: Callable[[N], object]) -> T:
    """A command or expression with every node of a kind changed, however deep it is.

    What stands in place of a node has to fit there: this is not checked.
    """

    def go(value: object) -> object:
        if isinstance(value, kind):
            return change(value)
        if isinstance(value, tuple):
            return tuple(go(v) for v in value)
        if is_dataclass(value) and not isinstance(value, type) and type(value).__module__ == __name__:
            parts = {f.name: go(getattr(value, f.name)) for f in fields(value) if f.name not in LEAVES}
            return replace(value, **parts)
        return value

    return cast(T, go(node))


@dataclass(frozen=True)
class MapParameter:
    """A tensor map that a kernel is given: of the array that is its parameter `buffer`."""

    name: str
    buffer: str
    map: TensorMap


@dataclass(frozen=True)
class Function:
    """A kernel before printing: what it is given, what it writes, what it does."""

    name: str
    outputs: tuple[Variable, ...]
    inputs: tuple[Variable, ...]
    body: Command
    maps: tuple[MapParameter, ...] = ()
