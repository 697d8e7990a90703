"""A table: programs, their sizes, the baselines, and the candidates.

Read from a TOML file; the paths in it are relative to the file.

    title = "…"
    [[programs]]
    file = "gemm.rise"            definition = "gemm"
    operation = "gemm"            the reference, see `operations`
    sizes = "sizes/square.csv"    or a list: [{m = 256, n = 256, k = 256}]
    scalars = {alpha = 1.5}       inputs that are numbers
    limit = "tensor"              or "copy": the limit that results are a fraction of
    baselines = ["cublas"]        see `baselines`
    mode = "graph"                or "launches": one call after the other, timed on the host
    [[programs.candidates]]
    strategy = "tensor_core"
    settings = {block = ["128,128,64", "64,64,64"], raster_group = "8"}    each value of a list is tried
    series = "naive"              candidates that compete with each other alone; "rise" where it is not said

A table may say what figure it reproduces (`[figure]`, see `figures`). `candidates` may also be
the path of a file that contains them.
"""

from __future__ import annotations

import csv
import itertools
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.figures import Figure, read_figure
from bench.results import OURS
from rise.data import brief, is_whole, shown
from rise.errors import UsageError
from rise.files import is_file, read_text
from rise.shipped import shipped
from rise.suggest import suggestion

TABLES = shipped("benchmarks/tables")
LIMITS = ("tensor", "copy")
MODES = ("graph", "launches")
PROGRAM_KEYS = {
    "file", "definition", "operation", "sizes", "scalars", "limit", "baselines", "mode", "candidates",
}  # fmt: skip

# of values that are not texts
KINDS: Mapping[str, tuple[type, ...]] = {
    "sizes": (str, list), "candidates": (str, list), "baselines": (list,), "scalars": (dict,),
}  # fmt: skip

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Candidate:
    """A strategy with its parameters, as `--set` writes them.

    series: the best of each series is in the report, so versions of one program can be compared
    """

    strategy: str
    settings: tuple[tuple[str, str], ...] = ()
    series: str = OURS

    def __str__(self) -> str:
        return " ".join([self.strategy, *(f"{name}={value}" for name, value in self.settings)])


def _can_be_read(path: Path) -> bool:
    return is_file(path) and os.access(path, os.R_OK)


@dataclass(frozen=True)
class Source:
    """A file, and what it takes to check it.

    imports: further folders for imports; modules: those of the user's own that declare primitives
    """

    file: Path
    imports: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    def resolved(self) -> Source:
        """The same from any working directory."""
        files = (str(Path(name).resolve()) if name.endswith(".py") else name for name in self.modules)
        imports = tuple(str(Path(folder).resolve()) for folder in self.imports)
        return Source(self.file.resolve(), imports, tuple(files))

    def texts(self) -> Iterator[bytes]:
        """Everything that the meaning of the file may depend on."""
        yield self.file.read_bytes()
        for folder in (self.file.parent, *map(Path, self.imports)):
            yield from (path.read_bytes() for path in sorted(folder.glob("*.rise")) if _can_be_read(path))
        yield from (Path(name).read_bytes() for name in self.modules if name.endswith(".py"))


@dataclass(frozen=True)
class Subject:
    """A program of a table, with all that is said about it."""

    source: Source
    definition: str
    operation: str
    sizes: tuple[Sizes, ...]
    candidates: tuple[Candidate, ...]
    baselines: tuple[str, ...] = ()
    scalars: Mapping[str, float] = None  # type: ignore[assignment]  # set by the reader
    limit: str = "tensor"
    mode: str = "graph"

    @property
    def file(self) -> Path:
        return self.source.file

    @property
    def series(self) -> tuple[str, ...]:
        """Of the candidates, `rise` first."""
        named = dict.fromkeys(candidate.series for candidate in self.candidates)
        return tuple(sorted(named, key=lambda name: name != OURS))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Everything of which the best is reported: series and baselines."""
        return (*self.series, *self.baselines)


@dataclass(frozen=True)
class Case:
    """A program at one assignment of sizes: one line of a table."""

    subject: Subject
    sizes: Sizes

    @property
    def key(self) -> str:
        """`gemm m=256 n=256 k=256`: how results name it."""
        return " ".join([self.subject.definition, *(f"{n}={v}" for n, v in self.sizes.items())])


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    subjects: tuple[Subject, ...]
    figure: Figure | None = None

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(Case(subject, sizes) for subject in self.subjects for sizes in subject.sizes)


# --- reading ------------------------------------------------------------------------------------------------


def known(folder: Path = TABLES) -> list[str]:
    """The names of the tables that come with the compiler."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def group(name: str, folder: Path = TABLES) -> list[str]:
    """The names of the tables in a folder of tables, as `papers/000`; none where there is no such folder."""
    inside = folder / name
    if not name or not inside.is_dir() or folder not in inside.parents:
        return []
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in inside.rglob("*.toml"))


def find(name: str, folder: Path = TABLES) -> Table:
    """A table by name, or by the path of its file. UsageError R0860 where there is none."""
    path = Path(name) if name.endswith(".toml") else folder / f"{name}.toml"
    if not is_file(path):
        names = known(folder)
        listed = ", ".join(f"`{n}`" for n in names) or "none"
        raise UsageError(
            "R0860", f"there is no table `{name}`", None, suggestion(name, names) or f"there are {listed}"
        )
    content = _content(path)
    figure = _figure(content, path)
    short = path.stem if figure is None else f"{path.parent.name}-{path.stem}"
    subjects = () if figure is not None and figure.formula else tuple(_subjects(content, path))
    return Table(short, str(content.get("title", path.stem)), subjects, figure)


def _figure(content: Mapping[str, Any], path: Path) -> Figure | None:
    try:
        return read_figure(content["figure"]) if "figure" in content else None
    except ValueError as error:
        raise _wrong(path, str(error)) from None


def _content(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except RecursionError:
        raise _wrong(path, "it is nested too deeply") from None
    except ValueError as error:  # no TOML; a number of thousands of digits
        raise _wrong(path, str(error)) from None


def _subjects(content: Mapping[str, Any], path: Path) -> Iterator[Subject]:
    programs = content.get("programs", [])
    if not programs or not isinstance(programs, list):
        raise _wrong(path, "it has no `[[programs]]`")
    for program in programs:
        _check_kinds(program, path)
        if unknown := set(program) - PROGRAM_KEYS:
            name = min(unknown)
            raise _wrong(path, f"`{name}` means nothing here", suggestion(name, PROGRAM_KEYS))
        for key in ("file", "definition", "operation", "sizes", "candidates"):
            if key not in program:
                raise _wrong(path, f"a program has no `{key}`")
        for key, allowed in (("limit", LIMITS), ("mode", MODES)):
            if program.get(key, allowed[0]) not in allowed:
                raise _wrong(path, f"{key} is `{program[key]}`, and must be {' or '.join(allowed)}")
        scalars = program.get("scalars", {})
        for name, value in scalars.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise _wrong(path, f"`{brief(name)}` of `scalars` is {shown(value)}, which is not a number")
        yield Subject(
            Source(path.parent / program["file"]),
            program["definition"],
            program["operation"],
            tuple(_sizes(program["sizes"], path)),
            tuple(_all_candidates(program["candidates"], path)),
            tuple(program.get("baselines", ())),
            {name: float(value) for name, value in scalars.items()},
            program.get("limit", "tensor"),
            program.get("mode", "graph"),
        )


def _sizes(given: str | Sequence[Mapping[str, int]], path: Path) -> Iterator[Sizes]:
    """Lines of a CSV file whose header names the sizes, or a list of assignments."""
    if isinstance(given, str):
        source = path.parent / given
        try:
            lines: Sequence[Mapping[str, Any]] = list(csv.DictReader(read_text(source).splitlines()))
        except csv.Error as error:
            raise _wrong(source, str(error)) from None
    else:
        source, lines = path, given
    for line in lines:
        if not isinstance(line, Mapping) or not all(
            isinstance(name, str) and is_size(value) for name, value in line.items()
        ):
            raise _wrong(source, f"sizes are numbers, and these are not: {shown(line)}")
        yield {name: int(value) for name, value in line.items()}


def is_size(value: Any) -> bool:
    """Whether a value of a table is a natural number, or the digits of one."""
    return (is_whole(value) and value >= 0) or (
        isinstance(value, str) and re.fullmatch(r" *\d{1,18} *", value, re.ASCII) is not None
    )


def _all_candidates(given: str | Sequence[Mapping[str, Any]], path: Path) -> Iterator[Candidate]:
    """Those of a list, or of the file that is named in its place."""
    if isinstance(given, str):
        path = path.parent / given
    entries: Any = _content(path).get("candidates", []) if isinstance(given, str) else given
    for entry in entries if isinstance(entries, list) else [entries]:
        yield from _candidates(entry, path)


def _candidates(entry: Any, path: Path) -> Iterator[Candidate]:
    """Every combination of the values of the settings."""
    if (
        not isinstance(entry, Mapping)
        or not isinstance(entry.get("strategy"), str)
        or not isinstance(entry.get("series", OURS), str)
        or set(entry) - {"strategy", "settings", "series"}
    ):
        raise _wrong(path, f"a candidate has a `strategy`, `settings` and a `series`; found {shown(entry)}")
    settings = entry.get("settings", {})
    if not isinstance(settings, Mapping):
        raise _wrong(path, f"`settings` are names with values, and not {shown(settings)}")
    values = [value if isinstance(value, list) else [value] for value in settings.values()]
    if not all(isinstance(value, str) for each in values for value in each):
        raise _wrong(path, "settings are texts, as `--set` takes them", 'for example stages = "3"')
    for chosen in itertools.product(*values):
        yield Candidate(
            entry["strategy"], tuple(zip(settings, chosen, strict=True)), entry.get("series", OURS)
        )


def _check_kinds(program: Any, path: Path) -> None:
    """R0861 where a program has a text instead of a list, or the reverse."""
    if not isinstance(program, Mapping):
        raise _wrong(path, f"a program is `[[programs]]`, and not {shown(program)}")
    for name, value in program.items():
        kinds = KINDS.get(name, (str,))
        if not isinstance(value, kinds):
            raise _wrong(path, f"`{brief(name)}` is {shown(value)}")
    for name in program.get("baselines", ()):
        if not isinstance(name, str):
            raise _wrong(path, f"`{brief(name)}` of `baselines` is not a name")


def _wrong(path: Path, what: str, hint: str | None = None) -> UsageError:
    return UsageError("R0861", f"{path}: {what}", None, hint)


# --- restricting --------------------------------------------------------------------------------------------


def restrict(
    table: Table, sizes: Sequence[str] = (), only: Sequence[str] = (), limit: int | None = None
) -> Table:
    """A part of a table.

    sizes: `256`: where all sizes are 256; `128x1536x3840`: these, in their order; `m=256`: that one
    only:  definitions, strategies, candidates as they are written, baselines
    limit: the first so many sizes of each program
    UsageError R0862 where one of these names nothing in the table.
    """
    for text in sizes:
        if not any(selects(text, case.sizes) for case in table.cases):
            raise UsageError("R0862", f"the table `{table.name}` has no sizes `{text}`")
    names = {n for s in table.subjects for n in _names(s)}
    for text in only:
        if text not in names:
            raise UsageError(
                "R0862",
                f"the table `{table.name}` has nothing called `{text}`",
                None,
                suggestion(text, names),
            )
    subjects = (_restricted(subject, sizes, only, limit) for subject in table.subjects)
    return replace(table, subjects=tuple(s for s in subjects if s.sizes and (s.candidates or s.baselines)))


def _names(subject: Subject) -> set[str]:
    strategies = {name for c in subject.candidates for name in (c.strategy, str(c))}
    return {subject.definition, *strategies, *subject.kinds}


def _restricted(subject: Subject, sizes: Sequence[str], only: Sequence[str], limit: int | None) -> Subject:
    chosen = [s for s in subject.sizes if not sizes or any(selects(text, s) for text in sizes)]
    subject = replace(subject, sizes=tuple(chosen[:limit]))
    # a program is named, and with it all that is tried there, unless some of that is named as well
    parts = set(only) & (_names(subject) - {subject.definition})
    if not only or (subject.definition in only and not parts):
        return subject
    return replace(
        subject,
        candidates=tuple(c for c in subject.candidates if {c.strategy, c.series, str(c)} & set(only)),
        baselines=tuple(b for b in subject.baselines if b in only),
    )


def selects(text: str, sizes: Sizes) -> bool:
    """Whether a text of `--size` means this assignment."""
    name, equals, value = text.partition("=")
    if equals:
        return str(sizes.get(name)) == value
    values = [str(v) for v in sizes.values()]
    parts = text.split("x")
    return values == parts if len(parts) > 1 else set(values) == {text}
