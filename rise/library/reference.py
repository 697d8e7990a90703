"""Pages on files of definitions, read from their text and types: the library's, and the index of examples.

`python -m rise.library.reference ROOT` writes docs/library.md and docs/examples.md of a checkout.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rise import files
from rise.check.program import Loader, Program
from rise.embed.definitions import Signature

PRELUDE = Path(__file__).parent / "prelude.rise"

INDEX = """\
# Examples

Written by `python -m rise.library.reference .` from the files in `examples/`. Each definition has a
reference in NumPy in `examples/references/`, and the tests compare the two.
"""

_SECTION = re.compile(r"// ---- (.*) ----")
_DEFINITION = re.compile(r"def\s+(\w+)")


@dataclass(frozen=True)
class Section:
    """Definitions under a title, each by name with the comment in front of it."""

    title: str
    comments: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Comments:
    """What a file says: of itself, line by line, and of its definitions, section by section."""

    opening: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def of_definitions(self) -> dict[str, str]:
        """All sections as one."""
        return {name: comment for section in self.sections for name, comment in section.comments.items()}


def comments_of(text: str) -> Comments:
    """The comments of a file.

    Its own are the lines up to the first blank one. A section begins with `// ---- Title ----`. A
    definition's comment is the lines right before it, as one.
    """
    sections = [Section("")]
    opening: tuple[str, ...] | None = None
    block: list[str] = []
    for line in text.splitlines():
        if section := _SECTION.fullmatch(line):
            sections.append(Section(section[1]))
        elif line.startswith("//"):
            block.append(line.removeprefix("//").removeprefix(" "))
        else:
            if definition := _DEFINITION.match(line):
                sections[-1].comments[definition[1]] = " ".join(block)
            elif opening is None:
                opening = tuple(block)
            block = []
    return Comments(opening or (), tuple(s for s in sections if s.comments))


def library_page(path: Path = PRELUDE) -> str:
    """The page on a library: what it says of itself, then each definition with its type."""
    comments, program = comments_of(path.read_text(encoding="utf-8")), Loader().load(path).program
    lines = [f"# {path.name}", "", "Written by `python -m rise.library.reference .` from the source.", ""]
    lines += [f"    {line.strip()}" if line.startswith("  ") else line for line in comments.opening]
    for section in comments.sections:
        lines += ["", f"## {section.title}"]
        for name, comment in section.comments.items():
            lines += ["", f"### {name}", "", comment, "", f"    {name} : {Signature(program[name])}"]
    return "\n".join(lines) + "\n"


def examples_page(folder: Path) -> str:
    """An index of all `.rise` files of a folder: a table each, a line for each definition."""
    loader, pages = Loader(), [INDEX]
    for path in sorted(folder.glob("*.rise")):
        comments = comments_of(path.read_text(encoding="utf-8"))
        lines = [
            f"## {path.name}",
            "",
            *_about(comments.opening),
            *_table(comments, loader.load(path).program),
        ]
        pages.append("\n".join(lines))
    return "\n".join(pages)


def _about(opening: Iterable[str]) -> Iterator[str]:
    """The first paragraph of what a file says of itself; commands that follow are for its readers."""
    for line in opening:
        if not line:
            break
        yield line
    yield ""


def _table(comments: Comments, program: Program) -> Iterator[str]:
    yield from ("| definition | what it computes | type |", "| --- | --- | --- |")
    for name, comment in comments.of_definitions.items():
        type_ = str(Signature(program[name])).replace("|", "\\|")
        yield f"| {name} | {comment} | `{type_}` |"
    yield ""


def write(root: Path) -> None:
    """Writes the pages of the checkout at `root`."""
    files.write(root / "docs" / "library.md", library_page())
    files.write(root / "docs" / "examples.md", examples_page(root / "examples"))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
