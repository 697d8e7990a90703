"""The GPU as a device: operands in its memory, kernels and libraries that use them, checks, times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from math import ceil
from typing import Any

import numpy as np

from bench import baselines
from bench.build import Built
from bench.campaign import Limits, State
from bench.contest import Variant, Verdict
from bench.data import Pattern, integers, normal, sampled
from bench.graphs import Graph
from bench.interpreted import operation_of
from bench.machine import Machine, Sensors, tensor_peak, versions
from bench.measure import Timed
from bench.memory import SOURCE, DeviceArray, Probe
from bench.operations import Expected, bound
from bench.signature import Signature
from bench.statistics import summarise
from bench.table import Case
from bench.work import Operands, Work
from codegen import runtime
from codegen.ir.kernel import Kernel
from rise.errors import LaunchError

MOST_CALLS = 200  # in a graph
GRAPH = 5_000  # microseconds that a graph is to take, about
LAUNCHES = 500  # in a row, where the host is measured
PATIENCE = 20.0  # seconds that a kernel may take
LAUNCHED, REPLAYS = 20, 15  # launches in a graph, graphs of which the median counts: for one kernel alone
COPIED = 2**30  # bytes of the copy that bandwidth is measured by


class Gpu:
    """The first GPU."""

    def __init__(self) -> None:
        self.cuda = runtime.driver()
        device = self.cuda.Context.get_device()
        attribute = self.cuda.device_attribute
        self.name = device.name()
        self.l2_bytes = int(device.get_attribute(attribute.L2_CACHE_SIZE))
        self.multiprocessors = int(device.get_attribute(attribute.MULTIPROCESSOR_COUNT))
        self.mhz = int(device.get_attribute(attribute.CLOCK_RATE)) // 1000
        self.sensors = Sensors(device.pci_bus_id())
        self.target = runtime.device_target()
        source = SOURCE.read_text(encoding="utf-8")
        self.probe = Probe(self.cuda, runtime.compile_cubin(source, self.target).read_bytes())
        peak = tensor_peak(device.compute_capability(), self.multiprocessors, self.mhz)
        self.limits = Limits(peak, self._copy_bandwidth())
        self.libraries = baselines.Libraries(self.cuda, self.probe)

    def _copy_bandwidth(self) -> float:
        """GB/s, read and written, of the driver's copy within memory: the best of ten."""
        source, target = (self.cuda.mem_alloc(COPIED) for _ in range(2))
        stream = self.cuda.Stream()
        best = 0.0
        for _ in range(12):
            start, end = self.cuda.Event(), self.cuda.Event()
            start.record(stream)
            self.cuda.memcpy_dtod_async(target, source, COPIED, stream)
            end.record(stream)
            end.synchronize()
            best = max(best, 2 * COPIED / start.time_till(end) / 1e6)
        source.free()
        target.free()
        return best

    def machine(self) -> Machine:
        number = self.cuda.get_driver_version()
        found = versions("numpy", "pycuda", "torch", "cuda-bindings")
        for name, library in self.libraries.versions().items():
            found[name] = library
        return Machine(
            self.name, self.sensors.driver(), f"{number // 1000}.{number % 1000 // 10}",
            self.multiprocessors, self.mhz, self.l2_bytes, self.limits, found, _host(),
        )  # fmt: skip

    def state(self) -> State:
        return self.sensors.state()

    def bytes(self, case: Case) -> int:
        return Signature.of(case).bytes

    def runner(self, case: Case) -> GpuRunner:
        return GpuRunner(self, case)


def _host() -> str:
    import platform

    return platform.machine()


class GpuRunner:
    """Runs the variants of one case, on enough sets of operands to exceed the L2 cache."""

    def __init__(self, gpu: Gpu, case: Case) -> None:
        self.gpu, self.case = gpu, case
        self.operation = operation_of(case)
        self.exact = self.operation.exact
        self.signature = Signature.of(case)
        self.stream = gpu.cuda.Stream()
        self.mesh = sampled(self.signature.output.shape)
        self.sets = [self._operands() for _ in range(self._count())]
        self.patterns: list[Any] = []
        self.whole_numbers = False
        self._reference: tuple[str, DeviceArray] | None = None
        self._expectation: dict[bool, Expected] = {}
        self._hangs = False
        self.graphs: list[Graph] = []

    def _count(self) -> int:
        if self.case.subject.mode != "graph":
            return 1
        return min(MOST_CALLS, ceil(2 * self.gpu.l2_bytes / max(1, self.signature.bytes)))

    def _operands(self) -> Operands:
        made = [
            DeviceArray.empty(self.gpu.cuda, part.shape, part.dtype) if part.shape else part.value
            for part in self.signature.inputs
        ]
        output = self.signature.output
        return Operands(tuple(made), DeviceArray.empty(self.gpu.cuda, output.shape, output.dtype))

    def close(self) -> None:
        """Frees graphs and operands."""
        for graph in self.graphs:
            graph.close()
        for operands in self.sets:
            for array in (*operands.inputs, operands.output):
                if isinstance(array, DeviceArray):
                    array.allocation.free()
        if self._reference:
            self._reference[1].allocation.free()
        self.sets, self._reference = [], None

    # --- data and checks

    def fill(self, whole_numbers: bool) -> None:
        self.whole_numbers = whole_numbers
        terms = self.operation.terms(self.case.sizes)
        self.patterns = [
            part.value if not part.shape
            else integers(part.shape, part.dtype, seed, terms, self.operation.whole) if whole_numbers
            else normal(part.shape, part.dtype, seed)
            for seed, part in enumerate(self.signature.inputs)
        ]  # fmt: skip
        for operands in self.sets[:1] if whole_numbers else self.sets:
            for array, pattern in zip(operands.inputs, self.patterns, strict=True):
                if isinstance(pattern, Pattern):
                    self.gpu.probe.fill(array, pattern, self.stream)

    def check(self, variant: Variant) -> Verdict:
        work: Work = variant.run
        if not work.computes:
            return Verdict(0.0, 0.0, "not checked: it computes nothing")
        operands = self.sets[0]
        self.gpu.probe.poison(operands.output, self.stream)
        (work.check or work.call)(self.stream, operands)
        self._wait()
        found = self.gpu.probe.elements(operands.output, self.mesh, self.stream).astype(np.float64)
        return self._exact(variant, found) if self.whole_numbers else self._close(found)

    def _expected(self) -> Expected:
        """The sampled elements, computed once for each kind of data, which is always the same."""
        if self.whole_numbers not in self._expectation:
            self._expectation[self.whole_numbers] = self.operation.expected(self.patterns, self.mesh)
        return self._expectation[self.whole_numbers]

    def _exact(self, variant: Variant, found: Any) -> Verdict:
        """Sampled elements equal the exact ones; all elements equal those of the first that was right."""
        values = self._expected().values
        with np.errstate(over="ignore"):  # beyond f16 there is infinity, on both sides
            wanted = values.astype(np.float32).astype(self.signature.output.dtype).astype(np.float64)
        if not np.array_equal(found, wanted):
            raise _wrong("on whole numbers", found, wanted)
        output = self.sets[0].output
        probe = self.gpu.probe
        if self._reference is None:
            kept = DeviceArray.empty(self.gpu.cuda, output.shape, output.dtype)
            self.gpu.cuda.memcpy_dtod_async(kept.allocation, output.allocation, output.bytes, self.stream)
            self._reference = (variant.name, kept)
        name, reference = self._reference
        if differing := probe.differing(output, reference, self.stream):
            raise LaunchError("R0830", f"{differing} of {output.size} elements differ from those of {name}")
        return Verdict(0.0, 0.0, f"exact on whole numbers (all elements against {name})")

    def _close(self, found: Any) -> Verdict:
        expected = self._expected()
        terms = self.operation.terms(self.case.sizes)
        allowed = bound(expected, terms, self.signature.output.dtype)
        error = np.abs(found - expected.values)
        if not (error <= allowed).all():  # of NaN this is false
            raise _wrong("on random numbers", found, expected.values)
        return Verdict(float(error.max()), float(allowed.max()), f"{error.size} elements against f64")

    def answers(self) -> bool:
        if self._hangs:
            return False
        try:
            self.gpu.cuda.Context.synchronize()
        except Exception:  # noqa: BLE001  # whatever it raises, nothing can run any longer
            return False
        return True

    def _wait(self) -> None:
        """Until the stream has done everything; LaunchError R0865 where it does not."""
        event = self.gpu.cuda.Event()
        event.record(self.stream)
        self.wait(event)

    def wait(self, event: Any) -> None:
        start = time.monotonic()
        while not event.query():
            if time.monotonic() - start > PATIENCE:
                self._hangs = True
                raise LaunchError("R0865", f"a kernel did not end within {PATIENCE:.0f} seconds")
            time.sleep(2e-5)

    # --- the variants

    def ours(self, built: Built) -> Variant:
        loaded = runtime.load(built.kernel, self.gpu.target)

        def call(stream: Any, operands: Operands) -> None:
            loaded(operands.output, *operands.inputs, stream=stream)

        resources = (
            f"{loaded.registers} registers, {loaded.local_bytes} bytes of local memory; {_shapes(built)}"
        )
        return Variant(built.candidate.series, str(built.candidate), Work(call), resources)

    def baseline(self, name: str) -> Sequence[Variant]:
        return list(self._variants(name))

    def _variants(self, name: str) -> Iterator[Variant]:
        make = baselines.find(name, self.case.subject.operation)
        for which, work in make(self.gpu.libraries, self.case, self.sets):
            yield Variant(name, which, work)

    def timed(self, variant: Variant) -> Timed:
        if self.case.subject.mode == "launches":
            return Launches(variant.name, self, variant.run)
        return Replays(variant.name, self, variant.run)


class Replays:
    """Timed in a graph of many calls, which use the sets of operands cyclically."""

    def __init__(self, name: str, runner: GpuRunner, work: Work) -> None:
        self.name, self.runner = name, runner
        self.cuda = runner.gpu.cuda
        self.calls = max(1, min(MOST_CALLS, int(GRAPH / self._estimate(work))))
        turns = cycle(runner.sets)
        if work.record is None:
            graph = Graph(self.cuda, lambda stream: work.call(stream, next(turns)), self.calls)
            runner.graphs.append(graph)
            self.stream, self.replay = graph.stream, graph.replay
        else:
            self.stream = runner.stream
            self.replay = work.record(self.stream, [next(turns) for _ in range(self.calls)])

    def _estimate(self, work: Work) -> float:
        """Microseconds of a call, launched by the host."""
        stream, operands = self.runner.stream, self.runner.sets[0]
        work.call(stream, operands)

        def three() -> None:
            for _ in range(3):
                work.call(stream, operands)

        return max(0.1, elapsed(self.cuda, stream, three, self.runner.wait) / 3)

    def sample(self) -> float:
        return elapsed(self.cuda, self.stream, self.replay, self.runner.wait) / self.calls


class Launches:
    """Timed by the host's clock, one launch after the other: the cost of a call."""

    def __init__(self, name: str, runner: GpuRunner, work: Work) -> None:
        self.name, self.runner, self.work = name, runner, work

    def sample(self) -> float:
        stream, operands = self.runner.stream, self.runner.sets[0]
        start = time.perf_counter()
        for _ in range(LAUNCHES):
            self.work.call(stream, operands)
        stream.synchronize()
        return (time.perf_counter() - start) * 1e6 / LAUNCHES


def elapsed(cuda: Any, stream: Any, action: Callable[[], None], wait: Callable[[Any], None]) -> float:
    """Microseconds on the GPU of what the action puts on a stream. wait: returns after an event."""
    start, end = cuda.Event(), cuda.Event()
    start.record(stream)
    action()
    end.record(stream)
    wait(end)
    return float(start.time_till(end)) * 1000


def median_time(kernel: Kernel, inputs: Sequence[Any], result: Any) -> float:
    """Microseconds of one launch on the GPU, where the operands already are: a median of REPLAYS graphs."""
    cuda = runtime.driver()
    loaded = runtime.load(kernel, runtime.device_target())
    operands = [DeviceArray.copied(cuda, x) if np.ndim(x) else x for x in (result, *inputs)]
    graph = Graph(cuda, lambda stream: loaded(*operands, stream=stream), LAUNCHED)
    times = [elapsed(cuda, graph.stream, graph.replay, lambda end: end.synchronize()) for _ in range(REPLAYS)]
    graph.close()
    return summarise(times).median / LAUNCHED


def _shapes(built: Built) -> str:
    """Grid, block and shared memory of the kernel, or of each kernel."""
    kernels = getattr(built.kernel, "kernels", (built.kernel,))
    return "; ".join(str(kernel.launch) for kernel in kernels)


def _wrong(data: str, found: Any, wanted: Any) -> LaunchError:
    if np.isnan(found).any():
        count = int(np.isnan(found).sum())
        return LaunchError(
            "R0829", f"{count} of {found.size} sampled elements were never written, or are NaN"
        )
    worst = np.unravel_index(int(np.argmax(np.abs(found - wanted))), found.shape)
    off = int((found != wanted).sum())
    example = f"{found[worst]} instead of {wanted[worst]}"
    return LaunchError("R0830", f"wrong {data}: up to {off} of {found.size} sampled elements; {example}")
