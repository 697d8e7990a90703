"""Prints typed expressions as programs that parse back to them.

Data flows through pipes where that reads well, operators are infix, dependent arguments are printed
where the program has to give them. Binders keep their names, except those that would hide a
primitive which is used below them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isinf, isnan

from rise.document import SPACE, Document, concat, group, indented, render
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
from rise.primitives.declare import Declaration
from rise.syntax import layout
from rise.syntax.layout import ANNOTATED, ATOM, BINARY, INFINITY, LOOSEST, PIPE, SUM, UNARY
from rise.types import (
    F32,
    I32,
    Argument,
    Array,
    Fragment,
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


__all__ = ["show", "show_argument", "show_definition", "show_nat", "show_scheme", "show_type"]


def show(expr: Expr, width: int = 100, annotate: bool = False) -> str:
    """The expression as text.

    With `annotate` the outermost parameters show their types, and so does what else would lose its type:
    the text of a closed expression parses back to it.
    """
    shown: frozenset[int] = frozenset()
    if annotate and not expr.free and any(_has_fragment(term) for term in subterms(expr)):
        expr = _unhidden(expr, _names(expr))
        shown = _annotated(Definition("it", (), expr), width)
    return render(Printer(_names(expr), shown).expression(expr, annotate=annotate), width)


def _has_fragment(term: Expr) -> bool:
    """Whether it may make a fragment, whose third size its result need not tell."""
    return isinstance(term, Primitive) and isinstance(arguments(term.type)[1], Fragment)


def show_definition(definition: Definition, width: int = 100) -> str:
    """`def name = …`, types written where parsing the text again could not find them."""
    definition = replace(definition, body=_unhidden(definition.body, _names(definition.body)))
    return _definition(definition, _annotated(definition, width), width)


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
    body, start = definition.body, f"def {definition.name}"
    printer = Printer(_names(body), annotated)
    if not definition.parameters and isinstance(_below_dependent(body), Lambda):
        document = group(start, " = ", printer.expression(body, annotate=True))
    else:
        start = f"{start}: {show_scheme(definition.scheme)}"
        document = group(start, " =", indented(SPACE, printer.expression(body)))
    return render(document, width)


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


def _names(expr: Expr) -> frozenset[str]:
    """What is used in an expression without being bound there: no binder may hide these names."""
    names: set[str] = set()
    for term in subterms(expr):
        if isinstance(term, Primitive | Reference):
            names.add(term.name)
        if isinstance(term, Primitive) and term.name == "cast":
            names.add(str(term.arguments[1]))
    return frozenset(names)


# --- expressions --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """A dependent argument, among the arguments that an expression is applied to."""

    argument: Argument


@dataclass(frozen=True)
class Printer:
    """`reserved`: names that no binder may take; `annotated`: terms, by identity, that show their type."""

    reserved: frozenset[str]
    annotated: frozenset[int] = frozenset()

    def expression(self, expr: Expr, level: int = LOOSEST, annotate: bool = False) -> Document:
        """The document of an expression, parenthesised if it binds less tightly than `level`."""
        own, document = self._expression(expr, annotate)
        if id(expr) in self.annotated and not isinstance(expr, Lambda):
            atom = document if own >= ATOM else layout.parenthesised(document)
            own, document = ANNOTATED, concat(atom, f": {show_type(expr.type)}")
        return document if own >= level else layout.parenthesised(document)

    def _expression(self, expr: Expr, annotate: bool) -> tuple[int, Document]:
        match expr:
            case Identifier(name):
                return ATOM, name
            case Literal():
                return _literal(expr)
            case Lambda():
                return ATOM, self._function(expr, annotate)
            case DependentLambda():
                return ATOM, self._dependent_function(expr, annotate)
            case _:
                return self._application(expr)

    # --- functions ---

    def _function(self, expr: Lambda, annotate: bool) -> Document:
        """Nested functions of one parameter as one function of several."""
        parameters: list[str] = []
        shows = False
        body: Expr = expr
        while isinstance(body, Lambda):
            shown = annotate or id(body) in self.annotated
            parameter, body = _renamed(body, self.reserved)
            parameters.append(f"{parameter.name}: {show_type(parameter.type)}" if shown else parameter.name)
            shows = shows or shown
        # a list in parentheses may be taken for a pair, except outermost
        grouped = shows and (annotate or len(parameters) == 1)
        together = layout.parameters(parameters) if grouped else ", ".join(parameters)
        return group("fun(", together, " =>", indented(SPACE, self.expression(body)), ")")

    def _dependent_function(self, expr: DependentLambda, annotate: bool) -> Document:
        parameters: list[str] = []
        body: Expr = expr
        while isinstance(body, DependentLambda):
            parameters.append(f"{body.name}: {body.kind.value}")
            body = body.body
        start = layout.parameters(parameters)
        return group("depFun(", start, " =>", indented(SPACE, self.expression(body, annotate=annotate)), ")")

    # --- applications ---

    def _application(self, expr: Expr) -> tuple[int, Document]:
        head, given = _unfold(expr)
        values = [g for g in given if not isinstance(g, Given)]
        if isinstance(head, Primitive):
            special = self._special(head, values)
            if special is not None:
                return special
        if _flows(head, given):
            return PIPE, self._pipe(expr)
        return ATOM, self._call(head, given)

    def _special(self, head: Primitive, values: list[Expr]) -> tuple[int, Document] | None:
        """Primitives that have a notation of their own."""
        match head.name, values:
            case "let", _:
                return self._let(head, values)
            case "pair", [first, second]:
                return ATOM, self._pair(first, second)
            case "cast", [] | [_]:
                return self._cast(head, values)
            case _, [operand] if head.name in PREFIX:
                return UNARY, self._prefixed(PREFIX[head.name], operand)
            case _, [left, right] if (operator := head.declaration.infix) in BINARY:
                return self._infix(operator, left, right)
        return None

    def _let(self, head: Primitive, values: list[Expr]) -> tuple[int, Document]:
        match values:
            case [value, Lambda() as function]:
                parameter, body = _renamed(function, self.reserved)
                bound = layout.binding(parameter.name, self.expression(value))
                return LOOSEST, layout.bindings([bound], self.expression(body))
            case _:
                return self._expression(_expanded_let(head, values), annotate=False)

    def _pair(self, first: Expr, second: Expr) -> Document:
        """`(a, b, c)` is `(a, (b, c))`."""
        parts = [first]
        while (rest := _components(second)) is not None:
            parts.append(rest[0])
            second = rest[1]
        return layout.pair([self.expression(part) for part in (*parts, second)])

    def _cast(self, head: Primitive, values: list[Expr]) -> tuple[int, Document]:
        """A cast is named after its target; to other than scalars, it shows its type."""
        target = head.arguments[1]
        if not isinstance(target, Scalar):
            shown = head.type if not values else target
            called = concat("cast(", self.expression(values[0]), ")") if values else "cast"
            return ANNOTATED, concat(called, f": {show_type(shown)}")  # type: ignore[arg-type]  # a data type
        if not values:
            return ATOM, target.name
        return ATOM, concat(target.name, "(", self._cast_operand(values[0]), ")")

    def _cast_operand(self, operand: Expr) -> Document:
        """Nothing else says of which type a literal is that is cast."""
        document = self.expression(operand)
        if isinstance(operand, Literal) and not isinstance(operand.value, bool):
            usual = F32 if isinstance(operand.value, float) else I32
            if operand.type != usual:
                return concat(self.expression(operand, ATOM), f": {show_type(operand.type)}")
        return document

    def _prefixed(self, operator: str, operand: Expr) -> Document:
        """`-(1)` is a negation, `-1` a literal."""
        level = LOOSEST if isinstance(operand, Literal) else UNARY
        document = self.expression(operand, level)
        return concat(operator, "(", document, ")") if level == LOOSEST else concat(operator, document)

    def _infix(self, operator: str, left: Expr, right: Expr) -> tuple[int, Document]:
        levels = layout.operand_levels(operator)
        before, after = (self.expression(e, n) for e, n in zip((left, right), levels, strict=True))
        return BINARY[operator], layout.infix(before, operator, after)

    # --- calls and pipes ---

    def _call(self, head: Expr, given: Sequence[Expr | Given]) -> Document:
        """`f(32)(x, y)`: dependent arguments and values in parentheses of their own."""
        explicit = [Given(a) for a in _explicit(head)]
        document = self._head(head)
        for arguments_ in _runs([*explicit, *given]):
            document = concat(document, self._arguments(arguments_))
        return document

    def _head(self, head: Expr) -> Document:
        if isinstance(head, Primitive):
            return head.declaration.written
        if isinstance(head, Reference):
            return head.name
        return self.expression(head, ATOM)

    def _arguments(self, given: list[Expr | Given]) -> Document:
        return layout.call_arguments([self._argument(g) for g in given], _in_place(given))

    def _argument(self, given: Expr | Given) -> Document:
        match given:
            case Given(argument):
                return show_argument(argument)
            case Primitive(declaration) if (operator := declaration.infix) in BINARY:
                return operator
            case _:
                return self.expression(given)

    def _pipe(self, expr: Expr) -> Document:
        """`x |> f |> g`, on one line or a line each."""
        stages: list[Document] = []
        in_place: list[bool] = []
        head, given = _unfold(expr)
        while _flows(head, given):
            stages.insert(0, concat("|> ", self._call(head, given[:-1])))
            in_place.insert(0, _in_place([head]) or _in_place(given[:-1]))
            expr = given[-1]  # type: ignore[assignment]  # data flows through values only
            if id(expr) in self.annotated:
                break
            head, given = _unfold(expr)
        return layout.chain(self.expression(expr, ANNOTATED), stages, in_place)


def _in_place(given: Sequence[Expr | Given]) -> bool:
    """Whether there is a function among the arguments, and nothing else that may need two lines."""
    functions = [isinstance(g, Lambda | DependentLambda) for g in given]
    return any(functions) and all(
        is_function or isinstance(g, Given | Identifier | Literal | Primitive | Reference)
        for g, is_function in zip(given, functions, strict=True)
    )


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


def _components(expr: Expr) -> tuple[Expr, Expr] | None:
    match expr:
        case Apply(Apply(Primitive(declaration), first), second) if declaration.name == "pair":
            return first, second
        case _:
            return None


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


# --- literals -----------------------------------------------------------------------------------


def _literal(literal: Literal) -> tuple[int, Document]:
    """Numbers of a floating-point type have a point or an exponent, others have none."""
    value, type_ = literal.value, literal.type
    if isinstance(value, bool):
        return ATOM, "true" if value else "false"
    if isinstance(type_, Scalar):
        value = float(value) if type_.is_float else int(value)
    if isinstance(value, float) and isnan(value):
        return SUM, f"{INFINITY} - {INFINITY}"
    digits = INFINITY if isinstance(value, float) and isinf(value) else repr(abs(value))
    negative = str(value).startswith("-")
    return (UNARY, f"-{digits}") if negative else (ATOM, digits)
