"""The GPU side on a driver and libraries that work on host memory: all but the silicon."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench import gpu as gpu_module
from bench.baselines import memcpy_as_much
from bench.build import Built, Refused
from bench.campaign import Campaign
from bench.contest import Contest, ContextLost, Variant
from bench.cublas import Cublas
from bench.cublaslt import Lt
from bench.gpu import LAUNCHED, REPLAYS, Gpu, median_time
from bench.memory import SOURCE
from bench.results import read_attempts, read_rows
from bench.table import Candidate, Case, Source, Subject, Table
from codegen import runtime
from codegen.execute import execute
from rise.errors import LaunchError
from tests.bench.fakes import Recorder
from tests.bench.host_blas import HostCublas, HostLt
from tests.bench.host_cuda import KERNELS, HostCuda, HostGraph, view

ROOT = Path(__file__).parents[2]
FILES = {
    "gemm": ROOT / "examples" / "gemm.rise",
    "matmul": ROOT / "examples" / "gemm.rise",
    "copy": ROOT / "benchmarks" / "tables" / "memory.rise",
}
SIZES = {"m": 16, "n": 8, "k": 24}
Run = Callable[..., np.ndarray | None]


@dataclass
class HostKernel:
    """What the runtime loads a kernel as: runs a function of NumPy arrays."""

    cuda: HostCuda
    run: Run
    registers = 32
    local_bytes = 0

    def __call__(self, output: Any, *inputs: Any, stream: Any) -> None:
        self.cuda.now += 10.0
        given = [self.array(x) if hasattr(x, "pointer") else x for x in inputs]
        result = self.run(*given)
        if result is not None:
            self.array(output)[:] = result

    @staticmethod
    def array(x: Any) -> np.ndarray:
        interface = x.__cuda_array_interface__
        found: np.ndarray = view(interface["data"][0], x.size, interface["typestr"])
        return found.reshape(interface["shape"])


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> HostCuda:
    made = HostCuda()
    (tmp_path / "cubin").write_bytes(b"cubin")
    monkeypatch.setattr(runtime, "driver", lambda: made)
    monkeypatch.setattr(runtime, "device_target", lambda: "sm_90a")
    monkeypatch.setattr(runtime, "compile_cubin", lambda source, target: tmp_path / "cubin")
    monkeypatch.setattr(runtime, "load", lambda kernel, target: HostKernel(made, kernel.run))
    monkeypatch.setattr(gpu_module, "Graph", HostGraph)
    monkeypatch.setattr(gpu_module, "PATIENCE", 0.01)
    monkeypatch.setattr(gpu_module, "MOST_CALLS", 12)
    return made


class Ticking:
    """A clock on which every look takes 20 ms."""

    seconds = 0.0

    def now(self) -> float:
        self.seconds += 0.02
        return self.seconds


@pytest.fixture
def gpu(cuda: HostCuda) -> Gpu:
    made = Gpu()
    made.libraries.__dict__["cublas"] = Cublas(HostCublas(cuda.tick))  # type: ignore[arg-type]
    workspace = cuda.mem_alloc(64)
    made.libraries.__dict__["cublaslt"] = Lt(int(workspace), HostLt())  # type: ignore[arg-type]
    return made


def case(operation: str, sizes: dict[str, int] = SIZES, mode: str = "graph") -> Case:
    file = FILES.get(operation, ROOT / "examples" / "products.rise")
    scalars = {"alpha": 1.5, "beta": 0.5}
    limit = "tensor" if "m" in sizes else "copy"
    return Case(Subject(Source(file), operation, operation, (sizes,), (), (), scalars, limit, mode), sizes)


def built(run: Run, name: str = "mine") -> Built:
    return Built(Candidate(name), SimpleNamespace(run=run, launch="grid 1"))


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32)


def statuses(contest: Contest) -> dict[str, str]:
    return {t.name: t.status for t in contest.tried}


# --- what the fake kernels stand for ----------------------------------------------------------------------


def test_the_kernels_of_probe_are_those_that_are_faked() -> None:
    text = SOURCE.read_text(encoding="utf-8")
    found = re.findall(r'extern "C" __global__ void (\w+)\(([^)]*)\)', text)
    assert {name for name, _ in found} == set(KERNELS)
    counts = {name: len([p for p in parameters.split(",") if p]) for name, parameters in found}
    assert counts["fill_2"] == counts["gather_4"] == counts["differing_2"] == counts["add_bias"] == 4
    assert (counts["relu_f16"], counts["relu_f32"], counts["nothing"]) == (3, 2, 0)


@pytest.mark.skipif(not runtime.can_compile(), reason="neither NVRTC nor nvcc is here")
@pytest.mark.parametrize("target", ["sm_75", "sm_90a"])
def test_probe_compiles(target: str) -> None:
    text = SOURCE.read_text(encoding="utf-8")
    assert runtime.compile_cubin(text, target).read_bytes()[:4] == b"\x7fELF"


# --- baselines --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "sizes", "names"),
    [
        ("gemm", SIZES, ["cublas", "cublasLt"]),
        ("matmul", SIZES, ["cublas", "cublasLt"]),
        ("biasRelu", SIZES, ["separate", "cublasLt"]),
        ("reluProduct", SIZES, ["separate"]),
        ("sumOfProducts", {**SIZES, "l": 40}, ["separate"]),
        ("batchedProducts", {"b": 5, "m": 4, "n": 3, "k": 2}, ["cublas", "cublasLt"]),
        ("copy", {"n": 1000}, ["memcpy", "empty"]),
    ],
)
def test_the_baselines_of_an_operation_are_right(
    gpu: Gpu, operation: str, sizes: dict[str, int], names: list[str]
) -> None:
    """Exact on whole numbers, among them all elements; within the bound on random ones."""
    runner = gpu.runner(case(operation, sizes))
    contest = Contest(runner, Ticking())
    finalists = contest.run([], names)
    assert [f.variant.kind for f in finalists] == names, contest.tried
    assert {t.status for t in contest.tried} <= {"finalist", "timed"}
    for finalist in finalists:
        assert finalist.verdict.error <= finalist.verdict.bound
        assert "exact on whole numbers" in finalist.verdict.how
        assert "elements against f64" in finalist.verdict.how
    runner.close()


def test_a_copy_of_as_many_bytes_is_timed_but_not_checked(gpu: Gpu, cuda: HostCuda) -> None:
    """It moves half of the bytes of an input and a result from one array of its own to another."""
    runner = gpu.runner(case("copy", {"n": 1001}))
    runner.fill(True)
    ((name, work),) = memcpy_as_much(gpu.libraries, runner.case, runner.sets)
    assert runner.check(Variant("memcpy", name, work)).how == "not checked: it computes nothing"
    sizes: list[int] = []
    cuda.memcpy_dtod_async = lambda target, source, size, stream: sizes.append(size)  # type: ignore[method-assign]
    for operands in runner.sets:
        work.call(None, operands)
    assert sizes == [4 * 1001] * len(runner.sets)
    runner.close()


def test_operands_take_turns_until_they_are_larger_than_the_cache(gpu: Gpu) -> None:
    runner = gpu.runner(case("copy", {"n": 100}))
    assert len(runner.sets) == -(-2 * 4096 // 800)
    assert len(gpu.runner(case("copy", {"n": 10000})).sets) == 1
    seen: list[int] = []

    def note(x: np.ndarray) -> np.ndarray:
        seen.append(x.ctypes.data)
        return x

    runner.fill(False)
    timed = runner.timed(runner.ours(built(note)))
    del seen[:]
    timed.sample()
    assert len(set(seen)) == len(runner.sets)
    assert seen[: len(runner.sets)] != seen[1 : len(runner.sets) + 1]


def test_everything_is_freed(gpu: Gpu, cuda: HostCuda) -> None:
    before = len(cuda.allocations)
    runner = gpu.runner(case("matmul"))
    Contest(runner, Ticking()).run([built(matmul)], ["cublas"])
    operands = [o for s in runner.sets for o in (*s.inputs, s.output)]
    graphs = runner.graphs
    runner.close()
    assert graphs and all(isinstance(graph, HostGraph) and graph.closed for graph in graphs)
    assert operands and all(array.allocation.freed for array in operands)
    assert len(cuda.allocations) > before


# --- checks -----------------------------------------------------------------------------------------------


def almost(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return matmul(a, b) + 1


def half_written(a: np.ndarray, b: np.ndarray) -> None:
    return None


def without_last_k(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return matmul(a[:, :-1], b[:-1])


def f16_sums(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result = np.zeros((a.shape[0], b.shape[1]), np.float16)
    for i in range(a.shape[1]):
        result = (result + a[:, i : i + 1] * b[i : i + 1]).astype(np.float16)
    return result.astype(np.float32)


@pytest.mark.parametrize(
    ("run", "code"),
    [(almost, "R0830"), (half_written, "R0829"), (without_last_k, "R0830"), (f16_sums, "R0830")],
)
def test_a_wrong_kernel_is_named_and_not_timed(gpu: Gpu, run: Run, code: str) -> None:
    contest = Contest(gpu.runner(case("matmul")), Ticking())
    finalists = contest.run([built(run, "bad"), built(matmul, "good")], ["cublas"])
    assert [f.variant.name for f in finalists] == ["good", "cublasGemmEx"]
    (bad,) = [t for t in contest.tried if t.name == "bad"]
    assert bad.status == "wrong"
    assert bad.reason.startswith(code)


def test_an_element_that_is_not_sampled_is_compared_all_the_same(gpu: Gpu) -> None:
    """On whole numbers all elements are compared with those of the first that was right."""
    sizes = {"n": 30000}
    runner = gpu.runner(case("copy", sizes))
    place = next(i for i in range(30000) if i not in set(runner.mesh[0].reshape(-1)))

    def one_wrong(x: np.ndarray) -> np.ndarray:
        changed = x.copy()
        changed[place] += 1
        return changed

    contest = Contest(runner, Ticking())
    contest.run([built(lambda x: x, "good"), built(one_wrong, "bad")], [])
    assert statuses(contest) == {"good": "finalist", "bad": "wrong"}
    assert "1 of 30000 elements" in next(t.reason for t in contest.tried if t.name == "bad")


def test_a_kernel_that_breaks_the_context_ends_the_process(gpu: Gpu, cuda: HostCuda) -> None:
    def illegal(a: np.ndarray, b: np.ndarray) -> None:
        cuda.broken = True
        raise RuntimeError("an illegal memory access was encountered")

    with pytest.raises(ContextLost):
        Contest(gpu.runner(case("matmul")), Ticking()).run([built(illegal)], [])


def test_a_kernel_that_does_not_end_is_not_waited_for(gpu: Gpu, cuda: HostCuda) -> None:
    def endless(a: np.ndarray, b: np.ndarray) -> None:
        cuda.hangs = True

    contest = Contest(gpu.runner(case("matmul")), Ticking())
    with pytest.raises(ContextLost, match="R0865"):
        contest.run([built(endless)], [])


def test_a_kernel_that_cannot_be_launched_is_named(gpu: Gpu) -> None:
    def refused(a: np.ndarray, b: np.ndarray) -> None:
        raise LaunchError("R0833", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")

    contest = Contest(gpu.runner(case("matmul")), Ticking())
    contest.run([built(refused)], ["cublas"])
    assert statuses(contest) == {"mine": "failed", "cublasGemmEx": "finalist"}


# --- a whole run ------------------------------------------------------------------------------------------


def test_a_table_is_measured(gpu: Gpu, tmp_path: Path) -> None:
    subject = case("matmul").subject
    subject = Subject(
        subject.source, "matmul", "matmul", (SIZES,), (Candidate("mine"),), ("cublas", "torch"), {}
    )
    table = Table("some", "some", (subject,))

    class Builds:
        def start(self, cases: Any) -> None: ...

        def of(self, case: Case, seconds: Any) -> list[Built | Refused]:
            return [built(matmul), Refused(Candidate("other"), "R0606 no")]

    campaign = Campaign(table, tmp_path, gpu, Builds(), Ticking(), Recorder(), "abc")  # type: ignore[arg-type]
    campaign.run()
    ours, theirs = read_rows(campaign.rows_path)
    assert (ours.kind, theirs.kind) == ("rise", "cublas")
    assert ours.median_us == pytest.approx(10.0)
    assert ours.gb_s == pytest.approx((2 * 16 * 24 + 2 * 24 * 8 + 4 * 16 * 8) / 10 / 1e3)
    reasons = {a.name: a.reason for a in read_attempts(campaign.attempts_path)}
    assert reasons["other"] == "R0606 no"
    assert reasons["torch"].startswith("R0828 torch cannot be imported") or "torch" in str(reasons)
    assert gpu.machine().limits.tflops == pytest.approx(132 * 4096 * 1.98e9 / 1e12)
    gpu.machine().write(tmp_path / "machine.json")


def test_launches_are_timed_by_the_host(gpu: Gpu) -> None:
    runner = gpu.runner(case("copy", {"n": 32}, "launches"))
    contest = Contest(runner, Ticking())

    found = contest.run([built(lambda x: x)], ["empty"])
    assert {f.variant.kind for f in found} == {"rise", "empty"}
    assert len(runner.sets) == 1


# --- one kernel by itself -----------------------------------------------------------------------------------


def test_the_time_of_a_launch_is_a_median_over_graphs(cuda: HostCuda) -> None:
    launched: list[Any] = []
    kernel: Any = SimpleNamespace(run=lambda *inputs: launched.append(inputs))
    ones = np.ones(3, np.float16)
    assert median_time(kernel, [ones, np.float32(2)], np.zeros(3, np.float32)) == pytest.approx(10.0)
    assert len(launched) >= LAUNCHED * REPLAYS
    array, number = launched[0]
    assert np.array_equal(array, ones) and number == 2


def test_the_demo_says_how_long_a_launch_takes(
    rise: Any, cuda: HostCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = rise("demo", "--size", "m=128", "n=128", "k=128")
    assert "on the GPU" not in called.out
    monkeypatch.setattr("rise.cli.demo.available_backend", lambda: "cuda")
    monkeypatch.setattr("rise.cli.demo.execute", lambda kernel, inputs, _: execute(kernel, inputs, "emulate"))
    monkeypatch.setattr(runtime, "load", lambda kernel, target: HostKernel(cuda, lambda *inputs: None))
    called = rise("demo", "--size", "m=128", "n=128", "k=128")
    assert "time on the GPU: 10.00 µs, median over launches" in called.out
    assert called.out.count("agrees") == 2
