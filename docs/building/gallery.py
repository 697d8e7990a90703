"""The gallery: a page for each file of examples, with programs, types, results, derivations and kernels.

All of it is computed when the site is built, at the sizes and on the inputs that the tests use.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from codegen.pipeline import assemble
from rewrites.result import Success
from rise.check.program import Loader, Program
from rise.check.specialise import specialise
from rise.cli.derive import counts, plural
from rise.cli.run import flat
from rise.embed.definitions import Signature
from rise.errors import RiseError
from rise.interpret import call
from rise.library.reference import Comments, comments_of
from rise.normal import data_flow
from rise.pretty import show
from strategies.derive import derived
from strategies.registry import find

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.append(str(EXAMPLES))

from references import REFERENCES, Reference  # noqa: E402
from references.drawing import inputs_for, parameters_of  # noqa: E402

AS_THEY_ARE = ("copies.rise", "hopper.rise", "kernels.rise")
LONGEST = 120  # lines of a kernel that a page shows


@dataclass(frozen=True)
class Schedule:
    """How the gallery lowers a definition: a strategy by name, as on the command line, and sizes."""

    strategy: str = "default"
    settings: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        settings = " ".join(f"{name}={value}" for name, value in self.settings.items())
        return f"`{self.strategy}`" + (f" with `{settings}`" if settings else "")


SMALL = {"block": "32,32,32", "warp": "16,16", "fragment": "16,8,16"}
PRODUCT = Schedule("tensor_core", SMALL, {"m": 64, "n": 64, "k": 64, "l": 64})
# definitions whose schedule says more than `default` does
SCHEDULES: Mapping[tuple[str, str], Schedule] = {
    ("gemm.rise", "matmul"): PRODUCT,
    ("gemm.rise", "gemm"): PRODUCT,
    ("products.rise", "biasRelu"): PRODUCT,
    ("products.rise", "sumOfProducts"): PRODUCT,
    ("attention.rise", "attention"): Schedule("one_pass", {}, {"m": 128, "n": 128, "d": 64, "e": 64}),
    ("matrices.rise", "transposed"): Schedule("transposition", {}, {"m": 64, "n": 64}),
}


def files() -> list[str]:
    return sorted(path.name for path in EXAMPLES.glob("*.rise"))


def index() -> str:
    """The list of all pages."""
    lines = ["# Gallery", "", INTRODUCTION, ""]
    for file in files():
        comments = comments_of((EXAMPLES / file).read_text(encoding="utf-8"))
        number = sum(key[0] == file for key in REFERENCES)
        lines.append(f"* [{title(file)}]({Path(file).stem}.md) ({number}): {_first_sentence(comments)}")
    return "\n".join(lines) + "\n"


INTRODUCTION = """\
The programs of `examples/`, each with its type, its result on a small input, the strategy that lowers it, and
the kernel. All of this is computed when the site is built, on inputs of the tests, which compare every
definition with a reference in NumPy."""


def title(file: str) -> str:
    return Path(file).stem.replace("_", " ").capitalize()


def _first_sentence(comments: Comments) -> str:
    return re.split(r"(?<=[.:])\s", " ".join(comments.opening))[0].rstrip(":")


def page(file: str) -> str:
    """One file of examples."""
    text = (EXAMPLES / file).read_text(encoding="utf-8")
    comments, program = comments_of(text), Loader().load(EXAMPLES / file).program
    link = f"The file is [examples/{file}](../../../examples/{file})."
    parts = [f"# {title(file)}", _prose(comments.opening), link]
    for name in program.own:
        parts += _entry(file, name, program, text, comments.of_definitions.get(name, ""))
    return "\n\n".join(part for part in parts if part) + "\n"


def _prose(lines: tuple[str, ...]) -> str:
    """A comment as Markdown; what is indented in it are commands and formulas."""
    groups = groupby(lines, lambda line: line.startswith("  "))
    return "\n\n".join(
        "\n".join(f"    {line.strip()}" if indented else line for line in group) for indented, group in groups
    )


def _entry(file: str, name: str, program: Program, text: str, comment: str) -> Iterator[str]:
    reference = REFERENCES[file, name]
    yield f"## {name}"
    yield comment
    yield block("rise", source(text, name))
    yield block("rise", f"{name} : {Signature(program[name])}")
    yield from _result(program, name, reference)
    yield from _kernel(file, name, program, reference)


def source(text: str, name: str) -> str:
    """The lines of a definition, up to the next one, a comment or a blank line."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if re.match(rf"def {name}\b", line))
    rest = takewhile(lambda line: not re.match(r"\s*$|//|def ", line), lines[start + 1 :])
    return "\n".join([lines[start], *rest])


def _result(program: Program, name: str, reference: Reference) -> Iterator[str]:
    sizes = reference.sizes[-1]
    low = specialise(program[name], sizes)
    inputs = inputs_for(low, reference)
    lines: list[str] = []
    for (parameter, _), value in zip(parameters_of(low), inputs, strict=True):
        lines += [f"{n} = {_shown(part)}" for n, part in flat(parameter, value).items()]
    for n, part in flat("result", call(low, *inputs)).items():
        lines.append(f"{n} : {part.dtype}{list(part.shape)}\n{_shown(part)}")
    at = ", ".join(f"{n} = {value}" for n, value in sizes.items())
    yield f"At {at}:" if at else "Evaluated:"
    yield block("text", "\n".join(lines))


def _shown(value: Any) -> str:
    with np.printoptions(threshold=24, edgeitems=2, linewidth=100, precision=4, suppress=True):
        return str(value)


def _kernel(file: str, name: str, program: Program, reference: Reference) -> Iterator[str]:
    schedule = SCHEDULES.get((file, name), Schedule(sizes=reference.sizes[-1]))
    sizes = {n: size for n, size in schedule.sizes.items() if n in reference.sizes[-1]}
    at = ", ".join(f"{n} = {size}" for n, size in sizes.items())
    start = data_flow(specialise(program[name], sizes))
    try:
        if file in AS_THEY_ARE:
            found, how = Success(start), "The program is low-level: it says itself how it is executed."
        else:
            found = derived(start, find(schedule.strategy).make(dict(schedule.settings)))
            how = f"Lowered by {schedule}{f' at {at}' if at else ''} in {plural(found.steps)}."
        made = assemble(found.term, f"{name}_kernel")
    except RiseError as error:
        yield f"It is a part of a kernel, and none by itself ({error.code}): {error.message}."
        return
    yield how
    if found.steps:
        yield folded("The rules, in the order of their first use", block("text", fill(counts(found), 100)))
        yield folded("The low-level program", block("rise", cut(show(found.term))))
    for kernel in made.kernels:
        yield folded(f"{kernel.name}: {kernel.launch}", block("cuda", cut(kernel.source)))


def cut(text: str) -> str:
    """A text of at most so many lines."""
    lines = text.strip().splitlines()
    shown = lines if len(lines) <= LONGEST else [*lines[:LONGEST], f"// … {len(lines) - LONGEST} more lines"]
    return "\n".join(shown)


def folded(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"


def block(language: str, text: str) -> str:
    return f"```{language}\n{text.strip()}\n```"
