"""Definitions and programs as values of Python: results, composition, how they look, the documents."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rise
from rise import Definition, ops
from rise.errors import RiseError
from tests.rise.python_cells import GEMM, ROOT, SPLIT, cell, defined, run, same
from tests.support.golden import assert_golden

# --- evaluation -------------------------------------------------------------------------------------------


def test_sizes_follow_from_the_inputs(rng: np.random.Generator) -> None:
    A, B = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((3, 7), (7, 5)))
    matmul = run(GEMM)["matmul"]
    expected = A.astype(np.float32) @ B.astype(np.float32)
    for result in (matmul(A, B), matmul.evaluate(A, B), matmul.evaluate(A, B, m=3)):
        np.testing.assert_array_equal(result, expected)
        assert result.dtype == np.float32


@pytest.mark.parametrize(("levels", "fits"), [(200, True), (9000, False)])
def test_loops_of_python_make_deep_terms(levels: int, fits: bool) -> None:
    def halved(x: Any) -> Any:
        for i in range(levels):
            x = x * 0.5 + i
        return x

    if not fits:
        with pytest.raises(RiseError, match="nested too deeply") as caught:
            rise.define(lambda x: halved(ops.f32(x)), name="halved")
        assert caught.value.code == "R0014"
        return
    assert rise.define(lambda x: halved(ops.f32(x)), name="halved")(np.float32(1)) == halved(1.0)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_types_follow_from_the_inputs() -> None:
    transpose = rise.define(ops.transpose, name="transposed")
    for dtype in (np.float32, np.int8, np.bool_):
        array = np.arange(6).reshape(2, 3).astype(dtype)
        assert np.array_equal(transpose(array), array.T)
        assert transpose(array).dtype == dtype
    # the elements may be arrays themselves
    cube = np.arange(2 * 3 * 5).reshape(2, 3, 5)
    assert np.array_equal(transpose(cube), cube.transpose(1, 0, 2))


def test_of_a_type_that_several_inputs_show_arrays_decide() -> None:
    """A number of Python has no type of its own."""
    shifted = defined(
        "def f(x: t, xs: Array[n, t]) -> Array[n, Pair[t, t]]:\n    return xs | map(lambda y: (x, y))"
    )
    first, second = shifted(3, np.array([1, 2], np.uint8))
    assert (first.dtype, second.dtype, first.tolist()) == (np.uint8, np.uint8, [3, 3])


def test_types_can_be_given() -> None:
    filled = defined("f = rise.define(fun(lambda x: generate(lambda i: x), x=t), name='f')")
    found = filled(3, n=4, t=ops.u8)
    assert (found.tolist(), found.dtype) == ([3, 3, 3, 3], np.uint8)
    with pytest.raises(RiseError) as caught:
        filled(3)
    assert caught.value.hint == "give it by name, `f(…, n=128)`, or by inputs that show it"


def test_pairs_show_their_sizes_too() -> None:
    first = defined("def f(p: Pair[Array[n, f32], Array[m, i32]]):\n    return p.fst")
    ones, twos = np.ones(3, np.float32), np.full(5, 2, np.int32)
    assert first((ones, twos)).tolist() == [1, 1, 1]


def test_numbers_are_inputs() -> None:
    axpy = defined("def f(a: f32, xs: Array[n, f32]):\n    return xs | map(lambda x: a * x)")
    assert axpy(3, np.ones(1, np.float32)).tolist() == [3]


def test_a_constant_has_sizes_only() -> None:
    iota = defined("@rise.define(sizes=n)\ndef f() -> Array[n, i32]:\n    return generate(indexToInt)")
    assert iota(n=5).tolist() == [0, 1, 2, 3, 4]


WRONG_INPUTS: dict[str, tuple[Callable[[Definition], Any], str]] = {
    "a list": (lambda f: f([1.0, 2.0]), "R0507"),
    "too many": (lambda f: f(np.ones(3, np.float32), 1), "R0505"),
    "none": (lambda f: f(), "R0505"),
    "another type": (lambda f: f(np.ones(32)), "R0502"),
    "a shape with which nothing divides": (lambda f: f(np.ones(33, np.float32)), "R0401"),
    "an unknown size": (lambda f: f(np.ones(32, np.float32), m=3), "R0406"),
}


@pytest.mark.parametrize(("call", "code"), WRONG_INPUTS.values(), ids=WRONG_INPUTS)
def test_inputs_that_do_not_fit(call: Callable[[Definition], Any], code: str) -> None:
    with pytest.raises(RiseError) as caught:
        call(defined(SPLIT))
    assert caught.value.code == code


# --- composition ------------------------------------------------------------------------------------------


def test_definitions_compose() -> None:
    scope = run("""
        squares = rise.define(fun(lambda xs: xs | map(lambda x: x * x), xs=Array[n, i32]), name="squares")
        total = squares >> reduce(add, 0)
        again = squares >> (lambda ys: ys | map(lambda y: y + 1))
        both = squares >> squares
    """)
    xs = np.array([1, 2, 3], np.int32)
    assert (scope["total"](xs), (xs | scope["total"])) == (14, 14)
    assert scope["again"](xs).tolist() == [2, 5, 10]
    assert scope["both"](xs).tolist() == [1, 16, 81]
    assert [scope[name].name for name in ("total", "again", "both")] == [
        "squares_then_reduce", "squares_then_function", "squares_then_squares",
    ]  # fmt: skip
    with pytest.raises(RiseError):
        scope["total"] >> scope["total"]


def test_while_a_program_is_traced_definitions_are_parts_of_it() -> None:
    """Also where they are applied to numbers, which elsewhere gives a result."""
    found = run("""
        g = rise.define(fun(lambda x: x * 2, x=f32), name="g")
        f = rise.define(lambda x: (x | g >> g) + g(3), name="f")
    """)["f"]
    assert repr(found) == "def f(x: f32) = (x |> (x_1 => g(g(x_1)))) + g(3.0)"


def test_definitions_are_parts_of_others() -> None:
    dot = "def dot: {n: Nat} -> n.f32 -> n.f32 -> f32 = fun(xs, ys => zip(xs, ys) |> map(*) |> reduce(+, 0))"
    loaded = rise.parse(dot.replace("map(*)", "map(fun((x, y) => x * y))")).dot

    found = rise.define(lambda xs: xs | ops.map(lambda row: loaded(row, row)), name="norms")
    assert str(found.type) == "{n: Nat, n1: Nat} -> n.n1.f32 -> n.f32"
    assert found(np.array([[3, 4]], np.float32)).tolist() == [25]
    mapped = rise.define(lambda xs, b: xs | ops.map(loaded(b)), name="mapped")
    assert mapped(np.array([[3, 4]], np.float32), np.array([1, 2], np.float32)).tolist() == [11]


# --- programs ---------------------------------------------------------------------------------------------


def test_a_program_is_a_mapping() -> None:
    program = rise.load(ROOT / "examples" / "gemm.rise")
    assert list(program)[:2] == ["gemm", "matmul"]
    assert program.matmul is program["matmul"]
    assert "matmul" in program
    assert "nope" not in program
    assert program.get("nope") is None
    assert not hasattr(program, "nope")
    assert "matmul : (m: Nat, n: Nat, k: Nat) -> m.k.f16 -> k.n.f16 -> m.n.f32" in repr(program).splitlines()
    with pytest.raises(RiseError, match="did you mean `matmul`"):
        _ = program.matmull
    assert same(rise.parse(program.show()).gemm, program.gemm)


def test_what_a_program_imports_is_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "a.rise").write_text("def one = fun(x: f32 => x + 1)")
    (tmp_path / "b.rise").write_text('import "a.rise"\ndef two = fun(x => one(one(x)))')
    program = rise.load(tmp_path / "b.rise")
    assert (list(program), list(program.imported)) == (["two"], ["one"])
    assert program.two(1.0) == 3
    with pytest.raises(RiseError, match="it is imported"):
        _ = program["one"]
    assert rise.parse(program.two.show()).two(1.0) == 3


def test_an_expression_may_use_definitions() -> None:
    one = rise.expression("fun(x: f32 => x + 1)", "one")
    assert rise.expression("fun(x => one(x) * 2)", one=one)(1.0) == 4


# --- how values look --------------------------------------------------------------------------------------


def test_types_show_what_they_ask() -> None:
    split = defined(SPLIT)
    assert str(split.type) == repr(split.type) == "{n: Nat} -> n.f32 -> n.f32 where 32 | n"
    assert split.type == split.type
    assert len({split.type, split.type}) == 1


def test_repr_is_the_text_within_a_width() -> None:
    gemm = run(GEMM)["gemm"]
    assert max(map(len, repr(gemm).splitlines())) <= 88
    assert same(rise.parse(repr(gemm)).gemm, gemm)


def test_a_traced_value_shows_its_text() -> None:
    seen: list[str] = []
    run("def f(x, see):\n    see.append(repr(x * 2 + 1))\n    return x")["f"](ops.exp, seen)
    [text] = seen
    assert text == "exp * 2 + 1"


def test_a_traced_value_shows_as_the_text_of_a_program() -> None:
    n = ops.Nat("n")
    assert repr(n // 2 + 1) == "n / 2 + 1"
    assert repr(ops.Array[n, ops.f32]) == "Array[n, f32]"
    assert repr(ops.Function[ops.f32, ops.f32]) == "f32 -> f32"
    assert repr(ops.map(lambda x: x * 2 + 1) >> ops.join) == "map(x => x * 2 + 1) >> join"


def test_inputs_may_be_given_by_name(rng: np.random.Generator) -> None:
    A, B = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((3, 7), (7, 5)))
    matmul = run(GEMM)["matmul"]
    expected = matmul(A, B)
    for result in (matmul.evaluate(A=A, B=B), matmul(A, B=B), matmul(B=B, m=3, A=A)):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("inputs", "named", "message"),
    [
        (0, "B", "is given no value for its input `A`"),
        (1, "A", "is given two values for its input `A`"),
        (2, "A", "is given two values for its input `A`"),
        (2, "C", "has no size `C`"),
    ],
)
def test_an_input_by_name_is_given_once(inputs: int, named: str, message: str) -> None:
    A = np.ones((3, 3), np.float16)
    with pytest.raises(RiseError) as caught:
        run(GEMM)["matmul"].evaluate(*[A] * inputs, **{named: A})
    assert message in caught.value.message


def test_a_name_that_is_a_size_too_means_the_size() -> None:
    split = rise.parse("def f = depFun((n: Nat) => fun(n: i32 => n + 1))")["f"]
    assert split.evaluate(np.int32(7), n=3) == 8


def test_an_array_that_no_size_fits_is_refused_as_such() -> None:
    program = rise.parse(
        "def four = depFun((n: Nat) => fun(xs: (4*n).f32 => xs |> split(4)))\n"
        "def more = depFun((n: Nat) => fun(xs: (n + 3).f32 => xs |> take(n)))"
    )
    for name, size, extent in (("four", 7, "4*n"), ("more", 2, "n + 3")):
        with pytest.raises(RiseError) as caught:
            program[name].evaluate(np.zeros(size, np.float32))
        assert (caught.value.code, caught.value.message) == (
            "R0409", f"a dimension of `xs` is `{extent}`: {size} for no `n`",
        )  # fmt: skip
    assert program["four"].evaluate(np.zeros(0, np.float32)).shape == (0, 4)
    assert program["more"].evaluate(np.zeros(3, np.float32)).shape == (0,)


def test_a_definition_for_floats_takes_no_integers() -> None:
    half = rise.parse("def half: {t: DataType} -> t -> t = fun(x => x * 0.5)")["half"]
    assert half.evaluate(np.float16(8)) == 4
    with pytest.raises(RiseError) as caught:
        half.evaluate(np.int32(8))
    assert caught.value.code == "R0308"
    assert half.evaluate(8.0) == 4


def test_html_is_escaped_and_well_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    from html.parser import HTMLParser

    from rise.notebook import error_html

    class Text(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.text, self.open = "", 0

        def handle_data(self, data: str) -> None:
            self.text += data

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.open += 1

        def handle_endtag(self, tag: str) -> None:
            self.open -= 1

    def text_of(markup: str) -> str:
        parser = Text()
        parser.feed(markup)
        assert parser.open == 0
        return parser.text

    def all_of_it() -> Iterator[str]:
        found = defined("def f(xs: Array[n, f32]):\n    return xs | map(lambda x: x < 1)")
        assert repr(found) in text_of(found._repr_html_())
        yield found._repr_html_()
        assert text_of(found.type._repr_html_()) == str(found.type)
        program = rise.load(ROOT / "examples" / "gemm.rise")
        assert repr(program.gemm) in text_of(program._repr_html_())
        with pytest.raises(RiseError) as caught:
            defined("def f(x: f32, y: f16):\n    return select(x < y, x, y)")
        assert text_of(error_html(caught.value)) == caught.value.render()

    coloured = list(all_of_it())
    monkeypatch.setitem(sys.modules, "rise.syntax.highlight", None)
    plain = list(all_of_it())
    assert all("&lt;" in markup for markup in (coloured[0], plain[0]))
    assert all("<span" in c and "<span" not in p for c, p in zip(coloured, plain, strict=True))


def test_ipython_shows_errors_as_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a shell that records what it is told, in place of IPython."""
    from types import SimpleNamespace

    from rise import notebook

    class Formatter(dict[type, Any]):
        for_type = dict.__setitem__

    handlers: dict[tuple[type, ...], Any] = {}
    formatters = {"text/html": Formatter(), "text/plain": Formatter()}
    shell = SimpleNamespace(
        set_custom_exc=handlers.__setitem__, display_formatter=SimpleNamespace(formatters=formatters)
    )
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    notebook.register_if_in_notebook()
    shown: list[Any] = []
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shown.append))
    error = RiseError("R0000", "a < b")
    handlers[(RiseError,)](shell, RiseError, error, None, tb_offset=1)
    assert shown == [error]
    assert "a &lt; b" in formatters["text/html"][RiseError](error)


# --- documents --------------------------------------------------------------------------------------------


def test_the_examples_are_the_same_in_python_and_in_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    embedded = __import__("embedded")
    text = rise.parse(embedded.TEXT)
    assert len(text) == 5
    for name in text:
        assert same(text[name], getattr(embedded, name)), name
    embedded.main()


def test_importing_costs_nothing() -> None:
    """`import rise` imports neither the checker nor NumPy; the command line relies on it."""
    code = "import sys, rise; print({'numpy', 'lark', 'rise.check', 'rise.embed'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "set()"


BLOCK = re.compile(r"(?<=```python\n).*?(?=```)", re.DOTALL)


@pytest.mark.parametrize(("page", "blocks"), [("python.md", 9), ("running.md", 2)])
def test_the_tutorial_prints_what_it_says(
    page: str, blocks: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its blocks run one after the other, `# →` lines are what they print."""
    monkeypatch.chdir(ROOT)
    namespace: dict[str, Any] = {"__name__": "tutorial"}

    def checked(block: re.Match[str]) -> str:
        lines = [line for line in block[0].splitlines() if not line.startswith("# →")]
        return "".join(f"{line}\n" for line in _interleaved(lines, namespace, capsys))

    tutorial = ROOT / "docs" / page
    written = tutorial.read_text(encoding="utf-8")
    found, count = BLOCK.subn(checked, written)
    assert count >= blocks
    assert_golden(tutorial, found)


def _interleaved(
    lines: list[str], namespace: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> Iterator[str]:
    """The lines of a block, each statement followed by what it prints."""
    code = "\n".join(lines)
    name, shown = cell(code), 0
    for statement in ast.parse(code).body:
        end = statement.end_lineno or 0
        yield from lines[shown:end]
        shown = end
        try:
            exec(compile(ast.Module([statement], []), name, "exec"), namespace)
        except RiseError as error:
            print(re.sub(r"<cell \d+>", "<cell>", error.render()))
        yield from (f"# → {line}".rstrip() for line in capsys.readouterr().out.splitlines())
