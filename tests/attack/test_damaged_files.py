"""A sample of damaged files, the same in every run; `make attack` draws more."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.attack.files import Damage, Kind, damaged, outcome, whole
from tests.attack.outcome import Verdict

# kinds that take no parser of programs, and so no time
QUICK = (
    Kind.INPUTS,
    Kind.REMEMBERED,
    Kind.ENTRY,
    Kind.CHECKSUM,
    Kind.TABLE,
    Kind.ROWS,
    Kind.MACHINE,
    Kind.JOURNAL,
)


def test_damage_is_refused_or_does_no_harm() -> None:
    drawn = [d for d in islice(damaged(2026), 120) if d.form != "large"]
    sample = [d for d in drawn if d.kind in QUICK][:30] + [d for d in drawn if d.kind not in QUICK][:6]
    assert len({d.kind for d in sample}) >= 8 and len({d.how for d in sample}) >= 8
    found = [(d.kind.value, d.how, d.form, d.seed, outcome(d)) for d in sample]
    assert [f for f in found if f[-1].verdict.is_defect] == []
    assert len({f[-1].verdict for f in found}) == 2  # both happen


@pytest.mark.parametrize("kind", Kind)
def test_a_file_with_nothing_wrong_is_taken(kind: Kind) -> None:
    """So that the others are refused for what is wrong with them."""
    if kind is Kind.DERIVATION:
        return  # `--check` of it is tested elsewhere, and takes long
    found = outcome(Damage(kind, "nothing", whole(kind)))
    assert found.verdict is Verdict.RIGHT, found
