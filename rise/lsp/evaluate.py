"""Evaluation comments: `// >>> dot(xs, xs)`, and below it what the expression is, `// = 14.0 : f32`.

`python -m rise.cli.evaluate` reads a request as JSON and prints the answers as JSON: an evaluation may take
long, so it runs in a process of its own, which can be ended.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rise.check.program import check_expression, real_path
from rise.depth import deep
from rise.errors import RiseError
from rise.interpret import call
from rise.interpret.notation import notation
from rise.lsp.incremental import Incremental
from rise.pretty import show_type
from rise.source import Source, without_mark
from rise.types import is_data

ASKED = re.compile(r"(?P<indent>\s*)//\s*>>>\s*(?P<expression>\S.*)")
ANSWER = re.compile(r"\s*// = ")
LONGEST = 400  # characters of a value that are shown


@dataclass(frozen=True)
class Comment:
    """A comment that asks for a value.

    line:    its number, counted from 1
    answers: how many lines below it have the answer of before
    """

    line: int
    indent: str
    expression: str
    answers: int


def comments(text: str) -> list[Comment]:
    lines = text.split("\n")
    found = []
    for number, line in enumerate(lines, 1):
        if asked := ASKED.fullmatch(line.rstrip()):
            answers = 0
            while number + answers < len(lines) and ANSWER.match(lines[number + answers]):
                answers += 1
            found.append(Comment(number, asked["indent"], asked["expression"], answers))
    return found


def answer(indent: str, value: str) -> str:
    """The lines below a comment."""
    return "".join(f"{indent}// = {line}\n" for line in value.split("\n"))


def evaluated(path: Path, folder: Path, texts: dict[Path, str], expressions: Sequence[str]) -> list[str]:
    """The value of each expression with its type, or the mistake; definitions are those of the file."""
    loader = Incremental(texts)
    text = texts.get(real_path(path))
    source = loader.read(path) if text is None else Source(str(path), without_mark(text))
    definitions = loader.check(source, folder).definitions
    answers = []
    for expression in expressions:
        try:
            body = check_expression(expression, definitions)
            if not is_data(body.type):
                answers.append(f"a function : {show_type(body.type)}")
                continue
            value = notation(body.type, call(body))
            shown = value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
            answers.append(f"{shown} : {show_type(body.type)}")
        except RiseError as error:
            answers.append(f"error {error.code}: {error.message}")
    return answers


def request(path: Path, folder: Path, texts: dict[Path, str], expressions: Sequence[str]) -> str:
    """What the process reads."""
    named = {str(name): text for name, text in texts.items()}
    asked = {"path": str(path), "folder": str(folder), "texts": named, "expressions": list(expressions)}
    return json.dumps(asked)


@deep
def main() -> None:
    asked = json.load(sys.stdin)
    texts = {Path(name): text for name, text in asked["texts"].items()}
    found = evaluated(Path(asked["path"]), Path(asked["folder"]), texts, asked["expressions"])
    json.dump(found, sys.stdout)
