"""Printed kernels on a GPU: compiled, loaded, called.

    compiling   CUDA text to machine code, by NVRTC or nvcc; no GPU is needed
    refusals    compiler remarks about which no kernel may be run
    resources   registers, spills and shared memory, as the compiler reports them
    device      the GPU, through pycuda, which only this module imports, and only when needed
    libcuda     what pycuda lacks of the driver API: function handles, fast launches
    arrays      arrays of NumPy, torch, CuPy, pycuda and those with a protocol; `dlpack` reads capsules
    arguments   arguments against parameters, checked once per signature
    packing     the parameter buffer
    loading     a kernel on the GPU, as a function

Importing this package needs neither GPU, driver nor toolkit.
"""

from __future__ import annotations

from codegen.runtime.compiling import (
    HEADERS,
    INSTALL_HINT,
    can_compile,
    compile_cubin,
    include_directories,
    nvcc,
)
from codegen.runtime.device import available, device_target, driver
from codegen.runtime.loading import Loaded, as_bytes, launch, load
from codegen.runtime.resources import Resources, check_spills, resources

__all__ = [
    "HEADERS",
    "INSTALL_HINT",
    "Loaded",
    "Resources",
    "as_bytes",
    "available",
    "can_compile",
    "check_spills",
    "compile_cubin",
    "device_target",
    "driver",
    "include_directories",
    "launch",
    "load",
    "nvcc",
    "resources",
]
