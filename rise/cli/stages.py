"""The stages of compilation as the commands use them: program, specialised, derived, kernel."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

from codegen.pipeline import Kernel, generate
from rewrites.result import Failure, Success
from rise.check.program import load
from rise.check.specialise import specialise
from rise.cli.arguments import pairs, sizes
from rise.errors import RiseError, StrategyError
from rise.expr import Definition, Expr
from rise.normal import data_flow
from strategies.core import Strategy
from strategies.registry import find


@dataclass(frozen=True)
class Subject:
    """What a command works on: a definition, and the sizes that were given."""

    definition: Definition
    sizes: Mapping[str, int]

    @property
    def program(self) -> Expr:
        """The definition at its sizes."""
        return specialise(self.definition, self.sizes)


def subject(arguments: argparse.Namespace) -> Subject:
    """The definition that FILE, NAME and --size name."""
    find(arguments.strategy)  # a module of the user's own may declare what the program uses
    given = sizes(arguments.size)
    return Subject(load(arguments.file)[arguments.name], given)


def chosen_strategy(arguments: argparse.Namespace) -> Strategy:
    """The strategy that --strategy and --set describe."""
    return find(arguments.strategy).make(pairs(arguments.settings, "--set"))


def derived(program: Expr, strategy: Strategy) -> Success:
    """The low-level program and the steps to it. StrategyError R0606, with the story, where none is."""
    try:
        result = strategy(data_flow(program))
    except RiseError as error:
        if type(error) is RiseError or error.code.startswith("R06"):
            raise
        raise StrategyError(
            "R0606", f"the strategy `{strategy.name}` fails: {error.message}", error.origin, error.hint
        ) from error
    if isinstance(result, Failure):
        raise result.error(strategy.name)
    return result


def kernel_of(success: Success, name: str) -> Kernel:
    """The kernel for a derived program; a definition may be called `double`, a C++ function may not."""
    return generate(success.term, f"{name}_kernel")
