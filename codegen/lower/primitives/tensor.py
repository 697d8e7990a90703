"""Tensor cores: Listing 3 of the extended abstract, case by case."""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.data import data
from codegen.ir.fragments import family_of
from codegen.lower.translate import Call, Continuation, Translator, accept_at, accepting, at, continuing
from codegen.lower.views import Path, Sizes, reading, zip_path
from rise.instructions import Family
from rise.types import Data, Fragment, FragmentKind


def fragment_of(type_: Data) -> Fragment:
    if not isinstance(type_, Fragment):
        raise TypeError(str(type_))
    return type_


@accepting("tensorMatMulAdd")
def multiply(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    return translator.all(
        call.arguments,
        call.environment,
        lambda a, b, c: i.MmaFragment(target, a, b, c, call.origin),
    )


@accepting("asFragment")
def load(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    return translator.all(
        call.arguments,
        call.environment,
        lambda tile: i.LoadFragment(fragment_of(call.type), target, tile, call.origin),
    )


@continuing("asFragment")
def seen(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """An operand of wgmma stays in shared memory: the fragment is a view of its tile."""
    fragment = fragment_of(call.type)
    if family_of(fragment) is not Family.WGMMA or fragment.kind is FragmentKind.ACCUMULATOR:
        raise translator.unstored(call.primitive)
    return translator.continue_with(
        call.arguments[0],
        lambda tile: then(i.View(call.name, call.primitive.arguments, (tile,), fragment, call.origin)),
        call.environment,
    )


@accepting("asMatrix")
def store(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    fragment = fragment_of(data(call.arguments[0]))
    return translator.all(
        call.arguments,
        call.environment,
        lambda value: i.StoreFragment(fragment, target, value, call.origin),
    )


@accepting("generateFragment")
def fill(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    return translator.all(
        call.arguments,
        call.environment,
        lambda value: i.FillFragment(fragment_of(call.type), target, value),
    )


@accepting("mapFragment")
def each_element(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    function, fragment = call.arguments

    def body(value: i.Expression) -> i.Command:
        index = translator.name("e")
        expr, inner = translator.apply(function, (at(value, index),), call.environment)
        written = translator.accept(expr, accept_at(target, index), inner)
        return i.ForFragment(fragment_of(call.type), index, written)

    return translator.continue_with(fragment, body, call.environment)


@continuing("zipFragment")
def together(translator: Translator, call: Call, then: Continuation) -> i.Command:
    return translator.all(
        call.arguments,
        call.environment,
        lambda *operands: then(i.View(call.name, call.primitive.arguments, operands, call.type)),
    )


@reading("zipFragment")
def zip_fragment(sizes: Sizes, path: Path) -> tuple[int, Path]:
    return zip_path(path)
