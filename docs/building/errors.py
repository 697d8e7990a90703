"""The page of error codes, from what `rise explain CODE` prints."""

from __future__ import annotations

from collections.abc import Iterator

from rise.cli.explanations import EXPLANATIONS
from rise.cli.mistakes import EXAMPLES, message

STAGES = {
    "00": "Files and calls",
    "01": "Syntax",
    "02": "Names and kinds",
    "03": "Types",
    "04": "Sizes",
    "05": "Evaluation",
    "06": "Rewriting",
    "07": "Translation",
    "08": "Compilation and launch",
    "09": "Emulation",
}


def page() -> str:
    return "\n\n".join([
        "# Errors",
        "Every mistake in a program, a strategy or a call has a code, and this page has all of them, as"
        " `rise explain CODE` prints them. In Python each is a `rise.RiseError` with the attributes `code`,"
        " `message`, `origin` and `hint`.",
        *_sections(),
    ]) + "\n"  # fmt: skip


def _sections() -> Iterator[str]:
    for stage, title in STAGES.items():
        yield f"## {title}"
        for code, meaning in sorted(EXPLANATIONS.items()):
            if code.startswith(f"R{stage}"):
                yield from _section(code, meaning)


def _section(code: str, meaning: str) -> Iterator[str]:
    yield f"### {code}"
    yield meaning
    if example := EXAMPLES.get(code):
        yield "Wrong, with its message:"
        yield _block("rise", example.wrong)
        yield _block("text", message(example.wrong))
        yield "Right:"
        yield _block("rise", example.right)


def _block(language: str, text: str) -> str:
    """Lines that only their length makes wrong are cut."""
    lines = (line if len(line) <= 160 else f"{line[:159]}…" for line in text.strip().splitlines())
    return f"```{language}\n" + "\n".join(lines) + "\n```"
