"""What long commands say meanwhile: on a terminal only."""

from __future__ import annotations

import io
import sys

import pytest

from rise.cli.progress import progress, running


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def said(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with progress("checking") as advance:
        advance(3, 7)
    with running("gemm runs in the emulator"):
        pass
    return stream.getvalue()


def test_a_terminal_shows_how_much_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = said(Terminal(), monkeypatch)
    assert "checking" in shown
    assert "3/7" in shown
    assert "gemm runs in the emulator" in shown


def test_a_pipe_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(io.StringIO(), monkeypatch) == ""
