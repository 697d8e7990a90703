"""Values stored in the memory that the program names."""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.buffers import BARRIERS, MBARRIER, bytes_of, inner_element
from codegen.ir.data import data
from codegen.ir.identifiers import derived
from codegen.ir.launch import number
from codegen.lower.translate import Call, Continuation, Translator, accept_at, accepting, at, continuing
from rise.errors import TranslationError
from rise.nat import constant, quotient, remainder, variable
from rise.types import Array, Data, Fragment, FragmentKind, Layout, Pair, Space

MEMBER = "member"  # the name of an element of an array of tuples


@continuing("toMem")
def stored(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """new(a) tmp. acc(e)(tmp) ; C(tmp)"""
    space = call.size("a")
    if not isinstance(space, Space):
        raise translator.unstored(call.primitive)
    (value,) = call.arguments
    if space is not Space.LOCAL and stem(call.type, Space.LOCAL).endswith("fragment"):
        raise TranslationError(
            "R0715", f"`{call.type}` cannot be stored in memory", call.origin, "store fragments in `Local`"
        )
    return translator.store(space, value, call.environment, then, stem(call.type, space), layout_of(call))


def layout_of(call: Call) -> Layout:
    layout = call.size("l")
    if not isinstance(layout, Layout):
        raise TranslationError("R0704", f"the layout of `{call.name}` is not known", call.origin)
    return layout


@continuing("copyThreads")
def copied(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """Like toMem(Shared)."""
    (value,) = call.arguments
    name = stem(call.type, Space.SHARED)
    return translator.store(Space.SHARED, value, call.environment, then, name, layout_of(call))


@continuing("copyAsync")
def copied_asynchronously(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """new(Shared) tile. acc(e)(tile), by asynchronous copies that are waited for ; C(tile)"""
    (value,) = call.arguments
    name = stem(call.type, Space.SHARED)

    def how(written: i.Command) -> i.Command:
        return i.sequence(asynchronously(written), i.Commit(), i.Wait(0))

    return translator.store(Space.SHARED, value, call.environment, then, name, layout_of(call), how)


@continuing("bulkCopy")
def copied_in_bulk(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """new(Shared) tile, full. one thread starts tile := e, which signals full ; wait for it ; C(tile)

    Each array of a value with tuples is copied, and threads wait once for all of them.
    """
    (value,) = call.arguments
    type_, barriers = data(value), Array(constant(1), MBARRIER)
    name, turn = translator.name(stem(call.type, Space.SHARED), type_), translator.name("turn")
    full = i.AcceptVariable(translator.name("full"), barriers)
    slot = accept_at(full, constant(0))

    def copies(whole: i.Expression) -> i.Command:
        parts = arrays_of(name, type_, whole)
        started = (i.BulkCopy(i.AcceptVariable(n, t), v, slot, origin=call.origin) for n, t, v in parts)
        return i.sequence(i.Expect(slot, sum(bytes_of(t) for _, t, _ in parts)), *started)

    copied = i.sequence(
        i.Elected(translator.continue_with(value, copies, call.environment)),
        i.WaitBarrier(slot, remainder(variable(turn), constant(2))),
    )
    ring = i.Ring(i.InitBarriers(full, constant(1)), copied, turn, call.origin)
    body = i.sequence(ring, then(i.Variable(name, type_)))
    body = i.New(Space.SHARED, name, type_, body, call.origin, layout_of(call))
    return i.New(Space.SHARED, full.name, barriers, body, call.origin, BARRIERS)


def arrays_of(name: str, type_: Data, value: i.Expression) -> list[tuple[str, Data, i.Expression]]:
    """The buffers that store a value, as `members` of it: each with its type and its elements."""
    match type_:
        case Pair(first, second):
            parts = (("fst", first), ("snd", second))
            both = (arrays_of(derived(name, m), t, i.View(m, (), (value,), t)) for m, t in parts)
            return [array for part in both for array in part]
        case Array(size, element) if isinstance(inner_element(element), Pair):
            return [
                (buffer, Array(size, part), i.MapExpression(MEMBER, of_one, value, Array(size, part)))
                for buffer, part, of_one in arrays_of(name, element, i.Variable(MEMBER, element))
            ]
        case _:
            return [(name, type_, value)]


@continuing("bulkCopyRoleSplit")
def copied_ahead(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """new(Shared) slots, full, empty. who loads: slot t := e once it is empty ; who computes: C(slot t)

    t is the number of earlier executions. A slot is handed back behind the last use of it.
    """
    (value,) = call.arguments
    type_, slots = data(value), call.nat("slots")
    producers, consumers = (
        number(call.nat(name), f"the number of {name}", call.origin) for name in ("producers", "consumers")
    )
    barriers, turn = Array(slots, MBARRIER), translator.name("turn")
    name = translator.name(stem(call.type, Space.SHARED), type_)
    full, empty = (i.AcceptVariable(translator.name(each), barriers) for each in ("full", "empty"))
    slot, phase = remainder(variable(turn), slots), quotient(variable(turn), slots)
    filled, emptied = accept_at(full, slot), accept_at(empty, slot)
    tile = accept_at(i.AcceptVariable(name, Array(slots, type_)), slot)
    start = translator.continue_with(
        value, lambda v: i.BulkCopy(tile, v, filled, origin=call.origin), call.environment
    )
    roles = i.WarpSpecialise(
        i.Elected(i.sequence(i.InitBarriers(full, slots), i.InitBarriers(empty, slots, consumers))),
        i.sequence(
            i.WaitBarrier(emptied, remainder(phase + 1, constant(2))),
            i.sequence(i.Expect(filled, bytes_of(type_)), start),
        ),
        i.sequence(
            i.WaitBarrier(filled, remainder(phase, constant(2))),
            then(at(i.Variable(name, Array(slots, type_)), slot)),
            i.Arrive(emptied, release=True),
        ),
        producers,
        consumers,
        turn,
        origin=call.origin,
    )
    body: i.Command = i.New(Space.SHARED, name, Array(slots, type_), roles, call.origin, layout_of(call))
    for each in (empty, full):
        body = i.New(Space.SHARED, each.name, barriers, body, call.origin, BARRIERS)
    return body


@accepting("bulkStore")
def stored_in_bulk(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """con(e) λtile. one thread starts A := tile. `lower.box` checks that it is a tile in Shared memory."""
    (value,) = call.arguments
    return translator.continue_with(
        value,
        lambda tile: i.Elected(i.sequence(i.BulkStore(target, tile, origin=call.origin), i.BulkCommit())),
        call.environment,
    )


def asynchronously(written: i.Command) -> i.Command:
    """Makes the copies into memory asynchronous; values private to a thread are assigned as before."""
    own = {c.name for c in i.commands(written) if isinstance(c, i.New)}

    def change(assign: i.Assign) -> i.Assign | i.CopyAsync:
        if root(assign.target) in own:
            return assign
        return i.CopyAsync(assign.target, assign.value, assign.origin)

    return i.rebuild(written, i.Assign, change)


def root(acceptor: i.Acceptor) -> str:
    """The buffer to which an acceptor belongs."""
    match acceptor:
        case i.AcceptVariable(name):
            return name
        case i.AcceptAt(_, inner) | i.AcceptView(_, _, inner) | i.AcceptMap(_, _, inner):
            return root(inner)
        case i.AcceptMember(_, _, _, inner):
            return root(inner)
        case i.Access(name) | i.Tile(name):
            return name


def stem(type_: Data, space: Space) -> str:
    """The name of a stored value in the kernel."""
    while isinstance(type_, Array):
        type_ = type_.element
    if isinstance(type_, Fragment):
        names: dict[object, str] = {FragmentKind.A: "a_fragment", FragmentKind.B: "b_fragment"}
        return names.get(type_.kind, "c_fragment")
    return {Space.SHARED: "tile", Space.DISTRIBUTED: "part"}.get(space, "value")


@accepting("toMem")
def passed_on(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """Stores, then copies: only values without arrays, since copying an array needs a level."""
    return stored(translator, call, lambda value: translator.copy(target, value, call.origin))
