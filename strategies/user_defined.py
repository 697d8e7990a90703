"""Modules of a user's own; strategies in them: `my_module:my_schedule`, or `path/to/file.py:my_schedule`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from rise.errors import RiseError, UsageError
from rise.suggest import suggestion
from rise.user_code import described, loaded, place_of
from strategies.core import Strategy

IMPORTED = "`--load` and `--strategy` take a file of Python, F.py, or a module by its name"


def load(name: str) -> Strategy | Callable[..., Strategy]:
    """What `module:name` names; the module is imported, once. R0010 where that is not possible."""
    where, _, attribute = name.rpartition(":")
    module = imported(where)
    found = getattr(module, attribute, None)
    if callable(found):
        return found  # type: ignore[no-any-return]  # that it makes a strategy shows when it is called
    names = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
    hint = suggestion(attribute, names) or f"a strategy, or a function that returns one, called `{attribute}`"
    raise UsageError("R0010", f"`{where}` has no strategy `{attribute}`", None, hint)


def imported(where: str) -> ModuleType:
    """A module by its file or its name, with what it declares. R0010 where it cannot be imported."""
    try:
        module = _file(where) if where.endswith(".py") else _module(where)
    except RiseError as error:
        error.origin = error.origin or place_of(error)
        raise
    except (Exception, SystemExit) as error:  # whatever a module of the user does
        message = f"`{where}` cannot be imported: {described(error)}"
        raise UsageError("R0010", message, place_of(error), IMPORTED) from error
    loaded(getattr(module, "__file__", None))
    return module


def _module(name: str) -> ModuleType:
    """As `python -m` finds it: beside where the command is run, or installed."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = import_module(name)
    if getattr(module, "__file__", None) is None and hasattr(module, "__path__"):
        raise ImportError(f"{name} is a folder")  # a package without a file, in which nothing is declared
    return module


def _file(name: str) -> ModuleType:
    """A file is a module of the name it has; a rule or a primitive must not be declared twice."""
    path = Path(os.path.realpath(name))
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(path):
            return module
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module
