"""`rise run --cuda`, and the stages of `rise compile` below the functional program."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codegen.emulation.compiling import compiler
from codegen.runtime import can_compile

needs_emulator = pytest.mark.skipif(compiler() is None, reason="no C++ compiler")
needs_compiler = pytest.mark.skipif(not can_compile(), reason="neither NVRTC nor nvcc is here")
PROGRAMS = """
def axpy: {n: Nat} -> n.f32 -> n.f32 -> f32 -> n.f32 =
  fun((xs, ys, a) => zip(xs)(ys) |> map(fun((x, y) => a * x + y)))
"""
HERE = ["--backend", "emulate"]


@pytest.fixture
def axpy(tmp_path: Path) -> list[str]:
    path = tmp_path / "axpy.rise"
    path.write_text(PROGRAMS)
    return [str(path), "axpy", "--strategy", "default"]


@pytest.fixture
def text(rise: Any, axpy: list[str], tmp_path: Path) -> Callable[..., list[str]]:
    """The printed text, edited: the option that runs it."""

    def edit(*changes: tuple[str, str], size: str = "n=9") -> list[str]:
        path = tmp_path / "axpy.cu"
        assert rise("compile", *axpy, "--size", size, "-o", str(path)).status == 0
        content = path.read_text()
        for old, new in changes:
            assert old in content
            content = content.replace(old, new)
        path.write_text(content)
        return ["--cuda", str(path)]

    return edit


# --- run --cuda ---------------------------------------------------------------------------------------


@needs_emulator
def test_an_edited_text_is_what_runs(rise: Any, axpy: list[str], text: Any) -> None:
    run = ["run", *axpy, "--size", "n=9", *HERE, "--check"]
    same = [
        ("a * xs_[global_x]", "xs_[global_x] * a"),
        ("(Global", "(\n    Global"),
        ("float a", "/* α */ float a"),
    ]
    assert rise(*run, *text(*same)).status == 0
    called = rise(*run, *text(("a * xs", "a + xs")))
    assert called.status == 1
    assert "WRONG" in called.out


@needs_emulator
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("axpy_kernel(", "axpy_other(", "the text has no kernel `axpy_kernel`; it has `axpy_other`"),
        (
            "float> ys",
            "half> ys",
            "parameter 3 of `axpy_kernel` is `Global<const half> ys_`, the program's is",
        ),
        ("float> ys_", "float> zs", "`Global<const float> zs`, the program's is `Global<const float> ys_`"),
        (", float a", "", "has 3 parameters, the program's has 4"),
        ("float a)", "float a, int n)", "has 5 parameters, the program's has 4"),
        ("bounds__(9)", "bounds__(8)", "bounded to 8 threads per block, but launched with 9"),
        ('extern "C" ', "", "it has none"),
    ],
)
def test_a_text_of_another_kernel_is_refused(
    rise: Any, axpy: list[str], text: Any, old: str, new: str, says: str
) -> None:
    called = rise("run", *axpy, "--size", "n=9", *HERE, *text((old, new)))
    assert (called.status, "error R0839" in called.err, says in called.err) == (1, True, True), called.err


@pytest.mark.parametrize("code", ["R0001", "R0002", "R0003"])
def test_bad_calls_with_cuda(rise: Any, axpy: list[str], tmp_path: Path, code: str) -> None:
    path = tmp_path / "x.cu"
    if code != "R0001":
        path.write_bytes(b"\xff\xff")
    backend = ["--backend", "interpret"] if code == "R0003" else HERE
    called = rise("run", *axpy, "--size", "n=9", "--cuda", str(path), *backend)
    assert (called.status, f"error {code}" in called.err) == (2, True), called.err


# --- run-time sizes -----------------------------------------------------------------------------------


@needs_emulator
@pytest.mark.parametrize("n", [1, 97, 128, 129])
def test_one_text_runs_at_every_size(rise: Any, axpy: list[str], n: int, tmp_path: Path) -> None:
    import numpy as np

    inputs = tmp_path / "in.npz"
    np.savez(inputs, xs=np.ones(n, np.float32))
    called = rise("run", *axpy, "--runtime", "n", "--inputs", str(inputs), *HERE, "--check", "--json")
    assert called.status == 0, called.err
    report = json.loads(called.out)
    assert (report["sizes"], report["check"]["agrees"]) == ({"n": n}, True)


def test_the_host_stands_above_a_text_with_run_time_sizes(rise: Any, axpy: list[str]) -> None:
    called = rise("compile", *axpy, "--runtime", "n=4")
    assert "// n_4 = n / 4\n" in called.out
    assert "// needs 4 | n\n" in called.out


# --- stages -------------------------------------------------------------------------------------------


def test_one_pass_is_printed(rise: Any, axpy: list[str]) -> None:
    stage = ["compile", *axpy, "--size", "n=9", "--stage", "imperative"]
    called = rise(*stage, "--pass", "resolve")
    assert called.out.startswith("axpy_kernel(out output: 9.f32")
    assert "// ---" not in called.out
    assert called.out.strip() in rise(*stage).out
    called = rise(*stage, "--pass", "reslove")
    assert (called.status, "did you mean `resolve`?" in called.err) == (2, True)


@needs_compiler
@pytest.mark.parametrize("target", ["sm_75", "sm_90a"])
def test_resources_are_reported_without_a_gpu(rise: Any, axpy: list[str], target: str) -> None:
    called = rise("compile", *axpy, "--size", "n=9", "--stage", "resources", "--target", target)
    assert called.out.startswith(f"axpy_kernel for {target}: ")
    assert "registers a thread, 0 bytes spilled" in called.out
