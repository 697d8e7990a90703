"""What is being run, on disk: so that one that takes its process with it is known by name."""

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
        """This one is run from now on."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        files.write(self.path, json.dumps([case, kind, name]), durable=False)

    def clear(self) -> None:
        """Nothing is run."""
        self.path.unlink(missing_ok=True)

    def running(self) -> tuple[str, str, str] | None:
        """What was run when it was last noted."""
        try:
            case, kind, name = parsed(files.read_text(self.path))
        except (UsageError, ValueError, TypeError):
            return None
        return str(case), str(kind), str(name)
