"""The pages that only the site has: they are written when it is built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from building import api, errors, gallery, laws
from building.contents import ADOPTED, ROOT, with_links
from rise import files
from rise.depth import deep


def made() -> Iterator[tuple[str, str]]:
    """Names of files, and their texts."""
    yield "errors.md", errors.page()
    yield "rules.md", laws.page()
    yield "api.md", api.page()
    yield "gallery/index.md", gallery.index()
    for file in gallery.files():
        yield f"gallery/{Path(file).stem}.md", gallery.page(file)
    for name, page in ADOPTED.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        yield f"{Path(page).name}.md", with_links(text, page, folder=".")


@deep
def write_all(folder: Path) -> None:
    """A page that is as it was stays untouched, so that Sphinx does not read it again."""
    for name, text in made():
        path = folder / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, text)
