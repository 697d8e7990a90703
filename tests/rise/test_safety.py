"""What docs/safety.md promises: what runs code, what imports may read, what the command line takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rise.check.program import check_text, load
from rise.errors import RiseError, ScopeError, UsageError
from rise.primitives.c_text import objection

ROOT = Path(__file__).parents[2]
CALLS_C = (
    'def f = fun(xs: 4.f32 => xs |> map(fun(x => foreignFunction("twice", 1, "BODY")(fun(y => y + y))(x))))'
)
TWICE = CALLS_C.replace("BODY", "return x1 + x1;")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "inside" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "inside")
    return tmp_path


# --- imports --------------------------------------------------------------------------------------------


def refused(path: Path, code: str, **given: Any) -> RiseError:
    with pytest.raises(RiseError) as caught:
        load(path, **given)
    assert caught.value.code == code, caught.value.render()
    return caught.value


@pytest.mark.parametrize(
    "imported", ["/etc/passwd", "../secret", "below/../../secret", "link", "/dev/zero", "x/../.."]
)
def test_an_import_stays_in_the_folder(folder: Path, imported: str) -> None:
    (folder / "secret").write_text("hidden words")
    (folder / "inside" / "link").symlink_to("../secret")
    (folder / "inside" / "p.rise").write_text(f'import "{imported}"\ndef f = 1\n')
    error = refused(folder / "inside" / "p.rise", "R0016")
    assert "hidden" not in error.render() and ":1:" in error.render()
    absent = imported.replace("secret", "absent").replace("passwd", "absent")
    (folder / "inside" / "p.rise").write_text(f'import "{absent}"\ndef f = 1\n')
    assert refused(folder / "inside" / "p.rise", "R0016").message == error.message.replace(imported, absent)


def test_a_file_below_imports_from_the_folder_of_the_program(folder: Path) -> None:
    (folder / "inside" / "p.rise").write_text('import "below/q.rise"\ndef f = g\n')
    (folder / "inside" / "below" / "q.rise").write_text('import "../r.rise"\ndef g = h\n')
    (folder / "inside" / "r.rise").write_text("def h = 1.5\n")
    assert list(load(folder / "inside" / "p.rise").definitions) == ["h", "g", "f"]
    refused(folder / "inside" / "below" / "q.rise", "R0016")  # which is now the program itself


def test_a_further_folder_is_named(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "q.rise").write_text('import "s.rise"\ndef g = h\n')
    (folder / "other" / "s.rise").write_text("def h = 1.5\n")
    for text in ('import "../other/q.rise"', 'import "q.rise"'):
        (folder / "inside" / "p.rise").write_text(f"{text}\ndef f = g\n")
        assert "f" in load(folder / "inside" / "p.rise", [folder / "other"]).definitions
    refused(folder / "inside" / "p.rise", "R0212")


def test_a_text_imports_from_the_working_directory(folder: Path) -> None:
    (folder / "q.rise").write_text("def g = 1.5\n")
    (folder / "inside" / "q.rise").write_text('import "below/r.rise"')
    (folder / "inside" / "below" / "r.rise").write_text("def g = 2.5\n")
    assert "g" in check_text('import "q.rise"').definitions
    with pytest.raises(ScopeError) as caught:
        check_text('import "../q.rise"')
    assert caught.value.code == "R0016"


def test_what_is_too_large_is_not_read(folder: Path) -> None:
    (folder / "inside" / "large.rise").open("wb").truncate(3 * 2**30)
    os.mkfifo(folder / "inside" / "pipe.rise")
    for name, code in (("large", "R0015"), ("pipe", "R0212")):
        (folder / "inside" / "p.rise").write_text(f'import "{name}.rise"\n')
        assert ":1:" in refused(folder / "inside" / "p.rise", code).render()
    refused(folder / "inside" / "pipe.rise", "R0015")
    (folder / "inside" / "loop.rise").symlink_to("loop.rise")
    refused(folder / "inside" / "loop.rise", "R0001")
    (folder / "inside" / "p.rise").write_text('import "loop.rise"')
    refused(folder / "inside" / "p.rise", "R0212")


def test_commands_take_an_import_path(rise: Any, folder: Path) -> None:
    (folder / "q.rise").write_text("def g = fun(xs: 4.f32 => xs |> map(fun(x => x + x)))\n")
    Path("p.rise").write_text('import "q.rise"\ndef f = fun(xs: 4.f32 => g(xs))\n')
    path = ("--import-path", "..")
    assert rise("check", "p.rise").status == 1
    assert rise("check", *path, "p.rise").status == 0
    for command in (("run", "--backend", "interpret"), ("compile",), ("derive",)):
        assert rise(*command, "p.rise", "f", *path).status == 0


# --- C functions ----------------------------------------------------------------------------------------


def test_c_functions_of_strangers_are_not_run_unasked(rise: Any, folder: Path) -> None:
    Path("here.rise").write_text(TWICE)
    (folder / "there.rise").write_text(TWICE)
    Path("imports.rise").write_text('import "there.rise"\ndef g = fun(xs: 4.f32 => f(xs))')
    emulated = ("--backend", "emulate")
    for arguments, code in {
        ("here.rise", "f"): "",
        ("../there.rise", "f"): "R0018", ("../there.rise", "f", "--allow-foreign"): "",
        ("here.rise", "f", "--no-foreign"): "R0019", ("imports.rise", "g", "--import-path", ".."): "R0018",
    }.items():  # fmt: skip
        called = rise("run", *arguments, *emulated)
        assert (f"error {code}" in called.err and called.status == 2) if code else called.status == 0, (
            called.err
        )
    for command in (
        "check ../there.rise",
        "compile ../there.rise f",
        "derive ../there.rise f --check",
        "run ../there.rise f --backend interpret",
        "run here.rise f --no-foreign --backend interpret",
    ):
        assert rise(*command.split()).status == 0
    assert "R0019" in rise("compile", "here.rise", "f", "--no-foreign").err


ESCAPES = (
    "} int g() { return 0;", "return x1; // ", "/*", "return x1; }", "if (x1 > 0) {", "return (x1;",
    "return x1]", "<% return x1;", "??> ", "return '", "return x1 + 1'0}'", "x1'}{'", "return x1; \\",
)  # fmt: skip
BODIES = (
    "", "return x1 + x1;", "for (int i = 0; i < 3; ++i) { x1 += i; } return x1;",
    "return '}' > 1 ? x1 : 1'000;", "/* } */ return x1 % 3;", "{ { return x1; } }",
    "#pragma unroll\nfor (;;) return x1;",
    'char b[] = "}"; return b[0];',
)  # fmt: skip


@pytest.mark.parametrize("body", ESCAPES)
def test_a_body_does_not_leave_its_braces(body: str) -> None:
    assert objection(body)
    with pytest.raises(ScopeError, match="is no body of a C function") as caught:
        check_text(CALLS_C.replace("BODY", body.replace('"', "'")))
    assert caught.value.code == "R0204" and caught.value.origin is not None


@pytest.mark.parametrize("body", [*BODIES])
def test_a_body_is_any_other_text(body: str) -> None:
    assert objection(body) is None


def test_directives_and_raw_texts_are_none() -> None:
    for body in ("#if 0\n", " # define A }\nreturn x1;", 'R"(})"', 'return u8R"-(})-"[0];', "%:define A"):
        assert objection(body)


def test_a_function_that_is_defined_nowhere_is_named(rise: Any, folder: Path) -> None:
    Path("p.rise").write_text(TWICE.replace(', "return x1 + x1;"', "").replace("twice", "defined_nowhere"))
    called = rise("run", "p.rise", "f", "--backend", "emulate")
    assert called.status == 1
    assert "`defined_nowhere` is called, but not defined" in called.err or "R0802" in called.err


# --- the working directory ------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["rise", "rise.cli"])
def test_modules_that_lie_in_the_working_directory_are_not_run(folder: Path, module: str) -> None:
    for name in ("numpy", "typing", "argparse", "re", "json", "dataclasses", "lark", "codegen", "sysconfig"):
        Path(f"{name}.py").write_text("raise SystemExit('run unasked')")
    Path("p.rise").write_text("def f = fun(xs: 4.f32 => xs |> map(fun(x => x + x)))\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for arguments in (["check", "p.rise"], ["run", "p.rise", "f", "--backend", "interpret"]):
        called = subprocess.run(
            [sys.executable, "-m", module, *arguments], env=environment, capture_output=True, text=True
        )
        assert called.returncode == 0 and called.stdout, called.stderr


# --- the command line -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "texts"),
    [
        ("chek p.rise", ("R0003", "did you mean `check`?")),
        ("run p.rise f --sizes n=4", ("R0003", "did you mean `--size`?")),
        ("run p.rise f --backend emulat", ("R0003", "did you mean `emulate`?")),
        ("run p.rise f --target sm_42", ("R0017", "`sm_42`", "sm_75", "sm_90a")),
        ("compile p.rise f --target sm90a", ("R0017", "did you mean `sm_90a`?")),
        ("bench --target volta", ("R0017",)),
        ("run p.rise f --size n", ("R0005",)),
        ("run --size n=4 n=5 p.rise f", ("R0005", "twice")),
        ("run --size n 4 p.rise f", ("R0005",)),
        ("demo --size m=four", ("R0407", "m=four")),
        ("bench --top 0", ("R0003", "0 is not positive")),
        ("bench --top four", ("R0003", "four is not a number")),
        ("run p.rise", ("R0001", "p.rise", "the working directory is")),
    ],
)
def test_a_mistake_on_the_command_line_is_named(
    rise: Any, folder: Path, command: str, texts: tuple[str, ...]
) -> None:
    called = rise(*command.split())
    assert called.status == 2 and called.out == ""
    for text in texts:
        assert text in called.err


@pytest.mark.parametrize(
    "order",
    [
        "--size m=2 n=4 FILE",
        "FILE --size m=2 n=4",
        "--size m=2 --size n=4 FILE",
        "--size m=2 n=4 FILE --seed 3",
        "--seed 3 --size m=2 n=4 FILE --json",
    ],
)
def test_sizes_stand_before_the_file_or_behind(rise: Any, folder: Path, order: str) -> None:
    Path("p.rise").write_text(
        "def f = depFun((m: Nat, n: Nat) => fun(xs: m.n.f32 => xs |> map(map(fun(x => x + x)))))"
    )
    called = rise("run", *order.replace("FILE", "p.rise f").split(), "--backend", "interpret")
    assert called.status == 0, called.err
    assert "m = 2, n = 4" in called.out or '"m": 2' in called.out


def test_a_target_of_the_api_is_checked() -> None:
    import codegen

    with pytest.raises(UsageError, match="R0017"):
        codegen.compile(check_text(TWICE)["f"], backend="emulate", target="sm_42")


# --- what is printed and read ---------------------------------------------------------------------------


def test_a_terminal_without_arrows_gets_escapes(folder: Path) -> None:
    Path("é.rise").write_text("// → é\ndef f=fun(xs: 4.f32 => xs |> map(fun(x => x + x)))\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}

    def run(*arguments: str, input: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "rise", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, input=input)

    assert b"\\u2192" in run("derive", "é.rise", "f").stdout
    assert b"\\xe9" in run("check", "é.rise", "absent-é.rise").stderr
    formatted = run("fmt", "-", input=Path("é.rise").read_bytes())
    assert formatted.stdout.decode("utf-8").startswith("// → é\ndef f(")
    assert b"R0002" in run("fmt", input=b"\xff").stderr


def test_inputs_of_all_kinds_are_refused_by_name(rise: Any, folder: Path) -> None:
    Path("p.rise").write_text("def f = fun(xs: 4.f32 => xs |> map(fun(x => x + x)))")
    np.save("plain.npy", np.zeros(4, np.float32))
    np.savez("objects.npz", xs=np.array([None, {}], dtype=object))
    np.savez("whole.npz", xs=np.zeros(4, np.float32))
    whole = Path("whole.npz").read_bytes()
    Path("cut.npz").write_bytes(whole[:-30])
    Path("flipped.npz").write_bytes(whole[:140] + b"\xff\xff" + whole[142:])
    import zipfile

    with zipfile.ZipFile("member.npz", "w") as archive:
        archive.writestr("xs", "no array")
    os.mkfifo("pipe.npz")
    for name, code in {
        "plain.npy": "R0007", "objects.npz": "R0007", "cut.npz": "R0007", "flipped.npz": "R0007",
        "member.npz": "R0007", "pipe.npz": "R0015", "absent.npz": "R0001", ".": "R0001",
    }.items():  # fmt: skip
        called = rise("run", "p.rise", "f", "--backend", "interpret", "--inputs", name)
        assert called.status == 2 and f"error {code}: " in called.err, (name, called.err)


def test_an_import_with_a_name_that_no_file_can_have_is_not_found(folder: Path) -> None:
    (folder / "inside" / "p.rise").write_text(f'import "{"a" * 5000}.rise"\ndef f = 1\n')
    assert ":1:" in refused(folder / "inside" / "p.rise", "R0212").render()
