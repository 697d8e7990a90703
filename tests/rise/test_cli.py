"""The command line: what it prints, how it exits, and one clear message for every kind of bad input."""

from __future__ import annotations

import argparse
import io
import json
import re
import runpy
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.runtime import Resources
from rise.check.compare import Tolerance, compare
from rise.check.program import load
from rise.cli import main
from rise.cli.arguments import parser
from rise.errors import RiseError
from tests.conftest import Called

ROOT = Path(__file__).parents[2]
GEMM = str(ROOT / "examples" / "gemm.rise")
SIZES = ["--size", "m=64", "n=32", "k=32"]
SMALL = ["--strategy", "tensor_core", "--set", "block=64,32,16", "warp=32,16"]

PROGRAMS = """
def double = fun(xs: 8.f32 => xs |> map(fun(x => x + x)))
def blocks = depFun((n: Nat) => fun(xs: n.i32 => xs |> split(32) |> map(reduce(+, 0))))
def both = fun(xs: 4.i32 => (xs |> map(fun(x => x + 1)), xs |> map(fun(x => x * 2))))
def dot = depFun((n: Nat) => fun((xs: n.f32, ys: n.f32) =>
  zip(xs, ys) |> map(fun((x, y) => x * y)) |> reduce(+, 0)))
"""


@pytest.fixture
def programs(tmp_path: Path) -> str:
    path = tmp_path / "programs.rise"
    path.write_text(PROGRAMS)
    return str(path)


def fails(called: Called, status: int, code: str, *texts: str) -> None:
    """One message, with its code and these texts, and the exit status."""
    assert called.status == status, called.err
    assert called.err.count("error R") == 1, called.err
    assert f"error {code}: " in called.err, called.err
    for text in texts:
        assert text in called.err, called.err


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "bad.rise"
    path.write_text(text)
    return str(path)


# --- check ------------------------------------------------------------------------------------------


def test_check_prints_types_and_constraints(rise: Any, programs: str) -> None:
    called = rise("check", programs)
    assert called.status == 0
    assert "double : 8.f32 -> 8.f32\n" in called.out
    assert "blocks : (n: Nat) -> n.i32 -> " in called.out
    assert "  where 32 | n\n" in called.out


def test_check_goes_on_after_a_wrong_file(rise: Any, programs: str, tmp_path: Path) -> None:
    called = rise("check", write(tmp_path, "def f = g"), programs)
    fails(called, 1, "R0201")
    assert "double : " in called.out


def test_check_as_json_has_the_mistakes(rise: Any, tmp_path: Path) -> None:
    file = tmp_path / "wrong.rise"
    file.write_text("def a = 1\ndef f = fun(x: f32 => x + q)\ndef g = fun(y: f32 => )\n", encoding="utf-8")
    called = rise("check", str(file), "--json")
    found = json.loads(called.out)
    assert called.status == 1
    assert [d["name"] for d in found["definitions"][str(file)]] == ["a"]
    places = [(m["code"], m["file"], m["line"], m["column"], m["end_column"]) for m in found["mistakes"]]
    assert places == [("R0201", str(file), 2, 27, 28), ("R0101", str(file), 3, 23, 24)]
    assert all(m["message"] for m in found["mistakes"])


def test_check_reads_standard_input(rise: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeffdef two = 2.0\n"))
    assert rise("check", "-").out == "two : f32\n"


def test_check_as_json(rise: Any, programs: str) -> None:
    called = rise("check", programs, "--json")
    found = {d["name"]: d for d in json.loads(called.out)["definitions"][programs]}
    assert found["blocks"]["constraints"] == ["32 | n"]


# --- bad programs and bad calls ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("def f = fun(x: f32 =>\n  x + y)", "R0201", "bad.rise:2:7"),
        ("def f = fun(x: 4.f32 => x + 1)", "R0305", "bad.rise:1:"),
        ("def f = fun(x: 4.f32 => x + x)", "R0308", "bad.rise:1:"),
        ("def f = fun((x: f16, y: f32) => x + y)", "R0301", "bad.rise:1:"),
        ("def f = fun((x: 3.f32, y: 4.f32) => zip(x, y))", "R0402", "bad.rise:1:"),
        ("def f = fun(x: 100.f32 => x |> split(32))", "R0401", "bad.rise:1:"),
        ("def f = fun(x: f32 => (x)", "R0102", "bad.rise:1:"),
    ],
)
def test_a_wrong_program_is_shown_with_its_place(
    rise: Any, tmp_path: Path, text: str, code: str, place: str
) -> None:
    called = rise("check", write(tmp_path, text))
    fails(called, 1, code, place, "^")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["check", "missing.rise"], "R0001", "missing.rise"),
        (["chekc"], "R0003", "chekc"),
        (["run", GEMM], "R0061", "`rise run` needs the name"),
        (["run", GEMM, "gemm", "--size", "m=64"], "R0405", "`n`, `k`"),
        (["run", GEMM, "gemm", "--size", "l=64"], "R0406", "`l`"),
        (["run", GEMM, "gemm", "--size", "m=x"], "R0407", "m=x"),
        (["run", GEMM, "gemm", "--size", "m=-1", "n=1", "k=1"], "R0407", "m=-1"),
        (["run", GEMM, "gemm", "--size", "m64"], "R0005", "NAME=VALUE"),
        (["run", GEMM, "gemm", "--size", "m=64,n=8"], "R0005", "by spaces: `--size m=64 n=8`"),
        (["run", GEMM, "gemm", "--size", "m=64,", "n=8"], "R0005", "by spaces: `--size m=64`"),
        (["run", GEMM, "gemm", *SIZES, "--set", "block=1,2,3,stages=2"], "R0005", "block=1,2,3 stages=2"),
        (["run", GEMM, "gemm", *SIZES, "--inputs", "missing.npz"], "R0001", "missing.npz"),
        (["run", GEMM, "gemm", *SIZES, "--inputs", GEMM], "R0007", "npz"),
        (["run", GEMM, "gemm", *SIZES, "--strategy", "tensorcore"], "R0010", "`tensor_core`?"),
        (["run", GEMM, "gemm", *SIZES, *SMALL[:3], "blok=1"], "R0011", "`block`?"),
        (["run", GEMM, "gemm", *SIZES, *SMALL[:3], "block=1,2"], "R0012", "for example `block="),
        (["rules", "no such rule"], "R0003", "no such rule"),
        (["compile", GEMM, "gemm", *SIZES, "--target", "h100"], "R0017", "sm_90a"),
        (["demo", "--size", "l=128"], "R0406", "`l`"),
    ],
)
def test_a_wrong_call_exits_with_2(rise: Any, arguments: list[str], code: str, text: str) -> None:
    fails(rise(*arguments), 2, code, text)


def test_an_unknown_definition(rise: Any) -> None:
    fails(rise("run", GEMM, "gem"), 1, "R0209", "`gemm`")


NAMELESS = ("run", "compile", "derive", "export", "view", "explain-line", "check-eq", "tune", "search")


@pytest.mark.parametrize("command", NAMELESS)
def test_a_command_without_a_name_lists_the_definitions_with_their_types(rise: Any, command: str) -> None:
    more = ["--sketch", "map m"] if command == "search" else []
    called = rise(command, GEMM, *more)
    fails(called, 2, "R0061", f"`rise {command}` needs the name")
    assert "note: matmul : (m: Nat, n: Nat, k: Nat) -> m.k.f16 -> k.n.f16 -> m.n.f32" in called.err
    assert f"hint: `rise {command} {GEMM} gemm`" in called.err


def test_every_command_that_takes_a_definition_is_among_these() -> None:
    (commands,) = (a.choices for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    taking = {
        name for name, made in commands.items() if {a.metavar for a in made._actions} >= {"FILE", "NAME"}
    }
    assert taking == set(NAMELESS)


def test_of_many_definitions_the_first_are_listed(rise: Any, tmp_path: Path) -> None:
    file = tmp_path / "many.rise"
    file.write_text("".join(f"def f{n} = {n}\n" for n in range(23)))
    called = rise("run", str(file))
    assert called.err.count("note: f") == 20
    assert f"note: 3 more, which `rise check {file}` lists" in called.err
    assert "`f19` and 3 more" in rise("run", str(file), "nothing").err


def test_a_size_in_the_place_of_a_name(rise: Any) -> None:
    fails(rise("run", GEMM, "m=4"), 1, "R0209", "`--size m=4`")


def test_a_size_that_violates_a_constraint(rise: Any, programs: str) -> None:
    called = rise("run", programs, "blocks", "--size", "n=100", "--backend", "interpret")
    fails(called, 1, "R0401", "32 | n", "n = 100", "programs.rise:3:")


def test_a_tile_that_does_not_divide_a_size(rise: Any) -> None:
    """The product is rounded up; where its rows cannot be copied, the message says what can be."""
    called = rise("compile", GEMM, "gemm", "--size", "m=100", "n=32", "k=32", *SMALL)
    assert called.status == 0 and "grid 1×2×1" in called.err
    called = rise("compile", GEMM, "gemm", "--size", "m=100", "n=32", "k=43", *SMALL)
    fails(called, 1, "R0606", "rows of 43 elements, 86 bytes", "use `vector=1 cp_async=false`")


def test_a_tile_that_does_not_divide_its_tile(rise: Any) -> None:
    settings = ["--strategy", "tensor_core", "--set", "block=128,100,32"]
    fails(rise("compile", GEMM, "gemm", *SIZES, *settings), 1, "R0604", "100")


def test_a_strategy_that_does_not_apply(rise: Any, programs: str) -> None:
    called = rise("derive", programs, "double", "--strategy", "tensor_core")
    fails(called, 1, "R0606", "does not apply", "programs.rise:2:")


def test_no_compiler_for_the_emulator(rise: Any, programs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    fails(rise("run", programs, "double", "--backend", "emulate"), 1, "R0801", "g++")


def test_without_compiler_and_gpu_the_interpreter_runs(
    rise: Any, programs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rise.cli.run.available_backend", lambda: None)
    called = rise("run", programs, "double")
    assert called.status == 0
    assert "interpreter runs the program" in called.err


def test_a_program_of_some_hundred_levels(rise: Any, tmp_path: Path) -> None:
    terms, maps = " + ".join(["x"] * 150), " |> map(fun(y => y + 1))" * 60
    path = write(tmp_path, f"def f = fun(x: i32 => {terms})\ndef g = fun(x: 2.i32 => x{maps})")
    assert rise("fmt", path).status == 0
    for name in ("f", "g"):
        called = rise("run", path, name, "--backend", "interpret")
        assert called.status == 0, called.err
        assert rise("compile", path, name).status == 0


def test_a_program_nested_too_deeply(rise: Any, tmp_path: Path) -> None:
    text = "def f = fun(x: i32 => " + "x + (" * 2500 + "x" + ")" * 2500 + ")"
    fails(rise("fmt", write(tmp_path, text)), 1, "R0014", "nested")


class TestFailure:
    """A failure of the compiler, seeded, is never shown as a mistake of the program."""

    def failing(self, rise: Any, programs: str, monkeypatch: pytest.MonkeyPatch, error: Exception) -> Called:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr("rise.cli.check.load", fail)
        called: Called = rise("check", programs)
        assert called.status == 3
        assert called.out == ""
        return called

    @pytest.mark.parametrize(
        ("error", "first"),
        [
            (KeyError("oops"), "internal error: KeyError: 'oops'"),
            (AssertionError(), "internal error: AssertionError"),
            (
                RiseError("R0699", "a term is not well typed"),
                "internal error: R0699: a term is not well typed",
            ),
            (RiseError("R0799", "no such buffer"), "internal error: R0799: no such buffer"),
        ],
    )
    def test_it_says_whose_mistake_it_is_and_what_to_send(
        self, rise: Any, programs: str, monkeypatch: pytest.MonkeyPatch, error: Exception, first: str
    ) -> None:
        lines = self.failing(rise, programs, monkeypatch, error).err.splitlines()
        assert lines[0] == first
        assert lines[1] == "This is a mistake of the compiler, not of your program."
        assert lines[2].startswith("Please report it to the project's issue tracker, with your program and ")
        assert re.fullmatch(r"  version: rise \S+, Python 3\.\S+, \w+", lines[3])
        assert lines[4] == f"  command: rise check {programs}"

    def test_the_traceback_is_in_the_file_that_it_names(
        self, rise: Any, programs: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        called = self.failing(rise, programs, monkeypatch, KeyError("oops"))
        (file,) = tmp_path.glob("rise-failure-*.txt")
        assert str(file) in called.err
        text = file.read_text()
        assert "Traceback" in text
        assert "KeyError: 'oops'" in text
        assert f"rise check {programs}" in text

    def test_debug_shows_it(self, programs: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def failing(*_: object) -> None:
            raise KeyError("oops")

        monkeypatch.setattr("rise.cli.check.load", failing)
        with pytest.raises(KeyError):
            main(["check", programs, "--debug"])

    def test_no_file_can_be_written(
        self, rise: Any, programs: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
        assert "what `--debug` prints" in self.failing(rise, programs, monkeypatch, KeyError("oops")).err


def test_a_terminal_marks_the_parts_that_differ(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from rich.console import Console

    from rise.cli.terminal import show_error

    written: list[Any] = []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(Console, "print", lambda _, text: written.append(text))
    with pytest.raises(RiseError) as caught:
        load(write(tmp_path, "def f = fun((xs: 3.f32, ys: 4.f32) => zip(xs)(ys))"))
    show_error(caught.value)
    assert "\n".join(text.plain for text in written) == caught.value.render()
    marked = [
        text.plain[s.start : s.end] for text in written for s in text.spans if "magenta" in str(s.style)
    ]
    assert marked == ["3", "4"]


COLOURS = {"31", "32", "35", "36"}  # red, green, magenta, cyan: legible on light and on dark ground
MODES = {"0", "1", "2", "4", "39", "49"}  # none, bold, dim, underlined; the default colours


def escapes(text: str) -> set[str]:
    """The parameters of all colours and modes that a text sets."""
    return {one for found in re.findall(r"\x1b\[([0-9;]*)m", text) for one in found.split(";")}


@pytest.mark.parametrize("no_color", [False, True])
@pytest.mark.parametrize("language", ["rise", "cuda", "text"])
def test_printed_code_has_colours_of_the_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, language: str, no_color: bool
) -> None:
    from rise.cli.terminal import show_code

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for name, value in (("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("COLUMNS", "200")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    cuda = '#include "a.h"\n// why\n__global__ void f(const float* x) { if (x[0] < 1.5f) printf("%d", 3); }'
    code = {"rise": Path(GEMM).read_text(encoding="utf-8"), "cuda": cuda, "text": "xs |> map(f)"}[language]
    shown = Terminal()
    show_code(code, language, shown)
    set_ = escapes(shown.getvalue())
    assert set_ <= MODES | (set() if no_color else COLOURS)
    assert language == "text" or no_color or len(set_ & COLOURS) >= 2
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue())
    assert [line.rstrip() for line in plain.splitlines()] == [line.rstrip() for line in code.splitlines()]


# --- run --------------------------------------------------------------------------------------------


def save(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    return str(path)


def test_run_takes_sizes_from_inputs_and_writes_the_result(rise: Any, programs: str, tmp_path: Path) -> None:
    xs = np.arange(6, dtype=np.float32)
    given = save(tmp_path / "in.npz", xs=xs, ys=xs)
    result = tmp_path / "out.npz"
    called = rise("run", programs, "dot", "--inputs", given, "--out", str(result), "--backend", "interpret")
    assert called.status == 0, called.err
    assert np.load(result)["result"] == 55.0


def test_a_pair_gives_two_results(rise: Any, programs: str, tmp_path: Path) -> None:
    given = save(tmp_path / "in.npz", xs=np.arange(4, dtype=np.int32))
    result = tmp_path / "out.npz"
    called = rise("run", programs, "both", "--inputs", given, "--out", str(result), "--backend", "interpret")
    assert called.status == 0, called.err
    np.testing.assert_array_equal(np.load(result)["result_0"], [1, 2, 3, 4])
    np.testing.assert_array_equal(np.load(result)["result_1"], [0, 2, 4, 6])


@pytest.mark.parametrize("backend", ["interpret", "emulate"])
@pytest.mark.parametrize(
    ("array", "codes", "text"),
    [
        (np.zeros(8, np.float64), ("R0502", "R0803"), "float64"),
        (np.zeros(9, np.float32), ("R0501", "R0804"), "9"),
        (np.zeros((8, 2), np.float32), ("R0501", "R0804"), "(8, 2)"),
    ],
)
def test_inputs_that_do_not_fit(
    rise: Any,
    programs: str,
    tmp_path: Path,
    backend: str,
    array: Any,
    codes: tuple[str, str],
    text: str,
) -> None:
    given = save(tmp_path / "in.npz", xs=array)
    called = rise("run", programs, "double", "--inputs", given, "--backend", backend)
    fails(called, 1, codes[backend == "emulate"], "`xs`", text)


@pytest.mark.parametrize("backend", ["interpret", "emulate"])
def test_an_input_in_column_order(rise: Any, tmp_path: Path, backend: str) -> None:
    given = save(tmp_path / "in.npz", A=np.zeros((64, 32), np.float16, order="F"))
    called = rise("run", GEMM, "matmul", *SIZES, *SMALL, "--inputs", given, "--backend", backend)
    fails(called, 1, "R0805", "`A`", "ascontiguousarray")


def test_inputs_that_contradict_each_other(rise: Any, tmp_path: Path) -> None:
    given = save(tmp_path / "in.npz", A=np.zeros((64, 32), np.float16), B=np.zeros((16, 32), np.float16))
    fails(rise("run", GEMM, "matmul", "--inputs", given), 2, "R0409", "`A`", "`B`", "k = 32", "16")


def test_an_input_of_another_name(rise: Any, programs: str, tmp_path: Path) -> None:
    given = save(tmp_path / "in.npz", x=np.zeros(8, np.float32))
    fails(rise("run", programs, "double", "--inputs", given), 2, "R0008", "`xs`?")
    fails(rise("run", GEMM, "matmul", "--inputs", given), 2, "R0008", "`x`", "its inputs: `A`, `B`")


def test_nan_comes_out_where_it_went_in(rise: Any, programs: str, tmp_path: Path) -> None:
    xs = np.full(8, np.nan, np.float32)
    given, result = save(tmp_path / "in.npz", xs=xs), tmp_path / "out.npz"
    called = rise(
        "run",
        programs,
        "double",
        "--inputs",
        given,
        "--out",
        str(result),
        "--check",
        "--backend",
        "emulate",
    )
    assert called.status == 0, called.err
    assert np.isnan(np.load(result)["result"]).all()


def test_gemm_in_the_emulator_agrees_with_the_interpreter(rise: Any) -> None:
    called = rise("run", GEMM, "gemm", *SIZES, *SMALL, "--backend", "emulate", "--check", "--json")
    assert called.status == 0, called.err
    report = json.loads(called.out)
    assert report["check"] == {"agrees": True, "error": 0.0, "bound": pytest.approx(0, abs=1)}
    assert report["launch"].startswith("grid 1×1×1, block 128×1×1")


def test_the_default_strategy_runs_any_program(rise: Any, programs: str) -> None:
    for name, size in (("double", []), ("blocks", ["--size", "n=96"]), ("dot", ["--size", "n=40"])):
        called = rise("run", programs, name, *size, "--backend", "emulate", "--check")
        assert called.status == 0, called.err
        assert "agrees" in called.out


def test_a_kernel_may_have_anything_where_the_program_says_nothing(rise: Any, tmp_path: Path) -> None:
    path = tmp_path / "parts.rise"
    path.write_text("""
def parts(u: Nat, h: Nat)(xss: u.h.f32, counts: u.Idx[h + 1]): u.h.f32 =
  xss |> map(map(x => x + x)) |> prefixes(counts)
""")
    called = rise("run", str(path), "parts", "--size", "u=7", "h=13", "--backend", "emulate", "--check")
    assert called.status == 0, called.out
    assert "agrees" in called.out


# --- compile and derive -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        ("high", "reduce(+, 0.0)"),
        ("low", "tensorMatMulAdd("),
        ("imperative", "mmaFragment("),
        ("cuda", "wmma::mma_sync("),
    ],
)
def test_compile_prints_every_stage(rise: Any, stage: str, text: str) -> None:
    called = rise("compile", GEMM, "matmul", *SIZES, *SMALL, "--stage", stage)
    assert called.status == 0, called.err
    assert text in called.out


def test_compile_writes_a_file(rise: Any, tmp_path: Path, programs: str) -> None:
    target = tmp_path / "double.cu"
    called = rise("compile", programs, "double", "-o", str(target))
    assert called.status == 0, called.err
    assert called.out == ""
    assert "__global__" in target.read_text()
    fails(rise("compile", programs, "double", "-o", str(tmp_path / "no" / "x.cu")), 2, "R0004")


def test_derive_checks_every_step(rise: Any) -> None:
    called = rise("derive", GEMM, "matmul", *SIZES, *SMALL, "--check")
    assert called.status == 0, called.err
    assert "tensorise" in called.out
    assert "all agree" in called.out
    assert "   1. " in called.out


@pytest.mark.usefixtures("own_rules")
def test_derive_names_the_guilty_rule(rise: Any, programs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that says xs + xs is xs."""
    from rewrites.rule import rule
    from strategies.core import top_down

    wrong = rule("wrong", "add(x)(x)", "x")
    monkeypatch.setattr("rise.cli.derive.chosen_strategy", lambda _: top_down(wrong))
    called = rise("derive", programs, "double", "--check")
    assert called.status == 1
    assert "step 1, `wrong`, changes the result" in called.out


def test_derive_as_json(rise: Any, programs: str) -> None:
    called = rise("derive", programs, "double", "--json", "--check")
    found = json.loads(called.out)
    assert found["agrees"]
    assert found["steps"][0]["agrees"]


# --- catalogues -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["primitives"], "tensorMatMulAdd"),
        (["primitives", "map"], "map : "),
        (["rules"], "tensorise"),
        (["rules", "mapFusion"], "→"),
        (["strategies"], "--set fragment=16,16,16   (3 ints)"),
        (["strategies", "tensor_core"], "--set swizzled=false   (true or false)"),
        (
            ["strategies", "tensor_core"],
            "`direct`: finished on fragments;",
        ),
        (["explain", "r0401"], "32 | n"),
    ],
)
def test_catalogues(rise: Any, arguments: list[str], text: str) -> None:
    called = rise(*arguments)
    assert called.status == 0
    assert text in called.out


OWN = """from rise.primitives.declare import declare

declare(
    "everySecond", "{n: Nat, t: DataType} -> (2*n).t -> n.t", "The first of each two.", lambda call, xs: xs,
    group="own", example=("everySecond(makeArray(2)(1, 2))", "[1]"),
)
"""


@pytest.mark.usefixtures("own_rules")
def test_primitives_of_a_module_are_known_once_it_is_loaded(rise: Any, tmp_path: Path) -> None:
    module, program = tmp_path / "own_primitives.py", tmp_path / "own.rise"
    program.write_text("def halved{n: Nat}(xs: (2*n).f32) = xs |> everySecond")
    unknown = rise("check", str(program))
    assert unknown.status == 1 and "R0201" in unknown.err
    missing = rise("check", str(program), "--load", str(module))
    assert missing.status == 2 and "R0010" in missing.err
    module.write_text(OWN)
    called = rise("check", "--load", str(module), str(program))
    assert called.status == 0 and "halved : {n: Nat} -> (2*n).f32 -> n.f32" in called.out, called.err
    shown = rise("primitives", "everySecond", "--load", str(module))
    assert shown.status == 0 and "The first of each two." in shown.out


def test_the_parameters_of_a_strategy_of_ones_own_are_listed(rise: Any, tmp_path: Path) -> None:
    module = tmp_path / "own_strategy.py"
    module.write_text(
        "from strategies.core import id_\n\n\ndef mine(tile: int = 7):\n"
        '    """Tiles.\n\n    tile: how large one is\n    """\n    return id_\n'
    )
    shown = rise("strategies", f"{module}:mine")
    assert shown.status == 0 and "--set tile=7   (int)" in shown.out and "how large one is" in shown.out
    (described,) = json.loads(rise("strategies", f"{module}:mine", "--json").out)
    assert described["parameters"]["tile"]["default"] == "7"
    fails(rise("strategies", f"{module}:other"), 2, "R0010", "`other`")


def test_explanations_and_resources_are_data_too(rise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = json.loads(rise("explain", "r0401", "--json").out)
    assert found["name"] == "R0401" and found["wrong"] and found["right"]
    made = Resources("matmul_kernel", "sm_90a", 18, 0, 0, 0, 0)
    monkeypatch.setattr("rise.cli.compile._resources", lambda program, arguments: [made])
    command = ("compile", GEMM, "matmul", *SIZES, "--strategy", "default", "--json")
    assert json.loads(rise(*command, "--stage", "resources").out) == [asdict(made)]
    fails(rise(*command), 2, "R0003", "`--stage resources`")


def test_every_parameter_of_a_named_strategy_is_explained() -> None:
    from strategies.registry import catalogue

    settings = [(entry.name, setting) for entry in catalogue() for setting in entry.settings]
    assert len(settings) > 30
    assert [(name, s.name) for name, s in settings if not s.meaning] == []


# --- completion in shells -----------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script_with_all_commands_and_known_names(rise: Any, shell: str) -> None:
    called = rise("completion", shell)
    assert called.status == 0, called.err
    for word in ("derive", "completion", "--import-path", "tensor_core", "sm_90a", "mapWarp", "R0401"):
        assert word in called.out.replace("import_path", "import-path"), word


def test_bash_completes_what_the_script_says(rise: Any, tmp_path: Path) -> None:
    script = tmp_path / "rise.bash"
    script.write_text(rise("completion", "bash").out)
    (tmp_path / "some.rise").write_text("")
    words = {
        "rise de": "derive demo",
        "rise run so": "some.rise",
        "rise run f g --strategy tens": "tensor_core",
    }
    for line, expected in words.items():
        array = " ".join(f"'{word}'" for word in line.split())
        asked = f"COMP_WORDS=({array}); COMP_CWORD={line.count(' ')}; _shtab_rise"
        ask = f'source {script}; {asked}; echo "${{COMPREPLY[*]}}"'
        done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.stdout.strip() == expected, done.stderr


@pytest.mark.parametrize(("command", "package"), [("lsp", "pygls"), ("completion", "shtab")])
def test_what_needs_an_extra_says_which(
    rise: Any, monkeypatch: pytest.MonkeyPatch, command: str, package: str
) -> None:
    monkeypatch.setattr(f"rise.cli.{command}.find_spec", lambda name: None)
    called = rise(command, *(["bash"] if command == "completion" else []))
    assert called.status == 2
    assert "R0041" in called.err and package in called.err and f"rise-lang[{command}]" in called.err


# --- demonstrations ---------------------------------------------------------------------------------


def test_the_demo_shows_every_stage(rise: Any) -> None:
    called = rise("demo", "--size", "m=128", "n=128", "k=128")
    assert called.status == 0, called.err
    for text in ("m.k.f16 -> k.n.f16", "tensorise", "mapBlock(1)", "wmma::", "launch: grid 1×1×1"):
        assert text in called.out
    assert called.out.count("agrees") == 2


def test_the_demo_without_a_compiler_interprets(rise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rise.cli.demo.available_backend", lambda: None)
    called = rise("demo", "--size", "m=128", "n=128", "k=128")
    assert called.status == 0, called.err
    assert "no C++ compiler" in called.out
    assert "against NumPy in double precision: agrees" in called.out


def test_the_example_of_a_composed_strategy_runs() -> None:
    example = runpy.run_path(str(ROOT / "examples" / "compose.py"))
    assert example["main"]()


# --- the process ------------------------------------------------------------------------------------


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rise.cli", *arguments]
    return subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)


def test_it_says_what_it_can() -> None:
    called = process("--help")
    assert called.returncode == 0
    assert "derive" in called.stdout


def test_help_imports_little_and_nothing_heavy() -> None:
    program = "import sys; from rise.cli import main; main(['--help']); print(*sys.modules, sep=' ')"
    called = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    modules = set(called.stdout.splitlines()[-1].split())
    assert 50 < len(modules) < 180
    for module in ("numpy", "rich", "lark", "codegen", "rewrites"):
        assert module not in modules


def test_messages_go_to_stderr() -> None:
    called = process("check", "missing.rise")
    assert (called.returncode, called.stdout) == (2, "")
    assert called.stderr.startswith("error R0001: ")


# --- comparing --------------------------------------------------------------------------------------


def test_compare_finds_the_first_element_that_differs() -> None:
    a = np.zeros((2, 3), np.float32)
    b = a.copy()
    b[1, 2], b[1, 1] = 1, 0.5
    verdict = compare(b, a, Tolerance(1e-6, 1e-6))
    assert (verdict.agrees, verdict.index, verdict.error) == (False, (1, 1), 1.0)


def test_compare_is_exact_for_integers_and_strict_about_types() -> None:
    a = np.arange(3, dtype=np.int32)
    assert compare(a, a, Tolerance(1, 1)).agrees
    assert not compare(a + 1, a, Tolerance(10, 10)).agrees
    assert not compare(a.astype(np.int64), a).agrees
    assert not compare((a, a + 1), (a, a)).agrees


def test_compare_accepts_nan_where_nan_is_expected_only() -> None:
    nan, one = np.array([np.nan, 1.0]), np.array([1.0, 1.0])
    assert compare(nan, nan).agrees
    assert not compare(nan, one, Tolerance(1, 1)).agrees
    assert not compare(one, nan, Tolerance(1, 1)).agrees


def test_a_check_in_the_field_says_how_probable_a_miss_is(rise: Any) -> None:
    called = rise(
        "run", GEMM, "matmul", "--size", "m=4", "n=3", "k=16", "--backend", "interpret", "--check=field"
    )
    assert called.status == 0
    assert "of whole numbers up to ±1024" in called.out and "the degree is 2" in called.out
    shown = rise("run", GEMM, "matmul", "--size", "m=4", "n=3", "k=16", "--check=field", "--json")
    assert json.loads(shown.out)["missed"].startswith("2^-6")
    fails(rise("run", GEMM, "matmul", *SIZES, "--check", "--check=field"), 2, "R0003", "not allowed with")
