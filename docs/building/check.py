"""Checks a built site: no page takes anything from a network, and every link on it leads somewhere.

python docs/building/check.py build/docs
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from os.path import normpath
from pathlib import Path
from urllib.parse import unquote, urlsplit

# what a browser fetches by itself; `a` only leads away
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "video": "src"}
IN_STYLES = re.compile(r"(?:@import\s+|url\()[\"']?((?:https?:)?//[^\"')]+)")


class Page(HTMLParser):
    """What a page fetches, where it links to, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in FETCHED and FETCHED[tag] in given:
            self.fetched.append(given[FETCHED[tag]])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.anchors |= {given[name] for name in ("id", "name") if name in given}


def is_external(target: str) -> bool:
    parts = urlsplit(target)
    return bool(parts.netloc) or parts.scheme in ("http", "https")


def complaints(site: Path) -> Iterator[str]:
    """What is wrong with a site, a line each."""
    site = site.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"there is no page in {site}"
    for path, page in pages.items():
        name = path.relative_to(site)
        yield from (f"{name} fetches {target}" for target in page.fetched if is_external(target))
        for link in dict.fromkeys(page.links):
            if (reason := _broken(path, link, pages)) is not None:
                yield f"{name} links to {link}: {reason}"
    for path in sorted(site.rglob("*.css")):
        for target in IN_STYLES.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)} fetches {target}"


def _broken(path: Path, link: str, pages: dict[Path, Page]) -> str | None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = Path(normpath(path.parent / unquote(parts.path))) if parts.path else path
    page = pages.get(target)
    if page is None and not target.exists():
        return "there is no such file"
    if parts.fragment and page is not None and unquote(parts.fragment) not in page.anchors:
        return "there is no such place on the page"
    return None


if __name__ == "__main__":
    found = list(complaints(Path(sys.argv[1])))
    print("\n".join(found) or f"{sys.argv[1]}: links lead somewhere, and nothing comes from a network")
    sys.exit(1 if found else 0)
