"""Compiling printed kernels for a GPU, and running them through pycuda.

pycuda is imported here only, and late: importing this module needs neither GPU, driver nor toolkit.
Compiling needs NVRTC (through cuda-bindings) or nvcc, and CUDA's headers, but no GPU.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codegen.cache import cached
from rise.errors import CompilationError, LaunchError
from rise.types import Array, Data, Scalar

if TYPE_CHECKING:
    from codegen.pipeline import Kernel

HEADERS = Path(__file__).parent / "device"
STATIC_SHARED_LIMIT = 48 * 1024
INSTALL_HINT = "install the extra: pip install 'rise-lang[cuda]', or a CUDA toolkit with nvcc"


# --- compiling --------------------------------------------------------------------------------------------


def nvcc() -> str | None:
    """The nvcc of CUDA_HOME, of the path, or of the usual place."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    candidates = [str(Path(home) / "bin" / "nvcc") for home in homes] + [
        "nvcc",
        "/usr/local/cuda/bin/nvcc",
    ]
    return next((found for c in candidates if (found := shutil.which(c))), None)


def include_directories() -> list[Path]:
    """Where CUDA's own headers are: the toolkit, or the packages that pip installs."""
    spec = find_spec("nvidia")
    packages = [Path(p) for p in (spec.submodule_search_locations or [])] if spec else []
    roots = [root for package in packages for root in sorted(package.glob("*/include"))]
    roots += [Path(os.environ[n]) / "include" for n in ("CUDA_HOME", "CUDA_PATH") if n in os.environ]
    roots.append(Path("/usr/local/cuda/include"))
    return [root for root in roots if (root / "mma.h").is_file() or (root / "cuda_fp16.h").is_file()]


@cache
def _nvrtc() -> Any:
    """The NVRTC bindings, where they and the library are there."""
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except Exception:  # noqa: BLE001  # missing package, missing library: each has its own exception
        return None
    return nvrtc


def can_compile() -> bool:
    return (_nvrtc() is not None and bool(include_directories())) or nvcc() is not None


def compile_cubin(source: str, target: str = "sm_90a", *, ptx: bool = False) -> Path:
    """Machine code (or PTX) for a printed kernel, from the cache where it was compiled before.

    target: sm_75, sm_80, sm_86, sm_89, sm_90, sm_90a, …
    Raises CompilationError R0803 without a compiler, R0804 with the compiler's message.
    """
    header = (HEADERS / "rise.cuh").read_bytes()
    nvrtc = _nvrtc() if include_directories() else None
    if nvrtc is None and nvcc() is None:
        raise CompilationError("R0820", "no CUDA compiler found: neither NVRTC nor nvcc", hint=INSTALL_HINT)
    compiler = f"nvrtc {nvrtc.nvrtcVersion()}" if nvrtc is not None else _nvcc_version()
    kind = "ptx" if ptx else "cubin"

    def build(path: Path) -> None:
        if nvrtc is not None:
            path.write_bytes(_compile_nvrtc(nvrtc, source, target, ptx))
        else:
            _compile_nvcc(source, target, ptx, path)

    return cached([source, header, target, kind, compiler], f".{kind}", build)


@cache
def _nvcc_version() -> str:
    return subprocess.run([nvcc() or "nvcc", "--version"], capture_output=True, text=True, check=False).stdout


def _compile_nvcc(source: str, target: str, ptx: bool, path: Path) -> None:
    text = path.with_suffix(".cu")
    text.write_text(source, encoding="utf-8")
    command = [nvcc() or "nvcc", "-std=c++17", f"-arch={target}", "-I", str(HEADERS)]
    command += ["-ptx" if ptx else "-cubin", "-o", str(path), str(text)]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        text.unlink(missing_ok=True)
    if result.returncode:
        raise CompilationError("R0821", f"nvcc rejects the kernel:\n{result.stderr.strip()}")


def _compile_nvrtc(nvrtc: Any, source: str, target: str, ptx: bool) -> bytes:
    def checked(result: tuple[Any, ...]) -> Any:
        status, *values = result
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompilationError("R0821", f"NVRTC rejects the kernel: {status.name}\n{log()}")
        return values[0] if values else None

    program = None

    def log() -> str:
        if program is None:
            return ""
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        text = b" " * size
        nvrtc.nvrtcGetProgramLog(program, text)
        return text.decode(errors="replace").strip("\0 \n")

    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
    architecture = target.replace("sm_", "compute_") if ptx else target
    options = [f"--gpu-architecture={architecture}", "--std=c++17", f"--include-path={HEADERS}"]
    options += [f"--include-path={directory}" for directory in include_directories()]
    encoded = [option.encode() for option in options]
    try:
        checked(nvrtc.nvrtcCompileProgram(program, len(encoded), encoded))
        kind = "PTX" if ptx else "CUBIN"
        code: bytes = b" " * checked(getattr(nvrtc, f"nvrtcGet{kind}Size")(program))
        checked(getattr(nvrtc, f"nvrtcGet{kind}")(program, code))
        return code
    finally:
        nvrtc.nvrtcDestroyProgram(program)


# --- running ----------------------------------------------------------------------------------------------


@cache
def _driver() -> Any:
    """pycuda's driver module with the primary context of the first GPU, or None."""
    try:
        import pycuda.driver as driver

        driver.init()
        if driver.Device.count() == 0:
            return None
        import pycuda.autoprimaryctx  # noqa: F401  # makes the context
    except Exception:  # noqa: BLE001  # no package, no driver library, no device: each has its own exception
        return None
    return driver


def available() -> bool:
    """Whether kernels can run on a GPU here."""
    if "pycuda" not in sys.modules and find_spec("pycuda") is None:
        return False
    return _driver() is not None


def driver() -> Any:
    found = _driver()
    if found is None:
        raise LaunchError(
            "R0822", "no GPU to run on: pycuda, a driver and a device are needed", hint=INSTALL_HINT
        )
    return found


def device_target() -> str:
    """The target of the first GPU, with the features of its generation where there are any (sm_90a)."""
    driver()
    import pycuda.autoprimaryctx as context

    major, minor = context.device.compute_capability()
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


@dataclass(frozen=True)
class Loaded:
    """A kernel on the GPU. Call it with the output buffers and the inputs, in the kernel's order.

    Arrays are NumPy arrays (copied there and back), or anything with `__cuda_array_interface__`
    (pycuda, CuPy, torch; not copied). 16-bit floating-point scalars may be given as NumPy scalars.
    """

    kernel: Kernel
    function: Any = field(repr=False)
    module: Any = field(repr=False)

    def __call__(self, *arguments: Any, stream: Any = None) -> None:
        cuda = driver()
        parameters = [*self.kernel.function.outputs, *self.kernel.function.inputs]
        if len(arguments) != len(parameters):
            raise LaunchError("R0823", f"{len(parameters)} arguments are needed, {len(arguments)} were given")
        outputs = len(self.kernel.function.outputs)
        given: list[Any] = []
        back: list[tuple[Any, Any]] = []
        for position, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
            packed = _packed(parameter.name, parameter.type, argument, cuda)
            given.append(packed)
            if position < outputs and hasattr(packed, "free"):
                back.append((argument, packed))
        self.function(
            *given,
            block=self.kernel.launch.block,
            grid=self.kernel.launch.grid,
            shared=self.kernel.launch.shared_bytes,
            stream=stream,
        )
        for host, device in back:
            cuda.memcpy_dtoh(as_bytes(host), device)

    @property
    def registers(self) -> int:
        return int(self.function.num_regs)

    @property
    def local_bytes(self) -> int:
        """Bytes a thread spills to memory."""
        return int(self.function.local_size_bytes)


def _packed(name: str, type_: Data, argument: Any, cuda: Any) -> Any:
    """An argument as pycuda takes it."""
    import numpy as np

    from rise.interpret import dtype_of

    if not isinstance(type_, Array):
        dtype = dtype_of(type_) if isinstance(type_, Scalar) else np.dtype(np.int32)
        value = np.asarray(argument).astype(dtype)
        # pycuda packs no 16-bit floating-point numbers: their bits are passed
        return value.view(np.uint16)[()] if dtype.itemsize == 2 else value[()]
    if isinstance(argument, np.ndarray):
        if not argument.flags.c_contiguous:
            raise LaunchError("R0824", f"`{name}` is not contiguous", hint="np.ascontiguousarray(…)")
        return cuda.to_device(as_bytes(argument))
    interface = getattr(argument, "__cuda_array_interface__", None)
    if interface is None:
        raise LaunchError("R0825", f"`{name}` is no array of numbers on the host or on the GPU")
    _check_interface(name, type_, interface)
    return np.uintp(interface["data"][0])


def as_bytes(array: Any) -> Any:
    """The array's memory: pycuda copies no arrays of types that NumPy does not know (bf16)."""
    import numpy as np

    return array.reshape(-1).view(np.uint8)


def _check_interface(name: str, type_: Data, interface: Any) -> None:
    """Shape and layout of an array on the GPU."""
    import numpy as np

    from rise.types import shape

    sizes, _ = shape(type_)
    wanted = tuple(size.value for size in sizes)
    if tuple(interface["shape"]) != wanted:
        raise LaunchError("R0826", f"`{name}` has the shape {tuple(interface['shape'])}, not {wanted}")
    step = np.dtype(interface["typestr"]).itemsize
    dense: list[int] = []
    for size in reversed(interface["shape"]):
        dense.insert(0, step)
        step *= size
    if interface.get("strides") not in (None, tuple(dense)):
        raise LaunchError("R0824", f"`{name}` is not contiguous")


def load(kernel: Kernel, target: str | None = None) -> Loaded:
    """Compiles a kernel for the GPU that is there, and loads it."""
    cuda = driver()
    cubin = compile_cubin(kernel.source, target or device_target())
    module = cuda.module_from_buffer(cubin.read_bytes())
    function = module.get_function(kernel.name)
    if kernel.launch.shared_bytes > STATIC_SHARED_LIMIT:
        attribute = cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        function.set_attribute(attribute, kernel.launch.shared_bytes)
    return Loaded(kernel, function, module)


def launch(kernel: Kernel, arguments: Sequence[Any]) -> None:
    """Runs a kernel on the GPU; `arguments` are the output buffers, written in place, and the inputs."""
    load(kernel)(*arguments)
    driver().Context.synchronize()
