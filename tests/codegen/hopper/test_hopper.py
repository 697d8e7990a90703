"""The Hopper machine: right kernels are exact for every seed, wrong ones are found out, all compile."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from codegen.emulation.compiling import compiler
from codegen.ir.tensor_maps import TensorBuffer, map_of
from codegen.runtime import can_compile
from codegen.runtime.compiling import compiler_report
from rise.errors import EmulationError
from tests.codegen.hopper import hopper_faults
from tests.codegen.hopper.hopper_kernels import (
    Fault,
    Problem,
    combined,
    copies,
    integers,
    maps,
    product,
    products,
    ring,
    seeded,
    text,
    unset,
    with_faults,
)
from tests.support.emulated import directory  # noqa: F401  # a fixture
from tests.support.nightly import every_other

SEEDS = (0, 1, 2)  # copies arrive late, at once, at random
emulating = pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler")


# --- right kernels ------------------------------------------------------------------------------------


@emulating
@pytest.mark.parametrize("problem", every_other(copies()), ids=lambda p: p.name)
def test_copies_are_exact(problem: Problem) -> None:
    assert all(problem.run(seed) for seed in SEEDS)


def parameters(problem: Problem) -> str:
    return problem.source.split(" k(")[1].split(") {")[0]


def alike(first: Problem) -> list[Problem]:
    """The products with the parameters of one, in one text."""
    return combined([p for p in products() if parameters(p) == parameters(first)])


@emulating
@pytest.mark.parametrize(
    ("first", "count"),
    [(product(64), 23), (product(32, "signed char", "int"), 2)],
    ids=["from shared memory", "whole numbers"],
)
def test_products_are_exact(first: Problem, count: int) -> None:
    """Every swizzle with rows along k and along m or n, and the types of operands."""
    problems = alike(first)
    assert len(problems) == count
    wrong = [problem.name for problem in problems if not problem.run(seed=2)]
    assert not wrong


@emulating
def test_all_threads_of_any_number_of_blocks_may_read_the_same_elements() -> None:
    """The emulator forgets who read an element when the block ends."""
    blocks, threads, shared = 610, 8, 1024  # more reads in all than the emulator remembers
    body = f"""
  Shared<float> tile = shared_memory<float>(0);
  for (int i = threadIdx.x; i < {shared}; i += {threads}) tile[i] = blockIdx.x;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < {shared}; i++) sum += tile[i];
  out[blockIdx.x * {threads} + threadIdx.x] = sum;
"""
    out = unset("out", (blocks, threads), "float32")
    wanted = {0: np.broadcast_to(shared * np.arange(blocks)[:, None], out.array.shape)}
    source = text("Global<float> out", body, threads)
    assert Problem("sums", source, (out,), wanted, threads, 4 * shared, (blocks, 1, 1)).run()


@cache
def faulty_ring() -> Problem:
    return with_faults(ring(320, stages=2), hopper_faults.RING)


@cache
def faulty_cluster() -> Problem:
    return with_faults(ring(320, stages=2, consumers=2, cluster=2, deep=True), hopper_faults.CLUSTER)


@cache
def faulty_registers() -> Problem:
    return with_faults(product(64, in_registers=True), hopper_faults.REGISTERS)


@emulating
def test_a_product_with_registers_is_exact() -> None:
    assert all(seeded(faulty_registers(), 0).run(seed) for seed in SEEDS)


@emulating
@pytest.mark.parametrize("k", [8, 64, 72, 128, 192, 320])
def test_a_ring_is_exact_around_its_length(k: int) -> None:
    base = ring(k, stages=2, tiles=2)
    problem = Problem(**{**base.__dict__, "source": faulty_ring().source})
    assert all(seeded(problem, 0).run(seed) for seed in SEEDS)


@emulating
@pytest.mark.parametrize("k", [64, 128, 320])
def test_a_cluster_shares_what_it_loads(k: int) -> None:
    base = ring(k, stages=2, consumers=2, cluster=2, deep=True)
    problem = Problem(**{**base.__dict__, "source": faulty_cluster().source})
    assert all(seeded(problem, 0).run(seed) for seed in SEEDS)


# --- seeded faults ------------------------------------------------------------------------------------


def outcome(problem: Problem, seed: int) -> tuple[str, str]:
    try:
        return ("right" if problem.run(seed) else "wrong"), ""
    except EmulationError as error:
        return error.code, error.message


def check(problem: Problem, faults: list[Fault], number: int) -> None:
    fault = faults[number - 1]
    for seed in SEEDS:
        code, message = outcome(seeded(problem, number), seed)
        assert re.fullmatch(fault.code, code), (seed, code, message)
        assert re.search(fault.message, message), message


def each(faults: list[Fault]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("number", range(1, len(faults) + 1), ids=[fault.name for fault in faults])


@emulating
@each(hopper_faults.RING)
def test_a_fault_of_a_ring_is_found(number: int) -> None:
    check(faulty_ring(), hopper_faults.RING, number)


@emulating
@each(hopper_faults.CLUSTER)
def test_a_fault_of_a_cluster_is_found(number: int) -> None:
    check(faulty_cluster(), hopper_faults.CLUSTER, number)


@emulating
@each(hopper_faults.REGISTERS)
def test_a_fault_of_a_product_is_found(number: int) -> None:
    check(faulty_registers(), hopper_faults.REGISTERS, number)


@emulating
def test_clusters_divide_the_grid() -> None:
    problem = faulty_cluster()
    odd = Problem(**{**problem.__dict__, "grid": (3, 1, 1)})
    assert outcome(seeded(odd, 0), 0)[0] == "R0914"


@emulating
def test_a_map_has_as_many_coordinates_as_the_call() -> None:
    problem = copies()[0]
    flat = integers((13 * 96,), "uint8", bound=0)
    given = TensorBuffer("in", flat, map_of(flat.shape, "uint8", (48,)))
    wrong = Problem(**{**problem.__dict__, "arguments": (given, *problem.arguments[1:])})
    code, message = outcome(wrong, 0)
    assert code == "R0922" and "2 coordinates; the tensor in has 1" in message


# --- for the GPU --------------------------------------------------------------------------------------

COMPILED = [
    *copies()[-2:],
    product(64, majors=("MN", "MN")),
    product(72, sums="half"),
    product(16, "tf32", in_registers=True),
    ring(320, deep=True),
    ring(256, n=128, stages=2, consumers=2),
    ring(320, stages=2, consumers=2, cluster=2, deep=True),
]


@pytest.mark.skipif(not can_compile(), reason="there is no CUDA compiler")
@pytest.mark.parametrize("problem", COMPILED, ids=lambda p: p.name)
def test_kernels_compile_without_serialised_products(problem: Problem) -> None:
    report = compiler_report(problem.source, "sm_90a")
    assert "serialized" not in report and "setmaxnreg ignored" not in report
    assert "0 bytes stack frame, 0 bytes spill stores" in report


def test_combined_texts_are_told_apart() -> None:
    """The combination does not pass because all of its kernels are one."""
    first = product(64)
    other = product(64, majors=("MN", "K"))
    one, two = combined([first, other])
    assert one.source == two.source and one.arguments[-1] != two.arguments[-1]
    assert maps("A", "B") in text(maps("A", "B"), "", 32)
    assert np.array_equal(first.wanted[0], other.wanted[0])
