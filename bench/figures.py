"""What figure of a paper a table reproduces: its number, what the paper reports, and the form of the plot.

In a table, under `[figure]`:

    paper = "001"                      which paper, as docs/papers.md numbers them
    number = "Figure 3"
    stated = "…"                       what the paper's text says of its own result
    instead = "…"                      what stands in for the paper's GPU and baseline
    form = "rate"                      one of FORMS
    x = "n"                            the size along the axis; "" for the cases in their order
    quick = ["1024", "4096"]           the sizes of `--quick`, as `--size` takes them
    formula = "traffic"                a figure that is computed and not measured, see `formulas`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

# lines of TFLOP/s; our speed-ups, sorted; bars; how many kernels a tolerance needs; computed
FORMS = ("rate", "speed-up", "bars", "tolerance", "formula")


@dataclass(frozen=True)
class Figure:
    paper: str
    number: str
    stated: str
    instead: str
    form: str
    x: str = ""
    quick: tuple[str, ...] = ()
    formula: str = ""


def read_figure(content: Any) -> Figure:
    """ValueError where something is missing, unknown, or no text."""
    if not isinstance(content, Mapping):
        raise ValueError("`figure` is a section of names with values")
    known = {field.name for field in fields(Figure)}
    needed = {"paper", "number", "stated", "instead", "form"}
    if wrong := sorted(set(content) - known):
        raise ValueError(f"`{wrong[0]}` of `figure` means nothing here")
    if missing := sorted(needed - set(content)):
        raise ValueError(f"`figure` has no `{missing[0]}`")
    quick = content.get("quick", [])
    texts = [value for name, value in content.items() if name != "quick"]
    if not isinstance(quick, list) or not all(isinstance(value, str) for value in (*quick, *texts)):
        raise ValueError("what `figure` says are texts, and `quick` is a list of them")
    if content["form"] not in FORMS:
        raise ValueError(f"the form `{content['form']}` of a figure is not one of {', '.join(FORMS)}")
    return Figure(**{**content, "quick": tuple(quick)})
