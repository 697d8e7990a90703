"""Printed kernels to machine code, by NVRTC (through cuda-bindings) or nvcc; no GPU is needed.

Results are cached on disk by content: text, target, flags, headers, compiler.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from codegen.cache import cached
from codegen.runtime.refusals import REFUSED, refuse
from rise.errors import CompilationError

HEADERS = Path(__file__).parent.parent / "cuda" / "device"
INSTALL_HINT = "install the extra: pip install 'rise-lang[cuda]', or a CUDA toolkit with nvcc"
FLAGS = ("--std=c++17", "--ptxas-options=-v")
ENTRY = "Compiling entry function"  # with which the report of a kernel begins
CACHING = (12, 9)  # from this version NVRTC has its own cache, whose results come without a report
SHORT = (13, 1)  # from this version NVRTC computes addresses in shared memory in 32 bits, as nvcc does
RELEASE = re.compile(r"release (\d+)\.(\d+)")  # in what nvcc says of itself
CUDA_HEADERS = ("cuda_fp16.h", "cuda_bf16.h", "mma.h", "crt/mma.h")


@dataclass(frozen=True)
class Compiler:
    """Makes (code, the compiler's report) from (text, target, "cubin" or "ptx").

    version: name and version, as a part of the key in the cache
    """

    version: str
    make: Callable[[str, str, str], tuple[bytes, str]]


def compile_cubin(source: str, target: str = "sm_90a", *, ptx: bool = False) -> Path:
    """Machine code (or PTX) for a printed kernel, from the cache if it has been compiled before.

    target: sm_75, sm_80, sm_86, sm_89, sm_90, sm_90a, …
    Raises CompilationError R0820 without a compiler, R0821 with the compiler's message, R0851 and R0852 for
    remarks about which no kernel may be run (`refusals`).
    """
    kind = "ptx" if ptx else "cubin"
    used = compiler()
    key = _key(source, target, used.version, kind)

    def build(path: Path) -> None:
        code, report = used.make(source, target, kind)
        refuse(report)
        if not ptx and ENTRY not in report:
            raise CompilationError("R0821", f"{used.version} reports nothing about the kernels it compiled")
        path.write_bytes(code)
        if not ptx:
            cached([*key, "report"], ".txt", lambda beside: _write(beside, report))

    return cached(key, f".{kind}", build)


def compiler_report(source: str, target: str = "sm_90a") -> str:
    """The compiler's report on a kernel: registers, stack, spills. Raises the same errors."""
    used = compiler()
    key = _key(source, target, used.version, "cubin")
    compile_cubin(source, target)  # leaves the report in the cache
    found = cached([*key, "report"], ".txt", lambda path: _write(path, used.make(source, target, "cubin")[1]))
    return found.read_text(encoding="utf-8")


def can_compile() -> bool:
    return (nvrtc_bindings() is not None and bool(include_directories())) or nvcc() is not None


def compiler() -> Compiler:
    """NVRTC if it and CUDA's headers are installed, else nvcc. R0820 without either.

    NVRTC before 13.1 computes addresses in shared memory in 64 bits, which takes up to a fifth more
    instructions. An nvcc that is not older replaces it.
    """
    bindings = nvrtc_bindings() if include_directories() else None
    command = nvcc() if bindings is None else _replacement(bindings)
    if command is not None:
        return Compiler(_nvcc_version(command), lambda *given: _by_nvcc(command, *given))
    if bindings is not None:
        version = f"nvrtc {bindings.nvrtcVersion()} {_headers_digest(tuple(include_directories()))}"
        return Compiler(version, lambda *given: _by_nvrtc(bindings, *given))
    raise CompilationError("R0820", "no CUDA compiler found: neither NVRTC nor nvcc", hint=INSTALL_HINT)


def _key(source: str, target: str, version: str, kind: str) -> list[str]:
    """Everything that the result depends on."""
    headers = [path.read_text(encoding="utf-8") for path in sorted(HEADERS.rglob("*.cuh"))]
    return [source, *headers, target, kind, *FLAGS, version, *(part for _, part, _ in REFUSED)]


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


# --- what is installed --------------------------------------------------------------------------------


@cache
def nvrtc_bindings() -> Any:
    """The NVRTC bindings, if they and the library are installed."""
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except Exception:  # noqa: BLE001  # missing package, missing library: each has its own exception
        return None
    return nvrtc


def nvcc() -> str | None:
    """The nvcc of CUDA_HOME, of the path, or of the usual place."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    candidates = [str(Path(home) / "bin" / "nvcc") for home in homes] + [
        "nvcc",
        "/usr/local/cuda/bin/nvcc",
    ]
    return next((found for c in candidates if (found := shutil.which(c))), None)


def include_directories() -> list[Path]:
    """The directories of CUDA's own headers: of the toolkit, or of the packages that pip installs."""
    spec = find_spec("nvidia")
    packages = [Path(p) for p in (spec.submodule_search_locations or [])] if spec else []
    roots = [root for package in packages for root in sorted(package.glob("*/include"))]
    roots += [Path(os.environ[n]) / "include" for n in ("CUDA_HOME", "CUDA_PATH") if n in os.environ]
    roots.append(Path("/usr/local/cuda/include"))
    return [root for root in roots if (root / "mma.h").is_file() or (root / "cuda_fp16.h").is_file()]


@cache
def _headers_digest(directories: tuple[Path, ...]) -> str:
    """A digest of CUDA's headers that kernels include, which NVRTC's version does not determine."""
    state = hashlib.sha256()
    for directory in directories:
        for name in CUDA_HEADERS:
            if (directory / name).is_file():
                state.update((directory / name).read_bytes())
    return state.hexdigest()


@cache
def _nvcc_version(command: str) -> str:
    return subprocess.run([command, "--version"], capture_output=True, text=True, check=False).stdout


def _replacement(nvrtc: Any) -> str | None:
    """The nvcc to use instead of an old NVRTC: it must be as new, and it needs a C++ compiler."""
    _, *version = nvrtc.nvrtcVersion()
    command = nvcc() if tuple(version) < SHORT and shutil.which("g++") is not None else None
    release = RELEASE.search(_nvcc_version(command)) if command is not None else None
    is_as_new = release is not None and tuple(version) <= tuple(map(int, release.groups()))
    return command if is_as_new else None


# --- nvcc and NVRTC -----------------------------------------------------------------------------------


def _by_nvcc(command: str, source: str, target: str, kind: str) -> tuple[bytes, str]:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="rise-nvcc-") as directory:
        text, made = Path(directory, "kernel.cu"), Path(directory, f"kernel.{kind}")
        text.write_text(source, encoding="utf-8")
        options = [*FLAGS, f"-arch={target}", "-I", str(HEADERS), f"-{kind}"]
        result = subprocess.run(
            [command, *options, "-o", str(made), str(text)], capture_output=True, text=True, check=False
        )
        if result.returncode:
            raise CompilationError("R0821", f"nvcc rejects the kernel:\n{result.stderr.strip()}")
        return made.read_bytes() if made.is_file() else b"", result.stderr


def _written(size: int) -> bytes:
    """A buffer for NVRTC. Python shares bytes objects of length 1, so it has at least 2 bytes."""
    return bytes(max(size, 2))


def _by_nvrtc(nvrtc: Any, source: str, target: str, kind: str) -> tuple[bytes, str]:
    program = None

    def checked(result: tuple[Any, ...]) -> Any:
        status, *values = result
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompilationError("R0821", f"NVRTC rejects the kernel: {status.name}\n{report()}")
        return values[0] if values else None

    def report() -> str:
        if program is None:
            return ""
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        text = _written(size)
        nvrtc.nvrtcGetProgramLog(program, text)
        return text.decode(errors="replace").strip("\0 \n")

    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
    # PTX is for a virtual architecture, and ptxas does not process it
    virtual = kind == "ptx"
    options = [f for f in FLAGS if not (virtual and "ptxas" in f)]
    options.append(f"--gpu-architecture={re.sub('^sm_', 'compute_', target) if virtual else target}")
    options += [f"--include-path={directory}" for directory in (HEADERS, *include_directories())]
    _, *version = nvrtc.nvrtcVersion()
    if tuple(version) >= CACHING:
        options.append("--no-cache")
    encoded = [option.encode() for option in options]
    try:
        checked(nvrtc.nvrtcCompileProgram(program, len(encoded), encoded))
        name = kind.upper()
        code = _written(checked(getattr(nvrtc, f"nvrtcGet{name}Size")(program)))
        checked(getattr(nvrtc, f"nvrtcGet{name}")(program, code))
        return code, report()
    finally:
        nvrtc.nvrtcDestroyProgram(program)
