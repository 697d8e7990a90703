"""Every option of the command line, declared once: its name means the same wherever a command has it."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rise.errors import UsageError

STAGES = ("high", "low", "imperative", "cuda", "ptx", "cubin", "resources")
CANDIDATES = ("table", "tuned", "model", "both")
BACKENDS = ("interpret", "emulate", "cuda")
TARGET = "sm_90a"  # where there is no GPU
LARGEST_SIZE = 2**40


def _target(text: str) -> str:
    from rise.targets import check_target

    return check_target(text)


def target_of(arguments: argparse.Namespace) -> str:
    """What kernels are compiled for: `--target`, else this machine's GPU, else Hopper."""
    from codegen.execute import present_target

    return getattr(arguments, "target", None) or present_target() or TARGET


def _positive(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"{text} is not a number, or is too large")
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return int(text)


def _natural(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,40}", text):
        raise argparse.ArgumentTypeError(f"{text} is not a natural number")
    return int(text)


def _folder(text: str) -> str:
    """A folder that exists."""
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return text


def _names(text: str) -> tuple[str, ...]:
    """Numbers of GPUs as nvidia-smi counts them, or their names, `GPU-…`."""
    found = tuple(text.split(","))
    if len(set(found)) < len(found) or not all(
        re.fullmatch(r"[0-9]+|(GPU|MIG)-[-0-9a-f/]+", n) for n in found
    ):
        raise argparse.ArgumentTypeError(f"{text} is no list of different GPUs, such as 0,1")
    return found


def _picture(text: str) -> str:
    if text.endswith((".png", ".svg")):
        return text
    raise argparse.ArgumentTypeError(f"{text} ends neither in .png nor in .svg")


_FLAG: Mapping[str, Any] = {"action": "store_true"}
_SEVERAL: Mapping[str, Any] = {"nargs": "+", "action": "extend", "default": []}
_REPEATED: Mapping[str, Any] = {"action": "append", "default": []}


def _value(metavar: str, meaning: str, **more: Any) -> Mapping[str, Any]:
    return {"metavar": metavar, "help": meaning, **more}


def _choice(choices: tuple[str, ...], meaning: str, default: str | None) -> Mapping[str, Any]:
    return {"choices": choices, "default": default, "help": meaning}


def _flag(meaning: str, **more: Any) -> Mapping[str, Any]:
    return {**_FLAG, "help": meaning, **more}


OPTIONS: Mapping[str, Mapping[str, Any]] = {
    # the program
    "--size": _value("NAME=N", "sizes: m=128 n=64", **_SEVERAL),
    "--runtime": _value("NAME[=UNIT]", "sizes that stay open until launch, multiples of UNIT", **_SEVERAL),
    "--expect": _value("NAME=N", "about how large these are: `auto` chooses for 2048 each", **_SEVERAL),
    "--import-path": _value("DIR", "a further folder for imports", type=_folder, **_REPEATED),
    "--load": _value("F.py", "a module with primitives of your own", **_REPEATED),
    # how it is rewritten
    "--strategy": _value("S", "a name that `rise strategies` lists, or F.py:NAME (%(default)s)"),
    "--set": _value(
        "NAME=VALUE", "parameters of the strategy: block=128,128,64", dest="settings", **_SEVERAL
    ),
    "--verify": _flag("check types after every rewrite, and the program after every pass"),
    "--sketch": _value("S", "`map m/32 > reduce 4`; several: in order", required=True, **_REPEATED),
    "--rules": _value("SETS", "rules for each sketch, or for all: 'tile=32,4 reorder'", **_REPEATED),
    "--steps": _value(
        "N", "rules applied for one sketch at most (%(default)s)", type=_positive, default=12
    ),
    "--beam": _value("N", "programs kept after each of them (%(default)s)", type=_positive, default=8),
    "--lower": _flag("execute all other loops one step after the other"),
    "--replay": _value("F.json", "apply a saved derivation instead of the strategy"),
    # how it is compiled
    "--target": _value("ARCH", f"GPU to compile for (this machine's, or {TARGET})", type=_target),
    "--stage": _choice(STAGES, "what to print (%(default)s)", "cuda"),
    "--pass": _value("NAME", "--stage imperative after this pass only", dest="pass_"),
    "--lines": _flag("also write where lines come from: FILE.lines.json"),
    "--spills": _choice(("refuse", "allow"), "spilled registers (%(default)s)", "refuse"),
    "--cubin": _flag("also write machine code: nvcc is not needed then"),
    # how it runs, and is checked
    "--backend": _choice(BACKENDS, "where it runs (cuda with a GPU, else emulate)", None),
    "--inputs": _value("IN.npz", "arrays under the names of the parameters"),
    "--cuda": _value("F.cu", "run this text instead of the printed one"),
    "--seed": _value("N", "of random inputs (%(default)s)", type=_natural, default=0),
    "--check": {
        "action": "store_const", "const": "rounding",
        "help": "compare with the interpreter: the result, or each step of a derivation",
    },
    "--check=field": {
        "dest": "check", "action": "store_const", "const": "field",
        "help": "on whole numbers that nothing rounds; says how probable it is to miss a difference",
    },
    "--no-foreign": {
        "dest": "foreign", "action": "store_const", "const": "no", "help": "refuse programs that call C",
    },
    "--allow-foreign": {
        "dest": "foreign", "action": "store_const", "const": "yes",
        "help": "run C functions of programs that are not below the working directory",
    },
    # what is shown and written
    "--out": _value("PATH", "the file or folder to write"),
    "--save": _value("F.json", "write the derivation"),
    "--html": _value("F.html", "write the page that `rise view` writes"),
    "--profile": _value("F.json", "measurements to show with the kernel"),
    "--open": _flag("open it in a browser"),
    "--line": _value("N", "of the CUDA text that `rise compile` prints", type=_positive),
    "--python": _flag("print a strategy in Python that repeats the steps"),
    "--json": _flag("print JSON"),
    "--markdown": _flag("print docs/primitives.md"),
    "--prove": _flag("prove NAME, or file.py:RULE, or refute it"),
    # what is measured
    "--case": _value("S", "only these sizes: 1024, 128x256x64, m=64", **_SEVERAL),
    "--only": _value("X", "only these definitions, strategies, baselines", **_SEVERAL),
    "--limit": _value("N", "the first N sizes of each program", type=_positive),
    "--quick": _flag("only the few sizes that a paper's figure names for this"),
    "--report": _value("DIR", "measure nothing; print the page of the papers' results there"),
    "--budget": _value("SECONDS", "for everything; rerun to resume", type=float),
    "--timeout": _value("SECONDS", "for compiling one candidate (%(default)s)", type=float, default=60.0),
    "--jobs": _value("N", "processes that compile (all processors but one)", type=_positive),
    "--gpus": _value("0,1,…", "share the work among these GPUs (the first)", type=_names, default=()),
    "--cluster": _value("ADDRESS", "share the work among the workers of a Dask scheduler"),
    "--candidates": _choice(CANDIDATES, "the table's, remembered, the model's, or both of these", "table"),
    "--top": _value("N", "number of the cost model's candidates (%(default)s)", type=_positive),
    "--store": _value("F.jsonl", "the file of remembered parameters that `tune` writes and `bench` reads"),
    "--remember": _flag("write the fastest of each case to --store, or to your own file"),
    "--plot": _value("FILE", "draw what was measured, *.png or *.svg", type=_picture),
    "--prepare": _flag("only compile; needs no GPU"),
    "--dry-run": _flag("rank and compile only; needs no GPU"),
    "--operation": _value("X", "reference for results (the interpreter)"),
    "--scalar": _value("NAME=X", "values of inputs that are numbers", **_SEVERAL),
    "--against": _value("B", "baselines: cublas cublasLt", **_SEVERAL),
    # the command itself
    "--progress": {
        "action": argparse.BooleanOptionalAction,
        "help": "show what is done now, and the time left (on a terminal)",
    },
    "--debug": _flag("show the traceback of an error"),
}  # fmt: skip
SHORT = {"--out": ("-o",)}


def add(made: Any, *names: str, **differs: Any) -> None:
    """Gives a command options by their names. differs: a default that is the command's own."""
    for name in names:
        made.add_argument(*SHORT.get(name, ()), name, **{**OPTIONS[name], **differs})


def either(made: argparse.ArgumentParser, *names: str) -> None:
    """Options of which one call has one at most."""
    add(made.add_mutually_exclusive_group(), *names)


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


def sizes(texts: Sequence[str], option: str = "--size") -> dict[str, int]:
    """`["m=128"]` as numbers."""
    return {name: _size(name, value) for name, value in pairs(texts, option).items()}


def units(texts: Sequence[str]) -> dict[str, int]:
    """`["m", "n=16"]` as what each is a multiple of."""
    given = [text if "=" in text else f"{text}=1" for text in texts]
    return {name: _size(name, value) for name, value in pairs(given, "--runtime").items()}


def _size(name: str, text: str) -> int:
    if re.fullmatch(r"[0-9]{1,13}", text) and int(text) <= LARGEST_SIZE:
        return int(text)
    wrong = text if len(text) <= 40 else f"{text[:40]}…"
    hint = f"sizes are written in digits alone: `{name}=128`"
    raise UsageError("R0407", f"the size {name}={wrong} is not a natural number up to 2^40", None, hint)
