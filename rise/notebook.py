"""How programs, types and errors look in a notebook.

IPython asks objects for `_repr_html_`; for errors, `register` tells it what to show in place of a
traceback. `rise.embed` registers itself where IPython runs. The magics are in `rise.cli.notebook`.
"""

from __future__ import annotations

import html
import sys
from importlib import import_module
from typing import Any

from rise.errors import RiseError

STYLE = "line-height: 125%; overflow-x: auto"
LEXERS = {"rise": ("rise.syntax.highlight", "RiseLexer"), "cuda": ("pygments.lexers", "CudaLexer")}


def code_html(text: str, language: str = "rise") -> str:
    """A text of a `language`, rise or cuda, coloured where Pygments is installed; any other stays plain."""
    return f'<pre style="{STYLE}">{_coloured(text, language)}</pre>'


def folded_html(summary: str, content: str) -> str:
    """What is shown when a reader opens it."""
    return f"<details><summary>{html.escape(summary)}</summary>{content}</details>"


def _coloured(text: str, language: str = "rise") -> str:
    if language not in LEXERS:
        return html.escape(text)
    module, name = LEXERS[language]
    try:
        formatter = import_module("pygments.formatters").HtmlFormatter(nowrap=True, noclasses=True)
        lexer = getattr(import_module(module), name)()
    except ImportError:
        return html.escape(text)
    return str(import_module("pygments").highlight(text, lexer, formatter)).rstrip("\n")


def definition_html(text: str, signature: str) -> str:
    """The text of a definition, and its type below it."""
    return f'{code_html(text)}<pre style="{STYLE}; opacity: 0.75">{_coloured(signature)}</pre>'


def error_html(error: RiseError) -> str:
    """The message with its excerpt; the first line and the carets stand out."""
    first, *rest = error.render().splitlines()
    lines = [f"<b>{html.escape(first)}</b>"]
    for line in rest:
        text = html.escape(line)
        marks = bool(line.strip()) and set(line) <= set(" |^")
        lines.append(f'<span style="color: #c00">{text}</span>' if marks else text)
    return f'<pre style="{STYLE}">' + "\n".join(lines) + "</pre>"


# --- IPython ----------------------------------------------------------------------------------------


def register(shell: Any) -> None:
    """Errors of programs are shown as their messages, without a traceback; coloured where HTML is."""
    shell.set_custom_exc((RiseError,), _show)
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type(RiseError, error_html)
    formatters["text/plain"].for_type(RiseError, lambda error, printer, _: printer.text(error.render()))


def _show(shell: Any, kind: type[RiseError], error: RiseError, trace: Any, tb_offset: Any = None) -> None:
    """What IPython calls for an error that nobody handles; who runs a notebook is told the same text."""
    import_module("IPython.display").display(error)
    shell._last_traceback = error.render().splitlines()


def register_if_in_notebook() -> None:
    """Registers where IPython runs; imports nothing elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        register(shell)
