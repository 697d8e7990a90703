"""Whether the packages beside `rise` are ours: their names are general, and another project may have one."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from rise.errors import UsageError

OURS = ("rewrites", "strategies", "codegen", "bench")


def check_packages() -> None:
    """UsageError R0050 where Python finds a package of another project under one of our names."""
    home = Path(__file__).parents[2]
    for name in OURS:
        spec = find_spec(name)
        place = Path(spec.origin).parent if spec and spec.origin else None
        if place is None or place.resolve() != (home / name).resolve():
            found = (
                f"is {place}"
                if place
                else "cannot be imported"
                if spec is None
                else "is a folder without code"
            )
            raise UsageError(
                "R0050",
                f"the package `{name}` beside `rise` {found}, not {home / name}",
                hint=f"another `{name}` comes first on the path of Python: install rise-lang into an "
                "environment of its own, and call `rise` outside of that folder",
            )
