"""Colours: every word is what the language says it is, and no text is changed by colouring it."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String  # type: ignore[import-untyped]

from rise.cli.terminal import show_code
from rise.syntax import words as word_lists
from rise.syntax.highlight import RiseLexer
from rise.syntax.mistakes import KEYWORDS
from rise.syntax.parser import GRAMMAR
from rise.syntax.printer import print_file
from rise.syntax.surface import FileSyntax
from rise.syntax.textmate import grammar
from tests.rise.surface_programs import FILES

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted([*ROOT.glob("examples/**/*.rise"), *ROOT.glob("rise/library/*.rise")])


def tokens(text: str) -> Any:
    return [(token, piece) for _, token, piece in RiseLexer().get_tokens_unprocessed(text)]


def check(text: str) -> None:
    found = tokens(text)
    assert "".join(piece for _, piece in found) == text
    assert not [piece for token, piece in found if token is Error]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.name)
def test_an_example_has_no_unknown_word(path: Path) -> None:
    check(path.read_text())


@given(FILES)
def test_a_program_has_no_unknown_word(file: FileSyntax) -> None:
    check(print_file(file))


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("let", Keyword),
        ("depFun", Keyword),
        ("import", Keyword.Declaration),
        ("true", Keyword.Constant),
        ("f32", Keyword.Type),
        ("Nat", Keyword.Type),
        ("Array", Name.Class),
        ("Local", Name.Constant),
        ("swizzled", Name.Constant),
        ("tensorMatMulAdd", Name.Builtin),
        ("mapper", Name),
        ("_x1", Name),
        ("1e-3", Number.Float),
        ("16", Number.Integer),
        ('"a b"', String),
        ("// x", Comment.Single),
        ("/* x\ny */", Comment.Multiline),
        ("/* not closed", Comment.Multiline),
        ("|>", Operator),
        (">>", Operator),
        (",", Punctuation),
        ("$", Error),
    ],
)
def test_a_word_is_what_the_language_says(text: str, token: Any) -> None:
    assert tokens(text) == [(token, text)]


def test_a_definition_shows_its_name() -> None:
    assert tokens("def map")[2] == (Name.Function, "map")


def test_the_lists_of_words_are_those_of_the_grammar() -> None:
    text = GRAMMAR.read_text()
    reserved = {*word_lists.DECLARATIONS, *word_lists.KEYWORDS, *word_lists.VALUES}
    excluded = re.search(r"NAME: /\(\?!\(\?:([^)]*)\)", text)
    assert excluded is not None
    assert reserved == KEYWORDS == set(excluded[1].split("|"))
    quoted = set(re.findall(r'^_?[A-Z_]+: "([^"]+)"$', text, re.MULTILINE))
    signs = {*word_lists.OPERATORS, *word_lists.PUNCTUATION}
    assert quoted <= signs
    # the rest is written as patterns, to be told apart from longer ones
    assert signs - quoted == {"=", "=>", ">", "-", "!"} - quoted


def test_the_textmate_grammar_is_up_to_date() -> None:
    path = ROOT / "editors" / "vscode" / "syntaxes" / "rise.tmLanguage.json"
    assert path.read_text() == grammar(), f"python -m rise.syntax.textmate > {path.relative_to(ROOT)}"


def test_the_textmate_grammar_knows_the_words() -> None:
    patterns = json.loads(grammar())["patterns"]

    def scope(word: Any) -> Any:
        return next(p["name"] for p in patterns if "match" in p and re.fullmatch(p["match"], word))

    assert scope("let") == "keyword.control.rise"
    assert scope("mapWarp") == "support.function.rise"
    assert scope("f16") == "storage.type.rise"
    assert scope("mapWarps") == "variable.other.rise"
    assert scope("2.5e-3") == "constant.numeric.rise"
    assert scope("|>") == "keyword.operator.rise"
    assert scope("// x") == "comment.line.double-slash.rise"
    for pattern in patterns:
        re.compile(pattern.get("match") or pattern["begin"])


def test_a_terminal_shows_colours_and_a_pipe_does_not() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> Any:
            return True

    out, pipe = Terminal(), io.StringIO()
    show_code("def f = map // c", "rise", out)
    show_code("def f = map // c", "rise", pipe)
    assert "\x1b[" in out.getvalue()
    assert pipe.getvalue() == "def f = map // c\n"


def test_the_entry_point_names_the_lexer() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, name = project["entry-points"]["pygments.lexers"]["rise"].split(":")
    assert (module, name) == (RiseLexer.__module__, RiseLexer.__name__)


def test_colouring_needs_neither_numpy_nor_the_parser() -> None:
    check = """
import sys
from rise.syntax.highlight import RiseLexer
list(RiseLexer().get_tokens("def f = map"))
sys.exit(bool({"lark", "numpy"} & {*sys.modules}))
"""
    assert subprocess.run([sys.executable, "-c", check], check=False, cwd=ROOT).returncode == 0
