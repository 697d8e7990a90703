"""Scalar operations: expressions over expressions."""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.lower.translate import Call, Continuation, Translator, continuing

NAMES = (
    "add sub mul div mod neg lt le gt ge eq ne and or not min max exp exp2 log sqrt rsqrt tanh abs "
    "floor ceil round sin cos fma pow cast select indexToInt"
).split()


@continuing(*NAMES)
def operator(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """con e1 λx. con e2 λy. C(x op y)"""
    return translator.all(
        call.arguments,
        call.environment,
        lambda *operands: then(i.Operator(call.name, operands, call.type)),
    )
