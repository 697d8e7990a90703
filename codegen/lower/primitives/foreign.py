"""Functions that are written in C: called, and defined where the program gives their text."""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.lower.translate import Call, Continuation, Translator, continuing


@continuing("foreignFunction")
def called(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """con e1 λx1. … C(f(x1, …)). What the function means to RISE is not looked at."""
    name, _, text = call.primitive.declaration.given

    def body(*operands: i.Expression) -> i.Command:
        return then(i.ForeignCall(str(name), str(text), operands, call.type))

    return translator.all(call.arguments[1:], call.environment, body)
