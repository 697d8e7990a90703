"""Bank conflicts: as many wavefronts as shared memory needs for each line of a text."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.emulation.emulator import Buffer, Conflicts, Emulation, emulate
from tests.support.emulated import Run, directory, floats, needs_compiler, text, unset  # noqa: F401  # a fixture
from tests.support.kernels import kernel

pytestmark = needs_compiler


def transposed(row: int) -> str:
    """32 x 32 numbers through a tile whose rows are `row` numbers apart: written by rows, read by columns."""
    return text(
        "Global<float> out, Global<const float> x",
        f"""
  Shared<float> tile = shared_memory<float>(0);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int r = warp; r < 32; r += 8) tile[r * {row} + lane] = x[r * 32 + lane];
  __syncthreads();
  for (int r = warp; r < 32; r += 8) out[r * 32 + lane] = tile[lane * {row} + r];
""",
    )


@pytest.mark.parametrize(("row", "wavefronts"), [(32, 32), (33, 1), (36, 4)])
def test_a_transposition_has_the_conflicts_of_its_rows(row: int, wavefronts: int) -> None:
    out = unset(1024)
    found = Run(threads=256, shared_bytes=48 * 128)(transposed(row), out, floats(1024))
    assert np.array_equal(out.array.reshape(32, 32), floats(1024).reshape(32, 32).T)
    assert found.conflicts == {6: Conflicts(32, 32), 8: Conflicts(32, 32 * wavefronts)}
    assert found.extra_wavefronts == 32 * (wavefronts - 1)


LAYOUTS = {"rowMajor": 32, "padded(1)": 1}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_program_says_how_its_tile_lies(layout: str) -> None:
    square = "mapThreads(1)(mapThreads(0)(fun(x => x)))"
    made = kernel(
        f"fun((x: 2.32.32.f32) => x |> mapBlock(fun(t => t |> {square} |> toMem(Shared, {layout})"
        f" |> transpose |> {square})))"
    )
    x, out = floats(2048), unset(2048)
    found = emulate(made.source, made.name, (2, 1, 1), made.launch.block, [out, x], made.launch.shared_bytes)
    worst = max(c.wavefronts / c.phases for c in found.conflicts.values())
    assert worst == LAYOUTS[layout]


def vectors(row: int, how: str) -> Emulation:
    """A warp copies 32 rows of 16 bytes into rows of `row` bytes."""
    source = text(
        "Global<float> out, Global<const float> x",
        f"""
  Shared<float> tile = shared_memory<float>(0);
  {how}<4>(&tile[threadIdx.x * {row // 4}], &x[threadIdx.x * 4]);
  commit_copies();
  wait_copies<0>();
  copy_vector<4>(&out[threadIdx.x * 4], &tile[threadIdx.x * {row // 4}]);
""",
    )
    return Run(shared_bytes=32 * row)(source, unset(128), floats(128))


@pytest.mark.parametrize("how", ["copy_vector", "copy_async"])
@pytest.mark.parametrize(("row", "wavefronts"), [(16, 1), (32, 2), (80, 1)])
def test_sixteen_bytes_of_eight_lanes_are_a_phase(row: int, wavefronts: int, how: str) -> None:
    assert vectors(row, how).conflicts == {
        5: Conflicts(4, 4 * wavefronts),
        8: Conflicts(4, 4 * wavefronts),
    }


def run(body: str, kind: str = "float", threads: int = 32) -> Emulation:
    source = text(f"Global<{kind}> out", f"Shared<{kind}> s = shared_memory<{kind}>(0);\n{body}")
    types: dict[str, type[np.generic]] = {"float": np.float32, "double": np.float64, "half": np.float16}
    return Run(threads=threads, shared_bytes=4096)(source, Buffer("out", np.zeros(64, types[kind])))


def test_one_word_is_given_to_all_lanes_at_once() -> None:
    assert run("if (threadIdx.x == 0) s[7] = 1;\n__syncwarp();\nout[threadIdx.x] = s[7];").conflicts == {
        5: Conflicts(1, 1),
        7: Conflicts(1, 1),
    }


def test_halves_of_a_word_do_not_conflict_and_doubles_take_two_phases() -> None:
    assert run("s[threadIdx.x] = half(1.0f);", "half").conflicts == {5: Conflicts(1, 1)}
    assert run("s[threadIdx.x] = 1;", "double").conflicts == {5: Conflicts(2, 2)}
    assert run("s[threadIdx.x * 2] = 1;", "double").conflicts == {5: Conflicts(2, 4)}


def test_lanes_that_take_no_part_have_no_conflicts() -> None:
    """Of a warp that is not whole, and under a condition, the third time."""
    assert run("s[threadIdx.x * 32 % 96] = 1;", threads=3).conflicts == {5: Conflicts(1, 3)}
    body = "for (int i = 0; i < 3; i += 1) {\nif (i == 2 || threadIdx.x < 2)\ns[threadIdx.x * 32] = 1;\n}"
    assert run(body).conflicts == {7: Conflicts(3, 2 + 2 + 32)}


def test_a_launch_starts_to_count_again() -> None:
    once = run("s[threadIdx.x * 32] = 1;").conflicts
    assert run("s[threadIdx.x * 32] = 1;").conflicts == once == {5: Conflicts(1, 32)}
