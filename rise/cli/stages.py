"""The stages of compilation as the commands use them: program, specialised, derived, kernel."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from codegen.compiled import built, for_all_sizes
from codegen.host.program import HostProgram
from codegen.ir.kernel import Kernel
from codegen.passes.verify import is_on as passes_are_verified
from codegen.pipeline import assemble, generate
from rewrites.derivation import verify_steps
from rewrites.result import Success
from rise.check.specialise import specialise
from rise.check.symbolic import OpenProgram, opened
from rise.cli.definitions import named
from rise.cli.options import pairs, sizes, target_of, units
from rise.cli.terminal import note
from rise.errors import UsageError
from rise.expr import Definition, Expr
from rise.generator import Builds
from rise.normal import data_flow
from rise.progress import progress
from strategies import derive
from strategies.auto import Auto
from strategies.core import Strategy
from strategies.registry import Entry, find


@dataclass(frozen=True)
class Subject:
    """What a command works on: a definition, and the sizes that were given.

    runtime: sizes that kernels are given when they are launched, and what each is a multiple of
    expected: about how large these are
    """

    definition: Definition
    sizes: Mapping[str, int]
    runtime: Mapping[str, int] = field(default_factory=dict)
    expected: Mapping[str, int] = field(default_factory=dict)

    @property
    def program(self) -> Expr:
        """The definition at its sizes; those of run time stay variables."""
        return self.open.program

    @property
    def open(self) -> OpenProgram:
        if not self.runtime:
            return OpenProgram(specialise(self.definition, self.sizes), (), ())
        return opened(self.definition, self.sizes, self.runtime)


def subject(arguments: argparse.Namespace) -> Subject:
    """The definition that FILE, NAME, --size and --runtime name."""
    find(arguments.strategy)  # a module of the user's own may declare what the program uses
    given, left = sizes(arguments.size), units(arguments.runtime)
    expected = sizes(getattr(arguments, "expect", []), "--expect")
    if closed := [name for name in expected if name not in left]:
        hint = f"`--runtime {closed[0]}` leaves it open"
        raise UsageError(
            "R0005", f"--expect {closed[0]}: not a size that stays open until launch", None, hint
        )
    return Subject(named(arguments), given, left, expected)


def chosen_strategy(arguments: argparse.Namespace) -> Strategy:
    """The strategy that --strategy and --set describe; one with a parameter `target` is given --target."""
    return with_settings(find(arguments.strategy), arguments)


def with_settings(entry: Entry, arguments: argparse.Namespace) -> Strategy:
    """A strategy with the parameters of --set, and of --target where it has such a one."""
    settings = pairs(arguments.settings, "--set")
    if "target" not in settings and any(setting.name == "target" for setting in entry.settings):
        settings["target"] = target_of(arguments)
    return entry.make(settings)


def derived(program: Expr, strategy: Strategy, builds: Builds | None = None) -> Success:
    """The low-level program and the steps to it. StrategyError R0606 where the strategy fails.

    builds: what decides between the candidates of a strategy that has several
    """
    if builds is not None and isinstance(strategy, Auto):
        strategy = strategy.first_that(builds)
    with progress("rewriting"):
        success = derive.derived(program, strategy)
    if isinstance(strategy, Auto):
        plan = strategy.choice(data_flow(program))
        if plan.kernels:
            note(str(plan))
    if passes_are_verified():
        verify_steps(data_flow(program), success)
    return success


def program_of(chosen: Subject, success: Success, strategy: Strategy | None = None) -> HostProgram:
    """The kernels for a derived program, and how the host launches them.

    strategy: by which it was derived: with `auto`, there are kernels for all that open sizes may be
    """
    name = chosen.definition.name
    if not chosen.runtime or not isinstance(strategy, Auto):
        return _assembled(chosen.open, success, f"{name}_kernel")

    def at(units: Mapping[str, int]) -> OpenProgram:
        return opened(chosen.definition, chosen.sizes, units)

    def lowered(given: OpenProgram, called: str) -> HostProgram:
        if given.sizes == chosen.open.sizes:
            return _assembled(given, success, called)
        finer = replace(chosen, runtime={size.name: size.unit for size in given.sizes})
        return _assembled(given, derived(finer.program, told(finer, strategy), building(finer)), called)

    def in_loops(given: OpenProgram, called: str) -> HostProgram:
        return _assembled(given, derived(given.program, strategy.fallback), called)

    return for_all_sizes(at, chosen.runtime, name, lowered, in_loops)


def _assembled(of: OpenProgram, success: Success, name: str) -> HostProgram:
    return assemble(replace(of, program=success.term), name)


def told(chosen: Subject, strategy: Strategy) -> Strategy:
    """The strategy, which is told how large open sizes are expected to be, if it asks for that."""
    return strategy.expecting(chosen.open.sizes, chosen.expected) if isinstance(strategy, Auto) else strategy


def building(chosen: Subject) -> Builds:
    """Kernels of a derived program, compiled where there is a compiler: whether a candidate is one to run."""

    from codegen import runtime

    def builds(term: Expr, target: str) -> int:
        return built(program_of(chosen, Success(term)), target if runtime.can_compile() else None)

    return builds


def kernel_of(success: Success, name: str) -> Kernel:
    """The kernel for a derived program; a definition may be called `double`, a C++ function may not."""
    return generate(success.term, f"{name}_kernel")
