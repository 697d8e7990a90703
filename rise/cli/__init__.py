"""The command line. Heavy imports stand inside the commands: `rise --help` starts in no time."""

from rise.cli.main import main

__all__ = ["main"]
