"""The reference of Python's names: those that README.md and the pages of docs/ import, and their kin."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module

import rise.errors
import rise.testing
from strategies.registry import MODULES


@dataclass(frozen=True)
class Section:
    """Names under a title, by the module that users import them from."""

    title: str
    introduction: str
    names: Mapping[str, tuple[str, ...]]


def public(module: str) -> tuple[str, ...]:
    """The functions and classes that a module defines itself, without those that begin with an underscore."""
    return tuple(
        name
        for name, value in vars(import_module(module)).items()
        if not name.startswith("_")
        and (inspect.isroutine(value) or inspect.isclass(value))
        and value.__module__ == module
    )


SECTIONS = (
    Section(
        "Programs",
        "Loading programs, writing them in Python, evaluating them."
        " [Programs in Python](../python.md) is the guide.",
        {
            "rise": ("load", "parse", "expression", "define", "Program", "Definition"),
        },
    ),
    Section(
        "Compiled programs",
        "[Compiled programs](../running.md) is the guide.",
        {"codegen": ("compile", "Compiled")},
    ),
    Section(
        "Rules",
        "[A primitive, a rule and a schedule of your own](../extending.md) is the guide, and"
        " [Rules](../rules.md) lists those of the library.",
        {
            "rewrites.rule": ("rule", "computed", "Rule", "Computed"),
            "rewrites.match": ("Match",),
            "rewrites.conditions": ("SideCondition", "reshaping", "computing", "changes", "total", "numbers"),
            "rewrites.result": ("Success", "Failure", "Step"),
        },
    ),
    Section(
        "Strategies",
        "[Strategies](../strategies.md) shows each combinator with its equation and an example. The operators"
        " `>>`, `|` and `@` of rules and strategies are sequence, choice and application of a traversal.",
        {
            "strategies.core": ("Strategy", "strategy", "seq", "choice", *public("strategies.core")),
            "strategies.places": public("strategies.places"),
            "strategies.loops.nests": public("strategies.loops.nests"),
            "strategies.loops.tiling": public("strategies.loops.tiling"),
            "strategies.derive": ("derived",),
            "strategies.registry": ("find",),
        },
    ),
    Section(
        "Schedules",
        "The strategies that `--strategy` names. Sizes of tiles are numbers of elements.",
        {module: (name,) for name, module in MODULES.items()},
    ),
    Section(
        "Testing",
        "[Testing programs, rules and strategies](../testing.md) is the guide.",
        {"rise.testing": tuple(n for n in rise.testing.__all__ if callable(getattr(rise.testing, n)))},
    ),
    Section(
        "Primitives",
        "What the declaration and the translation of a primitive of your own are made of.",
        {
            "rise.primitives.declare": ("declare",),
            "rise.interpret.value": ("Leaf", "each"),
            "rise.nat": ("nat", "remainder"),
            "codegen.lower.translate": ("continuing", "accepting"),
            "codegen.lower.views": ("reading",),
            "codegen.lower.primitives.arrays": ("view",),
        },
    ),
    Section(
        "Terms and types",
        "Below definitions: expressions, checked and evaluated one by one.",
        {
            "rise.check.program": ("check_expression", "check_text"),
            "rise.check.specialise": ("specialise",),
            "rise.check.symbolic": ("opened",),
            "rise.interpret": ("call", "random_inputs"),
            "rise.types": ("array",),
        },
    ),
    Section(
        "Notebooks",
        "`%load_ext rise.cli.notebook` brings the magics. [Notebooks](../notebooks.md) is the guide.",
        {"rise.cli.notebook": ("load_ipython_extension", "Magic", "Derivation")},
    ),
    Section(
        "Errors",
        "All are raised with a code, which [Errors](errors.md) explains.",
        {"rise.errors": public("rise.errors")},
    ),
)

# of classes that are more than what users call
MEMBERS = {"Match": ("size_of",), "Failure": ("story", "error"), "Rule": ("with_sizes",)}

INTRODUCTION = """\
# Python API

The names that programs in Python use. `rise.ops` has the vocabulary of the language itself, every primitive
by its name; [Primitives](../primitives.md) lists it. Arrays are NumPy's, or where it says so those of torch,
CuPy and pycuda; sizes count elements."""


def page() -> str:
    parts = [INTRODUCTION]
    for section in SECTIONS:
        parts += [f"## {section.title}", section.introduction, *_directives(section)]
    return "\n\n".join(parts) + "\n"


def _directives(section: Section) -> Iterator[str]:
    for module, names in section.names.items():
        for name in names:
            yield "\n".join(["```{eval-rst}", *_directive(module, name), "```"])


def _directive(module: str, name: str) -> list[str]:
    thing = getattr(import_module(module), name)
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return [f".. autoexception:: {module}.{name}"]
    if inspect.isclass(thing):
        return [
            f".. autoclass:: {module}.{name}",
            f"   :members: {', '.join(MEMBERS.get(name, ()))}".rstrip(),
        ]
    return [f".. autofunction:: {module}.{name}"]


def documented() -> set[tuple[str, str]]:
    """Module and name of everything that the page has."""
    return {(m, n) for section in SECTIONS for m, names in section.names.items() for n in names}
