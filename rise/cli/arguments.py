"""The commands and their options. Nothing but argparse is imported here."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NoReturn

from rise.errors import UsageError
from rise.suggest import suggestion

STAGES = ("high", "low", "imperative", "cuda", "ptx", "cubin", "resources")
CANDIDATES = ("table", "tuned", "model")
SHELLS = ("bash", "zsh", "fish")
TARGET = "sm_90a"
BACKENDS = ("interpret", "emulate", "cuda")


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
            kind = "value" if action.option_strings else "command"
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
    top.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)
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


def _command(commands: Any, name: str, module: str, meaning: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=meaning, description=meaning[0].upper() + meaning[1:] + "."
    )
    made.set_defaults(module=f"rise.cli.{module}", command=name)
    made.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return made


def _check(commands: Any) -> None:
    made = _command(commands, "check", "check", "type-check files; print the type of each definition")
    made.add_argument("files", nargs="+", metavar="FILE", help="- is standard input")
    _imports(made)
    made.add_argument("--json", action="store_true", help="print JSON")


def _format(commands: Any) -> None:
    made = _command(commands, "fmt", "format", "format files in place; standard input where none is given")
    made.add_argument("files", nargs="*", metavar="FILE", help="- is standard input")
    made.add_argument("--check", action="store_true", help="write nothing; print what would change, exit 1")
    made.add_argument("--diff", action="store_true", help="write nothing; print the changes as a diff")


def _run(commands: Any) -> None:
    made = _command(commands, "run", "run", "run a definition")
    _program(made)
    made.add_argument("--inputs", metavar="IN.npz", help="arrays under the names of the parameters")
    made.add_argument("-o", "--out", metavar="OUT.npz", help="write the result to this file")
    made.add_argument("--backend", choices=BACKENDS, help="default: cuda with a GPU, else emulate")
    _strategy(made)
    made.add_argument("--target", type=_target, metavar="ARCH", help="GPU to compile for: sm_75 … sm_90a")
    _runtime(made)
    _imports(made)
    _foreign(made)
    made.add_argument("--cuda", metavar="F.cu", help="run this text instead of the printed one")
    made.add_argument("--seed", type=int, default=0, metavar="N", help="for inputs that are not given")
    check = made.add_mutually_exclusive_group()
    check.add_argument(
        "--check",
        action="store_const",
        const="rounding",
        help="compare with the interpreter, on several draws",
    )
    check.add_argument(
        "--check=field", dest="check", action="store_const", const="field",
        help="on whole numbers that nothing rounds; says how probable it is to miss a difference",
    )  # fmt: skip
    made.add_argument("--json", action="store_true", help="print JSON")


def _compile(commands: Any) -> None:
    made = _command(commands, "compile", "compile", "print a definition at any stage of compilation")
    _program(made)
    _strategy(made)
    made.add_argument(
        "--target", type=_target, default=TARGET, metavar="ARCH", help=f"GPU to compile for ({TARGET})"
    )
    made.add_argument("-o", "--out", metavar="FILE", help="write to a file")
    _imports(made)
    _foreign(made)
    made.add_argument("--stage", choices=STAGES, default="cuda", help="what to print (cuda)")
    made.add_argument(
        "--lines", action="store_true", help="also write where lines come from: FILE.lines.json"
    )
    made.add_argument("--pass", dest="pass_", metavar="NAME", help="--stage imperative after this pass only")
    made.add_argument(
        "--spills",
        choices=("refuse", "allow"),
        default="refuse",
        help="spilled registers (refuse)",
    )
    _runtime(made)


def _export(commands: Any) -> None:
    meaning = "write a definition as CUDA and C, with a test, to be built without Python"
    made = _command(commands, "export", "export", meaning)
    _program(made)
    _strategy(made)
    _imports(made)
    made.set_defaults(runtime=[])
    made.add_argument(
        "--target", type=_target, default=TARGET, metavar="ARCH", help=f"GPU to compile for ({TARGET})"
    )
    made.add_argument("-o", "--out", metavar="DIR", help="the folder (NAME-export)")
    made.add_argument("--cubin", action="store_true", help="also write machine code: nvcc is not needed then")
    made.add_argument("--seed", type=int, default=0, metavar="N", help="for the inputs of the test")


def _derive(commands: Any) -> None:
    made = _command(commands, "derive", "derive", "print how a strategy rewrites a definition, step by step")
    _program(made)
    _imports(made)
    made.set_defaults(runtime=[])  # steps are checked by evaluation, at sizes that are known
    _strategy(made, "default")
    made.add_argument("--check", action="store_true", help="evaluate before and after every step")
    made.add_argument("--seed", type=int, default=0, metavar="N", help="for the inputs of the check")
    made.add_argument("--save", metavar="F.json", help="write the derivation")
    made.add_argument("--replay", metavar="F.json", help="apply a saved derivation instead of the strategy")
    made.add_argument("--html", metavar="F.html", help="write the page that `rise view` writes")
    made.add_argument("--json", action="store_true", help="print JSON")


def _search(commands: Any) -> None:
    made = _command(commands, "search", "search", "find the steps to a program that satisfies sketches")
    _program(made)
    _imports(made)
    add = made.add_argument
    several: dict[str, Any] = {"action": "append", "default": []}
    add("--sketch", required=True, metavar="S", help="`map m/32 > reduce 4`; several: in order", **several)
    add("--rules", metavar="SETS", help="rules for each sketch, or for all: 'tile=32,4 reorder'", **several)
    add("--steps", type=_positive, default=12, metavar="N", help="rules applied for one sketch at most (12)")
    add("--beam", type=_positive, default=8, metavar="N", help="programs kept after each of them (8)")
    add("--lower", action="store_true", help="execute all other loops one step after the other")
    add("--check", action="store_true", help="evaluate before and after every step")
    add("--seed", type=int, default=0, metavar="N", help="for the inputs of the check")
    add("--save", metavar="F.json", help="write the derivation")
    add("--python", action="store_true", help="print a strategy in Python that repeats the steps")
    add("--json", action="store_true", help="print JSON")


def _view(commands: Any) -> None:
    meaning = "write a page of a derivation and its kernel, or of two derivations side by side"
    made = _command(commands, "view", "view", meaning)
    made.add_argument("file", metavar="FILE", help="a program, *.rise, or a derivation that --save wrote")
    made.add_argument("name", nargs="?", metavar="NAME", help="a definition; for a derivation, another one")
    _of_program(made)
    made.add_argument("--profile", metavar="F.json", help="measurements to show with the kernel")
    made.add_argument("-o", "--out", metavar="F.html", help="the page (NAME.html)")
    made.add_argument("--open", action="store_true", help="open it in a browser")

    meaning = "say which term and which rewrite step a line of CUDA comes from"
    made = _command(commands, "explain-line", "explain_line", meaning)
    made.add_argument(
        "file", metavar="FILE", help="F.cu:LINE, of `rise compile --lines`, or a program, *.rise"
    )
    made.add_argument("name", nargs="?", metavar="NAME", help="a definition of the program")
    made.add_argument(
        "--line", type=_positive, metavar="N", help="of the CUDA text that `rise compile` prints"
    )
    _of_program(made)
    _runtime(made)
    made.add_argument("--json", action="store_true", help="print JSON")


def _of_program(made: argparse.ArgumentParser) -> None:
    """What a program is derived and compiled with."""
    made.add_argument(
        "--size", nargs="+", action="extend", default=[], metavar="NAME=N", help="sizes: m=128 n=64"
    )
    made.set_defaults(runtime=[])
    _imports(made)
    _strategy(made)
    made.add_argument(
        "--target", type=_target, default=TARGET, metavar="ARCH", help=f"GPU to compile for ({TARGET})"
    )


def _equal(commands: Any) -> None:
    meaning = "say whether two definitions are equal: a proof, a test, or a counterexample"
    made = _command(commands, "check-eq", "equal", meaning)
    made.add_argument("file", metavar="FILE", help="a program, *.rise")
    made.add_argument("name", metavar="NAME", help="a definition of the file")
    made.add_argument(
        "other", nargs="?", metavar="OTHER", help="another one, or one of another file: F.rise:NAME"
    )
    made.add_argument(
        "--size", nargs="+", action="extend", default=[], metavar="NAME=N", help="at these sizes only"
    )
    _imports(made)
    _strategy(made, None)
    made.add_argument("--seed", type=int, default=0, metavar="N", help="for the inputs of the test")
    made.add_argument("--json", action="store_true", help="print JSON")


def _catalogues(commands: Any) -> None:
    for name, meaning in (
        ("primitives", "list the primitives, or say what one means"),
        ("rules", "list the rewrite rules, or show one"),
        ("strategies", "list the strategies and their parameters"),
    ):
        made = _command(commands, name, "catalogue", meaning)
        made.add_argument("name", nargs="?", metavar="NAME")
        made.add_argument("--json", action="store_true", help="print JSON")
        _load(made)
        if name == "primitives":
            made.add_argument("--markdown", action="store_true", help="print docs/primitives.md")
        if name == "rules":
            made.add_argument(
                "--prove", action="store_true", help="prove NAME, or file.py:RULE, or refute it"
            )
    made = _command(commands, "explain", "catalogue", "explain an error code")
    made.add_argument("name", nargs="?", metavar="CODE")


def _demonstrations(commands: Any) -> None:
    made = _command(commands, "demo", "demo", "show every stage of compiling a matrix product")
    made.add_argument("--size", type=_positive, default=256, metavar="N", help="a multiple of 128 (256)")
    _bench(_command(commands, "bench", "bench", "measure a table of kernels against libraries, on a GPU"))
    _tune(_command(commands, "tune", "tune", "find the best parameters of a strategy, and remember them"))


def _editing(commands: Any) -> None:
    _command(commands, "lsp", "lsp", "serve editors: the language server, on standard input and output")
    made = _command(commands, "completion", "completion", "print what completes this command line in a shell")
    made.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def _bench(made: argparse.ArgumentParser) -> None:
    _foreign(made)
    add = made.add_argument
    several: dict[str, Any] = {"nargs": "+", "action": "extend", "default": []}
    add("table", nargs="?", metavar="TABLE", help="a name, a folder of tables or a .toml file; else a list")
    add("-o", "--out", default="bench-results", metavar="DIR", help="results and report (bench-results)")
    add("--size", metavar="S", help="only these: 1024, 128x256x64, m=64", **several)
    add("--only", metavar="X", help="only these definitions, strategies, baselines", **several)
    add("--limit", type=_positive, metavar="N", help="the first N sizes of each program")
    add("--quick", action="store_true", help="only the few sizes that a paper's figure names for this")
    add("--report", metavar="DIR", help="measure nothing; print the page of the papers' results there")
    add("--budget", type=float, metavar="SECONDS", help="for everything; rerun to resume")
    add("--jobs", type=_positive, metavar="N", help="processes that compile (all processors but one)")
    _gpus(made)
    add(
        "--candidates",
        choices=CANDIDATES,
        default="table",
        help="the table's, remembered, or the model's",
    )
    add("--top", type=_positive, default=8, metavar="N", help="number of the cost model's candidates (8)")
    add("--store", metavar="F", help="a further file of remembered parameters")
    add("--prepare", action="store_true", help="only compile; needs no GPU")
    add(
        "--target",
        type=_target,
        default="sm_90a",
        metavar="ARCH",
        help="GPU of --prepare (sm_90a)",
    )
    add("--plot", action="store_true", help="draw plots, with matplotlib")


def _gpus(made: argparse.ArgumentParser) -> None:
    add = made.add_mutually_exclusive_group().add_argument
    add(
        "--gpus", type=_names, default=(), metavar="0,1,…", help="share the work among these GPUs (the first)"
    )
    add("--cluster", metavar="ADDRESS", help="share the work among the workers of a Dask scheduler")


def _names(text: str) -> tuple[str, ...]:
    """Numbers of GPUs as nvidia-smi counts them, or their names, `GPU-…`."""
    found = tuple(text.split(","))
    if len(set(found)) < len(found) or not all(
        re.fullmatch(r"[0-9]+|(GPU|MIG)-[-0-9a-f/]+", n) for n in found
    ):
        raise argparse.ArgumentTypeError(f"{text} is no list of different GPUs, such as 0,1")
    return found


def _tune(made: argparse.ArgumentParser) -> None:
    _program(made)
    _foreign(made)
    add = made.add_argument
    several: dict[str, Any] = {"nargs": "+", "action": "extend", "default": []}
    add("--strategy", default="tensor_core", metavar="S", help="whose parameters are searched (tensor_core)")
    add("--top", type=_positive, default=16, metavar="N", help="number of the cost model's candidates (16)")
    add("--timeout", type=float, default=60.0, metavar="SECONDS", help="for compiling one candidate (60)")
    add("--jobs", type=_positive, metavar="N", help="processes that compile (all processors but one)")
    _gpus(made)
    add("--budget", type=float, metavar="SECONDS", help="for everything; rerun to resume")
    add("--store", metavar="F", help="file that remembers the winner (the user's own)")
    add(
        "-o",
        "--out",
        metavar="DIR",
        help="where measurements are kept, from which an interrupted search resumes",
    )
    add("--operation", metavar="X", help="reference for results (the interpreter)")
    add("--scalar", metavar="NAME=X", help="values of inputs that are numbers", **several)
    add("--against", metavar="B", help="baselines: cublas cublasLt", **several)
    add("--target", type=_target, metavar="ARCH", help="GPU to compile for (this machine's, or sm_90a)")
    add("--dry-run", action="store_true", help="rank and compile only; needs no GPU")
    add("--json", action="store_true", help="print JSON")


def _program(made: argparse.ArgumentParser) -> None:
    made.add_argument("file", metavar="FILE", help="a program, *.rise")
    made.add_argument("name", metavar="NAME", help="a definition of the file")
    made.add_argument(
        "--size", nargs="+", action="extend", default=[], metavar="NAME=N", help="sizes: m=128 n=64"
    )


def _imports(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--import-path", action="append", default=[], metavar="DIR", help="a further folder for imports"
    )
    _load(made)


def _load(made: argparse.ArgumentParser) -> None:
    """Modules that `main` imports before the command runs."""
    made.add_argument(
        "--load", action="append", default=[], metavar="F.py", help="a module with primitives of your own"
    )


def _foreign(made: argparse.ArgumentParser) -> None:
    """Whether C functions of a program may run."""
    either = made.add_mutually_exclusive_group()
    either.add_argument(
        "--no-foreign", dest="foreign", action="store_const", const="no", help="refuse programs that call C"
    )
    either.add_argument(
        "--allow-foreign", dest="foreign", action="store_const", const="yes",
        help="run C functions of programs that are not below the working directory",
    )  # fmt: skip


def _runtime(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--runtime",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME[=UNIT]",
        help="sizes that stay open until launch, multiples of UNIT",
    )


def _strategy(made: argparse.ArgumentParser, default: str | None = "auto") -> None:
    what = f" ({default})" if default else ": compare with what it derives"
    made.add_argument("--strategy", default=default, metavar="S", help=f"see `rise strategies`{what}")
    made.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        dest="settings",
        metavar="NAME=VALUE",
        help="parameters of the strategy: block=128,128,64",
    )
    made.add_argument(
        "--verify",
        action="store_true",
        help="check types after every rewrite, and the program after every pass",
    )


def _target(text: str) -> str:
    from rise.targets import check_target

    return check_target(text)


def _positive(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"{text} is not a number, or is too large")
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return int(text)


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """`["m=1", "n=2"]` as a mapping. R0005 where an item is not one pair, or a name occurs twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        apart = re.sub(r"[,;](?=\w+=|$)", " ", text).rstrip()
        if apart != text:
            message = f"{option} {text}: expected one NAME=VALUE"
            raise UsageError("R0005", message, hint=f"separate them by spaces: `{option} {apart}`")
        if not (name and equals and value):
            raise UsageError("R0005", f"{option} {text}: expected NAME=VALUE", hint=f"`{option} name=1`")
        if name in found:
            raise UsageError("R0005", f"{option} gives `{name}` twice")
        found[name] = value
    return found


def sizes(texts: Sequence[str]) -> dict[str, int]:
    """`["m=128"]` as numbers."""
    return {name: _natural(name, value) for name, value in pairs(texts, "--size").items()}


def units(texts: Sequence[str]) -> dict[str, int]:
    """`["m", "n=16"]` as what each is a multiple of."""
    given = [text if "=" in text else f"{text}=1" for text in texts]
    return {name: _natural(name, value) for name, value in pairs(given, "--runtime").items()}


def _natural(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        wrong = text if len(text) <= 40 else f"{text[:40]}…"
        raise UsageError("R0407", f"the size {name}={wrong} is not a natural number up to 2^40") from None
