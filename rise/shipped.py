"""Where the examples and the tables of benchmarks are: in the source tree or in the installed package."""

from __future__ import annotations

from pathlib import Path


def shipped(path: str) -> Path:
    """A file or folder by its path in the source tree, `examples/gemm.rise`; `setup.py` ships them."""
    package = Path(__file__).parent
    installed = package / "share"
    return (installed if installed.is_dir() else package.parent) / path
