"""Runs printed CUDA text without a GPU, and reports its faults.

The text is compiled for the host against the headers in `emulation/`, which check every access,
barrier and collective. The first fault ends the kernel and becomes an `EmulationError`:

    R0901  an argument does not fit its parameter, or overlaps another one
    R0902  a read out of bounds
    R0903  a write out of bounds, or any use out of bounds of a local array
    R0904  a read of an uninitialised element of global or shared memory
    R0905  a read of an element of a thread's local array that it has not written
    R0906  a use of a fragment, or of its element, that a lane has not written
    R0907  a race between threads of one block, in shared or global memory
    R0908  a race between blocks
    R0909  a divergent __syncthreads: only some threads of the block reach it
    R0910  a divergent warp collective: only some lanes reach it, or operands differ between lanes
    R0911  a leading dimension that tile loads and stores do not support
    R0912  a misaligned tile or array
    R0913  a thread that does not terminate: its loops take many times the steps of the program's
    R0914  a grid, a block or shared memory beyond the limits of GPUs
    R0915  undefined arithmetic: signed overflow, division by zero, an index out of bounds of a C++ array
    R0916  a use of the target of an asynchronous copy that its thread has not waited for

and of text that includes `hopper.cuh`:

    R0917  a deadlock: threads wait for each other, or for bytes that never arrive
    R0918  a use of registers that a pending wgmma uses
    R0919  a write to shared memory that a pending wgmma or bulk store reads
    R0920  a missing proxy fence between ordinary accesses and those of asynchronous units
    R0921  an illegal use of an mbarrier
    R0922  an operand that an instruction does not support: a descriptor, a tensor map, a box
    R0923  setmaxnreg in the wrong direction; beyond the pool it is a deadlock
    R0924  a block that may exit while another block, or a copy, still uses its shared memory
    R0925  use of global memory before waiting for the previous kernel, in a kernel that overlaps with it
    R0926  an arrival, a wait or bytes that could count for another phase under another thread order
    R0927  a block that exits in the middle of an mbarrier's phase: a count of arrivals or bytes is wrong

A `CompilationError` is R0801 if this machine has no compiler, R0802 if the text is not C++, or R0811 if the
compiled text cannot be loaded because a function that it calls is not defined.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from codegen.cache import cached
from codegen.ir.fragments import emulated
from codegen.ir.tensor_maps import TensorBuffer, describe
from rise.errors import CompilationError, EmulationError, UsageError
from rise.source import Note, Origin, Source, Span, place

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
# For launches with few threads compilation dominates: it is several times as fast without optimisation,
# and the kernel takes two to three times as long.
FEW, FAST, SLOW = 4096, "-O1", "-O0"

STEPS = "RISE_EMULATION_STEPS"  # the environment variable that limits the loop iterations of a thread
MOST_STEPS, LIMIT = 2**22, 2**63 - 1  # the default limit, and the largest one possible
ENDLESS = 13  # in `emulation/report.hpp`

MOST_BLOCKS = 2**28  # as in `emulation/launch.hpp`
INITIALISED, WRITABLE = 1, 2  # flags of an argument
WHOLE_NUMBER, FRACTION = -1, -2  # the "length" of a number
TENSOR_MAP = -3  # the "length" of an array with a tensor map


@dataclass(frozen=True)
class Buffer:
    """An array argument. It is written in place.

    name:        its name in messages
    initialised: False if the kernel has to write an element before it reads it
    """

    name: str
    array: NDArray[np.generic]
    initialised: bool = True


@dataclass(frozen=True)
class Scalar:
    """A number argument, with its name in messages."""

    name: str
    value: int | float | np.generic


Argument = Buffer | Scalar | TensorBuffer | NDArray[np.generic] | int | float | np.generic


@dataclass(frozen=True)
class Conflicts:
    """The accesses of a line to shared memory, over all blocks (see `emulation/banks.hpp`).

    phases:     the parts in which warps' instructions are served, at best one wavefront each
    wavefronts: the number of wavefronts that these took
    """

    phases: int
    wavefronts: int

    @property
    def extra(self) -> int:
        """The wavefronts that conflicts cost."""
        return self.wavefronts - self.phases


@dataclass(frozen=True)
class Emulation:
    """Measurements of a kernel that ran: its bank conflicts, by line of the text."""

    conflicts: Mapping[int, Conflicts]

    @property
    def extra_wavefronts(self) -> int:
        return sum(conflicts.extra for conflicts in self.conflicts.values())


class _Argument(ctypes.Structure):
    """`Argument` in `emulation/launch.hpp`."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("length", ctypes.c_int64),
        ("type", ctypes.c_int32),
        ("flags", ctypes.c_int32),
    ]


class _Launch(ctypes.Structure):
    """`Launch` in `emulation/launch.hpp`."""

    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("seed", ctypes.c_uint64),
        ("shared_bytes", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("arguments", ctypes.POINTER(_Argument)),
        ("cluster", ctypes.c_uint32 * 3),
        ("most_steps", ctypes.c_uint64),
        ("most_called", ctypes.c_uint64),
    ]


class _Report(ctypes.Structure):
    """`Report` in `emulation/report.hpp`."""

    _fields_ = [
        ("code", ctypes.c_int32),
        ("line", ctypes.c_int32),
        ("message", ctypes.c_char * 504),
    ]


def emulate(
    source: str,
    kernel: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    arguments: Sequence[Argument],
    shared_bytes: int = 0,
    seed: int = 0,
    cluster: tuple[int, int, int] = (1, 1, 1),
    origins: Sequence[Origin] = (),
    most_steps: int | None = None,
) -> Emulation:
    """Runs a kernel of a CUDA text, once, over a whole grid.

    arguments:    arrays, written in place, and numbers, in the order of the parameters
    shared_bytes: dynamic shared memory of a block
    seed:         determines the order of blocks and threads and the layout of fragments; a correct
                  kernel gives the same result for every seed
    cluster:      blocks per cluster, which run concurrently; for text that includes hopper.cuh
    origins:      for each line of the text, the part of the program that it comes from, shown in faults
    most_steps:   the loop iterations of the kernel that a thread may take before it is considered endless
    """
    _check_extents(grid, block, shared_bytes)
    level = SLOW if prod(grid) * prod(block) <= FEW else FAST
    library = _load(compile_kernel(source, kernel, level))
    prepared, kept_alive = _prepare(arguments)
    launch = _Launch(
        (ctypes.c_uint32 * 3)(*grid),
        (ctypes.c_uint32 * 3)(*block),
        seed % 2**64,
        shared_bytes,
        len(arguments),
        prepared,
        (ctypes.c_uint32 * 3)(*cluster),
        *_allowed_steps(_usual_steps(arguments) if most_steps is None else most_steps),
    )
    report = _Report()
    with library.running:
        library.launch(ctypes.byref(launch), ctypes.byref(report))
        conflicts = _conflicts(library, len(source.splitlines()))
    del kept_alive
    if report.code:
        message = report.message.decode("utf-8", errors="replace")
        span = line_span(Source(f"{kernel}.cu", source), report.line)
        notes = tuple(_in_the_program(report.line, message, origins))
        hint = f"{STEPS}=n allows a thread n steps of loops" if report.code == ENDLESS else None
        raise EmulationError(f"R09{report.code:02}", message, span, hint, notes=notes)
    return Emulation(conflicts)


def _usual_steps(arguments: Sequence[Argument]) -> int:
    """An upper bound on the steps of a thread, for a kernel of which only the arguments are known."""
    arrays = [a.array if isinstance(a, Buffer | TensorBuffer) else a for a in arguments]
    return MOST_STEPS // 16 + 64 * sum(array.size for array in arrays if isinstance(array, np.ndarray))


def _allowed_steps(most: int) -> tuple[int, int]:
    """The limits on a thread's steps of loops in the kernel, and on those in called functions between two."""
    given = os.environ.get(STEPS)
    if given is None:
        return min(most, LIMIT), MOST_STEPS
    if not (given.isascii() and given.isdigit() and 0 < int(given[:20]) <= LIMIT):
        message = f"the environment variable {STEPS} must be a positive number of 64 bits, not `{given}`"
        raise UsageError("R0013", message)
    return int(given), int(given)


def _in_the_program(line: int, message: str, origins: Sequence[Origin]) -> Iterator[Note]:
    """The origins of the lines of a fault: of the line that it shows, and of those that it mentions."""
    named = [int(number) for number in re.findall(r"line (\d+)", message)]
    for number in dict.fromkeys((line, *named)):
        if 1 <= number <= len(origins) and place(origins[number - 1]) is not None:
            yield Note(f"line {number} of the kernel comes from here", origins[number - 1])


def compiler() -> Path | None:
    """The C++ compiler for emulation, `$CXX` first; None if there is none."""
    for name in (os.environ.get("CXX"), "g++", "clang++"):
        found = shutil.which(name) if name else None
        if found:
            return Path(found)
    return None


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
    key = ["emulate", source, kernel, *_environment(command), *options, *LINK]

    def build(path: Path) -> None:
        obj = path.with_suffix(".o")
        try:
            _compile([str(command), *options], source, kernel, obj)
            objects = [obj] if level != SLOW else [obj, _runtime(command, source)]
            _run([str(command), *LINK, *map(str, objects), "-o", str(path)], "", source, kernel)
        finally:
            obj.unlink(missing_ok=True)

    return cached(key, ".so", build)


def _runtime(command: Path, source: str) -> Path:
    """The emulator itself, optimised and compiled once: what a text only declares (`emulation/once.hpp`)."""
    header = "hopper.cuh" if '"hopper.cuh"' in source else "rise.cuh"
    options = [*COMPILE, FAST, "-DRISE_RUNTIME"]

    def build(path: Path) -> None:
        text = f'{emulated()}#include "{header}"\n'
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
    text = f"{emulated()}{_with_counted_loops(source, kernel)}\nRISE_EMULATE({kernel})\n"
    _run([*command, *INCLUDE, "-o", str(obj)], text, source, kernel)


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
    finished = subprocess.run(command, check=False, input=text, capture_output=True, text=True)
    if finished.returncode == 0:
        return
    place = rf"^{re.escape(kernel)}\.cu:(\d+):"
    located = re.search(rf"{place}.*?error: (.*)$", finished.stderr, re.MULTILINE)
    anywhere = re.search(r"error: (.*)$", finished.stderr, re.MULTILINE)
    line = located or re.search(place, finished.stderr, re.MULTILINE)
    message = located[2] if located else anywhere[1] if anywhere else finished.stderr.strip()
    span = line_span(Source(f"{kernel}.cu", source), int(line[1])) if line else None
    raise CompilationError("R0802", f"the C++ compiler rejects the kernel: {message}", span)


@dataclass(frozen=True)
class _Library:
    """A loaded kernel. Its state is one multiprocessor, so it runs one launch at a time."""

    launch: Callable[..., None]
    wavefronts: Callable[..., int]
    running: Lock


@cache
def _load(path: Path) -> _Library:
    try:
        library = ctypes.CDLL(str(path))
        library.rise_emulation_launch.restype = None
    except (OSError, AttributeError) as error:
        raise _unloadable(str(error), path) from None
    return _Library(library.rise_emulation_launch, library.rise_emulation_wavefronts, Lock())


def _unloadable(reason: str, path: Path) -> CompilationError:
    undefined = re.search(r"undefined symbol: (\w+)", reason)
    if undefined is None:
        message = reason.replace(str(path), "what the C++ compiler made")
        return CompilationError("R0811", f"the emulated kernel cannot be loaded: {message}")
    shown = _demangled(undefined[1])
    hint = f'give the body of a foreign function that the text does not define: ("{shown}", n, "…")'
    message = f"the emulated kernel cannot be loaded: `{shown}` is called, but not defined"
    return CompilationError("R0811", message, hint=hint)


def _demangled(symbol: str) -> str:
    """The name of a function that C++ has mangled: `nobody` for `_Z6nobodyf`."""
    found = re.match(r"_Z(\d+)", symbol)
    return symbol[found.end() : found.end() + int(found[1])] if found else symbol


def _conflicts(library: _Library, lines: int) -> dict[int, Conflicts]:
    numbers = (ctypes.c_int64 * (2 * (lines + 1)))()
    if not library.wavefronts(numbers, lines + 1):
        raise EmulationError("R0914", "not enough memory to count bank conflicts")
    found = {line: Conflicts(*numbers[2 * line : 2 * line + 2]) for line in range(lines + 1)}
    return {line: counted for line, counted in found.items() if counted.phases}


def _check_extents(grid: tuple[int, int, int], block: tuple[int, int, int], shared_bytes: int) -> None:
    """Refuses numbers that would be truncated to 32 bits."""
    sizes = (*grid, *block)
    if len(grid) != 3 or len(block) != 3 or not all(0 < size < 2**31 for size in sizes):
        raise EmulationError("R0914", f"a grid {grid} of blocks {block} cannot be launched")
    if prod(grid) > MOST_BLOCKS:
        raise EmulationError(
            "R0914", f"a grid of {prod(grid)} blocks is too large to emulate; the limit is {MOST_BLOCKS}"
        )
    if not 0 <= shared_bytes < 2**31:
        raise EmulationError("R0914", f"a block cannot have {shared_bytes} bytes of shared memory")


def _prepare(arguments: Sequence[Argument]) -> tuple[ctypes.Array[_Argument], list[object]]:
    """The arguments as C structures, and the objects that they point into."""
    prepared = (_Argument * max(1, len(arguments)))()
    kept_alive: list[object] = []
    for number, argument in enumerate(arguments):
        match argument:
            case TensorBuffer():
                prepared[number], storage = _map(argument)
                kept_alive += [argument.array, storage]
                continue
            case Buffer() | Scalar():
                named = argument
            case np.ndarray():
                named = Buffer(f"argument {number}", argument)
            case _:
                named = Scalar(f"argument {number}", argument)
        if isinstance(named, Buffer):
            prepared[number] = _array(named)
            kept_alive.append(named.array)
        else:
            prepared[number], storage = _number(named)
            kept_alive.append(storage)
    return prepared, kept_alive


def _array(buffer: Buffer) -> _Argument:
    array = buffer.array
    if not array.flags.c_contiguous or not array.dtype.isnative:
        raise EmulationError("R0901", f"{buffer.name} is not a C-contiguous array in native byte order")
    flags = INITIALISED * buffer.initialised | WRITABLE * array.flags.writeable
    return _Argument(buffer.name.encode(), array.ctypes.data, array.size, _type_number(buffer), flags)


def _map(buffer: TensorBuffer) -> tuple[_Argument, object]:
    flags = INITIALISED * buffer.initialised | WRITABLE * buffer.array.flags.writeable
    description = describe(buffer, flags)
    return _Argument(buffer.name.encode(), ctypes.addressof(description), TENSOR_MAP, 0, flags), description


def _type_number(buffer: Buffer) -> int:
    """The element type as a number: a letter and a size, as `type_number` in `emulation/launch.hpp`."""
    dtype = buffer.array.dtype
    letters = {"float": "f", "int": "i", "uint": "u", "bool": "u", "bfloat": "b"}
    letter = letters.get(dtype.name.rstrip("0123456789"))
    if letter is None or dtype.itemsize > 8:
        raise EmulationError("R0901", f"{buffer.name} has elements of type {dtype}")
    return ord(letter) * 256 + dtype.itemsize


def _number(scalar: Scalar) -> tuple[_Argument, object]:
    """A number as the widest of its kind, which is converted to the parameter's type."""
    value = scalar.value
    storage: ctypes.c_int64 | ctypes.c_double
    if isinstance(value, (int, np.integer, np.bool_)):
        if not -(2**63) <= int(value) < 2**63:
            raise EmulationError("R0901", f"{scalar.name} is {value}, beyond 64 bits")
        storage, kind = ctypes.c_int64(int(value)), WHOLE_NUMBER
    else:
        storage, kind = ctypes.c_double(float(value)), FRACTION
    address = ctypes.addressof(storage)
    return _Argument(scalar.name.encode(), address, kind, 0, 0), storage
