"""`docs/language.md` is true: its examples check, have the types it says, or are rejected as it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rise.check.program import check_text
from rise.cli.check import described
from rise.errors import RiseError
from rise.source import Source
from rise.syntax.format import format_text
from rise.syntax.mistakes import KEYWORDS
from rise.syntax.parser import parse_expression
from rise.syntax.surface import Binary, without_places
from rise.types import SCALARS, Kind

TEXT = (Path(__file__).parents[2] / "docs" / "language.md").read_text()
BLOCK = re.compile(
    r"^```rise *(?P<head>[^\n]*)\n(?P<program>.*?)^```\n(?:```text\n(?P<told>.*?)^```)?", re.M | re.S
)
BLOCKS = [
    (TEXT[: b.start()].count("\n") + 2, b["head"], b["program"], b["told"]) for b in BLOCK.finditer(TEXT)
]


def told(text: str) -> Any:
    """What `rise check` prints."""
    program = check_text(text)
    lines = []
    for name in program.own:
        shown = described(program[name])
        lines.append(f"{name} : {shown['type']}")
        lines += [f"  where {', '.join(shown['constraints'])}"] if shown["constraints"] else []
    return lines


@pytest.mark.parametrize(
    ("line", "head", "program", "expected"), BLOCKS, ids=[f"line {b[0]}" for b in BLOCKS]
)
def test_an_example_is_as_the_text_says(line: str, head: str, program: str, expected: Any) -> None:
    if not head:
        lines = told(program)
        assert [each for each in (expected or "").splitlines() if each not in lines] == []
        return
    rejected, code = head.split()
    assert rejected == "rejected"
    with pytest.raises(RiseError) as caught:
        check_text(program)
    assert caught.value.code == code


@pytest.mark.parametrize("program", [b[2] for b in BLOCKS], ids=[f"line {b[0]}" for b in BLOCKS])
def test_an_example_is_formatted(program: str) -> None:
    assert format_text(Source("docs/language.md", program)) == program


def test_there_are_examples_of_all_sorts() -> None:
    assert len(BLOCKS) > 25
    assert sum(bool(b[1]) for b in BLOCKS) >= 4
    assert sum(bool(b[3]) for b in BLOCKS) >= 12


def test_the_words_of_the_language_are_listed() -> None:
    for word in [*KEYWORDS, *SCALARS, *(kind.value for kind in Kind)]:
        assert re.search(rf"`[^`]*\b{word}\b[^`]*`", TEXT), word


LEVELS = [["||"], ["&&"], ["==", "!="], ["<", "<=", ">", ">="], ["+", "-"], ["*", "/", "%"], ["^"]]


def test_operators_bind_as_the_table_says() -> None:
    rows = re.findall(r"^\| (`.*?) \|", TEXT[TEXT.index("## Operators") :], re.M)
    listed = [re.findall(r"`([^` ]+)`", row.replace("\\", "")) for row in rows]
    assert [level for level in LEVELS if level not in listed] == []
    for loose, tight in zip(LEVELS, LEVELS[1:], strict=False):
        for first in loose:
            for second in tight:
                tree = parse_expression(Source("t", f"a {first} b {second} c"))
                assert isinstance(tree, Binary)
                assert tree.operator == first


@pytest.mark.parametrize("operator", [operator for level in LEVELS for operator in level])
def test_operators_group_as_the_table_says(operator: str) -> None:
    def tree(text: str) -> Any:
        return without_places(parse_expression(Source("t", text)))

    text = f"a {operator} b {operator} c"
    if operator == "^":
        assert tree(text) == tree("a ^ (b ^ c)")
    elif operator in ("==", "!=", "<", "<=", ">", ">="):
        with pytest.raises(RiseError, match="R0101"):
            tree(text)
    else:
        assert tree(text) == tree(f"(a {operator} b) {operator} c")
