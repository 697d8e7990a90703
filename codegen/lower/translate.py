"""accT and conT: from functional to imperative (extended abstract, Listing 3; DPIA).

`accept(e, A)` writes e into the acceptor A; `continue_with(e, C)` passes an expression for e to C. The
modules of `codegen/lower/primitives/` register translations here by name, without a match over all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce

from codegen.ir import imperative as i
from codegen.ir.buffers import members
from codegen.ir.data import data, element_type
from codegen.ir.identifiers import derived, of_user
from rise.errors import TranslationError
from rise.expr import Apply, Expr, Identifier, Lambda, Literal, Primitive, spine
from rise.frozen import filled_at_once
from rise.nat import Nat, variable
from rise.normal import occurrences
from rise.primitives.declare import REGISTRY
from rise.source import Origin
from rise.types import (
    ROW_MAJOR,
    Argument,
    Array,
    Data,
    Function,
    Layout,
    Pair,
    Space,
    Vector,
)

RESULT = "output"  # of the whole program
MEMBERS = ("fst", "snd")

Environment = Mapping[str, i.Expression]
Continuation = Callable[[i.Expression], i.Command]


@filled_at_once
@dataclass(frozen=True, slots=True)
class Call:
    """A primitive applied to all its arguments, in an environment."""

    primitive: Primitive
    arguments: tuple[Expr, ...]
    environment: Environment
    type: Data
    origin: Origin

    @property
    def name(self) -> str:
        return self.primitive.name

    def size(self, name: str) -> Argument:
        """The dependent argument with that name."""
        parameters = self.primitive.declaration.scheme.parameters
        for parameter, argument in zip(parameters, self.primitive.arguments, strict=True):
            if parameter.name == name:
                return argument
        raise KeyError(name)

    def nat(self, name: str) -> Nat:
        size = self.size(name)
        if not isinstance(size, Nat):
            raise KeyError(name)
        return size


Accepting = Callable[["Translator", Call, i.Acceptor], i.Command]
Continuing = Callable[["Translator", Call, Continuation], i.Command]
ACCEPTING: dict[str, Accepting] = {}
CONTINUING: dict[str, Continuing] = {}


def accepting(*names: str) -> Callable[[Accepting], Accepting]:
    """Registers accT of primitives: how an application of one is written to a place.

    The function that is decorated takes a translator, a call and an acceptor, and returns a command (DPIA,
    section 4). Without one, translating the primitive is R0704.
    """

    def register(function: Accepting) -> Accepting:
        for name in names:
            ACCEPTING[name] = function
        return function

    return register


def continuing(*names: str) -> Callable[[Continuing], Continuing]:
    """Registers conT of primitives: how the value of an application is handed to what uses it.

    The function that is decorated takes a translator, a call and a continuation, and returns a command
    (DPIA, section 4). Without one, translating the primitive is R0704.
    """

    def register(function: Continuing) -> Continuing:
        for name in names:
            CONTINUING[name] = function
        return function

    return register


@dataclass
class Translator:
    """One translation, which generates names that are unique in the kernel."""

    used: set[str] = field(default_factory=set)
    # temporaries in global memory, by name; and those of their members that are arrays of the result
    temporaries: set[str] = field(default_factory=set)
    results: dict[str, str] = field(default_factory=dict)
    # for each enclosing expression that is evaluated at its reads: the scalars that must be computed first
    inlining: list[list[tuple[str, i.Expression]]] = field(default_factory=list)

    def name(self, stem: str, type_: Data | None = None) -> str:
        """An unused name, also for the buffers of the members of a pair of that type."""
        number, name = 0, stem
        while not self.used.isdisjoint(taken := _names(name, type_)):
            number += 1
            name = derived(stem, number)
        self.used |= taken
        return name

    def parameter(self, function: Expr, default: str, type_: Data | None = None) -> str:
        """A name for the argument of a function: that of its parameter, if it has one."""
        return self.name(of_user(function.parameter.name) if isinstance(function, Lambda) else default, type_)

    # --- the two translations -------------------------------------------------------------------------

    def accept(self, expr: Expr, target: i.Acceptor, environment: Environment) -> i.Command:
        """Writes expr into target."""
        if self.is_result(expr, target, environment):
            return i.Skip()
        call = as_call(expr, environment)
        if call is not None and call.name not in ACCEPTING and call.name not in CONTINUING:
            raise self.unstored(expr)
        if call is not None and call.name in ACCEPTING:
            return ACCEPTING[call.name](self, call, target)
        if isinstance(expr, Apply) and isinstance(expr.function, Lambda):
            return self.let(
                expr.argument,
                expr.function,
                environment,
                lambda e, env: self.accept(e, target, env),
            )
        return self.accept_value(expr, target, environment)

    def is_result(self, expr: Expr, target: i.Acceptor, environment: Environment) -> bool:
        """Whether the result is an array that has been stored for it: then it is stored there at once."""
        if not isinstance(expr.type, Array) or not self.temporaries:
            return False
        read, place = _member_read(expr, environment), self._member_written(target)
        if read is None or place is None or read[0] not in self.temporaries:
            return False
        buffers, places = ([name for name, _ in members(name, expr.type)] for name in (read[1], place))
        if not self.results.keys().isdisjoint(buffers):
            return False
        self.results |= dict(zip(buffers, places, strict=True))
        return True

    def _member_written(self, target: i.Acceptor) -> str | None:
        """The buffer of a member of the result, or of a temporary, which is a pair."""
        path: tuple[str, ...] = ()
        while isinstance(target, i.AcceptView) and target.name == "pair":
            path, target = (MEMBERS[target.operand], *path), target.acceptor
        match target:
            case i.AcceptAt(_, i.AcceptVariable(name)) if name == RESULT:
                return reduce(derived, path, name)
            case i.AcceptVariable(name) if name in self.temporaries and path:
                return reduce(derived, path, name)
            case _:
                return None

    def accept_value(self, expr: Expr, target: i.Acceptor, environment: Environment) -> i.Command:
        """con(e) λx. A := x, for a value that is not an array, whose writers would not be determined."""
        if contains_array(expr.type):
            raise TranslationError(
                "R0701",
                f"the program does not say how this result of type `{expr.type}` is written",
                expr.origin,
                "use a level (mapBlock, mapWarp, mapSeq, …) for the map that computes it",
            )
        return self.continue_with(expr, lambda value: self.assign(target, value, expr.origin), environment)

    def continue_with(self, expr: Expr, continuation: Continuation, environment: Environment) -> i.Command:
        """Passes an expression for expr to the continuation."""
        match expr:
            case Identifier(name):
                return continuation(environment[name])
            case Literal(value):
                return continuation(i.Number(value, data(expr)))
            case _:
                pass
        call = as_call(expr, environment)
        if call is not None and call.name in CONTINUING:
            return CONTINUING[call.name](self, call, continuation)
        if isinstance(expr, Apply) and isinstance(expr.function, Lambda):
            return self.let(
                expr.argument,
                expr.function,
                environment,
                lambda e, env: self.continue_with(e, continuation, env),
            )
        raise self.unstored(expr)

    def unstored(self, expr: Expr) -> TranslationError:
        head, _ = spine(expr)
        lowered = isinstance(head, Primitive) and any(d.lowers == head.name for d in REGISTRY.values())
        if isinstance(head, Primitive) and head.name not in ACCEPTING and not lowered:
            return TranslationError(
                "R0704", f"`{head.name}` has no translation to imperative code yet", expr.origin
            )
        what = f"`{head.name}`" if isinstance(head, Primitive) else "this expression"
        return TranslationError(
            "R0702",
            f"the result of {what}, of type `{expr.type}`, is read but not stored anywhere",
            expr.origin,
            "say where: `|> toMem(Local)` or `|> toMem(Shared)`",
        )

    # --- helpers for the primitives ---------------------------------------------------------------------

    def pure(self, expr: Expr, environment: Environment, origin: Origin) -> i.Expression:
        """The expression for expr, which must not need any command, since it is evaluated at its reads."""
        found: list[i.Expression] = []
        mark = i.Skip()

        def capture(value: i.Expression) -> i.Command:
            found.append(value)
            return mark

        self.inlining.append([])
        command = self.continue_with(expr, capture, environment)
        named = self.inlining.pop()
        if command is not mark:
            raise TranslationError(
                "R0703",
                "this map computes a result that would be stored implicitly",
                origin or expr.origin,
                "choose a level for it and store the result with `toMem`",
            )
        result = found[0]
        for name, value in reversed(named):
            result = i.LetExpression(name, value, result, result.type)
        return result

    def all(
        self, exprs: tuple[Expr, ...], environment: Environment, then: Callable[..., i.Command]
    ) -> i.Command:
        """conT of several expressions, in order."""
        if not exprs:
            return then()
        first, *others = exprs
        return self.continue_with(
            first,
            lambda value: self.all(tuple(others), environment, partial(then, value)),
            environment,
        )

    def let(
        self,
        value: Expr,
        function: Expr,
        environment: Environment,
        body: Callable[[Expr, Environment], i.Command],
    ) -> i.Command:
        """(fun(x => body))(value): a computed scalar is stored once; anything else becomes a view.

        In an expression that is evaluated at each read, the scalar becomes part of that expression.
        """

        return self.continue_with(
            value, lambda bound: self.bind(bound, function, environment, body, value.origin), environment
        )

    def bind(
        self,
        value: i.Expression,
        function: Expr,
        environment: Environment,
        body: Callable[[Expr, Environment], i.Command],
        origin: Origin,
    ) -> i.Command:
        """Calls `body` with the function's body; its parameter denotes the value, computed once."""
        if not is_computed(value):
            return body(*self.apply(function, (value,), environment))
        type_ = value.type
        name = self.parameter(function, "value", type_)
        variable = i.Variable(name, type_)
        if self.inlining:
            self.inlining[-1].append((name, value))
            return body(*self.apply(function, (variable,), environment))
        inner = body(*self.apply(function, (variable,), environment))
        store = self.assign(i.AcceptVariable(name, type_), value, origin)
        return i.New(Space.LOCAL, name, type_, i.sequence(store, inner), origin)

    def given(
        self,
        function: Expr,
        arguments: tuple[i.Expression, ...],
        environment: Environment,
        body: Callable[[Expr, Environment], i.Command],
    ) -> i.Command:
        """Calls `body` with the function's body; a computed argument that is used twice is computed once."""
        if not arguments:
            return body(function, environment)

        def rest(inner: Expr, around: Environment) -> i.Command:
            return self.given(inner, arguments[1:], around, body)

        if isinstance(function, Lambda) and uses(function) > 1:
            return self.bind(arguments[0], function, environment, rest, function.origin)
        return rest(*self.apply(function, arguments[:1], environment))

    def apply(
        self, function: Expr, arguments: tuple[i.Expression, ...], environment: Environment
    ) -> tuple[Expr, Environment]:
        """The body of a function, and the environment that binds its parameters to the arguments."""
        for argument in arguments:
            if isinstance(function, Lambda):
                environment = {**environment, function.parameter.name: argument}
                function = function.body
            else:
                name = self.name("x")
                type_ = function.type
                if not isinstance(type_, Function):
                    raise self.unstored(function)
                environment = {**environment, name: argument}
                function = Apply(function, Identifier(name, type_.parameter), function.origin)
        return function, environment

    def assign(self, target: i.Acceptor, value: i.Expression, origin: Origin) -> i.Command:
        """target = value, member by member for pairs, element by element for vectors."""
        if isinstance(value.type, Vector):
            lane = self.name("lane")
            inner = self.assign(accept_at(target, lane), at(value, lane), origin)
            return i.vector_loop(lane, value.type.size, inner, _called_aligned(value))
        if isinstance(value.type, Pair):
            return self._each_member(self.assign, target, value, value.type, origin)
        return i.Assign(target, value, origin)

    def copy(self, target: i.Acceptor, value: i.Expression, origin: Origin) -> i.Command:
        """target := value; the owner of each element copies it."""
        match value.type:
            case Array(size):
                index = self.name("i")
                inner = self.copy(accept_at(target, index), at(value, index), origin)
                return i.For(index, size, inner, unroll=True, owner=True, label="copy", origin=origin)
            case Pair() as pair:
                return self._each_member(self.copy, target, value, pair, origin)
            case _:
                return self.assign(target, value, origin)

    def _each_member(
        self,
        write: Callable[[i.Acceptor, i.Expression, Origin], i.Command],
        target: i.Acceptor,
        value: i.Expression,
        pair: Pair,
        origin: Origin,
    ) -> i.Command:
        parts = (("fst", pair.first), ("snd", pair.second))
        return i.sequence(
            *(
                write(
                    i.AcceptView("pair", (), target, part, number), i.View(name, (), (value,), part), origin
                )
                for number, (name, part) in enumerate(parts)
            )
        )

    def store(
        self,
        space: Space,
        expr: Expr,
        environment: Environment,
        then: Continuation,
        stem: str,
        layout: Layout = ROW_MAJOR,
        how: Callable[[i.Command], i.Command] = lambda written: written,
    ) -> i.Command:
        """A new buffer: expr is written into it (`how` may change the command); the continuation reads it."""
        type_ = data(expr)
        name = self.name(stem, type_)
        if space is Space.GLOBAL:
            self.temporaries.add(name)
        written = how(self.accept(expr, i.AcceptVariable(name, type_), environment))
        body = i.sequence(written, then(i.Variable(name, type_)))
        results = tuple((n, self.results[n]) for n, _ in members(name, type_) if n in self.results)
        return i.New(space, name, type_, body, expr.origin, layout, results=results)


def _member_read(expr: Expr, environment: Environment) -> tuple[str, str] | None:
    """Of a variable, or of a member of a pair that it stands for: the variable and the buffer, by name."""
    path: tuple[str, ...] = ()
    while isinstance(expr, Apply) and isinstance(expr.function, Primitive) and expr.function.name in MEMBERS:
        path, expr = (expr.function.name, *path), expr.argument
    value = environment.get(expr.name) if isinstance(expr, Identifier) else None
    while isinstance(value, i.View) and value.name in MEMBERS:
        path, value = (value.name, *path), value.operands[0]
    return (value.name, reduce(derived, path, value.name)) if isinstance(value, i.Variable) else None


def uses(function: Lambda) -> int:
    """How often a function's parameter occurs in its body."""
    return occurrences(function.body, function.parameter.name)[0]


def is_computed(value: i.Expression) -> bool:
    """Whether a value is the result of a single operation, and not an array."""
    return isinstance(value, i.Operator | i.ForeignCall) and not contains_array(value.type)


def _names(name: str, type_: Data | None) -> set[str]:
    """A name, and the names of the buffers that store a value of the type."""
    return {name} | ({part for part, _ in members(name, type_)} if type_ is not None else set())


def _called_aligned(value: i.Expression) -> bool:
    """Whether a vector is read through `asVectorAligned`."""
    match value:
        case i.View(name, _, operands):
            return name == "asVectorAligned" or any(map(_called_aligned, operands))
        case i.At(_, array) | i.MapExpression(_, _, array):
            return _called_aligned(array)
        case i.Operator(_, operands):
            return any(map(_called_aligned, operands))
        case _:
            return False


def as_call(expr: Expr, environment: Environment) -> Call | None:
    head, applications = spine(expr)
    if not isinstance(head, Primitive):
        return None
    given = tuple(a.argument for a in applications)
    return Call(head, given, environment, expr.type, expr.origin)  # type: ignore[arg-type]  # data by then


def contains_array(type_: object) -> bool:
    match type_:
        case Array():
            return True
        case Pair(first, second):
            return contains_array(first) or contains_array(second)
        case _:
            return False


def at(array: i.Expression, index: str | Nat) -> i.At:
    return i.At(_index(index), array, element_type(array.type))


def accept_at(array: i.Acceptor, index: str | Nat) -> i.AcceptAt:
    return i.AcceptAt(_index(index), array, element_type(array.type))


def _index(index: str | Nat) -> Nat:
    return variable(index) if isinstance(index, str) else index
