"""Scalar operations: expressions over expressions."""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.scalar_temporaries import INT
from codegen.lower.translate import Call, Continuation, Translator, accepting, continuing
from rise.expr import apply
from rise.nat import constant, variable
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
    flag = variable(name)

    def either(value: i.Expression) -> i.Command:
        number = i.Operator("select", (value, i.Number(1, INT), i.Number(0, INT)), INT)
        one, other = (translator.accept(part, target, call.environment) for part in (first, second))
        return i.sequence(
            translator.assign(i.AcceptVariable(name, INT), number, call.origin),
            i.When(constant(0), flag, one),
            i.When(flag, constant(1), other),
        )

    made = translator.continue_with(condition, either, call.environment)
    return i.New(Space.LOCAL, name, INT, made, call.origin)
