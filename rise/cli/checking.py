"""`rise derive --check`: what every step of a derivation computes, on inputs that tell programs apart.

The same is done once more at other sizes, no two of them equal, where the definition and the strategy take
such: a transposition that is forgotten, or two sizes that are swapped, do not show on squares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

from rewrites.derivation import programs
from rewrites.result import Step, Success
from rewrites.rule import COMPUTED, RULES
from rise.check.agreement import Reference, reference
from rise.check.compare import Comparison
from rise.check.draws import shown, work
from rise.check.specialise import inputs_of, specialise
from rise.errors import RiseError
from rise.expr import Definition, Expr
from rise.interpret.inputs import elements
from rise.normal import data_flow
from rise.progress import stepwise

Sizes = Mapping[str, int]
Derive = Callable[[Expr], Success | None]
Progress = Callable[[int, int], None]
RAGGED = (5, 7, 3, 11, 13, 2, 17, 19)
FACTORS = ((2, 1), (1, 1), (3, 1), (3, 2), (1, 2), (5, 1))
TRIES = 5  # of other sizes
SMALL = 1 << 17  # so large may a product of sizes be, whatever the ones given are
LARGE = 1 << 21  # beyond this product of sizes the smallest is taken
LARGEST = 1 << 20  # numbers in the inputs at other sizes
KEPT = 32  # results that are remembered
MANY, COSTLY = 64, 1 << 26  # steps, elements: of more, at other sizes not every step is evaluated


@dataclass
class Trial:
    """A derivation that is checked: at which sizes, on what, and the verdict on each step.

    The last verdict is on the derived program; after the first bad one there is none.
    whole: whether there is one on each step, not on the derived program alone
    """

    sizes: Sizes
    success: Success
    programs: list[Expr]
    reference: Reference
    verdicts: list[Comparison] = field(default_factory=list)
    whole: bool = True

    @property
    def is_long(self) -> bool:
        """Whether the evaluation of all steps takes long."""
        first = self.reference
        cost = work(first.program, inputs_of(first.program)) * first.draws.count
        return len(self.programs) > MANY or cost * len(self.programs) > COSTLY

    @property
    def agrees(self) -> bool:
        return all(verdict.agrees for verdict in self.verdicts)

    @property
    def guilty(self) -> Step | None:
        """The first step that changes the result, if one does."""
        number = len(self.verdicts)
        steps = self.success.steps
        return steps[number - 1] if not self.agrees and number <= len(steps) else None

    def shown_inputs(self) -> list[str]:
        """The inputs of the draw on which the last verdict is, one a line."""
        draw = self.verdicts[-1].draw
        if draw is None:
            return []
        values = self.reference.draws.one(draw)
        names = (name for name, _ in inputs_of(self.reference.program))
        return [f"{name} = {shown(value)}" for name, value in zip(names, values, strict=True)]

    def described(self) -> dict[str, Any]:
        """For a machine."""
        made: dict[str, Any] = {"sizes": dict(self.sizes), "agrees": self.agrees}
        return made | {"draws": list(self.reference.draws.kinds)}


def trials(
    definition: Definition,
    sizes: Sizes,
    success: Success,
    derive: Derive,
    seed: int,
) -> list[Trial]:
    """The derivation at the sizes given and, where all of it agrees, at others.

    derive: the same at other sizes; None where the strategy does not apply there
    """
    given = _trial(definition, sizes, success, seed)
    _check(given, "checking the steps")
    other = elsewhere(definition, sizes, success, derive, seed) if given.agrees else None
    if other is None:
        return [given]
    if other.is_long and _agrees_in_the_end(other):
        other.whole = False
    else:
        _check(other, "checking at other sizes")
    return [given, other]


def _check(trial: Trial, what: str) -> None:
    for verdict in stepwise(what, _verdicts(trial), len(trial.programs)):
        trial.verdicts.append(verdict)


def _trial(definition: Definition, sizes: Sizes, success: Success, seed: int) -> Trial:
    start = data_flow(specialise(definition, sizes))
    met = [*programs(start, success), success.term]
    parts = [step.after for step in success.steps]
    return Trial(sizes, success, met, reference(start, [*parts, success.term], seed))


def _agrees_in_the_end(trial: Trial) -> bool:
    """Whether the derived program does; its steps are evaluated at the sizes given."""
    verdict = trial.reference.verdict(trial.reference.results_of(trial.programs[-1]))
    trial.verdicts[:] = [verdict] if verdict.agrees else []
    return verdict.agrees


def _verdicts(trial: Trial) -> Iterator[Comparison]:
    """On each step, up to the first bad one; a program that comes back is not evaluated again."""
    first = trial.reference
    known = _Known(first.program, first.results)
    before = first.results
    for number, whole in enumerate(trial.programs):
        results = known.results(whole, first.results_of)
        verdict = first.verdict(results)
        if verdict.agrees and number < len(trial.success.steps) and _keeps_bits(trial.success.steps[number]):
            alike = first.rounds_alike(before, results)
            verdict = verdict if alike.agrees else alike
        yield verdict
        if not verdict.agrees:
            return
        before = results


class _Known:
    """The results of the latest programs. The hash of a program, which is long, is computed once."""

    def __init__(self, program: Expr, results: Any) -> None:
        self._kept = {hash(program): (program, results)}

    def results(self, program: Expr, compute: Callable[[Expr], Any]) -> Any:
        key = hash(program)
        if key not in self._kept or self._kept[key][0] != program:
            self._kept[key] = (program, compute(program))
        if len(self._kept) > KEPT:
            self._kept.pop(next(iter(self._kept)))
        return self._kept[key][1]


def _keeps_bits(step: Step) -> bool:
    """Whether its rule says that it reorders no sums."""
    rule = RULES.get(step.rule) or COMPUTED.get(step.rule)
    return rule is not None and rule.exact


# --- other sizes ----------------------------------------------------------------------------------------


def elsewhere(
    definition: Definition, sizes: Sizes, success: Success, derive: Derive, seed: int
) -> Trial | None:
    """The derivation at the first other sizes that definition and strategy take, if they take any."""
    tries = 0
    for other in other_sizes(sizes):
        start = _specialised(definition, other)
        if start is None or sum(elements(t) for _, t in inputs_of(start)) > LARGEST:
            continue
        tries += 1
        if tries > TRIES:
            return None
        try:
            found = derive(start)
            if found is not None and 2 * len(found.steps) >= len(success.steps):
                return _trial(definition, other, found, seed)
        except Exception:  # a strategy of the user's own may raise anything at sizes it is not made for
            continue
    return None


def _specialised(definition: Definition, sizes: Sizes) -> Expr | None:
    """None where the definition asks something else of its sizes."""
    try:
        return data_flow(specialise(definition, sizes))
    except RiseError:
        return None


def other_sizes(sizes: Sizes) -> Iterator[Sizes]:
    """Different numbers for all sizes: primes, then multiples and parts of those given."""
    if not sizes:
        return
    names = list(sizes)
    ragged = [n for n in RAGGED if n not in sizes.values()]
    if len(names) <= len(ragged):
        yield dict(zip(names, ragged, strict=False))
    yield from sorted(_scaled(sizes), key=lambda other: _key(other, sizes))


def _scaled(sizes: Sizes) -> Iterator[dict[str, int]]:
    names, most = list(sizes), max(3 * prod(sizes.values()), SMALL)
    for factors in product(FACTORS, repeat=min(len(names), 4)):
        pairs = (*factors, *[(1, 1)] * (len(names) - len(factors)))
        scaled = [(sizes[n] * a, b) for n, (a, b) in zip(names, pairs, strict=True)]
        numbers = [a // b for a, b in scaled]
        whole = all(a % b == 0 and a > 0 for a, b in scaled)
        new = len(set(numbers)) == len(numbers) and numbers != [*sizes.values()]
        if whole and new and prod(numbers) <= most:
            yield dict(zip(names, numbers, strict=True))


def _key(other: Sizes, sizes: Sizes) -> tuple[int, int, int]:
    """Not the large ones, multiples first, since tiles divide them, then what is computed fastest."""
    volume = prod(other.values())
    return max(volume, LARGE), sum(other[n] % v != 0 for n, v in sizes.items() if v), volume


# --- showing --------------------------------------------------------------------------------------------


def coverage(made: list[Trial]) -> list[str]:
    """On what was checked: draws, sizes, numbers, literals."""
    given, others = made[0], made[1:]
    draws, low, high = given.reference.draws, *given.reference.draws.range
    lines = [f"{counted(draws.count, 'draw')}{at_sizes(given.sizes, ' at ')}"]
    for trial in others:
        steps = counted(len(trial.success.steps), "step") if trial.whole else "the result"
        lines[0] += (
            f"; {counted(trial.reference.draws.count, 'draw')}{at_sizes(trial.sizes, ' at ')} ({steps})"
        )
    if given.sizes and not others:
        lines[0] += "; the strategy takes no others of the sizes that were tried"
    if low <= high:
        lines.append(f"numbers from {low:g} to {high:g}{_literals(given.reference)}")
    return lines


def _literals(checked: Reference) -> str:
    """Which of the programs' literals had numbers below and above."""
    low, high = checked.draws.range
    missed = [v for v in checked.literals if not low < v < high]
    if not checked.literals:
        return ""
    if len(missed) == len(checked.literals):
        return ", none beyond the literals"
    but = f" but {', '.join(f'{v:g}' for v in missed)}" if missed else ""
    return f", on both sides of every literal{but}"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def at_sizes(sizes: Sizes, before: str = "at ") -> str:
    return before + " ".join(f"{n}={v}" for n, v in sizes.items()) if sizes else ""
