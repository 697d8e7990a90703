"""Compiling for GPUs, on machines without one; and what the runtime says where there is none."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

import codegen
from codegen import runtime
from codegen.ir.kernel import Kernel
from codegen.pipeline import generate
from codegen.runtime import compiling, resources
from codegen.runtime.resources import parse
from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.errors import CompilationError, LaunchError, UsageError
from rise.expr import inline
from rise.normal import data_flow
from strategies.matmul.tensor_core import tensor_core
from tests.support.programs import succeeded

ROOT = Path(__file__).parents[2]
TARGETS = ("sm_75", "sm_80", "sm_90a")
needs_compiler = pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
needs_no_gpu = pytest.mark.skipif(runtime.available(), reason="there is a GPU")
BAD = 'extern "C" __global__ void f(float* x) { x[0] = undeclared_name; }\n'
COPY = 'extern "C" __global__ void f(float* x) { x[0] = 1.0f; }\n'


@cache
def kernel(name: str) -> Kernel:
    text = (ROOT / "examples" / "gemm.rise").read_text(encoding="utf-8")
    term = data_flow(inline(specialise(check_text(text)[name], {"m": 64, "n": 64, "k": 32})))
    return generate(succeeded(tensor_core(block=(32, 32, 32), warp=(16, 16))(term)).term, name)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RISE_CACHE_DIR", str(tmp_path))
    return tmp_path


def in_another_process(text: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", text],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output_of(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return out.strip()


def test_importing_needs_no_gpu_library() -> None:
    loaded = "[m for m in sys.modules if m.split('.')[0] in ('pycuda', 'cuda')]"
    text = f"import sys, codegen.runtime; print({loaded})"
    assert output_of(in_another_process(text)) == "[]"


@needs_no_gpu
def test_without_a_gpu_running_is_refused_and_says_what_is_missing() -> None:
    assert runtime.available() is False
    with pytest.raises(LaunchError) as refused:
        runtime.driver()
    assert refused.value.code == "R0822"
    assert refused.value.hint == runtime.INSTALL_HINT


def test_without_a_compiler_compiling_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "nvrtc_bindings", lambda: None)
    monkeypatch.setattr(compiling, "nvcc", lambda: None)
    assert runtime.can_compile() is False
    with pytest.raises(CompilationError) as refused:
        runtime.compile_cubin(COPY)
    assert (refused.value.code, refused.value.hint) == ("R0820", runtime.INSTALL_HINT)


@pytest.mark.parametrize(
    ("nvrtc", "nvcc", "host", "used"),
    [
        ((13, 1), "13.1", "g++", "nvrtc"),
        ((13, 0), "13.0", "g++", "nvcc"),
        ((13, 0), "13.4", "g++", "nvcc"),
        ((13, 0), "12.9", "g++", "nvrtc"),
        ((12, 10), "12.9", "g++", "nvrtc"),
        ((13, 0), "13.0", None, "nvrtc"),
        ((13, 0), None, "g++", "nvrtc"),
        (None, "11.5", None, "nvcc"),
    ],
)
def test_nvcc_goes_before_an_nvrtc_with_long_addresses_if_it_is_as_new_and_works(
    nvrtc: tuple[int, int] | None,
    nvcc: str | None,
    host: str | None,
    used: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bindings = SimpleNamespace(nvrtcVersion=lambda: (0, *(nvrtc or ()))) if nvrtc else None
    monkeypatch.setattr(compiling, "nvrtc_bindings", lambda: bindings)
    monkeypatch.setattr(compiling, "include_directories", lambda: [Path("include")])
    monkeypatch.setattr(compiling, "nvcc", lambda: nvcc and "nvcc")
    monkeypatch.setattr(compiling, "_nvcc_version", lambda _: f"nvcc: Cuda tools, release {nvcc}, V{nvcc}.7")
    monkeypatch.setattr(shutil, "which", lambda _: host)
    assert compiling.compiler().version.startswith(used)


@needs_compiler
@pytest.mark.parametrize("name", ["gemm", "gemm_f16"])
def test_kernels_compile_for_every_target(name: str) -> None:
    """One test for all targets, since the derivation takes seconds."""
    for target in TARGETS:
        cubin = runtime.compile_cubin(kernel(name).source, target).read_bytes()
        assert cubin[:4] == b"\x7fELF"
        assert name.encode() in cubin
    ptx = runtime.compile_cubin(kernel(name).source, "sm_80", ptx=True).read_text()
    assert ".target sm_80" in ptx
    assert f".entry {name}_kernel(" in ptx
    for instruction in ("load.a.sync", "load.b.sync", "mma.sync", "store.d.sync"):
        assert f"wmma.{instruction}.aligned" in ptx
    assert (".shared" in ptx) == (kernel(name).launch.shared_bytes > 0)


@needs_compiler
def test_a_kernel_without_fragments_compiles() -> None:
    term = data_flow(check_text("def f = fun((xs: 99.bf16) => xs |> mapGlobal(fun(x => exp(x))))")["f"].body)
    for target in TARGETS:
        assert runtime.compile_cubin(generate(term, "f").source, target).stat().st_size > 0


@needs_compiler
def test_the_compilers_message_is_shown(own_cache: Path) -> None:
    with pytest.raises(CompilationError) as refused:
        runtime.compile_cubin(BAD, "sm_80")
    assert refused.value.code == "R0821"
    assert "undeclared_name" in refused.value.message
    assert list(own_cache.iterdir()) == [], "a failure is not cached"


@needs_compiler
def test_a_compiler_that_reports_nothing_is_refused(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nobody would know of spills, and of products that it serializes."""
    silent = compiling.Compiler("silent 1.0", lambda *_: (b"\x7fELF", ""))
    monkeypatch.setattr(compiling, "compiler", lambda: silent)
    with pytest.raises(CompilationError, match=r"silent 1\.0 reports nothing") as refused:
        resources(COPY, "sm_80")
    assert refused.value.code == "R0821" and list(own_cache.iterdir()) == []


@pytest.mark.parametrize(("version", "asked"), [((12, 8), False), ((12, 9), True), ((13, 0), True)])
def test_nvrtc_does_not_answer_from_its_own_cache(version: tuple[int, int], asked: bool) -> None:
    given: list[bytes] = []

    def compiled(_: object, __: int, options: list[bytes]) -> tuple[int]:
        given.extend(options)
        return (0,)

    silent = (
        "CreateProgram",
        "GetProgramLogSize",
        "GetProgramLog",
        "GetCUBINSize",
        "GetCUBIN",
        "DestroyProgram",
    )
    bindings = SimpleNamespace(
        nvrtcResult=SimpleNamespace(NVRTC_SUCCESS=0),
        nvrtcVersion=lambda: (0, *version),
        nvrtcCompileProgram=compiled,
        **{f"nvrtc{name}": lambda *_: (0, 2) for name in silent},
    )
    compiling._by_nvrtc(bindings, COPY, "sm_80", "cubin")
    assert (b"--no-cache" in given) == asked


@needs_compiler
def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(CompilationError) as refused:
        runtime.compile_cubin(COPY, "sm_1")
    assert refused.value.code == "R0821"


@needs_compiler
def test_what_is_in_the_cache_is_not_compiled_again(own_cache: Path) -> None:
    first = runtime.compile_cubin(COPY, "sm_80")
    written = first.stat().st_mtime_ns
    assert runtime.compile_cubin(COPY, "sm_80") == first
    assert first.stat().st_mtime_ns == written
    assert first.parent == own_cache


@needs_compiler
def test_every_target_and_kind_has_an_entry_of_its_own(own_cache: Path) -> None:
    entries = {runtime.compile_cubin(COPY, target) for target in TARGETS}
    entries.add(runtime.compile_cubin(COPY, "sm_80", ptx=True))
    entries.add(runtime.compile_cubin(COPY + "\n", "sm_80"))
    assert len(entries) == 5
    # and beside each cubin the compiler's report
    found = {path for path in own_cache.iterdir() if path.suffix != ".sha256"}
    reports = {path for path in found if path.suffix == ".txt"}
    assert (len(reports), found - reports) == (4, entries)


@needs_compiler
def test_the_headers_the_flags_and_the_compiler_are_part_of_the_key(
    own_cache: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = tmp_path_factory.mktemp("device")
    shutil.copytree(compiling.HEADERS, headers, dirs_exist_ok=True)
    monkeypatch.setattr(compiling, "HEADERS", headers)
    found = [runtime.compile_cubin(COPY, "sm_80")]
    (headers / "rise.cuh").write_text((headers / "rise.cuh").read_text() + "// changed\n")
    found.append(runtime.compile_cubin(COPY, "sm_80"))
    monkeypatch.setattr(compiling, "FLAGS", (*compiling.FLAGS, "--use_fast_math"))
    found.append(runtime.compile_cubin(COPY, "sm_80"))
    made = compiling.compiler().make
    monkeypatch.setattr(compiling, "compiler", lambda: compiling.Compiler("another version", made))
    found.append(runtime.compile_cubin(COPY, "sm_80"))
    assert len(set(found)) == 4


@needs_compiler
def test_processes_compile_at_once(own_cache: Path) -> None:
    text = f"from codegen import runtime; print(runtime.compile_cubin({COPY!r}, 'sm_80'))"
    both = [in_another_process(text) for _ in range(2)]
    paths = {output_of(process) for process in both}
    assert len(paths) == 1
    assert [str(entry) for entry in own_cache.iterdir() if entry.suffix not in (".txt", ".sha256")] == sorted(
        paths
    )
    assert not list(own_cache.glob(".partial-*"))
    assert Path(paths.pop()).read_bytes()[:4] == b"\x7fELF"


# --- registers, spills, shared memory -----------------------------------------------------------------

# 200 values a thread, all alive at once, and at most 64 registers: they do not fit
SPILLING = """extern "C" __global__ void __launch_bounds__(1024) f(float* x) {
  __shared__ float shared[77];
  float v[200];
  #pragma unroll
  for (int i = 0; i < 200; i += 1) v[i] = x[i * 1024 + threadIdx.x];
  shared[threadIdx.x % 77] = v[3];
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < 200; i += 1) x[i * 1024 + threadIdx.x] = v[199 - i] * shared[i % 77];
}
"""


@needs_compiler
def test_the_compiler_reports_what_a_kernel_takes() -> None:
    for target in TARGETS:
        found = resources(SPILLING + COPY.replace("f(", "g("), target)
        spilling, copying = found["f"], found["g"]
        assert (spilling.target, spilling.registers, spilling.shared) == (target, 64, 308)
        assert min(spilling.spill_stores, spilling.spill_loads, spilling.stack) >= 4 * (200 - 64)
        assert copying.registers < 16
        assert (copying.stack, copying.spill_stores, copying.spill_loads, copying.shared) == (0, 0, 0, 0)


@needs_compiler
def test_a_report_is_read_again_without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    first = resources(COPY, "sm_80")
    used = compiling.compiler()

    def broken(text: str, target: str, form: str) -> tuple[bytes, str]:
        raise AssertionError("compiled")

    monkeypatch.setattr(compiling, "compiler", lambda: compiling.Compiler(used.version, broken))
    assert resources(COPY, "sm_80") == first


def test_spills_of_functions_that_a_kernel_calls_are_its_own() -> None:
    report = """ptxas info    : Compiling entry function 'f' for 'sm_80'
ptxas info    : Function properties for f
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for helper
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 20 registers, used 0 barriers, 24 bytes cumulative stack size, 376 bytes cmem[0]
"""
    (found,) = parse(report)
    assert (found.registers, found.stack, found.spill_stores, found.spill_loads) == (20, 24, 4, 12)


@needs_compiler
def test_spills_are_refused_unless_allowed() -> None:
    made = generate(
        data_flow(check_text("def f = fun(xs: 4.f32 => xs |> mapGlobal(fun(x => x)))")["f"].body), "f"
    )
    spilling = replace(made, name="f", source=SPILLING)
    with pytest.raises(CompilationError) as refused:
        codegen.compile(spilling, backend="emulate", target="sm_80")
    found = resources(SPILLING, "sm_80")["f"]
    assert refused.value.code == "R0832"
    assert f"spills {found.spill_stores} bytes" in refused.value.message
    assert codegen.compile(spilling, backend="emulate", target="sm_80", spills="allow").resources == (found,)
    with pytest.raises(UsageError, match="R0022"):
        codegen.compile(spilling, backend="emulate", target="sm_80", spills="maybe")
    assert codegen.compile(made, backend="emulate", target="sm_80").resources[0].spill_stores == 0


@needs_compiler
def test_a_report_without_text_is_written_into_bytes_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of PTX the report is one byte, 0, and Python has one object for all equal bytes of length one."""
    monkeypatch.setenv("RISE_CACHE_DIR", str(tmp_path))
    runtime.compile_cubin('extern "C" __global__ void k(float* x) { x[0] = 1; }\n', "sm_80", ptx=True)
    assert [n for n in range(256) if bytes([n])[0] != n] == []
