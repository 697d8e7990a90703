"""Well-typed terms of a wanted type: goal-directed, from the names in scope where that is possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from rise.expr import Apply, Definition, Expr, Identifier, Lambda, Literal, Primitive, Reference, apply
from rise.nat import constant
from rise.primitives.declare import primitive
from rise.testing.choose import Choose, choices
from rise.testing.data import SCALAR_TYPES, SIZES, data_type
from rise.testing.extent import is_small
from rise.testing.operands import number_of
from rise.testing.solve import Solution, match
from rise.testing.vocabulary import Plan, calls, consumers, declarations, exact, form, plan
from rise.types import (
    Argument,
    Array,
    Data,
    Fragment,
    FragmentKind,
    Function,
    Index,
    Kind,
    Pair,
    Parameter,
    Scalar,
    Space,
    Type,
    Vector,
    arguments,
    is_data,
    substitute_type,
)

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

NAMES = ("x", "y", "acc", "i", "r", "p")  # few, so that binders hide each other
Scope = Mapping[str, Type]


@lru_cache(maxsize=4096)
def primitive_at(name: str, types: tuple[Argument, ...]) -> Primitive:
    """One object for each, so that its type is computed once."""
    return Primitive(declarations().get(name) or primitive(name), types)


def primitive_call(name: str, types: tuple[Argument, ...], *operands: Expr) -> Expr:
    """A primitive with all its dependent arguments, applied."""
    return apply(primitive_at(name, types), *operands)


@dataclass
class Parameters:
    """The parameters of a program: a generator adds one where it needs a value of a type.

    planted: a term that is used where its type is wanted
    """

    opened: list[Identifier] = field(default_factory=list)
    planted: Expr | None = None

    def open(self, type_: Type) -> Identifier:
        number = len(self.opened)
        name = chr(ord("a") + number % 8) + (str(number // 8) if number >= 8 else "")
        self.opened.append(Identifier(name, type_))
        return self.opened[-1]


@dataclass(frozen=True)
class Generator:
    """Well-typed terms of a wanted type, leaves first.

    names:       the primitives they are made of
    scalars:     the types of what is computed
    parameters:  those of the program around, which may be added to. Then the checker can find all
                 types in a term from those of the parameters, unless `expected` says that it knows
                 the type of the term itself. None: there are no others than those in scope.
    definitions: monomorphic functions that may be called
    binders:     names of parameters of functions
    """

    choose: Choose
    names: frozenset[str] = field(default_factory=exact)
    scalars: Sequence[Scalar] = SCALAR_TYPES
    parameters: Parameters | None = None
    definitions: tuple[Definition, ...] = ()
    binders: tuple[str, ...] = NAMES

    def function(self, type_: Type, scope: Scope, fuel: int, expected: bool = True) -> Expr:
        """A curried lambda; its parameters may hide names of the scope, and each other."""
        if not isinstance(type_, Function):
            return self.term(type_, scope, fuel, expected)
        parameter = Identifier(self._name(scope), type_.parameter)
        inner = {**scope, parameter.name: parameter.type}
        return Lambda(parameter, self.function(type_.result, inner, fuel, expected))

    def _name(self, scope: Scope) -> str:
        """One of the few names, or one that is hidden by it."""
        hidden = [*scope, *(p.name for p in self.parameters.opened)] if self.parameters else [*scope]
        return self.choose.pick(hidden if hidden and self.choose.one_in(3) else self.binders)

    def term(self, type_: Type, scope: Scope, fuel: int, expected: bool = True) -> Expr:
        """An expression of a data type over the names in scope: a leaf when the fuel is spent."""
        tries = min(self.choose.below(6), 3) if fuel > 0 else 0
        for _ in range(tries):
            made = self._call(type_, scope, fuel - 1, expected)
            if made is not None:
                return made
        return self.leaf(type_, scope, expected)

    # leaves

    def leaf(self, type_: Type, scope: Scope, expected: bool = True) -> Expr:
        """A variable or a part of one, most often; else the simplest term of the type."""
        known = self._known(type_, scope)
        if known and not (expected and self.choose.one_in(6)):
            return self.choose.pick(known)
        if self.parameters and not (expected and self.choose.one_in(3 if isinstance(type_, Array) else 2)):
            return self.parameters.open(type_)
        return self._plainest(type_, scope, expected)

    def _known(self, type_: Type, scope: Scope) -> list[Expr]:
        found = [e for name, t in scope.items() for e in _parts(name, t) if e.type == type_]
        if self.parameters:
            planted = self.parameters.planted
            if planted is not None and planted.type == type_ and planted.free.isdisjoint(scope):
                found += [planted] * 4
            found += [p for p in self.parameters.opened if p.type == type_ and p.name not in scope]
        return found

    def _plainest(self, type_: Type, scope: Scope, expected: bool) -> Expr:
        match type_:
            case Scalar("bool"):
                return Literal(self.choose.below(2) == 1, type_)
            case Scalar(name):
                return number_of(self.choose.below(4) - (0 if name.startswith("u") else 1), type_)
            case Index(size):
                return Literal(self.choose.below(size.value or 1), type_)
            case Pair(first, second):
                operands = self.leaf(first, scope, expected), self.leaf(second, scope, expected)
                return primitive_call("pair", (first, second), *operands)
            case Array(size, element):
                function = self.function(Function(Index(size), element), scope, 0, expected)
                return primitive_call("generate", (size, element), function)
            case Fragment(rows, columns, other, element, kind):
                value = self.leaf(element, scope, expected)
                return primitive_call("generateFragment", (rows, columns, other, element, kind), value)
            case Vector(size, element):
                value = self.leaf(element, scope, expected)
                return primitive_call("vectorFromScalar", (size, element), value)
            case _:
                raise TypeError(f"no term of type {type_} can be generated")

    # calls

    def _call(self, type_: Type, scope: Scope, fuel: int, expected: bool) -> Expr | None:
        """A primitive, a function written in place, or a definition, applied; None where none fits."""
        wanted, expected_ = form(type_), expected or self.parameters is None
        if scope and self.choose.one_in(2):  # something is done with what is in scope
            used = form(self.choose.pick(self._types(scope)))
            takers = consumers(self.names, wanted, expected_, used)
            if takers:
                return self._primitive(self.choose.pick(takers), type_, scope, fuel)
        groups = calls(self.names, wanted, expected_)
        fitting = [d for d in self.definitions if arguments(d.body.type)[1] == type_ and d.name not in scope]
        in_place, choice = "let" in self.names, self.choose.below(len(groups) + 1 + 8 * len(fitting))
        if choice < len(groups):
            return self._primitive(self.choose.pick(groups[choice]), type_, scope, fuel)
        if choice == len(groups):
            return self._in_place(type_, scope, fuel, expected) if in_place else None
        return self._definition(self.choose.pick(fitting), scope, fuel)

    def _primitive(self, made: Plan, type_: Type | None, scope: Scope, fuel: int) -> Expr | None:
        solution = self._solution(made, type_, scope)
        if solution is None:
            return None
        prepared = made.special.make(self.choose, solution)
        if prepared is None:
            return None
        operands = [
            prepared[i]
            if i in prepared
            else self.function(substitute_type(t, solution), scope, fuel, not inferred)
            for i, (t, inferred) in enumerate(zip(made.operands, made.inferred, strict=True))
        ]
        return primitive_call(
            made.declaration.written, tuple(solution[p.key] for p in made.parameters), *operands
        )

    def _in_place(self, type_: Type, scope: Scope, fuel: int, expected: bool = True) -> Expr:
        """fun(x => e) applied: what substitution is for."""
        known = [t for t in self._types(scope) if is_data(t)]
        source: Type = self.choose.pick(known) if known and not self.choose.one_in(3) else self._data_type(1)
        value = self.term(source, scope, fuel, False)
        return Apply(self.function(Function(source, type_), scope, fuel, expected), value)

    def _definition(self, called: Definition, scope: Scope, fuel: int) -> Expr:
        operands = [self.term(t, scope, fuel - 1) for t in arguments(called.body.type)[0]]
        return apply(Reference(called, ()), *operands)

    def call_of(self, name: str, scope: Scope, fuel: int) -> Expr | None:
        """A call of one primitive, of any type; None where the types drawn do not fit it."""
        made = plan(declarations()[name], False) or plan(declarations()[name], True)
        return self._primitive(made, None, scope, fuel) if made else None

    # types of calls

    def _solution(self, made: Plan, type_: Type | None, scope: Scope) -> Solution | None:
        """The dependent arguments of a call of that type: from the types in scope, else at random."""
        found = match(made.result, type_, {}) if type_ else [{}]
        if not found:
            return None
        solution = dict(self.choose.pick(found))
        if len(solution) < len(made.parameters):
            solution = self._from_scope(made, solution, scope)
        for parameter in made.parameters:
            if parameter.key not in solution and parameter.name not in made.special.arguments:
                solution[parameter.key] = self._argument(parameter, made, solution)
        chosen = made.special.choose(self.choose, solution)
        solution.update((p.key, chosen[p.name]) for p in made.parameters if p.name in chosen)
        return solution if _fits(made, solution) else None

    def _from_scope(self, made: Plan, solution: Solution, scope: Scope) -> Solution:
        known = self._types(scope)
        for operand in reversed(made.operands):
            if len(solution) == len(made.parameters) or not known or not is_data(operand):
                continue
            near = [s for t in known for s in match(operand, t, solution) if len(s) > len(solution)]
            if near and not self.choose.one_in(4):
                solution = self.choose.pick(near)
        return dict(solution)

    def _types(self, scope: Scope) -> list[Type]:
        types = dict.fromkeys(t for name, of in scope.items() for t in _part_types(of))
        if self.parameters:
            types.update((p.type, None) for p in self.parameters.opened if p.name not in scope)
        return list(types)

    def _argument(self, parameter: Parameter, made: Plan, solution: Solution) -> Argument:
        if parameter.default is not None:
            return parameter.default
        match parameter.kind:
            case Kind.NAT:
                return constant(self.choose.pick(SIZES if parameter.implicit else (1, 2, 3, 0)))
            case Kind.SPACE:
                return self.choose.pick(tuple(Space))
            case Kind.FRAGMENT:
                return self.choose.pick(tuple(FragmentKind))
            case _:
                others = [a for a in solution.values() if isinstance(a, Scalar | Array | Pair | Index)]
                if others and self.choose.one_in(3):  # else two types are never equal
                    return self.choose.pick(others)
                return self._data_type(0 if made.declaration.elementwise else 1)

    def _data_type(self, depth: int) -> Data:
        return data_type(self.choose, depth, self.scalars)


def _fits(made: Plan, solution: Solution) -> bool:
    """No empty array, none with very many elements; arithmetic on numbers only."""
    if made.declaration.elementwise:
        # a truth value may be converted, but not added
        wanted = made.declaration.operands
        return all(isinstance(t, Scalar) and wanted.asked(t) is None for t in solution.values())
    return all(is_small(substitute_type(t, solution)) for t in (*made.operands, made.result))


@lru_cache(maxsize=4096)
def _parts(name: str, type_: Type) -> tuple[Expr, ...]:
    """A variable and all projections from it."""
    return tuple(_projections(Identifier(name, type_)))


def _projections(value: Expr) -> Iterator[Expr]:
    yield value
    if isinstance(value.type, Pair):
        types = (value.type.first, value.type.second)
        for name in ("fst", "snd"):
            yield from _projections(primitive_call(name, types, value))


@lru_cache(maxsize=4096)
def _part_types(type_: Type) -> tuple[Type, ...]:
    return tuple(e.type for e in _projections(Identifier("x", type_)))


def redexes(fuel: int = 3) -> SearchStrategy[Expr]:
    """Open terms `(fun(x => e))(y)` with two names, which binders in e take again."""

    def made(choose: Choose) -> Expr:
        binders = NAMES[:2]
        scope: Scope = {name: data_type(choose, 1) for name in binders}
        value = Identifier(*choose.pick(tuple(scope.items())))
        generator = Generator(choose, binders=binders)
        function = generator.function(Function(value.type, data_type(choose, 1)), scope, fuel)
        return Apply(function, value)

    return choices().map(made)


def functions(type_: Type, fuel: int = 3, scope: Scope | None = None) -> SearchStrategy[Expr]:
    """Well-typed functions of a type, closed but for the names of the scope."""
    return choices().map(lambda choose: Generator(choose).function(type_, scope or {}, fuel))
