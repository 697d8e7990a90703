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

A `CompilationError` is R0811 if the compiled text cannot be loaded because a function that it calls is not
defined, or one of those of `compiling`.
"""

from __future__ import annotations

import ctypes
import os
import re
from _thread import start_new_thread
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from threading import Event, Lock

import numpy as np
from numpy.typing import NDArray

from codegen.emulation.compiling import FAST, SLOW, compile_kernel, line_span
from codegen.ir.tensor_maps import TensorBuffer, describe
from rise.errors import CompilationError, EmulationError, UsageError
from rise.progress import counted
from rise.source import Note, Origin, Source, place

FEW = 16_384  # threads of a launch for which compilation dominates
STEPS = "RISE_EMULATION_STEPS"  # the environment variable that limits the loop iterations of a thread
MOST_STEPS, LIMIT = 2**22, 2**63 - 1  # the default limit, and the largest one possible
ENDLESS, INTERRUPTED = 13, 99  # in `emulation/report.hpp`

MOST_BLOCKS = 2**28  # as in `emulation/launch.hpp`
INITIALISED, WRITABLE, READY, UNUSED = 1, 2, 4, 8  # flags of an argument
WHOLE_NUMBER, FRACTION = -1, -2  # the "length" of a number
TENSOR_MAP = -3  # the "length" of an array with a tensor map


@dataclass(frozen=True)
class Buffer:
    """An array argument. It is written in place.

    name:        its name in messages
    initialised: False if the kernel has to write an element before it reads it
    ready:       whether the kernel may read it before the kernel in front of it has ended
    unused:      whether it may write it before that, too
    """

    name: str
    array: NDArray[np.generic]
    initialised: bool = True
    ready: bool = False
    unused: bool = False


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
        ("finished", ctypes.c_uint64),
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
    with library.running, counted("thread", prod(grid) * prod(block), lambda: report.finished):
        _run(library, launch, report)
        conflicts = _conflicts(library, len(source.splitlines()))
    del kept_alive
    if report.code:
        message = report.message.decode("utf-8", errors="replace")
        span = line_span(Source(f"{kernel}.cu", source), report.line)
        notes = tuple(_in_the_program(report.line, message, origins))
        hint = f"{STEPS}=n allows a thread n steps of loops" if report.code == ENDLESS else None
        raise EmulationError(f"R09{report.code:02}", message, span, hint, notes=notes)
    return Emulation(conflicts)


def _run(library: _Library, launch: _Launch, report: _Report) -> None:
    """Waits for a launch in a thread of its own: an interrupt, of which C hears nothing, ends the kernel.

    Python raises an interrupt after a call, so none comes between `try` and the start of the thread; one that
    comes while `Thread.start` waits would leave the kernel running.
    """
    ended = Event()  # an interrupted `join` believes that the thread has ended

    def run() -> None:
        library.launch(ctypes.byref(launch), ctypes.byref(report))
        ended.set()

    try:
        start_new_thread(run, ())
        ended.wait()
    except RuntimeError:  # there is no thread
        raise
    except BaseException:
        report.code = INTERRUPTED
        ended.wait()
        raise


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
    flags = INITIALISED * buffer.initialised | WRITABLE * array.flags.writeable | READY * buffer.ready
    flags |= UNUSED * buffer.unused
    return _Argument(buffer.name.encode(), array.ctypes.data, array.size, _type_number(buffer), flags)


def _map(buffer: TensorBuffer) -> tuple[_Argument, object]:
    flags = INITIALISED * buffer.initialised | WRITABLE * buffer.array.flags.writeable
    flags |= READY * buffer.ready
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
