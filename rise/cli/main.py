"""The entry point: arguments in, exit status out, errors as messages instead of tracebacks.

Exit status: 0 success, 1 the program is wrong, 2 the command line is wrong, 3 an error of this compiler.
"""

from __future__ import annotations

import errno
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module

from rise.cli.arguments import parser
from rise.cli.packages import check_packages
from rise.depth import deep, too_deep
from rise.errors import RiseError, UsageError
from rise.output import discard_the_rest, escape_what_cannot_be_encoded, replace_what_is_closed
from rise.progress import watching
from rise.source import Origin

# of the operating system: what a full disk, a device, or a limit of the user answers
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
RIGHT, PROGRAM_WRONG, CALL_WRONG, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 130


@deep
def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. Returns the exit status; raises nothing unless `--debug` asks for it."""
    debug = "--debug" in (sys.argv[1:] if argv is None else argv)
    replace_what_is_closed()
    escape_what_cannot_be_encoded()
    try:
        check_packages()
        try:
            arguments = parser().parse_args(argv)
        except SystemExit as leaving:  # argparse, for --help and --version
            return leaving.code if isinstance(leaving.code, int) else CALL_WRONG
        with watching(getattr(arguments, "progress", None)):
            status = _run(arguments)
        sys.stdout.flush()
        return status
    except RiseError as error:
        if debug:
            raise
        if error.code.endswith("99"):
            return _internal(error, argv)
        error.origin = error.origin or _own_place(error)
        return _report(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader, `head`, has seen enough
        discard_the_rest()
        return RIGHT
    except MemoryError:
        if debug:
            raise
        return _report(RiseError("R0006", "the arrays do not fit into memory", hint="choose smaller sizes"))
    except (Exception, SystemExit) as error:
        if debug:
            raise
        return _internal(error, argv)


def _run(arguments: Namespace) -> int:
    _load(getattr(arguments, "load", []))
    with ExitStack() as stack:
        if getattr(arguments, "verify", False):
            from codegen.passes import verify  # late: other commands start without the code generator

            stack.enter_context(verify.verifying())
        status: int = import_module(arguments.module).run(arguments)
    return status


def _load(modules: Sequence[str]) -> None:
    """Imports what `--load` names: primitives and rules that programs may use."""
    if modules:
        from strategies.user_defined import imported

        for module in modules:
            imported(module)


def _internal(error: BaseException, argv: Sequence[str] | None) -> int:
    """A failure that no program should cause: of the user's Python code, too deep, or of this compiler."""
    from rise.cli.failure import explain
    from rise.user_code import own_mistake

    mistake = own_mistake(error) or _of_the_system(error)
    if mistake is not None:
        return _report(mistake)

    print(explain(error, sys.argv[1:] if argv is None else argv), file=sys.stderr)
    return INTERNAL


def _of_the_system(error: BaseException) -> RiseError | None:
    """What neither a program nor this compiler is to blame for: depth, a full disk, a folder that is gone."""
    match error:
        case RecursionError():
            return too_deep()
        case OSError(errno=number) if number in FULL:
            discard_the_rest()
            return UsageError("R0004", f"cannot write the output: {error.strerror}")
        case FileNotFoundError() if not _has_folder():
            hint = "change to one that does"
            return UsageError("R0001", "the working directory does not exist any more", hint=hint)
        case _:
            return None


def _has_folder() -> bool:
    try:
        return bool(os.getcwd())
    except OSError:
        return False


def _own_place(error: RiseError) -> Origin:
    """The place in a user's Python code, for an error without a place in a program."""
    from rise.user_code import place_of

    return place_of(error)


def _report(error: RiseError) -> int:
    from rise.cli.terminal import show_error

    show_error(error)
    return CALL_WRONG if isinstance(error, UsageError) else PROGRAM_WRONG
