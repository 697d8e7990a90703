"""Derivations as files: the steps of a strategy as JSON that a human can read, and applying them again.

A step is a rule with its parameters and a place. The terms before and after are there to be read, and to
tell where a program has changed; they are not parsed.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import Any

from rewrites.result import Failure, Path, Result, Step, Success, one_line, show_path
from rewrites.rule import COMPUTED, RULES, Computed, Rule
from rise.data import LONGEST, brief, is_whole, parsed, shown
from rise.errors import RiseError, StrategyError, UsageError
from rise.expr import Expr, children, with_children
from rise.nat import Nat, nat
from rise.pretty import show
from rise.primitives.declare import REGISTRY
from rise.source import Note
from rise.suggest import suggestion
from rise.syntax.parser import parse_scheme
from rise.types import SCALARS, Index
from rise.verify import verify

FORMAT, VERSION = "rise derivation", 1
NAT_FUNCTIONS = frozenset({"min", "max", "ceildiv"})
KINDS: Mapping[type, str] = {str: "a text", dict: "an object", list: "a list"}


@dataclass(frozen=True)
class SavedStep:
    """A step as it stands in a file."""

    rule: str
    parameters: Mapping[str, int | str]
    path: tuple[int, ...]
    before: str
    after: str
    constraints: tuple[str, ...] = ()
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replayed:
    """The result of applying a saved derivation. `changed`: numbers of the steps that found another term."""

    success: Success
    changed: tuple[int, ...]


# --- writing and reading --------------------------------------------------------------------------------


def written(parameters: Mapping[str, Nat]) -> dict[str, int | str]:
    """The parameters of a step as numbers, or as text where they are none."""
    return {name: str(size) if size.value is None else size.value for name, size in parameters.items()}


def saved(step: Step) -> SavedStep:
    constraints = tuple(str(c) for c in step.constraints)
    before, after = show(step.before), show(step.after)
    return SavedStep(step.rule, written(step.parameters), step.path, before, after, constraints, step.by)


def described(start: Expr, success: Success) -> dict[str, Any]:
    """A derivation for `json.dumps`: format, version, program, steps, result."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "program": show(start, annotate=True),
        "steps": [asdict(saved(step)) for step in success.steps],
        "result": show(success.term, annotate=True),
    }


def read(text: str) -> list[SavedStep]:
    """The steps of a saved derivation. UsageError R0608, with the step, where the text is none."""
    return read_with_program(text)[1]


def read_with_program(text: str) -> tuple[str, list[SavedStep]]:
    """The text of the program that a saved derivation starts from, and the steps. UsageError R0608."""
    try:
        found = _member({"file": parsed(text)}, "file", dict)
    except ValueError as error:
        raise _unreadable(str(error)) from None
    if found.get("format") != FORMAT:
        raise _unreadable(f"its format is {shown(found.get('format'))}")
    version = found.get("version")
    if version != VERSION or not is_whole(version):
        raise _unreadable(f"its version is {shown(version)}, and this program reads version {VERSION}")
    try:
        listed, program = _member(found, "steps", list), _member({"program": "", **found}, "program", str)
    except ValueError as error:
        raise _unreadable(str(error)) from None
    steps = []
    for number, step in enumerate(listed, 1):
        try:
            steps.append(_step(_member({"step": step}, "step", dict)))
        except ValueError as error:
            raise _unreadable(f"step {number}: {error}") from None
    return program, steps


def _step(found: Mapping[str, Any]) -> SavedStep:
    """ValueError where it has another form."""
    rule, before, after = (_member(found, key, str) for key in ("rule", "before", "after"))
    parameters, path = _member(found, "parameters", dict), _member(found, "path", list)
    for name, value in parameters.items():
        if not (is_whole(value) or (isinstance(value, str) and len(value) <= LONGEST)):
            raise ValueError(f"the parameter `{brief(name)}` is {shown(value)}, which is not a size")
    if not all(is_whole(index) for index in path):
        raise ValueError(f"the path is {shown(path)}")
    constraints = _member({"constraints": [], **found}, "constraints", list)
    if not all(isinstance(constraint, str) for constraint in constraints):
        raise ValueError(f"the constraints are {shown(constraints)}")
    by = _member({"by": [], **found}, "by", list)
    if not all(isinstance(strategy, str) for strategy in by):
        raise ValueError(f"the strategies are {shown(by)}")
    return SavedStep(rule, parameters, tuple(path), before, after, tuple(constraints), tuple(by))


def _member(found: Mapping[str, Any], name: str, kind: type) -> Any:
    """ValueError where it is missing or of another kind."""
    if name not in found:
        raise ValueError(f"it has no `{name}`")
    if not isinstance(found[name], kind):
        raise ValueError(f"`{name}` is {shown(found[name])}, and should be {KINDS[kind]}")
    return found[name]


def _unreadable(reason: str) -> UsageError:
    return UsageError(
        "R0608", f"this is not a saved derivation: {reason}", None, "`rise derive --save` writes one"
    )


# --- places ---------------------------------------------------------------------------------------------


def part_at(term: Expr, path: Path) -> Expr | None:
    """The subterm at a path; None where the path leads nowhere."""
    for index in path:
        below = children(term)
        if not 0 <= index < len(below):
            return None
        term = below[index]
    return term


def replaced(term: Expr, path: Path, new: Expr) -> Expr:
    """The term with another subterm at a path that it has."""
    if not path:
        return new
    below = children(term)
    inner = replaced(below[path[0]], path[1:], new)
    return with_children(term, (*below[: path[0]], inner, *below[path[0] + 1 :]))


def programs(start: Expr, success: Success) -> Iterator[Expr]:
    """The whole program after each step. R0607 where a step is at a place that it does not have."""
    whole = start
    for step in success.steps:
        if part_at(whole, step.path) is None:
            raise StrategyError("R0607", f"`{step.rule}`: the program has no part at {show_path(step.path)}")
        whole = replaced(whole, step.path, step.after)
        yield whole


def verify_steps(start: Expr, success: Success) -> None:
    """Raises R0699, an internal error that names the rule, where a step leaves an ill-typed term."""
    for step, whole in zip(success.steps, programs(start, success), strict=True):
        try:
            verify(whole)
        except RiseError as error:
            error.message = f"after `{step.rule}`, {error.message}"
            raise


# --- replaying ------------------------------------------------------------------------------------------


def replay(start: Expr, steps: list[SavedStep]) -> Replayed:
    """The steps applied to a program, which may be another than they were saved from.

    Raises StrategyError R0607, with number, rule, place and reason, at the first that does not apply.
    """
    whole, done, changed = start, [], []
    for number, step in enumerate(steps, 1):
        part = part_at(whole, step.path)
        if part is None:
            raise _inapplicable(number, len(steps), step, "the program has no such part", whole)
        result = _applied(step, part)
        if isinstance(result, Failure):
            raise _inapplicable(number, len(steps), step, result.reason, part, result)
        if _shape(show(part)) != _shape(step.before):
            changed.append(number)
        done.append(replace(result.steps[0], path=step.path, by=step.by))
        whole = replaced(whole, step.path, result.term)
    return Replayed(Success(whole, tuple(done)), tuple(changed))


def _shape(text: str) -> list[str]:
    """The words of a printed term, its variables by number: rules may name them differently."""
    numbers: dict[str, str] = {}
    words = re.findall(r"\w+|[^\w\s]", text)
    fixed = REGISTRY.keys() | SCALARS.keys()
    return [
        numbers.setdefault(word, f"#{len(numbers)}") if word.isidentifier() and word not in fixed else word
        for word in words
    ]


def _applied(step: SavedStep, part: Expr) -> Result:
    rule = rule_named(step.rule)
    if step.parameters:
        rule = rule.with_sizes(**{name: _size(value) for name, value in step.parameters.items()})
    return rule(part)


def rule_named(name: str) -> Rule | Computed:
    """A rule of the library or of a module that was imported. R0607 where there is none of the name."""
    import rewrites

    for module in pkgutil.iter_modules(rewrites.__path__):
        import_module(f"rewrites.{module.name}")
    known: dict[str, Rule | Computed] = {**RULES, **COMPUTED}
    if name not in known:
        hint = (
            suggestion(name, known) or "a module with rules of your own is named by `--strategy module:name`"
        )
        raise StrategyError("R0607", f"there is no rule `{name}`", None, hint)
    return known[name]


def _size(value: int | str) -> Nat:
    """A size from its text."""
    if isinstance(value, int):
        return nat(value)
    names = sorted(set(re.findall(r"[A-Za-z_]\w*", value)) - NAT_FUNCTIONS)
    try:
        scheme = parse_scheme("".join(f"{{{name}: Nat}} -> " for name in names) + f"Idx[{value}]", {})
    except RiseError:
        raise _unreadable(f"{shown(value)} is not a size") from None
    if not isinstance(scheme.type, Index):
        raise _unreadable(f"{shown(value)} is not a size")
    return scheme.type.size


def _inapplicable(
    number: int, of: int, step: SavedStep, reason: str, part: Expr, failure: Failure | None = None
) -> StrategyError:
    where = f"step {number} of {of}, `{step.rule}` at {show_path(step.path)}, no longer applies"
    notes = [Note(f"when it was saved, the term there was `{one_line(step.before)}`")]
    if failure is not None:
        notes.append(Note(f"now it is `{one_line(show(part))}`", part.origin))
    hint = (failure.hint if failure else None) or "derive the program anew, and save that"
    return StrategyError("R0607", f"{where}: {reason}", part.origin, hint, notes=tuple(notes))
