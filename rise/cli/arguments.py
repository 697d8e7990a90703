"""The commands. Nothing but argparse is imported here."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NoReturn

from rise.cli.options import add, either
from rise.errors import UsageError
from rise.suggest import suggestion

SHELLS = ("bash", "zsh", "fish")
PROGRAM, DEFINITION = "a program, *.rise", "a definition of the file; left out, they are listed"
IMPORTS = ("--import-path", "--load")
FOREIGN = ("--no-foreign", "--allow-foreign")


class Parser(argparse.ArgumentParser):
    """argparse, with its complaints as UsageErrors, and with options that leave FILE and NAME alone."""

    def error(self, message: str) -> NoReturn:
        raise UsageError("R0003", message, hint=f"`{self.prog} --help` lists its options")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        given = list(sys.argv[1:] if args is None else args)
        found, unknown = super().parse_known_args(self._apart(given), namespace)
        options = [text.partition("=")[0] for text in unknown if text.startswith("--")]
        if options and self._subparsers is None:
            known = [name for name in self._option_string_actions if name.startswith("--")]
            hint = suggestion(options[0], known) or f"`{self.prog} --help` lists its options"
            raise UsageError("R0003", f"`{self.prog}` has no option `{options[0]}`", None, hint)
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Called by argparse for each value: it must be one of several, as a command must."""
        if action.choices is not None and value not in action.choices:
            known = list(action.choices)
            what = f"{action.option_strings[0]} {value}" if action.option_strings else f"`{value}`"
            hint = suggestion(str(value), known) or f"there are {', '.join(f'`{name}`' for name in known)}"
            kind = "command" if isinstance(action, argparse._SubParsersAction) else "value"
            raise UsageError("R0003", f"{what}: there is no such {kind}", None, hint)

    def _apart(self, given: Sequence[str]) -> list[str]:
        """Where an option of several values stands before FILE, FILE and what follows it come first.

        `--size m=4 n=4 FILE NAME` is `FILE NAME --size m=4 n=4`: argparse would take all four for sizes.
        """
        several = {name for name, action in self._option_string_actions.items() if action.nargs == "+"}
        made: list[str] = []
        option = 0  # where in `made` the option stands whose values are read
        for position, text in enumerate(given):
            if text == "--":
                return [*made, *given[position:]]
            if text.startswith("-") and len(text) > 1:
                made.append(text)
                option = len(made) if text in several else 0
            elif option and _is_file(text):
                files = list(
                    takewhile(lambda other: other == "-" or not other.startswith("-"), given[position:])
                )
                return self._apart(
                    [*made[: option - 1], *files, *made[option - 1 :], *given[position + len(files) :]]
                )
            else:
                made.append(text)
        return made


def _is_file(text: str) -> bool:
    """Whether an argument names a file, and is not a value such as `m=4` or `128x64`."""
    return "=" not in text and text.endswith((".rise", ".toml"))


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    from rise import __version__

    top = Parser(prog="rise", description="A functional language for arrays, compiled to GPUs by rewriting.")
    top.add_argument("--version", action="version", version=f"rise {__version__}")
    add(top, "--debug")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    _check(commands)
    _format(commands)
    _run(commands)
    _compile(commands)
    _export(commands)
    _derive(commands)
    _search(commands)
    _view(commands)
    _equal(commands)
    _catalogues(commands)
    _demonstrations(commands)
    _editing(commands)
    return top


QUICK = ("primitives", "strategies", "explain", "lsp", "completion")


def _command(commands: Any, name: str, module: str, meaning: str, more: str = "") -> argparse.ArgumentParser:
    """A command. more: what an option that other commands share means for this one."""
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=meaning, description=meaning[0].upper() + meaning[1:] + ".", epilog=more
    )
    made.set_defaults(module=f"rise.cli.{module}", command=name)
    add(made, "--debug", *(() if name in QUICK else ("--progress",)))
    return made


def _check(commands: Any) -> None:
    made = _command(commands, "check", "check", "type-check files; print the type of each definition")
    made.add_argument("files", nargs="+", metavar="FILE", help="- is standard input")
    add(made, *IMPORTS, "--json")


def _format(commands: Any) -> None:
    made = _command(commands, "fmt", "format", "format files in place; standard input where none is given")
    made.add_argument("files", nargs="*", metavar="FILE", help="- is standard input")
    # the name that other formatters give it
    made.add_argument("--check", action="store_true", help="write nothing; print what would change, exit 1")
    made.add_argument("--diff", action="store_true", help="write nothing; print the changes as a diff")


def _run(commands: Any) -> None:
    made = _command(commands, "run", "run", "run a definition", "--out writes the result to an .npz file.")
    _program(made)
    add(made, "--inputs", "--out", "--backend")
    _rewritten(made)
    add(made, "--target", "--runtime", "--expect", *IMPORTS, "--cuda", "--seed", "--json")
    either(made, *FOREIGN)
    either(made, "--check", "--check=field")


def _compile(commands: Any) -> None:
    more = "Without --out, the text is printed."
    made = _command(commands, "compile", "compile", "print a definition at any stage of compilation", more)
    _program(made)
    _rewritten(made)
    add(
        made,
        "--target",
        "--runtime",
        "--expect",
        *IMPORTS,
        "--out",
        "--stage",
        "--lines",
        "--pass",
        "--spills",
        "--json",
    )
    either(made, *FOREIGN)


def _export(commands: Any) -> None:
    meaning = "write a definition as CUDA and C, with a test, to be built without Python"
    made = _command(commands, "export", "export", meaning, "--out is a folder, NAME-export by default.")
    _program(made)
    _rewritten(made)
    made.set_defaults(runtime=[])
    add(made, "--target", *IMPORTS, "--out", "--cubin", "--seed")


def _derive(commands: Any) -> None:
    made = _command(commands, "derive", "derive", "print how a strategy rewrites a definition, step by step")
    _program(made)
    made.set_defaults(runtime=[])  # steps are checked by evaluation, at sizes that are known
    _rewritten(made, "default")
    add(made, *IMPORTS, "--check", "--seed", "--save", "--replay", "--html", "--json")


def _search(commands: Any) -> None:
    made = _command(commands, "search", "search", "find the steps to a program that satisfies sketches")
    _program(made)
    add(made, *IMPORTS, "--sketch", "--rules", "--steps", "--beam", "--lower")
    add(made, "--check", "--seed", "--save", "--python", "--json")


def _view(commands: Any) -> None:
    meaning = "write a page of a derivation and its kernel, or of two derivations side by side"
    made = _command(commands, "view", "view", meaning, "--out is the page, NAME.html by default.")
    made.add_argument("file", metavar="FILE", help=f"{PROGRAM}, or a derivation that --save wrote")
    made.add_argument("name", nargs="?", metavar="NAME", help="a definition; for a derivation, another one")
    _of_program(made)
    add(made, "--runtime", "--expect", "--profile", "--out", "--open")

    meaning = "say which term and which rewrite step a line of CUDA comes from"
    made = _command(commands, "explain-line", "explain_line", meaning)
    made.add_argument("file", metavar="FILE", help=f"F.cu:LINE, of `rise compile --lines`, or {PROGRAM}")
    made.add_argument("name", nargs="?", metavar="NAME", help="a definition of the program")
    _of_program(made)
    add(made, "--line", "--runtime", "--expect", "--json")


def _of_program(made: argparse.ArgumentParser) -> None:
    """What a program is derived and compiled with."""
    made.set_defaults(runtime=[])
    _rewritten(made)
    add(made, "--size", *IMPORTS, "--target")


def _equal(commands: Any) -> None:
    meaning = "say whether two definitions are equal: a proof, a test, or a counterexample"
    more = "Without OTHER, NAME is compared with what --strategy derives from it."
    made = _command(commands, "check-eq", "equal", meaning, more)
    _program(made)
    made.add_argument(
        "other", nargs="?", metavar="OTHER", help="another one, or one of another file: F.rise:NAME"
    )
    _rewritten(made, None)
    add(made, *IMPORTS, "--seed", "--json")


def _catalogues(commands: Any) -> None:
    for name, meaning, one, options in (
        ("primitives", "list the primitives, or say what one means", "a primitive", ("--markdown",)),
        ("rules", "list the rewrite rules, or show one", "a rule", ("--prove",)),
        ("strategies", "list the strategies and their parameters", "a strategy, or F.py:NAME", ()),
    ):
        made = _command(commands, name, "catalogue", meaning)
        made.add_argument("name", nargs="?", metavar="NAME", help=f"{one}; else all are listed")
        add(made, "--json", "--load", *options)
    made = _command(commands, "explain", "catalogue", "explain an error code")
    made.add_argument("name", nargs="?", metavar="CODE", help="for example R0401; else all are listed")
    add(made, "--json")


def _demonstrations(commands: Any) -> None:
    meaning = "show every stage of compiling a matrix product"
    more = "m, n and k are 256 by default; n and k are multiples of 8."
    made = _command(commands, "demo", "demo", meaning, more)
    add(made, "--size")
    _bench(commands)
    _tune(commands)


def _editing(commands: Any) -> None:
    made = _command(
        commands, "lsp", "lsp", "serve editors: the language server, on standard input and output"
    )
    add(made, "--load")
    made = _command(commands, "completion", "completion", "print what completes this command line in a shell")
    made.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def _bench(commands: Any) -> None:
    meaning = "measure a table of kernels against libraries, on a GPU"
    more = "--out is the folder of results, bench-results by default."
    made = _command(commands, "bench", "bench", meaning, more)
    made.add_argument(
        "table", nargs="?", metavar="TABLE", help="a name, a folder of tables or a .toml file; else a list"
    )
    either(made, *FOREIGN)
    add(made, "--out", "--case", "--only", "--limit", "--quick", "--report", "--budget", "--jobs")
    either(made, "--gpus", "--cluster")
    add(made, "--top", default=8)  # of each of many programs
    add(made, "--candidates", "--store", "--remember", "--prepare", "--target")
    # several pictures, into the folder of results
    made.add_argument("--plot", action="store_true", help="draw plots, with matplotlib")


def _tune(commands: Any) -> None:
    meaning = "find the best parameters of a strategy, and remember them"
    more = "Parameters in --set are fixed. From the folder --out an interrupted search resumes."
    made = _command(commands, "tune", "tune", meaning, more)
    _program(made)
    either(made, *FOREIGN)
    add(made, "--strategy", default="tensor_core")  # `auto` has no parameters
    add(made, "--set", *IMPORTS, "--target")
    add(made, "--top", default=16)  # of one program
    add(made, "--timeout", "--jobs", "--budget", "--store", "--out", "--plot")
    add(made, "--operation", "--scalar", "--against")
    either(made, "--gpus", "--cluster")
    add(made, "--dry-run", "--json")


def _program(made: argparse.ArgumentParser) -> None:
    made.add_argument("file", metavar="FILE", help=PROGRAM)
    made.add_argument("name", nargs="?", metavar="NAME", help=DEFINITION)
    add(made, "--size")


def _rewritten(made: argparse.ArgumentParser, strategy: str | None = "auto") -> None:
    add(made, "--strategy", default=strategy)
    add(made, "--set", "--verify")
