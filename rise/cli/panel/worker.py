"""`python -m rise.cli.panel.worker` answers requests about rules and kernels, one after the other.

A request is a line of JSON on standard input, `{"id": 1, "method": "rules", "params": {…}}`, its answer one
on standard output, `{"id": 1, "result": {…}}` or `{"id": 1, "error": {…}}`. Whoever wants no answer any more
ends the process, and starts another one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any, BinaryIO

from rise.cli.panel import kernels, laws, request, subjects, terms
from rise.depth import deep, too_deep
from rise.errors import RiseError
from rise.reported import all_reported
from rise.requests import Members, malformed
from strategies.user_defined import imported

Data = dict[str, Any]
LARGEST = 64 * 2**20  # bytes of a request
INTERNAL = "internal"  # the code of a mistake of the compiler


def rules(given: Members) -> Data:
    """The rules that apply to the term at a cursor, or at a path, and the terms around it."""
    program, path = _term(given)
    term = terms.term_at(program, path)
    own, general = laws.applicable(term)
    return {
        "term": terms.described(term, path),
        "around": terms.around(program, path),
        "own": own,
        "general": general,
    }


def rule(given: Members) -> Data:
    """What one of these rules makes of the term."""
    program, path = _term(given)
    return laws.applied(terms.term_at(program, path), given.text("rule"))


def _term(given: Members) -> tuple[Any, tuple[int, ...]]:
    asked = request.asked(given.members("program"))
    program = subjects.program_of(asked)
    if "path" in given:
        return program, given.path("path")
    at = given.members("at")
    return program, terms.path_at(program, str(asked.path), at.number("line", 1), at.number("column", 1))


def derivation(given: Members) -> Data:
    """What `auto` chooses, and the steps."""
    return kernels.listed(_derived(given))


def step(given: Members) -> Data:
    """The program around one step."""
    return kernels.shown(_derived(given), given.number("number"))


def kernel(given: Members) -> Data:
    """The CUDA text, and where its lines come from."""
    return kernels.cuda(_derived(given))


def _derived(given: Members) -> subjects.Derivation:
    return subjects.derivation_of(request.asked(given.members("program")))


METHODS: Mapping[str, Callable[[Members], Data]] = {
    "rules": rules,
    "rule": rule,
    "derivation": derivation,
    "step": step,
    "kernel": kernel,
}


def answered(line: bytes) -> Data:
    """The answer to a line; an error is an answer, too."""
    number = None
    try:
        asked = request.read(line)
        number = asked.value("id")
        method = METHODS.get(asked.text("method"))
        if method is None:
            raise malformed(f"there is no method `{asked.text('method')}`")
        return {"id": number, "result": method(asked.members("params"))}
    except RiseError as error:
        return {"id": number, "error": _failure(error)}
    except RecursionError:
        return {"id": number, "error": _failure(too_deep())}
    except Exception as error:
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        message = f"the compiler failed, which is a mistake of its own: {what}"
        return {"id": number, "error": {"code": INTERNAL, "message": message, "mistakes": []}}


def _failure(error: RiseError) -> Data:
    """The first of what is wrong, and all of it."""
    return {"code": error.code, "message": error.message, "mistakes": all_reported(error)}


@deep
def serve(lines: BinaryIO, answers: BinaryIO) -> None:
    """Answers until the input ends."""
    while line := lines.readline(LARGEST + 1):
        answer = answered(line) if len(line) <= LARGEST else _too_long(lines, line)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _too_long(lines: BinaryIO, part: bytes) -> Data:
    """Reads a line to its end, and refuses it."""
    while part and not part.endswith(b"\n"):
        part = lines.readline(LARGEST)
    return {"id": None, "error": _failure(malformed(f"it has more than {LARGEST} bytes"))}


def main(modules: Sequence[str] = ()) -> None:
    """modules: what programs may need, imported before."""
    answers = sys.stdout.buffer
    with redirect_stdout(sys.stderr):  # what anything else prints is no answer
        for module in modules:
            imported(module)
        serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
