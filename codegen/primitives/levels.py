"""Maps and reductions as loops: sequential, or distributed over the workers of a level."""

from __future__ import annotations

from codegen import imperative as i
from codegen.imperative import Level
from codegen.paths import Resolver, dimensions, resolved
from codegen.translate import (
    Call,
    Continuation,
    Translator,
    accept_at,
    accepting,
    at,
    continuing,
)
from rise.expr import Expr, Lambda
from rise.nat import Facts, Nat, variable
from rise.normal import is_view
from rise.types import Array, Data, Pair, Space

LEVELS = {
    "mapGlobal": Level.GRID,
    "mapBlock": Level.BLOCK,
    "mapThreads": Level.THREAD,
    "mapWarp": Level.WARP,
    "mapLane": Level.LANE,
}


def parameter_name(function: Expr, default: str) -> str:
    return function.parameter.name if isinstance(function, Lambda) else default


@accepting("mapSeq", "mapSeqUnroll")
def loop(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """con xs λx. for i < n. acc(f x[i])(A[i])"""
    function, xs = call.arguments

    def body(array: i.Expression) -> i.Command:
        index = translator.name("i")
        expr, inner = translator.apply(function, (at(array, index),), call.environment)
        written = translator.accept(expr, accept_at(target, index), inner)
        return i.For(index, call.nat("n"), written, call.name == "mapSeqUnroll", pattern=call.name)

    return translator.continue_with(xs, body, call.environment)


@accepting(*LEVELS)
def parallel(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """con xs λx. parFor(level) i < n. acc(f x[i])(A[i])"""
    function, xs = call.arguments
    level = LEVELS[call.name]
    dimension = 0 if level in (Level.WARP, Level.LANE) else call.nat("d").value or 0

    def body(array: i.Expression) -> i.Command:
        whole = level in (Level.WARP, Level.LANE)
        index = translator.name(level.value if whole else f"{level.value}_{'xyz'[dimension]}")
        expr, inner = translator.apply(function, (at(array, index),), call.environment)
        written = translator.accept(expr, accept_at(target, index), inner)
        return i.ParallelFor(level, dimension, index, call.nat("n"), written, call.origin)

    return translator.continue_with(xs, body, call.environment)


@continuing("reduceSeq", "reduceSeqUnroll")
def fold(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """con xs λX. new acc. acc(z)(acc) ; for k < n. acc(f acc X[k])(acc) ; C(acc)"""
    function, initial, xs = call.arguments
    space = call.size("a")
    type_ = call.type
    name = translator.name(parameter_name(function, "acc"))
    accumulator, target = i.Variable(name, type_), i.AcceptVariable(name, type_)

    def body(array: i.Expression) -> i.Command:
        index = translator.name("k")
        expr, inner = translator.apply(function, (accumulator, at(array, index)), call.environment)
        step = translator.accept(expr, target, inner)
        return i.For(index, call.nat("n"), step, call.name == "reduceSeqUnroll", pattern=call.name)

    if is_view(initial):
        start = translator.continue_with(
            initial, lambda v: copy(translator, v, target, call), call.environment
        )
    else:
        start = translator.accept(initial, target, call.environment)
    loop_ = translator.continue_with(xs, body, call.environment)
    if not isinstance(space, Space):
        raise translator.unstored(call.primitive)
    return i.New(space, name, type_, i.sequence(start, loop_, then(accumulator)), call.origin)


@accepting("reduceSeq", "reduceSeqUnroll")
def fold_in_place(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """In place where the initial value is what the target holds; else con λr. A := r."""
    initial = call.arguments[1]
    if is_view(initial):
        start = translator.pure(initial, call.environment, call.origin)
        if same_place(start, target, call.type) and not _reads_initial(translator, call, target):
            return _update(translator, call, start, target)
    return fold(translator, call, lambda value: copy(translator, value, target, call))


def _update(translator: Translator, call: Call, value: i.Expression, target: i.Acceptor) -> i.Command:
    """con xs λX. for k < n. acc(f A.rd X[k])(A)"""
    function, _, xs = call.arguments

    def body(array: i.Expression) -> i.Command:
        index = translator.name("k")
        expr, inner = translator.apply(function, (value, at(array, index)), call.environment)
        step = translator.accept(expr, target, inner)
        return i.For(index, call.nat("n"), step, call.name == "reduceSeqUnroll", pattern=call.name)

    return translator.continue_with(xs, body, call.environment)


def _reads_initial(translator: Translator, call: Call, target: i.Acceptor) -> bool:
    """Whether the loop reads the place that it updates other than through its accumulator.

    The loop is translated with an accumulator that is a buffer of its own: then what is still read
    from the target's buffer is read from the initial value, which an update in place would destroy.
    """
    used = set(translator.used)
    stand_in = i.Variable(translator.name("accumulator"), call.type)
    loop_ = _update(translator, call, stand_in, i.AcceptVariable(stand_in.name, call.type))
    translator.used = used
    path = tuple(variable(f"probe_{d}") for d in range(len(dimensions(call.type))))
    buffer = Resolver().write(target, path, Facts()).buffer
    return any(access.buffer == buffer for part in i.commands(resolved(loop_)) for access in i.accesses(part))


def same_place(value: i.Expression, target: i.Acceptor, type_: Data) -> bool:
    """Whether every element is read from the very place that it is written to."""
    path: list[Nat] = []
    while isinstance(type_, Array):
        path.append(variable(f"probe_{len(path)}"))
        type_ = type_.element
    if isinstance(type_, Pair):
        return False
    resolver = Resolver()
    read = resolver.read(value, tuple(path), Facts())
    return isinstance(read, i.Access) and read == resolver.write(target, tuple(path), Facts())


def copy(translator: Translator, value: i.Expression, target: i.Acceptor, call: Call) -> i.Command:
    """target := value; an array is copied element by element by whoever owns the element."""
    type_ = value.type  # type: ignore[union-attr]
    if isinstance(type_, Array):
        index = translator.name("i")
        inner = copy(translator, at(value, index), accept_at(target, index), call)
        return i.For(index, type_.size, inner, unroll=True, owner=True, pattern="copy")
    if isinstance(type_, Pair):
        return i.sequence(
            *(
                copy(
                    translator,
                    i.View(name, (), (value,), part),
                    i.AcceptView("pair", (), target, part, number),
                    call,
                )
                for number, (name, part) in enumerate((("fst", type_.first), ("snd", type_.second)))
            )
        )
    return translator.assign(target, value, call.origin)
