"""Where what is to be measured is posted as soon as it is built, and taken by the processes of several GPUs.

A board is a folder. Each step on it is atomic: a file is moved to its place, a link is made that cannot be
made twice. So no process waits for another one, and one that was started again finds what it had.

    case.last           a case that is measured as a whole, or, once all of its parts are done, decided
    case.candidate.part one candidate of it, to be checked and timed coarsely
    ….owner, ….done     who has taken it; what became of it
    closed              nothing else will be posted
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bench.build import Built, Refused
from bench.table import Case
from rise import files

CLOSED, PART, LAST, OWNER, DONE = "closed", ".part", ".last", ".owner", ".done"


@dataclass(frozen=True)
class Task:
    """A case, or parts of one, with what was built of its candidates.

    last:  whether the last round follows
    apart: whether the coarse one has been, in parts
    names: of what was posted
    """

    case: Case
    builds: tuple[Built | Refused, ...]
    last: bool = True
    apart: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Board:
    """owner: who takes from it. gpus: how many do, among whom the parts of a case are divided."""

    folder: Path
    owner: str = ""
    gpus: int = 1

    # --- posting

    def part(self, case: int, candidate: int, of: Case, made: Built | Refused) -> None:
        """One candidate, without baselines."""
        subject = replace(of.subject, candidates=(made.candidate,), baselines=())
        self._post(f"{case:06}.{candidate:06}{PART}", Task(Case(subject, of.sizes), (made,), False))

    def last(self, case: int, of: Case, builds: Iterable[Built | Refused], apart: bool = False) -> None:
        """A whole case; or its last round, where all of its parts have been posted before."""
        self._post(f"{case:06}{LAST}", Task(of, tuple(builds), apart=apart))

    def close(self) -> None:
        files.write(self.folder / CLOSED, b"", durable=False)

    def _post(self, name: str, task: Task) -> None:
        files.write(self.folder / name, pickle.dumps(task), durable=False)

    # --- taking

    def take(self) -> Task | None:
        """What the owner has begun, or else what is first. None where nothing is ready now.

        Of the parts of one case that are ready, it takes some and leaves some, fewer and fewer.
        """
        seen = self._seen()
        ready = [name for name in seen.open if seen.ready(name)]
        mine = [name for name in ready if self._has(name)]
        free = [name for name in ready if not (self.folder / (name + OWNER)).is_symlink()]
        for first in (*mine[:1], *free):
            if first.endswith(LAST):
                wanted = [first]
            else:
                beside = [name for name in (mine or free) if _alike(name, first)]
                wanted = beside if mine or self.gpus == 1 else beside[: -(-len(beside) // (2 * self.gpus))]
            if taken := [name for name in wanted if self._take(name)]:
                return _together([pickle.loads((self.folder / name).read_bytes()) for name in taken], taken)
        return None

    def _take(self, name: str) -> bool:
        path = self.folder / (name + OWNER)
        try:
            path.symlink_to(self.owner)
        except FileExistsError:
            return self._has(name)
        return True

    def _has(self, name: str) -> bool:
        try:
            return str((self.folder / (name + OWNER)).readlink()) == self.owner
        except OSError:
            return False

    def finish(self, task: Task, said: str = "") -> None:
        """Says what became of it, in a line, which is empty for parts."""
        for name in task.names:
            files.write(self.folder / (name + DONE), said, durable=False)

    def release(self) -> None:
        """Others may take what the owner has not finished."""
        for name in self._seen().open:
            if self._has(name):
                (self.folder / (name + OWNER)).unlink()

    @property
    def finished(self) -> bool:
        """Whether everything is done."""
        closed = (self.folder / CLOSED).exists()  # looked at first: nothing is posted afterwards
        return closed and not self._seen().open

    # --- watching

    def lines(self) -> Iterator[tuple[str, str, str]]:
        """What was said of each case that is done: its name here, who did it, and the line."""
        for name in self._seen().done:
            with suppress(OSError):
                said, owner = files.read_text(self.folder / (name + DONE)), self.folder / (name + OWNER)
                yield name, str(owner.readlink()), said

    def count(self) -> tuple[int, int]:
        """How many of those that were posted are done; how many these are."""
        seen = self._seen()
        return len(seen.done), len(seen.done) + len(seen.open)

    def _seen(self) -> Seen:
        names = {path.name for path in self.folder.iterdir()}
        posted = sorted(name for name in names if name.endswith((PART, LAST)))
        return Seen(
            [name for name in posted if name + DONE not in names],
            [name for name in posted if name + DONE in names],
        )


@dataclass(frozen=True)
class Seen:
    """Names of what was posted: what is not done yet, and what is; parts of a case before its last round."""

    open: list[str]
    done: list[str]

    def ready(self, name: str) -> bool:
        """The last round comes when no part is open, and is posted when all parts are."""
        return not (name.endswith(LAST) and any(_alike(name, each) and each != name for each in self.open))


def _alike(one: str, other: str) -> bool:
    """Whether they are of the same case."""
    return one.partition(".")[0] == other.partition(".")[0]


def _together(tasks: Sequence[Task], names: Sequence[str]) -> Task:
    first = tasks[0]
    builds = tuple(made for task in tasks for made in task.builds)
    if first.last:
        return replace(first, names=tuple(names))
    candidates = tuple(made.candidate for made in builds)
    subject = replace(first.case.subject, candidates=candidates)
    return Task(Case(subject, first.case.sizes), builds, False, names=tuple(names))


# posts what is to be measured, as it is built
Feed = Callable[[Board], None]
