"""Wrong kernels: each fault is found, with its line."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from codegen.emulation.emulator import FEW, Buffer
from rise.errors import EmulationError, UsageError
from rise.source import place
from tests.support.emulated import Run, directory, floats, needs_compiler, text, unset  # noqa: F401  # a fixture

pytestmark = needs_compiler

ACCUMULATOR = "wmma::fragment<wmma::accumulator, 16, 16, 16, float> a;"
OUT_X = "Global<float> out, Global<const float> x"


@dataclass(frozen=True)
class Fault:
    """A kernel of `out` (64 elements, unset) and `x` (1024), and what is to be said of it."""

    name: str
    code: str
    line: int
    message: str
    body: str
    run: Run = Run(shared_bytes=4096)


FAULTS = [
    Fault("read outside", "R0902", 4, "x[1024]", "out[threadIdx.x] = x[threadIdx.x + 993];"),
    Fault("read before", "R0902", 5, "x[-1]", "const int i = threadIdx.x;\nout[i] = x[i - 1];"),
    Fault("write outside", "R0903", 4, "out[64], outside its 64", "out[threadIdx.x + 33] = 1;"),
    Fault(
        "tile outside",
        "R0902",
        5,
        "x[1024]",
        f"{ACCUMULATOR}\nwmma::load_matrix_sync(a, x + 800, 16, wmma::mem_row_major);",
    ),
    Fault(
        "shared outside",
        "R0903",
        5,
        "shared memory [1000] from byte 96",
        "Shared<float> s = shared_memory<float>(96);\nif (threadIdx.x == 7) s[1000] = 1;",
    ),
    Fault("global not written", "R0904", 4, "out[", "float y = out[threadIdx.x];\nout[0] = y;"),
    Fault(
        "shared not written",
        "R0904",
        6,
        "shared memory [5]",
        """Shared<float> s = shared_memory<float>(0);
if (threadIdx.x != 5) s[threadIdx.x] = 1;
out[threadIdx.x] = s[threadIdx.x];""",
    ),
    Fault(
        "local not written",
        "R0905",
        6,
        "element 3 of a local array of 4",
        "Local<float, 4> row;\nfor (int i = 0; i < 3; i += 1) row[i] = 1;\nout[0] = row[3];",
    ),
    Fault(
        "local outside",
        "R0903",
        5,
        "element 4",
        "Local<float, 4> row;\nfor (int i = 0; i < 5; i += 1) row[i] = x[i];\nout[0] = row[0];",
    ),
    Fault(
        "fragment not written",
        "R0906",
        5,
        "store_matrix_sync",
        f"{ACCUMULATOR}\nwmma::store_matrix_sync(out, a, 16, wmma::mem_row_major);",
    ),
    Fault(
        "fragment not written by a lane",
        "R0906",
        9,
        "thread (9, 0, 0)",
        f"""{ACCUMULATOR}
wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> l;
wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> r;
wmma::fill_fragment(l, 0.0f); wmma::fill_fragment(r, 0.0f);
if (threadIdx.x != 9) wmma::fill_fragment(a, 0.0f);
wmma::mma_sync(a, l, r, a);""",
    ),
    Fault("fragment element not written", "R0906", 5, "fragment", f"{ACCUMULATOR}\nout[0] = a.x[0];"),
    Fault(
        "missing __syncthreads",
        "R0907",
        6,
        "with no __syncthreads between",
        """Shared<float> s = shared_memory<float>(0);
s[threadIdx.x] = 0; __syncthreads();
s[threadIdx.x] = x[threadIdx.x]; out[threadIdx.x] = s[63 - threadIdx.x];""",
        Run(threads=64, shared_bytes=256),
    ),
    Fault(
        "missing second __syncthreads",
        "R0907",
        0,
        "with no __syncthreads between",
        """Shared<float> s = shared_memory<float>(0); float sum = 0;
for (int i = 0; i < 2; i += 1) {
if (threadIdx.x == i) s[0] = x[i];
__syncthreads();
sum += s[0];
}
out[threadIdx.x] = sum;""",
        Run(threads=64, shared_bytes=4),
    ),
    Fault(
        "missing __syncwarp",
        "R0907",
        8,
        "with no __syncwarp between",
        f"""{ACCUMULATOR}
Shared<float> s = shared_memory<float>(0);
wmma::fill_fragment(a, 1.0f);
wmma::store_matrix_sync(s, a, 16, wmma::mem_row_major);
out[threadIdx.x] = s[threadIdx.x];""",
    ),
    Fault("threads write one", "R0907", 4, "writes out[0], which", "out[0] = 1;"),
    Fault(
        "blocks write one",
        "R0908",
        4,
        "race between blocks",
        "if (threadIdx.x == 3) out[0] = 1;",
        Run(blocks=2),
    ),
    Fault(
        "block reads another's",
        "R0908",
        5,
        "of block",
        """const int i = threadIdx.x;
if (blockIdx.x == 0) { out[i] = 1; } else { if (i == 0) out[32] = out[5]; }""",
        Run(blocks=2),
    ),
    Fault(
        "divergent __syncthreads",
        "R0909",
        4,
        "divergent barrier",
        "if (threadIdx.x < 32) __syncthreads();",
        Run(threads=64),
    ),
    Fault(
        "two __syncthreads",
        "R0909",
        0,
        "at the one of line",
        "if (threadIdx.x < 32) {\n__syncthreads();\n} else {\n__syncthreads();\n}",
        Run(threads=64),
    ),
    Fault(
        "divergent collective",
        "R0910",
        6,
        "has returned",
        f"{ACCUMULATOR} if (threadIdx.x == 4) return;\nwmma::fill_fragment(a, 0.0f);\n"
        "wmma::store_matrix_sync(out, a, 16, wmma::mem_row_major);",
    ),
    Fault(
        "two collectives",
        "R0910",
        0,
        "__syncwarp (line",
        "if (threadIdx.x < 16) __syncwarp();\nelse __syncwarp();",
    ),
    Fault(
        "collective and barrier",
        "R0910",
        4,
        "at __syncthreads",
        "if (threadIdx.x < 16) __syncwarp();\nelse __syncthreads();",
    ),
    Fault(
        "part of a warp",
        "R0910",
        5,
        "only 16 threads",
        f"{ACCUMULATOR}\nwmma::load_matrix_sync(a, x, 16, wmma::mem_row_major);",
        Run(threads=16),
    ),
    Fault(
        "different pointers",
        "R0910",
        5,
        "another pointer",
        f"{ACCUMULATOR}\nwmma::load_matrix_sync(a, x + threadIdx.x / 16 * 256, 16, wmma::mem_row_major);",
    ),
    Fault(
        "different fragments",
        "R0910",
        5,
        "another fragment",
        f"{ACCUMULATOR[:-1]}[2];\nwmma::load_matrix_sync(a[threadIdx.x / 16], x, 16, wmma::mem_row_major);",
    ),
    Fault(
        "leading dimension",
        "R0911",
        5,
        "leading dimension 18",
        f"{ACCUMULATOR}\nwmma::load_matrix_sync(a, x, 18, wmma::mem_row_major);",
    ),
    Fault(
        "misaligned tile",
        "R0912",
        5,
        "x[4], not aligned",
        f"{ACCUMULATOR}\nwmma::load_matrix_sync(a, x + 4, 16, wmma::mem_row_major);",
    ),
    Fault(
        "local array of fragments",
        "R0903",
        5,
        "element 2",
        "Local<wmma::fragment<wmma::accumulator, 16, 16, 16, float>, 2> a;\n"
        "for (int i = 0; i < 3; i += 1) wmma::fill_fragment(a[i], 0.0f);",
    ),
    Fault("misaligned array", "R0912", 4, "byte 6", "Shared<float> s = shared_memory<float>(6);"),
    Fault("division", "R0915", 4, "by zero", "out[threadIdx.x] = 7 / (int)x[0];"),
    Fault("overflow", "R0915", 4, "overflow", "out[threadIdx.x] = 2147483647 + (int)x[1];"),
    Fault(
        "array of fragments",
        "R0915",
        5,
        "index out of bounds",
        f"{ACCUMULATOR[:-1]}[2];\nwmma::load_matrix_sync(a[(int)x[3]], x, 16, wmma::mem_row_major);",
    ),
]


def caught(fault: Fault, seed: int = 0) -> EmulationError:
    with pytest.raises(EmulationError) as raised:
        fault.run(text(OUT_X, fault.body), unset(), Buffer("x", floats(1024)), seed=seed)
    return raised.value


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault(fault: Fault) -> None:
    for seed in range(3):
        error = caught(fault, seed)
        span = place(error.origin)
        assert error.code == fault.code, error
        assert span is not None
        assert fault.line in (span.line, 0), error
        assert fault.message in error.message
        assert f"k.cu:{span.line}:" in str(error)


def test_reports_are_the_same_for_the_same_seed() -> None:
    race = next(fault for fault in FAULTS if fault.name == "threads write one")
    messages = [caught(race, seed).message for seed in (0, 1, 2, 3, 0, 1, 2, 3)]
    assert messages[:4] == messages[4:]
    assert len(set(messages)) > 1


FUNCTION = "__device__ float f(float y) {{ {} return y; }}\n"
LOOPS = {
    "while": "while (x[1] > 0.0f) {}",
    "do": "do { out[threadIdx.x] = 1; } while (x[1] > 0.0f);",
    "for": "for (int i = 0; i < 3; i += 0) {}",
    "goto": "again: goto again;",
    "barriers": "for (;;) __syncwarp();",
}


@pytest.mark.parametrize("name", LOOPS)
def test_endless_thread(name: str) -> None:
    endless = Fault("", "R0913", 4, "", LOOPS[name])
    error, span = caught(endless), place(caught(endless).origin)
    assert error.code == "R0913" and span is not None and span.line == 4
    assert error.hint is not None and "RISE_EMULATION_STEPS" in error.hint


def test_endless_thread_that_is_optimised() -> None:
    endless = Fault("", "R0913", 4, "", LOOPS["for"], run=Run(blocks=FEW // 32 + 1))
    assert caught(endless).code == "R0913"


def test_endless_function() -> None:
    """Its loop does nothing, and the kernel has none."""
    head, body = text(OUT_X, "out[0] = f(x[1]);").split('extern "C"')
    source = f'{head}{FUNCTION.format("while (y > 0) {}")}extern "C"{body}'
    with pytest.raises(EmulationError) as raised:
        Run()(source, unset(), Buffer("x", floats(1024)))
    span = place(raised.value.origin)
    assert raised.value.code == "R0913" and span is not None and span.line == 3


def test_counting_steps_of_loops_changes_nothing() -> None:
    """`else` stays where it belongs, and a body without braces is a body."""
    body = """int sum = 0;
if (threadIdx.x == 99) for (int i = 0; i < 3; i += 1) sum += 1; else sum = 5;
for (int i = 0, j = 9; i < j; i += 1, j -= 1) if (i == 2) continue; else sum += i;
do sum += 100; while (sum < 300);
out[threadIdx.x] = sum;"""
    out = unset()
    Run()(text(OUT_X, body), out, Buffer("x", floats(1024)))
    assert set(out.array[:32]) == {313.0}


def test_more_steps_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    many = Fault("", "R0913", 4, "40 steps", "for (int i = 0; i < 50; i += 1) {}")
    monkeypatch.setenv("RISE_EMULATION_STEPS", "39")
    assert "made 40 steps" in caught(many).message
    monkeypatch.setenv("RISE_EMULATION_STEPS", "50")
    many.run(text(OUT_X, many.body), unset(), Buffer("x", floats(1024)))
    monkeypatch.setenv("RISE_EMULATION_STEPS", "many")
    with pytest.raises(UsageError, match="RISE_EMULATION_STEPS"):
        many.run(text(OUT_X, many.body), unset(), Buffer("x", floats(1024)))
