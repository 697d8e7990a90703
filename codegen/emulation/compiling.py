"""Compiles printed CUDA text for the host, against the emulator's headers, into a library per kernel.

A kernel compiles in a tenth of a second. The headers would take as long again, so GCC reads them precompiled,
from the cache that also has the kernels.

A `CompilationError` is R0801 if this machine has no compiler, and R0802 if the text is not C++.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from codegen.cache import cached
from codegen.ir.fragments import emulated
from rise.errors import CompilationError
from rise.files import write
from rise.source import Source, Span

HEADERS = Path(__file__).parent

COMPILE = [
    "-std=c++17",
    "-c",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-ffp-contract=off",
    "-fsanitize=bounds,shift,integer-divide-by-zero,signed-integer-overflow",
    "-Wno-unknown-pragmas",
    "-Werror=uninitialized",
    "-Werror=frame-larger-than=200000",  # stacks in `emulation/fiber.hpp` have 256 KiB
]
INCLUDE = ["-isystem", str(HEADERS), "-x", "c++", "-"]
LINK = ["-shared", "-fPIC"]
# all that a kernel needs but for foreign functions of its own; reading the others takes a third of linking
QUICKLY = ["-nodefaultlibs", "-lm", "-lc", "-Wl,-z,defs"]
# Compilation is several times as fast without optimisation, and the kernel takes two to three times as long.
FAST, SLOW = "-O1", "-O0"


def compiler() -> Path | None:
    """The C++ compiler for emulation: `$CXX` if it is set, else g++ or clang++; None if there is none.

    Raises CompilationError R0801 if `$CXX` names a command that does not exist.
    """
    if chosen := os.environ.get("CXX"):
        if found := shutil.which(chosen):
            return Path(found)
        message = f"the environment variable CXX names the command `{chosen}`, which does not exist"
        hint = "name a C++ compiler in it, without options; unset, it leaves the choice to g++ and clang++"
        raise CompilationError("R0801", message, hint=hint)
    found = shutil.which("g++") or shutil.which("clang++")
    return Path(found) if found else None


def compile_kernel(source: str, kernel: str, level: str = FAST) -> Path:
    """The shared library that emulates a kernel, from the cache if it has been compiled before.

    level: of optimisation, which affects neither results nor the faults that are found
    """
    command = compiler()
    if command is None:
        raise CompilationError(
            "R0801",
            "emulation needs a C++ compiler, and none was found",
            hint="install g++ or clang++, or name one in the environment variable CXX",
        )
    options = [*COMPILE, level]
    key = ["emulate", source, kernel, *_environment(command), *options, *LINK, *QUICKLY]

    def build(path: Path) -> None:
        obj = path.with_suffix(".o")
        try:
            _compile([str(command), *options], source, kernel, obj)
            objects = [obj] if level != SLOW else [obj, _runtime(command, source)]
            link = [str(command), *LINK, *map(str, objects), "-o", str(path)]
            if _finished([*link, *QUICKLY], "").returncode:
                _run(link, "", source, kernel)
        finally:
            obj.unlink(missing_ok=True)

    return cached(key, ".so", build)


def _runtime(command: Path, source: str) -> Path:
    """The emulator itself, optimised and compiled once: what a text only declares (`emulation/once.hpp`)."""
    header = _header(source)
    options = [*COMPILE, FAST, "-DRISE_RUNTIME"]

    def build(path: Path) -> None:
        text = _including(header)
        _run([str(command), *options, *INCLUDE, "-o", str(path)], text, text, header)

    return cached(["runtime", header, *_environment(command), *options], ".o", build)


def _environment(command: Path) -> list[str]:
    """What a library depends on besides the text."""
    return [emulated(), header_text(), compiler_version(command), platform.machine()]


def line_span(source: Source, number: int) -> Span | None:
    """The whole of a line, without its indentation; None for a line that does not exist."""
    text = source.line(number)
    indentation = len(text) - len(text.lstrip())
    if not text:
        return None
    return Span(source, number, indentation + 1, number, len(text) + 1)


@cache
def compiler_version(command: Path) -> str:
    """The compiler's version message, as part of a library's key in the cache."""
    finished = subprocess.run([command, "--version"], check=False, capture_output=True, text=True)
    return finished.stdout


@cache
def header_text() -> str:
    """The emulator's headers, as part of a library's key in the cache."""
    files = sorted(path for path in HEADERS.rglob("*") if path.suffix in (".hpp", ".cuh"))
    return "".join(path.read_text(encoding="utf-8") for path in files)


def _compile(command: list[str], source: str, kernel: str, obj: Path) -> None:
    """Compiles the text, under its own line numbers, and the entry point for the kernel."""
    text = f"{_with_counted_loops(source, kernel)}\nRISE_EMULATE({kernel})\n"
    headers = precompiled(tuple(command), _header(source))
    if headers is not None:
        made = _finished([*command, "-include", headers, *INCLUDE, "-o", str(obj)], text)
        if made.returncode == 0:
            return
    _run([*command, *INCLUDE, "-o", str(obj)], emulated() + text, source, kernel)


@cache
def precompiled(command: tuple[str, ...], header: str) -> str | None:
    """The precompiled header that GCC includes before a text: its name, without `.gch`.

    None for other compilers. Where GCC refuses the header, texts are compiled without it.
    """
    version = compiler_version(Path(command[0]))
    if "Free Software Foundation" not in version:
        return None
    options = [option for option in command if option != "-c"]

    def build(path: Path) -> None:
        text = path.with_suffix("")
        try:
            write(text, _including(header), durable=False)
            made = ["-isystem", str(HEADERS), "-x", "c++-header", str(text), "-o", str(path)]
            _finished([*options, *made], "")
        finally:
            text.unlink(missing_ok=True)

    try:
        key = ["headers", header, *_environment(Path(command[0])), *options]
        return str(cached(key, ".hpp.gch", build)).removesuffix(".gch")
    except CompilationError:  # it has made no file
        return None


def _header(source: str) -> str:
    """The header that a text includes, by itself or in another one."""
    return "hopper.cuh" if '"hopper.cuh"' in source else "rise.cuh"


def _including(header: str) -> str:
    """What all texts that include a header have in common."""
    return f'{emulated()}#include "{header}"\n'


def _finished(command: list[str], text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, check=False, input=text, capture_output=True, encoding="utf-8", errors="replace"
    )


def _with_counted_loops(source: str, kernel: str) -> str:
    """The text under its own line numbers; the macros that count steps of loops follow its includes."""
    includes = [
        match.end() for match in re.finditer(r"^[ \t]*#[ \t]*include\b[^\n]*\n", source, re.MULTILINE)
    ]
    end = includes[-1] if includes else 0
    first = source.count("\n", 0, end) + 1
    before, after = source[:end], source[end:]
    return f'#line 1 "{kernel}.cu"\n{before}#include "loops.hpp"\n#line {first} "{kernel}.cu"\n{after}'


def _run(command: list[str], text: str, source: str, kernel: str) -> None:
    """Runs a step of compilation. Shows its first error that has a line in the text."""
    finished = _finished(command, text)
    if finished.returncode == 0:
        return
    place = rf"^{re.escape(kernel)}\.cu:(\d+):"
    located = re.search(rf"{place}.*?error: (.*)$", finished.stderr, re.MULTILINE)
    anywhere = re.search(r"error: (.*)$", finished.stderr, re.MULTILINE)
    line = located or re.search(place, finished.stderr, re.MULTILINE)
    message = located[2] if located else anywhere[1] if anywhere else finished.stderr.strip()
    message = message or f"`{command[0]}` ends with {finished.returncode}, and does not say why"
    span = line_span(Source(f"{kernel}.cu", source), int(line[1])) if line else None
    raise CompilationError("R0802", f"the C++ compiler rejects the kernel: {message}", span)
