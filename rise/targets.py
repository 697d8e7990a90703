"""The GPU architectures that kernels are compiled for, by the names that NVIDIA's compilers give them."""

from __future__ import annotations

import re

from rise.errors import UsageError
from rise.suggest import nearest

# with `a` what only this one GPU has (wgmma is of sm_90a), with `f` what its family has
TARGETS = (
    "sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_90a",
    "sm_100", "sm_100a", "sm_100f", "sm_101", "sm_101a", "sm_101f", "sm_103", "sm_103a", "sm_103f",
    "sm_110", "sm_110a", "sm_110f", "sm_120", "sm_120a", "sm_120f", "sm_121", "sm_121a", "sm_121f",
)  # fmt: skip


def check_target(target: str) -> str:
    """The target, if there is such a GPU. UsageError R0017 otherwise."""
    if target in TARGETS:
        return target
    plain = ", ".join(name for name in TARGETS if name[-1] not in "af" or name == "sm_90a")
    close = None if re.fullmatch(r"sm_\d+", target) else nearest(target, TARGETS)
    hint = f"did you mean `{close}`?" if close else f"known are {plain}"
    raise UsageError("R0017", f"there is no GPU architecture `{target}`", None, hint)
