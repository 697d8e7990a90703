"""The same results by torch, as a user would write them, eagerly or compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from bench import columns, evaluations, fused, nested, pairs
from bench.work import Operands, Work
from rise.errors import LaunchError

Function = Callable[..., Any]


def functions(torch: Any, compiled: bool = False) -> Mapping[str, Function]:
    """Each takes the inputs of its operation and gives its result; products of f16 are summed up in f32.

    compiled: for torch.compile, which has no lowering of an `addmm` with another type of result: there the
              product and the sum are written apart, and fusing them is left to the compiler
    """
    f32 = torch.float32

    def added(c: Any, a: Any, b: Any, alpha: Any = 1.0, beta: Any = 1.0) -> Any:
        if compiled:
            return alpha * torch.mm(a, b, out_dtype=f32) + beta * c
        return torch.addmm(c, a, b, out_dtype=f32, alpha=alpha, beta=beta)

    def five_point(x: Any) -> Any:
        padded = torch.nn.functional.pad(x[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
        return 0.25 * (padded[:-2, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:] + padded[2:, 1:-1])

    return {
        "gemm": lambda a, b, c, alpha, beta: added(c, a, b, alpha, beta),
        "matmul": lambda a, b: torch.mm(a, b, out_dtype=f32),
        "gemmBt": lambda a, b, c, alpha, beta: added(c, a, b.t(), alpha, beta),
        "matmulBt": lambda a, b: torch.mm(a, b.t()),
        "matmulAt": lambda a, b: torch.mm(a.t(), b),
        "matmulAtBt": lambda a, b: torch.mm(a.t(), b.t()),
        "biasRelu": lambda a, b, bias: torch.relu(torch.mm(a, b, out_dtype=f32) + bias),
        "reluProduct": lambda a, b: torch.mm(torch.relu(a), b, out_dtype=f32),
        "sumOfProducts": lambda a, b, c, d: added(torch.mm(a, b, out_dtype=f32), c, d.t()),
        "batchedProducts": lambda a, b: torch.bmm(a, b, out_dtype=f32),
        "batchedHalf": torch.bmm,
        "copy": lambda x: x.clone(),
        "axpy": lambda a, x, y: torch.add(y, x, alpha=a),
        "transposition": lambda x: x.t().contiguous(),
        "sum": torch.sum,
        "fivePoint": five_point,
        "softmax": lambda x: torch.softmax(x, 1),
        **fused.functions(torch),
        **nested.functions(torch),
        **columns.functions(torch),
        **pairs.functions(torch),
        **evaluations.functions(torch),
    }


def variants(operation: str, mode: str | None, sets: Sequence[Operands]) -> Iterator[tuple[str, Work]]:
    """Eager (mode None), or compiled in a mode. R0828 where torch is not installed."""
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise LaunchError("R0828", f"torch cannot be imported: {error}") from None
    function = functions(torch, mode is not None)[operation]
    name = "eager"
    if mode is not None:
        # beyond eight shapes torch.compile silently falls back to eager mode, so each case resets it
        torch._dynamo.reset()
        function, name = torch.compile(function, mode=mode, dynamic=False), mode
    yield name, _work(torch, function, sets)


def prepare(names: Iterable[str]) -> None:
    """Imports torch, and lets it open its libraries, if one of these baselines needs it and it is there."""
    if any(name.startswith("torch") for name in names):
        with suppress(Exception):  # whoever needs it is told
            torch = import_module("torch")
            torch.mm(*(torch.ones(16, 16, device="cuda", dtype=torch.float16) for _ in range(2)))


def _work(torch: Any, function: Function, sets: Sequence[Operands]) -> Work:
    tensors = {id(operands): [_tensor(torch, x) for x in operands.inputs] for operands in sets}

    def on(stream: Any) -> Any:
        return torch.cuda.ExternalStream(stream.handle)

    def call(stream: Any, operands: Operands) -> None:
        with torch.cuda.stream(on(stream)):
            function(*tensors[id(operands)])

    def check(stream: Any, operands: Operands) -> None:
        with torch.cuda.stream(on(stream)):
            result = function(*tensors[id(operands)])
            expected = getattr(torch, operands.output.dtype.name)
            if result.dtype != expected:
                raise LaunchError("R0830", f"torch gives {result.dtype}, not {expected}")
            _tensor(torch, operands.output).copy_(result.reshape(operands.output.shape))

    def record(stream: Any, turns: Sequence[Operands]) -> Callable[[], None]:
        graph, there = torch.cuda.CUDAGraph(), on(stream)
        with torch.cuda.graph(graph, stream=there):
            for operands in turns:
                function(*tensors[id(operands)])

        def replay() -> None:
            with torch.cuda.stream(there):
                graph.replay()

        return replay

    return Work(call, check, record)


def _tensor(torch: Any, operand: Any) -> Any:
    """A tensor over the same memory; numbers stay numbers."""
    return torch.as_tensor(operand, device="cuda") if hasattr(operand, "allocation") else operand
