"""A derivation as one page of HTML: each step with its terms side by side, what changed marked.

The page needs nothing but itself: no scripts, no fonts, no network. Steps open and close by themselves,
as `<details>` do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from html import escape

from rewrites.derivation import rule_named
from rewrites.result import Step, Success, show_path
from rise.check.compare import Comparison
from rise.cli.rules import equation
from rise.expr import Expr
from rise.pretty import show

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 110rem; padding: 0 1rem }
pre { font: 13px/1.45 ui-monospace, monospace; margin: 0; overflow-x: auto; white-space: pre }
details { border: 1px solid #8884; border-radius: 4px; margin: .3rem 0; padding: .3rem .7rem }
summary { cursor: pointer }
.sides { display: grid; gap: 1rem; grid-template-columns: 1fr 1fr; margin: .5rem 0 }
.place, .equation { color: #777; font-size: 13px }
.number { color: #777; display: inline-block; min-width: 3.5em }
del { background: #f5b7b166; text-decoration: none }
ins { background: #a9dfbf88; text-decoration: none }
.right { color: #1e8449 } .wrong { color: #c0392b; font-weight: bold }
:root { color-scheme: light dark }
"""
# what is marked as a whole: a word, a space, an operator
TOKEN = re.compile(r"\w+|\s+|\|>|=>|.", re.DOTALL)
# longer texts than this are compared line by line: the time grows with the square of the number of tokens
LONGEST = 3000
WIDTH = 72


def page(name: str, start: Expr, success: Success, verdicts: Sequence[Comparison] = ()) -> str:
    """The derivation of a definition. The verdicts are those of `--check`, for as many steps as there are."""
    steps = "\n".join(
        _step(number, step, verdicts[number - 1] if number <= len(verdicts) else None)
        for number, step in enumerate(success.steps, 1)
    )
    title = f"Derivation of {escape(name)}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>
<body>
<h1>{title}</h1>
<p>{len(success.steps)} steps. A place is a path from the top of the program: 0 is the function and 1 the
argument of an application, 0 the body of a function.</p>
<details><summary>The program</summary><pre>{escape(show(start, annotate=True))}</pre></details>
{steps}
<details open><summary>The result</summary><pre>{escape(show(success.term, annotate=True))}</pre></details>
</body>
</html>
"""


def _step(number: int, step: Step, verdict: Comparison | None) -> str:
    before, after = marked(show(step.before, WIDTH), show(step.after, WIDTH))
    parameters = ", ".join(f"{name} = {size}" for name, size in step.parameters.items())
    given = f" with {escape(parameters)}" if parameters else ""
    asks = "".join(f'<p class="place">asks for {escape(str(c))}</p>' for c in step.constraints)
    return (
        f'<details><summary><span class="number">{number}</span> <b>{escape(step.rule)}</b>{given}'
        f' <span class="place">at {show_path(step.path)}</span>{_verdict(verdict)}</summary>'
        f'<p class="equation">{escape(equation(rule_named(step.rule)))}</p>{asks}'
        f'<div class="sides"><pre>{before}</pre><pre>{after}</pre></div></details>'
    )


def _verdict(verdict: Comparison | None) -> str:
    if verdict is None:
        return ""
    return (
        ' <span class="right">✓</span>'
        if verdict.agrees
        else ' <span class="wrong">✗ changes the result</span>'
    )


def marked(before: str, after: str) -> tuple[str, str]:
    """Both texts as HTML, `<del>` around what is only in the first, `<ins>` in the second."""
    old, new = _pieces(before, after)
    left: list[str] = []
    right: list[str] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, come = escape("".join(old[a:b])), escape("".join(new[c:d]))
        left.append(gone if tag == "equal" or not gone else f"<del>{gone}</del>")
        right.append(come if tag == "equal" or not come else f"<ins>{come}</ins>")
    return "".join(left), "".join(right)


def _pieces(before: str, after: str) -> Iterator[list[str]]:
    texts = (before, after)
    if len(before) + len(after) > LONGEST:
        return (text.splitlines(keepends=True) for text in texts)
    return (TOKEN.findall(text) for text in texts)
