"""Maps and reductions as loops: sequential, or distributed over the workers of a level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from codegen.ir import imperative as i
from codegen.ir.buffers import inner_element
from codegen.ir.data import data, element_type
from codegen.ir.imperative import Level
from codegen.ir.launch import GRIDS, number
from codegen.lower.accumulators import check_update
from codegen.lower.defined import Condition, Necessary, only_defined, some_defined
from codegen.lower.paths import Resolver
from codegen.lower.resolve import resolved
from codegen.lower.translate import (
    Call,
    Continuation,
    Environment,
    Translator,
    accept_at,
    accepting,
    as_call,
    at,
    contains_array,
    continuing,
)
from codegen.lower.views import Path
from rise.errors import TranslationError
from rise.expr import Expr
from rise.nat import Facts, Nat, variable
from rise.normal import is_view
from rise.types import Array, Data, Fragment, Pair, Space

LEVELS = {
    "mapGlobal": Level.GRID,
    "mapCluster": Level.CLUSTER,
    "mapClusterPersistent": Level.CLUSTER,
    "mapBlock": Level.BLOCK,
    "mapBlockPersistent": Level.BLOCK,
    "mapThreads": Level.THREAD,
    "mapWarpGroup": Level.WARPGROUP,
    "mapWarpGroupThreads": Level.WARPGROUP_THREAD,
    "mapWarp": Level.WARP,
    "mapLane": Level.LANE,
}
DIMENSIONS = "xyz"


Element = Callable[[str | Nat, Continuation], i.Command]


def elements(
    translator: Translator, xs: Expr, environment: Environment, then: Callable[[Element], i.Command]
) -> i.Command:
    """con xs, for a loop over it: `then` gets a function that continues with the element at an index.

    If xs is a map that computes, the loop evaluates its function on each element that it needs.
    """
    call = as_call(xs, environment)
    if call is not None and call.name == "map" and not is_view(call.arguments[0]):
        function, ys = call.arguments

        def mapped(element: Element) -> i.Command:
            def computed(index: str | Nat, use: Continuation) -> i.Command:
                def applied(y: i.Expression) -> i.Command:
                    return translator.given(
                        function,
                        (y,),
                        environment,
                        lambda expr, inner: translator.continue_with(expr, use, inner),
                    )

                return element(index, applied)

            return then(computed)

        return elements(translator, ys, environment, mapped)
    return translator.continue_with(
        xs, lambda array: then(lambda index, use: use(at(array, index))), environment
    )


@accepting("mapSeq", "mapSeqUnroll")
def loop(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """con xs λx. for i < n. acc(f x[i])(A[i])"""
    function, xs = call.arguments

    def body(element: Element) -> i.Command:
        index = translator.name("i")
        written = element(index, _each(translator, call, function, accept_at(target, index)))
        return i.For(
            index,
            call.nat("n"),
            written,
            call.name == "mapSeqUnroll",
            role=i.Role.MAP,
            label=call.name,
            origin=call.origin,
        )

    return elements(translator, xs, call.environment, body)


def _each(
    translator: Translator, call: Call, function: Expr, place: i.Acceptor
) -> Callable[[i.Expression], i.Command]:
    """λx. acc(f x)(A) for an element of a map. A may be where x is."""
    element = replace(call, type=element_type(call.type))
    return lambda x: step_of(translator, element, function, (x,), place)


def _applied(
    translator: Translator,
    call: Call,
    function: Expr,
    arguments: tuple[i.Expression, ...],
    target: i.Acceptor,
) -> i.Command:
    """acc(f x …)(A)"""
    return translator.given(
        function,
        arguments,
        call.environment,
        lambda expr, inner: translator.accept(expr, target, inner),
    )


@accepting(*LEVELS)
def parallel(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """con xs λx. parFor(level) i < n. acc(f x[i])(A[i])"""
    function, xs = call.arguments
    level = LEVELS[call.name]
    whole = level in (Level.WARPGROUP, Level.WARPGROUP_THREAD, Level.WARP, Level.LANE)
    dimension = 0 if whole else _dimension(call)
    most = (
        number(call.nat("p"), "the number of workers", call.origin) if call.name.endswith("Persistent") else 0
    )

    def body(element: Element) -> i.Command:
        index = translator.name(level.value if whole else f"{level.value}_{DIMENSIONS[dimension]}")
        place: i.Acceptor = accept_at(target, index)
        conditions: list[Condition] = []
        if level in GRIDS:
            place, conditions = only_defined(place, call.type, index, call.nat("n"))
        written = element(index, _each(translator, call, function, place))
        if level is Level.WARPGROUP:
            for necessary in some_defined(place, call.type, index, call.nat("n")):
                written = _where(translator, call, necessary, written)
        for value, bound in conditions:
            written = i.When(value, bound, written, call.origin)
        return i.ParallelFor(level, dimension, index, call.nat("n"), written, call.origin, most)

    return elements(translator, xs, call.environment, body)


def _where(translator: Translator, call: Call, necessary: Necessary, body: i.Command) -> i.Command:
    """new n. n := bound ; if value < n. body"""
    value, bound = necessary
    name = translator.name("rows")
    read = translator.assign(i.AcceptVariable(name, bound.type), bound, call.origin)
    inside = i.When(value, variable(name), body, call.origin)
    return i.New(Space.LOCAL, name, bound.type, i.sequence(read, inside), call.origin)


def _dimension(call: Call) -> int:
    """R0713 where it is not known, R0719 where the hardware does not have it."""
    dimension = number(call.nat("d"), "the dimension of this map", call.origin)
    if dimension < len(DIMENSIONS):
        return dimension
    message = f"`{call.name}({dimension})`: grids and blocks have the dimensions 0, 1 and 2"
    raise TranslationError("R0719", message, call.origin)


@accepting("pingPong")
def ping_pong(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """parFor(warpgroup) g < w, ping-pong. acc(e)(A)"""
    (value,) = call.arguments
    index, execution = translator.name(Level.WARPGROUP.value), translator.name("turn")
    written = translator.accept(value, target, call.environment)
    return i.ParallelFor(Level.WARPGROUP, 0, index, call.nat("w"), written, call.origin, execution=execution)


def start_of(translator: Translator, call: Call, initial: Expr, target: i.Acceptor) -> i.Command:
    """acc(z)(acc): if z only rearranges, the owners of the elements copy them."""
    if is_view(initial):
        return translator.continue_with(
            initial, lambda v: translator.copy(target, v, call.origin), call.environment
        )
    return translator.accept(initial, target, call.environment)


@continuing("reduceSeq", "reduceSeqUnroll")
def fold(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """con xs λX. new acc. acc(z)(acc) ; for k < n. acc(f acc X[k])(acc) ; C(acc)"""
    function, initial, _ = call.arguments
    space = call.size("a")
    name = translator.parameter(function, "acc", call.type)
    accumulator, target = i.Variable(name, call.type), i.AcceptVariable(name, call.type)
    start = start_of(translator, call, initial, target)
    update = _update(translator, call, accumulator, target)
    if not isinstance(space, Space):
        raise translator.unstored(call.primitive)
    return i.New(space, name, call.type, i.sequence(start, update, then(accumulator)), call.origin)


@accepting("reduceSeq", "reduceSeqUnroll")
def fold_in_place(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    updated = in_place(translator, call, call.arguments[1], target, _update)
    if updated is None:
        updated = _started_in_place(translator, call, target)
    if updated is not None:
        return updated
    return fold(translator, call, lambda value: translator.copy(target, value, call.origin))


def _started_in_place(translator: Translator, call: Call, target: i.Acceptor) -> i.Command | None:
    """acc(z)(A) ; for k < n. acc(f A X[k])(A), for fragments: they are not copied, and their products may be
    under way. None if the loop or z would read what has been replaced."""
    initial, value = call.arguments[1], _read_of(target)
    if value is None or not isinstance(inner_element(call.type), Fragment) or is_view(initial):
        return None

    def started() -> i.Command:
        start = translator.accept(initial, target, call.environment)
        return i.sequence(start, _update(translator, call, value, target))

    try:
        check_update(_tried(translator, started))
    except TranslationError:
        return None
    return None if _reads_initial(translator, call, target, _update) else started()


def _read_of(target: i.Acceptor) -> i.Expression | None:
    """The value at a location, if no view leads there."""
    match target:
        case i.AcceptVariable(name, type_):
            return i.Variable(name, type_)
        case i.AcceptAt(index, array):
            inner = _read_of(array)
            return None if inner is None else at(inner, index)
        case i.AcceptView("pair", _, pair, type_, operand):
            inner = _read_of(pair)
            return None if inner is None else i.View(("fst", "snd")[operand], (), (inner,), type_)
        case _:
            return None


Update = Callable[[Translator, Call, i.Expression, i.Acceptor], i.Command]


def in_place(
    translator: Translator, call: Call, initial: Expr, target: i.Acceptor, update: Update
) -> i.Command | None:
    """The update of a target that holds the initial value; None if it does not."""
    if is_view(initial):
        start = translator.pure(initial, call.environment, call.origin)
        if same_location(start, target, call.type) and not _reads_initial(translator, call, target, update):
            return update(translator, call, start, target)
    return None


def _update(translator: Translator, call: Call, value: i.Expression, target: i.Acceptor) -> i.Command:
    """con xs λX. for k < n. acc(f A.rd X[k])(A)"""
    function, _, xs = call.arguments

    def body(element: Element) -> i.Command:
        index = translator.name("k")
        step = element(index, lambda x: step_of(translator, call, function, (value, x), target))
        return i.For(
            index,
            call.nat("n"),
            step,
            call.name == "reduceSeqUnroll",
            role=i.Role.REDUCTION,
            label=call.name,
            origin=call.origin,
        )

    return elements(translator, xs, call.environment, body)


def step_of(
    translator: Translator,
    call: Call,
    function: Expr,
    arguments: tuple[i.Expression, ...],
    target: i.Acceptor,
) -> i.Command:
    """The new value replaces the old one. No member of a pair is replaced before it is read for another."""

    def written_to(place: i.Acceptor) -> i.Command:
        return _applied(translator, call, function, arguments, place)

    if not isinstance(call.type, Pair) or contains_array(call.type):
        return written_to(target)
    if not _reads_what_it_replaced(_tried(translator, lambda: written_to(target))):
        return written_to(target)
    name = translator.name("next", call.type)
    written = written_to(i.AcceptVariable(name, call.type))
    replaced = translator.assign(target, i.Variable(name, call.type), call.origin)
    return i.New(Space.LOCAL, name, call.type, i.sequence(written, replaced), call.origin)


@accepting("scanSeq")
def scan(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """con xs λX. new acc. acc(z)(acc) ; for k < n. (acc(f X[k] acc)(acc) ; A[k] := acc)"""
    function, initial, xs = call.arguments
    type_ = data(initial)
    name = translator.name("acc", type_)
    accumulator, place = i.Variable(name, type_), i.AcceptVariable(name, type_)
    start = translator.accept(initial, place, call.environment)

    def body(element: Element) -> i.Command:
        index = translator.name("k")

        def step(x: i.Expression) -> i.Command:
            inner = replace(call, type=type_)
            update = step_of(translator, inner, function, (x, accumulator), place)
            kept = translator.copy(accept_at(target, index), accumulator, call.origin)
            return i.sequence(update, kept)

        return i.For(index, call.nat("n"), element(index, step), label=call.name, origin=call.origin)

    scanned = elements(translator, xs, call.environment, body)
    return i.New(Space.LOCAL, name, type_, i.sequence(start, scanned), call.origin)


def _reads_initial(translator: Translator, call: Call, target: i.Acceptor, update: Update) -> bool:
    """Whether the loop reads the location that it updates other than through its accumulator.

    The loop is translated with a separate buffer as accumulator. If it still reads the target's buffer, it
    reads the initial value, which an update in place would destroy.
    """
    stand_in = i.Variable(translator.name("accumulator"), call.type)
    loop_ = _tried(
        translator, lambda: update(translator, call, stand_in, i.AcceptVariable(stand_in.name, call.type))
    )
    buffers = {Resolver().write(target, path, Facts()).buffer for path in _paths(call.type)}
    return any(access.buffer in buffers for part in i.commands(loop_) for access in i.accesses(part))


def _tried(translator: Translator, translation: Callable[[], i.Command]) -> i.Command:
    """A translation with its views resolved, to be looked at: its names remain free."""
    used = set(translator.used)
    command = translation()
    translator.used = used
    return resolved(command)


def _reads_what_it_replaced(step: i.Command) -> bool:
    """Whether a command of a step reads a buffer that an earlier command of the step has written."""
    own = {c.name for c in i.commands(step) if isinstance(c, i.New)}
    replaced: set[str] = set()
    for part in i.commands(step):
        target = i.target_of(part)
        read = [access for access in i.accesses(part) if access is not target]
        if any(access.buffer in replaced for access in read):
            return True
        if isinstance(target, i.Access) and target.buffer not in own:
            replaced.add(target.buffer)
    return False


def _paths(type_: Data) -> Iterator[Path]:
    """The paths to the members of the elements of a value."""
    match type_:
        case Array(_, element):
            yield from ((variable(f"probe_{len(path)}"), *path) for path in _paths(element))
        case Pair(first, second):
            yield from (("fst", *path) for path in _paths(first))
            yield from (("snd", *path) for path in _paths(second))
        case _:
            yield ()


def same_location(value: i.Expression, target: i.Acceptor, type_: Data) -> bool:
    """Whether every element is read from the very location to which it is written."""
    resolver = Resolver()

    def same(path: Path) -> bool:
        read = resolver.read(value, path, Facts())
        return isinstance(read, i.Access) and read == resolver.write(target, path, Facts())

    return all(map(same, _paths(type_)))
