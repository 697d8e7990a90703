"""What can be done with a definition, offered above it: run, check, derive, compile; and evaluation comments.

The command line does the work, in a process of its own. Sizes that nobody gave are small ones that fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory

from lsprotocol.types import CodeLens, Command, Position, Range

from rise import files
from rise.check.specialise import check_constraint, inputs_of, size_names, undepended
from rise.errors import RiseError, UsageError
from rise.expr import Definition
from rise.lsp.documents import Analysis, Documents
from rise.lsp.evaluate import comments
from rise.lsp.positions import Positions
from rise.lsp.processes import Finished, finished
from rise.lsp.uris import folder_of
from rise.types import is_data

EVALUATE = "rise.evaluate"
# name of a command: what the lens is called, and the arguments of the command line
COMMANDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "rise.run": ("run", ("run", "--backend", "interpret")),
    "rise.check": ("check", ("run", "--check")),
    "rise.derive": ("derive", ("derive", "--strategy", "auto")),
    "rise.compile": ("compile", ("compile",)),
}
SIZES = (16, 32, 64, 128, 4, 8, 2, 3, 1, 256)
MOST_TRIED = 20_000
SECONDS = 120.0


def lenses(analysis: Analysis, uri: str, positions: Positions) -> list[CodeLens]:
    found = []
    for name in analysis.checked.own:
        span = analysis.checked.places[name]
        if runnable(analysis.checked.definitions[name]):
            found += [
                CodeLens(positions.range(span), Command(title, command, arguments=[uri, name]))
                for command, (title, _) in COMMANDS.items()
            ]
    for comment in comments(analysis.source.text):
        start = Position(comment.line - 1, 0)
        command = Command("evaluate", EVALUATE, arguments=[uri, comment.line - 1])
        found.append(CodeLens(Range(start, start), command))
    return found


def runnable(definition: Definition) -> bool:
    """Whether there is something to run: no open types, and data in and out."""
    try:
        size_names(definition)
    except UsageError:
        return False
    body = undepended(definition.body)
    return all(is_data(type_) for _, type_ in inputs_of(body))


def fitting_sizes(definition: Definition) -> dict[str, int] | None:
    """Small sizes that fulfil what a definition asks; all the same, if they can be."""
    names = size_names(definition)
    same = ((size,) * len(names) for size in SIZES)
    for values in (*same, *islice(product(SIZES, repeat=len(names)), MOST_TRIED)):
        sizes = dict(zip(names, values, strict=True))
        try:
            for constraint in definition.constraints:
                check_constraint(definition.name, constraint, sizes)
        except RiseError:
            continue
        return sizes
    return None


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and the command line that prints it again."""

    command: str
    finished: Finished

    def as_json(self) -> dict[str, object]:
        done = self.finished
        return {
            "command": self.command,
            "status": done.status,
            "output": done.output,
            "errors": done.errors,
        }

    @property
    def text(self) -> str:
        return "\n".join(part for part in (self.command, self.finished.output, self.finished.errors) if part)


async def perform(
    documents: Documents,
    path: Path,
    command: str,
    name: str,
    sizes: Sequence[str] = (),
    modules: Sequence[str] = (),
) -> Outcome:
    """Runs a command on a definition, at sizes given as `n=16`, of the text as it is in the editor.

    modules: what `--load` names
    """
    analysis = documents.analysis(path)
    definition = analysis.checked.program[name]
    given = list(sizes)
    if not given:
        given = [f"{size}={value}" for size, value in (fitting_sizes(definition) or {}).items()]
    with _on_disk(documents, analysis) as (folder, file):
        further = ["--import-path", str(folder_of(path))] if folder != folder_of(path) else []
        loads = [word for module in modules for word in ("--load", module)]
        at = ["--size", *given] if given else []
        arguments = [*COMMANDS[command][1], file, name, *at, *further, *loads]
        done = await finished(["rise.cli", *arguments], folder, SECONDS)
    shown = [*COMMANDS[command][1], path.name, name, *at, *loads]
    return Outcome(" ".join(["rise", *shown]), done)


@contextmanager
def _on_disk(documents: Documents, analysis: Analysis) -> Iterator[tuple[Path, str]]:
    """The folder and the name of a file with the text in the editor, and with those of its imports."""
    folder = folder_of(analysis.path)
    texts = [path for path in (analysis.path, *analysis.files) if documents.differs_from_disk(path)]
    if not texts:
        yield folder, analysis.path.name
        return
    with TemporaryDirectory(prefix="rise-") as made:
        for path in {analysis.path, *texts}:
            inside = path.name if path == analysis.path else _below(path, folder)
            copy = Path(made) / inside
            copy.parent.mkdir(parents=True, exist_ok=True)
            files.write(copy, documents.analysis(path).source.text, durable=False)
        yield Path(made), analysis.path.name


def _below(path: Path, folder: Path) -> Path:
    """A file as the program in a folder imports it."""
    try:
        return path.relative_to(folder.resolve())
    except ValueError:
        return Path(path.name)
