"""The same text is for the device."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.support.emulated import (  # noqa: F401  # a fixture
    CONVERT,
    EPILOGUE,
    EXPRESSIONS,
    LAYOUTS,
    MIXED,
    REUSE,
    SHAPES,
    directory,
    gemm,
    needs_compiler,
    text,
)

pytestmark = needs_compiler

DEVICE_HEADERS = Path(__file__).parents[2] / "codegen" / "cuda" / "device"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a"])
def test_text_compiles_for_the_device(target: str, tmp_path: Path) -> None:
    of = np.float16 if target == "sm_75" else ml_dtypes.bfloat16
    kernels = [
        gemm(SHAPES[1], LAYOUTS[1], of, np.float32),
        EXPRESSIONS,
        EPILOGUE,
        MIXED,
        REUSE,
        CONVERT,
    ]
    bodies = [kernel.replace("void k(", f"void k{i}(") for i, kernel in enumerate(kernels)]
    source = tmp_path / "k.cu"
    source.write_text("".join(bodies))
    command = ["nvcc", f"-arch={target}", "-cubin", "-I", str(DEVICE_HEADERS), str(source)]
    finished = subprocess.run(
        [*command, "-o", str(tmp_path / "k.cubin")], check=False, capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
