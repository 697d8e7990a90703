"""Foreign functions written in C: calls, and definitions if the program gives their text."""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.lower.translate import Call, Continuation, Translator, continuing


@continuing("foreignFunction")
def called(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """con e1 λx1. … C(f(x1, …)). The function's denotation in RISE is ignored."""
    name, _, text = call.primitive.declaration.given

    def body(*operands: i.Expression) -> i.Command:
        return then(i.ForeignCall(str(name), str(text), operands, call.type))

    return translator.all(call.arguments[1:], call.environment, body)
