"""Repeated launches as CUDA graphs, which time small kernels without the host's overhead.

pycuda has no graphs; the driver's functions are called through ctypes, in pycuda's context.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from rise.errors import LaunchError

RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


class Graph:
    """Work on a stream, recorded so many times in one graph, which can be replayed."""

    def __init__(self, cuda: Any, work: Callable[[Any], None], times: int) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.stream = cuda.Stream()
        self.times = times
        graph = ctypes.c_void_p()
        handle = ctypes.c_void_p(self.stream.handle)
        work(self.stream)  # before the recording, so that one-time work such as loading is done
        self.stream.synchronize()
        self._check(self.library.cuStreamBeginCapture_v2(handle, RELAXED))
        for _ in range(times):
            work(self.stream)
        self._check(self.library.cuStreamEndCapture(handle, ctypes.byref(graph)))
        self.executable = ctypes.c_void_p()
        self._check(
            self.library.cuGraphInstantiateWithFlags(ctypes.byref(self.executable), graph, ctypes.c_uint64(0))
        )
        self._check(self.library.cuGraphDestroy(graph))

    def replay(self) -> None:
        self._check(self.library.cuGraphLaunch(self.executable, ctypes.c_void_p(self.stream.handle)))

    def close(self) -> None:
        self._check(self.library.cuGraphExecDestroy(self.executable))

    def _check(self, status: int) -> None:
        if status:
            raise LaunchError("R0831", f"the driver refuses a graph: status {status}")
