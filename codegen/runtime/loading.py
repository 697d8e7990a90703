"""Programs on the GPU: their kernels are loaded once, then called with results and inputs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import finalize

from codegen.host.parameters import without_loss
from codegen.host.program import HostProgram, Launching, alone
from codegen.ir import imperative as i
from codegen.ir.kernel import Kernel
from codegen.ir.tensor_maps import ALIGNMENT as MAP_ALIGNMENT
from codegen.ir.tensor_maps import ENCODED_BYTES, encode
from codegen.runtime import libcuda
from codegen.runtime.arguments import (
    CODES,
    Plan,
    misaligned,
    overlapping,
    parameters_of,
    plan,
    sizes_of,
    wrong_device,
)
from codegen.runtime.arrays import LOOKS
from codegen.runtime.compiling import compile_cubin
from codegen.runtime.device import device_target, driver
from codegen.runtime.packing import POINTER, Field, natural_offsets, packer
from codegen.runtime.streams import as_handle, current, same
from rise.interpret import dtype_of
from rise.types import Array, Data, Scalar, Vector

STATIC_SHARED_LIMIT = 48 * 1024
MAP = Field.of(f"{ENCODED_BYTES}s", MAP_ALIGNMENT)
REMEMBERED = 1024  # signatures, and addresses whose GPU is known
NO_SIZES: Mapping[str, int] = {}
# launches on a stream with the values into which a call's arguments are packed
Launch = Callable[[Sequence[Any], int], None]


@dataclass(frozen=True)
class Ready:
    """A call for one signature: the checks at each call, and the launches in order.

    workspace: bytes for temporaries
    offsets:   of the temporaries in it
    numbers:   the run-time sizes, as kernels take them
    """

    plan: Plan
    launches: tuple[Launch, ...]
    workspace: int
    offsets: tuple[int, ...]
    numbers: tuple[int, ...]


class Loaded:
    """A program on the GPU. Call it with the results and the inputs, in the order of its parameters.

    NumPy arrays are copied to the GPU and back; arrays with `__cuda_array_interface__` or DLPack are not
    copied. Only calls with NumPy arrays are synchronous. `stream` is an int, or a stream of pycuda, torch or
    CuPy; the default is the current stream of the first array's library. `sizes` are the run-time sizes that
    no input determines.

    The first call on a stream allocates memory for temporaries; later calls do not, unless sizes grow. A call
    that is captured into a CUDA graph allocates for this graph, which shares temporaries with nothing else.
    They live as long as this object.
    """

    def __init__(
        self, program: Kernel | HostProgram, driver: libcuda.Driver, cubins: Sequence[bytes]
    ) -> None:
        self.program = program if isinstance(program, HostProgram) else alone(program)
        self.driver = driver
        self.functions: dict[str, int] = {}
        for kernel, cubin in zip(self.program.kernels, cubins, strict=True):
            with driver.beside_recordings():
                module = driver.load(cubin)
            finalize(self, driver.unload, module)
            self.functions[kernel.name] = driver.function(module, kernel.name)
        self._ready: dict[tuple[Any, ...], Ready] = {}
        self._here: set[int] = set()
        self._workspaces: dict[tuple[int, int], list[tuple[int, Any]]] = {}

    def __call__(self, *arguments: Any, stream: Any = None, sizes: Mapping[str, int] | None = None) -> None:
        on = current(arguments) if stream is None else as_handle(stream)
        signature: list[Any] = [*sizes.items()] if sizes else []
        values: list[Any] = []
        for argument in arguments:
            kind = type(argument)
            seen, value = LOOKS[kind](argument, on)
            signature += kind, seen
            values.append(value)
        key = tuple(signature)
        ready = self._ready.get(key) or self._prepared(key, arguments, sizes or NO_SIZES)
        if ready.plan.host:
            self._through_host(ready, arguments, values, on)
        else:
            self._check_addresses(ready.plan, values)
            self._go(ready, arguments, values, on)

    # --- once for each signature ----------------------------------------------------------------------

    def _prepared(self, key: tuple[Any, ...], arguments: Sequence[Any], sizes: Mapping[str, int]) -> Ready:
        call = self.program.at(sizes_of(self.program, arguments, sizes))
        checked = plan(parameters_of(self.program, call), arguments, self.driver.device)
        names = [v.name for v in (*call.outputs, *call.parameters)]
        names += [*(p.name for p in call.temporaries), *call.numbers]
        ready = Ready(
            checked,
            tuple(
                self._launch(x, names, x.kernel.name in call.beside) for x in call.launches if not x.is_empty
            ),
            call.workspace,
            tuple(p.bytes.start for p in call.temporaries),
            tuple(call.numbers.values()),
        )
        if len(self._ready) >= REMEMBERED:
            self._ready.clear()
        self._ready[key] = ready
        return ready

    def _launch(self, launching: Launching, names: Sequence[str], beside: bool) -> Launch:
        """Launches a kernel; its values of a call are packed into one buffer, which is allocated once.

        beside: whether the next kernel leaves it room on multiprocessors
        """
        function, shape = self.functions[launching.kernel.name], launching.launch
        if shape.shared_bytes > STATIC_SHARED_LIMIT:
            self.driver.allow_shared(function, shape.shared_bytes)
        if beside:
            self.driver.share_all(function)
        maps = launching.kernel.function.maps
        fields = [field_of(variable.type) for variable in launching.arguments] + [MAP] * len(maps)
        offsets = self.driver.parameter_offsets(function, len(fields)) or natural_offsets(fields)
        layout = packer(fields, offsets)
        buffer = ctypes.create_string_buffer(layout.size)
        early = any(isinstance(c, i.AwaitPreviousGrid) for c in i.commands(launching.kernel.function.body))
        go = self.driver.launcher(function, shape.shared_bytes, buffer, early=early)
        grid, block, pack, lock = shape.grid_at({}), shape.block, layout.pack_into, Lock()
        picked = [names.index(variable.name) for variable in launching.arguments]
        everything = picked == list(range(len(names))) and not maps
        encoded: dict[tuple[int, int], bytes] = {}

        def tensor_map(number: int, values: Sequence[Any]) -> bytes:
            """The map of an array at its current address."""
            address = values[names.index(maps[number].buffer)]
            if (number, address) not in encoded:
                if len(encoded) >= REMEMBERED:
                    encoded.clear()
                encode_tiled = self.driver.library.cuTensorMapEncodeTiled
                encoded[number, address] = bytes(encode(maps[number].map.at({}), address, encode_tiled))
            return encoded[number, address]

        def launch(values: Sequence[Any], stream: int) -> None:
            given = values if everything else [values[position] for position in picked]
            if maps:
                given = [*given, *(tensor_map(number, values) for number in range(len(maps)))]
            with lock:  # threads share the buffer; the driver copies it before it returns
                pack(buffer, 0, *given)
                go(grid, block, stream)

        return launch

    # --- at each call ---------------------------------------------------------------------------------

    def _check_addresses(self, checked: Plan, values: Sequence[Any]) -> None:
        for position, alignment in checked.aligned:
            if values[position] % alignment:
                raise misaligned(checked.parameters[position].part, values[position], alignment)
        for result, size, others in checked.apart:
            start = values[result]
            for other, extent in others:
                if start < values[other] + extent and values[other] < start + size:
                    raise overlapping(checked.parameters[result].part, checked.parameters[other].part)
        for position in checked.unplaced:
            if values[position] not in self._here:
                self._check_device(checked, position, values[position])

    def _check_device(self, checked: Plan, position: int, address: int) -> None:
        device = self.driver.device_of(address)
        if device != self.driver.device:
            raise wrong_device(checked.parameters[position].part, device, self.driver.device)
        if len(self._here) >= REMEMBERED:
            self._here.clear()
        self._here.add(address)

    def _go(self, ready: Ready, arguments: Sequence[Any], values: list[Any], stream: int) -> None:
        for position, family in ready.plan.produced:
            source = family.produced_on(arguments[position])
            if source is not None and not same(source, stream):
                self.driver.order(source, stream)
        for position, number in ready.plan.numbers:
            values[position] = number(arguments[position])
        if ready.workspace:
            base = self._workspace(ready.workspace, stream)
            values += [base + offset for offset in ready.offsets]
        values += ready.numbers
        for launch in ready.launches:
            launch(values, stream)

    def _workspace(self, size: int, stream: int) -> int:
        """Memory for temporaries; each stream has its own, so calls on different streams may overlap.

        Each captured graph on a stream has its own, too: the graph may run on any stream, at any time.
        """
        owned = self._workspaces.setdefault((stream, self.driver.recording(stream)), [])
        if not owned or owned[-1][0] < size:
            # smaller allocations are kept, because captured calls use them
            with self.driver.beside_recordings():
                owned.append((size, driver().mem_alloc(size)))
        return int(owned[-1][1])

    def _through_host(self, ready: Ready, arguments: Sequence[Any], values: list[Any], stream: int) -> None:
        """For NumPy arrays: copies to the GPU, launches, waits, and copies back."""
        cuda = driver()
        for position in ready.plan.host:
            if not ready.plan.parameters[position].written:
                without_loss(ready.plan.parameters[position].part, arguments[position])
        copies = {position: cuda.to_device(as_bytes(arguments[position])) for position in ready.plan.host}
        for position, copy in copies.items():
            values[position] = int(copy)
        if stream:  # the copies were made on another stream
            cuda.Context.synchronize()
        self._go(ready, arguments, values, stream)
        cuda.Context.synchronize()
        for position, copy in copies.items():
            if ready.plan.parameters[position].written:
                cuda.memcpy_dtoh(as_bytes(arguments[position]), copy)

    # --- what the kernels use of a multiprocessor -----------------------------------------------------

    @property
    def registers(self) -> int:
        """Registers per thread, the maximum over the kernels."""
        return self._most(libcuda.CU_FUNC_ATTRIBUTE_NUM_REGS)

    @property
    def local_bytes(self) -> int:
        """Bytes of local memory per thread, for arrays and spills, the maximum over the kernels."""
        return self._most(libcuda.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)

    def _most(self, attribute: int) -> int:
        return max(self.driver.attribute(function, attribute) for function in self.functions.values())


def field_of(type_: Data) -> Field:
    """How a kernel's parameter is passed: a pointer, or a number; an index is an int."""
    if isinstance(type_, Array | Vector):
        return POINTER
    return Field.of(CODES[dtype_of(type_).name]) if isinstance(type_, Scalar) else Field.of("i")


def as_bytes(array: Any) -> Any:
    """The array's memory: pycuda cannot copy arrays of types that NumPy does not know (bf16)."""
    return array.reshape(-1).view("uint8")


def load(program: Kernel | HostProgram, target: str | None = None) -> Loaded:
    """Compiles a program for the current GPU, and loads it. R0822 without a GPU."""
    there = libcuda.primary()
    kernels = program.kernels if isinstance(program, HostProgram) else (program,)
    cubins = [compile_cubin(k.source, target or device_target()).read_bytes() for k in kernels]
    return Loaded(program, there, cubins)


def launch(program: Kernel | HostProgram, arguments: Sequence[Any]) -> None:
    """Runs a program on the GPU; `arguments` are the result buffers, written in place, and the inputs."""
    load(program)(*arguments)
    driver().Context.synchronize()
