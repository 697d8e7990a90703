"""Mistakes in programs written in Python: a caret under the Python text, and what to write instead."""

from __future__ import annotations

import linecache
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import rise
from rise.errors import RiseError
from tests.rise.python_cells import PREAMBLE, ROOT, defined

# --- carets -----------------------------------------------------------------------------------------------


def message(text: str) -> str:
    """The whole message; cells have no numbers in it."""
    with pytest.raises(RiseError) as caught:
        defined(text)
    return re.sub(r"<cell \d+>", "cell", caught.value.render())


def caret(text: str) -> tuple[str, str]:
    """Code and text above the carets of the first excerpt."""
    with pytest.raises(RiseError) as caught:
        defined(text)
    span = caught.value.origin
    assert isinstance(span, rise.source.Span)
    return caught.value.code, span.source.line(span.line)[span.column - 1 : span.end_column - 1]


TYPE_MISTAKES = {
    "an argument": (
        "def f(xs: Array[n, f32], ys: Array[m, f32]):\n    return zip(xs, ys) | map(lambda x, y: x + y)",
        ("R0402", "ys"),
    ),
    "an operand": (
        "def f(x: f32, y: i32):\n    return (x * 2 + y) / x",
        ("R0301", "y"),
    ),
    "the result": (
        "def f(xs: Array[n, f32]) -> Array[n, f32]:\n    return xs | map(lambda x: x + 1) | map(i32)",
        ("R0301", "xs | map(lambda x: x + 1) | map(i32)"),
    ),
    "an annotation": ("def f(xs: Array[f32, n]):\n    return xs", ("R0203", "f32")),
    "the projection of a number": ("def f(été: f32):\n    return été + été.fst", ("R0301", "été")),
    "a size as a value": ("def f(x: f32):\n    return x * (n + 1)", ("R0203", "n")),
    "a literal": ("def f(x: i32):\n    return x + 1.5", ("R0306", "1.5")),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TYPE_MISTAKES.values(), ids=TYPE_MISTAKES)
def test_type_errors_point_at_the_python_expression(text: str, expected: tuple[str, str]) -> None:
    assert caret(text) == expected


TRACING_MISTAKES = {
    "if": (
        "def f(x: f32):\n    if x < 0:\n        return -x\n    return x",
        """
        cell:2:8: error R0150: whether this is true is not known before the program runs
        2 |     if x < 0:
          |        ^^^^^
        hint: `select(condition, then, otherwise)` chooses between values
        """,
    ),
    "and": (
        "def f(p, q):\n    return p and q",
        """
        cell:2:12: error R0150: whether this is true is not known before the program runs
        2 |     return p and q
          |            ^^^^^^^
        hint: write `a & b`, `or_(a, b)`, `~a`: Python's `and`, `or`, `not` cannot be traced
        """,
    ),
    "a chain of comparisons": (
        "def f(x):\n    return select(0 < x < 1, x, 0)",
        """
        cell:2:19: error R0150: whether this is true is not known before the program runs
        2 |     return select(0 < x < 1, x, 0)
          |                   ^^^^^^^^^
        hint: write `(a < b) & (b < c)`: Python reads `a < b < c` with an `and`, `a < b & c < d` as a chain
        """,
    ),
    "a loop": (
        "def f(xs):\n    for x in xs:\n        pass\n    return xs",
        """
        cell:2:14: error R0151: Python cannot go through a value whose elements are not known yet
        2 |     for x in xs:
          |              ^^
        hint: `map`, `reduce` and `scan` of `rise.ops` go through an array; `a, b = pair` takes a pair apart
        """,
    ),
    "NumPy": (
        "table = np.arange(3)\ndef f(x):\n    return x * table",
        """
        cell:3:16: error R0152: a Python value of type `ndarray` stands in a program
        3 |     return x * table
          |                ^^^^^
        hint: pass arrays as inputs: make it a parameter of the definition; `float(x)` of a number
        """,
    ),
    "no return": (
        "def f(x):\n    x + 1",
        """
        cell:1:1: error R0153: `f` returns nothing
        1 | def f(x):
          | ^^^^^^^^^
        hint: `return` the result
        """,
    ),
    "an escaped parameter": (
        "kept = []\ndef f(xs):\n    ys = xs | map(lambda x: kept.append(x) or x)\n"
        "    return ys | map(lambda y: y + kept[0])",
        """
        cell:4:35: error R0154: `x` is used outside of the function whose parameter it is
        4 |     return ys | map(lambda y: y + kept[0])
          |                                   ^^^^^^^
        hint: its function starts in line 3; return the value from it instead
        """,
    ),
    "or": (
        "def f(x, y):\n    return (x < y) | (y < 1)",
        """
        cell:2:23: error R0155: `x | f` applies a function, and this is none
        2 |     return (x < y) | (y < 1)
          |                       ^^^^^
        hint: the logical or is `or_(a, b)`
        """,
    ),
    "a function of Python": (
        "def f(xs):\n    return xs | reduce(builtins.max, 0)",
        """
        cell:2:24: error R0156: Python's own `max` is no function of a program
        2 |     return xs | reduce(builtins.max, 0)
          |                        ^^^^^^^^^^^^
        hint: use `rise.ops.max`
        """,
    ),
    "a type of Python": (
        "def f(x: float):\n    return x",
        """
        cell:1:10: error R0157: the annotation of the parameter `x` is no type of a program: `float`
        1 | def f(x: float):
          |          ^^^^^
        hint: choose its width: `f16`, `f32`, `f64`
        """,
    ),
    "an attribute": (
        "def f(xs):\n    return xs.transpose",
        """
        cell:2:12: error R0158: a traced value has no attribute `transpose`
        2 |     return xs.transpose
          |            ^^^^^^^^^^^^
        hint: write `x | transpose`, with `from rise.ops import transpose`
        """,
    ),
    "a function of NumPy": (
        "def f(x):\n    return np.exp(x)",
        """
        cell:2:12: error R0159: NumPy cannot compute with a value that is not known yet
        2 |     return np.exp(x)
          |            ^^^^^^^^^
        hint: use the functions of `rise.ops`: `exp`, `sqrt`, `reduce(add, 0)` …
        """,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TRACING_MISTAKES.values(), ids=TRACING_MISTAKES)
def test_mistakes_in_python_are_messages(text: str, expected: str) -> None:
    assert message(text) == textwrap.dedent(expected).strip()


OTHER_MISTAKES = {
    "len": ("def f(xs):\n    return xs | map(lambda x: x * len(xs))", "R0151", "len(xs)"),
    "in": ("def f(xs):\n    return select(1 in xs, 1, 2)", "R0151", "1 in xs"),
    "not": ("def f(p):\n    return not p", "R0150", "not p"),
    "while": ("def f(x):\n    while x < 3:\n        x = x * 2\n    return x", "R0150", "x < 3"),
    "max": ("def f(x, y):\n    return builtins.max(x, y)", "R0150", "builtins.max(x, y)"),
    "a slice": ("def f(xs):\n    return xs[1:]", "R0152", "xs[1:]"),
    "a list": ("def f(x):\n    return [x, x]", "R0152", "[x, x]"),
    "int": ("def f(x):\n    return x + int(x)", "R0159", "int(x)"),
    "an array on the left": ("def f(x):\n    return np.ones(3) * x", "R0152", "np.ones(3)"),
    "an array into a pipe": ("def f(x):\n    return np.ones(3) | map(lambda y: x)", "R0152", "np.ones(3)"),
    "any number of parameters": ("def f(x):\n    return x | (lambda *ys: x)", "R0156", "lambda *ys: x"),
    "no arguments": ("def f(xs):\n    return xs | map()", "R0156", "map()"),
    "floor division": ("def f(x):\n    return x // 2", "R0155", "x // 2"),
    "kinds": ("q = DataType('n')\ndef f(x: Array[n, q]):\n    return x", "R0157", "def f(x: Array[n, q]):"),
    "a pair of one": ("def f(x: Pair[f32]):\n    return x", "R0157", "Pair[f32]"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "code", "marked"), OTHER_MISTAKES.values(), ids=OTHER_MISTAKES)
def test_other_mistakes_in_python(text: str, code: str, marked: str) -> None:
    assert caret(text) == (code, marked)


def test_the_shape_of_an_error_is_that_of_a_file() -> None:
    """A type error in Python is the one in text, but for the excerpt."""
    with pytest.raises(RiseError) as text:
        rise.parse("def f = fun((x: f32, y: f16) => x + y)")
    with pytest.raises(RiseError) as python:
        defined("def f(x: f32, y: f16):\n    return x + y")
    assert (python.value.code, python.value.message, python.value.hint) == (
        text.value.code, text.value.message, text.value.hint,
    )  # fmt: skip


def test_an_error_has_a_short_traceback() -> None:
    with pytest.raises(RiseError) as caught:
        defined("def f(x: f32, y: f16):\n    return x + y")
    package = Path(rise.__file__).parent
    files = [Path(str(entry.path)) for entry in caught.traceback]
    assert not any(file.is_relative_to(package / "check") for file in files)


def test_where_the_text_is_not_known_a_message_says_so() -> None:
    code = PREAMBLE + "f = rise.define(fun(lambda x: x + n, x=f32), name='f')"
    with pytest.raises(RiseError) as caught:
        exec(compile(code, "<stdin>", "exec"), {})
    shown = caught.value.render()
    assert "<stdin>:8:1: error R0203" in shown
    assert "8 | (the text of this line is not available)" in shown


def test_a_cell_that_is_run_again_shows_its_new_text() -> None:
    for text in ("lambda x: x + n", "lambda longer: longer * n"):
        code = f"rise.define({text})"
        linecache.cache["<again>"] = (len(code), None, [code], "<again>")
        namespace: dict[str, object] = {}
        exec(PREAMBLE, namespace)
        with pytest.raises(RiseError) as caught:
            exec(compile(code, "<again>", "exec"), namespace)
        assert f"1 | {code}" in caught.value.render()


def test_without_columns_the_caret_is_under_the_line() -> None:
    code = (
        PREAMBLE
        + "try:\n    rise.define(fun(lambda x: x + n, x=f32))\nexcept rise.RiseError as e:\n    print(e)\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "no_debug_ranges", "-c", "import sys; exec(compile(*sys.argv[1:], 'exec'))",
         code, "<unknown>"],
        capture_output=True, text=True, cwd=ROOT, check=True,
    )  # fmt: skip
    assert "<unknown>:9:1: error R0203" in done.stdout
