"""Values that are stored where the program says so."""

from __future__ import annotations

from codegen import imperative as i
from codegen.translate import Call, Continuation, Translator, accepting, continuing
from rise.types import Array, Data, Fragment, FragmentKind, Space


@continuing("toMem")
def stored(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """new(a) tmp. acc(e)(tmp) ; C(tmp)"""
    space = call.size("a")
    if not isinstance(space, Space):
        raise translator.unstored(call.primitive)
    (value,) = call.arguments
    return translator.store(space, value, call.environment, then, stem(call.type, space))


def stem(type_: Data, space: Space) -> str:
    """What a stored value is called in the kernel."""
    while isinstance(type_, Array):
        type_ = type_.element
    if isinstance(type_, Fragment):
        names: dict[object, str] = {FragmentKind.A: "a_fragment", FragmentKind.B: "b_fragment"}
        return names.get(type_.kind, "c_fragment")
    return "tile" if space is Space.SHARED else "value"


@accepting("toMem")
def passed_on(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """Stored, and then copied: only what holds no array, since a copy of one needs a level."""
    from codegen.primitives.levels import copy

    return stored(translator, call, lambda value: copy(translator, value, target, call))


@continuing("let")
def bound(translator: Translator, call: Call, then: Continuation) -> i.Command:
    value, function = call.arguments
    parameter = translator.apply  # the body continues with the name bound

    def body(expression: i.Expression) -> i.Command:
        expr, inner = parameter(function, (expression,), call.environment)
        return translator.continue_with(expr, then, inner)

    return translator.continue_with(value, body, call.environment)


@accepting("let")
def bound_result(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    value, function = call.arguments

    def body(expression: i.Expression) -> i.Command:
        expr, inner = translator.apply(function, (expression,), call.environment)
        return translator.accept(expr, target, inner)

    return translator.continue_with(value, body, call.environment)
