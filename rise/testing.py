"""Tools for property tests: generated types, functions and inputs, and what they are compared by.

`data_types`, `functions` and `inputs` are Hypothesis strategies. `assert_equivalent` compares what two
terms compute, `assert_preserves` a program before and after a strategy, `assert_sound` the two sides of
a rule on instances with random sizes, types and functions. Inputs are small integers, which every
numeric type but bool holds exactly, so results are compared bit by bit.

Hypothesis is needed only by what draws: `pip install rise[test]`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rise.check.program import check_expression
from rise.expr import (
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    apply,
    children,
    substitute,
    substitute_sizes,
    subterms,
    with_children,
)
from rise.interpret import Closure, evaluate, random_inputs
from rise.interpret.evaluate import free_identifiers
from rise.nat import Nat, NatUnknown, constant
from rise.normal import data_flow
from rise.pretty import show
from rise.primitives.declare import primitive
from rise.types import (
    F16,
    F32,
    I32,
    Argument,
    Array,
    Data,
    Fragment,
    FragmentKind,
    Function,
    Index,
    Pair,
    Scalar,
    Space,
    Type,
    Unknown,
    arguments,
    is_data,
    substitute_type,
    unknowns,
)
from rise.verify import verify

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

NAMES = ("x", "y", "acc", "i", "r", "p")  # few, so that binders hide each other
SIZES = (1, 2, 3, 4, 6)  # coprime ones, and equal ones by chance
Inputs = Mapping[str, Any]
Scope = Mapping[str, Type]
T = TypeVar("T")


# --- choosing -------------------------------------------------------------------------------------


class Choose:
    """Draws, in the form that generators here use; the first of all alternatives is the simplest."""

    def __init__(self, draw: Callable[[SearchStrategy[int]], int]) -> None:
        self._draw = draw

    def below(self, bound: int) -> int:
        return self._draw(_integers(bound - 1)) if bound > 1 else 0

    def pick(self, alternatives: Sequence[T]) -> T:
        return alternatives[self.below(len(alternatives))]

    def one_in(self, count: int) -> bool:
        return self.below(count) == count - 1


_INTEGERS: dict[int, Any] = {}


def _integers(largest: int) -> SearchStrategy[int]:
    if largest not in _INTEGERS:
        from hypothesis.strategies import integers  # late: an extra

        _INTEGERS[largest] = integers(0, largest)
    return _INTEGERS[largest]  # type: ignore[no-any-return]


def choices() -> SearchStrategy[Choose]:
    """A `Choose` to hand to the generators of this module."""
    from hypothesis.strategies import composite

    return composite(lambda draw: Choose(draw))()


# --- types ----------------------------------------------------------------------------------------

SCALAR_TYPES = (I32, F32, F16)


def data_type(choose: Choose, depth: int = 2, scalars: Sequence[Data] = SCALAR_TYPES) -> Data:
    """A scalar, or (to the depth) an array or a pair."""
    form = choose.below(5) if depth else 0
    if form < 3:
        return choose.pick(scalars)
    if form == 3:
        size = constant(choose.pick(SIZES))
        return Array(size, data_type(choose, depth - 1, scalars))
    first = data_type(choose, depth - 1, scalars)
    return Pair(first, data_type(choose, depth - 1, scalars))


def data_types(depth: int = 2, scalars: Sequence[Data] = SCALAR_TYPES) -> SearchStrategy[Data]:
    return choices().map(lambda choose: data_type(choose, depth, scalars))


# --- terms ----------------------------------------------------------------------------------------


def primitive_call(name: str, types: tuple[Argument, ...], *operands: Expr) -> Expr:
    """A primitive with all its dependent arguments, applied."""
    return apply(Primitive(primitive(name), types), *operands)


@dataclass(frozen=True)
class Generator:
    """Well-typed terms of a wanted type. `views`: only what rearranges data, never computes."""

    choose: Choose
    views: bool = False

    def function(self, type_: Type, scope: Scope, fuel: int) -> Expr:
        """A curried lambda; its parameters may hide names of the scope, and each other."""
        if not isinstance(type_, Function):
            return self.term(type_, scope, fuel)
        parameter = Identifier(self.choose.pick(NAMES), type_.parameter)
        inner = {**scope, parameter.name: parameter.type}
        return Lambda(parameter, self.function(type_.result, inner, fuel))

    def term(self, type_: Type, scope: Scope, fuel: int) -> Expr:
        """An expression of a data type over the names in scope: a leaf when the fuel is spent."""
        makers: list[Callable[[], Expr]] = [lambda: self.leaf(type_, scope)]
        if fuel > 0:
            makers += self._makers(type_, scope, fuel - 1)
        return self.choose.pick(makers)()

    def leaf(self, type_: Type, scope: Scope) -> Expr:
        """A variable or a part of one, most often; else the simplest term of the type."""
        known = [
            part for name, t in scope.items() for part in _parts(Identifier(name, t)) if part.type == type_
        ]
        if known and not self.choose.one_in(6):
            return self.choose.pick(known)
        return self._plainest(type_, scope)

    def _plainest(self, type_: Type, scope: Scope) -> Expr:
        match type_:
            case Scalar("bool"):
                return Literal(self.choose.below(2) == 1, type_)
            case Scalar(name):
                number = self.choose.below(4) - (0 if name.startswith("u") else 1)
                return Literal(float(number) if type_.is_float else number, type_)
            case Index(size):
                return Literal(self.choose.below(size.value or 1), type_)
            case Pair(first, second):
                operands = self.leaf(first, scope), self.leaf(second, scope)
                return primitive_call("pair", (first, second), *operands)
            case Array(size, element):
                return self._generated(size, element, scope, 0)
            case Fragment(rows, columns, other, element, kind):
                value = self.leaf(element, scope)
                return primitive_call("generateFragment", (rows, columns, other, element, kind), value)
            case _:
                raise TypeError(f"no term of type {type_} can be generated")

    def _makers(self, type_: Type, scope: Scope, fuel: int) -> list[Callable[[], Expr]]:
        match type_:
            case Scalar("bool"):
                return [lambda: self._comparison(scope, fuel)]
            case Scalar():
                return self._scalar_makers(type_, scope, fuel)
            case Pair(first, second):
                return [lambda: self._pair(first, second, scope, fuel)]
            case Array(size, element):
                return self._array_makers(size, element, scope, fuel)
            case Fragment():
                return [] if self.views else [lambda: self._loaded(type_, scope, fuel)]
            case _:
                return []

    # scalars

    def _scalar_makers(self, type_: Scalar, scope: Scope, fuel: int) -> list[Callable[[], Expr]]:
        if self.views:
            return [lambda: self._projection(type_, scope, fuel)]
        return [
            lambda: self._operation(self.choose.pick(("add", "mul", "sub")), type_, scope, fuel),
            lambda: self._operation("sub", type_, scope, fuel),
            lambda: self._projection(type_, scope, fuel),
            lambda: self._sum(type_, scope, fuel),
            lambda: self._selection(type_, scope, fuel),
            lambda: self._position(type_, scope, fuel),
        ]

    def _operation(self, name: str, type_: Scalar, scope: Scope, fuel: int) -> Expr:
        operands = self.term(type_, scope, fuel), self.term(type_, scope, fuel)
        return primitive_call(name, (type_,), *operands)

    def _projection(self, type_: Data, scope: Scope, fuel: int) -> Expr:
        other = self.choose.pick(SCALAR_TYPES)
        if self.choose.one_in(2):
            return primitive_call("snd", (other, type_), self.term(Pair(other, type_), scope, fuel))
        return primitive_call("fst", (type_, other), self.term(Pair(type_, other), scope, fuel))

    def _sum(self, type_: Scalar, scope: Scope, fuel: int) -> Expr:
        """Of an array of the scope where there is one: by `reduce`, or a fold with any step."""
        arrays = [t for t in scope.values() if isinstance(t, Array) and t.element == type_]
        size = self.choose.pick(arrays).size if arrays else constant(self.choose.pick(SIZES))
        xs = self.term(Array(size, type_), scope, fuel)
        zero = Literal(0.0 if type_.is_float else 0, type_)
        if self.choose.one_in(3):
            step = self.function(Function(type_, Function(type_, type_)), scope, fuel)
            start = self.leaf(type_, scope)
            return primitive_call("reduceSeq", (_LOCAL, size, type_, type_), step, start, xs)
        add = Primitive(primitive("add"), (type_,))
        return primitive_call("reduce", (size, type_), add, zero, xs)

    def _selection(self, type_: Scalar, scope: Scope, fuel: int) -> Expr:
        condition = self._comparison(scope, fuel)
        operands = self.term(type_, scope, fuel), self.term(type_, scope, fuel)
        return primitive_call("select", (type_,), condition, *operands)

    def _comparison(self, scope: Scope, fuel: int) -> Expr:
        operands = self.term(I32, scope, fuel), self.term(I32, scope, fuel)
        return primitive_call(self.choose.pick(("lt", "eq")), (I32,), *operands)

    def _position(self, type_: Scalar, scope: Scope, fuel: int) -> Expr:
        """An element of an array at an index of the scope, or the index as a number."""
        indices = [Identifier(n, t) for n, t in scope.items() if isinstance(t, Index)]
        if not indices:
            return self.leaf(type_, scope)
        index = self.choose.pick(indices)
        size = index.type.size  # type: ignore[union-attr]  # chosen so
        if type_ == I32 and self.choose.one_in(2):
            return primitive_call("indexToInt", (size,), index)
        xs = self.term(Array(size, type_), scope, fuel)
        return primitive_call("idx", (size, type_), index, xs)

    # pairs, arrays, fragments

    def _pair(self, first: Data, second: Data, scope: Scope, fuel: int) -> Expr:
        operands = self.term(first, scope, fuel), self.term(second, scope, fuel)
        return primitive_call("pair", (first, second), *operands)

    def _array_makers(self, size: Nat, element: Data, scope: Scope, fuel: int) -> list[Callable[[], Expr]]:
        makers: list[Callable[[], Expr]] = [
            lambda: self._mapped(size, element, scope, fuel),
            lambda: self._generated(size, element, scope, fuel),
            lambda: self._joined(size, element, scope, fuel),
        ]
        if isinstance(element, Pair):
            makers.append(lambda: self._zipped(size, element, scope, fuel))
        if isinstance(element, Array):
            makers.append(lambda: self._transposed(size, element, scope, fuel))
            makers.append(lambda: self._split(size, element, scope, fuel))
        return makers

    def _mapped(self, size: Nat, element: Data, scope: Scope, fuel: int) -> Expr:
        arrays = [t.element for t in scope.values() if isinstance(t, Array) and t.size == size]
        source = self.choose.pick(arrays) if arrays else self.choose.pick(SCALAR_TYPES)
        function = self.function(Function(source, element), scope, fuel)
        xs = self.term(Array(size, source), scope, fuel)
        return primitive_call("map", (size, source, element), function, xs)

    def _generated(self, size: Nat, element: Data, scope: Scope, fuel: int) -> Expr:
        function = self.function(Function(Index(size), element), scope, fuel)
        return primitive_call("generate", (size, element), function)

    def _joined(self, size: Nat, element: Data, scope: Scope, fuel: int) -> Expr:
        whole = size.value or 1
        rows = self.choose.pick([d for d in range(1, whole + 1) if whole % d == 0])
        m, n = constant(rows), constant(whole // rows)
        xs = self.term(Array(m, Array(n, element)), scope, fuel)
        return primitive_call("join", (m, n, element), xs)

    def _zipped(self, size: Nat, element: Pair, scope: Scope, fuel: int) -> Expr:
        first, second = element.first, element.second
        operands = [self.term(Array(size, t), scope, fuel) for t in (first, second)]
        return primitive_call("zip", (size, first, second), *operands)

    def _transposed(self, size: Nat, element: Array, scope: Scope, fuel: int) -> Expr:
        xs = self.term(Array(element.size, Array(size, element.element)), scope, fuel)
        return primitive_call("transpose", (element.size, size, element.element), xs)

    def _split(self, size: Nat, element: Array, scope: Scope, fuel: int) -> Expr:
        xs = self.term(Array(size * element.size, element.element), scope, fuel)
        return primitive_call("split", (element.size, size, element.element), xs)

    def _loaded(self, type_: Fragment, scope: Scope, fuel: int) -> Expr:
        matrix = self.term(Array(type_.rows, Array(type_.columns, type_.element)), scope, fuel)
        types = (type_.rows, type_.columns, type_.other, type_.element, type_.kind)
        return primitive_call("asFragment", types, matrix)


_LOCAL = Space.LOCAL


def _parts(value: Expr) -> Iterator[Expr]:
    """A variable and all projections from it."""
    yield value
    if isinstance(value.type, Pair):
        types = (value.type.first, value.type.second)
        for name in ("fst", "snd"):
            yield from _parts(primitive_call(name, types, value))


def functions(type_: Type, fuel: int = 3, scope: Scope | None = None) -> SearchStrategy[Expr]:
    """Well-typed functions of a type, closed but for the names of the scope."""
    return choices().map(lambda choose: Generator(choose).function(type_, scope or {}, fuel))


def inputs(type_: Type) -> SearchStrategy[Any]:
    """What a user passes for a parameter of a data type: small integers throughout."""
    from hypothesis.strategies import integers

    return integers(0, 2**16).map(lambda seed: random_inputs([("x", type_)], seed, exact=True)[0])


# --- comparing ------------------------------------------------------------------------------------


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


def exact_inputs(term: Expr, seed: int) -> dict[str, Any]:
    """Random small integers for the free identifiers of a term."""
    names = [(i.name, i.type) for i in free_identifiers(term)]
    return dict(zip((n for n, _ in names), random_inputs(names, seed, exact=True), strict=True))


def assert_equivalent(
    left: Expr, right: Expr, environment: Inputs | None = None, *, seeds: Sequence[int] = (0, 1, 2)
) -> None:
    """Both terms have one type and compute the same, bit by bit.

    Free identifiers get the values of the environment, or random ones for each seed; so do the
    parameters, where the terms are functions.
    """
    assert left.type == right.type, f"the types differ: {left.type} and {right.type}"
    for seed in seeds:
        values = {**exact_inputs(left, seed), **exact_inputs(right, seed), **(environment or {})}
        found = difference(*(_result(term, values, seed) for term in (left, right)))
        if found is not None:
            raise AssertionError(f"{found} (seed {seed})\n  {show(left)}\n  {show(right)}")


def _result(term: Expr, values: Inputs, seed: int) -> Any:
    result = evaluate(term, values)
    if not isinstance(result, Closure):
        return result
    parameters, _ = arguments(term.type)
    named = [(f"argument {i}", t) for i, t in enumerate(parameters, 1)]
    return result(*random_inputs(named, seed, exact=True))


# --- rewriting ------------------------------------------------------------------------------------


def at(term: Expr, path: Sequence[int]) -> Expr:
    """The subterm at a path of child positions."""
    for index in path:
        term = children(term)[index]
    return term


def replaced(term: Expr, path: Sequence[int], new: Expr) -> Expr:
    if not path:
        return new
    below = list(children(term))
    below[path[0]] = replaced(below[path[0]], path[1:], new)
    return with_children(term, tuple(below))


class RewriteStep(Protocol):
    """What a strategy records of one application of a rule."""

    @property
    def rule(self) -> str: ...
    @property
    def path(self) -> tuple[int, ...]: ...
    @property
    def before(self) -> Expr: ...
    @property
    def after(self) -> Expr: ...


def replayed(program: Expr, steps: Sequence[RewriteStep]) -> Iterator[tuple[RewriteStep, Expr]]:
    """Each step with the whole program after it; fails where a step is not at its place."""
    for number, step in enumerate(steps, 1):
        found = at(program, step.path)
        assert found == step.before, f"step {number}, `{step.rule}`, is not at {step.path}"
        program = replaced(program, step.path, step.after)
        yield step, program


def assert_preserves(
    strategy: Callable[[Expr], Any],
    program: Expr | str,
    *,
    seeds: Sequence[int] = (0,),
    each_step: bool = True,
) -> Expr:
    """The strategy applies to the program, and no step of it changes what is computed.

    Returns the new program. `each_step=False` compares beginning and end only.
    """
    term = check_expression(program) if isinstance(program, str) else program
    start = data_flow(term)
    result = strategy(start)
    assert hasattr(result, "steps"), result.story()
    last = start
    for step, last in replayed(start, result.steps):
        if each_step:
            _assert_step(term, step, last, seeds)
    assert last == result.term, "the steps do not lead to the result"
    verify(result.term)
    assert_equivalent(term, result.term, seeds=seeds)
    return result.term  # type: ignore[no-any-return]


def _assert_step(program: Expr, step: RewriteStep, current: Expr, seeds: Sequence[int]) -> None:
    try:
        verify(current)
        assert_equivalent(program, current, seeds=seeds)
    except Exception as problem:
        message = f"`{step.rule}` at {step.path}: {problem}\n  {show(step.before)}\n  {show(step.after)}"
        raise AssertionError(message) from problem


# --- rules ----------------------------------------------------------------------------------------


class RuleLike(Protocol):
    """A rule as data: two sides over free names, and parameters by name."""

    @property
    def name(self) -> str: ...
    @property
    def lhs(self) -> Expr: ...
    @property
    def rhs(self) -> Expr: ...
    @property
    def sizes(self) -> Mapping[str, NatUnknown]: ...
    @property
    def exact(self) -> bool: ...
    def with_sizes(self, **sizes: Any) -> Any: ...


@dataclass(frozen=True)
class Hint:
    """How instances of a rule are to be, that it applies to them at all.

    types:      concrete types for free names of the left side
    values:     terms for free names, given the types of all
    views:      names of functions that must not compute
    """

    types: Callable[[Choose], Mapping[str, Type]] = lambda _: {}
    values: Callable[[Choose, Mapping[str, Type]], Mapping[str, Expr]] = lambda _, __: {}
    views: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Instance:
    """A rule with sizes, types and functions put in: the left side in normal form, the right as it is."""

    rule: Any
    left: Expr
    right: Expr
    seed: int


def instance(rule: RuleLike, choose: Choose, hint: Hint) -> Instance:
    given = {i.name: i.type for i in free_identifiers(rule.lhs)}
    solution = _solution(rule, choose, hint.types(choose), given)
    types = {name: substitute_type(t, solution) for name, t in given.items()}
    values = dict(hint.values(choose, types))
    scope = _surroundings(choose, frozenset(given))
    for name, type_ in types.items():
        if name not in values and not is_data(type_):
            values[name] = Generator(choose, name in hint.views).function(
                type_, scope, choose.pick((2, 1, 3))
            )
    left, right = (substitute(substitute_sizes(side, solution), values) for side in (rule.lhs, rule.rhs))
    sizes = {name: solution[unknown] for name, unknown in rule.sizes.items()}
    return Instance(rule.with_sizes(**sizes), data_flow(left), right, choose.below(1000))


def hiding(term: Expr, choose: Choose) -> Expr:
    """The same term with binders from the pool of names, one hiding the other where that is possible."""
    if not isinstance(term, Lambda):
        return with_children(term, tuple(hiding(c, choose) for c in children(term)))
    body, parameter = hiding(term.body, choose), term.parameter
    name = choose.pick(NAMES[:3])
    if name in body.free - {parameter.name}:
        return Lambda(parameter, body, term.origin)
    renamed = Identifier(name, parameter.type, parameter.origin)
    return Lambda(renamed, substitute(body, {parameter.name: renamed}), term.origin)


def _surroundings(choose: Choose, taken: frozenset[str]) -> Scope:
    """Names from around the rule: none, or some that a careless rule would capture."""
    names = [n for n in NAMES if n not in taken]
    types: tuple[Type, ...] = (I32, F32, Array(constant(2), I32), Pair(I32, F32))
    return {choose.pick(names): choose.pick(types) for _ in range(choose.below(3))}


def _solution(
    rule: RuleLike, choose: Choose, wanted: Mapping[str, Type], given: Mapping[str, Type]
) -> dict[Any, Argument]:
    solution: dict[Any, Argument] = {}
    for name, type_ in wanted.items():
        _solve(given[name], type_, solution)
    scalars = scalar_unknowns(rule.lhs) | scalar_unknowns(rule.rhs)
    allowed = SCALAR_TYPES if rule.exact else (I32, F32)
    kinds = _kind_unknowns(rule.lhs) | _kind_unknowns(rule.rhs)
    for unknown in _all_unknowns(rule):
        if unknown in solution:
            continue
        if isinstance(unknown, NatUnknown):
            solution[unknown] = constant(choose.pick(SIZES))
        elif unknown in kinds:
            solution[unknown] = choose.pick(tuple(FragmentKind))
        else:
            solution[unknown] = data_type(choose, 0 if unknown in scalars else 2, allowed)
    return solution


def _solve(pattern: Any, actual: Any, solution: dict[Any, Argument]) -> None:
    """The unknowns of a pattern that stand alone where the actual type has something."""
    if isinstance(pattern, Unknown):
        solution[pattern] = actual
    elif isinstance(pattern, Nat):
        for unknown in pattern.unknowns if len(pattern.terms) == 1 and len(pattern.terms[0][0]) == 1 else ():
            solution[unknown] = actual
    elif type(pattern) is type(actual) and hasattr(pattern, "__match_args__"):
        for name in pattern.__match_args__:
            _solve(getattr(pattern, name), getattr(actual, name), solution)


def _all_unknowns(rule: RuleLike) -> list[NatUnknown | Unknown]:
    found: dict[NatUnknown | Unknown, None] = {}
    for side in (rule.lhs, rule.rhs):
        for part in subterms(side):
            found.update(dict.fromkeys(unknowns(part.type)))
            for argument in getattr(part, "arguments", ()):
                found.update(dict.fromkeys(_leaves(argument)))
    return sorted(found, key=lambda u: u.identity)


def _leaves(argument: Argument) -> Iterator[NatUnknown | Unknown]:
    if isinstance(argument, Nat):
        yield from argument.unknowns
    elif isinstance(argument, Unknown | Scalar | Array | Pair | Index | Fragment):
        yield from unknowns(argument)


ARITHMETIC = "rise.interpret.operations"


def scalar_unknowns(side: Expr) -> set[Unknown]:
    """Unknown types of literals, of operands of arithmetic, and of the elements of fragments."""
    found: set[Unknown] = set()
    for part in subterms(side):
        if isinstance(part, Literal):
            found |= {u for u in (part.type,) if isinstance(u, Unknown)}
        if isinstance(part, Primitive) and part.declaration.denotation.__module__ == ARITHMETIC:
            found |= {a for a in part.arguments if isinstance(a, Unknown)}
        for type_ in _fragments(part.type):
            found |= {u for u in unknowns(type_.element) if isinstance(u, Unknown)}
    return found


def _kind_unknowns(side: Expr) -> set[Unknown]:
    types = (t for part in subterms(side) for t in _fragments(part.type))
    return {t.kind for t in types if isinstance(t.kind, Unknown)}


def _fragments(type_: Any) -> Iterator[Fragment]:
    match type_:
        case Fragment():
            yield type_
        case Array(_, element):
            yield from _fragments(element)
        case Pair(a, b) | Function(a, b):
            yield from _fragments(a)
            yield from _fragments(b)


@dataclass
class Evidence:
    """What a property test of a rule saw: to how many instances it applied, and why not to others."""

    examples: int = 0
    applied: int = 0
    refusals: Counter[str] = field(default_factory=Counter)


def check_instance(made: Instance, evidence: Evidence) -> None:
    """The rule applied to the left side gives a well-typed term that computes what both sides do."""
    evidence.examples += 1
    verify(made.left)
    environment = {**exact_inputs(made.left, made.seed), **exact_inputs(made.right, made.seed)}
    assert_equivalent(made.left, made.right, environment, seeds=(made.seed,))
    result = made.rule(made.left)
    if not hasattr(result, "steps"):
        evidence.refusals[result.reason] += 1
        return
    evidence.applied += 1
    verify(result.term)
    new = result.term.free - made.left.free
    assert not new, f"`{made.rule.name}` lets {sorted(new)} escape: {show(made.left)} → {show(result.term)}"
    assert_equivalent(made.left, result.term, environment, seeds=(made.seed,))


def assert_sound(
    rule: RuleLike,
    hint: Hint | None = None,
    *,
    share: float = 0.25,
    hide: bool = False,
    evidence: Evidence | None = None,
    **options: Any,
) -> Evidence:
    """On random instances the rule preserves type and value; it applies to at least that share of them.

    `hide` renames the binders of the instances so that they hide each other; `evidence` counts.

    The options are settings of Hypothesis (`max_examples=…`). Raises AssertionError with the instance.
    """
    from hypothesis import HealthCheck, given, settings

    evidence = evidence or Evidence()

    @settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), **options)
    @given(choices())
    def sound(choose: Choose) -> None:
        made = instance(rule, choose, hint or Hint())
        if hide:
            made = replace(made, left=hiding(made.left, choose))
        check_instance(made, evidence)

    sound()
    refusals = ", ".join(f"{reason} ({n})" for reason, n in evidence.refusals.most_common(3))
    message = f"`{rule.name}` applied to {evidence.applied} of {evidence.examples} instances: {refusals}"
    assert evidence.applied >= max(1, share * evidence.examples), message
    return evidence
