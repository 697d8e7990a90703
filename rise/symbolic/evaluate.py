"""The value of a term in a world. What single primitives mean is in `rise.symbolic.meanings`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rise.expr import Apply, Expr, Identifier, Lambda, Literal, Primitive
from rise.primitives.declare import plain_pattern
from rise.symbolic.meanings import PATTERNS, VIEWS
from rise.symbolic.values import (
    ELEMENTS,
    FALSE,
    TRUE,
    UNDEFINED,
    Abstraction,
    Applied,
    Case,
    Condition,
    Contract,
    Fold,
    Path,
    Sequence,
    Unmodelled,
    Value,
    Whole,
    dimensions,
    spread,
)
from rise.symbolic.worlds import World
from rise.types import (
    Argument,
    Data,
    Dependent,
    Function,
    Index,
    Pair,
    Type,
    Vector,
)

Environment = Mapping[str, Value]
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
UNROLLED = 4  # loops of at most so many steps are written out


@dataclass
class Evaluator:
    """rounds:    whether the product of fragments, which rounds once, is told from products that are added up
    contracts: those of the reductions met so far
    """

    world: World
    rounds: bool = False
    contracts: list[Contract] = field(default_factory=list)

    def value(self, term: Expr, environment: Environment) -> Value:
        match term:
            case Identifier(name):
                return environment[name]
            case Lambda(parameter, body):
                return lambda x: self.value(body, {**environment, parameter.name: x})
            case Apply(function, argument):
                return self.value(function, environment)(self.value(argument, environment))
            case Literal(value, type_):
                return self._literal(value, type_)
            case Primitive():
                return self._primitive(term)
            case _:
                raise Unmodelled("a function of a size")

    def _literal(self, value: float | bool, type_: Type) -> Value:
        match type_:
            case Index():
                return int(value)
            case Vector(size, element):
                return Sequence(self.world.size(size), lambda i: self._literal(value, element))
            case _ if isinstance(value, bool):
                return TRUE if value else FALSE
            case _:
                return Applied(f"{value:.17g}" if value == value else "nan")

    # --- what nothing is known of -----------------------------------------------------------------------

    def argument(self, number: int, type_: Type) -> Value:
        """An unknown argument of a program, by its number. No name of a program has a subscript."""
        return self.opaque(f"x{str(number).translate(SUBSCRIPTS)}", type_)

    def opaque(
        self, name: str, type_: Type, arguments: tuple[Value, ...] = (), given: Condition = True
    ) -> Value:
        """An unknown value of a type. Its elements depend on the arguments and on their indices."""
        if isinstance(type_, Function):
            parameter, result = type_.parameter, type_.result

            def function(x: Value) -> Value:
                argument = Abstraction(parameter, x) if isinstance(parameter, Function) else x
                return self.opaque(name, result, (*arguments, argument), given)

            return function
        indexed = dimensions(type_)
        if indexed is not None:
            size, element = self.world.size(indexed[0]), indexed[1]
            return Sequence(
                size,
                lambda i: self.opaque(
                    name, element, (*arguments, i), self.world.both(given, i >= 0, i < size)
                ),
            )
        match type_:
            case Pair(first, second):
                return tuple(
                    self.opaque(f"{name}.{i}", t, arguments, given) for i, t in enumerate((first, second), 1)
                )
            case Index(size):
                return self.world.index(name, arguments, self.world.size(size), given)
            case Dependent():
                raise Unmodelled("a function of a size")
            case _:
                return Applied(name, arguments)

    def undefined(self, type_: Type) -> Value:
        def leaf(_: Path, of: Type) -> Value:
            if isinstance(of, Index):
                raise Unmodelled("an index that is not defined")
            return UNDEFINED

        return spread(self.world.size, type_, leaf)

    # --- choices and loops ------------------------------------------------------------------------------

    def chosen(self, condition: Condition, then: Value, otherwise: Value) -> Value:
        """One of two values, element by element."""
        if isinstance(condition, bool):
            return then if condition else otherwise
        match then:
            case Sequence(size):
                return Sequence(size, lambda i: self.chosen(condition, then.at(i), otherwise.at(i)))
            case tuple():
                return tuple(self.chosen(condition, a, b) for a, b in zip(then, otherwise, strict=True))
            case _ if isinstance(then, ELEMENTS):
                return Case(condition, then, otherwise)
            case _ if isinstance(condition, ELEMENTS):
                raise Unmodelled("an index that depends on elements")
            case _:
                return self.world.either(condition, then, otherwise)

    def fold(self, type_: Data, size: Whole, step: Callable[[Value, Whole], Value], start: Value) -> Value:
        """The accumulator after so many steps: computed where they are few, else a `Fold` an element."""
        count = size if isinstance(size, int) else _number(size)
        if count is not None and (count <= UNROLLED or self.world.writes_out_loops):
            for i in range(count):
                start = step(start, i)
            return start

        def leaf(path: Path, of: Type) -> Value:
            if isinstance(of, Index | Function | Dependent):
                raise Unmodelled("a fold of indices")
            return Fold(size, step, start, type_, path)

        return spread(self.world.size, type_, leaf)

    # --- primitives -------------------------------------------------------------------------------------

    def _primitive(self, primitive: Primitive) -> Value:
        parameters, result = _parameters(primitive.type)
        given = dict(
            zip((p.name for p in primitive.declaration.scheme.parameters), primitive.arguments, strict=True)
        )
        return curried(self._meaning(primitive, given, parameters, result), len(parameters))

    def _meaning(
        self, primitive: Primitive, given: Mapping[str, Argument], parameters: list[Type], result: Type
    ) -> Callable[..., Value]:
        declaration = primitive.declaration
        plain = plain_pattern(declaration)
        view = VIEWS.get(primitive.name) or VIEWS.get(plain)
        if primitive.name in PATTERNS:
            return lambda *xs: PATTERNS[primitive.name](self, given, result, *xs)
        if declaration.group == "memory":
            return lambda x: x
        if view is not None:
            return lambda *xs: view(self, given, result, *xs)
        if plain in ("map", "reduce"):
            return lambda *xs: PATTERNS[plain if plain == "map" else "reduceSeq"](self, given, result, *xs)
        if primitive.name == "foreignFunction":
            return lambda f, *xs: _applied(f, *xs)
        if declaration.elementwise:
            return lambda *xs: self._elementwise(primitive.name, parameters, result, xs)
        raise Unmodelled(f"`{primitive.name}`")

    def _elementwise(self, name: str, types: list[Type], result: Type, xs: tuple[Value, ...]) -> Value:
        """An operation on numbers, which is lifted to vectors."""
        if isinstance(result, Vector):
            inner = [t.element if isinstance(t, Vector) else t for t in types]
            element = result.element
            return Sequence(
                self.world.size(result.size),
                lambda i: self._elementwise(name, inner, element, tuple(x.at(i) for x in xs)),
            )
        if name == "cast" and types[0] == result:
            return xs[0]
        if name == "not":
            return Case(xs[0], FALSE, TRUE)
        if not all(isinstance(x, ELEMENTS) for x in xs):
            raise Unmodelled(f"`{name}` of indices")
        kind = f"{types[0]}→{result}" if name == "cast" else str(types[0])
        return Applied(f"{name}:{kind}", xs)


def curried(function: Callable[..., Value], arity: int, *given: Value) -> Value:
    if len(given) == arity:
        return function(*given)
    return lambda x: curried(function, arity, *given, x)


def _applied(function: Value, *arguments: Value) -> Value:
    for argument in arguments:
        function = function(argument)
    return function


def _parameters(type_: Type) -> tuple[list[Type], Type]:
    found: list[Type] = []
    while isinstance(type_, Function):
        found.append(type_.parameter)
        type_ = type_.result
    return found, type_


def _number(size: Whole) -> int | None:
    """A term of z3 that is a number."""
    return size.as_long() if hasattr(size, "as_long") else None
