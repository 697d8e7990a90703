"""The folder of an exported program: everything that a build of it needs, and nothing in Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codegen.emulation.compiling import HEADERS as EMULATION
from codegen.export.example import Example, data, test_program
from codegen.export.jax import handler
from codegen.export.launcher import Exported, c_name, emulated, header, launcher
from codegen.host.program import HostProgram
from codegen.host.text import cuda_text
from codegen.ir.fragments import emulated as places
from codegen.runtime.compiling import HEADERS as DEVICE
from codegen.runtime.compiling import compile_cubin
from rise import files

FILES = Path(__file__).parent / "files"


def export(
    program: HostProgram,
    name: str,
    folder: Path,
    target: str = "sm_90a",
    example: Example | None = None,
    *,
    cubin: bool = False,
) -> list[Path]:
    """Writes a program as CUDA and C into a folder, and returns the files in it.

    name:    of the definition; that of its C functions follows from it
    target:  the architecture to compile for
    example: what the test runs; without it there is no test
    cubin:   also write machine code, so that the folder is built without nvcc

    Raises UsageError R0405 for a program with run-time sizes, CompilationError as `compile_cubin` does.
    """
    of = Exported(program, c_name(name), target)
    contents = dict(_contents(of, example, cubin))
    for path, content in contents.items():
        target_path = folder / path
        files.folder_of(target_path)
        files.write(target_path, content)
    for stale in (f"{of.name}_code.c", f"{of.name}_test.c"):  # of an earlier export, which a build would take
        if stale not in contents:
            (folder / stale).unlink(missing_ok=True)
    return [folder / path for path in contents]


def _contents(of: Exported, example: Example | None, cubin: bool) -> Iterator[tuple[str, str | bytes]]:
    yield f"{of.name}.cu", cuda_text(of.program)
    yield f"{of.name}.h", header(of)
    yield f"{of.name}.c", launcher(of)
    yield f"{of.name}_jax.cpp", handler(of)
    yield "emulation/kernels.cpp", emulated(of)
    yield "emulation/places.hpp", places()
    yield from _copied(DEVICE, "include", "*.cuh")
    yield from _copied(EMULATION, "emulation", "*.hpp", "*.cuh")
    yield from _copied(FILES, ".", "*.h", "*.hpp", "*.cpp", "*.cmake")
    yield "CMakeLists.txt", _filled("CMakeLists.txt.in", of)
    yield "README.md", _filled("README.md.in", of)
    if cubin:
        yield (
            f"{of.name}_code.c",
            embedded(compile_cubin(cuda_text(of.program), of.target).read_bytes(), of.name),
        )
    if example is not None:
        yield f"{of.name}_test.c", test_program(of, example)
        yield from ((f"data/{name}", content) for name, content in data(of, example).items())


def _copied(source: Path, folder: str, *patterns: str) -> Iterator[tuple[str, bytes]]:
    for pattern in patterns:
        for path in sorted(source.rglob(pattern)):
            yield f"{folder}/{path.relative_to(source).as_posix()}", path.read_bytes()


def _filled(template: str, of: Exported) -> str:
    text = (FILES / template).read_text(encoding="utf-8")
    return text.replace("@NAME@", of.name).replace("@TARGET@", of.target)


def embedded(code: bytes, name: str) -> str:
    """Machine code as an array of C, as `embed.cmake` writes it."""
    numbers = ",".join(map(str, code))
    return f"_Alignas(64) const unsigned char {name}_code[] = {{{numbers}}};\n"
