"""What a panel beside a program shows of the definition at the cursor.

Its type and sizes are found out here. Rules, derivations and kernels come from processes of their own, which
may import what a language server does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from lsprotocol.types import Position

from rise.check.program import read, real_path
from rise.check.specialise import inputs_of, size_names, specialise, undepended
from rise.errors import RiseError, UsageError
from rise.expr import Definition
from rise.lsp.documents import Analysis, Documents
from rise.lsp.hover import brief, comment_above
from rise.lsp.lenses import fitting_sizes
from rise.lsp.positions import Place, Positions, contains
from rise.lsp.typed import result_of
from rise.lsp.uris import folder_of, path_of, uri_of
from rise.lsp.workers import Data, Worker
from rise.pretty import full_type, show_type
from rise.reported import MEMBERS, reported, reported_place
from rise.requests import Members, malformed
from rise.source import Source, Span, place
from rise.syntax.surface import DefinitionSyntax
from rise.types import Type

# `-P` keeps modules that lie in the working directory from standing for others
WORKER = ("-P", "-m", "rise.cli.panel.worker")
# the sections that a process answers, and what each needs besides the program
RULES: Mapping[str, tuple[str, ...]] = {"rules": (), "rule": ("rule",)}
KERNELS: Mapping[str, tuple[str, ...]] = {"derivation": (), "step": ("number",), "kernel": ()}
TYPE = "type"
LOADING = 15.0  # seconds in which a new process has checked all rules, which to end it would only delay


class Panel:
    """The sections of the panel, and the processes behind them: a kernel must not keep rules waiting."""

    def __init__(self, documents: Documents, modules: Sequence[str] = ()) -> None:
        self.documents = documents
        self.rules = Worker((*WORKER, *modules), patience=LOADING)
        self.kernels = Worker((*WORKER, *modules))

    async def close(self) -> None:
        await self.rules.close()
        await self.kernels.close()

    async def answer(self, asked: Members, positions: Callable[[Source], Positions]) -> Data:
        """The section that is asked for. UsageError R0063 where the request is malformed."""
        section, uri = asked.text("section"), asked.members("textDocument").text("uri")
        if section not in (TYPE, *RULES, *KERNELS):
            raise malformed(f"there is no section `{section}`")
        analysis = self.documents.analysis(path_of(uri))
        at = _place(asked.members("position"), positions(analysis.source))
        text = asked.text("sizes") if "sizes" in asked else ""
        answer = (
            typed(analysis, at, text) if section == TYPE else await self._asked(asked, analysis, at, text)
        )
        known = _Places(self.documents, positions)
        return {key: known.placed(value) for key, value in answer.items()}

    async def _asked(self, asked: Members, analysis: Analysis, at: Place, text: str) -> Data:
        section = asked.text("section")
        syntax = analysis.definition_at(at)
        if syntax is None:
            return {"result": None}
        sizes = given_sizes(text) or _fitting(analysis.checked.definitions.get(syntax.name))
        program = _program(self.documents, analysis, syntax.name, sizes)
        target = asked.text("target") if "target" in asked else ""
        params: dict[str, Any] = {"program": {**program, "target": target}}
        if section in RULES:
            params |= {"path": list(asked.path("path"))} if "path" in asked else {"at": _at(at)}
        needed = (RULES | KERNELS)[section]  # type: ignore[operator]  # both are dictionaries
        params |= {name: asked.number(name) if name == "number" else asked.text(name) for name in needed}
        return await (self.rules if section in RULES else self.kernels).ask(section, params)


def _place(position: Members, positions: Positions) -> Place:
    return positions.place(Position(position.number("line"), position.number("character")))


def _at(at: Place) -> Data:
    return {"line": at[0], "column": at[1]}


def _program(documents: Documents, analysis: Analysis, name: str, sizes: Mapping[str, int]) -> Data:
    """A definition as a process reads it, with all texts that it is made of."""
    texts = {}
    for path in (real_path(analysis.path), *analysis.files):
        with suppress(UsageError):  # a file that is gone: the process says so
            texts[str(path)] = documents.texts[path] if path in documents.texts else read(path).text
    return {
        "path": str(analysis.path),
        "folder": str(folder_of(analysis.path)),
        "texts": texts,
        "name": name,
        "sizes": dict(sizes),
    }


# --- sizes ----------------------------------------------------------------------------------------------


def given_sizes(text: str) -> dict[str, int]:
    """`m=8 n=3` as a mapping. UsageError R0005 where it is none."""
    found: dict[str, int] = {}
    for part in text.replace(",", " ").split():
        pair = re.fullmatch(r"(\w+)=([0-9]{1,15})", part, re.ASCII)
        if pair is None or pair[1] in found:
            raise UsageError("R0005", f"sizes are written `m=8 n=3`, each once, and not `{part}`")
        found[pair[1]] = int(pair[2])
    return found


def _fitting(definition: Definition | None) -> dict[str, int]:
    """Small sizes that fit, where there are any."""
    if definition is None:
        return {}
    try:
        return fitting_sizes(definition) or {}
    except UsageError:  # it is open in more than sizes, which a process says better
        return {}


# --- types ----------------------------------------------------------------------------------------------


def typed(analysis: Analysis, at: Place, text: str = "") -> Data:
    """The type of the definition at a place, for all sizes and at some; and of the term there."""
    syntax = analysis.definition_at(at)
    mistakes = [reported(mistake) for mistake in _mistakes(analysis, syntax)]
    if syntax is None:
        return {"result": {"definition": None, "mistakes": mistakes}}
    definition = analysis.checked.definitions.get(syntax.name)
    if definition is None or definition.origin != syntax.name_span:
        shown: Data = {"name": syntax.name, "place": reported_place(syntax.name_span)}
    else:
        shown = _described(definition, text)
    return {"result": {"definition": shown, "here": _here(analysis, syntax, at), "mistakes": mistakes}}


def _mistakes(analysis: Analysis, syntax: DefinitionSyntax | None) -> list[RiseError]:
    """Those of a definition; where it has none, or there is none, those of the file."""
    found = analysis.checked.mistakes
    if syntax is None or syntax.name in analysis.checked.own:
        return found if syntax is None else []
    return [mistake for mistake in found if _inside(mistake, syntax.span)] or found


def _inside(mistake: RiseError, span: Span) -> bool:
    where = place(mistake.origin)
    return (
        where is not None
        and where.source.name == span.source.name
        and contains(span, (where.line, where.column))
    )


def _described(definition: Definition, text: str) -> Data:
    found: dict[str, Any] = {
        "name": definition.name,
        "place": reported_place(place(definition.origin)),
        "type": full_type(definition),
        "constraints": [str(constraint) for constraint in definition.constraints],
        "comment": "".join(comment_above(definition)),
    }
    try:
        sizes = given_sizes(text)
        found["chosen"] = not sizes
        found["sizes"] = sizes or fitting_sizes(definition) or {}
        found["names"] = list(size_names(definition))
        found["inputs"], found["result"] = _at_sizes(definition, found["sizes"])
    except RiseError as error:
        found["problem"] = reported(error)
    return found


def _at_sizes(definition: Definition, sizes: Mapping[str, int]) -> tuple[list[dict[str, str]], Data]:
    """The inputs and the result, each with its type for all sizes and at these."""
    general = undepended(definition.body)
    program = specialise(definition, sizes)
    inputs = inputs_of(program)
    names = [
        {"name": name, "type": show_type(type_), "at": show_type(there)}
        for (name, type_), (_, there) in zip(inputs_of(general), inputs, strict=True)
    ]
    return names, {"type": _result(general.type, len(inputs)), "at": _result(program.type, len(inputs))}


def _result(type_: Type, parameters: int) -> str:
    return show_type(result_of(type_, parameters))


def _here(analysis: Analysis, syntax: DefinitionSyntax, at: Place) -> Data | None:
    found = analysis.typed(syntax).at(*at)
    if found is None:
        return None
    span, type_ = found
    return {"text": brief(span), "type": show_type(type_), "place": reported_place(span)}


# --- places -----------------------------------------------------------------------------------------------


class _Places:
    """Adds to each place in an answer the file and the range as an editor names them."""

    def __init__(self, documents: Documents, positions: Callable[[Source], Positions]) -> None:
        self.documents = documents
        self.positions = positions
        self.known: dict[str, Positions | None] = {}

    def placed(self, value: Any) -> Any:
        match value:
            case dict():
                made = {key: self.placed(each) for key, each in value.items()}
                return made | self._range(value) if value.keys() >= set(MEMBERS) else made
            case list():
                return [self.placed(each) for each in value]
            case _:
                return value

    def _range(self, where: Data) -> dict[str, Any]:
        positions = self._of(where["file"]) if where["file"] else None
        if positions is None:
            return {}
        span = Span(positions.source, *(where[name] for name in MEMBERS[1:]))
        found = positions.range(span)
        return {
            "uri": uri_of(where["file"]),
            "range": {
                "start": {"line": found.start.line, "character": found.start.character},
                "end": {"line": found.end.line, "character": found.end.character},
            },
        }

    def _of(self, file: str) -> Positions | None:
        """None of what is no file: the sides of a rule have places, too."""
        if file not in self.known:
            self.known[file] = None
            with suppress(UsageError):
                text = self.documents.texts.get(real_path(Path(file)))
                self.known[file] = self.positions(read(Path(file)) if text is None else Source(file, text))
        return self.known[file]
