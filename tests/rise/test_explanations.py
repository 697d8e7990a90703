"""Every code is explained; every example of an explanation does what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rise.cli.explanations import EXPLANATIONS
from rise.cli.mistakes import EXAMPLES, explained, message
from rise.errors import RiseError

ROOT = Path(__file__).parents[2]
PACKAGES = ("rise", "rewrites", "strategies", "codegen", "bench")
TABLES = ("explanations.py", "mistakes.py")

# codes R01–R05 that no text of a program causes by itself: they are about the compiler's own tables,
# about files, calls, inputs, Python, or about terms that were never checked
NOT_FROM_TEXT = {
    "R0207", "R0209", "R0210", "R0405", "R0406", "R0407", "R0408", "R0409", "R0410",
    "R0501", "R0502", "R0505", "R0506", "R0507", "R0508", "R0509", "R0511", "R0516",
    "R0517",
}  # fmt: skip


def used() -> set[str]:
    sources = (
        path.read_text(encoding="utf-8")
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*"))
        if path.suffix in (".py", ".hpp", ".cuh") and not (path.parent.name == "cli" and path.name in TABLES)
    )
    return set(re.findall(r"\bR0\d{3}\b", "\n".join(sources)))


def test_every_code_that_is_used_is_explained_and_every_explained_one_is_used() -> None:
    assert used() - set(EXPLANATIONS) == set()
    assert set(EXPLANATIONS) - used() == set()


@pytest.mark.parametrize("code", EXPLANATIONS)
def test_an_explanation_is_one_of_sentences(code: str) -> None:
    assert re.fullmatch(r"R0\d{3}", code)
    assert EXPLANATIONS[code].endswith(".")


def test_every_code_that_a_text_can_cause_has_an_example() -> None:
    from_text = {code for code in EXPLANATIONS if "R0101" <= code < "R0600" and not "R0150" <= code < "R0200"}
    assert from_text - NOT_FROM_TEXT == set(EXAMPLES)


def cases() -> Iterator[tuple[str, str, str]]:
    for code, example in EXAMPLES.items():
        yield code, example.wrong, code
        yield code, example.right, ""


@pytest.mark.parametrize(("code", "text", "expected"), list(cases()))
def test_an_example_has_its_mistake_and_the_corrected_one_has_none(
    code: str, text: str, expected: str
) -> None:
    said = message(text)
    assert re.findall(r"error (R0\d{3}): ", said) == ([expected] if expected else []), said


def test_the_long_form_has_all_parts() -> None:
    text = explained("R0401", EXPLANATIONS["R0401"])
    for part in ("R0401: A size is not", "Wrong:\n", "split(32)", "error R0401: 32 does not", "Right:\n"):
        assert part in text
    assert explained("R0822", EXPLANATIONS["R0822"]).startswith("R0822: ")


def test_the_table_of_families_in_errors_is_true() -> None:
    """The docstring of `rise.errors` names every hundred in use."""
    import rise.errors

    named = set(re.findall(r"\b(\d\d) ", rise.errors.__doc__ or ""))
    assert {code[1:3] for code in EXPLANATIONS} == named
    assert issubclass(rise.errors.TypeMismatch, RiseError)
