"""`rise compile`: a definition at any stage, from the high-level program to machine code."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from codegen.host.program import HostProgram
from codegen.host.text import cuda_text
from codegen.ir import show as imperative
from rise import files
from rise.check.specialise import inputs_of
from rise.cli.explain_line import write_lines
from rise.cli.foreign import FORBIDDEN, check_foreign
from rise.cli.options import target_of
from rise.cli.stages import Subject, building, chosen_strategy, derived, program_of, subject, told
from rise.cli.terminal import note, show_code
from rise.errors import UsageError
from rise.expr import Expr
from rise.pretty import show, show_type
from rise.progress import progress
from rise.suggest import suggestion
from strategies.core import Strategy

if TYPE_CHECKING:
    from codegen.runtime import Resources

LANGUAGES = {
    "high": "text",
    "low": "text",
    "imperative": "text",
    "cuda": "cuda",
    "ptx": "text",
    "resources": "text",
}


def run(arguments: argparse.Namespace) -> int:
    """A definition of a file, by a strategy that is named."""
    return compiled(arguments, subject(arguments), chosen_strategy(arguments))


def compiled(arguments: argparse.Namespace, chosen: Subject, strategy: Strategy) -> int:
    """Prints or writes the stage; the launch shape goes to stderr, so that the text can be piped."""
    _check_stage(arguments)
    program = chosen.program
    if arguments.foreign == FORBIDDEN:
        check_foreign(program, arguments.file, arguments.foreign)
    if arguments.stage == "high":
        return _put(arguments, show_function(program))
    strategy = told(chosen, strategy)
    success = derived(program, strategy, building(chosen))
    if arguments.stage == "low":
        return _put(arguments, show_function(success.term))
    # the places of lines are those of one derivation
    made = program_of(chosen, success, None if arguments.lines else strategy)
    if arguments.stage == "imperative":
        return _put(arguments, passes(made, arguments.pass_))
    for line in _launches(made):
        note(line)
    if arguments.stage == "cuda":
        if arguments.lines:
            write_lines(arguments, chosen, success, header(chosen, made, arguments))
        return _put(arguments, with_header(chosen, made, arguments))
    if arguments.stage == "resources":
        found = _resources(made, arguments)
        if arguments.json:
            return _put(arguments, json.dumps([asdict(one) for one in found], indent=2))
        return _put(arguments, "\n".join(map(str, found)))
    return _put_code(arguments, made)


def _check_stage(arguments: argparse.Namespace) -> None:
    """R0003 for what another stage than the one that is printed would need."""
    needs = (
        (arguments.pass_, "pass", "imperative"), (arguments.lines, "lines", "cuda"),
        (arguments.json, "json", "resources"),
    )  # fmt: skip
    for given, option, stage in needs:
        if given and arguments.stage != stage:
            message = f"--{option} is for `--stage {stage}`, and this is `--stage {arguments.stage}`"
            raise UsageError("R0003", message, None, f"add `--stage {stage}`, or leave out --{option}")


def passes(made: HostProgram, name: str | None) -> str:
    """The imperative program after each pass that changed it, kernel by kernel; or after one of them."""
    if name is None:
        return "\n".join(imperative.show_stages(kernel) for kernel in made.kernels)
    found = [function for kernel in made.kernels for label, function in kernel.stages if label == name]
    if not found:
        known = list(dict.fromkeys(label for kernel in made.kernels for label, _ in kernel.stages))
        hint = suggestion(name, known) or "the passes are " + ", ".join(f"`{n}`" for n in known)
        raise UsageError("R0003", f"--pass {name}: there is no such pass", None, hint)
    return "\n\n".join(map(imperative.show_program, found))


def _launches(made: HostProgram) -> list[str]:
    """One line for a kernel; where there are sizes and temporaries, all that the host does."""
    if len(made.kernels) == 1 and not made.sizes:
        return [f"{made.kernels[0].name}: {made.kernels[0].launch}"]
    return str(made).splitlines()


def _resources(made: HostProgram, arguments: argparse.Namespace) -> list[Resources]:
    from codegen.runtime import resources

    with progress("compiling"):
        found = resources(cuda_text(made), target_of(arguments))
    return [found[kernel.name] for kernel in made.kernels]


def show_function(program: Expr) -> str:
    """A specialised program, its inputs with their types in a comment above."""
    inputs = [f"// {name} : {show_type(type_)}" for name, type_ in inputs_of(program)]
    return "\n".join([*inputs, show(program)])


def with_header(chosen: Subject, made: HostProgram, arguments: argparse.Namespace) -> str:
    """The CUDA text under a comment that says where it comes from and how it is launched."""
    return "\n".join([*header(chosen, made, arguments), cuda_text(made)])


def header(chosen: Subject, made: HostProgram, arguments: argparse.Namespace) -> list[str]:
    """The lines of that comment."""
    sizes = " ".join([*(f"{n}={v}" for n, v in chosen.sizes.items()), *chosen.runtime])
    single = len(made.kernels) == 1 and not made.sizes
    launches = [f"launch: {made.kernels[0].launch}"] if single else ["the host:", *_launches(made)]
    lines = [f"{chosen.definition.name} {sizes}, strategy {arguments.strategy}", *launches]
    return [f"// {line}" for line in lines]


def _put(arguments: argparse.Namespace, text: str) -> int:
    if arguments.out:
        files.write(Path(arguments.out), text if text.endswith("\n") else text + "\n")
    else:
        show_code(text, LANGUAGES[arguments.stage])
    return 0


def _put_code(arguments: argparse.Namespace, made: HostProgram) -> int:
    from codegen.runtime import check_spills, compile_cubin

    if arguments.stage == "cubin" and not arguments.out and sys.stdout.isatty():
        raise UsageError("R0009", "machine code cannot be printed", hint="-o FILE writes it")
    if arguments.stage == "cubin":
        for found in _resources(made, arguments):
            note(str(found))
            check_spills(found, arguments.spills)
    with progress("compiling"):
        content = compile_cubin(
            cuda_text(made), target_of(arguments), ptx=arguments.stage == "ptx"
        ).read_bytes()
    if arguments.out:
        files.write(Path(arguments.out), content)
    elif arguments.stage == "ptx":
        show_code(content.decode("utf-8", errors="replace").rstrip("\0"), "text")
    else:
        sys.stdout.buffer.write(content)
    return 0
