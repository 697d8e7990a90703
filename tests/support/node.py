"""Node, where a version is installed that has what the extension's tests need."""

from __future__ import annotations

import re
import shutil
import subprocess

OLDEST = 20


def _found() -> str | None:
    node = shutil.which("node")
    if node is None:
        return None
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    number = re.match(r"v(\d+)", version)
    return node if number and int(number[1]) >= OLDEST else None


NODE = _found()
REASON = f"node {OLDEST} is not installed"
