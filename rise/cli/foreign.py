"""Programs that call C functions run with all permissions of the user, so they need consent.

docs/safety.md has the details.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rise.errors import UsageError
from rise.expr import Expr, Primitive, subterms
from rise.source import Origin, place

FORBIDDEN, ALLOWED = "no", "yes"


def check_foreign(program: Expr, file: str | Path, choice: str | None) -> None:
    """Refuses a program whose C functions must not be run.

    file:   where the program is, of parts that have no place of their own
    choice: `no`: R0019 for any such program; `yes`: none is refused; None: R0018 for what is not below the
            working directory
    """
    if choice == ALLOWED:
        return
    for name, origin in _calls(program):
        span = place(origin)
        here = Path(span.source.name if span else file)
        if choice == FORBIDDEN:
            hint = "`--backend interpret` runs it without C"
            raise UsageError("R0019", f"the program calls the C function `{name}`", origin, hint)
        if not Path(os.path.realpath(here)).is_relative_to(os.path.realpath(Path.cwd())):
            hint = "if you trust it, `--allow-foreign` runs it; `--backend interpret` runs it without C"
            message = f"`{here}` calls the C function `{name}`, and is not below the working directory"
            raise UsageError("R0018", message, origin, hint)


def _calls(program: Expr) -> Iterator[tuple[str, Origin]]:
    """The C functions of a program by name, and where it calls them."""
    for term in subterms(program):
        if isinstance(term, Primitive) and term.declaration.name == "foreignFunction":
            yield str(term.declaration.given[0]), term.origin
