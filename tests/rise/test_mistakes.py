"""What is said of typical mistakes, whole: `mistakes/*.rise` and the text in the file of the same name."""

from __future__ import annotations

from pathlib import Path

import pytest

from rise.check.program import check_text
from rise.errors import RiseError
from tests.support.golden import assert_golden

FOLDER = Path(__file__).parent / "mistakes"
PROGRAMS = sorted(FOLDER.glob("*.rise"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_a_mistake_is_told_as_expected(path: Path) -> None:
    with pytest.raises(RiseError) as caught:
        check_text(path.read_text(encoding="utf-8"), path.name)
    assert_golden(path.with_suffix(".txt"), caught.value.render() + "\n")


def test_there_are_many_mistakes_and_a_text_for_each() -> None:
    assert len(PROGRAMS) >= 90
    assert {p.stem for p in PROGRAMS} == {p.stem for p in FOLDER.glob("*.txt")}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_a_text_has_place_code_and_caret_and_no_number_of_an_unknown(path: Path) -> None:
    title, *rest = path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    assert title.startswith(f"{path.name}:")
    assert ": error R0" in title
    assert any(set(line.partition("|")[2].strip()) == {"^"} for line in rest)
    assert "?" not in "".join([title, *rest]).replace("did you mean", "").replace("`?", "")
