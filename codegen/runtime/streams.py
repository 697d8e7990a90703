"""Streams of other libraries as the driver's handles, which are ints; 0 and 1 are the default stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codegen.runtime.arrays import family_of
from rise.errors import LaunchError

# the names of the handle in pycuda, torch and CuPy
HANDLES = ("handle", "cuda_stream", "ptr")


def as_handle(stream: Any) -> int:
    """The handle of an int, a stream of pycuda, torch or CuPy, or one with `__cuda_stream__`. Else R0837."""
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in HANDLES:
        if isinstance(handle := getattr(stream, name, None), int):
            return handle
    raise LaunchError("R0837", f"a {type(stream).__name__} is not a stream")


def current(arguments: Sequence[Any]) -> int:
    """The current stream of the first array's library."""
    for argument in arguments:
        family = family_of(argument)
        if family is not None:
            return family.stream(argument)
    return 0


def same(first: int, second: int) -> bool:
    return (first or 1) == (second or 1)
