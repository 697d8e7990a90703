"""Dependences through shared memory: which threads may touch the same location, decided by the indices.

Two uses touch the same location if their indices are equal. Equal numbers have equal quotients and
remainders, so the equality of `8*(t % 4) + j` with j < 8 implies that of `t % 4`, in the normal form of
indices. If the equality implies that the workers are the same, only one thread, or only one warp, touches the
location. The same worker always runs a given iteration of a loop, even if it runs several iterations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from codegen.ir import imperative as i
from codegen.ir.launch import Launch
from rise.frozen import Remembers, cached_property, filled_at_once, hashed_once
from rise.nat import (
    Atom,
    Facts,
    Nat,
    NatVariable,
    Operation,
    at_least,
    atom,
    constant,
    quotient,
    remainder,
    simplify,
    variable,
)

# the distance in iterations to an earlier one: a size of at least 1
EARLIER, MANY = "earlier ", constant(2**31)
# the index of a loop that has ended: any of its iterations
ANY = "any "
# the element within a row of a matrix that ldmatrix loads or stmatrix stores
ROW = "element of a row"
# marks a variable of the other thread, whose value may differ
OTHER = "other "

Workers = tuple[i.Level, int]
OUTSIDE = (i.Level.CLUSTER, i.Level.BLOCK)
BLOCKS_OF_CLUSTER = (i.Level.BLOCK, 0)
WARPS, LANES = (i.Level.WARP, 0), (i.Level.LANE, 0)
WARPGROUPS, WARPGROUP_THREADS = (i.Level.WARPGROUP, 0), (i.Level.WARPGROUP_THREAD, 0)


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class Loop(Remembers):
    """A loop around a use, parallel if it has workers. The rows and columns of a tile are loops, too.

    one: only one of its iterations is executed
    """

    index: str
    count: Nat
    workers: Workers | None = None
    one: bool = False


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class Use(Remembers):
    """Reads or writes elements of a buffer, in each iteration of the loops around it.

    collective: the innermost loops, which a warp executes as one: rows and columns of a tile
    mapped:     by an earlier iteration of a map's loop, which writes other elements than this one
    copying:    nonzero for an asynchronous copy that has not been waited for, which a barrier does not
                complete: 1 plus the number of groups committed since; 0 for anything else
    ordered:    precedes whatever its own warp does next
    storing:    by a bulk store, which reads until it is waited for; a barrier does not complete it
    distributed: of an array whose first index is the number of a block of the cluster
    met:        a barrier of its block is behind it, which does not order other blocks
    """

    buffer: str
    indices: tuple[Nat, ...]
    around: tuple[Loop, ...]
    written: bool
    collective: tuple[Loop, ...] = ()
    mapped: bool = False
    copying: int = 0
    ordered: bool = False
    storing: bool = False
    distributed: bool = False
    met: bool = False

    @property
    def remote(self) -> bool:
        """Whether the element may be in the shared memory of another block."""
        if not self.distributed:
            return False
        own = self.workers().get(BLOCKS_OF_CLUSTER)
        return own is None or self.indices[0] not in (variable(own), variable(ANY + own))

    def substitute(self, index: str, value: Nat) -> Use:
        if not any(index in n.variables for n in self.indices):
            return self
        solution: dict[Atom, Nat] = {NatVariable(index): value}
        return replace(self, indices=tuple(n.substitute(solution) for n in self.indices))

    def after(self, loop: str) -> Use:
        """The use as one in any iteration of a loop that has ended."""
        use = self.substitute(loop, variable(ANY + loop))
        return replace(use, mapped=False) if use.mapped else use

    def without_units(self) -> tuple[Nat, ...]:
        """The indices, with 0 for the index of a loop of one iteration."""
        zero: dict[Atom, Nat] = {
            NatVariable(name): constant(0)
            for loop in (*self.around, *self.collective)
            for name in (loop.index, ANY + loop.index)
            if loop.count == constant(1)
        }
        return tuple(n.substitute(zero) for n in self.indices)

    @cached_property
    def facts(self) -> Facts:
        loops = (*self.around, *self.collective)
        named = [(name, 0, loop.count) for loop in loops for name in (loop.index, ANY + loop.index)]
        variables = sorted({name for n in self.indices for name in n.variables})
        earlier = [(name, 1, MANY) for name in variables if name.startswith(EARLIER)]
        return Facts().with_ranges([*named, *earlier])

    @cached_property
    def simplified(self) -> tuple[tuple[Nat, frozenset[Nat]], ...]:
        """The indices as they are simplest, with 0 for loops of one iteration, each with its strides."""
        indices = (simplify(index, self.facts) for index in self.without_units())
        return tuple((index, frozenset(_strides(index, self))) for index in indices)

    def workers(self) -> Mapping[Workers, str]:
        return {loop.workers: loop.index for loop in self.around if loop.workers}

    def uniform(self, scope: i.Scope) -> frozenset[str]:
        """The indices that are the same for all threads of a scope that execute the use together."""
        names: set[str] = set()
        for loop in self.around:
            outside = loop.workers is None or loop.workers[0] in OUTSIDE
            if not outside and (loop.workers != WARPS or scope is i.Scope.BLOCK):
                break
            names |= {loop.index, EARLIER + loop.index}
        return frozenset(names)


def uses(command: i.Command, around: tuple[Loop, ...]) -> Iterator[Use]:
    """Every use of a buffer in a command, in any address space."""
    written = i.target_of(command)
    for access in i.accesses(command):
        writes = access is written
        copying = writes and isinstance(command, i.CopyAsync | i.BulkCopy)
        indices, collective = elements(command, access)
        storing = not writes and isinstance(command, i.BulkStore)
        yield Use(access.buffer, indices, around, writes, collective, copying=int(copying), storing=storing)
    inner = (*around, loop) if (loop := loop_of(command)) else around
    for part in i.inner(command):
        yield from uses(part, inner)


def elements(command: i.Command, access: i.Access | i.Tile) -> tuple[tuple[Nat, ...], tuple[Loop, ...]]:
    """The indices of all elements that an access covers, and the implicit loops over them."""
    if isinstance(access, i.Tile):
        return access.indices, tuple(Loop(name, extent) for name, extent in access.extents)
    by_rows = command.source if isinstance(command, i.LoadMatrices) else i.target_of(command)
    if isinstance(command, i.LoadMatrices | i.StoreMatrices) and access is by_rows:
        *outer, start = access.indices
        return (*outer, start + variable(ROW)), (Loop(ROW, constant(8)),)
    return access.indices, ()


def loop_of(command: i.Command) -> Loop | None:
    match command:
        case i.For(index, count):
            return Loop(index, count)
        case i.ParallelFor(level, dimension, index, count):
            return Loop(index, count, (level, dimension), bool(command.execution))
        case _:
            return None


# --- scopes of synchronisation --------------------------------------------------------------------------


def sync_scope(earlier: Use, later: Use, own: bool, launch: Launch) -> i.Scope | None:
    """The scope that must synchronise between two uses of a buffer: block, warp, or None for no scope.

    own: each warp has its own copy of the buffer
    """
    if not (earlier.written or later.written) or (earlier.mapped and later.written):
        return None
    if distinct(earlier, later, _common(earlier, later, i.Scope.BLOCK)):
        return None
    same = same_workers(earlier, later, _common(earlier, later, i.Scope.BLOCK))
    scope = i.Scope.WARP if own or one_warp(same, launch) else i.Scope.BLOCK
    if scope is i.Scope.WARP:
        if earlier.ordered:
            return None
        same |= same_workers(earlier, later, _common(earlier, later, scope)) | {WARPS}
    # the copy engine is not the thread that starts it
    storing = earlier.storing or later.storing
    if (one_thread(same, launch) and not storing) or distinct(earlier, later, _common(earlier, later, scope)):
        return None
    return scope


def sync_scope_in_group(earlier: Use, later: Use) -> i.Scope | None:
    """The same for a buffer of which each warpgroup has its own copy: warpgroup, or None."""
    if not (earlier.written or later.written):
        return None
    storing = earlier.storing or later.storing
    same = same_workers(earlier, later, frozenset())
    return None if WARPGROUP_THREADS in same and not storing else i.Scope.WARPGROUP


def _common(left: Use, right: Use, scope: i.Scope) -> frozenset[str]:
    """The indices that are the same for both uses, if they are in one block or in one warp."""
    return left.uniform(scope) & right.uniform(scope)


def one_thread(same: frozenset[Workers], launch: Launch) -> bool:
    """Whether the workers that are the same determine the thread."""
    lanes = LANES in same and (WARPS in same or launch.block[0] <= 32)
    return _one_row(same, launch) and (lanes or launch.block[0] == 1 or (i.Level.THREAD, 0) in same)


def one_warp(same: frozenset[Workers], launch: Launch) -> bool:
    """Whether the workers that are the same determine the warp."""
    rows = _one_row(same, launch) and (WARPS in same or (i.Level.THREAD, 0) in same)
    return launch.threads <= 32 or (rows and launch.block[0] % 32 == 0)


def _one_row(same: frozenset[Workers], launch: Launch) -> bool:
    return all(launch.block[d] == 1 or (i.Level.THREAD, d) in same for d in (1, 2))


def distinct(left: Use, right: Use, common: frozenset[str]) -> bool:
    """Whether two uses certainly touch different elements, since one of their indices differs.

    common: the indices that are the same for both
    """
    others: dict[Atom, Nat] = {
        NatVariable(name): variable(OTHER + name)
        for n in right.indices
        for name in n.variables
        if name not in common
    }
    facts = left.facts.with_ranges(
        [
            (name if name in common else OTHER + name, lower, upper)
            for name, (lower, upper) in right.facts.ranges.items()
        ]
    )
    pairs = zip(left.indices, right.indices, strict=False)
    return any(_differ(a, b.substitute(others), facts) for a, b in pairs)


def _differ(left: Nat, right: Nat, facts: Facts) -> bool:
    if at_least(left - right, 1, facts) or at_least(right - left, 1, facts):
        return True
    return any(_differ_modulo(left, right, m) for m in (_modulus(left), _modulus(right)) if m)


def _differ_modulo(left: Nat, right: Nat, modulus: int) -> bool:
    """Equal numbers are congruent; the difference of these is not a multiple of the modulus."""
    difference = (_dividend(left, modulus) - _dividend(right, modulus)).value
    return difference is not None and difference % modulus != 0


def _modulus(value: Nat) -> int | None:
    """m, if the value is a % m."""
    base = _single_atom(value)
    return base.right.value if isinstance(base, Operation) and base.operator == "remainder" else None


def _dividend(value: Nat, modulus: int) -> Nat:
    """A number congruent to the value: a, if the value is a % m."""
    base = _single_atom(value)
    return base.left if isinstance(base, Operation) and _modulus(value) == modulus else value


def _single_atom(value: Nat) -> Atom | None:
    match value.terms:
        case ((((base, 1),), 1),):
            return base
        case _:
            return None


# --- which workers are the same -------------------------------------------------------------------------


def same_workers(left: Use, right: Use, uniform: frozenset[str]) -> frozenset[Workers]:
    """The workers that are certainly the same if the two uses touch the same element.

    uniform: the indices that are the same in both
    """
    mine, yours = left.workers(), right.workers()
    # the block does not matter: barriers do not guard memory that blocks share
    common = {workers for workers in mine.keys() & yours.keys() if workers[0] not in OUTSIDE}
    equal = list(_equal_parts(left, right)) if common else []
    return frozenset(
        workers for workers in common if _determined(mine[workers], yours[workers], equal, uniform)
    )


Pair = tuple[Nat, Nat]


def _equal_parts(left: Use, right: Use) -> Iterator[Pair]:
    """The equations that equal indices imply: of the indices, their quotients and their remainders."""
    for (a, mine), (b, yours) in zip(left.simplified, right.simplified, strict=False):
        strides = tuple(sorted(mine | yours, key=str))
        yield from zip(_index_parts(a, strides, left), _index_parts(b, strides, right), strict=True)


def determined(use: Use, uniform: frozenset[str]) -> frozenset[Workers]:
    """The workers that are certainly the same where two of them touch the same element.

    What is known grows from the indices until nothing follows any more: parts of a number that is known, and
    a number of which quotient and remainder by some divisor are known.

    uniform: the indices that are the same in both
    """
    ones = (loop.index for loop in use.around if loop.count == constant(1))
    rest = [variable(name) for name in (*uniform, *ones)] + [index for index, _ in use.simplified]
    known: set[Nat] = set()
    divided: dict[Nat, Pair] = {}
    while rest:
        part = rest.pop()
        if part not in known:
            known.add(part)
            rest += _index_parts(part, tuple(sorted(_strides(part, use), key=str)), use)[1:]
            match _single_atom(part):
                case Operation("quotient" | "remainder", whole, by):
                    divided[whole] = quotient(whole, by, use.facts), remainder(whole, by, use.facts)
            follow = (whole for whole, parts in divided.items() if known.issuperset(parts))
            rest += (whole for whole in follow if whole not in known)
    return frozenset(workers for workers, name in use.workers().items() if variable(name) in known)


@lru_cache(maxsize=1 << 12)
def _index_parts(index: Nat, strides: tuple[Nat, ...], use: Use) -> tuple[Nat, ...]:
    """An index of a use, its quotients and remainders by strides, and the quotients of these."""
    parts = [index]
    for stride in strides:
        rest = remainder(index, stride, use.facts)
        parts += [quotient(index, stride, use.facts), rest]
        parts += [quotient(rest, other, use.facts) for other in strides]
    return tuple(parts)


def _strides(index: Nat, use: Use) -> set[Nat]:
    """The strides of loops: the factors of loop indices, or of parts of them."""
    loops = {loop.index for loop in (*use.around, *use.collective)}
    found: set[Nat] = set()
    for monomial, coefficient in index.terms:
        varying = [factor for factor in monomial if atom(factor[0]).variables & loops]
        if len(varying) == 1 and varying[0][1] == 1 and coefficient > 0:
            found.add(Nat.build({tuple(f for f in monomial if f not in varying): coefficient}))
    return found - {constant(1)}


def _determined(mine: str, yours: str, equal: list[Pair], uniform: frozenset[str]) -> bool:
    """Whether the equations determine an index: as a whole, or by its quotient and its remainder."""
    found = {form for pair in equal for form in _forms(mine, yours, pair, uniform)}
    divisors = {divisor for kind, divisor in found if kind == "quotient"}
    return ("whole", 1) in found or any(("remainder", divisor) in found for divisor in divisors)


def _forms(mine: str, yours: str, pair: Pair, uniform: frozenset[str]) -> Iterator[tuple[str, int]]:
    """The forms in which an index occurs in an equation whose other terms are uniform."""
    (a, b), other = pair, {NatVariable(mine): variable(yours)}
    for monomial, coefficient in a.terms:
        if len(monomial) != 1 or monomial[0][1] != 1:
            continue
        base = monomial[0][0]
        form = _form(base, mine)
        part = Nat.build({monomial: coefficient})
        rest = a - part
        if form and rest.variables <= uniform and b - part.substitute(other) == rest:
            yield form


def _form(base: Atom, index: str) -> tuple[str, int] | None:
    match base:
        case NatVariable(name) if name == index:
            return "whole", 1
        case Operation("quotient" | "remainder" as operator, left, right) if left == variable(index):
            return (operator, right.value) if right.value else None
        case _:
            return None
