"""`rise compile`: a definition at any stage, from the high-level program to machine code."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from codegen import show as imperative
from codegen.pipeline import Kernel
from rise.check.specialise import inputs_of
from rise.cli.stages import Subject, chosen_strategy, derived, kernel_of, subject
from rise.cli.terminal import note, show_code, write_file
from rise.errors import UsageError
from rise.expr import Expr
from rise.pretty import show, show_type

LANGUAGES = {"high": "text", "low": "text", "imperative": "text", "cuda": "cuda", "ptx": "text"}


def run(arguments: argparse.Namespace) -> int:
    """Prints or writes the stage; the launch shape goes to stderr, so that the text can be piped."""
    chosen = subject(arguments)
    strategy = chosen_strategy(arguments)
    program = chosen.program
    if arguments.stage == "high":
        return _put(arguments, show_function(program))
    success = derived(program, strategy)
    if arguments.stage == "low":
        return _put(arguments, show_function(success.term))
    kernel = kernel_of(success, chosen.definition.name)
    if arguments.stage == "imperative":
        return _put(arguments, imperative.show_stages(kernel))
    note(f"{kernel.name}: {kernel.launch}")
    if arguments.stage == "cuda":
        return _put(arguments, with_header(chosen, kernel, arguments))
    return _put_code(arguments, kernel)


def show_function(program: Expr) -> str:
    """A specialised program, its inputs with their types in a comment above."""
    inputs = [f"// {name} : {show_type(type_)}" for name, type_ in inputs_of(program)]
    return "\n".join([*inputs, show(program)])


def with_header(chosen: Subject, kernel: Kernel, arguments: argparse.Namespace) -> str:
    """The CUDA text under a comment that says where it comes from and how it is launched."""
    sizes = " ".join(f"{n}={v}" for n, v in chosen.sizes.items())
    lines = [
        f"// {chosen.definition.name} {sizes}, strategy {arguments.strategy}",
        f"// launch: {kernel.launch}",
    ]
    return "\n".join([*lines, kernel.source])


def _put(arguments: argparse.Namespace, text: str) -> int:
    if arguments.output:
        write_file(Path(arguments.output), text if text.endswith("\n") else text + "\n")
    else:
        show_code(text, LANGUAGES[arguments.stage])
    return 0


def _put_code(arguments: argparse.Namespace, kernel: Kernel) -> int:
    from codegen.runtime import compile_cubin

    if arguments.stage == "cubin" and not arguments.output and sys.stdout.isatty():
        raise UsageError("R0009", "machine code is nothing to show", hint="-o FILE writes it")
    compiled = compile_cubin(kernel.source, arguments.target, ptx=arguments.stage == "ptx")
    content = compiled.read_bytes()
    if arguments.output:
        write_file(Path(arguments.output), content)
    elif arguments.stage == "ptx":
        show_code(content.decode("utf-8", errors="replace").rstrip("\0"), "text")
    else:
        sys.stdout.buffer.write(content)
    return 0
