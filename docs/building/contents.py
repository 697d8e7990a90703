"""What the site reads of a page: the lists of links as tables of contents, and links that leave docs/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

ROOT = Path(__file__).parents[2]
# pages of the repository's root that are part of the site
ADOPTED = {"CONTRIBUTING.md": "generated/contributing", "CHANGELOG.md": "generated/changelog"}

# pages that only the site has, by the section of the first page that lists them
GENERATED = {
    "Get started": "* [Gallery](generated/gallery/index.md): examples with results, derivations, kernels.",
    "Reference": "* [Python API](generated/api.md): functions and classes with their parameters and errors.\n"
    "* [Errors](generated/errors.md): every code, with a wrong and a right program.\n"
    "* [Rules in full](generated/rules.md): every rule with its types, conditions, an example and its uses.",
    "Internals": "* [Contributing](generated/contributing.md): tests, style, commits.\n"
    "* [Changelog](generated/changelog.md): what changed.",
}

LINK = re.compile(r"(?P<image>!\[[^\]]*)?\]\((?!\w+:|#)(?P<target>[^)#\s]+)(?P<anchor>#[^)]*)?\)")
SECTION = re.compile(r"^## (.+)$")
ENTRY = re.compile(r"^(?:[*-]|\d+\.) \[[^\]]+\]\(([^)#]+)\.md\)")


def adapt(app: Any, page: str, text: list[str]) -> None:
    """Called by Sphinx with each page that it reads."""
    text[0] = with_links(text[0], page)
    if page == "index":
        text[0] = with_generated(text[0])
    if PurePosixPath(page).name == "index":
        text[0] += "\n" + "\n".join(tables_of_contents(text[0]))


def with_generated(text: str) -> str:
    """The first page, with the pages that only the site has at the ends of its lists."""
    first, *sections = text.split("\n## ")
    extended = [f"{s.rstrip()}\n{GENERATED.get(s.splitlines()[0], '')}\n" for s in sections]
    return "\n## ".join([first, *extended])


def with_links(text: str, page: str, folder: str = "docs") -> str:
    """A page of the repository with links as the site has them.

    A page of the root is one of the site, if it was adopted. Any other file outside of docs/ is copied into
    the site; of a folder, its README.md.

    page:   its name on the site, without suffix
    folder: where the links in it start from, in the repository
    """
    home = PurePosixPath(folder) / PurePosixPath(page).parent if folder == "docs" else PurePosixPath(folder)

    def link(found: re.Match[str]) -> str:
        if found["image"] is not None:
            return found[0]  # the site copies images by itself
        target = normpath(home / found["target"])
        anchor = found["anchor"] or ""
        if target in ADOPTED:
            return f"]({_from(page, ADOPTED[target])}.md{anchor})"
        if target.startswith("docs/") and target.endswith(".md"):
            return f"]({_from(page, target.removeprefix('docs/'))}{anchor})"
        if (ROOT / target).is_dir():
            return "](path:" + _from(page, normpath("../" + target + "/README.md")) + ")"
        return f"](path:{_from(page, normpath('../' + target))})"

    return LINK.sub(link, text)


def _from(page: str, target: str) -> str:
    return relpath(target, PurePosixPath(page).parent)


def tables_of_contents(text: str) -> Iterator[str]:
    """One for each section of a list of links: the list in Markdown is the only one there is."""
    title, entries = "", list[str]()
    for line in [*text.splitlines(), "## "]:
        section, entry = SECTION.match(line), ENTRY.match(line)
        if entry:
            entries.append(entry[1])
        elif section or line == "## ":
            if entries:
                caption = [f":caption: {title}"] if title else []
                yield "\n".join(["```{toctree}", ":hidden:", *caption, "", *entries, "```", ""])
            title, entries = section[1] if section else "", []
