"""Texts that are kept as a reader sees them, each in a file.

`UPDATE_GOLDEN=1 pytest tests/codegen/test_golden.py` rewrites the files of these tests: read the difference
before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path


def assert_golden(path: Path, text: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
