"""Prints typed expressions as programs that parse back to them: each becomes the tree that a parser would
return, which the printer of the language sets.

Data flows through pipes where that reads well, operators are infix, dependent arguments are printed
where the program has to give them. Binders keep their names, except those that would hide a
primitive which is used below them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan

from rise.declaration import Declaration
from rise.expr import (
    Apply,
    Definition,
    DependentApply,
    DependentLambda,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    Reference,
    apply,
    children,
    fresh_name,
    substitute,
    subterms,
    with_children,
)
from rise.notation import show_argument, show_nat, show_scheme, show_type
from rise.source import Source, Span
from rise.syntax import surface as s
from rise.syntax.layout import BINARY
from rise.syntax.printer import print_expression, print_file
from rise.types import (
    F32,
    I32,
    Argument,
    Array,
    Dependent,
    Fragment,
    Function,
    Kind,
    Parameter,
    Scalar,
    Type,
    Variable,
    Vector,
    arguments,
)

# how often a definition is printed with more types, until its text determines all of them
ROUNDS = 8
# operators of one operand, by the name of their primitive
PREFIX = {"neg": "-", "not": "!"}
# what is computed has no place in a text
NOWHERE = Span(Source("", ""), 1, 1, 1, 1)


__all__ = ["full_type", "show", "show_argument", "show_definition", "show_nat", "show_scheme", "show_type"]


def show(expr: Expr, width: int = 100, annotate: bool = False) -> str:
    """The expression as text.

    With `annotate` the outermost parameters show their types, and so does what else would lose its type:
    the text of a closed expression parses back to it.
    """
    shown: frozenset[int] = frozenset()
    if annotate and not expr.free and any(_has_fragment(term) for term in subterms(expr)):
        expr = _unhidden(expr, names_used(expr))
        shown = _annotated(Definition("it", (), expr), width)
    if annotate:
        return print_expression(Unelaboration(names_used(expr), shown).outermost(expr), width)
    return print_expression(Unelaboration(names_used(expr), shown).expression(expr, curried=True), width)


def _has_fragment(term: Expr) -> bool:
    """Whether it may make a fragment, whose third size its result need not tell."""
    return isinstance(term, Primitive) and isinstance(arguments(term.type)[1], Fragment)


def show_definition(definition: Definition, width: int = 100) -> str:
    """`def name = …`, types written where parsing the text again could not find them."""
    definition = replace(definition, body=_unhidden(definition.body, names_used(definition.body)))
    return _definition(definition, _annotated(definition, width), width)


def full_type(definition: Definition) -> str:
    """The type with the inferred parameters in front, as a program would state it."""
    type_: Type = definition.body.type
    for parameter in reversed(definition.parameters):
        type_ = Dependent(parameter.name, parameter.kind, type_, parameter.implicit)
    return show_type(type_)


def _annotated(definition: Definition, width: int) -> frozenset[int]:
    """The terms, by identity, that have to show their types for the text to determine them all."""
    from rise.check.determined import undetermined

    annotated: frozenset[int] = frozenset()
    for _ in range(ROUNDS):
        text = _definition(definition, annotated, width)
        more = annotated | {id(term) for term in undetermined(definition, text)}
        if more == annotated:
            break
        annotated = more
    return annotated


def _definition(definition: Definition, annotated: frozenset[int], width: int) -> str:
    """A definition with inferred parameters shows its whole type, another one those of its parameters."""
    body, written = definition.body, Unelaboration(names_used(definition.body), annotated)
    implicit = _kinded((p.name, p.kind) for p in definition.parameters)
    shows_type = bool(implicit) or not isinstance(_below_dependent(body), Lambda)
    syntax = s.DefinitionSyntax(
        definition.name,
        implicit,
        _type(body.type) if shows_type else None,
        written.expression(body) if shows_type else written.outermost(body, curried=True),
        NOWHERE,
        NOWHERE,
    )
    return print_file(s.FileSyntax((), (syntax,)), width=width).rstrip("\n")


def _unhidden(expr: Expr, reserved: frozenset[str]) -> Expr:
    """The same term, no binder of which hides a name in use."""
    if isinstance(expr, Lambda):
        parameter, body = _renamed(expr, reserved)
        return Lambda(parameter, _unhidden(body, reserved), expr.origin)
    return with_children(expr, tuple(_unhidden(child, reserved) for child in children(expr)))


def _renamed(expr: Lambda, reserved: frozenset[str]) -> tuple[Identifier, Expr]:
    """The parameter and the body, renamed if the parameter would hide a name in use."""
    parameter, body = expr.parameter, expr.body
    if parameter.name not in reserved:
        return parameter, body
    name = fresh_name(parameter.name, reserved | body.free)
    renamed = replace(parameter, name=name)
    return renamed, substitute(body, {parameter.name: renamed})


def _below_dependent(expr: Expr) -> Expr:
    while isinstance(expr, DependentLambda):
        expr = expr.body
    return expr


def names_used(expr: Expr) -> frozenset[str]:
    """What is used in an expression without being bound there: no binder may hide these names."""
    names: set[str] = set()
    for term in subterms(expr):
        if isinstance(term, Primitive | Reference):
            names.add(term.name)
        if isinstance(term, Primitive) and term.name == "cast":
            names.add(str(term.arguments[1]))
    return frozenset(names)


# --- types -----------------------------------------------------------------------------------------


def _type(type_: Type) -> s.SurfaceType:
    """A type of functions part by part; data as the notation writes it."""
    match type_:
        case Function(parameter, result):
            return s.TypeFunction(_type(parameter), _type(result), NOWHERE)
        case Dependent(implicit=implicit):
            names: list[tuple[str, Kind]] = []
            below: Type = type_
            while isinstance(below, Dependent) and below.implicit == implicit:
                names.append((below.name, below.kind))
                below = below.result
            return s.TypeDependent(_kinded(names), implicit, _type(below), NOWHERE)
        case _:
            return s.TypeName(show_type(type_), NOWHERE)


def _kinded(names: Iterable[tuple[str, Kind]]) -> tuple[s.KindedName, ...]:
    return tuple(s.KindedName(name, kind.value, NOWHERE) for name, kind in names)


# --- expressions --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """A dependent argument, among the arguments that an expression is applied to."""

    argument: Argument


@dataclass(frozen=True)
class Unelaboration:
    """`reserved`: names that no binder may take; `annotated`: terms, by identity, that show their type."""

    reserved: frozenset[str]
    annotated: frozenset[int] = frozenset()

    def expression(self, expr: Expr, curried: bool = False) -> s.Surface:
        """The tree of an expression; `curried`: where several parameters in parentheses are no pair."""
        node = self._expression(expr, curried)
        if id(expr) in self.annotated and not isinstance(expr, Lambda):
            return s.Annotated(node, _type(expr.type), NOWHERE)
        return node

    def _expression(self, expr: Expr, curried: bool) -> s.Surface:
        match expr:
            case Identifier(name):
                return _name(name)
            case Literal():
                return _literal(expr)
            case Lambda():
                return self._function(expr, curried, annotate=False)
            case DependentLambda():
                return self._dependent_function(expr, self.expression)
            case _:
                return self._application(expr)

    # --- functions ---

    def outermost(self, expr: Expr, curried: bool = False) -> s.Surface:
        """As `expression`, and the parameters show their types, each in a list of its own if `curried`."""
        match expr:
            case Lambda():
                return self._function(expr, not curried, annotate=True)
            case DependentLambda():
                return self._dependent_function(expr, lambda body: self.outermost(body, curried))
            case _:
                return self.expression(expr)

    def _function(self, expr: Lambda, together: bool, annotate: bool) -> s.Surface:
        """Nested functions, as one of several parameters if `together`."""
        parameters: list[s.Pattern] = []
        body: Expr = expr
        taken = self.reserved
        while isinstance(body, Lambda):
            shown = annotate or id(body) in self.annotated
            parameter, body = _renamed(body, taken)
            taken |= {parameter.name}
            parameters.append(self._parameter(parameter, shown))
        node = self.expression(body)
        for names in [parameters] if together else [[p] for p in reversed(parameters)]:
            node = s.Function(tuple(names), node, NOWHERE)
        return node

    def _parameter(self, parameter: Identifier, annotate: bool) -> s.NamePattern:
        return s.NamePattern(parameter.name, _type(parameter.type) if annotate else None, NOWHERE)

    def _dependent_function(self, expr: Expr, below: Callable[[Expr], s.Surface]) -> s.Surface:
        names: list[tuple[str, Kind]] = []
        while isinstance(expr, DependentLambda):
            names.append((expr.name, expr.kind))
            expr = expr.body
        return s.DependentFunction(_kinded(names), below(expr), NOWHERE)

    # --- applications ---

    def _application(self, expr: Expr) -> s.Surface:
        head, given = _unfold(expr)
        values = [g for g in given if not isinstance(g, Given)]
        if isinstance(head, Primitive):
            special = self._special(head, values)
            if special is not None:
                return special
        if _flows(head, given):
            *others, last = given
            return s.Call(self._call(head, others), (self._argument(last),), NOWHERE, piped=True)
        return self._call(head, given)

    def _special(self, head: Primitive, values: list[Expr]) -> s.Surface | None:
        """Primitives that have a notation of their own."""
        match head.name, values:
            case "let", [value, Lambda() as function]:
                parameter, body = _renamed(function, self.reserved)
                pattern = self._parameter(parameter, annotate=False)
                return s.Let(pattern, self.expression(value), self.expression(body), NOWHERE)
            case "let", _:
                return self.expression(_expanded_let(head, values))
            case "pair", [first, second]:
                return s.Tuple(self.expression(first), self.expression(second), NOWHERE)
            case "cast", [] | [_]:
                return self._cast(head, values)
            case _, [operand] if head.name in PREFIX:
                return s.Unary(PREFIX[head.name], self.expression(operand), NOWHERE)
            case _, [left, right] if (operator := head.declaration.infix) in BINARY:
                return s.Binary(operator, self.expression(left), self.expression(right), NOWHERE)
        return None

    def _cast(self, head: Primitive, values: list[Expr]) -> s.Surface:
        """A cast is named after its target; to other than scalars, it shows its type."""
        target = head.arguments[1]
        operands = tuple(map(self._cast_operand, values))
        cast = _name(target.name if isinstance(target, Scalar) else "cast")
        node = s.Call(cast, operands, NOWHERE) if operands else cast
        if isinstance(target, Scalar):
            return node
        return s.Annotated(node, _type(head.type if not values else target), NOWHERE)  # type: ignore[arg-type]  # a data type

    def _cast_operand(self, operand: Expr) -> s.Surface:
        """Nothing else says of which type a literal is that is cast to a scalar."""
        node = self.expression(operand)
        if isinstance(operand, Literal) and not isinstance(operand.value, bool):
            usual = F32 if isinstance(operand.value, float) else I32
            if operand.type != usual:
                return s.Annotated(node, _type(operand.type), NOWHERE)
        return node

    def _call(self, head: Expr, given: Sequence[Expr | Given]) -> s.Surface:
        """`f(32)(x, y)`: dependent arguments and values in parentheses of their own."""
        node = self._head(head)
        # the type of a parameter that is a function is known before its argument is checked
        curried = isinstance(head, Primitive | Reference)
        for run in _runs([*map(Given, _explicit(head)), *given]):
            node = s.Call(node, tuple(self._argument(g, curried) for g in run), NOWHERE)
        return node

    def _head(self, head: Expr) -> s.Surface:
        if isinstance(head, Primitive):
            return _name(head.declaration.written)
        return _name(head.name) if isinstance(head, Reference) else self.expression(head)

    def _argument(self, given: Expr | Given, curried: bool = False) -> s.Surface:
        match given:
            case Given(argument):
                return _name(show_argument(argument))
            case Primitive(declaration) if (operator := declaration.infix) in BINARY:
                return s.Operator(operator, NOWHERE)
            case _:
                return self.expression(given, curried)


def _name(name: str) -> s.Name:
    return s.Name(name, NOWHERE)


def _literal(literal: Literal) -> s.Surface:
    """Numbers of a floating-point type have a point or an exponent, others have none."""
    value, type_ = literal.value, literal.type
    if isinstance(type_, Scalar) and not isinstance(value, bool):
        value = float(value) if type_.is_float else int(value)
    if isinstance(value, float) and isnan(value):
        return s.Binary("-", s.Number(inf, NOWHERE), s.Number(inf, NOWHERE), NOWHERE)
    return s.Number(value, NOWHERE)


def _unfold(expr: Expr) -> tuple[Expr, list[Expr | Given]]:
    """What is applied, and to what, dependent arguments among it."""
    given: list[Expr | Given] = []
    while isinstance(expr, Apply | DependentApply):
        argument = expr.argument
        given.append(argument if isinstance(expr, Apply) else Given(argument))  # type: ignore[arg-type]
        expr = expr.function
    given.reverse()
    return expr, given


def _explicit(head: Expr) -> list[Argument]:
    """The dependent arguments that a program has to write; a layout only where it is not the usual one."""
    if isinstance(head, Primitive):
        parameters: tuple[Parameter, ...] = head.declaration.scheme.parameters
    elif isinstance(head, Reference):
        parameters = head.definition.parameters
    else:
        return []
    pairs = zip(parameters, head.arguments, strict=True)
    return [a for p, a in pairs if not (p.implicit or (p.kind is Kind.LAYOUT and a == p.default))]


def _runs(given: list[Expr | Given]) -> list[list[Expr | Given]]:
    """Neighbours of one sort together."""
    runs: list[list[Expr | Given]] = []
    for item in given:
        if runs and isinstance(runs[-1][-1], Given) == isinstance(item, Given):
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def _expanded_let(head: Primitive, values: list[Expr]) -> Expr:
    """`let` is a keyword: where its function is not written in place, it is made so."""
    taken = frozenset[str]().union(*(v.free for v in values))
    bound = [
        Identifier(fresh_name(name, taken), type_)
        for name, type_ in zip("xf", arguments(head.type)[0], strict=True)
    ]
    operands: list[Expr] = [*values, *bound[len(values) :]]
    value, function = operands
    inner = Identifier(fresh_name("y", taken | {b.name for b in bound}), bound[0].type)
    result: Expr = apply(head, value, Lambda(inner, Apply(function, inner)))
    for parameter in reversed(bound[len(values) :]):
        result = Lambda(parameter, result)
    return result


# --- what is piped ------------------------------------------------------------------------------


def _flows(head: Expr, given: Sequence[Expr | Given]) -> bool:
    """Whether the last argument is printed in front: `xs |> map(f)`, `x |> fun(y => …)`."""
    if not given or isinstance(given[-1], Given):
        return False
    if isinstance(head, Lambda):
        return len(given) == 1
    if not isinstance(head, Primitive) or not _takes_flow(head.declaration):
        return False
    complete = len(given) == len(arguments(head.declaration.scheme.type)[0])
    return complete and not isinstance(given[-1], Literal | Lambda | Primitive)


def _takes_flow(declaration: Declaration) -> bool:
    """Of the parameters, only the last is data of some extent; `zip` has two of them, `fst` none.

    A value of any type flows through what only says where it is: `toMem`, the copies.
    """
    scheme = declaration.scheme
    parameters, result = arguments(scheme.type)
    if not parameters:
        return False
    *others, last = parameters
    if isinstance(last, Variable):
        return not others and last == result and declaration.group == "memory"
    return _has_extent(last) and not any(_has_extent(other) for other in others)


def _has_extent(type_: Type) -> bool:
    return isinstance(type_, Array | Vector | Fragment)
