"""docs/attention.md shows the programs that the rules make, and every program of examples/attention.rise."""

from __future__ import annotations

import re
import shlex
from textwrap import dedent
from typing import Any

from rewrites.folds import FACTORS
from rewrites.rolling import ROLLING
from rise.check.program import load
from rise.check.specialise import specialise
from rise.normal import data_flow
from rise.pretty import show
from strategies.places import in_inputs
from tests.support.programs import ROOT, succeeded

PAGE = (ROOT / "docs" / "attention.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "examples" / "attention.rise"


def test_programs_between_are_those_that_the_rules_make() -> None:
    sizes = {"m": 64, "n": 256, "d": 64, "e": 64}
    term = data_flow(specialise(load(EXAMPLES)["attention"], sizes))
    factored = succeeded(in_inputs(FACTORS)(term)).term
    passed = succeeded(in_inputs(ROLLING.with_sizes(n=128))(factored)).term
    blocks = [dedent(text).strip() for text in re.findall(r"   ```text\n(.*?)   ```", PAGE, re.DOTALL)]
    assert blocks == [show(factored).strip(), show(passed).strip()]


def test_every_program_is_on_the_page_with_its_line() -> None:
    text = re.sub(r"\s", "", EXAMPLES.read_text(encoding="utf-8"))
    rows = dict(re.findall(r"^\| `(\w+)` \| `(.*)` \|$", PAGE.replace("\\|", "|"), re.MULTILINE))
    assert len(rows) > 10
    assert not [name for name, line in rows.items() if re.sub(r"\s", "", line) not in text]
    assert not [name for name in load(EXAMPLES).own if f"`{name}`" not in PAGE and name != "attention"]


def test_every_step_of_the_page_is_checked(rise: Any) -> None:
    command = next(line for line in PAGE.splitlines() if line.startswith("rise derive"))
    called = rise(*shlex.split(command)[1:])
    assert called.status == 0, called.err
    assert called.out.count("✓") > 20
