"""The GPU that kernels run on, through pycuda, which only this module imports, and only when needed."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec
from typing import Any

from codegen.runtime.compiling import INSTALL_HINT
from rise.errors import LaunchError


@cache
def pycuda_driver() -> Any:
    """pycuda's driver module with the primary context of the first GPU, or None."""
    try:
        import pycuda.driver as driver

        driver.init()
        if driver.Device.count() == 0:
            return None
        import pycuda.autoprimaryctx  # noqa: F401  # makes the context
    except Exception:  # noqa: BLE001  # no package, no driver library, no device: each has its own exception
        return None
    return driver


def available() -> bool:
    """Whether kernels can run on a GPU here."""
    if "pycuda" not in sys.modules and find_spec("pycuda") is None:
        return False
    return pycuda_driver() is not None


def driver() -> Any:
    """pycuda's driver module. LaunchError R0822 without a GPU."""
    found = pycuda_driver()
    if found is None:
        raise LaunchError(
            "R0822", "no GPU to run on: pycuda, a driver and a device are needed", hint=INSTALL_HINT
        )
    return found


def device_target() -> str:
    """The target of the first GPU, with architecture-specific features if it has any (sm_90a)."""
    driver()
    import pycuda.autoprimaryctx as context

    major, minor = context.device.compute_capability()
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")
