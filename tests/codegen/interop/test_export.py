"""Exported folders: they build without Python, their test runs, and they launch as Python does."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import codegen
from codegen.emulation.compiling import compiler
from codegen.export import Example, export
from codegen.export.folder import FILES, embedded
from codegen.host.program import HostProgram
from codegen.pipeline import generate
from codegen.runtime import can_compile, loading
from codegen.runtime.arguments import parameters_of
from codegen.runtime.compiling import compile_cubin, include_directories, nvcc
from codegen.runtime.loading import MAP, field_of
from rise.check.compare import Tolerance
from rise.check.program import check_text, load
from rise.check.specialise import inputs_of, specialise
from rise.errors import UsageError
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from strategies.default import default
from tests.codegen.interop.fake_arrays import Interface
from tests.codegen.interop.fake_gpu import Gpu

ROOT = Path(__file__).parents[3]
needs_compilers = pytest.mark.skipif(
    compiler() is None or shutil.which("gcc") is None, reason="no C and C++ compilers"
)
# two kernels with a temporary between them; a number of 16 bits; a result of pairs
CENTRED = """def centred{n: Nat}(xs: n.f32, s: f16): n.(f32, i32) =
  let total = xs |> reduce(+, 0) |> toMem(Global) in xs |> map(x => (x - total + f32(s), i32(x)))"""
N = 37
GOAL = {"q": 1, "c": 1, "k": 1, "p": 1}


@cache
def centred() -> HostProgram:
    return codegen.compile(
        check_text(CENTRED)["centred"], default(), sizes={"n": N}, backend="emulate"
    ).program


@cache
def goal() -> HostProgram:
    """Clusters, tensor maps, more shared memory than a kernel has unasked; it starts early."""
    program = specialise(load(ROOT / "examples" / "hopper.rise")["goal"], GOAL)
    return codegen.compile(generate(data_flow(program), "goal"), backend="emulate").program


def example_of(term: Any, seed: int) -> Example:
    inputs = random_inputs(inputs_of(term), seed, exact=True)
    return Example(tuple(inputs), call(term, *inputs), Tolerance())


def exported(folder: Path, **options: Any) -> Path:
    term = specialise(check_text(CENTRED)["centred"], {"n": N})
    export(centred(), "centred", folder, "sm_80", example_of(term, 7), **options)
    return folder


def built(folder: Path, name: str) -> None:
    """The commands that the folder's README gives for the CPU."""
    text = (folder / "README.md").read_text()
    commands = [line.strip() for line in re.findall(r"^    (?:gcc.*-c|g\+\+).*$", text, re.MULTILINE)]
    assert len(commands) == 2 and name in commands[0]
    for command in commands:
        made = subprocess.run(command.split(), cwd=folder, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr


def ran(folder: Path, name: str) -> tuple[int, str]:
    done = subprocess.run([f"./{name}_test"], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


# --- in the emulator ------------------------------------------------------------------------------------


@needs_compilers
def test_the_test_of_a_folder_runs_in_the_emulator_and_notices_what_is_wrong(tmp_path: Path) -> None:
    folder = exported(tmp_path)
    built(folder, "centred")
    status, said = ran(folder, "centred")
    assert (status, said.count("equal in every element")) == (0, 2), said
    file = folder / "data" / "output_snd.bin"
    wrong = np.frombuffer(file.read_bytes(), np.int32).copy()
    wrong[5] += 1
    file.write_bytes(wrong.tobytes())
    status, said = ran(folder, "centred")
    assert status == 1 and "output_snd: WRONG, 1 of 37 elements, first at 5" in said
    file.write_bytes(wrong.tobytes()[:-1])
    assert ran(folder, "centred")[0] == 2


@needs_compilers
def test_tensor_maps_and_clusters_run_in_the_emulator(tmp_path: Path) -> None:
    term = specialise(load(ROOT / "examples" / "hopper.rise")["goal"], GOAL)
    export(goal(), "goal", tmp_path, "sm_90a", example_of(term, 3))
    built(tmp_path, "goal")
    assert ran(tmp_path, "goal") == (0, "output: agrees, equal in every element\n")


@pytest.mark.parametrize(("bits", "letter"), [(16, "e"), (16, "b")])
@needs_compilers
def test_elements_of_16_bits_are_read_as_numpy_does(tmp_path: Path, bits: int, letter: str) -> None:
    import ml_dtypes

    program = f"""#include "driver/check.h"
int main(void) {{
  for (int i = 0; i < 65536; i++) {{
    uint16_t bits = (uint16_t)i;
    double x = element('{letter}', &bits, 0);
    fwrite(&x, 8, 1, stdout);
  }}
}}
"""
    (tmp_path / "all.c").write_text(program)
    include = [f"-I{FILES}", f"-I{FILES / 'driver'}"]
    unused = ["-w", "-Wl,--unresolved-symbols=ignore-all", "-no-pie"]
    subprocess.run(["gcc", *include, *unused, "all.c", "-o", "all", "-lm"], cwd=tmp_path, check=True)
    found = np.frombuffer(subprocess.run([tmp_path / "all"], capture_output=True, check=True).stdout)
    dtype = {"e": np.dtype(np.float16), "b": np.dtype(ml_dtypes.bfloat16)}[letter]
    with np.errstate(invalid="ignore"):
        expected = np.arange(65536, dtype=np.uint16).view(dtype).astype(np.float64)
    assert np.array_equal(found, expected, equal_nan=True)


# --- what is passed -------------------------------------------------------------------------------------


class Recording(Gpu):
    """The driver of the Python launcher, which notes what the one of the exported launcher notes."""

    def __init__(self, program: HostProgram) -> None:
        super().__init__(program)
        self.calls: list[tuple[Any, ...]] = []

        def encode(map_: Any, kind: Any, rank: Any, address: Any, *further: Any) -> int:
            sizes, strides, box, steps, interleave, *rest = further
            shape = [*sizes, *strides[: rank.value - 1], *box, *steps]
            modes = [interleave.value, *(mode.value for mode in rest)]
            self.calls.append(("encode", kind.value, rank.value, address.value, *modes, *shape))
            ctypes.memset(map_, 0, MAP.size)
            ctypes.memmove(map_, ctypes.byref(address), 8)
            return 0

        def launch_early(config: Any, function: Any, _: Any, extra: Any) -> int:
            of = config._obj
            grid, block = ([getattr(of, f"{what}_{axis}") for axis in "xyz"] for what in ("grid", "block"))
            early = of.attributes[0]
            numbers = (*grid, *block, of.shared, of.stream or 0, early.id, early.value[0])
            return self.launched(function.value, numbers, extra)

        def attribute(function: Any, attribute: int, value: int) -> int:
            self.calls.append((self.name(function.value), attribute, value))
            return 0

        self.cuTensorMapEncodeTiled = encode
        self.cuLaunchKernelEx = launch_early
        self.cuFuncSetAttribute = attribute

    def name(self, function: int) -> str:
        return self.program.kernels[function - 101].name

    def _cuLaunchKernel(self, function: int, *rest: Any) -> int:  # noqa: N802
        return self.launched(function, (*rest[:8], 0, 0), rest[9])

    def launched(self, function: int, numbers: tuple[int, ...], extra: Any) -> int:
        size = ctypes.c_size_t.from_address(extra[3]).value
        packed, kernel = ctypes.string_at(extra[1], size), self.program.kernels[function - 101]
        values, end = [], 0
        for field in fields_of(kernel):
            start = -(-end // field.alignment) * field.alignment
            end = start + field.size
            values.append(packed[start:end])
        self.calls.append((kernel.name, *numbers, *values))
        return 0


def fields_of(kernel: Any) -> list[Any]:
    variables = (*kernel.function.outputs, *kernel.function.inputs)
    return [*(field_of(v.type) for v in variables), *[MAP] * len(kernel.function.maps)]


def calls_of_c(program: HostProgram, name: str, folder: Path, workspace: int, values: list[Any]) -> Any:
    """What the exported launcher asks of the driver; its arguments are ctypes numbers."""
    export(program, name, folder, "sm_90a")
    (folder / "code.c").write_text(embedded(b"machine code", name))
    stub = Path(__file__).with_name("driver_stub.c")
    options = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{FILES / 'driver'}", "-Wl,-Bsymbolic"]
    sources = [f"{name}.c", "code.c", str(stub)]
    subprocess.run(["gcc", *options, *sources, "-o", "launcher.so"], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "launcher.so"))
    calls: list[tuple[Any, ...]] = []
    kernels = {kernel.name: kernel for kernel in program.kernels}

    def told(what: bytes, numbers: Any, count: int, pointers: Any) -> None:
        found: list[Any] = [what.decode(), *numbers[:count]]
        if pointers:
            fields = fields_of(kernels[what.decode()])
            found += [ctypes.string_at(pointers[i], field.size) for i, field in enumerate(fields)]
        calls.append(tuple(found))

    kind = ctypes.CFUNCTYPE(
        None,
        ctypes.c_char_p,
        ctypes.POINTER(ctypes.c_longlong),
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_void_p),
    )
    kept = kind(told)
    ctypes.c_void_p.in_dll(library, "told").value = ctypes.cast(kept, ctypes.c_void_p).value
    ctypes.c_uint64.in_dll(library, "allocated").value = workspace
    handle = ctypes.c_void_p()
    assert library[f"{name}_load"](ctypes.byref(handle)) == 0
    status = library[f"{name}_launch"](handle, ctypes.c_void_p(5), *values)
    library[f"{name}_unload"](handle)
    return status, calls


@needs_compilers
@pytest.mark.parametrize("name", ["centred", "goal"])
def test_the_launcher_passes_what_python_passes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = {"centred": centred, "goal": goal}[name]()
    gpu = Recording(program)
    held: list[Any] = []

    def allocated(size: int) -> int:
        held.append(gpu.array(np.zeros(size, np.uint8)))
        return int(held[0].ctypes.data)

    monkeypatch.setattr(loading, "driver", lambda: SimpleNamespace(mem_alloc=allocated))
    parameters = parameters_of(program, program.at({}))
    given = [
        Interface(gpu.array(np.zeros(p.part.shape, p.part.dtype))) if p.array else np.float16(-1.5)
        for p in parameters
    ]
    gpu.load()(*given, stream=5)
    passed = [
        ctypes.c_uint64(x.memory.ctypes.data) if isinstance(x, Interface) else ctypes.c_uint16(0xBE00)
        for x in given
    ]
    workspace = int(held[0].ctypes.data) if held else 0
    status, calls = calls_of_c(program, name, tmp_path, workspace, passed)
    assert status == 0
    bytes_ = program.at({}).workspace
    assert [call for call in calls if call[0] == "allocate"] == ([("allocate", bytes_)] if bytes_ else [])
    rest = [call for call in calls if call[0] != "allocate"]
    assert sorted(rest, key=repr) == sorted(gpu.calls, key=repr)
    launches = [call[0] for call in rest if len(call) > 10 and call[0] != "encode"]
    assert launches == [kernel.name for kernel in program.kernels]


@needs_compilers
def test_an_array_that_is_not_aligned_is_refused(tmp_path: Path) -> None:
    values = [ctypes.c_uint64(address) for address in (1024, 2048, 4098)] + [ctypes.c_uint16(0)]
    status, calls = calls_of_c(centred(), "centred", tmp_path, 512, values)
    assert status == 716  # CUDA_ERROR_MISALIGNED_ADDRESS
    assert [call[0] for call in calls] == ["allocate"]


def test_run_time_sizes_are_refused(tmp_path: Path) -> None:
    left = codegen.compile(
        check_text(CENTRED)["centred"], default(), runtime=["n"], backend="emulate"
    ).program
    with pytest.raises(UsageError, match="fixed sizes") as refused:
        export(left, "centred", tmp_path)
    assert refused.value.code == "R0405" and not list(tmp_path.iterdir())


# --- with CUDA's own headers and compilers ----------------------------------------------------------------

DRIVER = """#include <cuda.h>
#include <stdio.h>
#define SHOW(x) printf(#x " %lld\\n", (long long)(x));
int main(void) {
"""


@pytest.mark.skipif(
    not any((d / "cuda.h").is_file() for d in include_directories()) or shutil.which("gcc") is None,
    reason="no cuda.h",
)
def test_our_declarations_of_the_driver_are_cudas(tmp_path: Path) -> None:
    """Numbers, sizes and offsets; and the launcher compiles with either header."""
    ours = (FILES / "driver" / "cuda.h").read_text()
    numbers = re.findall(r"\b(CU\w+) = \d+", ours)
    config = ["gridDimX", "blockDimZ", "sharedMemBytes", "hStream", "attrs", "numAttrs"]
    shown = [*numbers, *(f"offsetof(CUlaunchConfig, {field})" for field in config)]
    shown += ["offsetof(CUlaunchAttribute, value)"]
    shown += [f"sizeof({t})" for t in ("CUlaunchConfig", "CUlaunchAttribute", "CUtensorMap", "CUdeviceptr")]
    shown += ["_Alignof(CUtensorMap) <= 128"]  # 64 in CUDA 12
    text = "#include <stddef.h>\n" + DRIVER + "".join(f"  SHOW({each})\n" for each in shown) + "}\n"
    (tmp_path / "show.c").write_text(text)
    real = next(d for d in include_directories() if (d / "cuda.h").is_file())
    found = []
    for number, folder in enumerate((FILES / "driver", real)):
        out = tmp_path / f"show{number}"
        subprocess.run(["gcc", f"-I{folder}", str(tmp_path / "show.c"), "-o", str(out)], check=True)
        found.append(subprocess.run([out], capture_output=True, text=True, check=True).stdout)
    assert found[0] == found[1] and len(found[0].splitlines()) == len(shown) > 20
    renamed = re.findall(r"#define (cu\w+) (cu\w+)", ours)
    theirs = (real / "cuda.h").read_text()
    wrapped = r"#define\s+{}\s+(?:__CUDA_API_PTDS\()?{}\b"
    assert all(re.search(wrapped.format(*names), theirs) for names in renamed) and len(renamed) > 3
    export(goal(), "goal", tmp_path / "goal", "sm_90a")
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{real}"]
    subprocess.run(["gcc", *strict, str(tmp_path / "goal" / "goal.c")], check=True)


@pytest.mark.skipif(not can_compile(), reason="neither NVRTC nor nvcc is here")
def test_machine_code_is_embedded(tmp_path: Path) -> None:
    exported(tmp_path, cubin=True)
    text = (tmp_path / "centred_code.c").read_text()
    code = bytes(map(int, re.findall(r"\d+(?=[,}])", text)))
    source = (tmp_path / "centred.cu").read_text()
    assert code == compile_cubin(source, "sm_80").read_bytes() and code[:4] == b"\x7fELF"
    exported(tmp_path)
    assert not (tmp_path / "centred_code.c").exists(), "a build would take the code of an earlier export"


@pytest.mark.skipif(nvcc() is None or shutil.which("cmake") is None, reason="no nvcc or no CMake")
def test_cmake_builds_the_library_with_nvcc(tmp_path: Path) -> None:
    folder = exported(tmp_path)
    for command in (["-B", "build"], ["--build", "build", "--target", "centred"]):
        made = subprocess.run(["cmake", *command], cwd=folder, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
    text = (folder / "build" / "centred_code.c").read_text()
    assert text.startswith("_Alignas(64) const unsigned char centred_code[] = {0x7f,0x45,0x4c,0x46,")
