"""`rise run`: a definition on inputs, by the interpreter, in the emulator, or on the GPU."""

from __future__ import annotations

import argparse
import json
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from codegen.execute import available_backend, execute
from codegen.host import HostProgram
from codegen.text import edited
from rise.check.compare import Comparison, compare, tolerance
from rise.check.specialise import inputs_of, leaves_of, sizes_from_inputs, undepended
from rise.cli.stages import Subject, building, chosen_strategy, derived, program_of, subject
from rise.cli.terminal import note
from rise.errors import LaunchError, UsageError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.suggest import suggestion
from rise.types import Type
from strategies.core import Strategy

Arrays = Mapping[str, Any]


def run(arguments: argparse.Namespace) -> int:
    """Sizes, inputs, backend, result, verdict: in this order."""
    chosen = subject(arguments)
    strategy = chosen_strategy(arguments)
    given = read_inputs(arguments.inputs) if arguments.inputs else {}
    _check_names(undepended(chosen.definition.body), given)
    shapes = {name: array.shape for name, array in _joined(chosen, given).items()}
    known = sizes_from_inputs(chosen.definition, shapes, chosen.sizes)
    whole = Subject(chosen.definition, known)
    program = whole.program
    inputs = all_inputs(program, given, arguments.seed, exact=arguments.check)
    backend = arguments.backend or _default_backend()
    if backend == "interpret":
        outcome = _interpreted(arguments, program, inputs)
    else:
        fixed = {name: size for name, size in known.items() if name not in chosen.runtime}
        made = _program(arguments, Subject(chosen.definition, fixed, chosen.runtime), strategy)
        outcome = executed(made, inputs, backend, arguments, known)
    verdict = None
    if arguments.check:
        verdict = compare(outcome.result, call(program, *inputs), tolerance(program))
    if arguments.output:
        write_result(Path(arguments.output), outcome.result)
    show = _print_json if arguments.json else _print
    show(whole, backend, outcome, verdict)
    return 0 if verdict is None or verdict.agrees else 1


def _program(arguments: argparse.Namespace, chosen: Subject, strategy: Strategy) -> HostProgram:
    """The kernels; with --cuda, their text from a file."""
    made = program_of(chosen, derived(chosen.program, strategy, building(chosen)))
    return edited(made, read_text(Path(arguments.cuda))) if arguments.cuda else made


def executed(
    made: HostProgram,
    inputs: list[Any],
    backend: str,
    arguments: argparse.Namespace,
    sizes: Mapping[str, int],
) -> Outcome:
    open_ = {size.name: sizes[size.name] for size in made.sizes}
    started = time.perf_counter()
    result = execute(made, inputs, backend, arguments.target, arguments.seed, open_)
    seconds = time.perf_counter() - started
    return Outcome(result, seconds, "\n".join(str(x.launch) for x in made.at(open_).launches))


@dataclass(frozen=True)
class Outcome:
    """A result, how long it took in seconds, and how the kernel was launched."""

    result: Any
    seconds: float
    launch: str | None = None


def _interpreted(arguments: argparse.Namespace, program: Expr, inputs: list[Any]) -> Outcome:
    if arguments.cuda:
        raise UsageError("R0003", "--cuda: CUDA runs on the backend `emulate` or `cuda`, not `interpret`")
    started = time.perf_counter()
    result = call(program, *inputs)
    return Outcome(result, time.perf_counter() - started)


def _default_backend() -> str:
    backend = available_backend()
    if backend is None:
        note("no GPU and no C++ compiler here: the interpreter runs the program")
        return "interpret"
    return backend


# --- inputs and results -----------------------------------------------------------------------------


def read_inputs(path: str) -> dict[str, Any]:
    """The arrays of an npz file by name; nothing in it is executed."""
    try:
        with np.load(path, allow_pickle=False) as file:
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise UsageError("R0007", f"{path} is no npz file", hint="numpy.savez writes one")
            return {name: _revived(file[name]) for name in file.files}
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError("R0001", f"cannot read {path}: {reason}") from None
    except (ValueError, zipfile.BadZipFile, EOFError):
        message = f"{path} is no npz file of plain arrays"
        raise UsageError("R0007", message, hint="numpy.savez writes one") from None


def read_text(path: Path) -> str:
    """A file of CUDA text."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError("R0001", f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError("R0002", f"{path} is no UTF-8 text") from None


def _revived(array: Any) -> Any:
    """bf16, which a file holds as two bytes of an unknown type, as bf16 again."""
    if array.dtype == np.dtype("V2"):
        import ml_dtypes

        return array.view(ml_dtypes.bfloat16)
    return array


def _joined(chosen: Subject, given: Arrays) -> dict[str, Any]:
    """For each parameter one array that shows its sizes: itself, or the first of those of its pairs."""
    found = dict(given)
    for name, type_ in inputs_of(undepended(chosen.definition.body)):
        first = leaves_of(name, type_)[0][0]
        if first in given:
            found[name] = given[first]
    return found


def all_inputs(program: Expr, given: Arrays, seed: int, exact: bool) -> list[Any]:
    """The inputs in order: those that are given, and random ones for the others.

    exact: draw small whole numbers, so that sums come out the same in any order
    """
    parameters = inputs_of(program)
    drawn = random_inputs(parameters, seed, exact)
    return [
        _given_or(value, name, type_, given) for (name, type_), value in zip(parameters, drawn, strict=True)
    ]


def _check_names(program: Expr, given: Arrays) -> None:
    """R0008, before a size is missed that the array of a wrong name would show."""
    known = [leaf for name, type_ in inputs_of(program) for leaf, _ in leaves_of(name, type_)]
    for name in given:
        if name not in known:
            listed = ", ".join(f"`{n}`" for n in known) or "none"
            hint = suggestion(name, known) or f"its inputs: {listed}"
            raise UsageError("R0008", f"the program has no input `{name}`", None, hint)


def _given_or(drawn: Any, name: str, type_: Type, given: Arrays) -> Any:
    leaves = [leaf for leaf, _ in leaves_of(name, type_)]
    missing = [leaf for leaf in leaves if leaf not in given]
    if len(missing) == len(leaves):
        return drawn
    if missing:
        raise LaunchError("R0809", f"`{leaves[0]}` is given, `{missing[0]}` is missing")
    return _nested(drawn, iter([checked(leaf, given[leaf]) for leaf in leaves]))


def checked(name: str, array: Any) -> Any:
    """What no backend takes, refused alike for all of them."""
    if array.ndim and not array.flags.c_contiguous:
        hint = f"save numpy.ascontiguousarray({name})"
        raise LaunchError("R0805", f"`{name}` is not stored row by row (C-contiguous)", hint=hint)
    return array if array.ndim else array[()]


def _nested(like: Any, leaves: Any) -> Any:
    """Leaves as the tuples that pairs are."""
    if isinstance(like, tuple):
        return tuple(_nested(part, leaves) for part in like)
    return next(leaves)


def write_result(path: Path, result: Any) -> None:
    """`result`, or `result_0` and `result_1` of a pair, in an npz file."""
    try:
        with path.open("wb") as file:
            np.savez(file, **flat("result", result))
    except OSError as error:
        raise UsageError("R0004", f"cannot write {path}: {error.strerror}") from None


def flat(name: str, result: Any) -> dict[str, Any]:
    """A result by names of its parts."""
    if not isinstance(result, tuple):
        return {name: np.asarray(result)}
    parts: dict[str, Any] = {}
    for number, part in enumerate(result):
        parts |= flat(f"{name}_{number}", part)
    return parts


# --- showing ----------------------------------------------------------------------------------------


def _print(chosen: Subject, backend: str, outcome: Outcome, verdict: Comparison | None) -> None:
    sizes = ", ".join(f"{n} = {v}" for n, v in chosen.sizes.items())
    print(f"{chosen.definition.name}{f' at {sizes}' if sizes else ''}: {backend}, {outcome.seconds:.3g} s")
    if outcome.launch:
        print(outcome.launch)
    with np.printoptions(threshold=64, edgeitems=3, linewidth=100):
        for name, array in flat("result", outcome.result).items():
            print(f"{name} : {array.dtype}{list(array.shape)}")
            print(array)
    if verdict is not None:
        print(f"check against the interpreter: {'agrees' if verdict.agrees else 'WRONG'}, {verdict}")


def _print_json(chosen: Subject, backend: str, outcome: Outcome, verdict: Comparison | None) -> None:
    parts = flat("result", outcome.result)
    report: dict[str, Any] = {
        "definition": chosen.definition.name,
        "sizes": dict(chosen.sizes),
        "backend": backend,
        "seconds": outcome.seconds,
        "launch": outcome.launch,
        "result": {n: {"shape": list(a.shape), "dtype": str(a.dtype)} for n, a in parts.items()},
    }
    if verdict is not None:
        report["check"] = {"agrees": verdict.agrees, "error": verdict.error, "bound": verdict.bound}
    print(json.dumps(report, indent=2))
