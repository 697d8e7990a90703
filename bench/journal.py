"""The name of what is running, on disk, so that a variant that crashes its process is known."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from rise import files
from rise.data import parsed
from rise.errors import UsageError


@dataclass(frozen=True)
class Journal:
    path: Path

    def note(self, case: str, kind: str, name: str) -> None:
        """This one runs from now on."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        files.write(self.path, json.dumps([case, kind, name]), durable=False)

    def clear(self) -> None:
        """Nothing runs."""
        self.path.unlink(missing_ok=True)

    def running(self) -> tuple[str, str, str] | None:
        """The last one noted."""
        try:
            case, kind, name = parsed(files.read_text(self.path))
        except (UsageError, ValueError, TypeError):
            return None
        return str(case), str(kind), str(name)
