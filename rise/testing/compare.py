"""Whether two terms compute the same, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rise.check.compare import Tolerance, compare, tolerance
from rise.check.draws import Scale, draws, literals, reached, shown
from rise.check.specialise import inputs_of, size_names, specialise
from rise.errors import EvaluationError, TypeMismatch, UsageError
from rise.expr import Definition, Expr, Lambda
from rise.interpret import Closure, evaluate, random_inputs
from rise.interpret.evaluate import free_identifiers
from rise.pretty import show
from rise.testing.data import Inputs, exact_inputs
from rise.types import Type, arguments, is_data

SEEDS = (0, 1, 2)
SMALL = 4  # the magnitude of numbers that `random_inputs` draws
# numbers are not larger than this, and an exponential multiplies the error of its argument by it
ARGUMENTS = 16
DIFFERENT = 3  # assignments of sizes


def difference(left: Any, right: Any, place: str = "result") -> str | None:
    """The first place where two results differ, with both values; None where they are equal."""
    import numpy as np

    if isinstance(left, tuple) or isinstance(right, tuple):
        if not (isinstance(left, tuple) and isinstance(right, tuple)):
            return f"{place}: a pair on one side only"
        both = zip(left, right, strict=True)
        found = (difference(a, b, f"{place}.{i}") for i, (a, b) in enumerate(both))
        return next((f for f in found if f), None)
    a, b = np.asarray(left), np.asarray(right)
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{place}: {a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    if equal.all():
        return None
    index = tuple(int(i) for i in np.argwhere(~equal)[0]) if a.ndim else ()
    where = "".join(f"[{i}]" for i in index)
    return f"{place}{where}: {a[index]} and {b[index]}, {int((~equal).sum())} of {a.size} differ"


def differ_as_roundings(left: Any, right: Any, program: Expr) -> bool:
    """Whether results differ by no more than the roundings of a program explain."""
    return compare(left, right, Tolerance(ARGUMENTS * tolerance(program).relative)).agrees


def assert_equivalent(
    left: Expr | Definition,
    right: Expr | Definition,
    environment: Inputs | None = None,
    *,
    seeds: Sequence[int] | None = None,
    sizes: Mapping[str, int] | None = None,
    rounding: bool = False,
) -> None:
    """Both terms have one type and compute the same; with `rounding`, up to the roundings of the terms.

    Free identifiers get the values of the environment, or drawn ones; so do the parameters, where the terms
    are functions. Small whole numbers, drawn for each seed, have to give the same bits. Unless seeds are
    given, there are further draws that tell programs apart, above all by their literals: for these, floats
    may differ as another order of sums may round.

    Definitions, as `rise.load` gives them, are compared at the sizes given, else at several that both
    take. UsageError R0516 where there are none. Raises AssertionError with the inputs on which they differ.
    """
    if isinstance(left, Definition) and isinstance(right, Definition):
        for first, second in _at_sizes(left, right, sizes):
            assert_equivalent(first, second, environment, seeds=seeds)
        return
    first, second = (_term(side, sizes) for side in (left, right))
    assert first.type == second.type, f"the types differ: {first.type} and {second.type}"
    free = {i.name: i.type for term in (first, second) for i in free_identifiers(term)}
    for seed in seeds if seeds is not None else SEEDS:
        values = {**exact_inputs(first, seed), **exact_inputs(second, seed), **(environment or {})}
        given = random_inputs(_parameters(first), seed, exact=True)
        results = [_result(term, values, given) for term in (first, second)]
        found = difference(*results)
        if found is not None and not (rounding and differ_as_roundings(results[0], results[1], second)):
            raise AssertionError(_message(f"{found} (seed {seed})", first, second, values, given))
    if seeds is None and all(map(is_data, [*free.values(), *(t for _, t in _parameters(first))])):
        _assert_told_alike(first, second, free, environment or {})


def _assert_told_alike(left: Expr, right: Expr, free: Mapping[str, Type], environment: Inputs) -> None:
    """On draws with their literals, and on numbers none of which is 0, 1 or -1."""
    named = [*free.items(), *_parameters(left)]
    made = draws(named, 0, Scale(SMALL, reached(literals([left, right]))), rounding=False)
    allowed = max(tolerance(left), tolerance(right), key=lambda bound: bound.relative)
    for i in range(made.count):
        drawn = made.one(i)
        values = dict(zip(free, drawn, strict=False)) | dict(environment)
        given = drawn[len(free) :]
        try:
            results = [_result(term, values, given) for term in (left, right)]
        except EvaluationError:  # as a division by zero: the small numbers have shown whether both refuse
            continue
        found = compare(results[0], results[1], allowed)
        if not found.agrees and not _overflows(results):
            raise AssertionError(_message(f"result {found}", left, right, values, given))


def _overflows(results: list[Any]) -> bool:
    """Whether there are infinities: an order of sums may have them and another not."""
    import numpy as np

    def within(value: Any) -> bool:
        if isinstance(value, tuple):
            return any(map(within, value))
        array = np.asarray(value)
        return array.dtype.kind not in "iub" and not np.isfinite(array.astype(np.float64)).all()

    return any(map(within, results))


def _message(found: str, left: Expr, right: Expr, values: Inputs, given: Sequence[Any]) -> str:
    """What differs, both programs, the inputs."""
    named = {**values, **dict(zip((name for name, _ in _parameters(left)), given, strict=True))}
    lines = [found, f"  {show(left)}", f"  {show(right)}"]
    return "\n".join([*lines, *(f"  {name} = {shown(value)}" for name, value in named.items())])


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


# --- definitions ----------------------------------------------------------------------------------------


def _term(side: Expr | Definition, sizes: Mapping[str, int] | None) -> Expr:
    return specialise(side, sizes or {}) if isinstance(side, Definition) else side


def _at_sizes(
    left: Definition, right: Definition, sizes: Mapping[str, int] | None
) -> Iterator[tuple[Expr, Expr]]:
    """Both at the sizes given, or at several. Sizes correspond by position: their names may differ."""
    names, others = corresponding_sizes(left, right)
    if sizes is not None:
        by_place = dict(zip(names, others, strict=True))
        yield specialise(left, sizes), specialise(right, {by_place.get(n, n): v for n, v in sizes.items()})
        return
    count = 0
    for numbers in _numbers(len(names)):
        try:
            both = (
                specialise(left, dict(zip(names, numbers, strict=True))),
                specialise(right, dict(zip(others, numbers, strict=True))),
            )
        except TypeMismatch:  # one of them asks for others
            continue
        yield both
        count += 1
        if count == DIFFERENT:
            break
    if not count:
        raise no_sizes(left, right)


def corresponding_sizes(left: Definition, right: Definition) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the sizes of both, which correspond by position. R0516 where one has more."""
    names, others = size_names(left), size_names(right)
    if len(names) != len(others):
        has = [f"`{d.name}` has {counted(len(of), 'size')}" for d, of in ((left, names), (right, others))]
        message = f"they cannot be compared: {' and '.join(has)}"
        raise UsageError("R0516", message, left.origin, "give them: sizes={...}")
    return names, others


def no_sizes(*definitions: Definition) -> UsageError:
    """The error where no sizes were found that all of the definitions take."""
    taken = " and ".join(f"`{d.name}`" for d in definitions) + (" both take" if definitions[1:] else " takes")
    message = f"no sizes were found that {taken}"
    return UsageError("R0516", message, definitions[0].origin, "give them: sizes={...}")


def _numbers(count: int) -> Iterator[tuple[int, ...]]:
    """Different ones first, then equal ones, then multiples of what often has to divide them."""
    if not count:
        yield ()
        return
    primes = (5, 7, 3, 11, 13, 2, 17, 19)
    yield tuple(primes[i % len(primes)] for i in range(count))
    yield (4,) * count
    yield (1,) * count
    for unit in (2, 4, 8, 16, 32, 64, 128):
        yield tuple(unit * (1 + (i + 1) % 3) for i in range(count))


def differ(left: Expr, right: Expr, *, seeds: Sequence[int] = (0, 1, 2)) -> bool:
    """Whether two terms are of different types or compute something different."""
    try:
        assert_equivalent(left, right, seeds=seeds)
    except AssertionError:
        return True
    return False


def _parameters(term: Expr) -> list[tuple[str, Type]]:
    """Names and types of a function's parameters."""
    named = inputs_of(term) if isinstance(term, Lambda) else []
    types, _ = arguments(term.type)
    return [named[i] if i < len(named) else (f"argument {i + 1}", t) for i, t in enumerate(types)]


def _result(term: Expr, values: Inputs, given: Sequence[Any]) -> Any:
    result = evaluate(term, values)
    return result(*given) if isinstance(result, Closure) else result
