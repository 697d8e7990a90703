"""Every edit that does harm to a printed kernel is noticed, by one run with the usual options."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from codegen.emulation.compiling import compiler
from tests.attack.kernel_edits import edits, outcome, table
from tests.attack.outcome import Verdict

# those that compile in a second or so; `make attack` tries all
QUICK = ("transposition", "stencil", "reduction")
emulating = pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler")


@pytest.fixture(autouse=True, scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RISE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@emulating
@pytest.mark.parametrize("subject", QUICK)
def test_every_harmful_edit_is_noticed(subject: str) -> None:
    assert outcome(None, subject).verdict is Verdict.RIGHT
    found = {edit: outcome(edit) for edit in table(subject) if not edit.harmless}
    assert len(found) >= 8
    assert [str(edit) for edit, how in found.items() if how.verdict is not Verdict.NOTICED] == []
    endless = [how.code for edit, how in found.items() if edit.rule == "step of nothing"]
    assert "R0913" in endless and set(endless) <= {"R0913", "R0907", "R0903"}


def test_a_seed_chooses_the_order_only() -> None:
    one, other = ([*edits(seed, QUICK)] for seed in (1, 2))
    assert len(one) >= 30 and one != other
    assert sorted(map(str, one)) == sorted(map(str, other))
