"""What people see: the report in Markdown, plots, progress, the command; and torch as it is called."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench import plots, session, torch_baselines
from bench.campaign import Limits
from bench.contest import Finalist, Tried, Variant, Verdict
from bench.data import integers
from bench.interpreted import operation
from bench.machine import Machine, Sensors, read, tensor_peak
from bench.progress import Shown, summary
from bench.report import markdown
from bench.results import Attempt, Row
from bench.signature import Signature
from bench.statistics import summarise
from bench.table import Case, Source, Subject
from codegen import runtime
from rise.errors import LaunchError, UsageError
from tests.bench.fakes import Immediately, table
from tests.bench.operations import PROGRAMS


def row(size: int, kind: str, name: str, median: float, ratio: float) -> Row:
    key = f"f m={size} n={size} k={size}"
    return Row(
        "2026", "a GPU", "abc", key, kind, name, median, median, median, 0.01, 15,
        500.0, 100.0, "tensor", 0.5, ratio, 0.0, 0.0, "", 1980, 600.0,
    )  # fmt: skip


ROWS = [
    row(64, "rise", "good", 10.0, 1.0), row(64, "cublas", "c", 20.0, 2.0),
    row(128, "rise", "better", 10.0, 1.0), row(128, "cublas", "c", 9.8, 0.98),
]  # fmt: skip
MACHINE = Machine("a GPU", "580", "13.0", 132, 1980, 2**25, Limits(1000.0, 4000.0), {"torch": "2.11"}, "x")


def test_the_report_says_ratios_means_and_what_is_missing(tmp_path: Path) -> None:
    of = table(tmp_path, "good", "better", baselines=["cublas", "torch"], sizes=[64, 128, 256])
    wrong = Attempt(
        "abc", "a GPU", "f m=64 n=64 k=64", "rise", "bad", "wrong", 0.0, 0.0, "", "5 in place of 4"
    )
    text = markdown(of, ROWS, [wrong], MACHINE)
    assert "| 64 64 64 | 10.00 | 1.0% | 500.0 | 50.0% | 2.000 | – | `good` |" in text
    assert "cublas 1.400 (ours is faster at 1 of 2; least 0.980 at 128 128 128)" in text
    assert "Not measured: 256 256 256." in text
    assert "* wrong: rise `bad`: 5 in place of 4" in text
    assert "a GPU, driver 580, CUDA 13.0, torch 2.11; 132 multiprocessors" in text
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 1


def test_at_each_case_the_fastest_of_the_others_counts(tmp_path: Path) -> None:
    of = table(tmp_path, "good", "better", baselines=["cublas", "torch"], sizes=[64, 128])
    rows = [*ROWS, row(64, "torch", "t", 9.0, 0.9), row(128, "torch", "t", 12.8, 1.28)]
    text = markdown(of, rows, [])
    # 0.9 and 0.98: the geometric mean of the lesser ratios
    assert "the fastest of them 0.939 (ours is faster at 0 of 2; least 0.900 at 64 64 64)" in text


def test_a_case_of_baselines_alone_is_in_the_report(tmp_path: Path) -> None:
    of = table(tmp_path, "good", baselines=["cublas"], sizes=[64])
    assert "| 64 64 64 | – | – | – | – | 20.00 µs | – |" in markdown(of, [ROWS[1]], [])


def test_a_machine_is_written_and_read(tmp_path: Path) -> None:
    MACHINE.write(tmp_path / "machine.json")
    assert read(tmp_path / "machine.json") == MACHINE


def test_the_peak_of_tensor_cores() -> None:
    assert tensor_peak((9, 0), 132, 1830) == pytest.approx(989.4, rel=1e-3)
    assert tensor_peak((8, 0), 108, 1410) == pytest.approx(312, rel=1e-2)
    assert tensor_peak((12, 0), 1, 1) is None


def test_without_nvml_nothing_is_known_of_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise OSError(name)

    monkeypatch.setattr("bench.machine.ctypes.CDLL", missing)
    assert Sensors("0").state().sm_mhz == 0
    assert Sensors("0").driver() == "unknown"


def test_plots_without_matplotlib_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"R0867(.|\n)*rise-lang\[plot\]"):
        plots.draw(table(tmp_path, "good"), ROWS, tmp_path)


class Axes:
    """Records what is drawn."""

    def __init__(self) -> None:
        self.lines: dict[str, list[tuple[int, ...]]] = {}

    def plot(self, *points: Any, label: str, **style: Any) -> None:
        self.lines[label] = list(points)

    def set_xticks(self, places: Any, labels: Any, **style: Any) -> None:
        assert len(places) == len(labels)

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **named: None


def test_each_kind_is_a_line_over_the_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    axes: list[Axes] = []

    def subplots(**options: Any) -> tuple[Any, Axes]:
        axes.append(Axes())
        return SimpleNamespace(savefig=lambda file, **how: file.write(b"")), axes[-1]

    monkeypatch.setitem(sys.modules, "matplotlib", SimpleNamespace(use=lambda backend: None))
    pyplot = SimpleNamespace(subplots=subplots, close=lambda figure: None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    of = table(tmp_path, "good", baselines=["cublas"], sizes=[64, 128, 256])
    paths = plots.draw(of, ROWS, tmp_path)
    assert [path.name for path in paths] == ["some.f.ratio.png", "some.f.fraction.png"]
    assert axes[0].lines == {"rise": [(0, 1), (1.0, 1.0)], "cublas": [(0, 1), (2.0, 0.98)]}


def test_plots_are_drawn_where_matplotlib_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    of = table(tmp_path, "good", baselines=["cublas"], sizes=[64, 128, 256])
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in plots.draw(of, ROWS, tmp_path))


def test_a_line_for_a_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (case,) = table(tmp_path, "good", sizes=[64]).cases
    verdict = Verdict(0.0, 0.0, "")
    finalists = [
        Finalist(Variant("rise", "good", None), summarise([10.0]), verdict),
        Finalist(Variant("cublas", "c", None), summarise([12.0]), verdict),
    ]
    tried = [Tried("rise", "bad", "wrong", reason="5 in place of 4")]
    text = summary(case, finalists, tried)
    times = "f m=64 n=64 k=64: 10.00 µs, cublas 12.00 (1.200); by good"
    assert text == f"{times}; 1 wrong (first: rise bad: 5 in place of 4)"
    with Shown() as shown:
        shown.case(case, 0, 1)
        shown.step("rise", "good")
        shown.finished(case, finalists, tried)
        shown.skipped(case, "[too] large")
    assert capsys.readouterr().out.splitlines() == [text, f"{case.key}: skipped: [too] large"]


# --- the command --------------------------------------------------------------------------------------------


def test_tables_are_listed(rise: Any) -> None:
    called = rise("bench")
    assert called.status == 0
    assert "rise_gemm        13 cases" in called.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["rise_gem"], "R0860"),
        (["rise_gemm", "--case", "257"], "R0862"),
        (["rise_gemm", "--only", "cublass"], "R0862"),
        (["rise_gemm", "--limit", "0"], "R0003"),
    ],
)
def test_a_call_that_is_wrong_is_refused(rise: Any, arguments: list[str], code: str) -> None:
    called = rise("bench", *arguments)
    assert called.status == 2
    assert f"error {code}: " in called.err


def test_a_table_is_compiled_without_a_gpu(
    rise: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not runtime.can_compile():
        pytest.skip("neither NVRTC nor nvcc is here")
    monkeypatch.setenv("RISE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(session, "processes", contextmanager(lambda count: iter([Immediately()])))
    (tmp_path / "p.rise").write_text(
        "def double = depFun((n: Nat) => fun((xs: n.f32) => xs |> map(fun(x => x + x))))"
    )
    (tmp_path / "t.toml").write_text("""
[[programs]]
file = "p.rise"
definition = "double"
operation = "copy"
sizes = [{ n = 7 }, { n = 256 }]
[[programs.candidates]]
strategy = "default"
[[programs.candidates]]
strategy = "tensor_core"
""")
    called = rise("bench", str(tmp_path / "t.toml"), "--prepare", "--target", "sm_80")
    assert called.status == 0, called.err
    assert "2 kernels for sm_80, 2 refused" in called.out
    assert "2 × tensor_core: R0606" in called.out
    assert len(list((tmp_path / "cache").glob("*.cubin"))) == 2
    assert len(list((tmp_path / "cache").glob("*.kernel"))) == 4


# --- torch --------------------------------------------------------------------------------------------------


class Tensor(np.ndarray):
    """An array that can what the baselines ask of a tensor."""

    def t(self) -> Any:
        return self.T

    @property
    def mT(self) -> Any:
        return self.swapaxes(-1, -2)

    def contiguous(self) -> Any:
        return np.ascontiguousarray(self)

    def clone(self) -> Any:
        return self.copy()

    def copy_(self, other: Any) -> None:
        self[...] = other

    def to(self, dtype: Any) -> Any:
        return self.astype(dtype)

    def square(self) -> Any:
        return self * self

    def amax(self, axis: int) -> Any:
        return self.max(axis)

    def permute(self, *axes: int) -> Any:
        return self.transpose(*axes)

    def sum(self, axis: int | None = None, keepdim: bool = False, **given: Any) -> Any:  # type: ignore[override]  # as torch
        """By torch's name of the last parameter, or NumPy's."""
        keepdims = keepdim or given.get("keepdims", False)
        return np.add.reduce(self, axis=axis, keepdims=keepdims, dtype=given.get("dtype"))

    def amin(self, axis: int) -> Any:
        return np.min(np.asarray(self), axis)

    def var(self, axis: int, correction: int) -> Any:  # type: ignore[override]  # as torch
        return np.var(np.asarray(self), axis, ddof=correction)


def tensor(array: Any) -> Tensor:
    return np.asarray(array).view(Tensor)


def fake_torch() -> Any:
    """The functions of torch that are called, by NumPy, with their documented parameters."""
    torch = ModuleType("torch")

    def mm(a: Any, b: Any, out_dtype: Any = None) -> Any:
        return tensor((a.astype(np.float64) @ b.astype(np.float64)).astype(out_dtype or a.dtype))

    def addmm(c: Any, a: Any, b: Any, out_dtype: Any = None, *, beta: float = 1, alpha: float = 1) -> Any:
        return tensor((beta * c + alpha * mm(a, b, np.float64)).astype(out_dtype or a.dtype))

    def softmax(x: Any, dimension: int) -> Any:
        powers = np.exp(x - x.max(dimension, keepdims=True))
        return powers / powers.sum(dimension, keepdims=True)

    def gelu(x: Any, approximate: str) -> Any:
        assert approximate == "tanh"
        return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def silu(x: Any) -> Any:
        with np.errstate(over="ignore"):
            return x / (1 + np.exp(-x))

    def conv2d(x: Any, filters: Any, bias: Any) -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(
            x.astype(np.float64), filters.shape[2:], axis=(2, 3)
        )
        sums = np.einsum("nchwij,ocij->nohw", windows, filters.astype(np.float64))
        return tensor((sums + bias[None, :, None, None]).astype(x.dtype))

    def pad(x: Any, widths: Any, mode: str) -> Any:
        assert (widths, mode, x.ndim) == ((1, 1, 1, 1), "replicate", 4)
        return tensor(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="edge"))

    def linear(x: Any, weights: Any, bias: Any) -> Any:
        return tensor((mm(x, weights.T, np.float64) + bias).astype(x.dtype))

    graphs: list[str] = []

    class Graph:
        def replay(self) -> None:
            graphs.append("replay")

    @contextmanager
    def graph(made: Any, stream: Any) -> Any:
        graphs.append("capture")
        yield

    def compiled(f: Any, mode: str, dynamic: bool) -> Any:
        graphs.append(mode)
        return f

    @contextmanager
    def stream(given: Any) -> Any:
        assert given == ("stream", 7)
        yield

    def cdist(a: Any, b: Any, p: float) -> Any:
        differences = np.abs(np.asarray(a)[:, None] - np.asarray(b))
        return differences.sum(-1) if p == 1 else differences.max(-1)

    torch.__dict__.update(
        float32=np.dtype(np.float32), float16=np.dtype(np.float16), mm=mm, bmm=mm,
        matmul=mm, mv=mm, addmm=addmm, cdist=cdist,
        softmax=softmax, sum=np.sum, add=lambda y, x, alpha: y + alpha * x, relu=lambda x: np.maximum(x, 0),
        clamp=np.clip,
        nn=SimpleNamespace(
            functional=SimpleNamespace(pad=pad, gelu=gelu, silu=silu, conv2d=conv2d, linear=linear)
        ),
        rsqrt=lambda x: 1 / np.sqrt(x), where=np.where,
        zeros=lambda shape, dtype, device: np.zeros(shape, dtype),
        as_tensor=lambda x, device: tensor(x.allocation), graphs=graphs,
        cuda=SimpleNamespace(
            ExternalStream=lambda handle: ("stream", handle), stream=stream, graph=graph, CUDAGraph=Graph
        ),
        compile=compiled,
        _dynamo=SimpleNamespace(reset=lambda: graphs.append("reset")),
    )  # fmt: skip
    return torch


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


STREAM = SimpleNamespace(handle=7)


def operands(inputs: list[Any], output: np.ndarray) -> Any:
    wrapped = [SimpleNamespace(allocation=x) if isinstance(x, np.ndarray) else x for x in inputs]
    return SimpleNamespace(
        inputs=tuple(wrapped),
        output=SimpleNamespace(allocation=output, dtype=output.dtype, shape=output.shape),
    )


def test_every_operation_by_torch_is_right(torch: Any) -> None:
    assert set(torch_baselines.functions(torch)) == set(PROGRAMS)
    for name, (file, definition, sizes) in PROGRAMS.items():
        scalars = {"alpha": 1.5, "beta": 0.5}
        case = Case(Subject(Source(file), definition, name, (sizes,), (), scalars=scalars), sizes)
        signature = Signature.of(case)
        patterns = [
            integers(p.shape, p.dtype, i, 8) if p.shape else p.value for i, p in enumerate(signature.inputs)
        ]
        arrays = [p if isinstance(p, float) else np.resize(p.numbers, p.shape) for p in patterns]
        output = np.full(signature.output.shape, np.nan, signature.output.dtype)
        given = operands(arrays, output)
        ((_, work),) = torch_baselines.variants(name, None, [given])
        assert work.check is not None
        work.check(STREAM, given)
        mesh = np.ix_(*(np.arange(size) for size in output.shape))
        expected = operation(name).expected(patterns, mesh).values
        # torch rounds what is between two kernels to f16
        rounding = 4e-3 if output.dtype == np.float16 else 1e-6
        assert np.allclose(output, expected, rtol=0, atol=rounding * np.abs(expected).max()), name


def test_torch_records_its_own_graphs(torch: Any) -> None:
    given = operands([np.ones(4, np.float32)], np.zeros(4, np.float32))
    ((name, work),) = torch_baselines.variants("copy", "default", [given])
    assert work.record is not None
    work.record(STREAM, [given, given])()
    assert (name, torch.graphs) == ("default", ["reset", "default", "capture", "replay"])


def test_a_result_of_another_type_is_no_fair_comparison(torch: Any) -> None:
    given = operands([np.ones(4, np.float16)], np.zeros(4, np.float32))
    ((_, work),) = torch_baselines.variants("copy", None, [given])
    with pytest.raises(LaunchError, match="R0830.*float16"):
        work.check(STREAM, given)  # type: ignore[misc]


def test_without_torch_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(LaunchError, match="R0828"):
        list(torch_baselines.variants("copy", None, []))
