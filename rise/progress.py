"""What a long computation is doing: a line on stderr, with the time left where its steps are counted.

A computation says what it does, `with progress("checking") as advance:`, and after each step how far it is,
`advance(3, 7)`. That costs nothing unless somebody watches: the command line does, by `watching`. The line
appears two seconds after that began, is drawn over while it changes, and leaves nothing behind.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, RLock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

if TYPE_CHECKING:
    from rich.console import RenderableType

DELAY = 2.0  # seconds in which nothing is shown
PERIOD = 0.2  # between two drawings on a terminal
PLAIN = 10.0  # between two lines in a file
BAR = 24  # columns

Advance = Callable[[int, int], None]
Clock = Callable[[], float]
T = TypeVar("T")


@dataclass(eq=False)
class Stage:
    """What is being done since when; how many steps of how many were done, and when that was said.

    ask: how many are done now, for what cannot say so by itself
    """

    what: str
    began: float
    done: int = 0
    of: int | None = None
    said: float = 0.0
    ask: Callable[[], int] | None = None

    def left(self, now: float) -> float | None:
        """Seconds, if the other steps take as long as those before them. None where nothing is known."""
        if not (self.of and self.done):
            return None
        each = (self.said - self.began) / self.done
        return max(0.0, each * (self.of - self.done) - (now - self.said))

    def update(self, now: float) -> None:
        """Asks how many steps are done, and notes the time if there are more than before."""
        if self.ask is not None and (done := self.ask()) != self.done:
            self.done, self.said = done, now

    def __str__(self) -> str:
        return self.what if self.of is None else f"{self.what} {self.done}/{self.of}"


@dataclass
class Watcher:
    """The stages that have begun, one inside another, and the stream that shows them.

    live: whether the stream is a terminal, where a line can be drawn over
    """

    stream: TextIO
    live: bool
    clock: Clock = monotonic
    stages: list[Stage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._since = self.clock()
        self._drawn = float("-inf")
        self._line: Any = None
        self._lock = RLock()

    def begin(self, what: str, of: int | None = None, ask: Callable[[], int] | None = None) -> Stage:
        with self._lock:
            stage = Stage(what, self.clock(), of=of, ask=ask)
            self.stages.append(stage)
            self.tick()
            return stage

    def advance(self, stage: Stage, done: int, of: int) -> None:
        with self._lock:
            stage.done, stage.of, stage.said = done, of, self.clock()
            self.tick()

    def end(self, stage: Stage) -> None:
        with self._lock:
            self.stages.remove(stage)
            if not self.stages:
                self.clear()

    def tick(self) -> None:
        """Draws, if it is time to."""
        with self._lock:
            now = self.clock()
            period = PERIOD if self.live else PLAIN
            if self.stages and now - self._since >= DELAY and now - self._drawn >= period:
                self._drawn = now
                for stage in self.stages:
                    stage.update(now)
                self._draw(now)

    def clear(self) -> None:
        """Removes the line, so that something else can be printed."""
        with self._lock:
            if self._line is not None:
                self._line.stop()
                self._line = None

    # --- drawing

    def text(self, now: float) -> str:
        """`checking 3/7 · 0:12 left`, or how much time has passed."""
        estimated = self._estimated(now)
        left = None if estimated is None else estimated.left(now)
        time = f"{clock_time(now - self._since)} so far" if left is None else f"{clock_time(left)} left"
        return " · ".join([*map(str, self.stages), time])

    def _estimated(self, now: float) -> Stage | None:
        """The outermost stage of which something is known."""
        return next((stage for stage in self.stages if stage.left(now) is not None), None)

    def _draw(self, now: float) -> None:
        if not self.live:
            print(self.text(now), file=self.stream, flush=True)
            return
        if self._line is None:
            from rich.console import Console
            from rich.live import Live

            self._line = Live(
                console=Console(file=self.stream, highlight=False),
                get_renderable=self._renderable,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._line.start()
        self._line.refresh()

    def _renderable(self) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        now = self.clock()
        text = Text(self.text(now), no_wrap=True, overflow="ellipsis")
        stage = self._estimated(now)
        if stage is None or stage.of is None:
            return text
        line = Table.grid(padding=(0, 1))
        bar = ProgressBar(
            stage.of, stage.done, BAR, style="bright_black", complete_style="cyan", finished_style="cyan"
        )
        line.add_row(bar, text)
        return line


def clock_time(seconds: float) -> str:
    """`0:12`, `1:02:03`."""
    whole = round(seconds)
    minutes, hours = whole // 60, whole // 3600
    return f"{hours}:{minutes % 60:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


# --- who watches ------------------------------------------------------------------------------------------

_watcher: Watcher | None = None


def _nobody_watches() -> None:
    global _watcher
    _watcher = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_nobody_watches)  # the parent draws, and has the lock


@contextmanager
def watching(wanted: bool | None = None, clock: Clock = monotonic) -> Iterator[None]:
    """Shows on stderr what the computations inside report.

    wanted: whether to; by default, it does if stderr is a terminal
    """
    global _watcher
    live = sys.stderr.isatty()
    if wanted is False or not (wanted or live) or _watcher is not None:
        yield
        return
    _watcher = watcher = Watcher(sys.stderr, live, clock)
    stop = Event()
    thread = Thread(target=_ticking, args=(watcher, stop), daemon=True, name="progress")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        watcher.clear()
        _watcher = None


def _ticking(watcher: Watcher, stop: Event) -> None:
    while not stop.wait(PERIOD):
        watcher.tick()


@contextmanager
def progress(what: str) -> Iterator[Advance]:
    """Something that may take long. It yields a function that takes how many steps are done, of how many."""
    with _stage(what) as advance:
        yield advance


@contextmanager
def _stage(what: str, of: int | None = None, ask: Callable[[], int] | None = None) -> Iterator[Advance]:
    watcher = _watcher
    if watcher is None:
        yield lambda done, of: None
        return
    stage = watcher.begin(what, of, ask)
    try:
        yield lambda done, of: watcher.advance(stage, done, of)
    finally:
        watcher.end(stage)


@contextmanager
def counted(what: str, of: int, done: Callable[[], int]) -> Iterator[None]:
    """Something of so many steps that cannot say how far it is, but can be asked from outside."""
    with _stage(what, of, done):
        yield


def stepwise(what: str, items: Iterable[T], of: int) -> Iterator[T]:
    """The items, of which there are so many, each a step."""
    with progress(what) as advance:
        for done, item in enumerate(items, 1):
            yield item
            advance(done, of)


def said(text: str, stream: TextIO | None = None) -> None:
    """Prints a line, of output or to another stream, while progress is shown."""
    if _watcher is not None:
        _watcher.clear()
    print(text, file=stream, flush=True)
