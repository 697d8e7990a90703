"""Scalar operations: expressions over expressions."""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.scalar_temporaries import INT, either
from codegen.lower.translate import Call, Continuation, Translator, accepting, continuing
from rise.expr import apply
from rise.types import Fragment, Space

NAMES = (
    "add sub mul div mod neg lt le gt ge eq ne and or not min max exp exp2 log sqrt rsqrt reciprocal tanh "
    "abs floor ceil round sin cos fma pow cast select indexToInt"
).split()


@continuing(*NAMES)
def operator(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """con e1 λx. con e2 λy. C(x op y)"""
    return translator.all(
        call.arguments,
        call.environment,
        lambda *operands: then(i.Operator(call.name, operands, call.type)),
    )


@accepting("select")
def chosen(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """con c λx. new f. f := x ; when(f) acc(a)(A) ; when(not f) acc(b)(A), for fragments."""
    condition, first, second = call.arguments
    if not isinstance(call.type, Fragment):
        whole = apply(call.primitive, *call.arguments, origin=call.origin)
        return translator.accept_value(whole, target, call.environment)
    name = translator.name("flag")

    def one_of_both(value: i.Expression) -> i.Command:
        one, other = (translator.accept(part, target, call.environment) for part in (first, second))
        return either(name, value, one, other, call.origin)

    made = translator.continue_with(condition, one_of_both, call.environment)
    return i.New(Space.LOCAL, name, INT, made, call.origin)
