"""Files and definitions: imports followed, definitions checked in order, all mistakes found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rise.check.elaborate import Elaborator, Scope
from rise.check.generalise import check_elements, fill, generalise
from rise.check.recursion import Recursion
from rise.check.scope import annotation, bind_kind
from rise.errors import RiseError, ScopeError, together
from rise.expr import Definition, Expr
from rise.files import is_file, read_text
from rise.nat import TooLarge
from rise.progress import progress, stepwise
from rise.source import Note, Origin, Source, Span, place, without_mark
from rise.suggest import suggestion
from rise.syntax import surface as s
from rise.syntax.parser import parse_expression
from rise.syntax.recover import Recovered, recover
from rise.types import Parameter

__all__ = [
    "Checked", "Loader", "Program", "check_definition", "check_elements", "check_expression",
    "check_text", "fill", "generalise", "load", "read",
]  # fmt: skip

LIBRARY = Path(__file__).parent.parent / "library"
UNKNOWN_NAME = "R0201"
MOST_LISTED = 20  # definitions in a hint


@dataclass(frozen=True)
class Program:
    """The definitions of a file, those it imports included, in the order of definition."""

    definitions: Mapping[str, Definition]
    own: tuple[str, ...]

    def __getitem__(self, name: str) -> Definition:
        if name not in self.definitions:
            hint = suggestion(name, self.definitions) or f"the file defines {self.listed}"
            raise ScopeError("R0209", f"there is no definition `{name}`", hint=hint)
        return self.definitions[name]

    @property
    def listed(self) -> str:
        """The names of the file's own definitions, of many the first."""
        names = ", ".join(f"`{name}`" for name in self.own[:MOST_LISTED]) or "nothing"
        more = len(self.own) - MOST_LISTED
        return f"{names} and {more} more" if more > 0 else names


@dataclass
class Checked:
    """What is right in a file, and all that is wrong in it and in what it imports, in order.

    places:   where the names are, that the file itself defines or means to define
    failed:   the names of definitions that are wrong; to use one of them is no further mistake
    complete: whether all names that the file means to define are known
    """

    definitions: dict[str, Definition] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    own: list[str] = field(default_factory=list)
    mistakes: list[RiseError] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    complete: bool = True

    @property
    def program(self) -> Program:
        """Raises the mistakes, if there are any: one as it is, several as Mistakes."""
        if self.mistakes:
            raise together(self.mistakes)
        return Program(self.definitions, tuple(self.own))


def load(path: Path | str, import_path: Iterable[Path | str] = ()) -> Program:
    """Reads and checks a file, and what it imports. A file that is missing or no text is a UsageError.

    A program that is wrong raises its mistake, or Mistakes in the order of the text.

    import_path: folders that imports may lead to, besides the file's own and the library
    """
    return Loader(import_path).load(Path(path)).program


def read(path: Path) -> Source:
    """The text of a program. UsageError R0001, R0002, R0015 where the file is none."""
    return Source(str(path), without_mark(read_text(path)))


def check_text(text: str, name: str = "<text>", import_path: Iterable[Path | str] = ()) -> Program:
    """Checks a program given as text; what it imports is looked up in the working directory.

    Raises a RiseError with the place of each mistake.
    """
    return Loader(import_path).check(Source(name, text), Path()).program


def real_path(path: Path) -> Path:
    """Where a path leads, links followed; itself where links go in a circle or it is no path."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path.absolute()


# files of the library that have no mistakes, by path and text
OF_LIBRARY: dict[tuple[str, str], Checked] = {}


class Loader:
    """Checks each file once, however often it is imported, and tells each mistake once.

    What a file imports, and what that imports, lies in its folder or below, in the library, or in one of
    the folders of `import_path`, in which imports are looked for, too.
    """

    def __init__(self, import_path: Iterable[Path | str] = ()) -> None:
        self._further = [Path(folder) for folder in import_path]
        self._allowed = [real_path(folder) for folder in (*self._further, LIBRARY)]
        self._root: Path | None = None  # of the program that is being checked, and of its imports
        self._checked: dict[Path, Checked] = {}
        # the files that are being checked, each imported by the one before
        self._loading: dict[Path, Path] = {}

    def load(self, path: Path) -> Checked:
        """The file at a path. UsageError where it cannot be read."""
        key = real_path(path)
        if key not in self._checked:
            self._loading[key] = path
            try:
                self._checked[key] = self._load(self.read(path), path)
            finally:
                del self._loading[key]
        return self._checked[key]

    def _load(self, source: Source, path: Path) -> Checked:
        """A file of the library is checked once in a process: it imports from the library alone."""
        if path.parent != LIBRARY:
            return self.check(source, path.parent)
        known = OF_LIBRARY.get((source.name, source.text)) or self.check(source, LIBRARY)
        if not known.mistakes:  # they are told where they are imported, by a loader
            OF_LIBRARY[source.name, source.text] = known
        return known

    def check(self, source: Source, folder: Path) -> Checked:
        """A program text; its imports are relative to the folder."""
        outermost = self._root is None
        self._root = self._root or real_path(folder)
        try:
            return self._check(source, folder)
        finally:
            if outermost:
                self._root = None

    def _check(self, source: Source, folder: Path) -> Checked:
        with progress(f"reading {source.name}"):
            found = self.recover(source)
        checked = Checked(failed=set(found.failed), complete=found.complete)
        checked.mistakes += found.mistakes
        for imported in found.file.imports:
            self._import(imported, folder, checked)
        recursion = Recursion(found.file.definitions)
        definitions = found.file.definitions
        for syntax in stepwise(f"checking {source.name}", definitions, len(definitions)):
            try:
                self._check_one(syntax, checked, recursion)
            except RiseError as error:
                _add_mistake(error, syntax.name, checked)
        checked.mistakes.sort(key=_line_in(source))
        return checked

    def _check_one(self, syntax: s.DefinitionSyntax, checked: Checked, recursion: Recursion) -> None:
        """Adds a definition to those that are right; what uses one that is wrong is wrong, silently."""
        other = checked.definitions.get(syntax.name)
        first = other.origin if other else checked.places.get(syntax.name)
        if first is not None:
            if syntax.name not in checked.places:  # what follows means this one, not the imported one
                checked.failed.add(syntax.name)
            raise _defined_twice(syntax.name, syntax.name_span, first)
        checked.places[syntax.name] = syntax.name_span
        if recursion.mentions(syntax) & checked.failed - {syntax.name}:
            checked.failed.add(syntax.name)
            return
        recursion.check(syntax, checked.definitions)
        try:
            checked.definitions[syntax.name] = self.define(syntax, checked.definitions)
        except TooLarge as error:
            raise error.at(syntax.name_span) from None
        checked.own.append(syntax.name)
        checked.failed.discard(syntax.name)

    # --- what an editor does in its own way: texts that are not saved, parts that did not change ---

    def read(self, path: Path) -> Source:
        return read(path)

    def is_file(self, path: Path) -> bool:
        return is_file(path)

    def recover(self, source: Source) -> Recovered:
        return recover(source)

    def define(self, syntax: s.DefinitionSyntax, definitions: Mapping[str, Definition]) -> Definition:
        return check_definition(syntax, definitions)

    # --- imports ---

    def _import(self, imported: s.ImportSyntax, folder: Path, checked: Checked) -> None:
        try:
            path = self.find(imported, folder)
            new = real_path(path) not in self._checked
            other = self.load(path)
            for name, definition in other.definitions.items():
                if checked.definitions.setdefault(name, definition) is not definition:
                    raise _defined_twice(name, imported.span, checked.definitions[name].origin)
        except RiseError as error:
            error.origin = error.origin or imported.span  # a file that cannot be read has no place
            checked.mistakes.append(error)
            checked.complete = False
            return
        checked.failed |= other.failed
        checked.complete = checked.complete and other.complete
        if new:
            note = Note("imported here", imported.span)
            for mistake in other.mistakes:
                mistake.notes = (*mistake.notes, note)
            checked.mistakes += other.mistakes

    def find(self, imported: s.ImportSyntax, folder: Path) -> Path:
        """The file that an import means. ScopeError R0016, R0210, R0212."""
        candidates = [place / imported.path for place in (folder, *self._further, LIBRARY)]
        inside = [candidate for candidate in candidates if self._is_inside(candidate)]
        for candidate in inside:
            if self.is_file(candidate):
                self._check_circle(candidate, imported)
                return candidate
        if candidates[0] not in inside:  # whether there is such a file is nothing to be told
            raise ScopeError(
                "R0016",
                f"`{imported.path}` leads out of the folder of the program",
                imported.span,
                "`--import-path DIR` names a further folder that imports may lead to",
            )
        raise ScopeError(
            "R0212",
            f"there is no file `{imported.path}` to import",
            imported.span,
            "it is looked for beside the importing file, then in the library",
        )

    def _is_inside(self, path: Path) -> bool:
        """Whether a file lies in a folder that imports may lead to, all links followed."""
        real = real_path(path)
        allowed = [*self._allowed, self._root] if self._root else self._allowed
        return any(real.is_relative_to(folder) for folder in allowed)

    def _check_circle(self, path: Path, imported: s.ImportSyntax) -> None:
        key = real_path(path)
        if key in self._loading:
            loading = list(self._loading)
            circle = [*loading[loading.index(key) :], key]
            shown = " -> ".join(self._loading[k].name for k in circle)
            raise ScopeError("R0210", f"files import each other in a circle: {shown}", imported.span)


def _line_in(source: Source) -> Callable[[RiseError], tuple[int, int]]:
    """Orders the mistakes of a file by their place in it: those of an imported file by the import."""

    def line(error: RiseError) -> tuple[int, int]:
        for origin in (error.origin, *(note.origin for note in error.notes)):
            span = place(origin)
            if span is not None and span.source.name == source.name:
                return span.line, span.column
        return 0, 0

    return line


# --- definitions --------------------------------------------------------------------------------


def _add_mistake(error: RiseError, name: str, checked: Checked) -> None:
    """An unknown name may be one whose definition could not be read."""
    if name not in checked.definitions:
        checked.failed.add(name)
    if error.code != UNKNOWN_NAME or checked.complete:
        checked.mistakes.append(error)


def _defined_twice(name: str, span: Span, other: Origin) -> ScopeError:
    note = Note("it is defined here", other)
    hint = "give one of them another name"
    return ScopeError("R0211", f"`{name}` is defined twice", span, hint, notes=(note,))


def check_definition(syntax: s.DefinitionSyntax, definitions: Mapping[str, Definition]) -> Definition:
    """The typed definition, given those it may use. The first mistake in it is raised."""
    elaborator = Elaborator()
    scope = Scope(definitions=definitions)
    for written in syntax.implicit:
        scope = bind_kind(written, scope)
    leading = tuple(Parameter(name, kind, True) for name, kind in scope.kinds.items())
    if syntax.annotation is None:
        body = elaborator.infer(syntax.body, scope)
    else:
        body = elaborator.check(syntax.body, annotation(syntax.annotation, scope), scope)
    return generalise(syntax.name, body, leading, elaborator.unifier, syntax)


def check_expression(text: str, definitions: Mapping[str, Definition] | None = None) -> Expr:
    """The typed term of an expression that uses only the definitions given.

    Raises a RiseError with a place for a mistake in its syntax, names, types or sizes.
    """
    source = Source("<expression>", text)
    syntax = parse_expression(source)
    elaborator = Elaborator()
    body = elaborator.infer(syntax, Scope(definitions=definitions or {}))
    whole = s.DefinitionSyntax("it", (), None, syntax, syntax.span, syntax.span)
    return generalise("it", body, (), elaborator.unifier, whole).body
