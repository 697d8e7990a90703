"""`rise lsp`: the language server, for editors that start it as a process and talk to it through pipes."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import BufferedWriter, FileIO

from rise.errors import UsageError


def run(arguments: argparse.Namespace) -> int:
    """Serves until the editor ends it. UsageError R0041 where the extra is not installed.

    What `--load` names is imported here, and by the processes that the server starts.
    """
    if find_spec("pygls") is None:
        hint = "install the extra: pip install 'rise-lang[lsp]'"
        raise UsageError("R0041", "the language server needs pygls", None, hint)
    from rise.lsp.server import make

    # the server closes the pipe in the end, and nothing else may be written into it
    with BufferedWriter(FileIO(os.dup(sys.stdout.fileno()), "w")) as out, redirect_stdout(sys.stderr):
        make(tuple(map(_anywhere, arguments.load))).start_io(stdout=out)
    return 0


def _anywhere(module: str) -> str:
    """A file by a path that is right in any folder."""
    return os.path.abspath(module) if module.endswith(".py") else module
