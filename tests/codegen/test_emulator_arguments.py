"""What cannot be run: arguments that do not fit, launches too large, texts that are no C++."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.emulation import compiling
from codegen.emulation.compiling import compile_kernel, compiler
from codegen.emulation.emulator import Argument
from rise.errors import CompilationError, EmulationError
from rise.source import place
from tests.support.emulated import ADD, Run, directory, floats, needs_compiler, text, unset  # noqa: F401  # a fixture

pytestmark = needs_compiler

OUT_X = "Global<float> out, Global<const float> x"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "5 parameters, 0 arguments"),
        ([unset(), floats(64).astype(np.float64), floats(64), 1, 64], "of type float64"),
        ([unset(), floats(64), 1, 1, 64], "is a number"),
        ([unset(), floats(64), floats(64), floats(1), 64], "is an array"),
        ([unset(), floats(64), floats(64), 1, 2**40], "cannot hold"),
        ([unset(), floats(64), floats(64), 1, 0.5], "is a fraction"),
        ([unset(), floats(64)[::2], floats(64), 1, 64], "C-contiguous"),
        ([unset(), np.zeros(64, complex), floats(64), 1, 64], "complex128"),
    ],
)
def test_arguments_that_do_not_fit(arguments: list[Argument], message: str) -> None:
    with pytest.raises(EmulationError, match=message) as raised:
        Run()(ADD, *arguments)
    assert raised.value.code == "R0901"


def test_overlapping_arguments() -> None:
    x = floats(64)
    with pytest.raises(EmulationError, match="overlaps"):
        Run()(ADD, x, x[32:], floats(64), 1, 32)
    Run()(ADD, unset(), x, x, 1, 32)


def test_read_only_argument() -> None:
    x = floats(64)
    x.flags.writeable = False
    with pytest.raises(EmulationError, match="read-only"):
        Run()(ADD, x, floats(64), floats(64), 1, 32)


@pytest.mark.parametrize("run", [Run(threads=1025), Run(blocks=0), Run(shared_bytes=300_000)])
def test_launches_beyond_the_hardware(run: Run) -> None:
    with pytest.raises(EmulationError) as raised:
        run(ADD, unset(), floats(64), floats(64), 1, 32)
    assert raised.value.code == "R0914"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("out[0] = 1;\nout[1] = undeclared;", 5),
        ("float y;\nout[threadIdx.x] = y;", 5),
        ("x[0] = 1;", 4),
        ("Local<float, 100000> row;\nrow[0] = 1;\nout[0] = row[threadIdx.x];", 7),
    ],
)
def test_text_that_does_not_compile(body: str, line: int) -> None:
    with pytest.raises(CompilationError) as raised:
        Run()(text(OUT_X, body), unset(), floats(1024))
    span = place(raised.value.origin)
    assert raised.value.code == "R0802"
    assert span is not None
    assert span.line == line


def test_missing_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert compiler() is None
    with pytest.raises(CompilationError) as raised:
        compile_kernel(ADD, "k")
    assert raised.value.code == "R0801"
    assert raised.value.hint


def test_a_compiler_that_is_named_and_missing_is_not_replaced_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(CompilationError, match="`no-such-compiler`") as raised:
        compile_kernel(ADD, "k")
    assert raised.value.code == "R0801" and "CXX" in raised.value.message


# --- precompiled headers --------------------------------------------------------------------------------


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[list[str]]]:
    """The commands that compile, with an empty cache."""
    run, called = subprocess.run, []
    forget = compiling.precompiled.cache_clear

    def recorded(command: list[str], **named: Any) -> Any:
        called.append([str(part) for part in command])
        return run(command, **named)

    monkeypatch.setenv("RISE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", recorded)
    forget()
    yield called
    forget()


def test_headers_are_read_once(commands: list[list[str]]) -> None:
    command = compiler()
    assert command is not None
    if "Free Software Foundation" not in compiling.compiler_version(command):
        pytest.skip("only GCC has them")
    for kernel in ("k", "other"):
        compile_kernel(ADD.replace(" k(", f" {kernel}("), kernel)
    assert sum("c++-header" in called for called in commands) == 1
    assert sum("-include" in called for called in commands) == 2
    texts = [called for called in commands if "-c" in called and "-DRISE_RUNTIME" not in called]
    assert len(texts) == 2, "a text was compiled twice"


def test_a_text_is_compiled_without_them_where_they_are_refused(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compiling, "precompiled", lambda *_: str(tmp_path / "nothing.hpp"))
    assert compile_kernel(ADD, "k").is_file()
    assert sum("-c" in called for called in commands) == 2
