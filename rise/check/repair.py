"""What an application that does not fit may have meant: small changes, tried until one fits.

Only the innermost application that fails is changed, and only where the message has no better hint.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from rise.check.inference import Inference
from rise.check.scope import Scope
from rise.errors import RiseError, TypeMismatch
from rise.syntax import surface as s

LONGEST = 24
REPAIRED = frozenset(("R0301", "R0303", "R0304", "R0305", "R0309"))


def improve(
    e: Inference, error: TypeMismatch, head: s.Surface, given: tuple[s.Surface, ...], scope: Scope
) -> None:
    """Gives the error the hint of the first change that makes the application fit."""
    if e.trial or error in e.examined or not given:
        return
    e.examined.append(error)
    if error.code not in REPAIRED:
        return
    for changed, text in _changes(head, given):
        if _fits(e, changed, scope):
            error.hint = f"did you mean `{text}`?"
            return


def _fits(e: Inference, node: s.Surface, scope: Scope) -> bool:
    trial = e.for_trial()
    try:
        trial.infer(node, scope)
        trial.unifier.copy().finish()
    except RiseError:
        return False
    return True


def _changes(head: s.Surface, given: tuple[s.Surface, ...]) -> Iterator[tuple[s.Call, str]]:
    span = head.span
    for i, j in combinations(range(len(given)), 2):
        order = list(given)
        order[i], order[j] = order[j], order[i]
        yield s.Call(head, tuple(order), span), f"{_text(head)}({', '.join(map(_text, order))})"
    *first, last = given
    function = s.Call(head, tuple(first), span) if first else head
    inner = f"{_text(head)}({', '.join(map(_text, first))})" if first else _text(head)
    yield s.Call(s.Name("map", span), (function, last), span), f"map({inner})({_text(last)})"
    if isinstance(last, s.Tuple):
        apart = (*first, last.first, last.second)
        yield s.Call(head, apart, span), f"{_text(head)}({', '.join(map(_text, apart))})"
    if len(given) == 2:
        pair = s.Tuple(given[0], given[1], span)
        yield s.Call(head, (pair,), span), f"{_text(head)}(({_text(given[0])}, {_text(given[1])}))"


def _text(node: s.Surface) -> str:
    """As the program writes it, if that is short."""
    if isinstance(node, s.Function):
        return "x => …"
    text = " ".join(node.span.text.split())
    return text if len(text) <= LONGEST else "…"
