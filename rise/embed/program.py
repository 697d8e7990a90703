"""Programs as values of Python: a mapping of names to definitions, read from a file or a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rise.check import program as checking
from rise.embed.closing import checked
from rise.embed.definitions import Definition
from rise.embed.errors import short_traceback
from rise.errors import ScopeError
from rise.pretty import show_definition
from rise.source import Source
from rise.suggest import suggestion
from rise.syntax.parser import parse_expression


class UnknownDefinition(ScopeError, KeyError, AttributeError):
    """A program has no definition of that name; so `get`, `in` and `hasattr` give an answer."""


class Program(Mapping[str, Definition]):
    """The definitions of a file in their order, by name: `program["matmul"]`, `program.matmul`.

    imported: the definitions that it imports, in the same form
    """

    def __init__(self, definitions: Mapping[str, Definition], imported: Mapping[str, Definition]) -> None:
        self._definitions = dict(definitions)
        self.imported: Mapping[str, Definition] = imported

    def __getitem__(self, name: str) -> Definition:
        if name not in self._definitions:
            raise self._unknown(name)
        return self._definitions[name]

    def __getattr__(self, name: str) -> Definition:
        if name.startswith("_"):  # protocols of Python ask for what there is
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._definitions)

    def __len__(self) -> int:
        return len(self._definitions)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._definitions]

    def _unknown(self, name: str) -> UnknownDefinition:
        hint = suggestion(name, self._definitions)
        if name in self.imported:
            hint = f"it is imported: `program.imported[{name!r}]`"
        if hint is None:
            hint = "it defines " + (", ".join(f"`{n}`" for n in self) or "nothing")
        return UnknownDefinition("R0209", f"there is no definition `{name}`", hint=hint)

    def show(self, width: int = 100) -> str:
        """The text of the definitions, without what they import."""
        return "\n\n".join(show_definition(d, width) for d in self.values())

    def __repr__(self) -> str:
        return "\n".join(f"{name} : {definition.type}" for name, definition in self.items())

    def _repr_html_(self) -> str:
        """Each definition with its type."""
        return "".join(definition._repr_html_() for definition in self.values())


def load(path: Path | str, import_path: Iterable[Path | str] = ()) -> Program:
    """Reads and checks a file. Raises a RiseError with the place of each mistake in it.

    import_path: folders that imports may lead to, besides the file's own and the library
    """
    with short_traceback():
        return program_of(checking.load(path, import_path))


def parse(text: str, name: str = "<text>") -> Program:
    """Checks the text of a program, `def … = …`. Raises a RiseError with the place of each mistake in it.

    name: of the text, in messages
    """
    with short_traceback():
        return program_of(checking.check_text(text, name))


def expression(text: str, name: str = "it", **definitions: Definition) -> Definition:
    """The definition of one expression, `x => x + 1`. Raises a RiseError with the place of a mistake in it.

    name:        of the definition
    definitions: those that the expression may use, by name
    """
    with short_traceback():
        syntax = parse_expression(Source("<expression>", text))
        return Definition.of(checked(name, syntax, (), definitions, syntax.span))


def program_of(found: checking.Program) -> Program:
    """What was checked, as values of Python."""
    every = {name: Definition.of(d) for name, d in found.definitions.items()}
    return Program({name: every.pop(name) for name in found.own}, every)
