"""Faults seeded into the code generator: each has to be noticed, by the means that the table says.

refused:  generation fails with an error
compiler: the C++ compiler rejects the text
R09…:     the emulator reports the kernel
wrong:    the result differs from the interpreter's
"""

from __future__ import annotations

import re

import pytest

from tests.codegen.kernel_faults import FAULTS, ROOT, outcome, outcomes, table

# --- faults -----------------------------------------------------------------------------------------


def test_without_a_fault_every_probe_is_right() -> None:
    found = {name: outcome(name) for name in {f.probe for f in FAULTS} - {"race"}}
    assert set(found.values()) == {"right"}, found
    assert outcome("race") == "refused"


def test_every_fault_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = outcomes(monkeypatch)
    print("\n".join(table(rows)))
    survivors = [f"{f.name}: {killer}" for f, killer in rows if not re.fullmatch(f.killed_by, killer)]
    assert not survivors


def test_the_document_lists_every_fault() -> None:
    document = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    assert [f.name for f in FAULTS if f"| {f.name} | {f.probe} |" not in document] == []
