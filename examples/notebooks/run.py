"""Runs the notebooks in this folder, and writes what their cells show into them.

python examples/notebooks/run.py

One process runs all of them: each has variables of its own, and no kernel is started. A cell that ends in an
error of a program shows the error, as in Jupyter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rise import files
from rise.depth import deep
from rise.errors import RiseError

FOLDER = Path(__file__).parent
SHOWN = ("text/plain", "text/html")


def notebooks() -> list[Path]:
    return sorted(FOLDER.glob("*.ipynb"))


@deep
def executed(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells. Raises what a cell raises, RiseError aside."""
    number = 0
    cells: list[dict[str, Any]] = []
    with shell() as running:
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                number += 1
                shown = outputs(running, "".join(cell["source"]), number)
                cell = {**cell, "execution_count": number, "outputs": shown}
            cells.append(cell)
    return {**notebook, "cells": cells}


@contextmanager
def shell() -> Iterator[Any]:
    """IPython without a terminal, a history, and files that outlive it."""
    from IPython.core.displayhook import DisplayHook
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    class Silent(DisplayHook):
        """A cell's value is stored, and not printed."""

        def __call__(self, result: Any = None) -> None:
            if result is not None:
                self.fill_exec_result(result)

    with TemporaryDirectory() as folder:
        config = Config({"HistoryManager": {"enabled": False}, "InteractiveShell": {"ipython_dir": folder}})
        try:
            yield InteractiveShell.instance(config=config, displayhook_class=Silent)
        finally:
            InteractiveShell.clear_instance()


def outputs(running: Any, source: str, number: int) -> list[dict[str, Any]]:
    """What a cell prints and displays, as a notebook stores it; neither notes nor warnings."""
    from IPython.utils.capture import capture_output

    with capture_output() as captured:
        result = running.run_cell(source)
    error = result.error_before_exec or result.error_in_exec
    if error is not None and not isinstance(error, RiseError):
        raise error
    shown: list[dict[str, Any]] = []
    if captured.stdout:
        shown.append({"name": "stdout", "output_type": "stream", "text": lines(captured.stdout)})
    for display in captured.outputs:
        shown.append({"output_type": "display_data", **stored(display.data)})
    if result.result is not None:
        data, _ = running.display_formatter.format(result.result)
        shown.append({"output_type": "execute_result", "execution_count": number, **stored(data)})
    return shown


def stored(data: Mapping[str, str]) -> dict[str, Any]:
    return {"data": {kind: lines(data[kind]) for kind in SHOWN if kind in data}, "metadata": {}}


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def written(notebook: Mapping[str, Any]) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for path in notebooks():
        files.write(path, written(executed(json.loads(path.read_text(encoding="utf-8")))))
