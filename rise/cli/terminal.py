"""Messages and programs for the user: coloured on a terminal, plain elsewhere."""

from __future__ import annotations

import sys
from io import BytesIO, TextIOWrapper
from typing import Any, TextIO

from rise.errors import RiseError, UsageError
from rise.progress import said
from rise.source import without_mark

# the name of a file that stands for it
STANDARD_INPUT = "-"


def show_error(error: RiseError) -> None:
    """The message on stderr: place and reason, the carets, what differs, the hint."""
    if not sys.stderr.isatty():
        print(error.render(), file=sys.stderr)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for line in error.lines():
        console.print(Text.assemble(*((text, STYLES[kind]) for kind, text in line)))


# the pieces of a message (`rise.errors.Piece`), as rich styles
STYLES = {"title": "bold red", "caret": "red", "mark": "bold magenta", "note": "bold", "hint": "cyan", "": ""}


# the tokens of programs, in those of the terminal's own colours that are legible on light and on dark ground
CODE = {
    "Comment": "dim", "Comment.Preproc": "magenta", "Keyword": "bold", "Keyword.Type": "cyan",
    "Keyword.Constant": "magenta", "Operator.Word": "bold", "Name.Builtin": "cyan", "Name.Function": "green",
    "Name.Class": "green", "Name.Constant": "magenta", "Literal.String": "green", "Literal.Number": "magenta",
    "Error": "underline red",
}  # fmt: skip


def note(text: str) -> None:
    """A remark that is not part of the output."""
    said(f"note: {text}", sys.stderr)


def show_code(text: str, language: str, stream: TextIO | None = None) -> None:
    """A program text: coloured on a terminal, as it is in a pipe."""
    out = stream or sys.stdout
    if not out.isatty():
        out.write(text if text.endswith("\n") else text + "\n")
        return
    from pygments.token import string_to_tokentype  # type: ignore[import-untyped]  # pygments has no types
    from rich.console import Console
    from rich.style import Style
    from rich.syntax import ANSISyntaxTheme, Syntax

    console = Console(file=out)
    lexer = _lexer(language)
    theme = ANSISyntaxTheme({string_to_tokentype(name): Style.parse(how) for name, how in CODE.items()})
    console.print(Syntax(text.rstrip("\n"), lexer, theme=theme, background_color="default", word_wrap=True))


def _lexer(language: str) -> Any:
    """Pygments' own are found by name; ours is too where the package is installed, which it need not be."""
    if language != "rise":
        return language
    from rise.syntax.highlight import RiseLexer

    return RiseLexer()


def standard_input() -> str:
    """Programs are UTF-8, whatever the locale says. R0002 where this one is not."""
    if not isinstance(sys.stdin, TextIOWrapper):
        return without_mark(sys.stdin.read())
    try:
        return without_mark(TextIOWrapper(BytesIO(sys.stdin.buffer.read()), encoding="utf-8").read())
    except UnicodeDecodeError:
        raise UsageError("R0002", "the standard input is not UTF-8 text") from None
