"""Remarks of the compiler that no kernel should cause fail its build: each provoked by a text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import codegen
from codegen import runtime
from codegen.pipeline import generate
from codegen.runtime.refusals import refuse
from rise.check.program import check_text
from rise.errors import CompilationError
from rise.normal import data_flow

needs_compiler = pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")

SERIALIZED = r"""
__device__ __noinline__ void product(float* c, unsigned long long a, unsigned long long b) {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;\n"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "l"(a), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
extern "C" __global__ void f(float* out, unsigned long long a, unsigned long long b) {
  float c[4] = {0, 0, 0, 0};
  product(c, a, b);
  asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
  for (int i = 0; i < 4; i += 1) out[threadIdx.x * 4 + i] = c[i];
}
"""
# without launch bounds nobody knows how many registers there are to give away
IGNORED = r"""
extern "C" __global__ void f(float* out) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 24;\n");
  out[threadIdx.x] = 1;
}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RISE_CACHE_DIR", str(tmp_path))
    return tmp_path


@needs_compiler
@pytest.mark.parametrize(
    ("text", "code", "said"),
    [(SERIALIZED, "R0851", "instructions are serialized"), (IGNORED, "R0852", "'setmaxnreg' ignored")],
)
def test_a_remark_fails_the_build(text: str, code: str, said: str, own_cache: Path) -> None:
    for _ in range(2):  # nothing of it is kept
        with pytest.raises(CompilationError, match=said) as refused:
            runtime.compile_cubin(text, "sm_90a")
        assert refused.value.code == code
    with pytest.raises(CompilationError, match=said):
        runtime.resources(text, "sm_90a")
    assert not list(own_cache.glob("*.cubin"))


@needs_compiler
def test_the_same_with_launch_bounds_is_compiled() -> None:
    bounded = IGNORED.replace("void f", "void __launch_bounds__(128, 1) f")
    assert runtime.compile_cubin(bounded, "sm_90a").is_file()


@needs_compiler
def test_compile_refuses_such_a_kernel() -> None:
    program = check_text("def f = fun(xs: 4.f32 => xs |> mapGlobal(fun(x => x)))")["f"].body
    kernel = generate(data_flow(program), "f")
    serialized = replace(kernel, source=SERIALIZED)
    with pytest.raises(CompilationError, match="R0851|serialized"):
        codegen.compile(serialized, backend="emulate", target="sm_90a")


def test_other_remarks_are_no_reason() -> None:
    refuse("")
    refuse("ptxas info    : (C7517) wgmma.wait_group is injected in around line 40 by compiler\n")
