"""Helpers: kernels written by hand, and how they are emulated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from codegen.emulation.emulator import Argument, Buffer, Emulation, compiler, emulate

Array = NDArray[Any]

needs_compiler = pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler")


@pytest.fixture(autouse=True, scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of a module's own: what is tested is compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RISE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def text(parameters: str, body: str) -> str:
    """A kernel `k`. Its body starts on line 4."""
    head = f'#include "rise.cuh"\n\nextern "C" __global__ void k({parameters}) {{\n'
    return f"{head}{body.strip(chr(10))}\n}}\n"


@dataclass(frozen=True)
class Run:
    """How to launch a kernel: a few threads of one block, if nothing else is said."""

    blocks: int = 1
    threads: int = 32
    shared_bytes: int = 0

    def __call__(self, source: str, *arguments: Argument, seed: int = 0) -> Emulation:
        grid, block = (self.blocks, 1, 1), (self.threads, 1, 1)
        return emulate(source, "k", grid, block, arguments, self.shared_bytes, seed)


def floats(count: int) -> Array:
    return np.arange(count, dtype=np.float32)


def unset(count: int = 64, kind: type[np.generic] = np.float32) -> Buffer:
    return Buffer("out", np.zeros(count, kind), initialised=False)


ADD = text(
    "Global<float> out, Global<const float> x, Global<const float> y, float alpha, int n",
    """
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = alpha * x[i] + y[i];
""",
)
