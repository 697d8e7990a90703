"""Values that are stored where the program says so."""

from __future__ import annotations

from codegen import imperative as i
from codegen.translate import Call, Continuation, Translator, accepting, continuing
from rise.errors import TranslationError
from rise.types import Array, Data, Fragment, FragmentKind, Space


@continuing("toMem")
def stored(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """new(a) tmp. acc(e)(tmp) ; C(tmp)"""
    space = call.size("a")
    if not isinstance(space, Space):
        raise translator.unstored(call.primitive)
    (value,) = call.arguments
    if space is not Space.LOCAL and stem(call.type, Space.LOCAL).endswith("fragment"):
        raise TranslationError(
            "R0715", f"`{call.type}` cannot be stored in memory", call.origin, "fragments live in `Local`"
        )
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
    """A computed scalar is stored once, everything else is a view."""
    return translator.let(
        call.arguments[0],
        call.arguments[1],
        call.environment,
        lambda expr, inner: translator.continue_with(expr, then, inner),
    )


@accepting("let")
def bound_result(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    return translator.let(
        call.arguments[0],
        call.arguments[1],
        call.environment,
        lambda expr, inner: translator.accept(expr, target, inner),
    )
