"""Faults for passes and translations, each with a program whose kernel shows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen import pipeline
from codegen.cuda import scalars
from codegen.cuda.printer import Printer
from codegen.execute import execute
from codegen.ir import imperative as i
from codegen.ir.kernel import Kernel
from codegen.ir.launch import Launch
from codegen.lower import views
from codegen.lower.paths import READING, WRITING, Resolver
from codegen.lower.primitives import levels
from codegen.lower.translate import ACCEPTING, CONTINUING
from codegen.passes import barriers, distribute, order
from codegen.passes import workers as workers_pass
from codegen.passes.order import STRUCTURE, Pass
from codegen.pipeline import generate
from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.errors import CompilationError, EmulationError, RiseError
from rise.expr import Expr, inline
from rise.interpret import call, random_inputs
from rise.nat import Nat, NatVariable, constant, nat, variable
from rise.normal import data_flow
from strategies.matmul.tensor_core import tensor_core
from tests.support.programs import succeeded

ROOT = Path(__file__).parents[2]

EXAMPLES = ROOT / "examples"

SUM = "reduceSeq(Local)(fun((s, t) => s + t), 0)"

WINDOWS = f"""mapThreads(fun(x => x)) |> toMem(Shared) |> slide(3, 1)
  |> mapThreads(fun(w => w |> {SUM}))"""

# programs that show faults: derived ones by name, low-level ones as text
PROBES = {
    "join": "fun((xs: 3.5.f32) => xs |> join |> mapSeq(fun(x => x)))",
    "split": "fun((xs: 12.f32) => xs |> split(3) |> mapSeq(mapSeq(fun(x => x))))",
    "zip": "fun((xs: 5.f32, ys: 5.f32) => zip(xs)(ys) |> mapSeq(fun((x, y) => x - y)))",
    "unzip": "fun((ps: 5.(f32, f32)) => fst(ps |> unzip) |> mapSeq(fun(x => x)))",
    "slide": "fun((xs: 11.f32) => xs |> slide(3, 2) |> mapSeq(mapSeq(fun(x => x))))",
    "drop": "fun((xs: 11.f32) => xs |> drop(4) |> mapSeq(fun(x => x)))",
    "write join": "fun((xs: 3.5.f32) => xs |> mapSeq(mapSeq(fun(x => x))) |> join)",
    "write transpose": "fun((xs: 3.5.f32) => xs |> mapSeq(mapSeq(fun(x => x))) |> transpose)",
    "write split": "fun((xs: 12.f32) => xs |> mapSeq(fun(x => x)) |> split(3))",
    "cast": "fun((xs: 5.f16, ys: 5.f16) => zip(xs)(ys)"
    " |> mapSeq(fun((x, y) => f32(x * 64 + 64) * f32(y * 65 + 512))))",
    "fraction": "fun((xs: 5.f32) => xs |> mapSeq(fun(x => x * 0.5)))",
    "sum": f"fun((xs: 6.7.f32) => xs |> mapSeq(fun(r => r |> {SUM})))",
    "global": "fun((xs: 1000.f32) => xs |> mapGlobal(fun(x => x + 1)))",
    "blocks": "fun((xs: 3.2.f32) => xs |> mapBlock(1)(mapBlock(0)(fun(x => x))))",
    "lanes": "fun((xs: 2.3.32.f32) => xs |> mapBlock(mapWarp(mapLane(fun(x => x + 1)))))",
    "windows": f"fun((xs: 3.66.f32) => xs |> mapBlock(fun(r => r |> {WINDOWS})))",
    "loop of windows": f"fun((xs: 3.66.f32) => xs |> mapSeq(fun(r => r |> {WINDOWS})))",
    "loop of copies": "fun((xs: 3.64.f32) => xs |> mapSeq(fun(r => r |> mapThreads(fun(x => x)) |> copyAsync"
    " |> reorder(64, natFun(i => 63 - i), natFun(i => 63 - i)) |> mapThreads(fun(x => x)))))",
    "cluster": "fun((xs: 5.3.33.i32) => xs |> mapCluster(0)(fun(ps => ps |>"
    " mapBlock(0)(mapThreads(0)(fun(x => x))) |> toMem(Distributed) |> transpose |> split(11) |>"
    f" mapBlock(0)(mapThreads(0)(fun(c => c |> {SUM}))))))",
    "race": "fun((xs: 3.64.f32) => xs |> mapBlock(fun(r => r |> mapThreads(fun(x => x))"
    " |> toMem(Shared) |> mapSeq(fun(x => x)))))",
}

UNSTAGED = {"block": (32, 32, 32), "warp": (16, 16), "stages": 0, "epilogue": "direct"}

STAGED = {"stages": 3, "epilogue": "shared"}

# the strategy's parameters by probe; `staged` is gemm through shared memory
DERIVED: dict[str, dict[str, Any]] = {"gemm": {}, "gemm_f16": {}, "staged": STAGED}


@cache
def probe(name: str) -> tuple[Expr, Expr]:
    """A program, and the low-level program it is run as."""
    if name not in DERIVED:
        term = data_flow(inline(specialise(check_text(f"def f = {PROBES[name]}")["f"], {})))
        return term, term
    definition = check_text((EXAMPLES / "gemm.rise").read_text(encoding="utf-8"))[
        name.replace("staged", "gemm")
    ]
    term = data_flow(inline(specialise(definition, {"m": 64, "n": 96, "k": 160 if name == "staged" else 64})))
    return term, succeeded(tensor_core(**{**UNSTAGED, **DERIVED[name]})(term)).term


def outcome(name: str, change: Callable[[Kernel], Kernel] = lambda k: k) -> str:
    """How the probe's kernel fares: `right`, or the way in which it is noticed to be faulty."""
    term, low_level = probe(name)
    try:
        kernel = change(generate(low_level, "kernel"))
        for seed in (0, 1, 2):
            inputs = random_inputs(kernel.inputs, seed, exact=True)
            found = execute(kernel, inputs, "emulate", seed=seed)
            if not np.array_equal(found, call(term, *inputs)):
                return "wrong"
    except CompilationError:
        return "compiler"
    except EmulationError as error:
        return error.code
    except (RiseError, ValueError):  # a path of the wrong length cannot be taken apart
        return "refused"
    return "right"


Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Fault:
    name: str
    probe: str
    killed_by: str  # a regular expression
    patch: Patch = lambda _: None
    change: Callable[[Kernel], Kernel] = lambda k: k


def read(name: str, view: Callable[..., Any]) -> Patch:
    return lambda patch: patch.setitem(READING, name, view)


def write(name: str, view: Callable[..., Any]) -> Patch:
    return lambda patch: patch.setitem(WRITING, name, view)


def tiles(change: Callable[[i.Tile], i.Tile]) -> Patch:
    original = Resolver.tile
    return lambda patch: patch.setattr(Resolver, "tile", lambda *args: change(original(*args)))


def printed(pattern: str, new: str) -> Patch:
    """Every printed line with something replaced."""
    original = Printer.line

    def line(self: Printer, text: str) -> None:
        original(self, re.sub(pattern, new, text))

    return lambda patch: patch.setattr(Printer, "line", line)


def workers(change: Callable[[Nat], Nat]) -> Patch:
    """Other workers' numbers for the iterations of parallel loops."""
    original = workers_pass.worker
    return lambda patch: patch.setattr(workers_pass, "worker", lambda *args: change(original(*args)))


def renamed(register: str, other: str) -> Callable[[Nat], Nat]:
    return lambda number: number.substitute({NatVariable(register): variable(other)})


def everywhere(command: i.Command, change: Callable[[i.Command], i.Command]) -> i.Command:
    inside = tuple(everywhere(c, change) for c in i.inner(command))
    return change(i.with_inner(command, inside))


def after_pass(name: str, change: Callable[[i.Command], i.Command]) -> Patch:
    """Every command of what a pass has made, with a change."""

    def faulty(each: Pass) -> Pass:
        def run(function: i.Function, launch: Launch) -> tuple[i.Function, Launch]:
            function, launch = each.run(function, launch)
            return replace(function, body=everywhere(function.body, change)), launch

        return replace(each, run=run) if each.name == name else each

    return lambda patch: patch.setattr(pipeline, "STRUCTURE", tuple(map(faulty, STRUCTURE)))


def barriers_become(change: Callable[[i.Barrier], i.Command]) -> Patch:
    return after_pass("barriers", lambda c: change(c) if isinstance(c, i.Barrier) else c)


def without_the_last(command: i.Command) -> i.Command:
    """Without the barrier at the end."""
    if not isinstance(command, i.Sequence) or command.commands[-1] != i.Barrier(i.Scope.CLUSTER):
        return command
    return i.sequence(*command.commands[:-1])


def without_offset_of_the_warp(command: i.Command) -> i.Command:
    if not isinstance(command, i.New) or command.offset is None:
        return command
    zero = dict.fromkeys(command.offset.atoms, constant(0))
    return replace(command, offset=command.offset.substitute(zero))


def at_the_start(command: i.Command) -> i.Command:
    if not isinstance(command, i.New) or command.offset is None:
        return command
    return replace(command, offset=constant(0))


def starting_again_in_each_step(patch: pytest.MonkeyPatch) -> None:
    original = levels.fold

    def faulty(*args: Any) -> i.Command:
        new = original(*args)
        assert isinstance(new, i.New) and isinstance(new.body, i.Sequence)
        start, *rest = new.body.commands
        parts = [
            replace(c, body=i.sequence(start, c.body))
            if isinstance(c, i.For) and c.role is i.Role.REDUCTION
            else c
            for c in rest
        ]
        return replace(new, body=i.sequence(start, *parts))

    patch.setattr(levels, "fold", faulty)
    for name in ("reduceSeq", "reduceSeqUnroll"):
        patch.setitem(CONTINUING, name, faulty)


def one_iteration_less(label: str) -> Patch:
    original = Printer._for

    def faulty(self: Printer, loop: i.For) -> None:
        less = loop.count - constant(1) if loop.label == label else loop.count
        original(self, replace(loop, count=less))

    return lambda patch: patch.setattr(Printer, "_for", faulty)


def without_the_loop_back(patch: pytest.MonkeyPatch) -> None:
    """Barriers between commands in a loop, but none between an iteration and the next."""

    def faulty(self: Any, loop: i.For, before: Any, _: Any) -> Any:
        body, after = self.go(loop.body, before)
        return replace(loop, body=body), after

    patch.setattr(barriers._Inserter, "_loop", faulty)


def mma_of(order: tuple[int, int, int]) -> Patch:
    def faulty(translator: Any, call_: Any, target: i.Acceptor) -> i.Command:
        def multiply(*operands: i.Expression) -> i.Command:
            a, b, c = (operands[n] for n in order)
            return i.MmaFragment(target, a, b, c, call_.origin)

        return translator.all(call_.arguments, call_.environment, multiply)  # type: ignore[no-any-return]

    return lambda patch: patch.setitem(ACCEPTING, "tensorMatMulAdd", faulty)


def no_fill(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(ACCEPTING, "generateFragment", lambda *_: i.Skip())


def no_cast(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scalars, "converted", lambda text, *_: text)


def half_sums(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(scalars.TYPES, "f32", "half")


def fewer_threads(kernel: Kernel) -> Kernel:
    x, y, z = kernel.launch.block
    return replace(kernel, launch=replace(kernel.launch, block=(x - 32, y, z)))


def half_of_the_threads(kernel: Kernel) -> Kernel:
    x, y, z = kernel.launch.block
    return replace(kernel, launch=replace(kernel.launch, block=(x // 2, y, z)))


def less_shared_memory(kernel: Kernel) -> Kernel:
    return replace(kernel, launch=replace(kernel.launch, shared_bytes=66 * 4 - 4))


def fewer_blocks(kernel: Kernel) -> Kernel:
    x, y, z = kernel.launch.grid
    return replace(kernel, launch=replace(kernel.launch, grid=(x - 1, y, z)))


def zip_exchanged(_: Any, path: Any) -> Any:
    index, member, *rest = path
    return (1 if member == "fst" else 0), (index, *rest)


FAULTS = [
    Fault(
        "join reads quotient and remainder exchanged", "join", "wrong|R0902",
        read("join", lambda s, p: (0, _exchanged(s, p))),
    ),
    Fault("split reads with the other factor", "split", "wrong|R0902",
          read("split", lambda s, p: (0, (s["m"] * nat(p[0]) + nat(p[1]), *p[2:])))),
    Fault("zip gives the other operand", "zip", "wrong", read("zip", zip_exchanged)),
    Fault("unzip leaves index and member in order", "unzip", "refused",
          read("unzip", lambda _, p: (0, p))),
    Fault("slide steps by the window's size", "slide", "wrong|R0902",
          read("slide", lambda s, p: (0, (nat(p[0]) * s["sz"] + nat(p[1]), *p[2:])))),
    Fault("drop drops nothing", "drop", "wrong", read("drop", lambda _, p: (0, p))),
    Fault("join writes with the other factor", "write join", "wrong|R0903",
          write("join", lambda s, p, _: (nat(p[0]) * s["n"] + nat(p[1]), *p[2:]))),
    Fault("transpose writes untransposed", "write transpose", "wrong|R0903",
          write("transpose", lambda _, p, __: p)),
    Fault("split writes with the other factor", "write split", "wrong|R0903",
          write("split", lambda s, p, _: _divided(s, p, "m"))),
    Fault("leading dimension + 8", "gemm", "wrong|R0902|R0903",
          tiles(lambda t: replace(t, leading=t.leading + constant(8)))),
    Fault("leading dimension + 1", "gemm", "refused",
          tiles(lambda t: replace(t, leading=t.leading + constant(1)))),
    Fault("layouts exchanged", "gemm", "wrong", tiles(lambda t: replace(t, row_major=not t.row_major))),
    Fault("offsets of tiles dropped", "gemm", "R0907",
          tiles(lambda t: replace(t, offset=constant(0)))),
    Fault("no barriers in a warp", "gemm_f16", "R0907",
          barriers_become(lambda b: b if b.scope is i.Scope.BLOCK else i.Skip())),
    Fault("no barriers in a block", "windows", "R0904|R0907", barriers_become(lambda b: i.Skip())),
    Fault("barriers of a warp for those of a block", "windows", "R0907|R0910",
          barriers_become(lambda b: i.Barrier(i.Scope.WARP))),
    Fault("no barrier from an iteration to the next", "loop of windows", "R0907",
          without_the_loop_back),
    Fault("no barriers in a cluster", "cluster", "R0904|R0908", barriers_become(lambda b: i.Skip())),
    Fault("barriers of a block for those of a cluster", "cluster", "R0904|R0908",
          barriers_become(lambda b: i.Barrier(i.Scope.BLOCK))),
    Fault("a block ends while others read its memory", "cluster", "R0924",
          after_pass("barriers", without_the_last)),
    Fault("a block reads its own element of a distributed array only", "cluster", "wrong",
          printed(r"shared_of_block\(part, k\)", "part")),
    Fault("copies are not waited for", "staged", "R0904|R0916", printed(r"wait_copies<1>\(\);", ";")),
    Fault("one group of copies too few is waited for", "staged", "R0904|R0916",
          printed("wait_copies<1>", "wait_copies<2>")),
    Fault("copies are not committed", "staged", "R0904|R0916", printed(r"commit_copies\(\);", ";")),
    Fault("no barriers in a pipeline", "staged", "R0904|R0907|R0916", barriers_become(lambda b: i.Skip())),
    Fault("a slot is filled while it is in use", "staged", "R09..|wrong",
          printed("int slot_1 = 2;", "int slot_1 = 0;")),
    Fault("the wrong slot is used", "staged", "R09..|wrong", printed("int slot = 0;", "int slot = 1;")),
    Fault("what is prefetched is one tile off", "staged", "wrong|R0902", printed(r"k_1 \* 32 ", "k_1 * 64 ")),
    Fault("memory is reused without a barrier", "staged", "R0907",
          lambda patch: patch.setattr(order, "regions", lambda *_: {})),
    Fault("buffers lie on top of each other", "staged", "R09..|wrong",
          after_pass("place shared", at_the_start)),
    Fault("copies start in the middle of a vector", "staged", "R0912",
          printed(r"copy_async<8>\(&(\w+)\[", r"copy_async<8>(&\1[4 + ")),
    Fault("vectors are copied half", "staged", "R0904", printed("copy_async<8>", "copy_async<4>")),
    Fault("the last copies are not waited for", "loop of copies", "R0904|R0916",
          printed(r"wait_copies<0>\(\);", ";")),
    Fault("a window starts one late", "windows", "wrong|R0902|R0904", printed(r"(tile_?)\[k ", r"\1[1 + k ")),
    Fault("rows are not padded for those who read", "staged", "R09..|wrong|refused",
          tiles(lambda t: replace(t, leading=t.leading - 8))),
    Fault("all warps share one place in shared memory", "gemm_f16", "R0907|wrong",
          after_pass("place shared", without_offset_of_the_warp)),
    Fault("registers belong to lanes", "gemm", "refused",
          lambda patch: patch.setattr(distribute, "_single", lambda *_: (i.Level.LANE, 0))),
    Fault("the last element of a fragment is forgotten", "gemm", "R0906|wrong",
          printed(r"\.num_elements;", ".num_elements - 1;")),
    Fault("accumulators are not filled", "gemm", "R0906|compiler", no_fill),
    Fault("accumulators start again in each step", "gemm", "wrong|refused", starting_again_in_each_step),
    Fault("sums start again in each step", "sum", "wrong|refused", starting_again_in_each_step),
    Fault("one k tile is left out", "gemm", "wrong", one_iteration_less("reduceSeq")),
    Fault("one k step of a tile is left out", "gemm", "wrong", one_iteration_less("reduceSeqUnroll")),
    Fault("a warp is not launched", "gemm", "wrong", change=fewer_threads),
    Fault("half of the threads are launched", "windows", "wrong|R0904", change=half_of_the_threads),
    Fault("less shared memory than is used", "windows", "R0902|R0903", change=less_shared_memory),
    Fault("a column of blocks is not launched", "gemm", "wrong", change=fewer_blocks),
    Fault("no conversion from half to float", "cast", "wrong|compiler", no_cast),
    Fault("sums in half", "cast", "wrong|compiler|R0901", half_sums),
    Fault("operands of the product exchanged", "gemm", "compiler", mma_of((1, 0, 2))),
    Fault("the product forgets what it is added to", "gemm", "compiler|refused", mma_of((0, 1, 0))),
    Fault("fragments of the epilogue exchanged", "gemm", "wrong", read("zipFragment", zip_exchanged)),
    Fault("stored in the other layout", "gemm", "wrong",
          printed(r"(store_matrix_sync.*)mem_row_major", r"\1mem_col_major")),
    Fault("the bound of the last block is not checked", "global", "R0902|R0903",
          printed(r"if \(\w+ < \d+\)", "if (true)")),
    Fault("grid dimensions exchanged", "blocks", "wrong|R0908|R0902|R0903",
          workers(renamed("blockIdx.x", "blockIdx.y"))),
    Fault("a lane is its thread's number", "lanes", "wrong|R0902|R0903|R0907",
          workers(lambda n: variable("threadIdx.x"))),
    Fault("offsets of operands not printed", "gemm", "wrong",
          printed(r"\b([AB]) \+ \(.*\), ", r"\1, ")),
    Fault("fractions are cut off", "fraction", "wrong", printed(r"0\.5f", "0.0f")),
    Fault("racing programs are not refused", "race", "R0907|R0908",
          lambda patch: patch.setattr(order, "check", lambda *_: None)),
]  # fmt: skip


def _exchanged(sizes: views.Sizes, path: views.Path) -> views.Path:
    reading = ORIGINAL_JOIN(sizes, path)
    assert isinstance(reading, tuple)
    _, (quotient, remainder, *rest) = reading
    return (remainder, quotient, *rest)


def _divided(sizes: views.Sizes, path: views.Path, name: str) -> views.Path:
    """All sizes of the view are the one of that name."""
    wrong = replace(sizes, arguments=dict.fromkeys(sizes.arguments, sizes[name]))
    return ORIGINAL_SPLIT(wrong, path, 0)


ORIGINAL_JOIN, ORIGINAL_SPLIT = READING["join"], WRITING["split"]

Row = tuple[Fault, str]


def outcomes(patched: pytest.MonkeyPatch) -> list[Row]:
    """Every fault, and how it is noticed."""
    rows: list[Row] = []
    for fault in FAULTS:
        probe(fault.probe)
        with patched.context() as patch:
            fault.patch(patch)
            patch.setattr(pipeline, "_LATEST", [])  # kernels made without the fault
            rows.append((fault, outcome(fault.probe, fault.change)))
    return rows


def table(rows: list[Row]) -> list[str]:
    """As `docs/testing.md` shows it."""
    lines = [f"| {fault.name} | {fault.probe} | {killer} |" for fault, killer in rows]
    return ["| fault | program | noticed by |", "| --- | --- | --- |", *lines]
