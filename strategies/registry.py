"""The named strategies: those of `--strategy`, with their parameters for `--set`.

A strategy is a function that returns one; its parameters, their types, defaults and meaning come from
its signature and its docstring.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import Parameter
from typing import Any, get_args, get_origin, get_type_hints

from rewrites.rule import Computed, Rule
from rise.data import shown
from rise.errors import StrategyError, UsageError
from rise.suggest import suggestion
from rise.user_code import described, place_of_function
from strategies.core import Strategy, strategy
from strategies.settings import Parameters
from strategies.user_defined import load

# name: the module that defines a function of the same name
MODULES: Mapping[str, str] = {
    "auto": "strategies.auto",
    "default": "strategies.default",
    "tensor_core": "strategies.matmul.tensor_core",
    "cuda_core": "strategies.matmul.cuda_core",
    "one_pass": "strategies.matmul.one_pass",
    "batch": "strategies.batches.batch",
    "elementwise": "strategies.memory_bound.elementwise",
    "reduction": "strategies.memory_bound.reduction",
    "columns": "strategies.memory_bound.columns",
    "rows": "strategies.memory_bound.rows",
    "transposition": "strategies.memory_bound.transposition",
    "stencil": "strategies.memory_bound.stencil",
    "tvm_gemm": "strategies.loops.tvm_gemm",
    "tuned": "strategies.tuned",
}


@dataclass(frozen=True)
class Setting:
    """A parameter of a strategy. `accepts` is its type: int, float, bool, str, or a tuple of these.

    tried: the values that a search tries, where the strategy declares them
    """

    name: str
    accepts: Any
    default: Any
    meaning: str = ""
    tried: tuple[Any, ...] = ()

    @property
    def type_name(self) -> str:
        """`int`, `3 ints`: what to write, in words."""
        if get_origin(self.accepts) is tuple:
            parts = get_args(self.accepts)
            return f"{len(parts)} {parts[0].__name__}s"
        return str(getattr(self.accepts, "__name__", self.accepts))

    def read(self, text: str) -> Any:
        """The value that a text stands for: `128,128,64` (or `128x128x64`) for a tuple."""
        try:
            return self._value(text)
        except (ValueError, TypeError):  # a kind that no text stands for
            example = show_value(self.default)
            raise UsageError(
                "R0012",
                f"`{self.name}={text}`: expected {self.type_name}",
                hint=f"for example `{self.name}={example}`",
            ) from None

    def _value(self, text: str) -> Any:
        if get_origin(self.accepts) is not tuple:
            return _scalar(self.accepts, text)
        kinds, parts = get_args(self.accepts), text.replace("x", ",").split(",")
        if len(kinds) != len(parts):
            raise ValueError(text)
        return tuple(_scalar(kind, part) for kind, part in zip(kinds, parts, strict=True))


@dataclass(frozen=True)
class Entry:
    """A named strategy: how it is made, and from what; the dataclass that declares its settings, if any."""

    name: str
    factory: Callable[..., Strategy]
    settings: tuple[Setting, ...]
    meaning: str
    parameters: type[Parameters] | None = None

    def make(self, values: Mapping[str, str]) -> Strategy:
        """The strategy, with some of its parameters given as text."""
        known = {s.name: s for s in self.settings}
        for name in values:
            if name not in known:
                listed = ", ".join(f"`{n}`" for n in known) or "none"
                hint = suggestion(name, known) or f"its parameters: {listed}"
                raise UsageError("R0011", f"the strategy `{self.name}` has no parameter `{name}`", None, hint)
        made = self.factory(**{name: known[name].read(text) for name, text in values.items()})
        if callable(made):
            return made
        message = f"`{self.name}` returns {shown(made)}, which is not a strategy"
        raise StrategyError("R0631", message, place_of_function(self.factory))


def find(name: str) -> Entry:
    """The strategy of that name, or of a user's own, `module:name`. R0010 where there is none."""
    if ":" in name:
        return entry_of(name, load(name))
    if name not in MODULES:
        known = ", ".join(f"`{n}`" for n in MODULES)
        hint = suggestion(name, MODULES) or f"there are {known}, and those of your own, `module:name`"
        raise UsageError("R0010", f"there is no strategy `{name}`", None, hint)
    return _shipped(name)


@cache
def _shipped(name: str) -> Entry:
    """One of ours, whose signature and docstring stay as they are."""
    return entry(name, getattr(import_module(MODULES[name]), name))


def entry_of(name: str, made: Any) -> Entry:
    """The entry of a strategy, or of a function that returns one, of a user's own. R0010, R0631."""
    if isinstance(made, Strategy | Rule | Computed):
        found = strategy(made)
        return Entry(name, lambda: found, (), found.name)
    try:
        declared = entry(name, made)
    except Exception as error:  # annotations of the user's, which are evaluated
        message = f"the parameters of `{name}` cannot be read: {described(error)}"
        raise UsageError("R0010", message, place_of_function(made)) from error
    for setting in declared.settings:
        if setting.default is Parameter.empty:
            hint = "`strategies.core.strategy(f)` makes a strategy of a function from terms to results"
            message = f"the parameter `{setting.name}` of `{name}` has no default"
            raise StrategyError("R0631", message, place_of_function(made), hint)
    return declared


def entry(name: str, factory: Callable[..., Strategy]) -> Entry:
    """The entry of a function, from its signature and docstring, also for a user's own strategies."""
    hints = get_type_hints(factory)
    parameters = inspect.signature(factory).parameters
    text = inspect.getdoc(factory) or ""
    meant = meanings(text, parameters)
    tried = getattr(factory, "searched", {})
    settings = tuple(
        Setting(
            p.name, hints.get(p.name, str), p.default, meant.get(p.name, ""), tuple(tried.get(p.name, ()))
        )
        for p in parameters.values()
    )
    declared = getattr(factory, "parameters", None)
    return Entry(name, factory, settings, text.split("\n", 1)[0], declared)


def meanings(text: str, names: Container[str]) -> dict[str, str]:
    """What a docstring says of parameters: `name: meaning`, on further lines that are indented."""
    found: dict[str, str] = {}
    current = ""
    for line in text.splitlines():
        if (stated := re.match(r"(\w+):\s+(\S.*)", line)) and stated[1] in names:
            current = stated[1]
            found[current] = stated[2]
        elif current and line.startswith(" "):
            found[current] += f" {line.strip()}"
        else:
            current = ""
    return found


def catalogue() -> list[Entry]:
    """Every named strategy."""
    return [find(name) for name in MODULES]


def show_value(value: Any) -> str:
    """A value as `--set` reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _scalar(kind: Any, text: str) -> Any:
    if kind is bool:
        return {"true": True, "false": False}[text] if text in ("true", "false") else _refuse(text)
    return kind(text)


def _refuse(text: str) -> Any:
    raise ValueError(text)
