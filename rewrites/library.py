"""All rules, by the file that declares them."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType

import rewrites
from rewrites.constants import held
from rewrites.rule import COMPUTED, RULES, Computed, Rule

# in the order of the catalogue; what is not named here comes after
ORDER = (
    "algorithmic", "maps", "reductions", "loops", "unused", "movement", "views", "zips", "slicing",
    "sliding", "padding", "orders", "rasterise", "selection", "vectors", "memory", "staging", "prologue",
    "tensor", "lowering",
)  # fmt: skip


@cache
def modules() -> Mapping[str, ModuleType]:
    """The modules of this package that declare rules, imported."""
    names = {found.name for found in pkgutil.iter_modules(rewrites.__path__)}
    ordered = [name for name in ORDER if name in names] + sorted(names - set(ORDER))
    imported = {name: import_module(f"rewrites.{name}") for name in ordered}
    return {name: module for name, module in imported.items() if any(_rules_of(module))}


def _rules_of(module: ModuleType) -> Iterator[tuple[str, Rule | Computed]]:
    """The rules that a module holds, each with the name of the constant."""
    for constant, value in vars(module).items():
        if value is not RULES and value is not COMPUTED:
            yield from ((constant, rule) for rule in declared(value))


def declared(value: object) -> Iterator[Rule | Computed]:
    """The rules in the value of a name of a module: one, or several in a tuple or a table."""
    yield from (rule for _, rule in held("", value) if isinstance(rule, Rule | Computed))


@cache
def places() -> Mapping[str, tuple[str, str]]:
    """For each rule its file, and the name of the constant there that holds it."""
    found: dict[str, tuple[str, str]] = {}
    for module, contents in modules().items():
        for constant, rule in _rules_of(contents):
            found.setdefault(rule.name, (module, constant))
    return found


@cache
def rules() -> Mapping[str, Rule | Computed]:
    """Every rule by name, those of a file together, in the order of declaration."""
    names = list(places())
    every: dict[str, Rule | Computed] = {**RULES, **COMPUTED}
    return {name: every[name] for name in names if name in every}
