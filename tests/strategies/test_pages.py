"""The pages about tensor cores show what the strategy does today."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["gemm.md", "tensor-cores.md"])
def test_a_page_is_up_to_date(page: str) -> None:
    sys.path.insert(0, str(DOCS))
    try:
        from generate import PAGES
    finally:
        sys.path.remove(str(DOCS))
    assert (DOCS / page).read_text(encoding="utf-8") == PAGES[page](), "python docs/generate.py writes it"
