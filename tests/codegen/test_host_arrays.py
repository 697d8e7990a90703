"""Arrays on their way to a GPU, as far as that can be seen without one."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from codegen.runtime import as_bytes


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16, np.int8])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 1, 7)])
def test_the_bytes_of_an_array_are_its_memory(dtype: type, shape: tuple[int, ...]) -> None:
    array: np.ndarray = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    seen = as_bytes(array)
    assert bytes(memoryview(seen)) == array.tobytes()
    seen[:] = 0  # what comes back from the GPU lands in the array itself
    assert not array.astype(np.float32).any()
