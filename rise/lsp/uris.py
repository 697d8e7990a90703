"""Files as editors name them. A text that was never saved has a name of its own, which no import means."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote

from pygls.uris import from_fs_path, to_fs_path

UNSAVED = ".unsaved"


def path_of(uri: str) -> Path:
    """Of a document that is no file, a path below the working directory that stands for it."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return Path(path) if path else Path.cwd() / UNSAVED / quote(uri, safe="")


def uri_of(path: Path | str) -> str:
    path = Path(path)
    if path.parent.name == UNSAVED:
        return unquote(path.name)
    return from_fs_path(str(path.absolute())) or path.absolute().as_uri()


def folder_of(path: Path) -> Path:
    """Where the imports of a text are looked for: of one that was never saved the working directory."""
    return path.parent.parent if path.parent.name == UNSAVED else path.parent
