"""Typed expressions: the one program representation from the checker to code generation.

Every node carries its type and its origin. A primitive or a reference to a definition carries all
its dependent arguments, the inferred ones too, in the order of its scheme: so a type is never
inferred again, and a rule that replaces a node states the types of what it puts there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import is_
from typing import Any

from rise.constraint import Constraint as Constraint  # noqa: PLC0414  # also to be had from here
from rise.declaration import Declaration
from rise.errors import RiseError
from rise.frozen import Remembers, cached_property, filled_at_once
from rise.nat import variable
from rise.source import Located, Origin
from rise.types import (
    Argument,
    Dependent,
    Function,
    Kind,
    NatFunction,
    Parameter,
    Scheme,
    Solution,
    Type,
    expect,
    mentioned,
    substitute_type,
    substitution,
)


@filled_at_once
@dataclass(frozen=True, slots=True)
class Identifier(Remembers):
    """A variable bound by a lambda, an input, or a pattern variable of a rule."""

    name: str
    type: Type
    origin: Origin = field(default=None, compare=False, repr=False)

    @cached_property
    def free(self) -> frozenset[str]:
        return frozenset((self.name,))

    @property
    def extent(self) -> int:
        """How many nodes a term has where everything is written out, definitions too."""
        return 1


@filled_at_once
@dataclass(frozen=True, slots=True)
class Lambda(Remembers):
    parameter: Identifier
    body: Expr
    origin: Origin = field(default=None, compare=False, repr=False)

    @cached_property
    def type(self) -> Type:
        return Function(self.parameter.type, self.body.type)

    @cached_property
    def free(self) -> frozenset[str]:
        return self.body.free - {self.parameter.name}

    @cached_property
    def extent(self) -> int:
        return 1 + self.body.extent


@filled_at_once
@dataclass(frozen=True, slots=True)
class Apply(Remembers):
    function: Expr
    argument: Expr
    origin: Origin = field(default=None, compare=False, repr=False)

    @cached_property
    def type(self) -> Type:
        return expect(Function, self.function.type).result

    @cached_property
    def free(self) -> frozenset[str]:
        return self.function.free | self.argument.free

    @cached_property
    def extent(self) -> int:
        return 1 + self.function.extent + self.argument.extent

    @cached_property
    def head(self) -> tuple[str, int] | None:
        """The primitive applied and how many arguments it has, or None for other applications."""
        function = self.function
        if isinstance(function, Primitive):
            return function.name, 1
        if isinstance(function, Apply) and function.head is not None:
            return function.head[0], function.head[1] + 1
        return None


@filled_at_once
@dataclass(frozen=True, slots=True)
class DependentLambda(Remembers):
    """`depFun((name: kind) => body)`."""

    name: str
    kind: Kind
    body: Expr
    origin: Origin = field(default=None, compare=False, repr=False)

    @cached_property
    def type(self) -> Type:
        return Dependent(self.name, self.kind, self.body.type)

    @cached_property
    def free(self) -> frozenset[str]:
        return self.body.free

    @cached_property
    def extent(self) -> int:
        return 1 + self.body.extent


@filled_at_once
@dataclass(frozen=True, slots=True)
class DependentApply(Remembers):
    function: Expr
    argument: Argument
    origin: Origin = field(default=None, compare=False, repr=False)

    @cached_property
    def type(self) -> Type:
        function = expect(Dependent, self.function.type)
        bound = Parameter(function.name, function.kind, function.implicit)
        return substitute_type(function.result, {bound.key: self.argument})

    @cached_property
    def free(self) -> frozenset[str]:
        return self.function.free

    @cached_property
    def extent(self) -> int:
        return 1 + self.function.extent


@filled_at_once
@dataclass(frozen=True, slots=True)
class Literal(Remembers):
    """A number or a truth value of a scalar (or index) type."""

    value: int | float | bool
    type: Type
    origin: Origin = field(default=None, compare=False, repr=False)

    @property
    def free(self) -> frozenset[str]:
        return frozenset()

    @property
    def extent(self) -> int:
        return 1


@filled_at_once
@dataclass(frozen=True, slots=True)
class Primitive(Remembers):
    """A primitive with all dependent arguments of its scheme."""

    declaration: Declaration
    arguments: tuple[Argument, ...]
    origin: Origin = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.declaration.name

    @cached_property
    def type(self) -> Type:
        return _instantiated(self.declaration, self.arguments)

    @property
    def free(self) -> frozenset[str]:
        return frozenset()

    @property
    def extent(self) -> int:
        return 1


@lru_cache(maxsize=1 << 14)
def _instantiated(declaration: Declaration, arguments: tuple[Argument, ...]) -> Type:
    """The type of a primitive: most terms have many of the same."""
    return declaration.scheme.instantiate(arguments)


@filled_at_once
@dataclass(frozen=True, slots=True)
class Reference(Remembers):
    """A use of a definition with all dependent arguments of its scheme."""

    definition: Definition
    arguments: tuple[Argument, ...]
    origin: Origin = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.definition.name

    @cached_property
    def type(self) -> Type:
        return self.definition.scheme.instantiate(self.arguments)

    @property
    def free(self) -> frozenset[str]:
        return frozenset()

    @property
    def extent(self) -> int:
        return self.definition.body.extent


Expr = Identifier | Lambda | Apply | DependentLambda | DependentApply | Literal | Primitive | Reference
FUNCTIONS = (Lambda, DependentLambda)


@dataclass(frozen=True)
class Definition:
    """`def name = body`, generalised over the implicit parameters, with what it asks of its sizes."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Expr
    constraints: tuple[Constraint, ...] = ()
    origin: Origin = field(default=None, compare=False, repr=False)

    @cached_property
    def scheme(self) -> Scheme:
        return Scheme(self.parameters, self.body.type)

    def __eq__(self, other: object) -> bool:
        """Whether the parts are equal, whatever else a subclass can do."""
        return isinstance(other, Definition) and self._parts == other._parts

    @property
    def _parts(self) -> tuple[object, ...]:
        return self.name, self.parameters, self.body, self.constraints

    def __repr__(self) -> str:
        return f"<definition {self.name}>"


# --- building -------------------------------------------------------------------------------------


def apply(function: Expr, *arguments: Expr, origin: Origin = None) -> Expr:
    for argument in arguments:
        function = Apply(function, argument, origin)
    return function


def spine(expr: Expr) -> tuple[Expr, list[Apply]]:
    """The head of nested applications, and the applications from the innermost out."""
    applications: list[Apply] = []
    while isinstance(expr, Apply):
        applications.append(expr)
        expr = expr.function
    applications.reverse()
    return expr, applications


def call(expr: Expr) -> tuple[str, Primitive, list[Expr]] | None:
    """(name, primitive, arguments) where expr applies a primitive, fully or not; None elsewhere."""
    if isinstance(expr, Apply) and expr.head is None:
        return None
    arguments: list[Expr] = []
    while isinstance(expr, Apply):
        arguments.append(expr.argument)
        expr = expr.function
    return (expr.name, expr, arguments[::-1]) if isinstance(expr, Primitive) else None


def application(expr: Expr) -> tuple[str, Primitive, list[Expr]]:
    """What `call` gives for a term that has to apply a primitive. An internal error where it does not."""
    found = call(expr)
    if found is None:
        raise RiseError("R0699", "internal: a term that applies a primitive is needed here", expr.origin)
    return found


# --- traversal ------------------------------------------------------------------------------------


def children(expr: Expr) -> tuple[Expr, ...]:
    node: Any = expr
    kind = type(expr)  # compared, which is faster than `isinstance`
    if kind is Apply:
        return (node.function, node.argument)
    if kind is Lambda or kind is DependentLambda:
        return (node.body,)
    return (node.function,) if kind is DependentApply else ()


def with_children(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """The same node over other children; the node itself where they are the same objects."""
    if all(map(is_, children(expr), new)):
        return expr
    match expr:
        case Apply():
            return Apply(new[0], new[1], expr.origin)
        case Lambda(parameter, _):
            return Lambda(parameter, new[0], expr.origin)
        case DependentLambda(name, kind, _):
            return DependentLambda(name, kind, new[0], expr.origin)
        case DependentApply(_, argument):
            return DependentApply(new[0], argument, expr.origin)
        case _:
            return expr


def map_children(expr: Expr, function: Callable[[Expr], Expr]) -> Expr:
    """The same node over what a function makes of its children; the node itself where they stay."""
    if isinstance(expr, Apply):
        first, second = function(expr.function), function(expr.argument)
        if first is expr.function and second is expr.argument:
            return expr
        return Apply(first, second, expr.origin)
    below = children(expr)
    return with_children(expr, tuple(map(function, below))) if below else expr


def subterms(expr: Expr) -> Iterator[Expr]:
    """Every node, outermost first, from left to right."""
    rest = [expr]
    while rest:
        expr = rest.pop()
        yield expr
        rest += reversed(children(expr))


def closed_parts(expr: Expr) -> Iterator[Expr]:
    """Every node that uses no variable bound inside of the term, outermost first, from left to right."""
    rest: list[tuple[Expr, frozenset[str]]] = [(expr, frozenset())]
    while rest:
        part, bound = rest.pop()
        if part.free.isdisjoint(bound):
            yield part
        below = bound | {part.parameter.name} if isinstance(part, Lambda) else bound
        rest += ((child, below) for child in reversed(children(part)))


def located(expr: Expr, path: tuple[int, ...] = ()) -> Expr:
    """The same term, each node of which has its path as its origin."""
    origin = Located(path, expr.origin)
    below = tuple(located(child, (*path, index)) for index, child in enumerate(children(expr)))
    return replace(with_children(expr, below), origin=origin)


def size(expr: Expr) -> int:
    return sum(1 for _ in subterms(expr))


# --- substitution ---------------------------------------------------------------------------------


def fresh_name(name: str, taken: frozenset[str] | set[str]) -> str:
    """name, or name_1, name_2, … : the first that is not taken."""
    if name not in taken:
        return name
    stem = name.rstrip("0123456789")
    stem = stem[:-1] if stem.endswith("_") and stem != name else name
    number = 1
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replaces free identifiers; binders that would capture a free variable of a value are renamed."""
    if expr.free.isdisjoint(values):
        return expr
    match expr:
        case Identifier(name):
            return values[name]
        case Lambda(parameter, body):
            inner = {n: v for n, v in values.items() if n != parameter.name and n in body.free}
            incoming = frozenset[str]().union(*(v.free for v in inner.values()))
            if parameter.name in incoming:
                name = fresh_name(parameter.name, incoming | body.free)
                renamed = Identifier(name, parameter.type, parameter.origin)
                return Lambda(renamed, substitute(body, {**inner, parameter.name: renamed}), expr.origin)
            return Lambda(parameter, substitute(body, inner), expr.origin)
        case _:
            return map_children(expr, lambda child: substitute(child, values))


def map_types(
    expr: Expr,
    on_type: Callable[[Type], Type],
    on_argument: Callable[[Argument], Argument],
    on_binder: Callable[[DependentLambda], DependentLambda] = lambda binder: binder,
) -> Expr:
    """Rebuilds every type and dependent argument of an expression.

    `on_binder` may rename what a dependent function binds, before its body is rebuilt.
    """

    def below(part: Expr) -> Expr:
        return map_types(part, on_type, on_argument, on_binder)

    match expr:
        case Apply():
            return map_children(expr, below)
        case Identifier(name, type_):
            type_ = on_type(type_)
            return expr if type_ is expr.type else Identifier(name, type_, expr.origin)
        case Lambda(parameter, body):
            new, type_ = below(body), on_type(parameter.type)
            if type_ is parameter.type:
                return with_children(expr, (new,))
            return Lambda(Identifier(parameter.name, type_, parameter.origin), new, expr.origin)
        case Literal(value, type_):
            type_ = on_type(type_)
            return expr if type_ is expr.type else Literal(value, type_, expr.origin)
        case Primitive(declaration, given):
            arguments = tuple(map(on_argument, given))
            same = all(map(is_, arguments, given))
            return expr if same else Primitive(declaration, arguments, expr.origin)
        case Reference(definition, given):
            return Reference(definition, tuple(on_argument(a) for a in given), expr.origin)
        case DependentApply(function, argument):
            return DependentApply(below(function), on_argument(argument), expr.origin)
        case DependentLambda():
            bound = on_binder(expr)
            return with_children(bound, (below(bound.body),))
        case _:
            return map_children(expr, below)


def substitute_sizes(expr: Expr, solution: Solution) -> Expr:
    """Replaces size, type and address-space variables throughout; no binder captures one."""
    if not solution:
        return expr
    return map_types(expr, *substitution(solution), lambda binder: _apart(binder, mentioned(solution)))


def _apart(bound: DependentLambda, names: frozenset[str]) -> DependentLambda:
    """The same function with a parameter that has none of the names."""
    if bound.name not in names:
        return bound
    name = fresh_name(bound.name, names | {p.name for p in subterms(bound) if isinstance(p, DependentLambda)})
    old, fresh = (Parameter(n, bound.kind, False) for n in (bound.name, name))
    return DependentLambda(
        name, bound.kind, substitute_sizes(bound.body, {old.key: fresh.leaf}), bound.origin
    )


def renamed(function: Lambda, taken: frozenset[str] | set[str]) -> Lambda:
    """The function with a parameter that is not among the names taken."""
    old = function.parameter
    if old.name not in taken:
        return function
    new = Identifier(fresh_name(old.name, set(taken) | function.body.free), old.type, old.origin)
    return Lambda(new, substitute(function.body, {old.name: new}), function.origin)


def distinct_binders(term: Expr, taken: set[str] | None = None) -> Expr:
    """The same term with every lambda's parameter named differently from all others."""
    used = set(term.free) if taken is None else taken
    if isinstance(term, Lambda):
        name = fresh_name(term.parameter.name, used)
        used.add(name)
        parameter = Identifier(name, term.parameter.type, term.parameter.origin)
        body = substitute(term.body, {term.parameter.name: parameter})
        return Lambda(parameter, distinct_binders(body, used), term.origin)
    return with_children(term, tuple(distinct_binders(c, used) for c in children(term)))


# --- equality -------------------------------------------------------------------------------------


def alpha_equal(left: Expr, right: Expr, names: Mapping[str, str] | None = None) -> bool:
    """Equality up to the names of bound variables, types included."""
    if left is right and not names:
        return True
    if type(left) is not type(right) or left.extent != right.extent:
        return False
    bound = names or {}
    match left, right:
        case Apply(f, x), Apply(g, y):
            return alpha_equal(f, g, bound) and alpha_equal(x, y, bound)
        case Identifier(a), Identifier(b):
            return bound.get(a, a) == b and (a in bound or b not in bound.values())
        case Lambda(p, e), Lambda(q, f):
            outer = {a: b for a, b in bound.items() if b != q.name}
            return p.type == q.type and alpha_equal(e, f, {**outer, p.name: q.name})
        case Literal(v, t), Literal(w, u):
            return v == w and t == u
        case Primitive(d, a), Primitive(c, b):
            return d is c and same_arguments(a, b)
        case Reference(d, a), Reference(c, b):
            return d.name == c.name and same_arguments(a, b)
        case DependentLambda(n, k, e), DependentLambda(m, j, f):
            return n == m and k == j and alpha_equal(e, f, bound)
        case DependentApply(e, a), DependentApply(f, b):
            return same_arguments((a,), (b,)) and alpha_equal(e, f, bound)
        case _:
            return False


INDEX = variable("·")  # which no program binds


def same_arguments(left: tuple[Argument, ...], right: tuple[Argument, ...]) -> bool:
    """Whether sizes, types and functions of indices are equal, up to the names that these functions bind."""
    if left == right:
        return True

    def same(one: Argument, other: Argument) -> bool:
        match one, other:
            case NatFunction(), NatFunction():
                return one(INDEX) == other(INDEX)
            case _:
                return one == other

    return len(left) == len(right) and all(map(same, left, right))


# --- definitions ----------------------------------------------------------------------------------


def inline(expr: Expr) -> Expr:
    """Replaces references by the bodies of their definitions."""
    if isinstance(expr, Reference):
        definition = expr.definition
        solution = {p.key: a for p, a in zip(definition.parameters, expr.arguments, strict=True)}
        return inline(substitute_sizes(definition.body, solution))
    return map_children(expr, inline)
