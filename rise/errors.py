"""The exceptions a user can meet: one small tree, each with a stable code, a place and a hint.

`R0xxx` codes: 00 files and calls, 01 syntax, 02 names and kinds, 03 types, 04 sizes, 05 evaluation,
06 rewriting, 07 translation, 08 compilation and launch, 09 emulation.
"""

from __future__ import annotations

from rise.source import Origin, place


class RiseError(Exception):
    """A mistake in a program or a call.

    code:   stable identifier, `R0301`
    origin: where in the source, if anywhere
    hint:   what the programmer may have meant
    """

    def __init__(self, code: str, message: str, origin: Origin = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.origin = origin
        self.hint = hint

    def render(self) -> str:
        """Place, code and message on one line, then the excerpt with its caret, then the hint."""
        span = place(self.origin)
        lines = [
            f"{span}: error {self.code}: {self.message}" if span else f"error {self.code}: {self.message}"
        ]
        if span:
            lines.append(span.excerpt())
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


class UsageError(RiseError):
    """The call is wrong: a missing file, an unknown option value. Exit status 2."""


class ParseError(RiseError):
    """The text is no program."""


class ScopeError(RiseError):
    """A name is unknown, or is of the wrong kind."""


class TypeMismatch(RiseError):
    """Two types, or two sizes, that have to be equal are not."""


class EvaluationError(RiseError):
    """Inputs do not fit the program, or an index is out of range."""


class StrategyError(RiseError):
    """A strategy does not apply to a program."""


class TranslationError(RiseError):
    """A low-level program does not say all that code generation needs, or says something illegal."""


class CompilationError(RiseError):
    """A compiler is missing or rejects a kernel."""


class LaunchError(RiseError):
    """Arguments do not fit a compiled kernel."""


class EmulationError(RiseError):
    """The emulated kernel misbehaved: out of bounds, uninitialised read, race, divergent barrier."""
