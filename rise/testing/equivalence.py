"""Whether two programs are equal, in one call: a proof, else a property test, else a counterexample.

The proof is for all sizes and inputs (`rise.symbolic`), sums in any order. The test compares results of the
interpreter at small sizes, on draws that tell programs apart; a difference is made small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from rise.check.agreement import Reference, reference
from rise.check.compare import Comparison, compare, tolerance
from rise.check.specialise import check_names, inputs_of, instantiated, size_names, specialise
from rise.constraint import Constraint
from rise.embed.definitions import Definition as Shown
from rise.errors import RiseError, TypeMismatch, UsageError
from rise.expr import Definition, Expr
from rise.interpret import call, random_inputs
from rise.nat import Atom, Nat, NatVariable, variable
from rise.progress import progress, stepwise
from rise.symbolic import Open, Problem, Proved, Refuted, examined, prove
from rise.symbolic.sizes import assignments
from rise.testing.compare import corresponding_sizes, no_sizes

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SIZES = 8  # assignments of sizes at which programs are compared
SIMPLIFIED = 200  # evaluations to make the inputs of a difference simpler
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Equal:
    """No difference.

    proved:    for all inputs
    reordered: sums are reordered or rounded less often, so that floats may differ in their last bits
    reason:    why it is not proved
    instances: on how many sets of inputs the results were compared, where it is not
    sizes:     at which sizes; none where it is proved for all
    """

    left: str
    right: str
    proved: bool
    reordered: bool = False
    reason: str = ""
    instances: int = 0
    sizes: tuple[Sizes, ...] = ()

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        both = f"`{self.left}` and `{self.right}`"
        if self.proved:
            order = ", up to the rounding of sums" if self.reordered else ""
            given = " ".join(f"{n}={v}" for at in self.sizes for n, v in at.items())
            where = f"all inputs at {given}" if given else "all sizes and inputs"
            return f"{both} are equal: proved for {where}{order}"
        at = f" at {len(self.sizes)} assignments of sizes" if any(self.sizes) else ""
        return f"{both} agree on {self.instances} instances{at}; not proved: {self.reason}"


@dataclass(frozen=True)
class Different:
    """A difference: at which sizes, on which inputs, what both compute, and where it is first seen."""

    left: Definition
    right: Definition
    sizes: tuple[Sizes, Sizes]
    inputs: Mapping[str, Any]
    results: tuple[Any, Any]
    comparison: Comparison
    instances: int = 1

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        at = " ".join(f"{n}={v}" for n, v in self.sizes[0].items())
        first = f"`{self.left.name}` and `{self.right.name}` differ{f' at {at}' if at else ''}"
        place = "".join(f"[{i}]" for i in self.comparison.index or ()) or "the result"
        values = f"{self.comparison.expected} and {self.comparison.found}"
        return f"{first}: {place} is {values}\n{self.snippet}"

    @property
    def snippet(self) -> str:
        """A Python program that shows it."""
        lines = ["import numpy as np", "import rise", ""]
        for name, definition in (("first", self.left), ("second", self.right)):
            lines += [f'{name} = rise.parse("""', Shown.of(definition).show(), f'""")["{definition.name}"]']
        lines += ["", *(f"{name} = {written(value)}" for name, value in self.inputs.items())]
        for name, sizes, result in zip(("first", "second"), self.sizes, self.results, strict=True):
            given = ", ".join([*self.inputs, *(f"{n}={v}" for n, v in sizes.items())])
            shown = "\n# ".join(str(result).splitlines())
            lines += [f"print({name}.evaluate({given}))", f"# {shown}"]
        return "\n".join(lines)


def check_equivalent(
    left: Definition, right: Definition, *, sizes: Sizes | None = None, seed: int = 0
) -> Equal | Different:
    """Compares two definitions for all sizes that both take, or at the sizes given.

    Sizes correspond by position; where they are given, by name, and each definition takes those that it has.
    UsageError R0516 where there is nothing to compare: other types, or no sizes that both take.
    """
    pair = _Pair.of(left, right, sizes)
    with progress("proving"):
        found = _proof(pair)
    if isinstance(found, Proved):
        return Equal(left.name, right.name, True, found.reordered, sizes=(sizes,) if sizes else ())
    instances, tried = 0, []
    tries = SIZES if sizes is None else 1
    for at in stepwise("comparing at small sizes", pair.small_sizes(found), tries):
        made = pair.compared(at, seed)
        if made is None:
            continue
        instances += made.reference.draws.count
        tried.append(at)
        if made.wrong is not None:
            with progress("simplifying the difference"):
                return _simplified(pair, at, made, instances)
    if not tried:
        raise no_sizes(left, right)
    reason = found.reason if isinstance(found, Open) else "a difference in an interpretation of its own"
    return Equal(left.name, right.name, False, False, reason, instances, tuple(tried))


def assert_equal(left: Definition, right: Definition, *, proved: bool = False, **options: Any) -> Equal:
    """For pytest: fails with the counterexample; where `proved` is asked for, also without a proof."""
    found = check_equivalent(left, right, **options)
    if isinstance(found, Different) or (proved and not found.proved):
        raise AssertionError(str(found))
    return found


def _proof(pair: _Pair) -> Proved | Refuted | Open:
    """Small sizes first; those that are given may be large."""
    found = examined(pair.problem) if pair.given is None else None
    if isinstance(found, Refuted):
        return found
    try:
        return prove(pair.problem)
    except UsageError as missing:
        return Open(missing.message)


# --- both programs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Compared:
    """Results at some sizes, and the verdict where they differ."""

    programs: tuple[Expr, Expr]
    reference: Reference
    wrong: Comparison | None


@dataclass(frozen=True)
class _Pair:
    """Two definitions, the names of their sizes, and both as functions of their inputs with one name a size.

    given: the sizes at which they are compared; None for all
    """

    left: Definition
    right: Definition
    names: tuple[tuple[str, ...], tuple[str, ...]]
    problem: Problem
    given: Sizes | None

    @staticmethod
    def of(left: Definition, right: Definition, given: Sizes | None) -> _Pair:
        if given is not None:
            names = size_names(left), size_names(right)
            check_names(left, (), given, (*names[0], *names[1]))
            both = specialise(left, _own(names[0], given)), specialise(right, _own(names[1], given))
            asks: tuple[Constraint, ...] = ()
        else:
            names = corresponding_sizes(left, right)
            renaming: dict[Atom, Nat] = {NatVariable(b): variable(a) for a, b in zip(*names, strict=True)}
            both = instantiated(left, {}), instantiated(right, renaming)
            asks = (*left.constraints, *(_renamed(c, renaming) for c in right.constraints))
        if both[0].type != both[1].type:
            types = f"`{left.name}` has type {both[0].type}, `{right.name}` {both[1].type}"
            raise UsageError("R0516", f"they cannot be compared: {types}", left.origin)
        return _Pair(left, right, names, Problem(*both, asks), given)

    def small_sizes(self, found: Refuted | Open) -> Iterator[Sizes]:
        """Sizes to try, by the names of the left program: those of a known difference, then small ones."""
        if self.given is not None:
            yield self.given
            return
        of = self.problem
        known = [found.difference.sizes] if isinstance(found, Refuted) else []
        for sizes in (*known, *islice(assignments(of.left, of.right, of.asks), SIZES)):
            named = {a.name: v for a, v in sizes.items() if isinstance(a, NatVariable)}
            yield {name: named.get(name, 2) for name in self.names[0]}

    def own_sizes(self, at: Sizes) -> tuple[Sizes, Sizes]:
        """What each definition calls them."""
        if self.given is not None:
            return _own(self.names[0], at), _own(self.names[1], at)
        return at, {b: at[a] for a, b in zip(*self.names, strict=True)}

    def compared(self, at: Sizes, seed: int) -> _Compared | None:
        """None where one of them does not take the sizes."""
        sizes = self.own_sizes(at)
        try:
            programs = specialise(self.left, sizes[0]), specialise(self.right, sizes[1])
        except TypeMismatch:
            return None
        try:
            first = reference(programs[0], [programs[1]], seed)
        except RiseError:  # as a division by zero on all inputs
            return None
        verdict = first.verdict(first.results_of(programs[1]))
        return _Compared(programs, first, None if verdict.agrees else verdict)


def _own(names: tuple[str, ...], given: Sizes) -> Sizes:
    return {name: value for name, value in given.items() if name in names}


def _renamed(constraint: Constraint, names: Mapping[Atom, Nat]) -> Constraint:
    if not isinstance(constraint.value, Nat):
        return constraint
    below = constraint.divisor and constraint.divisor.substitute(names)
    return Constraint(constraint.value.substitute(names), below, constraint.origin)


# --- a small difference -----------------------------------------------------------------------------------


def _simplified(pair: _Pair, at: Sizes, made: _Compared, instances: int) -> Different:
    draw = made.wrong.draw if made.wrong is not None else None
    inputs = made.reference.draws.one(draw or 0)
    allowed = tolerance(made.programs[0])

    def verdict(values: list[Any]) -> Comparison | None:
        try:
            results = [call(program, *values) for program in made.programs]
        except RiseError:
            return None
        found = compare(results[1], results[0], allowed)
        return None if found.agrees else found

    inputs = _simpler(inputs, lambda values: verdict(values) is not None)
    names = [name for name, _ in inputs_of(made.programs[0])]
    results = tuple(_result(program, inputs) for program in made.programs)
    wrong = verdict(inputs) or made.wrong or Comparison(False, 0.0, 0.0)
    named = dict(zip(names, inputs, strict=True))
    return Different(
        pair.left, pair.right, pair.own_sizes(at), named, (results[0], results[1]), wrong, instances
    )


def _result(program: Expr, inputs: list[Any]) -> Any:
    try:
        return call(program, *inputs)
    except RiseError as error:
        return f"{error.code}: {error.message}"


def _simpler(inputs: list[Any], fails: Callable[[list[Any]], bool]) -> list[Any]:
    """Zero or one in the place of as many numbers as possible."""
    import numpy as np

    tries = SIMPLIFIED
    for position, value in enumerate(inputs):
        if isinstance(value, tuple):
            continue
        for simple in (np.zeros_like(value), np.ones_like(value)):
            if fails([*inputs[:position], simple, *inputs[position + 1 :]]):
                inputs = [*inputs[:position], simple, *inputs[position + 1 :]]
                break
        for index in np.ndindex(np.shape(inputs[position])):
            for number in (0, 1):
                new = np.array(inputs[position])
                if tries <= 0 or new[index] == number or (number == 1 and new[index] == 0):
                    continue
                tries -= 1
                new[index] = number
                if fails([*inputs[:position], new, *inputs[position + 1 :]]):
                    inputs = [*inputs[:position], new, *inputs[position + 1 :]]
                    break
    return inputs


def written(value: Any) -> str:
    """An input as Python."""
    import numpy as np

    if isinstance(value, tuple):
        return f"({', '.join(map(written, value))})"
    array = np.asarray(value)
    numbers = array.astype(np.float64) if array.dtype.kind not in "iub" else array
    return f"np.array({numbers.tolist()}).astype({array.dtype.name!r})"


# --- Hypothesis -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arguments:
    """Sizes of a definition, and inputs of these sizes: `definition.evaluate(*inputs, **sizes)`."""

    sizes: Sizes
    inputs: tuple[Any, ...]


def arguments_of(definition: Definition, sizes: Sizes | None = None) -> SearchStrategy[Arguments]:
    """Small sizes that a definition takes, and inputs of small whole numbers, for `@given`.

    `sizes` fixes some of them. UsageError R0516 where no sizes are found.
    """
    from hypothesis.strategies import DrawFn, composite, integers, sampled_from

    given = sizes or {}
    names = size_names(definition)
    program = instantiated(definition, {})
    found = (_named(at, names, given) for at in assignments(program, program, definition.constraints))
    taken = list(islice((at for at in found if _takes(definition, at)), 64))
    if not taken:
        raise no_sizes(definition)

    smallest_first = sampled_from(sorted(taken, key=lambda at: sum(at.values())))

    @composite  # what fails is printed as arguments, not as how they were drawn
    def drawn(draw: DrawFn) -> Arguments:
        at = draw(smallest_first)
        parameters = inputs_of(specialise(definition, at))
        return Arguments(at, tuple(random_inputs(parameters, draw(integers(0, 2**16)), exact=True)))

    return drawn()


def _named(at: Mapping[Atom, int], names: tuple[str, ...], given: Sizes) -> Sizes:
    numbers = {a.name: v for a, v in at.items() if isinstance(a, NatVariable)}
    return {name: given.get(name, numbers.get(name, 2)) for name in names}


def _takes(definition: Definition, at: Sizes) -> bool:
    try:
        specialise(definition, at)
    except TypeMismatch:
        return False
    return True
