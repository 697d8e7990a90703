"""Magics of notebooks, after `%load_ext rise.cli.notebook`.

`%%rise` makes definitions of a cell's text, known to Python and to later cells. `%rise check`, `run`,
`derive` and `compile` are the commands of that name on such a definition, `%rise run dot --size n=16`. A
strategy may be one that a cell has defined in Python. They return what can be looked at: a type, a
derivation, a compiled program.
"""

from __future__ import annotations

import argparse
import html
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewrites.result import Success
from rise import expr
from rise.check.program import Loader, check_definition
from rise.cli.arguments import parser
from rise.cli.derive import checked as check_steps
from rise.cli.derive import conclusion, counts, plural
from rise.cli.options import sizes, units
from rise.cli.stages import Subject, building, derived, with_settings
from rise.embed import Definition, Program
from rise.embed.definitions import Signature
from rise.embed.program import program_of
from rise.errors import ScopeError, UsageError
from rise.normal import data_flow
from rise.notebook import code_html, folded_html, register
from rise.pretty import show
from rise.source import Source
from rise.suggest import suggestion
from rise.syntax.surface import DefinitionSyntax
from strategies.core import Strategy
from strategies.registry import entry_of, find

COMMANDS = ("check", "run", "derive", "compile")
FILE = "<notebook>"  # in the place of a file, which the commands take first


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext rise.cli.notebook` calls: registers the magics, and how errors are shown."""
    register(shell)
    shell.register_magic_function(Magic(shell), "line_cell", "rise")


@dataclass(frozen=True)
class Magic:
    """`%rise` and `%%rise` in a shell of IPython, whose variables are the definitions that are known."""

    shell: Any
    __name__ = "rise"

    def __call__(self, line: str, cell: str | None = None) -> Any:
        return self.command(line) if cell is None else self.program(line, cell)

    @property
    def definitions(self) -> dict[str, expr.Definition]:
        return {name: v for name, v in self.shell.user_ns.items() if isinstance(v, expr.Definition)}

    # --- %%rise -------------------------------------------------------------------------------------

    def program(self, name: str, text: str) -> Program:
        """The definitions of a cell, each under its name; `name` is one for all of them, if there is one."""
        program = program_of(Cell(self.definitions).check(Source("<cell>", text), Path()).program)
        self.shell.user_ns.update(program)
        if name.strip():
            self.shell.user_ns[name.strip()] = program
        return program

    # --- %rise --------------------------------------------------------------------------------------

    def command(self, line: str) -> Any:
        """A command. UsageError R0003 where it is none, ScopeError R0209 for a definition that is unknown."""
        name, *rest = shlex.split(line) or [""]
        if name not in COMMANDS:
            hint = suggestion(name, COMMANDS) or f"there are {', '.join(f'`{c}`' for c in COMMANDS)}"
            raise UsageError("R0003", f"`%rise {name}`: there is no such command", hint=hint)
        if name == "check":
            return Signatures({given: self._definition(given) for given in rest})
        arguments = parser().parse_args([name, FILE, *rest])
        chosen = Subject(self._definition(arguments.name), sizes(arguments.size), units(arguments.runtime))
        strategy = self._strategy(arguments)
        if name == "derive":
            return derivation(arguments, chosen, strategy)
        if name == "run":
            from rise.cli.run import ran

            ran(arguments, chosen, strategy)
            return None
        return compiled(arguments, chosen, strategy)

    def _definition(self, name: str) -> Definition:
        found = self.definitions.get(name)
        if found is None:
            hint = suggestion(name, self.definitions) or "a cell `%%rise` defines it"
            raise ScopeError("R0209", f"there is no definition `{name}`", hint=hint)
        return Definition.of(found)

    def _strategy(self, arguments: argparse.Namespace) -> Strategy:
        """A strategy of the notebook, or one that the command line knows."""
        own = self.shell.user_ns.get(arguments.strategy)
        known = find(arguments.strategy) if own is None else entry_of(arguments.strategy, own)
        return with_settings(known, arguments)


class Cell(Loader):
    """Checks a cell, in which the definitions of other cells are known, and may be defined again."""

    def __init__(self, known: Mapping[str, expr.Definition]) -> None:
        super().__init__()
        self._known = known

    def define(self, syntax: DefinitionSyntax, definitions: Mapping[str, expr.Definition]) -> expr.Definition:
        return check_definition(syntax, {**self._known, **definitions})


# --- what is shown ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Signatures:
    """The types of definitions, as `rise check` prints them."""

    definitions: Mapping[str, Definition]

    def __repr__(self) -> str:
        return "\n".join(f"{name} : {Signature(d)}" for name, d in self.definitions.items())

    def _repr_html_(self) -> str:
        return code_html(repr(self))


@dataclass(frozen=True)
class Derivation:
    """A program on its way to a low-level one.

    success: the steps, and the term that they lead to
    verdict: what a check of the steps said, if there was one
    """

    name: str
    start: expr.Expr
    success: Success
    verdict: str = ""

    def __repr__(self) -> str:
        steps = self.success.steps
        head = f"{self.name}: {plural(steps)}" + (f": {counts(self.success)}" if steps else "")
        return "\n".join([head, *filter(None, [self.verdict]), "", show(self.success.term)])

    def _repr_html_(self) -> str:
        """Each step opens; the program before stands above, the one after below."""
        steps = [
            folded_html(
                f"{number}. {step.rule}",
                f"{code_html(show(step.before))}→{code_html(show(step.after))}",
            )
            for number, step in enumerate(self.success.steps, 1)
        ]
        verdict = f"<p>{html.escape(self.verdict)}</p>" if self.verdict else ""
        return "".join((code_html(show(self.start)), *steps, verdict, code_html(show(self.success.term))))


def derivation(arguments: argparse.Namespace, chosen: Subject, strategy: Strategy) -> Derivation:
    """`%rise derive`: the options that write files are the command line's alone."""
    for option in ("save", "html", "replay", "json"):
        if getattr(arguments, option, None):
            message = f"`%rise derive` has no option `--{option}`"
            raise UsageError("R0003", message, hint="`rise derive` has it")
    start = data_flow(chosen.program)
    success = derived(start, strategy, building(chosen))
    if not arguments.check:
        return Derivation(arguments.name, start, success)
    verdict = conclusion(check_steps(chosen, success, strategy, None, arguments.seed))
    return Derivation(arguments.name, start, success, verdict)


def compiled(arguments: argparse.Namespace, chosen: Subject, strategy: Strategy) -> Any:
    """`%rise compile`: a function of arrays; any other stage than CUDA is printed."""
    if arguments.stage != "cuda" or arguments.out:
        from rise.cli.compile import compiled as printed

        printed(arguments, chosen, strategy)
        return None
    import codegen

    return codegen.compile(
        chosen.definition, strategy, sizes=chosen.sizes, runtime=chosen.runtime, target=arguments.target
    )
