"""`rise run`: a definition on inputs, by the interpreter, in the emulator, or on the GPU."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from codegen.execute import available_backend, execute
from codegen.host.program import HostProgram
from codegen.host.text import edited
from rise import files
from rise.check.operators import unlawful
from rise.check.specialise import inputs_of, leaves_of, sizes_from_inputs, undepended
from rise.cli.comparing import DRAWS, Verdict, compared, in_field, telling_trials
from rise.cli.foreign import check_foreign
from rise.cli.stages import Subject, building, chosen_strategy, derived, program_of, subject, told
from rise.cli.terminal import note
from rise.data import brief
from rise.errors import LaunchError, UsageError
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.progress import progress
from rise.source import place
from rise.suggest import suggestion
from rise.types import Type
from strategies.core import Strategy

Arrays = Mapping[str, Any]


def run(arguments: argparse.Namespace) -> int:
    """A definition of a file, by a strategy that is named."""
    return ran(arguments, subject(arguments), chosen_strategy(arguments))


def ran(arguments: argparse.Namespace, chosen: Subject, strategy: Strategy) -> int:
    """Sizes, inputs, backend, result, verdict: in this order."""
    given = read_inputs(arguments.inputs) if arguments.inputs else {}
    _check_names(undepended(chosen.definition.body), given)
    shapes = {name: array.shape for name, array in _joined(chosen, given).items()}
    known = sizes_from_inputs(chosen.definition, shapes, chosen.sizes)
    whole = Subject(chosen.definition, known)
    program = whole.program
    backend = arguments.backend or _default_backend()
    attempt, made = _attempt(arguments, whole, chosen, strategy, backend)
    if arguments.check == "field":
        if given:
            raise UsageError("R0003", "--check=field draws all inputs, and some are given by `--inputs`")
        outcome, verdict = in_field(program, attempt, arguments.seed)
    elif arguments.check:
        outcome, verdict = _compared(program, made, given, attempt, arguments.seed)
    else:
        drawn = random_inputs(inputs_of(program), arguments.seed, exact=False)
        outcome, verdict = attempt(with_given(program, drawn, given)), None
    if arguments.out:
        write_result(Path(arguments.out), outcome.result)
    show = _print_json if arguments.json else _print
    show(whole, backend, outcome, verdict)
    if verdict is None or verdict.comparison.agrees:
        return 0
    for origin, law in unlawful(program, arguments.seed):
        where = f"{span}: " if (span := place(origin)) is not None else ""
        note(f"{where}the operator of this `reduce` is not {law}: its result depends on the schedule")
    return 1


def _attempt(
    arguments: argparse.Namespace, whole: Subject, chosen: Subject, strategy: Strategy, backend: str
) -> tuple[Callable[[list[Any]], Outcome], Expr | None]:
    """The program on inputs, which is derived and translated once, and what it is then.

    None where the interpreter runs the program as it is.
    """
    if backend == "interpret":
        return partial(_interpreted, arguments, whole.program), None
    check_foreign(whole.program, arguments.file, arguments.foreign)
    fixed = {name: size for name, size in whole.sizes.items() if name not in chosen.runtime}
    at_launch = Subject(chosen.definition, fixed, chosen.runtime, chosen.expected)
    strategy = told(at_launch, strategy)
    success = derived(at_launch.program, strategy, building(at_launch))
    made = program_of(at_launch, success, strategy)
    made = edited(made, read_text(Path(arguments.cuda))) if arguments.cuda else made
    return partial(executed, made, backend, arguments, whole.sizes), success.term


def _compared(
    program: Expr,
    made: Expr | None,
    given: Arrays,
    attempt: Callable[[list[Any]], Outcome],
    seed: int,
) -> tuple[Outcome, Verdict]:
    """With the interpreter: several draws, but one where nothing is drawn or it runs the program itself."""
    leaves = [leaf for name, type_ in inputs_of(program) for leaf, _ in leaves_of(name, type_)]
    wanted = 1 if made is None or all(leaf in given for leaf in leaves) else DRAWS
    in_place = partial(with_given, program, given=given) if given else None
    trials = telling_trials(program, made or program, in_place, seed, wanted)
    return compared(program, trials, attempt, wanted)


def executed(
    made: HostProgram,
    backend: str,
    arguments: argparse.Namespace,
    sizes: Mapping[str, int],
    inputs: list[Any],
) -> Outcome:
    open_ = {size.name: sizes[size.name] for size in made.sizes}
    where = "in the emulator" if backend == "emulate" else "on the GPU"
    started = time.perf_counter()
    with progress(f"{arguments.name} runs {where}"):
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
    with progress(f"the interpreter runs {arguments.name}"):
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
        with files.opened(Path(path)) as file:
            return _arrays(path, file)
    except OSError as error:
        raise files.unreadable(Path(path), error) from None


def _arrays(path: str, file: IO[bytes]) -> dict[str, Any]:
    """UsageError R0007 where the file has anything but plain arrays."""
    try:
        found = np.load(file, allow_pickle=False)
        if not isinstance(found, np.lib.npyio.NpzFile):
            raise _no_npz(path, "it has one array without a name")
        arrays = {name: found[name] for name in found.files}
    except (UsageError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001  # whatever NumPy and zipfile make of damage
        raise _no_npz(path, " ".join(str(error).split())[:200] or type(error).__name__) from None
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise _no_npz(path, f"`{brief(name)}` is not an array")
    return {name: _revived(array) for name, array in arrays.items()}


def _no_npz(path: str, reason: str) -> UsageError:
    message = f"{path} is not an npz file of plain arrays: {reason}"
    return UsageError("R0007", message, hint="numpy.savez writes one")


def read_text(path: Path) -> str:
    """A file of CUDA text."""
    return files.read_text(path)


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


def with_given(program: Expr, drawn: list[Any], given: Arrays) -> list[Any]:
    """The inputs in order: those that are given, and drawn ones for the others."""
    parameters = inputs_of(program)
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
    """Refuses arrays that no backend takes."""
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
    with files.replacing(path) as file:
        np.savez(file, **flat("result", result))


def flat(name: str, result: Any) -> dict[str, Any]:
    """A result by names of its parts."""
    if not isinstance(result, tuple):
        return {name: np.asarray(result)}
    parts: dict[str, Any] = {}
    for number, part in enumerate(result):
        parts |= flat(f"{name}_{number}", part)
    return parts


# --- showing ----------------------------------------------------------------------------------------


def _print(chosen: Subject, backend: str, outcome: Outcome, verdict: Verdict | None) -> None:
    sizes = ", ".join(f"{n} = {v}" for n, v in chosen.sizes.items())
    print(f"{chosen.definition.name}{f' at {sizes}' if sizes else ''}: {backend}, {outcome.seconds:.3g} s")
    if outcome.launch:
        print(outcome.launch)
    with np.printoptions(threshold=64, edgeitems=3, linewidth=100):
        for name, array in flat("result", outcome.result).items():
            print(f"{name} : {array.dtype}{list(array.shape)}")
            print(array)
    if verdict is not None:
        print(f"check against the interpreter: {verdict}")


def _print_json(chosen: Subject, backend: str, outcome: Outcome, verdict: Verdict | None) -> None:
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
        found = verdict.comparison
        report["check"] = {"agrees": found.agrees, "error": found.error, "bound": found.bound}
        report["draws"] = verdict.draws
        if verdict.missed is not None:
            report["missed"] = f"2^-{verdict.missed}"
    print(json.dumps(report, indent=2))
